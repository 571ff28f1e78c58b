"""What all explorers share: the wire between the picture and Python, and the forms in which an explorer is displayed.

The picture holds no state. Each click or key sends one action, `{"action": "flip", "bit": 3, "turn": 7}`; Python does
it, and answers with all that there is to draw, so that the picture and `explorer.value` cannot differ.
"""
import inspect
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import anywidget
import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure

from course_lib.checked import describe
from course_lib.figures.style import as_png

_STATIC = Path(__file__).parent / "static"
_LONGEST_TEXT = 200  # characters that a field takes


class Nonsense(ValueError):
    """An action that cannot be done. `field` names the control that the sentence stands beside."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def script(name: str) -> str:
    """The JavaScript of an explorer: what all of them share, then its own file. One text, so nothing is fetched."""
    return "\n".join((_STATIC / file).read_text(encoding="utf-8") for file in ("common.js", f"{name}.js"))


class Explorer(anywidget.AnyWidget):
    """A live picture. Subclasses say what is drawn, and have one method `do_<action>` for each thing to do in it.

    An action changes the state as its last step, or raises `Nonsense` and changes nothing.
    """

    _css = (_STATIC / "explorer.css").read_text(encoding="utf-8")
    asked = traitlets.Dict().tag(sync=True)  # from the picture: the action, its arguments, and a number, the turn
    shown = traitlets.Dict().tag(sync=True)  # to the picture: what `drawn` says, the problem, and the turn it answers

    title: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._show()
        self.observe(self._on_asked, "asked")

    def drawn(self) -> Mapping[str, object]:
        """All that the picture shows: numbers, texts, lists and dicts of them."""
        raise NotImplementedError

    def facts(self) -> str:
        """The same in words, the same text on every machine: what a notebook stores and a screen reader says."""
        raise NotImplementedError

    def figure(self) -> Figure:
        """The same as a still picture, for where nothing runs."""
        raise NotImplementedError

    def do(self, action: str, **arguments: object) -> None:
        """Do what a click or a key does: `explorer.do("flip", bit=3)`. ValueError, in a sentence, if it cannot be."""
        self._act(action, arguments)
        self._show()

    def __repr__(self) -> str:
        return self.facts()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict, dict]:
        """The live picture, and for where it cannot live the still one and the facts."""
        data, metadata = super()._repr_mimebundle_()
        facts, (picture, width) = self.facts(), as_png(self.figure())
        data |= {"text/plain": facts, "image/png": b64encode(picture).decode()}
        return data, {**metadata, "image/png": {"alt": facts, "width": width}}

    def _on_asked(self, change: Mapping[str, dict]) -> None:
        arguments = dict(change["new"])
        turn, action = arguments.pop("turn", 0), arguments.pop("action", None)
        try:
            self._act(action, arguments)
        except Nonsense as problem:
            self._show(turn, {"field": problem.field, "says": str(problem)})
        except Exception as error:  # nobody who plays with a picture is shown a traceback
            said = str(error).strip() or type(error).__name__
            self._show(turn, {"field": "", "says": f"This cannot be shown: {said}"})
        else:
            self._show(turn)

    def _act(self, action: object, arguments: Mapping[str, object]) -> None:
        known = sorted(name.removeprefix("do_") for name in dir(type(self)) if name.startswith("do_"))
        if action not in known:
            raise Nonsense("", f"There is no action {describe(action)} here; there are {', '.join(known)}.")
        method: Callable[..., None] = getattr(self, f"do_{action}")
        wanted = [*inspect.signature(method).parameters]
        if {*arguments} != {*wanted}:
            came = ", ".join(map(str, arguments)) or "nothing"
            raise Nonsense("", f"{action} comes with {came}; {' and '.join(wanted) or 'nothing'} is asked for.")
        method(**arguments)

    def _show(self, turn: int = 0, problem: Mapping[str, str] | None = None) -> None:
        self.shown = {**self.drawn(), "title": self.title, "says": self.facts(), "problem": problem or {}, "turn": turn}


def plain(value: object) -> object:
    """A number of NumPy's or torch's as a Python one; anything else as it is."""
    alone = isinstance(value, np.generic) or (isinstance(value, torch.Tensor) and value.numel() == 1)
    return value.item() if alone else value


def written(field: str, numbers: str | Iterable[object]) -> str:
    """Numbers as somebody types them, "3, 4"."""
    if isinstance(numbers, str):
        return numbers
    try:
        return ", ".join(str(plain(number)) for number in numbers)
    except TypeError:
        came = describe(numbers)
        raise Nonsense(field, f"{field} is {came}; several whole numbers, as (3, 4), are asked for.") from None


def text_of(field: str, value: object) -> str:
    """What somebody typed into a field, without the spaces around it."""
    if not isinstance(value, str):
        raise Nonsense(field, f"{field} is {describe(value)}; text is asked for.")
    if len(value) > _LONGEST_TEXT:
        raise Nonsense(field, f"These are {len(value)} characters; {_LONGEST_TEXT} are the most that fit here.")
    return value.strip()


def one_of(field: str, value: object, allowed: Mapping[str, object]) -> str:
    """One of the choices of a list."""
    if value not in [*allowed]:
        raise Nonsense(field, f"{field} is {describe(value)}; one of {', '.join(allowed)} is asked for.")
    return value


def whole_number(field: str, value: object, low: int, high: int) -> int:
    """An integer from low to high, also as text."""
    value = plain(value)
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = value
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise Nonsense(field, f"{field} is {describe(value)}; a whole number from {low:,} to {high:,} is asked for.")
    return number
