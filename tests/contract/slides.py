"""Slides: every cell knows its place in the lecture, and what stands on a slide fits it."""
from collections.abc import Iterator

from contract.page import Page, rule, slide_type, tags

SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}
OPENING = {"slide", "subslide"}
CODE_LINES, CODE_COLUMNS, WORDS, TITLE_WORDS, NOTE_CHARACTERS = 15, 100, 90, 160, 40


@rule
def every_cell_has_a_slide_type(page: Page) -> Iterator[str]:
    for number, cell in enumerate(page.cells, 1):
        if slide_type(cell) not in SLIDE_TYPES:
            yield f"Cell {number} has slide type {slide_type(cell)!r}; there are {', '.join(sorted(SLIDE_TYPES))}."
    if slide_type(page.cells[0]) != "slide":
        yield "Cell 1 does not open a slide."


@rule
def speaker_notes_where_a_slide_opens(page: Page) -> Iterator[str]:
    for number, cell in enumerate(page.cells, 1):
        notes = cell.metadata.get("speaker_notes")
        if (notes is not None) != (slide_type(cell) in OPENING):
            yield f"Cell {number}: speaker notes belong to each cell that opens a slide, and to no other."
        elif notes is not None:
            minutes, text = notes.get("minutes"), notes.get("text")
            if set(notes) != {"minutes", "text"} or isinstance(minutes, bool) or not isinstance(minutes, int | float):
                yield f"Cell {number}: speaker notes are a number of minutes and a text."
            elif not 0 < minutes <= 10 or len(str(text)) < NOTE_CHARACTERS or text.strip() == cell.source.strip():
                yield f"Cell {number} is to take {minutes} minutes (at most 10) and says {text!r}: what to say and ask?"


@rule
def speaker_minutes_add_up(page: Page) -> Iterator[str]:
    minutes = sum(cell.metadata.get("speaker_notes", {}).get("minutes", 0) for cell in page.cells)
    if minutes != page.chapter.lecture_minutes:
        yield f"The slides take {minutes} minutes, the course map says {page.chapter.lecture_minutes}."


@rule
def code_fits_a_slide(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("code"):
        lines = cell.source.splitlines()
        off_slide = slide_type(cell) in {"skip", "notes"} and "exercise" in tags(cell)
        if len(lines) > CODE_LINES and not off_slide:
            yield f"Cell {number} has {len(lines)} lines of code; {CODE_LINES} are the most."
        if (longest := max(map(len, lines), default=0)) > CODE_COLUMNS:
            yield f"Cell {number} has a line of {longest} characters; {CODE_COLUMNS} are the most."


@rule
def no_wall_of_text(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("markdown"):
        text = "\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith("|"))
        words, most = len(text.split()), TITLE_WORDS if number == 1 else WORDS
        if words > most:
            yield f"Cell {number} has {words} words outside of tables; {most} are the most."
