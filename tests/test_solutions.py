"""The solved notebooks: each reference stands in its stub cell, runs there, and every check says "correct"."""
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from notebook_samples import notebook_of

from course_lib.exercises import exercises
from course_lib.publishing import canonical as canonical_module
from course_lib.publishing import solutions
from course_lib.publishing.canonical import as_text, canonical
from course_lib.publishing.notebooks import NotebookError, find_notebooks, read_notebook
from course_lib.publishing.solutions import main, solved


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the solved notebooks go while a test runs."""
    monkeypatch.setattr(solutions, "SOLUTIONS", tmp_path / "solutions")
    return tmp_path / "solutions"


@pytest.mark.parametrize("name", [path.stem for path in find_notebooks([])])
def test_every_exercise_is_solved_by_its_reference(name: str, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name[:2]]) == 0
    own = [one for one in exercises().values() if one.notebook == name[:2]]
    assert f"{len(own)} exercise" in capsys.readouterr().out
    notebook = read_notebook(built / f"{name}.ipynb")
    cells = [cell for cell in notebook.cells if "exercise" in cell.metadata.get("tags", ())]
    assert [cell.source for cell in cells] == [f"{one.solution}\n\ncheck({one.name})" for one in own]
    for cell, one in zip(cells, own, strict=True):
        assert cell.outputs[-1].data["text/plain"].startswith(f"✓ {one.name} — correct")
        assert "@exercise" not in cell.source
    assert as_text(canonical(notebook)) == (built / f"{name}.ipynb").read_text(encoding="utf-8")


@pytest.fixture
def exercise_notebook(tmp_path: Path) -> Path:
    name, one = next(iter(exercises().items()))
    source = (f"{one.stub}\n\ncheck({name})", "exercise")
    nbformat.write(notebook_of("from course_lib import check", source), tmp_path / "one.ipynb")
    return tmp_path / "one.ipynb"


@pytest.mark.parametrize("broken", ["stub", "another"])
def test_a_solution_that_does_not_pass_is_named(
    broken: str, exercise_notebook: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, one = next(iter(exercises().items()))
    wrong = {"stub": one.stub, "another": one.stub.replace("...", "return -1")}[broken]
    monkeypatch.setattr(canonical_module, "exercise_registry", lambda: {name: SimpleNamespace(solution=wrong)})
    said = {"stub": f"the solution does not pass: ○ {name}", "another": f"the solution does not pass: ✗ {name}"}[broken]
    with pytest.raises(NotebookError, match=said):
        main([str(exercise_notebook)])
    assert not built.exists()


def test_a_solved_cell_is_followed_by_its_reason(exercise_notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, one = next(iter(exercises().items()))
    plain = SimpleNamespace(solution=one.solution, why="2*b*d*k, as `a*b*c` says; <b> & $x$.")
    for module in (canonical_module, solutions):
        monkeypatch.setattr(module, "exercise_registry", lambda: {name: plain})
    notebook, names = solved(exercise_notebook)
    assert names == [name]
    assert [cell.cell_type for cell in notebook.cells] == ["code", "code", "markdown"]
    assert notebook.cells[2].source == r"**Why it works.** 2\*b\*d\*k, as `a*b*c` says; \<b> & \$x\$."
