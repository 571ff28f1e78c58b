"""Decks: what stands on which slide, who sees the notes, and what a deck cannot be made of."""
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from notebook_samples import ALT, NOTES
from publish_samples import lecture, parsed, save, slide

from course_lib.publishing import bundle
from course_lib.publishing import solutions as solutions_module
from course_lib.publishing.bundle import Lesson
from course_lib.publishing.notebooks import NotebookError, find_notebooks, read_notebook
from course_lib.publishing.slides import deck, main


def made(notebook=None, solved: bool = False):
    return deck(Lesson(Path("07_formulas.ipynb"), notebook or lecture(), solved), frozenset({"03_strides"}))


def built(path: Path, into: Path, *options: str) -> BeautifulSoup:
    assert main([str(path), "--into", str(into), *options]) == 0
    name = "slides_solved" if "--solved" in options else "slides"
    return BeautifulSoup((into / name / f"{path.stem}.html").read_text(encoding="utf-8"), "html.parser")


# ---- what stands where


def test_slide_types_make_stacks_slides_and_fragments() -> None:
    one = made()
    assert [[(slide.first, slide.kind) for slide in stack] for stack in one.stacks] == [
        [(0, "slide")],
        [(2, "slide"), (8, "subslide")],
    ]
    html = BeautifulSoup(one.slides[1].html, "html.parser")
    fragments = html.select(".fragment")
    assert [bool(fragment.img) for fragment in fragments] == [True, False]
    assert "Read it." in fragments[0].text and "ValueError: no <b>" in fragments[1].text
    assert not html.select(".fragment .fragment")
    assert "import torch" not in "".join(slide.html for slide in one.slides)


def test_the_minutes_add_up_and_the_notes_are_the_speakers_alone() -> None:
    one = made()
    assert [(slide.begins, slide.minutes) for slide in one.slides] == [(0, 1), (1, 2), (3, 1)]
    assert one.minutes == 4
    assert NOTES in one.slides[1].notes and "Ask them again." in one.slides[1].notes
    assert not [slide for slide in one.slides if NOTES in slide.html or "Ask them" in slide.html]


def test_a_question_is_asked_without_its_call_and_a_figure_shown_without_its_code() -> None:
    html = BeautifulSoup(made().slides[1].html, "html.parser")
    assert html.select_one(".question").text == "Your guess? Bytes"
    assert [code.text for code in html.select("pre.code")] == ["x = 1", "raise ValueError"]
    assert html.img["alt"] == ALT


def test_links_lead_to_decks_that_are_there() -> None:
    links = {link.text: link.get("href") for link in BeautifulSoup(made().slides[1].html, "html.parser").select("a")}
    assert links == {"04": None, "03": "03_strides.html#a"}
    assert BeautifulSoup(made().slides[2].html, "html.parser").a["href"] == "03_strides.html"


def test_solved_decks_show_each_exercise_and_its_solution() -> None:
    one = made(solved=True)
    assert [slide.first for slide in one.slides] == [0, 2, 8, 10, 11]
    assert "Exercise 7.1" in one.slides[3].html
    assert "def</span>" in one.slides[4].html and "Why it works" in one.slides[4].html
    assert one.minutes == made().minutes


# ---- what cannot be made


@pytest.mark.parametrize(
    ("cell", "metadata", "said"),
    [
        (3, {}, "cell 4 ('x = 1') has no slide type; there are slide, subslide"),
        (3, {"slideshow": {}}, "has no slide type"),
        (3, {"slideshow": "slide"}, "has no slide type"),
        (3, {"slideshow": {"slide_type": "slides"}}, "has the slide type 'slides', which is unknown"),
        (0, {"slideshow": {"slide_type": "-"}}, "cell 1 ('# 07 · Formulas') stands before the first slide"),
        (2, {"slideshow": {"slide_type": "slide"}}, "opens a slide without speaker_notes"),
        (2, {"slideshow": {"slide_type": "slide"}, "speaker_notes": {"minutes": "2", "text": "x"}}, "opens a slide"),
        (2, {"slideshow": {"slide_type": "slide"}, "speaker_notes": {"minutes": 2, "text": " "}}, "opens a slide"),
        (2, {"slideshow": {"slide_type": "slide"}, "speaker_notes": {"minutes": True, "text": "x"}}, "opens a slide"),
    ],
)
def test_a_cell_that_fits_no_slide_is_named(cell: int, metadata: dict, said: str) -> None:
    notebook = lecture()
    notebook.cells[cell].metadata = metadata
    with pytest.raises(NotebookError, match=re.escape(said)) as caught:
        made(notebook)
    assert str(caught.value).startswith(f"07_formulas.ipynb, cell {cell + 1} (")


def test_a_notebook_without_slides_is_named() -> None:
    notebook = lecture()
    for cell in notebook.cells:
        slide(cell, "skip")
    with pytest.raises(NotebookError, match=r"07_formulas.ipynb has no slide"):
        made(notebook)


