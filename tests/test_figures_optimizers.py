"""The pictures of notebook 10 show the numbers that they are given, and refuse what cannot be drawn."""
from functools import partial

import pytest
import torch
from figure_views import png
from matplotlib.colors import to_hex

from course_lib.figures import draw_bytes, draw_paths, draw_steps
from course_lib.optim import SGD, Adam
from course_lib.surfaces import DIAGONAL_VALLEY, SADDLE, SURFACES, VALLEY, descend

PATHS = {
    surface: {
        "slow": descend(surface, partial(SGD, lr=0.01), surface.start, 5).path,
        "Adam": descend(surface, partial(Adam, lr=0.1), surface.start, 9).path,
    }
    for surface in (VALLEY, DIAGONAL_VALLEY)
}
BARS = {"first": {"weights": 4, "state": 8}, "second": {"weights": 2.5, "other": 100}}


def named(axes) -> dict:
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_each_line_is_the_path_that_was_given():
    figure = draw_paths(PATHS)
    looks = set()
    for axes, (surface, paths) in zip(figure.axes, PATHS.items(), strict=True):
        drawn = named(axes)
        assert axes.get_title() == surface.name and list(drawn) == list(paths)
        for name, path in paths.items():
            assert torch.equal(torch.tensor(drawn[name].get_xydata()), path)
            looks.add((name, drawn[name].get_color(), drawn[name].get_marker(), str(drawn[name].get_linestyle())))
        assert axes.get_xlim() == surface.x_range and axes.get_ylim() == surface.y_range and axes.get_aspect() == 1
    assert len(looks) == 2, "a name looks the same in each panel, and unlike the other"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["slow", "Adam"]
    assert png(figure)


def test_start_and_lowest_points_are_marked():
    axes = draw_paths({SADDLE: {"one": torch.tensor([[1.0, 0.5], [0.5, 0.7]])}}).axes[0]
    marked = {line.get_marker(): line.get_xydata().tolist() for line in axes.lines if line.get_label().startswith("_")}
    assert marked == {"*": [[0, -1], [0, 1]], "o": [[1, 0.5]]}


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)
def test_lines_of_equal_loss_rise_from_the_lowest_point(surface):
    axes = draw_paths({surface: {"one": torch.tensor([surface.start])}}).axes[0]
    (contours,) = axes.collections
    low = surface(torch.tensor(surface.lowest[0], dtype=torch.float64))
    assert contours.levels[0] > low and len(contours.levels) > 8
    x, y = contours.get_paths()[3].vertices.T
    heights = surface(torch.tensor([*zip(x, y, strict=True)], dtype=torch.float64))
    step = contours.levels[4] - contours.levels[3]
    assert (heights - contours.levels[3]).abs().max() < step / 2
    assert png(axes.figure)


def test_a_path_that_overflows_can_be_drawn():
    path = descend(VALLEY, partial(SGD, lr=1.0), VALLEY.start, 400).path
    assert not path[-1].isfinite().all()
    assert png(draw_paths({VALLEY: {"diverges": path}}))


def test_steps_are_counted_from_1_on_logarithmic_axes():
    figure = draw_steps({"a": [1.0, 0.5, 0.1], "b": [10.0, 1.0]}, "step / lr")
    axes = figure.axes[0]
    drawn = {name: line.get_xydata().tolist() for name, line in named(axes).items()}
    assert drawn == {"a": [[1, 1], [2, 0.5], [3, 0.1]], "b": [[1, 10], [2, 1]]}
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylabel()) == ("log", "log", "step / lr")
    assert png(figure)


def test_parts_are_stacked_and_the_sum_stands_at_the_end():
    figure = draw_bytes(BARS, "bytes")
    axes = figure.axes[0]
    bars = [[round(p.get_y() + p.get_height() / 2), p.get_x(), p.get_width()] for p in axes.patches]
    assert [bar for bar in bars if bar[2]] == [[0, 0, 4], [0, 4, 8], [1, 0, 2.5], [1, 2.5, 100]]
    said = [(text.get_text(), text.get_position()[1]) for text in axes.texts]
    assert said == [("8", 0), ("12", 0), ("100", 1), ("102", 1)], "narrow parts carry no number"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["weights", "state", "other"]
    assert [label.get_text() for label in axes.get_yticklabels()] == [*BARS]
    colours = [to_hex(patch.get_facecolor()) for patch in axes.patches if patch.get_width()]
    assert colours[0] == colours[2] and len(set(colours)) == 3
    assert axes.get_xlabel() == "bytes" and axes.get_ylim()[0] > axes.get_ylim()[1]
    assert png(figure)


def test_nothing_at_all_is_a_bar_too():
    assert [text.get_text() for text in draw_bytes({"nothing": {"weights": 0}}, "bytes").axes[0].texts] == ["0"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: draw_paths({}), "panels name 0 paths; 1 to 6"),
        (lambda: draw_paths({VALLEY: {str(i): torch.zeros(1, 2) for i in range(7)}}), "panels name 7 paths; 1 to 6"),
        (lambda: draw_steps({}, "lr"), "there are 0 curves; 1 to 6"),
        (lambda: draw_bytes({}, "bytes"), "there are 0 bars of 0 parts; 1 to 8 bars of 1 to 6"),
        (lambda: draw_bytes({str(i): {"a": 1} for i in range(9)}, "bytes"), "there are 9 bars of 1 parts"),
        (lambda: draw_bytes({"one": {"a": -1}}, "bytes"), "a part of 'one' is negative or not finite"),
        (lambda: draw_bytes({"one": {"a": float("nan")}}, "bytes"), "a part of 'one' is negative or not finite"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
