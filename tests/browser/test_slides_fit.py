"""No slide is longer or wider than a projector of 1280×720 shows: from a cell that opens a slide to the next one."""
from pathlib import Path

import pytest
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.publishing.notebooks import find_notebooks, read_notebook

WIDTH, HEIGHT = 1280, 720
SIZES = """() => [...document.querySelectorAll('.jp-Cell')].map(cell => {
  const parts = [cell, ...cell.querySelectorAll('div, pre, img, table')];
  const wide = parts.some(part => part.scrollWidth > part.clientWidth + 1);
  return [cell.getBoundingClientRect().height, wide];
})"""


@pytest.fixture(scope="module")
def page(browser):
    opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    opened.route("http*://**", lambda route: route.abort())  # the page asks for MathJax; slides have to do without
    yield opened
    opened.close()


def slides(cells: list[NotebookNode], sizes: list[list]) -> list[tuple[int, float, bool]]:
    """For each slide the number of its first cell, its height in pixels, and whether something in it is too wide."""
    found: list[tuple[int, float, bool]] = []
    for number, (cell, (height, wide)) in enumerate(zip(cells, sizes, strict=True), 1):
        kind = cell.metadata.slideshow.slide_type
        if kind in ("slide", "subslide"):
            found.append((number, height, wide))
        elif kind not in ("skip", "notes"):
            first, so_far, too_wide = found[-1]
            found[-1] = (first, so_far + height, too_wide or wide)
    return found


def measured(notebook: NotebookNode, page) -> list[tuple[int, float, bool]]:
    page.set_content(HTMLExporter().from_notebook_node(notebook)[0])
    return slides(notebook.cells, page.evaluate(SIZES))


@pytest.mark.parametrize("path", find_notebooks([]), ids=lambda path: path.stem)
def test_every_slide_fits(path: Path, page) -> None:
    found = measured(read_notebook(path), page)
    assert len(found) > 1
    assert not [f"the slide from cell {first}: {height:.0f} px high" for first, height, _ in found if height > HEIGHT]
    assert not [f"the slide from cell {first} is too wide" for first, _, wide in found if wide]


def test_a_slide_that_does_not_fit_is_noticed(page) -> None:
    many, long = "x = 1\n" * 30, "y = " + "1" * 300
    sources = [("1", "slide"), (many, "-"), (many, "skip"), ("1", "subslide"), (long, "-")]
    cells = [new_code_cell(source, metadata={"slideshow": {"slide_type": kind}}) for source, kind in sources]
    (_, high, wide), (_, low, too_wide) = measured(new_notebook(cells=cells), page)
    assert high + low < HEIGHT
    assert (wide, too_wide) == (False, True)
    cells[1].source *= 2
    assert measured(new_notebook(cells=cells), page)[0][1] > HEIGHT