def test_notes_are_looked_through_as_well() -> None:
    notebook = lecture()
    notebook.cells[2].metadata.speaker_notes.text = r"Say $\nonsense$."
    with pytest.raises(NotebookError, match=r"cell 3 .*in its notes: the formula \\nonsense cannot be converted"):
        made(notebook)


# ---- the folder


def test_the_course_becomes_decks_with_the_minutes_of_the_map(tmp_path: Path) -> None:
    assert main(["--into", str(tmp_path)]) == 0
    index = BeautifulSoup((tmp_path / "slides" / "index.html").read_text(encoding="utf-8"), "html.parser")
    listed = {row.a["href"]: row.select("td.number")[0].text for row in index.select("table.course tbody tr")}
    lessons = [Lesson(path, read_notebook(path)) for path in find_notebooks([])]
    assert listed == {f"{one.stem}.html": str(one.chapter.lecture_minutes) for one in lessons}
    for name in listed:
        page = parsed(tmp_path / "slides" / name)
        seconds = [int(leaf["data-timing"]) for leaf in page.select("section.leaf")]
        assert sum(seconds) == 60 * float(listed[name])
        for link in page.select("link[href^=_static], script[src]"):
            assert (tmp_path / "slides" / (link.get("href") or link.get("src"))).is_file()


def test_solved_goes_into_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solutions_module, "solved", lambda path: (lecture(), ["answer"]))
    page = built(save(tmp_path), tmp_path, "--solved")
    assert "solved" in page.title.text
    assert not (tmp_path / "slides").exists()


def test_trouble_leaves_the_last_decks_and_names_every_notebook(tmp_path: Path) -> None:
    good, bad, worse = save(tmp_path), tmp_path / "08_bad.ipynb", tmp_path / "09_worse.ipynb"
    built(good, tmp_path)
    notebook = lecture()
    slide(notebook.cells[3], "silde")
    save(tmp_path, notebook, bad.name)
    save(tmp_path, notebook, worse.name)
    with pytest.raises(NotebookError) as caught:
        main([*map(str, (good, bad, worse)), "--into", str(tmp_path)])
    assert [line[:20] for line in str(caught.value).splitlines()] == ["08_bad.ipynb, cell 4", "09_worse.ipynb, cell"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [good.name, bad.name, worse.name, "slides"]
    assert (tmp_path / "slides" / "07_formulas.html").is_file()


def test_what_is_gone_from_the_course_is_gone_from_the_decks(tmp_path: Path) -> None:
    built(save(tmp_path), tmp_path)
    built(save(tmp_path, name="08_other.ipynb"), tmp_path)
    assert sorted(path.name for path in (tmp_path / "slides").glob("0*")) == ["08_other.html"]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda stick: None, "There is no folder {stick}: make it first, or name one that is there."),
        (lambda stick: stick.touch(), "There is no folder {stick}: make it first, or name one that is there."),
        (lambda stick: (stick / "slides").mkdir(parents=True) or (stick / "slides" / "mine.html").touch(),
         "{stick}/slides holds something else, which would be lost: move it, or choose another folder."),
        (lambda stick: stick.mkdir() or (stick / "slides").touch(), "{stick}/slides holds something else"),
    ],
    ids=["missing", "a file", "another's", "another's file"],
)  # fmt: skip
def test_an_output_folder_that_will_not_do_gets_one_sentence(prepare, said: str, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    prepare(stick)
    with pytest.raises(NotebookError) as caught:
        main([str(save(tmp_path)), "--into", str(stick)])
    assert str(caught.value).replace("\\", "/").startswith(said.format(stick=stick).replace("\\", "/"))
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written_gets_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(bundle.tempfile, "mkdtemp", refuse)  # rights do not stop root
    with pytest.raises(NotebookError, match=r"slides cannot be written \(Permission denied\): make room"):
        main([str(save(tmp_path)), "--into", str(tmp_path)])


def test_a_full_disk_leaves_the_last_decks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path)
    built(path, tmp_path)
    before = (tmp_path / "slides" / "07_formulas.html").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle.shutil, "copyfile", full)
    with pytest.raises(NotebookError, match="No space left on device"):
        main([str(path), "--into", str(tmp_path)])
    assert (tmp_path / "slides" / "07_formulas.html").read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name, "slides"]


@pytest.mark.parametrize("target", ["slides", "html"])
def test_make_hands_on_what_was_asked(target: str) -> None:
    from test_make import make

    recipe = make("-n", target, "SOLVED=1", "INTO=/a stick", "NB=03").stdout
    assert f'-m course_lib.publishing.{target} --solved --into "/a stick" 03' in recipe
    assert make("-n", target, "SOLVED=0").stdout.split()[-2:] == ["-m", f"course_lib.publishing.{target}"]
