"""Models of many kinds to account for: name → (build_model, build_batch, loss)."""
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

D = 64  # a width


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Real steps without oneDNN, whose kernels keep memory of their own, and on one thread, which suits small sizes."""
    enabled, threads = torch._C._get_mkldnn_enabled(), torch.get_num_threads()
    torch._C._set_mkldnn_enabled(False)  # torch's own context manager for this warns
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)
        torch.set_num_threads(threads)


def mean_square(output: object) -> Tensor:
    return (output if isinstance(output, Tensor) else output[0]).pow(2).mean()


def mse(output: Tensor) -> Tensor:
    return F.mse_loss(output, torch.zeros_like(output))


def rows() -> Tensor:
    return torch.randn(8, D)


def sequences() -> Tensor:
    return torch.randn(4, 16, D)


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim: int, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(dim, dim) for _ in range(num_layers))
        self.final = Linear(dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)


class TwoLayers(nn.Module):
    """The lecture's."""

    def __init__(self, d: int, k: int) -> None:
        super().__init__()
        self.first, self.second = Linear(d, d), Linear(d, k)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


class Residual(nn.Module):
    def __init__(self, dim: int = D, depth: int = 4) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x)).relu()
        return x


class Block(nn.Module):
    """A transformer's block: attention with heads that may share keys, then an MLP, gated or not."""

    def __init__(self, dim: int, heads: int, kv_heads: int, hidden: int, gated: bool = False) -> None:
        super().__init__()
        norm = nn.RMSNorm if gated else lambda width: nn.LayerNorm(width, bias=False)
        self.size = dim // heads
        self.norm, self.norm2 = norm(dim), norm(dim)
        self.q, self.out = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.kv = nn.Linear(dim, 2 * kv_heads * self.size, bias=False)
        self.up, self.down = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)
        self.gate = nn.Linear(dim, hidden, bias=False) if gated else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        k, v = self.kv(y).unflatten(-1, (2, -1, self.size)).transpose(1, 3).unbind(2)
        q = self.q(y).unflatten(-1, (-1, self.size)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y) if self.gate is not None else F.gelu(self.up(y)))


class Transformer(nn.Module):
    """Decoder-only: like GPT-2 (positions, tied head) by default, like LLaMA when it is gated."""

    def __init__(
        self, vocabulary: int, context: int, dim: int, depth: int, heads: int, kv_heads: int | None = None,
        hidden: int | None = None, gated: bool = False, recompute: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.recompute = recompute
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = None if gated else nn.Embedding(context, dim)
        blocks = (Block(dim, heads, kv_heads or heads, hidden or 4 * dim, gated) for _ in range(depth))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(dim) if gated else nn.LayerNorm(dim, bias=False)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        if not gated:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))


def next_token(logits: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), torch.zeros(logits.shape[:-1].numel(), dtype=torch.long))


def tokens(batch: int, length: int, vocabulary: int = 500) -> Callable[[], Tensor]:
    return lambda: torch.randint(0, vocabulary, (batch, length))


class Checkpointed(nn.Module):
    COUNT = 3

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        block = (nn.Linear(D, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, D))
        self.blocks = nn.ModuleList(nn.Sequential(*block) for _ in range(self.COUNT))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return x


class Attention(nn.Module):
    """Attention whose projections may be frozen; `options` are those of scaled_dot_product_attention."""

    def __init__(self, frozen: str = "", dtype: torch.dtype = torch.float32, **options: object) -> None:
        super().__init__()
        self.options = options
        self.projections = nn.ModuleDict({name: nn.Linear(D, D, dtype=dtype) for name in "qkv"})
        for name in frozen:
            self.projections[name].requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.projections[name](x).unflatten(-1, (4, -1)).transpose(1, 2) for name in "qkv")
        return F.scaled_dot_product_attention(q, k, v, **self.options)


