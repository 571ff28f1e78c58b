"""The exercises of notebook 14: a GPT's parameters and FLOPs, memory on each GPU, MFU and days, a run for a budget."""
import torch

from course_lib.exercises.engine import case, exercise
from course_lib.precision import ParameterBytes
from course_lib.transformer import GPT, GPTConfig, sharded, training_days, transformer_flops

# ---------------------------------------------------------------- 14.1


@exercise(
    notebook="14",
    hints=[
        "Write down the shape of every matrix in one block: three into attention, one out of it, two in the MLP.",
        "Then what is outside of the blocks: two tables, one norm, and perhaps a head. And each block has two norms.",
    ],
    why="A block has four dim × dim matrices for attention, and dim × 4·dim and back for the MLP: 12·dim² in all, and "
    "2·dim for its norms. Outside stand the tables, a last norm, and a head only if it has a matrix of its own.",
)
def gpt_parameters(vocabulary: int, context: int, dim: int, depth: int, tied: bool) -> int:
    """How many parameters a GPT without biases has.

    Tables for tokens and for positions; `depth` blocks, each with two norms, attention (queries,
    keys, values, output) and an MLP that is 4·dim wide inside; a last norm; and a head, which is
    the token table once more if `tied`. A norm has dim weights.
    """
    tables = (vocabulary + context) * dim
    block = 12 * dim**2 + 2 * dim
    head = 0 if tied else vocabulary * dim
    return tables + depth * block + dim + head


gpt_parameters.cases(
    case("50257, 1024, 768, 12, True", "GPT-2 124M"),
    case("50257, 1024, 768, 12, False", "GPT-2 124M with a head of its own"),
    case("50257, 1024, 1600, 48, True", "GPT-2 1558M"),
    case("512, 128, 64, 4, True", "a small one"),
    case("512, 128, 64, 4, False", "a small one with a head of its own"),
    case("65, 32, 16, 1, True", "one block"),
    case("7, 3, 1, 2, False", "a width of 1"),
    "1000, 1, 8, 3, False",
    "99_999, 77, 333, 5, False",
)


def _block(dim, matrices=12, norms=2):
    return matrices * dim**2 + norms * dim


@gpt_parameters.misconception("A tied head has no matrix of its own: it is the token table once more.")
def tied_head_counted(vocabulary, context, dim, depth, tied):
    return (2 * vocabulary + context) * dim + depth * _block(dim) + dim


@gpt_parameters.misconception("A head that is not tied has a matrix of its own, as large as the token table.")
def own_head_forgotten(vocabulary, context, dim, depth, tied):
    return (vocabulary + context) * dim + depth * _block(dim) + dim


@gpt_parameters.misconception("Positions have a table, too: context rows of dim numbers.")
def positions_forgotten(vocabulary, context, dim, depth, tied):
    return (1 if tied else 2) * vocabulary * dim + depth * _block(dim) + dim


@gpt_parameters.misconception("The norms have weights: dim each, two in every block, and one after the last.")
def norms_forgotten(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim, norms=0)) - dim


@gpt_parameters.misconception("One norm is left: the one after the last block.")
def last_norm_forgotten(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim)) - dim


@gpt_parameters.misconception("Attention has a fourth matrix: what the heads found is multiplied by one more.")
def no_output_matrix(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim, matrices=11))


@gpt_parameters.misconception("The MLP has two matrices: dim × 4·dim up, and 4·dim × dim down again.")
def only_up(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim, matrices=8))


@gpt_parameters.misconception("Inside, the MLP is four times as wide: two matrices of 4·dim² weights, not of dim².")
def narrow_mlp(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim, matrices=6))


@gpt_parameters.misconception("This GPT has no biases, neither in its matrices nor in its norms.")
def with_biases(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, depth, tied, _block(dim, norms=4 + 9)) + dim


@gpt_parameters.misconception("That is one block. There are `depth` of them, each with weights of its own.")
def one_block(vocabulary, context, dim, depth, tied):
    return _whole(vocabulary, context, dim, 1, tied, _block(dim))


