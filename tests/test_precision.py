"""Recipes for precision: each trains, and does what it says to weights, gradients and bytes."""
import copy
import math

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from course_lib import optim
from course_lib.floats import BFLOAT16, E2M1, E4M3
from course_lib.modules import Cruncher, get_num_parameters
from course_lib.precision import (
    FP8,
    MXFP4,
    MXFP8,
    NVFP4,
    AutocastBFloat16,
    BlockFormat,
    MasterWeights,
    ParameterBytes,
    PlainBFloat16,
    Precision,
    ScaledFloat16,
    SimulatedMatmuls,
    StochasticBFloat16,
    stochastic_round,
)
from course_lib.storage import measure_memory
from course_lib.training import TrainingDiverged, train

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
RECIPES = {
    "float32": Precision,
    "autocast": AutocastBFloat16,
    "scaled": lambda: ScaledFloat16(2.0**10),
    "plain": PlainBFloat16,
    "master": MasterWeights,
    "master, bfloat16 gradients": lambda: MasterWeights("bfloat16"),
    "stochastic": StochasticBFloat16,
    "FP8": lambda: SimulatedMatmuls(FP8),
    "MXFP4": lambda: SimulatedMatmuls(MXFP4),
}
TWO_SETS = ["master", "master, bfloat16 gradients", "stochastic"]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def batches(device: str = "cpu", size: int = 64):
    generator = torch.Generator().manual_seed(1)
    truth = torch.randn(16, 1, generator=generator)

    def draw():
        x = torch.randn(size, 16, generator=generator)
        return x.to(device), (x @ truth).tanh().to(device)

    return draw


def one_backward(recipe: Precision, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    recipe.zero_grad()
    with recipe.autocast(x.device):
        loss = (model(x) - y).pow(2).mean()
    recipe.backward(loss)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_trains(name, device):
    model = small_model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    history = train(model, batches(device), optimizer, 60, precision=RECIPES[name](), max_grad_norm=1.0)
    assert sum(history.losses[-5:]) < 0.6 * sum(history.losses[:5])
    x, _ = batches(device)()
    assert model(x).isfinite().all(), "a trained model takes float32 inputs outside of autocast, too"


def test_where_bfloat16_weights_stall_masters_go_on():
    """1 − 0.001 is 1 in bfloat16. A hundred such steps are lost, unless masters or chance keep count of them."""
    ends = {}
    for name in ("float32", "plain", "master", "stochastic"):
        model = Cruncher(256, 0)
        with torch.no_grad():
            model.final.weight.fill_(1.0)
        recipe = RECIPES[name]()
        recipe.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-3))
        for _ in range(100):
            recipe.zero_grad()
            with recipe.autocast("cpu"):
                loss = model(torch.ones(1, 256)).sum()  # each weight's gradient is 1
            recipe.backward(loss)
            assert recipe.step()
        ends[name] = model.final.weight.detach().float()
    assert (ends["plain"] == 1).all()
    assert torch.equal(ends["master"], ends["float32"].bfloat16().float())
    assert (ends["float32"] - 0.9).abs().max() < 1e-4
    spread = math.sqrt(0.1 * BFLOAT16.spacing(0.95) / 256)  # each of 256 weights is a random walk towards 0.9
    assert abs(ends["stochastic"].mean().item() - 0.9) < 4 * spread and ends["stochastic"].std() > 0


@pytest.mark.parametrize("name", TWO_SETS)
def test_the_optimizers_parameters_hold_the_gradients(name):
    model = small_model()
    optimizer = torch.optim.Adagrad(model.parameters())  # it has a state from the start, which has to move along
    recipe, weights = RECIPES[name](), list(model.parameters())
    exact = [weight.detach().clone() for weight in weights]
    recipe.prepare(model, optimizer)
    recipe.prepare(model, optimizer)
    own = optimizer.param_groups[0]["params"]
    assert list(model.parameters()) == weights and all(weight.dtype is torch.bfloat16 for weight in weights)
    assert not {*own} & {*weights} and all(one.dtype is torch.float32 for one in own)
    assert list(optimizer.state) == own
    if name != "stochastic":
        assert all(map(torch.equal, own, exact)), "masters begin with what was there before anything was rounded"
    x, y = batches()()
    for _ in range(2):
        one_backward(recipe, model, x, y)
        recipe.unscale()
        for one, weight in zip(own, weights, strict=True):
            assert torch.equal(one.grad.float(), weight.grad.float()) and one.grad.any()
        recipe.step()
    recipe.zero_grad()
    assert all(one.grad is None for one in (*own, *weights))


