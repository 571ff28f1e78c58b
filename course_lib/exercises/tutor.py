"""What a learner calls: `check` an answer, take a `hint`, see the `solution`, list `exercises`, look at `progress`."""

import difflib
import importlib
import inspect
import pkgutil
import re
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

from course_lib import logbook
from course_lib.exercises.engine.exercise import REGISTRY, Exercise
from course_lib.exercises.engine.freeze import kind_of
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.engine.result import Note, Result

_hints_given: dict[str, int] = {}
_one_at_a_time = threading.Lock()  # a judgement borrows what the whole process shares: standard output, generators
_judging: set[int] = set()  # threads that are inside a judgement


def exercises() -> dict[str, Exercise]:
    """Every exercise of the course by its name, in the order of the notebooks."""
    files = pkgutil.iter_modules([str(Path(__file__).parent)])
    for module in sorted(file.name for file in files if re.fullmatch(r"nb\d\d", file.name)):
        importlib.import_module(f"course_lib.exercises.{module}")
    return dict(sorted(REGISTRY.items(), key=lambda item: item[1].notebook))


def check(answer: object = None) -> Result:
    """Judge an answer: pass the function or class itself, e.g. `check(matmul_flops)`. Never raises."""
    if threading.get_ident() in _judging:
        return Result(
            "check", "error", "this check stands inside the function that it checks. Write it below, unindented."
        )
    try:
        found = _find(answer, sys._getframe(1))
        if isinstance(found, Result):
            return found
        exercise, candidate = found
        result = _judge_alone(exercise, candidate)
        if result.status == "correct" and not logbook.record("solved", exercise.name, True):
            message = f"{result.message}\n(It could not be noted in your progress file.)"
            return Result(result.name, result.status, message)
        return result
    except BaseException as error:  # a fault of ours, or the stop button, must not look like the learner's
        if isinstance(error, KeyboardInterrupt):
            return Result("check", "error", "interrupted.")
        return Result("check", "error", f"the checker itself failed ({type(error).__name__}). Please report this.")


def hint(exercise: object = None) -> Note:
    """The next hint for an exercise, e.g. `hint(matmul_flops)`; after the last one they begin again."""
    found = _named(exercise, sys._getframe(1))
    if isinstance(found, Note):
        return found
    given = _hints_given.get(found.name, 0) % len(found.hints)
    _hints_given[found.name] = given + 1
    last = given + 1 == len(found.hints)
    ending = f" The last one; solution({found.name}) shows an answer." if last else ""
    return Note(f"Hint {given + 1} of {len(found.hints)}: {found.hints[given]}{ending}")


def solution(exercise: object = None) -> Note:
    """A solution of an exercise and why it works, e.g. `solution(matmul_flops)`."""
    found = _named(exercise, sys._getframe(1))
    return found if isinstance(found, Note) else Note(found.why, code=found.solution)


def progress() -> Note:
    """What you have solved, notebook by notebook."""
    solved, lines, done = logbook.read("solved"), [], 0
    by_notebook: dict[str, list[Exercise]] = {}
    for one in exercises().values():
        by_notebook.setdefault(one.notebook, []).append(one)
    for notebook, ones in by_notebook.items():
        marks = [f"{'✓' if one.name in solved else '○'} {one.name}" for one in ones]
        done += sum(one.name in solved for one in ones)
        lines.append(f"{notebook}  {'   '.join(marks)}")
    return Note("\n".join([f"{done} of {len(exercises())} exercises solved", *lines]))


def _judge_alone(exercise: Exercise, candidate: Callable) -> Result:
    with _one_at_a_time:
        _judging.add(threading.get_ident())
        try:
            return judge(exercise, candidate)
        finally:
            _judging.discard(threading.get_ident())


def _find(answer: object, caller: types.FrameType) -> tuple[Exercise, Callable] | Result:
    """The exercise that an answer belongs to and the answer as something to call; or what is wrong with it."""
    book = exercises()
    name = _name_of(answer, caller)
    if name not in book:
        return Result("check", "error", _unknown(answer, name, book))
    exercise = book[name]
    if type(answer) is str:
        scope = {**caller.f_globals, **caller.f_locals}
        if name not in scope:
            return Result(name, "error", f"there is no {name} yet: run the cell that defines it, then check({name}).")
        answer = scope[name]
    wanted = "class" if exercise.is_class else "function"
    if not callable(answer) or type(answer) is Exercise:
        text = f"this is {_a(answer)}; pass the {wanted} itself, without calling it: check({name})."
        return Result(name, "error", text)
    if inspect.isclass(answer) != exercise.is_class:
        came = "class" if inspect.isclass(answer) else "function"
        return Result(name, "error", f"this is a {came}; a {wanted} is asked for.")
    return exercise, answer


def _named(exercise: object, caller: types.FrameType) -> Exercise | Note:
    book = exercises()
    name = exercise.name if type(exercise) is Exercise else _name_of(exercise, caller)
    return book[name] if name in book else Note(_unknown(exercise, name, book))


def _name_of(answer: object, caller: types.FrameType) -> str | None:
    """The exercise's name: the answer's own, or that of the caller's variable that holds it (a lambda, a partial)."""
    if type(answer) is str:
        return answer
    own = None
    if issubclass(type(answer), type):
        own = type.__dict__["__name__"].__get__(answer)  # not what a metaclass says of it
    elif issubclass(type(answer), types.FunctionType):
        own = answer.__name__
    if own in REGISTRY:
        return own
    for scope in (caller.f_locals, caller.f_globals):
        for name in REGISTRY:
            if name in scope and scope[name] is answer and answer is not None:
                return name
    return own


def _unknown(answer: object, name: str | None, book: dict[str, Exercise]) -> str:
    near = difflib.get_close_matches(name or "", book, 1)
    example = near[0] if near else next(iter(book), "an_exercise")
    got = f"{name!r}, which is no exercise" if name else _a(answer)
    return f"this is {got}; pass the function or class of an exercise, e.g. check({example})."


def _a(thing: object) -> str:
    if thing is None:
        return "None"
    kind = kind_of(thing)
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
