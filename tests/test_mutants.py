"""Mechanical mutants of every solution are rejected, or listed in equivalent_mutants.toml with a reason."""

import importlib
import tomllib
from pathlib import Path

import engine_samples
import pytest
from mutants import mutants

from course_lib.exercises import exercises
from course_lib.exercises.engine.exercise import Exercise
from course_lib.exercises.engine.judge import judge

EQUIVALENT = tomllib.loads((Path(__file__).parent / "equivalent_mutants.toml").read_text(encoding="utf-8"))
ALL = exercises()
LIMIT_SECONDS = 0.3  # a mutant that loops for ever is found out soon


def survivors(exercise: Exercise, patience: tuple[str, ...] = ()) -> dict[str, str]:
    """Mutants that pass: what was changed -> source. Those named in `patience` get all the time that they need."""
    namespace = vars(importlib.import_module(exercise.reference.__module__))
    found = {}
    for what, source in mutants(exercise.solution):
        scope = dict(namespace)
        try:
            exec(compile(source, "<mutant>", "exec"), scope)
        except Exception:  # no program any more
            continue
        limit = 600.0 if what in patience else LIMIT_SECONDS
        if judge(exercise, scope[exercise.name], limit).status == "correct":
            found[what] = source
    return found


@pytest.mark.parametrize("name", ALL)
def test_no_mutant_passes_without_a_reason(name):
    excused = {entry["change"]: entry["because"] for entry in EQUIVALENT.get(name, [])}
    passing = survivors(ALL[name], tuple(excused))
    unexplained = {what: source for what, source in passing.items() if what not in excused}
    assert not unexplained, "\n\n".join(f"{what}\n{source}" for what, source in unexplained.items())
    assert set(excused) <= set(passing), f"listed as equivalent, but rejected: {set(excused) - set(passing)}"
    assert all(len(reason.split()) > 3 for reason in excused.values())


def test_the_mutants_are_many_and_a_lax_exercise_is_found_out():
    exercise = engine_samples.position_in
    made = list(mutants(exercise.solution))
    assert len(made) >= 8 and len({source for _, source in made}) == len(made)
    assert not survivors(exercise)
    cases = exercise.case_list
    try:
        exercise.case_list = [
            one for one in cases if "offset" not in one.label and not one.text.endswith(("5", "offset=1"))
        ]
        exercise._seen.clear()
        assert survivors(exercise), "without a case that has an offset, dropping the offset must pass unnoticed"
    finally:
        exercise.case_list = cases
        exercise._seen.clear()


def test_every_entry_of_the_list_names_an_exercise():
    assert set(EQUIVALENT) <= set(ALL)
