"""Makes `.venv`: installs requirements.txt and this package into it, once. Standard library only.

The stamp `.venv/set-up.json` says what the environment was made from and what lies in it. A second run compares and
does nothing. Where something is missing or the requirements have changed, pip adds what is missing. An environment
that is damaged or was moved is made anew.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from course_lib.classroom import bootstrap
from course_lib.classroom.troubles import Trouble, check_machine, check_space, explain

ROOT = Path(__file__).resolve().parents[2]
BIG_MB = 50  # a download of this size gets a line of its own


def main(arguments: list[str]) -> int:
    """The command line: `--exact` asks for an environment of the very Python that runs this."""
    try:
        set_up(ROOT, exact="--exact" in arguments)
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        return 1
    except OSError as error:
        print(explain(str(error), ROOT), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to go on.", file=sys.stderr)
        return 130
    return 0


def set_up(root: Path, exact: bool = False) -> None:
    """Leave a complete environment in `root/.venv`, or raise Trouble with the sentence that helps."""
    wanted = f"{sys.version_info[0]}.{sys.version_info[1]}" if exact else None
    if state_of(root, wanted) == "ready":
        return
    check_machine()
    with one_at_a_time(root):
        state = state_of(root, wanted)  # another set-up may have finished while this one waited
        if state == "ready":
            return
        check_space(root)
        if state != "usable":
            make_venv(root)
        install(root)
    print(f"Ready: .venv with Python {version_of(root)}.", flush=True)


def state_of(root: Path, wanted: str | None = None) -> str:
    """What `.venv` is: "none", "ready", "usable" (whole, but not all that is required) or "broken".

    `wanted`: the Python version that it must have, such as "3.12"; None stands for any that suits.
    """
    if not os.path.lexists(root / ".venv"):
        return "none"
    version = version_of(root)
    if version is None or wanted not in (None, version) or not bootstrap.suits(tuple(map(int, version.split(".")))):
        return "broken"
    try:
        stamp = json.loads(stamp_of(root).read_text(encoding="utf-8"))
        if stamp["root"] != str(root) or stamp["python"] != version:  # moved, or its Python was replaced
            return "broken"
        if stamp["recipe"] == recipe(root) and set(stamp["holds"]) <= set(content(root)):
            return "ready"
    except (OSError, ValueError, KeyError, TypeError):  # no stamp: made by hand, or not finished
        pass
    return "usable" if is_whole(root) else "broken"


def recipe(root: Path) -> str:
    """A fingerprint of what decides the content of the environment; pytest's and ruff's settings do not."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [(root / "requirements.txt").read_text(encoding="utf-8"), settings["project"], settings["build-system"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def content(root: Path) -> list[str]:
    """What lies on top of the environment's folders. To lose one of these is damage; others are the user's own."""
    venv = root / ".venv"
    found = {path.relative_to(venv).as_posix() for folder in (scripts_of(root), *packages_of(root))
             for path in folder.iterdir()}
    return sorted(name for name in found if not name.split("/")[-1].startswith(("pip", "__pycache__")))


def is_whole(root: Path) -> bool:
    """Whether pip runs and each file that it has installed is there."""
    if run(root, "-m", "pip", "--version") is None:
        return False
    for package in distributions(path=list(map(str, packages_of(root)))):
        if not package.files:  # the list of files is what pip writes last
            return False
        if not all(file.locate().exists() for file in package.files if "__pycache__" not in file.parts):
            return False
    return True


