"""How sharply a loss curves, which says how long a step may be.

Along a direction of curvature c a step of gradient descent multiplies the distance to the minimum by 1 − lr·c: beyond
lr = 2/c it grows from step to step.
"""
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from course_lib.checked import checked


@checked
def largest_curvature(
    loss: Float[Tensor, ""],
    parameters: Sequence[nn.Parameter],
    *,
    rounds: int = 100,
    generator: torch.Generator | None = None,
) -> float:
    """The curvature of `loss` along the direction in which it is largest: the Hessian's largest eigenvalue, by size.

    Power iteration from a random direction, drawn by `generator`: `rounds` products of the Hessian with a vector, each
    about as expensive as two backward passes. `loss` needs its graph, and every parameter has to be part of it.
    """
    if rounds < 1:
        raise ValueError(f"largest_curvature(): rounds is {rounds}; at least 1 is asked for.")
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    drawn = (torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in parameters)
    direction = [d.to(p.device) for d, p in zip(drawn, parameters, strict=True)]
    for _ in range(rounds):
        length = get_total_norm(direction)
        unit = [d / length for d in direction]
        direction = torch.autograd.grad(gradients, parameters, unit, retain_graph=True)
    return get_total_norm(direction).item()
