"""The solutions of notebook 11 against torch and against the course's own library, and what learners write."""
import math
import random

import pytest
import torch
from torch import nn
from written_answers import OWN, assert_diagnosed

from course_lib.exercises import nb11
from course_lib.exercises.nb11 import careful_step, clip_gradients, fit, ignored_settings, scheduled_rate
from course_lib.exercises.training_runs import claims
from course_lib.optim import SGD, AdamW
from course_lib.schedules import cosine, warmup
from course_lib.training import TrainingDiverged, train


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def test_the_repaired_loop_is_that_of_the_library():
    batches = [(x, x.sum(1)) for x in torch.randn(20, 4, 3, generator=torch.Generator().manual_seed(0))]
    mine, twin, waiting = linear(), linear(), iter(batches)
    model = nn.Sequential(twin, nn.Flatten(0))
    history = train(model, lambda: next(waiting), SGD(model.parameters(), lr=0.05), 20)
    assert fit(mine, batches, 0.05) == history.losses
    assert torch.equal(mine.weight, twin.weight)


def test_the_published_loop_is_caught_and_the_librarys_is_not():
    def by_the_library(lr, seed, steps):
        model = nn.Sequential(linear(seed), nn.Flatten(0))
        generator = torch.Generator().manual_seed(seed)

        def get_batch():
            x = torch.randn(4, 3, generator=generator)
            return x, x.sum(1)

        return train(model, get_batch, SGD(model.parameters(), lr=lr), steps).losses

    def as_published(lr, seed, steps):
        return by_the_library(0.01, seed, steps)

    settings, others = {"lr": 0.02, "seed": 0, "steps": 5}, {"lr": 0.05, "seed": 1, "steps": 6}
    assert ignored_settings(as_published, settings, others) == ["lr"]
    assert ignored_settings(by_the_library, settings, others) == []


@pytest.mark.parametrize("max_norm", [0.01, 1.0, 5.0, 1e3])
def test_clipping_is_torchs(max_norm):
    def layer():
        one = nn.Linear(5, 4)
        one.weight.grad = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
        one.bias.grad = torch.randn(4, generator=torch.Generator().manual_seed(2))
        return one

    mine, theirs = layer(), layer()
    norm = clip_gradients([*mine.parameters()], max_norm)
    assert norm == pytest.approx(nn.utils.clip_grad_norm_(theirs.parameters(), max_norm).item())
    assert torch.allclose(mine.weight.grad, theirs.weight.grad) and torch.allclose(mine.bias.grad, theirs.bias.grad)


def test_the_schedule_is_that_of_the_library():
    rng = random.Random(0)
    for _ in range(200):
        first, total = rng.randint(0, 20), rng.randint(21, 90)
        peak, step = rng.uniform(0.01, 1), rng.randint(0, 120)
        final = peak * rng.random()
        wanted = peak * warmup(first, then=cosine(total - first, final / peak))(step)
        assert scheduled_rate(step, peak, first, total, final) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_careful_step_stops_where_the_library_does(bad):
    x, y = torch.ones(2, 3), torch.ones(2)
    model, twin = linear(), linear()
    optimizer = AdamW(model.parameters())
    assert careful_step(model, optimizer, (model(x).flatten() - y).pow(2).mean(), 0) > 0
    with pytest.raises(ArithmeticError, match=r"^step 1: loss (nan|inf), gradient norm ") as mine:
        careful_step(model, optimizer, (model(x).flatten() - bad).pow(2).mean(), 1)
    whole = nn.Sequential(twin, nn.Flatten(0))
    batches = iter([(x, y), (x, y * bad)])
    with pytest.raises(TrainingDiverged) as theirs:
        train(whole, lambda: next(batches), AdamW(whole.parameters()), 2)
    assert torch.equal(model.weight, twin.weight)
    assert str(mine.value).split(": ")[1] in str(theirs.value)


def test_numbers_are_found_in_any_wording():
    wanted = {"step": 17, "loss": 2.5, "norm": math.inf}
    for text in ("step 17: loss 2.5, norm inf", "At 17 the gradient is inf (loss=2.50e+00).", "norm=inf loss=2.5 t=17"):
        assert all(claims(text, **wanted).values()), text
    assert [*claims("step 17, norm inf", **wanted).values()] == [True, False, True]
    twice = {"loss": math.nan, "norm": math.nan}
    assert sum(claims("the loss is nan", **twice).values()) == 1 and all(claims("nan, nan", **twice).values())


