"""The machine as this process may use it: real where it runs, and played from files for other systems."""
import os
import platform
import subprocess
import sys
import types

import psutil
import pytest
import torch

from course_lib import devices
from course_lib.devices import Machine, as_device, describe_machine, get_device, synchronize

GIB = 2**30


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """Write files below a root that stands for /; the machine has 8 cores and 16 GiB, 10 GiB of them available."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(devices, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(devices, "_CGROUPS", tmp_path / "sys/fs/cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(total=16 * GIB, available=10 * GIB))

    def write(files: dict[str, str]):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return describe_machine()

    return write


def test_this_machine_is_described():
    machine = describe_machine()
    assert machine.device == get_device()
    assert 1 <= machine.cores <= os.cpu_count()
    assert 0 < machine.available_bytes <= machine.memory_bytes <= psutil.virtual_memory().total
    assert (machine.gpu is None) == (machine.gpu_memory_bytes is None) == (not torch.cuda.is_available())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity that could be set")
def test_cores_respect_the_affinity():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert describe_machine().cores == 1
    finally:
        os.sched_setaffinity(0, before)


def test_a_linux_machine_without_limits(linux):
    cpuinfo = "processor : 0\nmodel name\t: Fast CPU @ 3 GHz\n\nprocessor : 1\nmodel name : Other\n"
    machine = linux({"proc/cpuinfo": cpuinfo})
    assert machine == Machine(get_device(), "Fast CPU @ 3 GHz", 8, 16 * GIB, 10 * GIB)


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor : 0\nBogoMIPS : 38.4\nModel : Raspberry Pi 5\n", "Raspberry Pi 5"),
        ("processor : 0\nmodel name :\nHardware : Board: A\n", "Board: A"),
        ("processor : 0\nBogoMIPS : 38.4\n", "generic"),
        ("model name : Odd\udcff CPU\n", "Odd\ufffd CPU"),
    ],
)
def test_an_unusual_processor_is_named_as_well_as_can_be(linux, monkeypatch, cpuinfo, name):
    monkeypatch.setattr(platform, "processor", lambda: "generic")
    assert linux({"proc/cpuinfo": cpuinfo}).processor == name


V2 = "sys/fs/cgroup/"
V1 = "sys/fs/cgroup/cpu/"
LIMITS = {  # name: (files, cores)
    "none": ({"proc/self/cgroup": "0::/", V2 + "cpu.max": "max 100000"}, 8),
    "two and a half processors": ({"proc/self/cgroup": "0::/", V2 + "cpu.max": "250000 100000"}, 3),
    "nothing at all": ({"proc/self/cgroup": "0::/", V2 + "cpu.max": "0 100000"}, 1),
    "a tenth of one": ({"proc/self/cgroup": "0::/", V2 + "cpu.max": "10000 100000"}, 1),
    "more than there are": ({"proc/self/cgroup": "0::/", V2 + "cpu.max": "6400000 100000"}, 8),
    "own group": ({"proc/self/cgroup": "0::/a/b\n", V2 + "a/b/cpu.max": "400000 100000"}, 4),
    "group above": (
        {"proc/self/cgroup": "0::/a/b", V2 + "a/b/cpu.max": "max 100000", V2 + "a/cpu.max": "200000 100000"}, 2
    ),
    "another controller's group": ({"proc/self/cgroup": "3:memory:/b\n0::/a", V2 + "b/cpu.max": "200000 100000"}, 8),
    "a group that is not ours": ({"proc/self/cgroup": "0::/a", V2 + "b/cpu.max": "200000 100000"}, 8),
    "version 1": (
        {
            "proc/self/cgroup": "9:name=systemd:/\n2:cpuacct,cpu:/job\n",
            V1 + "job/cpu.cfs_quota_us": "300000\n",
            V1 + "job/cpu.cfs_period_us": "100000\n",
        },
        3,
    ),
    "version 1, no limit": (
        {"proc/self/cgroup": "1:cpu:/", V1 + "cpu.cfs_quota_us": "-1", V1 + "cpu.cfs_period_us": "100000"}, 8
    ),
    "nonsense": ({"proc/self/cgroup": "?\n0::/\n", V2 + "cpu.max": "1 0"}, 8),
}


@pytest.mark.parametrize(("files", "cores"), LIMITS.values(), ids=LIMITS)
def test_cores_respect_a_containers_quota(linux, files, cores):
    assert linux(files).cores == cores


def _memory_v2(limit: str, usage: int, cached: int, group: str = "") -> dict[str, str]:
    folder = V2 + group
    return {
        folder + "memory.max": f"{limit}\n",
        folder + "memory.current": f"{usage}\n",
        folder + "memory.stat": f"anon 5\nfile 6\ninactive_file {cached}\nactive_file 7\n",
    }


MEMORY = {  # name: (files, GiB in all, GiB available)
    "no limit": ({"proc/self/cgroup": "0::/", **_memory_v2("max", GIB, 0)}, 16, 10),
    "2 GiB": ({"proc/self/cgroup": "0::/", **_memory_v2(str(2 * GIB), GIB, 0)}, 2, 1),
    "with cached files": ({"proc/self/cgroup": "0::/", **_memory_v2(str(4 * GIB), 3 * GIB, 2 * GIB)}, 4, 3),
    "less on the machine than allowed": ({"proc/self/cgroup": "0::/", **_memory_v2(str(15 * GIB), GIB, 0)}, 15, 10),
    "more allowed than there is": ({"proc/self/cgroup": "0::/", **_memory_v2(str(99 * GIB), 95 * GIB, 0)}, 16, 10),
    "over the limit": ({"proc/self/cgroup": "0::/", **_memory_v2(str(2 * GIB), 3 * GIB, 0)}, 2, 0),
    "larger above": (
        {
            "proc/self/cgroup": "0::/a/b",
            **_memory_v2(str(4 * GIB), 2 * GIB, 0, "a/b/"),
            **_memory_v2(str(8 * GIB), 3 * GIB, 0, "a/"),
        },
        4,
        2,
    ),
    "smaller above": (
        {
            "proc/self/cgroup": "0::/a/b",
            **_memory_v2(str(8 * GIB), GIB, 0, "a/b/"),
            **_memory_v2(str(4 * GIB), 2 * GIB, 0, "a/"),
        },
        4,
        2,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "4:memory:/job",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(3 * GIB),
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/job/memory.stat": f"inactive_file 9\ntotal_inactive_file {GIB}\n",
        },
        3,
        2,
    ),
}


@pytest.mark.parametrize(("files", "total", "available"), MEMORY.values(), ids=MEMORY)
def test_memory_respects_a_containers_limit(linux, files, total, available):
    machine = linux(files)
    assert (machine.memory_bytes / GIB, machine.available_bytes / GIB) == (total, available)


def test_macos_is_asked_by_sysctl(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    asked = []

    def run(command, **options):
        asked.append(command)
        return types.SimpleNamespace(stdout="Apple M4 Pro\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert describe_machine().processor == "Apple M4 Pro"
    assert asked == [["sysctl", "-n", "machdep.cpu.brand_string"]]


@pytest.mark.parametrize("error", [FileNotFoundError("sysctl"), subprocess.TimeoutExpired("sysctl", 5)])
def test_a_processor_that_cannot_be_asked_is_no_error(monkeypatch, error):
    def run(*args, **options):
        raise error

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert describe_machine().processor == "arm"


def test_windows_is_asked_by_the_registry(monkeypatch):
    class Key:
        def __enter__(self):
            return "the key"

        def __exit__(self, *error):
            pass

    paths = []
    winreg = types.ModuleType("winreg")
    winreg.HKEY_LOCAL_MACHINE = "HKLM"
    winreg.OpenKey = lambda root, path: paths.append((root, path)) or Key()
    winreg.QueryValueEx = lambda key, name: ({("the key", "ProcessorNameString"): "Intel Core Ultra  "}[key, name], 1)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "winreg", winreg)
    assert describe_machine().processor == "Intel Core Ultra"
    assert paths == [("HKLM", r"HARDWARE\DESCRIPTION\System\CentralProcessor\0")]


def test_what_cannot_be_found_out_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "plan9")
    monkeypatch.setattr(devices, "_PROC", tmp_path)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    machine = describe_machine()
    assert machine == Machine(torch.device("cpu"), None, 1, None, None)
    assert repr(machine) == "\n".join([
        "device     cpu",
        "processor  unknown",
        "cores      1",
        "memory     unknown",
        "GPU        no GPU here",
    ])


def test_a_gpu_is_described_by_its_properties(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    properties = types.SimpleNamespace(name="NVIDIA H200", total_memory=150_000_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: {torch.device("cuda"): properties}[device])
    machine = describe_machine()
    assert (machine.device, machine.gpu, machine.gpu_memory_bytes) == (torch.device("cuda"), "NVIDIA H200", 150 * 10**9)
    assert repr(machine).startswith("device     cuda\n")
    assert repr(machine).endswith("\nGPU        NVIDIA H200, 139.7 GiB")


def test_a_gpu_that_cannot_be_used_is_no_error(monkeypatch):
    def busy(device):
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", busy)
    assert repr(describe_machine()).endswith("\nGPU        unknown GPU, unknown")


def test_memory_reads_in_gib():
    machine = Machine(torch.device("cpu"), "Fast CPU", 2, 16 * GIB, 3 * GIB + GIB // 2)
    assert repr(machine) == "\n".join([
        "device     cpu",
        "processor  Fast CPU",
        "cores      2",
        "memory     16.0 GiB, 3.5 GiB of it available",
        "GPU        no GPU here",
    ])


@pytest.mark.parametrize(("available", "device"), [(True, "cuda"), (False, "cpu")])
def test_the_device_is_cuda_if_there_is_one(monkeypatch, available, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert get_device() == as_device(None) == torch.device(device)
    assert as_device("cpu") == torch.device("cpu")


def test_only_cuda_is_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    synchronize(torch.device("cpu"))
    assert waited == []
    synchronize(torch.device("cuda", 1))
    assert waited == [torch.device("cuda", 1)]


@pytest.mark.parametrize(
    ("error", "device", "sentence"),
    [
        (ValueError, "gpu", "device is a str ('gpu'); 'cpu' or 'cuda' is asked for."),
        (ValueError, torch.device("mps"), "device is mps; 'cpu' or 'cuda' is asked for."),
        (
            ValueError,
            "cuda:1",
            "device is cuda:1, but torch finds no CUDA device here; leave device out or pass 'cpu'.",
        ),
        (TypeError, 0, "as_device(): device is an int (0); device | str | None is asked for."),
        (
            TypeError,
            torch.ones(2),
            "as_device(): device is a tensor of dtype float32 and shape (2,); device | str | None is asked for.",
        ),
    ],
)
def test_another_device_gets_one_sentence(monkeypatch, error, device, sentence):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(error) as caught:
        as_device(device)
    assert str(caught.value) == sentence
