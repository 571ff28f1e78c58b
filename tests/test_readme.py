"""What the README says is so: its course map, its commands, its links and its picture."""
import re
from pathlib import Path

import pytest

from course_lib.chapters import CHAPTERS, Chapter
from course_lib.figures.style import DPI

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = ROOT / "course_lib" / "figures" / "predict_measure_reconcile.png"


def row(chapter: Chapter) -> str:
    title, minutes = chapter.title, ["", ""]
    if chapter.ready:
        title = f"[{title}](notebooks/{chapter.filename})"
        minutes = [f"{chapter.study_minutes} min", f"{chapter.lecture_minutes} min"]
    return f"| {chapter.number} | {title} | {chapter.asks} | {' | '.join(minutes)} | {', '.join(chapter.needs)} |"


def test_the_course_map_is_that_of_chapters():
    shown = [line for line in README.splitlines() if re.match(r"\| \d\d \|", line)]
    expected = [row(chapter) for chapter in CHAPTERS]
    assert shown == expected, "\n".join(["the table of the README should read:", *expected])


def test_the_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))
    assert {"lab", "test", "edit", "fresh", "notebooks", "solutions", "lint"} <= named <= targets


def test_links_and_named_files_exist():
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", README)
    files = re.findall(r"`((?:course_lib|notebooks)/[\w/]*(?:\.py)?|environment\.yml)`", README)
    later = {"course_lib/exercises/nb15.py"}  # the example of a file that an author writes
    assert len(links) >= 5
    assert len(files) >= 3
    assert not [path for path in {*links, *files} - later if not (ROOT / path).exists()]


def test_the_names_that_a_learner_writes_exist():
    import course_lib

    for name in re.findall(r"`(\w+)\(", README):
        assert name in course_lib.__all__


def test_the_picture_is_small_described_and_what_its_function_draws(tmp_path):
    from PIL import Image, ImageChops

    from course_lib.figures import draw_predict_measure_reconcile

    (alt,) = re.findall(r"!\[([^\]]*)\]", README)
    assert len(alt) > 60
    assert PICTURE.stat().st_size < 150_000
    draw_predict_measure_reconcile().savefig(tmp_path / "now.png", dpi=DPI)
    now, stored = (Image.open(path).convert("L") for path in (tmp_path / "now.png", PICTURE))
    assert now.size == stored.size
    far = sum(ImageChops.difference(now, stored).histogram()[64:])  # letters may be drawn a little differently
    assert far < 0.01 * now.size[0] * now.size[1], "save the figure of draw_predict_measure_reconcile() anew"


@pytest.mark.parametrize("command", ["bootstrap.py", "__main__.py"])
def test_the_commands_for_windows_name_what_exists(command):
    assert (ROOT / "course_lib" / "classroom" / command).is_file()
    assert "course_lib\\classroom\\bootstrap.py" in README
    assert "-m course_lib.classroom lab" in README
