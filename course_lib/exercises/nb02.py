"""The exercises of notebook 02: counting, rounding to bfloat16, decoding E4M3, blocks of four bits, a safe softmax."""

import math
import numbers

import torch

from course_lib.exercises.engine import case, exercise
from course_lib.floats import BFLOAT16, E2M1, E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64  # noqa: F401 (cases name them)

# ---------------------------------------------------------------- 2.1


@exercise(
    notebook="02",
    hints=[
        "All integers are there as long as neighbours are at most 1 apart. At which power of two do they lie 2 apart?",
        "With f fraction bits and the leading 1, a number has f + 1 significant bits. Which integers need f + 2?",
        "Some formats end before that: one with 3 fraction bits may have 7.5 as its largest number.",
    ],
    why="f fraction bits and the leading 1 hold every integer up to 2^(f + 1). That one is a power of two and exact as "
    "well; the next one needs a bit more. A format with a small range ends before it gets there.",
)
def first_missing_integer(fraction_bits: int, largest: float) -> int:
    """The smallest positive integer that a format cannot hold exactly.

    The format has so many fraction bits, and `largest` is its largest number. Some formats end
    before they lose precision.
    """
    ends = [2 ** (fraction_bits + 1), math.floor(largest)]  # of the precision, of the range
    return min(ends) + 1


first_missing_integer.cases(
    case("BFLOAT16.fraction_bits, BFLOAT16.max", "8 significant bits"),
    "FLOAT16.fraction_bits, FLOAT16.max",
    "FLOAT32.fraction_bits, FLOAT32.max",
    "FLOAT64.fraction_bits, FLOAT64.max",
    "E4M3.fraction_bits, E4M3.max",
    "E5M2.fraction_bits, E5M2.max",
    "E2M1.fraction_bits, E2M1.max",
    case("3, 7.5", "a format of 6 bits"),
    case("4, 15.5", "one that ends at 15.5"),
    "2, 8.0",
    case("3, 7.0", "one that ends at an integer"),
    "4, 12.0",
    "3, 14.0",
)


@first_missing_integer.misconception("Integers go missing long before the largest number: bfloat16 has no 257.")
def beyond_the_largest(fraction_bits, largest):
    return math.floor(largest) + 1


@first_missing_integer.misconception("You forgot the leading 1, which is not stored: one significant bit more.")
def without_the_leading_one(fraction_bits, largest):
    return min(2**fraction_bits, math.floor(largest)) + 1


@first_missing_integer.misconception("That one is still exact: a power of two needs a single bit. Look one further.")
def the_last_exact_one(fraction_bits, largest):
    return min(2 ** (fraction_bits + 1), math.floor(largest))


@first_missing_integer.misconception("Some formats end first: where the largest number is 7.5, 8 is missing.")
def ignores_the_largest(fraction_bits, largest):
    return 2 ** (fraction_bits + 1) + 1


@first_missing_integer.misconception("The sign bit adds no precision: f fraction bits and the leading 1 make f + 1.")
def counts_the_sign(fraction_bits, largest):
    return min(2 ** (fraction_bits + 2), math.floor(largest)) + 1


@first_missing_integer.misconception("Decimal digits are a rule of thumb, rounded down. Count the significant bits.")
def by_decimal_digits(fraction_bits, largest):
    return min(10 ** math.floor((fraction_bits + 1) * math.log10(2)), math.floor(largest)) + 1


@first_missing_integer.accepts
def by_the_spacing(fraction_bits, largest):
    n = 1
    while n <= largest and n * 2**-fraction_bits <= 1:
        n *= 2
    return n + 1 if n <= largest else int(largest) + 1


