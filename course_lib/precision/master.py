"""Recipes whose model computes with bfloat16 weights: with float32 masters, stochastic rounding, or neither."""
from contextlib import AbstractContextManager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.checked import checked, describe
from course_lib.precision.formats import stochastic_round
from course_lib.precision.recipes import ParameterBytes, Precision, device_of
from course_lib.randomness import make_generator


class PlainBFloat16(Precision):
    """Everything in bfloat16: weights, gradients and optimizer state. The smallest recipe, and weights that stall.

    `prepare` casts the model's parameters and buffers in place, as `model.bfloat16()` does, and lets the model cast
    what it is called with. autocast computes the loss in float32.
    """

    name = "all bfloat16"
    _assumes = "bfloat16 throughout; a step below half the spacing is lost"

    @checked
    def autocast(self, device: torch.device | str) -> AbstractContextManager:
        """torch.autocast to bfloat16: the weights are that already, and the loss is computed in float32."""
        return torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16)

    def _prepare(self, model: nn.Module, optimizer: Optimizer) -> None:
        _require_own_parameters(self, model, optimizer)
        optimizer.zero_grad(set_to_none=True)
        model.to(torch.bfloat16)
        model.register_forward_pre_hook(_cast_inputs, with_kwargs=True)

    def _bytes(self, state_numbers: int) -> ParameterBytes:
        return ParameterBytes(2, 2, 0, 2 * state_numbers, self._assumes)