def version_of(root: Path) -> str | None:
    """The environment's Python, such as "3.11", or None where it does not run."""
    answer = run(root, "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    return answer and answer.strip()


def run(root: Path, *arguments: str) -> str | None:
    """What the environment's Python prints, or None where it fails."""
    try:
        command = [str(python_of(root)), "-I", *arguments]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def make_venv(root: Path) -> None:
    """An empty environment, in place of whatever `.venv` is."""
    venv = root / ".venv"
    if os.path.lexists(venv):
        print("The environment in .venv is damaged, moved or of another Python: making it anew.", flush=True)
        if venv.is_dir() and not venv.is_symlink():
            shutil.rmtree(venv)
        else:
            venv.unlink()
    # Where .venv itself is activated, sys.executable lies inside what was removed a moment ago.
    base = getattr(sys, "_base_executable", None) or sys.executable
    print(f"Making the environment .venv with Python {sys.version.split()[0]}.", flush=True)
    follow([base, "-I", "-m", "venv", str(venv)], root)


def install(root: Path) -> None:
    """requirements.txt, then this package as an editable install; nothing outside .venv is touched."""
    stamp = stamp_of(root)
    stamp.unlink(missing_ok=True)  # until all is done, the environment does not count as ready
    pip = [str(python_of(root)), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    print("Installing what requirements.txt lists; the first time takes minutes.", flush=True)
    follow([*pip, "--progress-bar=off", "-r", "requirements.txt"], root)
    follow([*pip, "--no-deps", "--no-build-isolation", "-e", "."], root)
    made = {"root": str(root), "python": version_of(root), "recipe": recipe(root), "holds": content(root)}
    beside = stamp.with_suffix(".new")
    beside.write_text(json.dumps(made, indent=1), encoding="utf-8")
    beside.replace(stamp)


def follow(command: list[str], root: Path) -> None:
    """Run a command: its output into the log, a few lines of it on the screen, Trouble where it fails."""
    settings = {**os.environ, "PIP_USER": "0", "PYTHONIOENCODING": "utf-8"}  # no `user = true` of pip.conf's in here
    said: list[str] = []
    with log_of(root).open("a", encoding="utf-8") as log, subprocess.Popen(
        command, cwd=root, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, encoding="utf-8", errors="replace",
    ) as process:
        for line in process.stdout or ():
            log.write(line)
            said.append(line)
            if news := progress(line):
                print(f"  {news}", flush=True)
    if process.returncode:
        raise Trouble(explain("".join(said), root))


def progress(line: str) -> str | None:
    """What is worth a line on the screen in a line of pip's."""
    words = line.split()
    if words[:1] == ["Downloading"] and words[-1] in ("MB)", "GB)"):
        name, size, unit = words[1].split("/")[-1], words[-2].strip("("), words[-1].strip(")")
        return f"downloading {name} ({size} {unit})" if unit == "GB" or float(size) >= BIG_MB else None
    if line.startswith("Installing collected packages:") and "," in line:
        return f"unpacking {line.count(',') + 1} packages"
    return "the package index does not answer; pip tries again" if "Retrying (Retry(total=4" in line else None


@contextlib.contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Two set-ups in one checkout would trip over each other: the second waits here."""
    log_of(root).parent.mkdir(exist_ok=True)
    with log_of(root).open("a", encoding="utf-8") as log:
        with contextlib.suppress(ImportError):  # Windows has no fcntl, some network disks no locks: go on without
            import fcntl

            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("Another set-up is at work in this folder: waiting for it.", flush=True)
                fcntl.flock(log, fcntl.LOCK_EX)
            except OSError:
                pass
        log.truncate(0)
        yield


def log_of(root: Path) -> Path:
    """Everything that pip said in the last set-up."""
    return root / "build" / "set-up.log"


def stamp_of(root: Path) -> Path:
    """What the environment was made from; written last."""
    return root / ".venv" / "set-up.json"


def packages_of(root: Path) -> list[Path]:
    """The folder that pip installs to, in a list; an empty one where there is none."""
    venv = root / ".venv"
    return [*venv.glob("lib/python3.*/site-packages"), *venv.glob("Lib/site-packages")]


def scripts_of(root: Path) -> Path:
    """The folder of the environment's commands."""
    return root / ".venv" / ("Scripts" if os.name == "nt" else "bin")


def python_of(root: Path) -> Path:
    """The environment's Python."""
    return scripts_of(root) / ("python.exe" if os.name == "nt" else "python")
