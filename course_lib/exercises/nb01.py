"""The exercises of notebook 01: bytes, units, the causal mask, broadcasting and the loss that it breaks."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 1.1


@exercise(
    notebook="01",
    hints=[
        "How many numbers does a tensor of shape (4, 8, 16, 32) hold? `math.prod` multiplies a tuple.",
        "A dtype knows its size: `torch.float64.itemsize` is 8, in bytes.",
    ],
    why="The shape says how many numbers there are, the dtype how many bytes each takes. A scalar has no axes, and the "
    "product of nothing is 1: one number.",
)
def tensor_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """Bytes that the numbers of a tensor of this shape and dtype take, without building it."""
    return math.prod(shape) * dtype.itemsize


tensor_bytes.cases(
    "(32, 32), torch.float32",
    "(3, 5), torch.float64",
    case("(4, 8, 16, 32), torch.bfloat16", "rank 4"),
    case("(), torch.float32", "a scalar"),
    case("(7,), torch.bool", "booleans"),
    "(2, 3, 5), torch.bool",
    "(10, 3), torch.int64",
    "(), torch.int64",
    case("(0, 3), torch.float32", "an empty tensor"),
    case("(12288, 49152), torch.float32", "a matrix of GPT-3"),
    case("(10**9, 10**6), torch.float32", "larger than any memory"),
    "(3, 3), torch.float16",
    "(5, 2), torch.int32",
    "(6,), torch.uint8",
    case("(2, 3), torch.complex64", "complex numbers"),
    case("(2, 1, 3, 5, 2), torch.int16", "rank 5"),
)


@tensor_bytes.misconception("You took 4 bytes for every number. That is float32; a float64 takes 8, a bfloat16 2.")
def four_bytes_each(shape, dtype):
    return math.prod(shape) * 4


@tensor_bytes.misconception("That is how many numbers there are. Multiply by the bytes of one: `dtype.itemsize`.")
def counted_numbers(shape, dtype):
    return math.prod(shape)


@tensor_bytes.misconception("You counted bits. A byte has eight of them.")
def counted_bits(shape, dtype):
    return math.prod(shape) * dtype.itemsize * 8


@tensor_bytes.misconception("You added the lengths of the axes. A 32×32 matrix holds 32 · 32 numbers, not 32 + 32.")
def added_axes(shape, dtype):
    return sum(shape) * dtype.itemsize


@tensor_bytes.misconception("A boolean needs one bit, but PyTorch gives it a byte: memory is addressed in bytes.")
def packed_booleans(shape, dtype):
    return math.ceil(math.prod(shape) / 8) if dtype == torch.bool else math.prod(shape) * dtype.itemsize


@tensor_bytes.misconception("A scalar has no axes, and yet it holds one number. The product of no lengths is 1, not 0.")
def empty_scalar(shape, dtype):
    return math.prod(shape) * dtype.itemsize if shape else 0


@tensor_bytes.accepts
def on_meta(shape, dtype):
    return torch.empty(shape, dtype=dtype, device="meta").nbytes


@tensor_bytes.accepts
def in_a_loop(shape, dtype):
    size = torch.tensor([], dtype=dtype).element_size()
    for length in shape:
        size *= length
    return size


@tensor_bytes.accepts
def with_numpy(shape, dtype):
    return np.prod(shape, dtype=np.int64) * dtype.itemsize


# ---------------------------------------------------------------- 1.2


@exercise(
    notebook="01",
    hints=[
        "How many bytes is that? G stands for 10⁹.",
        "Gi stands for 2³⁰. How often do 2³⁰ bytes fit into those?",
    ],
    why="The memory does not change, the unit does: 10⁹ bytes in one, 2³⁰ in the other. A GiB is 7 % larger, so the "
    "number of them is smaller.",
)
def gib_from_gb(gigabytes: float) -> float:
    """A size in GB as a size in GiB.

    A GB is 10⁹ bytes, the unit of drives; a GiB is 2³⁰ bytes, the unit that many tools show.
    """
    return gigabytes * 10**9 / 2**30


gib_from_gb.cases(
    case("80", "a checkpoint"),
    case("2.415919104", "a matrix of GPT-3"),
    "24",
    "1",
    "0.5",
    case("0", "nothing"),
    case("1000", "a disk of 1 TB"),
)


@gib_from_gb.misconception("You took GB and GiB for the same. A GiB is 1,073,741,824 bytes, a GB 1,000,000,000.")
def the_same(gigabytes):
    return float(gigabytes)


@gib_from_gb.misconception("You went the other way, from GiB to GB. The larger unit gives the smaller number.")
def other_way(gigabytes):
    return gigabytes * 2**30 / 10**9


@gib_from_gb.misconception("You changed 1000 into 1024 once. From bytes to giga there are three such steps.")
def one_step(gigabytes):
    return gigabytes * 1000 / 1024


@gib_from_gb.misconception("Those are MB and MiB: 10⁶ and 2²⁰. Giga is 10⁹, and gibi is 2³⁰.")
def mega(gigabytes):
    return gigabytes * 10**6 / 2**20


@gib_from_gb.misconception("You divided by 8. GB counts bytes already; bits are written with a small b.")
def from_bits(gigabytes):
    return gigabytes * 10**9 / 8 / 2**30


@gib_from_gb.misconception("You cut off the fraction. Of 80 GB, half a GiB would be lost: 537 million bytes.")
def whole_only(gigabytes):
    return gigabytes * 10**9 // 2**30


@gib_from_gb.accepts
def in_three_steps(gigabytes):
    for _ in range(3):
        gigabytes = gigabytes * 1000 / 1024
    return gigabytes


@gib_from_gb.accepts
def by_a_shift(gigabytes):
    return gigabytes * 1e9 / (1 << 30)


@gib_from_gb.accepts
def by_the_ratio(gigabytes):
    return gigabytes / 1.073741824


# ---------------------------------------------------------------- 1.3


@exercise(
    notebook="01",
    fixed=["dtype"],
    hints=[
        "Row 0 belongs to the first word. Which words has it seen? Write the rows for length 3 on paper.",
        "Begin with a matrix of True: `torch.ones(length, length, dtype=torch.bool)`. Which triangle must stay?",
    ],
    why="Query i may see the keys 0 to i: in row i everything up to the diagonal. That is the lower triangle, and the "
    "diagonal belongs to it, because a word may look at itself.",
)
def causal_mask(length: int) -> torch.Tensor:
    """What each query may look at: bool, shape (length, length), rows are queries, columns keys.

    True where the key is the query itself or came before it. A length of 0 gives an empty mask.
    """
    return torch.ones(length, length, dtype=torch.bool).tril()


causal_mask.cases("3", "5", "8", case("2", "two words"), case("1", "one word"), case("0", "no word"))


@causal_mask.misconception("You kept the upper triangle: the first word sees the future, the last only itself.")
def sees_the_future(length):
    return torch.ones(length, length, dtype=torch.bool).triu()


@causal_mask.misconception("You forbid a word to look at itself. The diagonal stays, else the first row is empty.")
def without_itself(length):
    return torch.ones(length, length, dtype=torch.bool).tril(-1)


@causal_mask.misconception("You marked what is forbidden. This mask says what is kept: turn True and False around.")
def marks_forbidden(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@causal_mask.misconception("The triangle is right, but it holds numbers. A mask is bool: `dtype=torch.bool`.")
def numbers(length):
    return torch.ones(length, length).tril()


@causal_mask.misconception("That mask is added to scores: 0 and −inf. Asked for is one of True and False.")
def to_be_added(length):
    return torch.full((length, length), -torch.inf).triu(1)


@causal_mask.misconception("You kept the diagonal only: every word sees itself and nothing that came before.")
def only_itself(length):
    return torch.eye(length, dtype=torch.bool)


@causal_mask.misconception("You let every word see one word too many: the diagonal above the main one is the future.")
def one_ahead(length):
    return torch.ones(length, length, dtype=torch.bool).tril(1)


@causal_mask.accepts
def by_comparing(length):
    place = torch.arange(length)
    return place[:, None] >= place


@causal_mask.accepts
def by_forbidding(length):
    return ~torch.ones(length, length).triu(1).bool()


@causal_mask.accepts
def row_by_row(length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        mask[query, : query + 1] = True
    return mask


# ---------------------------------------------------------------- 1.4


@exercise(
    notebook="01",
    hints=[
        "Write the shapes below each other, their right ends in line. What stands where one has no axis left?",
        "Put 1s in front of the shorter shape, then look at each pair: equal, one of them 1, or an error.",
        "With (0,) and (1,) the 1 stretches to 0. So take the other one of the pair, not the larger.",
    ],
    why="Axes pair up from the right, and a missing axis counts as 1. In each pair a 1 becomes whatever the other is; "
    "two different lengths that are not 1 have no common shape.",
)
def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of x + y, where x has shape `a` and y has shape `b`.

    Raises ValueError where the two cannot be broadcast.
    """
    rank = max(len(a), len(b))
    a = (1,) * (rank - len(a)) + a
    b = (1,) * (rank - len(b)) + b
    shape = []
    for axis in range(rank):
        m, n = a[axis], b[axis]
        if m != n and 1 not in (m, n):
            raise ValueError(f"an axis of {m} does not fit an axis of {n}")
        shape.append(n if m == 1 else m)
    return tuple(shape)


