"""The learner's logbook: which exercises are solved and what was guessed, in one small JSON file.

It lies in the user's data directory; the environment variable COURSE_PROGRESS names another file. A file that cannot be
read is set aside, never overwritten, and a file that cannot be written costs the learner nothing but the memory of it.
"""

import json
import os
import tempfile
from pathlib import Path

SECTIONS = ("solved", "guesses")


def path() -> Path:
    """Where the logbook lies."""
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("pytorch-foundations", appauthor=False) / "progress.json"


def read(section: str) -> dict[str, object]:
    """One section of the logbook ("solved" or "guesses"); empty where there is no readable file."""
    return _load(path())[section]


def record(section: str, key: str, value: object) -> bool:
    """Write one entry, atomically. False where the file cannot be written."""
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not _is_logbook(target):
            _set_aside(target)
        book = _load(target)
        if book[section].get(key) == value:
            return True
        book[section][key] = value
        _write(target, json.dumps(book, indent=1, ensure_ascii=True, sort_keys=True))
    except (OSError, ValueError, TypeError):
        return False
    return True


def _load(source: Path) -> dict[str, dict[str, object]]:
    try:
        book = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        book = {}
    found = {name: book.get(name) for name in SECTIONS} if isinstance(book, dict) else {}
    return {name: found[name] if isinstance(found.get(name), dict) else {} for name in SECTIONS}


def _is_logbook(source: Path) -> bool:
    try:
        book = json.loads(source.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(book, dict) and all(isinstance(book.get(name, {}), dict) for name in SECTIONS)


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
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
