"""`Linear` and `Cruncher` compute what torch's layers compute, hold what they say, and refuse what does not fit."""
import copy
import io

import pytest
import torch
from torch import nn

from course_lib.accounting import account
from course_lib.init import rms
from course_lib.modules import Cruncher, Linear, get_num_parameters


def as_torchs(linear: Linear) -> nn.Linear:
    twin = nn.Linear(*linear.weight.shape, bias=False)
    with torch.no_grad():
        twin.weight.copy_(linear.weight.T)
    return twin


@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (0,), (1, 4, 1)])
def test_linear_is_torchs_with_the_weight_turned(leading):
    linear, x = Linear(6, 4), torch.randn(*leading, 6)
    assert linear.weight.shape == (6, 4) and linear.weight.requires_grad
    assert linear(x).shape == (*leading, 4)
    assert torch.allclose(linear(x), as_torchs(linear)(x), atol=1e-6)
    assert [name for name, _ in linear.named_parameters()] == ["weight"]


def test_outputs_of_linear_are_as_large_as_its_inputs():
    generator = torch.Generator().manual_seed(0)
    for input_dim, output_dim in ((16384, 32), (256, 1024), (64, 64)):
        linear = Linear(input_dim, output_dim, generator=generator)
        x = torch.randn(128, input_dim, generator=generator)
        assert rms(linear.weight) * input_dim**0.5 == pytest.approx(1, rel=0.06)
        assert rms(linear(x)) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(("dim", "num_layers"), [(64, 2), (16, 0), (3, 5), (1, 1)])
def test_cruncher_is_a_row_of_torchs_layers(dim, num_layers):
    model, x = Cruncher(dim, num_layers), torch.randn(8, dim)
    twin = nn.Sequential(*map(as_torchs, model.layers), as_torchs(model.final), nn.Flatten(0))
    assert torch.allclose(model(x), twin(x), atol=1e-5)
    assert get_num_parameters(model) == get_num_parameters(twin) == dim * dim * num_layers + dim
    model(x).sum().backward()
    twin(x).sum().backward()
    assert len(list(model.parameters())) == num_layers + 1
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad.T, atol=1e-4)


def test_the_ledgers_model_has_8256_parameters():
    assert get_num_parameters(Cruncher(64, 2)) == 8256
    assert get_num_parameters(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 1))) == 8385


@pytest.mark.parametrize("batch", [0, 1, 8])
def test_cruncher_gives_one_number_for_each_row(batch):
    assert Cruncher(4, 2)(torch.randn(batch, 4)).shape == (batch,)


def test_names_of_the_parameters_and_a_round_trip():
    model, other = Cruncher(4, 2), Cruncher(4, 2)
    assert [*model.state_dict()] == ["layers.0.weight", "layers.1.weight", "final.weight"]
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    x = torch.randn(3, 4)
    assert torch.equal(model(x), other(x)) and torch.equal(copy.deepcopy(model)(x), model(x))


def test_a_generator_alone_decides_the_weights():
    first, second = (Cruncher(8, 2, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    third = Cruncher(8, 2, generator=torch.Generator().manual_seed(4))
    assert torch.equal(torch.get_rng_state(), before)
    pairs = zip(first.parameters(), second.parameters(), third.parameters(), strict=True)
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, b, c in pairs)
    Cruncher(8, 2)
    assert not torch.equal(torch.get_rng_state(), before), "without one, torch's own generator is drawn from"


def test_the_models_go_where_torchs_go():
    model = Cruncher(4, 1).double()
    assert model(torch.randn(2, 4, dtype=torch.float64)).dtype == torch.float64
    with torch.autocast("cpu", torch.bfloat16):
        assert Cruncher(4, 1)(torch.randn(2, 4)).dtype == torch.bfloat16
    with torch.device("meta"):
        assert Cruncher(1000, 3)(torch.empty(5, 1000)).device.type == "meta"
    assert account(lambda: Cruncher(64, 2), lambda: torch.randn(8, 64)).parameters == 8256


def test_a_parameter_that_two_modules_share_counts_once():
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
    assert get_num_parameters(model) == 40 + 50
    model[1].weight = model[0].weight
    assert get_num_parameters(model) == 40 + 10
    norm = nn.BatchNorm1d(3)  # its running statistics are buffers
    assert get_num_parameters(norm) == 6
    assert get_num_parameters(nn.ReLU()) == 0


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: Linear(0, 3), ValueError, r"Linear\(\): input_dim is 0; at least 1"),
        (lambda: Linear(3, -1), ValueError, r"Linear\(\): output_dim is -1; at least 1"),
        (lambda: Linear(2.5, 3), TypeError, r"Linear\(\): input_dim is a float \(2.5\); an int"),
        (lambda: Cruncher(0, 3), ValueError, r"Cruncher\(\): dim is 0; at least 1"),
        (lambda: Cruncher(3, -1), ValueError, r"Cruncher\(\): num_layers is -1; at least 0"),
        (lambda: Linear(3, 2)(torch.zeros(3, 2)), ValueError, r"x is .* shape \(3, 2\); a last axis of 3"),
        (lambda: Cruncher(3, 1)(torch.zeros(2, 4)), ValueError, r"x is .* shape \(2, 4\); a last axis of 3"),
        (lambda: Cruncher(3, 1)(torch.zeros(3)), TypeError, r"x is .* shape \(3,\); Float"),
        (lambda: Cruncher(3, 1)(torch.zeros(2, 3).long()), TypeError, "x is a tensor of dtype int64"),
        (lambda: get_num_parameters([1]), TypeError, r"get_num_parameters\(\): model is a list"),
        (lambda: get_num_parameters(nn.LazyLinear(3)), ValueError, "weight has no shape yet"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(call, kind, said):
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
