"""The solutions of notebook 07 against torch and against the course's own library, and what learners write."""
import copy
import itertools
import math
import random

import pytest
import torch
from torch import nn
from written_answers import OWN, assert_diagnosed

from course_lib import init
from course_lib.exercises import nb07
from course_lib.exercises.engine.judge import judge
from course_lib.exercises.nb07 import clip_weights, depth_probe, initial_std, kaiming_all, truncated_init
from course_lib.modules import Cruncher, Linear


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_stds_are_those_of_the_library_and_of_torch():
    rng = random.Random(0)
    for _ in range(100):
        fan_in, fan_out = rng.randint(1, 5000), rng.randint(1, 5000)
        assert initial_std("lecun", fan_in, fan_out) == pytest.approx(init.lecun_std(fan_in))
        assert initial_std("xavier", fan_in, fan_out) == pytest.approx(init.xavier_std(fan_in, fan_out))
        assert initial_std("kaiming", fan_in, fan_out) == pytest.approx(init.kaiming_std(fan_in))
    weight = torch.empty(600, 400)  # (out, in), as torch has it
    for scheme, draw in (("xavier", nn.init.xavier_normal_), ("kaiming", nn.init.kaiming_normal_)):
        assert draw(weight, generator=seeded()).std() == pytest.approx(initial_std(scheme, 400, 600), rel=0.01)


def test_clipping_is_that_of_clamp_and_an_optimizer_goes_on():
    model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Sequential(Linear(6, 3)))
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clip_weights(model, 0.05)
    for mine, before in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine, before.clamp(-0.05, 0.05))
    model(torch.ones(2, 8)).sum().backward()
    clipped = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer.step()
    assert not torch.equal(model[0].weight, clipped[0])


def test_truncation_is_that_of_the_library_to_the_bit():
    for std in (1e-3, 1 / 128, 1.0, 30.0):
        weight = nn.Parameter(torch.empty(50, 40))
        truncated_init(weight, std, seeded(3))
        assert torch.equal(weight, init.truncated_normal_(torch.empty(50, 40), std=std, generator=seeded(3)))


def test_the_probe_is_that_of_the_library():
    rng = random.Random(1)
    for activation in (nn.ReLU(), nn.Tanh(), nn.Identity(), nn.GELU()):
        widths = [rng.randint(1, 30) for _ in range(8)]
        weights = [torch.randn(a, b) for a, b in itertools.pairwise(widths)]
        x = torch.randn(5, widths[0])
        assert depth_probe(x, weights, activation) == pytest.approx(init.signal_sizes(x, weights, activation), rel=1e-4)


def test_a_deep_relu_network_keeps_its_signal_in_both_layouts():
    layers = [Linear(256, 256) if i % 2 else nn.Linear(256, 256) for i in range(20)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())])
    x = torch.randn(128, 256, generator=seeded(1))
    assert init.rms(model(x).detach()) < 0.1, "and what is left comes from the biases"
    kaiming_all(model, seeded(2))
    assert 0.4 < init.rms(model(x)) < 2.5
    cruncher = Cruncher(64, 2)
    kaiming_all(cruncher, seeded())
    assert init.rms(cruncher.layers[0].weight) == pytest.approx(math.sqrt(2) / 8, rel=0.05)
    assert init.rms(cruncher.final.weight) == pytest.approx(math.sqrt(2) / 8, rel=0.4)


