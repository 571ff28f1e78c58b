"""The exercises of notebook 12: a copy that stays, a run that goes on bit for bit, the newest good file, how often."""
import copy
import io
import math
import os
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from course_lib.exercises.engine import case, exercise
from course_lib.exercises.probing import require

# ---------------------------------------------------------------- what 12.1 and 12.2 train


_MODELS = {
    "plain": lambda: nn.Linear(3, 2),
    "normalised": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)),  # has buffers
    "with dropout": lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 1)),
}


def _train(model, optimizer, steps):
    """Steps whose batches come from torch's generator and are scaled by Python's; their losses."""
    losses = []
    for _ in range(steps):
        loss = (random.uniform(0.5, 2.0) * model(torch.randn(6, 3)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _begun(model_name, optimizer_name, seed):
    torch.manual_seed(seed)
    random.seed(seed)
    model = _MODELS[model_name]()
    settings = {"momentum": 0.9} if optimizer_name == "SGD" else {}
    return model, getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.05, **settings)


# ---------------------------------------------------------------- 12.1


@exercise(
    notebook="12",
    fixed=("dtype",),
    hints=[
        "state_dict() returns the tensors themselves, and training goes on writing into them.",
        "How deep does the copy have to go? The optimizer's state is a dict of dicts of tensors.",
        "copy.deepcopy copies all of it, down to the numbers.",
    ],
    why="Both state_dict() hold references, and every step writes into what they refer to. A deep copy has storages of "
    "its own. So has a file: that is why torch.save needs no copy.",
)
def snapshot(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, dict]:
    """{"model": …, "optimizer": …}: what their state_dict() say at this moment.

    It goes on saying so, whatever happens to the two afterwards. Both are left as they are, with
    their gradients.
    """
    return copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})


snapshot.cases(
    case('"plain", "SGD", 3', "momentum"),
    case('"normalised", "AdamW", 3', "buffers"),
    case('"with dropout", "RMSprop", 2', "dropout"),
    case('"normalised", "SGD", 1', "one step"),
    case('"plain", "AdamW", 0', "before the first step"),
)


@snapshot.probe
def look_again_later(candidate, args, kwargs):
    """What the snapshot says after two more steps, and whether they are the steps that would have come anyway."""
    model_name, optimizer_name, steps = args
    model, optimizer = _begun(model_name, optimizer_name, 0)
    _train(model, optimizer, steps)
    gradients = copy.deepcopy([p.grad for p in model.parameters()])
    kept = candidate(model, optimizer)
    require(isinstance(kept, dict), kept, "one dict")
    untouched = gradients == [None] * len(gradients) or all(
        p.grad is not None and torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True)
    )
    losses = _train(model, optimizer, 2)
    found = {name: kept.get(name) for name in ("model", "optimizer")}
    return {"entries": sorted(map(str, kept)), **found, "gradients are left alone": untouched, "next losses": losses}


def _parts(model, optimizer):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


@snapshot.misconception("Those are references: the next step changes what they show. Copy them, all the way down.")
def references(model, optimizer):
    return _parts(model, optimizer)


@snapshot.misconception("The weights are copied, what the optimizer remembers is not: its next step overwrites it.")
def optimizer_by_reference(model, optimizer):
    return {**_parts(model, optimizer), "model": copy.deepcopy(model.state_dict())}


@snapshot.misconception("What the optimizer remembers is copied, the weights are not: the next step overwrites them.")
def model_by_reference(model, optimizer):
    return {**_parts(model, optimizer), "optimizer": copy.deepcopy(optimizer.state_dict())}


@snapshot.misconception("A model has buffers too, such as a running mean. state_dict() holds them, parameters() not.")
def without_buffers(model, optimizer):
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    return {"model": weights, "optimizer": copy.deepcopy(optimizer.state_dict())}


@snapshot.misconception("That is what the optimizer remembers, without its groups: load_state_dict wants both.")
def without_groups(model, optimizer):
    return copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"]})


@snapshot.accepts
def through_a_file(model, optimizer):
    file = io.BytesIO()
    torch.save(_parts(model, optimizer), file)
    file.seek(0)
    return torch.load(file)


@snapshot.accepts
def cloned(model, optimizer):
    def clone(value):
        if isinstance(value, torch.Tensor):
            return value.clone()
        return {key: clone(one) for key, one in value.items()} if isinstance(value, dict) else copy.copy(value)

    return clone(_parts(model, optimizer))


# ---------------------------------------------------------------- 12.2


