"""The exercises of notebook 04: heads, pooling, attention scores, patches, and a function that refuses wrong shapes."""
import math

import torch
import torch.nn.functional as F
from beartype import beartype
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float, Shaped, TypeCheckError, jaxtyped
from torch import Tensor

from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 4.1


@exercise(
    notebook="04",
    hints=[
        "Two things happen: the last axis is cut in two, and one of the pieces moves to the front.",
        "`rearrange` does both at once. Write on the left how the last axis is composed, in parentheses.",
        "The last name in parentheses runs fastest. Neighbouring numbers are in one head, so that name is `hidden`.",
    ],
    why="The width is (heads hidden): hidden runs fastest, so each head is a run of neighbours. On the right the same "
    "names stand in another order, and no number moves.",
)
def split_heads(
    x: Float[Tensor, "batch seq width"], heads: int
) -> Float[Tensor, "batch heads seq hidden"]:
    """Cut the last axis into `heads` runs of neighbouring numbers; put the heads before seq.

    The first head gets the first width / heads numbers of each position, and so on.
    """
    return rearrange(x, "batch seq (heads hidden) -> batch heads seq hidden", heads=heads)


split_heads.cases(
    "torch.arange(12.).reshape(1, 2, 6), 2",
    case("torch.arange(48.).reshape(2, 3, 8), 4", "a batch of two"),
    case("torch.arange(32.).reshape(2, 4, 4), 2", "as many positions as numbers"),
    case("torch.arange(18.).reshape(1, 3, 6), 3", "as many heads as positions"),
    "torch.arange(36.).reshape(3, 2, 6), 3",
    case("torch.arange(10.).reshape(1, 2, 5), 1", "a single head"),
    case("torch.arange(6.).reshape(2, 1, 3), 3", "heads of one number"),
    case("torch.arange(96.).reshape(4, 3, 8)[::2], 2", "every second sequence of a batch"),
)


@split_heads.misconception(
    "You wrote (hidden heads), or cut the same way: each head then takes every so many-th number. The last name in "
    "parentheses runs fastest."
)
def interleaved(x, heads):
    return rearrange(x, "batch seq (hidden heads) -> batch heads seq hidden", heads=heads)


@split_heads.misconception(
    "You gave the numbers the new shape at once. That keeps the reading order, so a head mixes several positions: cut "
    "the last axis first, then move the heads."
)
def straight_into_shape(x, heads):
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


@split_heads.misconception("The cut is right. Now the heads have to stand before seq: change the order on the right.")
def heads_stay_behind(x, heads):
    return rearrange(x, "batch seq (heads hidden) -> batch seq heads hidden", heads=heads)


@split_heads.misconception("`heads` says how many heads there are. You took it for the length of one.")
def heads_of_that_length(x, heads):
    return rearrange(x, "batch seq (heads hidden) -> batch heads seq hidden", hidden=heads)


@split_heads.misconception("Your heads are transposed: seq comes before hidden.")
def hidden_before_seq(x, heads):
    return rearrange(x, "batch seq (heads hidden) -> batch heads hidden seq", heads=heads)


