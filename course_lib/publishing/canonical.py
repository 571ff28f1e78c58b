"""Re-execute notebooks and write them in canonical form, so that a diff shows what an author changed and nothing else.

    python -m course_lib.publishing.canonical [--check] [PATH or NUMBER …]

A run without changes changes no byte. With `--check` nothing is written: the command names the files that would change,
shows the first lines that differ, and exits with 1.
"""
import argparse
import base64
import difflib
import hashlib
import io
import sys
import time
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.publishing.notebooks import (
    NotebookError,
    execute,
    find_notebooks,
    first_line,
    read_notebook,
    run_tool,
    where,
    write_atomically,
)

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("measured_from", "slideshow", "speaker_notes", "tags")  # all that a committed cell may carry
IGNORED = "nbval-ignore-output"
WIDGET = "application/vnd.jupyter.widget-view+json"
CHANNEL_LEVELS = 4  # of 255: pictures that differ by no more look the same; another processor may round so


def canonical(notebook: NotebookNode) -> NotebookNode:
    """An executed notebook in canonical form: a copy that depends on nothing but sources, outputs and our metadata."""
    cells = [_canonical_cell(deepcopy(cell)) for cell in notebook.cells]
    count, seen = 0, {}
    for cell in cells:
        digest = _digest(cell.cell_type, cell.source)
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        if cell.cell_type == "code":
            count += 1
            _number(cell, count)
    return nbformat.from_dict({"cells": cells, "metadata": NOTEBOOK_METADATA, "nbformat": 4, "nbformat_minor": 5})


def as_text(notebook: NotebookNode) -> str:
    """The bytes of a notebook's file: sorted keys, one line of source a line, a newline at the end."""
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def republish(path: Path) -> str:
    """The text that the notebook's file should have: refreshed stubs, executed, in canonical form."""
    stored = read_notebook(path)
    refresh_exercises(stored, path.name)
    fresh = deepcopy(stored)
    execute(fresh, path.name, path.resolve().parent)
    fresh = canonical(fresh)
    for old, new, key in zip(stored.cells, fresh.cells, source_keys(fresh), strict=True):
        if new.cell_type == "code":
            _keep_measured(old, new, key)
            _keep_pictures(old.outputs, new.outputs)
    return as_text(fresh)


def source_keys(notebook: NotebookNode) -> list[str]:
    """For each cell a digest of its source and of all code before it: what a measured output was measured from."""
    keys, before = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            before = _digest(before, cell.source)
        keys.append(before)
    return keys


def refresh_exercises(notebook: NotebookNode, name: str, attribute: str = "stub") -> list[str]:
    """Give each cell tagged `exercise` its stub (or solution) from the registry; returns the exercises' names."""
    names = []
    for index, cell in enumerate(notebook.cells):
        if "exercise" not in cell.metadata.get("tags", ()):
            continue
        asked = cell.source.rstrip().rpartition("\n")[2]
        exercise_name = asked.removeprefix("check(").removesuffix(")")
        if asked != f"check({exercise_name})" or exercise_name not in exercise_registry():
            raise NotebookError(f"{where(notebook, name, index)} is tagged exercise, but {asked!r} checks none.")
        names.append(exercise_name)
        cell.source = f"{getattr(exercise_registry()[exercise_name], attribute).rstrip()}\n\n{asked}"
    return names


def exercise_registry() -> dict:
    """All exercises of the course by name."""
    from course_lib.exercises import exercises

    return exercises()


def _canonical_cell(cell: NotebookNode) -> NotebookNode:
    metadata = {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}
    if IGNORED not in metadata.get("tags", ()):
        metadata.pop("measured_from", None)
    if "tags" in metadata:
        metadata["tags"] = sorted(set(metadata["tags"]))
    cell.metadata = nbformat.from_dict(metadata)
    cell.source = cell.source.rstrip()
    if cell.cell_type == "code":
        cell.outputs = _merged([_canonical_output(output) for output in cell.outputs])
    return cell


def _canonical_output(output: NotebookNode) -> NotebookNode:
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]  # a real one carries addresses and paths
    for mime in list(output.get("data", ())):
        if mime == WIDGET:
            del output.data[mime]
        elif mime == "image/png":
            output.data[mime] = "".join(output.data[mime].split()) + "\n"
    output.pop("transient", None)
    return output


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Text that arrived on one stream in several messages, as one output; outputs that hold nothing, dropped."""
    merged: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and merged and merged[-1].get("name") == output.name:
            merged[-1].text += output.text
        elif output.output_type not in ("display_data", "execute_result") or output.data:
            merged.append(output)
    return merged


def _number(cell: NotebookNode, count: int) -> None:
    cell.execution_count = count
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = count


def _keep_measured(old: NotebookNode, new: NotebookNode, key: str) -> None:
    """What this machine measured stays as it was while the code that measured it is the same."""
    if IGNORED in new.metadata.get("tags", ()):
        if old.outputs and old.metadata.get("measured_from") == key:
            new.outputs = _merged([_canonical_output(output) for output in deepcopy(old.outputs)])
            _number(new, new.execution_count)
        new.metadata["measured_from"] = key


def _keep_pictures(old: list[NotebookNode], new: list[NotebookNode]) -> None:
    """A picture that looks as before keeps its bytes: how pixels are packed differs from machine to machine."""
    for before, after in zip(_pictures(old), _pictures(new), strict=False):
        if same_picture(before.data["image/png"], after.data["image/png"]):
            after.data["image/png"] = _canonical_output(deepcopy(before)).data["image/png"]


def _pictures(outputs: list[NotebookNode]) -> list[NotebookNode]:
    return [output for output in outputs if "image/png" in output.get("data", ())]


def same_picture(one: str, other: str) -> bool:
    """Whether two base64-coded PNGs have the same size and, within CHANNEL_LEVELS, the same pixels."""
    from PIL import Image, ImageChops

    try:
        a, b = (Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA") for png in (one, other))
    except (OSError, ValueError):
        return False
    if a.size != b.size:
        return False
    return all(high <= CHANNEL_LEVELS for _, high in ImageChops.difference(a, b).getextrema())


def first_differences(old: str, new: str, most: int = 12) -> list[str]:
    """The first lines in which two texts differ: "-" before the old ones, "+" before the new ones, cut to fit."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]
    return [line[:120] for line in lines[:most]]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit status is 1 where a notebook fails or `--check` finds one that would change."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.publishing.canonical", description=first_line(__doc__))
    parser.add_argument("notebooks", nargs="*", metavar="PATH or NUMBER", help="default: all of notebooks/")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    options = parser.parse_args(arguments)
    status = 0
    for path in find_notebooks(options.notebooks):
        try:
            changed = _bring_up_to_date(path, options.check)
        except NotebookError as error:
            print(error, file=sys.stderr, flush=True)
            status = 1
        else:
            status |= changed and options.check
    return status


def _bring_up_to_date(path: Path, only_check: bool) -> bool:
    """Whether the notebook's file changes; says so, and writes it unless it is only to be checked."""
    began, before = time.perf_counter(), path.read_bytes()
    text = republish(path)
    changed = before != text.encode()
    if changed and not only_check:
        if path.read_bytes() != before:
            raise NotebookError(f"{path.name} was edited while it ran, so nothing was written: run this again.")
        write_atomically(path, text)
    verdict = ("would change" if only_check else "written") if changed else "unchanged"
    print(f"{path.name}: {verdict} ({time.perf_counter() - began:.1f} s)", flush=True)
    if changed and only_check:
        print("\n".join(first_differences(before.decode(), text)), flush=True)
    return changed


if __name__ == "__main__":
    run_tool(main)
