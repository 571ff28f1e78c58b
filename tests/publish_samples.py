"""A small lecture that has everything a deck or a page can hold, and ways to break it."""
import re
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_samples import ALT, NOTES, PNG

INLINE, BLOCK = r"\frac{1}{\sqrt{n}}", r"\begin{aligned} F &= 2BDK \\ &\approx 4 \cdot 10^{9} \end{aligned}"
NAME = "07_formulas.ipynb"


def lecture() -> NotebookNode:
    """Two stacks, three slides, four minutes; formulas, a figure, code, an error, a question, a skipped exercise."""
    drawn = {"image/png": {"alt": ALT, "width": 300}}
    figure = new_output("display_data", {"image/png": PNG, "text/plain": ALT}, metadata=drawn)
    table = {"text/html": "<table><tr><td><a href='03_strides.ipynb'>03</a></td></tr></table>", "text/plain": "03"}
    error = new_output("error", ename="ValueError", evalue="no <b>", traceback=["ValueError: no <b>"])
    asked = new_output("execute_result", {"text/plain": "Bytes: no guess yet."}, execution_count=1)
    cells = [
        slide(new_markdown_cell("# 07 · Formulas\n\nA formula is no picture."), "slide", 1),
        slide(new_code_cell("import torch"), "skip"),
        slide(new_markdown_cell(f"## Scale & size\n\nThe scale is ${INLINE}$, then\n\n$$\n{BLOCK}\n$$"), "slide", 2),
        slide(new_code_cell('x = 1\npredict("Bytes", guess=None)', outputs=[asked]), "-"),
        slide(new_code_cell("show(draw(), alt=ALT)", outputs=[figure]), "fragment"),
        slide(new_markdown_cell("Read it. See [04](04_einops.ipynb) and [03](03_strides.ipynb#a)."), "-"),
        slide(new_code_cell("raise ValueError", outputs=[error]), "fragment"),
        slide(new_markdown_cell("Ask them again."), "notes"),
        slide(new_markdown_cell("## A table"), "subslide", 1),
        slide(new_code_cell("course_map()", outputs=[new_output("display_data", table)]), "-"),
        slide(new_markdown_cell("### Exercise 7.1 · Which?"), "skip"),
        slide(new_code_cell("def answer(): ...\n\ncheck(answer)"), "skip"),
        slide(new_markdown_cell("**Why it works.** Because."), "skip"),
    ]
    cells[11].metadata.tags = ["exercise"]
    return new_notebook(cells=cells)


def slide(cell: NotebookNode, kind: str, minutes: int | None = None) -> NotebookNode:
    """The cell with its place in the lecture."""
    cell.metadata.slideshow = {"slide_type": kind}
    if minutes:
        cell.metadata.speaker_notes = {"minutes": minutes, "text": NOTES}
    return cell


def save(folder: Path, notebook: NotebookNode | None = None, name: str = NAME) -> Path:
    """The lecture as a file."""
    nbformat.write(notebook or lecture(), folder / name)
    return folder / name


def parsed(path: Path) -> BeautifulSoup:
    """A page without its code and its pictures' bytes, which take long to read."""
    html = path.read_text(encoding="utf-8")
    return BeautifulSoup(re.sub(r"(?s)<pre.*?</pre>|(?<=;base64,)[^\"]+", "", html), "html.parser")
