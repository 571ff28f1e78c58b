"""The first difference between two observations, as a sentence.

The order is fixed: type, shape, dtype, device, what the exercise fixes besides (aliasing, contiguity, strides,
requires_grad), then value, then the inputs afterwards.
"""

import math
from dataclasses import dataclass

import torch

from course_lib.exercises.engine.freeze import Array, Atom, Items, Opaque, Table
from course_lib.exercises.engine.observe import Observation

FIXABLE = frozenset({"dtype", "aliasing", "contiguity", "strides", "requires_grad"})

# (relative, absolute) tolerance of float results: a few roundings of the dtype.
_TOLERANCE = {"float64": (1e-7, 1e-9), "float32": (1e-5, 1e-6), "float16": (2e-3, 1e-4), "bfloat16": (1.6e-2, 1e-3)}
_PYTHON_TOLERANCE = (1e-9, 0.0)


@dataclass(frozen=True)
class Rules:
    """What an exercise compares: which properties it fixes, and its own (relative, absolute) tolerance or None."""

    fixed: frozenset[str] = frozenset()
    tolerance: tuple[float, float] | None = None


@dataclass(frozen=True)
class Difference:
    """`kind` is "type", "shape", "value", …; `text` continues the sentence "storage_position((4, 1), (1, 2)) …"."""

    kind: str
    text: str


def difference(got: Observation, want: Observation, rules: Rules) -> Difference | None:
    """What a learner should be told first, or None where `got` is as good as `want`."""
    if got.raised or want.raised:
        return _exceptions(got, want)
    found = _values(got.result, want.result, rules, "")
    moved = next((name for name in got.moved if name not in want.moved), None)
    if moved and (found is None or found.kind in ("aliasing", "value")):
        text = f"gave {moved} another storage: whoever holds a view of it does not see the change. Write into it."
        return Difference("aliasing", text)
    if found:
        return found
    for (name, after), (_, expected) in zip(got.inputs, want.inputs, strict=False):
        if found := _values(after, expected, Rules(FIXABLE - {"aliasing"}), ""):
            return Difference("inputs", f"left its input {name} changed: it {_past(found.text)}")
    return None


def _exceptions(got: Observation, want: Observation) -> Difference | None:
    if want.raised is None:
        return Difference("error", f"raised {got.raised.type.__name__}: {got.raised.text}")
    name = want.raised.type.__name__
    if got.raised is None:
        return Difference("no error", f"gave {say(got.result)}, expected it to raise {name}")
    if not issubclass(got.raised.type, want.raised.type):
        return Difference("error", f"raised {got.raised.type.__name__}, expected {name}")
    return None


def _values(got: object, want: object, rules: Rules, path: str) -> Difference | None:
    """The first difference between two frozen values; `path` leads to them inside the result."""
    if found := _kinds(got, want, path):
        return Difference("type", _at(path) + found)
    if isinstance(want, Array):
        return _arrays(got, want, rules, path)
    if isinstance(want, Table):
        return _tables(got, want, rules, path)
    if isinstance(want, Items):
        if len(got.items) != len(want.items):
            text = f"gave {_count(len(got.items))}, {say(got)}, expected {len(want.items)}, {say(want)}"
            return Difference("length", _at(path) + text)
        pairs = enumerate(zip(got.items, want.items, strict=True))
        parts = (_values(a, b, rules, f"{path}[{i}]") for i, (a, b) in pairs)
        found = next((part for part in parts if part), None)
        if found and found.kind == "value" and _simple(got) and _simple(want):  # a short list reads best as a whole
            return Difference("value", f"{_at(path)}gave {say(got)}, expected {say(want)}")
        return found
    if _atoms_equal(got.value, want.value, rules.tolerance or _PYTHON_TOLERANCE):
        return None
    return Difference("value", f"{_at(path)}gave {say(got)}, expected {say(want)}")


