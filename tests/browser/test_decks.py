"""The decks as an instructor opens them from a stick, in a hall without a network."""
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell
from publish_samples import NAME, lecture, save, slide
from published import PATIENCE, Offline, offline

from course_lib.publishing import slides
from course_lib.publishing.notebooks import ROOT, find_notebooks, read_notebook

SMALLEST = 14  # pixels of 720: what a notebook's text has in JupyterLab
FORMULA = re.compile(r"\$\$.+?\$\$|(?<![$\\])\$[^$]+\$", re.DOTALL)
SCREENS = ROOT / "build" / "screens"
SAMPLE, CROWDED = "07_formulas", "08_crowded"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All decks of the course, one with formulas, and one with a slide that nothing makes fit."""
    made = tmp_path_factory.mktemp("a stick, für alle")
    crowded = lecture()
    crowded.cells[3] = slide(new_code_cell("x = 1\n" * 80), "-")
    samples = [save(made), save(made, crowded, f"{CROWDED}.ipynb")]
    assert slides.main([*map(str, find_notebooks([])), *map(str, samples), "--into", str(made)]) == 0
    return made / "slides"


@pytest.fixture(scope="module")
def window(browser, folder: Path):
    with offline(browser, folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def walked(window: Offline) -> dict[str, list[dict]]:
    """Every slide of every deck."""
    found = {}
    for path in sorted(window.folder.glob("[0-9]*.html")):
        window.open(path.name)
        found[path.stem] = window.walk()
    return found


@pytest.fixture(scope="module")
def course(walked: dict[str, list[dict]]) -> dict[str, list[dict]]:
    return {name: found for name, found in walked.items() if name != CROWDED}


def wrong(course: dict[str, list[dict]], is_right) -> list[str]:
    """The slides for which something does not hold."""
    every = ((name, one) for name, found in course.items() for one in found)
    return [f"{name}, slide from cell {one['cell']}" for name, one in every if not is_right(one)]


def test_every_slide_is_shown_in_full(course) -> None:
    assert len(course) == len(find_notebooks([])) + 1
    assert all(len(found) > 1 for found in course.values())
    assert not wrong(course, lambda one: one["shown"] and not one["hidden"])


def test_no_slide_overflows_and_all_can_be_read(course) -> None:
    assert not wrong(course, lambda one: one["fits"])
    assert not wrong(course, lambda one: one["letters"] >= SMALLEST)


def test_a_slide_that_overflows_is_noticed(walked) -> None:
    assert wrong({CROWDED: walked[CROWDED]}, lambda one: one["fits"]) == [f"{CROWDED}, slide from cell 3"]


def test_every_slide_has_notes_and_the_hall_does_not_see_them(course) -> None:
    note = re.compile(r"[\d.]+ min · from minute [\d.]+ to [\d.]+ of [\d.]+ \S+")
    assert not wrong(course, lambda one: note.match(one["notes"]))


def test_every_formula_and_picture_is_drawn(course, folder: Path) -> None:
    sources = {path.stem: path for path in [*find_notebooks([]), folder.parent / NAME]}
    for name, found in course.items():
        cells = [cell for cell in read_notebook(sources[name]).cells if cell.cell_type == "markdown"]
        prose = [cell.source for cell in cells if cell.metadata.slideshow.slide_type not in ("skip", "notes")]
        asked = sum(len(FORMULA.findall(re.sub(r"`[^`]*`", "", text))) for text in prose)
        assert sum(one["formulas"] for one in found) == asked, name
    assert sum(one["formulas"] for one in course[SAMPLE]) == 2
    assert not wrong(course, lambda one: all(width and alt for width, alt in one["pictures"]))


def test_nothing_is_asked_for_and_nothing_complained_about(course, window: Offline) -> None:
    window.open("index.html")
    assert window.page.locator("table.course tbody tr").count() == len(course) + 1
    assert window.trouble == []


def test_a_request_that_leaves_is_noticed(browser, tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<img src='https://example.org/x.png'><script>nonsense()</script>")
    with offline(browser, tmp_path) as opened:
        opened.open("x.html")
        assert any("asks for https://example.org" in one for one in opened.trouble)
        assert any("nonsense is not defined" in one for one in opened.trouble)


def test_the_speaker_view_shows_notes_and_minutes(window: Offline) -> None:
    window.open(f"{SAMPLE}.html")
    with window.context.expect_page() as opened:
        window.page.keyboard.press("s")
    view, notes = opened.value, opened.value.locator(".speaker-controls-notes .value")
    notes.filter(has_text="1 min · from minute 0 to 1 of 4").wait_for()
    window.page.keyboard.press("Space")
    notes.filter(has_text="2 min · from minute 1 to 3 of 4").wait_for()
    assert "Ask how many bytes they expect" in notes.inner_text()
    assert "Ask them again." in notes.inner_text()
    view.locator(".pacing-title").wait_for()
    for frame in view.frames[1:]:
        frame.wait_for_function("() => window.Reveal && Reveal.isReady()", timeout=PATIENCE)
    SCREENS.mkdir(parents=True, exist_ok=True)
    view.screenshot(path=SCREENS / "speaker_view.png")
    view.close()
    assert window.trouble == []


def test_nobody_is_kept_out(course, window: Offline) -> None:
    """All slides at once, as they are printed: no barrier that axe-core calls serious or critical.

    Decks have the colours of the pages, where all are compared; what is a deck's own stands in the sample.
    """
    found = {}
    for name in course:
        window.open(f"{name}.html", "?print-pdf")
        found[name] = window.violations(colours=name == SAMPLE)
    window.open(f"{SAMPLE}.html")
    found["live"] = window.violations()
    window.open("index.html")
    found["index"] = window.violations()
    assert not {name: violations for name, violations in found.items() if violations}