broadcast_shape.cases(
    "(2, 3), (2, 3)",
    case("(2, 3), (3,)", "a row"),
    "(3,), (2, 3)",
    case("(2, 3), (2,)", "two shapes that do not fit"),
    "(4, 1), (4,)",
    case("(5, 1, 4), (3, 1)", "two that both stretch"),
    case("(), (2, 3)", "a scalar"),
    "(1,), (7,)",
    "(8, 1, 6, 1), (7, 1, 5)",
    case("(4,), (2,)", "no fit, although 2 divides 4"),
    case("(2, 6), (3,)", "no fit, although 3 divides 6"),
    case("(1, 3), (0, 3)", "an empty tensor"),
    "(0,), (5, 1)",
    "(3, 4), (4, 3)",
    case("(2, 3), (2, 1)", "a column"),
    "(3, 3), (3,)",
    case("(2, 3), (4, 3)", "no fit at the first axis"),
    case("(0,), (3,)", "no fit with an empty tensor"),
    "(3,), (0,)",
)


def _merge(a, b):
    """The pairs' common lengths for shapes of one rank."""
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        raise ValueError("no fit")
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def _pad(a, b):
    rank = max(len(a), len(b))
    return (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b


@broadcast_shape.misconception("You lined the shapes up at the left. Broadcasting begins at the last axis.")
def from_the_left(a, b):
    rank = max(len(a), len(b))
    return _merge(a + (1,) * (rank - len(a)), b + (1,) * (rank - len(b)))


@broadcast_shape.misconception("You lost the axes that only one of them has. The result keeps the higher rank.")
def lost_axes(a, b):
    rank = min(len(a), len(b))
    return _merge(a[len(a) - rank :], b[len(b) - rank :])


@broadcast_shape.misconception("You took the larger of two lengths without asking whether one of them is 1.")
def always_the_larger(a, b):
    return tuple(max(m, n) for m, n in zip(*_pad(a, b), strict=True))


@broadcast_shape.misconception("You took the larger length. A 1 stretches to the other length, and that may be 0.")
def larger_than_nothing(a, b):
    _merge(*_pad(a, b))
    return tuple(max(m, n) for m, n in zip(*_pad(a, b), strict=True))


@broadcast_shape.misconception("You repeat an axis that divides the other. Only an axis of length 1 stretches.")
def repeats_divisors(a, b):
    for m, n in zip(*_pad(a, b), strict=True):
        if m != n and (min(m, n) == 0 or max(m, n) % min(m, n)) and 1 not in (m, n):
            raise ValueError("no fit")
    return tuple(n if m == 1 else m if n == 1 else max(m, n) for m, n in zip(*_pad(a, b), strict=True))


@broadcast_shape.misconception("You refuse shapes of different rank. The shorter one gets 1s in front.")
def same_rank_only(a, b):
    if len(a) != len(b):
        raise ValueError("no fit")
    return _merge(a, b)


@broadcast_shape.misconception("You stretch one tensor only. In (5, 1, 4) and (3, 1) both do, on different axes.")
def stretches_one(a, b):
    a, b = _pad(a, b)
    if _merge(a, b) not in (a, b):
        raise ValueError("no fit")
    return _merge(a, b)


@broadcast_shape.accepts
def numpys_own(a, b):
    return np.broadcast_shapes(a, b)


@broadcast_shape.accepts
def torchs_own(a, b):
    try:
        return tuple(torch.broadcast_shapes(a, b))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@broadcast_shape.accepts
def from_the_end(a, b):
    if not a or not b:
        return a or b
    if a[-1] != b[-1] and a[-1] != 1 and b[-1] != 1:
        raise ValueError("no fit")
    last = b[-1] if a[-1] == 1 else a[-1]
    return (*from_the_end(a[:-1], b[:-1]), last)


# ---------------------------------------------------------------- 1.5


@exercise(
    notebook="01",
    fixed=["requires_grad"],
    stub='''\
def mean_squared_error(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the batch of (prediction - target)², a scalar tensor.

    `predictions` has shape (batch, 1), as a model returns it; `targets` has shape (batch,).
    """
    return (predictions - targets).pow(2).mean()''',
    hints=[
        "Print the shape of `predictions - targets`. How many differences are there, and how many do you want?",
        "Give both the same shape first: take the axis of length 1 away, or add one to the targets.",
    ],
    why="Both hold `batch` numbers, and with the same shape number i meets number i. Without that, (batch, 1) and "
    "(batch,) broadcast to (batch, batch), and no error tells you.",
)
def mean_squared_error(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the batch of (prediction - target)², a scalar tensor.

    `predictions` has shape (batch, 1), as a model returns it; `targets` has shape (batch,).
    """
    return (predictions.flatten() - targets).pow(2).mean()


mean_squared_error.cases(
    case("torch.arange(4.)[:, None], torch.arange(4.)", "perfect predictions"),
    case("torch.randn(5, 1), torch.randn(5)", "random numbers"),
    case("torch.ones(3, 1), torch.tensor([1., 1., 4.])", "one is off"),
    case("torch.tensor([[2.5]]), torch.tensor([1.])", "a batch of one"),
    case("torch.randn(8, 1, requires_grad=True), torch.randn(8)", "predictions that require grad"),
    case("torch.randn(6, 1, requires_grad=True), torch.randn(12)[::2]", "targets with a stride"),
    case("torch.randn(7, 1, dtype=torch.float64), torch.randn(7, dtype=torch.float64)", "float64"),
    case("torch.tensor([[1.], [-1.]]), torch.tensor([-1., 1.])", "errors that cancel"),
)


@mean_squared_error.probe
def with_the_gradient(candidate, args, kwargs):
    """The loss, and for predictions that require grad the gradient that it sends back to them."""
    loss = candidate(*args, **kwargs)
    predictions = args[0]
    if not predictions.requires_grad:
        return loss
    gradient = None
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss.sum(), predictions, allow_unused=True)
    arrived = torch.zeros_like(predictions) if gradient is None else gradient
    return {"the loss": loss, "the gradient of the predictions": arrived.detach()}


@mean_squared_error.misconception("Every prediction still meets every target: the difference is (batch, batch).")
def still_broadcasts(predictions, targets):
    return (predictions - targets[None, :]).pow(2).mean()


@mean_squared_error.misconception("You averaged before squaring, so an error of +1 and one of −1 cancel.")
def averaged_first(predictions, targets):
    return (predictions.flatten() - targets).mean().pow(2)


@mean_squared_error.misconception("That is the sum. It grows with the batch; the mean does not.")
def summed(predictions, targets):
    return (predictions.flatten() - targets).pow(2).sum()


@mean_squared_error.misconception("You took absolute values. A squared error weighs large misses more.")
def absolute(predictions, targets):
    return (predictions.flatten() - targets).abs().mean()


@mean_squared_error.misconception("You took a square root at the end. That is the root mean squared error.")
def rooted(predictions, targets):
    return (predictions.flatten() - targets).pow(2).mean().sqrt()


@mean_squared_error.misconception("You returned a Python number. It has forgotten its parents, so it trains nothing.")
def a_python_number(predictions, targets):
    return (predictions.flatten() - targets).pow(2).mean().item()


@mean_squared_error.misconception("You return one error for each example. A loss is one number: take the mean.")
def one_each(predictions, targets):
    return (predictions.flatten() - targets).pow(2)


@mean_squared_error.misconception("You divided the sum over all pairs by the batch. The wrong pairs are still in it.")
def divided_all_pairs(predictions, targets):
    return (predictions - targets).pow(2).sum() / len(targets)


@mean_squared_error.accepts
def lift_the_targets(predictions, targets):
    return (predictions - targets[:, None]).pow(2).mean()


@mean_squared_error.accepts
def by_torch(predictions, targets):
    return F.mse_loss(predictions.squeeze(-1), targets)


@mean_squared_error.accepts
def by_hand(predictions, targets):
    differences = predictions[:, 0] - targets
    return differences @ differences / len(differences)