def _whole(vocabulary, context, dim, depth, tied, block):
    return (vocabulary * (1 if tied else 2) + context) * dim + depth * block + dim


@gpt_parameters.accepts
def building_it_on_meta(vocabulary, context, dim, depth, tied):
    with torch.device("meta"):
        model = GPT(GPTConfig(vocabulary, context, dim, depth, 1, tied=tied))
    return sum(p.numel() for p in model.parameters())


@gpt_parameters.accepts
def shape_by_shape(vocabulary, context, dim, depth, tied):
    shapes = [(vocabulary, dim), (context, dim), (dim,)]
    shapes += [] if tied else [(dim, vocabulary)]
    shapes += depth * [(dim,), (dim, 3 * dim), (dim, dim), (dim,), (dim, 4 * dim), (4 * dim, dim)]
    return sum(torch.Size(shape).numel() for shape in shapes)


# ---------------------------------------------------------------- 14.2


@exercise(
    notebook="14",
    hints=[
        "Which matrices does a token meet on its way, head included? A training step takes 6 FLOPs for each weight.",
        "A look-up in a table multiplies nothing. And attention: how many scores does a token have in each layer?",
        "In each layer a token's query meets `sequence` keys of dim numbers; its scores then weigh as many values.",
    ],
    why="A weight that multiplies costs 6 FLOPs for each token: 2 forward, 4 backward. The head does, tied or not; the "
    "look-ups do not. Scores and the weighted sum are products without weights: 2·T·dim each, three times over.",
)
def flops_per_token(vocabulary: int, dim: int, depth: int, sequence: int) -> int:
    """FLOPs that training takes for each token, forward and backward, in a GPT without biases.

    Its MLP is 4·dim wide inside, its head is tied, and its sequences are `sequence` tokens long.
    Count all scores of attention, also those that the mask throws away.
    """
    weights = 12 * depth * dim**2 + vocabulary * dim
    scores = 2 * depth * sequence * dim
    return 6 * (weights + scores)


flops_per_token.cases(
    case("50257, 768, 12, 1024", "GPT-2 124M"),
    case("50257, 1600, 48, 1024", "GPT-2 1558M"),
    case("128256, 8192, 80, 8192", "70 billion parameters"),
    case("512, 64, 4, 128", "a small one"),
    case("512, 64, 4, 1", "sequences of one token"),
    case("256, 128, 1, 4096", "a long sequence"),
    case("2, 1, 3, 5", "a width of 1"),
)


def _per_token(vocabulary, dim, depth, sequence, each=6, head=1, scores=2.0):
    return int(each * (12 * depth * dim**2 + head * vocabulary * dim + scores * depth * sequence * dim))


@flops_per_token.misconception("6 · N leaves out attention: scores are products as well, though no weight is in them.")
def without_scores(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, scores=0)


@flops_per_token.misconception("A tied head has no parameters of its own, but it does multiply: vocabulary × dim.")
def without_head(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, head=0)


@flops_per_token.misconception("Looking a token up in the table multiplies nothing. The table works only as the head.")
def look_ups_counted(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, head=2)


@flops_per_token.misconception("That is the forward pass. Backward takes twice as much again.")
def forward_only(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, each=2)


@flops_per_token.misconception("Backward has two products for each one of forward: 2 + 4 FLOPs, not 2 + 2.")
def backward_like_forward(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, each=4)


@flops_per_token.misconception("You counted multiplications. Each product is added to a sum: two FLOPs.")
def multiplications_only(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, each=3)


@flops_per_token.misconception("Half of attention is missing. It has two products, and the mask spares no FLOP.")
def one_product_of_attention(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, scores=1)


@flops_per_token.misconception("The convention counts every score, also the half that the mask throws away.")
def half_of_the_scores(vocabulary, dim, depth, sequence):
    return 6 * (12 * depth * dim**2 + vocabulary * dim) + 6 * depth * sequence * dim + 6 * depth * dim


@flops_per_token.misconception("Those are the FLOPs of a whole sequence. The question is for each token of it.")
def per_sequence(vocabulary, dim, depth, sequence):
    return sequence * _per_token(vocabulary, dim, depth, sequence)


