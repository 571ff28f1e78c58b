"""The stride explorer: give shape, strides and offset over a real storage, and walk the index order."""
import re
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from matplotlib.figure import Figure

from course_lib.explorers.base import Explorer, Nonsense, one_of, plain, script, text_of, whole_number, written
from course_lib.figures.storage import MOST_CELLS, MOST_ROWS, draw_sharing, draw_storage
from course_lib.storage import contiguous_strides, same_storage, storage_positions

_MOST_DIMENSIONS, _LARGEST = 3, 99
_SECOND: dict[str, Callable[[torch.Tensor], torch.Tensor] | None] = {
    "none": None,
    "x.mT": lambda x: x.mT,
    "x[0]": lambda x: x[0],
    "x[1:]": lambda x: x[1:],
    "x[:, ::2]": lambda x: x[:, ::2],
    "x[..., [0]]": lambda x: x[..., [0]],
    "x.reshape(-1)": lambda x: x.reshape(-1),
    "x.contiguous()": lambda x: x.contiguous(),
    "x.clone()": lambda x: x.clone(),
}


class StrideExplorer(Explorer):
    """A view `value` with any shape, strides and offset over a storage that holds 0, 1, 2, …

    At most 24 stored elements, three dimensions and 8 rows, which is what can be seen at once. ValueError, in a
    sentence, for a layout that reaches beyond the storage, as torch would refuse it.
    """

    _esm = script("strides")
    title = "Stride explorer"

    def __init__(
        self, size: int = 12, shape: Sequence[int] = (3, 4), strides: Sequence[int] | None = None, offset: int = 0
    ) -> None:
        size, offset = whole_number("size", size, 1, MOST_CELLS), plain(offset)
        shape = _numbers("shape", written("shape", shape), 1)
        strides = contiguous_strides(shape) if strides is None else _numbers("strides", written("strides", strides), 0)
        self._x = _laid_out(size, shape, strides, offset)
        self._step, self._second, self._view_as = 0, "none", ""
        super().__init__()

    @property
    def value(self) -> torch.Tensor:
        """The view itself."""
        return self._x

    @property
    def second(self) -> torch.Tensor | None:
        """The other tensor, made of the view as the list says."""
        make = _SECOND[self._second]
        return None if make is None else make(self._x)

    def do_size(self, count: object) -> None:
        """Another number of stored elements."""
        self._replace("size", size=whole_number("size", count, 1, MOST_CELLS))

    def do_shape(self, text: object) -> None:
        """Another shape; where the number of dimensions changes, with the strides of a contiguous tensor."""
        shape = _numbers("shape", text, 1)
        same = len(shape) == self._x.dim()
        self._replace("shape", shape=shape, strides=self._x.stride() if same else contiguous_strides(shape))

    def do_strides(self, text: object) -> None:
        """Other strides, one for each dimension, in elements."""
        self._replace("strides", strides=_numbers("strides", text, 0))

    def do_offset(self, count: object) -> None:
        """Another position of the first element."""
        self._replace("offset", offset=whole_number("offset", count, 0, _LARGEST))

    def do_swap(self) -> None:
        """Swap the last two dimensions: two sizes and two strides change places, no number moves."""
        if self._x.dim() < 2:
            raise Nonsense("shape", f"x has {self._x.dim()} dimension; two are needed to swap them.")
        x = self._x.mT
        self._replace("shape", shape=tuple(x.shape), strides=x.stride())

    def do_straighten(self) -> None:
        """The strides of a contiguous tensor of this shape."""
        self._replace("strides", strides=contiguous_strides(tuple(self._x.shape)))

    def do_walk(self, to: object) -> None:
        """Stand at one element, counted in the order of the indices; beyond the last comes the first."""
        self._step = whole_number("walk", to, -1, self._x.numel()) % self._x.numel()

    def do_second(self, name: object) -> None:
        """Another tensor beside it."""
        chosen = one_of("second", name, _SECOND)
        try:
            if _SECOND[chosen] is not None:
                _SECOND[chosen](self._x)
        except (IndexError, RuntimeError):
            raise Nonsense("second", f"{chosen} asks for another number of dimensions than x has.") from None
        self._second = chosen

    def do_view_as(self, text: object) -> None:
        """Ask whether `.view` would take this shape; empty for no question."""
        typed = text_of("view_as", text)
        self._view_as = typed and ", ".join(map(str, _numbers("view_as", typed, -1)))

    def drawn(self) -> dict[str, object]:
        places = storage_positions(self._x)
        counts = Counter(places.flatten().tolist())
        seen = self._seen_by_second()
        size = _size(self._x)
        return {
            "size": size, "shape": _said(self._x.shape), "strides": _said(self._x.stride()),
            "offset": self._x.storage_offset(), "step": self._step, "second": self._second, "seconds": [*_SECOND],
            "view_as": self._view_as, "where": self._where(), "layout": self._layout(), "view": self._answer(),
            "sharing": self._sharing(), "here": places.flatten()[self._step].item(),
            "cells": [{"x": counts[place], "y": place in seen} for place in range(size)],
            "matrices": places.reshape(-1, *_last_two(places)).tolist(),
        }  # fmt: skip

    def facts(self) -> str:
        x = self._x
        what = f"x: shape {tuple(x.shape)}, strides {x.stride()}, offset {x.storage_offset()}, {_size(x)} numbers."
        return "\n".join(filter(None, [what, self._layout(), self._where(), self._answer(), self._sharing()]))

    def figure(self) -> Figure:
        second = self.second
        if second is None or _size(second) > MOST_CELLS:  # a copy of a view that sees cells twice can be too large
            return draw_storage(self._x)
        return draw_sharing({"x": self._x, self._second: second})

    def _replace(self, field: str, **changes: object) -> None:
        now = {"size": _size(self._x), "shape": tuple(self._x.shape), "strides": self._x.stride(),
               "offset": self._x.storage_offset()}  # fmt: skip
        self._x = _laid_out(**{**now, **changes}, field=field)
        self._step = min(self._step, self._x.numel() - 1)
        try:
            _ = self.second
        except (IndexError, RuntimeError):
            self._second = "none"

    def _layout(self) -> str:
        reached = len(set(storage_positions(self._x).flatten().tolist()))
        kind = "contiguous" if self._x.is_contiguous() else "not contiguous"
        return f"x is {kind}: its {self._x.numel()} indices reach {reached} of {_size(self._x)} cells."

    def _where(self) -> str:
        index = torch.unravel_index(torch.tensor(self._step), self._x.shape)
        index = [int(i) for i in index]
        steps = [f"{i}·{stride}" for i, stride in zip(index, self._x.stride(), strict=True)]
        place = storage_positions(self._x)[tuple(index)].item()
        terms = " + ".join([*steps, f"offset {self._x.storage_offset()}"])
        return f"x[{_said(index)}] lies at {terms} = {place}."

    def _answer(self) -> str:
        if not self._view_as:
            return ""
        try:
            view = self._x.view(*(int(n) for n in self._view_as.split(",")))
        except RuntimeError as error:
            return f"x.view({self._view_as}) is refused: {_reason(str(error), self._x)}"
        return f"x.view({self._view_as}) works: shape {tuple(view.shape)}, strides {view.stride()}, nothing is copied."

    def _seen_by_second(self) -> set[int]:
        second = self.second
        if second is None or not same_storage(second, self._x):
            return set()
        return set(storage_positions(second).flatten().tolist())

    def _sharing(self) -> str:
        second = self.second
        if second is None:
            return ""
        if not same_storage(second, self._x):
            return f"{self._second} is a copy: a write into it does not reach x."
        both = self._seen_by_second() & set(storage_positions(self._x).flatten().tolist())
        return f"{self._second} is a view on the same storage: {len(both)} cells are seen by both."