@first_missing_integer.accepts
def by_eps(fraction_bits, largest):
    eps = 0.5**fraction_bits
    return int(min(2 / eps, largest // 1)) + 1


# ---------------------------------------------------------------- 2.2


@exercise(
    notebook="02",
    hints=[
        "`code >> 16` drops the lower half: that rounds towards zero. When should the upper half be one more?",
        "Add something to `code` before you shift, so that it carries into the upper half exactly when it should. "
        "With 0x8000 every tie goes up. With 0x7FFF every tie goes down.",
        "A tie has to go up where the last bit that stays, `code >> 16 & 1`, is 1. And a NaN must not be rounded.",
    ],
    why="Adding 0x7FFF carries into the upper half when the lower half is above one half; adding the last bit that "
    "stays decides ties. The carry may run through the fraction into the exponent, which is right: codes are in order. "
    "Only a NaN must not pass through the addition, as it could come out as infinity or as −0.",
)
def bfloat16_code(code: int) -> int:
    """The code (16 bits) of the bfloat16 nearest to the float32 with this code (32 bits).

    A tie goes to the even code. Beyond the largest bfloat16 there is infinity; every NaN becomes
    0x7FC0.
    """
    if code & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return (code + 0x7FFF + (code >> 16 & 1)) >> 16


bfloat16_code.cases(
    case("0x4696CE2E", "19303.08984375"),
    case("0x3F800000", "1.0"),
    case("0xC0490FDB", "−π"),
    case("0x43808000", "257, a tie"),
    case("0x43818000", "259, a tie"),
    case("0xC3808000", "−257"),
    "0x43808001",
    "0x43807FFF",
    case("0x3FFFFFFF", "a carry into the exponent"),
    "0xBFFF8000",
    case("0x00000000", "0"),
    case("0x80000000", "−0"),
    case("0x00008000", "a subnormal, a tie"),
    "0x00018000",
    case("0x7F7FFFFF", "the largest float32"),
    "0xFF7FFFFF",
    case("0x7F7F7FFF", "still finite"),
    case("0x7F800000", "infinity"),
    "0xFF800000",
    case("0x7F800001", "a NaN"),
    case("0x7FFFFFFF", "another NaN"),
    "0xFFC01234",
    case("0x7FA00000", "a NaN whose lower half is 0"),
    "0xFFC00000",
    case("0x7F7F8000", "a tie between the largest and infinity"),
)


@bfloat16_code.probe
def in_hexadecimal(candidate, args, kwargs):
    """The type, then the code as hexadecimal digits, which show what a decimal number would hide."""
    code = candidate(*args, **kwargs)
    if not isinstance(code, numbers.Integral):
        return {"type": type(code).__name__, "in hexadecimal": ""}
    code = int.__int__(code) if isinstance(code, int) else int(code)
    return {"type": "int", "in hexadecimal": f"{code:#06x}"}


@bfloat16_code.misconception("You cut the lower half off. Where it is more than one half, the upper half is one more.")
def cuts_off(code):
    return 0x7FC0 if code & 0x7FFFFFFF > 0x7F800000 else code >> 16


@bfloat16_code.misconception("Your ties all go up. To nearest even: 257 goes down to 256, and 259 up to 260.")
def ties_go_up(code):
    return 0x7FC0 if code & 0x7FFFFFFF > 0x7F800000 else (code + 0x8000) >> 16


@bfloat16_code.misconception("Your ties all go down. To nearest even: 257 goes down to 256, but 259 up to 260.")
def ties_go_down(code):
    return 0x7FC0 if code & 0x7FFFFFFF > 0x7F800000 else (code + 0x7FFF) >> 16


@bfloat16_code.misconception("Numbers are right, NaN is not. Rounded, 0x7F800001 is infinity and 0x7FFFFFFF is −0.")
def rounds_nan(code):
    return (code + 0x7FFF + (code >> 16 & 1)) >> 16


@bfloat16_code.misconception("Beyond the largest bfloat16 comes infinity. You stop at the largest, as E4M3 would.")
def saturates(code):
    rounded = bfloat16_code.reference(code)
    return rounded - 1 if rounded & 0x7FFF == 0x7F80 and code & 0x7FFFFFFF != 0x7F800000 else rounded


@bfloat16_code.misconception("A fraction of ones that rounds up carries into the exponent. Yours wraps around to 0.")
def loses_the_carry(code):
    rounded = bfloat16_code.reference(code)
    return code >> 23 << 7 | rounded & 0x7F


@bfloat16_code.misconception("You kept the lower half. Sign, exponent and the first bits of the fraction are above it.")
def lower_half(code):
    return code & 0xFFFF


@bfloat16_code.misconception("You rounded towards +infinity. What is nearest has nothing to do with the sign.")
def rounds_up(code):
    if code & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return code >> 16 if code >> 31 else (code + 0xFFFF) >> 16


@bfloat16_code.accepts
def by_casting(code):
    rounded = torch.tensor([code], dtype=torch.uint32).view(torch.float32).to(torch.bfloat16)
    return 0x7FC0 if rounded.isnan() else rounded.view(torch.uint16).item()


@bfloat16_code.accepts
def by_the_value(code):
    value = FLOAT32.decode(code)
    return 0x7FC0 if math.isnan(value) else BFLOAT16.encode(value)


@bfloat16_code.accepts
def by_the_remainder(code):
    upper, lower = divmod(code, 1 << 16)
    if upper % (1 << 15) >= 0x7F80 and (upper & 0x7F or lower):
        return 0x7FC0
    up = lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)
    return upper + int(up)


# ---------------------------------------------------------------- 2.3


@exercise(
    notebook="02",
    hints=[
        "Take the three fields out first: `code >> 7`, `code >> 3 & 0b1111`, `code & 0b111`.",
        "There are three kinds of codes: NaN, those whose exponent field is 0, and all others.",
        "The largest exponent field holds ordinary numbers, except for one fraction. With exponent field 0 there is no "
        "leading 1, and the exponent is that of field 1.",
    ],
    why="The leading 1 is there unless the exponent field is 0. There the spacing stays what it is at field 1, so that "
    "the numbers go on evenly down to 0. Having no infinity, E4M3 reaches 448 instead of 240.",
)
def decode_e4m3(code: int) -> float:
    """The number that an E4M3 code (8 bits: 1 sign, 4 exponent, 3 fraction; bias 7) stands for.

    E4M3 has no infinity. Its one NaN has all exponent and all fraction bits set, with either sign.
    """
    sign = -1 if code >> 7 else 1
    exponent, fraction = code >> 3 & 0b1111, code & 0b111
    if exponent == 15 and fraction == 7:
        return math.nan
    if exponent == 0:
        return sign * fraction / 8 * 2.0**-6
    return sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


decode_e4m3.cases(
    case("0b0_0111_000", "1"),
    "0b0_0111_101",
    "0b1_1000_010",
    case("0b0_1110_111", "240"),
    case("0b0_1111_000", "the largest exponent field"),
    case("0b0_1111_110", "the largest number"),
    "0b1_1111_101",
    case("0b0_1111_111", "NaN"),
    case("0b1_1111_111", "NaN again"),
    case("0b0_0001_000", "the smallest normal number"),
    case("0b0_0000_111", "the largest subnormal"),
    case("0b1_0000_011", "a subnormal"),
    case("0b0_0000_001", "the smallest subnormal"),
    case("0b0_0000_000", "0"),
    "0b1_0011_111",
    "0b0_0110_001",
)
decode_e4m3.cases(  # and a code of either sign for each exponent field
    *("0b1_0000_000", "0b1_0000_001", "0b1_1110_111", "0b1_1111_110"),
    *(f"0b{sign}_{field:04b}_{(3 * field + sign + 6) % 8:03b}" for field in range(16) for sign in (0, 1)),
)


def _fields(code):
    return (-1 if code >> 7 else 1), code >> 3 & 15, code & 7


def _decode(sign, exponent, fraction):
    """The right answer from the fields."""
    return decode_e4m3.reference((sign < 0) << 7 | exponent << 3 | fraction)


@decode_e4m3.misconception("You forgot the leading 1 of normal numbers: it is not stored, and yet it counts.")
def no_leading_one(code):
    sign, exponent, fraction = _fields(code)
    if exponent == 0 or (exponent, fraction) == (15, 7):
        return _decode(sign, exponent, fraction)
    return sign * fraction / 8 * 2.0 ** (exponent - 7)


@decode_e4m3.misconception("Exponent field 0 has no leading 1. With it there would be no zero: code 0 would be 2^−7.")
def no_subnormals(code):
    sign, exponent, fraction = _fields(code)
    return math.nan if (exponent, fraction) == (15, 7) else sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


@decode_e4m3.misconception("Subnormals go with 2^−6, as field 1 does, not with 2^−7: else there would be a gap.")
def subnormals_one_lower(code):
    sign, exponent, fraction = _fields(code)
    return sign * fraction / 8 * 2.0**-7 if exponent == 0 else _decode(sign, exponent, fraction)


@decode_e4m3.misconception("That is IEEE's rule for the largest exponent field. E4M3 uses it for numbers, up to 448.")
def infinity_and_nan_as_ieee(code):
    sign, exponent, fraction = _fields(code)
    if exponent == 15:
        return math.nan if fraction else sign * math.inf
    return _decode(sign, exponent, fraction)


@decode_e4m3.misconception("One code a sign is NaN: all exponent and fraction bits 1. You read it as 480.")
def nan_is_480(code):
    sign, exponent, fraction = _fields(code)
    return sign * 480.0 if (exponent, fraction) == (15, 7) else _decode(sign, exponent, fraction)


@decode_e4m3.misconception("The bias of 4 exponent bits is 2^3 − 1 = 7, so that field 7 means 2^0. You took 8.")
def bias_eight(code):
    return decode_e4m3.reference(code) / 2


@decode_e4m3.misconception("Floats have a sign bit beside the magnitude. You read the code as two's complement.")
def twos_complement(code):
    return -decode_e4m3.reference(256 - code & 0x7F) if code >> 7 else decode_e4m3.reference(code)


@decode_e4m3.misconception("Three bits count eighths: fraction 7 is 7/8. You divided by 7.")
def sevenths(code):
    sign, exponent, fraction = _fields(code)
    if exponent == 0 or (exponent, fraction) == (15, 7):
        return math.nan if exponent else sign * fraction / 7 * 2.0**-6
    return sign * (1 + fraction / 7) * 2.0 ** (exponent - 7)


@decode_e4m3.misconception("That is E5M2, with five exponent bits. In E4M3 the fraction has three: `code & 0b111`.")
def as_e5m2(code):
    return E5M2.decode(code)


@decode_e4m3.accepts
def by_torch(code):
    return torch.tensor(code, dtype=torch.uint8).view(torch.float8_e4m3fn).item()


@decode_e4m3.accepts
def from_the_bits(code):
    bits = f"{code:08b}"
    exponent, fraction = int(bits[1:5], 2), int(bits[5:], 2)
    if bits[1:] == "1111111":
        return float("nan")
    magnitude = math.ldexp(fraction + 8 * (exponent > 0), max(exponent, 1) - 10)
    return -magnitude if bits[0] == "1" else magnitude


@decode_e4m3.accepts
def by_the_format(code):
    return E4M3.decode(code)


# ---------------------------------------------------------------- 2.4


@exercise(
    notebook="02",
    tolerance=(1e-4, 1e-12),
    hints=[
        "`x.unflatten(-1, (-1, block))` gives the blocks an axis of their own, and `flatten(-2)` takes it away again.",
        "The largest magnitude of a block should land on the largest number of E2M1. What must you divide by?",
        "Divide, round, multiply back. And what is 0 / 0 where a whole block is zero?",
    ],
    why="The scale brings each block's largest magnitude to 6, so that the block uses all that four bits tell apart. "
    "An outlier costs precision in its own block alone. A block of zeros has scale 0, and 0 / 0 is NaN: it has to stay "
    "0.",
)
def quantise_blocks(x: torch.Tensor, block: int) -> torch.Tensor:
    """What is left of x when it is stored in E2M1, with a scale for each `block` neighbours.

    Blocks lie along the last axis. A block's scale is its largest magnitude / 6, kept in full
    precision. Return what the stored numbers stand for: x's shape, in x's units.
    `E2M1.round_tensor(t)` rounds to 0, ±0.5, ±1, ±1.5, ±2, ±3, ±4, ±6.
    """
    blocks = x.unflatten(-1, (-1, block))
    scale = blocks.abs().amax(-1, keepdim=True) / E2M1.max
    levels = E2M1.round_tensor((blocks / scale).nan_to_num())
    return (levels * scale).flatten(-2)


quantise_blocks.cases(
    "torch.randn(32), 16",
    case("torch.randn(3, 32), 8", "a matrix"),
    case("torch.randn(2, 3, 8) * 0.02, 4", "a batch of matrices"),
    case("torch.cat([torch.randn(8) * 0.01, torch.tensor([5.0]), torch.randn(7)]), 4", "an outlier"),
    case("-torch.arange(1.0, 17.0), 8", "negative numbers"),
    case("torch.cat([torch.zeros(4), torch.randn(4)]), 4", "a block of zeros"),
    case("torch.zeros(2, 8), 8", "zeros"),
    case("torch.tensor([0.3, -7.0, 1e-3, 0.0]), 1", "blocks of one"),
    case("torch.randn(4, 16) * torch.tensor([[1e-3], [1.0], [30.0], [4e3]]), 16", "rows of different size"),
    case("torch.randn(16, 3).T, 4", "a transpose"),
    case("torch.full((4,), 1e-7), 4", "tiny numbers"),
)


def _quantised(x, block, scale_of):
    """Right but for the scale, which `scale_of` computes from the blocks."""
    blocks = x.unflatten(-1, (-1, block))
    scale = scale_of(blocks)
    levels = E2M1.round_tensor((blocks / scale).nan_to_num(posinf=math.inf, neginf=-math.inf))
    return (levels * scale).flatten(-2)


def _largest(blocks):
    return blocks.abs().amax(-1, keepdim=True)


@quantise_blocks.misconception("You took one scale for all of x. Each block has its own, so that outliers stay local.")
def one_scale(x, block):
    return _quantised(x, block, lambda blocks: blocks.abs().max() / 6)


@quantise_blocks.misconception("You took one scale for each row. The blocks are smaller: `block` neighbours each.")
def one_scale_a_row(x, block):
    return _quantised(x, block, lambda blocks: blocks.abs().amax((-2, -1), keepdim=True) / 6)


@quantise_blocks.misconception("You took the largest number, not the largest magnitude. −7 needs room as much as 7.")
def signed_largest(x, block):
    return _quantised(x, block, lambda blocks: blocks.amax(-1, keepdim=True) / 6)


@quantise_blocks.misconception("Those are the stored levels. Multiply by the scale to come back to x's units.")
def not_scaled_back(x, block):
    blocks = x.unflatten(-1, (-1, block))
    return E2M1.round_tensor((blocks / (_largest(blocks) / 6)).nan_to_num()).flatten(-2)


@quantise_blocks.misconception("You scaled the largest magnitude to 1. E2M1 reaches 6; below 1 it has only 0 and 0.5.")
def largest_to_one(x, block):
    return _quantised(x, block, _largest)


@quantise_blocks.misconception("7 is the largest four-bit integer. The largest E2M1 number is 6.")
def as_an_integer(x, block):
    return _quantised(x, block, lambda blocks: _largest(blocks) / 7)


@quantise_blocks.misconception("A power of two is the scale of MXFP4. Here it is exactly the largest magnitude / 6.")
def power_of_two(x, block):
    return _quantised(x, block, lambda blocks: torch.exp2(_largest(blocks).log2().floor() - 2))


@quantise_blocks.misconception("A block of zeros has scale 0, and 0 / 0 is NaN. It should stay 0.")
def zeros_become_nan(x, block):
    blocks = x.unflatten(-1, (-1, block))
    return torch.where(_largest(blocks) > 0, quantise_blocks.reference(x, block).view_as(blocks), math.nan).flatten(-2)


@quantise_blocks.misconception("Your blocks take every so many numbers. Neighbours should share a scale.")
def strided_blocks(x, block):
    blocks = x.unflatten(-1, (block, -1))
    scale = blocks.abs().amax(-2, keepdim=True) / 6
    return (E2M1.round_tensor((blocks / scale).nan_to_num()) * scale).flatten(-2)


@quantise_blocks.misconception("You rounded without a scale. Small numbers vanish then, and all beyond 6 become 6.")
def without_scale(x, block):
    return E2M1.round_tensor(x)


@quantise_blocks.accepts
def block_by_block(x, block):
    result = torch.empty_like(x)
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block]
        scale = part.abs().max(dim=-1, keepdim=True).values / 6
        scale[scale == 0] = 1
        result[..., start : start + block] = E2M1.round_tensor(part / scale) * scale
    return result


