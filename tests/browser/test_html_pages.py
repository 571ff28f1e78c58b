"""The course as pages: on a phone, on a desk, in the dark, on paper, without a network."""
from pathlib import Path

import pytest
from publish_samples import save
from published import Offline, offline

from course_lib.publishing import html
from course_lib.publishing.notebooks import ROOT, find_notebooks

SCREENS = ROOT / "build" / "screens"
SAMPLE = "07_formulas.html"
WIDER = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
GROUND = "() => getComputedStyle(document.body).backgroundColor"
# What a reader cannot reach: parts that are cut off and can be scrolled neither by hand nor with the keys.
CUT = """() => [...document.querySelectorAll('main *')].filter(part => part.scrollWidth > part.clientWidth + 1
  && ['auto', 'scroll', 'hidden'].includes(getComputedStyle(part).overflowX) && part.tabIndex !== 0).length"""
DRAWN = """() => [...document.querySelectorAll('math, img')].filter(part => {
  const {width, height} = part.getBoundingClientRect();
  return width > 2 && height > 5 && (part.tagName !== 'IMG' || (part.naturalWidth > 0 && part.alt));
}).length"""


@pytest.fixture(scope="module")
def window(browser, tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("pages, für alle")
    assert html.main([*map(str, find_notebooks([])), str(save(made)), "--into", str(made)]) == 0
    SCREENS.mkdir(parents=True, exist_ok=True)
    with offline(browser, made / "html", 390, 844) as opened:
        yield opened


def pages(window: Offline) -> list[str]:
    return sorted(path.name for path in window.folder.glob("*.html"))


def test_nothing_is_missing_or_cut_off_on_a_phone(window: Offline) -> None:
    wrong = []
    for name in pages(window):
        window.open(name)
        drawn, there = window.page.evaluate(DRAWN), window.page.locator("math, img").count()
        wrong += [name] * (window.page.evaluate(WIDER) or window.page.evaluate(CUT) > 0 or drawn != there)
    assert wrong == []
    assert len(pages(window)) == len(find_notebooks([])) + 2
    assert window.trouble == []


def test_a_reader_walks_from_page_to_page(window: Offline) -> None:
    names = [name for name in pages(window) if name != "index.html"]
    window.open("index.html")
    window.page.locator("table.course a").first.click()
    assert window.page.url.endswith(names[0])
    window.page.locator("nav.ways a[rel=next]").click()
    assert window.page.url.endswith(names[1])
    window.page.locator("nav.contents summary").click()
    window.page.screenshot(path=SCREENS / "page_390.png")
    window.page.locator("nav.contents a").last.click()
    heading = window.page.url.partition("#")[2]
    assert window.page.evaluate("id => document.getElementById(id).getBoundingClientRect().top < innerHeight", heading)


def test_the_contents_stand_beside_the_text_where_there_is_room(window: Offline) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 900})
    window.open(SAMPLE)
    contents, text = (window.page.locator(one).bounding_box() for one in ("nav.contents details > ol", "main"))
    assert contents["x"] + contents["width"] <= text["x"]
    assert contents["y"] < 300
    window.page.set_viewport_size({"width": 390, "height": 844})
    window.open(SAMPLE)
    assert not window.page.locator("nav.contents details > ol").is_visible()


def test_it_is_dark_at_night_and_white_on_paper(window: Offline) -> None:
    window.open(SAMPLE)
    window.page.emulate_media(color_scheme="dark")
    assert window.page.evaluate(GROUND) == "rgb(20, 24, 28)"
    window.page.screenshot(path=SCREENS / "page_390_dark.png")
    assert window.violations() == []
    window.page.emulate_media(color_scheme="dark", media="print")
    assert window.page.evaluate(GROUND) == "rgb(255, 255, 255)"
    assert not window.page.locator("nav:visible, header:visible").count()
    window.page.emulate_media(color_scheme="light", media="screen")


def test_nobody_is_kept_out(window: Offline) -> None:
    found = {}
    for name in pages(window):
        window.open(name)
        found[name] = window.violations()
    assert not {name: violations for name, violations in found.items() if violations}


def test_a_barrier_is_noticed(browser, tmp_path: Path) -> None:
    Path(tmp_path / "x.html").write_text("<p style='color: #ccc; background: #fff'>pale</p><img src='data:,'>")
    with offline(browser, tmp_path) as opened:
        opened.open("x.html")
        found = " ".join(opened.violations())
    assert "color-contrast" in found and "image-alt" in found
