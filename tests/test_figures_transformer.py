"""The pictures of notebook 14 show the numbers that they are given, and refuse what cannot be drawn."""

import pytest
from figure_views import png, words
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_lib.figures import draw_changes, draw_fitting, draw_memory, draw_parts, draw_sharding
from course_lib.figures.style import GREEN, ORANGE, PALE, VERMILION
from course_lib.precision import ParameterBytes
from course_lib.transformer import SHARDINGS, Parts, sharded

COST = ParameterBytes(weights=2, gradients=4, master=4, state=8, assumes="as in the notebook")
PARTS = {
    "one": Parts({"a": 30, "b": 0, "c": 70}, "FLOPs"),
    "two": Parts({"a": 2e9, "b": 1e9, "c": 1e9}, "bytes"),
}


def rectangles(axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def colour(patch) -> str:
    return to_hex(patch.get_facecolor()).upper()


def test_segments_are_shares_and_a_part_has_one_colour():
    figure = draw_parts(PARTS)
    segments = rectangles(figure.axes[0])
    widths = [round(segment.get_width(), 9) for segment in segments]
    assert widths == [0.3, 0.0, 0.7, 0.5, 0.25, 0.25]
    assert [segment.get_x() for segment in segments] == pytest.approx([0, 0.3, 0.3, 0, 0.5, 0.75])
    assert [colour(s) for s in segments[:3]] == [colour(s) for s in segments[3:]] and len({*map(colour, segments)}) == 3
    assert words(figure.axes[0]) == ["one", "100\nFLOPs", "30%", "70%", "two", "4 billion\nbytes", "50%", "25%", "25%"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]
    assert png(figure)


def test_memory_is_stacked_to_scale_and_what_does_not_fit_is_vermilion():
    axes = draw_memory({"fits": PARTS["two"], "too much": PARTS["two"].times(3)}, 10e9, "10 GB").axes[0]
    ends = [segment.get_x() + segment.get_width() for segment in rectangles(axes)]
    assert ends == pytest.approx([2, 3, 4, 6, 9, 12])
    totals = {text.get_text(): to_hex(text.get_color()).upper() for text in axes.texts}
    assert [*totals] == ["4 GB", "12 GB", "10 GB"]
    assert totals["12 GB"] == VERMILION.upper() != totals["4 GB"]
    assert list(axes.lines[0].get_xdata()) == [10, 10]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fits", "too much"]


@pytest.mark.parametrize("num_gpus", [2, 4, 8])
def test_what_a_gpu_holds_is_filled_to_the_byte(num_gpus):
    figure = draw_sharding(COST, num_gpus)
    groups = [name for name in SHARDINGS if name != "tensor parallel"]
    held = [patch for patch in rectangles(figure.axes[0]) if colour(patch) != PALE]
    step = num_gpus + 1
    for place, group in enumerate(groups):
        for gpu in range(num_gpus):
            left = place * step + gpu
            filled = sum(patch.get_height() for patch in held if patch.get_x() == left)
            assert filled == pytest.approx(sharded(COST, group, num_gpus).total)
    whole = sum(patch.get_height() for patch in held if patch.get_x() >= 3 * step)
    assert whole == pytest.approx(COST.total), "under ZeRO-3 all GPUs together hold everything once"
    assert f"{sharded(COST, 'ZeRO-1', num_gpus).total:.3g} B a parameter" in words(figure.axes[0])
    assert png(figure)


def test_changes_run_from_the_base_and_say_where_they_end():
    axes = draw_changes(100, {"more": 150, "less": 25}, "days").axes[0]
    more, less = rectangles(axes)
    assert (more.get_x(), more.get_width(), colour(more)) == (100, 50, ORANGE.upper())
    assert (less.get_x(), less.get_width(), colour(less)) == (100, -75, GREEN.upper())
    assert words(axes) == ["150", "25", "100 days"]
    assert axes.get_xlim()[0] < 25 and axes.get_xlim()[1] > 150
    assert png(draw_changes(5, {"the same": 5}, "days"))


def test_curves_are_in_billions_and_marked():
    axes = draw_fitting([1, 2, 4], {"flat": [5e9] * 3, "steep": [5e9, 10e9, 20e9]}, marked=2).axes[0]
    curves = [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 3]
    assert curves == [[5, 5, 5], [5, 10, 20]]
    assert words(axes) == ["5", "flat", "10", "steep"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert {label.get_text() for label in axes.get_yticklabels()} >= {"5", "10", "20"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: draw_parts({}), "there are 0 bars of 0 parts; 1 to 8 bars"),
        (lambda: draw_parts({"x": Parts(dict.fromkeys("abcdefgh", 1), "bytes")}), "1 bars of 8 parts"),
        (lambda: draw_memory(PARTS, 0, "none"), "limit_bytes is 0; a number above 0"),
        (lambda: draw_sharding(COST, 1), "num_gpus is 1; 2 to 8"),
        (lambda: draw_changes(1, {}, "days"), "there are 0 changes; 1 to 8"),
        (lambda: draw_fitting([1, 2], {"a": [1e9, 2e9]}, marked=3), "marked at 3 of"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
