"""Starts JupyterLab on a notebook: on localhost, with its token, without news or checks for updates."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SETTINGS = Path(__file__).parent / "jupyter"
FIRST = "00_start_here.ipynb"


def command(folder: Path, arguments: list[str], is_root: bool, opened: str = FIRST) -> list[str]:
    """The command line that serves `folder` and opens a notebook; `arguments` come last and are JupyterLab's own."""
    return [
        sys.executable, "-m", "jupyterlab",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{opened}",
        *(["--allow-root"] if is_root else []),
        *arguments,
    ]  # fmt: skip


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Our settings (jupyter/) come before the user's own, which stay in force for all else."""
    paths = [str(SETTINGS), variables.get("JUPYTER_CONFIG_PATH", "")]
    # Which notebooks were open last is remembered in .venv: not among the user's other work, and gone with it.
    return {
        **variables,
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths)),
        "JUPYTERLAB_WORKSPACES_DIR": variables.get("JUPYTERLAB_WORKSPACES_DIR") or str(Path(sys.prefix) / "workspaces"),
    }


def serve(
    folder: Path, arguments: list[str], opened: str = FIRST, variables: Mapping[str, str] | None = None
) -> int:
    """Become JupyterLab on `folder`; on Windows, run it and return its exit status."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root:
        print("You are root: JupyterLab runs as root too (--allow-root), on localhost only.", file=sys.stderr)
    started = command(folder, arguments, is_root, opened)
    settings = environment(os.environ if variables is None else variables)
    if os.name == "nt":
        return subprocess.call(started, env=settings)
    sys.stdout.flush()
    os.execve(sys.executable, started, settings)  # so that signals reach JupyterLab itself
