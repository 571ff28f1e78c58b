"""One training step on stand-ins: forward, backward, the optimizer, and what the meter says after each."""
import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from weakref import ref

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves

from course_lib.accounting.meter import Meter
from course_lib.accounting.refusals import Refusal, explained
from course_lib.accounting.report import Account, Saved
from course_lib.accounting.stage import Stage
from course_lib.checked import checked, describe

aten = torch.ops.aten


@checked
def rehearse(
    model: nn.Module, batch: object, loss: Callable, make_optimizer: Callable | None, stage: Stage
) -> Account:
    """Account for one step of `model` on `batch`, which are made of stand-ins on `stage`."""
    parameters, inputs = list(model.parameters()), _tensors(batch)
    with Meter(stage.stand_in) as meter:
        optimizer = _make(make_optimizer, parameters) if make_optimizer else None
        early_state = _bytes(_state(optimizer))  # Adagrad makes its state at once, others in their first step
        meter.follow(stage.stand_ins())
        meter.restart_peak()
        value, kept = _forward(model, batch, loss)
        forward_flops = meter.flops
        repeated = _multiplied_repeatedly(kept)
        here_before = _storages(stage.stand_ins()).keys() - _storages(inputs).keys()
        saved = _grouped(map(stage.stand_in, kept), here_before)
        del kept
        with torch.autocast(stage.device.type, enabled=False):  # where the caller has it on, it is for forward alone
            with explained("the backward pass"):
                value.backward()
            del value
            backward_flops, peak = meter.flops - forward_flops, meter.peak_bytes
            gradients = [leaf.grad for leaf in parameters + inputs if leaf.is_leaf and leaf.grad is not None]
            peak_of_update = _step_twice(optimizer, meter) if optimizer is not None else 0
    state = _bytes(_state(optimizer))
    return Account(
        model=type(model).__name__,
        optimizer=type(optimizer).__name__ if optimizer is not None else None,
        device=stage.device.type,
        parameters=sum(parameter.numel() for parameter in parameters),
        forward_flops=forward_flops,
        backward_flops=backward_flops,
        parameter_bytes=_bytes(parameters),
        buffer_bytes=_bytes(stage.stand_ins()) - _bytes(parameters + inputs),
        batch_bytes=_bytes(inputs),
        gradient_bytes=_bytes(gradients),
        optimizer_bytes=state,
        activation_bytes=sum(group.bytes for group in saved),
        # In a step after the first, all state is there from the beginning; nothing else is different.
        peak_bytes=max(peak - early_state + state, peak_of_update),
        saved=saved,
        notes=_notes(meter, repeated),
    )


def _make(make_optimizer: Callable, parameters: list[nn.Parameter]) -> Optimizer:
    if not parameters:
        raise Refusal("the model has no parameters for an optimizer; leave optimizer out.")
    with explained("optimizer(parameters)"):
        optimizer = make_optimizer(iter(parameters))
    if not isinstance(optimizer, Optimizer):
        raise Refusal(f"optimizer(parameters) returns {describe(optimizer)}; a torch.optim.Optimizer is asked for.")
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if held.isdisjoint(map(id, parameters)):
        raise Refusal("the optimizer has none of the model's parameters; let it take those that it is called with.")
    try:
        inspect.signature(optimizer.step).bind()
    except TypeError:
        raise Refusal(
            f"{type(optimizer).__name__} runs the model again within a step, as often as the data ask for it; "
            "choose an optimizer whose step() needs no closure, such as torch.optim.AdamW."
        ) from None
    return optimizer