@exercise(
    notebook="12",
    hints=[
        "What has a say in the next loss? The weights and buffers, what the optimizer remembers, the batches.",
        "The batches come from two generators. torch.get_rng_state() and random.getstate() tell where they are; "
        "set_rng_state and setstate put them back.",
        "torch.save takes one dict with all of it. A loaded dict changes nothing by itself: load_state_dict does.",
    ],
    why="A step is a function of weights, buffers, optimizer state and the generators, so that whoever restores all of "
    "them gets the same step again. Seeding anew would not do: it brings back the generators' beginning.",
)
class RunSaver:
    """Saves a run to a file, and brings it back in another process, which has that file alone.

    The run's batches are drawn with torch's and with Python's generator. Saving changes nothing
    about it; after load it goes on as if it had never stopped, bit for bit. Several runs may be
    saved, each to its file, which torch.load(path, weights_only=True) reads.
    """

    def save(
        self, path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int
    ) -> None:
        """step: how many steps have been done."""
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "torch": torch.get_rng_state(),
            "python": random.getstate(),
        }
        torch.save(state, path)

    def load(self, path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
        """Fill a new model and optimizer, made by the same code. Returns step."""
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch"])
        random.setstate(state["python"])
        return state["step"]


RunSaver.cases(
    case('"plain", "AdamW", 3', "AdamW"),
    case('"plain", "SGD", 5', "momentum"),
    case('"normalised", "AdamW", 4', "buffers"),
    case('"with dropout", "SGD", 2', "dropout"),
    case('"normalised", "RMSprop", 1', "one step"),
    case('"with dropout", "AdamW", 0', "before the first step"),
)


@RunSaver.probe
def stop_and_go_on(candidate, args, kwargs):
    """Train, save, train on; then, as another process would, load and train on. What agrees?"""
    _, _, steps = args
    with tempfile.TemporaryDirectory() as folder:
        path, other_path = Path(folder, "run.pt"), Path(folder, "other.pt")
        undisturbed = _train(*_under_way(*args), 3)
        model, optimizer = _under_way(*args)
        want = _look(model, optimizer)
        candidate().save(path, model, optimizer, steps)
        losses = _train(model, optimizer, 3)
        candidate().save(other_path, model, optimizer, steps + 3)  # whoever keeps it elsewhere has this one now
        new_model, new_optimizer = _begun(*args[:2], 1)
        held = [*new_model.parameters()]
        step = candidate().load(path, new_model, new_optimizer)
        seen = {name: got == want[name] for name, got in _look(new_model, new_optimizer).items()}
        return {
            "what load returns": step,
            **seen,
            "saving leaves the run as it was": losses == undisturbed,
            "the next losses are the same, bit for bit": _train(new_model, new_optimizer, 3) == losses,
            "the optimizer holds the model's parameters": _same_objects(new_model, new_optimizer, held),
            "torch.load(path, weights_only=True)": _what_torch_says(path),
        }


def _under_way(model_name, optimizer_name, steps):
    model, optimizer = _begun(model_name, optimizer_name, 0)
    optimizer.param_groups[0]["lr"] = 0.04  # changed on the way
    _train(model, optimizer, steps)
    return model, optimizer


def _look(model, optimizer):
    """What has to be the same before and after, without drawing a number."""
    moved = optimizer.state_dict()
    remembered = [value for state in moved["state"].values() for value in state.values()]
    return {
        "the weights come back": [p.tolist() for p in model.parameters()],
        "the buffers come back": [b.tolist() for b in model.buffers()],
        "what the optimizer remembers comes back": [v.tolist() if torch.is_tensor(v) else v for v in remembered],
        "the learning rate comes back": moved["param_groups"][0]["lr"],
        "torch's generator comes back": torch.get_rng_state().tolist(),
        "Python's generator comes back": random.getstate(),
    }


def _same_objects(model, optimizer, held):
    trained = optimizer.param_groups[0]["params"]
    return all(a is b and b is c for a, b, c in zip(model.parameters(), held, trained, strict=True))


def _what_torch_says(path):
    if not path.exists():
        return "finds no file"
    for weights_only, found in ((True, "reads the file"), (False, "refuses objects: is the model itself in it?")):
        try:
            torch.load(path, weights_only=weights_only)
        except Exception:  # zipfile, pickle and torch raise half a dozen kinds
            continue
        return found
    return "cannot read the file: torch.save did not write it"


class _Saver:
    """What most answers share: they differ in what goes into the file, or in what is done with it."""

    def save(self, path, model, optimizer, step):
        torch.save(self.collect(model, optimizer, step), path)

    def load(self, path, model, optimizer):
        return self.restore(torch.load(path), model, optimizer)

    def collect(self, model, optimizer, step):
        generators = {"torch": torch.get_rng_state(), "python": random.getstate()}
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, **generators}

    def restore(self, state, model, optimizer):
        model.load_state_dict(state["model"], strict=False)
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch"])
        random.setstate(state["python"])
        return state["step"]