@quantise_blocks.accepts
def with_a_table(x, block):
    """Nearest level from a table; ties do not occur in the cases."""
    table = torch.tensor(E2M1.numbers(), dtype=torch.float64)
    blocks = x.reshape(-1, block).double()
    scale = (blocks.abs().amax(1, keepdim=True) / 6).clamp(min=1e-30)
    nearest = (blocks / scale)[..., None].sub(table).abs().argmin(-1)
    return (table[nearest] * scale).reshape(x.shape).to(x.dtype)


# ---------------------------------------------------------------- 2.5


@exercise(
    notebook="02",
    fixed=("dtype",),
    tolerance=(1e-5, 1e-10),
    hints=[
        "exp(12) is too large for float16, exp(89) for float32. Which number may you subtract from a whole row?",
        "Convert once at the beginning and once at the end. What lies between should see float32 only.",
    ],
    why="The largest score of a row is subtracted first: it cancels, and the largest exponential is exp(0) = 1, so "
    "nothing overflows. In float32 neither the differences nor the sum lose what 8 bits would. One rounding at the end "
    "is all that the low precision costs.",
)
def stable_softmax(scores: torch.Tensor) -> torch.Tensor:
    """exp(scores) / sum of exp(scores) along the last axis, in the dtype of the scores.

    All arithmetic is float32. Scores may be bfloat16, float16 or float32, and so large that exp
    overflows. −inf marks a masked score; no row is masked throughout.
    """
    wide = scores.float()
    weights = torch.exp(wide - wide.amax(-1, keepdim=True))
    return (weights / weights.sum(-1, keepdim=True)).to(scores.dtype)


