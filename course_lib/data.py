"""Tokens on disk, and batches of them: raw files that are mapped into memory, so that only what is read is loaded.

A token file is nothing but token ids, one after the other, little-endian: no header, no dtype. Whoever opens it has to
know the dtype. A position in it counts tokens; sizes on disk are bytes.
"""
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from course_lib.checked import checked, describe
from course_lib.devices import as_device
from course_lib.places import whole_path
from course_lib.randomness import make_generator

NPY_MAGIC = b"\x93NUMPY"  # how every .npy begins; what follows is a header, then the numbers
_CPU = torch.device("cpu")
_WHOLE = {getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
_CHUNK = 2**20  # tokens that are converted at a time: writing a file takes little memory, however long it is


@checked
def write_tokens(path: str | os.PathLike, tokens: Sequence | np.ndarray | Tensor, dtype: object = np.uint16) -> None:
    """Write token ids as a raw little-endian file: tokens × bytes of a dtype, without a header.

    `tokens` is one row of whole numbers of at least 0; `dtype` an integer dtype of NumPy that holds them all: uint16
    holds 0 to 65,535. The file is written beside `path` and renamed once it is whole, so that an error, or a program
    that is killed, leaves an older file as it was.

    Raises ValueError if a token does not fit `dtype` or there are none, TypeError if tokens are no whole numbers or
    `dtype` is no integer dtype, and FileNotFoundError if the folder does not exist.
    """
    kind, row = _integer_dtype("write_tokens", dtype), _as_row("write_tokens", tokens)
    if len(row) == 0:
        raise ValueError("write_tokens(): tokens is empty; at least one token is asked for.")
    with _written_beside(Path(path)) as file:
        for first in range(0, len(row), _CHUNK):
            chunk = row[first : first + _CHUNK]
            _require_fit(chunk, first, kind)
            file.write(np.ascontiguousarray(chunk, dtype=kind).data)


@checked
def open_tokens(path: str | os.PathLike, dtype: object = np.uint16) -> np.memmap:
    """Map a raw token file into memory, read-only. But for its first bytes nothing is read until an element is used.

    The system is told that reads come in no order, so that it reads no pages ahead of them. The file does not know
    its dtype: of a wrong one, only a size that is no whole number of tokens can be noticed here.

    Raises FileNotFoundError if there is no such file; ValueError if it is a .npy, empty, or no whole number of tokens
    long; TypeError if `dtype` is no integer dtype.
    """
    path, kind = Path(path), _integer_dtype("open_tokens", dtype)
    _require_raw(path, kind)
    tokens = np.memmap(path, dtype=kind, mode="r")
    if hasattr(mmap, "MADV_RANDOM"):  # Windows has no such advice; it does not read far ahead of a mapping
        tokens._mmap.madvise(mmap.MADV_RANDOM)
    return tokens


@checked
def get_batch(
    tokens: np.ndarray | Tensor,
    batch_size: int,
    sequence_length: int,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Int64[Tensor, "batch sequence"], Int64[Tensor, "batch sequence"]]:
    """A batch (x, y) of int64, each (batch_size, sequence_length): y is x shifted by one, the next token of each.

    Starts are drawn uniformly, with replacement, from all len(tokens) − sequence_length legal ones, by `generator`
    or, where that is None, by torch's own. Only the batch_size · (sequence_length + 1) tokens in question are read.
    x and y are new, contiguous tensors on `device` (None: the CPU). Copies to CUDA start from pinned memory and do not
    wait: the GPU's next kernels do.

    Raises TypeError if tokens are no integers, and ValueError if they are not in one row, if there are fewer than
    sequence_length + 1 of them, if a size is not at least 1, or for a device that is not there.
    """
    target = _CPU if device is None else as_device(device)
    row = _require_tokens("get_batch", tokens, batch_size, sequence_length)
    drawn_on = _CPU if generator is None else generator.device
    starts = torch.randint(len(row) - sequence_length, (batch_size,), generator=generator, device=drawn_on)
    # Row i of `windows` would be tokens i to i + sequence_length; it is a view, and indexing copies the rows drawn.
    windows = np.lib.stride_tricks.sliding_window_view(row, sequence_length + 1)
    drawn = windows[starts.cpu().numpy()]
    return _int64(drawn[:, :-1], target), _int64(drawn[:, 1:], target)


class TokenSampler:
    """An endless iterator over batches of `get_batch`, drawn by a generator of its own, whose position can be saved.

    `next(sampler)` gives (x, y). A seed decides the batches alone, whatever else is drawn. With the `state_dict` of
    another sampler over the same tokens, it goes on with exactly the batches that the other one would have drawn next.
    """

    @checked
    def __init__(
        self,
        tokens: np.ndarray | Tensor,
        batch_size: int,
        sequence_length: int,
        *,
        seed: int,
        device: torch.device | str | None = None,
    ) -> None:
        self.tokens, self.device = tokens, _CPU if device is None else as_device(device)
        self.batch_size, self.sequence_length = batch_size, sequence_length
        _require_tokens("TokenSampler", tokens, batch_size, sequence_length)
        self._generator, self._batches = make_generator(seed, "data"), 0

    def __iter__(self) -> "TokenSampler":
        return self

    def __next__(self) -> tuple[Tensor, Tensor]:
        batch = get_batch(self.tokens, self.batch_size, self.sequence_length, self.device, self._generator)
        self._batches += 1
        return batch

    def state_dict(self) -> dict[str, Tensor | int]:
        """The position, as a tensor and numbers: the generator's state, the batches drawn, and what they depend on."""
        return {"generator": self._generator.get_state(), "batches": self._batches, **self._settings()}

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Go on where the sampler stood that returned `state`; nothing changes if it is refused.

        Raises ValueError if it comes from other sizes or another number of tokens, or is no sampler's state.
        """
        settings = self._settings()
        if missing := {"generator", "batches", *settings} - state.keys():
            name = min(missing)
            raise ValueError(f"TokenSampler.load_state_dict(): state has no {name!r}; a sampler's state is asked for.")
        for name in ("batches", *settings):
            if type(state[name]) is not int:
                came = describe(state[name])
                raise ValueError(f"TokenSampler.load_state_dict(): {name} is {came}; an int is asked for.")
        for name, own in settings.items():
            if state[name] != own:
                raise ValueError(
                    f"TokenSampler.load_state_dict(): state comes from a sampler whose {name} is {state[name]}; "
                    f"this one's is {own}, so it cannot go on with the same batches."
                )
        generator = torch.Generator("cpu")  # whatever the default device is
        try:
            generator.set_state(state["generator"].cpu())  # a checkpoint may have been loaded to CUDA
        except (RuntimeError, TypeError, AttributeError):
            came = describe(state["generator"])
            message = f"TokenSampler.load_state_dict(): generator is {came}; a generator's state is asked for."
            raise ValueError(message) from None
        self._generator, self._batches = generator, state["batches"]

    def _settings(self) -> dict[str, int]:
        return {
            "batch_size": self.batch_size,
            "sequence_length": self.sequence_length,
            "num_tokens": len(self.tokens),
        }


def _int64(tokens: np.ndarray, device: torch.device) -> Tensor:
    batch = torch.from_numpy(tokens.astype(np.int64, order="C"))
    if device.type != "cuda":
        return batch
    return batch.pin_memory().to(device, non_blocking=True)  # torch keeps the pinned memory until the copy is done


def _integer_dtype(function: str, dtype: object) -> np.dtype:
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        kind = None
    if kind is None or kind.kind not in "iu":
        unread = kind is None or dtype is None  # None would be float64
        came = str(dtype) if isinstance(dtype, torch.dtype) else describe(dtype) if unread else kind.name
        raise TypeError(f"{function}(): dtype is {came}; an integer dtype of NumPy, such as np.uint16, is asked for.")
    little = kind.newbyteorder("<")
    if kind.byteorder == ">" and kind != little:
        raise ValueError(f"{function}(): dtype is {kind.str}, big-endian; token files are little-endian: {little.str}.")
    return little


def _as_row(function: str, tokens: Sequence | np.ndarray | Tensor) -> np.ndarray:
    """The tokens as a NumPy array with one axis, of an integer dtype; a tensor's and an array's memory is shared."""
    if isinstance(tokens, np.ndarray | Tensor):
        return _require_row(function, tokens)
    if isinstance(tokens, str | bytes):
        raise TypeError(f"{function}(): tokens is {describe(tokens)}; whole numbers are asked for.")
    for position, token in enumerate(tokens):
        if isinstance(token, bool) or not isinstance(token, int | np.integer):
            raise TypeError(f"{function}(): tokens[{position}] is {describe(token)}; a whole number is asked for.")
    try:
        return np.array(tokens, dtype=np.int64)
    except OverflowError:  # numbers beyond 64 bits: compared as Python's, so that the one at fault can be named
        return np.array(tokens, dtype=object)


def _require_row(function: str, tokens: np.ndarray | Tensor) -> np.ndarray:
    whole = tokens.dtype.kind in "iu" if isinstance(tokens, np.ndarray) else tokens.dtype in _WHOLE
    if not whole:
        raise TypeError(f"{function}(): tokens is {describe(tokens)}; whole numbers are asked for.")
    if tokens.ndim != 1:
        raise ValueError(f"{function}(): tokens is {describe(tokens)}; one row of tokens is asked for.")
    if isinstance(tokens, Tensor) and (tokens.is_meta or tokens.layout is not torch.strided):
        came = f"a tensor on {tokens.device} of layout {tokens.layout}".replace("torch.", "")
        raise ValueError(f"{function}(): tokens is {came}; one that holds all its numbers is asked for.")
    return np.asarray(tokens if isinstance(tokens, np.ndarray) else tokens.cpu())  # no memmap: its views cost more time


def _require_tokens(
    function: str, tokens: np.ndarray | Tensor, batch_size: int, sequence_length: int
) -> np.ndarray:
    for name, size in (("batch_size", batch_size), ("sequence_length", sequence_length)):
        if isinstance(size, bool) or not 1 <= size < 2**63:  # torch's sizes have 64 bits
            raise ValueError(f"{function}(): {name} is {size}; a number of at least 1 is asked for.")
    row = _require_row(function, tokens)
    if len(row) <= sequence_length:
        raise ValueError(
            f"{function}(): tokens holds {len(row):,}; at least {sequence_length + 1:,} are asked for, "
            f"since sequence_length is {sequence_length:,} and the last one needs a next token."
        )
    return row


def _require_fit(chunk: np.ndarray, first: int, kind: np.dtype) -> None:
    most = min(np.iinfo(kind).max, np.iinfo(np.int64).max)  # batches are int64
    if chunk.min() < 0 or chunk.max() > most:
        at = int(np.argmax((chunk < 0) | (chunk > most)))
        raise ValueError(
            f"write_tokens(): tokens[{first + at}] is {chunk[at]}; {kind.name} holds token ids of 0 to {most}."
        )


def _require_raw(path: Path, kind: np.dtype) -> None:
    if not path.is_file():
        came = "a folder" if path.is_dir() else "no plain file" if os.path.lexists(path) else "not there"
        raise FileNotFoundError(f"open_tokens(): {path} is {came}; a file of tokens is asked for.")
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"open_tokens(): {path} is empty; a file of at least one token is asked for.")
    with path.open("rb") as file:
        if file.read(len(NPY_MAGIC)) == NPY_MAGIC:
            raise ValueError(
                f"open_tokens(): {path} is a .npy, which begins with a header; raw tokens are asked for "
                f"(np.load(path, mmap_mode='r') maps a .npy)."
            )
    if size % kind.itemsize:
        raise ValueError(
            f"open_tokens(): {path} is {size:,} bytes long, no whole number of {kind.name} tokens of {kind.itemsize} "
            f"bytes; another dtype is asked for, or a file that is whole."
        )


@contextmanager
def _written_beside(path: Path) -> Iterator[BinaryIO]:
    """A new file in the folder of `path` that takes its place when the block ends, and goes away if that fails."""
    path = whole_path("write_tokens", path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"write_tokens(): there is no folder {path.parent}; make it first.")
    beside = path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the rename: a crash must not leave the new name on missing bytes
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            reason = f"{error.strerror or error}; what it held before is untouched"
            raise OSError(error.errno, f"write_tokens(): {path} could not be written: {reason}.") from None
        raise
