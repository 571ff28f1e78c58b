"""What the rules look at: a notebook, and what it is held against."""
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.chapters import Chapter


@dataclass(frozen=True)
class Page:
    """A notebook with all that the rules hold it against: its file's text, its chapter, and its exercises in order."""

    text: str
    chapter: Chapter
    exercises: dict[str, object]
    folder: Path

    @cached_property
    def notebook(self) -> NotebookNode:
        return nbformat.reads(self.text, as_version=4)

    @property
    def cells(self) -> list[NotebookNode]:
        return self.notebook.cells

    def of_type(self, kind: str) -> list[tuple[int, NotebookNode]]:
        return [(number, cell) for number, cell in enumerate(self.cells, 1) if cell.cell_type == kind]

    def tagged(self, tag: str) -> list[tuple[int, NotebookNode]]:
        return [(number, cell) for number, cell in self.of_type("code") if tag in tags(cell)]


Rule = Callable[[Page], Iterator[str]]
RULES: dict[str, Rule] = {}


def rule(function: Rule) -> Rule:
    RULES[function.__name__] = function
    return function


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def slide_type(cell: NotebookNode) -> str | None:
    return cell.metadata.get("slideshow", {}).get("slide_type")


def texts(cell: NotebookNode) -> Iterator[str]:
    """All that a reader reads in a cell's outputs."""
    for output in cell.get("outputs", ()):
        yield from (output[key] for key in ("text", "ename", "evalue") if key in output)
        yield from (text for mime, text in output.get("data", {}).items() if mime.startswith("text/"))


def prose(page: Page) -> Iterator[tuple[int, str]]:
    """All that an author wrote: cells and speaker notes."""
    for number, cell in enumerate(page.cells, 1):
        yield number, cell.source
        yield number, str(cell.metadata.get("speaker_notes", {}).get("text", ""))
