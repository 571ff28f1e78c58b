"""The exercises of notebook 08: layers that register, buffers, tied weights, generators of their own."""
import itertools

import numpy as np
import torch
from torch import nn

from course_lib.exercises import module_probes
from course_lib.exercises.engine import case, exercise
from course_lib.modules import Cruncher  # noqa: F401  (a case names it)
from course_lib.randomness import make_generator

# ---------------------------------------------------------------- 8.1


@exercise(
    notebook="08",
    tolerance=(1e-4, 1e-5),
    hints=[
        "Begin with super().__init__(). Then: input_dim, hidden_dim, hidden_dim, and so on. Which follow each other?",
        "A Python list hides its layers from the module. nn.ModuleList and nn.Sequential do not.",
        "The loop in forward: x = torch.relu(layer(x)) for each hidden layer, and the last layer without a ReLU.",
    ],
    why="ModuleList registers each layer, so that parameters() finds them. Each takes what the one before gives, and "
    "only a hidden layer is followed by a ReLU: outputs may be negative.",
)
class MLP(nn.Module):
    """num_layers hidden layers, each an nn.Linear and a ReLU, and then one nn.Linear to output_dim.

    Hidden layers are hidden_dim wide, and there is at least one. Every nn.Linear has its bias.
    """

    def __init__(self, input_dim: int, hidden_dim: int, output_dim: int, num_layers: int) -> None:
        super().__init__()
        inputs = [input_dim] + [hidden_dim] * (num_layers - 1)
        self.hidden = nn.ModuleList([nn.Linear(width, hidden_dim) for width in inputs])
        self.final = nn.Linear(hidden_dim, output_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (batch, input_dim) to (batch, output_dim)."""
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.final(x)


MLP.cases(
    case("5, 8, 3, 1", "one hidden layer"),
    case("5, 8, 3, 2", "two hidden layers"),
    case("6, 6, 6, 3", "all widths alike"),
    "7, 4, 2, 4",
    case("1, 9, 1, 3", "one number in, one out"),
    "64, 64, 1, 2",
)


MLP.probe(module_probes.fill_and_run)


class _Layers(nn.Module):
    """What most answers share: they differ in their layers, or in what comes between two of them."""

    bias, between, after = True, staticmethod(torch.relu), staticmethod(nn.Identity())

    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__()
        dims = [input_dim] + [hidden_dim] * num_layers
        self.hidden = self.registered([nn.Linear(a, b, bias=self.bias) for a, b in itertools.pairwise(dims)])
        self.final = nn.Linear(hidden_dim, output_dim, bias=self.bias)

    def registered(self, layers):
        return nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.hidden:
            x = self.between(layer(x))
        return self.after(self.final(x))


@MLP.misconception("Your layers are in a Python list. The module does not look into it: use nn.ModuleList.")
class InAList(_Layers):
    def registered(self, layers):
        return layers


@MLP.misconception("Without a ReLU between them, all your layers together are one matrix and one bias.")
class NoActivation(_Layers):
    between = staticmethod(nn.Identity())


@MLP.misconception("There is a ReLU after your last layer as well, so that no output is ever below 0.")
class ReluAtTheEnd(_Layers):
    after = staticmethod(torch.relu)


@MLP.misconception("Your layers have no bias. Each output of each layer has one: as many more parameters.")
class NoBiases(_Layers):
    bias = False


@MLP.misconception("You have one hidden layer too many: the one that input_dim goes into is a hidden layer already.")
class OneTooMany(_Layers):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__(input_dim, hidden_dim, output_dim, num_layers + 1)


@MLP.misconception("You have one hidden layer, whatever num_layers says.")
class AlwaysOne(_Layers):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__(input_dim, hidden_dim, output_dim, 1)


@MLP.misconception("[layer] * n is one layer, n times: its weights are shared. Make a new one for each place.")
class OneLayerRepeated(_Layers):
    def registered(self, layers):
        return nn.ModuleList(layers[:1] + layers[1:2] * (len(layers) - 1))


@MLP.accepts
class AsSequential(nn.Sequential):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        layers = [nn.Linear(input_dim, hidden_dim), nn.ReLU()]
        for _ in range(num_layers - 1):
            layers += [nn.Linear(hidden_dim, hidden_dim), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden_dim, output_dim))


@MLP.accepts
class LayerByLayer(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__()
        self.last, self.count = nn.Linear(hidden_dim, output_dim), num_layers
        for i in range(num_layers):
            setattr(self, f"layer{i}", nn.Linear(hidden_dim if i else input_dim, hidden_dim))

    def forward(self, x):
        for i in range(self.count):
            x = getattr(self, f"layer{i}")(x).clamp(min=0)
        return self.last(x)


# ---------------------------------------------------------------- 8.2


@exercise(
    notebook="08",
    hints=[
        "What is moved and saved, and never trained? A buffer: self.register_buffer(name, tensor).",
        "mean and std of each column: dim=0 is the axis that goes.",
        "fit is no part of any gradient: detach what it keeps, or work under torch.no_grad().",
    ],
    why="Buffers move with .to() and are saved by state_dict(), and no optimizer sees them. fit writes into them under "
    "no_grad(), so that they keep no history of the data.",
)
class Standardizer(nn.Module):
    """Shift and scale each of dim features with what fit has seen: (x - mean) / std.

    mean and std, both of shape (dim,), are attributes of these names; before fit they are 0 and 1.
    .to() moves and state_dict() saves them; they never require grad, and parameters() is empty.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def fit(self, data: torch.Tensor) -> None:
        """Keep mean and standard deviation, by torch's default, of each column of (rows, dim).

        The data stay as they are, and what was kept before is forgotten.
        """
        with torch.no_grad():
            self.mean.copy_(data.mean(dim=0))
            self.std.copy_(data.std(dim=0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, dim) to (batch, dim), on their device. A gradient passes through."""
        return (x - self.mean) / self.std


Standardizer.cases(
    case("3, 4 * torch.randn(10, 3) + 2, torch.randn(5, 3)", "three features"),
    case("1, 5 * torch.randn(6, 1) - 3, torch.randn(2, 1)", "one feature"),
    case("4, torch.randn(4, 4) * torch.tensor([1., 10., 100., 0.1]), torch.randn(7, 4)", "features of unlike size"),
    case("2, torch.tensor([[1., 10.], [3., 30.]]), torch.tensor([[2., 20.]])", "two rows"),
)


Standardizer.probe(module_probes.fit_save_and_move)


class _Scaler(nn.Module):
    """What most answers share: they differ in how the two tensors are kept, or in what fit takes."""

    def __init__(self, dim):
        super().__init__()
        self.keep("mean", torch.zeros(dim))
        self.keep("std", torch.ones(dim))

    def keep(self, name, tensor):
        self.register_buffer(name, tensor)

    def fit(self, data):
        with torch.no_grad():
            mean, std = self.take(data)
            self.mean.copy_(mean)
            self.std.copy_(std)

    def take(self, data):
        return data.mean(0), data.std(0)

    def forward(self, x):
        return (x - self.mean) / self.std


@Standardizer.misconception("A plain attribute is neither moved nor saved. Make it known: self.register_buffer(…).")
class PlainAttributes(_Scaler):
    def keep(self, name, tensor):
        setattr(self, name, tensor)


@Standardizer.misconception("You made them Parameters: the optimizer would train what the data have fixed.")
class AsParameters(_Scaler):
    def keep(self, name, tensor):
        setattr(self, name, nn.Parameter(tensor))


@Standardizer.misconception("A Parameter without requires_grad is still counted as one. What is asked for is a buffer.")
class FrozenParameters(_Scaler):
    def keep(self, name, tensor):
        setattr(self, name, nn.Parameter(tensor, requires_grad=False))


@Standardizer.misconception("With persistent=False a buffer moves, but is not saved.")
class NotPersistent(_Scaler):
    def keep(self, name, tensor):
        self.register_buffer(name, tensor, persistent=False)


@Standardizer.misconception("You took one mean and one std of all numbers. Each column has its own: dim=0.")
class OneForAll(_Scaler):
    def take(self, data):
        return data.mean(), data.std()


@Standardizer.misconception("You scale by the variance. The standard deviation is its square root.")
class ByTheVariance(_Scaler):
    def take(self, data):
        return data.mean(0), data.var(0)


@Standardizer.misconception("What fit keeps still remembers the data: its history comes along. Detach it.")
class KeepsTheGraph(_Scaler):
    def fit(self, data):
        self.mean, self.std = self.take(data)


@Standardizer.misconception("You standardise x with its own mean and std. What counts is what fit has seen.")
class OwnStatistics(_Scaler):
    def forward(self, x):
        return (x - x.mean(0)) / x.std(0)


@Standardizer.accepts
class Assigned(_Scaler):
    def fit(self, data):
        self.mean = data.mean(0).detach()
        self.std = data.detach().std(0)


@Standardizer.accepts
class AsBuffers(_Scaler):
    def keep(self, name, tensor):
        setattr(self, name, nn.Buffer(tensor))


# ---------------------------------------------------------------- 8.3


@exercise(
    notebook="08",
    hints=[
        "model.named_parameters() leaves out a name whose parameter it has shown already. Look at its arguments.",
        "remove_duplicate=False gives every name. Now you have to notice a parameter that was there before.",
        "Two parameters with equal numbers are two. One parameter under two names is one object: compare with `is`, "
        "or remember id(parameter).",
    ],
    why="A tied parameter is one object under several names. id() tells objects apart, whatever numbers they hold, so "
    "that each is counted where it appears first.",
)
def parameter_table(model: nn.Module) -> list[tuple[str, tuple[int, ...], int]]:
    """A row (name, shape, count) for every name under which the model knows a parameter.

    They stand in the model's order. count is how many numbers the row adds to the model: those of
    a parameter that stands in a row above are counted there, and here it is 0. Buffers have none.
    """
    rows, seen = [], set()
    for name, parameter in model.named_parameters(remove_duplicate=False):
        rows.append((name, tuple(parameter.shape), 0 if id(parameter) in seen else parameter.numel()))
        seen.add(id(parameter))
    return rows


class Tied(nn.Module):
    """An embedding and a head that share one matrix, as in a small language model."""

    def __init__(self, vocabulary, dim):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.norm = nn.BatchNorm1d(dim)
        self.head = nn.Linear(dim, vocabulary)
        self.head.weight = self.embed.weight


def repeated(times):
    """One layer in several places."""
    layer = nn.Linear(3, 3)
    return nn.Sequential(*[layer] * times, nn.Linear(3, 1))


def frozen(model):
    return model.requires_grad_(False)


parameter_table.cases(
    case("Cruncher(64, 2)", "the running example"),
    case("Tied(50, 4)", "tied weights"),
    case("repeated(3)", "one layer in three places"),
    case("nn.Sequential(nn.LayerNorm(4), nn.LayerNorm(4), nn.BatchNorm1d(4))", "equal numbers that are not tied"),
    case("frozen(Tied(7, 3))", "frozen, and tied"),
    "frozen(nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm1d(2)))",
    case("nn.Sequential(nn.ReLU(), nn.Flatten())", "no parameters"),
    "nn.Bilinear(2, 3, 4)",
)


def _rows(pairs, is_old=lambda parameter, seen: any(parameter is other for other in seen)):
    rows, seen = [], []
    for name, parameter in pairs:
        rows.append((name, tuple(parameter.shape), 0 if is_old(parameter, seen) else parameter.numel()))
        seen.append(parameter)
    return rows


def _all_names(model):
    return model.named_parameters(remove_duplicate=False)


@parameter_table.misconception("named_parameters() shows a shared parameter once. Every one of its names has a row.")
def first_names(model):
    return _rows(model.named_parameters())


@parameter_table.misconception("You count a tied parameter each time that it appears. It is one tensor: count it once.")
def counted_again(model):
    return _rows(_all_names(model), lambda parameter, seen: False)


@parameter_table.misconception("Two parameters with equal numbers are still two. Ask whether it is the same object.")
def equal_numbers(model):
    return _rows(_all_names(model), lambda parameter, seen: any(torch.equal(parameter, other) for other in seen))


@parameter_table.misconception("Two parameters of one shape are still two. Ask whether it is the same object.")
def equal_shapes(model):
    return _rows(_all_names(model), lambda parameter, seen: any(parameter.shape == other.shape for other in seen))


@parameter_table.misconception("state_dict() holds buffers too. They are saved, but are no parameters.")
def with_buffers(model):
    known = {id(parameter): parameter for parameter in model.parameters()}
    state = model.state_dict(keep_vars=True)
    return _rows((name, known.get(id(tensor), tensor)) for name, tensor in state.items())


@parameter_table.misconception("A frozen parameter is a parameter all the same: it takes its bytes.")
def trainable_alone(model):
    return _rows((name, parameter) for name, parameter in _all_names(model) if parameter.requires_grad)


@parameter_table.misconception("count is how many numbers a parameter holds: all sizes of its shape multiplied.")
def rows_counted(model):
    return [(name, shape, min(count, shape[0])) for name, shape, count in parameter_table.reference(model)]


@parameter_table.accepts
def by_first_name(model):
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return [(n, tuple(p.shape), p.numel() * (first[id(p)] == n)) for n, p in _all_names(model)]


@parameter_table.accepts
def module_by_module(model):
    rows, seen = [], set()
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            rows.append([".".join(filter(None, [prefix, name])), parameter.shape, parameter.numel()])
            if parameter in seen:
                rows[-1][2] = 0
            seen.add(parameter)
    return rows


# ---------------------------------------------------------------- 8.4


@exercise(
    notebook="08",
    hints=[
        "A generator for the weights and another one for the batches: torch.randn(8, 8, generator=…).",
        "Two generators with one seed give the same numbers: weights would equal data. So their seeds have to differ, "
        "but seed + 1 is the seed of the next run.",
        "make_generator(seed, purpose) makes one seed of both. Make each generator once, before the loops.",
    ],
    why="Each purpose has a generator of its own, made once from seed and purpose, so that a deeper model draws more "
    "weights and meets the same data.",
)
def draw_run(
    seed: int, num_layers: int, steps: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Random weights and random batches of one run: num_layers and steps tensors of shape (8, 8).

    All numbers are standard normal. The same seed gives the same weights, however many steps are
    asked for, and the same batches, however many layers. What one purpose draws in one run has
    nothing to do with what another draws, or another run. The generators that torch, NumPy and
    Python keep for everybody are left alone.
    """
    weights = make_generator(seed, "weights")
    data = make_generator(seed, "data")
    layers = [torch.randn(8, 8, generator=weights) for _ in range(num_layers)]
    batches = [torch.randn(8, 8, generator=data) for _ in range(steps)]
    return layers, batches


draw_run.cases(
    case("0, 3, 4", "seed 0"),
    case("1, 4, 3", "seed 1"),
    case("7, 3, 5", "another seed"),
    "41, 5, 3",
    "12, 6, 3",
)


draw_run.probe(module_probes.draw_and_compare)


def _drawn(weights, data, num_layers, steps):
    layers = [torch.randn(8, 8, generator=weights) for _ in range(num_layers)]
    return layers, [torch.randn(8, 8, generator=data) for _ in range(steps)]


@draw_run.misconception("One generator serves both: each layer more takes numbers that the batches would have got.")
def one_for_both(seed, num_layers, steps):
    generator = torch.Generator().manual_seed(seed)
    return _drawn(generator, generator, num_layers, steps)


@draw_run.misconception("You seed torch's own generator: whoever drew from it goes on from elsewhere now.")
def seeds_torchs_own(seed, num_layers, steps):
    torch.manual_seed(seed)
    return _drawn(None, None, num_layers, steps)


@draw_run.misconception("Two generators with one seed draw the same numbers: your weights are your data.")
def same_seed_twice(seed, num_layers, steps):
    return _drawn(*(torch.Generator().manual_seed(seed) for _ in range(2)), num_layers, steps)


@draw_run.misconception("seed plus or minus a number is the seed of another run, whose weights are your batches.")
def seed_and_the_next(seed, num_layers, steps):
    return _drawn(*(torch.Generator().manual_seed(seed + i) for i in range(2)), num_layers, steps)


@draw_run.misconception("You make a generator in every round of the loop. It begins anew, and so do its numbers.")
def made_in_the_loop(seed, num_layers, steps):
    layers = [torch.randn(8, 8, generator=make_generator(seed, "weights")) for _ in range(num_layers)]
    return layers, [torch.randn(8, 8, generator=make_generator(seed, "data")) for _ in range(steps)]


@draw_run.misconception("seed does not reach your generators: every run draws the same numbers.")
def seed_ignored(seed, num_layers, steps):
    return _drawn(make_generator(0, "weights"), make_generator(0, "data"), num_layers, steps)


@draw_run.misconception("seed + 1 is the seed of your second tensor, and of the first one of the next run.")
def a_seed_for_each_tensor(seed, num_layers, steps):
    layers = [torch.randn(8, 8, generator=torch.Generator().manual_seed(seed + i)) for i in range(num_layers)]
    return layers, [torch.randn(8, 8, generator=torch.Generator().manual_seed(seed - 1 - i)) for i in range(steps)]


@draw_run.misconception("Numbers out of torch.rand lie between 0 and 1. Normal ones are torch.randn's.")
def uniform_numbers(seed, num_layers, steps):
    weights, data = make_generator(seed, "weights"), make_generator(seed, "data")
    layers = [torch.rand(8, 8, generator=weights) for _ in range(num_layers)]
    return layers, [torch.rand(8, 8, generator=data) for _ in range(steps)]


@draw_run.accepts
def seeds_from_numpy(seed, num_layers, steps):
    states = np.random.SeedSequence(seed).generate_state(2)
    return _drawn(*(torch.Generator().manual_seed(int(state)) for state in states), num_layers, steps)


@draw_run.accepts
def seeds_that_are_drawn(seed, num_layers, steps):
    seeds = torch.randint(2**31, (2,), generator=torch.Generator().manual_seed(seed)).tolist()
    return _drawn(*(torch.Generator().manual_seed(one) for one in seeds), num_layers, steps)