def test_gradients_of_many_backward_passes_add_up_in_float32_unless_told_otherwise():
    """1 + 200 · 0.002 is 1.4; in bfloat16 each 0.002 is lost."""
    sums = {}
    for kind in ("float32", "bfloat16"):
        model = Cruncher(2, 0)
        recipe = MasterWeights(kind)
        recipe.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for size in (1.0, *[0.002] * 200):
            with recipe.autocast("cpu"):
                loss = model(torch.full((1, 2), size)).sum()
            recipe.backward(loss)
        recipe.unscale()
        sums[kind] = recipe._pairs[0][1].grad[0].item()
    assert sums["float32"] == pytest.approx(1.4, rel=2e-3) and sums["bfloat16"] == 1.0


def test_a_scaled_step_is_the_unscaled_one():
    steps = []
    for scale in (1.0, 2.0**8):
        model, (x, y) = small_model(), batches()()
        recipe = ScaledFloat16(scale)
        recipe.prepare(model, optim.SGD(model.parameters(), lr=0.1))
        one_backward(recipe, model, 100 * x, 100 * y)  # gradients far from float16's lower end
        if scale > 1:
            assert model[3].weight.grad.abs().max() > 2**8 * steps[0][1].abs().max() * 0.99
        recipe.unscale()
        gradient = model[3].weight.grad.clone()
        assert recipe.step()
        steps.append((model[3].weight.detach().clone(), gradient))
    assert torch.equal(steps[0][0], steps[1][0]) and torch.equal(steps[0][1], steps[1][1])


def test_scaling_rescues_small_gradients():
    left = {}
    for scale in (1.0, 2.0**16):
        model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False))
        recipe = ScaledFloat16(scale)
        recipe.prepare(model, optim.SGD(model.parameters(), lr=0.1))
        with recipe.autocast("cpu"):
            loss = model(torch.ones(2, 4)).float().mean() * 1e-8
        recipe.backward(loss)
        recipe.unscale()
        left[scale] = model[0].weight.grad.abs().sum().item()
    assert left[1.0] == 0 and left[2.0**16] > 1e-9


def test_an_overflow_skips_the_step_and_halves_the_scale():
    model, (x, y) = small_model(), batches()()
    optimizer = optim.AdamW(model.parameters())
    recipe = ScaledFloat16(2.0**10, growth_interval=2)
    recipe.prepare(model, optimizer)
    before = copy.deepcopy(model.state_dict())
    one_backward(recipe, model, x, y)
    model[1].weight.grad[0, 0] = math.inf
    assert recipe.step() is False
    assert recipe.scale == 2.0**9 and not optimizer.state
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    for _ in range(2):
        one_backward(recipe, model, x, y)
        assert recipe.step() is True
    assert recipe.scale == 2.0**10, "after growth_interval good steps it doubles"
    assert not torch.equal(before["1.weight"], model[1].weight)


def test_in_train_an_overflow_is_skipped_and_a_lost_loss_is_not():
    recipe, model = ScaledFloat16(2.0**40), small_model()
    history = train(model, batches(), optim.SGD(model.parameters(), lr=0.01), 40, precision=recipe)
    skipped = sum(not math.isfinite(norm) for norm in history.grad_norms)
    assert skipped >= 10 and recipe.scale == 2.0 ** (40 - skipped) and math.isfinite(history.grad_norms[-1])
    with torch.no_grad():
        model[1].weight[0, 0] = math.nan
    with pytest.raises(TrainingDiverged):
        train(model, batches(), optim.SGD(model.parameters(), lr=0.01), 1, precision=recipe)


@pytest.mark.parametrize("name", RECIPES)
def test_clipping_sees_true_gradients(name):
    """With SGD at rate 1 a clipped step is as long as the clipped norm, whatever scale there is."""
    model = small_model()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    history = train(model, batches(), optimizer, 1, precision=RECIPES[name](), max_grad_norm=0.05)
    after = torch.cat([p.detach().float().flatten() for p in optimizer.param_groups[0]["params"]])
    if name in ("plain", "stochastic"):  # their weights are rounded
        after = torch.cat([p.detach().float().flatten() for p in model.parameters()])
        assert (after - before).norm() < 0.2
    else:
        assert (after - before).norm() == pytest.approx(0.05, rel=0.01)
    assert history.grad_norms[0] == pytest.approx(reference_norm(), rel=0.25 if name == "MXFP4" else 0.03)


def reference_norm() -> float:
    model = small_model()
    return train(model, batches(), optim.SGD(model.parameters(), lr=0.0), 1).grad_norms[0]


