"""Changing any stored text by one character makes the suite fail: shown on a copy of every notebook.

The copies are changed in every text at once, so that one run of the suite shows which cells fail; during that run each
change is also made alone (see mutations.py).
"""

import nbformat
import pytest
from mutations import change, text_fields
from nbformat import NotebookNode
from suite_runs import CellRun, run_suite

from course_lib.publishing.canonical import IGNORED
from course_lib.publishing.notebooks import find_notebooks

NAMES = [path.stem for path in find_notebooks([])]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[CellRun]]:
    folder = tmp_path_factory.mktemp("mutated")
    for path in find_notebooks([]):
        notebook = nbformat.read(path, as_version=4)
        for cell in code_cells(notebook):
            for holder, key in text_fields(cell.outputs):
                holder[key] = change(holder[key], len(holder[key]) // 2)
        nbformat.write(notebook, folder / path.name)
    return run_suite(folder, "-p", "mutations")


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_with_a_changed_output_fails_and_no_other(name: str, runs: dict[str, list[CellRun]]) -> None:
    cells = code_cells(nbformat.read(find_notebooks([name[:2]])[0], as_version=4))
    compared = [bool([*text_fields(cell.outputs)]) and IGNORED not in cell.metadata.get("tags", ()) for cell in cells]
    assert [bool(run.failure) for run in runs[name]] == compared
    assert all("Cell outputs differ" in run.failure for run in runs[name] if run.failure)
    assert any(compared)


@pytest.mark.parametrize("name", NAMES)
def test_each_single_change_is_noticed(name: str, runs: dict[str, list[CellRun]]) -> None:
    notes = [note for run in runs[name] for note in run.notes]
    assert notes
    assert not [note for note in notes if not note.startswith("noticed ")]
