"""The pictures of notebook 09 show the bytes, pages and tokens that they are given, and refuse what cannot be drawn."""
import mmap

import numpy as np
import pytest
from figure_views import png, words
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from course_lib.figures import draw_loaded, draw_overlap, draw_readings, draw_windows
from course_lib.figures.style import BLUE, GREEN, ORANGE, PALE, VERMILION


def boxes(axes, colour: str) -> list[Rectangle]:
    return [patch for patch in axes.patches if to_hex(patch.get_facecolor()).upper() == colour]


def test_bytes_are_read_by_each_dtype_at_their_places():
    figure = draw_readings(bytes.fromhex("0700050046006500"), ["uint16", "uint32", "uint8"])
    axes = figure.axes[0]
    assert words(axes)[:9] == ["bytes", "07", "00", "05", "00", "46", "00", "65", "00"]
    assert words(axes)[9:14] == ["uint16", "7", "5", "70", "101"]
    assert words(axes)[14:17] == ["uint32", "327,687", f"{70 + 101 * 2**16:,}"]
    assert [round(box.get_width()) for box in boxes(axes, BLUE)] == [2] * 4
    assert [round(box.get_x()) for box in boxes(axes, GREEN)] == [0, 4] and len(boxes(axes, PALE)) == 8
    assert png(figure)


def test_each_page_is_a_square_in_the_order_of_the_file():
    loaded = {"none": np.zeros(10, bool), "some": np.arange(10) % 3 == 0}
    figure = draw_loaded(loaded, "some", (3 * mmap.PAGESIZE + 10, 4 * mmap.PAGESIZE + 5))
    for axes, (name, pages) in zip(figure.axes, loaded.items(), strict=False):
        squares = axes.images[0].get_array().reshape(-1)
        assert squares[:10].tolist() == pages.astype(int).tolist() and set(squares[10:].tolist()) == {2}
        assert axes.get_title() == f"{name}\n{pages.sum()} of 10 pages"
    zoom = figure.axes[-1]
    assert words(zoom) == [*(f"page {page}" for page in range(8)), f"one sequence: {mmap.PAGESIZE - 5:,} B read"]
    assert [int(box.get_x()) for box in boxes(zoom, BLUE)] == [0, 3, 6]
    (window,) = boxes(zoom, ORANGE)
    assert 3 < window.get_x() < 4 < window.get_x() + window.get_width() < 5
    assert png(figure)


def test_windows_of_x_and_y_and_the_place_that_is_missing():
    axes = (figure := draw_windows("to be or not", 4, [0, 7, 8])).axes[0]
    green = {text.get_text() for text in axes.texts if text.get_color() == GREEN} - {"start"}
    assert green == {str(start) for start in range(12 - 4)}, "the legal starts"
    assert [round(box.get_x() - 0.04) for box in boxes(axes, BLUE)] == [0, 1, 2, 3, 7, 8, 9, 10, 8, 9, 10, 11]
    assert [round(box.get_x() - 0.04) for box in boxes(axes, ORANGE)] == [1, 2, 3, 4, 8, 9, 10, 11, 9, 10, 11]
    assert [round(box.get_x() - 0.04) for box in boxes(axes, VERMILION)] == [12]
    assert words(axes)[-5:] == ["y", *"not", "?"]
    assert png(figure)


def test_two_queues_end_earlier_and_no_step_begins_before_its_batch():
    axes = (figure := draw_overlap()).axes[0]
    ends = [line.get_xdata()[0] for line in axes.lines]
    assert ends[1] < ends[0]
    copies, steps = (
        [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches
         if to_hex(patch.get_facecolor()).upper() == colour]
        for colour in (ORANGE, BLUE)
    )
    assert len(copies) == len(steps) == 6
    assert all(copy[1] <= step[0] + 0.1 for copy, step in zip(copies, steps, strict=True))
    assert png(figure)


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        (lambda: draw_readings(b"", ["uint8"]), ["draw_readings", "0 bytes"]),
        (lambda: draw_readings(b"123", ["uint16"]), ["3 bytes"]),
        (lambda: draw_readings(bytes(32), ["uint16"]), ["32 bytes", "16"]),
        (lambda: draw_loaded({}, "x", (0, 5)), ["draw_loaded", "0 panels"]),
        (lambda: draw_loaded({"x": np.ones(4, bool)}, "y", (0, 5)), ["'y'"]),
        (lambda: draw_loaded({"x": np.ones(4, bool), "y": np.ones(5, bool)}, "x", (0, 5)), ["[4, 5]"]),
        (lambda: draw_loaded({"x": np.ones(4, bool)}, "x", (0, 5 * mmap.PAGESIZE)), ["bytes (0, "]),
        (lambda: draw_windows("abc", 3, [0]), ["draw_windows", "3 tokens", "sequence_length 3"]),
        (lambda: draw_windows("abc" * 10, 3, [0]), ["30 tokens"]),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(draw, names):
    with pytest.raises(ValueError, match="can be drawn") as refused:
        draw()
    assert all(name in str(refused.value) for name in names), refused.value
