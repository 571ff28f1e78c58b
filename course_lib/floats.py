"""One model for all float formats: a sign, an exponent and a fraction, whatever their widths.

A *code* is the bits of a float, read as an unsigned integer. `FloatFormat` turns a code into the number that it stands
for and a number into the nearest code, exactly: no step goes through a wider float and rounds a second time.

Sources: IEEE 754-2019, sections 3.3 and 3.4 (what a binary float is and how it is encoded), 4.3.1 (rounding to nearest,
ties to even), 7.4 (overflow); the Open Compute Project's 8-bit Floating Point Specification (OFP8) 1.0 for E4M3 and
E5M2; its Microscaling Formats (MX) Specification 1.0, section 5.3.3, for E2M1. bfloat16 is float32's upper half.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.checked import checked

Special = Literal["ieee", "fn", "fnuz", "finite"]
Overflow = Literal["infinity", "saturate", "nan"]
Kind = Literal["zero", "subnormal", "normal", "infinity", "nan"]

# What a number too large may become, by the format's special codes. The first is the default, and what torch 2.13 does.
_OVERFLOWS: dict[str, tuple[Overflow, ...]] = {
    "ieee": ("infinity", "saturate", "nan"),
    "fn": ("saturate", "nan"),
    "fnuz": ("nan", "saturate"),
    "finite": ("saturate",),
}


class Fields(NamedTuple):
    """The three groups of bits of a float, each as an unsigned integer."""

    sign: int
    exponent: int
    fraction: int


@dataclass(frozen=True)
class FloatFormat:
    """A binary float format of 1 + `exponent_bits` + `fraction_bits` bits.

    A code whose exponent field is e and whose fraction field is f stands for ±1.f × 2^(e − bias), or for
    ±0.f × 2^(1 − bias) where e = 0 (zero and the subnormals). `bias` is 2^(exponent_bits − 1) − 1 unless you say
    otherwise. `special` says which codes are no numbers:

    - "ieee": those with the largest exponent field: ±infinity where the fraction is 0, else NaN, whose payload is the
      fraction (float32, float16, bfloat16, E5M2);
    - "fn": only the two with all other bits 1, NaN (E4M3, torch's float8_e4m3fn);
    - "fnuz": only the one that would be −0, NaN; zero has no sign (torch's float8_e4m3fnuz and float8_e5m2fnuz);
    - "finite": none (E2M1).

    Raises ValueError for widths that leave no number, and for formats with numbers that Python's float cannot hold.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int | None = None
    special: Special = "ieee"

    def __post_init__(self) -> None:
        needed = 1 if self.special == "ieee" else 0  # a fraction tells infinity from NaN
        if self.exponent_bits < 1 or self.fraction_bits < needed or self._largest < 1 << self.fraction_bits:
            raise ValueError(f"FloatFormat(): {self} has no codes left for numbers; more bits are needed.")
        if self.bias is None:
            object.__setattr__(self, "bias", (1 << self.exponent_bits - 1) - 1)  # the way to write into a frozen one
        highest, lowest = (self._largest >> self.fraction_bits) - self.bias, 1 - self.bias - self.fraction_bits
        if highest > 1023 or lowest < -1074 or self.fraction_bits > 52:
            raise ValueError(f"FloatFormat(): {self} has numbers beyond float64; all of them must fit in one.")

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def max(self) -> float:
        """Largest finite number."""
        return self.decode(self._largest)

    @property
    def eps(self) -> float:
        """Spacing relative to a power of two: 2^−fraction_bits. Rounding is off by at most half of it, relatively."""
        return math.ldexp(1.0, -self.fraction_bits)

    @property
    def smallest_normal(self) -> float:
        """Smallest positive number with a full fraction: 2^(1 − bias)."""
        return math.ldexp(1.0, 1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive number, 2^(1 − bias − fraction_bits); without a fraction, the smallest normal one."""
        return self.decode(1)

    def codes(self) -> range:
        """All codes, 0 to 2^bits − 1."""
        return range(1 << self.bits)

    @checked
    def fields(self, code: int) -> Fields:
        """The three groups of bits in `code`. ValueError if it is negative or too wide."""
        if not 0 <= code < 1 << self.bits:
            largest = (1 << self.bits) - 1
            raise ValueError(f"{self.name}: code is {code:#x}; allowed is 0 to {largest:#x} ({self.bits} bits).")
        return self._split(code)

    @checked
    def kind(self, code: int) -> Kind:
        """What `code` stands for: "zero", "subnormal", "normal", "infinity" or "nan"."""
        return self._kind(self.fields(code))

    @checked
    def decode(self, code: int) -> float:
        """The number that `code` stands for, exactly. A NaN's payload stays in `fields(code).fraction`."""
        return self._value(self.fields(code))

    @checked
    def encode(self, value: float | Fraction, overflow: Overflow | None = None) -> int:
        """Code of the number nearest to `value`: an int of any size, a float, a Fraction or a NumPy number.

        A tie goes to the even fraction. Signs are kept, those of zero and NaN too; NaN becomes a quiet NaN.
        `overflow` says what becomes of infinity and of what rounds to more than `max`: "infinity", "saturate" (±max) or
        "nan". The default is what torch 2.13 does: infinity where there is one, else ±max (NaN for "fnuz"). OFP8 allows
        more: ml_dtypes makes a NaN of what is too large for E4M3. ValueError if the format has no code for the result.
        """
        allowed = _OVERFLOWS[self.special]
        if overflow is not None and overflow not in allowed:
            raise ValueError(f"{self.name}: overflow is {overflow!r}; its codes allow {' or '.join(allowed)}.")
        negative, magnitude = _sign_and_magnitude(value)
        if magnitude is math.nan:
            return self._nan(negative)
        code = self._largest + 1 if magnitude is math.inf else self._code(magnitude, round)
        if code > self._largest:
            rule = overflow or allowed[0]
            if rule == "nan":
                return self._nan(negative)
            code = self._largest + (rule == "infinity")
        return code if self.special == "fnuz" and code == 0 else code + negative * self._sign_bit

    @checked
    def round(self, value: float | Fraction, overflow: Overflow | None = None) -> float:
        """The number of this format that is nearest to `value`. Arguments and errors are those of `encode`."""
        return self.decode(self.encode(value, overflow))

    @checked
    def round_tensor(self, x: Float[Tensor, "*shape"], overflow: Overflow | None = None) -> Float[Tensor, "*shape"]:
        """Each element of `x` rounded as by `round`, in x's dtype: what a computation in this format would see.

        Raises ValueError as `encode` does, and if x's dtype cannot hold every number of this format.
        """
        limits = torch.finfo(x.dtype)
        if limits.eps > self.eps or limits.max < self.max or limits.tiny * limits.eps > self.smallest_subnormal:
            raise ValueError(f"round_tensor(): x is {x.dtype}, which cannot hold every {self.name}; use a wider dtype.")
        if self.special == "finite" and x.isnan().any():
            self._nan(False)
        wide = x.double()
        exponent = (torch.frexp(wide).exponent - 1).clamp(min=1 - self.bias)
        spacing = torch.exp2((exponent - self.fraction_bits).double())
        rounded = torch.round(wide / spacing) * spacing  # exact but for torch.round, which takes ties to even
        rounded = rounded + 0.0 if self.special == "fnuz" else rounded  # −0 + 0 is 0
        too_large = torch.full_like(wide, self.round(math.inf, overflow)).copysign(wide)
        return torch.where(rounded.abs() > self.max, too_large, rounded).to(x.dtype)

    @checked
    def spacing(self, value: float | Fraction) -> float:
        """Distance from one number to the next where |value| lies (one ulp). It doubles at each power of two."""
        _, magnitude = _sign_and_magnitude(value)
        if not magnitude <= self.max:
            raise ValueError(f"{self.name}: value is {value}; the spacing is defined from {-self.max} to {self.max}.")
        return float(self._spacing(magnitude))

    @checked
    def neighbours(self, value: float | Fraction) -> tuple[float, float]:
        """The numbers next below and above a finite `value`, neither equal to it; ±infinity where there is none."""
        floor = self._floor(value)
        below = floor - 1 if self._number(floor) == value else floor
        return self._number(below), self._number(floor + 1)

    @checked
    def numbers(self, low: float | Fraction | None = None, high: float | Fraction | None = None) -> list[float]:
        """All finite numbers from `low` to `high`, both included, in rising order; by default all there are."""
        first = -self._largest if low is None else max(-self._largest, -self._floor(-low))
        last = self._largest if high is None else min(self._largest, self._floor(high))
        return [self._number(place) for place in range(first, last + 1)]

    @checked
    def pattern(self, code: int) -> str:
        """The bits of `code`, its three groups apart: "0 0111 000"."""
        sign, exponent, fraction = self.fields(code)
        return f"{sign} {exponent:0{self.exponent_bits}b} {fraction:0{self.fraction_bits}b}"[: self.bits + 2].rstrip()

    @checked
    def formula(self, code: int) -> str:
        """How the fields of `code` make its value: "+1 × 2^(7 − 7) × (1 + 4/8) = 1.5"."""
        sign, exponent, fraction = fields = self.fields(code)
        if self._kind(fields) in ("infinity", "nan"):
            return f"{self.decode(code)}"
        significand = f"({1 if exponent > 0 else 0} + {fraction}/{1 << self.fraction_bits})"
        return f"{'−' if sign else '+'}1 × 2^({max(exponent, 1)} − {self.bias}) × {significand} = {self.decode(code)!r}"

    # Below, a code without its sign bit counts the numbers from zero up: 0, 1, 2, … in the order of their magnitudes.

    @property
    def _sign_bit(self) -> int:
        return 1 << self.bits - 1

    @property
    def _largest(self) -> int:
        """Code of the largest finite number."""
        if self.special == "ieee":
            return ((1 << self.exponent_bits) - 1 << self.fraction_bits) - 1
        return self._sign_bit - (2 if self.special == "fn" else 1)

    def _kind(self, fields: Fields) -> Kind:
        sign, exponent, fraction = fields
        magnitude = exponent << self.fraction_bits | fraction
        if magnitude > self._largest or (self.special == "fnuz" and sign and magnitude == 0):
            return "infinity" if self.special == "ieee" and fraction == 0 else "nan"
        if exponent > 0:
            return "normal"
        return "subnormal" if fraction > 0 else "zero"

    def _split(self, code: int) -> Fields:
        magnitude = code & ~self._sign_bit
        return Fields(code >> self.bits - 1, magnitude >> self.fraction_bits, magnitude & (1 << self.fraction_bits) - 1)

    def _value(self, fields: Fields) -> float:
        sign, exponent, fraction = fields
        significand = fraction + (1 << self.fraction_bits if exponent > 0 else 0)
        magnitude = {"nan": math.nan, "infinity": math.inf}.get(self._kind(fields))
        if magnitude is None:
            magnitude = math.ldexp(significand, max(exponent, 1) - self.bias - self.fraction_bits)
        return -magnitude if sign else magnitude

    def _code(self, magnitude: Fraction, to_integer: Callable[[Fraction], int]) -> int:
        """Code of `magnitude`, counted in steps of the spacing there and made whole by `to_integer`, without an end.

        Steps that reach the next power of two carry into the exponent field by themselves.
        """
        steps = to_integer(magnitude / self._spacing(magnitude))
        return (self._exponent(magnitude) + self.bias - 1 << self.fraction_bits) + steps

    def _exponent(self, magnitude: Fraction) -> int:
        """floor(log2(magnitude)), but not below that of the smallest normal number, where the spacing stays."""
        exponent = 1 - self.bias
        if magnitude > 0:
            guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
            exponent = max(exponent, guess if magnitude >= Fraction(2) ** guess else guess - 1)
        return exponent

    def _spacing(self, magnitude: Fraction) -> Fraction:
        return Fraction(2) ** (self._exponent(magnitude) - self.fraction_bits)

    def _floor(self, value: float | Fraction) -> int:
        """Place of the largest number ≤ value: zero has place 0, the numbers above it 1, 2, …, those below −1, −2, …"""
        negative, magnitude = _sign_and_magnitude(value)
        if magnitude in (math.inf, math.nan):
            raise ValueError(f"{self.name}: value is {value}; a finite number is asked for.")
        if negative:
            return -min(self._code(magnitude, math.ceil), self._largest + 1)
        return min(self._code(magnitude, math.floor), self._largest)

    def _number(self, place: int) -> float:
        magnitude = self._value(self._split(abs(place))) if abs(place) <= self._largest else math.inf
        return -magnitude if place < 0 else magnitude

    def _nan(self, negative: bool) -> int:
        if self.special == "finite":
            raise ValueError(f"{self.name}: value is NaN, for which it has no code; numbers and ±infinity are allowed.")
        if self.special == "fnuz":
            return self._sign_bit
        cleared = (1 << self.fraction_bits - 1) - 1 if self.special == "ieee" else 0  # all but the bit for "quiet"
        return self._sign_bit - 1 - cleared + negative * self._sign_bit


FloatFormat.__init__ = checked(FloatFormat.__init__)  # the dataclass wrote it, so a decorator had no place to stand


def _sign_and_magnitude(value: float | Fraction) -> tuple[bool, Fraction | float]:
    """Whether the sign is −, and |value|: an exact Fraction, or math.inf or math.nan themselves."""
    if not isinstance(value, float):
        return value < 0, Fraction(abs(value))
    magnitude = math.nan if math.isnan(value) else math.inf if math.isinf(value) else Fraction(abs(value))
    return math.copysign(1.0, value) < 0, magnitude


FLOAT64 = FloatFormat("float64", 11, 52)
FLOAT32 = FloatFormat("float32", 8, 23)
FLOAT16 = FloatFormat("float16", 5, 10)
BFLOAT16 = FloatFormat("bfloat16", 8, 7)
E4M3 = FloatFormat("E4M3", 4, 3, special="fn")
E5M2 = FloatFormat("E5M2", 5, 2)
E2M1 = FloatFormat("E2M1", 2, 1, special="finite")
