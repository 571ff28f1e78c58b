"""Restart-and-run-all gives the same bytes: no network, the C locale, an unusual path, a read-only folder.

One run serves all of it: `canonical --check` executes copies of the notebooks under these conditions and compares the
files byte for byte. That also shows that a second `make notebooks` changes nothing.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bare_room import in_bare_room, namespaces

from course_lib.publishing.notebooks import ROOT, find_notebooks

NAMES = [path.name for path in find_notebooks([])]
PROBE = """
import locale, os, socket, sys
print("locale", locale.setlocale(locale.LC_ALL))
try:
    open(os.path.join(sys.argv[1], "written"), "w").close()
except OSError as error:
    print("file", type(error).__name__)
for call in (lambda: socket.socket().connect(("192.0.2.1", 80)), lambda: socket.getaddrinfo("example.org", 80)):
    try:
        call()
    except OSError as error:
        print("network", error)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course (notebooks and helpers) at a path with a space and letters beyond ASCII."""
    root = tmp_path_factory.mktemp("anywhere") / "Übung 数 mit Leerzeichen"
    for name in ("notebooks", "course_lib"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    return root / "notebooks"


def there(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder.parent), "HOME": str(folder.parents[1])}
    return in_bare_room(folder, [sys.executable, *command], environment)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def run(folder: Path) -> subprocess.CompletedProcess[str]:
    before = contents(folder)
    ended = there(folder, "-m", "course_lib.publishing.canonical", "--check")
    assert contents(folder) == before, "a notebook wrote into its folder"
    return ended


def test_the_room_is_as_bare_as_it_claims(folder: Path) -> None:
    said = there(folder, "-c", PROBE, str(folder)).stdout.splitlines()
    assert said[0] == "locale C"
    assert [line for line in said if line.startswith("network")] == [
        "network there is no network here: ('192.0.2.1', 80)",
        "network there is no network here: example.org",
    ]
    if namespaces() or os.geteuid() != 0:  # no permission stops root
        assert "file " in said[1]


def test_the_copies_use_their_own_helpers(folder: Path) -> None:
    said = there(folder, "-c", "import course_lib; print(ascii(course_lib.__file__))").stdout
    assert said == ascii(str(folder.parent / "course_lib" / "__init__.py")) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_runs_to_the_same_bytes(name: str, run: subprocess.CompletedProcess[str]) -> None:
    assert f"{name}: unchanged" in run.stdout, run.stdout + run.stderr

