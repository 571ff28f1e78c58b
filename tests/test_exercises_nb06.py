"""The solutions of notebook 06 against autograd, torch's own counters and `account`, on random layers and batches."""
import random
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from course_lib.accounting import account
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.nb06 import accumulate_gradients, activation_bytes, linear_backward, training_flops


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11, 12, 50])
def test_pieces_of_any_size_give_the_gradient_of_the_whole_batch(size: int) -> None:
    torch.manual_seed(size)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    x, y = torch.randn(11, 4).double(), torch.randn(11, 2).double()
    F.mse_loss(model(x), y).backward()
    whole = gradients(model)
    model.zero_grad()
    for calls in (1, 2):  # they add to what is there, as backward() does
        accumulate_gradients(model, x, y, size)
        for got, want in zip(gradients(model), whole, strict=True):
            torch.testing.assert_close(got, calls * want)


def test_what_is_kept_while_accumulating_is_seen() -> None:
    def sum_of_losses(model: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
        pairs = zip(x.split(size), y.split(size), strict=True)
        sum((model(a) - b).square().sum() / y.numel() for a, b in pairs).backward()

    result = judge(accumulate_gradients, sum_of_losses)
    assert result.diagnosis == "one_backward_for_all"
    assert "chunks kept at a time: gave 2, expected 1" in result.message


def test_backward_of_a_linear_layer_is_autograds() -> None:
    rng = random.Random(0)
    for _ in range(200):
        leading = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
        d, k = rng.randint(1, 5), rng.randint(1, 5)
        x = torch.randn(*leading, d, dtype=torch.float64, requires_grad=True)
        w = torch.randn(d, k, dtype=torch.float64, requires_grad=True)
        y = x @ w
        dy = torch.randn_like(y)
        y.backward(dy)
        dx, dw = linear_backward(x.detach(), w.detach(), dy)
        torch.testing.assert_close(dx, x.grad)
        torch.testing.assert_close(dw, w.grad)


def test_flops_with_frozen_layers_are_those_that_torch_counts() -> None:
    rng = random.Random(1)
    seen = set()
    for _ in range(300):
        batch, sizes = rng.randint(1, 9), [rng.randint(1, 9) for _ in range(rng.randint(2, 6))]
        layers = [(d, k, rng.random() < 0.5) for d, k in pairwise(sizes)]
        x = torch.empty(batch, sizes[0], device="meta")
        with FlopCounterMode(display=False) as counter, torch.device("meta"):
            for d, k, learns in layers:
                x = nn.Linear(d, k, bias=False).requires_grad_(learns)(x)
            if x.requires_grad:
                x.sum().backward()
        assert training_flops(batch, layers) == counter.get_total_flops(), (batch, layers)
        seen.add(tuple(learns for *_, learns in layers))
    assert len(seen) > 40


class Checkpointed(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=False)


MODELS = {
    "linear": lambda: nn.Linear(8, 3),
    "relu": lambda: nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(8, 8), nn.ReLU()))),
    "gelu": lambda: nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(8, 8), nn.GELU()))),
    "checkpointed": lambda: Checkpointed(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))),
    "norm": lambda: nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 4), nn.Softmax(-1)),
    "buffers": lambda: nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5)),
    "frozen below": lambda: nn.Sequential(nn.Linear(8, 8).requires_grad_(False), nn.Tanh(), nn.Linear(8, 2)),
    "tied": lambda: nn.Sequential(*[nn.Linear(8, 8)] * 3),
    "nothing learns": lambda: nn.Linear(8, 3).requires_grad_(False),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_audit_agrees_with_account(name: str) -> None:
    loss = (lambda y: y.sum()) if name != "nothing learns" else None
    kept = activation_bytes(MODELS[name](), torch.randn(6, 8))
    if loss is None:
        assert kept == 0
    else:
        assert kept == account(MODELS[name], lambda: torch.randn(6, 8), loss=loss).activation_bytes
        assert kept > 0


def test_sixteen_layers_keep_what_the_notebook_says() -> None:
    unit = 4 * 8 * 32
    for activation, plain in ((nn.ReLU, 17), (nn.GELU, 32)):
        layers = [nn.Sequential(nn.Linear(32, 32, bias=False), activation()) for _ in range(16)]
        x = torch.randn(8, 32)
        assert activation_bytes(nn.Sequential(*layers), x) == plain * unit
        assert activation_bytes(nn.Sequential(*map(Checkpointed, layers)), x) == 16 * unit
