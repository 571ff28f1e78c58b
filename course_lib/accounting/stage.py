"""A stage on which PyTorch programs run without memory and arithmetic: stand-ins (FakeTensors) play the tensors."""
import logging
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim.optimizer import _foreach_supported_types
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.accounting.refusals import require_countable
from course_lib.checked import checked


class OnMeta(TorchDispatchMode):
    """While it is entered, what is made is made on the meta device, also where the code asks for another device."""

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        if any(isinstance(x, Tensor) and x.is_meta for x in tree_leaves(args)):
            args = tree_map_only(Tensor, lambda x: x if x.is_meta else x.to("meta"), args)
        return func(*args, **kwargs)


class Stage:
    """Stand-ins on one device: each has shape, strides, dtype and device, and a storage that has a size but no memory.

    Kernels are chosen, and outputs shaped, as on the real device.
    """

    @checked
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._known: dict[int, tuple[Tensor, Tensor]] = {}  # by a real tensor's id: itself, lest it dies; its stand-in
        self._storages: dict[int, torch.UntypedStorage] = {}

    @checked
    def stand_in(self, tensor: Tensor) -> Tensor:
        """What plays this tensor; the stand-ins of tensors that share a storage share one, too."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if id(tensor) not in self._known:
            require_countable(tensor)
            self._known[id(tensor)] = tensor, self._make(tensor)
        return self._known[id(tensor)][1]

    def stand_ins(self) -> list[Tensor]:
        """All that took a real tensor's place so far."""
        return [stand_in for _, stand_in in self._known.values()]

    def _make(self, tensor: Tensor) -> Tensor:
        with no_dispatch():
            storage = tensor.untyped_storage()
            empty = self._storages.setdefault(storage._cdata, torch.UntypedStorage(storage.nbytes(), device="meta"))
            shape = torch.empty(0, dtype=tensor.dtype, device="meta")
            shape.set_(empty, tensor.storage_offset(), tensor.shape, tensor.stride())
            fake = self.mode.fake_tensor_converter.from_meta_and_device(self.mode, shape, self.device)
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(fake, tensor.requires_grad)
        return fake.requires_grad_(tensor.requires_grad)

    @contextmanager
    @checked
    def replaced(self, thing: object) -> Iterator[object]:
        """Put stand-ins in the place of tensors in modules, lists and dicts, and afterwards put all back as it was.

        Yields `thing`; if it is a tensor or a tuple, what takes its place.
        """
        with ExitStack() as undo:
            yield self._replace(thing, set(), undo)

    def _replace(self, thing: object, seen: set[int], undo: ExitStack) -> object:
        if isinstance(thing, Tensor):
            return self.stand_in(thing)
        if isinstance(thing, tuple):
            parts = [self._replace(part, seen, undo) for part in thing]
            return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
        inside = vars(thing) if isinstance(thing, nn.Module) else thing
        if not isinstance(inside, dict | list) or id(inside) in seen:
            return thing
        seen.add(id(inside))
        before = dict(inside) if isinstance(inside, dict) else list(inside)
        undo.callback(_restore, inside, before)
        for key, value in before.items() if isinstance(before, dict) else enumerate(before):
            new = self._replace(value, seen, undo)
            if new is not value:
                inside[key] = new
        return thing


def _restore(container: dict | list, content: dict | list) -> None:
    """Fill it again with what it held, unless it still does: some dicts can only be read."""
    if _identities(container) == _identities(content):
        return
    container.clear()
    container.update(content) if isinstance(container, dict) else container.extend(content)


def _identities(container: dict | list) -> list[int]:
    return [id(part) for part in ([*container, *container.values()] if isinstance(container, dict) else container)]


@contextmanager
@checked
def world_left_as_it_is(device: torch.device) -> Iterator[None]:
    """Set torch up for `account`, and put back afterwards that and whatever a model's code can change."""
    with ExitStack() as undo:
        undo.callback(torch.set_rng_state, torch.get_rng_state())
        undo.callback(random.setstate, random.getstate())
        undo.callback(np.random.set_state, np.random.get_state())
        if torch.cuda.is_initialized():
            undo.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
        undo.callback(torch.set_default_dtype, torch.get_default_dtype())
        # oneDNN's kernels keep memory that no tensor has, and its LSTM is one operator without a formula. (torch's own
        # context manager for this warns on stderr.)
        undo.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
        torch._C._set_mkldnn_enabled(False)
        # An encoder layer in eval mode would be one operator without a formula, too.
        undo.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        # On CUDA an optimizer works on all parameters at once, which takes more memory, if they are of these types.
        _foreach_supported_types.append(FakeTensor)
        undo.callback(_foreach_supported_types.remove, FakeTensor)
        log = logging.getLogger("torch._subclasses.fake_tensor")  # tells stderr of each operator that is called wrongly
        undo.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        undo.enter_context(torch.inference_mode(False))
        undo.enter_context(torch.enable_grad())
        if torch.get_default_device().type not in ("cpu", device.type):
            undo.enter_context(device)
        yield
