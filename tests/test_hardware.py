"""The table of hardware: exact figures, names that fit one GPU only, what is unknown, and peaks that are measured."""
import dataclasses
import re
from types import SimpleNamespace

import pytest
import torch

from course_lib import hardware
from course_lib.hardware import (
    GPUS,
    UnknownPeak,
    find_gpu,
    get_promised_flop_per_sec,
    measure_peak_flop_per_sec,
)

FP8 = torch.float8_e4m3fn
TABLE = {  # float32, tf32, bfloat16, fp8 in FLOP/s; memory in bytes; bandwidth in bytes/s
    "RTX 3070": (20.31e12, None, 40.6e12, None, 8e9, 448e9),
    "RTX 4090": (82.58e12, 82.58e12, 165.2e12, 330.3e12, 24e9, 1.01e12),
    "RTX 5090": (104.8e12, None, 209.5e12, 419e12, 32e9, 1.792e12),
    "A100 SXM 80 GB": (19.5e12, 156e12, 312e12, None, 80e9, 2.039e12),
    "H100 SXM": (66.9e12, 494.7e12, 989.5e12, 1979e12, 80e9, 3.35e12),
    "H200 SXM": (66.9e12, 494.7e12, 989.5e12, 1979e12, 141e9, 4.8e12),
    "B200": (80e12, 1.1e15, 2.25e15, 4.5e15, 192e9, 8e12),
}


@pytest.fixture
def cuda(monkeypatch):
    """Pretend that torch finds a CUDA device of a given name."""

    def pretend(name):
        properties = SimpleNamespace(name=name, total_memory=22 * 2**30)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)

    return pretend


def test_the_table_holds_the_dense_figures():
    dtypes = torch.float32, "tf32", torch.bfloat16, FP8
    assert {g.name: (*map(g.peak, dtypes), g.memory_bytes, g.bytes_per_sec) for g in GPUS} == TABLE
    for gpu in GPUS:
        assert gpu.peak(torch.float16) == gpu.peak(torch.bfloat16)
        assert gpu.peak(torch.float8_e5m2) == gpu.peak(FP8)
        assert gpu.peak(torch.float64) is None and gpu.balance(torch.float64) is None
        assert isinstance(gpu.memory_bytes, int)
        assert gpu.source.startswith("NVIDIA") and re.search("appendix|specifications", gpu.source)
        assert hash(gpu)


def test_derived_figures_are_what_they_are_derived_from():
    assert find_gpu("RTX 3070").float32 == pytest.approx(5888 * 2 * 1.725e9, rel=1e-3)
    assert find_gpu("RTX 3070").half == pytest.approx(46 * 4 * 64 * 2 * 1.725e9, rel=1e-3)
    assert (find_gpu("RTX 5090").fp8, find_gpu("RTX 5090").half) == (3352e12 / 8, 3352e12 / 16)
    assert find_gpu("H100").half == 1979e12 / 2


