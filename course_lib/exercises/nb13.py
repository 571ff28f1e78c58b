"""The exercises of notebook 13: dtypes under autocast, a loss-scaled step, master weights, chance, a memory budget."""
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 13.1


@exercise(
    notebook="13",
    hints=[
        "There are three kinds of operations: those that autocast runs low, those that it runs in float32, and those "
        "that it leaves alone.",
        "What is left alone follows torch's usual rule: of two dtypes the wider one wins.",
        "A loss is computed in float32 on both devices, softmax and sum on CUDA alone.",
    ],
    why="autocast has one list of operations to run low, and one to run in float32; the second is longer on CUDA. All "
    "else is left alone: relu gives what it gets, and float32 + bfloat16 is float32, as always.",
)
def autocast_dtype(op: str, inputs: list[torch.dtype], device: str) -> torch.dtype:
    """dtype of what op returns under torch.autocast(device, dtype=torch.bfloat16).

    op is "matmul", "softmax", "sum", "mse_loss", "add" or "relu". inputs are the dtypes of its one
    or two inputs, torch.float32 or torch.bfloat16. device is "cpu" or "cuda".
    """
    if op == "matmul":
        return torch.bfloat16
    if op == "mse_loss" or (op in ("softmax", "sum") and device == "cuda"):
        return torch.float32
    return torch.float32 if torch.float32 in inputs else torch.bfloat16


autocast_dtype.cases(
    case('"matmul", [torch.float32, torch.float32], "cpu"', "a matmul"),
    '"matmul", [torch.float32, torch.bfloat16], "cuda"',
    '"matmul", [torch.bfloat16, torch.bfloat16], "cpu"',
    case('"softmax", [torch.bfloat16], "cuda"', "softmax on CUDA"),
    case('"softmax", [torch.bfloat16], "cpu"', "softmax on the CPU"),
    '"softmax", [torch.float32], "cpu"',
    '"softmax", [torch.float32], "cuda"',
    '"sum", [torch.bfloat16], "cuda"',
    '"sum", [torch.bfloat16], "cpu"',
    case('"mse_loss", [torch.bfloat16, torch.float32], "cpu"', "a loss"),
    '"mse_loss", [torch.bfloat16, torch.bfloat16], "cuda"',
    '"mse_loss", [torch.bfloat16, torch.bfloat16], "cpu"',
    case('"add", [torch.bfloat16, torch.float32], "cuda"', "a sum of two dtypes"),
    '"add", [torch.float32, torch.bfloat16], "cpu"',
    '"add", [torch.bfloat16, torch.bfloat16], "cuda"',
    '"relu", [torch.bfloat16], "cuda"',
    '"relu", [torch.float32], "cpu"',
    '"relu", [torch.float32], "cuda"',
    '"relu", [torch.bfloat16], "cpu"',
)


def _widest(inputs):
    return max(inputs, key=lambda dtype: dtype.itemsize)


@autocast_dtype.misconception("autocast runs low what is on its list: matmuls. relu is on no list and is left alone.")
def all_low(op, inputs, device):
    return torch.bfloat16


@autocast_dtype.misconception("A matmul runs low whatever it is given: that is what autocast is for.")
def matmul_left_alone(op, inputs, device):
    return _widest(inputs) if op == "matmul" else autocast_dtype.reference(op, inputs, device)


@autocast_dtype.misconception("On the CPU softmax and sum are left alone. Only CUDA's list of float32 names them.")
def cpu_like_cuda(op, inputs, device):
    return autocast_dtype.reference(op, inputs, "cuda")


@autocast_dtype.misconception("On CUDA softmax and sum run in float32, since their sums would stall in 8 bits.")
def cuda_like_cpu(op, inputs, device):
    return autocast_dtype.reference(op, inputs, "cpu")


@autocast_dtype.misconception("A loss is on the list of float32, on both devices, whatever it is given.")
def loss_left_alone(op, inputs, device):
    return _widest(inputs) if op == "mse_loss" else autocast_dtype.reference(op, inputs, device)


