"""The solutions of notebook 13 against torch and against the course's own recipes, and what learners write."""
import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from written_answers import OWN, assert_diagnosed

from course_lib.exercises import nb13
from course_lib.exercises.nb13 import autocast_dtype, master_steps, pick_recipe, round_by_chance, scaled_step
from course_lib.floats import BFLOAT16
from course_lib.optim import SGD
from course_lib.precision import MasterWeights, Precision, ScaledFloat16, StochasticBFloat16
from course_lib.training import train

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
RUN = {
    "matmul": torch.matmul,
    "softmax": lambda x: x.softmax(-1),
    "sum": torch.sum,
    "mse_loss": F.mse_loss,
    "add": torch.add,
    "relu": torch.relu,
}


@pytest.mark.parametrize("device", DEVICES)
def test_the_dtypes_are_those_of_autocast(device):
    for op, function in RUN.items():
        count = 1 if op in ("softmax", "sum", "relu") else 2
        for dtypes in itertools.product((torch.float32, torch.bfloat16), repeat=count):
            inputs = [torch.ones(3, 3, dtype=dtype, device=device) for dtype in dtypes]
            with torch.autocast(device, dtype=torch.bfloat16):
                assert function(*inputs).dtype is autocast_dtype(op, [*dtypes], device), (op, dtypes)


