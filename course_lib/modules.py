"""The course's own modules: `Linear`, the deep linear model `Cruncher` that runs through the course, and their size."""
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from course_lib.checked import checked, describe, require_at_least


class Linear(nn.Module):
    """x @ weight: a weight of shape (input_dim, output_dim) and no bias.

    (torch.nn.Linear holds its weight the other way round, as (output_dim, input_dim), and has a bias unless told
    otherwise.) The weight is drawn from a normal distribution with standard deviation 1/√input_dim, so that outputs
    are about as large as inputs; from `generator`, or from torch's own where it is None.
    """

    @checked
    def __init__(self, input_dim: int, output_dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        require_at_least("Linear", 1, input_dim=input_dim, output_dim=output_dim)
        self.weight = nn.Parameter(torch.randn(input_dim, output_dim, generator=generator) / math.sqrt(input_dim))

    @checked
    def forward(self, x: Float[Tensor, "*batch input_dim"]) -> Float[Tensor, "*batch output_dim"]:
        """(…, input_dim) to (…, output_dim). Raises ValueError where the last axis is no input_dim long."""
        _require_last_axis("Linear", x, len(self.weight))
        return x @ self.weight

    def extra_repr(self) -> str:
        """The two sizes, for the module's repr."""
        input_dim, output_dim = self.weight.shape
        return f"input_dim={input_dim}, output_dim={output_dim}"


class Cruncher(nn.Module):
    """A deep linear model: `num_layers` square `Linear` layers of width `dim`, then one of shape (dim, 1).

    It has dim·dim·num_layers + dim parameters: 8256 for Cruncher(64, 2). No bias, and nothing between the layers.
    """

    @checked
    def __init__(self, dim: int, num_layers: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        require_at_least("Cruncher", 1, dim=dim)
        require_at_least("Cruncher", 0, num_layers=num_layers)
        self.layers = nn.ModuleList([Linear(dim, dim, generator=generator) for _ in range(num_layers)])
        self.final = Linear(dim, 1, generator=generator)

    @checked
    def forward(self, x: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch"]:
        """(batch, dim) to (batch,): one number for each row. Raises ValueError where a row is no dim long."""
        _require_last_axis("Cruncher", x, len(self.final.weight))
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)


@checked
def get_num_parameters(model: nn.Module) -> int:
    """How many numbers the model's parameters hold; a parameter that several modules share counts once.

    Buffers do not count. Raises ValueError for a lazy module that has not seen its input's shape yet.
    """
    for name, parameter in model.named_parameters():
        if isinstance(parameter, UninitializedParameter):
            raise ValueError(f"get_num_parameters(): {name} has no shape yet; run a batch through the model first.")
    return sum(parameter.numel() for parameter in model.parameters())




def _require_last_axis(function: str, x: Tensor, wanted: int) -> None:
    if x.shape[-1] != wanted:
        raise ValueError(f"{function}.forward(): x is {describe(x)}; a last axis of {wanted} is asked for.")
