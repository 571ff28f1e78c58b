"""Initial weights: how large random numbers have to be so that signals keep their size from layer to layer.

Each output of x @ w is a sum of fan_in products. Products of independent numbers add up in their variances, so that an
output is √fan_in times as large as a term: the rules below undo that. Which axis of a weight is fan_in depends on how
it is used. `torch.nn.init` takes axis 1, as torch.nn.Linear's (out, in) has it; here you say it.
"""
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.checked import checked, require_at_least

Weight = Float[Tensor, "*shape"]


@checked
def lecun_std(fan_in: int) -> float:
    """1/√fan_in: outputs of x @ w are as large as x. (LeCun et al. 1998, "Efficient BackProp".)"""
    require_at_least("lecun_std", 1, fan_in=fan_in)
    return 1 / math.sqrt(fan_in)


@checked
def xavier_std(fan_in: int, fan_out: int) -> float:
    """√(2/(fan_in + fan_out)): between what outputs ask for, 1/√fan_in, and what gradients do, 1/√fan_out.

    For a square weight it is 1/√fan_in. (Xavier Glorot and Bengio 2010.)
    """
    require_at_least("xavier_std", 1, fan_in=fan_in, fan_out=fan_out)
    return math.sqrt(2 / (fan_in + fan_out))


@checked
def kaiming_std(fan_in: int) -> float:
    """√(2/fan_in): for inputs out of a ReLU, which halves the mean square. (Kaiming He et al. 2015.)"""
    require_at_least("kaiming_std", 1, fan_in=fan_in)
    return math.sqrt(2 / fan_in)


@checked
def lecun_normal_(weight: Weight, *, fan_in: int, generator: torch.Generator | None = None) -> Weight:
    """Overwrite `weight` with normal numbers of standard deviation 1/√fan_in, and return it."""
    return _normal_(weight, lecun_std(fan_in), generator)


@checked
def xavier_normal_(
    weight: Weight, *, fan_in: int, fan_out: int, generator: torch.Generator | None = None
) -> Weight:
    """Overwrite `weight` with normal numbers of standard deviation √(2/(fan_in + fan_out)), and return it."""
    return _normal_(weight, xavier_std(fan_in, fan_out), generator)


@checked
def kaiming_normal_(weight: Weight, *, fan_in: int, generator: torch.Generator | None = None) -> Weight:
    """Overwrite `weight` with normal numbers of standard deviation √(2/fan_in), and return it."""
    return _normal_(weight, kaiming_std(fan_in), generator)


@checked
def truncated_normal_(
    weight: Weight, *, std: float, bound: float = 3.0, generator: torch.Generator | None = None
) -> Weight:
    """Overwrite `weight` with normal numbers, drawn again where they lie beyond ± bound·std, and return it.

    `bound` counts standard deviations; the a and b of torch.nn.init.trunc_normal_ are absolute, so that with the same
    a and b a small std is not truncated at all. `std` is that of the normal before it is truncated: what comes out has
    a smaller one, by the factor `truncated_shrinkage(bound)`.
    Raises ValueError for a std below 0 and a bound that is not above 0, and where std or bound is not finite.
    """
    if not 0 <= std < math.inf:
        raise ValueError(f"truncated_normal_(): std is {std}; a finite number of at least 0 is asked for.")
    _require_bound("truncated_normal_", bound)
    if std == 0:
        with torch.no_grad():
            return weight.zero_()
    return torch.nn.init.trunc_normal_(weight, std=std, a=-bound * std, b=bound * std, generator=generator)


@checked
def truncated_shrinkage(bound: float) -> float:
    """Standard deviation of a standard normal truncated to ± bound: 0.9866 for a bound of 3, 0.8796 for 2.

    √(1 − 2·bound·φ(bound) / (2Φ(bound) − 1)), where φ and Φ are the normal's density and distribution function.
    """
    _require_bound("truncated_shrinkage", bound)
    if bound < 1e-3:  # the formula would subtract two numbers that agree; so narrow a piece of a normal is uniform
        return bound / math.sqrt(3)
    density = math.exp(-(bound**2) / 2) / math.sqrt(2 * math.pi)
    return math.sqrt(1 - 2 * bound * density / math.erf(bound / math.sqrt(2)))


@checked
def rms(x: Float[Tensor, "..."]) -> float:
    """Root mean square of x: √(mean of x²), the size of a typical number of x. 0 for a tensor of zeros."""
    if not x.numel():
        raise ValueError(f"rms(): x has shape {tuple(x.shape)}; at least one number is asked for.")
    return x.detach().double().pow(2).mean().sqrt().item()


@checked
def signal_sizes(
    x: Float[Tensor, "batch dim"],
    weights: Sequence[Float[Tensor, "_ _"]],  # each has sizes of its own
    activation: Callable[[Tensor], Tensor],
) -> list[float]:
    """Root mean square of the signal after each layer x ← activation(x @ weight): one number for each weight."""
    sizes = []
    with torch.no_grad():
        for number, weight in enumerate(weights):
            if x.shape[-1] != len(weight):
                came = f"weights[{number}] has shape {tuple(weight.shape)}"
                raise ValueError(f"signal_sizes(): {came}; {x.shape[-1]} rows are asked for.")
            x = activation(x @ weight)
            sizes.append(rms(x))
    return sizes


def _normal_(weight: Tensor, std: float, generator: torch.Generator | None) -> Tensor:
    with torch.no_grad():
        return weight.normal_(0, std, generator=generator)




def _require_bound(function: str, bound: float) -> None:
    if not 0 < bound < math.inf:
        raise ValueError(f"{function}(): bound is {bound}; a finite number above 0 is asked for.")
