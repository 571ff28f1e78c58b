"""A small GPT, written with named axes: the model that the rest of this package accounts for.

The architecture is GPT-2's (Radford et al. 2019): learned positions, norms before attention and MLP, GELU, and a head
that is the token embedding once more. Unless told otherwise it has no biases.
"""
import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_lib.checked import checked, require_at_least


def _require_multiple(function: str, dim: int, heads: int) -> None:
    if dim % heads:
        raise ValueError(f"{function}(): dim is {dim}; a multiple of heads, {heads}, is asked for.")


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT: how many tokens it knows and how many it sees at once, its width, blocks and heads.

    `hidden` is the width inside the MLP, 4·dim where it is None. `bias` gives biases to all linear layers but the head,
    and to the norms. A head that is `tied` has no matrix of its own: it uses the token embedding's.
    """

    vocabulary: int
    context: int
    dim: int
    depth: int
    heads: int
    hidden: int | None = None
    bias: bool = False
    tied: bool = True

    def __post_init__(self) -> None:
        sizes = {field.name: getattr(self, field.name) for field in fields(self)[:6]}
        if wrong := [name for name, size in sizes.items() if isinstance(size, bool)]:
            raise TypeError(f"GPTConfig(): {wrong[0]} is {sizes[wrong[0]]}; an int is asked for.")
        require_at_least("GPTConfig", 1, **{name: size for name, size in sizes.items() if size is not None})
        _require_multiple("GPTConfig", self.dim, self.heads)

    @property
    def mlp_dim(self) -> int:
        """The width inside the MLP."""
        return 4 * self.dim if self.hidden is None else self.hidden


GPTConfig.__init__ = checked(GPTConfig.__init__)  # the dataclass wrote it, so a decorator had no place to stand

# The sizes of GPT-2, by the names under which OpenAI released them. With bias=True these are its very parameters.
GPT2 = {
    "124M": GPTConfig(50257, 1024, 768, 12, 12),
    "355M": GPTConfig(50257, 1024, 1024, 24, 16),
    "774M": GPTConfig(50257, 1024, 1280, 36, 20),
    "1558M": GPTConfig(50257, 1024, 1600, 48, 25),
}


class CausalAttention(nn.Module):
    """Self-attention with several heads, in which a token sees itself and those before it."""

    @checked
    def __init__(self, dim: int, heads: int, bias: bool = False) -> None:
        super().__init__()
        require_at_least("CausalAttention", 1, dim=dim, heads=heads)
        _require_multiple("CausalAttention", dim, heads)
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.out = nn.Linear(dim, dim, bias=bias)

    @checked
    def forward(self, x: Float[Tensor, "batch sequence dim"]) -> Float[Tensor, "batch sequence dim"]:
        """The same shape again, each token mixed with what stands before it."""
        q, k, v = rearrange(self.qkv(x), "b s (three heads size) -> three b heads s size", three=3, heads=self.heads)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(mixed, "b heads s size -> b s (heads size)"))


class Block(nn.Module):
    """One layer of a transformer: attention, then an MLP, each added to the stream that runs past them.

    `hidden` is the width inside the MLP, 4·dim where it is None.
    """

    @checked
    def __init__(self, dim: int, heads: int, hidden: int | None = None, bias: bool = False) -> None:
        super().__init__()
        hidden = 4 * dim if hidden is None else hidden
        require_at_least("Block", 1, dim=dim, heads=heads, hidden=hidden)
        self.norm1, self.norm2 = nn.LayerNorm(dim, bias=bias), nn.LayerNorm(dim, bias=bias)
        self.attention = CausalAttention(dim, heads, bias)
        self.up, self.down = nn.Linear(dim, hidden, bias=bias), nn.Linear(hidden, dim, bias=bias)

    @checked
    def forward(self, x: Float[Tensor, "batch sequence dim"]) -> Float[Tensor, "batch sequence dim"]:
        """The stream with what attention and the MLP have to add to it."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Tokens in, for each of them the logits of the next one out.

    Weights are normal: those of matrices with a standard deviation of 1/√fan_in, divided by √(2·depth) where they write
    into the stream, so that it does not grow with depth; those of embeddings with 0.02. Biases begin at 0.
    With `recompute`, only the input of each block is kept for backward, and the rest is computed a second time.
    """

    @checked
    def __init__(
        self, config: GPTConfig, *, recompute: bool = False, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config, self.recompute = config, recompute
        self.tokens = nn.Embedding(config.vocabulary, config.dim)
        self.positions = nn.Embedding(config.context, config.dim)
        sizes = config.dim, config.heads, config.mlp_dim, config.bias
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.dim, bias=config.bias)
        self.head = nn.Linear(config.dim, config.vocabulary, bias=False)
        if config.tied:
            self.head.weight = self.tokens.weight
        self._draw_weights(generator)

    @checked
    def forward(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence vocabulary"]:
        """Logits for each position. Raises ValueError for sequences longer than the context, and for unknown tokens."""
        length = tokens.shape[1]
        if length > self.config.context:
            raise ValueError(f"GPT.forward(): tokens has {length} positions; {self.config.context} are the most.")
        x = self._embedded(tokens) + self.positions(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))

    def _embedded(self, tokens: Tensor) -> Tensor:
        try:
            return self.tokens(tokens.long())
        except IndexError:  # only the CPU notices, and says no more than that
            low, high = tokens.min().item(), tokens.max().item()
            wanted = f"0 to {self.config.vocabulary - 1} is asked for"
            raise ValueError(f"GPT.forward(): tokens holds {low} to {high}; {wanted}.") from None

    def _draw_weights(self, generator: torch.Generator | None) -> None:
        writers = {part for block in self.blocks for part in (block.attention.out, block.down)}
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)
            elif isinstance(module, nn.Linear) and module.weight is not self.tokens.weight:
                gain = 1 / math.sqrt(2 * self.config.depth) if module in writers else 1.0
                nn.init.normal_(module.weight, std=gain / math.sqrt(module.in_features), generator=generator)
            if getattr(module, "bias", None) is not None and isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)


@checked
def next_token_loss(
    logits: Float[Tensor, "batch sequence vocabulary"], targets: Int[Tensor, "batch sequence"]
) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats: how much each next token surprises the model; log(vocabulary) if it knows nothing."""
    return F.cross_entropy(rearrange(logits, "b s v -> (b s) v"), rearrange(targets.long(), "b s -> (b s)"))
