"""The pictures of notebook 05 show what the roofline says, and hold it inside their axes, whatever the machine."""
import re

import pytest
from figure_views import png
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_lib.figures import draw_asynchronous, draw_matmul, draw_roofline, draw_rooflines
from course_lib.figures.style import BLUE, GREEN, ORANGE
from course_lib.flops import Roofline, matmul_flops

H100 = Roofline(peak=989.5e12, bandwidth=3.35e12)
WORK = {"relu": 0.25, "dot": 0.5, "matvec": 0.998, "gelu": 5.0, "matmul": 341.3}
MINE = [("relu", 0.125, 1.1e9), ("1 row", 0.5, 9e9), ("8", 4.0, 25e9), ("64", 31.0, 93e9), ("256", 114.0, 144e9)]
THEIRS = [(name, 2 * x, H100.attainable(2 * x)) for name, x, _ in MINE]
MACHINES = {"slow": Roofline(166e9, 15e9), "fast": Roofline(60e12, 4.3e12), "so slow": Roofline(3e9, 2e9)}


def roof_line(axes) -> list[tuple[float, float]]:
    return [*zip(*axes.lines[0].get_data(), strict=True)]


def dots(axes) -> list[tuple[float, float]]:
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "o"]


def inside(axes, x: float, y: float) -> bool:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return left < x < right and bottom < y < top


def test_each_kind_of_work_lies_on_the_roof():
    figure = draw_roofline(H100, WORK, "H100, bfloat16")
    axes = figure.axes[0]
    assert dots(axes) == [(x, min(989.5e12, x * 3.35e12)) for x in WORK.values()]
    assert all(inside(axes, *dot) for dot in dots(axes))
    said = [text.get_text() for text in axes.texts]
    assert {"relu 0.25", "dot 0.5", "matvec 1", "gelu 5", "matmul 341", "295", "989.5e12 FLOP/s"} <= set(said)
    assert "intensity × 3.35e12 bytes/s" in said
    assert axes.get_title() == "H100, bfloat16"
    assert png(figure)


@pytest.mark.parametrize("roof", [H100, *MACHINES.values()])
def test_the_roof_is_a_slope_and_a_flat_part_that_meet_at_the_balance(roof):
    axes = draw_roofline(roof, WORK, "a machine").axes[0]
    (left, low), corner, (_, high) = roof_line(axes)
    assert low == pytest.approx(left * roof.bandwidth)
    assert corner == pytest.approx((roof.balance, roof.peak))
    assert high == roof.peak
    memory, compute = axes.patches
    assert memory.get_x() + memory.get_width() == compute.get_x() == roof.balance


@pytest.mark.parametrize("here", MACHINES.values(), ids=MACHINES)
def test_machines_share_their_axes_and_each_dot_is_inside(here):
    figure = draw_rooflines({"this machine": (here, MINE), "H100": (H100, THEIRS)})
    mine, theirs = figure.axes
    assert mine.get_ylim() == theirs.get_ylim() and mine.get_xlim() == theirs.get_xlim()
    assert dots(mine) == [(x, y) for _, x, y in MINE]
    assert dots(theirs) == [(x, y) for _, x, y in THEIRS]
    for axes, roof in ((mine, here), (theirs, H100)):
        assert all(inside(axes, *dot) for dot in [*dots(axes), (roof.balance, roof.peak)])
    colours = [[line.get_color() for line in axes.lines if line.get_marker() == "o"] for axes in figure.axes]
    assert colours[0] == colours[1] and len(set(colours[0])) == 5
    assert (mine.get_title(), theirs.get_title()) == ("this machine", "H100")
    assert png(figure)


@pytest.mark.parametrize("size", [(2, 3, 4), (1, 1, 1), (8, 8, 8), (5, 1, 2)])
def test_a_matmul_shows_every_cell_and_what_it_costs(size):
    b, d, k = size
    figure = draw_matmul(*size)
    cells = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert len(cells) == b * d + d * k + b * k
    colours = [to_hex(cell.get_facecolor()).upper() for cell in cells]
    assert [colours.count(colour) for colour in (BLUE, ORANGE, GREEN)] == [d, d, 1]
    said = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert f"= {matmul_flops(*size)} FLOPs" in said
    assert f"{d} products + {d} additions" in said
    assert png(figure)


def test_a_stopwatch_that_does_not_wait_ends_with_the_launch():
    axes = draw_asynchronous().axes[0]
    launch, waiting, computing = (patch.get_bbox() for patch in axes.patches[:3])
    spans = sorted((text.xyann[0], text.xy[0]) for text in axes.texts if hasattr(text, "xyann") and text.xy[1] < 4)
    assert [*map(pytest.approx, spans)] == [(launch.x0, launch.x1), (launch.x0, waiting.x1)]
    assert launch.x0 < computing.x0 < launch.x1 < computing.x1 < waiting.x1
    assert png(axes.figure)


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("draw_matmul(): d is 9; 1 to 8 is asked for.", lambda: draw_matmul(2, 9, 4)),
        ("draw_matmul(): b is 0; 1 to 8 is asked for.", lambda: draw_matmul(0, 9, 4)),
        ("draw_roofline(): roof is a float (2.5); a Roofline is asked for.", lambda: draw_roofline(2.5, WORK, "x")),
    ],
)
def test_what_cannot_be_drawn_gets_one_sentence(sentence, call):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}$"):
        call()
