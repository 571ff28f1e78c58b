"""The course map: its order, what it displays, and the notebooks and the README that have to agree with it."""
import dataclasses
import re
from pathlib import Path

import nbformat
import pytest

from course_lib import course_map
from course_lib.chapters import CHAPTERS, CourseMap

ROOT = Path(__file__).resolve().parents[1]
BY_NUMBER = {chapter.number: chapter for chapter in CHAPTERS}
READY = [chapter for chapter in CHAPTERS if chapter.ready]


def test_the_chapters_are_numbered_in_order_and_named_once():
    assert [chapter.number for chapter in CHAPTERS] == [f"{n:02d}" for n in range(15)]
    for field in ("slug", "title", "asks"):
        assert len({getattr(chapter, field) for chapter in CHAPTERS}) == len(CHAPTERS)
    assert all(re.fullmatch(r"[a-z][a-z_]*", chapter.slug) for chapter in CHAPTERS)


def test_a_chapter_builds_only_on_earlier_ones_and_names_only_the_direct_ones():
    def foundations(number: str) -> set[str]:
        needs = BY_NUMBER[number].needs
        return set(needs).union(*(foundations(need) for need in needs))

    for chapter in CHAPTERS:
        assert all(need < chapter.number for need in chapter.needs)
        assert (chapter.needs == ()) == (chapter.number == "00")
        assert chapter.needs == tuple(sorted(chapter.needs))
        indirect = set().union(*(foundations(need) for need in chapter.needs))
        assert not indirect & set(chapter.needs), chapter.number


def test_chapters_with_minutes_are_the_notebooks_that_exist():
    assert [chapter.filename for chapter in READY] == sorted(p.name for p in (ROOT / "notebooks").glob("*.ipynb"))
    assert all((chapter.study_minutes is None) == (chapter.lecture_minutes is None) for chapter in CHAPTERS)


@pytest.mark.parametrize("chapter", READY, ids=lambda chapter: chapter.number)
def test_minutes_are_those_of_the_notebook(chapter):
    cells = nbformat.read(ROOT / "notebooks" / chapter.filename, as_version=4).cells
    assert re.findall(r"\b(\d+) min", cells[0].source) == [str(chapter.study_minutes)]
    assert sum(cell.metadata.get("speaker_notes", {}).get("minutes", 0) for cell in cells) == chapter.lecture_minutes


def test_the_map_is_text_and_html_and_links_only_to_what_is_there():
    text, html = repr(course_map()), course_map()._repr_html_()
    assert len(text.splitlines()) == 1 + len(CHAPTERS)
    for chapter, line in zip(CHAPTERS, text.splitlines()[1:], strict=True):
        assert line.startswith(f"{chapter.number}  {chapter.title}")
        assert (f"{chapter.study_minutes} min" in line) == chapter.ready
        assert ("in preparation" in line) != chapter.ready
        assert line.endswith(", ".join(chapter.needs))
        assert chapter.asks in html
    assert re.findall(r"href='([^']+)'", html) == [chapter.filename for chapter in READY]


def test_a_title_cannot_break_the_html():
    odd = dataclasses.replace(CHAPTERS[0], title="<b>&", asks="<script>")
    assert "<b>" not in CourseMap((odd,))._repr_html_()
    assert "<script>" not in CourseMap((odd,))._repr_html_()


def test_the_drawn_map_shows_every_chapter_and_tracks_that_do_not_collide():
    from course_lib.figures import draw_course
    from course_lib.figures.course import _LANE

    words = {text.get_text() for text in draw_course().axes[0].texts}
    assert words == {word for chapter in CHAPTERS for word in (chapter.number, chapter.title, chapter.asks)}
    tracks: dict[int, list[tuple[int, int]]] = {}
    for chapter in CHAPTERS:
        for need in chapter.needs:
            lane = max(_LANE.get(chapter.number, 0), _LANE.get(need, 0))
            tracks.setdefault(lane, []).append((int(need), int(chapter.number)))
            assert all(
                _LANE.get(passed.number, 0) != lane or passed.number in (need, chapter.number)
                for passed in CHAPTERS[int(need) : int(chapter.number)]
            ), f"the track from {need} to {chapter.number} runs through another station"
    for lane, spans in tracks.items():
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert end <= start, f"two tracks lie on each other in lane {lane}"
