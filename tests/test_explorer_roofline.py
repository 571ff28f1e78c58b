"""The roofline explorer shows what work costs: FLOPs as torch counts them, bytes of tensors, times under its roof."""
import random

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.explorers import RooflineExplorer, roofline
from course_lib.explorers.base import Nonsense
from course_lib.explorers.roofline import WORK
from course_lib.flops import Roofline
from course_lib.hardware import GPUS

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "fp8": torch.float8_e4m3fn}


def at_random(rng: random.Random) -> RooflineExplorer:
    explorer = RooflineExplorer()
    explorer.do("device", name=rng.choice(GPUS).name)
    explorer.do("dtype", name=rng.choice(explorer.shown["dtypes"]))
    explorer.do("work", name=rng.choice([*WORK]))
    for name, _, highest, _ in explorer.shown["sizes"]:
        explorer.do("size", name=name, exponent=rng.randint(0, highest))
    return explorer


def sizes_of(explorer: RooflineExplorer) -> list[int]:
    return [2**exponent for _, exponent, _, _ in explorer.shown["sizes"]]


def test_three_hundred_settings_agree_with_torch_and_the_table():
    rng, sides = random.Random(0), set()
    for _ in range(300):
        explorer = at_random(rng)
        one, shown, work = explorer.value, explorer.shown, WORK[explorer.shown["work"]]
        gpu = next(gpu for gpu in GPUS if gpu.name == shown["device"])
        dtype = DTYPES[shown["dtype"]]
        operands = [torch.empty(shape, device="meta") for shape in work.operands(*sizes_of(explorer))]
        with FlopCounterMode(display=False) as counter:
            result = work.do(*operands)
        if shown["work"] == "matmul":  # of the others, torch's counter sees nothing
            assert one.flops == counter.get_total_flops()
        moved = sum(x.numel() for x in [*operands, result]) * dtype.itemsize
        assert one.bytes == moved
        assert (shown["peak"], shown["bandwidth"]) == (gpu.peak(dtype), gpu.bytes_per_sec)
        assert one.compute_seconds == one.flops / gpu.peak(dtype)
        assert one.memory_seconds == moved / gpu.bytes_per_sec
        assert (one.bound == "compute") is (one.compute_seconds >= one.memory_seconds * (1 - 1e-12))
        assert shown["intensity"] == one.flops / moved
        roof = Roofline(gpu.peak(dtype), gpu.bytes_per_sec)
        assert shown["reached"] == roof.attainable(one.intensity)
        assert f"{one.bound}-bound" in explorer.facts()
        sides.add(one.bound)
    assert sides == {"compute", "memory"}


def test_the_published_intensities():
    explorer = RooflineExplorer("H100 SXM", "bfloat16")
    for work, want in (("relu", 0.25), ("gelu", 5), ("dot product", 0.5), ("matrix × vector", 0.998)):
        explorer.do("work", name=work)
        assert explorer.value.intensity == pytest.approx(want, abs=1e-3)
    explorer.do("work", name="matmul")
    for name in "BDK":
        explorer.do("size", name=name, exponent=10)
    assert explorer.value.intensity == pytest.approx(1024 / 3)
    assert explorer.shown["balance"] == pytest.approx(295.4, abs=0.1)


def test_a_batch_can_be_dragged_over_the_edge():
    explorer, sides = RooflineExplorer(), []
    for exponent in range(15):
        explorer.asked = {"action": "size", "name": "B", "exponent": exponent, "turn": exponent + 1}
        sides.append(explorer.value.bound)
    assert sides == sorted(sides, reverse=True) and len(set(sides)) == 2


def test_measured_points_stand_beside_this_machines_roof(monkeypatch):
    explorer = RooflineExplorer()
    monkeypatch.setattr(roofline, "measure_peak_flop_per_sec", lambda device: 2e11)
    monkeypatch.setattr(roofline, "measure_bandwidth", lambda device, buffer_bytes: 1e10)
    for work in WORK:
        explorer.do("work", name=work)
        for name, *_ in explorer.shown["sizes"]:
            explorer.do("size", name=name, exponent=6)
        explorer.do("measure")
    assert explorer.shown["device"] == "this machine (measured)" and explorer.shown["dtypes"] == ["float32"]
    assert [name.split(" (")[0] for name, _, _ in explorer.shown["measured"]] == [*WORK]
    for (_, intensity, speed), work in zip(explorer.measured, WORK, strict=True):
        sizes = [64] * len(WORK[work].sizes)
        assert speed > 0
        assert intensity == pytest.approx(WORK[work].flops(*sizes) / WORK[work].elements(*sizes) / 4)
    assert explorer.shown["peak"] == 2e11
    explorer.do("device", name="B200")
    assert explorer.shown["measured"] == []


def test_a_real_measurement():
    explorer = RooflineExplorer()
    explorer.do("work", name="relu")
    explorer.do("measure")
    (_, intensity, speed), roof = explorer.measured[0], explorer.roof
    assert intensity == 0.125 and 1e3 < speed < 1e15
    assert 1e8 < roof.peak < 1e16 and 1e7 < roof.bandwidth < 1e14


def test_what_would_take_long_is_refused():
    explorer = RooflineExplorer()
    for name in "BDK":
        explorer.do("size", name=name, exponent=14)
    explorer.asked = {"action": "measure", "turn": 1}
    assert explorer.shown["problem"]["field"] == "measure" and "choose smaller" in explorer.shown["problem"]["says"]
    assert explorer.measured == [] and explorer.shown["device"] == "H100 SXM"


def test_a_device_without_the_dtype_falls_back():
    explorer = RooflineExplorer("H100 SXM", "fp8")
    explorer.do("device", name="A100 SXM 80 GB")
    assert explorer.shown["dtype"] == "float32"
    with pytest.raises(Nonsense, match="one of float32, bfloat16 is asked for"):
        explorer.do("dtype", name="fp8")
    with pytest.raises(Nonsense, match="H100 SXM"):
        RooflineExplorer("my laptop")
