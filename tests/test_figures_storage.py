"""The pictures of storages show what torch says (numbers, places, strides, who sees what) and refuse what is large."""
import io

import pytest
import torch
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_lib.figures import draw_reads, draw_sharing, draw_storage
from course_lib.storage import storage_positions

MATRIX = torch.arange(12.0).reshape(3, 4)
TENSORS = {
    "contiguous": MATRIX,
    "a transpose": MATRIX.T,
    "a row": MATRIX[1],
    "a column": MATRIX[:, 1],
    "steps and an offset": MATRIX[1:, ::2],
    "a scalar": MATRIX[1, 2],
    "rank 3": torch.arange(8.0).reshape(2, 4).T.view(2, 2, 2),
    "expanded along rows": torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4),
    "expanded along columns": torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(3, 4),
    "windows": torch.arange(6.0).as_strided((4, 3), (1, 1)),
    "the largest": torch.arange(24).reshape(4, 6),
    "large numbers": torch.arange(24).reshape(4, 6).T * 1000,
    "booleans": torch.tensor([True, False]),
    "one element": torch.ones(1, 1),
}


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@pytest.mark.parametrize("name", TENSORS)
def test_shape_strides_offset_and_every_number_are_on_the_picture(name):
    x = TENSORS[name]
    shown = texts(draw_storage(x))
    assert f"shape {tuple(x.shape)}   stride {x.stride()}   offset {x.storage_offset()}" in shown
    everything = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).tolist()
    numbers = [f"{n:g}" if isinstance(n, float) else str(n) for n in [*everything, *x.flatten().tolist()]]
    positions = [str(place) for place in range(len(everything))]
    for text in {*numbers, *positions}:
        assert shown.count(text) == numbers.count(text) + positions.count(text), text


@pytest.mark.parametrize("name", TENSORS)
def test_each_stride_that_is_walked_is_named_once(name):
    x = TENSORS[name]
    labels = [text for text in texts(draw_storage(x)) if text.startswith("stride[")]
    walked = [axis for axis in range(x.dim()) if x.shape[axis] > 1]
    assert sorted(labels) == [f"stride[{axis}] = {x.stride(axis)}" for axis in walked]


def test_arrows_walk_from_place_to_place():
    paths = [arrow._path_original.vertices for arrow in arrows(draw_storage(MATRIX.T))]
    steps = sorted(round(path[-1][0] - path[0][0]) for path in paths)
    assert steps == [1] * 3 + [4] * 8  # from row to row of x.T, and two along each of its four rows


def test_cells_that_no_index_reaches_are_pale_and_shared_ones_striped():
    def faces(x: torch.Tensor) -> list:
        return [p.get_facecolor() for p in draw_storage(x).axes[0].patches if isinstance(p, Rectangle)]

    pale = [face for face in faces(MATRIX[:, 1]) if same_color(face, "#F4F4F4")]
    assert len(pale) == 12 - 3
    assert not [face for face in faces(MATRIX) if same_color(face, "#F4F4F4")]
    # Each cell has one outline and a stripe for each row that reaches it: 12 in the grid, 4 · 3 in the storage.
    assert len(faces(TENSORS["expanded along columns"])) == (12 + 12) + (4 + 12)


def test_sharing_shows_which_index_sees_which_place():
    shown = texts(draw_sharing({"x": MATRIX, "column": MATRIX[:, 1], "copy": MATRIX.clone()}))
    assert shown.count("storage") == 2
    assert {"x", "column", "copy"} <= set(shown)
    assert shown.count("2,3") == 2  # x and its copy
    twice = texts(draw_sharing({"x": MATRIX[:1], "e": MATRIX[:1].expand(5, 4)}))
    assert twice.count("storage") == 1
    assert twice.count("5×") == 4


def test_reads_count_how_often_another_cache_line_begins():
    x = torch.zeros(8, 16)
    figure = draw_reads({"x": x, "x.T": x.T, "every second": x[:, ::2]})
    counts = {"x": 8, "x.T": 128, "every second": 8}
    titles = [f"{name}: {count} times to another line" for name, count in counts.items()]
    assert [panel.get_title() for panel in figure.axes] == titles
    drawn = [sorted(place for line in panel.lines[1:] for place in line.get_ydata().tolist()) for panel in figure.axes]
    assert drawn == [sorted(storage_positions(y).flatten().tolist()) for y in (x, x.T, x[:, ::2])]
    assert draw_reads({"x": x}, line=8).axes[0].get_title() == "x: 16 times to another line"


def test_a_picture_is_the_same_each_time_and_changes_nothing():
    x = torch.arange(12.0).reshape(3, 4).T
    for draw in (draw_storage, lambda x: draw_sharing({"x": x}), lambda x: draw_reads({"x": x})):
        assert png(draw(x)) == png(draw(x))
    assert torch.equal(x, MATRIX.T)
    assert x.stride() == (1, 4)


@pytest.mark.parametrize("name", TENSORS)
def test_nothing_is_drawn_outside_of_the_picture(name):
    for figure in (draw_storage(TENSORS[name]), draw_sharing({"x": TENSORS[name]})):
        figure.draw_without_rendering()
        frame = figure.bbox
        for text in figure.axes[0].texts:
            box = text.get_window_extent()
            assert frame.x0 <= box.x0 < box.x1 <= frame.x1, text
            assert frame.y0 <= box.y0 < box.y1 <= frame.y1, text


@pytest.mark.parametrize(
    ("draw", "error", "sentence"),
    [
        (lambda: draw_storage(torch.zeros(5, 5)), ValueError, "25 elements; at most 24"),
        (lambda: draw_storage(torch.zeros(1000)[:3]), ValueError, "1000 elements; at most 24"),
        (lambda: draw_storage(torch.zeros(0)), ValueError, r"shape \(0,\)"),
        (lambda: draw_storage(torch.zeros(1).expand(9, 1)), ValueError, "at most 8 rows"),
        (lambda: draw_storage(torch.zeros(1, 1, 1, 1)), ValueError, "at most three dimensions"),
        (lambda: draw_storage([1, 2]), TypeError, "x is a list"),
        (lambda: draw_sharing({}), ValueError, "tensors is empty"),
        (lambda: draw_sharing({"x": torch.zeros(30)}), ValueError, "30 elements; at most 24"),
        (lambda: draw_sharing(torch.zeros(3)), TypeError, "tensors is a tensor"),
        (lambda: draw_reads({}), ValueError, "tensors is empty"),
        (lambda: draw_reads({"x": torch.zeros(40, 40)}), ValueError, "1600 elements; 1 to 1024"),
        (lambda: draw_reads({"x": torch.zeros(0)}), ValueError, "0 elements; 1 to 1024"),
        (lambda: draw_reads({"x": torch.zeros(4)}, line=0), ValueError, "line is 0; at least 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(draw, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        draw()
    assert str(raised.value).count("\n") == 0
