"""Every notebook keeps every rule of the contract, and every rule notices the notebook that breaks it."""
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from contract import RULES, Page
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell
from notebook_samples import ALT, PNG, good_page

from course_lib.chapters import CHAPTERS
from course_lib.exercises import exercises
from course_lib.publishing.canonical import IGNORED
from course_lib.publishing.notebooks import NOTEBOOKS, find_notebooks

READY = [chapter for chapter in CHAPTERS if chapter.ready]
MACHINE = "/home" + "/"  # in two pieces, since this file, too, names no path of a machine


def page_of(filename: str) -> Page:
    chapter = next(chapter for chapter in CHAPTERS if chapter.filename == filename)
    own = {name: one for name, one in exercises().items() if one.notebook == chapter.number}
    return Page((NOTEBOOKS / filename).read_text(encoding="utf-8"), chapter, own, NOTEBOOKS)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("filename", [path.name for path in find_notebooks([])])
def test_notebook_keeps_the_rule(filename: str, name: str) -> None:
    complaints = list(RULES[name](page_of(filename)))
    assert not complaints, "\n".join([f"{filename} breaks '{name}':", *complaints])


def test_the_course_map_and_the_folder_agree() -> None:
    assert [path.name for path in find_notebooks([])] == [chapter.filename for chapter in READY]
    assert sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")) == [chapter.filename for chapter in READY]


def test_every_exercise_belongs_to_a_notebook_that_exists() -> None:
    assert {one.notebook for one in exercises().values()} <= {chapter.number for chapter in READY}


def test_at_most_one_code_cell_in_ten_is_not_compared() -> None:
    pages = [page_of(path.name) for path in find_notebooks([])]
    cells = sum(len(page.of_type("code")) for page in pages)
    ignored = sum(len(page.tagged(IGNORED)) for page in pages)
    assert 10 * ignored <= cells, f"{ignored} of {cells} code cells are not compared"


# The rules, tested ----------------------------------------------------------------------------------------------------
def cell(notebook: NotebookNode, start: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.source.startswith(start))


def edit(start: str, old: str, new: str) -> Callable[[NotebookNode], None]:
    """Replace text in the cell that begins with `start`."""

    def change(notebook: NotebookNode) -> None:
        target = cell(notebook, start)
        assert old in target.source
        target.source = target.source.replace(old, new)

    return change


def meta(start: str, **values: object) -> Callable[[NotebookNode], None]:
    """Set metadata of the cell that begins with `start`; None deletes."""

    def change(notebook: NotebookNode) -> None:
        metadata = cell(notebook, start).metadata
        for key, value in values.items():
            metadata[key] = value
            if value is None:
                del metadata[key]

    return change


def output(start: str, *outputs: NotebookNode) -> Callable[[NotebookNode], None]:
    """Store other outputs in the cell that begins with `start`."""

    def change(notebook: NotebookNode) -> None:
        cell(notebook, start).outputs = list(outputs)

    return change


def text(words: str) -> NotebookNode:
    return new_output("stream", text=words)


def picture(data: dict[str, str], alt: str = ALT) -> NotebookNode:
    return new_output("display_data", data, metadata={"image/png": {"alt": alt}})


def add(*cells: NotebookNode) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.extend(cells)


