"""Where a tensor's numbers live: bytes, storages shared between tensors, strides, and memory measured at the allocator.

A tensor is metadata (shape, strides, offset) over a storage, one row of numbers. Sizes are in bytes, strides and
positions in elements.
"""
import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import index
from pathlib import Path
from types import TracebackType

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor
from torch.autograd import kineto_available, profiler

from course_lib.calls import require_no_arguments
from course_lib.checked import checked, describe
from course_lib.devices import as_device

# torch's profiler tells stderr each time that it starts and stops. The level is read when it first starts.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
_one_at_a_time = threading.Lock()


@checked
def get_memory_usage(x: Tensor) -> int:
    """Bytes of x's elements: their number times the size of one.

    A view counts only what it shows; `storage_bytes` counts what it keeps alive.
    """
    _require_storage("get_memory_usage", "x", x)
    return x.numel() * x.element_size()


@checked
def storage_bytes(x: Tensor) -> int:
    """Bytes of the whole storage that x keeps alive, however little of it x shows."""
    return _require_storage("storage_bytes", "x", x).nbytes()


@checked
def same_storage(x: Tensor, y: Tensor) -> bool:
    """Whether x and y are views of one storage, so that a write through one can be seen through the other.

    Storages are told apart by where their data begin. (Tensors made from overlapping NumPy slices with different
    beginnings have storages of their own, and yet share memory.)
    """
    first, second = _require_storage("same_storage", "x", x), _require_storage("same_storage", "y", y)
    if first._cdata == second._cdata:
        return True
    # Two storages may lie over the same memory, as do two tensors made from one NumPy array. The address of a storage
    # without data is 0 and says nothing; on the meta device, where FakeTensors' storages are too, none has data.
    has_data = "meta" not in (first.device.type, second.device.type)
    return has_data and first.data_ptr() == second.data_ptr() != 0


@checked
def contiguous_strides(shape: Sequence) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous tensor of this shape: each is the product of the sizes to its right.

    A size of 0 counts as 1, as in torch, so that no stride is 0.
    Raises TypeError for a size that is not a whole number, and ValueError for a negative one.
    """
    try:
        sizes = tuple(map(index, shape))  # each one: a type hint Sequence[int] looks at one of them
    except TypeError:
        raise TypeError(f"contiguous_strides(): shape is {describe(shape)}; whole numbers are asked for.") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"contiguous_strides(): shape is {sizes}; sizes of at least 0 are asked for.")
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@checked
def storage_positions(x: Shaped[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
    """For each element of x its position in the storage, counted in x's elements: offset + Σ index · stride.

    The result is a tensor on the CPU with x's shape, wherever x is.
    """
    _require_storage("storage_positions", "x", x)
    positions = torch.full(x.shape, x.storage_offset(), dtype=torch.int64, device="cpu")
    for dim, (size, stride) in enumerate(zip(x.shape, x.stride(), strict=True)):
        steps = torch.arange(size, device="cpu") * stride
        positions += steps.view(-1, *[1] * (x.ndim - dim - 1))
    return positions


@checked
def measure_memory(make: Callable[[], object], device: torch.device | str | None = None) -> int:
    """Bytes of tensor memory that `make()` allocates and that are still in use while its result is alive.

    What is freed again before `make` returns does not count. With device None the CPU is measured and, where there is
    one, the GPU, and their bytes are added, so that it does not matter where `make` puts its tensors.

    - CPU: read from torch's allocator, exact to the byte. Memory that existed before and is freed by `make` is no
      credit. Only tensors' own memory is seen: not Python objects such as lists, not NumPy's arrays (nor tensors that
      `torch.from_numpy` lays over them), not shared memory or mapped files, and not what other threads allocate.
    - CUDA: the difference in `torch.cuda.memory_allocated()`, which counts each allocation rounded up to a multiple of
      512 bytes, and falls when `make` frees what existed before.

    Raises what `make` raises; TypeError if `make` needs arguments; RuntimeError within another measurement or profiler.
    """
    require_no_arguments("measure_memory", "make", make)
    return sum(meter.left for meter in _measure(make, device))


@checked
def measure_peak_memory(make: Callable[[], object], device: torch.device | str | None = None) -> int:
    """The most bytes of tensor memory that `make()` has in use at any moment, beyond those in use before it.

    Measured as in `measure_memory`, and it raises the same errors. With device None each device's own peak is added to
    the other's. On CUDA the megabytes in which cuBLAS works during a matmul are part of the peak, and the peak that
    `torch.cuda.max_memory_allocated()` tells is reset.
    """
    require_no_arguments("measure_peak_memory", "make", make)
    return sum(meter.peak for meter in _measure(make, device))


def _require_storage(function: str, name: str, x: Tensor) -> torch.UntypedStorage:
    if x.layout is not torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else str(x.layout).removeprefix("torch.").lstrip("_")
        raise ValueError(f"{function}(): {name} is a {kind} tensor; a dense one, with a single storage, is asked for.")
    return x.untyped_storage()


def _find_log_level() -> ctypes.c_int:
    """torch's C++ variable: from which severity on it writes to stderr. Where it is not found, one without effect."""
    for library in (Path(torch.__file__).parent / "lib").glob("*c10.*"):
        with suppress(OSError, ValueError):
            return ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "FLAGS_caffe2_log_level")
    return ctypes.c_int()


