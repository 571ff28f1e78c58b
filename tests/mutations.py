"""Change stored outputs by one character, and see during a run of the suite whether each change alone is noticed.

As a pytest plugin (`-p mutations`) it takes each cell that the suite has run, changes its outputs in one place after
the other, and asks the suite's own comparison.
"""
from collections.abc import Iterator
from copy import deepcopy

import pytest
from nbformat import NotebookNode

NEVER_TEXT = ("image/png", "application/vnd.jupyter.widget-view+json")


def text_fields(outputs: list[NotebookNode]) -> Iterator[tuple[dict, str]]:
    """Every place where a text is stored, as (container, key)."""
    for output in outputs:
        yield from ((output, key) for key in ("text", "ename", "evalue") if output.get(key))
        data = output.get("data", {})
        yield from ((data, mime) for mime in data if mime not in NEVER_TEXT and data[mime])


def change(text: str, place: int) -> str:
    """The text with another character at `place`."""
    return text[:place] + ("y" if text[place] == "x" else "x") + text[place + 1 :]


def single_changes(outputs: list[NotebookNode]) -> Iterator[tuple[str, list[NotebookNode]]]:
    """Copies of the outputs that differ in one character: the first, the middle and the last one of each text."""
    for number, (holder, key) in enumerate(text_fields(outputs)):
        size = len(holder[key])
        for place in sorted({0, size // 2, size - 1}):
            changed = deepcopy(outputs)
            holder_in_copy, _ = list(text_fields(changed))[number]
            holder_in_copy[key] = change(holder[key], place)
            yield f"{key}[{place}]", changed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    if call.when == "call" and getattr(item, "test_outputs", None) is not None:
        fresh = item.test_outputs
        for place, changed in single_changes(fresh):
            noticed = not item.compare_outputs(fresh, changed)
            item.user_properties.append(("mutation", f"{'noticed' if noticed else 'MISSED'} {place}"))
    return (yield)
