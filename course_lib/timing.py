"""How long a call takes, and how fast memory is: measured so that the number can be believed.

A first call pays for much that later calls do not (pages that are touched for the first time, kernels that are loaded,
threads that are started), a CUDA call returns before its work is done, one run may be disturbed by other programs, and
a clock cannot resolve a single short call. Hence: warm up, synchronise, take several trials of enough calls each, and
report the median with its spread.
"""
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

import torch
from jaxtyping import Shaped
from torch import Tensor

from course_lib.calls import require_no_arguments
from course_lib.checked import checked
from course_lib.devices import as_device, synchronize

SHORTEST_TRIAL = 1e-3  # seconds; a thousand times what starting, stopping and reading the clock cost
MOST_CALLS = 2**20  # in a trial: an end where a clock stands still


@dataclass(frozen=True)
class Timing:
    """What `time_call` measured: for each trial the seconds that one call took, on average over the trial's `calls`."""

    trials: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """Seconds per call in the middle trial; unlike a mean, it ignores the trial that something disturbed."""
        return median(self.trials)

    @property
    def spread(self) -> float:
        """Interquartile range in seconds: the middle half of the trials lies within this much of each other."""
        lower, _, upper = quantiles(self.trials, n=4, method="inclusive")
        return upper - lower

    def __repr__(self) -> str:
        scale, unit = next(known for known in _UNITS if self.median >= known[0] or known is _UNITS[-1])
        calls = "1 call" if self.calls == 1 else f"{self.calls:,} calls"
        return (
            f"{self.median / scale:.3g} {unit} (median of {len(self.trials)} trials of {calls}; "
            f"interquartile range {self.spread / scale:.2g} {unit})"
        )


_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@checked
def time_call(
    call: Callable[[], object], *, trials: int = 7, device: torch.device | str | None = None
) -> Timing:
    """Time `call()`: seconds per call, over several trials, after one call that warms up.

    On a CUDA device the clock is read only once the device has finished; `device` is where `call` computes (None:
    `get_device()`). A trial repeats a short call until it takes at least a millisecond, without Python's garbage
    collector; each call then includes about 50 ns for Python to call it. What `call` returns is freed within the time.

    Raises TypeError if `call` needs arguments, and ValueError for fewer than 3 trials: fewer have no spread.
    """
    require_no_arguments("time_call", "call", call)
    if trials < 3:
        raise ValueError(f"time_call(): trials is {trials}; at least 3 is asked for.")
    device = as_device(device)
    with _no_garbage_collection():
        _seconds(call, 1, device)
        calls, first = 1, _seconds(call, 1, device)
        while first < SHORTEST_TRIAL and calls < MOST_CALLS:
            calls *= 2
            first = _seconds(call, calls, device)
        seconds = [first, *(_seconds(call, calls, device) for _ in range(trials - 1))]
    return Timing(tuple(total / calls for total in seconds), calls)


@checked
def time_matmul(a: Shaped[Tensor, "... m d"], b: Shaped[Tensor, "... d k"]) -> float:
    """Median seconds that `a @ b` takes on the device where both live (see `time_call`).

    Raises ValueError if a or b is constant (all zeros, all ones): a chip that multiplies constant numbers draws less
    power and clocks higher. An H200 reached 894 TFLOP/s on zeros, and 769 to 798 on random numbers.
    """
    if a.device != b.device:
        raise ValueError(f"time_matmul(): a is on {a.device} and b on {b.device}; the same device is asked for.")
    if a.dtype != b.dtype:
        raise ValueError(f"time_matmul(): a is {a.dtype} and b is {b.dtype}; the same dtype is asked for.")
    device = as_device(a.device)
    for name, x in (("a", a), ("b", b)):
        if x.numel() == 0:
            raise ValueError(f"time_matmul(): {name} has shape {tuple(x.shape)}; at least one element is asked for.")
        value = x[(0,) * x.ndim]
        if x.numel() > 1 and torch.equal(x, value.expand_as(x)):
            raise ValueError(
                f"time_matmul(): all elements of {name} are {value.item():g}; random numbers are asked for, since a "
                f"chip multiplies constant ones faster (time_call(lambda: a @ b) times them all the same)."
            )
    return time_call(lambda: a @ b, device=device).median


@checked
def measure_bandwidth(
    device: torch.device | str | None = None, *, buffer_bytes: int = 2**28, trials: int = 5
) -> float:
    """Memory bandwidth in bytes/s: bytes read plus bytes written while one buffer is copied into another, per second.

    The two buffers, 256 MiB each by default, are larger than a processor's caches; smaller ones measure the caches.
    A CPU may read a line of memory before it writes to it; those extra bytes are not counted.

    Raises ValueError if `buffer_bytes` is less than 1024.
    """
    if buffer_bytes < 1024:
        raise ValueError(f"measure_bandwidth(): buffer_bytes is {buffer_bytes}; at least 1024 is asked for.")
    # Written, not merely allocated: Linux lets all untouched pages share one page of zeros, which sits in the cache.
    source = torch.arange(buffer_bytes // 8, dtype=torch.int64, device=as_device(device))
    target = torch.empty_like(source)
    seconds = time_call(lambda: target.copy_(source), trials=trials, device=source.device).median
    return 2 * source.nbytes / seconds


def _seconds(call: Callable[[], object], calls: int, device: torch.device) -> float:
    synchronize(device)
    start = perf_counter()
    for _ in range(calls):
        call()
    synchronize(device)
    return perf_counter() - start


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
