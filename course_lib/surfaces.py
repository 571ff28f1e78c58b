"""Losses of two parameters, to look at what an optimizer does: five surfaces, and the path that it takes down one.

The two parameters are one tensor p of shape (2,), as an optimizer gets them; a surface takes any number of such points.
Paths are computed in float64, so that they are the same on every machine as far as a picture shows.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.optim import Optimizer

from course_lib.checked import checked, describe

Point = tuple[float, float]


@dataclass(frozen=True)
class Surface:
    """A loss of two parameters; called, it is its `height`.

    `formula` writes it down with x and y for the two. `x_range` and `y_range` are what a picture should show, `start`
    is where a descent is worth watching, and `lowest` are all the points where the loss is smallest.
    """

    name: str
    formula: str
    height: Callable[[Tensor], Tensor]
    x_range: Point
    y_range: Point
    start: Point
    lowest: tuple[Point, ...]

    @checked
    def __call__(self, p: Float[Tensor, "*points 2"]) -> Float[Tensor, "*points"]:
        """The loss at each point: (…, 2) to (…)."""
        return self.height(p)


class Descent(NamedTuple):
    """Where an optimizer came by: the start and the point after each step, and the loss at each of these points."""

    path: Float64[Tensor, "points 2"]
    losses: Float64[Tensor, "points"]


@checked
def descend(
    surface: Callable[[Tensor], Tensor],
    optimizer: Callable[[list], Optimizer],
    start: Point,
    steps: int,
) -> Descent:
    """Take so many steps down a surface: steps + 1 points and their losses.

    `surface` is a Surface or any differentiable function of a (2,) tensor. `optimizer` makes an optimizer of a list of
    parameters, as in `lambda params: AdaGrad(params, lr=0.1)`. Nothing stops a descent that goes up: it may end in inf
    or NaN. Raises ValueError for a start that is not finite and fewer than 0 steps, TypeError where `optimizer` or
    `surface` returns something else.
    """
    if not all(map(math.isfinite, start)):
        raise ValueError(f"descend(): start is {start}; two finite numbers are asked for.")
    if steps < 0:
        raise ValueError(f"descend(): steps is {steps}; at least 0 is asked for.")
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64, device="cpu"))
    one = optimizer([p])
    if not isinstance(one, Optimizer):
        raise TypeError(f"descend(): optimizer returned {describe(one)}; a torch Optimizer is asked for.")
    path = torch.empty(steps + 1, 2, dtype=torch.float64, device="cpu")
    losses = torch.empty(steps + 1, dtype=torch.float64, device="cpu")
    for step in range(steps + 1):
        path[step] = p.detach()
        with torch.enable_grad():
            loss = surface(p)
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
            came = describe(loss) + ("" if getattr(loss, "requires_grad", True) else " that does not depend on p")
            raise TypeError(f"descend(): surface(p) is {came}; a tensor with one element, made of p, is asked for.")
        losses[step] = loss.detach()
        if step < steps:
            one.zero_grad()
            loss.backward()
            one.step()
    return Descent(path, losses)


def _valley(p: Tensor) -> Tensor:
    x, y = p.unbind(-1)
    return (x**2 + 25 * y**2) / 2


def _diagonal_valley(p: Tensor) -> Tensor:
    x, y = p.unbind(-1)
    return ((x + y) ** 2 + 25 * (y - x) ** 2) / 4


def _banana(p: Tensor) -> Tensor:
    x, y = p.unbind(-1)
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def _saddle(p: Tensor) -> Tensor:
    x, y = p.unbind(-1)
    return (x**2 - y**2) / 2 + y**4 / 4


def _dents(p: Tensor) -> Tensor:
    x, y = p.unbind(-1)
    return (x**2 + y**2) / 4 + 1 - torch.cos(2 * x) * torch.cos(2 * y)


VALLEY = Surface(
    "valley", "(x² + 25·y²)/2", _valley, (-4.6, 2.0), (-2.3, 2.3), start=(-4.0, 1.5), lowest=((0.0, 0.0),)
)
# VALLEY turned by 45 degrees, its start too: what walks the same path there and here does not care about the axes.
DIAGONAL_VALLEY = Surface(
    "diagonal valley",
    "((x + y)² + 25·(y − x)²)/4",
    _diagonal_valley,
    (-4.6, 2.0),
    (-3.8, 1.4),
    start=(-5.5 / math.sqrt(2), -2.5 / math.sqrt(2)),
    lowest=((0.0, 0.0),),
)
BANANA = Surface(  # Rosenbrock 1960
    "banana", "(1 − x)² + 100·(y − x²)²", _banana, (-2.0, 2.0), (-1.0, 3.0), start=(-1.5, 1.5), lowest=((1.0, 1.0),)
)
# The start lies beside the ridge y = 0: straight down leads to the saddle point at (0, 0), where the slope is 0.
SADDLE = Surface(
    "saddle",
    "(x² − y²)/2 + y⁴/4",
    _saddle,
    (-2.4, 2.4),
    (-1.8, 1.8),
    start=(-2.0, 0.01),
    lowest=((0.0, -1.0), (0.0, 1.0)),
)
DENTS = Surface(
    "dents",
    "(x² + y²)/4 + 1 − cos(2x)·cos(2y)",
    _dents,
    (-4.0, 4.0),
    (-3.2, 3.2),
    start=(3.0, 2.0),
    lowest=((0.0, 0.0),),
)
SURFACES = {one.name: one for one in (VALLEY, DIAGONAL_VALLEY, BANANA, SADDLE, DENTS)}
