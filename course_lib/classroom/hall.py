"""What a lecture skips still has to run: imports, and what a later slide builds on. In the hall it runs by itself."""
from __future__ import annotations

import json
import sys
from pathlib import Path


def run_skipped_cells(shell, notebook: str) -> None:
    """Before a cell of `notebook` runs in this IPython shell, run the skipped cells above it, once and unseen.

    Exercises are left out: they are the learners' to solve.
    """
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    places = {cell["id"]: place for place, cell in enumerate(code)}
    waiting = {place: "".join(cell["source"]) for place, cell in enumerate(code) if _runs_unseen(cell)}

    def before(info) -> None:
        place = places.get(info.cell_id, -1)
        waiting.pop(place, None)  # the presenter runs it in person
        for earlier in sorted(waiting):
            if earlier < place:
                _run_unseen(shell, waiting.pop(earlier))

    shell.events.register("pre_run_cell", before)


def _runs_unseen(cell: dict) -> bool:
    metadata = cell["metadata"]
    skipped = metadata.get("slideshow", {}).get("slide_type") == "skip"
    return skipped and "exercise" not in metadata.get("tags", ())


def _run_unseen(shell, source: str) -> None:
    from IPython.utils.capture import capture_output

    with capture_output():
        ran = shell.run_cell(source, silent=True)
    error = ran.error_before_exec or ran.error_in_exec
    if error:
        print(f"A cell that the slides skip has failed: {type(error).__name__}: {error}", file=sys.stderr)
