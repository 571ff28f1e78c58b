"""What can stop the set-up, each as one sentence that says what to do. Standard library only."""
from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

GIB = 2**30
NEEDED = 2 * GIB  # the CPU build: 1.5 GiB when installed (measured)
STORY = "The whole story is in build/set-up.log."
CUDA_BUILD = "torch's CUDA build takes several GB more than its CPU build; README.md says how to take that one"


class Trouble(Exception):
    """The set-up cannot go on; the message says what to do."""


def check_machine() -> None:
    """Raise Trouble where no environment can be made, whatever pip tries."""
    system, machine = platform.system(), platform.machine()
    if system == "Darwin" and machine == "x86_64":
        raise Trouble(
            "torch 2.13.0 has no build for Intel Macs, nor for an Intel Python on an Apple-silicon Mac: there, install "
            "the arm64 Python from python.org; on an Intel Mac, use a hosted JupyterHub or Binder (see README.md)."
        )
    if sys.maxsize < 2**32:
        raise Trouble("This is a 32-bit Python, and torch has no build for it: install a 64-bit one from python.org.")
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise Trouble(no_venv())


def check_space(root: Path) -> None:
    """Raise Trouble where even the smallest installation does not fit."""
    free = shutil.disk_usage(root).free
    if free < NEEDED:
        raise Trouble(
            f"The disk of {root} is too full: {free / GIB:.1f} GiB are free, the course needs {NEEDED / GIB:.0f} GiB. "
            f"Make room, or copy the course to another disk ({CUDA_BUILD})."
        )


def explain(output: str, root: Path) -> str:
    """The sentence for a command that failed, from what it printed."""
    if re.search(r"No space left on device|Disk quota exceeded|not enough space on the disk", output):
        return no_space(root)
    if "ensurepip is not available" in output or "No module named ensurepip" in output:
        return no_venv()
    if blocked := re.search(r"(?:Permission denied|Read-only file system|Access is denied):? ?'?([^'\n]*)", output):
        return f"{blocked[1] or root} cannot be written: copy the course to a folder of your own and start there."
    if re.search(r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError", output):
        return (
            "The package index shows a certificate that this machine does not trust, as behind a company's proxy: ask "
            "its administrator for the certificate file, then run again with PIP_CERT=/path/to/that/file in front."
        )
    if re.search(r"connection broken by|Max retries exceeded|Read timed out|NewConnectionError|ConnectTimeout", output):
        return (
            "The package index cannot be reached: connect to the network (behind a proxy, set HTTPS_PROXY) and run the "
            "same command again; what has been downloaded is kept."
        )
    if missing := re.search(r"No matching distribution found for (\S+)", output):
        return (
            f"pip finds no {missing[1]} for the Python in .venv and {platform.system()} on {platform.machine()}: this "
            f"kind of machine has no build of it, or pip is set to an index without it (see `pip config list`). {STORY}"
        )
    return f"The set-up stopped: {last_words(output)} {STORY}"


def no_venv() -> str:
    """The sentence for a Python that comes without venv, as on Debian."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (
        f"This Python ({sys.executable}) has no venv module. On Debian and Ubuntu, install the package "
        f"python{version}-venv; elsewhere, take a Python from python.org and name it: make lab PYTHON=/path/to/python3"
    )


def no_space(root: Path) -> str:
    """The sentence for a full disk; names the fullest that an installation writes to."""
    places = {"the course": root, "temporary files (another folder: TMPDIR=/path)": Path(tempfile.gettempdir())}
    what, where = min(places.items(), key=lambda place: shutil.disk_usage(place[1]).free)
    return (
        f"The disk is full: {shutil.disk_usage(where).free / GIB:.1f} GiB are left in {where}, the place for {what}. "
        f"Make room and run the same command again ({CUDA_BUILD})."
    )


def last_words(output: str) -> str:
    """The last line that says what went wrong: an ERROR of pip's if there is one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(error|fatal)\b", line, re.IGNORECASE)]
    found = (errors or lines or ["no reason was given"])[-1]
    return found if found.endswith((".", "!")) else f"{found}."