@pytest.mark.parametrize("kind", [optim.AdamW, torch.optim.AdamW])
@pytest.mark.parametrize("name", ["autocast", "scaled", "plain", *TWO_SETS])
def test_a_run_with_a_break_is_the_run_without(name, kind, tmp_path):
    ends = []
    for folder, legs in (("whole", [8]), ("broken", [3, 8])):
        for steps in legs:
            model = small_model()
            optimizer = kind(model.parameters(), lr=1e-2)
            make = (lambda: ScaledFloat16(2.0**20, growth_interval=2)) if name == "scaled" else RECIPES[name]
            draw = batches()
            for _ in range(3 if steps == 8 and len(legs) == 2 else 0):
                draw()  # the data go on where they were
            recipe = make()
            history = train(
                model, draw, optimizer, steps, precision=recipe, checkpoint_directory=tmp_path / folder
            )
        ends.append((history, [*model.parameters(), *optimizer.param_groups[0]["params"]], recipe.state_dict()))
    (first, weights, state), (second, others, other_state) = ends
    assert first == second and all(map(torch.equal, weights, others))
    assert str(state) == str(other_state)


def test_bytes_measured_are_those_accounted_for():
    for optimizer, numbers in ((optim.SGD, 0), (optim.AdaGrad, 1), (optim.AdamW, 2)):
        for name, make in RECIPES.items():

            def run(optimizer=optimizer, make=make):
                model, recipe = Cruncher(64, 2), make()
                mine = optimizer(model.parameters())
                recipe.prepare(model, mine)
                x, y = torch.ones(4, 64), torch.ones(4)
                one_backward(recipe, model, x, y)
                recipe.step()
                one_backward(recipe, model, x, y)
                recipe.unscale()
                return model, mine, recipe

            small = {"scaled": 12, "stochastic": 12}.get(name, 0)  # scale, count, found; a place holder for each weight
            expected = get_num_parameters(Cruncher(64, 2)) * RECIPES[name]().bytes_per_parameter(numbers).total
            assert measure_memory(run, "cpu") == expected + small, name


def test_the_famous_numbers_of_bytes():
    totals = {name: make().bytes_per_parameter().total for name, make in RECIPES.items()}
    assert totals["float32"] == totals["autocast"] == totals["scaled"] == totals["FP8"] == 16
    assert (totals["stochastic"], totals["master"], totals["master, bfloat16 gradients"]) == (12, 18, 20)
    parts = MasterWeights().bytes_per_parameter()
    assert parts.parts == {"weights": 2, "gradients": 4, "master": 4, "state": 8}
    assert sum(parts.parts.values()) == parts.total
    with pytest.raises(ValueError, match="state_numbers is -1"):
        Precision().bytes_per_parameter(-1)


@pytest.mark.parametrize("recipe", [AutocastBFloat16(), ScaledFloat16(), MasterWeights(), StochasticBFloat16()])
def test_autocast_is_that_of_the_device(recipe):
    wanted = torch.float16 if isinstance(recipe, ScaledFloat16) else torch.bfloat16
    with recipe.autocast(torch.device("cpu")):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is wanted
        assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    if torch.cuda.is_available():
        with recipe.autocast("cuda:0"):
            assert torch.get_autocast_dtype("cuda") is wanted and not torch.is_autocast_enabled("cpu")


# ---------------------------------------------------------------- formats


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator) * torch.exp2(4 * torch.randn(shape, generator=generator))


@pytest.mark.parametrize(
    ("format", "kind", "emax"), [(MXFP4, ml_dtypes.float4_e2m1fn, 2), (MXFP8, ml_dtypes.float8_e4m3fn, 8)]
)
def test_mx_blocks_are_those_of_ml_dtypes(format, kind, emax):
    x = numbers(12, 64)
    blocks = x.numpy().reshape(12, 2, 32)
    exponents = np.floor(np.log2(np.abs(blocks).max(-1, keepdims=True))).astype(int)
    scaled = np.ldexp(blocks, emax - exponents).clip(-format.element.max, format.element.max)
    expected = np.ldexp(scaled.astype(kind).astype(np.float32), exponents - emax).reshape(12, 64)
    assert torch.equal(format.round_tensor(x), torch.from_numpy(expected))
    assert torch.equal(format.round_tensor(x.T, axis=0), torch.from_numpy(expected).T)


