"""Build the reveal.js decks, which open from a USB stick: a deck a notebook, and an index of all with their minutes.

    python -m course_lib.publishing.slides [--solved] [--into FOLDER] [PATH or NUMBER …]

The cells' slide types decide what stands on a slide. The notes and minutes that a slide's first cell carries as
`speaker_notes` are seen in the speaker view alone. With `--solved` each exercise gets a slide, its solution another.
"""
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from course_lib.publishing.bundle import Kind, Lesson, copy_assets, each, reveal, run, templates, write
from course_lib.publishing.notebooks import NotebookError, first_line, run_tool, where
from course_lib.publishing.rendering import Renderer

OPENING = ("slide", "subslide")
SLIDE_TYPES = (*OPENING, "fragment", "-", "skip", "notes")
NOT_COUNTED = {"minutes": 0, "text": "An exercise and its solution, for when it comes up. It is not in the minutes."}


@dataclass
class Slide:
    """What stands on one slide, and what its instructor alone sees."""

    first: int  # index of the cell that opens it
    kind: str  # "slide" goes to the right, "subslide" down
    minutes: float
    begins: float  # minutes before it
    notes: str
    html: str = ""
    fragment: bool = field(default=False, repr=False)

    def add(self, html: str, kind: str) -> None:
        """Put a cell below the others; one that continues appears together with the fragment before it."""
        if kind == "fragment":
            self.end()
            self.html += '<div class="fragment">'
            self.fragment = True
        self.html += f'<div class="cell">{html}</div>\n'

    def end(self) -> None:
        """Nothing more belongs to the open fragment."""
        self.html += "</div>" * self.fragment
        self.fragment = False


@dataclass(frozen=True)
class Deck:
    """The slides of a lesson: stacks that follow each other to the right, each read downward."""

    lesson: Lesson
    stacks: list[list[Slide]]

    @property
    def slides(self) -> list[Slide]:
        return [slide for stack in self.stacks for slide in stack]

    @property
    def minutes(self) -> float:
        return sum(slide.minutes for slide in self.slides)


def deck(lesson: Lesson, stems: frozenset[str] = frozenset()) -> Deck:
    """The deck of a lesson. Raises NotebookError for the first cell that cannot be put on a slide."""
    notebook, name = lesson.notebook, lesson.path.name
    if lesson.solved:
        show_exercises(notebook)
    renderer = Renderer(notebook, lesson.path, stems, projected=True)
    stacks: list[list[Slide]] = []
    begins = 0.0
    for index, cell in enumerate(notebook.cells):
        kind = slide_type(notebook, name, index)
        if kind == "skip":
            continue
        if kind in OPENING:
            minutes, notes = speaker_notes(notebook, name, index)
            slide = Slide(index, kind, minutes, begins, renderer.text(notes, index))
            begins += minutes
            if kind == "slide" or not stacks:
                stacks.append([])
            stacks[-1].append(slide)
        elif not stacks:
            raise NotebookError(f"{where(notebook, name, index)} stands before the first slide; make it open one.")
        if kind == "notes":
            stacks[-1][-1].notes += renderer.text(cell.source, index)
        else:
            stacks[-1][-1].add(renderer.cell(index), kind)
    made = Deck(lesson, stacks)
    if not made.slides:
        raise NotebookError(f"{name} has no slide: no cell opens one.")
    for slide in made.slides:
        slide.end()
    return made


def slide_type(notebook: NotebookNode, name: str, index: int) -> str:
    """What the cell is in the lecture."""
    slideshow = notebook.cells[index].metadata.get("slideshow", {})
    kind = slideshow.get("slide_type") if isinstance(slideshow, dict) else None
    if kind not in SLIDE_TYPES:
        said = "has no slide type" if kind is None else f"has the slide type {kind!r}, which is unknown"
        raise NotebookError(f"{where(notebook, name, index)} {said}; there are {', '.join(SLIDE_TYPES)}.")
    return kind


def speaker_notes(notebook: NotebookNode, name: str, index: int) -> tuple[float, str]:
    """Minutes and text for the instructor, from the cell that opens a slide."""
    notes = notebook.cells[index].metadata.get("speaker_notes")
    minutes, text = (notes.get("minutes"), notes.get("text")) if isinstance(notes, dict) else (None, None)
    number = isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 <= minutes < float("inf")
    if not number or not isinstance(text, str) or not text.strip():
        raise NotebookError(
            f"{where(notebook, name, index)} opens a slide without speaker_notes; they are "
            '{"minutes": 3, "text": "what to say and ask"}.'
        )
    return minutes, text


def show_exercises(notebook: NotebookNode) -> None:
    """Give each exercise a slide for its question and one for its solution, wherever the lecture skips them."""
    opens = {"slideshow": {"slide_type": "subslide"}, "speaker_notes": NOT_COUNTED}
    cells = notebook.cells
    for index, cell in enumerate(cells):
        if "exercise" not in cell.metadata.get("tags", ()):
            continue
        cell.metadata.update(opens)
        question = cells[index - 1]
        if index and question.cell_type == "markdown" and question.metadata.slideshow.slide_type == "skip":
            question.metadata.update(opens)
        if index + 1 < len(cells) and cells[index + 1].source.startswith("**Why it works.**"):
            cells[index + 1].metadata["slideshow"] = {"slide_type": "-"}


def number(value: float) -> str:
    """Minutes as one says them: 3, 2.5."""
    return f"{value:g}"


def build(lessons: list[Lesson], folder: Path) -> None:
    """Write all decks, their index, and what they need."""
    stems = frozenset(lesson.stem for lesson in lessons)
    decks = each(lessons, lambda lesson: deck(lesson, stems))
    environment = templates()
    environment.filters["number"] = number
    for one in decks:
        write(folder / f"{one.lesson.stem}.html", environment.get_template("deck.html.j2").render(deck=one))
    write(folder / "index.html", environment.get_template("decks.html.j2").render(decks=decks))
    static = folder / "_static"
    copy_assets(static, "base.css", "deck.css", "deck.js", "page.css", "page.js")
    for file in ("dist/reveal.js", "dist/reveal.css", "plugin/notes/notes.js"):
        shutil.copyfile(reveal() / file, static / Path(file).name)
    shutil.copyfile(reveal() / "LICENSE", static / "reveal-LICENSE")


KIND = Kind("slides", build)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    return run(KIND, arguments, first_line(__doc__))


if __name__ == "__main__":
    run_tool(main)