def drop(start: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.remove(cell(notebook, start))


def notes(**values: object) -> dict[str, object]:
    return {"minutes": 5, "text": "Ask how many bytes they expect, and wait for three answers.", **values}


BREACHES: list[tuple[str, Callable[[NotebookNode], None], str]] = [
    ("no_empty_or_raw_cells", add(new_code_cell("  ")), "Cell 17 is empty or raw"),
    ("no_empty_or_raw_cells", add(new_raw_cell("text")), "Cell 17 is empty or raw"),
    ("nothing_on_stderr", output("ledger", new_output("stream", text="careful", name="stderr")), "Cell 15 .* stderr"),
    ("errors_only_where_taught", meta("raise", tags=None), "stores 1 errors"),
    ("errors_only_where_taught", output("raise"), "stores 0 errors"),
    ("pictures_are_png_and_described", output("show", picture({"image/svg+xml": "<svg/>"})), "pictures are PNG"),
    ("pictures_are_png_and_described", output("show", picture({"image/png": PNG}, alt="a line")), "'a line': say what"),
    ("pictures_are_png_and_described", output("show", picture({"image/png": PNG, "text/plain": "a"})), "not its alt"),
    ("same_on_every_machine", output("ledger", text("<f at 0x7f3a2b1c>")), "at 0x7f3a2b1c"),
    ("same_on_every_machine", output("ledger", text(f"wrote {MACHINE}ada/x")), MACHINE),
    ("same_on_every_machine", edit("ledger", "ledger()", f"open('{MACHINE}ada/x')"), MACHINE),
    ("same_on_every_machine", output("time_it", text(f"{MACHINE}ada/x")), MACHINE),
    ("same_on_every_machine", output("ledger", text("torch 2.13.0")), "2.13.0"),
    ("same_on_every_machine", output("ledger", text("tensor(1, device='cuda:0')")), "device='cuda"),
    ("same_on_every_machine", output("ledger", text("10 %\r20 %")), "not be compared"),
    ("known_tags_and_no_skipping", meta("ledger", tags=["nbval-skip"]), "unknown tag"),
    ("known_tags_and_no_skipping", meta("## A", tags=["exercise"]), "no code cell"),
    ("known_tags_and_no_skipping", edit("ledger", "ledger()", "# NBVAL_IGNORE_OUTPUT\nledger()"), "by a comment"),
    ("measured_output_is_rare_and_pinned", edit("assert", "assert", "print(1)  # assert"), "has to assert"),
    ("measured_output_is_rare_and_pinned", edit("import", "torch", "numpy"), "an earlier version"),
    ("measured_output_is_rare_and_pinned", meta("ledger", tags=[IGNORED]), "has to assert"),
    ("every_cell_has_a_slide_type", meta("ledger", slideshow=None), "slide type None"),
    ("every_cell_has_a_slide_type", meta("ledger", slideshow={"slide_type": "slides"}), "'slides'"),
    ("every_cell_has_a_slide_type", meta("# 03", slideshow={"slide_type": "-"}), "does not open"),
    ("speaker_notes_where_a_slide_opens", meta("## A", speaker_notes=None), "Cell 3: speaker notes belong"),
    ("speaker_notes_where_a_slide_opens", meta("ledger", speaker_notes=notes()), "Cell 15: speaker notes belong"),
    ("speaker_notes_where_a_slide_opens", meta("## A", speaker_notes=notes(minutes="5")), "a number of minutes"),
    ("speaker_notes_where_a_slide_opens", meta("## A", speaker_notes=notes(seconds=5)), "a number of minutes"),
    ("speaker_notes_where_a_slide_opens", meta("## A", speaker_notes=notes(minutes=30)), "30 minutes"),
    ("speaker_notes_where_a_slide_opens", meta("## A", speaker_notes=notes(text="Go.")), "'Go.'"),
    ("speaker_minutes_add_up", meta("## A", speaker_notes=notes(minutes=4)), "take 8 minutes, .* says 9"),
    ("code_fits_a_slide", edit("ledger", "ledger()", "x = 1\n" * 16), "16 lines"),
    ("code_fits_a_slide", edit("ledger", "ledger()", "x = " + "1" * 100), "104 characters"),
    ("no_wall_of_text", edit("## A", "cost?", "word " * 100), "outside of tables"),
    ("title_cell", edit("# 03", "# 03 · Strides", "# 3 Strides"), "has to begin"),
    ("title_cell", edit("# 03", "- copy", "copy"), "three things"),
    ("title_cell", edit("# 03", "20 min", "soon"), "the 20 minutes"),
    ("title_cell", edit("# 03", "needs", "after"), "needs"),
    ("one_setup_cell", edit("import", "setup()", "go()"), r"cells \[\]"),
    ("one_setup_cell", edit("ledger", "ledger()", "setup()"), r"cells \[2, 15\]"),
    ("one_setup_cell", output("import", text("ready")), "displays nothing"),
    ("banned_words", edit("## A", "What", "Simply put, what"), "'Simply'"),
    ("banned_words", edit("ledger", "ledger()", "ledger()  # just so"), "'just'"),
    ("banned_words", meta("## A", speaker_notes=notes(text="Obviously nobody will ask this question.")), "'Obviously'"),
    ("links_resolve", edit("## A", "map.md", "gone.md"), "gone.md, which does not exist"),
    ("links_resolve", edit("## A", "[the course map]", "![]"), "picture without a text"),
    ("exercises_are_introduced", edit("### ✏️ Exercise 3.2", "3.2", "3.3"), "Exercise 3.2 · Title"),
    ("exercises_are_introduced", edit("### ✏️ Exercise 3.2", " · 3 min", ""), "Exercise 3.2 · Title"),
    ("exercises_are_introduced", edit("### ✏️ Exercise 3.2", "●○○", "easy"), "Exercise 3.2 · Title"),
    ("exercises_are_introduced", edit("### ✏️ Exercise 3.2", "Which position is read?", ""), "no question"),
    ("exercises_are_introduced", output("def second", text("✓ second — correct")), "'not started'"),
    ("exercises_are_the_registrys", edit("def second", '"""Answer."""', '"""Reply."""'), "not the stub of second"),
    ("exercises_are_the_registrys", edit("def second", "second", "other"), "'first', 'other', 'third'"),
    ("exercises_are_the_registrys", drop("def second"), r"\['first', 'third'\]; those"),
    ("exercises_are_the_registrys", edit("ledger", "ledger()", "check(first)"), "not tagged exercise"),
    ("three_to_six_exercises", drop("def second"), "has 2 exercises"),
    ("ends_with_what_to_remember", edit("| Rem", "Remember", "Recall"), "has 0 tables"),
    ("ends_with_what_to_remember", drop("ledger"), "compute the ledger"),
    ("ends_with_what_to_remember", edit("**Led", "**Ledger.**", "Ledger:"), "read the ledger"),
    ("ends_with_what_to_remember", edit("**Led", "04", "the next"), "next notebook, 04"),
]


def unsorted(notebook: NotebookNode) -> None:
    notebook.metadata["language_info"]["version"] = "3.11.7"


def never_run(notebook: NotebookNode) -> None:
    cell(notebook, "ledger").update(execution_count=None, outputs=[])


def with_widget_state(notebook: NotebookNode) -> None:
    notebook.metadata["widgets"] = {}


def with_widget_view(notebook: NotebookNode) -> None:
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "slider"}
    cell(notebook, "ledger").outputs = [new_output("display_data", data)]