def _size(x: torch.Tensor) -> int:
    return x.untyped_storage().nbytes() // x.element_size()


def _said(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _last_two(places: torch.Tensor) -> tuple[int, int]:
    return (places.shape[-2], places.shape[-1]) if places.dim() > 1 else (1, places.shape[-1])


def _numbers(field: str, text: object, least: int) -> tuple[int, ...]:
    """One to three whole numbers, as in "3, 4" or "(3, 4)"."""
    said = text_of(field, text)
    parts = [part for part in re.split(r"[\s,×]+", said.strip("()[] ,")) if part]
    if not 1 <= len(parts) <= _MOST_DIMENSIONS or not all(re.fullmatch(r"-?\d{1,9}", part, re.ASCII) for part in parts):
        raise Nonsense(field, f"“{said}” is not one to {_MOST_DIMENSIONS} whole numbers, as 3, 4 is.")
    return tuple(whole_number(field, part, least, _LARGEST) for part in parts)


def _laid_out(
    size: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, field: str = "shape"
) -> torch.Tensor:
    """The view, or the reason why there is none."""
    if len(strides) != len(shape):
        raise Nonsense(field, f"{len(strides)} strides for {len(shape)} dimensions: each dimension has one stride.")
    whole_number("offset", offset, 0, _LARGEST)
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if last >= size:
        corner = _said([n - 1 for n in shape])
        raise Nonsense(field, f"x[{corner}] would lie at {last}; the storage ends at {size - 1}, and torch refuses.")
    rows = 1
    for n in shape[:-1]:
        rows *= n
    if rows > MOST_ROWS or shape[-1] > MOST_CELLS:
        raise Nonsense(field, f"These are {rows} rows of {shape[-1]}; up to {MOST_ROWS} of {MOST_CELLS} can be drawn.")
    return torch.arange(size).as_strided(shape, strides, offset)


def _reason(said: str, x: torch.Tensor) -> str:
    if "is invalid for input of size" in said or "cannot be negative" in said or "only one dimension" in said:
        return f"it asks for another number of elements than {x.numel()}."
    if "invalid shape dimension" in said:
        return "only -1 may stand for a size that follows from the others."
    return "one of its dimensions would need two strides at once."
