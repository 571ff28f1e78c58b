"""How notebook 10 looks at an optimizer that a learner has written: two parameters, p and q, take steps with it."""
import copy
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.exercises.probing import require

Gradients = tuple[Tensor | None, Tensor | None]  # of p and of q
_START = torch.tensor([1.0, -2.0, 3.0]).double(), torch.ones(2, 2).double()


def random_gradients(steps: int, scale: float = 1.0) -> list[Gradients]:
    """For each step a gradient of p, of shape (3,), and one of q, of shape (2, 2)."""
    made = torch.randn(steps, 7, dtype=torch.float64) * scale
    return [(step[:3].clone(), step[3:].reshape(2, 2).clone()) for step in made]


def same_gradients(steps: int, size: float = 1.0) -> list[Gradients]:
    """The same gradients at each step: `size` for all of p, −`size` for all of q."""
    return [(torch.full((3,), size).double(), torch.full((2, 2), -size).double())] * steps


def with_gaps(gradients: list[Gradients]) -> list[Gradients]:
    """p has no gradient (None) at every second step, q has none at the others."""
    return [(None if i % 2 else p, q if i % 2 else None) for i, (p, q) in enumerate(gradients)]


class _Run:
    """p and q, in a group each if q has hyper-parameters of its own, and the candidate's optimizer on them."""

    def __init__(self, candidate: Callable, settings: dict, own: dict, start: list[Tensor]) -> None:
        self.params = [nn.Parameter(x.clone()) for x in start]
        self.views = [x.detach() for x in self.params]  # these see a step only if it writes in place
        groups = [{"params": self.params[:1]}, {"params": self.params[1:], **own}]
        self.optimizer = candidate(groups if own else self.params, **settings)
        require(isinstance(self.optimizer, Optimizer), self.optimizer, "a torch.optim.Optimizer")
        self.gradients_unharmed = True

    def step(self, gradients: Gradients, lr: float | None, set_to_none: bool) -> None:
        for p, g in zip(self.params, gradients, strict=True):
            if set_to_none or p.grad is None or g is None:
                p.grad = None if g is None else g.clone()
            else:
                p.grad.copy_(g)  # as in a loop with zero_grad(set_to_none=False): one storage for all gradients
        for group in self.optimizer.param_groups:
            group |= {} if lr is None else {"lr": lr}
        self.optimizer.step()
        for p, g in zip(self.params, gradients, strict=True):
            self.gradients_unharmed &= p.grad is g if g is None or p.grad is None else torch.equal(p.grad, g)

    def values(self) -> list[Tensor]:
        return [x.clone() for x in self.views]


