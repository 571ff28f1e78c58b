"""The exercises of notebook 03: positions, strides, windows without a copy, shared storage, and what can be viewed."""
import itertools
import math

import torch

from course_lib.exercises.engine import case, exercise
from course_lib.storage import same_storage

# ---------------------------------------------------------------- 3.1


@exercise(
    notebook="03",
    hints=[
        "A stride says how far one step along its axis moves in the storage. How far do index[d] steps move?",
        "Add up index · stride over all axes. And where does the tensor begin?",
    ],
    why="Each step along axis d moves stride[d] places on, and the first element stands at the offset. A scalar has no "
    "axes: its one element is at the offset.",
)
def storage_position(strides: tuple[int, ...], index: tuple[int, ...], offset: int = 0) -> int:
    """Position in the storage, counted in elements, of the element at `index`.

    `offset` is the position of the tensor's first element.
    """
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))


storage_position.cases(
    "(4, 1), (1, 2)",
    case("(1, 4), (2, 1)", "a transpose"),
    case("(4, 1), (1, 2), 5", "an offset"),
    case("(0, 1), (7, 2)", "a stride of 0"),
    "(12, 4, 1), (1, 2, 3)",
    case("(30, 10, 2), (1, 0, 4), offset=1", "columns taken in steps of two"),
    case("(6,), (3,), 2", "a column"),
    case("(1, 3), (2, 0)", "a transpose"),
    case("(), (), 3", "a scalar with an offset"),
    case("(3, 1), (0, 0)", "the first element"),
    case("(60, 20, 5, 1), (2, 1, 3, 4)", "four axes"),
    case("(2**25, 768, 1), (1, 1, 1)", "a large position"),
)


@storage_position.misconception("You counted bytes. Strides in PyTorch count elements; NumPy's count bytes.")
def counted_bytes(strides, index, offset=0):
    return 4 * (offset + sum(i * s for i, s in zip(index, strides, strict=True)))


@storage_position.misconception("You left out the offset: a view may begin in the middle of the storage.")
def no_offset(strides, index, offset=0):
    return sum(i * s for i, s in zip(index, strides, strict=True))


@storage_position.misconception("You took the last index as it is. The last stride need not be 1: see a transpose.")
def last_stride_is_one(strides, index, offset=0):
    return offset + sum(i * s for i, s in zip(index[:-1], strides[:-1], strict=True)) + sum(index[-1:])


@storage_position.misconception("You paired the strides with the index from the wrong end. Axis 0 has stride[0].")
def wrong_end(strides, index, offset=0):
    return offset + sum(i * s for i, s in zip(index, reversed(strides), strict=True))


@storage_position.misconception("You multiplied the offset by a stride. It is a position already: add it once.")
def offset_in_rows(strides, index, offset=0):
    return offset * sum(strides[:1]) + sum(i * s for i, s in zip(index, strides, strict=True))


@storage_position.misconception("You added the offset once for every axis. The tensor begins once: add it once.")
def offset_per_axis(strides, index, offset=0):
    return sum(i * s + offset for i, s in zip(index, strides, strict=True))


@storage_position.accepts
def step_by_step(strides, index, offset=0):
    for axis, steps in enumerate(index):
        offset += steps * strides[axis]
    return offset


@storage_position.accepts
def as_a_dot_product(strides, index, offset=0):
    return offset + int(torch.tensor(index, dtype=torch.int64) @ torch.tensor(strides, dtype=torch.int64))


@storage_position.accepts
def asking_torch(strides, index, offset=0):
    shape = [i + 1 for i in index]
    return torch.empty(0, device="meta").as_strided(shape, strides, offset)[index].storage_offset()


# ---------------------------------------------------------------- 3.2


@exercise(
    notebook="03",
    hints=[
        "The last axis is the easy one: neighbours in a row are neighbours in the storage.",
        "One step along an axis skips everything that lies inside it: all the axes to its right.",
        "So stride[d] is the product of shape[d + 1:]. `math.prod` of nothing is 1.",
    ],
    why="One step along an axis passes all elements of the axes to its right, and the product of their sizes says how "
    "many those are. To the right of the last axis there is nothing, and the product of nothing is 1.",
)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous tensor of this shape. All sizes are at least 1."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