def _kinds(got: object, want: object, path: str) -> str | None:
    if isinstance(got, Opaque) or isinstance(want, Opaque):
        return f"gave {_a(got.kind)}, expected {_a(want.kind)}"
    same = got.kind == want.kind or {got.kind, want.kind} == {"list", "tuple"}
    if same and type(got) is type(want):
        return None
    if (got.kind, want.kind) == ("int", "float"):  # an int may stand for an equal float
        return None if got.value == want.value else f"gave {say(got)}, expected {say(want)}"
    if got.kind == "None":
        question = "" if path else ". Is a `return` missing in front of the result?"
        return f"gave None, expected {_a(want.kind, want)}{question}"
    return f"gave {_a(got.kind, got)}, expected {_a(want.kind, want)}"


def _arrays(got: Array, want: Array, rules: Rules, path: str) -> Difference | None:
    where = _at(path)
    if got.shape != want.shape:
        return Difference("shape", f"{where}gave shape {got.shape}, expected {want.shape}")
    if got.dtype != want.dtype and ("dtype" in rules.fixed or not _convertible(got.dtype, want.dtype)):
        return Difference("dtype", f"{where}gave dtype {got.dtype}, expected {want.dtype}")
    for name in ("device", "layout"):
        if getattr(got, name) != getattr(want, name):
            return Difference(name, f"{where}gave {name} {getattr(got, name)}, expected {getattr(want, name)}")
    if found := _fixed(got, want, rules.fixed):
        return Difference(found[0], where + found[1])
    if found := _elements(got, want, rules.tolerance):
        return Difference("value", where + found)
    if "requires_grad" in rules.fixed and (got.grad is None) != (want.grad is None):
        return Difference("grad", f"{where}gave .grad {say(got.grad)}, expected {say(want.grad)}")
    if got.grad is not None and want.grad is not None:
        return _arrays(got.grad, want.grad, rules, f"{path}.grad")
    return None


def _fixed(got: Array, want: Array, fixed: frozenset[str]) -> tuple[str, str] | None:
    if "aliasing" in fixed:
        if got.same_object_as != want.same_object_as:
            wanted = f"the very tensor {want.same_object_as}" if want.same_object_as else "another tensor object"
            came = f"the input {got.same_object_as} itself" if got.same_object_as else "a new tensor object"
            return "aliasing", f"gave {came}, expected {wanted}"
        if got.shares != want.shares:
            if not got.shares:
                return "aliasing", f"gave a copy: it has a storage of its own, expected a view of {want.shares[0]}"
            wanted = f"a view of {want.shares[0]}" if want.shares else "a copy with a storage of its own"
            return "aliasing", f"gave a tensor that shares the storage of {got.shares[0]}, expected {wanted}"
    if "contiguity" in fixed and got.contiguous != want.contiguous:
        came, wanted = ("contiguous" if a.contiguous else "not contiguous" for a in (got, want))
        return "contiguity", f"gave a tensor that is {came}, expected one that is {wanted}"
    if "strides" in fixed and got.strides != want.strides:
        return "strides", f"gave strides {got.strides}, expected {want.strides}"
    if "requires_grad" in fixed and got.requires_grad != want.requires_grad:
        return "requires_grad", f"gave requires_grad={got.requires_grad}, expected {want.requires_grad}"
    return None


def _elements(got: Array, want: Array, tolerance: tuple[float, float] | None) -> str | None:
    if want.values is None or got.values is None:  # nothing to read: a meta tensor
        return None
    a, b = torch.as_tensor(got.values), torch.as_tensor(want.values)
    if not (a.is_floating_point() or b.is_floating_point() or a.is_complex()):
        wrong = a.to(torch.int64) != b.to(torch.int64)
    else:
        # What was asked for decides, not what came: 16 bits do not buy an answer 16 bits of patience.
        asked = "float32" if (got.dtype, want.dtype) == ("float32", "float64") else want.dtype
        relative, absolute = tolerance or _TOLERANCE.get(asked, (0.0, 0.0))
        wide = torch.complex128 if a.is_complex() else torch.float64
        a, b = a.to(wide), b.to(wide)
        wrong = ~torch.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True)
    if not wrong.any():
        return None
    if a.numel() <= 6:
        came, wanted = _told_apart(a, b)
        return f"gave {came}, expected {wanted}"
    first = tuple(wrong.nonzero()[0].tolist())
    count = f"{int(wrong.sum())} of {wrong.numel()} differ" + (", this one first" if wrong.sum() > 1 else "")
    came, wanted = _told_apart(a[first], b[first])
    return f"gave {came} at {list(first)}, expected {wanted} ({count})"


