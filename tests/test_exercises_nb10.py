"""The solutions of notebook 10 against torch and against the allocator, and what learners write."""
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from written_answers import OWN, assert_diagnosed

from course_lib import optim
from course_lib.exercises import nb10
from course_lib.exercises.nb10 import AdaGrad, AdamW, Momentum, decay_groups, training_bytes
from course_lib.modules import Cruncher, get_num_parameters
from course_lib.storage import measure_memory

PEERS = {
    "Momentum": (Momentum.reference, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "AdaGrad": (AdaGrad.reference, torch.optim.Adagrad, {"lr": 0.1}),
    "AdamW": (AdamW.reference, torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", PEERS)
def test_the_optimizers_follow_torchs_for_a_thousand_steps(name):
    ours, theirs, settings = PEERS[name]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(30, generator=generator).double()
    p, q = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    curvature, pair = torch.logspace(0, -3, 30).double(), (ours([p], **settings), theirs([q], **settings))
    for step in range(1000):
        noise = torch.randn(30, generator=generator).double() * (step % 3 > 0)
        p.grad, q.grad = curvature * p.detach() + noise, curvature * q.detach() + noise
        for optimizer in pair:
            optimizer.step()
    assert (p - q).abs().max() <= 1e-10 * q.abs().max() and (q - start).abs().max() > 0.1


@pytest.mark.parametrize("frozen", [(), ("layers.0.weight",), ("layers.1.weight", "final.weight")])
def test_the_bytes_are_what_the_allocator_hands_out(frozen):
    batch, dim, num_layers = 16, 32, 2
    optimizers = {name: getattr(optim, name) for name in ("SGD", "AdaGrad", "RMSProp", "Adam", "AdamW")}
    optimizers["momentum"] = partial(optim.SGD, momentum=0.9)

    def alive(optimizer):
        model = Cruncher(dim, num_layers)
        for name in frozen:
            model.get_parameter(name).requires_grad_(False)
        one = optimizer(model.parameters())
        x, y = torch.randn(batch, dim), torch.randn(batch)
        F.mse_loss(model(x), y).backward()
        one.step()
        return model, one

    sizes = {name: p.numel() for name, p in Cruncher(dim, num_layers).named_parameters()}
    still = sum(sizes[name] for name in frozen)
    for name, optimizer in optimizers.items():
        predicted = training_bytes(name, sum(sizes.values()) - still, still, 0)
        assert measure_memory(partial(alive, optimizer), "cpu") == predicted
    assert training_bytes("AdamW", get_num_parameters(Cruncher(64, 2)), 0, 1552) == 138_304


def test_the_groups_make_norms_and_biases_stay():
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(decay_groups(model, 0.5), lr=0.1)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for name, p in model.named_parameters():
        assert torch.allclose(p, before[name] * (0.95 if p.ndim > 1 else 1))
    assert sum(map(len, (group["params"] for group in optimizer.param_groups))) == len(before)


WALK = """class {name}(torch.optim.Optimizer):
    def __init__(self, params, **settings): super().__init__(params, {defaults} | settings)
    {decorator}
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None: continue
                g, s = p.grad, self.state[p]
"""
DEFAULTS = {
    "Momentum": {"lr": 0.01, "momentum": 0.9},
    "AdaGrad": {"lr": 0.01, "eps": 1e-10},
    "AdamW": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01},
}
M = "s['m'] = group['momentum'] * s.get('m', torch.zeros_like(p)) + g"
MOVE = "p.sub_(group['lr'] * s['m'])"
G2 = "s['g2'] = s.get('g2', 0) + g * g"
ADA = "p -= group['lr'] * g / (s['g2'] ** 0.5 + group['eps'])"
ADAM = (
    "b1, b2 = group['betas']; s['t'] = s.get('t', 0) + 1; s['m'] = b1 * s.get('m', 0) + (1 - b1) * g; "
    "s['v'] = b2 * s.get('v', 0) + (1 - b2) * g * g; m, v = s['m'] / (1 - b1 ** s['t']), s['v'] / (1 - b2 ** s['t'])"
)
SHRINK = "p.mul_(1 - group['lr'] * group['weight_decay'])"
TAKE = "p.addcdiv_(m, v.sqrt() + group['eps'], value=-group['lr'])"
WRITTEN = [  # what a learner may write in the innermost loop, and how it is answered: None is "correct"
    ("Momentum", [M, MOVE], None),
    ("Momentum", [M, "p.data -= group['lr'] * s['m']"], None),
    ("Momentum", ["s['buf'] = g.clone() if not s else s['buf'].mul_(group['momentum']).add_(g)",
                  "p.add_(s['buf'], alpha=-group['lr'])"], None),
    ("Momentum", [M + " * (1 - group['momentum'])", MOVE], "averages"),
    ("Momentum", ["s['v'] = group['momentum'] * s.get('v', 0) - group['lr'] * g", "p += s['v']"], "remembers_steps"),
    ("Momentum", ["s['m'] = s.get('m', torch.zeros_like(p))", MOVE, M], "a_step_late"),
    ("Momentum", [M, "p = p - group['lr'] * s['m']"], "rebinds_p"),
    ("Momentum", [M.replace("group", "self.defaults"), "p -= self.defaults['lr'] * s['m']"], "constructors_numbers"),
    ("Momentum", ["s['m'] = g if not s else s['m'].mul_(group['momentum']).add_(g)", MOVE], "keeps_the_gradient"),
    ("Momentum", [M, "p.data = p.data - group['lr'] * s['m']"], "rebinds_p"),
    ("Momentum", [M, "p.sub_(2 * group['lr'] * s['m'])"], OWN),
    ("AdaGrad", [G2, ADA], None),
    ("AdaGrad", [G2, "p.addcdiv_(g, s['g2'].sqrt() + group['eps'], value=-group['lr'])"], None),
    ("AdaGrad", [G2, "p -= group['lr'] * g / (s['g2'] + group['eps']) ** 0.5"], "eps_inside"),
    ("AdaGrad", [G2, "p -= group['lr'] * g / (s['g2'] + group['eps'])"], "no_root"),
    ("AdaGrad", ["s['g2'] = g * g", ADA], "last_gradient_alone"),
    ("AdaGrad", ["s['g2'] = s.get('g2', 0) + (g * g).sum() * torch.ones_like(p)", ADA], "one_for_all"),
    ("AdaGrad", ["s['g2'] = s.get('g2', torch.zeros_like(p))", ADA, G2], "squares_late"),
    ("AdaGrad", ["s['g2'] = 0.9 * s.get('g2', 0) + 0.1 * g * g", ADA], OWN),
    ("AdamW", [ADAM, SHRINK, TAKE], None),
    ("AdamW", [SHRINK, ADAM, TAKE], None),
    ("AdamW", [ADAM, TAKE, SHRINK], "decay_after_the_step"),
    ("AdamW", ["g = g + group['weight_decay'] * p", ADAM, TAKE], "decays_the_gradient"),
    ("AdamW", [ADAM, "p.mul_(1 - group['weight_decay'])", TAKE], "decay_without_lr"),
    ("AdamW", [ADAM, "m, v = s['m'], s['v']", SHRINK, TAKE], "uncorrected"),
    ("AdamW", [ADAM, SHRINK, "p -= group['lr'] * m / (v + group['eps']).sqrt()"], "adams_eps_inside"),
    ("AdamW", [ADAM, TAKE], OWN),
    ("AdamW", [ADAM.replace("s.get('t', 0) + 1", "s.get('t', torch.tensor(0)) + 1"), SHRINK, TAKE], "t_is_a_tensor"),
    ("AdamW", [ADAM, SHRINK, "rate = group['lr'] * (1 - b2 ** s['t']) ** 0.5 / (1 - b1 ** s['t'])",
               "p -= rate * s['m'] / (s['v'].sqrt() + group['eps'])"], "corrects_the_rate"),
    ("AdaGrad", ["s['g2'] = s.get('g2', torch.zeros(p.shape)); s['g2'] += g * g", ADA], "float32_state"),
]


def written(name, lines, decorator="@torch.no_grad()"):
    walk = WALK.format(name=name, defaults=DEFAULTS[name], decorator=decorator)
    return walk + "".join(" " * 16 + line + "\n" for line in lines)


@pytest.mark.parametrize(("name", "lines", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, lines, diagnosis):
    assert_diagnosed(nb10, name, written(name, lines), diagnosis)


def test_without_no_grad_the_line_is_named():
    result = assert_diagnosed(nb10, "AdaGrad", written("AdaGrad", [G2, ADA], decorator=""), OWN)
    assert result.status == "error" and "in-place operation" in result.message


MATRICES = "[p for p in model.parameters() if p.requires_grad and {}]"
TRAINING = "k = {{'SGD': 0, 'Adam': 2, 'AdamW': 2}}.get(optimizer, 1); return {}"
FUNCTIONS = [
    ("decay_groups", f"return [dict(params={MATRICES.format('p.dim() > 1')}, weight_decay=weight_decay), "
     f"dict(params={MATRICES.format('p.dim() <= 1')}, weight_decay=0)]", None),
    ("decay_groups", f"return [dict(params={MATRICES.format('p.ndim == 2')}, weight_decay=weight_decay), "
     f"dict(params={MATRICES.format('p.ndim != 2')}, weight_decay=0)]", "two_axes_exactly"),
    ("decay_groups", f"return [dict(params={MATRICES.format('p.ndim > 1')}, weight_decay=weight_decay), "
     f"dict(params={MATRICES.format('p.ndim < 2')})]", "says_nothing"),
    ("decay_groups", f"return [dict(params={MATRICES.format('p.numel() > 4')}, weight_decay=weight_decay), "
     f"dict(params={MATRICES.format('p.numel() <= 4')}, weight_decay=0)]", OWN),
    ("decay_groups", f"return [dict(params={MATRICES.format('p.squeeze().ndim > 1')}, weight_decay=weight_decay), "
     f"dict(params={MATRICES.format('p.squeeze().ndim < 2')}, weight_decay=0)]", OWN),
    ("decay_groups", "named = [pair for pair in model.named_parameters() if pair[1].requires_grad]\n    return ["
     "dict(params=[pair for pair in named if pair[1].ndim > 1], weight_decay=weight_decay), "
     "dict(params=[pair for pair in named if pair[1].ndim < 2], weight_decay=0)]", None),
    ("training_bytes", TRAINING.format("learning * (8 + 4 * k) + 4 * frozen + 4 * activations"), None),
    ("training_bytes", TRAINING.format("4 * (learning * (1 + k) + frozen + activations)"), "without_gradients"),
    ("training_bytes", TRAINING.format("4 * ((learning + frozen) * (2 + k) + activations)"), "frozen_learn_too"),
    ("training_bytes", TRAINING.format("4 * (2 * learning + frozen + activations)"), "without_state"),
    ("training_bytes", TRAINING.format("learning * (2 + k) + frozen + activations"), "counts_numbers"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), FUNCTIONS)
def test_what_learners_return_is_recognised(name, body, diagnosis):
    assert_diagnosed(nb10, name, getattr(nb10, name).stub.removesuffix("...") + body, diagnosis)


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("Momentum", written("Momentum", [M + "; s['m'] = s['m'].float()", MOVE]),
         "tensors of p's shape in self.state[p]: gave ['float32'], expected ['float64']"),
        ("Momentum", written("Momentum", [M, MOVE, "p.grad = None"]), "gradients are left alone: gave False"),
        ("Momentum", "class Momentum:\n    def __init__(self, params, **settings): self.params = params\n"
         "    def step(self): self.params.clear()", "should give a torch.optim.Optimizer"),
        ("decay_groups", "def decay_groups(model, weight_decay): weight_decay *= 1",
         "it gave None, and should give a list of two dicts"),
        ("decay_groups", "def decay_groups(model, weight_decay): return [*model.parameters()], []",
         "it gave tuple of list, list, and should give a list of two dicts"),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_named(name, source, sentence):
    assert sentence in assert_diagnosed(nb10, name, source, OWN).message