LOOP = "optimizer = SGD(model.parameters(), lr={lr})\n    losses = []\n    for x, y in batches:\n        "
REST = "\n        losses.append(loss.item())\n    return losses"
STEP = "loss.backward()\n        optimizer.step()"
MEAN = "loss = ({} - y).pow(2).mean()\n        "
CHECK = "optimizer.zero_grad()\n    loss.backward()\n    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)\n    "
RAISE = "raise ArithmeticError(f'{step} {loss} {norm}')"
GOES_ON = "\n    optimizer.step()\n    return loss.item()"
WAVE = (" if step < warmup_steps else final + 0.5 * (peak - final) * (1 + math.cos(math.pi * "
        "min(1, (step - warmup_steps) / (total_steps - warmup_steps))))")  # fmt: skip
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("ignored_settings", "curve = train(**settings)\n    return [k for k in settings "
     "if curve == train(**dict(settings, **{k: others[k]}))]", None),
    ("ignored_settings", "return [k for k in settings if train(**(settings | {k: others[k]}))[0] "
     "== train(**settings)[0]]", "by_the_first_loss"),
    ("ignored_settings", "before = train(**settings)\n    out = []\n    for k in settings:\n        "
     "settings[k] = others[k]\n        if train(**settings) == before: out.append(k)\n    return out", OWN),
    ("fit", LOOP.format(lr="lr") + MEAN.format("model(x).squeeze()") + STEP + "\n        optimizer.zero_grad()" + REST,
     None),
    ("fit", LOOP.format(lr="lr") + MEAN.format("model(x)[:, 0]") + STEP + REST, "still_accumulates"),
    ("fit", LOOP.format(lr="lr") + MEAN.format("model(x)") + "optimizer.zero_grad()\n        " + STEP + REST,
     "still_broadcasts"),
    ("fit", LOOP.format(lr="lr") + MEAN.format("model(x).squeeze(1)") + "loss.backward()\n        "
     "optimizer.zero_grad()\n        optimizer.step()" + REST, "forgets_too_early"),
    ("fit", LOOP.format(lr="0.01") + MEAN.format("model(x)[:, 0]") + "model.zero_grad()\n        " + STEP + REST,
     "lr_still_ignored"),
    ("clip_gradients", "return float(nn.utils.clip_grad_norm_(parameters, max_norm))", None),
    ("clip_gradients", "nn.utils.clip_grad_value_(parameters, max_norm)\n    return 0.0", OWN),
    ("clip_gradients", "n = torch.cat([p.grad.view(-1) for p in parameters if p.grad is not None]).norm()\n    "
     "for p in parameters:\n        if p.grad is not None and n > 0: p.grad *= max_norm / n\n    return n.item()",
     "always_scaled"),
    ("clip_gradients", "n = sum((p.grad ** 2).sum() for p in parameters if p.grad is not None) ** 0.5\n    "
     "for p in parameters:\n        if n > max_norm and p.grad is not None: p.grad.div_(n / max_norm)\n    "
     "return float(n)", None),
    ("careful_step", CHECK + "if not torch.isfinite(loss + norm): " + RAISE + GOES_ON, None),
    ("careful_step", CHECK + "if torch.isnan(loss + norm): " + RAISE + GOES_ON, "nan_alone"),
    ("careful_step", CHECK + "if not torch.isfinite(loss): " + RAISE + GOES_ON, "loss_alone"),
    ("careful_step", CHECK + "if loss == float('nan'): " + RAISE + GOES_ON, "compared_with_nan"),
    ("careful_step", CHECK + "optimizer.step()\n    if not torch.isfinite(loss + norm): " + RAISE
     + "\n    return loss.item()", "after_the_step"),
    ("careful_step", CHECK + "if not torch.isfinite(loss + norm): raise ArithmeticError('diverged')" + GOES_ON,
     "without_numbers"),
    ("scheduled_rate", "return peak * (step + 1) / warmup_steps" + WAVE, None),
    ("scheduled_rate", "return peak * step / warmup_steps" + WAVE, "first_step_lost"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb11, name)
    head = one.stub.partition('"""')[0] + '"""' + one.stub.split('"""')[1] + '"""\n    '
    assert_diagnosed(nb11, name, head + body, diagnosis)