@flops_per_token.misconception("All pairs have scores in a whole sequence. A single token has `sequence` of them.")
def all_pairs(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, scores=2 * sequence)


@flops_per_token.misconception("One layer's attention. Every layer has scores of its own.")
def attention_once(vocabulary, dim, depth, sequence):
    return _per_token(vocabulary, dim, depth, sequence, scores=2 / depth)


@flops_per_token.accepts
def by_the_library(vocabulary, dim, depth, sequence):
    config = GPTConfig(vocabulary, sequence, dim, depth, 1)
    return transformer_flops(config, training=True).total // sequence


@flops_per_token.accepts
def matmul_by_matmul(vocabulary, dim, depth, sequence):
    layer = [(dim, 3 * dim), (dim, dim), (dim, 4 * dim), (4 * dim, dim), (dim, sequence), (sequence, dim)]
    forward = sum(2 * d * k for d, k in depth * layer + [(dim, vocabulary)])
    return forward + 2 * forward


# ---------------------------------------------------------------- 14.3


@exercise(
    notebook="14",
    hints=[
        "Write down three lines: weights, gradients, and what the optimizer needs, master weights included.",
        "Each stage divides what the one before divides, and one line more: optimizer, then gradients, then weights.",
        "Every GPU works on sequences of its own. Who could keep their activations for it?",
    ],
    why="2 + 2 + 12 bytes for each parameter. Stage 1 divides the 12, stage 2 the gradients as well, stage 3 the "
    "weights. Activations belong to the sequences that a GPU works on, so each keeps its own.",
)
def memory_per_gpu(parameters: int, stage: int, num_gpus: int, activations: int) -> float:
    """Bytes that each GPU holds under ZeRO: stage 0 divides nothing, 3 all that ZeRO can divide.

    Weights and gradients are bfloat16. The optimizer is AdamW in float32: for each parameter a
    master weight and two moments, all of which are its state. `activations` are the bytes that
    one GPU keeps for the sequences that it works on. Nothing is rounded.
    """
    weights, gradients, optimizer = 2.0, 2.0, 12.0  # bytes for each parameter
    if stage >= 1:
        optimizer /= num_gpus
    if stage >= 2:
        gradients /= num_gpus
    if stage >= 3:
        weights /= num_gpus
    return parameters * (weights + gradients + optimizer) + activations


memory_per_gpu.cases(
    case("7_500_000_000, 0, 64, 0", "the ZeRO paper's model, stage 0"),
    case("7_500_000_000, 1, 64, 0", "its stage 1"),
    case("7_500_000_000, 2, 64, 0", "its stage 2"),
    case("7_500_000_000, 3, 64, 0", "its stage 3"),
    case("1000, 0, 8, 500", "with activations"),
    case("1000, 1, 8, 500", "stage 1 with activations"),
    case("1000, 2, 8, 500", "stage 2 with activations"),
    case("1000, 3, 8, 500", "stage 3 with activations"),
    case("1000, 3, 1, 200", "a single GPU"),
    case("1001, 3, 64, 3", "parameters that cannot be divided evenly"),
    "64, 2, 2, 3",
)


def _held(parameters, stage, num_gpus, activations, costs=((12, 1), (2, 2), (2, 3))):
    """`costs`: bytes for each parameter, and from which stage on they are divided."""
    each = sum(size / num_gpus if stage >= first else size for size, first in costs)
    return each * parameters + activations


@memory_per_gpu.misconception("Each GPU keeps the activations of its own sequences: ZeRO does not divide them.")
def activations_divided(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations / num_gpus if stage >= 1 else activations)


@memory_per_gpu.misconception("The activations are missing: what a GPU keeps for backward needs room, too.")
def activations_forgotten(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, 0)


@memory_per_gpu.misconception("Master weights are state of the optimizer: they are divided with it, from stage 1 on.")
def masters_stay_with_weights(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations, ((8, 1), (2, 2), (2, 3), (4, 3)))


