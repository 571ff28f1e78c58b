"""Schedules against torch's own, as `LambdaLR` uses them."""
import math

import pytest
import torch
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from course_lib.optim import SGD, AdamW
from course_lib.schedules import constant, cosine, warmup


def rates(make, steps, optimizer=AdamW, lr=0.3):
    """The learning rate that each step takes under the scheduler that `make(optimizer)` returns."""
    one = optimizer([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler, taken = make(one), []
    for _ in range(steps):
        taken.append(one.param_groups[0]["lr"])
        one.step()
        scheduler.step()
    return taken


@pytest.mark.parametrize(("steps", "final"), [(1, 0.0), (7, 0.0), (100, 0.1), (100, 1.0)])
def test_cosine_is_torchs_until_it_ends(steps, final):
    ours = rates(lambda one: LambdaLR(one, cosine(steps, final)), steps + 1)
    theirs = rates(lambda one: CosineAnnealingLR(one, steps, eta_min=final * 0.3), steps + 1)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    assert ours[0] == 0.3 and ours[-1] == pytest.approx(final * 0.3)


def test_cosine_stays_where_torchs_rises_again():
    ours = rates(lambda one: LambdaLR(one, cosine(10, 0.1)), 21)
    theirs = rates(lambda one: CosineAnnealingLR(one, 10, eta_min=0.03), 21)
    assert ours[10:] == pytest.approx([0.03] * 11)
    assert theirs[20] == pytest.approx(0.3)


@pytest.mark.parametrize("steps", [2, 3, 10])
def test_warmup_is_torchs_linear_one_and_then_another(steps):
    def theirs(one):
        first = LinearLR(one, start_factor=1 / steps, total_iters=steps - 1)
        return SequentialLR(one, [first, CosineAnnealingLR(one, 20)], milestones=[steps])

    ours = rates(lambda one: LambdaLR(one, warmup(steps, then=cosine(20))), steps + 20)
    assert ours == pytest.approx(rates(theirs, steps + 20), rel=1e-9, abs=1e-12)
    assert ours[0] == pytest.approx(0.3 / steps)
    assert ours[steps - 1] == ours[steps] == 0.3 > ours[steps + 1]


def test_warmup_alone_goes_on_as_a_constant():
    ours = rates(lambda one: LambdaLR(one, warmup(3)), 6, optimizer=SGD)
    assert ours == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3, 0.3])
    assert warmup(0)(0) == warmup(1)(0) == 1
    assert rates(lambda one: LambdaLR(one, constant), 3) == rates(lambda one: ConstantLR(one, 1.0), 3) == [0.3] * 3


def test_warmups_can_be_nested():
    schedule = warmup(2, then=warmup(4))
    assert [schedule(step) for step in range(7)] == [0.5, 1, 0.25, 0.5, 0.75, 1, 1]


def test_a_schedule_never_leaves_its_bounds():
    schedule = warmup(13, then=cosine(37, 0.05))
    shares = [schedule(step) for step in range(60)]
    assert all(type(share) is float and 0 < share <= 1 for share in shares)
    assert shares[:13] == sorted(shares[:13]) and shares[13:] == sorted(shares[13:], reverse=True)
    assert shares[50:] == pytest.approx([0.05] * 10) and schedule(10**6) == pytest.approx(0.05)
    assert schedule(13 + 37 // 2) == pytest.approx(0.05 + 0.95 * (1 + math.cos(math.pi * 18 / 37)) / 2)


def test_each_group_keeps_its_own_learning_rate():
    one, two = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    optimizer = SGD([{"params": one, "lr": 1.0}, {"params": two, "lr": 0.1}])
    LambdaLR(optimizer, warmup(4))
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.025]


WRONG = {
    "cosine(): steps is 0; at least 1 is asked for.": (ValueError, lambda: cosine(0)),
    "cosine(): final is 1.5; a share from 0 to 1 is asked for.": (ValueError, lambda: cosine(10, 1.5)),
    "cosine(): final is nan; a share from 0 to 1 is asked for.": (ValueError, lambda: cosine(10, math.nan)),
    "warmup(): steps is -1; at least 0 is asked for.": (ValueError, lambda: warmup(-1)),
    "constant(): step is -1; at least 0 is asked for.": (ValueError, lambda: constant(-1)),
    "cosine(): steps is a float (0.5); an int is asked for.": (TypeError, lambda: cosine(0.5)),
    "warmup(): then is a float (0.1); a function is asked for.": (TypeError, lambda: warmup(3, 0.1)),
    "cosine(…)(): step is -1; at least 0 is asked for.": (ValueError, lambda: cosine(9)(-1)),
    "warmup(…)(): step is -1; at least 0 is asked for.": (ValueError, lambda: warmup(9)(-1)),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_makes_no_sense_gets_one_sentence(sentence):
    kind, call = WRONG[sentence]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
