"""`train` against a loop by hand, its sentences when a run goes wrong, and runs that go on where others broke off."""
import copy
import itertools
import math
import pickle
import re
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from course_lib import training
from course_lib.checkpoint import checkpoint_path, save_checkpoint
from course_lib.data import TokenSampler
from course_lib.modules import Cruncher
from course_lib.optim import SGD, AdamW
from course_lib.precision import AutocastBFloat16, MasterWeights, Precision, ScaledFloat16, StochasticBFloat16
from course_lib.schedules import cosine, warmup
from course_lib.training import History, TrainingDiverged, train

DIM = 8


def linear_batches(batch_size=4, seed=0):
    """Batches of a known linear function, from a generator of their own."""
    generator = torch.Generator().manual_seed(seed)

    def get_batch():
        x = torch.randn(batch_size, DIM, generator=generator)
        return x, x @ torch.arange(float(DIM))

    return get_batch


def cruncher(num_layers=1, seed=0):
    return Cruncher(DIM, num_layers, generator=torch.Generator().manual_seed(seed))


def run(steps=30, num_layers=1, lr=1e-3, seed=0, make=SGD, **options):
    model = cruncher(num_layers, seed)
    return train(model, linear_batches(seed=seed), make(model.parameters(), lr=lr), steps, **options), model


def by_hand(steps, make, schedule=None, max_grad_norm=None):
    model, get_batch, losses, norms, rates = cruncher(), linear_batches(), [], [], []
    optimizer = make(model.parameters(), lr=0.01)
    scheduler = LambdaLR(optimizer, schedule or (lambda step: 1.0))
    for _ in range(steps):
        x, y = get_batch()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm or math.inf).item())
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return History([*range(steps)], losses, norms, rates), model


@pytest.mark.parametrize("make", [SGD, AdamW, torch.optim.AdamW])
@pytest.mark.parametrize("schedule", [None, warmup(5, then=cosine(20, 0.1))])
@pytest.mark.parametrize("max_grad_norm", [None, 3.0])
def test_it_is_the_loop_that_one_writes_by_hand(make, schedule, max_grad_norm):
    history, model = run(25, lr=0.01, make=make, schedule=schedule, max_grad_norm=max_grad_norm)
    wanted, twin = by_hand(25, make, schedule, max_grad_norm)
    assert history.losses == wanted.losses and history.grad_norms == wanted.grad_norms
    assert history.learning_rates == pytest.approx(wanted.learning_rates) and history.steps == wanted.steps
    assert all(map(torch.equal, model.parameters(), twin.parameters()))


def test_it_learns_the_known_function():
    history, model = run(300, num_layers=0, lr=0.05)
    assert history.losses[0] > 10 and history.losses[-1] < 1e-6
    assert torch.allclose(model.final.weight[:, 0], torch.arange(float(DIM)), atol=1e-2)
    assert repr(history).startswith("History of 300 steps: loss ")


def test_runs_repeat_to_the_bit_and_every_setting_reaches_them():
    first, second = run()[0], run()[0]
    assert first == second and len(first) == 30
    for other in ({"num_layers": 0}, {"num_layers": 2}, {"lr": 2e-3}, {"seed": 1}, {"make": AdamW},
                  {"schedule": cosine(30)}, {"max_grad_norm": 0.1}, {"loss": F.l1_loss}):  # fmt: skip
        assert run(**other)[0].losses[1:] != first.losses[1:], other


def test_between_steps_the_optimizer_has_its_own_rates():
    model, seen = cruncher(), []
    groups = [{"params": model.layers.parameters(), "lr": 0.01}, {"params": model.final.parameters(), "lr": 0.001}]
    optimizer, halves = SGD(groups), lambda step: 0.5

    def look(step, loss):
        seen.append([group["lr"] for group in optimizer.param_groups])

    history = train(model, linear_batches(), optimizer, 3, schedule=halves, after_step=look)
    assert seen == [[0.01, 0.001]] * 3 and history.learning_rates == [0.005] * 3
    twin = cruncher()
    half = [{"params": twin.layers.parameters(), "lr": 0.005}, {"params": twin.final.parameters(), "lr": 0.0005}]
    assert train(twin, linear_batches(), SGD(half), 3).losses == history.losses


def test_after_step_hears_each_step_and_may_change_the_rate():
    heard, model = [], cruncher()
    optimizer = SGD(model.parameters(), lr=0.01)

    def lower(step, loss):
        heard.append((step, loss))
        optimizer.param_groups[0]["lr"] /= 2

    history = train(model, linear_batches(), optimizer, 5, start_step=2, after_step=lower)
    assert heard == [*zip(history.steps, history.losses, strict=True)] and history.steps == [2, 3, 4]
    assert history.learning_rates == [0.01, 0.005, 0.0025]


