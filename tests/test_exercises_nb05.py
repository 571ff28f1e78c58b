"""The solutions of notebook 05 against torch, the library and brute force, on random cases."""
import random
import time
from itertools import count
from math import prod

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.exercises.nb05 import (
    _Device,
    benchmark,
    compute_bound_batch,
    einsum_flops,
    forward_mfu,
    matmul_intensity,
)
from course_lib.flops import Roofline, matmul_flops, mfu
from course_lib.hardware import GPUS, find_gpu


def random_einsum(rng: random.Random) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """An equation whose letters are a batch, x's own, y's own, or vanish, in any order, with spaces now and then."""
    kinds = {"batch": "abc", "x": "def", "y": "ghi", "vanish": "jkl"}
    letters = {kind: rng.sample(names, rng.randint(0, 2)) for kind, names in kinds.items()}
    size = {letter: rng.randint(1, 5) for names in letters.values() for letter in names}

    def shuffled(*of: str) -> list[str]:
        names = [letter for kind in of for letter in letters[kind]]
        return rng.sample(names, len(names))

    x, y, out = shuffled("batch", "x", "vanish"), shuffled("batch", "y", "vanish"), shuffled("batch", "x", "y")
    gap = rng.choice(["", " "])
    equation = f"{gap.join(x)},{gap}{gap.join(y)}{gap}->{gap}{gap.join(out)}"
    return equation, tuple(size[letter] for letter in x), tuple(size[letter] for letter in y)


def test_einsum_flops_are_the_products_that_einsum_sums():
    rng = random.Random(0)
    summed = 0
    for _ in range(500):
        equation, x_shape, y_shape = random_einsum(rng)
        ones = (torch.ones(shape, dtype=torch.float64) for shape in (x_shape, y_shape))
        result = torch.einsum(equation, *ones)
        vanishing = set("jkl") & set(equation)
        summed += bool(vanishing)
        assert einsum_flops(equation, x_shape, y_shape) == result.sum() * (2 if vanishing else 1)
    assert 100 < summed < 450


@pytest.mark.parametrize(
    ("equation", "x_shape", "y_shape"),
    [
        ("b d, d k -> b k", (3, 4), (4, 5)),
        ("b i j, b j k -> b i k", (2, 3, 4), (2, 4, 5)),
        ("b q h d, b k h d -> b h q k", (2, 3, 4, 5), (2, 6, 4, 5)),
    ],
)
def test_einsum_flops_are_those_of_torchs_counter(equation, x_shape, y_shape):
    x, y = torch.ones(x_shape), torch.ones(y_shape)
    with FlopCounterMode(display=False) as counter:
        torch.einsum(equation, x, y)
    assert einsum_flops(equation, x_shape, y_shape) == counter.get_total_flops() > prod(x_shape)


def test_the_device_of_the_benchmark_works_while_the_caller_goes_on():
    device = _Device([5, 2], at_once=False)
    device.call()
    assert device.clock() == 64 + device.LAUNCH
    device.call()
    device.synchronize()
    assert device.clock() == 64 + device.LAUNCH + 5 + 2
    device.synchronize()
    assert device.clock() == 64 + device.LAUNCH + 5 + 2


def test_the_benchmark_works_with_a_real_clock():
    naps = iter([0.2, 0.01, 0.06, 0.02])
    seconds = benchmark(lambda: time.sleep(next(naps)), 3, lambda: None, time.perf_counter)
    assert 0.02 <= seconds < 0.2  # the middle of the last three


def test_forward_mfu_is_the_librarys_utilisation():
    rng = random.Random(1)
    above = 0
    for _ in range(500):
        parameters, tokens, gpus = rng.randint(1, 10**9), rng.randint(1, 10**5), rng.randint(1, 16)
        printed, sparse = rng.uniform(1e12, 1e15), rng.random() < 0.5
        seconds = 2 * parameters * tokens / printed / gpus * rng.uniform(0.5, 4)
        promised = gpus * printed / (2 if sparse else 1)
        try:
            share = mfu(2 * parameters * tokens, seconds, promised)
        except ValueError:
            above += 1
            with pytest.raises(ValueError, match="wrong peak"):
                forward_mfu(parameters, tokens, seconds, printed, sparse, gpus)
        else:
            assert forward_mfu(parameters, tokens, seconds, printed, sparse, gpus) == pytest.approx(share, rel=1e-12)
    assert 100 < above < 400


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_matmul_intensity_is_flops_over_the_bytes_of_the_tensors(dtype):
    rng = random.Random(2)
    for _ in range(100):
        b, d, k = (rng.randint(1, 300) for _ in range(3))
        moved = sum(torch.empty(shape, dtype=dtype, device="meta").nbytes for shape in ((b, d), (d, k), (b, k)))
        assert matmul_intensity(b, d, k, dtype) == pytest.approx(matmul_flops(b, d, k) / moved)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("d", "k"), [(8192, 8192), (768, 3072), (300, 5000), (32, 32)])
def test_the_batch_is_the_first_that_the_roofline_calls_compute_bound(gpu, dtype, d, k):
    roof = Roofline(gpu.peak(dtype), gpu.bytes_per_sec)
    found = compute_bound_batch(d, k, dtype.itemsize, roof.peak, roof.bandwidth)
    if found is None:
        assert roof.bound(matmul_intensity(10**12, d, k, dtype)) == "memory"
    else:
        assert found == next(b for b in count(1) if roof.bound(matmul_intensity(b, d, k, dtype)) == "compute")


def test_the_batch_of_an_h100():
    h100 = find_gpu("H100")
    assert compute_bound_batch(8192, 8192, 2, h100.half, h100.bytes_per_sec) == 319
    assert compute_bound_batch(10**9, 10**9, 2, h100.half, h100.bytes_per_sec) == 296  # just above 295.4
