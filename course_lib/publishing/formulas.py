"""Formulas as MathML, which browsers draw themselves: no script, no network.

latex2mathml forgives much: it shows an unknown command by its name, drops an environment that it does not know, and
leaves out what a fraction lacks. A slide must not show that, so what it returns is looked through here.
"""
import re
from xml.etree import ElementTree

ENVIRONMENTS = {"array", "cases", "align", "align*", "aligned", "split", "substack"} | {
    f"{kind}matrix{star}" for kind in ("", "p", "b", "B", "v", "V", "small") for star in ("", "*")
}
PARTS = dict.fromkeys(("mfrac", "msub", "msup", "munder", "mover", "mroot"), 2) | {"msubsup": 3, "munderover": 3}
MATHML = "{http://www.w3.org/1998/Math/MathML}"


class FormulaError(Exception):
    """A formula cannot be converted; the message is the reason, without the formula."""


def mathml(tex: str, block: bool = False) -> str:
    """The formula as a `<math>` element, its TeX kept as `alttext`; raises FormulaError where a part would be lost."""
    from latex2mathml.converter import convert_to_element

    _refuse_what_gets_lost(tex)
    understood = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{split}", tex)  # the same table under a name that it knows
    try:
        math = convert_to_element(understood, display="block" if block else "inline")
    except Exception as error:  # its errors share no base class of their own, and most have no text
        raise FormulaError(_in_words(type(error).__name__)) from None
    math.set("alttext", " ".join(tex.split()))
    text = ElementTree.tostring(math, encoding="unicode")
    # The converter writes characters as entities (`&#x000B7;`), which ElementTree takes for text.
    text = re.sub(r"&amp;(#x[0-9A-Fa-f]+;)", r"&\1", text).replace('"negativethinmathspace"', '"-0.167em"')
    _refuse_what_got_lost(ElementTree.fromstring(text))
    return text


def _refuse_what_gets_lost(tex: str) -> None:
    """What the converter would leave out without a word."""
    if not tex.strip():
        raise FormulaError("it is empty")
    braces = re.sub(r"\\.", "", tex, flags=re.DOTALL)
    if braces.count("{") != braces.count("}"):
        raise FormulaError("its braces do not match")
    begun, ended = (sorted(re.findall(rf"\\{word}\{{([^}}]*)\}}", tex)) for word in ("begin", "end"))
    if begun != ended:
        raise FormulaError("its environments do not match")
    for name in begun:
        if name not in ENVIRONMENTS:
            raise FormulaError(f"the environment {name!r} is unknown")


def _refuse_what_got_lost(math: ElementTree.Element) -> None:
    """What the converter shows as it came, or with a part missing."""
    for element in math.iter():
        tag, text = element.tag.removeprefix(MATHML), " ".join((element.text or "").split())
        if "\\" in text:
            raise FormulaError(f"{text} is unknown")
        if text == "&" or element.get("linebreak"):
            raise FormulaError(f"{'an &' if text else 'a line break'} stands outside of a table")
        if len(element) < PARTS.get(tag, 0):
            raise FormulaError(f"a part is missing ({tag})")


def _in_words(error: str) -> str:
    """`ExtraLeftOrMissingRightError` as "extra left or missing right"."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", error.removesuffix("Error")).lower()
