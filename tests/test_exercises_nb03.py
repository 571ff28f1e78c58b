"""The solutions of notebook 03 against torch itself, on random tensors with strides of every kind."""
import math
import random
import re

import pytest
import torch

from course_lib import storage
from course_lib.exercises.nb03 import (
    OPERATIONS,
    aliases,
    can_view,
    contiguous_strides,
    sliding_windows,
    storage_position,
)

TRIALS = 5000


def random_strided(rng: random.Random) -> torch.Tensor:
    """A tensor as programs meet them (permuted, sliced with steps, expanded), or one with any strides at all."""
    shape = [rng.choice([1, 2, 2, 3, 4, 6] + [0] * (rng.random() < 0.1)) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.4:
        strides = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        return torch.arange(1000).as_strided(shape, strides, rng.randint(0, 5))
    x = torch.arange(math.prod(shape) or 1)[: math.prod(shape)].reshape(shape)
    x = x.permute(rng.sample(range(x.dim()), x.dim()))
    for axis in range(x.dim()):
        if rng.random() < 0.2:
            x = x[(slice(None),) * axis + (slice(rng.randint(0, 1), None, rng.randint(1, 2)),)]
        elif x.shape[axis] == 1 and rng.random() < 0.5:
            x = x.expand([3 if a == axis else -1 for a in range(x.dim())])
    return x


def random_shape_of(numel: int, rng: random.Random) -> tuple[int, ...]:
    """A shape with that many elements, now and then with another number of them."""
    shape = []
    while numel > 1:
        shape.append(rng.choice([n for n in range(2, numel + 1) if numel % n == 0]))
        numel //= shape[-1]
    shape += [numel] * (numel == 0) + [1] * rng.choice([0, 0, 0, 1, 2])
    shape += [rng.randint(0, 3)] * (rng.random() < 0.1)
    rng.shuffle(shape)
    return tuple(shape)


def torch_views(x: torch.Tensor, shape: tuple[int, ...]) -> bool:
    try:
        x.view(shape)
    except RuntimeError:
        return False
    return True


def test_can_view_is_the_rule_of_torch():
    rng = random.Random(0)
    answers = {True: 0, False: 0, "same size, not viewable": 0, "viewable, not contiguous": 0, "empty": 0}
    for _ in range(TRIALS):
        x = random_strided(rng)
        shape = random_shape_of(x.numel(), rng)
        works = torch_views(x, shape)
        assert can_view(tuple(x.shape), x.stride(), shape) is works, (x.shape, x.stride(), shape)
        answers[works] += 1
        answers["same size, not viewable"] += not works and math.prod(shape) == x.numel()
        answers["viewable, not contiguous"] += works and not x.is_contiguous()
        answers["empty"] += works and x.numel() == 0
    assert min(answers.values()) > 100, answers


def test_storage_position_is_where_torch_reads():
    rng = random.Random(1)
    for _ in range(1000):
        x = random_strided(rng)
        if x.numel():
            index = tuple(rng.randrange(size) for size in x.shape)
            everything = torch.tensor([]).to(x.dtype).set_(x.untyped_storage())
            assert everything[storage_position(x.stride(), index, x.storage_offset())] == x[index]


def test_contiguous_strides_are_those_of_torch_and_of_the_library():
    rng = random.Random(2)
    for _ in range(1000):
        shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(0, 6)))
        assert contiguous_strides(shape) == torch.empty(shape, device="meta").stride()
        assert contiguous_strides(shape) == storage.contiguous_strides(shape)


def test_sliding_windows_are_those_of_unfold_and_a_view():
    rng = random.Random(3)
    seen = 0
    while seen < 500:
        x = random_strided(rng)
        if x.dim() == 2 and x.numel():
            size = rng.randint(1, x.shape[1])
            windows = sliding_windows(x, size)
            assert torch.equal(windows, x.unfold(1, size, 1))
            assert windows.stride() == x.unfold(1, size, 1).stride()
            assert storage.same_storage(windows, x)
            seen += 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8])
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (4, 3)])
def test_aliases_names_what_shares_the_storage(dtype, shape):
    for x in (torch.ones(shape, dtype=dtype), torch.ones(shape, dtype=dtype).T):
        shared = {name for name in OPERATIONS if storage.same_storage(eval(name), x)}
        assert aliases(x) == shared


def test_the_stub_of_aliases_lists_the_twelve():
    table = aliases.stub.split("\n\n")[1]
    assert tuple(re.split(r"\s{2,}", table.strip())) == OPERATIONS
    assert len(set(OPERATIONS)) == 12
