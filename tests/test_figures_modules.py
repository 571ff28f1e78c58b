"""The pictures of notebook 08 show what modules hold and the numbers that they are given, and refuse the rest."""

import pytest
import torch
from figure_views import png
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from torch import nn

from course_lib.figures import draw_curves, draw_modules, draw_streams
from course_lib.figures.modules import entries
from course_lib.figures.style import BLUE, GREEN, VERMILION
from course_lib.modules import Cruncher, Linear


class Everything(nn.Module):
    """One attribute of each kind, a tie among them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))
        self.bias = None
        self.register_parameter("none", None)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("empty", None)
        self.inner = Linear(2, 3)
        self.inner.weight = self.weight
        self.plain, self.rate, self.sizes = torch.zeros(()), 0.1, [1, 2]
        self.in_a_list = [Linear(1, 1), Linear(1, 1)]
        self.in_a_dict = {"a": torch.zeros(4)}


def test_every_attribute_that_holds_tensors_has_its_line_and_kind():
    lines = [(row.depth, row.name, row.text, row.kind) for row in entries(Everything(), "net")]
    assert lines == [
        (0, "net", "Everything", "module"),
        (1, "weight", "(2, 3)", "parameter"),
        (1, "mean", "(3,)", "buffer"),
        (1, "inner", "Linear", "module"),
        (2, "weight", "(2, 3)", "the same parameter again"),
        (1, "plain", "()", "not registered"),
        (1, "in_a_list", "list of 2 Linear", "not registered"),
        (1, "in_a_dict", "dict of 1 (4,)", "not registered"),
    ]


def test_the_picture_has_a_box_for_each_tensor_and_counts_what_is_registered():
    figure = draw_modules({"all kinds": Everything(), "the running example": Cruncher(64, 2)})
    left, right = figure.axes
    assert left.get_title(loc="left") == "all kinds\n6 numbers in parameters()"
    assert right.get_title(loc="left") == "the running example\n8,256 numbers in parameters()"
    boxes = [patch for patch in left.patches if isinstance(patch, Rectangle)]
    edges = [to_hex(box.get_edgecolor()).upper() for box in boxes]
    assert edges == [BLUE, GREEN, BLUE, VERMILION, VERMILION, VERMILION]
    assert [to_hex(box.get_facecolor()).upper() == edge for box, edge in zip(boxes, edges, strict=True)] == [
        True, True, False, False, False, False
    ]  # fmt: skip
    assert [text.get_text() for text in right.texts].count("(64, 64)") == 2
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["parameter", "the same parameter again", "buffer", "not registered"]
    assert all(box.get_x() + box.get_width() < left.get_xlim()[1] for box in boxes)
    assert png(figure)


def test_curves_are_the_numbers_that_were_given():
    t = torch.linspace(-1, 1, 5)
    figure = draw_curves(t, {"straight": 2 * t, "bent": t.relu()})
    drawn = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[0].lines}
    assert drawn == {"straight": (2 * t).tolist(), "bent": t.relu().tolist()}
    assert png(figure)


def test_a_purpose_has_one_colour_and_each_draw_its_box():
    rows = {"one": [("weights", 0.25), ("data", 0.5)], "two": [("weights", 0.25), ("noise", 0.5), ("data", 0.75)]}
    figure = draw_streams(rows)
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    colours = [to_hex(box.get_facecolor()) for box in boxes]
    assert len(boxes) == 5 and colours[0] == colours[2] and colours[1] == colours[4] and len({*colours}) == 3
    assert [text.get_text() for text in figure.axes[0].texts] == ["one", "0.25", "0.50", "two", "0.25", "0.50", "0.75"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["weights", "data", "noise"]
    assert max(box.get_x() + box.get_width() for box in boxes) == pytest.approx(10)
    assert png(figure)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: draw_modules({}), "there are 0 models; 1 to 2"),
        (lambda: draw_modules({"deep": Cruncher(2, 9)}), "a model has 22 lines; 14"),
        (lambda: draw_curves(torch.ones(3), {}), "there are 0 curves; 1 to 4"),
        (lambda: draw_streams({}), "there are 0 purposes and up to 0 draws"),
        (lambda: draw_streams({"a": [("data", 0.1)] * 13}), "1 purposes and up to 13 draws; 1 to 4 and 12"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