class _TwoSets(PlainBFloat16):
    """The model has bfloat16 weights; the optimizer has float32 parameters of its own, one for each of them."""

    def _prepare(self, model: nn.Module, optimizer: Optimizer) -> None:
        exact = {p: p.detach().clone() for group in optimizer.param_groups for p in group["params"]}
        super()._prepare(model, optimizer)
        self._pairs: list[tuple[nn.Parameter, nn.Parameter]] = []
        for group in optimizer.param_groups:
            for place, weight in enumerate(group["params"]):
                own = self._make_own(weight, exact.pop(weight).float())
                group["params"][place] = own
                if weight in optimizer.state:  # Adagrad makes its state when it is built
                    optimizer.state[own] = optimizer.state.pop(weight)
                self._pairs.append((weight, own))

    def _make_own(self, weight: nn.Parameter, exact: Tensor) -> nn.Parameter:
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget all gradients, the model's and the optimizer's."""
        super().zero_grad()
        self._model.zero_grad(set_to_none=True)


class MasterWeights(_TwoSets):
    """bfloat16 weights for the model, float32 copies of them, the masters, for the optimizer.

    Each step changes the masters; the weights are the masters, rounded. `gradients` says how the gradients of several
    backward passes are added up: in float32, in which the optimizer takes them (18 bytes per parameter with Adam), or
    in bfloat16, of which float32 copies are made for it (20). The optimizer's groups then hold the masters.
    """

    @checked
    def __init__(self, gradients: Literal["float32", "bfloat16"] = "float32") -> None:
        self._gradients = gradients
        self.name = f"master weights, {gradients} gradients"
        self._assumes = "float32 masters and gradients" if gradients == "float32" else (
            "float32 masters; bfloat16 gradients, and float32 copies of them for the optimizer"
        )

    def unscale(self) -> None:
        """Hand the model's gradients to the masters."""
        self._prepared_optimizer()
        for weight, master in self._pairs:
            if master.grad is None and weight.grad is not None:
                master.grad = weight.grad.float()  # no copy where it is float32 already

    def step(self) -> bool:
        """Change the masters, and round them into the model's weights."""
        super().step()
        with torch.no_grad():
            for weight, master in self._pairs:
                weight.copy_(master)
        return True

    def state_dict(self) -> dict:
        """The masters, in the order of the optimizer's parameters."""
        self._prepared_optimizer()
        return {"masters": [master.detach() for _, master in self._pairs]}

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Copy the masters of `state`. Raises ValueError, and changes nothing, if they are of another model."""
        self._prepared_optimizer()
        saved, own = state.get("masters"), [master for _, master in self._pairs]
        are_tensors = isinstance(saved, list | tuple) and all(isinstance(one, Tensor) for one in saved)
        shapes = [tuple(one.shape) for one in saved] if are_tensors else None
        if shapes != [tuple(one.shape) for one in own]:
            raise ValueError("MasterWeights.load_state_dict(): state holds no masters of this model's shapes.")
        with torch.no_grad():
            for master, value in zip(own, saved, strict=True):
                master.copy_(value)

    def _make_own(self, weight: nn.Parameter, exact: Tensor) -> nn.Parameter:
        weight.grad_dtype = getattr(torch, self._gradients)
        return nn.Parameter(exact, requires_grad=weight.requires_grad)

    def _bytes(self, state_numbers: int) -> ParameterBytes:
        gradients = 4 if self._gradients == "float32" else 2 + 4
        return ParameterBytes(2, gradients, 4, 4 * state_numbers, self._assumes)


class StochasticBFloat16(_TwoSets):
    """bfloat16 weights and gradients, float32 optimizer state, and no masters: each step is rounded stochastically.

    The optimizer changes one parameter at a time: for the moment of its step the weight is float32, and then rounded up
    or down by `stochastic_round`. Between steps the optimizer's float32 parameters are place holders of 4 bytes each.
    The random numbers come from a generator of the recipe's own, on the device of the model's first parameter.
    """

    name = "bfloat16, stochastic rounding"
    _assumes = "no masters: bfloat16 weights, rounded stochastically; float32 state"

    @checked
    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def unscale(self) -> None:
        """Hand the model's gradients to the optimizer's parameters, as they are."""
        self._prepared_optimizer()
        for weight, own in self._pairs:
            if own.grad is None:
                own.grad = weight.grad

    def step(self) -> bool:
        """Change the weights, one parameter after the other."""
        self.unscale()
        gradients = [own.grad for _, own in self._pairs]
        for _, own in self._pairs:
            own.grad = None  # an optimizer passes by what has no gradient
        for (weight, own), gradient in zip(self._pairs, gradients, strict=True):
            if gradient is not None:
                self._step_alone(weight, own, gradient)
        return True

    def _step_alone(self, weight: nn.Parameter, own: nn.Parameter, gradient: Tensor) -> None:
        place_holder = own.data
        own.data, own.grad_dtype = weight.detach().float(), torch.float32
        own.grad = gradient.float()
        self._optimizer.step()
        with torch.no_grad():
            weight.copy_(stochastic_round(own.detach(), self._generator))
        own.grad = None
        own.data, own.grad_dtype = place_holder, torch.bfloat16

    def state_dict(self) -> dict:
        """The state of the generator."""
        self._prepared_optimizer()
        return {"generator": self._generator.get_state()}

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Go on with the random numbers where `state` was taken. Raises ValueError for what is no state."""
        self._prepared_optimizer()
        try:
            self._generator.set_state(state["generator"].cpu())
        except (KeyError, AttributeError, TypeError, RuntimeError):
            came = f"generator is {describe(state['generator'])}" if "generator" in state else "state has no generator"
            name = "StochasticBFloat16.load_state_dict()"
            raise ValueError(f"{name}: {came}; a generator's state is asked for.") from None

    def _prepare(self, model: nn.Module, optimizer: Optimizer) -> None:
        super()._prepare(model, optimizer)
        self._generator = make_generator(self._seed, "stochastic rounding", device_of(model))

    def _make_own(self, weight: nn.Parameter, exact: Tensor) -> nn.Parameter:
        """A float32 parameter of the weight's shape over a storage of one number."""
        own = nn.Parameter(torch.zeros((), device=weight.device).expand(weight.shape), weight.requires_grad)
        own.grad_dtype = torch.bfloat16
        return own

    def _bytes(self, state_numbers: int) -> ParameterBytes:
        return ParameterBytes(2, 2, 0, 4 * state_numbers, self._assumes)


def _cast_inputs(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """A forward pre-hook: tensors of floats that the model is called with become bfloat16, as its weights are."""
    return tuple(map(_cast, args)), {name: _cast(value) for name, value in kwargs.items()}


def _cast(value: object) -> object:
    return value.to(torch.bfloat16) if isinstance(value, Tensor) and value.is_floating_point() else value


def _require_own_parameters(recipe: Precision, model: nn.Module, optimizer: Optimizer) -> None:
    own = set(model.parameters())
    if not all(p in own for group in optimizer.param_groups for p in group["params"]):
        came = "optimizer holds parameters that are none of the model's"
        raise ValueError(f"prepare() of {recipe.name!r}: {came}; one built from model.parameters() is asked for.")
