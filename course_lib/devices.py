"""What this process computes on: the device that torch uses, and the machine around it."""
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.checked import checked, describe

GIB = 2**30
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")  # where Linux tells about the machine and a container's limits


@checked
def get_device() -> torch.device:
    """The device that the course computes on: the current CUDA device if torch finds one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@checked
def as_device(device: torch.device | str | None) -> torch.device:
    """`device` as a torch.device that can be measured here; None means `get_device()`.

    Raises ValueError for a device other than the CPU or CUDA, and for CUDA where torch finds no CUDA device.
    """
    if device is None:
        return get_device()
    try:
        found = torch.device(device)
    except RuntimeError:  # torch's own message lists thirty kinds of device
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        came = describe(device) if isinstance(device, str) else str(device)
        raise ValueError(f"device is {came}; 'cpu' or 'cuda' is asked for.")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {found}, but torch finds no CUDA device here; leave device out or pass 'cpu'.")
    return found


@checked
def synchronize(device: torch.device) -> None:
    """Wait until `device` has done all that it was given. A CPU has: only CUDA's calls return early."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclass(frozen=True)
class Machine:
    """What `describe_machine` found. Memory is in bytes; None stands for what could not be found out."""

    device: torch.device
    processor: str | None
    cores: int
    memory_bytes: int | None
    available_bytes: int | None
    gpu: str | None = None
    gpu_memory_bytes: int | None = None

    def __repr__(self) -> str:
        memory = _gib(self.memory_bytes)
        if self.available_bytes is not None:
            memory += f", {_gib(self.available_bytes)} of it available"
        gpu = "no GPU here" if self.gpu is None else f"{self.gpu}, {_gib(self.gpu_memory_bytes)}"
        rows = {"device": self.device, "processor": self.processor or "unknown", "cores": self.cores, "memory": memory}
        return "\n".join(f"{name:<11}{value}" for name, value in {**rows, "GPU": gpu}.items())


@checked
def describe_machine() -> Machine:
    """Describe the machine as far as this process may use it; never raises.

    `cores` counts logical cores and respects the process's affinity and a container's quota; so do the bytes of memory.
    """
    total, available = _memory()
    gpu, gpu_memory = _gpu()
    return Machine(get_device(), _processor(), _cores(), total, available, gpu, gpu_memory)


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.1f} GiB"


def _gpu() -> tuple[str | None, int | None]:
    if not torch.cuda.is_available():
        return None, None
    try:
        properties = torch.cuda.get_device_properties(get_device())
    except RuntimeError:  # a GPU that is there but cannot be used, such as one that another process holds alone
        return "unknown GPU", None
    return properties.name, properties.total_memory


def _processor() -> str | None:
    readers = {"linux": _processor_linux, "darwin": _processor_macos, "win32": _processor_windows}
    try:
        name = readers[sys.platform]()
    except (KeyError, OSError, subprocess.SubprocessError):
        name = ""
    return name.strip() or platform.processor() or platform.machine() or None


def _processor_linux() -> str:
    # x86 says "model name"; many Arm boards say "Model" or "Hardware", and some nothing at all.
    lines = _read(_PROC / "cpuinfo").splitlines()
    named = dict(map(str.strip, line.split(":", 1)) for line in reversed(lines) if ":" in line)
    return next((named[key] for key in ("model name", "Model", "Hardware") if named.get(key)), "")


def _processor_macos() -> str:
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout


def _processor_windows() -> str:
    import winreg

    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
        return winreg.QueryValueEx(key, "ProcessorNameString")[0]


def _cores() -> int:
    # The affinity is what taskset and job schedulers set; Linux and FreeBSD can be asked for it.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *map(math.ceil, _quotas())]))


def _quotas() -> Iterator[float]:
    """Processors' worth of time that its control groups grant this process: microseconds per period of microseconds."""
    texts = [_read(group / "cpu.max") for group in _groups("")]
    texts += [f"{_read(group / 'cpu.cfs_quota_us')} {_read(group / 'cpu.cfs_period_us')}" for group in _groups("cpu")]
    for text in texts:
        numbers = text.split()
        if len(numbers) == 2 and all(map(str.isdigit, numbers)) and int(numbers[1]):  # "max" and "-1" mean no limit
            yield int(numbers[0]) / int(numbers[1])


def _memory() -> tuple[int | None, int | None]:
    """Bytes in all, and bytes available without swapping, of the machine or of the container if that has less."""
    try:
        import psutil  # here and not above: only this function needs it

        machine = psutil.virtual_memory()
    except (ImportError, OSError, RuntimeError):
        return None, None
    total, available = machine.total, machine.available
    groups = [(group, "memory.max", "memory.current", "inactive_file") for group in _groups("")]
    groups += [
        (group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file") for group in _groups("memory")
    ]
    for group, limit, usage, reclaimable in groups:
        limit, usage = _read(group / limit), _read(group / usage)
        if limit.isdigit() and usage.isdigit() and int(limit) < machine.total:
            # Cached files that nobody uses count as usage; the kernel drops them as soon as memory is asked for.
            cached = re.search(rf"^{reclaimable} (\d+)$", _read(group / "memory.stat"), re.MULTILINE)
            free = int(limit) - int(usage) + (int(cached.group(1)) if cached else 0)
            total, available = min(total, int(limit)), max(0, min(available, free))
    return total, available


def _groups(controller: str) -> Iterator[Path]:
    """Folders of this process's control group and of each one above it: a limit holds for all groups below.

    `controller` is "" for version 2, which has one tree of groups; version 1 has a tree for each controller.
    """
    for line in _read(_PROC / "self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controller in controllers.split(",") and group:
            own = Path(group.lstrip("/"))
            yield from (_CGROUPS / controller / folder for folder in (own, *own.parents))


def _read(file: Path) -> str:
    """The file's text, or nothing: the root group has no limits, and a container may not see the groups above it."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
