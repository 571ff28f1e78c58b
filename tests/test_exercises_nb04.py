"""The solutions of notebook 04 against torch itself on random shapes, and what learners write against its diagnosis."""
import random

import pytest
import torch
import torch.nn.functional as F
from written_answers import assert_diagnosed

from course_lib.exercises import nb04
from course_lib.exercises.nb04 import attention_scores, depatchify, masked_mean, mean_pool, split_heads
from course_lib.storage import same_storage

TRIALS = 200


def sizes(rng: random.Random, count: int, most: int = 5) -> list[int]:
    return [rng.randint(1, most) for _ in range(count)]


def test_heads_are_those_of_unflatten_and_a_view():
    rng = random.Random(0)
    for _ in range(TRIALS):
        batch, seq, heads, hidden = sizes(rng, 4)
        x = torch.randn(batch, seq, heads * hidden)
        apart = split_heads(x, heads)
        assert torch.equal(apart, x.unflatten(2, (heads, hidden)).transpose(1, 2))
        assert same_storage(apart, x)


def test_pooling_is_that_of_torch():
    rng = random.Random(1)
    for _ in range(TRIALS):
        batch, channels, h, w, rows, columns = sizes(rng, 6)
        x = torch.randn(batch, channels, h * rows, w * columns)
        pooled = mean_pool(x, rows, columns)
        assert torch.allclose(pooled, F.avg_pool2d(x, (rows, columns)).permute(0, 2, 3, 1), atol=1e-6)


def test_the_softmax_of_the_scores_is_torchs_attention():
    rng = random.Random(2)
    for _ in range(TRIALS):
        leading = sizes(rng, rng.randint(0, 3), 3)
        queries, keys, heads, hidden = sizes(rng, 4)
        q, k, v = (torch.randn(*leading, n, heads, hidden) for n in (queries, keys, keys))
        weights = attention_scores(q, k).softmax(dim=-1)
        first = [x.transpose(-3, -2) for x in (q, k, v)]
        assert torch.allclose(weights @ first[2], F.scaled_dot_product_attention(*first), atol=1e-5)


def test_depatchify_undoes_the_cutting_of_slices():
    rng = random.Random(3)
    for _ in range(TRIALS):
        batch, channels, rows, columns, size = sizes(rng, 5, 4)
        images = torch.randn(batch, channels, rows * size, columns * size)
        corners = [(row * size, column * size) for row in range(rows) for column in range(columns)]
        patches = [images[:, :, y : y + size, x : x + size].permute(0, 2, 3, 1).flatten(1) for y, x in corners]
        assert torch.equal(depatchify(torch.stack(patches, dim=1), rows, size), images)


def test_masked_mean_accepts_what_fits_and_nothing_else():
    rng, answers = random.Random(4), {"accepted": 0, "refused": 0}
    for _ in range(10 * TRIALS):
        x_shape, mask_shape = sizes(rng, rng.choice([2, 3, 3, 3, 4]), 2), sizes(rng, rng.choice([1, 2, 2, 2, 3]), 2)
        x = torch.randn(x_shape).to(rng.choice([torch.float32, torch.float64, torch.float32, torch.int64]))
        mask = torch.ones(mask_shape).to(rng.choice([torch.bool, torch.bool, torch.int64, torch.float32]))
        fits = len(x_shape) == 3 and mask_shape == x_shape[:2]
        if fits and x.is_floating_point() and mask.dtype == torch.bool:
            answers["accepted"] += 1
            assert torch.allclose(masked_mean(x, mask), x.mean(dim=1))
        else:
            answers["refused"] += 1
            with pytest.raises(TypeError):
                masked_mean(x, mask)
    assert min(answers.values()) > 50, answers


def test_masked_mean_is_the_mean_of_what_is_kept():
    for _ in range(TRIALS):
        x, mask = torch.randn(3, 5, 2), torch.rand(3, 5) < 0.5
        mask[:, 0] = True
        means = [vectors[kept].mean(dim=0) for vectors, kept in zip(x, mask, strict=True)]
        assert torch.allclose(masked_mean(x, mask), torch.stack(means), atol=1e-6)


