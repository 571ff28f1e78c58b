"""`loaded_pages` says of each page whether it is in memory: what was touched is, what was not is not."""
import mmap
import sys

import numpy as np
import pytest

from course_lib import pages
from course_lib.data import open_tokens
from course_lib.pages import loaded_pages

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a page may be there for others")


@pytest.fixture
def tokens(tmp_path):
    with (tmp_path / "sparse.bin").open("wb") as file:
        file.truncate(2**30 + 6)
    return open_tokens(tmp_path / "sparse.bin")


def test_there_is_one_for_each_page_that_the_array_lies_on(tokens):
    each = mmap.PAGESIZE // 2  # tokens on a page
    assert len(loaded_pages(tokens)) == 2**30 // mmap.PAGESIZE + 1
    assert len(loaded_pages(tokens[:1])) == len(loaded_pages(tokens[:each])) == len(loaded_pages(tokens[7:each])) == 1
    assert len(loaded_pages(tokens[each - 1 : each + 1])) == 2
    two = tokens[each : 3 * each]
    assert len(loaded_pages(two[::5])) == len(loaded_pages(two[::-1])) == 2
    assert loaded_pages(tokens[:0]).shape == (0,)
    assert loaded_pages(np.ones((300, 400))).all(), "it was written to"


@linux
def test_exactly_what_is_touched_is_loaded(tokens):
    each, wanted = mmap.PAGESIZE // 2, {900, 5000, 5001, 70_000}
    assert not loaded_pages(tokens).any()
    for page in wanted:
        int(tokens[page * each + page % each])
    assert set(np.flatnonzero(loaded_pages(tokens)).tolist()) == wanted
    assert loaded_pages(tokens[900 * each : 902 * each]).tolist() == [True, False]
    assert set(np.flatnonzero(loaded_pages(tokens)).tolist()) == wanted, "looking loads nothing"


@linux
def test_the_way_of_other_systems_sees_what_is_touched(tokens, monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "_PAGEMAP", tmp_path / "not there")
    int(tokens[2**28])
    found = loaded_pages(tokens)
    assert found[2**29 // mmap.PAGESIZE] and found.mean() < 0.001
    with pytest.raises(OSError, match="does not tell"):
        pages._of_memory(0, 1)


@linux
@pytest.mark.parametrize("shown", [b"", bytes(8), None])
def test_a_container_that_hides_the_table_of_pages_is_asked_in_another_way(tokens, monkeypatch, tmp_path, shown):
    table = tmp_path / "pagemap"
    table.write_bytes(shown or b"")
    if shown is None:
        table.unlink()
        table.mkdir()  # opening it fails, also for root
    monkeypatch.setattr(pages, "_PAGEMAP", table)
    int(tokens[2**28])
    found = loaded_pages(tokens)
    assert len(found) == -(-tokens.nbytes // mmap.PAGESIZE) and found[2**29 // mmap.PAGESIZE]


def test_only_arrays_have_pages():
    with pytest.raises(TypeError, match="array is a list"):
        loaded_pages([1, 2])
