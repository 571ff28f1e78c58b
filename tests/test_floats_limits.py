"""What a float format says about itself: limits, kinds of codes, neighbours, pictures in text; and its errors."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.floats import BFLOAT16, E2M1, E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64, FloatFormat

E4M3FNUZ = FloatFormat("E4M3FNUZ", 4, 3, bias=8, special="fnuz")
E2M3 = FloatFormat("E2M3", 2, 3, special="finite")
SMALL = [FLOAT16, BFLOAT16, E4M3, E5M2, E2M1, E4M3FNUZ, E2M3]
small_by_name = pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)


@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        (FLOAT64, torch.float64),
        (FLOAT32, torch.float32),
        (FLOAT16, torch.float16),
        (BFLOAT16, torch.bfloat16),
        (E4M3, torch.float8_e4m3fn),
        (E5M2, torch.float8_e5m2),
        (E4M3FNUZ, torch.float8_e4m3fnuz),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_limits_agree_with_torch(form, dtype):
    limits = torch.finfo(dtype)
    assert (form.bits, form.max, form.eps, form.smallest_normal) == (limits.bits, limits.max, limits.eps, limits.tiny)


def test_limits_of_the_table():
    assert [f.smallest_subnormal for f in (FLOAT32, FLOAT16, BFLOAT16)] == [2.0**-149, 2.0**-24, 2.0**-133]
    assert [f.smallest_subnormal for f in (E4M3, E5M2, E2M1)] == [2.0**-9, 2.0**-16, 0.5]
    assert (E2M1.max, E2M1.eps, E2M1.smallest_normal) == (6, 0.5, 1)


def test_how_many_codes_are_what():
    def count(form):
        kinds = [form.kind(code) for code in form.codes()]
        return tuple(kinds.count(kind) for kind in ("zero", "subnormal", "normal", "infinity", "nan"))

    assert count(E4M3) == (2, 14, 238, 0, 2)
    assert count(E5M2) == (2, 6, 240, 2, 6)
    assert count(E2M1) == (2, 2, 12, 0, 0)
    assert count(E4M3FNUZ) == (1, 14, 240, 0, 1)
    assert count(FLOAT16) == (2, 2046, 61440, 2, 2046)


@small_by_name
def test_numbers_are_all_the_finite_ones(form):
    finite = sorted({x for x in map(form.decode, form.codes()) if math.isfinite(x)})
    assert form.numbers() == finite
    assert form.numbers(-0.3, form.max / 2) == [x for x in finite if -0.3 <= x <= form.max / 2]
    assert form.numbers(form.max * 1.5) == form.numbers(-(10**400), -form.max * 1.5) == []


@small_by_name
def test_neighbours_and_spacing_follow_from_the_numbers(form):
    numbers = form.numbers()
    for place in range(1, len(numbers) - 1, max(1, len(numbers) // 200)):
        below, here, above = numbers[place - 1 : place + 2]
        assert form.neighbours(here) == (below, above)
        assert form.neighbours((Fraction(here) + Fraction(above)) / 2) == (here, above)
        assert form.spacing(here) == (above - here if here >= 0 else here - below)


def test_neighbours_at_the_ends():
    assert FLOAT16.neighbours(65504) == (65472, math.inf)
    assert E2M1.neighbours(100) == (6, math.inf)
    assert E2M1.neighbours(-7) == (-math.inf, -6)
    assert E4M3.neighbours(0.0) == E4M3.neighbours(-0.0) == (-(2.0**-9), 2.0**-9)


def test_spacing():
    assert [BFLOAT16.spacing(x) for x in (255, 256, -257.9, 1, 0)] == [1, 2, 2, 2.0**-7, 2.0**-133]
    assert FLOAT64.spacing(math.pi) == math.ulp(math.pi)
    assert FLOAT32.spacing(2**24) == 2


def test_patterns_and_formulas():
    assert E4M3.pattern(0xB8) == "1 0111 000"
    assert E4M3.formula(0xB8) == "−1 × 2^(7 − 7) × (1 + 0/8) = -1.0"
    assert E4M3.formula(0x03) == "+1 × 2^(1 − 7) × (0 + 3/8) = 0.005859375"
    assert (E4M3.formula(0x7F), E5M2.formula(0xFC)) == ("nan", "-inf")
    assert FloatFormat("E3M0", 3, 0, special="finite").pattern(0b1101) == "1 101"


@given(st.integers(2, 5), st.integers(1, 4), st.sampled_from(["ieee", "fn", "fnuz", "finite"]), st.integers(-3, 130))
@settings(max_examples=40, deadline=None)
def test_any_format_counts_up(exponent_bits, fraction_bits, special, bias):
    form = FloatFormat("any", exponent_bits, fraction_bits, bias, special)
    upper = [form.decode(code) for code in range(1 << form.bits - 1)]
    numbers = [x for x in upper if math.isfinite(x)]
    assert upper[: len(numbers)] == numbers, "the special codes come last"
    assert all(a < b for a, b in pairwise(numbers))
    assert numbers[-1] == form.max
    assert [form.encode(x) for x in numbers[::7]] == list(range(len(numbers)))[::7]


def test_a_format_without_a_fraction():
    form = FloatFormat("E3M0", 3, 0, special="finite")
    assert form.numbers(0) == [0, 0.25, 0.5, 1, 2, 4, 8, 16]
    # No fraction is even where there is none: then the larger one is taken (IEEE 754-2019, 4.3.1).
    assert [form.round(x) for x in (0.125, 0.13, 1.5, 3, 6, 11)] == [0, 0.25, 2, 4, 8, 8]


# Errors: one sentence that names the argument, what came and what is allowed


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: E4M3.decode(256), ValueError, "E4M3: code is 0x100; allowed is 0 to 0xff (8 bits)."),
        (lambda: E4M3.decode(-1), ValueError, "code is -0x1"),
        (lambda: E4M3.decode(1.5), TypeError, "code is a float (1.5); an int is asked for."),
        (lambda: E4M3.encode("1.5"), TypeError, "value is a str ('1.5')"),
        (lambda: E4M3.encode(1, overflow="infinity"), ValueError, "its codes allow saturate or nan."),
        (lambda: E4M3.encode(1, overflow="wrap"), TypeError, "overflow is a str ('wrap')"),
        (lambda: E2M1.encode(math.nan), ValueError, "E2M1: value is NaN"),
        (lambda: E2M1.round_tensor(torch.tensor([1.0, math.nan])), ValueError, "E2M1: value is NaN"),
        (lambda: BFLOAT16.round_tensor(torch.ones(2).half()), ValueError, "x is torch.float16, which cannot hold"),
        (lambda: BFLOAT16.round_tensor(torch.ones(2, dtype=torch.int32)), TypeError, "x is a tensor of dtype int32"),
        (lambda: FLOAT16.spacing(1e9), ValueError, "value is 1000000000.0"),
        (lambda: FLOAT16.spacing(math.nan), ValueError, "value is nan"),
        (lambda: FLOAT16.neighbours(math.inf), ValueError, "value is inf; a finite number is asked for."),
        (lambda: FLOAT16.numbers(math.nan), ValueError, "value is nan"),
        (lambda: FloatFormat("wide", 15, 112), ValueError, "beyond float64"),
        (lambda: FloatFormat("narrow", 1, 3), ValueError, "more bits are needed"),
        (lambda: FloatFormat("no fraction", 4, 0), ValueError, "more bits are needed"),
        (lambda: FloatFormat("half", 2.5, 1), TypeError, "exponent_bits is a float (2.5); an int is asked for."),
        (lambda: FloatFormat("odd", 4, 3, special="e4m3"), TypeError, "special is a str ('e4m3')"),
    ],
)
def test_errors_say_what_came_and_what_is_allowed(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