def test_clipping_limits_the_step_and_leaves_small_gradients_alone():
    model = cruncher()
    before = [p.detach().clone() for p in model.parameters()]
    history = train(model, linear_batches(), SGD(model.parameters(), lr=1.0), 1, max_grad_norm=0.25)
    moved = [p.detach() - q for p, q in zip(model.parameters(), before, strict=True)]
    assert nn.utils.get_total_norm(moved).item() == pytest.approx(0.25, rel=1e-4)
    assert history.grad_norms[0] > 1, "it is recorded as it was before clipping"
    assert run(max_grad_norm=1e6)[0] == run()[0]


def test_it_trains_in_training_mode():
    model = nn.Sequential(nn.Linear(DIM, 1), nn.Dropout(0.5), nn.Flatten(0)).eval()
    modes = []
    model.register_forward_pre_hook(lambda module, x: modes.append(module.training))
    train(model, linear_batches(), SGD(model.parameters(), lr=1e-3), 2)
    assert modes == [True, True]


# ---------------------------------------------------------------- runs that go wrong


class Poison(nn.Module):
    """A model whose output, or whose gradient, turns into `bad` at one step."""

    def __init__(self, at, bad, where):
        super().__init__()
        self.inner, self.at, self.bad, self.where, self.calls = cruncher(), at, bad, where, -1

    def forward(self, x):
        self.calls += 1
        out = self.inner(x)
        if self.calls == self.at and self.where == "loss":
            return out * self.bad
        if self.calls == self.at:
            out.register_hook(lambda g: g * self.bad)
        return out


@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [SGD, torch.optim.AdamW])
def test_a_number_that_is_not_finite_stops_the_run_before_the_weights_are_touched(where, bad, make):
    model, kept = Poison(7, bad, where), []
    optimizer = make(model.parameters(), lr=1e-3)

    def keep(step, loss):
        kept.append(copy.deepcopy((model.state_dict(), optimizer.state_dict())))

    with pytest.raises(TrainingDiverged) as caught:
        train(model, linear_batches(), optimizer, 20, max_grad_norm=1.0, after_step=keep)
    error = caught.value
    assert isinstance(error, ArithmeticError) and error.step == 7 and error.history.steps == [*range(7)]
    assert str(error) == (
        f"training diverged at step 7: loss {error.loss:.3g}, gradient norm {error.grad_norm:.3g}; "
        "the weights are still those before this step."
    )
    assert not math.isfinite(error.grad_norm) and math.isfinite(error.loss) == (where == "gradient")
    assert str(kept[-1]) == str((model.state_dict(), optimizer.state_dict()))
    assert all(torch.isfinite(p).all() for p in model.parameters()) and len(kept) == 7
    assert any(not torch.isfinite(p.grad).all() for p in model.parameters()), "gradients are left to be looked at"


def test_a_learning_rate_that_is_too_large_stops_the_run():
    with pytest.raises(TrainingDiverged, match=r"^training diverged at step \d+: loss (inf|nan), gradient norm"):
        run(300, num_layers=3, lr=0.1)


def test_a_recipe_does_not_skip_for_ever():
    model = cruncher()
    model.final.weight.register_hook(lambda g: g * math.nan)
    weights = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(TrainingDiverged, match=r"^training diverged at step 50: loss \d.*, gradient norm nan;"):
        train(model, linear_batches(), SGD(model.parameters(), lr=1e-3), 1000, precision=ScaledFloat16())
    assert all(map(torch.equal, model.parameters(), weights))


class Noting(Precision):
    """A recipe that notes what it is asked to do, and scales its loss."""

    def __init__(self):
        self.calls = []

    def zero_grad(self):
        self.calls.append("zero_grad")
        super().zero_grad()

    def autocast(self, device):
        self.calls.append(f"autocast {device}")
        return torch.autocast("cpu", torch.bfloat16)

    def backward(self, loss):
        self.calls.append("backward")
        (2 * loss).backward()

    def unscale(self):
        if self.calls[-1] == "backward":
            self.calls.append("unscale")
            for p in self._optimizer.param_groups[0]["params"]:
                p.grad /= 2

    def step(self):
        self.calls.append("step")
        return super().step()