UNTIDY = [  # what canonical form itself would repair
    ("canonical_form", unsorted, "run `make notebooks`"),
    ("executed_in_order", never_run, "Cell 15 has execution count None, expected 9"),
    ("no_widgets", with_widget_state, "the state of widgets"),
    ("no_widgets", with_widget_view, "the view of a widget"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "map.md").touch()
    return tmp_path


def test_the_good_notebook_keeps_every_rule(folder: Path) -> None:
    page = good_page(folder)
    assert {name: list(check(page)) for name, check in RULES.items()} == {name: [] for name in RULES}


@pytest.mark.parametrize(("name", "change", "said"), BREACHES + UNTIDY)
def test_a_breach_is_noticed(name: str, change: Callable, said: str, folder: Path) -> None:
    complaints = list(RULES[name](good_page(folder, change, tidy=(name, change, said) in BREACHES)))
    assert any(re.search(said, complaint) for complaint in complaints), complaints


def test_too_many_measured_cells_are_noticed(folder: Path) -> None:
    cells = [new_code_cell("f()", metadata={"tags": [IGNORED]}) for _ in range(4)]
    complaints = list(RULES["measured_output_is_rare_and_pinned"](good_page(folder, add(*cells))))
    assert any("5 of 13 code cells" in complaint for complaint in complaints), complaints


def test_every_rule_is_broken_once() -> None:
    assert {breach[0] for breach in BREACHES + UNTIDY} == set(RULES)


def test_prose_may_say_what_looks_like_a_breach(folder: Path) -> None:
    """A bit pattern is no address, "adjust" is not banned, a decimal number is no version."""
    fine = add(new_markdown_cell("Adjust 0x4696CE2E by 2.13, then 19303.0890 and/or [x](https://pytorch.org)."))
    page = good_page(folder, fine)
    for name in ("same_on_every_machine", "banned_words", "links_resolve"):
        assert not list(RULES[name](page))
