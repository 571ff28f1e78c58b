"""Recipes for the precision of a training step. `train(…, precision=recipe)` calls, in this order:

`prepare` once; then in each step `zero_grad`, `autocast` around forward pass and loss, `backward`, `unscale` (after it
the optimizer's parameters hold true gradients, which may be clipped), and `step`.
"""
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.checked import checked
from course_lib.precision.formats import BlockFormat


@dataclass(frozen=True)
class ParameterBytes:
    """What one parameter costs in training, in bytes by part. Activations and what a step needs for itself come on top.

    `weights` are what the model computes with; `master` is a float32 copy that the optimizer changes in their place;
    `state` is what the optimizer remembers. `assumes` says in words what has to hold for these numbers.
    """

    weights: float
    gradients: float
    master: float
    state: float
    assumes: str

    def __post_init__(self) -> None:
        if wrong := [name for name, size in self.parts.items() if not 0 <= size < math.inf]:
            came = f"{wrong[0]} is {self.parts[wrong[0]]}"
            raise ValueError(f"ParameterBytes(): {came}; a finite number of at least 0 is asked for.")

    @property
    def total(self) -> float:
        """All parts together, in bytes per parameter."""
        return self.weights + self.gradients + self.master + self.state

    @property
    def parts(self) -> dict[str, float]:
        """The four parts by name, in the order in which they are drawn and printed."""
        return {"weights": self.weights, "gradients": self.gradients, "master": self.master, "state": self.state}


ParameterBytes.__init__ = checked(ParameterBytes.__init__)  # written by the dataclass


