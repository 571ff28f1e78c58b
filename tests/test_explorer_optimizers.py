"""The optimizer explorer shows where torch.optim goes: hundreds of settings, path, loss and state bytes."""
import math
import random

import pytest
import torch

from course_lib.explorers import OptimizerExplorer
from course_lib.explorers.base import Nonsense
from course_lib.surfaces import SURFACES

TORCH = {
    "SGD": lambda p, lr, m: torch.optim.SGD(p, lr, momentum=m, foreach=False),
    "AdaGrad": lambda p, lr, m: torch.optim.Adagrad(p, lr, foreach=False),
    "RMSProp": lambda p, lr, m: torch.optim.RMSprop(p, lr, foreach=False),
    "Adam": lambda p, lr, m: torch.optim.Adam(p, lr, betas=(m, 0.999), foreach=False),
    "AdamW": lambda p, lr, m: torch.optim.AdamW(p, lr, betas=(m, 0.999), foreach=False),
}


def torch_path(surface, make, start, steps) -> list[list[float]]:
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer, path = make([p]), [[*start]]
    for _ in range(steps):
        optimizer.zero_grad()
        surface(p).backward()
        optimizer.step()
        path.append(p.tolist())
    return path


def test_two_hundred_descents_as_torch_takes_them():
    rng, diverged = random.Random(0), 0
    explorer = OptimizerExplorer()
    for turn in range(200):
        surface, name = rng.choice([*SURFACES.values()]), rng.choice([*TORCH])
        tenths, hundredths, steps = rng.randint(-40, 10), rng.randint(0, 99), rng.randint(1, 30)
        for action, argument in (("surface", {"name": surface.name}), ("optimizer", {"name": name}),
                                 ("lr", {"tenths": tenths}), ("momentum", {"hundredths": hundredths}),
                                 ("steps", {"count": steps})):  # fmt: skip
            explorer.asked = {"action": action, "turn": turn, **argument}
        lr = float(f"{10 ** (tenths / 10):.2g}")
        want = torch_path(surface, lambda p, n=name, r=lr, m=hundredths: TORCH[n](p, r, m / 100), surface.start, steps)
        shown = explorer.shown["path"]
        assert close(shown, want)
        if len(shown) <= steps:
            diverged += 1
            assert f"at step {len(shown)}" in explorer.facts()
            lost = want[len(shown)]
            assert not math.isfinite(sum(lost)) or max(map(abs, lost)) > 1e9 or surface(torch.tensor(lost)) > 1e9
        else:
            last = surface(torch.tensor(want[-1], dtype=torch.float64)).item()
            assert explorer.shown["losses"][-1] == pytest.approx(last, rel=1e-6)
    assert 0 < diverged < 100


def close(shown: list[list[float]], want: list[list[float]]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-4)
        for ours, theirs in zip(shown, want, strict=False)
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize(("name", "momentum", "size"), [
    ("SGD", 0.0, 0), ("SGD", 0.9, 4), ("AdaGrad", 0.0, 4), ("RMSProp", 0.0, 4), ("Adam", 0.9, 8), ("AdamW", 0.9, 8),
])  # fmt: skip
def test_state_bytes_are_those_of_a_float32_parameter(name, momentum, size):
    explorer = OptimizerExplorer("valley", name, 0.01, momentum)
    p = torch.nn.Parameter(torch.ones(1000))
    optimizer = TORCH[name]([p], 0.01, momentum)
    p.grad = torch.ones(1000)
    optimizer.step()
    state = [one for one in optimizer.state[p].values() if isinstance(one, torch.Tensor) and one.dim()]
    assert explorer.state_bytes == size == sum(one.numel() * one.element_size() for one in state) / 1000
    assert f"remembers {size} B" in explorer.facts()


def test_the_map_is_the_surface():
    for surface in SURFACES.values():
        explorer = OptimizerExplorer(surface.name)
        rows = explorer.shown["rows"]
        x = torch.linspace(*surface.x_range, len(rows[0]))
        y = torch.linspace(*reversed(surface.y_range), len(rows))
        heights = surface(torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)).flatten()
        letters = torch.tensor([ord(letter) for row in rows for letter in row])
        order = letters[heights.argsort()]
        assert (order.diff() >= 0).all() and set(order.tolist()) >= {ord("a"), ord("p")}


def test_start_by_text():
    explorer = OptimizerExplorer()
    explorer.do("start", text="(1.5, -1)")
    assert explorer.value.path[0].tolist() == [1.5, -1.0] and explorer.shown["start"] == "1.5, -1"
    wrong = dict.fromkeys(("a", "1", "1, 2, 3", ""), "two numbers") | dict.fromkeys(("nan, 0", "50, 0"), "start there")
    for text, says in wrong.items():
        explorer.asked = {"action": "start", "text": text, "turn": 1}
        assert explorer.shown["problem"]["field"] == "start" and says in explorer.shown["problem"]["says"]
    assert explorer.value.path[0].tolist() == [1.5, -1.0]


@pytest.mark.parametrize("wrong", [
    {"surface": "hill"}, {"optimizer": "Muon"}, {"lr": 0}, {"lr": "fast"}, {"lr": math.nan}, {"momentum": 1},
    {"steps": 0},
])  # fmt: skip
def test_wrong_arguments_get_a_sentence(wrong):
    with pytest.raises(Nonsense, match="asked for"):
        OptimizerExplorer(**wrong)


def test_the_loss_is_drawn_above_the_lowest_that_there_is():
    for name, surface in SURFACES.items():
        explorer = OptimizerExplorer(name, "SGD", 0.05, 0.0, 60)
        low = explorer.shown["low"]
        assert low == pytest.approx(min(surface(torch.tensor(p, dtype=torch.float64)).item() for p in surface.lowest))
        assert min(explorer.shown["losses"]) >= low - 1e-9
