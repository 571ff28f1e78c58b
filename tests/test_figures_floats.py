"""The pictures of floats show what the formats say: every bit, every number, where rounding goes; and they all draw."""

import re

import numpy as np
import pytest
import torch
from figure_views import png
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.offsetbox import TextArea
from matplotlib.patches import Rectangle

from course_lib.figures import (
    draw_float,
    draw_number_lines,
    draw_precision,
    draw_quantised,
    draw_rounding,
    draw_running_sums,
)
from course_lib.figures.style import BLUE
from course_lib.floats import BFLOAT16, E2M1, E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64

CODES = [
    (FLOAT32, 0x4696CE2E),
    (FLOAT32, 0x80000000),
    (BFLOAT16, 0xC0E9),
    (FLOAT16, 0x0001),
    (FLOAT16, 0x7C00),
    (E4M3, 0x7F),
    (E5M2, 0xFE),
    (E2M1, 0b0001),
    (FLOAT64, 0x3FB999999999999A),
]


def product_of(figure: Figure) -> list[str]:
    row = [text.get_text() for text in figure.findobj(TextArea)]
    return [re.sub(r"\$\\mathbf\{2\^\{(-?\d+)\}\}\$", r"2^\1", text).replace("−", "-") for text in row]


@pytest.mark.parametrize(("form", "code"), CODES)
def test_every_bit_stands_in_its_box(form, code):
    figure = draw_float(form, code)
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    bits = "".join(text.get_text() for text in figure.axes[0].texts if text.get_text() in ("0", "1"))
    assert len(boxes) == form.bits
    if form is not BFLOAT16 and form.fraction_bits > 7:  # elsewhere a place may be worth 1
        assert form.pattern(code).replace(" ", "") in bits
    assert png(figure)


@pytest.mark.parametrize(("form", "code"), CODES)
def test_the_factors_make_the_value(form, code):
    row = product_of(draw_float(form, code))
    if form.kind(code) in ("infinity", "nan"):
        assert row == ["infinity" if form.kind(code) == "infinity" else row[0]]
        assert row[0].lstrip("-") in ("infinity", "NaN")
        return
    sign, _, power, _, significand, _, value = row
    product = float(sign) * 2.0 ** int(power[2:]) * float(significand.rstrip("…"))
    assert product == pytest.approx(form.decode(code), rel=2e-6)
    assert (2.0 ** int(value[2:]) if value.startswith("2^") else float(value)) == form.decode(code)


@pytest.mark.parametrize("form", [E2M1, E4M3, E5M2], ids=lambda form: form.name)
def test_a_number_line_has_a_tick_for_every_number(form):
    for low, high, log in ((0, form.max, False), (form.smallest_subnormal, form.max, True)):
        figure = draw_number_lines([form], low, high, log=log)
        ticks = figure.axes[0].findobj(LineCollection)[0].get_segments()
        numbers = form.numbers(low, high)
        drawn = [segment[0][0] for segment in ticks]
        assert set(drawn) <= set(numbers)
        assert np.abs(np.subtract.outer(numbers, drawn)).min(1).max() <= (0 if log else (high - low) / 9000)
        assert png(figure)


def test_a_number_line_refuses_the_logarithm_of_zero():
    with pytest.raises(ValueError, match=r"low is 0; with log=True it must be above 0"):
        draw_number_lines([E4M3], 0, 8, log=True)


def test_arrows_of_rounding_lead_to_the_rounded_number():
    values = [251.3, 255.5, 257, 259, 263]
    figure = draw_rounding(BFLOAT16, 250, 266, values)
    arrows = [note for note in figure.axes[0].texts if getattr(note, "arrow_patch", None)]
    assert [note.xy[0] for note in arrows] == [BFLOAT16.round(value) for value in values]
    assert [note.arrow_patch.get_linestyle() for note in arrows] == ["-", "--", "--", "--", "--"]
    ticks = [line for line in figure.axes[0].lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in ticks] == BFLOAT16.numbers(250, 266)
    assert all((line.get_color() == BLUE) == (BFLOAT16.encode(line.get_xdata()[0]) % 2 == 0) for line in ticks)
    assert png(figure)


def test_precision_runs_from_the_smallest_to_the_largest_number():
    forms = [FLOAT32, BFLOAT16, FLOAT16, E5M2, E4M3, E2M1]
    figure = draw_precision(forms)
    for form, line in zip(forms, figure.axes[0].lines, strict=True):
        x, y = line.get_data()
        assert (x[0], x[-1]) == (form.smallest_subnormal, form.max)
        assert (y[0], min(y)) == (1, form.eps)
    assert png(figure)


def test_running_sums_name_their_last_value():
    figure = draw_running_sums({"exact": torch.arange(1.0, 301), "stalled": torch.arange(1.0, 301).clamp(max=256)})
    assert [text.get_text() for text in figure.axes[0].texts] == ["exact: 300", "stalled: 256"]
    assert png(figure)


def test_quantised_counts_what_is_left():
    x = torch.tensor([0.1, -0.2, 5.0, 0.0])
    figure = draw_quantised(x, {"none": torch.zeros(4), "some": torch.tensor([0.0, -0.2, 5.0, 0.0])}, block=2)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["none: 0 of 4 are not 0", "some: 2 of 4 are not 0"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["↑ 5"]
    assert png(figure)
