"""The float formats against independent implementations: struct, NumPy, torch and ml_dtypes, code by code."""

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.floats import BFLOAT16, E2M1, E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64, FloatFormat

E4M3FNUZ = FloatFormat("E4M3FNUZ", 4, 3, bias=8, special="fnuz")
E5M2FNUZ = FloatFormat("E5M2FNUZ", 5, 2, bias=16, special="fnuz")
E3M4 = FloatFormat("E3M4", 3, 4)
IEEE_E4M3 = FloatFormat("IEEE E4M3", 4, 3)
E2M3 = FloatFormat("E2M3", 2, 3, special="finite")
E3M2 = FloatFormat("E3M2", 3, 2, special="finite")

# Format, an independent dtype of it, and what that dtype does with numbers that are too large.
PEERS = [
    pytest.param(FLOAT16, np.float16, "infinity", id="float16"),
    pytest.param(BFLOAT16, ml_dtypes.bfloat16, "infinity", id="bfloat16"),
    pytest.param(E4M3, ml_dtypes.float8_e4m3fn, "nan", id="e4m3fn"),
    pytest.param(E5M2, ml_dtypes.float8_e5m2, "infinity", id="e5m2"),
    pytest.param(E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, "nan", id="e4m3fnuz"),
    pytest.param(E5M2FNUZ, ml_dtypes.float8_e5m2fnuz, "nan", id="e5m2fnuz"),
    pytest.param(E3M4, ml_dtypes.float8_e3m4, "infinity", id="e3m4"),
    pytest.param(IEEE_E4M3, ml_dtypes.float8_e4m3, "infinity", id="e4m3"),
    pytest.param(E2M1, ml_dtypes.float4_e2m1fn, "saturate", id="e2m1"),
    pytest.param(E2M3, ml_dtypes.float6_e2m3fn, "saturate", id="e2m3"),
    pytest.param(E3M2, ml_dtypes.float6_e3m2fn, "saturate", id="e3m2"),
]
TORCH = [
    pytest.param(FLOAT16, torch.float16, torch.uint16, id="float16"),
    pytest.param(BFLOAT16, torch.bfloat16, torch.uint16, id="bfloat16"),
    pytest.param(E4M3, torch.float8_e4m3fn, torch.uint8, id="e4m3fn"),
    pytest.param(E5M2, torch.float8_e5m2, torch.uint8, id="e5m2"),
    pytest.param(E4M3FNUZ, torch.float8_e4m3fnuz, torch.uint8, id="e4m3fnuz"),
    pytest.param(E5M2FNUZ, torch.float8_e5m2fnuz, torch.uint8, id="e5m2fnuz"),
]
ALL = [FLOAT64, FLOAT32, FLOAT16, BFLOAT16, E4M3, E5M2, E2M1, E4M3FNUZ, E5M2FNUZ, E3M4, E2M3, E3M2]
SMALL = [form for form in ALL if form.bits <= 16]
by_name = pytest.mark.parametrize("form", ALL, ids=lambda form: form.name)
small_by_name = pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)


