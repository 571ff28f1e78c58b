"""The pictures of notebook 13: what is drawn is what was given, and what cannot be drawn is named."""
import matplotlib.colors
import pytest
import torch
from figure_views import words

from course_lib.figures import draw_gradients, draw_recipe_bytes, draw_recipe_losses, draw_weight_paths
from course_lib.figures.style import PALE, VERMILION
from course_lib.floats import BFLOAT16


def test_paths_are_stairs_where_they_are_bfloat16_and_lines_lie_at_its_numbers():
    smooth = 1 - 0.001 * torch.arange(10.0)
    (axes,) = draw_weight_paths({"line": smooth, "stairs": smooth.bfloat16()}).axes
    line, stairs = (next(one for one in axes.lines if one.get_label() == name) for name in ("line", "stairs"))
    assert line.get_ydata() == pytest.approx(smooth.tolist())
    assert stairs.get_ydata() == pytest.approx(smooth.bfloat16().float().tolist())
    assert (line.get_drawstyle(), stairs.get_drawstyle()) == ("default", "steps-post")
    levels = {one.get_ydata()[0] for one in axes.lines if one.get_color() == PALE}
    assert {1.0, 0.99609375} <= levels <= {*BFLOAT16.numbers(0.98, 1.0)}


def test_gradients_that_float16_loses_are_told_apart():
    gradients = torch.tensor([0.0, *[2.0**-30] * 3, 2.0**-20, 1.0, 2.0, 2.0**17])
    (axes,) = draw_gradients({"some": gradients}).axes
    red = matplotlib.colors.to_rgba(VERMILION)
    bars = [bar for bar in axes.patches if bar.get_width() == 1 and bar.get_height() > 0]
    lost = sum(bar.get_height() for bar in bars if bar.get_facecolor() == red)
    assert lost == pytest.approx(3 / 8) and sum(bar.get_height() for bar in bars) == pytest.approx(7 / 8)
    assert "50% become 0" in axes.get_title()


def test_bars_are_as_long_as_their_parts():
    (axes,) = draw_recipe_bytes({"a": {"weights": 2, "master": 0, "state": 8}, "b": {"weights": 4}}).axes
    lengths = sorted(bar.get_width() for bar in axes.patches if bar.get_width() > 0)
    assert lengths == [2, 4, 8] and {"10", "4"} <= set(words(axes))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_losses_lie_where_they_were_measured():
    (axes,) = draw_recipe_losses({"a": [3.0, 2.0, 1.0], "b": [3.0, 2.5, 2.0]}).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[3.0, 2.0, 1.0], [3.0, 2.5, 2.0]]
    assert axes.get_yscale() == "log"


@pytest.mark.parametrize(
    ("draw", "argument", "sentence"),
    [
        (draw_weight_paths, {}, "0 paths"),
        (draw_weight_paths, {"a": torch.ones(2, 2)}, r"shapes \[\(2, 2\)\]"),
        (draw_weight_paths, {"a": torch.tensor([0.1, 1.0])}, "bfloat16 numbers lie there; 24 can be drawn"),
        (draw_gradients, {"a": torch.empty(0)}, "none of them empty"),
        (draw_recipe_bytes, {}, "0 recipes"),
        (draw_recipe_losses, {}, "0 curves"),
    ],
)
def test_what_cannot_be_drawn_is_named(draw, argument, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw(argument)