contiguous_strides.cases(
    "(3, 4)",
    case("(2, 3, 4)", "rank 3"),
    case("(7,)", "a vector"),
    case("(2, 3, 5, 7)", "rank 4"),
    case("()", "a scalar"),
    case("(4, 1, 3)", "an axis of size 1"),
    case("(5, 1)", "an axis of size 1"),
    "(6, 2)",
    "(1, 2, 3)",
    case("(2, 3, 4, 5, 2)", "rank 5"),
)


@contiguous_strides.misconception("You stored column by column. PyTorch stores row by row: the last axis has stride 1.")
def column_by_column(shape):
    return tuple(math.prod(shape[:axis]) for axis in range(len(shape)))


@contiguous_strides.misconception("Those are bytes, as NumPy counts strides. PyTorch counts elements.")
def strides_in_bytes(shape):
    return tuple(4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@contiguous_strides.misconception("You multiplied the axis's own size in. A step passes only what lies to the right.")
def own_size_too(shape):
    return tuple(math.prod(shape[axis:]) for axis in range(len(shape)))


@contiguous_strides.misconception("You looked at the next axis alone. A step passes all axes to the right.")
def only_the_neighbour(shape):
    return (*shape[1:], 1) if shape else ()


@contiguous_strides.misconception("The numbers are right, their order is not: the largest stride belongs to axis 0.")
def back_to_front(shape):
    return tuple(math.prod(shape[axis + 1 :]) for axis in reversed(range(len(shape))))


@contiguous_strides.misconception("You added the sizes. A step skips rows of rows: the sizes multiply.")
def added(shape):
    return tuple(sum(shape[axis + 1 :]) or 1 for axis in range(len(shape)))


@contiguous_strides.accepts
def from_the_right(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@contiguous_strides.accepts
def by_recursion(shape):
    if len(shape) < 2:
        return (1,) * len(shape)
    inner = by_recursion(shape[1:])
    return (shape[1] * inner[0], *inner)


@contiguous_strides.accepts
def an_empty_tensor(shape):
    return torch.empty(shape, device="meta").stride()


# ---------------------------------------------------------------- 3.3


@exercise(
    notebook="03",
    fixed=("aliasing", "dtype"),
    hints=[
        "How many windows of `size` fit into a row of `time` numbers? With size = time, one does.",
        "On to the next window and on to the next number inside a window: how far does each move in the storage?",
        "x.as_strided(shape, strides) begins where x begins. x need not be contiguous, so ask x.stride().",
    ],
    why="Windows overlap in the storage: the next window and the next number in a window are one and the same step, "
    "x.stride(1). Three axes walk over numbers that were there already.",
)
def sliding_windows(x: torch.Tensor, size: int) -> torch.Tensor:
    """All windows of `size` neighbours in each row of x, without copying a number.

    x has shape (batch, time) and any strides. The result is a view of x of shape
    (batch, time - size + 1, size).
    """
    batch, time = x.shape
    next_row, next_number = x.stride()
    return x.as_strided((batch, time - size + 1, size), (next_row, next_number, next_number))


sliding_windows.cases(
    "torch.arange(10.).reshape(2, 5), 3",
    case("torch.arange(12.).reshape(4, 3).T, 2", "a transpose"),
    case("torch.arange(24.).reshape(2, 12)[:, ::2], 3", "every second column"),
    case("torch.arange(20.).reshape(4, 5)[1:, 1:], 3", "a view that begins inside its storage"),
    case("torch.arange(5.).expand(3, 5), 2", "a row seen three times"),
    case("torch.arange(6).reshape(2, 3), 1", "windows of one"),
    case("torch.arange(8.).reshape(2, 4), 4", "one window"),
    case("torch.arange(7, dtype=torch.bfloat16)[None], 5", "a batch of one"),
    case("torch.arange(18.).reshape(3, 6)[:, 2:], 2", "a view that begins inside its storage"),
)


@sliding_windows.misconception("You copied each number up to `size` times. The result should be a view of x.")
def stacked(x, size):
    return torch.stack([x[:, start : start + size] for start in range(x.shape[1] - size + 1)], dim=1)


@sliding_windows.misconception("The last window is missing. With size = time one fits, so there are time - size + 1.")
def one_short(x, size):
    across, along = x.stride()
    return x.as_strided((x.shape[0], x.shape[1] - size, size), (across, along, along))


@sliding_windows.misconception("Those strides suit a contiguous x. It may be a transpose or a slice: ask x.stride().")
def assumes_contiguous(x, size):
    batch, time = x.shape
    return x.as_strided((batch, time - size + 1, size), (time, 1, 1))


@sliding_windows.misconception("You begin where the storage begins. x may begin later: leave the offset to as_strided.")
def from_the_start(x, size):
    across, along = x.stride()
    return x.as_strided((x.shape[0], x.shape[1] - size + 1, size), (across, along, along), 0)


@sliding_windows.misconception("Your windows do not overlap. Each begins one number after the one before it.")
def blocks(x, size):
    return x[:, : x.shape[1] // size * size].unflatten(1, (-1, size))


@sliding_windows.misconception("Your windows are columns. Number j of window i belongs at [:, i, j].")
def columns(x, size):
    across, along = x.stride()
    return x.as_strided((x.shape[0], size, x.shape[1] - size + 1), (across, along, along))


@sliding_windows.misconception("Some of your windows begin in one row and end in the next. Keep the batch as an axis.")
def across_rows(x, size):
    return x.reshape(-1).unfold(0, size, 1)


@sliding_windows.accepts
def unfolded(x, size):
    return x.unfold(-1, size, 1)


@sliding_windows.accepts
def with_the_offset(x, size):
    along = x.stride(1)
    shape = (x.size(0), x.size(1) - size + 1, size)
    return torch.as_strided(x, shape, (x.stride(0), along, along), x.storage_offset())


# ---------------------------------------------------------------- 3.4

OPERATIONS = (
    *("x[0]", "x[:, 1:]", "x[[0, 1]]", "x[x > 2]", "x.T", "x.expand(2, -1, -1)"),
    *("x.detach()", "x.clone()", "x + 0", "x.contiguous()", "x.reshape(-1)", "x.float()"),
)


@exercise(
    notebook="03",
    hints=[
        "Five of the twelve share whatever x is, four never do. Sort those first.",
        "A view needs an offset and strides that hold whatever the numbers are. Is that so for a list of rows? A mask?",
        "Three copy only where they have to, and that depends on x. Ask `x.is_contiguous()` and `x.dtype`.",
    ],
    why="An offset and strides can describe rows, slices, transposes and repetitions, so those are views. Lists and "
    "masks name arbitrary cells, and arithmetic makes new numbers: both copy. `contiguous`, `reshape` and `float` copy "
    "only where they have to.",
)
def aliases(x: torch.Tensor) -> set[str]:
    """Which of these twelve share storage with x? Return their names, in quotes as they stand here.

        x[0]         x[:, 1:]    x[[0, 1]]    x[x > 2]         x.T              x.expand(2, -1, -1)
        x.detach()   x.clone()   x + 0        x.contiguous()   x.reshape(-1)    x.float()

    x is a matrix of at least 2 × 2: contiguous, or the transpose of a contiguous one, of any dtype.
    """
    shared = {"x[0]", "x[:, 1:]", "x.T", "x.expand(2, -1, -1)", "x.detach()"}
    if x.is_contiguous():
        shared |= {"x.contiguous()", "x.reshape(-1)"}
    if x.dtype == torch.float32:
        shared |= {"x.float()"}
    return shared


aliases.cases(
    case("torch.arange(12.).reshape(3, 4)", "a contiguous float32 matrix"),
    case("torch.arange(12.).reshape(3, 4).T", "a transpose"),
    case("torch.arange(6).reshape(2, 3)", "integers"),
    case("torch.arange(6, dtype=torch.float64).reshape(3, 2).T", "a float64 transpose"),
    case("torch.arange(4.).reshape(2, 2)", "a square"),
    case("torch.arange(25., dtype=torch.bfloat16).reshape(5, 5).T", "a bfloat16 transpose"),
    case("torch.arange(9.).reshape(3, 3).T", "the transpose of a square"),
    case("torch.arange(6, dtype=torch.int32).reshape(2, 3)", "integers of 4 bytes"),
)


@aliases.probe
def one_by_one(candidate, args, kwargs):
    """Type, unknown names, and what is said of each operation: a dict whose keys and values the learner reads."""
    named = candidate(*args, **kwargs)
    listed = isinstance(named, set | frozenset | list | tuple)
    names = [str.replace(name, " ", "") if isinstance(name, str) else name for name in (named if listed else ())]
    without_spaces = [name.replace(" ", "") for name in OPERATIONS]
    strange = [name for name in names if not isinstance(name, str) or name not in without_spaces]
    seen = {"type": "set" if listed else type(named).__name__, "names that are none of the twelve": strange}
    pairs = zip(OPERATIONS, without_spaces, strict=True)
    return seen | {name: "shares" if short in names else "copies" for name, short in pairs}


def _shared(x, more=(), less=()):
    """The right answer with some names added and some taken away."""
    return (aliases.reference(x) | set(more)) - set(less)


@aliases.misconception("reshape promises no view: read row by row, a transpose has no single step, so it is copied.")
def reshape_never_copies(x):
    return _shared(x, more=["x.reshape(-1)"])


@aliases.misconception("reshape promises no copy either: where strides can walk the new shape, it returns a view.")
def reshape_always_copies(x):
    return _shared(x, less=["x.reshape(-1)"])


@aliases.misconception("A list or a mask names any cells in any order. No strides can walk them, so indexing copies.")
def all_indexing_is_view(x):
    return _shared(x, more=["x[[0, 1]]", "x[x > 2]"])


@aliases.misconception("Python's lists copy when they are sliced. Tensors do not: a slice is an offset and strides.")
def slices_copy(x):
    return _shared(x, less=["x[0]", "x[:, 1:]"])


@aliases.misconception("A transpose moves no number: two strides change places, the storage stays.")
def transpose_copies(x):
    return _shared(x, less=["x.T"])


@aliases.misconception("expand writes nothing twice: the new axis has stride 0, so a step along it stays where it is.")
def expand_copies(x):
    return _shared(x, less=["x.expand(2, -1, -1)"])


@aliases.misconception("detach leaves the history of gradients behind, not the numbers: the storage is the same.")
def detach_copies(x):
    return _shared(x, less=["x.detach()"])


@aliases.misconception("A contiguous tensor has nothing to rearrange: contiguous() then returns x itself.")
def contiguous_always_copies(x):
    return _shared(x, less=["x.contiguous()"])


@aliases.misconception("On a transpose contiguous() has to write all numbers again, in reading order: a copy.")
def contiguous_never_copies(x):
    return _shared(x, more=["x.contiguous()"])


@aliases.misconception("A float32 tensor needs no conversion to float32: x.float() then returns x itself.")
def float_always_copies(x):
    return _shared(x, less=["x.float()"])


@aliases.misconception("Another dtype means other bits, and those need a storage of their own: x.float() then copies.")
def float_never_copies(x):
    return _shared(x, more=["x.float()"])


@aliases.misconception("x + 0 computes, and a result gets a storage of its own even if no number has changed.")
def sum_with_zero_shares(x):
    return _shared(x, more=["x + 0"])


@aliases.accepts
def by_trying(x):
    return [name for name in OPERATIONS if same_storage(eval(name, {"x": x}), x)]


@aliases.accepts
def all_but_the_copies(x):
    copies = {"x[[0, 1]]", "x[x > 2]", "x.clone()", "x + 0"}
    if not x.is_contiguous():
        copies |= {"x.contiguous()", "x.reshape(-1)"}
    if x.dtype is not torch.float32:
        copies.add("x.float()")
    return frozenset(OPERATIONS) - copies


# ---------------------------------------------------------------- 3.5


@exercise(
    notebook="03",
    hints=[
        "The number of elements has to agree. An empty tensor cannot go wrong, and an axis of size 1 takes no step.",
        "Between two axes the walk goes on evenly if the outer stride is size · stride of the inner axis. If not, it "
        "breaks after every so many elements. After how many?",
        "For each break, some product of the last sizes of the new shape has to be exactly the number of elements "
        "after which the walk breaks.",
    ],
    why="Along one axis of the new shape all steps are equal. So for each break its last axes have to hold exactly the "
    "elements after which the walk breaks; between breaks it may cut as it likes. Axes of size 1 take no step, and an "
    "empty tensor has no element.",
)
def can_view(shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]) -> bool:
    """Whether x.view(new_shape) works for a tensor x of this shape and these strides.

    new_shape gives every size in full (no -1). Sizes may be 1 or 0, strides may be 0.
    """
    if math.prod(new_shape) != math.prod(shape):
        return False
    if 0 in shape:
        return True
    ends = {1, *(math.prod(new_shape[axis:]) for axis in range(len(new_shape)))}
    walked = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    inside, even = 1, None  # elements inside this axis, and the stride that goes on evenly from there
    for size, stride in reversed(walked):
        if stride != even and inside not in ends:
            return False
        inside, even = inside * size, size * stride
    return True


can_view.cases(
    case("(2, 3), (3, 1), (3, 2)", "a contiguous matrix"),
    case("(3, 2), (1, 3), (6,)", "a flattened transpose"),
    case("(4, 2), (1, 4), (2, 2, 2)", "a split transpose"),
    "(4, 2), (1, 4), (2, 4)",
    "(2, 3), (3, 1), (4,)",
    "(2, 3), (3, 1), (2, 3, 2)",
    case("(3, 4), (8, 2), (12,)", "steps of two that go on evenly"),
    "(3, 4), (8, 2), (2, 6)",
    case("(3, 2), (4, 1), (6,)", "two of four columns"),
    "(3, 2), (4, 1), (3, 1, 2)",
    case("(2, 1, 3), (3, 7, 1), (6,)", "an axis of size 1"),
    "(3, 1), (1, 5), (3,)",
    "(2, 1, 3), (9, 7, 1), (6,)",
    "(1, 4), (9, 3), (2, 2)",
    case("(4, 3), (0, 1), (12,)", "expanded"),
    "(3, 4), (1, 0), (3, 2, 2)",
    "(2, 3), (0, 0), (6,)",
    case("(2, 0, 3), (1, 5, 2), (0, 4)", "empty"),
    "(0, 3), (1, 7), (3, 0)",
    case("(), (), (1, 1)", "a scalar"),
    "(1, 1), (5, 9), ()",
    "(2, 3, 4), (4, 8, 1), (6, 4)",
    "(2, 3, 4), (4, 8, 1), (2, 12)",
    "(2, 3, 4), (4, 8, 1), (2, 3, 2, 2)",
    case("(2, 5, 3, 4), (60, 4, 20, 1), (2, 5, 12)", "attention heads"),
    "(6, 4), (8, 1), (2, 3, 4)",
    "(2, 3, 4), (24, 8, 1), (6, 4)",
    "(2, 2, 2), (4, 1, 2), (4, 2)",
    "(3, 3), (1, 3), (3, 3)",
    case("(2, 4), (1, 2), (4, 2)", "rows that end at each break"),
    case("(2, 3), (3, 1), (1, 6)", "a new axis of size 1"),
    "(2, 3), (3, 1), (6, 1)",
    case("(2, 3), (2, 1), (6,)", "rows that overlap"),
)


def _strided(shape, strides):
    return torch.empty_strided(shape, strides)


def _fits(shape, strides, new_shape):
    """The rule for breaks alone, with every axis taken as it stands."""
    ends = {math.prod(new_shape[axis:]) for axis in range(len(new_shape))}
    breaks = [axis for axis in range(1, len(shape)) if strides[axis - 1] != shape[axis] * strides[axis]]
    return math.prod(new_shape) == math.prod(shape) and all(math.prod(shape[axis:]) in ends for axis in breaks)


def _longer_axes(shape, strides):
    """Sizes and strides without the axes of size 1."""
    kept = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    return tuple(size for size, _ in kept), tuple(stride for _, stride in kept)


@can_view.misconception("Not only contiguous tensors have views: a (4, 2) transpose can be viewed as (2, 2, 2).")
def needs_contiguous(shape, strides, new_shape):
    return math.prod(new_shape) == math.prod(shape) and _strided(shape, strides).is_contiguous()


@can_view.misconception("That many elements are enough for reshape, which may copy. view also needs strides that fit.")
def counts_elements(shape, strides, new_shape):
    return math.prod(new_shape) == math.prod(shape)


@can_view.misconception("One break does not forbid every view: the last axes may hold what comes before it.")
def one_break_forbids_all(shape, strides, new_shape):
    return _fits(shape, strides, new_shape) and can_view.reference(shape, strides, (math.prod(shape),))


@can_view.misconception(
    "Rows that end at each break are not enough: from row to row all steps have to be equal, too. A product of the "
    "last sizes has to be the number of elements after which the walk breaks, not a part of it."
)
def rows_end_at_breaks(shape, strides, new_shape):
    sizes, steps = _longer_axes(shape, strides)
    row = next((size for size in reversed(new_shape) if size != 1), 1)
    breaks = [axis for axis in range(1, len(sizes)) if steps[axis - 1] != sizes[axis] * steps[axis]]
    fits = 0 in shape or all(math.prod(sizes[axis:]) % row == 0 for axis in breaks)
    return math.prod(new_shape) == math.prod(shape) and fits


@can_view.misconception("Inside a break only the number of elements counts. They may be cut into other sizes.")
def keeps_inner_sizes(shape, strides, new_shape):
    sizes, steps = _longer_axes(shape, strides)
    new_sizes = tuple(size for size in new_shape if size != 1)
    breaks = [axis for axis in range(1, len(sizes)) if steps[axis - 1] != sizes[axis] * steps[axis]]
    kept = all(new_sizes[axis - len(sizes) :] == sizes[axis:] for axis in breaks)
    return math.prod(new_shape) == math.prod(shape) and (0 in shape or kept)


@can_view.misconception("An axis of size 1 takes no step, so its stride says nothing. Leave such axes out.")
def heeds_size_one(shape, strides, new_shape):
    return math.prod(new_shape) == math.prod(shape) and (0 in shape or _fits(shape, strides, new_shape))


@can_view.misconception("An empty tensor has no element to misplace: any new shape without elements will do.")
def heeds_strides_of_nothing(shape, strides, new_shape):
    return _fits(*_longer_axes(shape, strides), new_shape)


@can_view.misconception("A stride of 0 obeys the same rule as any other: an expanded axis can be cut in pieces.")
def refuses_stride_zero(shape, strides, new_shape):
    return can_view.reference(shape, strides, new_shape) and (0 in shape or 0 not in strides)


@can_view.misconception("The outer stride has to span the inner axis: that one's size, not its own.")
def spans_its_own_size(shape, strides, new_shape):
    sizes, steps = _longer_axes(shape, strides)
    ends = {math.prod(new_shape[axis:]) for axis in range(len(new_shape))}
    breaks = [axis for axis in range(1, len(sizes)) if steps[axis - 1] != sizes[axis - 1] * steps[axis]]
    fits = all(math.prod(sizes[axis:]) in ends for axis in breaks)
    return math.prod(new_shape) == math.prod(shape) and (0 in shape or fits)


@can_view.accepts
def by_trying_it(shape, strides, new_shape):
    try:
        _strided(shape, strides).view(new_shape)
    except RuntimeError:
        return False
    return True


@can_view.accepts
def walking(shape, strides, new_shape):
    """Do the same positions, cut into the new shape, lie one constant step apart along every axis?"""
    indices = itertools.product(*map(range, shape))
    places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]
    if len(places) != math.prod(new_shape):
        return False
    walk = torch.tensor(places, dtype=torch.int64).reshape(new_shape)
    return all(walk.diff(dim=axis).unique().numel() <= 1 for axis in range(walk.dim()))


@can_view.accepts
def run_by_run(shape, strides, new_shape):
    """Join axes that go on evenly into runs, then fill run after run with the new sizes, from the right."""
    if math.prod(shape) == 0 or math.prod(new_shape) == 0:
        return math.prod(shape) == math.prod(new_shape)
    runs = []
    for size, stride in reversed([*zip(shape, strides, strict=True)]):
        if size > 1 and runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        elif size > 1:
            runs.append([size, stride])
    waiting = list(new_shape)
    for elements, _ in runs:
        while elements > 1 and waiting and elements % waiting[-1] == 0:
            elements //= waiting.pop()
        if elements > 1:
            return False
    return math.prod(waiting) == 1
