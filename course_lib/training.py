"""The training loop: forward, loss, backward, step; and a run that goes wrong stops with a sentence that says where."""
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer
from tqdm import tqdm

from course_lib.checked import checked
from course_lib.checkpoint import checkpoint_path, latest_checkpoint, load_checkpoint, save_checkpoint
from course_lib.precision import Precision
from course_lib.schedules import Schedule
from course_lib.training_arguments import (
    require_batch,
    require_checkpoints,
    require_gradients,
    require_numbers,
    require_run,
    require_scalar,
    share_of,
)

Batch = tuple[Tensor, Tensor]
BAR_AFTER_SECONDS = 0.5  # a sweep of short runs shall not flicker
MOST_SKIPS = 50  # steps in a row: a scale that has been halved so often is not what was too large


@dataclass
class History:
    """What a run recorded: four lists with one number for each step.

    `losses` and `grad_norms` are of the weights before the step; a gradient norm is the one before clipping.
    `learning_rates` are those of the optimizer's first group, the schedule included. Two histories are equal if all
    their numbers are, to the bit.
    """

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not self.losses:
            return "History of 0 steps"
        return f"History of {len(self)} steps: loss {self.losses[0]:.3g} to {self.losses[-1]:.3g}"

    def state_dict(self) -> dict[str, Tensor]:
        """The four lists as tensors (8 bytes a number, so that nothing is rounded), for a checkpoint."""
        kinds = {"steps": torch.int64}
        return {
            one.name: torch.tensor(getattr(self, one.name), dtype=kinds.get(one.name, torch.float64), device="cpu")
            for one in fields(self)
        }

    @checked
    def load_state_dict(self, state: dict) -> None:
        """Take over what `state_dict` returned. Raises ValueError, and changes nothing, for anything else."""
        if wrong := [one.name for one in fields(self) if not isinstance(state.get(one.name), Tensor)]:
            came = f"state has no tensor {wrong[0]!r}"
            raise ValueError(f"History.load_state_dict(): {came}; what state_dict() returned is asked for.")
        for one in fields(self):
            setattr(self, one.name, state[one.name].tolist())


class TrainingDiverged(ArithmeticError):
    """A step had a loss or a gradient norm that is inf or NaN. The weights are those before this step.

    `step`, `loss` and `grad_norm` say what came, `history` holds the steps before. Gradients are left as they came,
    so that you can look for the parameter where it began.
    """

    @checked
    def __init__(self, step: int, loss: float, grad_norm: float, history: History) -> None:
        super().__init__(
            f"training diverged at step {step}: loss {loss:.3g}, gradient norm {grad_norm:.3g}; "
            "the weights are still those before this step."
        )
        self.step, self.loss, self.grad_norm, self.history = step, loss, grad_norm, history

    def __reduce__(self) -> tuple:
        """To be copied, and to reach another process, it is made anew from what it was made of."""
        return type(self), (self.step, self.loss, self.grad_norm, self.history)


@checked
def train(
    model: nn.Module,
    get_batch: Callable[[], Batch],
    optimizer: Optimizer,
    num_train_steps: int,
    *,
    loss: Callable[[Tensor, Tensor], Tensor] = F.mse_loss,
    schedule: Schedule | None = None,
    max_grad_norm: float | None = None,
    precision: Precision | None = None,
    progress: bool | None = None,
    start_step: int = 0,
    after_step: Callable[[int, float], object] | None = None,
    checkpoint_directory: str | Path | None = None,
    checkpoint_every: int | None = None,
    checkpoint_keep: int | None = None,
    sampler: object = None,
) -> History:
    """Train `model`, in training mode, with steps `start_step` to `num_train_steps` − 1, and return what was recorded.

    A step draws (x, y) from `get_batch()`, computes loss(model(x), y), goes backward, and lets `optimizer` change the
    weights. `schedule` says for each step which share of each group's learning rate is taken; between steps the
    optimizer has its own one. Gradients whose norm, over all parameters of the optimizer, is above `max_grad_norm` are
    scaled down to it. `precision` is a recipe of course_lib.precision; None is the one that leaves all as it is.
    `after_step(step, loss)` is called after each step.

    Raises TrainingDiverged for a loss or a gradient norm that is not finite, before the weights are touched. A recipe
    that skips overflowing steps may skip 50 in a row for their gradient norm. Raises TypeError or ValueError for what
    it cannot train with, as a schedule that says NaN, or batches that run out.

    With `checkpoint_directory` a run goes on where the newest good checkpoint there ends: model, optimizer, random
    generators, `sampler`, recipe and history are restored, so that the history returned is the whole one, and to the
    bit what it would be without the break (on a GPU, if its kernels repeat to the bit). What `get_batch` draws has to
    come from these generators or from `sampler`. A checkpoint is written every `checkpoint_every` steps and after the
    last; the newest `checkpoint_keep` stay, or all.

    `progress` shows a bar after half a second; None shows one in a terminal and in a notebook that somebody has open.
    """
    require_numbers(num_train_steps, start_step, max_grad_norm)
    counts = {"checkpoint_every": checkpoint_every, "checkpoint_keep": checkpoint_keep}
    require_checkpoints(checkpoint_directory, sampler, **counts)
    called = {"get_batch": (get_batch,), "loss": (loss, "model(x)", "y"), "schedule": (schedule, "step")}
    require_run(model, optimizer, loss, {**called, "after_step": (after_step, "step", "loss")})
    precision = Precision() if precision is None else precision
    precision.prepare(model, optimizer)
    history = History()
    if checkpoint_directory is not None:
        saver = _Saver(Path(checkpoint_directory), model, optimizer, sampler, precision, history, checkpoint_keep)
        start_step = saver.resume(num_train_steps, start_step)
    loop = _Loop(model, get_batch, optimizer, loss, schedule, max_grad_norm, precision, history)
    model.train()
    with _bar(start_step, num_train_steps, progress) as bar:
        for step in bar:
            value = loop.step(step)
            bar.set_postfix_str(f"loss {value:.3g}", refresh=False)
            if after_step is not None:
                after_step(step, value)
            done = step + 1
            due = done == num_train_steps or (checkpoint_every is not None and done % checkpoint_every == 0)
            if checkpoint_directory is not None and due:  # after after_step, which may have changed something
                saver.save(done)
    return history


