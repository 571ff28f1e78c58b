"""einops' own errors, in one line that is the same on every run, and the character of the pattern where they arise."""
import math
import re
from itertools import pairwise

_NAMES_IN_BRACES = re.compile(r"\{((?:'[^']*'(?:, )?)+)\}")
_QUOTED = re.compile(r"[\"'](\w+)[\"']")


def said(error: Exception) -> str:
    """What einops says, without the call that it repeats: its last line, sets of names in order."""
    if isinstance(error, ValueError) and "unpack" in str(error):
        return "A pattern has exactly one -> between what comes in and what goes out."
    if isinstance(error, ZeroDivisionError):
        return "An axis cannot have size 0 here."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = ": ".join(lines[-2:]) if "".join(lines[-2:]).startswith("Invalid axis identifier") else lines[-1]
    line = _NAMES_IN_BRACES.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", line)
    return line.replace("should should", "should") + ("" if line.endswith(".") else ".")


def place(error: Exception, pattern: str, shape: tuple[int, ...], sizes: dict[str, int]) -> int:
    """Index of the character in the pattern at which the error arises; its length stands for "after the end"."""
    text = str(error)
    if isinstance(error, ValueError) and "unpack" in text:
        arrows = [found.start() for found in re.finditer("->", pattern)]
        return arrows[1] if len(arrows) > 1 else len(pattern)
    if "duplicate" in text:
        return _second_use(pattern, _QUOTED.search(text.splitlines()[-1])[1])
    if names := _names_of(text):
        return min(_first(pattern, name, text) for name in names)
    if found := re.search("Unknown character '(.)'", text):
        return pattern.index(found[1])
    if found := re.search(r"Invalid axis identifier: (\S+)", text):
        return max(pattern.replace("...", "\N{HORIZONTAL ELLIPSIS}").find(found[1]), 0)
    if "llipsis" in text:
        return _dots(pattern)
    if "racket" in text or "parenthes" in text:
        return _bracket(pattern)
    if "anonymous" in text:
        return next((found.start() for found in re.finditer(r"\b\d+\b", pattern) if found[0] != "1"), 0)
    if "mismatch" in text or "modulo" in text:
        return _group(pattern, shape, sizes)
    if "expected" in text:  # another number of dimensions: where the first axis too many stands, or the one missing
        left = _groups(pattern)
        return left[len(shape)][0] if len(left) > len(shape) else len(pattern.split("->")[0].rstrip())
    return 0


def _names_of(text: str) -> list[str]:
    """The axes that the last line of an error names."""
    last = text.splitlines()[-1]
    if found := _NAMES_IN_BRACES.search(last):
        return re.findall(r"'([^']*)'", found[1])
    found = re.search(r"Axis (\w+) is not used", last)
    return [found[1]] if found else []


def _first(pattern: str, name: str, text: str) -> int:
    start = pattern.index("->") if "right side" in text and "->" in pattern else 0
    found = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(pattern, start)
    return found.start() if found else len(pattern)


def _second_use(pattern: str, name: str) -> int:
    """Where a name stands for the second time on one side."""
    arrow = pattern.find("->")
    uses = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", pattern)]
    return next((later for first, later in pairwise(uses) if (first < arrow) == (later < arrow)), 0)


def _bracket(pattern: str) -> int:
    """The bracket that opens inside another one, closes nothing, or is never closed."""
    opened = None
    for index, letter in enumerate(pattern):
        if letter == "(":
            if opened is not None:
                return index
            opened = index
        elif letter == ")":
            if opened is None:
                return index
            opened = None
        elif pattern.startswith("->", index) and opened is not None:
            return opened
    return opened or 0


def _dots(pattern: str) -> int:
    uses = [found.start() for found in re.finditer(r"\.+", pattern.split("->")[0])]
    return uses[-1] if uses else max(pattern.find("."), 0)


def _groups(pattern: str) -> list[tuple[int, list[str]]]:
    """Where each axis of the input begins in the pattern, and the names in it."""
    left = pattern.split("->")[0]
    return [(found.start(), re.findall(r"\w+", found[0])) for found in re.finditer(r"\([^)]*\)|\w+|\.\.\.", left)]


def _group(pattern: str, shape: tuple[int, ...], sizes: dict[str, int]) -> int:
    """The first axis of the input whose size does not fit the sizes that were given."""
    for (start, names), size in zip(_groups(pattern), shape, strict=False):
        known = [sizes[name] if name in sizes else int(name) for name in names if name in sizes or name.isdigit()]
        product = math.prod(known)
        if known and (product == 0 or size % product or (len(known) == len(names) and product != size)):
            return start
    return 0