class Precision:
    """All float32: parameters, gradients, optimizer state and arithmetic. The base of all other recipes."""

    name = "float32"
    skips_overflow = False
    _assumes = "float32 throughout"

    _model: nn.Module | None = None
    _optimizer: Optimizer | None = None

    @checked
    def prepare(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Get model and optimizer ready, before the first step. For the same two a second call changes nothing."""
        if (self._model, self._optimizer) != (model, optimizer):
            self._prepare(model, optimizer)
            self._model, self._optimizer = model, optimizer

    @checked
    def autocast(self, device: torch.device | str) -> AbstractContextManager:
        """The context for forward pass and loss of a model on `device`."""
        return nullcontext()

    @checked
    def backward(self, loss: Tensor) -> None:
        """Add the loss's gradients to what is there, perhaps times a scale."""
        loss.backward()

    def unscale(self) -> None:
        """Let the optimizer's parameters hold true gradients. A second call within a step changes nothing."""

    def step(self) -> bool:
        """Change the weights. False if the step was skipped, because a gradient was inf or NaN."""
        self.unscale()
        self._prepared_optimizer().step()
        return True

    def zero_grad(self) -> None:
        """Forget all gradients."""
        self._prepared_optimizer().zero_grad(set_to_none=True)

    def state_dict(self) -> dict:
        """What a checkpoint has to hold beside model and optimizer: numbers, and tensors that are not copied."""
        return {}

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Go on from where `state` was taken; what it holds is copied. `prepare` comes before."""

    @checked
    def bytes_per_parameter(self, state_numbers: int = 2) -> ParameterBytes:
        """Bytes by part, for an optimizer that remembers `state_numbers` per parameter: 2 for Adam, 0 for SGD."""
        if state_numbers < 0:
            raise ValueError(f"bytes_per_parameter(): state_numbers is {state_numbers}; at least 0 is asked for.")
        return self._bytes(state_numbers)

    def __repr__(self) -> str:
        return f"<recipe: {self.name}>"

    def _prepare(self, model: nn.Module, optimizer: Optimizer) -> None: ...

    def _bytes(self, state_numbers: int) -> ParameterBytes:
        return ParameterBytes(4, 4, 0, 4 * state_numbers, self._assumes)

    def _prepared_optimizer(self) -> Optimizer:
        if self._optimizer is None:
            raise RuntimeError(f"The recipe {self.name!r} is not prepared: call prepare(model, optimizer) first.")
        return self._optimizer


class AutocastBFloat16(Precision):
    """torch.autocast to bfloat16: float32 parameters, gradients and optimizer state; matmuls take bfloat16 inputs.

    The bfloat16 copies of the weights that the forward pass makes (2 bytes per parameter) live until backward has used
    them, and are gone when the gradients are complete.
    """

    name = "autocast bfloat16"
    _assumes = "float32 but for copies, gone when the gradients are there"

    @checked
    def autocast(self, device: torch.device | str) -> AbstractContextManager:
        """torch.autocast for the kind of device that the model is on."""
        return torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16)


class ScaledFloat16(Precision):
    """torch.autocast to float16, with a loss that is scaled up so that small gradients do not become 0.

    Backward starts from scale · loss. `unscale` divides the gradients by the scale. A step with an inf or a NaN among
    them is skipped, and the scale halved; after `growth_interval` good steps in a row it is doubled. This is
    torch.amp.GradScaler, on the device of the model's first parameter.
    """

    name = "autocast float16, loss scaled"
    skips_overflow = True
    _assumes = "float32 but for copies, gone when the gradients are there"

    @checked
    def __init__(self, initial_scale: float = 2.0**16, growth_interval: int = 2000) -> None:
        if not 0 < initial_scale < float("inf"):
            raise ValueError(f"ScaledFloat16(): initial_scale is {initial_scale}; a finite one above 0 is asked for.")
        if growth_interval < 1:
            raise ValueError(f"ScaledFloat16(): growth_interval is {growth_interval}; at least 1 is asked for.")
        self._settings = {"init_scale": float(initial_scale), "growth_interval": growth_interval}
        self._scaler: torch.amp.GradScaler | None = None
        self._unscaled = False

    @property
    def scale(self) -> float:
        """By how much the next loss is multiplied."""
        return self._settings["init_scale"] if self._scaler is None else self._scaler.get_scale()

    @checked
    def autocast(self, device: torch.device | str) -> AbstractContextManager:
        """torch.autocast for the kind of device that the model is on."""
        return torch.autocast(device_type=torch.device(device).type, dtype=torch.float16)

    @checked
    def backward(self, loss: Tensor) -> None:
        """Add the gradients of scale · loss."""
        self._prepared_scaler().scale(loss).backward()

    def unscale(self) -> None:
        """Divide the optimizer's gradients by the scale."""
        if not self._unscaled:
            scaler = self._prepared_scaler()
            try:
                scaler.unscale_(self._optimizer)
            except AssertionError:  # a scaler makes its scale when it is first used
                raise RuntimeError(f"The recipe {self.name!r} has no gradients: call backward(loss) first.") from None
            self._unscaled = True

    def step(self) -> bool:
        """Change the weights, unless a gradient is inf or NaN; then set the scale for the next step."""
        scaler, before = self._prepared_scaler(), self.scale
        self.unscale()
        scaler.step(self._optimizer)
        scaler.update()
        self._unscaled = False
        return self.scale >= before  # only a skipped step makes it smaller

    def state_dict(self) -> dict:
        """The scale, and how many good steps in a row there have been."""
        return self._prepared_scaler().state_dict()

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Go on with the scale of `state`. Raises ValueError, and changes nothing, for what is none."""
        scaler = self._prepared_scaler()
        if odd := [name for name in scaler.state_dict() if not isinstance(state.get(name), int | float)]:
            came = f"state has no number {odd[0]!r}"
            raise ValueError(f"ScaledFloat16.load_state_dict(): {came}; what state_dict() returned is asked for.")
        scaler.load_state_dict(state)

    def _prepare(self, model: nn.Module, optimizer: Optimizer) -> None:
        if any(p.dtype == torch.float16 for group in optimizer.param_groups for p in group["params"]):
            wanted = "float32 ones are asked for, of which autocast makes float16 copies"
            raise ValueError(f"prepare() of {self.name!r}: parameters are float16; {wanted}.")
        self._scaler = torch.amp.GradScaler(device=device_of(model).type, **self._settings)
        self._unscaled = False

    def _prepared_scaler(self) -> torch.amp.GradScaler:
        self._prepared_optimizer()
        return self._scaler


class SimulatedMatmuls(Precision):
    """What training would do if every matmul, forward and backward, got its inputs in a small format with scales.

    Both inputs of a matmul are rounded, in blocks along the axis that is summed over; products and sums are float32, as
    in tensor cores. All the rest is float32, the parameters too, so that no memory is saved: this shows what becomes of
    the loss, not of the bytes. Convolutions and fused attention are left as they are.
    """

    @checked
    def __init__(self, format: BlockFormat) -> None:
        self.format = format
        self.name = f"{format.name} matmuls, simulated"
        self._assumes = f"float32; on hardware, {format.bits / 8:g} bytes more where weights are kept in {format.name}"

    @checked
    def autocast(self, device: torch.device | str) -> AbstractContextManager:
        """The context in which matmuls round their inputs."""
        return _RoundedInputs(self.format)

    @checked
    def backward(self, loss: Tensor) -> None:
        """Add the gradients, from matmuls with rounded inputs."""
        with _RoundedInputs(self.format):
            loss.backward()


_aten = torch.ops.aten
_FIRST_INPUT = {  # operation -> the place of the first of its two inputs
    _aten.mm.default: 0,
    _aten.bmm.default: 0,
    _aten.mv.default: 0,
    _aten.addmm.default: 1,
    _aten.baddbmm.default: 1,
    _aten.addmv.default: 1,
}


class _RoundedInputs(TorchDispatchMode):
    """Below autograd, where forward and backward have come down to the same few operations."""

    def __init__(self, format: BlockFormat) -> None:
        super().__init__()
        self._format = format

    def __torch_dispatch__(self, func: object, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        first = _FIRST_INPUT.get(func)
        if first is not None and args[first].is_floating_point():
            args = list(args)
            left, right = args[first : first + 2]
            summed = -2 if right.ndim > 1 else -1
            args[first : first + 2] = self._format.round_tensor(left, -1), self._format.round_tensor(right, summed)
        return func(*args, **(kwargs or {}))


@checked
def device_of(model: nn.Module) -> torch.device:
    """The device of the model's first parameter; the CPU if it has none."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))
