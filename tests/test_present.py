"""A lecture with live cells: the copy that is thrown away, what stays in it, and what the slides skip."""
import atexit
import json
import os
import stat
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from publish_samples import save, slide

from course_lib.classroom import __main__ as commands
from course_lib.classroom import hall, lab, present

NAME = "05_flops.ipynb"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "Kurs für alle" / "notebooks").mkdir(parents=True)
    cells = [
        slide(new_markdown_cell("# 05 · FLOPs"), "slide", 1),
        slide(new_code_cell("steps = ['set up']"), "skip"),
        slide(new_code_cell("steps.append('shown')", execution_count=1), "-"),
        slide(new_code_cell("def answer(): ...\n\nsteps.append('exercise')", metadata={"tags": ["exercise"]}), "skip"),
        slide(new_code_cell("print('unseen'); steps.append('skipped')"), "skip"),
        slide(new_code_cell("1 / 0"), "skip"),
        slide(new_code_cell("1 / 0  # a lesson", metadata={"tags": ["raises-exception"]}), "-"),
        slide(new_code_cell("steps.append('jumped over')", execution_count=1), "slide", 1),
        slide(new_code_cell("steps.append('last')"), "fragment"),
    ]
    save(tmp_path / "Kurs für alle" / "notebooks", new_notebook(cells=cells), NAME)
    return tmp_path / "Kurs für alle"


def begin(root: Path) -> Path:
    return present.begin(root / "notebooks", root / "build" / "present", "5")


def test_each_lecture_begins_afresh(course: Path) -> None:
    copy = begin(course)
    assert copy == course / "build" / "present" / NAME
    cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
    assert [cell["metadata"].get("slideshow", {}).get("slide_type") for cell in cells[:3]] == ["slide", "skip", None]
    assert cells[2]["execution_count"] is None
    copy.write_text("typed in the hall")
    noted = copy.parent / present.STATE / "progress.json"
    noted.write_text("{}")
    begin(course)
    assert "typed in the hall" not in copy.read_text(encoding="utf-8")
    assert not noted.exists()


def test_a_copy_of_a_read_only_notebook_can_be_typed_in(course: Path) -> None:
    (course / "notebooks" / NAME).chmod(0o444)
    assert begin(course).stat().st_mode & stat.S_IWUSR


def test_the_lecture_leaves_the_presenters_own_things_alone(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr(lab, "serve", lambda *what: served.append(what) or 0)
    monkeypatch.setenv("COURSE_PROGRESS", "mine")
    assert commands.main(["present", "05", "--no-browser"], course) == 0
    ((folder, arguments, opened, variables),) = served
    assert (folder, arguments, opened) == (course / "build" / "present", ["--no-browser"], NAME)
    changed = {name: value for name, value in variables.items() if os.environ.get(name) != value}
    assert set(changed) == {"COURSE_PROGRESS", "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"}
    assert all(Path(value).is_relative_to(folder / present.STATE) for value in changed.values())
    assert not (course / "work").exists()
    assert f"/lab/tree/{NAME}" in " ".join(lab.command(folder, [], False, NAME))


@pytest.mark.parametrize(("which", "told"), [("07", "There are 05: for example `make present NB=05`."), ("", "`make")])
def test_an_unknown_notebook_gets_one_sentence(course: Path, which: str, told: str, capsys) -> None:
    assert commands.main(["present", which], course) == 1
    assert told in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_gets_one_sentence(course: Path, capsys) -> None:
    (course / "build").touch()  # a file: no rights, not even root's, make it a folder
    assert commands.main(["present", "05"], course) == 1
    told = capsys.readouterr().err.strip()
    assert "cannot be written" in told and "\n" not in told


def test_what_comes_before_a_cell_runs_by_itself_once_and_unseen(course: Path, capsys) -> None:
    copy = begin(course)
    cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
    shell = InteractiveShell(ipython_dir=str(course / "ipython"))
    hall.run_earlier_cells(shell, str(copy))

    def run(place: int) -> None:
        shell.run_cell("".join(cells[place]["source"]), cell_id=cells[place]["id"])

    run(2)
    assert shell.user_ns["steps"] == ["set up", "shown"]
    run(8)
    assert shell.user_ns["steps"] == ["set up", "shown", "skipped", "jumped over", "last"]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip() == "A cell above this one has failed: ZeroDivisionError: division by zero"
    run(8)
    run(2)
    assert shell.user_ns["steps"][5:] == ["last", "shown"]
    run(4)  # the presenter may show it after all
    assert capsys.readouterr().out == "unseen\n"
    shell.history_manager.end_session()
    atexit.unregister(shell.atexit_operations)  # by then this test's folder is gone


def test_the_kernel_of_the_lecture_begins_with_it(course: Path) -> None:
    copy = begin(course)
    started = present.environment(copy.parent, {})["IPYTHONDIR"]
    code = Path(started, "profile_default", "startup", "hall.py").read_text(encoding="utf-8")
    asked = []
    exec(code, {"get_ipython": lambda: Shell(asked)})
    assert asked == ["pre_run_cell"]


class Shell:
    """An IPython shell that only notes what is registered."""

    def __init__(self, asked: list[str]) -> None:
        self.events, self.asked = self, asked

    def register(self, event: str, _: object) -> None:
        self.asked.append(event)
