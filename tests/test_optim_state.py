"""What optimizers remember, what that takes, and how it is saved and loaded."""
import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.optim import SGD, AdaGrad, Adam, AdamW, RMSProp
from course_lib.storage import get_memory_usage, measure_peak_memory, same_storage

PAIRS = {
    "SGD": (SGD, torch.optim.SGD, {}),
    "SGD with momentum": (SGD, torch.optim.SGD, {"momentum": 0.9}),
    "AdaGrad": (AdaGrad, torch.optim.Adagrad, {}),
    "RMSProp": (RMSProp, torch.optim.RMSprop, {}),
    "Adam": (Adam, torch.optim.Adam, {}),
    "AdamW": (AdamW, torch.optim.AdamW, {}),
}
NUMBERS = {"SGD": 0, "SGD with momentum": 1, "AdaGrad": 1, "RMSProp": 1, "Adam": 2, "AdamW": 2}  # per parameter
each_optimizer = pytest.mark.parametrize("name", PAIRS)


def parameters(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in ((8, 3), (5,))]


def run(optimizer, steps):
    """Steps with gradients that are new at each step, and depend on nothing but its number and the parameters."""
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for p in (p for group in optimizer.param_groups for p in group["params"]):
            p.grad = p.detach() + torch.randn(p.shape, generator=generator).to(p.dtype)
        optimizer.step()


def ours(name, params):
    optimizer, _, settings = PAIRS[name]
    return optimizer(params, **settings)


def tensors(optimizer):
    return [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]


# ---------------------------------------------------------------------------------------------- what it takes

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@each_optimizer
def test_bytes_remembered_per_parameter(name, dtype):
    params = parameters(dtype)
    optimizer, peer = ours(name, params), PAIRS[name][1](parameters(dtype), **PAIRS[name][2])
    assert not optimizer.state
    for one in (optimizer, peer):
        run(one, range(2))
    count = sum(p.numel() for p in params)
    remembered = sum(map(get_memory_usage, tensors(optimizer)))
    assert remembered == NUMBERS[name] * dtype.itemsize * count
    assert remembered == sum(get_memory_usage(x) for x in tensors(peer) if x.ndim)  # torch's step is a tensor as well
    if dtype is torch.float32 and name != "SGD":
        assert f"{4 * NUMBERS[name]} bytes" in PAIRS[name][0].__doc__


@each_optimizer
def test_a_step_works_in_place(name):
    params = [nn.Parameter(torch.zeros(256, 256)), nn.Parameter(torch.zeros(64))]
    optimizer = ours(name, params)
    optimizer.param_groups[0]["weight_decay"] = 0.0  # as a part of g it takes a tensor of its own
    run(optimizer, range(2))
    root = 0 if "SGD" in name else get_memory_usage(params[0])
    assert 0 <= measure_peak_memory(optimizer.step, "cpu") - root < 100  # a number handed to torch takes a few bytes


def test_without_momentum_sgd_remembers_nothing():
    optimizer = SGD(parameters())
    run(optimizer, range(3))
    assert optimizer.state_dict()["state"] == {}


# ---------------------------------------------------------------------------------------------- single steps

def one_step(optimizer, gradients, **settings):
    p = nn.Parameter(torch.zeros(len(gradients), dtype=torch.float64))
    p.grad = torch.tensor(gradients, dtype=torch.float64)
    optimizer([p], **settings).step()
    return p.tolist()


@pytest.mark.parametrize("optimizer", [Adam, AdamW])
def test_adams_first_step_is_the_learning_rate_times_the_sign(optimizer):
    assert one_step(optimizer, [1e-3, 1, 1e3, -5], lr=0.1) == pytest.approx([-0.1, -0.1, -0.1, 0.1], rel=1e-4)
    assert one_step(optimizer, [0.0], lr=0.1) == [0]


def test_eps_stands_outside_of_adagrads_root():
    assert one_step(AdaGrad, [1e-4], lr=1e-2) == pytest.approx([-1e-2])
    assert one_step(AdaGrad, [1e-4], lr=1e-2, eps=1e-4) == pytest.approx([-0.5e-2])  # inside it would be 1e-4


def test_adamw_decays_where_the_gradient_is_zero_and_skips_none():
    decays, skipped = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = AdamW([decays, skipped], lr=0.1, weight_decay=0.5)
    decays.grad = torch.zeros(3)
    optimizer.step()
    assert decays.tolist() == pytest.approx([0.95] * 3)
    assert skipped.tolist() == [1, 1, 1]
    assert list(optimizer.state) == [decays]
    optimizer.zero_grad()
    assert decays.grad is None
    optimizer.step()
    assert decays.tolist() == pytest.approx([0.95] * 3)
    assert optimizer.state[decays]["step"] == 1


@each_optimizer
def test_gradients_stay_as_they_are(name):
    p, g = nn.Parameter(torch.ones(3)), torch.tensor([1.0, -2.0, 0.0])
    p.grad = g.clone()
    optimizer = PAIRS[name][0]([{"params": p, **PAIRS[name][2], "weight_decay": 0.5}])
    for _ in range(3):
        optimizer.step()
    assert torch.equal(p.grad, g)
    assert not any(same_storage(p.grad, x) for x in tensors(optimizer))


