"""The einops explorer: type a pattern, see every number find its place, or einops' error where it arises."""
import re
import warnings
from collections.abc import Mapping

import einops
import torch
from einops import EinopsError
from matplotlib.figure import Figure

from course_lib.explorers import einops_errors
from course_lib.explorers.base import Explorer, Nonsense, one_of, script, text_of, whole_number, written
from course_lib.figures.einops import draw_pattern
from course_lib.figures.style import new_figure
from course_lib.storage import same_storage

_OPERATIONS = {name: getattr(einops, name) for name in ("rearrange", "reduce", "repeat")}
_REDUCTIONS = dict.fromkeys(("mean", "sum", "max", "min"))
_MOST_NUMBERS, _MOST_DIMENSIONS, _MOST_AXES, _LARGEST = 64, 4, 12, 64
_PRESETS = {  # operation, shape, pattern, sizes
    "transpose": ("rearrange", "3, 4", "h w -> w h", ""),
    "split heads": ("rearrange", "3, 8", "seq (heads dim) -> heads seq dim", "heads=2"),
    "merge the other way": ("rearrange", "3, 8", "seq (heads dim) -> seq (dim heads)", "heads=2"),
    "2×2 pooling": ("reduce", "4, 6", "(h h2) (w w2) -> h w", "h2=2, w2=2"),
    "repeat": ("repeat", "2, 3", "h w -> copy h w", "copy=3"),
    "an error": ("rearrange", "3, 4", "h w -> w c", ""),
}