@split_heads.accepts
def cut_and_swap(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


@split_heads.accepts
def stacked_chunks(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)


@split_heads.accepts
def head_after_head(x, heads):
    hidden = x.shape[-1] // heads
    return torch.stack([x[..., head * hidden : (head + 1) * hidden] for head in range(heads)], dim=-3)


# ---------------------------------------------------------------- 4.2


@exercise(
    notebook="04",
    hints=[
        "The height is made of windows, and each window of rows: (windows rows). The same goes for the width.",
        "In `reduce`, names that do not stand on the right are averaged away. Which ones are those?",
        "The names in the pattern are yours, but each size that you pass has to belong to the right one.",
    ],
    why="The height is (h rows): h windows of `rows` neighbours each, and the width (w columns). `rows` and `columns` "
    "do not stand on the right, so the mean is taken over both: one number for each window.",
)
def mean_pool(
    x: Float[Tensor, "batch channels height width"], rows: int, columns: int
) -> Float[Tensor, "batch h w channels"]:
    """The mean of each window of `rows` × `columns` neighbouring numbers; channels come last.

    Each channel is pooled by itself. The windows do not overlap; `rows` divides the height and
    `columns` the width.
    """
    return reduce(x, "batch channels (h rows) (w columns) -> batch h w channels", "mean", rows=rows, columns=columns)


mean_pool.cases(
    "torch.arange(36.).reshape(1, 1, 6, 6), 2, 3",
    case("torch.arange(96.).reshape(2, 2, 4, 6), 2, 2", "two channels"),
    case("torch.arange(72.).reshape(1, 2, 6, 6).square(), 2, 3", "windows wider than high"),
    case("torch.arange(72.).reshape(2, 1, 6, 6).square(), 3, 2", "windows higher than wide"),
    case("torch.arange(48.).reshape(1, 3, 4, 4).square(), 1, 4", "windows of one row"),
    case("torch.arange(16.).reshape(1, 1, 4, 4), 4, 4", "one window"),
    case("torch.arange(18.).reshape(1, 2, 3, 3), 1, 1", "windows of one number"),
    case("torch.arange(-72., 72.).reshape(2, 2, 6, 6).mT, 3, 2", "a transpose"),
)


@mean_pool.misconception("You added the window up. A mean divides by the number of its elements.")
def summed(x, rows, columns):
    return reduce(x, "b c (h r) (w k) -> b h w c", "sum", r=rows, k=columns)


@mean_pool.misconception(
    "Your windows take numbers that lie far apart. Neighbours belong together, so the window's name comes last in its "
    "parentheses: it runs fastest."
)
def scattered_windows(x, rows, columns):
    return reduce(x, "b c (r h) (k w) -> b h w c", "mean", r=rows, k=columns)


@mean_pool.misconception("`rows` and `columns` are the size of a window. You made that many windows of them.")
def that_many_windows(x, rows, columns):
    return reduce(x, "b c (h r) (w k) -> b h w c", "mean", h=rows, w=columns)


@mean_pool.misconception("The means are right. Channels come last here: write their name last on the right.")
def channels_first(x, rows, columns):
    return reduce(x, "b c (h r) (w k) -> b c h w", "mean", r=rows, k=columns)


@mean_pool.misconception("You took the largest number of each window. That is max pooling; here the mean is asked for.")
def largest(x, rows, columns):
    return reduce(x, "b c (h r) (w k) -> b h w c", "max", r=rows, k=columns)


@mean_pool.misconception("You swapped rows and columns: `rows` cuts the height, `columns` the width.")
def turned_windows(x, rows, columns):
    return reduce(x, "b c (h r) (w k) -> b h w c", "mean", r=columns, k=rows)


@mean_pool.accepts
def by_the_layer(x, rows, columns):
    return F.avg_pool2d(x, (rows, columns)).permute(0, 2, 3, 1)


@mean_pool.accepts
def cut_and_average(x, rows, columns):
    windows = x.unflatten(3, (-1, columns)).unflatten(2, (-1, rows))
    return windows.mean(dim=(3, 5)).movedim(1, -1)


@mean_pool.accepts
def window_after_window(x, rows, columns):
    batch, channels, height, width = x.shape
    out = torch.empty(batch, height // rows, width // columns, channels)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j] = x[:, :, i * rows : (i + 1) * rows, j * columns : (j + 1) * columns].mean(dim=(2, 3))
    return out


# ---------------------------------------------------------------- 4.3


@exercise(
    notebook="04",
    hints=[
        "Write the names of q, of k and of the result. Which name do both have that the result has not?",
        "`...` stands for all leading axes, however many. Write it on the left of both and on the right.",
        "√hidden is q.shape[-1] ** 0.5.",
    ],
    why="`heads` stands in both and on the right: head meets head of the same number. `hidden` vanishes, so it is "
    "summed: that is the dot product. `query` and `key` stay, each with each. Dividing by √hidden keeps the scores' "
    "size.",
)
def attention_scores(
    q: Float[Tensor, "... query heads hidden"], k: Float[Tensor, "... key heads hidden"]
) -> Float[Tensor, "... heads query key"]:
    """In each head the dot product of each query with each key, divided by √hidden. No softmax.

    Before the named axes there may be any number of others; q and k have the same ones.
    """
    dots = einsum(q, k, "... query heads hidden, ... key heads hidden -> ... heads query key")
    return dots / q.shape[-1] ** 0.5


attention_scores.cases(
    "torch.randn(2, 5, 3, 8), torch.randn(2, 7, 3, 8)",
    case("torch.randn(2, 3, 3, 5), torch.randn(2, 3, 3, 5)", "as many heads as words"),
    case("torch.randn(1, 4, 4, 2), torch.randn(1, 4, 4, 2)", "four heads, four words"),
    case("torch.randn(4, 2, 6), torch.randn(3, 2, 6)", "no batch"),
    case("torch.randn(3, 2, 4, 2, 3), torch.randn(3, 2, 5, 2, 3)", "two leading axes"),
    case("torch.randn(2, 1, 3, 7), torch.randn(2, 6, 3, 7)", "a single query"),
    case("torch.randn(2, 4, 1, 9), torch.randn(2, 4, 1, 9)", "a single head"),
    case("torch.randn(2, 3, 2, 1), torch.randn(2, 5, 2, 1)", "one number for each head"),
    "torch.randn(2, 2, 2, 16), torch.randn(2, 2, 2, 16)",
)


@attention_scores.misconception(
    "Matmul multiplies the last two axes, and those are (heads, hidden): you compared head with head. Move the heads "
    "forward first, or name the axes."
)
def heads_with_heads(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


@attention_scores.misconception("The dot products are right. They still have to be divided by √hidden.")
def not_scaled(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... heads q k")


@attention_scores.misconception("You divided by hidden. Divide by its root: a sum of n random products grows like √n.")
def divided_by_hidden(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... heads q k") / q.shape[-1]


@attention_scores.misconception("`hidden` is the size of one head. You took the root of the whole width.")
def root_of_the_width(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... heads q k") / math.prod(q.shape[-2:]) ** 0.5


@attention_scores.misconception("`heads` is missing on the right of yours, so it was summed: all heads in one score.")
def heads_summed(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... q k") / q.shape[-1] ** 0.5


@attention_scores.misconception("Your scores are transposed: queries are the rows, keys the columns.")
def keys_as_rows(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... heads k q") / q.shape[-1] ** 0.5


@attention_scores.misconception("You took the softmax as well. That gives attention weights; the scores come before.")
def weights_already(q, k):
    return attention_scores.reference(q, k).softmax(dim=-1)


@attention_scores.misconception("The heads stand after the queries. On the right they come first: heads, query, key.")
def heads_after_queries(q, k):
    return einsum(q, k, "... q heads d, ... k heads d -> ... q heads k") / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "Your pattern names every axis, so it fits inputs with one batch axis alone. `...` stands for any number of them."
)
def one_batch_axis(q, k):
    return einsum(q, k, "batch q heads d, batch k heads d -> batch heads q k") / q.shape[-1] ** 0.5


@attention_scores.accepts
def moved_then_multiplied(q, k):
    return q.movedim(-2, -3) @ k.movedim(-2, -3).mT / math.sqrt(q.size(-1))


@attention_scores.accepts
def with_letters(q, k):
    return torch.einsum("...qhd,...khd->...hqk", q, k) * q.shape[-1] ** -0.5


@attention_scores.accepts
def stretched_and_summed(q, k):
    products = q.unsqueeze(-3) * k.unsqueeze(-4)  # (..., query, key, heads, hidden)
    return products.sum(dim=-1).movedim(-1, -3) / q.shape[-1] ** 0.5


# ---------------------------------------------------------------- 4.4


@exercise(
    notebook="04",
    hints=[
        "Write the left side first: how is the axis of patches composed, and how that of numbers?",
        "On the right the height is made of rows of patches and, inside a patch, of rows of numbers: which name runs "
        "faster?",
        "`columns` and `channels` follow from the shape: einops works out one open size per pair of parentheses.",
    ],
    why="Both sides name the same pieces. An image's height is (rows y): walking down, y runs fastest, then the next "
    "row of patches begins. So nothing is computed: names are put into another order.",
)
def depatchify(
    patches: Float[Tensor, "batch patches numbers"], rows: int, size: int
) -> Float[Tensor, "batch channels height width"]:
    """Put images together from patches of `size` × `size` pixels, `rows` rows of patches each.

    The patches of an image come row by row. The numbers of a patch come row by row as well, those
    of one pixel side by side, one for each channel: the last axis is (y x channels).
    """
    pattern = "batch (rows columns) (y x channels) -> batch channels (rows y) (columns x)"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


depatchify.cases(
    "torch.arange(24.).reshape(1, 6, 4), 2, 2",
    case("torch.arange(144.).reshape(2, 6, 12), 3, 2", "three channels"),
    case("torch.arange(72.).reshape(1, 4, 18), 2, 3", "a square image"),
    case("torch.arange(108.).reshape(1, 6, 18), 2, 3", "two channels"),
    case("torch.arange(64.).reshape(1, 4, 16), 2, 2", "four channels"),
    case("torch.arange(32.).reshape(2, 4, 4), 1, 2", "one row of patches"),
    case("torch.arange(16.).reshape(1, 4, 4), 4, 2", "one column of patches"),
    case("torch.arange(12.).reshape(1, 6, 2), 2, 1", "patches of one pixel"),
    case("torch.arange(27.).reshape(1, 1, 27), 1, 3", "one patch"),
)


@depatchify.misconception(
    "You gave the numbers the new shape at once. The reading order of patches is not that of an image: two rows of one "
    "patch do not follow each other in the image."
)
def straight_into_image(patches, rows, size):
    channels, columns = patches.shape[2] // size**2, patches.shape[1] // rows
    return patches.reshape(len(patches), channels, rows * size, columns * size)


@depatchify.misconception(
    "Your patches are spread over the image like a comb: on the right you wrote (y rows) and (x columns). Within a "
    "patch pixels are neighbours, so y and x run fastest."
)
def combed(patches, rows, size):
    pattern = "b (rows columns) (y x c) -> b c (y rows) (x columns)"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


@depatchify.misconception(
    "You took the numbers of a patch channel by channel. Those of a pixel stand side by side: (y x channels)."
)
def channel_by_channel(patches, rows, size):
    pattern = "b (rows columns) (c y x) -> b c (rows y) (columns x)"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


@depatchify.misconception("You placed the patches column by column. They come row by row: (rows columns).")
def column_by_column(patches, rows, size):
    pattern = "b (columns rows) (y x c) -> b c (rows y) (columns x)"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


@depatchify.misconception("Each patch is transposed: in (y x channels) the rows y come first, and x runs faster.")
def transposed_patches(patches, rows, size):
    pattern = "b (rows columns) (x y c) -> b c (rows y) (columns x)"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


@depatchify.misconception("`rows` is how many rows of patches there are. You took it for the patches in one row.")
def rows_as_columns(patches, rows, size):
    pattern = "b (rows columns) (y x c) -> b c (rows y) (columns x)"
    return rearrange(patches, pattern, columns=rows, y=size, x=size)


@depatchify.misconception("The image is right, its channels come last. PyTorch's images have them after the batch.")
def channels_last(patches, rows, size):
    pattern = "b (rows columns) (y x c) -> b (rows y) (columns x) c"
    return rearrange(patches, pattern, rows=rows, y=size, x=size)


@depatchify.accepts
def viewed_and_permuted(patches, rows, size):
    apart = patches.reshape(len(patches), rows, -1, size, size, patches.shape[2] // size**2)
    image = apart.permute(0, 5, 1, 3, 2, 4)
    return image.reshape(*image.shape[:2], rows * size, -1)


@depatchify.accepts
def folded(patches, rows, size):
    height, width = rows * size, patches.shape[1] // rows * size
    columns = rearrange(patches, "b n (p c) -> b (c p) n", p=size**2)
    return F.fold(columns, (height, width), kernel_size=size, stride=size)


@depatchify.accepts
def patch_after_patch(patches, rows, size):
    columns, channels = patches.shape[1] // rows, patches.shape[2] // size**2
    image = torch.empty(len(patches), channels, rows * size, columns * size)
    for number in range(patches.shape[1]):
        top, left = number // columns * size, number % columns * size
        patch = patches[:, number].reshape(-1, size, size, channels)
        image[:, :, top : top + size, left : left + size] = patch.permute(0, 3, 1, 2)
    return image


# ---------------------------------------------------------------- 4.5


@exercise(
    notebook="04",
    stub='''
def masked_mean(x, mask):
    """For each sequence the mean of the vectors that its mask keeps. A TypeError for other input.

    x holds floats of shape (batch, seq, dim), mask booleans of shape (batch, seq): the same batch
    and the same seq. The result has shape (batch, dim). A mask keeps at least one position.
    """
    ...
''',
    hints=[
        "First the sum over seq of what the mask keeps, divided by how many that are. Try a mask of shape (1, seq).",
        "Annotate both arguments, Float[Tensor, …] and Bool[Tensor, …]. An axis that has to agree has the same name.",
        "Annotations alone refuse nothing. @jaxtyped(typechecker=beartype) above the function holds it to them, and "
        "its error is a TypeError.",
    ],
    why="Without a check a mask of shape (1, seq) or (batch, 1) is stretched until it fits, and the result is a wrong "
    "number. `batch` and `seq` stand in both annotations, so the decorator holds them to one size.",
)
@jaxtyped(typechecker=beartype)
def masked_mean(x: Float[Tensor, "batch seq dim"], mask: Bool[Tensor, "batch seq"]) -> Float[Tensor, "batch dim"]:
    """For each sequence the mean of the vectors that its mask keeps."""
    total = einsum(x, mask.to(x.dtype), "batch seq dim, batch seq -> batch dim")
    return total / reduce(mask, "batch seq -> batch 1", "sum")


masked_mean.cases(
    "torch.arange(12.).reshape(2, 3, 2), torch.tensor([[True, True, False], [False, True, False]])",
    "torch.randn(3, 4, 5), torch.eye(3, 4).bool()",
    case("torch.randn(4, 4, 3), torch.ones(4, 4).tril().bool()", "as many sequences as positions"),
    "torch.randn(2, 3, 2, dtype=torch.float64), torch.tensor([[True, False, True]] * 2)",
    "torch.randn(1, 1, 3), torch.tensor([[True]])",
    case("torch.randn(2, 3, 4), torch.tensor([[True, True, False]])", "a mask of shape (1, seq)"),
    case("torch.randn(3, 3, 4), torch.tensor([[True], [True], [True]])", "a mask of shape (batch, 1)"),
    case("torch.randn(2, 3, 4), torch.tensor([[1, 1, 0], [0, 2, 1]])", "a mask of integers"),
    case("torch.randn(2, 3, 4), torch.tensor([[1., 1., 0.], [0., 1., 1.]])", "a mask of floats"),
    case("torch.arange(12).reshape(2, 3, 2), torch.tensor([[True, True, False]] * 2)", "an x of integers"),
    case("torch.randn(1, 3, 2), torch.tensor([[True, True, False], [True, False, True]])", "one x for two masks"),
    case("torch.randn(2, 1, 4), torch.tensor([[True, True, True]] * 2)", "one position under a mask of three"),
    case("torch.randn(2, 2, 2, 2), torch.ones(2, 2).bool()", "an x of rank 4"),
    case("torch.randn(3, 3), torch.ones(3, 3).bool()", "an x of rank 2"),
    case("torch.randn(2, 3, 4), torch.ones(2, 3, 1).bool()", "a mask of rank 3"),
)


@masked_mean.probe
def called(candidate, args, kwargs):
    """What it returns; a refusal by jaxtyping and one by hand are both a TypeError."""
    try:
        return candidate(*args, **kwargs)
    except TypeCheckError as error:
        raise TypeError(next(iter(str(error).splitlines()), "")) from None


def _mean(x, mask):
    """The mean without any check: what does not fit is stretched."""
    return (x * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def _of_ranks(x, mask):
    """Refuse other ranks: what an unchecked solution does there depends on how it is written."""
    if (x.dim(), mask.dim()) != (3, 2):
        raise TypeError("x has three axes, mask two")
    return x, mask


@masked_mean.misconception(
    "What does not fit is stretched here until it does, and nothing refuses it. Annotations alone are comments; "
    "@jaxtyped(typechecker=beartype) holds a function to them."
)
def unchecked(x: Float[Tensor, "batch seq dim"], mask: Bool[Tensor, "batch seq"]) -> Float[Tensor, "batch dim"]:
    return _mean(*_of_ranks(x, mask))


@masked_mean.misconception(
    "The axes are counted, their sizes are not compared, and (1, seq) has two axes as well. batch and seq have to be "
    "those of x: in annotations, the same names."
)
@jaxtyped(typechecker=beartype)
def counts_axes(x: Float[Tensor, "batch seq dim"], mask: Bool[Tensor, "b s"]) -> Float[Tensor, "_ _"]:
    return _mean(x, mask)


@masked_mean.misconception("The shapes are held, the dtypes are not: x has to be Float, the mask Bool.")
@jaxtyped(typechecker=beartype)
def any_dtype(x: Shaped[Tensor, "batch seq dim"], mask: Shaped[Tensor, "batch seq"]) -> Shaped[Tensor, "batch dim"]:
    return _mean(x, mask)


@masked_mean.misconception(
    "You refuse with assert, and an AssertionError is no TypeError. Python's -O switch drops every assert, too."
)
def asserts(x, mask):
    assert isinstance(x, Float[Tensor, "batch seq dim"]) and mask.dtype == torch.bool
    assert mask.shape == x.shape[:2]
    return _mean(x, mask)


@masked_mean.misconception("You divided by seq: divide by how many the mask keeps.")
@jaxtyped(typechecker=beartype)
def divides_by_seq(x: Float[Tensor, "batch seq dim"], mask: Bool[Tensor, "batch seq"]) -> Float[Tensor, "batch dim"]:
    return (x * mask[..., None]).mean(dim=1)


@masked_mean.misconception("The mask is not used: what it drops counts as well.")
@jaxtyped(typechecker=beartype)
def ignores_the_mask(x: Float[Tensor, "batch seq dim"], mask: Bool[Tensor, "batch seq"]) -> Float[Tensor, "batch dim"]:
    return x.mean(dim=1)


@masked_mean.accepts
def by_hand(x, mask):
    if not (torch.is_tensor(x) and torch.is_tensor(mask) and x.is_floating_point() and mask.dtype == torch.bool):
        raise TypeError("x has to hold floats, mask booleans")
    if x.dim() != 3 or mask.shape != x.shape[:2]:
        raise TypeError(f"x of shape {tuple(x.shape)} does not go with a mask of shape {tuple(mask.shape)}")
    return _mean(x, mask)


@masked_mean.accepts
@jaxtyped(typechecker=beartype)
def with_names(x: Float[Tensor, "b s d"], mask: Bool[Tensor, "b s"]) -> Float[Tensor, "b d"]:
    kept = rearrange(mask, "b s -> b s 1")
    return reduce(torch.where(kept, x, 0.0), "b s d -> b d", "sum") / reduce(mask, "b s -> b 1", "sum")


@masked_mean.accepts
@jaxtyped(typechecker=beartype)
def sequence_after_sequence(x: Float[Tensor, "b s d"], mask: Bool[Tensor, "b s"]):
    return torch.stack([vectors[kept].mean(dim=0) for vectors, kept in zip(x, mask, strict=True)])
