"""An observation: what one candidate (the learner's function, the reference, a misconception …) did on one case."""

import inspect
import random
import time
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from course_lib.exercises.engine.freeze import freeze, span_of, tensors_in
from course_lib.exercises.engine.guard import OutOfTime, TooMuchOutput, guarded
from course_lib.exercises.engine.source import code_of

LIMIT_SECONDS = 5.0


@dataclass(frozen=True)
class Case:
    """The arguments of a call as source text: fresh inputs for every candidate, and a call that a learner can paste."""

    text: str
    label: str = ""

    def build(self, namespace: dict[str, object]) -> tuple[tuple, dict]:
        """Evaluate the text, seeded, into (positional arguments, keyword arguments)."""
        _seed_all()
        scope = {**namespace, "torch": torch, "_collect": lambda *args, **kwargs: (args, kwargs)}
        return eval(f"_collect({self.text})", scope)


def _seed_all() -> None:
    """As `torch.manual_seed(0)` and its siblings do, without the stack trace that it formats each time (0.1–0.4 ms)."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)
    np.random.seed(0)
    random.seed(0)


def case(text: str, label: str = "") -> Case:
    """A case with a label for the learner, e.g. `case("torch.arange(12.)[::2], 3", "a strided input")`."""
    return Case(text, label)


@dataclass(frozen=True)
class Raised:
    """An exception: its type, what it says (its first and last line) and where in the candidate's own code it arose."""

    type: type
    text: str
    line: str


@dataclass(frozen=True)
class Observation:
    """What was seen. `inputs` are the arguments afterwards, `moved` those whose storage was exchanged."""

    result: object = None
    inputs: tuple[tuple[str, object], ...] = ()
    moved: tuple[str, ...] = ()
    raised: Raised | None = None
    printed: str = ""
    seconds: float = 0.0


Probe = Callable[[Callable, tuple, dict], object]


def call(candidate: Callable, args: tuple, kwargs: dict) -> object:
    """The default probe: call the candidate and look at what it returns."""
    return candidate(*args, **kwargs)


def observe(
    candidate: Callable, one: Case, namespace: dict, probe: Probe, names: list[str], limit: float
) -> Observation:
    """Run one candidate on one case under guard. `names` are the parameters' names. Raises nothing."""
    guard, begin = None, time.perf_counter()
    try:
        with guarded(limit) as guard:
            try:
                seen = _watch(candidate, one, namespace, probe, names)
            except BaseException as error:  # whatever a learner's code raises is an observation
                seen = Observation(raised=_raised(error, candidate))  # within the limit: its __str__ is theirs too
            guard.stop()
    except BaseException as error:  # the alarm may ring on the way out
        seen = Observation(raised=_raised(error, candidate))
    if guard is not None and guard.rang:  # even if the candidate swallowed it and went on
        seen = Observation(raised=Raised(OutOfTime, "", ""))
    printed = guard.output.getvalue() if guard is not None else ""
    return Observation(seen.result, seen.inputs, seen.moved, seen.raised, printed, time.perf_counter() - begin)


def _watch(candidate: Callable, one: Case, namespace: dict, probe: Probe, names: list[str]) -> Observation:
    args, kwargs = one.build(namespace)
    named = [*zip(_padded(names, len(args)), args, strict=False), *kwargs.items()]
    watched = [found for name, value in named for found in tensors_in(value, name)]
    before = [(name, tensor, span_of(tensor)) for name, tensor in watched]
    witnesses = [(name, tensor.detach()) for name, tensor in watched]  # `.data = new` does not reach these
    result = freeze(probe(candidate, args, kwargs), before)
    inputs = tuple((name, freeze(value)) for name, value in [*named, *witnesses])
    moved = tuple(name for name, tensor, storage in before if span_of(tensor) != storage)
    return Observation(result, inputs, moved)


def _padded(names: list[str], count: int) -> list[str]:
    return [*names, *(f"argument {i + 1}" for i in range(len(names), count))]


def _raised(error: BaseException, candidate: Callable) -> Raised:
    if isinstance(error, OutOfTime | TooMuchOutput):
        return Raised(type(error), "", "")
    try:
        text = _gist(str(error))
    except BaseException:  # an exception whose own __str__ fails
        text = ""
    return Raised(type(error), text, _line_of(error, candidate))


def _gist(message: str) -> str:
    """The first line of an error's text; of many lines the last one as well: there einops and jaxtyping say why."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    ends = lines if len(lines) < 2 else [lines[0], lines[-1]]
    return " … ".join(line[:160] for line in ends)


def _line_of(error: BaseException, candidate: Callable) -> str:
    """The last line of the candidate's own file that the exception passed through."""
    files = {code.co_filename for code in _codes(candidate)}
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f"line {lines[-1].lineno}: {lines[-1].line}".rstrip(": ") if lines else ""


def _codes(candidate: object) -> list[types.CodeType]:
    parts = list(vars(candidate).values()) if inspect.isclass(candidate) else [candidate]
    return [code for part in parts if (code := code_of(part)) is not None]