_ERROR, _log_level = 2, _find_log_level()


class _CpuMeter:
    """Bytes left and highest bytes in use, from the events that torch's CPU allocator reports to the profiler."""

    left = peak = 0

    def __enter__(self) -> None:
        # torch cannot run two, and where they belong to two threads it crashes.
        if profiler._is_profiler_enabled:
            raise RuntimeError("Memory cannot be measured while a profiler runs; measure outside of it.")
        if not kineto_available():
            raise RuntimeError("The CPU's memory cannot be measured: this torch is built without its profiler, kineto.")
        self._profile = profiler.profile(profile_memory=True)
        self._profile.__enter__()
        # torch warns on stderr when a block is freed that it did not see allocated; those are meant to be left out.
        self._usual_level, _log_level.value = _log_level.value, _ERROR

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _log_level.value = self._usual_level
        self._profile.__exit__(kind, error, trace)
        if kind is None:
            self._count()

    def _count(self) -> None:
        in_use, total = {}, 0
        for address, size in _cpu_events(self._profile):
            # Freeing a block that was not allocated since the start changes nothing: it was there before.
            change = size if size > 0 else -in_use.pop(address, 0)
            if size > 0:
                in_use[address] = size
            total += change
            self.peak = max(self.peak, total)
        self.left = total


class _CudaMeter:
    """Bytes left and highest bytes in use, from the statistics of torch's CUDA allocator."""

    left = peak = 0

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._before = self._allocated()
        torch.cuda.reset_peak_memory_stats(self._device)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.left = self._allocated() - self._before
            self.peak = torch.cuda.max_memory_allocated(self._device) - self._before

    def _allocated(self) -> int:
        torch.cuda.synchronize(self._device)
        # The first matmul leaves megabytes with the allocator, for cuBLAS to work in; they belong to no tensor.
        torch._C._cuda_clearCublasWorkspaces()
        return torch.cuda.memory_allocated(self._device)


def _measure(make: Callable[[], object], device: torch.device | str | None) -> list[_CpuMeter | _CudaMeter]:
    main = as_device(device)
    meters = [_CpuMeter()] if device is None or main.type == "cpu" else []
    meters += [_CudaMeter(main)] if main.type == "cuda" else []
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError("Memory is being measured already; one measurement cannot run within another.")
    try:
        with _older_objects_set_aside(), ExitStack() as stack:
            for meter in meters:
                stack.enter_context(meter)
            result = make()
            gc.collect()  # what make() left in reference cycles is not in use
    finally:
        _one_at_a_time.release()
    del result  # alive up to here
    return meters


@contextmanager
def _older_objects_set_aside() -> Iterator[None]:
    """Let the garbage collector look only at objects made from now on: that is quick, and leaves older garbage."""
    ours = gc.get_freeze_count() == 0  # else somebody has set objects aside already; those must stay so
    if ours:
        gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()


def _cpu_events(finished: profiler.profile) -> list[tuple[int, int]]:
    """Address and bytes of each allocation (positive) and each release (negative) on the CPU, in order."""
    pending, found = finished.kineto_results.experimental_event_tree(), []
    while pending:
        event = pending.pop()
        pending += event.children
        if event.tag == torch._C._profiler._EventType.Allocation and event.extra_fields.device.type == "cpu":
            found.append((event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size))
    return [(address, size) for _, address, size in sorted(found)]
