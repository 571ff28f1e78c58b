"""What makes a notebook a lesson: `setup` begins it, `predict` asks before a cell answers, `show` displays a figure."""

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from course_lib import logbook
from course_lib.checked import describe
from course_lib.randomness import seed_everything

_OPEN = object()  # "not measured yet", since None could be a measurement


def setup(seed: int = 0) -> None:
    """Make a notebook repeatable: seed torch, NumPy and Python; print tensors with four digits, without 1e-3."""
    seed_everything(seed)
    torch.set_printoptions(profile="default", sci_mode=False, linewidth=100)


def show(figure: object, *, alt: str) -> None:
    """Display a matplotlib figure as PNG with `alt`, the text that says what it shows to whoever cannot see it."""
    from matplotlib.figure import Figure

    if not isinstance(figure, Figure):
        raise TypeError(f"show(): figure is {describe(figure)}; a matplotlib Figure is asked for.")
    if not isinstance(alt, str) or len(alt.split()) < 3:
        raise ValueError(f"show(): alt is {describe(alt)}; a sentence that says what the figure shows is asked for.")
    from IPython import get_ipython
    from IPython.display import display

    from course_lib.figures.style import as_png

    picture, width = as_png(figure)
    if get_ipython() is None:
        print(alt)
        return
    data = {"image/png": picture, "text/plain": alt}
    display(data, raw=True, metadata={"image/png": {"alt": alt, "width": width}})


@dataclass(frozen=True)
class Prediction:
    """One question, what the learner guessed and what was measured; it displays as a sentence."""

    question: str
    text: str

    def __repr__(self) -> str:
        return f"{self.question}{'' if self.question.endswith('?') else ':'} {self.text}"

    def _repr_html_(self) -> str:
        style = "border-left:4px solid #56B4E9;padding:.3em .8em"
        text = html.escape(self.text[:1].upper() + self.text[1:])
        return f'<div style="{style}"><b>{html.escape(self.question)}</b><br>{text}</div>'


def predict(
    question: str,
    guess: object = None,
    *,
    measured: object = _OPEN,
    because: str = "",
    unit: str = "",
    within: float = 1e-9,
    digits: int = 6,
) -> Prediction:
    """Ask before measuring. `predict(question, guess=None)` takes a guess; the same question with `measured=` answers.

    A guess may stay open. It is kept in the learner's logbook, so that a later notebook can come back to it.
    `because` is the reason in a few words, `unit` is printed after the numbers, of which `digits` are shown. A guess is
    right if it is `within` this share of what was measured: exactly right, unless the measurement is a rough one.
    """
    if not isinstance(question, str) or not question.strip():
        raise TypeError(f"predict(): question is {describe(question)}; a sentence is asked for.")
    guess = _as_number(_plain(guess), unit)
    say = partial(_say, unit=unit, digits=digits)
    if guess is not None:
        logbook.record("guesses", question, guess)
    if measured is _OPEN:
        if guess is None:
            return Prediction(question, "no guess yet. Replace None, run again, then go on.")
        return Prediction(question, f"your guess, {say(guess)}, is noted. Go on.")
    guess = logbook.read("guesses").get(question) if guess is None else guess
    reason, measured = f" — {because}" if because else "", _plain(measured)
    return Prediction(question, f"{say(measured)}{reason}. {_verdict(guess, measured, within, say)}")


def _plain(value: object) -> object:
    """A value that JSON can keep: numbers, text, lists; anything else as its text."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _as_number(guess: object, unit: str) -> object:
    """A guess in quotes as the number that it shows: "4,096 B" is 4096."""
    if not isinstance(guess, str):
        return guess
    text = guess.strip().removesuffix(unit).strip().replace(",", "").replace("_", "")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return guess


def _say(value: object, unit: str, digits: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = f"({', '.join(_say(v, '', digits) for v in value)})" if isinstance(value, list) else str(value)
    else:
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"
    return f"{text} {unit}" if unit else text


def _verdict(guess: object, measured: object, within: float, say: Callable[[object], str]) -> str:
    if guess is None:
        return "(You left the guess open.)"
    said = f"Your guess, {say(guess)},"
    if _agree(guess, measured, within):
        return f"{said} is right."
    comparable = _is_number(guess) and _is_number(measured) and measured != 0
    ratio = guess / measured if comparable else 0
    if not 1e-99 < ratio < 1e99:  # another sign, infinite, or no number
        return f"{said} was another."
    if 0.5 < ratio < 2:
        return f"{said} is {abs(ratio - 1):.2%} too {'large' if ratio > 1 else 'small'}."
    return f"{said} is {ratio:,.3g} times that." if ratio > 1 else f"{said} is 1/{1 / ratio:,.3g} of that."


def _agree(guess: object, measured: object, within: float) -> bool:
    """Whether a guess is right; lists are compared element by element, and True is not 1."""
    if isinstance(guess, list) and isinstance(measured, list):
        pairs = zip(guess, measured, strict=False)
        return len(guess) == len(measured) and all(_agree(g, m, within) for g, m in pairs)
    if _is_number(guess) and _is_number(measured):
        return math.isclose(guess, measured, rel_tol=within)
    return type(guess) is type(measured) and guess == measured


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
