"""`checked`: type hints that hold at run time, with an error that a reader understands.

jaxtyping and beartype do the checking; their report is ten lines and three tracebacks long, so this module turns it
into one sentence. It lies below all other modules of the package.
"""

import dis
import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
import torch
from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, jaxtyped

P, R = ParamSpec("P"), TypeVar("R")
_PACKAGE = str(Path(__file__).parent)
_RAISE = dis.opmap["RAISE_VARARGS"]
_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))  # the tower: an int may stand for a float


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Hold a function's arguments and result to its annotations, jaxtyping's shapes and dtypes included.

    A violation raises one TypeError: "f(): x is a list ([1]); a Tensor is asked for." NumPy numbers arrive as Python
    numbers, also in a tuple. Errors that the package itself raises reach the caller without the package's frames.
    """
    signature = inspect.signature(function)
    guarded = jaxtyped(typechecker=_beartype)(function)
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # IPython then leaves this frame out of a traceback
        args = tuple(_plain(value) for value in args)
        kwargs = {key: _plain(value) for key, value in kwargs.items()}
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}; it is called as {name}{_bare(signature)}.") from None
        try:
            return guarded(*args, **kwargs)
        except TypeCheckError as violation:
            failure = TypeError(_sentence(name, str(violation), bound, signature))
        except (TypeError, ValueError) as error:
            if not _raised_by_the_package(error):
                raise
            failure = error.with_traceback(None)
        except Exception as error:  # only what is raised on purpose: a fault of the package keeps its traceback
            if not _raised_by_the_package(error, on_purpose=True):
                raise
            failure = error.with_traceback(None)
        raise failure from None

    return call


def describe(value: object) -> str:
    """A few words for an error message: what kind of thing this is, and its value where that is short."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, torch.Tensor) and not value.is_nested:  # a nested one has no shape to tell
        return f"a tensor of dtype {str(value.dtype).removeprefix('torch.')} and shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of dtype {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool):
        return str(value)
    kind, text = type(value).__name__, _short_repr(value)
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    return f"{article} {kind}" + (f" ({text})" if text else "")


def _short_repr(value: object) -> str:
    if not isinstance(value, int | float | complex | str | list | tuple | dict | set):
        return ""
    try:
        text = repr(value)
    except Exception:  # an element's own repr may fail; the error message must not
        return ""
    return text if len(text) <= 40 else text[:37] + "…"


def _plain(value: object) -> object:
    """A NumPy scalar as the Python number that it holds, in a tuple too; anything else as it is."""
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.number | np.bool_) else value


def _sentence(name: str, report: str, bound: inspect.BoundArguments, signature: inspect.Signature) -> str:
    axes = re.findall(r"^(\w+=\d+)$", report, re.MULTILINE)
    parameter = re.search(r"typechecking parameter '(\w+)'", report)
    if parameter is None:
        came = re.search(r"^Actual value: (.*)$", report, re.MULTILINE)
        returned = came.group(1) if came else "something else"
        return f"{name}() returned {returned}; {_wanted(signature.return_annotation)} was promised."
    key = parameter.group(1)
    wanted = _wanted(signature.parameters[key].annotation)
    known = f", where {' and '.join(axes)}" if axes and '"' in wanted else ""  # only shapes speak of axes
    return f"{name}(): {key} is {describe(bound.arguments[key])}; {wanted} is asked for{known}."


def _wanted(annotation: object) -> str:
    """An annotation as words: `a float`, `Float[Tensor, "b d"]`, `a function`."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    text = re.sub(r"\b(?:\w+\.)+(?=[A-Za-z_])", "", text).replace("'", '"')  # where a class comes from does not matter
    if text.startswith("Callable"):
        return "a function"
    if "[" in text or "|" in text:
        return text
    return f"{'an' if text[0] in 'aeiouAEIOU' else 'a'} {text}"


def _bare(signature: inspect.Signature) -> str:
    """The signature without annotations: `(x, y, n=3)`; a function that is a default by its name, not its address."""
    parameters = [
        p.replace(annotation=p.empty, default=_Named(p.default) if inspect.isroutine(p.default) else p.default)
        for name, p in signature.parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))


class _Named:
    def __init__(self, function: Callable) -> None:
        self._name = function.__name__

    def __repr__(self) -> str:
        return self._name


def require_at_least(function: str, least: int, **values: int) -> None:
    """Raise a ValueError that names `function` and the first argument that is below `least`."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{function}(): {name} is {value}; at least {least} is asked for.")


def _raised_by_the_package(error: BaseException, on_purpose: bool = False) -> bool:
    """Whether the innermost frame is the package's and, where asked for, stands at a `raise`."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None or not frame.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        return False
    return not on_purpose or frame.tb_frame.f_code.co_code[frame.tb_lasti] == _RAISE