class KorthikantiLayer(nn.Module):
    """The transformer layer whose activations Korthikanti et al. (2022) count."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.norm, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3).unbind(2)
        weights = F.dropout((q @ k.mT * self.scale).softmax(-1), 0.1)
        x = x + F.dropout(self.out((weights @ v).transpose(1, 2).flatten(2)), 0.1)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), 0.1)


class Frozen(nn.Module):
    """A frozen encoder in eval mode under a trained head."""

    def __init__(self, mode: Callable) -> None:
        super().__init__()
        self.mode = mode
        self.encoder = nn.TransformerEncoderLayer(D, 4, 128, batch_first=True).eval()
        self.head = nn.Linear(D, 4)

    def forward(self, x: Tensor) -> Tensor:
        with self.mode():
            y = self.encoder(x)
        return self.head(y.clone())


class Keeper(nn.Module):
    """Keeps tensors in all places but registered ones: attributes, lists, dicts, tuples, other objects, closures."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(D, D)
        self.attribute = torch.ones(D)
        self.listed = [torch.ones(D), {"deep": (torch.ones(D), torch.ones(D, device="cpu"))}]
        self.object = type("Plain", (), {"tensor": torch.ones(D)})
        hidden = torch.ones(D)
        self.scale = lambda x: x * hidden
        self.register_buffer("numpy", torch.from_numpy(np.ones(D, dtype=np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.scale(self.layer(x)) + self.attribute + self.listed[0] + self.object.tensor + self.numpy
        return y + torch.stack(list(self.listed[1]["deep"])).sum(0)


class Autocast(nn.Module):
    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inside(x)


class Rotated(nn.Module):
    """Multiplies by complex numbers, as LLaMA's rotary positions do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(D, D)
        self.register_buffer("turns", torch.polar(torch.ones(16, D // 2), torch.ones(16, D // 2)))

    def forward(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(self.layer(x).unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.turns).flatten(-2)


class Routed(nn.Module):
    """A mixture of experts: each row goes to two of four matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(D, 4)
        self.experts = nn.Parameter(torch.randn(4, D, D))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2)
        return torch.einsum("bk,bkde,bd->be", weights, self.experts[chosen], x)


class Looped(nn.Module):
    """One cell, or one matrix, over and over."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(4):
            x = self.inside(x).tanh()
        return x


def frozen_below() -> nn.Module:
    model = nn.Sequential(*(module for _ in range(3) for module in (nn.Linear(D, D), nn.ReLU())))
    model[0].requires_grad_(False)
    model[2].requires_grad_(False)
    return model


def convolutions(*, norm: bool = True) -> nn.Module:
    second = nn.BatchNorm2d(8) if norm else nn.Identity()
    layers = (nn.Conv2d(3, 8, 3, padding=1), second, nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.2))
    return nn.Sequential(*layers, nn.Conv2d(8, 8, 3, groups=4), nn.Flatten(), nn.Linear(8 * 36, 10))


def convolutions_1d() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(8, 16, 5, stride=2, padding=2), nn.GroupNorm(4, 16), nn.SiLU(), nn.ConvTranspose1d(16, 8, 4, 2, 1),
        nn.Conv1d(8, 8, 3, groups=4, padding=1), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(1),
    )  # fmt: skip


def encoder_layer(**options: object) -> nn.Module:
    return nn.TransformerEncoderLayer(D, 4, 128, batch_first=True, **options)


def images() -> Tensor:
    return torch.randn(4, 3, 16, 16)


def source_and_target() -> tuple[Tensor, Tensor]:
    return torch.randn(4, 12, D), torch.randn(4, 8, D)


MODELS: dict[str, tuple[Callable, Callable, Callable]] = {
    "Cruncher": (lambda: Cruncher(D, 2), rows, mse),
    "Cruncher, batch that requires grad": (lambda: Cruncher(D, 2), lambda: rows().requires_grad_(), mse),
    "residual": (Residual, rows, mean_square),
    "frozen layers": (frozen_below, rows, mean_square),
    "encoder layer": (encoder_layer, sequences, mean_square),
    "encoder layer without dropout": (lambda: encoder_layer(dropout=0.0), sequences, mean_square),
    "encoder layer, GELU, norm first": (
        lambda: encoder_layer(activation="gelu", norm_first=True), sequences, mean_square),
    "nn.Transformer": (lambda: nn.Transformer(D, 4, 2, 2, 128, batch_first=True), source_and_target, mean_square),
    "LSTM": (lambda: nn.LSTM(D, 32, 2, dropout=0.1, bidirectional=True), sequences, mean_square),
    "LSTM with projection": (lambda: nn.LSTM(D, 32, proj_size=16, batch_first=True), sequences, mean_square),
    "GRU": (lambda: nn.GRU(D, 32, 2), sequences, mean_square),
    "RNN": (lambda: nn.RNN(D, 32), sequences, mean_square),
    "convolutions": (convolutions, images, mean_square),
    "convolutions, channels last": (
        lambda: convolutions().to(memory_format=torch.channels_last), images, mean_square),
    "convolutions in one dimension": (convolutions_1d, lambda: torch.randn(4, 8, D), mean_square),
    "GPT": (lambda: Transformer(500, 32, D, 2, 4), tokens(2, 32), next_token),
    "LLaMA": (lambda: Transformer(500, 32, D, 2, 4, 2, 100, gated=True), tokens(2, 32), next_token),
    "LLaMA, recomputed": (
        lambda: Transformer(500, 32, D, 2, 4, 2, 100, gated=True, recompute=True), tokens(2, 32), next_token),
    "checkpoints": (lambda: Checkpointed(reentrant=False), rows, mean_square),
    "checkpoints, reentrant": (
        lambda: Checkpointed(reentrant=True), lambda: rows().requires_grad_(), mean_square),
    "attention, causal": (lambda: Attention(is_causal=True), sequences, mean_square),
    "attention, dropout": (lambda: Attention(dropout_p=0.1), sequences, mean_square),
    "attention, bfloat16": (
        lambda: Attention(dtype=torch.bfloat16), lambda: sequences().bfloat16(), mean_square),
    "Korthikanti's layer": (
        lambda: KorthikantiLayer(D, 4).bfloat16(), lambda: sequences().bfloat16(), lambda output: output.sum()),
    "frozen encoder, no_grad": (lambda: Frozen(torch.no_grad), sequences, mean_square),
    "frozen encoder, inference_mode": (lambda: Frozen(torch.inference_mode), sequences, mean_square),
    "tensors in odd places": (Keeper, rows, mean_square),
    "autocast": (
        lambda: Autocast(nn.Sequential(nn.Linear(D, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 8))),
        rows, mean_square),
    "autocast encoder layer": (lambda: Autocast(encoder_layer()), sequences, mean_square),
    "complex numbers": (Rotated, sequences, mean_square),
    "mixture of experts": (Routed, rows, mean_square),
    "embedding bag": (lambda: nn.EmbeddingBag(100, D, mode="sum"), tokens(8, 12, 100), mean_square),
    "one layer, repeatedly": (lambda: Looped(nn.Linear(D, D)), rows, mean_square),
    "one matrix, repeatedly": (lambda: Looped(Linear(D, D)), rows, mean_square),
    "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(D, D)), rows, mean_square),
    "float64, moved": (lambda: nn.Linear(D, D).double().to("cpu"), lambda: rows().double(), mean_square),
}  # fmt: skip
