"""A learner's copies in work/, and JupyterLab as it is started on them."""
import json
import os
import re
import stat
import subprocess
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path

import pytest

from course_lib.classroom import __main__ as commands
from course_lib.classroom import desk, lab

ADDRESS = re.compile(r"(http://localhost:\d+)(/lab/tree/00_start_here\.ipynb)\?token=(\w+)")
NOW = datetime(2026, 3, 14, 15, 9, 26)


def write(path: Path, *sources: str, output: str = "4") -> None:
    """A small notebook with these code cells."""
    cells = [{"cell_type": "code", "source": [source], "outputs": [output]} for source in sources]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")


@pytest.fixture
def course(tmp_path: Path) -> Path:
    root = tmp_path / "Kurs für alle"
    (root / "notebooks").mkdir(parents=True)
    write(root / "notebooks" / "00_start_here.ipynb", "1")
    write(root / "notebooks" / "03_strides_and_views.ipynb", "2 + 2")
    return root


def lay(root: Path) -> list[str]:
    return desk.lay_all(root / "notebooks", root / "work")


def fresh(root: Path, which: str) -> str:
    return desk.begin_again(root / "notebooks", root / "work", which, NOW)


def text(root: Path, name: str = "03_strides_and_views.ipynb") -> str:
    return (root / "work" / name).read_text(encoding="utf-8")


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "work").iterdir())


# ---- laying copies


def test_each_notebook_is_laid_once(course: Path) -> None:
    assert lay(course) == ["2 notebooks laid in work/, for you to write in."]
    assert names(course) == [".laid.json", "00_start_here.ipynb", "03_strides_and_views.ipynb"]
    assert lay(course) == []


def test_a_copy_can_be_shown_as_slides_whose_cells_go_on(course: Path) -> None:
    kinds = [{"slideshow": {"slide_type": kind}} for kind in ("slide", "-", "fragment")]
    cells = [{"cell_type": "markdown", "source": "", "metadata": metadata} for metadata in kinds]
    (copy,) = [json.loads(desk.without_outputs(json.dumps({"cells": cells}).encode()))["cells"]]
    assert [cell["metadata"] for cell in copy] == [kinds[0], {}, kinds[2]]


def test_a_copy_has_all_but_the_answers(course: Path) -> None:
    lay(course)
    shipped = json.loads((course / "notebooks" / "03_strides_and_views.ipynb").read_text(encoding="utf-8"))
    (cell,) = json.loads(text(course))["cells"]
    assert shipped["cells"] == [{"cell_type": "code", "source": ["2 + 2"], "outputs": ["4"]}]
    assert cell == {"cell_type": "code", "source": ["2 + 2"], "outputs": [], "execution_count": None}


def test_an_edited_copy_is_never_touched(course: Path) -> None:
    lay(course)
    write(course / "work" / "03_strides_and_views.ipynb", "my answer")
    mine = text(course)
    assert lay(course) == []
    write(course / "notebooks" / "03_strides_and_views.ipynb", "2 + 3")
    for _ in range(2):
        (told,) = lay(course)
        assert "make fresh NB=03" in told
        assert text(course) == mine


def test_an_untouched_copy_of_an_old_version_is_renewed(course: Path) -> None:
    lay(course)
    write(course / "work" / "03_strides_and_views.ipynb", "2 + 2", output="what my machine printed")
    write(course / "notebooks" / "03_strides_and_views.ipynb", "2 + 3")
    (told,) = lay(course)
    assert told.startswith("03_strides_and_views: renewed.")
    assert "2 + 3" in text(course)
    assert lay(course) == []


def test_new_outputs_alone_are_no_new_version(course: Path) -> None:
    lay(course)
    write(course / "notebooks" / "03_strides_and_views.ipynb", "2 + 2", output="five")
    assert lay(course) == []
    assert "five" not in text(course)


@pytest.mark.parametrize("memory", [None, "", "[]", '{"03'])
def test_without_a_memory_every_copy_counts_as_edited(course: Path, memory: str | None) -> None:
    lay(course)
    write(course / "work" / "03_strides_and_views.ipynb", "my answer")
    (course / "work" / desk.MEMORY).unlink() if memory is None else (course / "work" / desk.MEMORY).write_text(memory)
    assert lay(course) == []
    write(course / "notebooks" / "03_strides_and_views.ipynb", "2 + 3")
    assert "make fresh NB=03" in lay(course)[0]
    assert "my answer" in text(course)


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"cells": 3}', '{"cells": [{}]}'])
def test_a_damaged_copy_counts_as_edited(course: Path, damaged: str) -> None:
    lay(course)
    (course / "work" / "03_strides_and_views.ipynb").write_text(damaged)
    write(course / "notebooks" / "03_strides_and_views.ipynb", "2 + 3")
    assert "Yours has your answers and stays" in lay(course)[0]
    assert text(course) == damaged


def test_copies_of_read_only_notebooks_can_be_written(course: Path) -> None:
    for path in (course / "notebooks").iterdir():
        path.chmod(0o444)
    (course / "notebooks").chmod(0o555)
    lay(course)
    assert (course / "work" / "00_start_here.ipynb").stat().st_mode & stat.S_IWUSR
    (course / "notebooks").chmod(0o755)


def test_a_copy_that_appears_meanwhile_stays(course: Path, monkeypatch) -> None:
    def link(source: Path, target: Path) -> None:
        target.write_text("another make lab was quicker")
        raise FileExistsError

    monkeypatch.setattr(desk.os, "link", link)
    lay(course)
    assert text(course) == "another make lab was quicker"


