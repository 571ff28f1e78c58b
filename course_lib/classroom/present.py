"""A lecture with live cells: one notebook in JupyterLab's slideshow, on a copy that is thrown away.

What is typed in the hall stays in build/present/, and so do JupyterLab's settings: the next lecture begins afresh, and
neither the course's notebooks nor the presenter's own copies, guesses and settings know of it.
"""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from course_lib.classroom import desk, lab

STATE = ".lab"
SETTINGS = {
    "jupyterlab-slideshow/plugin": {"active": True},  # begins with the slideshow …
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # all cells are there to be gone to
    "@jupyterlab/apputils-extension/themes": {  # … in letters for a hall
        "overrides": {"code-font-size": "18px", "content-font-size1": "19px"}
    },
}
STARTUP = """from course_lib.classroom.hall import run_earlier_cells
run_earlier_cells(get_ipython(), {path!r})
"""


def begin(notebooks: Path, folder: Path, which: str) -> Path:
    """Lay a fresh copy of notebook `which`, without outputs, and forget the last lecture; returns the copy."""
    shipped = desk.find(notebooks, which, "present")
    copy, state = folder / shipped.name, folder / STATE
    with desk.writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if state.exists():
            shutil.rmtree(state)
        desk.place(shipped, copy, overwrite=True)
        for name, settings in SETTINGS.items():
            write(state / "settings" / f"{name}.jupyterlab-settings", json.dumps(settings))
        write(state / "ipython" / "profile_default" / "startup" / "hall.py", STARTUP.format(path=str(copy)))
    return copy


def write(path: Path, text: str) -> None:
    """A file, and the folders on the way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def environment(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Where JupyterLab, IPython and the lesson keep what they note during the lecture."""
    state = folder / STATE
    return {
        **variables,
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "IPYTHONDIR": str(state / "ipython"),
        "COURSE_PROGRESS": str(state / "progress.json"),
    }


def serve(copy: Path, arguments: list[str]) -> int:
    """Become JupyterLab on the copy; on Windows, run it and return its exit status."""
    return lab.serve(copy.parent, arguments, copy.name, environment(copy.parent, os.environ))