def test_a_recipe_is_asked_in_order_and_its_scale_is_not_seen():
    recipe = Noting()
    scaled = run(2, precision=recipe, max_grad_norm=1.0)[0]
    once = ["zero_grad", "autocast cpu", "backward", "unscale", "step"]
    assert recipe.calls == [*once, *once]
    plain = run(2, precision=AutocastBFloat16(), max_grad_norm=1.0)[0]
    assert scaled == plain != run(2, max_grad_norm=1.0)[0], "powers of two change nothing in a float but its exponent"


def test_a_recipe_that_skips_overflowing_steps_goes_on_and_others_do_not():
    model, kept = Poison(3, math.inf, "gradient"), []

    def keep(step, loss):
        kept.append(copy.deepcopy(model.state_dict()))

    optimizer = SGD(model.parameters(), lr=1e-3)
    history = train(model, linear_batches(), optimizer, 6, precision=ScaledFloat16(16.0), after_step=keep)
    assert [math.isfinite(norm) for norm in history.grad_norms] == [True, True, True, False, True, True]
    changed = [str(before) != str(after) for before, after in itertools.pairwise(kept)]
    assert changed == [True, True, False, True, True]
    model = Poison(3, math.nan, "loss")
    optimizer = SGD(model.parameters(), lr=1e-3)
    with pytest.raises(TrainingDiverged):
        train(model, linear_batches(), optimizer, 6, precision=ScaledFloat16(16.0))


MODEL = cruncher()
OPTIMIZER = SGD(MODEL.parameters(), lr=1e-3)
WRONG = {
    "train(): num_train_steps is -1; at least 0 is asked for.": (ValueError, {"num_train_steps": -1}),
    "train(): start_step is 6; 0 to num_train_steps = 5 is asked for.": (ValueError, {"start_step": 6}),
    "train(): start_step is -1; 0 to num_train_steps = 5 is asked for.": (ValueError, {"start_step": -1}),
    "train(): max_grad_norm is 0; a finite number above 0, or None, is asked for.": (ValueError, {"max_grad_norm": 0}),
    "train(): checkpoint_every needs a checkpoint_directory to write to.": (ValueError, {"checkpoint_every": 5}),
    "train(): checkpoint_keep needs a checkpoint_directory to write to.": (ValueError, {"checkpoint_keep": 5}),
    "train(): checkpoint_keep is 0; at least 1, or None, is asked for.": (
        ValueError, {"checkpoint_directory": "x", "checkpoint_keep": 0},
    ),
    "train(): model is a function; a Module is asked for.": (TypeError, {"model": lambda x: x}),
    "train(): schedule is a float (0.1); a function is asked for.": (TypeError, {"schedule": 0.1}),
    "train(): num_train_steps is a float (5.0); an int is asked for.": (TypeError, {"num_train_steps": 5.0}),
    "train(): get_batch() returned a tensor of dtype float32 and shape (8,); a pair of tensors, x and y, is asked for.":
        (TypeError, {"get_batch": lambda: torch.zeros(DIM)}),
    "train(): loss(model(x), y) is a tensor of dtype float32 and shape (4,); a tensor with one element is asked for.":
        (ValueError, {"loss": lambda out, y: (out - y) ** 2}),
    "train(): no parameter of the optimizer got a gradient; an optimizer of the model's own parameters is asked for.":
        (ValueError, {"optimizer": SGD(cruncher().parameters(), lr=1e-3)}),
    "train(): get_batch() has no more batches at step 2; one that begins again, or fewer steps, are asked for.":
        (ValueError, {"get_batch": itertools.repeat((torch.zeros(4, DIM), torch.zeros(4)), 2).__next__}),
    "train(): get_batch is called as get_batch(), and does not take that: missing a required argument: 'step'.":
        (TypeError, {"get_batch": lambda step: None}),
    "train(): schedule is called as schedule(step), and does not take that: too many positional arguments.":
        (TypeError, {"schedule": lambda: 1.0}),
    "train(): loss is the class MSELoss; a function is asked for, such as MSELoss().":
        (TypeError, {"loss": nn.MSELoss}),
    "train(): loss is called as loss(model(x), y), and does not take that: too many positional arguments.":
        (TypeError, {"loss": lambda out: out.sum()}),
    "train(): after_step is called as after_step(step, loss), and does not take that: too many positional arguments.":
        (TypeError, {"after_step": lambda step: None}),
    "train(): loss(model(x), y) is a tensor of dtype float32 and shape () that has no gradient; "
    "a float that depends on parameters with requires_grad, outside of torch.no_grad(), is asked for.":
        (ValueError, {"loss": lambda out, y: F.mse_loss(out, y).detach()}),
    "train(): loss(model(x), y) is a tensor of dtype complex64 and shape (); "
    "a float that depends on parameters with requires_grad, outside of torch.no_grad(), is asked for.":
        (ValueError, {"loss": lambda out, y: out.sum() * 1j}),
    "train(): optimizer is LBFGS, which computes the loss several times in a step; "
    "one whose step() needs no closure is asked for.":
        (ValueError, {"optimizer": torch.optim.LBFGS([*MODEL.parameters()])}),
    "train(): model is on the meta device, where there are no numbers to train.":
        (ValueError, {"model": nn.Linear(2, 2, device="meta")}),
    "train(): sampler is an int (3); something with state_dict() is asked for.":
        (TypeError, {"sampler": 3, "checkpoint_directory": "never made"}),
}  # fmt: skip