class _Kept:
    """What autograd holds in place of a tensor that it saves; it lives for as long as autograd needs the tensor."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _forward(model: nn.Module, batch: object, loss: Callable) -> tuple[Tensor, list[Tensor]]:
    """The loss, and the tensors that autograd holds for the backward pass."""
    references: list[ref[_Kept]] = []

    def pack(tensor: Tensor) -> _Kept:
        kept = _Kept(tensor)
        references.append(ref(kept))
        return kept

    with saved_tensors_hooks(pack, lambda kept: kept.tensor):
        with explained(f"the model, given {_described(batch)},", "let build_batch() return what the model takes"):
            output = _call(model, batch)
        with explained("loss(output)", "let it take what the model returns"):
            value = loss(output)
    del output  # nobody needs it any more, unless backward does
    torch.clear_autocast_cache()
    _require_loss(value)
    return value, [kept.tensor for reference in references if (kept := reference()) is not None]


def _call(model: nn.Module, batch: object) -> object:
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple) else model(batch)


def _require_loss(value: object) -> None:
    if not isinstance(value, Tensor):
        raise Refusal(f"loss(output) is {describe(value)}; a tensor with one number is asked for.")
    if value.numel() != 1:
        raise Refusal(f"loss(output) has shape {tuple(value.shape)}; one number is asked for, such as its mean().")
    if not value.requires_grad:
        raise Refusal(
            "the loss does not depend on anything that requires grad, so there is no backward pass; let it depend on "
            "a parameter with requires_grad=True, outside of torch.no_grad()."
        )


def _step_twice(optimizer: Optimizer, meter: Meter) -> int:
    """Let the first step make what state is made then; the peak of the second, in bytes."""
    with explained(f"{type(optimizer).__name__}.step()"), meter.numbers_made_up():
        optimizer.step()
        meter.restart_peak()
        optimizer.step()
    return meter.peak_bytes


def _state(optimizer: Optimizer | None) -> list[Tensor]:
    """The tensors that an optimizer keeps from step to step, wherever it keeps them."""
    if optimizer is None:
        return []
    settings = [value for group in optimizer.param_groups for key, value in group.items() if key != "params"]
    own = [value for key, value in vars(optimizer).items() if key not in ("param_groups", "state")]
    return _tensors([list(optimizer.state.values()), settings, own])


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _storages(tensors: Iterable[Tensor]) -> dict[int, Tensor]:
    """Each distinct storage, with the first of the tensors that lie in it."""
    found: dict[int, Tensor] = {}
    for tensor in tensors:
        found.setdefault(tensor.untyped_storage()._cdata, tensor)
    return found


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in _storages(tensors).values())


def _grouped(tensors: Iterable[Tensor], ignore: set[int]) -> tuple[Saved, ...]:
    """The tensors' distinct storages without those to ignore; those that are alike together, largest first."""
    sizes, counts = Counter(), Counter()
    for key, tensor in _storages(tensors).items():
        if key not in ignore:
            alike = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
            sizes[alike] += tensor.untyped_storage().nbytes()
            counts[alike] += 1
    groups = [Saved(counts[alike], *alike, sizes[alike]) for alike in sizes]
    return tuple(sorted(groups, key=lambda group: (-group.bytes, group.dtype, group.shape)))


def _described(batch: object) -> str:
    tensors = _tensors(batch)
    shown = [describe(tensor) for tensor in tensors[:2]] or [describe(batch)]
    return " and ".join(shown + [f"{len(tensors) - 2} more"] * (len(tensors) > 2))


def _multiplied_repeatedly(kept: list[Tensor]) -> bool:
    """Whether a parameter was saved, as it is, by several operators; nn.Linear saves a transposed view of its own."""
    return max(Counter(id(t) for t in kept if isinstance(t, nn.Parameter)).values(), default=0) > 1


def _notes(meter: Meter, repeated: bool) -> tuple[str, ...]:
    notes = {
        "a convolution works in memory of its own, which the peak leaves out.": meter.saw(aten.convolution),
        "cuDNN keeps memory of its own for a recurrent layer, which activations and peak leave out.": meter.saw(
            aten._cudnn_rnn
        ),
        "a weight is used several times; torch may add up its gradients in place, for a lower peak.": repeated,
    }
    return tuple(note for note, holds in notes.items() if holds)
