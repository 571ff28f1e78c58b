"""What hardware promises: FLOP/s for each dtype, memory, bandwidth, and where the numbers come from.

A promise is the vendor's figure at boost clock for products of dense matrices. Figures "with sparsity" hold for weights
of which two in every four are zero; they are twice as large and never used here. Where no vendor's figure is known, one
can measure: `measure_peak_flop_per_sec`.
"""
import re
from dataclasses import dataclass
from typing import NoReturn

import torch

from course_lib.checked import checked, describe
from course_lib.devices import as_device, describe_machine
from course_lib.timing import time_matmul

GB = 10**9
_MEASURABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_FIRST_SIDE, _USUAL_SIDE, _LAST_SIDE = 256, 1024, 8192  # of the square matrices that are multiplied
_LONG_ENOUGH, _TOO_SLOW = 0.01, 0.1  # seconds


@dataclass(frozen=True)
class Gpu:
    """One GPU: dense FLOP/s by kind of arithmetic, memory in bytes, bandwidth in bytes/s. None: no figure is known.

    `half` holds for bfloat16 and float16, with sums in float32; `tf32` is what float32 matrices are multiplied in where
    `torch.set_float32_matmul_precision` allows it; `names` are what torch and people call it.
    """

    name: str
    float32: float
    tf32: float | None
    half: float | None
    fp8: float | None
    memory_bytes: int
    bytes_per_sec: float
    source: str
    names: tuple[str, ...] = ()

    @checked
    def peak(self, dtype: torch.dtype | str) -> float | None:
        """Dense FLOP/s in `dtype` (a torch.dtype, or "tf32"); None where no figure is known."""
        field = _FIELDS.get(dtype)
        return getattr(self, field) if field else None

    @checked
    def balance(self, dtype: torch.dtype | str) -> float | None:
        """FLOPs per byte at which computing takes as long as moving the bytes: peak / bandwidth."""
        peak = self.peak(dtype)
        return None if peak is None else peak / self.bytes_per_sec


_FIELDS = {
    torch.float32: "float32",
    "tf32": "tf32",
    torch.bfloat16: "half",
    torch.float16: "half",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
}

GPUS = (
    Gpu(
        "RTX 3070", float32=20.31e12, tf32=None, half=40.6e12, fp8=None, memory_bytes=8 * GB, bytes_per_sec=448e9,
        source="NVIDIA Ampere GA102 GPU Architecture, appendix A, GeForce RTX 3070. "
        "float32: 5888 cores · 2 · 1.725 GHz; bf16: 46 SMs · 4 tensor cores · 64 · 2 · 1.725 GHz",
    ),
    Gpu(
        "RTX 4090", float32=82.58e12, tf32=82.58e12, half=165.2e12, fp8=330.3e12, memory_bytes=24 * GB,
        bytes_per_sec=1.01e12, source="NVIDIA Ada GPU Architecture, specifications of the GeForce RTX 4090",
    ),
    Gpu(
        "RTX 5090", float32=104.8e12, tf32=None, half=209.5e12, fp8=419e12, memory_bytes=32 * GB,
        bytes_per_sec=1.792e12, source="NVIDIA RTX Blackwell GPU Architecture, specifications of the GeForce RTX 5090. "
        "fp8 and bf16: 3352e12 (fp4 with sparsity) / 8 and / 16",
    ),
    Gpu(
        "A100 SXM 80 GB", float32=19.5e12, tf32=156e12, half=312e12, fp8=None, memory_bytes=80 * GB,
        bytes_per_sec=2.039e12, source="NVIDIA A100 Tensor Core GPU data sheet, specifications, A100 80GB SXM",
        names=("A100", "A100 SXM", "A100-SXM4-80GB"),
    ),
    Gpu(
        "H100 SXM", float32=66.9e12, tf32=494.7e12, half=989.5e12, fp8=1979e12, memory_bytes=80 * GB,
        bytes_per_sec=3.35e12, source="NVIDIA H100 Tensor Core GPU data sheet, specifications, H100 SXM; "
        "tensor cores: half of what it prints, which is with sparsity",
        names=("H100", "H100 80GB HBM3"),
    ),
    Gpu(
        "H200 SXM", float32=66.9e12, tf32=494.7e12, half=989.5e12, fp8=1979e12, memory_bytes=141 * GB,
        bytes_per_sec=4.8e12, source="NVIDIA H200 Tensor Core GPU data sheet, specifications, H200 SXM; "
        "tensor cores: half of what it prints, which is with sparsity",
        names=("H200",),
    ),
    Gpu(
        "B200", float32=80e12, tf32=1.1e15, half=2.25e15, fp8=4.5e15, memory_bytes=192 * GB, bytes_per_sec=8e12,
        source="NVIDIA Blackwell Architecture technical brief, specifications, HGX B200 at 1000 W; "
        "tensor cores: half of what it prints, which is with sparsity",
    ),
)


