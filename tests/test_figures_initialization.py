"""The pictures of notebook 07 show the numbers that they are given, and refuse what cannot be drawn."""

import pytest
import torch
from figure_views import png, words
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle, StepPatch

from course_lib.figures import draw_fans, draw_signals, draw_tails
from course_lib.figures.style import BLUE, PALE, VERMILION

SIZES = {
    "identity": {"large": [16.0**layer for layer in range(1, 21)], "right": [1.0] * 20},
    "relu": {"small": [0.7**layer for layer in range(1, 21)], "right": [1.1] * 20},
}


def test_each_line_is_the_sizes_that_were_given():
    figure = draw_signals(SIZES)
    for axes, (title, lines) in zip(figure.axes, SIZES.items(), strict=True):
        drawn = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
        assert axes.get_title() == title and drawn.keys() == lines.keys()
        for scheme, sizes in lines.items():
            assert list(drawn[scheme].get_ydata()) == sizes and list(drawn[scheme].get_xdata()) == [*range(1, 21)]
        assert axes.get_yscale() == "log" and axes.get_ylim() == (1e-9, 1e9)
    assert png(figure)


def test_a_scheme_has_one_colour_and_one_entry_in_the_legend():
    figure = draw_signals(SIZES)
    colours = {}
    for line in [line for axes in figure.axes for line in axes.lines if not line.get_label().startswith("_")]:
        colours.setdefault(line.get_label(), set()).add(line.get_color())
    assert all(len(found) == 1 for found in colours.values()) and len({*map(min, colours.values())}) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["large", "right", "small"]


def test_a_line_that_leaves_at_the_top_says_where_it_goes():
    figure = draw_signals(SIZES)
    assert words(figure.axes[0]) == ["to $10^{24}$"] and words(figure.axes[1]) == []
    overflow = draw_signals({"identity": {"x": [1e8, 1e20, float("inf")]}})
    assert words(overflow.axes[0]) == [] and png(overflow)


def test_bars_count_the_weights_and_those_beyond_are_vermilion():
    z = torch.tensor([-3.1, -0.1, 0.1, 0.2, 2.9, 4.6, 9.0])
    axes = draw_tails({"some": 0.5 * z}, 0.5).axes[0]
    assert axes.get_title() == "some\n3 beyond 3 σ"
    bars = {to_hex(patch.get_facecolor()).upper(): patch.get_data() for patch in axes.patches}
    assert {*bars} == {BLUE.upper(), VERMILION.upper()}
    inside, outside = bars[BLUE.upper()], bars[VERMILION.upper()]
    middles = (inside.edges[1:] + inside.edges[:-1]) / 2
    assert inside.values.sum() == 4 and outside.values.sum() == 3
    assert not inside.values[abs(middles) > 3].any() and not outside.values[abs(middles) < 3].any()
    assert outside.values[-1] == 1, "what lies beyond the axis is counted in its last bar"


def test_a_truncated_draw_has_none_beyond():
    torch.manual_seed(0)
    plain = torch.randn(20_000)
    figure = draw_tails({"plain": plain, "clamped": plain.clamp(-3, 3)}, 1.0)
    assert figure.axes[0].get_title() == f"plain\n{int((plain.abs() > 3).sum())} beyond 3 σ"
    assert figure.axes[1].get_title() == "clamped\n0 beyond 3 σ"
    for axes in figure.axes:
        assert sum(patch.get_data().values.sum() for patch in axes.patches if isinstance(patch, StepPatch)) == 20_000
    assert png(figure)


@pytest.mark.parametrize(("fan_in", "fan_out"), [(5, 2), (3, 3), (1, 12), (12, 1)])
def test_blue_is_what_one_output_sums_over(fan_in, fan_out):
    figure = draw_fans(fan_in, fan_out)
    axes = figure.axes[0]
    cells = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(cells) == 2 * fan_in * fan_out
    blue = [cell for cell in cells if to_hex(cell.get_facecolor()).upper() == BLUE.upper()]
    assert {to_hex(cell.get_facecolor()).upper() for cell in cells} <= {BLUE.upper(), PALE.upper()}
    left, right = blue[:fan_in], blue[fan_in:]
    assert len({cell.get_x() for cell in left}) == 1 and len({cell.get_y() for cell in left}) == fan_in
    assert len({cell.get_y() for cell in right}) == 1 and len({cell.get_x() for cell in right}) == fan_in
    said = words(axes)
    assert said.count(f"fan_in = {fan_in}") == said.count(f"fan_out = {fan_out}") == 2
    assert f"torch.nn.init takes axis 1:\n{fan_out}, fan-out, taken for fan-in" in said
    assert f"torch.nn.init takes axis 1:\n{fan_in}, fan-in, as meant" in said
    (left_end, right_end), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert all(left_end < x < right_end and bottom < y < top for x, y in (text.get_position() for text in axes.texts))
    assert png(figure)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: draw_signals({}), "panels name 0 schemes; 1 to 6"),
        (lambda: draw_signals({"a": {str(i): [1.0] for i in range(7)}}), "panels name 7 schemes; 1 to 6"),
        (lambda: draw_tails({}, 1.0), "0 draws, std 1.0; at least one and above 0"),
        (lambda: draw_tails({"a": torch.ones(3)}, 0.0), "1 draws, std 0.0; at least one and above 0"),
        (lambda: draw_fans(13, 2), "fan_in is 13 and fan_out is 2; 1 to 12"),
        (lambda: draw_fans(2, 0), "fan_in is 2 and fan_out is 0; 1 to 12"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
