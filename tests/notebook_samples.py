"""Notebooks that the tests make: one that keeps the whole contract, and small ones from a few sources."""
from collections.abc import Callable
from types import SimpleNamespace

from contract import Page
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.chapters import Chapter
from course_lib.publishing.canonical import IGNORED, as_text, canonical, source_keys

ALT = "Three points on a rising line: the first at 1, the second at 2 and the third at 3 on both axes."
NOTES = "Ask how many bytes they expect before you run the cell, and wait for three answers."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8BQDwAEgAF/pooBPQAAAABJRU5ErkJggg=="


def notebook_of(*sources: str | tuple[str, str]) -> NotebookNode:
    """A notebook with one code cell a source; a source may come with a tag."""
    pairs = [(source, ()) if isinstance(source, str) else (source[0], source[1:]) for source in sources]
    return new_notebook(cells=[new_code_cell(source, metadata={"tags": list(tags)}) for source, tags in pairs])


def registry() -> dict[str, object]:
    """Three exercises that exist only here."""
    stub = 'def {0}(x: int) -> int:\n    """Answer."""\n    ...'
    return {name: SimpleNamespace(stub=stub.format(name)) for name in ("first", "second", "third")}


def good_page(folder, change: Callable[[NotebookNode], None] = lambda notebook: None, tidy: bool = True) -> Page:
    """A notebook that keeps every rule, after `change`; `tidy` brings it into canonical form again."""
    notebook = new_notebook(cells=[*_opening(), *_section(), *_exercises(), *_ending()])
    notebook = canonical(notebook)
    for cell, key in zip(notebook.cells, source_keys(notebook), strict=True):
        if IGNORED in cell.metadata.get("tags", ()):
            cell.metadata.measured_from = key
    change(notebook)
    text = as_text(canonical(notebook) if tidy else notebook)
    chapter = Chapter("03", "strides", "Strides", "What is free?", ("01",), study_minutes=20, lecture_minutes=9)
    return Page(text, chapter, registry(), folder)


def _opening() -> list[NotebookNode]:
    claim, aims = "A transpose moves nothing.", "You will be able to:\n- see\n- count\n- copy"
    title = f"# 03 · Strides\n\n{claim}\n\n{aims}\n\n20 min, needs 01."
    return [_slide(new_markdown_cell(title), "slide", 4), _slide(_code("import torch\nsetup()"), "skip")]


def _section() -> list[NotebookNode]:
    figure = new_output("display_data", {"image/png": PNG, "text/plain": ALT}, metadata={"image/png": {"alt": ALT}})
    error = new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])
    cells = [
        _slide(new_markdown_cell("## A question\n\nWhat does it cost? See [the course map](map.md)."), "subslide", 5),
        _slide(_code("time_it()", new_output("stream", text="1.25 s\n"), tag=IGNORED)),
        _slide(_code("assert time_it() > 0")),
        _slide(_code("show(draw(), alt=ALT)", figure), "fragment"),
        _slide(_code("raise ValueError('no')", error, tag="raises-exception")),
    ]
    return cells


def _exercises() -> list[NotebookNode]:
    cells = []
    for number, (name, exercise) in enumerate(registry().items(), 1):
        heading = f"### ✏️ Exercise 3.{number} · Where?  ●○○ · 3 min\n\nWhich position is read?"
        said = new_output("execute_result", {"text/plain": f"○ {name} — not started."}, execution_count=1)
        stub = _code(f"{exercise.stub}\n\ncheck({name})", said, tag="exercise")
        cells += [_slide(new_markdown_cell(heading), "skip"), _slide(stub, "skip")]
    return cells


def _ending() -> list[NotebookNode]:
    table = "| Remember | Because |\n|---|---|\n| A view costs 0 bytes | only the strides are new |"
    row = _code("ledger()", new_output("execute_result", {"text/plain": "33024"}, execution_count=1))
    last = "**Ledger.** 33,024 B. Next: 04, where axes get names."
    return [_slide(new_markdown_cell(table)), _slide(row), _slide(new_markdown_cell(last))]


def _code(source: str, *outputs: NotebookNode, tag: str | None = None) -> NotebookNode:
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": [tag]} if tag else {})


def _slide(cell: NotebookNode, kind: str = "-", minutes: int | None = None) -> NotebookNode:
    cell.metadata.slideshow = {"slide_type": kind}
    if minutes:
        cell.metadata.speaker_notes = {"minutes": minutes, "text": NOTES}
    return cell
