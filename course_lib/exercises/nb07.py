"""The exercises of notebook 07: the size of new weights, clipping in place, truncation, deep signals, the fan trap."""
import copy
import math

import torch
from torch import nn

from course_lib.exercises.engine import case, exercise
from course_lib.modules import Linear

# ---------------------------------------------------------------- 7.1


@exercise(
    notebook="07",
    hints=[
        "Begin with variances: one output is a sum of fan_in products, and the variances of independent terms add up.",
        "LeCun's variance is 1/fan_in. Kaiming's makes up for a ReLU, which halves the mean square. Xavier's puts the "
        "mean of fan_in and fan_out in the place of fan_in.",
        "A standard deviation is the square root of a variance.",
    ],
    why="The variance of an output is fan_in times that of a weight, so LeCun takes 1/fan_in. Kaiming doubles it: "
    "a ReLU halves the mean square. Going backward, sums have fan_out terms: Xavier takes the mean of the two fans.",
)
def initial_std(scheme: str, fan_in: int, fan_out: int) -> float:
    """Standard deviation of a new weight.

    scheme is "lecun", "xavier" or "kaiming", the last one for a ReLU.
    """
    variances = {"lecun": 1 / fan_in, "xavier": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    return variances[scheme] ** 0.5


initial_std.cases(
    case('"lecun", 16384, 32', "the lecture's matrix"),
    '"xavier", 16384, 32',
    '"kaiming", 16384, 32',
    case('"lecun", 64, 64', "a square weight"),
    '"xavier", 64, 64',
    '"kaiming", 64, 64',
    case('"lecun", 5, 200', "many more outputs than inputs"),
    '"xavier", 5, 200',
    '"kaiming", 5, 200',
    '"xavier", 7, 1',
    '"lecun", 3, 1',
    '"kaiming", 3, 1',
)


def _std_of(scheme, **variances):
    return math.sqrt(variances[scheme])


@initial_std.misconception("Those are variances. A standard deviation is the square root of one.")
def variances_returned(scheme, fan_in, fan_out):
    return initial_std.reference(scheme, fan_in, fan_out) ** 2


@initial_std.misconception("1/√fan_in is often called Xavier's. It is LeCun's; they agree where fan_in = fan_out.")
def xavier_is_lecun(scheme, fan_in, fan_out):
    return _std_of(scheme, lecun=1 / fan_in, xavier=1 / fan_in, kaiming=2 / fan_in)


@initial_std.misconception("You divided by the sum of the fans. Xavier takes their mean: 2/(fan_in + fan_out).")
def sum_of_the_fans(scheme, fan_in, fan_out):
    return _std_of(scheme, lecun=1 / fan_in, xavier=1 / (fan_in + fan_out), kaiming=2 / fan_in)


@initial_std.misconception("A ReLU halves the mean square: the variance doubles, and so the std grows by √2, not by 2.")
def twice_the_std(scheme, fan_in, fan_out):
    return _std_of(scheme, lecun=1 / fan_in, xavier=2 / (fan_in + fan_out), kaiming=4 / fan_in)


@initial_std.misconception("You left out the ReLU: without its factor of 2, Kaiming's rule is LeCun's.")
def no_relu(scheme, fan_in, fan_out):
    return _std_of(scheme, lecun=1 / fan_in, xavier=2 / (fan_in + fan_out), kaiming=1 / fan_in)


@initial_std.misconception("An output is a sum over the inputs: count the terms, which are fan_in, not the outputs.")
def counts_outputs(scheme, fan_in, fan_out):
    return initial_std.reference(scheme, fan_out, fan_in)


@initial_std.misconception("Those are the bounds ±a of a uniform distribution. Its std is a/√3, and that is asked for.")
def bounds_of_a_uniform(scheme, fan_in, fan_out):
    return initial_std.reference(scheme, fan_in, fan_out) * math.sqrt(3)


@initial_std.accepts
def in_three_branches(scheme, fan_in, fan_out):
    if scheme == "xavier":
        return math.sqrt(2) / math.sqrt(fan_in + fan_out)
    return math.sqrt(1 if scheme == "lecun" else 2) / math.sqrt(fan_in)


@initial_std.accepts
def from_torchs_gain(scheme, fan_in, fan_out):
    gain = nn.init.calculate_gain("relu" if scheme == "kaiming" else "linear")
    fan = (fan_in + fan_out) / 2 if scheme == "xavier" else fan_in
    return gain / fan**0.5


# ---------------------------------------------------------------- 7.2


@exercise(
    notebook="07",
    hints=[
        "model.parameters() gives the parameters. A new tensor under the old name helps nobody: change the numbers.",
        "A method whose name ends in _ works in place; `clamp_` limits on both sides.",
        "Autograd refuses to have a parameter changed in place, unless you say so: `with torch.no_grad():`.",
    ],
    why="clamp_ writes into the storage that model and optimizer hold, so nobody is left with an old tensor. "
    "torch.no_grad() says that this is no part of the model, and autograd still counts the write: a loss from before "
    "does not go backward with changed numbers.",
)
def clip_weights(model: nn.Module, limit: float) -> None:
    """Limit every parameter of the model to the range from -limit to limit, in place.

    The Parameters stay the objects that they are, and their .grad is left alone. Whoever computed
    a loss before and goes backward after gets an error from autograd, not a wrong gradient.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.clamp_(-limit, limit)


clip_weights.cases(
    case("nn.Linear(3, 2), 0.2", "a layer with a bias"),
    case("nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2))), 0.1", "layers inside layers"),
    "Linear(5, 4), 0.3",
    case("nn.Linear(2, 2), 10.0", "nothing to clip"),
    "nn.Linear(4, 4, bias=False), 0.0",
    "nn.Embedding(6, 3), 1.0",
)


@clip_weights.probe
def clip_and_look(candidate, args, kwargs):
    """The parameters afterwards, who still holds them, and whether a loss from before notices."""
    model, limit = args
    held = dict(model.named_parameters())
    gradients = {name: torch.full_like(parameter, 0.5) for name, parameter in held.items()}
    for name, parameter in held.items():
        parameter.grad = gradients[name].clone()
    earlier = [parameter.pow(2).sum() for parameter in held.values()]
    candidate(model, limit)
    after = dict(model.named_parameters())
    optimizers = {f"{name}, as the optimizer sees it": tensor.detach().clone() for name, tensor in held.items()}
    return {
        "every Parameter is the object that it was": all(after.get(name) is held[name] for name in held),
        **optimizers,
        "every .grad is left alone": all(_same(held[name].grad, gradients[name]) for name in held),
        "every Parameter still requires grad": all(tensor.requires_grad for tensor in after.values()),
        "autograd notices, if a loss from before goes backward": all(map(_is_refused, earlier)),
    }


def _same(a, b):
    return a is not None and torch.equal(a, b)


def _is_refused(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


@clip_weights.misconception("You gave a new tensor the old name. The model and its optimizer still hold the old one.")
def rebinds_a_name(model, limit):
    for parameter in model.parameters():
        parameter = nn.Parameter(parameter.clamp(-limit, limit))


@clip_weights.misconception("You put new Parameters into the model. An optimizer made before holds the old ones.")
def new_parameters(model, limit):
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.detach().clamp(-limit, limit)))


@clip_weights.misconception("Through .data autograd notices nothing: a loss from before goes backward, and wrong.")
def through_data(model, limit):
    for parameter in model.parameters():
        parameter.data.clamp_(-limit, limit)


@clip_weights.misconception("Autograd refuses to have a parameter changed in place. Say that you mean it: no_grad().")
def without_no_grad(model, limit):
    for parameter in model.parameters():
        parameter.clamp_(-limit, limit)


@clip_weights.misconception("That limits from above alone. Weights below -limit are too large as well.")
def from_above(model, limit):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.clamp_(max=limit)


@clip_weights.misconception("You clipped the gradients. That is another remedy; here it is the weights.")
def clips_gradients(model, limit):
    nn.utils.clip_grad_value_(model.parameters(), limit)


@clip_weights.misconception("Biases and inner modules have parameters too: model.parameters() gives them all.")
def the_outer_weight_alone(model, limit):
    with torch.no_grad():
        if isinstance(getattr(model, "weight", None), nn.Parameter):
            model.weight.clamp_(-limit, limit)


@clip_weights.accepts
def by_copying(model, limit):
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.copy_(parameter.clamp(-limit, limit))


@clip_weights.accepts
def through_detach(model, limit):
    for parameter in model.parameters():
        parameter.detach().clamp_(-limit, limit)


# ---------------------------------------------------------------- 7.3


@exercise(
    notebook="07",
    hints=[
        "nn.init.trunc_normal_ draws a normal again wherever it lies outside of a and b. What are a and b counted in?",
        "They are absolute. Three standard deviations are 3 * std.",
        "trunc_normal_ takes a generator as well: generator=generator.",
    ],
    why="a and b are absolute, so that ±3 bounds a normal of std 0.02 at 150 standard deviations, which is nowhere. "
    "Given in units of std, they cut at every scale.",
)
def truncated_init(weight: torch.Tensor, std: float, generator: torch.Generator) -> None:
    """Fill weight, in place, from a normal with mean 0 and the given std, truncated to ± 3 std.

    Truncated: what falls beyond is drawn again. All numbers come from the generator. weight may be
    a Parameter; it is float32 and stays the object that it is.
    """
    nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std, generator=generator)


truncated_init.cases(
    case("nn.Parameter(torch.zeros(200, 300)), 1 / 128, 1", "the lecture's std"),
    case("torch.zeros(60_000), 1.0, 2", "a std of 1"),
    case("torch.zeros(300, 200), 3.5, 3", "a std above 3"),
    case("nn.Parameter(torch.zeros(2, 3, 10_000)), 0.02, 4", "three axes"),
)


@truncated_init.probe
def draw_and_look(candidate, args, kwargs):
    """Random numbers cannot be compared, but what has to hold of them can: a dict of claims."""
    weight, std, seed = copy.deepcopy(args)  # what was drawn is no property of the input
    storage, before = weight.data_ptr(), torch.get_rng_state()
    generator = torch.Generator().manual_seed(seed)
    candidate(weight, std, generator)
    z = weight.detach().double().flatten() / std
    first = weight.detach().clone()
    candidate(weight, std, generator)
    second = weight.detach().clone()
    candidate(weight, std, torch.Generator().manual_seed(seed))
    bell = {f"share within ± {k} std is a normal's": _is_normal(z, k) for k in (1, 2)}
    return {
        "weight is filled in place": weight.data_ptr() == storage and not bool((weight == 0).all()),
        "no number lies beyond 3 std": bool(z.abs().max() <= 3.0001),
        "some numbers lie beyond 2.9 std": bool(z.abs().max() > 2.9),
        "no numbers heap up at 3 std": bool((z.abs() > 2.999).double().mean() < 1e-3),
        "the mean is 0": bool(z.mean().abs() < 0.02),
        "the std that comes out is 0.9866 std": abs(float(z.std()) - 0.9866) < 0.012,
        **bell,
        "the generator alone decides": _same(weight.detach(), first) and _same(torch.get_rng_state(), before),
        "the generator moves on": not torch.equal(second, first),
    }


def _is_normal(z, k):
    wanted = math.erf(k / math.sqrt(2)) / math.erf(3 / math.sqrt(2))
    return abs(float((z.abs() < k).double().mean()) - wanted) < 0.01


@truncated_init.misconception("a and b are absolute: ±3 truncates nothing where std is small. Give 3 * std.")
def absolute_bounds(weight, std, generator):
    nn.init.trunc_normal_(weight, std=std, a=-3, b=3, generator=generator)


@truncated_init.misconception("You left a and b at -2 and 2. They are absolute numbers; here it is ± 3 std.")
def default_bounds(weight, std, generator):
    nn.init.trunc_normal_(weight, std=std, generator=generator)


@truncated_init.misconception("Clamping heaps numbers up at the two bounds. Truncated means: drawn again until inside.")
def clamped(weight, std, generator):
    with torch.no_grad():
        weight.normal_(0, std, generator=generator).clamp_(-3 * std, 3 * std)


@truncated_init.misconception("A normal has no bounds: among many numbers some lie beyond 3 std. Draw those again.")
def not_truncated(weight, std, generator):
    with torch.no_grad():
        weight.normal_(0, std, generator=generator)


@truncated_init.misconception("You drew from torch's own generator. Pass on the one that you were given.")
def another_generator(weight, std, generator):
    nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std)


@truncated_init.misconception("You filled a new tensor. Whoever holds weight sees nothing of it: write into weight.")
def a_new_tensor(weight, std, generator):
    weight = nn.init.trunc_normal_(torch.empty_like(weight), 0, std, -3 * std, 3 * std, generator=generator)


@truncated_init.accepts
def drawn_again(weight, std, generator):
    with torch.no_grad():
        weight.normal_(0, std, generator=generator)
        while (outside := weight.abs() > 3 * std).any():
            weight[outside] = torch.randn(int(outside.sum()), generator=generator) * std


@truncated_init.accepts
def by_quantiles(weight, std, generator):
    tail = 0.5 - math.erf(3 / math.sqrt(2)) / 2
    share = tail + (1 - 2 * tail) * torch.rand(weight.shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        weight.copy_(std * torch.special.ndtri(share))


# ---------------------------------------------------------------- 7.4


@exercise(
    notebook="07",
    tolerance=(1e-4, 1e-7),
    hints=[
        "One loop over the weights. What one layer gives is what the next one takes.",
        "The size of a signal: square, mean, square root. In that order, and after the activation.",
        "`.item()` makes a Python number of a tensor with one element.",
    ],
    why="Each layer takes what the one before it gives, so x is replaced in the loop. The root mean square counts the "
    "mean in: after a ReLU it is not 0, and the next layer feels it.",
)
def depth_probe(x: torch.Tensor, weights: list[torch.Tensor], activation: nn.Module) -> list[float]:
    """How large the signal is after each layer: root mean squares, one for each weight.

    The layers follow each other. Each multiplies the signal by its weight, from the right, and
    applies the activation. x has shape (batch, dim).
    """
    sizes = []
    for weight in weights:
        x = activation(x @ weight)
        sizes.append(x.pow(2).mean().sqrt().item())
    return sizes


depth_probe.cases(
    case("torch.randn(7, 5), [torch.randn(5, 5) for _ in range(4)], nn.ReLU()", "four layers with a ReLU"),
    case("torch.randn(6, 4), [torch.randn(4, 8), torch.randn(8, 3)], nn.Tanh()", "layers of other widths"),
    case("torch.randn(3, 4), [torch.randn(4, 4), torch.randn(4, 4)], nn.Identity()", "no activation"),
    "torch.randn(9, 6), [torch.randn(6, 6) / 6**0.5 for _ in range(20)], nn.ReLU()",
    "torch.randn(5, 3), [torch.randn(3, 2)], nn.Sigmoid()",
    case("torch.ones(1, 2), [torch.tensor([[3.0, -1.0], [-1.0, 5.0]])], nn.ReLU()", "one row"),
    "torch.randn(4, 3), [], nn.ReLU()",
)


def _signals(x, weights, activation):
    for weight in weights:
        x = activation(x @ weight)
        yield x


def _rms(x):
    return x.pow(2).mean().sqrt().item()


@depth_probe.misconception("std subtracts the mean. After a ReLU the mean is not 0, and the next layer feels it too.")
def spread_around_the_mean(x, weights, activation):
    return [signal.std(correction=0).item() for signal in _signals(x, weights, activation)]


@depth_probe.misconception("You looked before the activation. The next layer takes what comes after it.")
def before_the_activation(x, weights, activation):
    sizes = []
    for weight in weights:
        x = x @ weight
        sizes.append(_rms(x))
        x = activation(x)
    return sizes


@depth_probe.misconception("That is the length of the whole signal, a sum over the batch. Take the mean.")
def whole_length(x, weights, activation):
    return [signal.norm().item() for signal in _signals(x, weights, activation)]


@depth_probe.misconception("Each of your layers begins at x again. Here one layer takes what the other gives.")
def each_from_the_start(x, weights, activation):
    return [_rms(activation(x @ weight)) if len(weight) == x.shape[1] else math.nan for weight in weights]


@depth_probe.misconception("You counted the input in as well. One number for each weight is asked for.")
def with_the_input(x, weights, activation):
    return [_rms(x), *depth_probe.reference(x, weights, activation)]


@depth_probe.misconception("Those are mean squares. How large a typical number is, their root says.")
def mean_squares(x, weights, activation):
    return [signal.pow(2).mean().item() for signal in _signals(x, weights, activation)]


@depth_probe.misconception("You multiplied by the transpose, as nn.Linear does. These are (in, out): x @ weight.")
def transposed(x, weights, activation):
    return [_rms(signal) for signal in _signals(x, [weight.T for weight in weights], activation)]


@depth_probe.accepts
def by_norms(x, weights, activation):
    return [float(signal.norm()) / signal.numel() ** 0.5 for signal in _signals(x, weights, activation)]


@depth_probe.accepts
def by_recursion(x, weights, activation):
    if not weights:
        return []
    x = activation(torch.einsum("bi,io->bo", x, weights[0]))
    return [math.sqrt((x**2).sum() / x.numel()), *by_recursion(x, weights[1:], activation)]


# ---------------------------------------------------------------- 7.5


@exercise(
    notebook="07",
    tolerance=(0.05, 0.0),
    hints=[
        "model.modules() visits all modules, the inner ones too; isinstance(module, Linear) tells ours from torch's.",
        "Which axis of the weight do you sum over in x @ weight, and which in x @ weight.T? Its length is fan_in.",
        "Draw with `weight.normal_(0, std, generator=generator)`, in place, and say no_grad().",
    ],
    why="x @ weight sums over axis 0, x @ weight.T over axis 1: the same number of terms, on another axis. "
    "torch.nn.init knows the second layout alone, so ask who owns the weight, not its shape.",
)
def kaiming_all(model: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of our Linear and of nn.Linear anew, in place: normal, Kaiming's std.

    Our Linear computes x @ weight, nn.Linear computes x @ weight.T + bias; both may stand anywhere
    inside the model. Biases of nn.Linear become 0, and other modules are left alone. All numbers
    come from the generator.
    """
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, Linear):
                module.weight.normal_(0, (2 / module.weight.shape[0]) ** 0.5, generator=generator)
            if isinstance(module, nn.Linear):
                module.weight.normal_(0, (2 / module.in_features) ** 0.5, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()


kaiming_all.cases(
    case("Linear(40, 500), 1", "ours"),
    case("nn.Linear(40, 500), 2", "torch's"),
    case("nn.Sequential(Linear(300, 50), nn.ReLU(), nn.Linear(50, 400)), 3", "both in one model"),
    case("nn.Sequential(nn.Sequential(nn.Linear(200, 30)), nn.Sequential(Linear(30, 900))), 4", "inner ones"),
    "nn.Sequential(nn.Embedding(20, 60), Linear(60, 300), nn.LayerNorm(300), nn.Linear(300, 20, bias=False)), 5",
    "nn.Sequential(nn.Linear(600, 20), Linear(20, 600), nn.BatchNorm1d(600)), 6",
)


@kaiming_all.probe
def fill_and_look(candidate, args, kwargs):
    """Each weight's size against the one asked for, and claims about what else has to hold."""
    model, twin, seed = copy.deepcopy(args[0]), copy.deepcopy(args[0]), args[1]
    held, before = dict(model.named_parameters()), torch.get_rng_state()
    old = {name: parameter.detach().clone() for name, parameter in held.items()}
    candidate(model, torch.Generator().manual_seed(seed))
    candidate(twin, torch.Generator().manual_seed(seed))
    now = dict(model.named_parameters())
    weights = {f"{name}.weight".lstrip("."): module for name, module in model.named_modules() if _is_linear(module)}
    biases = [name.removesuffix("weight") + "bias" for name in weights]
    biases = [name for name in biases if name in now]
    others = held.keys() - weights.keys() - set(biases)
    twins = twin.state_dict()
    return {
        "every Parameter is the object that it was": all(now[name] is held[name] for name in held),
        **{f"RMS of {name}, over √(2/fan_in)": _over_kaiming(module) for name, module in weights.items()},
        "every weight has a mean of 0": all(now[name].mean().abs() < now[name].std() / 10 for name in weights),
        "every weight is drawn anew": not any(torch.equal(now[name], old[name]) for name in weights),
        "every bias is 0": all(not now[name].any() for name in biases),
        "all else is left alone": all(torch.equal(now[name], old[name]) for name in others),
        "the generator alone decides": all(torch.equal(now[name], twins[name]) for name in weights)
        and _same(torch.get_rng_state(), before),
        "every Parameter still requires grad": all(parameter.requires_grad for parameter in now.values()),
    }


def _is_linear(module):
    return isinstance(module, Linear | nn.Linear)


def _over_kaiming(module):
    fan_in = module.weight.shape[0 if isinstance(module, Linear) else 1]
    return round(float(module.weight.detach().square().mean() * fan_in / 2) ** 0.5, 3)


def _fill(model, generator, std_of, visit=nn.Module.modules, zero=True):
    """What most wrong answers share: they differ in a std, or in what they visit."""
    with torch.no_grad():
        for module in visit(model):
            if _is_linear(module):
                module.weight.normal_(0, std_of(module), generator=generator)
            if zero and isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.zero_()


def _kaiming(module):
    return (2 / module.weight.shape[0 if isinstance(module, Linear) else 1]) ** 0.5


@kaiming_all.misconception("Axis 1 is fan_in of nn.Linear, and so reads torch.nn.init. Ours has fan_in on axis 0.")
def always_axis_1(model, generator):
    _fill(model, generator, lambda module: (2 / module.weight.shape[1]) ** 0.5)


@kaiming_all.misconception("Axis 0 is fan_in of our Linear. nn.Linear's weight is (out, in): fan_in is axis 1.")
def always_axis_0(model, generator):
    _fill(model, generator, lambda module: (2 / module.weight.shape[0]) ** 0.5)


@kaiming_all.misconception("You took fan_out of both. An output is a sum over the inputs: fan_in counts its terms.")
def both_turned(model, generator):
    _fill(model, generator, lambda module: (2 / module.weight.shape[1 if isinstance(module, Linear) else 0]) ** 0.5)


@kaiming_all.misconception("2/fan_in is the variance. normal_ takes a standard deviation: its square root.")
def variance_as_std(model, generator):
    _fill(model, generator, lambda module: _kaiming(module) ** 2)


@kaiming_all.misconception("nn.Linear comes with small random numbers in its bias, and they are still there.")
def biases_stay(model, generator):
    _fill(model, generator, _kaiming, zero=False)


@kaiming_all.misconception("Our Linear is no nn.Linear: isinstance(module, nn.Linear) passes it by.")
def torchs_alone(model, generator):
    _fill(model, generator, _kaiming, lambda model: [m for m in model.modules() if isinstance(m, nn.Linear)])


@kaiming_all.misconception("children() gives the direct parts alone. modules() gives the model and all inside it.")
def direct_children(model, generator):
    _fill(model, generator, _kaiming, lambda model: model.children())


@kaiming_all.misconception("You made new Parameters. An optimizer with the old ones would train what nobody uses.")
def makes_new_parameters(model, generator):
    for module in model.modules():
        if _is_linear(module):
            drawn = torch.randn(module.weight.shape, generator=generator) * _kaiming(module)
            module.weight = nn.Parameter(drawn)
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias = nn.Parameter(torch.zeros_like(module.bias))


@kaiming_all.misconception("You drew from torch's own generator. Pass on the one that you were given.")
def from_torchs_generator(model, generator):
    _fill(model, None, _kaiming)


@kaiming_all.accepts
def with_torchs_init(model, generator):
    for module in model.modules():
        if isinstance(module, Linear):
            nn.init.kaiming_normal_(module.weight.T, nonlinearity="relu", generator=generator)
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@kaiming_all.accepts
def with_fan_out(model, generator):
    for module in model.modules():
        if isinstance(module, Linear):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, generator=generator)
            if module.bias is not None:
                with torch.no_grad():
                    module.bias.mul_(0)
