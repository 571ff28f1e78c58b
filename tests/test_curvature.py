"""The largest curvature against the whole Hessian, a formula, and what a learning rate beyond 2/curvature does."""
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.curvature import largest_curvature
from course_lib.modules import Cruncher
from course_lib.optim import SGD


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_it_is_the_hessians_largest_eigenvalue():
    hidden, out = torch.randn(3, 5, generator=seeded()), torch.randn(5, generator=seeded(1))
    x, y = torch.randn(20, 3, generator=seeded(2)), torch.randn(20, generator=seeded(3))

    def loss(hidden, out):
        return F.mse_loss(torch.tanh(x @ hidden) @ out, y)

    blocks = torch.autograd.functional.hessian(loss, (hidden, out))
    hessian = torch.cat([torch.cat([b.reshape(p.numel(), -1) for b in row], 1) for row, p in
                         zip(blocks, (hidden, out), strict=True)])  # fmt: skip
    wanted = torch.linalg.eigvalsh(hessian).abs().max().item()
    weights = [nn.Parameter(hidden), nn.Parameter(out)]
    found = [largest_curvature(loss(*weights), weights, generator=seeded(seed)) for seed in (0, 0, 1)]
    assert found[0] == found[1] and found == pytest.approx([wanted] * 3, rel=1e-3)


@pytest.mark.parametrize("num_layers", [0, 1, 2, 3])
def test_a_deep_linear_model_that_has_learnt_curves_as_the_formula_says(num_layers):
    """The flattest minimum: each of the L + 1 factors has the size s^(1/(L + 1)), along one direction."""
    dim, s = 6, 20.0
    model, target = Cruncher(dim, num_layers), F.one_hot(torch.tensor(2), dim) * s
    share = s ** (1 / (num_layers + 1))
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.zero_()[2, 2] = share
        model.final.weight.zero_()[2] = share
    x = math.sqrt(dim) * torch.eye(dim)  # as a batch of standard normal numbers without end
    parameters = list(model.parameters())
    curvature = largest_curvature(F.mse_loss(model(x), x @ target.float()), parameters, generator=seeded())
    assert curvature == pytest.approx(2 * (num_layers + 1) * s ** (2 * num_layers / (num_layers + 1)), rel=1e-3)
    for lr, grows in ((1.9 / curvature, False), (2.1 / curvature, True)):
        assert distance_after(model, x, x @ target.float(), lr) == grows


def distance_after(model, x, y, lr):
    """Whether a small push away from the minimum grows within 20 steps."""
    twin = Cruncher(len(x), len(model.layers))
    with torch.no_grad():
        for p, q in zip(twin.parameters(), model.parameters(), strict=True):
            p.copy_(q * 1.0001)
    optimizer, losses = SGD(twin.parameters(), lr=lr), []
    for _ in range(20):
        loss = F.mse_loss(twin(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] > losses[0]


def test_what_makes_no_sense_gets_one_sentence():
    weight = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match=r"^largest_curvature\(\): rounds is 0; at least 1 is asked for\.$"):
        largest_curvature(weight.pow(2).sum(), [weight], rounds=0)
    with pytest.raises(TypeError, match=r"^largest_curvature\(\): loss is a tensor of dtype float32 and shape \(2,\);"):
        largest_curvature(weight.pow(2), [weight])
