"""What a test run needs beyond nbval: a logbook for each test, and cells that nbval would pass without comparing them.

nbval 0.11 runs a cell that was never executed and compares nothing, drops text before a carriage return, never looks at
pictures, and ignores in which order outputs of different kinds come. Here each of these fails. And a kernel that dies
before it answers, which is no fault of the notebook, is started again.
"""
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

_scratch = pytest.StashKey[tempfile.TemporaryDirectory]()
_number = count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Nothing of the user's: neither their logbook nor their IPython settings. One thread for each process.

    Several processes run side by side; with a team of threads each, those that hold a core wait for those that do not.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers and kernels start later, and read it when they load torch
    config.stash[_scratch] = tempfile.TemporaryDirectory(prefix="course-tests-", ignore_cleanup_errors=True)
    os.environ["IPYTHONDIR"] = str(Path(config.stash[_scratch].name, "ipython"))
    import nbval.plugin  # not above: pytest has not seen it yet

    start = nbval.plugin.RunningKernel
    if not isinstance(start, partial):  # a test may run pytest within pytest
        nbval.plugin.RunningKernel = partial(_start_patiently, start)
    _new_logbook(config)


def _start_patiently(start: type, *arguments: object, **named: object) -> object:
    from course_lib.publishing.notebooks import start_patiently

    return start_patiently(lambda: start(*arguments, **named))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    config.stash[_scratch].cleanup()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A new logbook for each test. A notebook's kernel starts with its first cell, so it keeps the one of that cell."""
    _new_logbook(item.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Around nbval's run of a cell: refuse what it would not compare, then compare what it leaves out."""
    cell = getattr(item, "cell", None)
    if cell is None or not hasattr(item, "compare_outputs"):
        return (yield)
    for complaint in uncompared(cell):
        item.raise_cell_error(complaint)
    result = yield
    stored, fresh = kinds(cell.outputs), kinds(item.test_outputs)
    if item.options["check"] and stored != fresh:
        item.raise_cell_error(f"The outputs stored are {stored}, running the cell gives {fresh}.")
    return result


def uncompared(cell) -> Iterator[str]:
    """Why nbval would pass this cell without looking at all that it stores."""
    if cell.execution_count is None:
        yield "This cell was committed without being executed, so nothing would be compared: run `make notebooks`."
    if "skip" in " ".join(cell.metadata.get("tags", ())) or "NBVAL_" in cell.source:
        yield "This cell asks to be skipped or passed over; the only tag for that is nbval-ignore-output."
    for output in cell.outputs:
        if set(output.get("text", "")) & {"\r", "\b"}:
            yield "This cell's output moves the cursor back (\\r or \\b); the text before it would not be compared."
        if output.get("data") and "text/plain" not in output.data:
            yield f"This cell's output has no text/plain beside {sorted(output.data)}: nothing would be compared."


def kinds(outputs: list) -> list[tuple[str, ...]]:
    """What kinds of outputs there are, in order, e.g. [("stream", "stdout"), ("execute_result", "text/plain")]."""
    found: list[tuple[str, ...]] = []
    for output in outputs:
        data = sorted(mime for mime in output.get("data", ()) if "widget" not in mime)
        kind = (output.output_type, *([output.name] if output.output_type == "stream" else data))
        if output.output_type != "stream" or kind not in found:
            found.append(kind)
    return found


def _new_logbook(config: pytest.Config) -> None:
    os.environ["COURSE_PROGRESS"] = str(Path(config.stash[_scratch].name, f"progress-{next(_number)}.json"))