@memory_per_gpu.misconception("There are master weights as well: float32 copies, 4 bytes for each parameter.")
def masters_forgotten(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations, ((8, 1), (2, 2), (2, 3)))


@memory_per_gpu.misconception("4 + 4 + 8 is 16 as well, but all float32: here weights and gradients take 2 each.")
def all_float32(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations, ((8, 1), (4, 2), (4, 3)))


@memory_per_gpu.misconception("Only stage 3 divides all. Stage 1 divides the optimizer's state, 2 the gradients, too.")
def all_or_nothing(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations, ((16, 1),))


@memory_per_gpu.misconception("The other way round: the optimizer's state, the largest, goes first; weights go last.")
def weights_first(parameters, stage, num_gpus, activations):
    return _held(parameters, stage, num_gpus, activations, ((2, 1), (2, 2), (12, 3)))


@memory_per_gpu.misconception("A stage adds to the one before it. You divided only what it divides in addition.")
def one_at_a_time(parameters, stage, num_gpus, activations):
    costs = ((12, 1), (2, 2), (2, 3))
    return sum(size / (num_gpus if stage == only else 1) for size, only in costs) * parameters + activations


@memory_per_gpu.misconception("You divided one stage too early: stage 0 is plain data parallel, everything replicated.")
def a_stage_too_early(parameters, stage, num_gpus, activations):
    return _held(parameters, stage + 1, num_gpus, activations)


@memory_per_gpu.misconception("That is what all GPUs hold together. The question is what has to fit on one of them.")
def all_gpus_together(parameters, stage, num_gpus, activations):
    return num_gpus * _held(parameters, stage, num_gpus, activations)


@memory_per_gpu.accepts
def sharding_of_the_library(parameters, stage, num_gpus, activations):
    cost = ParameterBytes(weights=2, gradients=2, master=4, state=8, assumes="")
    name = "replicated" if stage == 0 else f"ZeRO-{stage}"
    return parameters * sharded(cost, name, num_gpus).total + activations


@memory_per_gpu.accepts
def as_a_loop(parameters, stage, num_gpus, activations):
    total = activations
    for number, size in enumerate((12, 2, 2), start=1):
        total += parameters * size / (1 if stage < number else num_gpus)
    return total


# ---------------------------------------------------------------- 14.4


@exercise(
    notebook="14",
    hints=[
        "MFU: the FLOPs that the model needs in a second, over those that all GPUs promise in a second.",
        "What does the model need, recomputed or not? M is for model.",
        "You know how many tokens pass in a second. How many seconds until all have passed?",
    ],
    why="The M in MFU is the model: 6 FLOPs for each parameter and token, whatever else the GPUs compute. Recomputing "
    "costs time, and so lowers the MFU. The days need no FLOPs at all: tokens over tokens per second.",
)
def mfu_and_days(
    parameters: float, tokens: float, tokens_per_sec: float, num_gpus: int, flop_per_sec: float,
    recompute: bool,
) -> tuple[float, float]:
    """A run's model FLOPs utilisation, from 0 to 1, and the days that it takes for all tokens.

    `tokens_per_sec` was measured, for all GPUs together; `flop_per_sec` is what one promises.
    Training needs 6 FLOPs for each parameter and token; leave attention's own out. If
    `recompute`, the GPUs run each forward pass twice to save memory.
    """
    mfu = 6 * parameters * tokens_per_sec / (num_gpus * flop_per_sec)
    return mfu, tokens / tokens_per_sec / 86400


mfu_and_days.cases(
    case("70e9, 15e12, 1.2e6, 1024, 989.5e12, False", "70 billion parameters on 1024 H100s"),
    case("70e9, 15e12, 0.9e6, 1024, 989.5e12, True", "the same, recomputing"),
    case("124e6, 9e9, 1.5e6, 8, 312e12, False", "GPT-2 on eight A100s"),
    case("8e9, 1e12, 9000, 1, 989.5e12, True", "one GPU"),
    case("100, 864000, 5, 2, 4000, False", "small numbers"),
    case("100, 864000, 5, 2, 4000, True", "small numbers, recomputing"),
    "3, 7, 2, 4, 50, True",
)


