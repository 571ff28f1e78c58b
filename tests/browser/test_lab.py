"""A newcomer's first hour, in a real browser: every notebook opens, runs, and says nothing that it should not say."""
import os
from pathlib import Path

import nbformat
import pytest
from conftest import Lab
from lab_page import LabPage
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.exercises import exercises
from course_lib.exercises.engine.judge import judge
from course_lib.publishing.canonical import canonical
from course_lib.publishing.notebooks import NOTEBOOKS, ROOT, find_notebooks, read_notebook

SCREENS = ROOT / "build" / "screens"
NAMES = [path.name for path in find_notebooks([])]
EXERCISES = [one for one in exercises().values() if one.notebook == NAMES[-1][:2]]


@pytest.fixture(scope="module", params=NAMES)
def ran(request, browser, lab: Lab):
    """One notebook after restart-and-run-all, and its code cells."""
    page = LabPage(browser, lab, request.param)
    before = page.notices()
    yield request.param, page, page.run_all(), before
    page.close()


def test_every_cell_runs_without_an_error(ran) -> None:
    name, _, cells, _ = ran
    stored = [cell for cell in read_notebook(NOTEBOOKS / name).cells if cell.cell_type == "code"]
    assert [cell["count"] for cell in cells] == [*range(1, len(stored) + 1)]
    taught = [int("raises-exception" in cell["tags"]) for cell in cells]
    assert [cell["errors"] for cell in cells] == taught


def test_nothing_pops_up_and_the_browser_does_not_complain(ran) -> None:
    _, page, _, before = ran
    assert before == []
    assert page.notices() == []
    assert page.complaints == []


def test_it_can_be_looked_at(ran) -> None:
    """One picture of each notebook in build/screens/; SCREENS=all takes every screenful, in two widths."""
    name, page, _, _ = ran
    SCREENS.mkdir(parents=True, exist_ok=True)
    stem = Path(name).stem
    if os.environ.get("SCREENS") == "all":
        taken = page.pictures_of_all(SCREENS, f"{stem}_1280", 1280, 3 * 720)
        page.do("application:toggle-left-area")
        taken += page.pictures_of_all(SCREENS, f"{stem}_1920", 1920, 3 * 1080)
    else:
        taken = [SCREENS / f"{stem}.png"]
        page.page.screenshot(path=taken[0])
    assert all(path.stat().st_size > 10_000 for path in taken)


def test_an_answer_gets_its_feedback(browser, lab: Lab) -> None:
    """A wrong answer its misconception's sentence, then a right one its praise; both can be seen."""
    one = EXERCISES[-1]
    page = LabPage(browser, lab, NAMES[-1])
    page.run_all()
    belief, (_, sentence) = next(iter(one.misconceptions.items()))
    wrong = f"exercises()[{one.name!r}].misconceptions[{belief!r}][0]"
    page.answer(f"check({one.name})", f"from course_lib import exercises\n{one.name} = {wrong}\ncheck({one.name})")
    assert f"✗ {one.name}" in page.output_of_active_cell().inner_text()
    assert sentence in page.output_of_active_cell().inner_text()
    page.page.screenshot(path=SCREENS / "feedback_wrong.png")
    page.answer(f"check({one.name})", f"{one.solution}\n\ncheck({one.name})")
    assert f"✓ {one.name} — correct" in page.output_of_active_cell().inner_text()
    page.close()


def test_feedback_and_pictures_are_seen_in_a_notebook_that_is_not_trusted(browser, lab: Lab) -> None:
    one = EXERCISES[0]
    wrong, sentence = next(iter(one.misconceptions.values()))
    result = judge(one, wrong)
    said = {"text/plain": repr(result), "text/html": result._repr_html_()}
    picture = a_stored_picture()
    notebook = new_notebook(cells=[new_markdown_cell("# Stored"), new_code_cell("wrong"), new_code_cell("picture")])
    notebook.cells[1].outputs = [new_output("execute_result", said, execution_count=1)]
    notebook.cells[2].outputs = [picture]
    nbformat.write(canonical(notebook), lab.folder / "stored.ipynb")
    page = LabPage(browser, lab, "stored.ipynb")
    page.go_to("wrong")
    assert not page.trusts_active_cell()
    panel = page.output_of_active_cell().locator("div", has_text=sentence).last
    assert panel.is_visible()
    assert panel.evaluate("panel => getComputedStyle(panel).borderLeftWidth") == "4px"
    page.go_to("picture")
    image = page.output_of_active_cell().locator("img")
    assert image.is_visible()
    assert image.evaluate("image => image.naturalWidth") > 100
    page.page.screenshot(path=SCREENS / "not_trusted.png")
    page.close()


def a_stored_picture() -> NotebookNode:
    cells = (cell for path in find_notebooks([]) for cell in read_notebook(path).cells if cell.cell_type == "code")
    return next(output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {}))