@autocast_dtype.misconception("Of two dtypes the wider one wins: float32 + bfloat16 is float32.")
def narrowest_wins(op, inputs, device):
    return torch.bfloat16 if op == "add" and torch.bfloat16 in inputs else autocast_dtype.reference(op, inputs, device)


@autocast_dtype.misconception("add and relu are on no list: they are left alone, and bfloat16 passes through them.")
def all_else_float32(op, inputs, device):
    return torch.bfloat16 if op == "matmul" else torch.float32


@autocast_dtype.accepts
def with_promote_types(op, inputs, device):
    careful = {"cpu": {"mse_loss"}, "cuda": {"mse_loss", "softmax", "sum"}}
    if op in careful[device]:
        return torch.float32
    return torch.bfloat16 if op == "matmul" else torch.promote_types(inputs[0], inputs[-1])


@autocast_dtype.accepts
def by_three_lists(op, inputs, device):
    low = {"matmul"}
    left_alone = {"add", "relu"} | ({"softmax", "sum"} if device == "cpu" else set())
    if op in low or (op in left_alone and all(dtype == torch.bfloat16 for dtype in inputs)):
        return torch.bfloat16
    return torch.float32


# ---------------------------------------------------------------- 13.2


@exercise(
    notebook="13",
    tolerance=(1e-3, 1e-12),
    hints=[
        "Forward under autocast, then backward from scale · loss. Now every gradient is scale times too large.",
        "Divide the gradients first, then clip: max_norm is meant for the true ones.",
        "nn.utils.clip_grad_norm_ returns the norm before clipping. It is not finite where a gradient is not.",
    ],
    why="Scaling the loss scales all gradients, so that the small ones survive float16; dividing undoes it before "
    "anybody looks. What has overflowed cannot be divided back: that step is left out, and the next scale is smaller.",
)
def scaled_step(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, scale: float, max_norm: float, lr: float
) -> float:
    """One step of SGD with a scaled loss. Return the scale for the next step.

    The loss is F.mse_loss(model(x), y), computed under autocast to float16, on the CPU. Backward
    runs from scale · loss. The step is that of the true gradients, clipped to a norm of max_norm
    over all parameters. If a gradient is inf or NaN, leave the weights as they are and halve the
    scale; else the scale stays. Before the call no parameter has a gradient.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    (scale * loss).backward()
    for parameter in model.parameters():
        parameter.grad /= scale
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if not norm.isfinite():
        return scale / 2
    optimizer.step()
    return scale


scaled_step.cases(
    case("nn.Linear(4, 1), torch.randn(16, 4), torch.randn(16, 1), 1024.0, 100.0, 0.1", "nothing to clip"),
    case("nn.Linear(4, 1), torch.randn(16, 4), 5 + torch.randn(16, 1), 1024.0, 0.5, 0.1", "gradients to clip"),
    case(
        "nn.Linear(3, 1, bias=False), torch.randn(64, 3) / 1e4, torch.zeros(64, 1), 2.0**18, 1.0, 1e8",
        "gradients that float16 cannot hold unscaled",
    ),
    case("nn.Linear(4, 1), torch.randn(16, 4), torch.randn(16, 1), 2.0**26, 1.0, 0.1", "an overflow"),
    case("nn.Linear(2, 3), torch.randn(8, 2), torch.full((8, 3), 1e7), 3.0, 9.0, 0.1", "an overflow at a scale of 3"),
    "nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)), torch.randn(8, 5), torch.randn(8, 2), 256.0, 0.1, 0.5",
    "nn.Linear(2, 2), torch.randn(4, 2), torch.randn(4, 2), 1.0, 50.0, 0.2",
    "nn.Linear(2, 2, bias=False), torch.randn(3, 2), torch.randn(3, 2), 4.0, 0.3, 0.0",
)


@scaled_step.probe
def step_and_look(candidate, args, kwargs):
    """The scale that comes back, and by how much each parameter has moved."""
    model = args[0]
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    scale = candidate(*args, **kwargs)
    moves = {f"change of {name}": p.detach() - before[name] for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = None  # what is left in them is nobody's business
        parameter.data.zero_()
    return {"the scale for the next step": scale, **moves}


def _scaled(model, x, y, scale):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    (scale * loss).backward()


def _divide(model, scale):
    for parameter in model.parameters():
        parameter.grad /= scale


def _sgd(model, lr):
    torch.optim.SGD(model.parameters(), lr).step()


def _finite(model):
    return all(parameter.grad.isfinite().all() for parameter in model.parameters())


@scaled_step.misconception("You clipped the scaled gradients. max_norm is meant for the true ones: divide first.")
def clipped_before(model, x, y, scale, max_norm, lr):
    _scaled(model, x, y, scale)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if not norm.isfinite():
        return scale / 2
    _divide(model, scale)
    _sgd(model, lr)
    return scale


@scaled_step.misconception("Backward ran from scale · loss, and nothing has divided the gradients by the scale.")
def never_unscaled(model, x, y, scale, max_norm, lr):
    _scaled(model, x, y, scale)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if not norm.isfinite():
        return scale / 2
    _sgd(model, lr)
    return scale


@scaled_step.misconception("The step is taken with inf or NaN among the gradients, and the weights are lost. Skip it.")
def never_skipped(model, x, y, scale, max_norm, lr):
    _scaled(model, x, y, scale)
    _divide(model, scale)
    finite = _finite(model)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    _sgd(model, lr)
    return scale if finite else scale / 2


@scaled_step.misconception("After an overflow the same scale would overflow again. Halve it.")
def scale_stays(model, x, y, scale, max_norm, lr):
    scaled_step.reference(model, x, y, scale, max_norm, lr)
    return scale


@scaled_step.misconception("You scaled the gradients after backward: what float16 made 0 stays 0. Scale the loss.")
def scaled_too_late(model, x, y, scale, max_norm, lr):
    _scaled(model, x, y, 1.0)
    for parameter in model.parameters():
        parameter.grad *= scale
    _divide(model, scale)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    _sgd(model, lr)
    return scale


@scaled_step.misconception("You left the clipping out: the norm of all gradients together may be max_norm at most.")
def never_clipped(model, x, y, scale, max_norm, lr):
    _scaled(model, x, y, scale)
    _divide(model, scale)
    if not _finite(model):
        return scale / 2
    _sgd(model, lr)
    return scale


@scaled_step.misconception("The weights moved along the gradient. SGD goes the other way: minus lr times gradient.")
def uphill(model, x, y, scale, max_norm, lr):
    before = [parameter.detach().clone() for parameter in model.parameters()]
    scale = scaled_step.reference(model, x, y, scale, max_norm, lr)
    with torch.no_grad():
        for parameter, old in zip(model.parameters(), before, strict=True):
            parameter.copy_(2 * old - parameter)
    return scale


@scaled_step.accepts
def with_grad_scaler(model, x, y, scale, max_norm, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale()


@scaled_step.accepts
def all_by_hand(model, x, y, scale, max_norm, lr):
    parameters = list(model.parameters())
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (model(x) - y).square().mean()
    gradients = [g / scale for g in torch.autograd.grad(loss * scale, parameters)]
    norm = sum(float(g.double().square().sum()) for g in gradients) ** 0.5
    if not norm < float("inf"):
        return scale / 2
    share = min(1.0, max_norm / (norm + 1e-6))
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= lr * share * gradient
    return scale


# ---------------------------------------------------------------- 13.3


@exercise(
    notebook="13",
    fixed=("dtype",),
    hints=[
        "The master begins as the weight in float32. It is made once, before the first step.",
        "The gradient comes from the weight, the step goes to the master, and the weight becomes the rounded master.",
        "weight.copy_(master) rounds and writes in place.",
    ],
    why="The master adds up steps that are far below the weight's spacing. Only when they have come to half of it does "
    "the rounded weight move. Made anew in each step, the master would forget them all.",
)
def master_steps(weight: torch.Tensor, target: torch.Tensor, lr: float, steps: int) -> torch.Tensor:
    """Steps of SGD on a bfloat16 weight that has a float32 master. Return the master.

    The gradient is weight - target, both bfloat16: the model computes with the rounded weight and
    never sees the master. A step is master - lr · gradient, all of it in float32; after it, weight
    holds the master, rounded, in the storage that it has.
    """
    master = weight.float()
    for _ in range(steps):
        gradient = weight - target
        master = master - lr * gradient.float()
        weight.copy_(master)
    return master


master_steps.cases(
    case("torch.ones(3).bfloat16(), torch.zeros(3).bfloat16(), 0.001, 100", "steps too small for bfloat16"),
    case("torch.tensor([2.0, -3.0]).bfloat16(), torch.tensor([0.5, -1.0]).bfloat16(), 1 / 512, 50", "two weights"),
    case("torch.randn(4, 2).bfloat16(), torch.randn(4, 2).bfloat16(), 0.11, 30", "a matrix"),
    case("torch.tensor([1.0]).bfloat16(), torch.tensor([0.3]).bfloat16(), 0.011, 7", "few steps"),
    "torch.tensor([100.0, 0.01]).bfloat16(), torch.tensor([7.0, 3.0]).bfloat16(), 0.003, 60",
    case("torch.tensor([1.5, 4.0]).bfloat16(), torch.zeros(2).bfloat16(), 0.1, 0", "no step at all"),
    "torch.full((2,), 8.0).bfloat16(), torch.tensor([7.9, 8.3]).bfloat16(), 0.05, 20",
)


@master_steps.misconception("You made the master anew from the weight in each step: small steps are forgotten again.")
def master_made_anew(weight, target, lr, steps):
    master = weight.float()
    for _ in range(steps):
        master = weight.float() - lr * (weight - target).float()
        weight.copy_(master)
    return master


@master_steps.misconception("Your master is bfloat16, and stalls like the weight. Make it float32: weight.float().")
def bfloat16_master(weight, target, lr, steps):
    for _ in range(steps):
        weight.sub_(lr * (weight - target))
    return weight.float()


@master_steps.misconception("lr · gradient was rounded to bfloat16 on its way to the master. Make it float32 first.")
def step_in_bfloat16(weight, target, lr, steps):
    master = weight.float()
    for _ in range(steps):
        master = master - (lr * (weight - target)).float()
        weight.copy_(master)
    return master


@master_steps.misconception("You asked for the gradient at the master. The model computes with the rounded weight.")
def gradient_at_the_master(weight, target, lr, steps):
    master = weight.float()
    for _ in range(steps):
        master = master - lr * (master - target).bfloat16().float()
        weight.copy_(master)
    return master


@master_steps.misconception("The master moves, and weight, with which the model computes, stays what it was: copy_.")
def weight_left_behind(weight, target, lr, steps):
    master = weight.float()
    for _ in range(steps):
        master = master - lr * (weight - target).float()
    return master


@master_steps.misconception("You gave the name weight to a new tensor. The model holds the old one: write in place.")
def weight_rebound(weight, target, lr, steps):
    master = weight.float()
    for _ in range(steps):
        master = master - lr * (weight - target).float()
        weight = master.bfloat16()
    return master


@master_steps.misconception("That is the rounded weight. The master is asked for, which knows the steps to come.")
def the_weight_returned(weight, target, lr, steps):
    master_steps.reference(weight, target, lr, steps)
    return weight.float()


@master_steps.accepts
def in_place(weight, target, lr, steps):
    master = weight.to(torch.float32, copy=True)
    for _ in range(steps):
        master.sub_((weight - target).float(), alpha=lr)
        weight.copy_(master)
    return master


@master_steps.accepts
def with_an_optimizer(weight, target, lr, steps):
    master = nn.Parameter(weight.float())
    optimizer = torch.optim.SGD([master], lr)
    for _ in range(steps):
        master.grad = (weight - target).float()
        optimizer.step()
        weight[...] = master.detach().bfloat16()
    return master.detach()


# ---------------------------------------------------------------- 13.4


@exercise(
    notebook="13",
    hints=[
        "Count in steps: x / step. Its floor is the lower neighbour, floor + 1 the upper one.",
        "What is left over, x / step - floor, is the share of the way up. Compare it with u.",
    ],
    why="u is below the share as often as the share says, so the mean over many u is x: no step is lost, on average.",
)
def round_by_chance(x: torch.Tensor, step: float, u: torch.Tensor) -> torch.Tensor:
    """x rounded to multiples of step, up or down as u decides.

    u has x's shape and comes from torch.rand: numbers from 0 up to, but not including, 1. An
    element goes up to the next multiple where its u is below the share of the way up that it has
    come, else down. 0.3 with a step of 1 goes up to 1 for u = 0.29, down to 0 for u = 0.3.
    """
    lower = x // step
    return (lower + (u < x / step - lower)) * step


round_by_chance.cases(
    case("torch.tensor([0.25, 0.25, 0.75, 0.75]), 1.0, torch.tensor([0.1, 0.6, 0.6, 0.9])", "between 0 and 1"),
    case("torch.tensor([-0.25, -0.25, -1.75, -1.75]), 1.0, torch.tensor([0.1, 0.8, 0.2, 0.3])", "below 0"),
    case("torch.tensor([3.0, -2.0, 0.0]), 1.0, torch.tensor([0.0, 0.99, 0.5])", "multiples already"),
    case("torch.full((40, 25), 1.125), 0.5, torch.rand(40, 25)", "a step of 0.5"),
    "torch.randn(6, 7), 2**-8, torch.rand(6, 7)",
    "torch.tensor([0.5, 0.5]), 1.0, torch.tensor([0.5, 0.4375])",
    "torch.arange(-8., 8.) / 4, 2.0, torch.rand(16)",
)


@round_by_chance.misconception("That rounds to the nearest, and u has no say: a small step is lost every time.")
def to_the_nearest(x, step, u):
    return (x / step).round() * step


@round_by_chance.misconception("Turned round: you go up where u is above the share, so a small share goes up often.")
def turned_round(x, step, u):
    lower = (x / step).floor()
    return (lower + (u >= x / step - lower)) * step


@round_by_chance.misconception("A coin decides: half of all go up. It is the share of the way up that has to decide.")
def a_coin(x, step, u):
    lower = (x / step).floor()
    return (lower + (u < 0.5)) * step


@round_by_chance.misconception("trunc goes towards 0: below 0 that is up, not down. floor always goes down.")
def truncated(x, step, u):
    lower = (x / step).trunc()
    return (lower + (u < x / step - lower)) * step


@round_by_chance.misconception("Counted in steps and left at that: multiply by step again.")
def in_steps(x, step, u):
    return round_by_chance.reference(x, step, u) / step


@round_by_chance.misconception("You always go down. Where u is below the share, it has to go up.")
def always_down(x, step, u):
    return (x / step).floor() * step


@round_by_chance.accepts
def with_where(x, step, u):
    down = torch.floor(x / step) * step
    return torch.where(u < (x - down) / step, down + step, down)


@round_by_chance.accepts
def with_remainder(x, step, u):
    over = x.div(step).remainder(1)
    return torch.round(x / step - over + (over > u).float()) * step


# ---------------------------------------------------------------- 13.5


@exercise(
    notebook="13",
    hints=[
        "Bytes per parameter: the sum of the parts. Times how many parameters, shared by how many GPUs?",
        "Activations belong to each GPU as a whole: they are not shared.",
        "The first one that fits is the answer; only when all have been tried do you know that none does.",
    ],
    why="Weights, gradients, masters and state are numbers per parameter, and sharding divides them. The activations "
    "are each GPU's own. Best first, so that the first recipe that fits is the one to take.",
)
def pick_recipe(
    recipes: dict[str, dict[str, float]],
    parameters: int,
    num_gpus: int,
    activations: int,
    memory: int,
) -> str | None:
    """Name of the first recipe with which the model fits, or None.

    recipes are given best first: name -> bytes per parameter by part, such as {"weights": 2,
    "gradients": 2, "master": 4, "state": 8}. All parts are shared evenly among num_gpus GPUs. Each
    GPU has `memory` bytes, of which it needs `activations` bytes for its own batch.
    """
    room = (memory - activations) * num_gpus
    fitting = [name for name, parts in recipes.items() if parameters * sum(parts.values()) <= room]
    return fitting[0] if fitting else None


_THREE = (
    '{"float32": {"weights": 4, "gradients": 4, "state": 8}, "small": {"weights": 2, "gradients": 2, "state": 8}, '
    '"tiny": {"weights": 2, "gradients": 2, "state": 4}}'
)
_WIDE = (
    '{"master": {"weights": 2, "gradients": 4, "master": 4, "state": 8}, "float32": {"weights": 4, "gradients": 4, '
    '"state": 8}, "small": {"weights": 2, "gradients": 2, "state": 8}}'
)
pick_recipe.cases(
    case(f"{_THREE}, 1_000, 1, 100, 16_100", "fits to the last byte"),
    case(f"{_THREE}, 1_000, 1, 101, 16_100", "one byte too much"),
    case(f"{_THREE}, 10**9, 1, 10**9, 8 * 10**9", "nothing fits"),
    case(f"{_THREE}, 10**9, 1, 10**9, 14 * 10**9", "the second one fits"),
    case(f"{_THREE}, 8 * 10**9, 8, 4 * 10**9, 12 * 10**9", "eight GPUs, the last one fits"),
    case(f"{_WIDE}, 36 * 10**9, 8, 0, 81 * 10**9", "eight GPUs, all fit"),
    case(f"{_WIDE}, 36 * 10**9, 8, 2 * 10**9, 80 * 10**9", "eight GPUs and activations"),
    f"{_WIDE}, 10**9, 4, 4 * 10**9, 8 * 10**9",
    case(f"{_WIDE}, 10**9, 4, 4 * 10**9, 7 * 10**9", "four GPUs, little room"),
    f"{_WIDE}, 1_000, 1, 6_000, 19_000",
    '{"bits": {"weights": 0.5, "state": 0.5}}, 3, 2, 0, 1',
    '{"bits": {"weights": 0.5, "state": 1}}, 2, 1, 0, 3',
    "{}, 10, 1, 0, 100",
)


@pick_recipe.misconception("You left out the activations: each GPU needs room for those of its own batch.")
def without_activations(recipes, parameters, num_gpus, activations, memory):
    return pick_recipe.reference(recipes, parameters, num_gpus, 0, memory)


@pick_recipe.misconception("The parts are shared among the GPUs: divide the bytes of the parameters by num_gpus.")
def nothing_shared(recipes, parameters, num_gpus, activations, memory):
    return pick_recipe.reference(recipes, parameters, 1, activations, memory)


@pick_recipe.misconception("Activations are not shared: each GPU has a batch of its own.")
def activations_shared(recipes, parameters, num_gpus, activations, memory):
    return pick_recipe.reference(recipes, parameters, num_gpus, activations / num_gpus, memory)


@pick_recipe.misconception("You counted the weights alone. Gradients, masters and optimizer state need memory as well.")
def weights_alone(recipes, parameters, num_gpus, activations, memory):
    cut = {name: {"weights": parts["weights"]} for name, parts in recipes.items()}
    return pick_recipe.reference(cut, parameters, num_gpus, activations, memory)


@pick_recipe.misconception("That is the smallest recipe. They are given best first: take the first one that fits.")
def smallest(recipes, parameters, num_gpus, activations, memory):
    by_size = dict(sorted(recipes.items(), key=lambda item: sum(item[1].values())))
    return pick_recipe.reference(by_size, parameters, num_gpus, activations, memory)


@pick_recipe.misconception("A GPU may be filled to the last byte: what needs as much as there is, fits.")
def must_leave_room(recipes, parameters, num_gpus, activations, memory):
    return pick_recipe.reference(recipes, parameters, num_gpus, activations, memory - 1e-9)


@pick_recipe.misconception("You looked at the first recipe alone. If it does not fit, the next one may.")
def first_or_none(recipes, parameters, num_gpus, activations, memory):
    return pick_recipe.reference(dict([*recipes.items()][:1]), parameters, num_gpus, activations, memory)


@pick_recipe.accepts
def in_a_loop(recipes, parameters, num_gpus, activations, memory):
    for name, parts in recipes.items():
        if parameters * sum(parts.values()) / num_gpus + activations <= memory:
            return name
    return None


@pick_recipe.accepts
def by_filtering(recipes, parameters, num_gpus, activations, memory):
    need = {name: activations + sum(parts.values()) * parameters / num_gpus for name, parts in recipes.items()}
    return [*(name for name, size in need.items() if size <= memory), None][0]
