"""What nbval passes without looking fails in this project's test run."""
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from notebook_samples import ALT, PNG, notebook_of
from suite_runs import CellRun, run_suite

from course_lib.publishing.notebooks import execute

SHOW = f"from IPython.display import display\ndisplay({{'image/png': '{PNG}', 'text/plain': '{ALT}'}}, raw=True)"


def holes() -> NotebookNode:
    """An executed notebook whose stored outputs were then spoiled in ways that nbval 0.11 does not see."""
    notebook = notebook_of(
        "1 + 1", "1 + 1", "print('ab')", SHOW, SHOW, "print('a')\n'b'", ("1 + 1", "nbval-skip"),
        "import os\n'course-' in os.environ['COURSE_PROGRESS']", ("raise ValueError", "raises-exception"),
        "2",
    )  # fmt: skip
    execute(notebook, "holes.ipynb", Path.cwd())
    _, unrun, cursor, no_text, no_picture, order, _, _, error, comment = notebook.cells
    unrun.execution_count, unrun.outputs = None, []
    cursor.outputs[0].text = "never compared\rab\n"
    del no_text.outputs[0].data["text/plain"]
    del no_picture.outputs[0].data["image/png"]
    order.outputs.reverse()
    error.outputs = []
    comment.source = "# NBVAL_IGNORE_OUTPUT\n3"
    return notebook


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[CellRun]:
    folder = tmp_path_factory.mktemp("holes")
    nbformat.write(holes(), folder / "holes.ipynb")
    return run_suite(folder)["holes"]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "without being executed"),
        (2, "moves the cursor back"),
        (3, "no text/plain"),
        (4, "running the cell gives [('display_data', 'image/png', 'text/plain')]"),
        (5, "running the cell gives [('stream', 'stdout'), ('execute_result', 'text/plain')]"),
        (6, "asks to be skipped"),
        (8, "Unexpected output fields"),
        (9, "asks to be skipped"),
    ],
)
def test_a_hole_is_closed(number: int, said: str, cells: list[CellRun]) -> None:
    assert said in cells[number].failure


@pytest.mark.parametrize("number", [0, 7])
def test_a_sound_cell_passes(number: int, cells: list[CellRun]) -> None:
    assert cells[number].failure == ""
