"""How a notebook's own version of something is compared with course_lib's; test_twins.py runs all this.

A comparison is registered under the name that both bear. It gets the notebook's version and the library's, runs both on
the same inputs, and asserts that they agree: bit for bit, unless it says how closely.
"""
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from course_lib import modules, optim

Comparison = Callable[[object, object], None]
COMPARISONS: dict[str, Comparison] = {}
# (notebook, name, some text of its cell): why that version is other than the library's. A comparison has to notice.
DIFFERENT: dict[tuple[str, str, str], str] = {
    ("11", "train", "num_layers=0"): "As it was published: it ignores two of its settings, and the notebook finds out.",
}


def compares(name: str) -> Callable[[Comparison], Comparison]:
    """Register how a notebook's version and the library's are compared: (mine, ours), which asserts that they agree."""

    def register(function: Comparison) -> Comparison:
        COMPARISONS[name] = function
        return function

    return register


def seeded(make: Callable[[], object], seed: int = 0) -> object:
    torch.manual_seed(seed)
    return make()


def assert_same_model(mine: nn.Module, ours: nn.Module, x: torch.Tensor) -> None:
    """Bit for bit: names, weights, outputs and gradients."""
    assert [*mine.state_dict()] == [*ours.state_dict()]
    for model in (mine, ours):
        model(x).pow(2).sum().backward()
    assert torch.equal(mine(x), ours(x))
    for a, b in zip(mine.parameters(), ours.parameters(), strict=True):
        assert torch.equal(a, b) and torch.equal(a.grad, b.grad)


@compares("Linear")
def _linear(mine, ours):
    for sizes in ((64, 64), (7, 3), (1, 5), (300, 1)):
        x = torch.randn(9, sizes[0])
        assert_same_model(seeded(lambda: mine(*sizes)), seeded(lambda: ours(*sizes)), x)  # noqa: B023  (called at once)


@compares("Cruncher")
def _cruncher(mine, ours):
    for sizes in ((64, 2), (16, 0), (5, 7)):
        x = torch.randn(8, sizes[0])
        a, b = (seeded(lambda: make(*sizes)) for make in (mine, ours))  # noqa: B023  (called at once)
        assert a(x).shape == (8,)
        assert_same_model(a, b, x)


@compares("get_num_parameters")
def _get_num_parameters(mine, ours):
    tied = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4, bias=False))
    tied[2].weight = tied[0].weight
    frozen = nn.Linear(3, 2).requires_grad_(False)
    for model in (tied, frozen, nn.BatchNorm1d(5), nn.ReLU(), nn.Transformer(8, 2, 1, 1, 16, batch_first=True)):
        assert mine(model) == ours(model)


@compares("seed_everything")
def _seed_everything(mine, ours):
    def draws() -> list:
        return [torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()]

    for seed in (0, 1, 2**32 - 1):
        mine(seed)
        first = draws()
        ours(seed)
        assert draws() == first


@compares("make_generator")
def _make_generator(mine, ours):
    for seed in (0, 1, 2**32 - 1):
        for purpose in ("weights", "data", "Gewichte für später"):
            a, b = mine(seed, purpose), ours(seed, purpose)
            assert a.initial_seed() == b.initial_seed()
            assert torch.equal(torch.randn(20, generator=a), torch.randn(20, generator=b))


@compares("contiguous_strides")
def _contiguous_strides(mine, ours):
    for shape in ((), (5,), (2, 3, 4), (7, 1, 2, 1)):
        assert mine(shape) == ours(shape)


def assert_same_steps(mine: type, ours: type) -> None:
    """After 300 steps the largest difference is 1e-10 of the largest parameter in float64, in float32 1e-5.

    Two groups with a learning rate each; half of the gradients are 0, and a parameter is without one now and then.
    """
    for dtype, closeness in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        generator = torch.Generator().manual_seed(0)
        start = [torch.randn(size, generator=generator, dtype=torch.float64).to(dtype) for size in ((4, 3), (5,))]
        params = [[nn.Parameter(p.clone()) for p in start] for _ in range(2)]
        optimizers = [make([{"params": two[:1]}, {"params": two[1:], "lr": 0.003}], lr=0.01)
                      for make, two in zip((mine, ours), params, strict=True)]  # fmt: skip
        for step in range(300):
            g = [torch.randn(p.shape, generator=generator, dtype=torch.float64).relu().to(dtype) for p in start]
            for two, optimizer in zip(params, optimizers, strict=True):
                two[0].grad, two[1].grad = g[0].clone(), None if step % 7 == 3 else g[1].clone()
                optimizer.step()
        for p, q, begin in zip(*params, start, strict=True):
            assert (p - q).abs().max() <= closeness * q.abs().max() and not torch.equal(q, begin)


for _name in ("SGD", "AdaGrad", "RMSProp", "Adam", "AdamW"):
    compares(_name)(assert_same_steps)


@compares("CausalAttention")
@compares("Block")
def _part_of_a_transformer(mine, ours):
    for dim, heads in ((12, 3), (8, 1)):
        x = torch.randn(2, 5, dim)
        a, b = (seeded(lambda: make(dim, heads)) for make in (mine, ours))  # noqa: B023  (called at once)
        assert_same_model(a, b, x)


@compares("save_checkpoint")
def _save_checkpoint(mine, ours):
    """The library's file holds all that the notebook's holds, and both take the place of an older file."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    contents = []
    with TemporaryDirectory() as folder:
        for number, save in enumerate((mine, ours)):
            path = Path(folder, f"{number}.pt")
            path.write_bytes(b"an older file")
            assert save(path, model, optimizer, 3) == path
            contents.append(torch.load(path, weights_only=True))
        assert sorted(path.name for path in Path(folder).iterdir()) == ["0.pt", "1.pt"]
    assert {"model", "optimizer", "step"} <= contents[0].keys()
    for name, value in contents[0].items():
        torch.testing.assert_close(value, contents[1][name], rtol=0, atol=0)


@compares("matmul_flops")
def _matmul_flops(mine, ours):
    """Notebook 13's takes a dtype and lets torch count a (64, 128) matrix times a (128, 32) one: as many in each."""
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert mine(dtype) == ours(64, 128, 32)


@compares("train")
def _train(mine, ours):
    """A notebook's is told the sizes and the rate, the library's gets the model and the optimizer: the same losses."""

    def get_batch(size):
        x = torch.randn(size, 5)
        return x, x.sum(1)

    for num_layers, lr in ((0, 0.01), (2, 0.01), (0, 0.02)):
        _, losses = seeded(lambda: mine("run", get_batch, 5, num_layers, 4, 10, lr))  # noqa: B023  (called at once)
        torch.manual_seed(0)
        model = modules.Cruncher(5, num_layers)
        optimizer = optim.SGD(model.parameters(), lr=lr)
        assert losses == ours(model, lambda: get_batch(4), optimizer, 10).losses