def test_nvfp4_has_two_scales():
    x = numbers(8, 48, seed=1)
    unit = np.float64(np.float32(np.abs(x.double().numpy()).max() / (6 * 448)))
    blocks = x.double().numpy().reshape(8, 3, 16)
    scales = (np.abs(blocks).max(-1, keepdims=True) / 6 / unit).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    shares = np.where(scales > 0, blocks / np.where(scales > 0, scales * unit, 1), 0).clip(-6, 6)
    expected = (shares.astype(ml_dtypes.float4_e2m1fn).astype(np.float64) * scales * unit).astype(np.float32)
    assert torch.equal(NVFP4.round_tensor(x), torch.from_numpy(expected.reshape(8, 48)))


def test_one_scale_for_the_tensor():
    x = numbers(5, 7, seed=2)
    scale = (x.abs().max().double() / 448).float().double()
    expected = (E4M3.round_tensor(x.double() / scale) * scale).float()
    assert torch.equal(FP8.round_tensor(x), expected)
    assert FP8.round_tensor(x).abs().max() == pytest.approx(x.abs().max().item(), rel=1e-6)


@pytest.mark.parametrize("format", [FP8, MXFP4, MXFP8, NVFP4])
def test_formats_at_their_limits(format):
    assert torch.equal(format.round_tensor(torch.zeros(3, 40)), torch.zeros(3, 40))
    ragged = numbers(3, 40)
    once = format.round_tensor(ragged)
    assert once.shape == (3, 40) and once.dtype is torch.float32 and once.isfinite().all()
    assert torch.equal(format.round_tensor(torch.cat([ragged, torch.zeros(3, 24)], 1))[:, :40], once)
    holed = torch.ones(2, 64)
    holed[0, 0], holed[1, 0] = math.inf, math.nan
    left = format.round_tensor(holed)
    assert left[:, 0].isnan().all()
    if format.scale == "power of two":
        assert (left[:, 32:] == 1).all(), "another block is another block"
    assert format.round_tensor(torch.tensor([3.0])).item() == pytest.approx(3.0, rel=1e-6)
    assert format.round_tensor(torch.empty(0, 4)).shape == (0, 4)
    with pytest.raises(ValueError, match="axis is 2; -2 to 1"):
        format.round_tensor(ragged, 2)


def test_bits_count_the_scales():
    assert [format.bits for format in (FP8, MXFP8, MXFP4, NVFP4)] == [8, 8.25, 4.25, 4.5]
    with pytest.raises(ValueError, match="block is 0"):
        BlockFormat("none", E2M1, 0, "float32")


def test_simulated_matmuls_round_what_enters_them_forward_and_backward():
    recipe = SimulatedMatmuls(MXFP4)
    x, w = numbers(6, 64), nn.Parameter(numbers(64, 8, seed=3))
    with recipe.autocast("cpu"):
        y = x @ w
        untouched = x + 1
    assert torch.equal(y, MXFP4.round_tensor(x) @ MXFP4.round_tensor(w.detach(), 0))
    assert torch.equal(untouched, x + 1)
    slope = numbers(6, 8, seed=4)
    recipe.backward((y * slope).sum())
    assert torch.equal(w.grad, MXFP4.round_tensor(x.T) @ MXFP4.round_tensor(slope, 0))
    assert torch.equal(x @ w, x @ w.detach()), "outside nothing is rounded"
    batch, bias = numbers(2, 6, 64), numbers(8, seed=5)
    with recipe.autocast("cpu"):
        assert torch.equal((batch @ w)[1], MXFP4.round_tensor(batch[1]) @ MXFP4.round_tensor(w.detach(), 0))
        linear = torch.nn.functional.linear(x, w.T, bias)
        vector = x @ w[:, 0]
    assert torch.equal(linear, bias + MXFP4.round_tensor(x) @ MXFP4.round_tensor(w.detach(), 0))
    assert torch.equal(vector, MXFP4.round_tensor(x) @ MXFP4.round_tensor(w[:, 0].detach()))


def test_stochastic_rounding_is_right_on_average():
    generator = torch.Generator().manual_seed(0)
    for value, up in ((1 + 2**-9, 0.25), (-1 - 3 * 2**-9, 0.75), (3e-40, 0.5), (1000.5, 0.125)):
        x = torch.full((20_000,), value)
        rounded = stochastic_round(x, generator).double()
        away = BFLOAT16.neighbours(value)[value > 0]
        toward = BFLOAT16.neighbours(value)[value < 0]
        assert {*rounded.tolist()} == {away, toward}
        expected = (x[0].double().item() - toward) / (away - toward)
        assert abs((rounded == away).double().mean().item() - expected) < 0.015
        if value != 3e-40:
            assert expected == pytest.approx(up, abs=1e-6)


