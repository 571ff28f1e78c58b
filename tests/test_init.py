"""Initialisers draw from the distribution that they name, whatever the weight's layout, and signals do what is said."""
import math

import pytest
import torch
from torch import nn

from course_lib import init
from course_lib.init import (
    kaiming_normal_,
    kaiming_std,
    lecun_normal_,
    lecun_std,
    rms,
    signal_sizes,
    truncated_normal_,
    truncated_shrinkage,
    xavier_normal_,
    xavier_std,
)

FAN_IN, FAN_OUT = 1024, 256
DRAWS = {  # name: (initialiser, its fans, the standard deviation)
    "lecun": (lecun_normal_, {"fan_in": FAN_IN}, 1 / 32),
    "xavier": (xavier_normal_, {"fan_in": FAN_IN, "fan_out": FAN_OUT}, math.sqrt(2 / 1280)),
    "kaiming": (kaiming_normal_, {"fan_in": FAN_IN}, math.sqrt(2) / 32),
    "truncated": (truncated_normal_, {"std": 0.02, "bound": 2.0}, 0.02 * 0.8796256610342398),
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def phi(z: float) -> float:
    return math.erf(z / math.sqrt(2)) / 2 + 0.5


def test_the_rules_for_the_lectures_matrix():
    assert f"{lecun_std(16384):.5f}" == "0.00781"
    assert f"{xavier_std(16384, 32):.4f}" == f"{kaiming_std(16384):.4f}" == "0.0110"
    assert xavier_std(512, 512) == pytest.approx(lecun_std(512), rel=1e-15)
    assert kaiming_std(512) / lecun_std(512) == pytest.approx(math.sqrt(2), rel=1e-15)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_spread_is_the_one_that_the_name_promises(name, dtype):
    draw, fans, std = DRAWS[name]
    weight = torch.full((FAN_IN, FAN_OUT), math.nan, dtype=dtype)
    assert draw(weight, **fans, generator=seeded()) is weight
    assert rms(weight) == pytest.approx(std, rel=0.01)
    assert weight.double().mean().abs() < 4 * std / math.sqrt(weight.numel())


@pytest.mark.parametrize("name", ["lecun", "kaiming", "xavier"])
def test_they_are_torchs_where_the_weight_lies_as_torchs_does(name):
    draw, fans, _ = DRAWS[name]
    theirs = nn.init.xavier_normal_ if name == "xavier" else nn.init.kaiming_normal_
    options = {} if name == "xavier" else {"nonlinearity": "relu" if name == "kaiming" else "linear"}
    ours = draw(torch.empty(FAN_OUT, FAN_IN), **fans, generator=seeded())
    assert torch.allclose(ours, theirs(torch.empty(FAN_OUT, FAN_IN), **options, generator=seeded()))


@pytest.mark.parametrize("name", ["lecun", "xavier", "kaiming"])
def test_most_numbers_are_where_a_normals_are(name):
    draw, fans, std = DRAWS[name]
    weight = draw(torch.empty(FAN_IN, FAN_OUT), **fans, generator=seeded())
    for z in (0.5, 1, 2, 3):
        inside = (weight.abs() < z * std).double().mean().item()
        assert inside == pytest.approx(2 * phi(z) - 1, abs=0.004)


@pytest.mark.parametrize("std", [1e-4, 1 / 128, 1.0, 50.0])
@pytest.mark.parametrize("bound", [0.5, 1.0, 2.0, 3.0])
def test_a_truncated_normal_keeps_its_bounds_at_every_scale(std, bound):
    weight = truncated_normal_(torch.empty(300_000), std=std, bound=bound, generator=seeded())
    z = weight.double() / std
    assert z.abs().max() <= bound * (1 + 1e-6)
    assert z.abs().max() > 0.99 * bound, "nothing comes near the bound: it was not the bound that cut"
    assert rms(z) == pytest.approx(truncated_shrinkage(bound), rel=0.01)
    inside = (z.abs() < bound / 2).double().mean().item()  # drawn again, not clamped: the shape inside stays
    assert inside == pytest.approx((2 * phi(bound / 2) - 1) / (2 * phi(bound) - 1), abs=0.005)


def test_torchs_bounds_are_absolute():
    """What the course says of nn.init.trunc_normal_(std=1/128, a=-3, b=3): that it truncates nothing."""
    plain = torch.empty(16384, 32).normal_(0, 1 / 128, generator=seeded())
    torchs = nn.init.trunc_normal_(torch.empty(16384, 32), std=1 / 128, a=-3, b=3, generator=seeded())
    assert torch.equal(torchs, plain) and torchs.abs().max() > 4 / 128


@pytest.mark.parametrize("bound", [1e-6, 9e-4, 1.1e-3, 0.1, 1.0, 2.0, 3.0, 10.0])
def test_the_shrinkage_is_the_integral(bound):
    z = torch.linspace(-bound, bound, 200_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2)
    wanted = torch.trapezoid(z**2 * density, z) / torch.trapezoid(density, z)
    assert truncated_shrinkage(bound) == pytest.approx(math.sqrt(wanted), rel=1e-5)


def test_a_std_of_zero_gives_zeros():
    assert torch.equal(truncated_normal_(torch.ones(3), std=0), torch.zeros(3))


@pytest.mark.parametrize("name", DRAWS)
def test_a_parameter_is_written_in_place_and_the_generator_alone_decides(name):
    draw, fans, _ = DRAWS[name]
    layer, twin = nn.Linear(FAN_IN, FAN_OUT), torch.empty(FAN_OUT, FAN_IN)
    weight, storage = layer.weight, layer.weight.data_ptr()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    draw(layer.weight, **fans, generator=seeded(7))
    draw(twin, **fans, generator=seeded(7))
    assert torch.equal(torch.get_rng_state(), before)
    assert layer.weight is weight and weight.data_ptr() == storage
    assert weight.requires_grad and weight.is_leaf and torch.equal(weight.detach(), twin)
    assert not torch.equal(draw(torch.empty_like(twin), **fans, generator=seeded(8)), twin)
    draw(twin, **fans)
    assert not torch.equal(torch.get_rng_state(), before), "without one, torch's own generator is drawn from"


GAINS = [  # activation, its name, gain over 1/√fan_in, sizes expected after 20 layers
    (lambda x: x, "identity", 1.0, (0.6, 1.6)),
    (torch.relu, "relu", 1.0, (2**-10 / 2, 2**-10 * 2)),
    (torch.relu, "relu, kaiming", math.sqrt(2), (0.5, 2.0)),
    (torch.tanh, "tanh", 1.0, (0.1, 0.25)),
    (torch.tanh, "tanh, 5/3", 5 / 3, (0.6, 0.7)),
]


@pytest.mark.parametrize(("activation", "name", "gain", "between"), GAINS, ids=[gain[1] for gain in GAINS])
def test_twenty_layers_do_what_the_gain_says(activation, name, gain, between):
    generator = seeded(1)
    weights = [gain * torch.randn(256, 256, generator=generator) / 16 for _ in range(20)]
    sizes = signal_sizes(torch.randn(128, 256, generator=generator), weights, activation)
    assert between[0] < sizes[-1] < between[1]


def test_signal_sizes_are_those_of_the_layers():
    weights = [torch.randn(3, 5), torch.randn(5, 2)]
    x = torch.randn(4, 3)
    first = torch.tanh(x @ weights[0])
    assert signal_sizes(x, weights, torch.tanh) == pytest.approx([rms(first), rms(torch.tanh(first @ weights[1]))])
    assert signal_sizes(x, [], torch.tanh) == []
    weights[0].requires_grad_()
    assert len(signal_sizes(x, weights, torch.relu)) == 2


def test_rms_counts_the_mean_in():
    assert rms(torch.tensor([3.0, 3.0])) == 3 and rms(torch.zeros(2)) == 0
    assert rms(torch.full((10,), 300.0, dtype=torch.float16)) == 300, "the squares would overflow in float16"


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: lecun_std(0), ValueError, r"lecun_std\(\): fan_in is 0; at least 1"),
        (lambda: xavier_std(3, -2), ValueError, r"xavier_std\(\): fan_out is -2; at least 1"),
        (lambda: kaiming_std(2.5), TypeError, r"kaiming_std\(\): fan_in is a float"),
        (lambda: lecun_normal_(torch.ones(3)), TypeError, "fan_in"),
        (lambda: lecun_normal_(torch.arange(3), fan_in=3), TypeError, "weight is a tensor of dtype int64"),
        (lambda: truncated_normal_(torch.ones(3), std=-1), ValueError, "std is -1; a finite number of at least 0"),
        (lambda: truncated_normal_(torch.ones(3), std=math.nan), ValueError, "std is nan; a finite number"),
        (lambda: truncated_normal_(torch.ones(3), std=1, bound=0), ValueError, "bound is 0; a finite number above 0"),
        (lambda: truncated_shrinkage(math.inf), ValueError, "bound is inf; a finite number above 0"),
        (lambda: rms(torch.empty(0, 3)), ValueError, r"rms\(\): x has shape \(0, 3\); at least one number"),
        (
            lambda: signal_sizes(torch.ones(2, 3), [torch.ones(3, 4), torch.ones(3, 4)], torch.relu),
            ValueError,
            r"weights\[1\] has shape \(3, 4\); 4 rows",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(call, kind, said):
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_every_initialiser_is_tested():
    assert {name for name in vars(init) if name.endswith("_normal_") and not name.startswith("_")} == {
        draw.__name__ for draw, _, _ in DRAWS.values()
    }