def drive(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """Where p and q are after each step, and claims about what else has to hold. A learner reads the keys.

    The gradients come as the one argument. Keywords are the optimizer's, but for `q_has` (hyper-parameters of q's own
    group), `lrs` (the learning rate before each step, as a schedule sets it) and `set_to_none`.
    """
    (gradients,), settings = args, dict(kwargs)
    own, none = settings.pop("q_has", {}), settings.pop("set_to_none", True)
    steps = [*zip(gradients, settings.pop("lrs", [None] * len(gradients)), strict=True)]
    run, half, seen = _Run(candidate, settings, own, [*_START]), len(steps) // 2, {}
    for number, step in enumerate(steps):
        if number == half:
            saved, then = copy.deepcopy(run.optimizer.state_dict()), run.values()
        run.step(*step, none)
        seen |= {f"{name} after step {number + 1}": x for name, x in zip("pq", run.values(), strict=True)}
    resumed = _Run(candidate, settings, own, then)
    resumed.optimizer.load_state_dict(saved)
    for step in steps[half:]:
        resumed.step(*step, none)
    held = [x for x in run.optimizer.state[run.params[0]].values() if isinstance(x, Tensor) and x.shape == (3,)]
    # Said first: what float32 costs is not seen in six digits of p.
    kept = {"tensors of p's shape in self.state[p]": [str(x.dtype).removeprefix("torch.") for x in held]}
    return kept | seen | {
        "gradients are left alone": run.gradients_unharmed,
        "state_dict() saves all that is needed to go on": all(map(torch.equal, run.values(), resumed.values())),
    }


class Stepping(Optimizer):
    """What wrong and other right answers share: the walk over groups and parameters. They differ in `one`."""

    settings: ClassVar[dict] = {}
    skips_none = True

    def __init__(self, params: list, **given: object) -> None:
        super().__init__(params, self.settings | given)

    @torch.no_grad()
    def step(self) -> None:
        """Hand each parameter that has a gradient to `one`."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None or not self.skips_none:
                    self.one(p, p.grad, self.state[p], group)

    def one(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Move one parameter."""
        raise NotImplementedError


class MomentumInParts(Stepping):
    """A right one; a wrong one overrides a part."""

    settings: ClassVar[dict] = {"lr": 0.01, "momentum": 0.9}

    def one(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Remember, then move."""
        state["m"] = self.remember(state.get("m", 0), g, group)
        p -= group["lr"] * state["m"]

    def remember(self, m: Tensor, g: Tensor, group: dict) -> Tensor:
        """The new m."""
        return group["momentum"] * m + g


class AdaGradInParts(Stepping):
    """A right one; a wrong one overrides a part."""

    settings: ClassVar[dict] = {"lr": 0.01, "eps": 1e-10}

    def one(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Remember, then move."""
        state["g2"] = self.remember(state.get("g2", torch.zeros_like(p)), g)
        p -= group["lr"] * g / self.divisor(state["g2"], group["eps"])

    def remember(self, g2: Tensor, g: Tensor) -> Tensor:
        """The new g2."""
        return g2 + g**2

    def divisor(self, g2: Tensor, eps: float) -> Tensor:
        """What a step is divided by."""
        return g2.sqrt() + eps


class AdamWInParts(Stepping):
    """A right one; a wrong one overrides a part."""

    settings: ClassVar[dict] = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}

    def one(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Count, then move."""
        if not state:
            state.update(m=torch.zeros_like(p), g2=torch.zeros_like(p), t=0)
        state["t"] += 1
        self.update(p, g, state, group, state["t"])

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict, t: int) -> None:
        """Step number t of p."""
        beta1, beta2 = group["betas"]
        state["m"] = beta1 * state["m"] + (1 - beta1) * g
        state["g2"] = beta2 * state["g2"] + (1 - beta2) * g**2
        m, g2 = self.corrected(state, beta1, beta2, t)
        p *= 1 - group["lr"] * group["weight_decay"]
        p -= group["lr"] * m / self.divisor(g2, group["eps"])

    def corrected(self, state: dict, beta1: float, beta2: float, t: int) -> tuple[Tensor, Tensor]:
        """m and g2 without what their start at 0 takes from them."""
        return state["m"] / (1 - beta1**t), state["g2"] / (1 - beta2**t)

    def divisor(self, g2: Tensor, eps: float) -> Tensor:
        """What a step is divided by."""
        return g2.sqrt() + eps


def tied(words: int, dim: int) -> nn.Module:
    """An embedding, a norm, an output layer that shares the embedding's weight, and a scale without any axis."""
    model = nn.Sequential(nn.Embedding(words, dim), nn.LayerNorm(dim), nn.Linear(dim, words, bias=False))
    model[2].weight, model.scale = model[0].weight, nn.Parameter(torch.ones(()))
    return model


def freeze(model: nn.Module, *names: str) -> nn.Module:
    """The model, with these parameters frozen."""
    for name in names:
        model.get_parameter(name).requires_grad_(False)
    return model


def look_into_the_groups(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """The names of the parameters in each group, and the decay that AdamW makes of it."""
    model, weight_decay = args
    names = {id(p): name for name, p in model.named_parameters()}
    result, wanted = candidate(model, weight_decay), "a list of two dicts"
    require(isinstance(result, list | tuple), result, wanted)
    for group in result:
        require(isinstance(group, dict), result, wanted)
        require("params" in group, group, 'a dict with an entry "params"')
    groups = [{**group, "params": _without_names(group["params"])} for group in result]
    held = [[names.get(id(p), "no parameter of the model") for p in group["params"]] for group in groups]
    seen = {f"group {i}": found for i, found in enumerate(held)}
    made = torch.optim.AdamW(groups).param_groups
    return seen | {f"weight_decay of group {i}, in AdamW": g["weight_decay"] for i, g in enumerate(made)}


def _without_names(params: object) -> list:
    """torch also takes pairs of a name and a parameter."""
    parts = [params] if isinstance(params, Tensor) else [*params]
    return [part[1] if isinstance(part, tuple) else part for part in parts]