HEAD = "b, s, width = x.shape\n    "
DOTS = 'einsum(q, k, "... i h d, ... j h d -> ... h i j")'
TYPED = '@jaxtyped(typechecker=beartype)\ndef masked_mean(x: Float[Tensor, "{}"], mask: Bool[Tensor, "{}"]):\n    '
APART = """columns = patches.shape[1] // rows
    apart = patches.view(-1, rows, columns, size, size, patches.shape[2] // size**2)
    """
IMAGE = ".reshape(len(patches), -1, rows * size, columns * size)"
MEAN = "return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1)[:, None]"
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("split_heads", "return x.reshape(x.shape[0], x.shape[1], heads, -1).permute(0, 2, 1, 3)", None),
    ("split_heads", HEAD + "return x.view(b, heads, s, width // heads)", "straight_into_shape"),
    ("split_heads", HEAD + "return x.view(b, s, heads, width // heads)", "heads_stay_behind"),
    ("split_heads", HEAD + "return x.view(b, s, -1, heads).permute(0, 3, 1, 2)", "interleaved"),
    ("split_heads", 'return rearrange(x, "b s (d h) -> b h s d", h=heads)', "interleaved"),
    ("split_heads", "return x.unflatten(2, (-1, heads)).transpose(1, 2)", "heads_of_that_length"),
    ("mean_pool", 'return reduce(x, "b c (h r) (w k) -> b h w c", "sum", r=rows, k=columns) / (rows * columns)', None),
    ("mean_pool", "return F.avg_pool2d(x, (rows, columns))", "channels_first"),
    ("mean_pool", "return F.avg_pool2d(x, (columns, rows)).permute(0, 2, 3, 1)", "turned_windows"),
    ("mean_pool", "return F.max_pool2d(x, (rows, columns)).permute(0, 2, 3, 1)", "largest"),
    ("mean_pool", "return F.adaptive_avg_pool2d(x, (rows, columns)).movedim(1, -1)", "that_many_windows"),
    ("attention_scores", f"return {DOTS} * q.size(-1) ** -0.5", None),
    ("attention_scores", f"return {DOTS}", "not_scaled"),
    ("attention_scores", "return q @ k.mT / math.sqrt(q.shape[-1])", "heads_with_heads"),
    ("attention_scores", f"return {DOTS} / math.sqrt(q.shape[-1] * q.shape[-2])", "root_of_the_width"),
    ("attention_scores", f"return ({DOTS} / q.size(-1) ** 0.5).softmax(-1)", "weights_already"),
    ("attention_scores", 'return einsum(q, k, "b i h d, b j h d -> b h i j") / q.size(-1) ** 0.5', "one_batch_axis"),
    ("depatchify", APART + "return apart.permute(0, 5, 1, 3, 2, 4)" + IMAGE, None),
    ("depatchify", APART + "return apart.permute(0, 5, 3, 1, 4, 2)" + IMAGE, "combed"),
    ("depatchify", APART + "return apart.permute(0, 5, 1, 4, 2, 3)" + IMAGE, "transposed_patches"),
    ("depatchify", APART + "return apart" + IMAGE, "straight_into_image"),
    ("masked_mean", TYPED.format("a b c", "a b") + MEAN, None),
    ("masked_mean", f"if mask.shape != x.shape[:2]: raise TypeError('no')\n    {MEAN}", "any_dtype"),
    ("masked_mean", MEAN, "unchecked"),
    ("masked_mean", "return torch.einsum('bsd,bs->bd', x, mask.to(x.dtype)) / mask.sum(1, keepdim=True)", "unchecked"),
    ("masked_mean", TYPED.format("batch seq dim", "b s") + MEAN, "counts_axes"),
    ("masked_mean", TYPED.format("batch seq dim", "batch seq") + "return x.mean(1)", "ignores_the_mask"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb04, name)
    assert_diagnosed(nb04, name, body if body.startswith("@") else one.stub.removesuffix("...") + body, diagnosis)
