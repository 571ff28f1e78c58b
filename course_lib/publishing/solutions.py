"""Build the solved notebooks, and prove that the solutions solve them: every check has to say "correct".

    python -m course_lib.publishing.solutions [PATH or NUMBER …]

Each stub is replaced by the reference solution, followed by why it works; the notebook is executed where the original
lies and written to build/solutions/.
"""
import argparse
import re
import time
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_lib.publishing.canonical import as_text, canonical, exercise_registry, refresh_exercises
from course_lib.publishing.notebooks import (
    ROOT,
    NotebookError,
    execute,
    find_notebooks,
    first_line,
    read_notebook,
    run_tool,
    where,
    write_atomically,
)

SOLUTIONS = ROOT / "build" / "solutions"


def solved(path: Path) -> tuple[NotebookNode, list[str]]:
    """The notebook with every exercise solved and executed, in canonical form, and the names of its exercises.

    Raises NotebookError where a check does not say "correct".
    """
    notebook = read_notebook(path)
    names = refresh_exercises(notebook, path.name, "solution")
    execute(notebook, path.name, path.resolve().parent)
    for index, cell in enumerate(notebook.cells):
        if "exercise" in cell.metadata.get("tags", ()) and not _says_correct(cell):
            raise NotebookError(f"{where(notebook, path.name, index)}: the solution does not pass: {_said(cell)}")
    _add_reasons(notebook, names)
    return canonical(notebook), names


def _said(cell: NotebookNode) -> str:
    texts = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return next((text for text in reversed(texts) if text), "nothing was displayed").replace("\n", " ")


def _says_correct(cell: NotebookNode) -> bool:
    name = cell.source.rstrip().rpartition("check(")[2].removesuffix(")")
    return _said(cell).startswith(f"✓ {name} — correct")


def _add_reasons(notebook: NotebookNode, names: list[str]) -> None:
    reasons, cells = iter(names), []
    for cell in notebook.cells:
        cells.append(cell)
        if "exercise" in cell.metadata.get("tags", ()):
            reason = new_markdown_cell(f"**Why it works.** {_literal(exercise_registry()[next(reasons)].why)}")
            reason.metadata["slideshow"] = {"slide_type": "skip"}
            cells.append(reason)
    notebook.cells = cells


def _literal(text: str) -> str:
    """Plain text for Markdown: only `code` keeps its meaning, so that 2*b*d*k stays a product."""
    return re.sub(r"(`[^`]*`)|([*_<$\\])", lambda match: match[1] or "\\" + match[2], text)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.publishing.solutions", description=first_line(__doc__))
    parser.add_argument("notebooks", nargs="*", metavar="PATH or NUMBER", help="default: all of notebooks/")
    for path in find_notebooks(parser.parse_args(arguments).notebooks):
        began = time.perf_counter()
        notebook, names = solved(path)
        write_atomically(SOLUTIONS / path.name, as_text(notebook))
        count = f"{len(names)} exercise{'' if len(names) == 1 else 's'} solved, every check says correct"
        print(f"{path.name}: {count} ({time.perf_counter() - began:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    run_tool(main)
