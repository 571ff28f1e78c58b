"""FLOPs against torch's own counter, utilisation that refuses nonsense, the roofline against arithmetic."""
import math
import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.flops import Roofline, matmul_flops, mfu
from course_lib.hardware import find_gpu, get_promised_flop_per_sec


@pytest.mark.parametrize(("b", "d", "k"), [(2, 3, 5), (1, 7, 4), (64, 512, 256), (1, 1, 1), (0, 3, 2)])
def test_matmul_flops_are_those_of_torchs_counter(b, d, k):
    x, w = torch.empty(b, d, device="meta"), torch.empty(d, k, device="meta")
    with FlopCounterMode(display=False) as counter:
        x @ w
    assert matmul_flops(b, d, k) == counter.get_total_flops() == 2 * b * d * k


def test_the_recorded_run_on_an_rtx_3070():
    flops = matmul_flops(16384, 32768, 8192)
    assert flops == 8_796_093_022_208
    assert flops / 1.2285 == pytest.approx(7.16e12, rel=1e-3)
    assert mfu(flops, 1.2285, get_promised_flop_per_sec("RTX 3070", torch.float32)) == pytest.approx(0.3525, abs=1e-4)
    assert mfu(21.06e12, 1, get_promised_flop_per_sec("RTX 3070", torch.bfloat16)) == pytest.approx(0.519, abs=5e-4)
    with pytest.raises(ValueError, match=r"wrong peak: 2.106e\+13 FLOP/s would be 103.7% of 2.031e\+13"):
        mfu(21.06e12, 1, get_promised_flop_per_sec("RTX 3070", torch.float32))


def test_utilisation_is_a_share():
    assert mfu(50, 2, 100) == 0.25
    assert mfu(200, 2, 100) == 1
    assert mfu(0, 1, 1) == 0
    assert mfu(matmul_flops(2, 3, 5), 1, 120.0) == 0.5


PLEASE = "; a finite number above 0 is asked for."


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        (f"mfu(): seconds is 0{PLEASE}", lambda: mfu(1, 0, 1)),
        (f"mfu(): seconds is -1.0{PLEASE}", lambda: mfu(1, -1.0, 1)),
        (f"mfu(): seconds is inf{PLEASE}", lambda: mfu(1, math.inf, 1)),
        (f"mfu(): promised_flop_per_sec is nan{PLEASE}", lambda: mfu(1, 1, math.nan)),
        (f"mfu(): promised_flop_per_sec is 0{PLEASE}", lambda: mfu(1, 1, 0)),
        ("mfu(): flops is -1; a finite number, 0 or more, is asked for.", lambda: mfu(-1, 1, 1)),
        ("mfu(): flops is nan; a finite number, 0 or more, is asked for.", lambda: mfu(math.nan, 1, 1)),
        (
            "mfu(): wrong peak: 3 FLOP/s would be 150.0% of 2; the dense peak of the dtype that ran, of all devices "
            "that took part, is asked for.",
            lambda: mfu(3, 1, 2),
        ),
        ("mfu(): flops is a str ('1e12'); a float is asked for.", lambda: mfu("1e12", 1, 1)),
        (f"mfu(): {get_promised_flop_per_sec('cpu', torch.float32)}",
         lambda: mfu(1, 1, get_promised_flop_per_sec("cpu", torch.float32))),
        ("matmul_flops(): d is -3; at least 0 is asked for.", lambda: matmul_flops(2, -3, 4)),
        ("matmul_flops(): k is a float (0.5); an int is asked for.", lambda: matmul_flops(2, 3, 0.5)),
        (f"Roofline(): bandwidth is 0{PLEASE}", lambda: Roofline(1.0, 0)),
        (f"Roofline(): peak is -2{PLEASE}", lambda: Roofline(-2, 1)),
        ("Roofline(): peak is None; a float is asked for.", lambda: Roofline(None, 1)),
    ],
)
def test_nonsense_gets_one_sentence(sentence, call):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}$"):
        call()


def test_the_roofline_is_the_lower_of_two_lines():
    roof = Roofline(peak=100.0, bandwidth=10.0)
    assert roof.balance == 10
    assert [roof.attainable(intensity) for intensity in (0.5, 9, 10, 11, 1000)] == [5, 90, 100, 100, 100]
    assert [roof.bound(intensity) for intensity in (0.5, 9.99, 10, 11)] == ["memory", "memory", "compute", "compute"]
    for flops, moved in ((1, 100), (1000, 100), (5000, 100)):
        assert roof.seconds(flops, moved) == pytest.approx(flops / roof.attainable(flops / moved))


def test_the_roofline_of_an_h100():
    h100 = find_gpu("H100")
    roof = Roofline(h100.half, h100.bytes_per_sec)
    assert roof.balance == h100.balance(torch.bfloat16)
    n = 8192
    assert roof.seconds(matmul_flops(n, n, n), 3 * 2 * n * n) == pytest.approx(2 * n**3 / 989.5e12)
    assert roof.seconds(n * n, 2 * 2 * n * n) == pytest.approx(4 * n * n / 3.35e12)
