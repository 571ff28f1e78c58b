"""The roofline explorer: drag sizes until work becomes compute-bound; measure the same work on this machine."""
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from matplotlib.figure import Figure

from course_lib.devices import get_device
from course_lib.explorers.base import Explorer, Nonsense, one_of, script, whole_number
from course_lib.figures.roofline import draw_roofline
from course_lib.flops import Roofline, matmul_flops
from course_lib.hardware import GPUS, measure_peak_flop_per_sec
from course_lib.timing import measure_bandwidth, time_call

_HERE = "this machine (measured)"
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
_BYTES = {name: dtype.itemsize for name, dtype in _DTYPES.items()}
_MOST_FLOPS, _MOST_BYTES = 2e10, 4e8  # that are measured on this machine: about a second on a slow one


@dataclass(frozen=True)
class Work:
    """A kind of work: the names of its sizes, the highest power of two of each, what it costs, and how to do it."""

    sizes: tuple[str, ...]
    highest: int
    flops: Callable[..., int]
    elements: Callable[..., int]  # read once and written once
    operands: Callable[..., tuple[tuple[int, ...], ...]]  # shapes
    do: Callable[..., torch.Tensor]


WORK = {
    "matmul": Work(
        ("B", "D", "K"), 14, matmul_flops, lambda b, d, k: b * d + d * k + b * k,
        lambda b, d, k: ((b, d), (d, k)), torch.matmul,
    ),
    "matrix × vector": Work(
        ("n",), 15, lambda n: 2 * n * n, lambda n: n * n + 2 * n, lambda n: ((n, n), (n,)), torch.mv
    ),
    "dot product": Work(("n",), 28, lambda n: 2 * n, lambda n: 2 * n + 1, lambda n: ((n,), (n,)), torch.dot),
    "relu": Work(("n",), 28, lambda n: n, lambda n: 2 * n, lambda n: ((n,),), torch.relu),
    "gelu": Work(  # about 20 FLOPs an element, its tanh or erf included
        ("n",), 28, lambda n: 20 * n, lambda n: 2 * n, lambda n: ((n,),), torch.nn.functional.gelu
    ),
}  # fmt: skip


class Estimate(NamedTuple):
    """What the roofline says of one piece of work: seconds are the least that each side takes."""

    flops: int
    bytes: int
    intensity: float
    compute_seconds: float
    memory_seconds: float
    bound: str


