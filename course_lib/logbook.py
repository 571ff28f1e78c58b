"""The learner's logbook: which exercises are solved and what was guessed, in one small JSON file.

It lies in the user's data directory; the environment variable COURSE_PROGRESS names another file. A file that cannot be
read is set aside, never overwritten, and a file that cannot be written costs the learner nothing but the memory of it.
What is no plain file (a device, a pipe, a folder) is left alone.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECTIONS = ("solved", "guesses")
LARGEST = 1_000_000  # bytes; no logbook grows so large


def path() -> Path:
    """Where the logbook lies."""
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_data_path

    return user_data_path("pytorch-foundations", appauthor=False) / "progress.json"


def read(section: str) -> dict[str, object]:
    """One section of the logbook ("solved" or "guesses"); empty where there is no readable file."""
    found = (_load(path()) or {}).get(section)
    return found if isinstance(found, dict) else {}


def record(section: str, key: str, value: object) -> bool:
    """Write one entry, atomically. False where the file cannot be written."""
    try:
        target = path().resolve()  # through a link, so that the link stays one
        if target.exists() and not target.is_file():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            book = _load(target)
            if book is None:
                _set_aside(target)
                book = {}
            entries = book.setdefault(section, {})
            if entries.get(key, _load) != value:
                entries[key] = value
                _write(target, json.dumps(book, indent=1, ensure_ascii=True, sort_keys=True))
    except (OSError, ValueError, TypeError, RuntimeError):
        return False
    return True


def _load(source: Path) -> dict[str, dict[str, object]] | None:
    """What the file holds, a newer version's entries too; {} where there is none, None where it is no logbook."""
    try:
        if not source.exists():
            return {}
        if not source.is_file() or source.stat().st_size > LARGEST:
            return None
        book = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    sound = isinstance(book, dict) and all(isinstance(book.get(name, {}), dict) for name in SECTIONS)
    return book if sound else None


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One process at a time; whoever finds the lock for a second takes it for one that was left behind."""
    lock, deadline = target.with_name(f"{target.name}.lock"), time.monotonic() + 1
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()


def _set_aside(source: Path) -> None:
    number = 1
    while (aside := source.with_name(f"{source.stem}.unreadable-{number}{source.suffix}")).exists():
        number += 1
    source.rename(aside)


def _write(target: Path, text: str) -> None:
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
