"""JupyterLab as `make lab` starts it, on a copy of the course, and a real Chromium to look at it."""
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_lib.publishing.notebooks import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
QUIET = [  # nothing but the page: no GPU, no first-run screens, no calls home
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests in this folder need a browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class Lab:
    """A running JupyterLab."""

    url: str
    token: str
    folder: Path  # the learner's copies

    def address(self, filename: str) -> str:
        return f"{self.url}/lab/tree/{filename}?token={self.token}&reset"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serve(tmp_path_factory.mktemp("course"), "work", "lab") as served:
        yield served


@contextmanager
def serve(root: Path, folder: str, *command: str) -> Iterator[Lab]:
    """JupyterLab on a copy of the course in `root`, where the command line lays the notebooks into `folder`."""
    for name in ("course_lib", "notebooks"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = Lab(f"http://localhost:{port}", secrets.token_hex(16), root / folder)
    ours = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--no-browser"]
    ours += [f"--IdentityProvider.token={served.token}", "--LabApp.expose_app_in_browser=True"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"HOME": str(root), "PYTHONPATH": str(root), "COURSE_PROGRESS": str(root / "progress.json")}
    started = [sys.executable, "-m", "course_lib.classroom", *command, *ours]
    with open(root / "lab.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(started, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(served, server, root / "lab.log")
            yield served
        finally:
            server.kill()  # asked to end in peace, it would wait for every kernel
            server.wait()


def _wait_for(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{lab.url}/api?token={lab.token}", timeout=10).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')}")


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (looked for chromium and google-chrome)")
    playwright = pytest.importorskip("playwright.sync_api")
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *as_root])
        yield started
        started.close()
