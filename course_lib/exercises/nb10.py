"""The exercises of notebook 10: momentum, AdaGrad, AdamW, which parameters decay, and the bytes that training takes."""
import torch
from torch import nn

from course_lib.exercises.engine import case, exercise
from course_lib.exercises.optimizer_runs import (
    AdaGradInParts,
    AdamWInParts,
    MomentumInParts,
    drive,
    freeze,  # noqa: F401  the cases name them
    look_into_the_groups,
    random_gradients,  # noqa: F401
    same_gradients,  # noqa: F401
    tied,  # noqa: F401
    with_gaps,  # noqa: F401
)

# ---------------------------------------------------------------- 10.1


@exercise(
    notebook="10",
    tolerance=(1e-10, 1e-12),
    hints=[
        "Walk over groups and parameters as SGD above does. What is new is m: where does it live between two steps?",
        "self.state[p] is a dict that belongs to p, empty at first: state.get('m', 0) is 0 then.",
        "m becomes momentum · m + g, and p moves by −lr · m. Both hyper-parameters come from the group.",
    ],
    why="m lives in self.state[p], so state_dict() saves it. momentum · m + g makes a new tensor, so m never shares "
    "the storage of a gradient that somebody will overwrite. And p -= … writes into p; p = p - … would not.",
)
class Momentum(torch.optim.Optimizer):
    """SGD with momentum: m = momentum * m + g, then p = p - lr * m.

    m begins at 0 and is the one tensor in self.state[p]. A parameter without a gradient is skipped.
    """

    def __init__(self, params, lr: float = 0.01, momentum: float = 0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["m"] = group["momentum"] * state.get("m", 0) + p.grad
                p -= group["lr"] * state["m"]


Momentum.cases(
    case("random_gradients(1)", "one step"),
    case("same_gradients(6)", "a gradient that stays the same"),
    "random_gradients(4), lr=0.1, momentum=0.5",
    case("with_gaps(random_gradients(5)), lr=0.1", "a parameter without a gradient"),
    "[(None, None)] + random_gradients(2)",
    case('random_gradients(3), q_has={"lr": 0.5}', "a learning rate of q's own"),
    'random_gradients(3), lr=0.1, q_has={"momentum": 0.2}, set_to_none=False',
    case("random_gradients(4), lrs=[0.1, 0.1, 0.01, 0.001]", "a learning rate that changes"),
    "same_gradients(4), lrs=[0.01, 0.02, 0.04, 0.08], momentum=0.5",
    case("random_gradients(4), set_to_none=False", "gradients that are overwritten in place"),
    case("random_gradients(2) + same_gradients(3, 0.0), lr=0.1", "gradients of 0 after a push"),
)
Momentum.probe(drive)


@Momentum.misconception("That is an average of gradients, as in Adam. Here g counts in full: m = momentum * m + g.")
class _averages(MomentumInParts):
    def remember(self, m, g, group):
        return group["momentum"] * m + (1 - group["momentum"]) * g


@Momentum.misconception("You remember lr * g. When lr changes, old gradients would go on with the old lr: m sums g.")
class _remembers_steps(MomentumInParts):
    def one(self, p, g, state, group):
        state["m"] = group["momentum"] * state.get("m", 0) + group["lr"] * g
        p -= state["m"]


@Momentum.misconception("You move p before the new gradient is in m, so each gradient comes a step late.")
class _a_step_late(MomentumInParts):
    def one(self, p, g, state, group):
        p -= group["lr"] * state.get("m", 0)
        state["m"] = self.remember(state.get("m", 0), g, group)


@Momentum.misconception("m is not in self.state[p], so state_dict() does not save it: a resumed run begins at rest.")
class _outside_of_state(MomentumInParts):
    def one(self, p, g, state, group):
        self.speed = getattr(self, "speed", {})
        self.speed[p] = self.remember(self.speed.get(p, 0), g, group)
        p -= group["lr"] * self.speed[p]


@Momentum.misconception("You used the numbers of the constructor. Each group has its own: group['lr'].")
class _constructors_numbers(MomentumInParts):
    def one(self, p, g, state, group):
        super().one(p, g, state, self.defaults)


@Momentum.misconception("p.grad may be None: nobody used p this time. Skip such a parameter.")
class _expects_a_gradient(MomentumInParts):
    skips_none = False


@Momentum.misconception("You made a new tensor. The one that the model holds is as before: write into it, p -= ….")
class _rebinds_p(MomentumInParts):
    def one(self, p, g, state, group):
        super().one(p.clone(), g, state, group)


@Momentum.misconception("Your m is the gradient's own tensor: who overwrites the gradient overwrites m. Store a copy.")
class _keeps_the_gradient(MomentumInParts):
    def remember(self, m, g, group):
        return g if isinstance(m, int) else m.mul_(group["momentum"]).add_(g)


@Momentum.accepts
class _in_place(MomentumInParts):
    def one(self, p, g, state, group):
        if not state:
            state["speed"] = torch.zeros_like(p)
        p.add_(state["speed"].mul_(group["momentum"]).add_(g), alpha=-group["lr"])


@Momentum.accepts
class _torchs_sgd(torch.optim.SGD):
    def __init__(self, params, lr=0.01, momentum=0.9):
        super().__init__(params, lr=lr, momentum=momentum)


# ---------------------------------------------------------------- 10.2


@exercise(
    notebook="10",
    tolerance=(1e-10, 1e-12),
    hints=[
        "state['g2'] is a tensor like p, of zeros before the first step: torch.zeros_like(p).",
        "First add the squared gradient to g2; only then divide.",
        "The root of g2 first, then + eps. lr and eps come from the group.",
    ],
    why="g2 is part of the state and is updated first, so that the first step is lr · g/|g|. It only grows: what has "
    "seen large gradients takes small steps from then on, each element by itself.",
)
class AdaGrad(torch.optim.Optimizer):
    """AdaGrad: g2 = g2 + g², then p = p - lr * g / (√g2 + eps).

    g2 begins at 0 and is the one tensor in self.state[p], of p's shape and dtype. A parameter
    without a gradient is skipped.
    """

    def __init__(self, params, lr: float = 0.01, eps: float = 1e-10):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "g2" not in state:
                    state["g2"] = torch.zeros_like(p)
                state["g2"] += p.grad**2
                p -= group["lr"] * p.grad / (state["g2"].sqrt() + group["eps"])


AdaGrad.cases(
    case("random_gradients(1)", "one step"),
    "random_gradients(4), lr=0.3",
    case("same_gradients(5, 100.0), lr=1.0", "large gradients"),
    case("random_gradients(3, 1e-4), eps=1e-3", "gradients smaller than eps"),
    case("random_gradients(3, 1e-10), lr=1.0", "tiny gradients"),
    case("same_gradients(1, 0.0) + random_gradients(2)", "gradients of 0"),
    case("with_gaps(random_gradients(5)), lr=0.1", "a parameter without a gradient"),
    "[(None, None)] + random_gradients(2)",
    case('random_gradients(3), q_has={"lr": 0.5}', "a learning rate of q's own"),
    'random_gradients(3), lr=0.1, q_has={"eps": 0.5}',
    "same_gradients(1, 10.0) + random_gradients(4), lrs=[1.0, 1.0, 0.5, 0.1, 0.1]",
)
AdaGrad.probe(drive)


@AdaGrad.misconception("eps stands outside of the root, √g2 + eps. Inside it outweighs small gradients.")
class _eps_inside(AdaGradInParts):
    def divisor(self, g2, eps):
        return (g2 + eps).sqrt()


@AdaGrad.misconception("The root is missing: divided by g2 itself, small gradients take huge steps.")
class _no_root(AdaGradInParts):
    def divisor(self, g2, eps):
        return g2 + eps


@AdaGrad.misconception("You replaced g2 at each step. It sums the squares of all gradients so far.")
class _last_gradient_alone(AdaGradInParts):
    def remember(self, g2, g):
        return g**2


@AdaGrad.misconception("You divide before the new gradient is in g2: the first step is divided by eps alone.")
class _squares_late(AdaGradInParts):
    def one(self, p, g, state, group):
        g2 = state.get("g2", torch.zeros_like(p))
        p -= group["lr"] * g / self.divisor(g2, group["eps"])
        state["g2"] = self.remember(g2, g)


@AdaGrad.misconception("You keep one number for a whole tensor. Each element has a g2 of its own.")
class _one_for_all(AdaGradInParts):
    def remember(self, g2, g):
        return g2 + (g**2).sum()


@AdaGrad.misconception("torch.zeros(p.shape) is float32, whatever p is, and g2 with it. zeros_like(p) takes p's dtype.")
class _float32_state(AdaGradInParts):
    def one(self, p, g, state, group):
        state["g2"] = state.get("g2", torch.zeros(p.shape)).add_(g**2)
        p -= group["lr"] * g / self.divisor(state["g2"], group["eps"])


@AdaGrad.misconception("p.grad can be None. No gradient is not a gradient of 0: skip the parameter.")
class _squares_none(AdaGradInParts):
    skips_none = False


@AdaGrad.accepts
class _adagrad_in_place(AdaGradInParts):
    def one(self, p, g, state, group):
        g2 = state.setdefault("sum", torch.zeros_like(p)).addcmul_(g, g)
        p.addcdiv_(g, g2.sqrt().add_(group["eps"]), value=-group["lr"])


AdaGrad.accepts(torch.optim.Adagrad)


# ---------------------------------------------------------------- 10.3


@exercise(
    notebook="10",
    tolerance=(1e-10, 1e-12),
    hints=[
        "Three things in self.state[p]: m, g2, and how many steps p has taken, which is 1 at the first step.",
        "m and g2 are averages now: beta · old + (1 − beta) · new. Correct copies; the state stays as it is.",
        "The decay is a line of its own, before the step: p loses the share lr · weight_decay. g knows nothing of it.",
    ],
    why="After t steps the averages hold only 1 − betaᵗ of a mean, so they are divided by that, on the way out. The "
    "decay stays out of g: what is not in g is not divided by √g2. And t belongs to p, not to the optimizer.",
)
class AdamW(torch.optim.Optimizer):
    """AdamW. With beta1, beta2 = betas, and t = 1 at p's first step:

        m = beta1 * m + (1 - beta1) * g          g2 = beta2 * g2 + (1 - beta2) * g²
        p = p - lr * weight_decay * p
        p = p - lr * m / (1 - beta1ᵗ) / (√(g2 / (1 - beta2ᵗ)) + eps)

    m and g2 begin at 0; they and t are in self.state[p]. t counts the steps that p has taken: a
    parameter without a gradient is skipped. Compared in float64, to 1e-10.
    """

    def __init__(self, params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(m=torch.zeros_like(p), g2=torch.zeros_like(p), step=0)
                state["step"] += 1
                state["m"] = beta1 * state["m"] + (1 - beta1) * p.grad
                state["g2"] = beta2 * state["g2"] + (1 - beta2) * p.grad**2
                m = state["m"] / (1 - beta1 ** state["step"])
                g2 = state["g2"] / (1 - beta2 ** state["step"])
                p -= group["lr"] * group["weight_decay"] * p
                p -= group["lr"] * m / (g2.sqrt() + group["eps"])


AdamW.cases(
    case("random_gradients(1)", "one step"),
    "random_gradients(5)",
    case("random_gradients(3, 1000.0), lr=0.1, weight_decay=0.5", "large gradients and a strong decay"),
    case("random_gradients(3, 1e-8)", "tiny gradients"),
    case("random_gradients(2, 1e-3), eps=0.1, lr=0.1", "a large eps"),
    case("same_gradients(3, 0.0), lr=0.1, weight_decay=0.1", "gradients of 0"),
    case("with_gaps(random_gradients(6)), lr=0.1", "a parameter without a gradient"),
    "with_gaps(same_gradients(5)), betas=(0.8, 0.9)",
    "random_gradients(4), betas=(0.5, 0.7), lr=0.1",
    case('random_gradients(3), q_has={"lr": 0.5, "weight_decay": 0.3}', "a decay of q's own"),
    'random_gradients(3), lr=0.1, q_has={"betas": (0.3, 0.6), "eps": 0.5}',
    "random_gradients(4), lrs=[0.1, 0.2, 0.1, 0.01], weight_decay=0",
)
AdamW.probe(drive)


@AdamW.misconception("Without the correction the first steps are too large: m holds a tenth of g, √g2 a thirtieth.")
class _uncorrected(AdamWInParts):
    def corrected(self, state, beta1, beta2, t):
        return state["m"], state["g2"]


@AdamW.misconception("The decay went into the gradient, and is divided by √g2 with it. That is Adam; AdamW shrinks p.")
class _decays_the_gradient(AdamWInParts):
    def update(self, p, g, state, group, t):
        super().update(p, g + group["weight_decay"] * p, state, group | {"weight_decay": 0}, t)


@AdamW.misconception("The decay is multiplied by lr: p shrinks by lr · weight_decay at each step.")
class _decay_without_lr(AdamWInParts):
    def update(self, p, g, state, group, t):
        p *= 1 - group["weight_decay"]
        super().update(p, g, state, group | {"weight_decay": 0}, t)


@AdamW.misconception("You decay what the step has left. The decay comes first: it takes its share of the old p.")
class _decay_after_the_step(AdamWInParts):
    def update(self, p, g, state, group, t):
        super().update(p, g, state, group | {"weight_decay": 0}, t)
        p *= 1 - group["lr"] * group["weight_decay"]


@AdamW.misconception("eps stands outside of the root: √(…) + eps.")
class _adams_eps_inside(AdamWInParts):
    def divisor(self, g2, eps):
        return (g2 + eps).sqrt()


@AdamW.misconception("You stored the corrected averages, so each step corrects them again. Correct copies.")
class _corrects_the_state(AdamWInParts):
    def corrected(self, state, beta1, beta2, t):
        state["m"], state["g2"] = super().corrected(state, beta1, beta2, t)
        return state["m"], state["g2"]


@AdamW.misconception("You counted t from 0. At the first step 1 − beta⁰ is 0, and you divide by it.")
class _counts_from_0(AdamWInParts):
    def corrected(self, state, beta1, beta2, t):
        return super().corrected(state, beta1, beta2, t - 1)


@AdamW.misconception("t counts calls of step(). A parameter that was skipped has taken fewer: count in self.state[p].")
class _one_t_for_all(AdamWInParts):
    def step(self):
        for group in self.param_groups:
            group["t"] = group.get("t", 0) + 1  # a group's numbers are saved, too
        super().step()

    def update(self, p, g, state, group, t):
        super().update(p, g, state, group, group["t"])


@AdamW.misconception("t is outside of self.state, so state_dict() does not save it: a resumed run counts from 1 again.")
class _t_outside_of_state(AdamWInParts):
    def one(self, p, g, state, group):
        self.t = getattr(self, "t", {})
        self.t[p] = self.t.get(p, 0) + 1
        if not state:
            state.update(m=torch.zeros_like(p), g2=torch.zeros_like(p))
        self.update(p, g, state, group, self.t[p])


@AdamW.misconception("A parameter without a gradient is skipped as a whole: it does not decay either.")
class _decays_without_gradient(AdamWInParts):
    skips_none = False

    def one(self, p, g, state, group):
        if g is None:
            p *= 1 - group["lr"] * group["weight_decay"]
        else:
            super().one(p, g, state, group)


@AdamW.misconception("eps belongs to the corrected √g2. Correcting lr instead of g2, you divide eps as well.")
class _corrects_the_rate(AdamWInParts):
    def corrected(self, state, beta1, beta2, t):
        self.root = (1 - beta2**t) ** 0.5
        return super().corrected(state, beta1, beta2, t)

    def divisor(self, g2, eps):
        return super().divisor(g2, eps / self.root)


@AdamW.misconception("1 − betaᵗ is float32 if t is a tensor: seven digits. Count in a Python int, or take t.item().")
class _t_is_a_tensor(AdamWInParts):
    def one(self, p, g, state, group):
        state.setdefault("t", torch.tensor(0.0)).add_(1)
        state.setdefault("m", torch.zeros_like(p)), state.setdefault("g2", torch.zeros_like(p))
        self.update(p, g, state, group, state["t"])


@AdamW.accepts
class _adamw_in_place(AdamWInParts):
    def update(self, p, g, state, group, t):
        (beta1, beta2), lr = group["betas"], group["lr"]
        p.mul_(1 - lr * group["weight_decay"])
        m, g2 = state["m"].lerp_(g, 1 - beta1), state["g2"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = g2.sqrt().div_((1 - beta2**t) ** 0.5).add_(group["eps"])
        p.addcdiv_(m, root, value=-lr / (1 - beta1**t))


AdamW.accepts(torch.optim.AdamW)


# ---------------------------------------------------------------- 10.4


@exercise(
    notebook="10",
    hints=[
        "How many axes has a bias, how many the weight of a Linear, an Embedding, a Conv2d? p.ndim counts them.",
        "A group is a dict: {'params': [...], 'weight_decay': ...}. Which weight_decay has a group that names none?",
        "model.parameters() lists a shared parameter once. p.requires_grad says whether it learns.",
    ],
    why="Weights with two axes or more are multiplied with signals, and there are many of them; a bias or the scale of "
    "a norm has one axis and a value to find. A group that says nothing gets AdamW's default, so 0 has to be said.",
)
def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Two parameter groups for torch.optim.AdamW: what decays, then what does not.

    The first has the given weight_decay and all parameters with two axes or more; the second does
    not decay and has all others: biases, scales of norms. Parameters that do not require grad are
    in neither. Within a group they come in the order of model.parameters().
    """
    learn = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in learn if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in learn if p.ndim < 2], "weight_decay": 0.0},
    ]


decay_groups.cases(
    case("nn.Linear(3, 2), 0.1", "a layer with a bias"),
    case("nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 2)), 0.01", "a norm between two layers"),
    case("nn.Sequential(nn.Conv2d(3, 4, 5), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2)), 0.1", "a convolution"),
    case("tied(5, 3), 0.2", "a weight that two layers share, and a single number"),
    case('freeze(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)), "0.weight", "1.bias"), 0.1', "frozen parameters"),
    "nn.Sequential(nn.Embedding(7, 4), nn.Conv1d(4, 2, 3)), 0.3",
    "nn.Linear(3, 2, bias=False), 0.1",
    case("nn.Sequential(nn.Linear(1, 2), nn.LayerNorm(9)), 0.1", "a matrix with one column"),
    'freeze(nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2)), "0.bias"), 0.5',
)
decay_groups.probe(look_into_the_groups)


def _two_groups(model, weight_decay, decays, learns=lambda p: p.requires_grad):
    named = [(name, p) for name, p in model.named_parameters() if learns(p)]
    return [
        {"params": [p for name, p in named if decays(name, p)], "weight_decay": weight_decay},
        {"params": [p for name, p in named if not decays(name, p)], "weight_decay": 0},
    ]


@decay_groups.misconception("You went by the name: the scale of a norm is called weight, and has one axis.")
def by_name(model, weight_decay):
    return _two_groups(model, weight_decay, lambda name, p: not name.endswith("bias"))


@decay_groups.misconception("The second group names no weight_decay, and gets AdamW's default of 0.01. Say 0.")
def says_nothing(model, weight_decay):
    first, second = decay_groups.reference(model, weight_decay)
    return [first, {"params": second["params"]}]


@decay_groups.misconception("Frozen parameters are in your groups. They do not learn: leave them out.")
def with_frozen(model, weight_decay):
    return _two_groups(model, weight_decay, lambda name, p: p.ndim >= 2, learns=lambda p: True)


@decay_groups.misconception("The groups are swapped: first what decays, then what does not.")
def swapped(model, weight_decay):
    first, second = decay_groups.reference(model, weight_decay)
    return [second | {"weight_decay": 0.0}, first | {"weight_decay": weight_decay}]


@decay_groups.misconception("The weight of a convolution has three axes or four. All with two or more decay.")
def two_axes_exactly(model, weight_decay):
    return _two_groups(model, weight_decay, lambda name, p: p.ndim == 2)


@decay_groups.misconception("You looked at Linear layers alone. Embeddings and convolutions have matrices, too.")
def linear_layers(model, weight_decay):
    weights = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return _two_groups(model, weight_decay, lambda name, p: id(p) in weights)


@decay_groups.accepts
def module_by_module(model, weight_decay):
    decays, others = {}, {}
    for module in model.modules():
        for p in module.parameters(recurse=False):
            if p.requires_grad:
                (decays if p.dim() > 1 else others)[p] = None  # a dict keeps the order, and holds a shared one once
    return [{"params": list(decays), "weight_decay": weight_decay}, {"params": list(others), "weight_decay": 0}]


@decay_groups.accepts
def in_one_walk(model, weight_decay):
    groups = [{"params": [], "weight_decay": decay} for decay in (weight_decay, 0.0)]
    for p in filter(lambda p: p.requires_grad, model.parameters()):
        groups[len(p.shape) < 2]["params"].append(p)
    return groups


# ---------------------------------------------------------------- 10.5


@exercise(
    notebook="10",
    hints=[
        "Four kinds of numbers: weights, gradients, what the optimizer remembers, activations. Each takes 4 bytes.",
        "How many numbers does each optimizer remember of a parameter? SGD none, momentum one, called m.",
        "A frozen parameter has its weight. Who would compute a gradient for it, or remember one?",
    ],
    why="A parameter that learns has its weight, its gradient, and what the optimizer remembers: 0 to 2 numbers more. "
    "Frozen ones have their weight alone. The activations depend on the batch, not on the optimizer.",
)
def training_bytes(optimizer: str, learning: int, frozen: int, activations: int) -> int:
    """Bytes of weights, gradients, what the optimizer remembers, and activations, all in float32.

    optimizer is "SGD" (without momentum), "momentum", "AdaGrad", "RMSProp", "Adam" or "AdamW".
    `learning` and `frozen` count parameters, `activations` the numbers kept for backward. Single
    numbers, such as how many steps were taken, do not count.
    """
    remembered = {"SGD": 0, "momentum": 1, "AdaGrad": 1, "RMSProp": 1, "Adam": 2, "AdamW": 2}
    numbers = (2 + remembered[optimizer]) * learning + frozen + activations
    return 4 * numbers


training_bytes.cases(
    case('"AdamW", 8256, 0, 1552', "Cruncher(64, 2) with a batch of 8"),
    case('"SGD", 8256, 0, 1552', "an optimizer that remembers nothing"),
    '"momentum", 100, 0, 7',
    '"AdaGrad", 1000, 0, 30',
    '"RMSProp", 50, 0, 3',
    '"Adam", 70_000, 0, 1_000',
    case('"AdamW", 1000, 9000, 500', "mostly frozen"),
    '"SGD", 10, 20, 5',
    case('"Adam", 0, 12, 0', "all frozen"),
    '"momentum", 3, 11, 2',
)


@training_bytes.misconception("Those are numbers. Each of them takes 4 bytes in float32.")
def counts_numbers(optimizer, learning, frozen, activations):
    return training_bytes.reference(optimizer, learning, frozen, activations) // 4


@training_bytes.misconception("The gradients are missing: each parameter that learns has one, as large as its weight.")
def without_gradients(optimizer, learning, frozen, activations):
    return training_bytes.reference(optimizer, learning, frozen, activations) - 4 * learning


@training_bytes.misconception("The activations are missing. Backward needs them, and they take memory as well.")
def without_activations(optimizer, learning, frozen, activations):
    return training_bytes.reference(optimizer, learning, frozen, 0)


@training_bytes.misconception("That is what the model and its gradients take. What does the optimizer remember?")
def without_state(optimizer, learning, frozen, activations):
    return training_bytes.reference("SGD", learning, frozen, activations)


@training_bytes.misconception("A frozen parameter has no gradient, and so the optimizer remembers nothing of it.")
def frozen_learn_too(optimizer, learning, frozen, activations):
    return training_bytes.reference(optimizer, learning + frozen, 0, activations)


@training_bytes.misconception("Adam is RMSProp with momentum: it remembers m and g2, two numbers for each parameter.")
def adam_remembers_one(optimizer, learning, frozen, activations):
    optimizer = "momentum" if optimizer.startswith("Adam") else optimizer
    return training_bytes.reference(optimizer, learning, frozen, activations)


@training_bytes.misconception("Without momentum SGD forgets each gradient at once: it remembers nothing.")
def sgd_remembers(optimizer, learning, frozen, activations):
    return training_bytes.reference(optimizer.replace("SGD", "momentum"), learning, frozen, activations)


@training_bytes.accepts
def part_by_part(optimizer, learning, frozen, activations):
    weights, gradients = learning + frozen, learning
    state = learning * (optimizer != "SGD") + learning * optimizer.startswith("Adam")
    return sum(4 * part for part in (weights, gradients, state, activations))


@training_bytes.accepts
def as_bytes_per_parameter(optimizer, learning, frozen, activations):
    per_parameter = {"SGD": 8, "Adam": 16, "AdamW": 16}.get(optimizer, 12)
    return per_parameter * learning + 4 * (frozen + activations)
