"""Freezing: what a learner's code handed over, as plain data that can be compared without asking that code again.

Everything here reads an object through its base type (`int.__int__`, `list.__iter__`, …), never through methods that
the learner may have overridden: an `__eq__` that always says yes or a `__repr__` that raises is never called.
"""

import dataclasses
from dataclasses import dataclass, field

import numpy as np
import torch

MOST_PARTS = 10_000  # of a nested result: more than any exercise asks for, and a list that contains itself ends here
MOST_ELEMENTS = 4_000_000  # of a tensor whose values are kept; a larger one differs in shape already


@dataclass(frozen=True)
class Atom:
    """A number, text, None, dtype or device: `kind` is the word for its type, `value` an exact built-in object."""

    kind: str
    value: object


@dataclass(frozen=True)
class Items:
    """A list or tuple (both kind "list" or "tuple", compared alike), or a set."""

    kind: str
    items: tuple


@dataclass(frozen=True)
class Table:
    """A dict: frozen values under keys that are frozen as well."""

    kind: str
    rows: dict


@dataclass(frozen=True)
class Array:
    """A tensor or NumPy array: its metadata and a copy of its values (None where there are none to read)."""

    kind: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    layout: str
    strides: tuple[int, ...] | None
    contiguous: bool
    requires_grad: bool
    values: torch.Tensor | np.ndarray | None = field(repr=False)
    shares: tuple[str, ...] = ()  # names of the inputs whose storage it shares
    same_object_as: str | None = None  # the input that it is
    grad: "Array | None" = None


@dataclass(frozen=True)
class Opaque:
    """Anything else. Two opaque things are never equal."""

    kind: str


Span = tuple[int, int]  # first address of a storage, and the one behind its last


def freeze(value: object, inputs: "list[tuple[str, torch.Tensor, Span]] | None" = None) -> object:
    """`value` as Atoms, Items, Tables and Arrays. `inputs` are (name, tensor, span) to recognise shared memory."""
    return _Freezer(inputs or []).freeze(value, 0)


def kind_of(value: object) -> str:
    """The word for a value's type in a sentence to a learner: "int", "list", "Tensor", "generator"."""
    cls = type(value)
    for base, word in _WORDS:
        if issubclass(cls, base):
            return word
    return cls.__name__


_WORDS = [
    (bool | np.bool_, "bool"),
    (int | np.integer, "int"),
    (float | np.floating, "float"),
    (complex | np.complexfloating, "complex"),
    (str, "str"),
    (bytes, "bytes"),
    (torch.nn.Module, "Module"),
    (torch.Tensor, "Tensor"),
    (np.ndarray, "NumPy array"),
    (list, "list"),
    (tuple, "tuple"),
    (set | frozenset, "set"),
    (dict, "dict"),
    (type(None), "None"),
    (torch.dtype, "dtype"),
    (torch.device, "device"),
    (type, "class"),
]


def span_of(tensor: torch.Tensor) -> Span:
    """Where a tensor's storage lies in memory; (0, 0) where it has none (meta, sparse, empty)."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes() if storage.data_ptr() else 0
    except (RuntimeError, NotImplementedError):
        return 0, 0


def _fits(tensor: torch.Tensor) -> bool:
    """Whether all elements lie inside the storage; one that was shrunk by hand would crash whoever reads it."""
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.numel() == 0:
        return True
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    return (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _length(value: object) -> int:
    base = next(base for base in (list, tuple, set, frozenset, dict) if issubclass(type(value), base))
    return base.__len__(value)


def tensors_in(value: object, name: str, depth: int = 0) -> list[tuple[str, torch.Tensor]]:
    """The tensors in an input, with names as the learner would write them."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if depth > 3 or not isinstance(value, list | tuple | dict):
        return []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for key, part in pairs for found in tensors_in(part, f"{name}[{key!r}]", depth + 1)]


