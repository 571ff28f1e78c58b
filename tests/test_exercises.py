"""Every exercise keeps the engine's promises: its reference is right, each misconception gets its own sentence, …"""

import importlib
from itertools import combinations

import engine_samples
import pytest

from course_lib.exercises import exercises
from course_lib.exercises.engine.compare import difference
from course_lib.exercises.engine.exercise import Exercise
from course_lib.exercises.engine.freeze import Items, Opaque, Table
from course_lib.exercises.engine.judge import judge

ALL = {**engine_samples.SAMPLES, **exercises()}
MISCONCEPTIONS = [(name, wrong) for name, one in ALL.items() for wrong in one.misconceptions]
ALTERNATIVES = [(name, right) for name, one in ALL.items() for right in one.alternatives]


def defined_by(exercise: Exercise, source: str) -> object:
    """What a notebook cell with this source would define."""
    scope = dict(vars(importlib.import_module(exercise.reference.__module__)))
    exec(compile(source, "<cell>", "exec"), scope)
    return scope[exercise.name]


@pytest.mark.parametrize("name", ALL)
def test_the_reference_and_the_shown_solution_are_correct(name):
    assert judge(ALL[name], ALL[name].reference).status == "correct"
    shown = judge(ALL[name], defined_by(ALL[name], ALL[name].solution))
    assert shown.status == "correct", shown


@pytest.mark.parametrize("name", ALL)
def test_the_stub_is_not_started(name):
    result = judge(ALL[name], defined_by(ALL[name], ALL[name].stub))
    assert (result.status, result.diagnosis) == ("not started", None), result


@pytest.mark.parametrize(("name", "wrong"), MISCONCEPTIONS)
def test_a_misconception_is_rejected_with_its_own_sentence(name, wrong):
    function, sentence = ALL[name].misconceptions[wrong]
    result = judge(ALL[name], function)
    assert result.status in ("wrong", "error"), result
    assert result.diagnosis == wrong, result
    assert sentence in result.message


@pytest.mark.parametrize(("name", "right"), ALTERNATIVES)
def test_another_right_solution_passes(name, right):
    result = judge(ALL[name], ALL[name].alternatives[right])
    assert result.status == "correct", result


@pytest.mark.parametrize("name", ALL)
def test_misconceptions_differ_from_the_reference_twice_and_from_each_other(name):
    one = ALL[name]
    want = one.seen(one.reference)
    seen = {wrong: one.seen(function) for wrong, (function, _) in one.misconceptions.items()}
    for wrong, got in seen.items():
        wrong_cases = sum(difference(g, w, one.rules) is not None for g, w in zip(got, want, strict=True))
        assert wrong_cases >= 2, f"{wrong} differs from the reference on {wrong_cases} case(s) of {len(want)}"
    for a, b in combinations(seen, 2):
        told_apart = any(difference(x, y, one.rules) for x, y in zip(seen[a], seen[b], strict=True))
        assert told_apart, f"{a} and {b} behave alike"


@pytest.mark.parametrize("name", ALL)
def test_it_is_complete(name):
    one = ALL[name]
    assert len(one.misconceptions) >= 4 and len(one.alternatives) >= 2
    assert 2 <= len(one.hints) <= 3 and one.why and one.reference.__doc__
    sentences = [sentence for _, sentence in one.misconceptions.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(text.rstrip().endswith((".", "?", "!")) for text in [*sentences, *one.hints, one.why])
    assert len(one.case_list) >= 4 and any(case.label for case in one.case_list)


@pytest.mark.parametrize("name", ALL)
def test_what_the_reference_does_can_be_compared(name):
    for case, seen in zip(ALL[name].case_list, ALL[name].seen(ALL[name].reference), strict=True):
        assert not list(_opaque(seen.result)), f"case {case.text}"
        if seen.raised:
            assert issubclass(seen.raised.type, Exception) and seen.raised.type is not NameError, seen.raised


def _opaque(frozen):
    if isinstance(frozen, Opaque):
        yield frozen
    parts = frozen.items if isinstance(frozen, Items) else frozen.rows.values() if isinstance(frozen, Table) else ()
    for part in parts:
        yield from _opaque(part)


def test_names_are_unique_across_notebooks_and_files_match_them():
    for name, one in exercises().items():
        assert one.name == name and one.reference.__module__ == f"course_lib.exercises.nb{one.notebook}"
