"""The Makefile: what it lists, which Python it hands on, and what it says where there is none."""
import os
import shutil
import subprocess

import pytest

from course_lib.publishing.notebooks import ROOT


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("there is no make on this machine")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=ours, capture_output=True, text=True)


def test_make_alone_lists_every_target() -> None:
    told = make()
    assert told.returncode == 0
    targets = "lab edit fresh present slides html test test-browser notebooks solutions lint bench clean help".split()
    assert not [target for target in targets if f"make {target} " not in told.stdout]


def test_make_without_python_says_what_to_install() -> None:
    told = make("lab", "PYTHON=no-such-python")
    assert told.returncode != 0
    assert "There is no no-such-python here. Install Python 3.11 to 3.14" in told.stderr.splitlines()[0]


def test_make_names_the_python_only_if_it_was_chosen() -> None:
    assert "--exact" not in make("-n", "set-up").stdout
    assert '"python3.12" course_lib/classroom/bootstrap.py --exact' in make("-n", "set-up", "PYTHON=python3.12").stdout


def test_clean_leaves_the_learners_work() -> None:
    assert make("-n", "clean").stdout.split() == ["rm", "-rf", ".venv", "build"]