class EinopsExplorer(Explorer):
    """One call of einops on a small tensor of 0, 1, 2, …: `x` goes in, `value` comes out, None where einops refuses.

    `operation` is "rearrange", "reduce" (by `reduction`) or "repeat"; `sizes` are those of named axes. At most 64
    numbers and four dimensions go in. ValueError, in a sentence, beyond that.
    """

    _esm = script("einops")
    title = "Einops explorer"

    def __init__(
        self, operation: str = "rearrange", shape: tuple[int, ...] = (3, 8),
        pattern: str = "seq (heads dim) -> heads seq dim", reduction: str = "mean", **sizes: int,
    ) -> None:  # fmt: skip
        if not sizes and pattern == "seq (heads dim) -> heads seq dim":
            sizes = {"heads": 2}
        self._operation = one_of("operation", operation, _OPERATIONS)
        self._reduction = one_of("reduction", reduction, _REDUCTIONS)
        self._shape, self._pattern = _shape_of(written("shape", shape)), text_of("pattern", pattern)
        self._sizes = _sizes_of(", ".join(f"{name}={size}" for name, size in sizes.items()))
        self._run()
        super().__init__()

    def do_operation(self, name: object) -> None:
        """Another operation on the same pattern."""
        self._operation = one_of("operation", name, _OPERATIONS)
        self._run()

    def do_reduction(self, name: object) -> None:
        """What `reduce` does with the axes that vanish."""
        self._reduction = one_of("reduction", name, _REDUCTIONS)
        self._run()

    def do_shape(self, text: object) -> None:
        """Another shape of the input."""
        self._shape = _shape_of(text)
        self._run()

    def do_pattern(self, text: object) -> None:
        """Another pattern, right or wrong."""
        self._pattern = text_of("pattern", text)
        self._run()

    def do_sizes(self, text: object) -> None:
        """Sizes of named axes, "h2=2, w2=2"."""
        self._sizes = _sizes_of(text)
        self._run()

    def do_preset(self, name: object) -> None:
        """One of the examples."""
        self._operation, shape, self._pattern, sizes = _PRESETS[one_of("preset", name, _PRESETS)]
        self._shape, self._sizes = _shape_of(shape), _sizes_of(sizes)
        self._run()

    def drawn(self) -> dict[str, object]:
        made = self.value is not None
        shades = self._shades()
        return {
            "operations": [*_OPERATIONS], "reductions": [*_REDUCTIONS], "presets": [*_PRESETS],
            "operation": self._operation, "reduction": self._reduction, "pattern": self._pattern,
            "shape": ", ".join(map(str, self._shape)), "sizes": _said(self._sizes), "tokens": self._tokens(),
            "error": self._error, "at": self._at, "call": self._call(), "result": self._result(),
            "input": _nested(self.x, shades[0]), "output": _nested(self.value, shades[1]) if made else None,
            "sides": self._sides(),
        }  # fmt: skip

    def facts(self) -> str:
        lines = [self._call(), self._result()]
        if self.value is not None:
            lines.append(f"The first row of the result: {_row(self.value)}.")
        elif self._at < len(self._pattern):
            lines.append(f"It arises at character {self._at + 1} of the pattern: “{self._pattern[self._at:]}”.")
        return "\n".join(lines)

    def figure(self) -> Figure:
        first = next(iter(re.findall(r"[a-z_]\w*", self._pattern)), "")
        reduction = self._reduction if self._operation == "reduce" else ""
        try:
            return draw_pattern(self.x, self._pattern, follow=first, reduction=reduction, **self._sizes)
        except (ValueError, TypeError, EinopsError):  # more than that picture can hold, or an error: then in words
            figure, axes = new_figure(10, 1.3)
            axes.set_axis_off()
            axes.text(0, 1, self.facts(), va="top", family="DejaVu Sans Mono", fontsize=13, wrap=True)
            return figure

    def _run(self) -> None:
        """Ask einops, and keep its result or its error."""
        total = int(torch.tensor(self._shape).prod())
        self.x = torch.arange(float(total)).reshape(self._shape)
        self.value, self._error, self._at = None, "", 0
        try:
            value = self._apply(self.x)
        except (EinopsError, ValueError, ZeroDivisionError) as error:
            self._error = einops_errors.said(error)
            self._at = einops_errors.place(error, self._pattern, self._shape, self._sizes)
            return
        if value.numel() > 3 * _MOST_NUMBERS or value.dim() > _MOST_AXES:
            self._error = f"einops does it: shape {tuple(value.shape)}, {value.numel():,} numbers, too many to draw."
            self._at = len(self._pattern)
            return
        self.value = value

    def _apply(self, x: torch.Tensor) -> torch.Tensor:
        extra = (self._reduction,) if self._operation == "reduce" else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # einops warns of axes that are called as Python's keywords are
            return _OPERATIONS[self._operation](x, self._pattern, *extra, **self._sizes)

    def _shades(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """For each number its place along the input's first axis, from 0 to 1, before and after."""
        first = self._shape[0] if self._shape else 1
        place = torch.arange(float(first)) / max(first - 1, 1)
        before = place.reshape(-1, *[1] * (len(self._shape) - 1)).expand(self._shape).contiguous()
        if self.value is None or self._operation == "reduce":
            return before, None
        return before, self._apply(before)

    def _call(self) -> str:
        reduction = f', "{self._reduction}"' if self._operation == "reduce" else ""
        sizes = f", {_said(self._sizes)}" if self._sizes else ""
        return f'{self._operation}(x, "{self._pattern}"{reduction}{sizes}) of a tensor of shape {self._shape}'

    def _result(self) -> str:
        if self.value is None:
            return f"Refused: {self._error}"
        kind = "a view: nothing is copied" if same_storage(self.x, self.value) else "a copy"
        return f"Shape {tuple(self.value.shape)}, {kind}."

    def _axes(self) -> list[str]:
        """The names of the pattern's axes, in the order in which they appear; the colour of one is its place here."""
        return [*dict.fromkeys(re.findall(r"[^\W\d]\w*", self._pattern))]

    def _tokens(self, text: str | None = None) -> list[list]:
        """The pattern, or a part of it, in pieces: its text, and the number of its axis or −1."""
        names = self._axes()
        pieces = re.findall(r"[^\W\d]\w*|\s+|->|.", self._pattern if text is None else text)
        return [[piece, names.index(piece) if piece in names else -1] for piece in pieces]

    def _sides(self) -> list[list]:
        """For x and for the result, the pieces of the name of each axis; none where the pattern does not suit."""
        parts = [re.findall(r"\([^()]*\)|[^\s()]+", part) for part in self._pattern.split("->")]
        tensors = [self.x, self.value]
        fits = len(parts) == 2 and "..." not in self._pattern
        sides = zip(parts, tensors, strict=False) if fits else ()
        named = [[*map(self._tokens, part)] if x is not None and x.dim() == len(part) else [] for part, x in sides]
        return named or [[], []]


def _shape_of(text: object) -> tuple[int, ...]:
    said = text_of("shape", text)
    parts = [part for part in re.split(r"[\s,×]+", said.strip("()[] ,")) if part]
    if not 1 <= len(parts) <= _MOST_DIMENSIONS or not all(re.fullmatch(r"\d{1,3}", part, re.ASCII) for part in parts):
        raise Nonsense("shape", f"“{said}” is not one to {_MOST_DIMENSIONS} whole numbers, as 4, 6 is.")
    shape = tuple(whole_number("shape", part, 1, _LARGEST) for part in parts)
    if torch.tensor(shape).prod() > _MOST_NUMBERS:
        raise Nonsense("shape", f"That is more than the {_MOST_NUMBERS} numbers that can be drawn.")
    return shape


def _sizes_of(text: object) -> dict[str, int]:
    typed = text_of("sizes", text)
    sizes: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in typed.split(","))):
        found = re.fullmatch(r"([^\W\d]\w*)\s*=\s*(\d{1,3})", part)
        if not found:
            raise Nonsense("sizes", f"“{part}” is no size of an axis; h2=2, w2=3 gives two.")
        if found[1] in ("tensor", "pattern", "reduction"):
            raise Nonsense("sizes", f"{found[1]} is the name of one of einops' own arguments; call the axis otherwise.")
        sizes[found[1]] = whole_number("sizes", found[2], 1, _LARGEST)
    return sizes


def _said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _row(x: torch.Tensor) -> str:
    row = x.reshape(-1, x.shape[-1])[0] if x.dim() else x.reshape(1)
    return ", ".join(f"{number:g}" for number in row.tolist())


def _nested(x: torch.Tensor, shades: torch.Tensor | None) -> list:
    """Matrices of rows of [number, shade from 0 to 1, or −1]."""
    rows, columns = (x.shape[-2], x.shape[-1]) if x.dim() > 1 else (1, x.numel())
    shades = torch.full_like(x, -1) if shades is None else shades
    pairs = torch.stack([x, shades], dim=-1).reshape(-1, rows, columns, 2).tolist()
    return [[[[f"{number:.4g}", round(shade, 3)] for number, shade in row] for row in matrix] for matrix in pairs]
