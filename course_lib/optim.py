"""SGD, AdaGrad, RMSProp, Adam and AdamW as torch optimizers: each a few lines on the one before it.

p is a parameter, g its gradient; m remembers gradients, g2 remembers squared gradients. Names of hyper-parameters and
their defaults are torch.optim's. So is the order of the operations: floats are rounded after each one, and in another
order a thousand steps would drift away from torch's. What can be done in place is, as in `m.mul_(0.9)`: a step needs
memory only for √g2, and for g where weight decay is added to it, of one parameter at a time.
"""
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from numbers import Real

import torch
from torch import Tensor
from torch.optim import Optimizer

from course_lib.checked import checked, describe


class _Optimizer(Optimizer):
    """What all five share: the walk over groups and parameters. `_update` says what a step does to one parameter.

    `state[p]` holds what is remembered of p. It is empty until p's first step; a parameter whose gradient is None is
    left as it is. `state_dict()` returns references, as torch's does: the next step changes what it returned.
    """

    _remembers: tuple[str, ...] = ()  # the names in state[p]

    def __init__(self, params: Iterable, **defaults: float | tuple[float, float]) -> None:
        if isinstance(params, Tensor | set | dict):  # a set comes in another order in each run
            came = describe(params) if isinstance(params, Tensor) else f"a {type(params).__name__}"
            raise TypeError(f"{type(self).__name__}(): params is {came}; a list of tensors or of groups is asked for.")
        _require_valid(self, "", defaults)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], object] | None = None) -> object:
        """Change each parameter by what its gradient says. A closure is called first; what it returns is returned.

        Raises ValueError for a sparse gradient, before any parameter is changed.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        _require_dense_gradients(self)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, self._decay(p, p.grad, group), group)
        return loss

    def _decay(self, p: Tensor, g: Tensor, group: dict) -> Tensor:
        """The gradient of loss + weight_decay/2 · Σ p², where g is the gradient of the loss."""
        return g.add(p, alpha=group["weight_decay"]) if group["weight_decay"] else g

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        raise NotImplementedError

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters: a dict with "params" and hyper-parameters of their own; what it lacks are the defaults.

        Raises ValueError for a hyper-parameter out of its range and for parameters that are no floats.
        """
        name, where = type(self).__name__, f" of group {len(self.param_groups)}"
        if "params" not in param_group:
            raise ValueError(f"{name}(): 'params'{where} is missing; a dict with 'params' is asked for.")
        _require_valid(self, where, param_group)
        super().add_param_group(param_group)
        for number, p in enumerate(param_group["params"]):
            if not p.is_floating_point():
                self.param_groups.pop()  # as if it had never been added
                came = f"parameter {number}{where} is {describe(p)}"
                raise ValueError(f"{name}(): {came}; a real floating-point dtype is asked for.")

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from where `state_dict` was taken. Everything is copied, so that two optimizers never share a tensor.

        (torch's own optimizers share the tensors that they load, if device and dtype agree: a step of one then changes
        what the other remembers.) Raises ValueError, and changes nothing, for the state_dict of something else.
        """
        _require_fitting(self, state_dict)
        super().load_state_dict(deepcopy(state_dict))


class SGD(_Optimizer):
    """Stochastic gradient descent with momentum: m ← momentum·m + g, p ← p − lr·m. Without momentum: p ← p − lr·g.

    Remembers nothing: 0 bytes per parameter. With momentum, m: one number per parameter, 4 bytes in float32.
    """

    _remembers = ("m",)

    @checked
    def __init__(
        self, params: Iterable, lr: float = 1e-3, momentum: float = 0, *, weight_decay: float = 0
    ) -> None:
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay)

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        if group["momentum"]:
            state = self.state[p]
            if "m" in state:
                state["m"].mul_(group["momentum"]).add_(g)
            else:
                state["m"] = g.clone()
            g = state["m"]
        p.add_(g, alpha=-group["lr"])


class AdaGrad(_Optimizer):
    """SGD whose step is divided by what the gradients have been: g2 ← g2 + g², p ← p − lr·g / (√g2 + eps).

    g2 only grows, so steps only shrink, most where gradients are large. Remembers g2: one number per parameter,
    4 bytes in float32. (Duchi, Hazan and Singer 2011.)
    """

    _remembers = ("g2",)

    @checked
    def __init__(
        self, params: Iterable, lr: float = 1e-2, *, weight_decay: float = 0, eps: float = 1e-10
    ) -> None:
        super().__init__(params, lr=lr, eps=eps, weight_decay=weight_decay)

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        state = self.state[p]
        if not state:
            state["g2"] = torch.zeros_like(p)
        g2 = state["g2"].addcmul_(g, g)
        p.addcdiv_(g, g2.sqrt().add_(group["eps"]), value=-group["lr"])


class RMSProp(_Optimizer):
    """AdaGrad that forgets: g2 is a moving average, g2 ← alpha·g2 + (1 − alpha)·g², and steps can grow again.

    Remembers g2: one number per parameter, 4 bytes in float32. (Hinton's lectures of 2012.)
    """

    _remembers = ("g2",)

    @checked
    def __init__(
        self, params: Iterable, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0
    ) -> None:
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        state = self.state[p]
        if not state:
            state["g2"] = torch.zeros_like(p)
        g2 = state["g2"].mul_(group["alpha"]).addcmul_(g, g, value=1 - group["alpha"])
        p.addcdiv_(g, g2.sqrt().add_(group["eps"]), value=-group["lr"])


class Adam(_Optimizer):
    """RMSProp with momentum, both corrected for their start at 0: after t steps they hold only 1 − betaᵗ of a mean.

    m ← beta₁·m + (1 − beta₁)·g, g2 ← beta₂·g2 + (1 − beta₂)·g²,
    p ← p − lr · m/(1 − beta₁ᵗ) / (√(g2/(1 − beta₂ᵗ)) + eps). The first step is lr·sign(g), however large g is.

    Remembers m and g2: two numbers per parameter, 8 bytes in float32, and once per tensor t, as a Python int called
    step. (Kingma and Ba 2014.)
    """

    _remembers = ("m", "g2", "step")

    @checked
    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        state = self.state[p]
        if not state:
            state.update(m=torch.zeros_like(p), g2=torch.zeros_like(p), step=0)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        m = state["m"].lerp_(g, 1 - beta1)  # from m a share of 1 − beta1 of the way to g
        g2 = state["g2"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        corrected1, corrected2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        p.addcdiv_(m, g2.sqrt().div_(corrected2**0.5).add_(group["eps"]), value=-group["lr"] / corrected1)


class AdamW(Adam):
    """Adam whose weight decay stays out of the gradient: p ← (1 − lr·weight_decay)·p, and then Adam's step.

    In Adam the decay is part of g, so that it is divided by √g2 too, and large gradients switch it off. Here every
    weight decays alike, also where its gradient is 0; where it is None, nothing happens.

    Remembers what Adam does: 8 bytes per parameter in float32. (Loshchilov and Hutter 2017.)
    """

    @checked
    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

    def _decay(self, p: Tensor, g: Tensor, group: dict) -> Tensor:
        if group["weight_decay"]:
            p.mul_(1 - group["lr"] * group["weight_decay"])
        return g


_FINITE = math.inf, "a finite number of at least 0"
_SHARE = 1, "a number of at least 0 and below 1"  # how much of the past is kept: from 1 on it would never fade
_ALLOWED = {"lr": _FINITE, "momentum": _SHARE, "alpha": _SHARE, "eps": _FINITE, "weight_decay": _FINITE}


def _require_valid(optimizer: Optimizer, where: str, group: dict) -> None:
    """Raise one sentence for a wrong hyper-parameter. NumPy's numbers become floats, which checkpoints can hold."""
    function = f"{type(optimizer).__name__}()"
    for name in [known for known in _ALLOWED if known in group]:
        group[name] = _valid(f"{function}: {name}{where}", group[name], *_ALLOWED[name])
    if "betas" in group:
        betas = group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise TypeError(f"{function}: betas{where} is {describe(betas)}; a pair of numbers is asked for.")
        group["betas"] = tuple(_valid(f"{function}: betas[{i}]{where}", betas[i], *_SHARE) for i in (0, 1))


def _valid(what: str, value: object, below: float, wanted: str) -> float:
    if not isinstance(value, Real):
        raise TypeError(f"{what} is {describe(value)}; {wanted} is asked for.")
    if not 0 <= value < below:
        raise ValueError(f"{what} is {value}; {wanted} is asked for.")
    return float(value)


def _require_dense_gradients(optimizer: Optimizer) -> None:
    for index, group in enumerate(optimizer.param_groups):
        for number, p in enumerate(group["params"]):
            if p.grad is not None and p.grad.layout is not torch.strided:
                came = f"the gradient of parameter {number} of group {index} is of layout {p.grad.layout}"
                wanted = "a dense one is asked for (an Embedding gives it without sparse=True)"
                raise ValueError(f"{type(optimizer).__name__}.step(): {came}; {wanted}.")


def _require_fitting(optimizer: _Optimizer, state_dict: dict) -> None:
    """Raise one sentence unless `state_dict` can be this optimizer's. How many groups there are torch checks itself."""
    name = type(optimizer).__name__
    own = f"what state_dict() of {name} returned for the same parameters is asked for"
    if complaint := _misfit(optimizer, state_dict):
        raise ValueError(f"{name}.load_state_dict(): {complaint}; {own}.")


def _misfit(optimizer: _Optimizer, state_dict: dict) -> str | None:
    if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= state_dict.keys():
        return "state_dict lacks 'state' or 'param_groups'"
    ids = []
    for index, group in enumerate(state_dict["param_groups"]):
        if missing := ({*_ALLOWED, "betas"} & optimizer.defaults.keys()) - group.keys():
            return f"group {index} lacks {' and '.join(sorted(missing))}"
        ids += group["params"]
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for number, (id_, p) in enumerate(zip(ids, params, strict=False)):
        saved = state_dict["state"].get(id_, {})
        if saved and saved.keys() != set(optimizer._remembers):
            return f"of parameter {number} it remembers {' and '.join(sorted(saved))}"
        for key, value in saved.items():
            if isinstance(value, Tensor) and value.shape != p.shape:
                return f"{key} of parameter {number} has shape {tuple(value.shape)}, the parameter {tuple(p.shape)}"
    return None
