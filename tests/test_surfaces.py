"""The surfaces are what they say they are, and a descent is what the optimizer does."""
import math

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.optim import SGD, AdaGrad, Adam, RMSProp
from course_lib.surfaces import BANANA, DENTS, DIAGONAL_VALLEY, SADDLE, SURFACES, VALLEY, descend

each_surface = pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)


def grid(surface, points=161):
    sides = (torch.linspace(*side, points, dtype=torch.float64) for side in (surface.x_range, surface.y_range))
    return torch.stack(torch.meshgrid(*sides, indexing="xy"), dim=-1)


@each_surface
def test_the_formula_is_the_height(surface):
    p = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    text = surface.formula.replace("²", "**2").replace("⁴", "**4").replace("·", "*").replace("−", "-")
    text = text.replace("2x", "2*x").replace("2y", "2*y")
    x, y = p.unbind(-1)
    torch.testing.assert_close(surface(p), eval(text, {"x": x, "y": y, "cos": torch.cos}))


@each_surface
def test_it_is_lowest_where_it_says(surface):
    lowest = torch.tensor(surface.lowest, dtype=torch.float64).requires_grad_()
    heights = surface(lowest)
    assert torch.allclose(heights, heights[0].expand_as(heights), atol=1e-12)
    (slopes,) = torch.autograd.grad(heights.sum(), lowest)
    assert slopes.abs().max() < 1e-12
    shown = surface(grid(surface))
    assert shown.shape == (161, 161) and shown.min() >= heights.min() - 1e-12
    deepest = grid(surface).flatten(0, 1)[shown.argmin()]
    assert (deepest - lowest.detach()).norm(dim=-1).min() < 0.1, "nowhere else is it as low"


@each_surface
def test_a_picture_shows_the_start_and_the_lowest_points(surface):
    for x, y in (surface.start, *surface.lowest):
        assert surface.x_range[0] < x < surface.x_range[1] and surface.y_range[0] < y < surface.y_range[1]
    assert surface.name in SURFACES and surface(torch.tensor(surface.start)).shape == ()


@each_surface
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, Adam])
def test_a_descent_is_the_loop_that_everybody_writes(surface, optimizer):
    p = nn.Parameter(torch.tensor(surface.start, dtype=torch.float64))
    one = optimizer([p], lr=0.001)
    points, losses = [], []
    for _ in range(21):
        points.append(p.tolist())
        one.zero_grad()
        loss = surface(p)
        losses.append(loss.item())
        loss.backward()
        one.step()
    with torch.no_grad():
        path, heights = descend(surface, lambda params: optimizer(params, lr=0.001), surface.start, 20)
    assert path.tolist() == points and heights.tolist() == losses
    assert not path.requires_grad and not heights.requires_grad
    assert heights[-1] < heights[0]


def steps_down(surface, optimizer, **settings):
    """Steps until the loss is within 0.001 of the lowest."""
    losses = descend(surface, lambda params: optimizer(params, **settings), surface.start, 400).losses
    low = losses < surface(torch.tensor(surface.lowest[0], dtype=torch.float64)) + 1e-3
    return int(low.int().argmax()) if low.any() else math.inf


def test_along_the_axes_rates_of_ones_own_help_and_across_them_they_do_not():
    for optimizer, settings in ((SGD, {"lr": 0.07}), (SGD, {"lr": 0.03, "momentum": 0.9})):
        assert steps_down(VALLEY, optimizer, **settings) == steps_down(DIAGONAL_VALLEY, optimizer, **settings)
    for optimizer, lr in ((AdaGrad, 1.0), (RMSProp, 0.1)):
        assert 2 * steps_down(VALLEY, optimizer, lr=lr) < steps_down(DIAGONAL_VALLEY, optimizer, lr=lr) < math.inf


def test_each_surface_is_hard_in_its_own_way():
    assert steps_down(BANANA, SGD, lr=0.003) == math.inf, "a curved valley is slow"
    assert steps_down(SADDLE, SGD, lr=0.1) > 2 * steps_down(SADDLE, RMSProp, lr=0.1), "the ridge holds SGD"
    assert steps_down(DENTS, SGD, lr=0.03) == math.inf, "SGD stays in the first dent"
    assert steps_down(DENTS, SGD, lr=0.03, momentum=0.9) < math.inf, "momentum rolls out of it"


def test_a_descent_may_go_up_and_takes_any_function():
    path, losses = descend(VALLEY, lambda params: SGD(params, lr=0.3), VALLEY.start, 400)
    assert path.shape == (401, 2) and not losses[-1].isfinite()
    path, losses = descend(lambda p: p.sum(), lambda params: SGD(params, lr=1), (1, 2), 2)
    assert path.tolist() == [[1, 2], [0, 1], [-1, 0]] and losses.tolist() == [3, 1, -1]
    assert descend(VALLEY, SGD, (3.0, 0.0), 0).losses.tolist() == [4.5]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: descend(VALLEY, SGD, (math.nan, 0.0), 3), ValueError, r"start is \(nan, 0.0\); two finite numbers"),
        (lambda: descend(VALLEY, SGD, (0.0, 0.0), -1), ValueError, "steps is -1; at least 0"),
        (lambda: descend(VALLEY, lambda params: 3, (0.0, 0.0), 1), TypeError, "optimizer returned an int"),
        (lambda: descend(VALLEY, SGD, 3.0, 1), TypeError, "start is a float"),
        (lambda: VALLEY(torch.zeros(3)), TypeError, "p is a tensor of dtype float32 and shape"),
    ],
)
def test_what_cannot_be_descended_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


@pytest.mark.parametrize(
    ("surface", "came"),
    [
        (lambda p: 3.0, "a float (3.0)"),
        (lambda p: p, "a tensor of dtype float64 and shape (2,)"),
        (lambda p: p.sum().detach(), "a tensor of dtype float64 and shape () that does not depend on p"),
        (lambda p: None, "None"),
    ],
)
def test_a_surface_that_gives_no_height_gets_one_sentence(surface, came):
    with pytest.raises(TypeError) as caught:
        descend(surface, lambda params: SGD(params, lr=0.1), (1.0, 1.0), 3)
    wanted = "a tensor with one element, made of p, is asked for."
    assert str(caught.value) == f"descend(): surface(p) is {came}; {wanted}"


def test_another_default_device_and_other_numbers_change_nothing():
    wanted = descend(VALLEY, lambda params: SGD(params, lr=0.1), (1.0, 0.5), 3)
    with torch.device("meta"):
        found = descend(VALLEY, lambda params: SGD(params, lr=0.1), (np.int64(1), np.float32(0.5)), np.int8(3))
    assert torch.equal(found.path, wanted.path) and torch.equal(found.losses, wanted.losses)
