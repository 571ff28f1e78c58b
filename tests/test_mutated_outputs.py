"""Changing any stored text by one character makes the suite fail: shown on a copy of every notebook.

The copies are changed in every text at once, so that one run of the suite shows which cells fail; during that run each
change is also made alone (see mutations.py).
"""
from dataclasses import dataclass

import nbformat
import pytest
from mutations import change, text_fields
from nbformat import NotebookNode
from suite_runs import CellRun, run_suite

from course_lib.publishing.canonical import IGNORED
from course_lib.publishing.notebooks import find_notebooks

NAMES = [path.stem for path in find_notebooks([])]


@dataclass
class Changed:
    """A notebook whose outputs were changed: which of its code cells are compared, and what the suite said to each."""

    compared: list[bool]
    runs: list[CellRun]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Changed]:
    folder, compared = tmp_path_factory.mktemp("changed"), {}
    for path in find_notebooks([]):
        notebook = nbformat.read(path, as_version=4)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        compared[path.stem] = [has_text(cell) and IGNORED not in cell.metadata.get("tags", ()) for cell in cells]
        for cell in cells:
            for holder, key in text_fields(cell.outputs):
                holder[key] = change(holder[key], len(holder[key]) // 2)
        nbformat.write(notebook, folder / path.name)
    runs = run_suite(folder, "-p", "mutations")
    return {name: Changed(compared[name], runs[name]) for name in compared}


def has_text(cell: NotebookNode) -> bool:
    return any(True for _ in text_fields(cell.outputs))


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_with_a_changed_output_fails_and_no_other(name: str, changed: dict[str, Changed]) -> None:
    runs = changed[name].runs
    assert [bool(run.failure) for run in runs] == changed[name].compared, "\n".join(run.failure for run in runs)
    assert all("Cell outputs differ" in run.failure for run in runs if run.failure)
    assert any(changed[name].compared)


@pytest.mark.parametrize("name", NAMES)
def test_each_single_change_is_noticed(name: str, changed: dict[str, Changed]) -> None:
    notes = [note for run in changed[name].runs for note in run.notes]
    assert notes
    assert not [note for note in notes if not note.startswith("noticed ")]