@RunSaver.misconception("The optimizer begins anew: its averages are gone, and so are its settings. Save it too.")
class WeightsAlone(_Saver):
    def restore(self, state, model, optimizer):
        return super().restore({**state, "optimizer": optimizer.state_dict()}, model, optimizer)


@RunSaver.misconception("torch's generator draws other numbers now: other batches, another dropout. Save its state.")
class WithoutTorchsGenerator(_Saver):
    def restore(self, state, model, optimizer):
        return super().restore({**state, "torch": torch.get_rng_state()}, model, optimizer)


@RunSaver.misconception("Python's random has a generator of its own, and this run draws from it: random.getstate().")
class WithoutPythonsGenerator(_Saver):
    def restore(self, state, model, optimizer):
        return super().restore({**state, "python": random.getstate()}, model, optimizer)


@RunSaver.misconception("Neither generator is where it was: other batches come. Save get_rng_state() and getstate().")
class WithoutGenerators(_Saver):
    def restore(self, state, model, optimizer):
        now = {"torch": torch.get_rng_state(), "python": random.getstate()}
        return super().restore({**state, **now}, model, optimizer)


@RunSaver.misconception("A seed brings back the beginning of a generator, not the place where the run had come to.")
class SeedsAgain(_Saver):
    def restore(self, state, model, optimizer):
        step = super().restore(state, model, optimizer)
        torch.manual_seed(0)
        random.seed(0)
        return step


@RunSaver.misconception("The buffers are missing: parameters() are not all that a model holds. Use state_dict().")
class ParametersAlone(_Saver):
    def collect(self, model, optimizer, step):
        return {**super().collect(model, optimizer, step), "model": dict(model.named_parameters())}


@RunSaver.misconception("torch.load returns a dict, and nothing else happens. load_state_dict puts it to use.")
class ReadsAndForgets(_Saver):
    def restore(self, state, model, optimizer):
        return state["step"]


@RunSaver.misconception("How many steps have been done is a part of the run: a schedule and the loop need it.")
class WithoutTheStep(_Saver):
    def restore(self, state, model, optimizer):
        super().restore(state, model, optimizer)
        return 0


@RunSaver.misconception("You kept it in the object. Another process has the file, and a new object.")
class InTheObject(_Saver):
    def save(self, path, model, optimizer, step):
        self.state = self.collect(model, optimizer, step)
        torch.save({}, path)

    def load(self, path, model, optimizer):
        return self.restore(self.state, model, optimizer)


@RunSaver.misconception("You saved the model itself, a pickled object: loading it may execute code. Save state_dict().")
class WholeObjects(_Saver):
    def collect(self, model, optimizer, step):
        return {**super().collect(model, optimizer, step), "model": model}

    def load(self, path, model, optimizer):
        state = torch.load(path, weights_only=False)
        return self.restore({**state, "model": state["model"].state_dict()}, model, optimizer)


@RunSaver.accepts
class AsTensors(_Saver):
    def collect(self, model, optimizer, step):
        version, numbers, gauss = random.getstate()
        state = super().collect(model, optimizer, step)
        return {**state, "python": [version, torch.tensor(numbers), gauss], "step": torch.tensor(step)}

    def restore(self, state, model, optimizer):
        version, numbers, gauss = state["python"]
        state = {**state, "python": (version, tuple(numbers.tolist()), gauss)}
        return int(super().restore(state, model, optimizer))


@RunSaver.accepts
class BesideAndRenamed(_Saver):
    def save(self, path, model, optimizer, step):
        beside = path.with_suffix(".partial")
        with open(beside, "wb") as file:
            torch.save(self.collect(model, optimizer, step), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)


# ---------------------------------------------------------------- 12.3