@dataclass
class _Loop:
    model: nn.Module
    get_batch: Callable[[], Batch]
    optimizer: Optimizer
    loss: Callable[[Tensor, Tensor], Tensor]
    schedule: Schedule | None
    max_grad_norm: float | None
    precision: Precision
    history: History
    skipped: int = 0  # steps in a row

    def step(self, step: int) -> float:
        """One step; returns its loss. Until loss and gradient norm are known, nothing but gradients is changed."""
        x, y = require_batch(self.get_batch, step)
        share = 1.0 if self.schedule is None else share_of(self.schedule, step)
        self.precision.zero_grad()
        with self.precision.autocast(y.device):
            loss = self.loss(self.model(x), y)
        require_scalar(loss)
        self.precision.backward(loss)
        self.precision.unscale()
        norm = _gradient_norm(self.optimizer)
        value, grad_norm = float(loss.detach()), float(norm)
        may_skip = self.precision.skips_overflow and self.skipped < MOST_SKIPS
        if not math.isfinite(value) or not (math.isfinite(grad_norm) or may_skip):
            raise TrainingDiverged(step, value, grad_norm, self.history)
        if self.max_grad_norm is not None and math.isfinite(grad_norm):
            clip_grads_with_norm_(_parameters(self.optimizer), self.max_grad_norm, norm)
        with _scaled_rates(self.optimizer, share):
            self._record(step, value, grad_norm)
            self.skipped = 0 if self.precision.step() else self.skipped + 1
        return value

    def _record(self, step: int, loss: float, grad_norm: float) -> None:
        self.history.steps.append(step)
        self.history.losses.append(loss)
        self.history.grad_norms.append(grad_norm)
        self.history.learning_rates.append(float(self.optimizer.param_groups[0]["lr"]))


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _gradient_norm(optimizer: Optimizer) -> Tensor:
    gradients = [p.grad for p in _parameters(optimizer) if p.grad is not None]
    require_gradients(gradients)
    return get_total_norm(gradients)


@contextmanager
def _scaled_rates(optimizer: Optimizer, share: float) -> Iterator[None]:
    """For one step each group's learning rate is `share` of what it is otherwise.

    It is put back after each step, so that a checkpoint never holds a scaled one, which would be scaled again.
    """
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


@dataclass
class _Saver:
    """Writes all that a run needs to go on, and reads it back."""

    directory: Path
    model: nn.Module
    optimizer: Optimizer
    sampler: object
    precision: Precision
    history: History
    keep: int | None

    def save(self, step: int) -> None:
        recipe = {"precision": self.precision.state_dict(), "recipe": self.precision.name}
        extra = {"history": self.history.state_dict(), **recipe}
        path = checkpoint_path(self.directory, step)
        save_checkpoint(path, self.model, self.optimizer, step, sampler=self.sampler, extra=extra, keep=self.keep)

    def resume(self, num_train_steps: int, start_step: int) -> int:
        """Restore the newest good checkpoint, and return the step that comes next."""
        newest = latest_checkpoint(self.directory)
        if newest is None:
            return start_step
        if newest.name > checkpoint_path(self.directory, num_train_steps).name:
            came = f"num_train_steps is {num_train_steps}, and {newest.name} is there already"
            raise ValueError(f"train(): {came}; more steps, or another checkpoint_directory, are asked for.")
        loaded = load_checkpoint(newest, self.model, self.optimizer, sampler=self.sampler)
        if not isinstance(loaded.extra, dict) or not {"history", "precision"} <= loaded.extra.keys():
            raise ValueError(f"train(): {newest.name} is no checkpoint of train(); another directory is asked for.")
        if (was := loaded.extra.get("recipe", self.precision.name)) != self.precision.name:
            came = f"precision is {self.precision.name!r}, and {newest.name} was trained with {was!r}"
            raise ValueError(f"train(): {came}; the same recipe, or another checkpoint_directory, is asked for.")
        self.history.load_state_dict(loaded.extra["history"])
        self.precision.load_state_dict(loaded.extra["precision"])
        return loaded.step


def _bar(start: int, stop: int, progress: bool | None) -> tqdm:
    shown = _somebody_looks_on() if progress is None else progress
    file = sys.stderr if _is_terminal(sys.stderr) else sys.stdout  # a notebook paints what comes on stderr red
    options = {"leave": False, "delay": BAR_AFTER_SECONDS, "disable": not shown, "file": file}
    return tqdm(range(start, stop), initial=start, total=stop, unit="step", **options)


def _somebody_looks_on() -> bool:
    """A terminal, or a notebook that is open: JupyterLab's kernels know its name, those of nbval and nbconvert none."""
    if os.environ.get("CI") or os.environ.get("PYTEST_CURRENT_TEST"):
        return False
    return bool(os.environ.get("JPY_SESSION_NAME")) or _is_terminal(sys.stderr)


def _is_terminal(stream: object) -> bool:
    """Programs without a console have None here, and some that log put there what only knows how to write."""
    return hasattr(stream, "isatty") and stream.isatty()