@pytest.mark.parametrize("share", [math.nan, math.inf, -0.5, None, "0.1", 1j, torch.ones(2), torch.tensor(math.nan)])
def test_a_schedule_that_says_no_share_stops_the_run_before_the_weights_are_touched(share):
    before = [p.detach().clone() for p in MODEL.parameters()]
    with pytest.raises(ValueError, match=r"^train\(\): schedule\(0\) is .*; a finite number of at least 0 is"):
        train(MODEL, linear_batches(), OPTIMIZER, 5, schedule=lambda step: share)
    assert all(map(torch.equal, MODEL.parameters(), before))
    for odd in (0, True, torch.tensor(0.5), np.float32(0.5)):
        assert run(2, schedule=lambda step, odd=odd: odd)[0].learning_rates == [1e-3 * float(odd)] * 2


def test_a_sparse_gradient_gets_one_sentence():
    model = nn.Sequential(nn.Embedding(5, DIM, sparse=True), nn.Flatten(0))
    said = r"^train\(\): a gradient of shape \(5, 8\) is sparse; dense ones are asked for \(an Embedding gives them"
    with pytest.raises(ValueError, match=said):
        train(model, lambda: (torch.tensor([0, 1]), torch.ones(16)), SGD(model.parameters(), lr=0.1), 3)


def test_what_went_wrong_reaches_another_process():
    error = TrainingDiverged(3, math.inf, math.nan, History([0], [1.0], [2.0], [0.1]))
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(twin) == str(error) and (twin.step, twin.history) == (3, error.history)


@pytest.mark.parametrize("state", [{}, {"steps": 3}, {name: [1.0] for name in History().state_dict()}])
def test_a_history_takes_over_nothing_else(state):
    history = History([0], [1.0], [2.0], [0.1])
    with pytest.raises(ValueError, match=r"^History\.load_state_dict\(\): state has no tensor '"):
        history.load_state_dict(state)
    assert history == History([0], [1.0], [2.0], [0.1])


@pytest.mark.parametrize("sentence", WRONG)
def test_what_makes_no_sense_gets_one_sentence(sentence):
    kind, changed = WRONG[sentence]
    asked = {"model": MODEL, "get_batch": linear_batches(), "optimizer": OPTIMIZER, "num_train_steps": 5, **changed}
    before = [p.detach().clone() for p in MODEL.parameters()]
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
        train(**asked)
    assert all(map(torch.equal, MODEL.parameters(), before))


# ---------------------------------------------------------------- the progress bar


