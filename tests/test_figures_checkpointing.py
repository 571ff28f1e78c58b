"""The pictures of notebook 12 show the numbers that they are given, and refuse what cannot be drawn."""

import pytest
from figure_views import png
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_lib.figures import draw_intervals, draw_moments, draw_resumes
from course_lib.figures.style import BLUE, GREEN, GREY, VERMILION

LOSSES = [2.0, 1.5, 1.25, 1.0, 0.75]
WAYS = {"in place": {"a.pt": ["old", "damaged", "new"]}, "beside": {"a.pt": ["old", "old", "new"], "b": ["", "x", ""]}}


def colour_of(artist):
    return to_hex(artist.get_facecolor()).upper()


def test_each_panel_shows_its_resume_over_the_run_that_never_stopped():
    resumes = {"same": LOSSES[2:], "other": [1.25, 1.5, 0.75], "from the top": [9.0, 8.0, 7.0], "fourth": LOSSES[2:]}
    figure = draw_resumes(LOSSES, resumes, 2)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [*resumes]
    for axes, losses in zip(shown, resumes.values(), strict=True):
        never_stopped, resumed = axes.lines[:2]
        assert list(never_stopped.get_ydata()) == LOSSES and never_stopped.get_color() == GREY
        assert list(resumed.get_xdata()) == [2, 3, 4] and list(resumed.get_ydata()) == losses
        assert resumed.get_color() == (BLUE if losses == LOSSES[2:] else VERMILION)
        assert 2 < axes.get_ylim()[1] < 9
    said = [axes.texts[0].get_text() for axes in shown]
    assert said == ["bit for bit", "off by up to 0.50", "off by up to 7.75", "bit for bit"]
    assert png(figure)


def test_a_difference_in_the_last_bit_is_one():
    figure = draw_resumes(LOSSES, {"almost": [1.25, 1.0, 0.75 + 1e-15]}, 2)
    assert figure.axes[0].texts[0].get_text() == "off by up to 0.00"


def test_moments_are_coloured_by_what_a_reader_finds():
    figure = draw_moments(["before", "half", "after"], WAYS)
    axes = figure.axes[0]
    words = [text.get_text() for text in axes.texts]
    assert [word for word in words if word in ("old", "damaged", "new", "x", "–")] == [
        "old", "damaged", "new", "old", "old", "new", "–", "x", "–"
    ]  # fmt: skip
    assert {"before", "half", "after", "in place", "beside", "a.pt", "b"} <= {*words}
    boxes = [colour_of(box) for box in axes.patches if isinstance(box, Rectangle)]
    old, new, bad, none = BLUE.upper(), GREEN.upper(), VERMILION.upper(), "#FFFFFF"
    assert boxes == [old, bad, new, old, old, new, none, new, none]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert all(left <= x <= right and bottom < y < top for x, y in (text.get_position() for text in axes.texts))
    assert png(figure)


def test_intervals_are_lines_dots_and_the_best_one():
    shares = {"a": [0.2, 0.1, 0.05], "b": [0.1, 0.2, 0.3], "both": [0.3] * 3}
    figure = draw_intervals([0.5, 1, 4], shares, [0.25] * 3, 1.5)
    axes = figure.axes[0]
    assert [line.get_label() for line in axes.lines[:4]] == ["a", "b", "both", "simulated failures"]
    assert list(axes.lines[0].get_ydata()) == [20, 10, 5] and list(axes.lines[3].get_ydata()) == [25] * 3
    assert axes.lines[4].get_xdata()[0] == 1.5 and axes.texts[0].get_text() == "1.5 h" and axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.5", "1", "2", "4"]
    assert png(figure)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: draw_resumes(LOSSES, {}, 2), "0 resumes at step 2 of 5"),
        (lambda: draw_resumes(LOSSES, {"short": [1.0]}, 2), "of which 1 do not reach the end"),
        (lambda: draw_resumes(LOSSES, {"all": LOSSES}, 0), "1 resumes at step 0 of 5"),
        (lambda: draw_moments([], {}), "each file needs 0 contents"),
        (lambda: draw_moments(["a"], WAYS), "each file needs 1 contents"),
        (lambda: draw_intervals([1, 2], {"a": [1, 2], "b": [1]}, [1, 2], 1.0), "lengths .1, 2., best 1.0"),
        (lambda: draw_intervals([0, 2], {"a": [1, 2], "b": [1, 2]}, [1, 2], 1.0), "hours above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
