"""What cannot be accounted for: each in one sentence that says what to change."""
import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedOperatorException,
)

from course_lib.checked import checked


class Refusal(Exception):
    """A sentence for whoever called `account`."""


_EXPECTED = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)
_READS = (DataDependentOutputException, DynamicOutputShapeException)
_READS_TOO = re.compile("meta tensor|no data|data pointer|data_ptr|not supported for tensor subclasses")
_NO_KERNEL = re.compile("Meta kernel|fake impl|'Meta'|HigherOrderOperator")
_KINDS = (Tensor, FakeTensor, nn.Parameter, nn.Buffer)
_TORCH = Path(torch.__file__).parent
_NOT_THE_CALLERS = (str(_TORCH), str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<frozen ")


@checked
def require_countable(tensor: Tensor) -> None:
    """Refuse a tensor whose numbers do not all lie in one storage, or that torch cannot compute with as they are."""
    if tensor.layout is torch.strided and type(tensor) in _KINDS and not tensor.is_quantized and not tensor.is_nested:
        return
    if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
        raise Refusal("the model has a lazy module, whose sizes are not known yet; give them when you build it.")
    if tensor.is_sparse:
        raise Refusal("a sparse tensor cannot be accounted for; use dense ones, and nn.Embedding with sparse=False.")
    kind = "nested tensor" if tensor.is_nested else "quantized tensor" if tensor.is_quantized else type(tensor).__name__
    kind = kind if tensor.layout is torch.strided else f"{str(tensor.layout).removeprefix('torch.').lstrip('_')} tensor"
    raise Refusal(f"a {kind} cannot be accounted for; use dense tensors of ordinary numbers.")


@contextmanager
@checked
def explained(task: str, remedy: str = "") -> Iterator[None]:
    """Turn the errors that `task` can meet on stand-ins into a Refusal; others are bugs of its author's and pass."""
    try:
        yield
    except _EXPECTED as error:
        sentence = _sentence(task, remedy, error)
    else:
        return
    raise Refusal(sentence)


def _sentence(task: str, remedy: str, error: Exception) -> str:
    place, said = _place(error), _first_sentence(error)
    if isinstance(error, _READS) or _READS_TOO.search(str(error)):
        return (
            f"{task} reads numbers off a tensor{place}, as .item(), bool(…), an `if` and a mask as index do; "
            "tensors hold no numbers here, so let shapes and Python's numbers decide."
        )
    if isinstance(error, UnsupportedOperatorException) or _NO_KERNEL.search(str(error)):
        return f"{task} needs an operator that torch cannot run without data{place}: {said}; use others instead."
    return f"{task} fails{place}: {said}{remedy and f'; {remedy}'}."


def _first_sentence(error: Exception) -> str:
    first = re.split(r"\.?\s*\n|\.\s", str(error).strip())[0]
    return re.sub(r" object at 0x\w+", "", first).removesuffix(".") or type(error).__name__


def _place(error: BaseException) -> str:
    """Where it happened: ` in Net.forward, line 12`, with the function of torch.nn that was called there, if any."""
    steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [index for index, (code, _) in enumerate(steps) if not code.co_filename.startswith(_NOT_THE_CALLERS)]
    place, since = "", 0
    if ours:
        since = ours[-1]
        place = f" in {_name(steps[since][0])}, line {steps[since][1]}"
    inside = [code for code, _ in steps[since:] if Path(code.co_filename).is_relative_to(_TORCH / "nn")]
    inside = [_name(code) for code in inside if not code.co_name.endswith("_call_impl")]
    return f"{place}{',' if place else ''} in torch.nn's {inside[-1]}" if inside else place


def _name(code: CodeType) -> str:
    return code.co_qualname.rpartition("<locals>.")[2]