@dataclass(frozen=True)
class UnknownPeak:
    """No vendor's figure is known: says what is, and how to measure. It is false, and no arithmetic is done with it.

    `get_promised_flop_per_sec(None, dtype) or measure_peak_flop_per_sec(dtype)` is a number on every machine.
    """

    said: str

    def __repr__(self) -> str:
        return self.said

    def __bool__(self) -> bool:
        return False

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(self.said)

    __float__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse


@checked
def find_gpu(device: torch.device | str | None = None) -> Gpu | None:
    """The table's row for a device of this machine (a torch.device, None: `get_device()`), or for a GPU's name.

    None if the table does not have exactly this GPU: a laptop's, a Ti or a PCIe card of the same number is another one.
    """
    return _row_of(_name_of(device)[0])


@checked
def get_promised_flop_per_sec(device: torch.device | str | None, dtype: torch.dtype | str) -> float | UnknownPeak:
    """FLOP/s that the vendor states for products of dense matrices in `dtype` (a torch.dtype, or "tf32").

    `device` is a torch.device, a GPU's name such as "H100", or None for this machine's `get_device()`. Where no figure
    is known the result is an `UnknownPeak`, which says so. Raises ValueError if `dtype` is no floating-point type.
    """
    if dtype != "tf32" and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        came = describe(dtype) if isinstance(dtype, str) else str(dtype)
        raise ValueError(f"get_promised_flop_per_sec(): dtype is {came}; a floating dtype or 'tf32' is asked for.")
    name, more = _name_of(device)
    gpu = _row_of(name)
    if gpu is not None and (peak := gpu.peak(dtype)) is not None:
        return peak
    if gpu is not None:
        known = ", ".join(f"{_say(key)} {gpu.peak(key) / 1e12:g}e12" for key in _FIELDS if gpu.peak(key))
        said = f"No peak is known for {gpu.name} in {_say(dtype)}; known are, in FLOP/s: {known}."
    else:
        said = f"No peak is known for {name}{more}; known are {', '.join(gpu.name for gpu in GPUS)}."
    if dtype in _MEASURABLE:
        said += f" measure_peak_flop_per_sec({dtype}) measures what such a machine reaches."
    return UnknownPeak(said)


@checked
def measure_peak_flop_per_sec(
    dtype: torch.dtype = torch.float32, device: torch.device | str | None = None
) -> float:
    """The highest FLOP/s that products of two square matrices of random numbers reach here: a floor, not a limit.

    Sides double from 256, at least to 1024, until a product takes 10 ms, at most to 8192; a dtype so slow that a
    smaller product takes 0.1 s is measured no further. Raises ValueError for a dtype that torch does not multiply.
    """
    if dtype not in _MEASURABLE:
        known = ", ".join(map(_say, _MEASURABLE))
        raise ValueError(f"measure_peak_flop_per_sec(): dtype is {dtype}; one of {known} is asked for.")
    device = as_device(device)
    generator = torch.Generator(device).manual_seed(0)  # its own: the caller's random numbers stay as they were
    best, side, seconds = 0.0, _FIRST_SIDE // 2, 0.0
    while side < _LAST_SIDE and seconds < (_TOO_SLOW if side < _USUAL_SIDE else _LONG_ENOUGH):
        side *= 2
        a, b = (torch.randn(side, side, generator=generator, device=device, dtype=dtype) for _ in range(2))
        seconds = time_matmul(a, b)
        best = max(best, 2 * side**3 / seconds)
    return best


def _row_of(name: str) -> Gpu | None:
    return next((gpu for gpu in GPUS if _plain(name) in map(_plain, (gpu.name, *gpu.names))), None)


def _name_of(device: torch.device | str | None) -> tuple[str, str]:
    """What the device is called, and what else is known of it."""
    try:
        device = torch.device(device) if isinstance(device, str) else device
    except RuntimeError:  # no torch.device: a GPU's name
        return device, ""
    device, machine = as_device(device), describe_machine()
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return properties.name, f" ({properties.total_memory / 2**30:.1f} GiB)"
    return machine.processor or "this processor", f" ({machine.cores} cores)" if machine.cores > 1 else " (1 core)"


def _plain(name: str) -> str:
    """A name without the vendor's words, spaces, dashes and capitals: "NVIDIA H100 80GB HBM3" -> "h10080gbhbm3"."""
    return re.sub(r"nvidia|geforce|[^a-z0-9]", "", name.lower())


def _say(dtype: torch.dtype | str) -> str:
    return str(dtype).removeprefix("torch.")
