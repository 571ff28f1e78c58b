"""Lesson: the anatomy that a learner relies on, from the title to the ledger."""
import re
from collections.abc import Iterator

from contract.page import Page, prose, rule, texts

BANNED = re.compile(r"\b(simply|just|obviously)\b", re.IGNORECASE)
EXERCISE_HEADING = re.compile(r"### ✏️ Exercise (\d+)\.(\d+) · \S.*?  (●○○|●●○|●●●) · [1-9]\d* min")
REMEMBER = re.compile(r"^\| *Remember *\| *Because *\|", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


@rule
def title_cell(page: Page) -> Iterator[str]:
    chapter, source = page.chapter, page.cells[0].source
    if page.cells[0].cell_type != "markdown" or source.split("\n")[0] != f"# {chapter.number} · {chapter.title}":
        yield f"The first cell has to begin with '# {chapter.number} · {chapter.title}'."
    if len(re.findall(r"^(?:[-*]|\d\.) \S", source, re.MULTILINE)) != 3:
        yield "The title cell has to list three things that you will be able to do."
    if f"{chapter.study_minutes} min" not in source:
        yield f"The title cell has to name the {chapter.study_minutes} minutes of the course map."
    if "need" not in source.lower():
        yield "The title cell has to say what the notebook needs."


@rule
def one_setup_cell(page: Page) -> Iterator[str]:
    holders = [number for number, cell in page.of_type("code") if re.search(r"^setup\(\)", cell.source, re.MULTILINE)]
    if holders != [2]:
        yield f"setup() is called in cells {holders}; the second cell of a notebook is its one set-up cell."
    elif page.cells[1].outputs or not page.cells[1].source.endswith("setup()"):
        yield "The set-up cell ends with setup() and displays nothing."


@rule
def banned_words(page: Page) -> Iterator[str]:
    for number, text in prose(page):
        if found := BANNED.search(text):
            yield f"Cell {number} says {found[0]!r}."


@rule
def links_resolve(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("markdown"):
        for image, text, target in LINK.findall(cell.source):
            if not text:
                yield f"Cell {number} has a {'picture' if image else 'link'} without a text: {target}."
            if not re.match(r"https?://|mailto:|#", target) and not (page.folder / target.partition("#")[0]).exists():
                yield f"Cell {number} links to {target}, which does not exist."


@rule
def exercises_are_introduced(page: Page) -> Iterator[str]:
    """`### ✏️ Exercise 3.2 · Where does an element live?  ●○○ · 3 min`, then the question, then the stub."""
    asked = page.tagged("exercise")
    for count, (number, cell) in enumerate(asked, 1):
        before = page.cells[number - 2]
        heading, _, question = before.source.partition("\n")
        wanted = (str(int(page.chapter.number)), str(count))
        match = EXERCISE_HEADING.fullmatch(heading)
        if before.cell_type != "markdown" or not match or match.groups()[:2] != wanted:
            yield (
                f"Cell {number - 1} stands before an exercise and begins with {heading!r}, expected "
                f"'### ✏️ Exercise {'.'.join(wanted)} · Title  ●○○ · 3 min'."
            )
        elif not question.strip():
            yield f"Cell {number - 1} has a heading and no question."
        if not any(text.startswith("○") and "not started" in text for text in texts(cell)):
            yield f"Cell {number} is an exercise that does not say 'not started'."


@rule
def exercises_are_the_registrys(page: Page) -> Iterator[str]:
    cells = page.tagged("exercise")
    names = [cell.source.rpartition("\ncheck(")[2].rstrip(")") for _, cell in cells]
    if names != list(page.exercises):
        yield f"The notebook's exercises are {names}; those of course_lib.exercises are {list(page.exercises)}."
    for (number, cell), name in zip(cells, names, strict=True):
        if name in page.exercises and cell.source != f"{page.exercises[name].stub}\n\ncheck({name})":
            yield f"Cell {number} is not the stub of {name}: run `make notebooks`."
    for number, cell in page.of_type("code"):
        if re.search(r"^check\(", cell.source, re.MULTILINE) and (number, cell) not in cells:
            yield f"Cell {number} checks an answer, but is not tagged exercise."


@rule
def three_to_six_exercises(page: Page) -> Iterator[str]:
    least, most = (1, 6) if page.chapter.number == "00" else (3, 6)
    if not least <= len(page.tagged("exercise")) <= most:
        yield f"The notebook has {len(page.tagged('exercise'))} exercises; {least} to {most} are asked for."


@rule
def ends_with_what_to_remember(page: Page) -> Iterator[str]:
    """A table of what to remember, a cell that computes the ledger's row, a line that reads it, what comes next."""
    tables = [number for number, cell in page.of_type("markdown") if REMEMBER.search(cell.source)]
    if len(tables) != 1:
        yield f"The notebook has {len(tables)} tables that begin with '| Remember | Because |', expected one."
        return
    rest = page.cells[tables[0] :]
    if not any(cell.cell_type == "code" and cell.outputs for cell in rest):
        yield "After what to remember, a cell has to compute the ledger's row."
    if not any(cell.cell_type == "markdown" and "**Ledger.**" in cell.source for cell in page.cells[tables[0] - 1 :]):
        yield "After what to remember, a cell has to read the ledger's row: '**Ledger.** …'."
    following = f"{int(page.chapter.number) + 1:02d}"
    if page.chapter.number != "14" and following not in page.cells[-1].source:
        yield f"The last cell has to name the next notebook, {following}."