def _tables(got: Table, want: Table, rules: Rules, path: str) -> Difference | None:
    missing = [key for key in want.rows if key not in got.rows]
    extra = [key for key in got.rows if key not in want.rows]
    if missing or extra:
        text = f"has no entry {say(missing[0])}" if missing else f"has an entry {say(extra[0])} that was not asked for"
        return Difference("keys", _at(path) + text)
    parts = (_values(got.rows[key], want.rows[key], rules, _entry(path, key)) for key in want.rows)
    return next((part for part in parts if part), None)


def _entry(path: str, key: object) -> str:
    """The path to an entry. The keys of a probe's own dict are words for the learner and stand as they are."""
    return str(key.value) if not path and isinstance(key, Atom) and key.kind == "str" else f"{path}[{say(key)}]"


def _convertible(a: str, b: str) -> bool:
    """Whether two dtypes may stand for the same numbers where the dtype is not fixed."""
    return not any(name.startswith(("bool", "complex", "float8")) for name in (a, b))


def _atoms_equal(got: object, want: object, tolerance: tuple[float, float]) -> bool:
    if isinstance(want, float):
        if math.isnan(want) or math.isnan(got):
            return math.isnan(want) and math.isnan(got)
        return math.isclose(got, want, rel_tol=tolerance[0], abs_tol=tolerance[1])
    return got == want


def say(frozen: object, most: int = 70) -> str:
    """A frozen value as a learner would write it, cut where it is long."""
    text = _say(frozen)
    return text if len(text) <= most else text[: most - 1] + "…"


def _say(frozen: object) -> str:
    if frozen is None:
        return "None"
    if isinstance(frozen, Atom):
        if frozen.kind == "int" and frozen.value.bit_length() > 300:  # Python refuses to write out the longest
            return f"an int of about {frozen.value.bit_length() * 0.30103:,.0f} digits"
        return str(frozen.value) if frozen.kind in ("dtype", "device") else repr(frozen.value)
    if isinstance(frozen, Items):
        left, right = {"list": "[]", "tuple": "()", "set": "{}"}[frozen.kind]
        inner = ", ".join(_say(item) for item in frozen.items[:20])
        return left + inner + ("," if frozen.kind == "tuple" and len(frozen.items) == 1 else "") + right
    if isinstance(frozen, Table):
        return "{" + ", ".join(f"{_say(key)}: {_say(value)}" for key, value in [*frozen.rows.items()][:8]) + "}"
    if isinstance(frozen, Array):
        return f"{_a(frozen.kind)} of shape {frozen.shape} and dtype {frozen.dtype}"
    return _a(frozen.kind)


def _told_apart(a: torch.Tensor, b: torch.Tensor) -> tuple[str, str]:
    """Both in six digits, or in as many more as it takes to see where they differ."""
    texts = [(_numbers(a.tolist(), digits), _numbers(b.tolist(), digits)) for digits in (6, 9, 17)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def _numbers(part: object, digits: int) -> str:
    if isinstance(part, list):
        return f"[{', '.join(_numbers(p, digits) for p in part)}]"
    return f"{part:.{digits}g}" if isinstance(part, float) else str(part)


def _simple(frozen: object) -> bool:
    return len(frozen.items) <= 8 and all(isinstance(item, Atom) for item in frozen.items)


def _a(kind: str, frozen: object = None) -> str:
    shown = f" ({say(frozen, 40)})" if isinstance(frozen, Atom | Items) and kind != "None" else ""
    return kind if kind == "None" else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}{shown}"


def _at(path: str) -> str:
    return f"— {path}: " if path else ""


def _count(number: int) -> str:
    return f"{number} element" + ("" if number == 1 else "s")


def _past(text: str) -> str:
    return text.replace("gave ", "has ", 1)
