"""The float explorer: flip a bit, type a number, step to the neighbour; see what the format makes of it."""
import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from matplotlib.figure import Figure

from course_lib.checked import describe
from course_lib.explorers.base import Explorer, Nonsense, one_of, plain, script, text_of, whole_number
from course_lib.figures.floats import draw_float
from course_lib.floats import BFLOAT16, E2M1, E4M3, E5M2, FLOAT16, FLOAT32, FLOAT64, FloatFormat

_FORMATS = (FLOAT32, FLOAT16, BFLOAT16, E4M3, E5M2, E2M1, FLOAT64)
_PRESETS = (("19303.0890", "19303.0890"), ("0.1", "0.1"), ("65504", "65504"), ("256 + 1", "257"))
_LARGEST_EXPONENT = 400  # decimal; every format ends long before, and 1e999999999 would take all memory


class FloatExplorer(Explorer):
    """One number in one format. `value` is what the format holds, `code` its bits, `form` the format.

    `number` is text (exact: "0.1" is one tenth) or a number; `form` may be any FloatFormat. ValueError, in a sentence,
    for what is no number, and for a number that the format has no code for.
    """

    _esm = script("floats")
    title = "Float explorer"

    def __init__(self, number: str | float = "19303.0890", form: FloatFormat = FLOAT32) -> None:
        if not isinstance(form, FloatFormat):
            raise TypeError(f"FloatExplorer(): form is {describe(form)}; a FloatFormat is asked for.")
        self._formats = {one.name: one for one in (*_FORMATS, form)}
        self.form = form
        self._typed = number if isinstance(number, str) else repr(plain(number))
        self.code = form.encode(_exact(self._typed))
        super().__init__()

    @property
    def value(self) -> float:
        """The number that the bits stand for."""
        return self.form.decode(self.code)

    def do_format(self, name: object) -> None:
        """Hold the number that was typed in another format."""
        form = self._formats[one_of("format", name, self._formats)]
        self.form, self.code = form, _encoded(form, self._typed, "format")

    def do_number(self, text: object) -> None:
        """Hold another number."""
        typed = text_of("number", text)
        self.code, self._typed = _encoded(self.form, typed, "number"), typed

    def do_flip(self, bit: object) -> None:
        """Flip one bit, counted from the sign."""
        place = whole_number("bit", bit, 0, self.form.bits - 1)
        self.code ^= 1 << self.form.bits - 1 - place
        self._typed = repr(self.value)

    def do_step(self, by: object) -> None:
        """Go to the next number above (1) or below (−1)."""
        if not math.isfinite(self.value):
            raise Nonsense("number", f"{self.value} has no neighbours: step from a number.")
        up = whole_number("by", by, -1, 1) > 0
        next_one = self.form.neighbours(self.value)[up]
        if math.isinf(next_one) and self.form.special != "ieee":
            end = "largest" if up else "lowest"
            raise Nonsense("number", f"{self.value!r} is the {end} number of {self.form.name}.")
        self.code, self._typed = self.form.encode(next_one), repr(next_one)

    def drawn(self) -> dict[str, object]:
        groups = [*self.form.pattern(self.code).split(" "), ""][:3]
        return {
            "formats": [*self._formats], "presets": [*_PRESETS], "format": self.form.name, "typed": self._typed,
            "groups": groups, "formula": self.form.formula(self.code), "hex": self._hex(), "kind": self._kind(),
            "spacing": self._spacing(), "others": [self._in(form) for form in self._formats.values()],
        }  # fmt: skip

    def facts(self) -> str:
        held = f"{self._typed} in {self.form.name}: {self.form.pattern(self.code)} ({self._hex()}), {self._kind()}."
        return f"{held}\n{self.form.formula(self.code)}\n{self._spacing()}"

    def figure(self) -> Figure:
        return draw_float(self.form, self.code)

    def _hex(self) -> str:
        return f"0x{self.code:0{-(-self.form.bits // 4)}X}"

    def _kind(self) -> str:
        kind = self.form.kind(self.code)
        return {"nan": "NaN"}.get(kind, kind)

    def _spacing(self) -> str:
        if not math.isfinite(self.value):
            return "It has no neighbours: it is not a finite number."
        return f"Numbers lie {self.form.spacing(self.value)!r} apart here."

    def _in(self, form: FloatFormat) -> dict[str, str]:
        try:
            becomes = form.round(_exact(self._typed))
        except ValueError:
            return {"format": form.name, "becomes": "no code for it", "lost": ""}
        return {"format": form.name, "becomes": repr(becomes), "lost": _lost(_exact(self._typed), becomes)}


def _exact(text: str) -> Fraction | float:
    """The number that a text stands for, exactly; infinities and NaN as floats."""
    try:
        number = Decimal(text.replace("−", "-").replace(" ", ""))
    except InvalidOperation:
        raise Nonsense("number", f"“{text}” is no number; 0.1, -3e-8, inf and nan are some.") from None
    if number.is_nan():  # Decimal knows signalling ones too, which float() refuses
        return math.nan
    if not number.is_finite() or number == 0:
        return float(number)
    if abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise Nonsense("number", f"{text} is beyond every format; up to 1e{_LARGEST_EXPONENT} can be asked for.")
    return Fraction(number)


def _encoded(form: FloatFormat, typed: str, field: str) -> int:
    try:
        return form.encode(_exact(typed))
    except Nonsense:
        raise
    except ValueError as error:
        raise Nonsense(field, str(error)) from None


def _lost(exact: Fraction | float, becomes: float) -> str:
    """How far the format's number is from the one asked for."""
    if isinstance(exact, float):  # 0, an infinity or NaN
        same = exact == becomes or (math.isnan(exact) and math.isnan(becomes))
        return "nothing" if same else "everything"
    if not math.isfinite(becomes):
        return "everything"
    if exact == Fraction(becomes):
        return "nothing"
    off = Fraction(becomes) - exact
    share = abs(off / exact)
    return f"{float(off):.3g} ({float(share):.2g} of it)" if share < 1 else f"{float(off):.3g} (all of it)"
