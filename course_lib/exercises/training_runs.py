"""What the exercises of notebook 11 are tried on: runs, batches and losses; and the numbers that a message holds."""
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn


def descend(lr, num_steps, momentum, seed):
    """Losses on the way down a parabola. Every setting arrives."""
    w, velocity, losses = 1.0 + seed / 8, 0.0, []
    for _ in range(num_steps):
        losses.append(w * w)
        velocity = momentum * velocity + 2 * w
        w -= lr * velocity
    return losses


def late(lr, num_steps, momentum, seed):
    """Its learning rate counts from the fourth step on, its seed never, and the last loss is always the same."""
    return [*descend(0.1, 3, momentum, 0), *descend(lr, num_steps - 3, 0.0, 0), 0.5]


_RUNS = {
    "all arrive": descend,
    "published": lambda lr, num_steps, momentum, seed: descend(0.1, num_steps, 0.0, seed),
    "without seed": lambda lr, num_steps, momentum, seed: descend(lr, num_steps, momentum, 0),
    "late": late,
    "none arrives": lambda lr, num_steps, momentum, seed: descend(0.1, 3, 0.0, 0),
}


@dataclass(frozen=True)
class Run:
    """A training function with a name, which tells two of them apart."""

    name: str

    def __call__(self, **settings: float) -> list[float]:
        return _RUNS[self.name](**settings)


def batches(number, size, dim=3):
    """Batches of a linear function."""
    xs = [torch.randn(size, dim) for _ in range(number)]
    return [(x, x @ torch.arange(1.0, dim + 1)) for x in xs]


def parameter(gradient):
    """A parameter of ones with this gradient."""
    made = nn.Parameter(torch.ones(1 if gradient is None else torch.tensor(gradient).shape))
    made.grad = None if gradient is None else torch.tensor(gradient)
    return made


def out_of(model, kind="fine"):
    """A loss of the two weights, whose gradient has the norm 5; `kind` says what is wrong with it."""
    a, b = model.a, model.b
    usual = 3 * a + 4 * b
    if kind == "2.5, and its gradient is nan":  # the root of 0 has a slope of inf, and inf · 0 is NaN
        return 2.5 + (a - a.detach()).pow(2).sum().sqrt()
    if kind == "2.5, and its gradient is inf":
        return 2.5 + (b - b.detach()).sqrt()
    if kind == "nan":
        return usual * math.nan
    if kind in ("inf", "-inf"):
        return usual + float(kind)
    return usual


class Two(nn.Module):
    """A model of two numbers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.tensor(0.25))


def norm_of(parameters: Iterable[nn.Parameter]) -> float:
    """The norm of all gradients together."""
    return math.sqrt(sum(p.grad.pow(2).sum().item() for p in parameters if p.grad is not None))


def true_norm(kind):
    """The norm of the gradient of `out_of`."""
    model = Two()
    out_of(model, kind).backward()
    return norm_of(model.parameters())


def claims(message: str, **wanted: float) -> dict[str, bool]:
    """Whether each of the wanted numbers is in the message, each as a number of its own."""
    found = [float(one) for one in re.findall(r"[-+]?(?:nan|inf|\d+\.?\d*(?:e[-+]?\d+)?)", message.lower())]
    seen = {}
    for name, value in wanted.items():
        at = next((place for place, one in enumerate(found) if _close(one, value)), None)
        seen[f"the message holds the {name}"] = at is not None
        if at is not None:
            found.pop(at)
    return seen


def _close(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=0.02)