@pytest.mark.parametrize(
    ("environment", "shown"),
    [({}, False), ({"JPY_SESSION_NAME": "11.ipynb"}, True), ({"JPY_SESSION_NAME": "11.ipynb", "CI": "true"}, False),
     ({"JPY_SESSION_NAME": "11.ipynb", "PYTEST_CURRENT_TEST": "nbval"}, False)],
)  # fmt: skip
def test_a_bar_is_shown_to_whoever_looks_on(environment, shown, monkeypatch, capsys):
    for name in ("CI", "PYTEST_CURRENT_TEST", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run(3)
    assert capsys.readouterr() == ("", ""), "a short run shows nothing to anybody"
    monkeypatch.setattr(training, "BAR_AFTER_SECONDS", 0)
    run(3)
    said = capsys.readouterr()
    assert ("0/3" in said.out) == shown == bool(said.out) and not said.err
    run(3, progress=not shown)
    assert bool(capsys.readouterr().out) != shown


@pytest.mark.parametrize("stream", [None, type("Log", (), {"write": print})()])
def test_programs_without_a_console_train_as_well(stream, monkeypatch):
    for name in ("CI", "PYTEST_CURRENT_TEST", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", stream)
    assert len(run(3)[0]) == 3


# ---------------------------------------------------------------- going on where a run broke off

TOKENS = torch.randint(11, (500,), generator=torch.Generator().manual_seed(0))


class Crash(Exception):
    pass


def live(directory, stop_at=None, steps=20, recipe=Precision, make=AdamW):
    """One life of a run whose model drops out, whose batches come from a sampler, and that may crash after a step."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Embedding(11, 12), nn.Dropout(0.3), nn.Linear(12, 11))
    sampler = TokenSampler(TOKENS, 4, 6, seed=1)

    def crash(step, loss):
        if step == stop_at:
            raise Crash

    saved = {} if directory is None else {"checkpoint_directory": directory, "checkpoint_every": 4, "sampler": sampler}
    history = train(
        model, lambda: next(sampler), make(model.parameters(), lr=0.02), steps,
        loss=lambda logits, y: F.cross_entropy(logits.flatten(0, 1), y.flatten()),
        schedule=warmup(5, then=cosine(15)), max_grad_norm=0.5, precision=recipe(), after_step=crash, **saved,
    )  # fmt: skip
    return history, model.state_dict()


@pytest.mark.parametrize("make", [AdamW, torch.optim.AdamW])
@pytest.mark.parametrize("recipe", [Precision, ScaledFloat16, MasterWeights, StochasticBFloat16])
def test_a_run_that_broke_off_goes_on_as_if_it_had_not(recipe, make, tmp_path):
    wanted, weights = live(None, recipe=recipe, make=make)
    for stop_at in (2, 9, 17):  # before the first checkpoint, and between others
        with pytest.raises(Crash):
            live(tmp_path, stop_at, recipe=recipe, make=make)
    history, after = live(tmp_path, recipe=recipe, make=make)
    assert history == wanted and history.steps == [*range(20)]
    assert all(torch.equal(after[name], weights[name]) for name in weights)
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == [checkpoint_path("", step).name for step in (4, 8, 12, 16, 20)]


def test_a_run_that_is_done_is_not_done_again_and_may_be_made_longer(tmp_path):
    short, _ = live(tmp_path, steps=18)
    assert live(tmp_path, stop_at=0, steps=18)[0] == short, "nothing was left to do"
    longer, _ = live(tmp_path, steps=20)
    assert longer == live(None)[0] and longer.losses[:18] == short.losses
    wanted = r"num_train_steps is 10, and step-000000020\.pt is there already; more steps, or another"
    with pytest.raises(ValueError, match=wanted):
        live(tmp_path, steps=10)


def test_another_recipe_does_not_go_on(tmp_path):
    live(tmp_path, steps=4, recipe=MasterWeights)
    said = r"^train\(\): precision is 'bfloat16, stochastic rounding', and step-000000004\.pt was trained with 'master "
    with pytest.raises(ValueError, match=said):
        live(tmp_path, recipe=StochasticBFloat16)


def test_what_is_no_directory_is_told_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"file', which is no directory\.$"):
        run(3, checkpoint_directory=tmp_path / "file", after_step=lambda step, loss: pytest.fail("a step was taken"))


def test_another_default_device_changes_nothing(tmp_path):
    with torch.device("meta"):
        model = cruncher().to_empty(device="cpu")
    for p in model.parameters():
        nn.init.constant_(p, 0.1)
    with torch.device("meta"):
        zeros = torch.zeros(4, DIM, device="cpu"), torch.zeros(4, device="cpu")
        history = train(model, lambda: zeros, SGD(model.parameters(), lr=0.1), 2, checkpoint_directory=tmp_path)
    assert train(model, lambda: zeros, SGD(model.parameters(), lr=0.1), 2, checkpoint_directory=tmp_path) == history


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    model = cruncher()
    optimizer = SGD(model.parameters(), lr=1e-3)
    save_checkpoint(checkpoint_path(tmp_path, 3), model, optimizer, 3, extra=[1, 2])
    with pytest.raises(ValueError, match=r"^train\(\): step-000000003\.pt is no checkpoint of train\(\); another"):
        train(model, linear_batches(), optimizer, 5, checkpoint_directory=tmp_path)


def test_the_newest_checkpoints_stay(tmp_path):
    run(9, checkpoint_directory=tmp_path / "two", checkpoint_every=2, checkpoint_keep=2)
    assert sorted((tmp_path / "two").iterdir()) == [checkpoint_path(tmp_path / "two", step) for step in (8, 9)]
    run(9, checkpoint_directory=tmp_path / "all", checkpoint_every=2)
    assert len([*(tmp_path / "all").iterdir()]) == 5