@exercise(
    notebook="12",
    hints=[
        "Which names are checkpoints? re.fullmatch(r'step-(\\d+)\\.pt', name) knows, and [1] of it are the digits.",
        "As text, step-9.pt stands behind step-10.pt. Sort by the number.",
        "From the newest on: the first that is whole is the answer, and no further file has to be read.",
    ],
    why="The number decides which is newest, and a file that is damaged counts as if it were not there. Whoever begins "
    "with the newest reads as little as possible.",
)
def newest_good(names: list[str], is_whole: Callable[[str], bool]) -> str | None:
    """The newest checkpoint that is whole, or None if there is none.

    names are all files of a directory, in no order. A checkpoint is called step-N.pt, where N
    is the step, without leading zeros. is_whole(name) reads that file, which may take minutes:
    read no more files than you have to, and nothing but checkpoints. (Where check shows you a
    call, its second argument lists the names that are whole.)
    """
    found = [(int(match[1]), name) for name in names if (match := re.fullmatch(r"step-(\d+)\.pt", name))]
    return next((name for _, name in sorted(found, reverse=True) if is_whole(name)), None)


newest_good.cases(
    case('["step-10.pt", "step-20.pt", "step-30.pt"], ["step-10.pt", "step-20.pt", "step-30.pt"]', "all whole"),
    case('["step-20.pt", "step-30.pt", "step-10.pt"], ["step-10.pt", "step-20.pt"]', "the newest is damaged"),
    case('["step-9.pt", "step-10.pt", "step-8.pt"], ["step-8.pt", "step-9.pt", "step-10.pt"]', "9 and 10"),
    case(
        '["step-1000.pt", "step-900.pt", "step-95.pt"], ["step-95.pt", "step-1000.pt", "step-900.pt"]',
        "another number of digits",
    ),
    case('["step-5.pt", ".step-6.pt.partial"], ["step-5.pt", ".step-6.pt.partial"]', "a half-written file"),
    case('["notes.txt", "best.pt", "step-7.pt.bak"], ["best.pt", "step-7.pt.bak"]', "no checkpoints"),
    case('["step-107.pt", "step-105.pt", "step-3.pt"], ["step-3.pt"]', "two are damaged"),
    case('["step-2.pt", "step-1.pt"], []', "none is whole"),
    case("[], []", "an empty directory"),
    case('["step-0.pt", "old-step-3.pt", "step-x.pt"], ["step-0.pt", "old-step-3.pt"]', "step 0"),
    '["step-12xpt", "step-1.pt"], ["step-12xpt", "step-1.pt"]',
    '["step-4.pt", "step-7-old.pt"], ["step-4.pt", "step-7-old.pt"]',
)


@newest_good.probe
def find_and_count(candidate, args, kwargs):
    """The answer, and which files were read for it."""
    names, good = args
    reads = []

    def is_whole(name):
        reads.append(name)
        return name in good

    return {"the newest good one": candidate(names, is_whole), "files that were read": reads}


def _numbered(names, pattern=r"step-(\d+)\.pt", search=re.fullmatch):
    found = [(int(match[1]), name) for name in names if (match := search(pattern, name))]
    return [name for _, name in sorted(found, reverse=True)]


@newest_good.misconception("As text, step-9.pt comes after step-10.pt. Compare the numbers.")
def sorted_as_text(names, is_whole):
    return next((name for name in sorted(_numbered(names), reverse=True) if is_whole(name)), None)


@newest_good.misconception("The newest may be damaged. Ask is_whole, and if it says no, go on to the one before.")
def newest_as_it_is(names, is_whole):
    return next(iter(_numbered(names)), None)


@newest_good.misconception("If the newest is damaged you give up. The one before it may be whole.")
def gives_up(names, is_whole):
    newest = next(iter(_numbered(names)), None)
    return newest if newest and is_whole(newest) else None


@newest_good.misconception("You begin with the oldest. Of several good ones the newest is asked for.")
def oldest_first(names, is_whole):
    return next((name for name in _numbered(names)[::-1] if is_whole(name)), None)


@newest_good.misconception("You read every file. Begin with the newest, and stop at the first that is whole.")
def reads_all(names, is_whole):
    return next(iter([name for name in _numbered(names) if is_whole(name)]), None)


@newest_good.misconception("Not all of those are checkpoints: only names that are step-N.pt from end to end.")
def other_files_too(names, is_whole):
    return next((name for name in _numbered(names, r"step-(\d+)", re.search) if is_whole(name)), None)


@newest_good.misconception("A directory's names come in no order. Sort them by their numbers.")
def as_listed(names, is_whole):
    return next((name for name in names[::-1] if name in _numbered(names) and is_whole(name)), None)