def test_a_closure_is_called_with_gradients_and_its_loss_returned():
    p = nn.Parameter(torch.tensor([3.0]))
    optimizer = SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = p.pow(2).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9
    assert p.item() == pytest.approx(3 - 0.1 * 6)
    assert optimizer.step() is None


def test_momentum_can_be_switched_on_later():
    params, peers = parameters(), parameters()
    for optimizer in (one := SGD(params, lr=0.1), peer := torch.optim.SGD(peers, lr=0.1)):
        run(optimizer, range(3))
        optimizer.param_groups[0]["momentum"] = 0.9
        run(optimizer, range(3, 6))
    assert len(one.state) == len(peer.state) == 2
    assert all(map(torch.equal, params, peers))


# ---------------------------------------------------------------------------------------------- what it is handed

@each_optimizer
def test_defaults_are_those_of_torch(name):
    optimizer, peer, settings = PAIRS[name]
    theirs = peer(parameters(), **settings).defaults
    defaults = optimizer(parameters(), **settings).defaults
    assert {"lr", "weight_decay"} <= defaults.keys()
    assert defaults == {key: theirs[key] for key in defaults}


def test_parameters_come_as_an_iterator_with_names_or_in_groups():
    model = nn.Linear(3, 2)
    assert len(Adam(model.parameters()).param_groups[0]["params"]) == 2
    assert Adam(model.named_parameters()).param_groups[0]["param_names"] == ["weight", "bias"]
    groups = AdamW([{"params": iter([model.weight])}, {"params": model.bias, "lr": 1, "betas": [0.5, 0]}]).param_groups
    assert [group["lr"] for group in groups] == [1e-3, 1.0]
    assert groups[1]["betas"] == (0.5, 0.0)
    assert groups[1]["weight_decay"] == 1e-2


def test_numpys_numbers_do_not_reach_a_checkpoint():
    betas = (0.9, np.float64(0.5))
    optimizer = AdamW([{"params": parameters(), "eps": np.float32(1e-6)}], lr=np.float64(0.1), betas=betas)
    group = optimizer.param_groups[0]
    assert [type(value) for value in (group["lr"], group["eps"], *group["betas"])] == [float] * 4
    assert loaded(optimizer)["param_groups"] == optimizer.state_dict()["param_groups"]


# ---------------------------------------------------------------------------------------------- saved and loaded

def loaded(optimizer):
    """The state_dict after a way through a file."""
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("through_a_file", [False, True])
@each_optimizer
def test_a_resumed_run_is_bit_equal(name, through_a_file):
    params = parameters()
    first = ours(name, params)
    run(first, range(10))
    resumed_params = [nn.Parameter(p.detach().clone()) for p in params]
    resumed = PAIRS[name][0](resumed_params, lr=123)  # replaced by what is loaded
    for _ in range(2):
        resumed.load_state_dict(loaded(first) if through_a_file else first.state_dict())
    for optimizer in (first, resumed):
        run(optimizer, range(10, 20))
    assert all(map(torch.equal, params, resumed_params))
    assert all(map(torch.equal, tensors(first), tensors(resumed)))
    assert first.state_dict()["param_groups"] == resumed.state_dict()["param_groups"]
    forgetful = [nn.Parameter(p.detach().clone()) for p in parameters()]
    run(again := ours(name, forgetful), range(10))
    again.state.clear()
    run(again, range(10, 20))
    assert torch.equal(params[0], forgetful[0]) is (name == "SGD")


def test_loading_copies_where_torchs_optimizers_share():
    shared = {}
    for optimizer in (Adam, torch.optim.Adam):
        run(first := optimizer(parameters()), range(2))
        second = optimizer(parameters())
        second.load_state_dict(first.state_dict())
        shared[optimizer] = [same_storage(x, y) for x, y in zip(tensors(first), tensors(second), strict=True)]
    assert not any(shared[Adam])
    assert all(shared[torch.optim.Adam])


def test_a_state_dict_holds_references():
    run(optimizer := Adam(parameters()), range(1))
    taken = optimizer.state_dict()["state"][0]["m"]
    before = taken.clone()
    run(optimizer, range(1, 2))
    assert not torch.equal(taken, before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))])
@each_optimizer
def test_copies_of_an_optimizer_go_on_by_themselves(name, copied):
    first = ours(name, params := parameters())
    run(first, range(3))
    second = copied(first)
    for optimizer in (first, second):
        run(optimizer, range(3, 6))
    assert all(map(torch.equal, params, second.param_groups[0]["params"]))
    second.load_state_dict(first.state_dict())
    second.add_param_group({"params": nn.Parameter(torch.zeros(2)), "lr": 0.5})
    assert second.param_groups[1].keys() >= first.defaults.keys() - {"differentiable"}


def test_loaded_state_takes_the_dtype_of_its_parameter():
    run(first := Adam(parameters(torch.float64)), range(2))
    second = Adam(parameters(torch.float32))
    second.load_state_dict(first.state_dict())
    assert {x.dtype for x in tensors(second)} == {torch.float32}