stable_softmax.cases(
    "torch.randn(3, 5)",
    case("torch.tensor([10.0, 11.0, 12.0], dtype=torch.float16)", "exp(12) overflows float16"),
    case("torch.tensor([[88.0, 89.0, 90.0], [-90.0, -90.0, -89.0]])", "exp(90) overflows float32"),
    case("(torch.randn(2, 4, 64) * 5).bfloat16()", "bfloat16"),
    case("(torch.randn(4, 300) * 0.1).bfloat16()", "long rows"),
    case("(torch.randn(3, 3, 7) * 3).half()", "float16"),
    case("torch.randn(5, 5).masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf).bfloat16()", "a causal mask"),
    case("torch.tensor([[300.0, 299.0], [-300.0, -299.5]], dtype=torch.bfloat16)", "rows far apart"),
    case("torch.zeros(2, 1024, dtype=torch.bfloat16)", "equal scores"),
    case("torch.tensor([[7.0]], dtype=torch.float16)", "a single score"),
    case("torch.tensor([1000.0, 996.0], dtype=torch.float16)", "exp(1000) overflows float64"),
    case("torch.tensor([0.0, 0.0, 300.0])", "one far above the mean"),
)


def _normalised(weights):
    return weights / weights.sum(-1, keepdim=True)


