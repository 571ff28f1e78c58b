"""A learner's copies of the notebooks, in `work/`, without outputs: an answer must not stand below its question.

An edited copy is never overwritten.

`work/.laid.json` remembers what each copy looked like when it was laid. A copy counts as edited when a cell's source
differs from that; outputs do not count, so running a notebook does not edit it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

MEMORY = ".laid.json"
CONTINUES = {"slide_type": "-"}  # a cell that belongs to the slide above it; saying nothing means the same


class Refusal(Exception):
    """What was asked for cannot be done; the message is one sentence that says what to do."""


def lay_all(notebooks: Path, work: Path) -> list[str]:
    """Lay each notebook that `work` lacks, renew untouched copies of older versions; returns what there is to say."""
    said, laid = [], 0
    with writable(work):
        work.mkdir(parents=True, exist_ok=True)
        remembered = recall(work)
        for shipped in shipped_in(notebooks):
            copy, sources = work / shipped.name, fingerprint(shipped)
            if place(shipped, copy):
                laid += 1
            elif sources in (remembered.get(copy.name, sources), fingerprint(copy)):
                pass  # nothing new has come; where a copy began is unknown once the memory is lost
            elif remembered[copy.name] == fingerprint(copy):
                place(shipped, copy, overwrite=True)
                said.append(f"{copy.stem}: renewed. A new version has come, and you had not changed yours.")
            else:
                said.append(
                    f"{copy.stem}: a new version has come. Yours has your answers and stays; "
                    f"`make fresh NB={copy.name[:2]}` lays the new one and keeps yours beside it."
                )
                continue
            remembered[copy.name] = sources
        remember(work, remembered)
    if laid:
        said.insert(0, f"{laid} notebook{'s' * (laid > 1)} laid in {work.name}/, for you to write in.")
    return said


def begin_again(notebooks: Path, work: Path, which: str, now: datetime | None = None) -> str:
    """Lay notebook `which` ("5", "05" or its name) anew; an edited copy is kept under a dated name."""
    shipped = find(notebooks, which)
    copy, kept = work / shipped.name, None
    with writable(work):
        work.mkdir(parents=True, exist_ok=True)
        remembered = recall(work)
        if copy.exists() and fingerprint(copy) not in (remembered.get(copy.name), fingerprint(shipped)):
            kept = set_aside(copy, now or datetime.now())
        place(shipped, copy, overwrite=True)
        remember(work, {**remembered, copy.name: fingerprint(shipped)})
    return f"{copy.stem} is fresh." + (f" Your edited copy is now {kept.name}." if kept else "")


def shipped_in(notebooks: Path) -> list[Path]:
    """The course's notebooks in their order."""
    found = sorted(notebooks.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise Refusal(f"{notebooks} holds no notebooks: install course_lib from its checkout (pip install -e .).")
    return found


def find(notebooks: Path, which: str, target: str = "fresh") -> Path:
    """The notebook with this number or name; `target` is the make target of the example in the refusal."""
    wanted = which.zfill(2) if which.isdecimal() else Path(which).stem
    for path in shipped_in(notebooks):
        if wanted in (path.name[:2], path.stem):
            return path
    numbers = ", ".join(path.name[:2] for path in shipped_in(notebooks))
    raise Refusal(f"There is no notebook {which!r}. There are {numbers}: for example `make {target} NB={numbers[:2]}`.")


def fingerprint(notebook: Path) -> str:
    """Tells two versions of a notebook apart by their cells' kinds and sources alone."""
    content = notebook.read_bytes()
    try:
        cells = json.loads(content)["cells"]
        content = json.dumps([(cell["cell_type"], "".join(cell["source"])) for cell in cells]).encode()
    except (ValueError, KeyError, TypeError):
        pass  # a damaged copy: every byte counts, so it is never taken for an untouched one
    return hashlib.sha256(content).hexdigest()


def place(shipped: Path, copy: Path, overwrite: bool = False) -> bool:
    """Put the whole of `shipped` at `copy`, or nothing; False where `copy` exists and stays."""
    if copy.exists() and not overwrite:
        return False
    beside = copy.with_name(f".{copy.name}.{os.getpid()}")
    try:
        beside.write_bytes(without_outputs(shipped.read_bytes()))  # and writable, even if `shipped` is not
        if overwrite:
            beside.replace(copy)
            return True
        try:
            os.link(beside, copy)  # unlike a rename, this fails where a copy has appeared meanwhile
        except FileExistsError:
            return False
        except OSError:  # a disk without hard links
            beside.replace(copy)
        return True
    finally:
        beside.unlink(missing_ok=True)


def without_outputs(notebook: bytes) -> bytes:
    """The notebook as if it had not been run: the learner predicts first, and then runs the cell that answers."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
        metadata = cell.get("metadata", {})
        if metadata.get("slideshow") == CONTINUES:  # jupyterlab-slideshow leaves out cells that say so
            del metadata["slideshow"]
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def set_aside(copy: Path, now: datetime) -> Path:
    """Rename an edited copy to a dated name that nothing has yet."""
    stem, count = f"{copy.stem} (kept {now:%Y-%m-%d %H.%M.%S}", 1
    while True:
        kept = copy.with_name(f"{stem}{f', {count}' if count > 1 else ''}).ipynb")
        try:
            kept.touch(exist_ok=False)  # claims the name
        except FileExistsError:
            count += 1
        else:
            return copy.replace(kept)


def recall(work: Path) -> dict[str, str]:
    """The fingerprint that each copy had when it was laid, by file name."""
    try:
        remembered = json.loads((work / MEMORY).read_text(encoding="utf-8"))
        return remembered if isinstance(remembered, dict) else {}
    except (OSError, ValueError):
        return {}


def remember(work: Path, laid: dict[str, str]) -> None:
    """Write down what `recall` returns."""
    if laid != recall(work):
        beside = work / f"{MEMORY}.{os.getpid()}"
        beside.write_text(json.dumps(laid, indent=1, sort_keys=True), encoding="utf-8")
        beside.replace(work / MEMORY)


@contextmanager
def writable(work: Path) -> Iterator[None]:
    """Turns what the disk refuses into one sentence."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"{work} cannot be written ({error.strerror}): make room, give yourself the right to write there, or copy "
            "the course to a folder of your own."
        ) from None