def same(a, b) -> bool:
    """Equal as numbers, signs of zero included, or both NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def bits_of_float32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def probes(form: FloatFormat, count: int) -> list[float]:
    """float32 numbers that try a format: its own numbers, the ties between them and their surroundings, and far out."""
    generator = np.random.default_rng(0)
    own = generator.choice(form.numbers(), min(count, 1 << form.bits)).astype(np.float64)
    ties = own + np.vectorize(form.spacing)(own) / 2
    magnitudes = np.exp2(generator.uniform(math.log2(form.smallest_subnormal) - 3, math.log2(form.max) + 3, count))
    anywhere = magnitudes * generator.choice([-1, 1], count)
    special = [0.0, -0.0, math.inf, -math.inf, form.max, -form.max, form.smallest_normal, form.smallest_subnormal]
    with np.errstate(over="ignore"):
        values = np.concatenate([own, ties, ties * (1 + 2**-20), ties * (1 - 2**-20), anywhere, special])
        return values.astype(np.float32).tolist()


# Decoding


@pytest.mark.parametrize(("form", "dtype", "_"), PEERS)
def test_every_code_decodes_as_elsewhere(form, dtype, _):
    raw = np.arange(1 << form.bits, dtype=np.uint16 if form.bits == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        expected = raw.view(dtype).astype(np.float64)
    assert all(same(form.decode(code), expected[code]) for code in form.codes())


@pytest.mark.parametrize(("form", "dtype", "raw"), TORCH)
def test_every_code_decodes_as_in_torch(form, dtype, raw):
    expected = torch.arange(1 << form.bits, dtype=torch.int32).to(raw).view(dtype).double().tolist()
    assert all(same(form.decode(code), expected[code]) for code in form.codes())


def test_float32_decodes_as_struct_does():
    generator = np.random.default_rng(1)
    edges = [0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x3F800000]
    codes = edges + [code | 1 << 31 for code in edges] + generator.integers(0, 1 << 32, 20_000).tolist()
    assert all(same(FLOAT32.decode(code), struct.unpack("<f", struct.pack("<I", code))[0]) for code in codes)


@given(st.integers(0, 2**64 - 1))
def test_float64_decodes_as_struct_does(code):
    assert same(FLOAT64.decode(code), struct.unpack("<d", struct.pack("<Q", code))[0])


# Encoding


@pytest.mark.parametrize(("form", "dtype", "overflow"), PEERS)
def test_encodes_as_elsewhere_ties_and_overflow_included(form, dtype, overflow):
    values = probes(form, 3000)
    with np.errstate(over="ignore"):
        cast = np.array(values, dtype=np.float32).astype(dtype)
    expected = cast.view(np.uint16 if form.bits == 16 else np.uint8).tolist()
    got = [form.encode(value, overflow) for value in values]
    for value, ours, theirs in zip(values, got, expected, strict=True):
        assert ours == theirs or form.kind(ours) == form.kind(theirs) == "nan", value


@pytest.mark.parametrize(("form", "dtype", "raw"), TORCH)
def test_encodes_by_default_as_torch_does(form, dtype, raw):
    values = probes(form, 3000)
    expected = torch.tensor(values, dtype=torch.float32).to(dtype).view(raw).tolist()
    assert [form.encode(value) for value in values] == expected


@given(st.floats(width=32, allow_nan=False))
def test_float32_round_trips_through_struct(value):
    assert FLOAT32.encode(value) == bits_of_float32(value)


@given(st.floats(allow_nan=False))
def test_float32_rounds_a_float64_as_numpy_does(value):
    with np.errstate(over="ignore"):
        assert FLOAT32.encode(value) == int(np.float64(value).astype(np.float32).view(np.uint32))


@given(st.floats(allow_nan=False))
def test_float64_holds_every_python_float(value):
    assert FLOAT64.encode(value) == struct.unpack("<Q", struct.pack("<d", value))[0]


@small_by_name
def test_numbers_encode_to_their_own_codes(form):
    for code in form.codes()[:: 1 if form.bits <= 8 else 7]:
        if form.kind(code) != "nan":
            assert form.encode(form.decode(code)) == code


@by_name
@settings(max_examples=60)
@given(value=st.fractions())
def test_no_number_of_the_format_is_nearer(form, value):
    got = form.round(value, overflow="saturate")
    below, above = form.neighbours(value)
    candidates = [x for x in (below, got, above) if math.isfinite(x)]
    distance = abs(Fraction(got) - value)
    assert distance == min(abs(Fraction(x) - value) for x in candidates)
    ties = [x for x in candidates if x != got and abs(Fraction(x) - value) == distance]
    assert not ties or form.encode(got) % 2 == 0


def test_the_worked_example():
    assert FLOAT32.encode(Fraction("19303.0890")) == 0x4696CE2E
    assert FLOAT32.decode(0x4696CE2E) == 19303.08984375
    assert FLOAT32.pattern(0x4696CE2E) == "0 10001101 00101101100111000101110"
    assert FLOAT32.fields(0x4696CE2E) == (0, 141, 1494574)
    assert FLOAT32.formula(0x4696CE2E) == "+1 × 2^(141 − 127) × (1 + 1494574/8388608) = 19303.08984375"


def test_one_rounding_not_two():
    # Halfway between two bfloat16 numbers plus a crumb that float64 cannot hold: through float64 it would be a tie.
    crumb = Fraction(1, 2**80)
    assert BFLOAT16.round(257 + crumb) == 258
    assert BFLOAT16.round(257) == 256
    assert BFLOAT16.round(259 - crumb) == 258
    # An int beyond 2^53: float() alone rounds it to the tie, which then goes down.
    assert FLOAT32.round(2**60 + 2**36 + 1) == 2.0**60 + 2.0**37
    assert FLOAT32.round(int(float(2**60 + 2**36 + 1))) == 2.0**60


def test_numbers_of_any_size():
    assert FLOAT16.round(10**400) == math.inf
    assert FLOAT16.round(-(10**400), overflow="saturate") == -65504
    assert FLOAT16.round(Fraction(1, 10**400)) == 0
    assert FLOAT16.encode(Fraction(-1, 10**400)) == 0x8000


@pytest.mark.parametrize("value", [np.float32(2.5), np.float64(2.5), np.int64(3), np.uint8(3), np.float16(2.5)])
def test_numpy_numbers(value):
    assert BFLOAT16.round(value) == value


def test_where_float16_overflows():
    assert FLOAT16.round(65519) == 65504
    assert FLOAT16.round(65520) == math.inf
    assert FLOAT16.round(65520, overflow="saturate") == 65504
    assert math.isnan(FLOAT16.round(65520, overflow="nan"))


def test_where_E4M3_overflows():
    assert [E4M3.round(x) for x in (464, 465, math.inf, -math.inf)] == [448, 448, 448, -448]
    assert E4M3.round(464, overflow="nan") == 448
    assert all(math.isnan(E4M3.round(x, overflow="nan")) for x in (465, math.inf, -1e9))
    assert E4M3.encode(-1e9, overflow="nan") == 0xFF


def test_underflow_of_float16():
    assert FLOAT16.round(3e-8) == 2.0**-24
    assert FLOAT16.round(2e-8) == 0
    assert FLOAT16.round(Fraction(1, 2**25)) == 0, "a tie between 0 and the smallest number: 0 is even"


def test_zero_keeps_its_sign_where_it_has_one():
    assert E4M3.encode(-0.0) == 0x80
    assert math.copysign(1, E4M3.round(-1e-9)) == -1
    assert E4M3FNUZ.encode(-0.0) == E4M3FNUZ.encode(-1e-9) == 0


def test_nan_and_its_payload():
    quiet = {FLOAT32: 0x7FC00000, FLOAT16: 0x7E00, BFLOAT16: 0x7FC0, E5M2: 0x7E, E4M3: 0x7F}
    for form, code in quiet.items():
        assert form.encode(math.nan) == code
        assert form.encode(-math.nan) == code | 1 << form.bits - 1
    assert E4M3FNUZ.encode(math.nan) == 0x80
    assert FLOAT32.kind(0x7FC01234) == "nan"
    assert FLOAT32.fields(0x7FC01234).fraction == 0x401234


# Tensors


@small_by_name
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_tensor_agrees_with_round(form, dtype):
    x = torch.tensor(probes(form, 1000), dtype=dtype)
    for overflow in (None, "saturate"):
        got = form.round_tensor(x, overflow)
        assert got.dtype == dtype
        assert all(same(a, form.round(b, overflow)) for a, b in zip(got.tolist(), x.tolist(), strict=True))


@pytest.mark.parametrize(("form", "dtype", "_"), TORCH)
def test_round_tensor_agrees_with_torchs_cast(form, dtype, _):
    x = torch.tensor(probes(form, 1000)).reshape(2, -1)
    assert torch.equal(form.round_tensor(x).nan_to_num(7), x.to(dtype).float().nan_to_num(7))
    assert torch.isnan(form.round_tensor(torch.tensor(math.nan)))


def test_round_tensor_of_subnormals_and_of_float64():
    x = torch.tensor([5e-324, 1e-310, 1.5, 1e308, 0.1], dtype=torch.float64)
    assert torch.equal(FLOAT64.round_tensor(x), x)
    assert torch.equal(FLOAT32.round_tensor(x), x.float().double())