@newest_good.accepts
def by_a_key(names, is_whole):
    checkpoints = [name for name in names if name.startswith("step-") and name[5:-3].isdigit() and name[-3:] == ".pt"]
    for name in sorted(checkpoints, key=lambda name: -int(name[5:-3])):
        if is_whole(name):
            return name
    return None


@newest_good.accepts
def largest_again_and_again(names, is_whole):
    left = _numbered(names)
    while left:
        newest = max(left, key=lambda name: int(re.sub(r"\D", "", name)))
        if is_whole(newest):
            return newest
        left.remove(newest)


# ---------------------------------------------------------------- 12.4


@exercise(
    notebook="12",
    hints=[
        "How many seconds lie between two failures on average? A day has 24 · 60 · 60.",
        "Young: the interval that loses the least is √(2 · seconds of a save · seconds between failures).",
        "That is seconds. How many steps are that? A whole number, and never 0.",
    ],
    why="With interval τ you pay save/τ for saving and τ/(2·M) for what is done again: half an interval per failure. "
    "The sum is smallest where both are equal: at τ = √(2·save·M), as Young found in 1974.",
)
def steps_between_saves(
    save_seconds: float, step_seconds: float, failures_per_day: float
) -> int:
    """Steps to do between two checkpoints, so that the least time is lost: Young's rule.

    To the nearest whole number of steps, and at least 1.
    """
    between_failures = 24 * 60 * 60 / failures_per_day
    return max(1, round(math.sqrt(2 * save_seconds * between_failures) / step_seconds))


steps_between_saves.cases(
    case("84, 20, 0.485", "70 billion parameters on 1024 GPUs"),
    "2, 0.25, 1",
    case("10, 1.5, 8", "a failure every three hours"),
    "0.5, 3, 1 / 30",
    case("3, 0.05, 50_000", "a failure every other second"),
    case("30, 40, 0.01", "one failure in a hundred days"),
    case("0.01, 900, 1", "steps that take longer than the interval"),
    case("0.002, 3600, 24", "steps of an hour"),
    "5, 5, 5",
)


@steps_between_saves.misconception("The 2 is missing: a failure costs half an interval on average, not a whole one.")
def without_the_two(save_seconds, step_seconds, failures_per_day):
    return steps_between_saves.reference(save_seconds / 2, step_seconds, failures_per_day)


@steps_between_saves.misconception("You forgot the root. In doubt ask for the units: seconds · seconds are no time.")
def without_the_root(save_seconds, step_seconds, failures_per_day):
    return max(1, round(2 * save_seconds * 86400 / failures_per_day / step_seconds))


@steps_between_saves.misconception("Those are seconds. Divide by what a step takes.")
def in_seconds(save_seconds, step_seconds, failures_per_day):
    return steps_between_saves.reference(save_seconds, 1, failures_per_day)


@steps_between_saves.misconception("Young wants the time between two failures. Failures per day are its inverse.")
def multiplied_by_failures(save_seconds, step_seconds, failures_per_day):
    return max(1, round(math.sqrt(2 * save_seconds * 86400 * failures_per_day) / step_seconds))


@steps_between_saves.misconception("The time between failures is in days there, the rest in seconds. A day has 86,400.")
def in_days(save_seconds, step_seconds, failures_per_day):
    return max(1, round(math.sqrt(2 * save_seconds / failures_per_day) / step_seconds))


@steps_between_saves.misconception("Nobody can do 0 steps between two checkpoints. At least 1.")
def none_at_all(save_seconds, step_seconds, failures_per_day):
    return round(math.sqrt(2 * save_seconds * 86400 / failures_per_day) / step_seconds)


@steps_between_saves.misconception("Saving once per failure loses half of the time between them, again and again.")
def once_per_failure(save_seconds, step_seconds, failures_per_day):
    return max(1, round(86400 / failures_per_day / step_seconds))


@steps_between_saves.misconception("You cut the fraction off. To the nearest whole number, says the task: round().")
def cut_off(save_seconds, step_seconds, failures_per_day):
    return max(1, int(math.sqrt(2 * save_seconds * 86400 / failures_per_day) / step_seconds))


@steps_between_saves.accepts
def searched(save_seconds, step_seconds, failures_per_day):
    tau = (2 * save_seconds * 86400 / failures_per_day) ** 0.5
    return 1 if tau < step_seconds else round(tau / step_seconds)


@steps_between_saves.accepts
def in_units_of_steps(save_seconds, step_seconds, failures_per_day):
    save, between = save_seconds / step_seconds, 86400 / failures_per_day / step_seconds
    return max(round((2 * save * between) ** 0.5), 1)
