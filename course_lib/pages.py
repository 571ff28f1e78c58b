"""Which pages of a mapped file are in memory: the system loads a page when something on it is first used.

A page is the smallest portion that a system loads and maps: `mmap.PAGESIZE` bytes, 4096 on most machines.
"""
import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from course_lib.checked import checked

_PAGEMAP = Path("/proc/self/pagemap")  # Linux: eight bytes for each page of this process's addresses


@checked
def loaded_pages(array: np.ndarray) -> Bool[np.ndarray, "pages"]:
    """For each page that `array` lies on, in order, whether it is in memory.

    Linux and Windows tell which pages this process has mapped; where the system tells only which are in memory for
    whatever process (macOS), it is that. Looking loads nothing. (Of a file that is in memory already, such as one that
    was written a moment ago, Linux maps up to 15 neighbours along with the page that is touched.)

    Raises OSError where the system does not tell.
    """
    first, last = np.lib.array_utils.byte_bounds(array)  # the address of the first byte, and the one after the last
    begin, end = first // mmap.PAGESIZE, -(-last // mmap.PAGESIZE)
    if array.size == 0:
        return np.zeros(0, dtype=bool)
    if sys.platform == "win32":
        return _of_working_set(begin, end)
    table = _of_page_table(begin, end)
    return _of_memory(begin, end) if table is None else table


def _of_page_table(begin: int, end: int) -> np.ndarray | None:
    """None where there is no table, or a container shows none or a part of it."""
    try:
        with _PAGEMAP.open("rb", buffering=0) as file:
            file.seek(8 * begin)
            raw = file.read(8 * (end - begin))
    except OSError:
        return None
    if len(raw) != 8 * (end - begin):
        return None
    return np.frombuffer(raw, dtype=np.uint64) >> 63 == 1  # the highest bit: the page is present


def _of_memory(begin: int, end: int) -> np.ndarray:
    found = np.zeros(end - begin, dtype=np.uint8)
    size, address = (end - begin) * mmap.PAGESIZE, ctypes.c_void_p(begin * mmap.PAGESIZE)
    if ctypes.CDLL(None, use_errno=True).mincore(address, ctypes.c_size_t(size), ctypes.c_void_p(found.ctypes.data)):
        number = ctypes.get_errno()
        raise OSError(number, f"loaded_pages(): the system does not tell: {os.strerror(number)}")
    return found % 2 == 1  # the lowest bit; macOS uses the others for more


def _of_working_set(begin: int, end: int) -> np.ndarray:
    asked = np.zeros((end - begin, 2), dtype=np.uintp)  # pairs of an address and what Windows writes beside it
    asked[:, 0] = np.arange(begin, end, dtype=np.uintp) * mmap.PAGESIZE
    this_process, table = ctypes.c_void_p(-1), ctypes.c_void_p(asked.ctypes.data)
    if not ctypes.windll.kernel32.K32QueryWorkingSetEx(this_process, table, ctypes.c_ulong(asked.nbytes)):
        raise OSError(f"loaded_pages(): the system does not tell: {ctypes.WinError()}")
    return asked[:, 1] % 2 == 1  # the lowest bit: valid
