"""A GPT's parameters, FLOPs and activations, part by part, as formulas: the model is not built.

All three name the same parts, so that they can be laid side by side:

- embeddings: the tables of tokens and positions
- attention matrices: queries, keys, values and output, four dim × dim matrices in each block
- attention scores: what tokens have to do with each other; no parameters
- MLP: up to `hidden` and down again
- norms: with the stream that enters them
- head: from the stream to logits, and the loss

The letters: V vocabulary, T sequence, D dim, H hidden, L depth, B batch.
"""
from course_lib.checked import checked
from course_lib.transformer.model import GPTConfig
from course_lib.transformer.parts import Parts, require_itemsize

_INDEX = 8  # bytes of an int64


@checked
def transformer_parameters(config: GPTConfig) -> Parts:
    """How many numbers each part's parameters hold. A tied head has none: its matrix is that of the tokens."""
    V, T, D, H, L = _sizes(config)
    attention, mlp, norm = 4 * D * D, 2 * D * H, D
    if config.bias:
        attention, mlp, norm = attention + 4 * D, mlp + H + D, norm + D
    parts = {
        "embeddings": V * D + T * D,
        "attention matrices": L * attention,
        "attention scores": 0,
        "MLP": L * mlp,
        "norms": (2 * L + 1) * norm,
        "head": 0 if config.tied else V * D,
    }
    return Parts(parts, "parameters")


@checked
def transformer_flops(
    config: GPTConfig, batch: int = 1, sequence: int | None = None, *, training: bool = False, recompute: bool = False
) -> Parts:
    """FLOPs of a forward pass over `batch` sequences, or of forward and backward where `training` is True.

    `sequence` is the context where it is None. Matrix products count, as everywhere: two FLOPs for each product that is
    added to a sum. The half of the scores that a causal mask throws away counts as well, which is the convention
    (nanoGPT's table, the PaLM report's MFU). Backward is twice forward, with no exception for the first layer: an
    embedding is trained, so it wants its gradient. With `recompute` each block runs forward a second time, but for the
    MLP's last product, which nobody needs again.

    Raises ValueError for a batch or sequence below 1, and for a sequence longer than the context.
    """
    T = _length("transformer_flops", config, batch, sequence)
    V, _, D, H, L = _sizes(config)
    tokens = batch * T
    forward = {
        "embeddings": 0,
        "attention matrices": L * 2 * tokens * 4 * D * D,
        "attention scores": L * 2 * tokens * 2 * T * D,
        "MLP": L * 2 * tokens * 2 * D * H,
        "norms": 0,
        "head": 2 * tokens * D * V,
    }
    halves = 6 if training else 2  # of forward passes, in whole numbers, as floats would round what is large
    again = {"attention matrices": 2, "attention scores": 2, "MLP": 1} if training and recompute else {}
    return Parts({name: flops * (halves + again.get(name, 0)) // 2 for name, flops in forward.items()}, "FLOPs")


@checked
def transformer_activations(
    config: GPTConfig, batch: int = 1, sequence: int | None = None, *, itemsize: int = 4, recompute: bool = False
) -> Parts:
    """Bytes that `GPT` and `next_token_loss` keep between forward and backward, if every number takes `itemsize`.

    Exact for the model of this package on the CPU in float32, its inputs and targets included. Attention runs as one
    kernel, so that nothing of size T × T is kept: of it stay queries, keys, values, output, and a number for each row
    of scores. With `recompute` only the stream that enters a block is kept.

    Raises ValueError for a batch, sequence or itemsize below 1, and for a sequence longer than the context.
    """
    T = _length("transformer_activations", config, batch, sequence)
    require_itemsize("transformer_activations", itemsize)
    V, _, D, H, L = _sizes(config)
    tokens, kept = batch * T, 0 if recompute else L
    statistics = 2 * itemsize  # of each row that enters a norm: mean, and 1 / standard deviation
    parts = {
        "embeddings": _INDEX * (tokens + T),
        "attention matrices": kept * tokens * D * itemsize,
        "attention scores": kept * tokens * (4 * D * itemsize + 4 * config.heads),  # a row's number is a float32
        "MLP": kept * tokens * (D + 2 * H) * itemsize,
        "norms": tokens * ((L + kept + 1) * D * itemsize + (2 * kept + 1) * statistics),
        "head": tokens * ((D + V) * itemsize + _INDEX) + itemsize,
    }
    return Parts(parts, "bytes")


_RECOMPUTED = ("nothing", "scores", "layers")


@checked
def korthikanti_activations(
    config: GPTConfig,
    batch: int = 1,
    sequence: int | None = None,
    *,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "nothing",
) -> float:
    """Bytes of activations of all layers on one GPU in 16 bits, by the formula that is quoted most.

    s·b·h·(34 + 5·a·s/h) for each layer (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
    Transformer Models", equation 1 and table 2), where s is the sequence, b the batch, h dim and a the heads. It holds
    for H = 4·D, dropout, and attention whose s × s scores are kept. Tensor parallel divides the 24 of the 34 that
    stand inside attention and MLP, and the scores; `sequence_parallel` the other 10, too. `recompute` is "nothing",
    "scores" or "layers"; of a layer 2·s·b·h are kept then, its input.

    Raises ValueError for another `recompute`, for a config with another `hidden`, and as the other formulas do.
    """
    T = _length("korthikanti_activations", config, batch, sequence)
    if recompute not in _RECOMPUTED:
        known = ", ".join(map(repr, _RECOMPUTED))
        raise ValueError(f"korthikanti_activations(): recompute is {recompute!r}; one of {known} is asked for.")
    if config.mlp_dim != 4 * config.dim:
        raise ValueError(f"korthikanti_activations(): hidden is {config.hidden}; 4·dim is what the formula holds for.")
    if tensor_parallel < 1:
        raise ValueError(f"korthikanti_activations(): tensor_parallel is {tensor_parallel}; at least 1 is asked for.")
    outside = 10 / tensor_parallel if sequence_parallel else 10
    scores = 5 * config.heads * T / config.dim / tensor_parallel
    per_number = outside + 24 / tensor_parallel + (scores if recompute == "nothing" else 0)
    if recompute == "layers":
        per_number = 2 / tensor_parallel if sequence_parallel else 2
    return config.depth * batch * T * config.dim * per_number


def _sizes(config: GPTConfig) -> tuple[int, int, int, int, int]:
    return config.vocabulary, config.context, config.dim, config.mlp_dim, config.depth


def _length(function: str, config: GPTConfig, batch: int, sequence: int | None) -> int:
    """The length of a sequence, once it and the batch are what can be."""
    length = config.context if sequence is None else sequence
    if batch < 1:
        raise ValueError(f"{function}(): batch is {batch}; at least 1 is asked for.")
    if not 1 <= length <= config.context:
        raise ValueError(f"{function}(): sequence is {length}; 1 to the context, {config.context}, is asked for.")
    return length