class _Freezer:
    def __init__(self, inputs: list[tuple[str, torch.Tensor, Span]]):
        self.inputs, self.parts = inputs, 0

    def freeze(self, value: object, depth: int) -> object:
        self.parts += 1
        kind = kind_of(value)
        if depth > 8 or self.parts > MOST_PARTS:
            return Opaque("structure with too many parts")
        atom = _ATOMS.get(kind)
        if atom is not None:
            return Atom(kind, atom(value))
        if kind == "Tensor":
            return self._tensor(value, depth)
        if kind == "Module":
            state = {**dict(value.named_parameters()), **dict(value.named_buffers())}
            return Table(type(value).__name__, {Atom("str", k): self.freeze(v, depth + 1) for k, v in state.items()})
        if kind == "NumPy array":
            return _numpy_array(value)
        if kind in ("list", "tuple", "set", "dict") and _length(value) > MOST_PARTS:
            return Opaque(f"{kind} of {_length(value):,} parts")
        if kind in ("list", "tuple"):
            base = list if kind == "list" else tuple
            return Items(kind, tuple(self.freeze(part, depth + 1) for part in base.__iter__(value)))
        if kind == "set":
            base = set if issubclass(type(value), set) else frozenset
            return Items(kind, tuple(sorted((self.freeze(p, depth + 1) for p in base.__iter__(value)), key=_sort_key)))
        if kind == "dict":
            rows = {self.freeze(k, depth + 1): self.freeze(v, depth + 1) for k, v in dict.items(value)}
            return Table("dict", rows)
        if dataclasses.is_dataclass(type(value)) and type(value).__eq__ is not object.__eq__:  # a plain record
            values = {f.name: object.__getattribute__(value, f.name) for f in dataclasses.fields(value)}
            return Table(kind, {Atom("str", name): self.freeze(part, depth + 1) for name, part in values.items()})
        return Opaque(kind)

    def _tensor(self, value: torch.Tensor, depth: int) -> object:
        same = next((name for name, tensor, _ in self.inputs if tensor is value), None)
        try:
            with torch._C.DisableTorchFunctionSubclass():  # read the tensor itself, not what a subclass says of it
                plain = value.detach()
                plain = plain if type(plain) is torch.Tensor else plain.as_subclass(torch.Tensor)
                if type(plain) is not torch.Tensor or not _fits(plain):
                    return Opaque("tensor that cannot be read")
                first, last = span_of(plain)
                strided = plain.layout == torch.strided
                return Array(
                    kind="Tensor",
                    shape=tuple(plain.shape),
                    dtype=str(plain.dtype).removeprefix("torch."),
                    device=str(plain.device),
                    layout=str(plain.layout).removeprefix("torch."),
                    strides=tuple(plain.stride()) if strided else None,
                    contiguous=strided and plain.is_contiguous(),
                    requires_grad=torch.Tensor.requires_grad.__get__(value),
                    values=_values(plain),
                    shares=tuple(name for name, _, (low, high) in self.inputs if first < high and low < last),
                    same_object_as=same,
                    grad=self._grad(value, depth),
                )
        except Exception:  # a wrapper that only pretends to be a tensor
            return Opaque("tensor that cannot be read")

    def _grad(self, value: torch.Tensor, depth: int) -> object:
        if depth > 6 or not torch.Tensor.is_leaf.__get__(value):
            return None
        grad = torch.Tensor.grad.__get__(value)
        return None if grad is None else self._tensor(grad, depth + 4)


def _values(plain: torch.Tensor) -> torch.Tensor | None:
    if plain.device.type == "meta" or plain.numel() > MOST_ELEMENTS:
        return None
    return plain.to_dense().cpu().clone() if plain.layout != torch.strided else plain.cpu().clone()


def _numpy_array(value: np.ndarray) -> object:
    plain = np.ndarray.view(value, np.ndarray)
    values = plain.copy() if plain.size <= MOST_ELEMENTS and plain.dtype != object else None
    flags = plain.flags.c_contiguous
    return Array("NumPy array", plain.shape, str(plain.dtype), "cpu", "strided", plain.strides, flags, False, values)


def _sort_key(frozen: object) -> tuple[str, str]:
    return (type(frozen).__name__, repr(frozen))


def _exact_int(value: object) -> int:
    return int.__int__(value) if isinstance(value, int) else value.item()


def _exact_float(value: object) -> float:
    return float.__float__(value) if isinstance(value, float) else float(value)


_ATOMS = {
    "bool": bool,
    "int": _exact_int,
    "float": _exact_float,
    "complex": lambda value: complex.__complex__(value) if isinstance(value, complex) else value.item(),
    "str": str.__str__,
    "bytes": bytes.__bytes__,
    "None": lambda value: None,
    "dtype": str,
    "device": str,
}