def test_bytes_and_flops_balance_where_they_should():
    def balance(name, dtype):
        return round(find_gpu(name).balance(dtype))

    assert [balance(name, torch.bfloat16) for name in ("H100", "A100", "H200")] == [295, 153, 206]
    assert (balance("H100", torch.float32), balance("RTX 3070", torch.float32)) == (20, 45)


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("H100", "H100 SXM"),
        ("h100 sxm", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("A100", "A100 SXM 80 GB"),
        ("NVIDIA GeForce RTX 3070", "RTX 3070"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx-5090", "RTX 5090"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_a_gpu_is_found_by_what_torch_and_people_call_it(called, name, cuda):
    assert find_gpu(called).name == name
    assert get_promised_flop_per_sec(called, torch.bfloat16) == TABLE[name][2]
    cuda(called)
    for device in (None, "cuda", torch.device("cuda", 0)):
        assert get_promised_flop_per_sec(device, torch.float32) == TABLE[name][0]


@pytest.mark.parametrize(
    "called",
    [
        "NVIDIA GeForce RTX 3070 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA GH200 480GB",
        "NVIDIA L4",
        "",
    ],
)
def test_a_similar_name_is_another_gpu(called, cuda):
    assert find_gpu(called) is None
    unknown = get_promised_flop_per_sec(called, torch.float32)
    assert isinstance(unknown, UnknownPeak)
    assert called in str(unknown)
    cuda(called)
    assert f"No peak is known for {called} (22.0 GiB); known are" in str(get_promised_flop_per_sec(None, torch.float32))


def test_an_unknown_peak_says_what_is_known_and_offers_to_measure():
    unknown = get_promised_flop_per_sec("GTX 1080", torch.bfloat16)
    assert str(unknown) == (
        "No peak is known for GTX 1080; known are RTX 3070, RTX 4090, RTX 5090, A100 SXM 80 GB, H100 SXM, H200 SXM, "
        "B200. measure_peak_flop_per_sec(torch.bfloat16) measures what such a machine reaches."
    )
    assert str(get_promised_flop_per_sec("A100", FP8)) == (
        "No peak is known for A100 SXM 80 GB in float8_e4m3fn; known are, in FLOP/s: float32 19.5e12, tf32 156e12, "
        "bfloat16 312e12, float16 312e12."
    )
    assert "RTX 3070 in tf32" in str(get_promised_flop_per_sec("RTX 3070", "tf32"))


def test_a_processor_has_no_promise():
    for device in ("cpu", torch.device("cpu")):
        unknown = get_promised_flop_per_sec(device, torch.float64)
        assert re.match(r"No peak is known for \S.* \((1 core|\d+ cores)\); known are RTX 3070, ", str(unknown))
        assert "measure_peak_flop_per_sec(torch.float64)" in str(unknown)


def test_nothing_is_computed_with_an_unknown_peak():
    unknown = get_promised_flop_per_sec("GTX 1080", torch.float32)
    assert not unknown
    assert (unknown or 5.0) == 5.0
    for compute in (
        lambda: 1 / unknown,
        lambda: unknown / 2,
        lambda: unknown * 2,
        lambda: 2 * unknown,
        lambda: unknown > 1,
        lambda: unknown >= 1,
        lambda: unknown < 1,
        lambda: unknown <= 1,
        lambda: float(unknown),
    ):
        with pytest.raises(TypeError, match=r"^No peak is known for GTX 1080; known are "):
            compute()


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        (
            "get_promised_flop_per_sec(): dtype is torch.int64; a floating dtype or 'tf32' is asked for.",
            lambda: get_promised_flop_per_sec("H100", torch.int64),
        ),
        (
            "get_promised_flop_per_sec(): dtype is a str ('bf16'); a floating dtype or 'tf32' is asked for.",
            lambda: get_promised_flop_per_sec("H100", "bf16"),
        ),
        (
            "measure_peak_flop_per_sec(): dtype is torch.float8_e5m2; one of float16, bfloat16, float32, float64 is "
            "asked for.",
            lambda: measure_peak_flop_per_sec(torch.float8_e5m2),
        ),
        ("device is mps; 'cpu' or 'cuda' is asked for.", lambda: find_gpu("mps")),
        ("get_promised_flop_per_sec(): device is an int (0); device | str | None is asked for.",
         lambda: get_promised_flop_per_sec(0, torch.float32)),
    ],
)
def test_bad_input_gets_one_sentence(sentence, call):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}$"):
        call()


def test_the_table_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GPUS[0].float32 = 1.0


# ---------------------------------------------------------------------------------------------- the measured peak


def sides_measured(monkeypatch, seconds):
    """Run measure_peak_flop_per_sec where a product takes `seconds(side)`: the sides that it tries, and its answer."""
    sides = []

    def time_matmul(a, b):
        assert a.shape == b.shape and a.dtype == b.dtype == torch.float32
        assert a.unique().numel() > 1000 and not torch.equal(a, b)
        sides.append(len(a))
        return seconds(len(a))

    monkeypatch.setattr(hardware, "time_matmul", time_matmul)
    return sides, measure_peak_flop_per_sec(torch.float32, "cpu")


def test_the_peak_is_the_best_of_sides_that_double(monkeypatch):
    at_1e12 = lambda side: 2 * side**3 / 1e12 if side <= 2048 else 2 * side**3 / 0.9e12  # noqa: E731
    sides, peak = sides_measured(monkeypatch, at_1e12)
    assert sides == [256, 512, 1024, 2048]  # 2048 takes 17 ms
    assert peak == pytest.approx(1e12)


def test_a_slow_machine_is_measured_to_1024_and_a_hopeless_dtype_no_further(monkeypatch):
    assert sides_measured(monkeypatch, lambda side: 0.05) == ([256, 512, 1024], 2 * 1024**3 / 0.05)
    assert sides_measured(monkeypatch, lambda side: (side / 256) ** 3 * 0.03)[0] == [256, 512]


def test_a_measured_peak_is_a_number_and_random_numbers_stay_as_they_were_seeded(monkeypatch):
    monkeypatch.setattr(hardware, "_USUAL_SIDE", 256)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert 1e6 < measure_peak_flop_per_sec() < 1e16
    assert torch.equal(torch.rand(3), expected)
    assert (get_promised_flop_per_sec("cpu", torch.float32) or measure_peak_flop_per_sec(device="cpu")) > 1e6
