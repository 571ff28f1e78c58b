"""`hint`, `solution`, `exercises`, `progress`, and how a result displays."""

import json
import subprocess
import sys

import pytest

from course_lib.exercises import check, exercises, hint, progress, solution, tutor
from course_lib.exercises.engine import exercise
from course_lib.exercises.engine.result import Result


@pytest.fixture(autouse=True)
def no_hint_given_yet(monkeypatch, samples):
    monkeypatch.setattr(tutor, "_hints_given", {})


def position_in(strides, index, offset=0):
    return offset + sum(i * s for i, s in zip(index, strides, strict=True))


def test_hints_come_one_after_the_other_and_begin_again(samples):
    first, second = samples["position_in"].hints
    assert repr(hint(position_in)) == f"Hint 1 of 2: {first}"
    assert repr(hint("position_in")).startswith(f"Hint 2 of 2: {second}")
    assert repr(hint(samples["position_in"])) == f"Hint 1 of 2: {first}"
    assert "solution(position_in)" in repr(hint(position_in))


def test_the_solution_is_shown_as_a_learner_would_write_it(samples):
    shown = repr(solution(position_in))
    assert (
        shown.startswith("def position_in(strides: tuple[int, ...]") and "# A comment that the solution keeps." in shown
    )
    assert "@exercise" not in shown and samples["position_in"].why in shown
    assert "<pre" in solution(position_in)._repr_html_()


@pytest.mark.parametrize("nothing", [None, 3, "nonsense", print, object()])
def test_hint_and_solution_of_nothing_say_what_to_pass(nothing):
    for tool in (hint, solution):
        assert "pass the function or class of an exercise" in repr(tool(nothing))


def test_exercises_maps_names_in_the_order_of_the_notebooks(samples):
    book = exercises()
    assert set(samples) <= set(book) and all(one.name == name for name, one in book.items())
    assert [one.notebook for one in book.values()] == sorted(one.notebook for one in book.values())
    function, sentence = book["position_in"].misconceptions["counted_bytes"]
    assert callable(function) and sentence.startswith("You counted bytes")


@pytest.mark.parametrize("first", ["", "import course_lib.exercises.engine", "from course_lib.exercises import check"])
def test_the_package_called_exercises_is_also_the_function(first):
    program = f"{first}\nfrom course_lib import exercises\nimport course_lib\n"
    program += "assert 'storage_position' in exercises() and exercises().keys() == course_lib.exercises().keys()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_progress_counts_what_is_solved(samples, own_logbook):
    total = len(exercises())
    before = repr(progress())
    assert before.startswith(f"0 of {total} exercises solved") and "○ position_in" in before
    assert check(position_in).status == "correct"
    after = repr(progress())
    assert after.startswith(f"1 of {total} exercises solved") and "✓ position_in" in after and "○ windows_of" in after
    assert json.loads(own_logbook.read_text())["solved"] == {"position_in": True}


def test_a_logbook_that_cannot_be_written_costs_only_the_note(samples, tmp_path, monkeypatch):
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("COURSE_PROGRESS", str(blocked / "progress.json"))
    result = check(position_in)
    assert result.status == "correct" and "could not be noted" in result.message
    assert repr(progress()).startswith("0 of")


def test_a_result_displays_as_text_and_as_html_with_inline_styles():
    result = Result("f", "wrong", "not yet\nYou <b>forgot</b> & lost.", "forgot")
    assert repr(result) == "✗ f — not yet\n  You <b>forgot</b> & lost."
    page = result._repr_html_()
    assert "You &lt;b&gt;forgot&lt;/b&gt; &amp; lost." in page and "style=" in page and "class=" not in page


def test_an_author_who_fixes_an_unknown_property_is_told():
    with pytest.raises(ValueError, match=r"fixed names \['color'\]; it may name"):
        exercise(notebook="99", hints=[], why="", fixed=("color",))


def test_a_name_that_is_not_defined_yet_is_told(samples):
    assert "there is no windows_of yet: run the cell that defines it" in check("windows_of").message


def test_a_diagnosis_explains_at_least_half_of_what_is_wrong(samples):
    def position_in(strides, index, offset=0):  # one misconception's zero for a scalar with an offset, and much besides
        return 0 if strides == () else -1

    result = check(position_in)
    assert result.status == "wrong"
    assert result.diagnosis is None


def test_what_einops_says_last_is_shown(samples):
    def position_in(strides, index, offset=0):
        raise ValueError(
            "Error while processing a pattern.\n Input tensor shape: (2, 3).\n Wrong shape: expected 3 dims."
        )

    assert "ValueError: Error while processing a pattern. … Wrong shape: expected 3 dims." in check(position_in).message
