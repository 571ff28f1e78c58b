"""`make present`: the slideshow begins by itself, goes on with the keys, and its cells run."""
import pytest
from conftest import Lab, serve
from lab_page import SECONDS, LabPage

from course_lib.publishing.notebooks import ROOT, find_notebooks

SCREENS = ROOT / "build" / "screens"
NOTEBOOK = find_notebooks(["03"])[0].name
BEGUN = """() => document.body.dataset.jpDeckMode === 'presenting' && document.querySelector('.jp-deck-mod-onscreen')
  && window.jupyterapp.shell.currentWidget.content.activeCell"""
# The kinds of the cells that the hall sees, the number of the marked one, and how large the letters are.
SEEN = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const seen = notebook.widgets.filter(cell => cell.node.classList.contains('jp-deck-mod-visible'));
  return {marked: notebook.activeCellIndex, kinds: seen.map(cell => cell.model.type),
          letters: parseFloat(getComputedStyle(seen[0].node.querySelector('p')).fontSize)};
}"""
MARKED = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
SOURCE = "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.getSource()"
MOVED = "before => window.jupyterapp.shell.currentWidget.content.activeCellIndex > before"
RAN = """place => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[place];
  return cell.model.executionCount !== null && cell.outputArea.model.length > 0;
}"""
SAID = """place => window.jupyterapp.shell.currentWidget.content.widgets[place].outputArea.model.toJSON()
  .map(output => output.output_type + JSON.stringify(output.data || output.text || output.ename))"""


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory):
    with serve(tmp_path_factory.mktemp("hall"), "build/present", "present", NOTEBOOK[:2]) as served:
        yield served


def test_the_live_slideshow_goes_on_and_runs_its_cells(browser, hall: Lab) -> None:
    show = LabPage(browser, hall, NOTEBOOK)
    show.page.wait_for_function(BEGUN, timeout=300 * SECONDS)
    first = show.page.evaluate(SEEN)
    assert (first["marked"], first["kinds"]) == (0, ["markdown"])
    assert first["letters"] >= 18, "a hall needs larger letters than a desk"
    while "code" not in (seen := show.page.evaluate(SEEN))["kinds"]:
        forward(show, seen["marked"])
    while show.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCell.model.type") != "code":
        forward(show, show.page.evaluate(SEEN)["marked"])
    place = show.page.evaluate(SEEN)["marked"]
    assert place > 1, "the imports are skipped"
    show.page.keyboard.press("Shift+Enter")
    show.page.wait_for_function(RAN, arg=place, timeout=300 * SECONDS)
    (said,) = show.page.evaluate(SAID, place)
    assert said.startswith("execute_result") and "no guess yet" in said
    SCREENS.mkdir(parents=True, exist_ok=True)
    show.page.screenshot(path=SCREENS / "present.png")
    assert show.complaints == []
    show.close()


def test_an_explorer_lives_in_the_slideshow(browser, hall: Lab) -> None:
    show = LabPage(browser, hall, NOTEBOOK)
    show.page.wait_for_function(BEGUN, timeout=300 * SECONDS)
    while "explorer = " not in show.page.evaluate(SOURCE):
        forward(show, show.page.evaluate(MARKED))
    show.page.keyboard.press("Shift+Enter")
    box = show.page.locator(".explorer")
    box.wait_for(timeout=300 * SECONDS)
    box.get_by_role("button", name="swap last two").click()
    show.page.wait_for_function("() => document.querySelector('.explorer').dataset.turn === '1'", timeout=300 * SECONDS)
    assert box.locator("input").first.input_value() == "4, 3"
    show.page.screenshot(path=SCREENS / "present_explorer.png")
    assert show.page.locator("[data-mime-type*=error], [data-mime-type*=stderr]").count() == 0
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth + 1")
    assert show.complaints == []
    show.close()


def forward(show: LabPage, marked: int) -> None:
    show.page.keyboard.press("Space")
    show.page.wait_for_function(MOVED, arg=marked, timeout=300 * SECONDS)