def test_a_scaled_step_is_that_of_the_recipe():
    for scale, max_norm, size in ((1024.0, 100.0, 1.0), (1024.0, 0.1, 1.0), (2.0**40, 1.0, 1.0), (4.0, 1.0, 1e8)):
        model, x, y = nn.Linear(4, 2), torch.randn(16, 4), size * torch.randn(16, 2)
        twin, recipe = copy.deepcopy(model), ScaledFloat16(scale)
        optimizer = SGD(twin.parameters(), lr=0.1)
        train(twin, lambda x=x, y=y: (x, y), optimizer, 1, precision=recipe, max_grad_norm=max_norm)
        assert scaled_step(model, x, y, scale, max_norm, 0.1) == recipe.scale
        assert all(torch.allclose(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_master_steps_are_those_of_the_recipe():
    class Distance(nn.Module):
        def __init__(self, weight: torch.Tensor) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight.float())

        def forward(self, target: torch.Tensor) -> torch.Tensor:
            return self.weight - target

    weight, target = torch.randn(6).bfloat16(), torch.randn(6).bfloat16()
    model, recipe = Distance(weight), MasterWeights()
    optimizer = SGD(model.parameters(), lr=0.07)
    batch = target, torch.zeros(6)
    train(model, lambda: batch, optimizer, 40, loss=lambda p, _: p.pow(2).sum() / 2, precision=recipe)
    master = master_steps(weight, target, 0.07, 40)
    assert torch.allclose(master, optimizer.param_groups[0]["params"][0], rtol=1e-6)
    assert torch.equal(weight, model.weight)


def test_rounding_by_chance_is_right_on_average_and_its_neighbours_are_bfloat16s():
    x = torch.full((50_000,), 1.003)
    u = torch.rand(50_000, generator=torch.Generator().manual_seed(0))
    rounded = round_by_chance(x, BFLOAT16.spacing(1.003), u)
    below, above = BFLOAT16.neighbours(1.003)
    assert {*rounded.tolist()} == {below, above}
    assert rounded.double().mean() == pytest.approx(1.003, abs=1e-4)


def test_eight_gpus_and_the_recipes_of_the_library():
    recipes = [MasterWeights("bfloat16"), MasterWeights(), Precision(), StochasticBFloat16()]
    parts = {recipe.name: recipe.bytes_per_parameter().parts for recipe in recipes}
    found = [pick_recipe(parts, billions * 10**9, 8, 0, 80 * 10**9) for billions in (32, 35, 40, 53, 54)]
    assert found == [*(recipe.name for recipe in recipes), None]


LOSS = "with torch.autocast('cpu', dtype=torch.float16):\n        loss = F.mse_loss(model(x), y)\n    "
BACK = LOSS + "(loss * scale).backward()\n    "
DIVIDE = "for p in model.parameters():\n        p.grad.div_(scale)\n    "
CLIP = "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    "
SKIP = "if not torch.isfinite(norm):\n        return scale / 2\n    "
STEP = "with torch.no_grad():\n        for p in model.parameters():\n            p -= lr * p.grad\n    return scale"
LOOP = "master = {}\n    for _ in range(steps):\n        {}\n    return master"
LOW = "low = torch.floor(x / step)\n    "
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("autocast_dtype", "if op == 'matmul': return torch.bfloat16\n    if op == 'mse_loss': return torch.float32\n    "
     "if device == 'cuda' and op in ('sum', 'softmax'): return torch.float32\n    "
     "return sorted(inputs, key=str)[-1]", None),
    ("autocast_dtype", "return torch.bfloat16", "all_low"),
    ("autocast_dtype", "return torch.bfloat16 if op == 'matmul' else torch.float32", "all_else_float32"),
    ("autocast_dtype", "if op == 'matmul': return torch.bfloat16\n    "
     "if op in ('mse_loss', 'sum', 'softmax'): return torch.float32\n    "
     "return torch.float32 if torch.float32 in inputs else torch.bfloat16", "cpu_like_cuda"),
    ("scaled_step", BACK + DIVIDE + CLIP + SKIP + STEP, None),
    ("scaled_step", BACK + CLIP + DIVIDE + SKIP + STEP, "clipped_before"),
    ("scaled_step", BACK + CLIP + SKIP + STEP, "never_unscaled"),
    ("scaled_step", BACK + DIVIDE + CLIP + STEP, OWN),
    ("scaled_step", BACK + DIVIDE + CLIP + SKIP.replace("scale / 2", "scale") + STEP, "scale_stays"),
    ("scaled_step", BACK + DIVIDE + CLIP + SKIP + STEP.replace("-=", "+="), "uphill"),
    ("master_steps", LOOP.format("weight.float().clone()", "g = (weight - target).float(); master -= lr * g; "
     "weight.copy_(master)"), None),
    ("master_steps", LOOP.format("weight.float()", "master = weight.float() - lr * (weight - target).float(); "
     "weight.copy_(master)"), "master_made_anew"),
    ("master_steps", LOOP.format("weight.float()", "master -= lr * (weight - target).float()"), "weight_left_behind"),
    ("master_steps", LOOP.format("weight.float()", "master -= lr * (weight - target).float(); "
     "weight = master.bfloat16()"), "weight_rebound"),
    ("master_steps", LOOP.format("weight.float()", "master -= lr * (weight - target); weight.copy_(master)"),
     "step_in_bfloat16"),
    ("master_steps", LOOP.format("weight.clone()", "master -= lr * (weight - target); weight.copy_(master)"), OWN),
    ("round_by_chance", LOW + "return step * torch.where(x / step - low > u, low + 1, low)", None),
    ("round_by_chance", LOW + "return (low + (x / step - low > u).float()) * step", None),
    ("round_by_chance", LOW + "return (low + (x / step - low < u)) * step", OWN),
    ("round_by_chance", LOW + "return (low + (u <= x / step - low)) * step", OWN),
    ("round_by_chance", "return torch.round(x / step) * step", "to_the_nearest"),
    ("pick_recipe", "for name in recipes:\n        need = sum(recipes[name].values()) * parameters / num_gpus\n        "
     "if need <= memory - activations: return name", None),
    ("pick_recipe", "for name in recipes:\n        need = sum(recipes[name].values()) * parameters / num_gpus\n        "
     "if need <= memory: return name", "without_activations"),
    ("pick_recipe", "for name in recipes:\n        need = sum(recipes[name].values()) * parameters + activations\n"
     "        if need / num_gpus <= memory: return name", "activations_shared"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb13, name)
    assert_diagnosed(nb13, name, one.stub.removesuffix("...") + body, diagnosis)