def _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, each=6):
    share = each * parameters * tokens_per_sec / (num_gpus * flop_per_sec)
    return share, tokens / tokens_per_sec / 86400


@mfu_and_days.misconception(
    "8 FLOPs are what the GPUs compute, their hardware utilisation. MFU counts what the model needs: 6, in any case."
)
def recomputing_counts(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    return _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, 8 if recompute else 6)


@mfu_and_days.misconception("2 FLOPs for each parameter are the forward pass. A training step takes 6.")
def forward_alone(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    return _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, 2)


@mfu_and_days.misconception("The promise is that of one GPU. All of them together promised num_gpus times as much.")
def one_gpus_promise(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return share * num_gpus, days


@mfu_and_days.misconception("The tokens per second are those of all GPUs already: do not divide the days once more.")
def days_divided_again(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return share, days / num_gpus


@mfu_and_days.misconception("Upside down: what the model needed goes on top, what was promised below.")
def upside_down(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return 1 / share, days


@mfu_and_days.misconception("Those would be the days at an MFU of 1. The run was measured: use its tokens per second.")
def days_at_full_speed(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return share, days * share


@mfu_and_days.misconception("You made an MFU of percent. As a share it lies between 0 and 1.")
def percent(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return 100 * share, days


@mfu_and_days.misconception("Those are hours. A day has 86,400 seconds.")
def hours(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return share, 24 * days


@mfu_and_days.misconception("Those are seconds. A day has 86,400 of them.")
def seconds(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    share, days = _run(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec)
    return share, 86400 * days


@mfu_and_days.accepts
def days_at_an_mfu_of_one(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    days = tokens / tokens_per_sec / 3600 / 24
    return training_days(parameters, tokens, num_gpus, flop_per_sec, 1.0) / days, days


@mfu_and_days.accepts
def one_gpus_share(parameters, tokens, tokens_per_sec, num_gpus, flop_per_sec, recompute):
    each = tokens_per_sec / num_gpus
    return [each * parameters * (2 + 4) / flop_per_sec, tokens / (each * num_gpus * 60 * 60 * 24)]


# ---------------------------------------------------------------- 14.5


@exercise(
    notebook="14",
    hints=[
        "Dollars buy hours of a GPU; an hour has 3600 seconds of flop_per_sec times mfu. How many FLOPs is that?",
        "6 · N · 20 · N FLOPs train N parameters on 20 tokens each. Which N uses up the budget?",
        "Half of all the memory, 16 bytes each: how many parameters fit? If those are fewer, where do the FLOPs go?",
    ],
    why="FLOPs are 6 · N · D, and with D = 20 · N that is 120 · N², so N is a root. Where memory allows only a smaller "
    "N, each token costs less, and the same FLOPs go further: D = FLOPs / (6 · N), whatever decided N.",
)
def plan_run(
    dollars: float, dollars_per_gpu_hour: float, num_gpus: int, memory_bytes: float,
    flop_per_sec: float, mfu: float,
) -> dict[str, float]:
    """The run to buy: {"parameters": …, "tokens": …, "days": …}. All dollars are to be spent.

    Training takes 6 FLOPs for each parameter and token, and the best model for its FLOPs sees 20
    tokens for each parameter. A parameter takes 16 bytes, divided among the GPUs, each of which
    has `memory_bytes` and keeps half of them free. If the best model does not fit, take the
    largest that does, on as many tokens as all the FLOPs pay for. Nothing is rounded.
    """
    hours = dollars / dollars_per_gpu_hour
    flops = hours * 3600 * flop_per_sec * mfu
    best = (flops / 6 / 20) ** 0.5
    fits = num_gpus * memory_bytes / 2 / 16
    parameters = min(best, fits)
    return {"parameters": parameters, "tokens": flops / 6 / parameters, "days": hours / num_gpus / 24}


plan_run.cases(
    case("100_000, 2.5, 64, 80e9, 989.5e12, 0.4", "what fits"),
    case("5_000, 2, 8, 80e9, 989.5e12, 0.5", "a small budget"),
    case("5_000_000, 2, 8, 80e9, 989.5e12, 0.5", "eight GPUs, and more money than memory"),
    case("200, 1, 1, 8e9, 312e12, 0.3", "one GPU with little memory"),
    case("300, 3, 2, 1e9, 1e6, 0.5", "slow GPUs"),
    case("1e6, 1, 4, 24e9, 165e12, 0.25", "four gaming GPUs, for years"),
    case("7, 2, 3, 400, 0.5, 0.31", "tiny numbers"),
    "7, 2, 3, 35, 0.5, 0.31",
)


def _plan(dollars, price, num_gpus, memory_bytes, flop_per_sec, mfu, fits=None):
    gpu_hours = dollars / price
    flops = gpu_hours * 3600 * flop_per_sec * mfu
    room = num_gpus * memory_bytes / 32 if fits is None else fits
    parameters = min((flops / 120) ** 0.5, room)
    return {"parameters": parameters, "tokens": flops / (6 * parameters), "days": gpu_hours / num_gpus / 24}


@plan_run.misconception("It has to fit as well: 16 bytes for each parameter, in half of the memory of all GPUs.")
def fit_ignored(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu, fits=float("inf"))


@plan_run.misconception("With 20 tokens for each parameter of the smaller model, money is left. Spend it on tokens.")
def money_left(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    plan = _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu)
    return plan | {"tokens": 20 * plan["parameters"]}


@plan_run.misconception("Sharded, the memory of all GPUs counts, not that of one.")
def memory_of_one(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu, fits=memory_bytes / 32)


@plan_run.misconception("Half of the memory has to stay free, for activations and what comes and goes.")
def all_of_the_memory(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    fits = num_gpus * memory_bytes / 16
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu, fits=fits)


@plan_run.misconception("No run reaches the promise: multiply it by the MFU.")
def at_full_speed(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, 1.0)


@plan_run.misconception("The dollars buy GPU-hours, of all GPUs together: more GPUs are quicker, not more FLOPs.")
def more_gpus_more_flops(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, num_gpus * flop_per_sec, mfu)


@plan_run.misconception("Those are days of one GPU. They all work at the same time.")
def gpu_days(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    plan = _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu)
    return plan | {"days": plan["days"] * num_gpus}


@plan_run.misconception("20 tokens for each parameter, not 20 parameters for each token.")
def turned_round(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    flops = dollars / dollars_per_gpu_hour * 3600 * flop_per_sec * mfu
    fits = min((20 * flops / 6) ** 0.5, num_gpus * memory_bytes / 32)
    plan = _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu)
    return plan | {"parameters": fits, "tokens": flops / 6 / fits}


@plan_run.misconception("2 FLOPs are the forward pass alone. Training takes 6 for each parameter and token.")
def forward_pass_alone(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, 3 * flop_per_sec, mfu)


@plan_run.misconception("An hour has 3600 seconds, and flop_per_sec counts FLOPs in one second.")
def hours_for_seconds(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    return _plan(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec / 3600, mfu)


@plan_run.accepts
def asking_what_fits_first(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    days = dollars / (dollars_per_gpu_hour * num_gpus * 24)
    pairs = days * 24 * 60 * 60 * num_gpus * flop_per_sec * mfu / 6  # of a parameter and a token
    parameters = num_gpus * (memory_bytes * 0.5) / (4 + 4 + 8)
    if 20 * parameters**2 > pairs:
        parameters = (pairs / 20) ** (1 / 2)
    return {"tokens": pairs / parameters, "days": days, "parameters": parameters}


@plan_run.accepts
def by_bisection(dollars, dollars_per_gpu_hour, num_gpus, memory_bytes, flop_per_sec, mfu):
    flops = dollars / dollars_per_gpu_hour * 3600 * flop_per_sec * mfu
    low, high = 0.0, num_gpus * memory_bytes / 32
    if 120 * high * high > flops:
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if 6 * middle * 20 * middle < flops else (low, middle)
    return {"parameters": high, "tokens": flops / 6 / high, "days": dollars / dollars_per_gpu_hour / num_gpus / 24}
