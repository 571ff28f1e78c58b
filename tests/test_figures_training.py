"""The pictures of notebook 11 show the numbers that they are given, and refuse what cannot be drawn."""
import math

import pytest
from figure_views import png

from course_lib.figures import draw_losses, draw_norms, draw_overshoot, draw_sweep
from course_lib.training import History

FALL, RISE = [100 * 0.9**step for step in range(21)], [2.0**step for step in range(9)]


def named(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def crosses(axes) -> list[tuple[list, list]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if line.get_marker() == "x"]


def test_a_curve_is_the_losses_that_were_given():
    axes = draw_losses({"a": FALL, "b": RISE}).axes[0]
    assert list(named(axes)["a"].get_ydata()) == FALL and list(named(axes)["b"].get_xdata()) == [*range(9)]
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "loss"
    axes = draw_losses({"a": FALL}, what="learning rate", logarithmic=False, level=("best", 3.0)).axes[0]
    assert axes.get_yscale() == "linear" and axes.get_ylabel() == "learning rate"
    assert set(named(axes)["best"].get_ydata()) == {3.0}


def test_means_stand_in_the_middle_of_their_steps():
    line = named(draw_losses({"a": [1.0, 3.0, 5.0, 7.0, 8.0]}, average=2).axes[0])["a"]
    assert list(line.get_xdata()) == [0.5, 2.5, 4.0] and list(line.get_ydata()) == [2.0, 6.0, 8.0]


def test_curves_on_top_of_each_other_are_all_seen():
    figure = draw_losses({"a": FALL, "b": FALL, "c": FALL}, on_top=True)
    widths = [line.get_linewidth() for line in figure.axes[0].lines]
    assert widths == sorted(widths, reverse=True) and len({*widths}) == 3 and png(figure)


def test_each_panel_walks_down_its_parabola():
    figure = draw_overshoot(10.0, [0.05, 0.15, 0.21])
    assert [axes.get_title() for axes in figure.axes] == ["lr 0.05: w × 0.5", "lr 0.15: w × −0.5", "lr 0.21: w × −1.1"]
    for axes, factor in zip(figure.axes, (0.5, -0.5, -1.1), strict=True):
        walk = next(line for line in axes.lines if line.get_marker() == "o")
        assert list(walk.get_xdata()) == pytest.approx([factor**step for step in range(7)])
        assert list(walk.get_ydata()) == pytest.approx([5 * w * w for w in walk.get_xdata()])
        assert len(axes.texts) == 6
    assert png(figure)


def test_a_sweep_has_a_line_for_what_ended_well_and_crosses_for_the_rest():
    sweep = {"flat": {0.1: 5.0, 1.0: 0.5}, "steep": {0.01: 2.0, 0.1: math.inf, 1.0: math.inf}}
    figure = draw_sweep(sweep, {"steep": 0.05})
    axes = figure.axes[0]
    assert list(named(axes)["flat"].get_ydata()) == [5.0, 0.5] and list(named(axes)["steep"].get_xdata()) == [0.01]
    lost = [rates for rates, _ in crosses(axes)]
    assert lost == [[], [0.1, 1.0]]
    assert all(height > 5 for _, heights in crosses(axes) for height in heights)
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [0.05] and png(figure)


def test_loss_and_norm_stand_side_by_side_and_a_stopped_run_ends_with_a_cross():
    whole = History([*range(21)], FALL, [10 * one for one in FALL], [0.1] * 21)
    stopped = History([*range(9)], [*RISE[:-1], 1e30], RISE, [0.1] * 9)
    figure = draw_norms({"whole": whole, "stopped": stopped}, limit=50.0)
    losses, norms = figure.axes
    assert list(named(losses)["whole"].get_ydata()) == FALL and list(named(norms)["stopped"].get_ydata()) == RISE
    assert list(named(losses)["stopped"].get_ydata()) == RISE[:-1], "what lies beyond 1e9 is not drawn"
    assert crosses(losses) == [([7], [128.0])] and crosses(norms) == [([8], [256.0])]
    assert set(named(norms)["clipped to 50"].get_ydata()) == {50.0} and png(figure)


@pytest.mark.parametrize("draw", [draw_losses, lambda lines: draw_sweep(lines, {}), draw_norms])
def test_no_line_and_too_many_are_refused(draw):
    for count in (0, 7):
        with pytest.raises(ValueError, match=rf"there are {count} lines; 1 to 6 can be drawn\.$"):
            draw({str(i): {0.1: 1.0} if "lambda" in repr(draw) else History() if draw is draw_norms else FALL
                  for i in range(count)})  # fmt: skip


def test_what_has_no_parabola_is_refused():
    for curvature, rates in ((0.0, [0.1]), (math.inf, [0.1]), (1.0, []), (1.0, [0.1] * 5)):
        with pytest.raises(ValueError, match=r"^draw_overshoot\(\): \d rates, curvature .*; 1 to 4, above 0 can be"):
            draw_overshoot(curvature, rates)
