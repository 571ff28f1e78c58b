"""A meter that watches operators at work: the FLOPs that they do, and the bytes of the tensors that they return."""
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.accounting.flops import find_formula
from course_lib.accounting.refusals import require_countable
from course_lib.checked import checked

aten = torch.ops.aten
_DEVICE = torch.ops.prim.device.default
_READ = aten._local_scalar_dense.default  # what .item(), bool() and float() of a tensor come down to
# How torch.tensor(0.0) begins: with a real tensor, whose number the stand-in that comes out remembers.
_LIFTS = {aten.lift.default, aten.lift_fresh.default, aten.lift_fresh_copy.default}
_NORMS = {aten.native_layer_norm.default, aten.native_group_norm.default, aten.native_batch_norm.default}
_OF_ONE_DTYPE = {
    getattr(aten, name).default for name in ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution")
}


class Meter(TorchDispatchMode):
    """While it is entered: FLOPs of all operators, and bytes of all storages that they returned and that still live.

    Memory that a kernel takes and gives back before it returns is not seen. `stand_in` answers with what takes the
    place of a real tensor.
    """

    @checked
    def __init__(self, stand_in: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.flops = self.bytes_now = self.peak_bytes = 0
        self._stand_in, self._makes_numbers_up = stand_in, False
        self._living: dict[int, tuple[int, weakref.ref]] = {}
        self._plans: dict[OpOverload, tuple[bool, Callable[..., int] | None]] = {}

    @checked
    def follow(self, tensors: Iterable) -> None:
        """Count the storages of these tensors, too, for as long as they live."""
        for tensor in tensors:
            self._follow(tensor)

    def restart_peak(self) -> None:
        """Let `peak_bytes` begin anew at what lives now."""
        self.peak_bytes = self.bytes_now

    @checked
    def saw(self, operator: OpOverloadPacket) -> bool:
        """Whether this operator has run."""
        return any(func.overloadpacket is operator for func in self._plans)

    @contextmanager
    def numbers_made_up(self) -> Iterator[None]:
        """Within it, whoever reads a number off a stand-in reads a 1 instead of being refused."""
        self._makes_numbers_up = True
        try:
            yield
        finally:
            self._makes_numbers_up = False

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        if func is _DEVICE:  # asked for often; neither work nor memory
            return func(*args)
        composite, formula = self._plans.get(func) or self._plan(func)
        kwargs = {key: self._on_stage(value) for key, value in kwargs.items()} if kwargs else {}
        if composite:
            with self:  # what it is composed of comes by here in its stead
                return func.decompose(*args, **kwargs)
        if func not in _LIFTS:
            args = tuple(map(self._on_stage, args))
        if func in _OF_ONE_DTYPE:
            _require_one_dtype(args)
        out = self._read(*args) if func is _READ else func(*args, **kwargs)
        if func in _NORMS:
            out = _with_exact_statistics(args, out)
        if formula is not None:
            self.flops += formula(*args, out_val=out, **kwargs)
        for tensor in _tensors(out):
            self._follow(tensor)
        self.peak_bytes = max(self.peak_bytes, self.bytes_now)
        return out

    def _plan(self, func: OpOverload) -> tuple[bool, Callable[..., int] | None]:
        # Autograd takes operators apart that have no kernel of their own; in inference mode it does not.
        kernels = (torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key) for key in ("CPU", "CUDA"))
        composite = func.namespace == "aten" and func._can_decompose() and not any(kernels)
        self._plans[func] = composite, find_formula(func)
        return self._plans[func]

    def _on_stage(self, x: object) -> object:
        """An operator's argument, with stand-ins for real tensors that the model or the loss keeps out of sight."""
        if isinstance(x, FakeTensor):
            return x
        if isinstance(x, list | tuple) and any(isinstance(part, Tensor) for part in x):
            return [self._on_stage(part) for part in x]
        if not isinstance(x, Tensor):
            return x
        stand_in = self._stand_in(x)
        self._follow(stand_in)
        return stand_in

    def _read(self, tensor: Tensor) -> float | int | bool:
        try:
            return _READ(tensor)
        except DataDependentOutputException:
            if not self._makes_numbers_up:
                raise
            return True if tensor.dtype == torch.bool else 1.0 if tensor.is_floating_point() else 1

    def _follow(self, tensor: Tensor) -> None:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            require_countable(tensor)
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        known, reference = self._living.get(key, (0, None))
        if reference is None:
            reference = weakref.ref(storage, lambda _: self._forget(key))
        elif size == known:
            return
        self._living[key] = size, reference  # it is new, or was resized in place
        self.bytes_now += size - known

    def _forget(self, key: int) -> None:
        self.bytes_now -= self._living.pop(key)[0]


def _require_one_dtype(args: tuple) -> None:
    """What kernels insist on and FakeTensors do not."""
    dtypes = dict.fromkeys(str(x.dtype) for x in args if isinstance(x, Tensor))
    if len(dtypes) > 1:
        raise RuntimeError(f"expected tensors of the same dtype, but got {' and '.join(dtypes)}")


def _with_exact_statistics(args: tuple, out: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """On the CPU a norm of 16-bit numbers with float32 weights has float32 statistics; FakeTensors say 16 bits."""
    x, *others = args
    mixed = x.device.type == "cpu" and any(isinstance(y, Tensor) and y.dtype != x.dtype for y in others)
    return (out[0], *(statistic.float() for statistic in out[1:])) if mixed else out


def _tensors(out: object) -> Iterator[Tensor]:
    """Tensors among what an operator returned: one, or several in lists and tuples."""
    if isinstance(out, Tensor):
        yield out
    elif isinstance(out, list | tuple):
        for part in out:
            yield from _tensors(part)