class RooflineExplorer(Explorer):
    """One kind of work on one device; `value` is its Estimate, `measured` what was timed on this machine.

    Sizes are powers of two. ValueError, in a sentence, for a device, dtype or work that is not in the lists.
    """

    _esm = script("roofline")
    title = "Roofline explorer"

    def __init__(self, device: str = "H100 SXM", dtype: str = "bfloat16", work: str = "matmul") -> None:
        self._roofs = {gpu.name: {name: Roofline(peak, gpu.bytes_per_sec) for name in _DTYPES
                                  if (peak := gpu.peak(_DTYPES[name]))} for gpu in GPUS}  # fmt: skip
        self._device = one_of("device", device, self._roofs)
        self._dtype = one_of("dtype", dtype, self._roofs[device])
        self._work = one_of("work", work, WORK)
        self._exponents = {name: dict.fromkeys(one.sizes, 10) for name, one in WORK.items()}
        self._exponents["matmul"] = {"B": 8, "D": 12, "K": 12}
        self.measured: list[tuple[str, float, float]] = []  # name, FLOPs per byte, FLOP/s
        super().__init__()

    @property
    def roof(self) -> Roofline:
        """Peak and bandwidth of the device, in the dtype."""
        return self._roofs[self._device][self._dtype]

    @property
    def value(self) -> Estimate:
        """FLOPs, bytes, and what follows."""
        work, sizes = WORK[self._work], self._sizes()
        flops, moved = work.flops(*sizes), work.elements(*sizes) * _BYTES[self._dtype]
        intensity, roof = flops / moved, self.roof
        return Estimate(flops, moved, intensity, flops / roof.peak, moved / roof.bandwidth, roof.bound(intensity))

    def do_device(self, name: object) -> None:
        """Another device; in its first dtype where it has no figure for the present one."""
        self._device = one_of("device", name, self._roofs)
        if self._dtype not in self._roofs[self._device]:
            self._dtype = next(iter(self._roofs[self._device]))

    def do_dtype(self, name: object) -> None:
        """Another dtype, of those that the device has a figure for."""
        self._dtype = one_of("dtype", name, self._roofs[self._device])

    def do_work(self, name: object) -> None:
        """Another kind of work."""
        self._work = one_of("work", name, WORK)

    def do_size(self, name: object, exponent: object) -> None:
        """One size, as its power of two."""
        work = WORK[self._work]
        chosen = one_of("size", name, dict.fromkeys(work.sizes))
        self._exponents[self._work][chosen] = whole_number("size", exponent, 0, work.highest)

    def do_measure(self) -> None:
        """Time this work in float32 on this machine, beside this machine's own roof."""
        work, sizes, device = WORK[self._work], self._sizes(), get_device()
        flops, moved = work.flops(*sizes), work.elements(*sizes) * 4
        if flops > _MOST_FLOPS or moved > _MOST_BYTES:
            cost = f"{_short(flops)} FLOPs on {_short(moved)} B"
            raise Nonsense("measure", f"{cost} would take long on this machine; choose smaller sizes.")
        if _HERE not in self._roofs:
            peak, bandwidth = measure_peak_flop_per_sec(device=device), measure_bandwidth(device, buffer_bytes=2**26)
            self._roofs[_HERE] = {"float32": Roofline(peak, bandwidth)}
        generator = torch.Generator().manual_seed(0)
        operands = [torch.randn(shape, generator=generator).to(device) for shape in work.operands(*sizes)]
        seconds = time_call(lambda: work.do(*operands), trials=5, device=device).median
        self.measured = [*self.measured, (self._named(), flops / moved, flops / seconds)][-12:]
        self._device, self._dtype = _HERE, "float32"

    def drawn(self) -> dict[str, object]:
        one, roof = self.value, self.roof
        work = WORK[self._work]
        return {
            "devices": [*self._roofs], "dtypes": [*self._roofs[self._device]], "works": [*WORK],
            "device": self._device, "dtype": self._dtype, "work": self._work,
            "sizes": [[n, self._exponents[self._work][n], work.highest, f"{n} = {size:,}"]
                      for n, size in zip(work.sizes, self._sizes(), strict=True)],
            "peak": roof.peak, "bandwidth": roof.bandwidth, "balance": roof.balance, "intensity": one.intensity,
            "reached": roof.attainable(one.intensity), "lines": self._lines(),
            "measured": self.measured if self._device == _HERE else [],
        }  # fmt: skip

    def facts(self) -> str:
        roof = self.roof
        speeds = f"{_short(roof.peak)} FLOP/s, {_short(roof.bandwidth)} B/s"
        return "\n".join([f"{self._named()} in {self._dtype} on {self._device}: {speeds}.", *self._lines()])

    def figure(self) -> Figure:
        return draw_roofline(self.roof, {self._work: self.value.intensity}, f"{self._device}, {self._dtype}")

    def _sizes(self) -> tuple[int, ...]:
        return tuple(2**exponent for exponent in self._exponents[self._work].values())

    def _named(self) -> str:
        sizes = zip(WORK[self._work].sizes, self._sizes(), strict=True)
        return f"{self._work} ({', '.join(f'{name}={size:,}' for name, size in sizes)})"

    def _lines(self) -> list[str]:
        one, roof = self.value, self.roof
        share = roof.attainable(one.intensity) / roof.peak
        return [
            f"{one.flops:,} FLOPs on {one.bytes:,} B: {_three(one.intensity)} FLOPs per byte; "
            f"from {_three(roof.balance)} on, work is compute-bound.",
            f"Computing takes at least {_time(one.compute_seconds)}, moving the bytes {_time(one.memory_seconds)}.",
            f"So it is {one.bound}-bound and reaches at most {share:.0%} of the peak.",
        ]


def _three(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _short(number: float) -> str:
    exponent = 3 * (math.floor(math.log10(number)) // 3)
    return f"{number:.4g}" if exponent < 6 else f"{number / 10**exponent:.4g}e{exponent}"


def _time(seconds: float) -> str:
    units: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
    unit = next((name for name, size in units.items() if seconds >= size), "ns")
    return f"{seconds / units[unit]:.3g} {unit}"
