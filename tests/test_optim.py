"""Each optimizer against its counterpart in torch.optim: a thousand steps, three problems, two precisions."""
import pytest
import torch
from torch import nn

from course_lib.optim import SGD, AdaGrad, Adam, AdamW, RMSProp

STEPS, COMPARED_EVERY = 1000, 50
BOUNDS = {torch.float32: 1e-6, torch.float64: 1e-10}  # of max |q|, where q is torch's parameter
PAIRS = {
    "SGD": (SGD, torch.optim.SGD, {"lr": 0.02}),
    "SGD with momentum": (SGD, torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    "AdaGrad": (AdaGrad, torch.optim.Adagrad, {"lr": 0.1}),
    "RMSProp": (RMSProp, torch.optim.RMSprop, {}),
    "Adam": (Adam, torch.optim.Adam, {"lr": 0.01}),
    "AdamW": (AdamW, torch.optim.AdamW, {"lr": 0.01}),
}
# What a group of parameters has of its own, where its optimizer knows it.
OWN = {"weight_decay": 0.1, "momentum": 0.5, "alpha": 0.9, "betas": (0.8, 0.95), "eps": 1e-5}


def draw(*shape, dtype, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


class LeastSquares:
    """A step sees one row of X, nine tenths of it zeros: most elements of the gradient are zeros."""

    def __init__(self, dtype):
        self.params = [nn.Parameter(torch.zeros(40, dtype=dtype))]
        self.rows = draw(STEPS, 40, dtype=dtype) * (draw(STEPS, 40, dtype=dtype, seed=1) > 1.28)
        self.targets = self.rows @ torch.linspace(1, 5, 40, dtype=dtype)

    @torch.no_grad()
    def set_gradients(self, step):
        (w,), x = self.params, self.rows[step]
        w.grad = (x @ w - self.targets[step]) * x


class IllConditioned:
    """A quadratic whose curvatures reach from 1 to 1e-4, in directions that no axis points to.

    Beside it a parameter that has, in turns, no gradient, one of zeros, and one with a single element that is not 0.
    """

    def __init__(self, dtype):
        turned, _ = torch.linalg.qr(draw(20, 20, dtype=torch.float64))
        self.curvature = (turned @ torch.diag(torch.logspace(0, -4, 20, dtype=torch.float64)) @ turned.T).to(dtype)
        self.lowest, self.sizes = draw(20, dtype=dtype, seed=1), draw(STEPS, dtype=dtype, seed=3)
        self.params = [nn.Parameter(draw(20, dtype=dtype, seed=2)), nn.Parameter(draw(30, dtype=dtype))]

    @torch.no_grad()
    def set_gradients(self, step):
        p, rare = self.params
        p.grad = self.curvature @ (p - self.lowest)
        rare.grad = torch.zeros_like(rare) if step % 3 else None
        if step % 3 == 2:
            rare.grad[step % 30] = self.sizes[step]


class Network:
    """Two layers and a tanh on sixteen points, and their gradients written out, which is quicker than autograd."""

    def __init__(self, dtype):
        shapes = (6, 8), (8,), (8, 1)
        self.params = [nn.Parameter(draw(*shape, dtype=dtype, seed=i) / 2) for i, shape in enumerate(shapes)]
        self.x, self.y = draw(16, 6, dtype=dtype, seed=7), draw(16, 1, dtype=dtype, seed=8)

    def loss(self):
        w1, b1, w2 = self.params
        return (torch.tanh(self.x @ w1 + b1) @ w2 - self.y).pow(2).mean()

    @torch.no_grad()
    def set_gradients(self, step):
        w1, b1, w2 = self.params
        hidden = torch.tanh(self.x @ w1 + b1)
        error = (hidden @ w2 - self.y) / 8
        before = error @ w2.T * (1 - hidden * hidden)
        w1.grad, b1.grad, w2.grad = self.x.T @ before, before.sum(0), hidden.T @ error


class Run:
    """A problem and its optimizer: the first parameter with the defaults, the others with numbers of their own."""

    def __init__(self, optimizer, settings, defaults, problem, dtype):
        self.problem = problem(dtype)
        self.start = [p.detach().clone() for p in self.problem.params]
        own = {name: value for name, value in OWN.items() if name in defaults} | {"lr": defaults["lr"] / 2}
        first, *others = self.problem.params
        groups = [{"params": [first]}, *([{"params": others, **own}] if others else [])]
        self.optimizer = optimizer(groups, **settings)

    def step(self, step):
        self.problem.set_gradients(step)
        self.optimizer.step()


@torch.no_grad()
def deviation(optimizer, peer, settings, problem, dtype, steps=STEPS):
    """The largest max |p − q| / max |q| of any parameter, over so many steps of ours (p) and of torch's (q)."""
    defaults = optimizer([torch.zeros(1)], **settings).defaults
    ours, theirs = (Run(one, settings, defaults, problem, dtype) for one in (optimizer, peer))
    largest = 0.0
    for step in range(steps):
        ours.step(step)
        theirs.step(step)
        if step % COMPARED_EVERY == COMPARED_EVERY - 1:
            for p, q in zip(ours.problem.params, theirs.problem.params, strict=True):
                assert p.isfinite().all()
                largest = max(largest, ((p - q).abs().max() / q.abs().max()).item())
    for start, q in zip(theirs.start, theirs.problem.params, strict=True):
        assert (start - q).abs().max() > 1e-4 * steps, "a problem that does not move shows nothing"
    return largest


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("problem", [LeastSquares, IllConditioned, Network])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_thousand_steps_lead_where_torchs_lead(pair, problem, dtype):
    assert deviation(*pair, problem, dtype) <= BOUNDS[dtype]


def test_the_gradients_of_the_network_are_those_of_autograd():
    network = Network(torch.float64)
    network.set_gradients(0)
    for p, expected in zip(network.params, torch.autograd.grad(network.loss(), network.params), strict=True):
        torch.testing.assert_close(p.grad, expected)


@pytest.mark.parametrize(("problem", "number"), [(LeastSquares, 0), (IllConditioned, 1)])
def test_mostly_zeros_means_mostly_zeros(problem, number):
    one, gradients = problem(torch.float32), []
    for step in range(STEPS):
        one.set_gradients(step)
        gradients += [one.params[number].grad]
    zeros = torch.stack([g for g in gradients if g is not None]) == 0
    assert 0.85 < zeros.float().mean() < 1


# ---------------------------------------------------------------------------------------------- the test of the test

class EpsInsideTheRoot(AdaGrad):
    def _update(self, p, g, group):
        g2 = self.state[p].setdefault("g2", torch.zeros_like(p)).addcmul_(g, g)
        p.addcdiv_(g, g2.add(group["eps"]).sqrt(), value=-group["lr"])


class Uncorrected(Adam):
    def _update(self, p, g, group):
        if not self.state[p]:
            self.state[p].update(m=torch.zeros_like(p), g2=torch.zeros_like(p), step=10**6)
        super()._update(p, g, group)


class DecaysTheGradient(AdamW):
    _decay = Adam._decay


class DecaysWithoutGradient(AdamW):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    self._decay(p, None, group)
        return super().step(closure)


class AveragesGradients(SGD):
    def _update(self, p, g, group):
        super()._update(p, g * (1 - group["momentum"]), group)


class KnowsOneLearningRate(SGD):
    def _update(self, p, g, group):
        super()._update(p, g, {**group, "lr": self.defaults["lr"]})


WRONG = {
    EpsInsideTheRoot: ("AdaGrad", Network),
    Uncorrected: ("Adam", Network),
    DecaysTheGradient: ("AdamW", Network),
    DecaysWithoutGradient: ("AdamW", IllConditioned),
    AveragesGradients: ("SGD with momentum", Network),
    KnowsOneLearningRate: ("SGD", Network),
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_optimizer_would_be_found(wrong):
    name, problem = WRONG[wrong]
    _, peer, settings = PAIRS[name]
    assert deviation(wrong, peer, settings, problem, torch.float32, steps=100) > 10 * BOUNDS[torch.float32]
