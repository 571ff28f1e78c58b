"""The pictures of notebook 01 show what torch computes: every number, every box, every mark."""
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_lib.figures import draw_broadcast, draw_causal_masks, draw_ranks, draw_silent_broadcast
from course_lib.figures.style import BLUE, GREEN, INK, ORANGE, SKY


def numbers_in(axes) -> list[float]:
    texts = [text.get_text().replace("−", "-") for text in axes.texts]
    return [float(text) for text in texts if text.lstrip("-").replace(".", "").isdigit()]


def boxes(axes, colour: str) -> int:
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return sum(to_hex(patch.get_facecolor()).upper() == colour for patch in found)


def test_ranks_draw_one_box_for_each_number():
    axes = draw_ranks().axes[0]
    count = sum(torch.Size(shape).numel() for shape in [(), (3,), (2, 3), (4, 2, 3), (2, 4, 2, 3)])
    assert boxes(axes, BLUE) + boxes(axes, SKY) == count
    assert {"()", "(3,)", "(2, 3)", "(4, 2, 3)", "(2, 4, 2, 3)"} <= {text.get_text() for text in axes.texts}


PAIRS = [((4, 1), (3,)), ((2, 3), (3,)), ((3, 1), (3, 2)), ((), (2, 2)), ((3,), (3,))]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_a_broadcast_shows_operands_and_sum_and_fills_only_what_exists(left, right):
    a = torch.arange(1.0, torch.Size(left).numel() + 1).reshape(left)
    b = torch.arange(10.0, torch.Size(right).numel() + 10).reshape(right)
    axes = draw_broadcast(a, b).axes[0]
    both = [*torch.broadcast_tensors(a, b), a + b]
    assert numbers_in(axes) == [number for tensor in both for number in tensor.flatten().tolist()]
    assert (boxes(axes, BLUE), boxes(axes, ORANGE), boxes(axes, GREEN)) == (a.numel(), b.numel(), (a + b).numel())
    stretched = sum("stretched" in text.get_text() for text in axes.texts)
    assert stretched == (a.shape != both[2].shape) + (b.shape != both[2].shape)


def test_the_silent_broadcast_frames_the_differences_that_were_meant():
    targets = torch.tensor([0.0, 1.5, -2.0])
    axes = draw_silent_broadcast(targets[:, None], targets).axes[0]
    assert numbers_in(axes)[-9:] == (targets[:, None] - targets).flatten().tolist()
    frames = [p for p in axes.patches if isinstance(p, Rectangle) and not p.get_fill()]
    assert len(frames) == 3
    assert all(to_hex(p.get_edgecolor()).upper() == INK.upper() for p in frames)
    zeros = {text.get_position() for text in axes.texts if text.get_text() == "0" and text.get_position()[0] > 7}
    assert {(p.get_x() + 0.5, p.get_y() + 0.5) for p in frames} == zeros


def test_masks_mark_what_is_kept_and_what_is_the_future():
    past, future = draw_causal_masks().axes
    marks = [[text.get_text() for text in axes.texts] for axes in (past, future)]
    everything = torch.ones(4, 4)
    assert (marks[0].count("✓"), marks[0].count("✗")) == (int(everything.tril().sum()), 0)
    assert (marks[1].count("✓"), marks[1].count("✗")) == (4, int(everything.triu(1).sum()))
    assert (past.get_xlabel()[:3], past.get_ylabel()[:5]) == ("key", "query")
    assert past.yaxis_inverted(), "the first query stands on top"
