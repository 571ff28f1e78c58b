"""One seed repeats all three generators; a generator per purpose repeats whatever else is drawn."""
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from course_lib.randomness import make_generator, seed_everything


def draws() -> tuple[list, list, float]:
    return torch.rand(4).tolist(), np.random.rand(4).tolist(), random.random()


def test_one_seed_repeats_all_three():
    seed_everything(7)
    first = draws()
    after = draws()
    seed_everything(7)
    assert draws() == first
    seed_everything(8)
    other = draws()
    for mine, later, others in zip(first, after, other, strict=True):
        assert mine != later and mine != others


@pytest.mark.parametrize("which", range(3))
def test_each_of_the_three_is_seeded(which):
    """Move one generator on: only if it is seeded itself does it come back."""
    seed_everything(0)
    wanted = draws()[which]
    seed_everything(0)
    (torch.rand(5), np.random.rand(5), random.random())
    seed_everything(0)
    assert draws()[which] == wanted


def test_a_purpose_repeats_whatever_else_is_drawn():
    wanted = torch.rand(5, generator=make_generator(0, "data"))
    weights, data = make_generator(0, "weights"), make_generator(0, "data")
    torch.rand(1000, generator=weights)
    torch.rand(1000)
    assert torch.equal(torch.rand(5, generator=data), wanted)


def test_making_a_generator_leaves_torchs_own_alone():
    before = torch.get_rng_state()
    torch.rand(5, generator=make_generator(3, "dropout"))
    assert torch.equal(torch.get_rng_state(), before)


def test_seeds_and_purposes_give_unrelated_numbers():
    names = ["weights", "data", "dropout", "weights ", "0", "1", "shuffle", "noise"]
    rows = torch.stack([torch.randn(4096, generator=make_generator(s, name)) for s in range(8) for name in names])
    related = torch.corrcoef(rows) - torch.eye(len(rows))
    assert related.abs().max() < 6 / 4096**0.5
    assert torch.rand(1, generator=make_generator(1, "0 x")) != torch.rand(1, generator=make_generator(10, "x"))


def test_another_process_draws_the_same_numbers():
    """Python's own hash of a text would be another one in each process."""
    code = "from course_lib.randomness import make_generator as m; print(m(5, 'data').initial_seed())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert int(said.stdout) == make_generator(5, "data").initial_seed() < 2**32


def test_torchs_cpu_generator_looks_at_32_bits():
    """Why no larger seeds are given: they would be other names for the same numbers."""
    large, small = (torch.Generator().manual_seed(seed) for seed in (2**32 + 5, 5))
    assert torch.equal(torch.rand(4, generator=large), torch.rand(4, generator=small))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_not_all_three_take_is_refused(seed):
    seed_everything(0)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=rf"seed_everything\(\): seed is {seed}; 0 to 4294967295 is asked for"):
        seed_everything(seed)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match=rf"make_generator\(\): seed is {seed}"):
        make_generator(seed, "data")
    seed_everything(2**32 - 1)


def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match=r"seed is a float \(1.5\); an int"):
        seed_everything(1.5)
    with pytest.raises(ValueError, match="purpose is empty"):
        make_generator(0, "")
    with pytest.raises(TypeError, match="purpose"):
        make_generator(0)
    seed_everything(np.int64(3))