EACH = "for p in model.parameters():\n        "
MODULES = "for m in model.modules():\n            "
ROOT = "(2 / m.weight.shape[{}]) ** 0.5"
BIAS = "\n            if isinstance(m, nn.Linear) and m.bias is not None: nn.init.zeros_(m.bias)"
BOTH = "with torch.no_grad():\n        for m in model.modules():\n            if isinstance(m, (Linear, nn.Linear)): "
DRAWN = "m.weight.normal_(0, {}, generator=generator)"
SIZES = "sizes = []\n    for w in weights:\n        x = activation(x @ w)\n        sizes.append({})\n    return sizes"
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("initial_std", "return {'lecun': 1 / fan_in, 'xavier': 1 / ((fan_in + fan_out) / 2), 'kaiming': 2 / fan_in}"
     "[scheme] ** 0.5", None),
    ("initial_std", "return (2 / (fan_in + fan_out) if scheme == 'xavier' else {'lecun': 1}.get(scheme, 2) / fan_in)",
     "variances_returned"),
    ("initial_std", "return {'kaiming': 2 ** 0.5}.get(scheme, 1) * fan_in ** -0.5", "xavier_is_lecun"),
    ("clip_weights", f"with torch.no_grad():\n        {EACH}    p.copy_(p.clip(-limit, limit))", None),
    ("clip_weights", f"{EACH}p.detach().clip_(-limit, limit)", None),
    ("clip_weights", f"with torch.no_grad():\n        {EACH}    torch.clamp(p, -limit, limit, out=p)", None),
    ("clip_weights", f"{EACH}p.data = p.data.clamp(-limit, limit)", "through_data"),
    ("clip_weights", f"{EACH}p.data.copy_(p.data.clamp(-limit, limit))", "through_data"),
    ("clip_weights", f"with torch.no_grad():\n        {EACH}    p = p.clamp(-limit, limit)", "rebinds_a_name"),
    ("clip_weights", f"{EACH}p.clamp_(min=-limit, max=limit)", "without_no_grad"),
    ("clip_weights", f"with torch.no_grad():\n        {EACH}    p.clip_(max=limit)", "from_above"),
    ("truncated_init", "with torch.no_grad():\n        weight.normal_(0, std, generator=generator)\n        "
     "while (far := weight.abs() > 3 * std).any():\n            "
     "weight.copy_(torch.where(far, torch.randn(weight.shape, generator=generator) * std, weight))", None),
    ("truncated_init", "nn.init.trunc_normal_(weight, 0.0, std, -3 * std, 3 * std, generator)", None),
    ("truncated_init", "nn.init.trunc_normal_(weight, 0.0, std, -3, 3, generator)", "absolute_bounds"),
    ("truncated_init", "with torch.no_grad():\n        "
     "weight.copy_((std * torch.randn(weight.shape, generator=generator)).clip(-3 * std, 3 * std))", "clamped"),
    ("truncated_init", "nn.init.normal_(weight, 0, std, generator=generator)", "not_truncated"),
    ("truncated_init", "weight.data = std * torch.randn(weight.shape, generator=generator)", OWN),
    ("depth_probe", SIZES.format("float(x.square().mean() ** 0.5)"), None),
    ("depth_probe", SIZES.format("x.std(correction=0).item()"), "spread_around_the_mean"),
    ("depth_probe", SIZES.format("x.norm().item()"), "whole_length"),
    ("depth_probe", "return [activation(x @ w).pow(2).mean().sqrt().item() for w in weights]", OWN),
    ("kaiming_all", BOTH + DRAWN.format("(2 / m.weight.shape[isinstance(m, nn.Linear)]) ** 0.5") + BIAS, None),
    ("kaiming_all", BOTH + DRAWN.format(ROOT.format(1)) + BIAS, "always_axis_1"),
    ("kaiming_all", BOTH + "nn.init.kaiming_normal_(m.weight, generator=generator)" + BIAS, "always_axis_1"),
    ("kaiming_all", BOTH + DRAWN.format(ROOT.format(0)) + BIAS, "always_axis_0"),
    ("kaiming_all", BOTH + DRAWN.format("(2 / max(m.weight.shape)) ** 0.5") + BIAS, OWN),
    ("kaiming_all", f"{MODULES}if isinstance(m, nn.Linear): "
     "nn.init.kaiming_normal_(m.weight, generator=generator)" + BIAS, "torchs_alone"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb07, name)
    assert_diagnosed(nb07, name, one.stub.removesuffix("...") + body, diagnosis)


@pytest.mark.parametrize("seed", range(3))
def test_claims_about_random_numbers_hold_for_other_seeds(seed, monkeypatch):
    """The probes' tolerances are no luck: a right answer passes whatever its generator draws."""
    for one in (truncated_init, kaiming_all):
        shifted = [nb07.case(f"{case.text[:-1]}{seed + 40}", case.label) for case in one.case_list]
        monkeypatch.setattr(one, "case_list", shifted)
        monkeypatch.setattr(one, "_seen", {})
        for right in one.alternatives.values():
            assert judge(one, right).status == "correct"
