"""Build the course as pages to read, on a phone as well: a page a notebook, and an index.

    python -m course_lib.publishing.html [--solved] [--into FOLDER] [PATH or NUMBER …]
"""
from dataclasses import dataclass
from pathlib import Path

from course_lib.publishing.bundle import Kind, Lesson, copy_assets, each, run, templates, write
from course_lib.publishing.notebooks import NotebookError, first_line, run_tool
from course_lib.publishing.rendering import Heading, Renderer


@dataclass(frozen=True)
class Page:
    """A lesson as HTML: its cells in order, and its headings."""

    lesson: Lesson
    cells: list[str]
    headings: list[Heading]

    @property
    def contents(self) -> list[tuple[Heading, list[Heading]]]:
        """The table of contents: each section with what stands in it."""
        table: list[tuple[Heading, list[Heading]]] = []
        for heading in self.headings:
            if heading.level == 2:
                table.append((heading, []))
            elif heading.level == 3 and table:
                table[-1][1].append(heading)
        return table


def page(lesson: Lesson, stems: frozenset[str] = frozenset()) -> Page:
    """The page of a lesson. Raises NotebookError for the first cell that cannot be shown."""
    if not lesson.notebook.cells:
        raise NotebookError(f"{lesson.path.name} has no cells.")
    renderer = Renderer(lesson.notebook, lesson.path, stems)
    cells = [renderer.cell(index) for index in range(len(lesson.notebook.cells))]
    return Page(lesson, [html for html in cells if html], renderer.headings)


def build(lessons: list[Lesson], folder: Path) -> None:
    """Write all pages, their index, and what they need."""
    stems = frozenset(lesson.stem for lesson in lessons)
    pages = each(lessons, lambda lesson: page(lesson, stems))
    environment = templates()
    template = environment.get_template("page.html.j2")
    for before, one, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        write(folder / f"{one.lesson.stem}.html", template.render(page=one, before=before, after=after))
    write(folder / "index.html", environment.get_template("pages.html.j2").render(pages=pages))
    copy_assets(folder / "_static", "base.css", "page.css", "page.js")


KIND = Kind("html", build)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    return run(KIND, arguments, first_line(__doc__))


if __name__ == "__main__":
    run_tool(main)