def test_a_disk_without_hard_links_gets_copies_too(course: Path, monkeypatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(desk.os, "link", link)
    assert lay(course) == ["2 notebooks laid in work/, for you to write in."]
    assert "2 + 2" in text(course)


def test_nothing_half_written_is_left(course: Path, monkeypatch) -> None:
    def full(self: Path, content: bytes) -> None:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(desk.Refusal, match=r"cannot be written \(No space left on device\)"):
        lay(course)
    assert names(course) == []


# ---- beginning again


def test_an_edited_copy_is_set_aside_under_a_dated_name(course: Path) -> None:
    lay(course)
    for mine in ("first", "second", "third"):  # all within one second
        write(course / "work" / "03_strides_and_views.ipynb", mine)
        told = fresh(course, "03")
        assert "2 + 2" in text(course)
        assert "kept 2026-03-14 15.09.26" in told
    kept = {name: json.loads(text(course, name))["cells"][0]["source"] for name in names(course) if "kept" in name}
    assert kept == {
        "03_strides_and_views (kept 2026-03-14 15.09.26).ipynb": ["first"],
        "03_strides_and_views (kept 2026-03-14 15.09.26, 2).ipynb": ["second"],
        "03_strides_and_views (kept 2026-03-14 15.09.26, 3).ipynb": ["third"],
    }


def test_an_untouched_copy_needs_no_keeping(course: Path) -> None:
    lay(course)
    assert fresh(course, "03") == "03_strides_and_views is fresh."
    assert len(names(course)) == 3


@pytest.mark.parametrize("which", ["3", "03", "03_strides_and_views", "notebooks/03_strides_and_views.ipynb"])
def test_a_notebook_is_named_in_many_ways(course: Path, which: str) -> None:
    assert fresh(course, which) == "03_strides_and_views is fresh."


@pytest.mark.parametrize("which", ["05", "3x", "../99_x", "strides", ""])
def test_an_unknown_notebook_gets_one_sentence(course: Path, which: str, capsys) -> None:
    assert commands.main(["fresh", which], course) == 1
    assert "There are 00, 03: for example `make fresh NB=00`." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fresh"], "make fresh NB=03"),
        (["present"], "make present NB=03"),
        (["present", "--no-browser"], "make present NB=03"),
        ([], "lab, edit, present NUMBER, or fresh"),
        (["open"], "lab, edit, present NUMBER, or fresh"),
    ],
)
def test_a_command_that_lacks_something_says_what(course: Path, arguments: list[str], told: str, capsys) -> None:
    assert commands.main(arguments, course) == 1
    assert told in capsys.readouterr().err


def test_a_work_folder_that_cannot_be_written_gets_one_sentence(course: Path, capsys) -> None:
    (course / "work").touch()  # a file: no rights, not even root's, make it a folder
    assert commands.main(["fresh", "03"], course) == 1
    told = capsys.readouterr().err.strip()
    assert "cannot be written" in told
    assert "\n" not in told


def test_a_package_without_its_checkout_says_so(tmp_path: Path, capsys) -> None:
    assert commands.main(["lab"], tmp_path) == 1
    assert "holds no notebooks" in capsys.readouterr().err


# ---- JupyterLab


def test_root_is_let_in_and_others_need_no_flag() -> None:
    assert "--allow-root" in lab.command(Path("work"), [], is_root=True)
    assert "--allow-root" not in lab.command(Path("work"), [], is_root=False)


def test_the_users_arguments_come_last() -> None:
    assert lab.command(Path("work"), ["--port", "8899"], is_root=True)[-2:] == ["--port", "8899"]


def test_the_users_own_settings_stay_in_force() -> None:
    own = {"JUPYTER_CONFIG_PATH": "mine", "JUPYTERLAB_WORKSPACES_DIR": "mine too", "HOME": "x"}
    assert lab.environment(own) == {**own, "JUPYTER_CONFIG_PATH": f"{lab.SETTINGS}{os.pathsep}mine"}


@pytest.mark.parametrize(("command", "folder"), [("lab", "work"), ("edit", "notebooks")])
def test_lab_opens_the_copies_and_edit_the_notebooks(course: Path, command: str, folder: str, monkeypatch) -> None:
    served = []
    monkeypatch.setattr(lab, "serve", lambda *what: served.append(what) or 0)
    assert commands.main([command, "--no-browser"], course) == 0
    assert served == [(course / folder, ["--no-browser"])]
    assert (course / "work").exists() == (command == "lab")


def ask(url: str, patience: float = 30) -> str:
    """What the server answers; on a busy machine it may tell its address before it listens."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_the_server_keeps_its_token_and_asks_nobody_for_news(course: Path, tmp_path: Path) -> None:
    own = {name: str(tmp_path / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    log = tmp_path / "log"
    started = lab.command(course / "notebooks", ["--no-browser", "--port=0"], is_root=True)
    with log.open("w") as said:
        server = subprocess.Popen(started, env=lab.environment({**os.environ, **own}), stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + 60
        while not (found := ADDRESS.search(log.read_text())):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        address, page, token = found.groups()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(f"{address}/api/contents")
        assert "03_strides_and_views.ipynb" in ask(f"{address}/api/contents?token={token}")
        assert '"news": {"disabled": true}' in ask(f"{address}{page}?token={token}")
        assert json.loads(ask(f"{address}/lab/api/update?token={token}")) == {"notification": None}
        notices = f"{address}/lab/api/settings/@jupyterlab/apputils-extension:notification?token={token}"
        asked = json.loads(ask(notices))["schema"]["properties"]
        assert (asked["fetchNews"]["default"], asked["checkForUpdates"]["default"]) == ("false", False)
    finally:
        server.terminate()
        server.wait(30)
