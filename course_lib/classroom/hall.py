"""In a lecture, what stands before a cell has run: imports that slides skip, and whatever was jumped over."""
from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path


def run_earlier_cells(shell, notebook: str) -> None:
    """Before a cell of `notebook` runs in this IPython shell, run those above it that have not, each once and unseen.

    Exercises are left out: they are the learners' to solve. An error that is not taught is told in one line.
    """
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    places = {cell["id"]: place for place, cell in enumerate(code)}
    waiting = {place: cell for place, cell in enumerate(code) if "exercise" not in _tags(cell)}

    def before(info) -> None:
        place = places.get(info.cell_id, -1)
        waiting.pop(place, None)  # the presenter runs it in person
        for earlier in sorted(waiting):
            if earlier < place:
                _run_unseen(shell, waiting.pop(earlier))

    shell.events.register("pre_run_cell", before)


def _tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags", [])


def _run_unseen(shell, cell: dict) -> None:
    from IPython.utils.capture import capture_output

    with capture_output(), _no_tracebacks(shell):
        ran = shell.run_cell("".join(cell["source"]), silent=True)
    error = ran.error_before_exec or ran.error_in_exec
    if error and "raises-exception" not in _tags(cell):
        print(f"A cell above this one has failed: {type(error).__name__}: {error}", file=sys.stderr)


@contextmanager
def _no_tracebacks(shell):
    """A kernel sends tracebacks past everything that captures output."""
    usual = shell._showtraceback
    shell._showtraceback = lambda *_: None
    try:
        yield
    finally:
        shell._showtraceback = usual
