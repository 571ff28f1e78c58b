"""Form: executed, canonical, quiet, the same on every machine, and compared."""
import ast
import re
from collections.abc import Iterator

from contract.page import Page, rule, tags, texts
from course_lib.publishing.canonical import IGNORED, WIDGET, as_text, canonical, source_keys

TAGS = {"exercise", "raises-exception", IGNORED}
ALT_CHARACTERS = 60
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}|0x[0-9a-f]{10,}", re.IGNORECASE)
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(home|root|tmp|work|Users|usr|opt|var|mnt)/|\b[A-Z]:\\\w|site-packages|ipykernel_\d"
)
VERSION = re.compile(r"(?<![\w.])\d+\.\d+\.\d+(?![\w.])")


@rule
def canonical_form(page: Page) -> Iterator[str]:
    if as_text(canonical(page.notebook)) != page.text:
        yield "The file is not in canonical form: run `make notebooks`."


@rule
def executed_in_order(page: Page) -> Iterator[str]:
    for count, (number, cell) in enumerate(page.of_type("code"), 1):
        if cell.execution_count != count:
            yield f"Cell {number} has execution count {cell.execution_count}, expected {count}."


@rule
def no_empty_or_raw_cells(page: Page) -> Iterator[str]:
    for number, cell in enumerate(page.cells, 1):
        if not cell.source.strip() or cell.cell_type == "raw":
            yield f"Cell {number} is empty or raw."


@rule
def nothing_on_stderr(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("code"):
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"Cell {number} stores output on stderr."


@rule
def errors_only_where_taught(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("code"):
        errors = sum(output.output_type == "error" for output in cell.outputs)
        if errors != ("raises-exception" in tags(cell)):
            yield f"Cell {number} stores {errors} errors; the tag raises-exception and one error belong together."


@rule
def pictures_are_png_and_described(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("code"):
        for output in cell.outputs:
            images = [mime for mime in output.get("data", ()) if mime.startswith("image/")]
            if not images:
                continue
            alt = output.metadata.get("image/png", {}).get("alt", "")
            if images != ["image/png"]:
                yield f"Cell {number} stores {images}; pictures are PNG."
            elif len(alt) < ALT_CHARACTERS:
                yield f"Cell {number} has a picture whose alt text is {alt!r}: say what it shows."
            elif output.data.get("text/plain") != alt:
                yield f"Cell {number} has a picture whose text/plain is not its alt text, so nothing would be compared."


@rule
def no_widgets(page: Page) -> Iterator[str]:
    if "widgets" in page.notebook.metadata:
        yield "The notebook stores the state of widgets."
    for number, cell in page.of_type("code"):
        if any(WIDGET in output.get("data", ()) for output in cell.outputs):
            yield f"Cell {number} stores the view of a widget."


@rule
def same_on_every_machine(page: Page) -> Iterator[str]:
    for number, cell in page.of_type("code"):
        for text in (cell.source, *texts(cell)):
            for found in (ADDRESS.search(text), MACHINE_PATH.search(text)):
                if found:
                    yield f"Cell {number} holds {found[0]!r}, which another machine does not have."
        for text in () if IGNORED in tags(cell) else texts(cell):
            if found := VERSION.search(text) or re.search(r"device='?cuda", text) or re.search("[\r\b]", text):
                yield f"Cell {number} prints {found[0]!r}, which is not the same everywhere or would not be compared."


@rule
def known_tags_and_no_skipping(page: Page) -> Iterator[str]:
    for number, cell in enumerate(page.cells, 1):
        if unknown := set(tags(cell)) - TAGS:
            yield f"Cell {number} has the unknown tag {sorted(unknown)}."
        if tags(cell) and cell.cell_type != "code":
            yield f"Cell {number} has tags, but is no code cell."
        if "NBVAL_" in cell.source or "PYTEST_VALIDATE" in cell.source:
            yield f"Cell {number} steers nbval by a comment; only tags do."


@rule
def measured_output_is_rare_and_pinned(page: Page) -> Iterator[str]:
    code, ignored = page.of_type("code"), page.tagged(IGNORED)
    if 4 * len(ignored) > len(code):
        yield f"{len(ignored)} of {len(code)} code cells are not compared; one in four is the most."
    keys = source_keys(page.notebook)
    for number, cell in ignored:
        after = [later for place, later in code if place > number]
        if not after or not has_assert(after[0].source):
            yield f"Cell {number} prints what was measured; the next code cell has to assert what holds anywhere."
        if cell.metadata.get("measured_from") != keys[number - 1]:
            yield f"Cell {number} stores what an earlier version of the code measured: run `make notebooks`."


def has_assert(source: str) -> bool:
    try:
        return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(source)))
    except SyntaxError:  # a magic
        return False