@stable_softmax.misconception("exp(89) is infinite even in float32. Subtract the row's largest score: it cancels.")
def without_shift(scores):
    return _normalised(scores.float().exp()).to(scores.dtype)


@stable_softmax.misconception("You computed in the dtype of the scores, and rounded at every step. Convert to float32.")
def in_low_precision(scores):
    return _normalised((scores - scores.amax(-1, keepdim=True)).exp())


@stable_softmax.misconception("You rounded the exponentials before you summed them. Round once, at the very end.")
def rounds_before_the_sum(scores):
    wide = scores.float()
    return _normalised((wide - wide.amax(-1, keepdim=True)).exp().to(scores.dtype))


@stable_softmax.misconception("The values are right, but they come back as float32. Return the dtype of the scores.")
def stays_wide(scores):
    return torch.softmax(scores.float(), -1)


@stable_softmax.misconception("You subtracted the largest score of all rows. A row far below it underflows to 0 / 0.")
def one_shift_for_all(scores):
    wide = scores.float()
    return _normalised((wide - wide.max()).exp()).to(scores.dtype)


@stable_softmax.misconception("You normalised along the first axis. Each row, along the last one, should sum to 1.")
def along_the_first_axis(scores):
    return torch.softmax(scores.float(), 0).to(scores.dtype)


@stable_softmax.misconception("Clamping keeps exp finite, but it makes all large scores equal. Subtract the maximum.")
def clamps(scores):
    return _normalised(scores.float().clamp(max=80).exp()).to(scores.dtype)


@stable_softmax.misconception("Dividing by the largest score changes how far scores lie apart. Subtract it.")
def divides_by_the_largest(scores):
    wide = scores.float()
    return _normalised((wide / wide.amax(-1, keepdim=True)).exp()).to(scores.dtype)


@stable_softmax.accepts
def with_a_dtype(scores):
    return torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)


@stable_softmax.accepts
def by_logsumexp(scores):
    wide = scores.to(torch.float32)
    return (wide - wide.logsumexp(dim=-1, keepdim=True)).exp().to(scores.dtype)


@stable_softmax.accepts
def row_by_row(scores):
    rows = [torch.exp(row - row.max()) for row in scores.float().reshape(-1, scores.shape[-1])]
    return torch.stack([row / row.sum() for row in rows]).reshape(scores.shape).to(scores.dtype)
