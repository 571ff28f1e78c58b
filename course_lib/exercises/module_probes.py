"""What notebook 08's exercises are looked at by: parameters that are filled, tensors that move, runs that are drawn."""
import copy
import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.exercises.probing import SharedGenerators, is_pair, require

_AFTER_FIT = (
    "model(x) after fit",
    "model(x), of a new model with this state_dict",
    "tensors in parameters()",
    "mean and std require grad",
    "a gradient passes through model(x)",
    'devices of mean and std after .to("meta")',
    "device of model(x) then",
)
_OF_THE_NUMBERS = (
    "mean and std of many weights, and of many batches",
    "not more and not fewer of them are far from 0 than of normal numbers",
    "another seed draws other numbers",
    "weights and batches have nothing in common",
    "weights of two seeds have nothing in common",
    "batches of two seeds have nothing in common",
    "weights of one seed and batches of another have nothing in common",
)
_OTHER_RUNS = (*range(1, 11), 20, 42, 50, 64, 99, 100, 101, 128, 256, 500, 512, 999, 1000, 1001, 1024, 1234)


def fill_and_run(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """Each parameter gets numbers that follow from its shape, so that the order of registering does not matter."""
    model = candidate(*args)
    with torch.no_grad():
        for parameter in model.parameters():
            seed = 1 + sum(size * 100**axis for axis, size in enumerate(parameter.shape))
            drawn = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
            parameter.copy_(drawn / parameter.shape[-1] ** 0.5)
    x = torch.randn(20, args[0], generator=torch.Generator().manual_seed(0))
    x[15:] *= 30  # far out, a ReLU is still a straight line, unlike what looks like one around 0
    output = model(x)
    is_tensor = isinstance(output, Tensor)
    if is_tensor and output.requires_grad:
        output.pow(2).sum().backward()
    return {
        "numbers in model.parameters()": sum(parameter.numel() for parameter in model.parameters()),
        "model(x)": output.detach() if is_tensor else output,
        "every parameter gets a gradient": all(parameter.grad is not None for parameter in model.parameters()),
    }


def fit_save_and_move(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """What comes out before and after fit, what is saved, and what moves."""
    dim, data, x = args
    model, loaded = candidate(dim), candidate(dim)
    require(isinstance(model, nn.Module), model, "an nn.Module")
    seen = {f"{name} before fit": _held(model, name) for name in ("mean", "std")}
    seen["model(x) before fit"] = _plain(model(x))
    model.fit(3 * data.clone() + 1)  # what is fitted later has to win
    given = data.clone().requires_grad_()
    model.fit(given)
    kept = {name: getattr(model, name) for name in ("mean", "std")}
    seen |= {name: _plain(tensor) for name, tensor in kept.items()}
    seen["fit leaves the data alone"] = torch.equal(given.detach(), data)
    if any(getattr(tensor, "shape", None) != (dim,) for tensor in kept.values()):
        return seen | dict.fromkeys(_AFTER_FIT)  # the shape is what is said first
    saved = copy.deepcopy(model.state_dict())
    after = [
        _plain(model(x)),
        _load_and_run(loaded, saved, x),
        len(list(model.parameters())),
        any(_requires_grad(tensor) for tensor in kept.values()),
        _requires_grad(model(x.clone().requires_grad_())),
        [_device(getattr(model.to("meta"), name)) for name in kept],
        _device_of_result(model, x),
    ]
    return seen | dict(zip(_AFTER_FIT, after, strict=True))


def _held(model: nn.Module, name: str) -> object:
    require(hasattr(model, name), None, f"an attribute {name}")
    return _plain(getattr(model, name))


def _plain(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _requires_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _device(value: object) -> str:
    return value.device.type if isinstance(value, Tensor) else "none"


def _load_and_run(model: nn.Module, state: dict, x: Tensor) -> object:
    try:
        model.load_state_dict(state, strict=False)
    except RuntimeError:  # sizes that do not fit
        return "cannot be loaded"
    return _plain(model(x))


def _device_of_result(model: nn.Module, x: Tensor) -> str:
    try:
        return _device(model(x.to("meta")))
    except RuntimeError:  # two devices in one operation
        return "none: tensors on two devices"


def draw_and_compare(candidate: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    """Random numbers cannot be compared, but what has to hold of them can: a dict of claims."""
    seed, num_layers, steps = args
    shared = SharedGenerators()
    weights, batches = _drawn(candidate(seed, num_layers, steps))
    moved = shared.moved()
    torch.manual_seed(99)
    again = _drawn(candidate(seed, num_layers, steps))
    deeper = _drawn(candidate(seed, num_layers + 2, steps))
    longer = _drawn(candidate(seed, num_layers, steps + 2))
    seen = {
        "weights": [tuple(weight.shape) for weight in weights],
        "batches": [tuple(batch.shape) for batch in batches],
        "the same seed gives the same numbers": _alike(weights, again[0]) and _alike(batches, again[1]),
        "shared generators that it moves": moved,
        "no two weights and no two batches are the same": not _twice(weights) and not _twice(batches),
        "a deeper model meets the same batches": _alike(batches, deeper[1]),
        "a longer run has the same weights": _alike(weights, longer[0]),
    }
    if any(shape != (8, 8) for shape in seen["weights"] + seen["batches"]):
        return seen | dict.fromkeys(_OF_THE_NUMBERS)
    many = [_rows(tensors) for tensors in _drawn(candidate(seed, 300, 300))]
    repeated = not seen["no two weights and no two batches are the same"]  # then many are one, of any mean
    others = [_drawn(candidate(seed + distance, num_layers, steps)) for distance in _OTHER_RUNS]
    other_weights, other_batches = ([tensor for run in others for tensor in run[i]] for i in range(2))
    claims = [
        None if repeated else [(round(n.mean().item(), 1), round(n.std().item(), 1)) for n in many],
        None if repeated else all(map(_tails_are_normal, many)),
        not _alike(weights, others[0][0]) and not _alike(batches, others[0][1]),
        not _related(weights, batches),
        not _related(weights, other_weights),
        not _related(batches, other_batches),
        not _related(weights, other_batches) and not _related(batches, other_weights),
    ]
    return seen | dict(zip(_OF_THE_NUMBERS, claims, strict=True))


def _drawn(result: object) -> tuple[list[Tensor], list[Tensor]]:
    wanted = "two lists of tensors"
    require(is_pair(result, (list, tuple, Tensor)), result, wanted)
    for tensor in itertools.chain(*result):
        require(isinstance(tensor, Tensor), tensor, wanted)
    return list(result[0]), list(result[1])


def _alike(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def _twice(tensors: list[Tensor]) -> bool:
    return any(torch.equal(a, b) for a, b in itertools.combinations(tensors, 2))


def _tails_are_normal(numbers: Tensor) -> bool:
    """Of 19,200 numbers: the bound is more than six standard errors wide."""
    return bool(((numbers.abs() > 2).double().mean() - 0.0455).abs() < 0.01)


def _related(some: list[Tensor], others: list[Tensor]) -> bool:
    """Whether one of these holds the numbers of one of those, whatever their signs and their scale."""
    return not _marks(some).isdisjoint(_marks(others))


def _marks(tensors: list[Tensor]) -> set[bytes]:
    rows = _rows(tensors).abs()
    return {row.tobytes() for row in (rows / rows.amax(1, keepdim=True)).mul(1e4).round().numpy()}


def _rows(tensors: list[Tensor]) -> Tensor:
    return torch.stack([tensor.detach().flatten() for tensor in tensors]).double()