def test_stochastic_rounding_leaves_alone_what_needs_none():
    exact = torch.tensor([0.0, -0.0, 1.0, -2.5, 3.3895314e38, math.inf, -math.inf]).bfloat16().float()
    assert torch.equal(stochastic_round(exact.view(7, 1).T).float(), exact[None])
    assert stochastic_round(torch.tensor(-0.0)).signbit() and stochastic_round(torch.tensor(math.nan)).isnan()
    x = numbers(1000)
    first, again = (stochastic_round(x, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, again) and not torch.equal(first, x.bfloat16())


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_is_not_prepared_says_so(name):
    recipe = RECIPES[name]()
    with pytest.raises(RuntimeError, match=r"is not prepared: call prepare\(model, optimizer\) first"):
        recipe.step()
    assert recipe.name in repr(recipe)


def test_wrong_arguments_are_named():
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="initial_scale is"):
            ScaledFloat16(wrong)
    with pytest.raises(ValueError, match="growth_interval is 0"):
        ScaledFloat16(1.0, 0)
    with pytest.raises(TypeError, match="gradients is a str"):
        MasterWeights("float16")
    model = small_model()
    with pytest.raises(ValueError, match="none of the model's"):
        MasterWeights().prepare(model, optim.SGD(small_model().parameters()))
    assert model[1].weight.dtype is torch.float32


@pytest.mark.parametrize("name", ["scaled", *TWO_SETS])
@pytest.mark.parametrize("odd", [3, "x", torch.ones(2), ["a"], None])
def test_the_state_of_something_else_gets_one_sentence_and_changes_nothing(name, odd):
    recipe = RECIPES[name]()
    recipe.prepare(model := small_model(), optim.SGD(model.parameters()))
    before = copy.deepcopy(recipe.state_dict())
    for state in ({}, {key: odd for key in before if not isinstance(odd, int) or name != "scaled"}):
        with pytest.raises(ValueError, match=r"load_state_dict\(\): .*(asked for|of this model's shapes)\.$"):
            recipe.load_state_dict(state)
    assert str(recipe.state_dict()) == str(before)


def test_float16_parameters_and_a_step_without_a_loss_get_one_sentence():
    model = small_model().half()
    with pytest.raises(ValueError, match="parameters are float16; float32 ones are asked for"):
        ScaledFloat16().prepare(model, optim.SGD(model.parameters()))
    recipe = ScaledFloat16()
    recipe.prepare(model := small_model(), optim.SGD(model.parameters()))
    with pytest.raises(RuntimeError, match=r"has no gradients: call backward\(loss\) first"):
        recipe.step()


def test_bytes_are_numbers_of_at_least_0():
    for wrong, error in ((-1, ValueError), (math.nan, ValueError), (math.inf, ValueError), ("4", TypeError)):
        with pytest.raises(error, match="master is"):
            ParameterBytes(4, 4, wrong, 8, "float32")


def test_a_block_longer_than_the_tensor_costs_no_memory_and_the_default_device_no_numbers():
    x = torch.randn(3, 5)
    for scale in ("power of two", "E4M3", "float32"):
        wanted = BlockFormat("rows", E2M1, 5, scale).round_tensor(x)
        with torch.device("meta"):
            assert torch.equal(BlockFormat("long", E2M1, 10**30, scale).round_tensor(x), wanted)


def test_a_number_is_a_block_of_its_own_and_a_sparse_tensor_is_none():
    for form in (FP8, MXFP8, MXFP4, NVFP4):
        assert torch.equal(form.round_tensor(torch.tensor(0.3)), form.round_tensor(torch.tensor([0.3]))[0])
        with pytest.raises(ValueError, match=r"x is of layout torch\.sparse_coo; a dense tensor is asked for"):
            form.round_tensor(torch.eye(2).to_sparse())
    negated = torch.full((3,), 1 + 1j).conj().imag
    assert negated.is_neg()
    assert torch.equal(stochastic_round(negated).float(), negated)


def test_masters_of_another_model_are_refused():
    recipe = MasterWeights()
    recipe.prepare(model := small_model(), optim.SGD(model.parameters()))
    before = [one.clone() for one in recipe.state_dict()["masters"]]
    for state in ({}, {"masters": before[:-1]}, {"masters": [one + 1 for one in before[:-1]] + [torch.ones(3)]}):
        with pytest.raises(ValueError, match="no masters of this model's shapes"):
            recipe.load_state_dict(state)
    assert all(map(torch.equal, before, recipe.state_dict()["masters"]))
