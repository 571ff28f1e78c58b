"""Run the notebook suite on copies, as `pytest --nbval` runs it on the originals, and read what became of each cell."""
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.publishing.notebooks import ROOT

HERE = Path(__file__).parent
OURS = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT")


@dataclass
class CellRun:
    """One code cell: its failure's text ("" where it passed) and what a plugin noted about it."""

    failure: str = ""
    notes: list[str] = field(default_factory=list)


def run_suite(folder: Path, *options: str) -> dict[str, list[CellRun]]:
    """The suite on all notebooks of a folder, with this project's settings: for each notebook its cells in order."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", f"--rootdir={folder}", "--color=no"]
    command += ["-n0", "-p", "no:cacheprovider", "-p", "course_lib.publishing.pytest_plugin", f"--junitxml={report}"]
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    environment["COURSE_PROGRESS"] = str(folder / "of-the-user.json")  # which the plugin has to replace
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), environment.get("PYTHONPATH", "")])
    command += [*options, str(folder)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr  # 0: all passed, 1: some failed; others: never ran
    return _read(report)


def _read(report: Path) -> dict[str, list[CellRun]]:
    runs: dict[str, list[CellRun]] = {}
    for case in ET.parse(report).iter("testcase"):
        failures = [part.text or part.get("message", "") for part in case if part.tag in ("failure", "error")]
        notes = [found.get("value", "") for found in case.iter("property")]
        name = case.get("classname", "").removesuffix(".ipynb")
        runs.setdefault(name, []).append(CellRun("\n".join(failures), notes))
    return runs
