"""Saving a run, loading it, and finding the newest checkpoint that is whole."""
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from course_lib.checked import checked, require_at_least
from course_lib.checkpoint.file import FORMAT, CheckpointDamaged, read, write
from course_lib.checkpoint.state import (
    generator_states,
    load_all,
    require_fitting_model,
    require_fitting_optimizer,
    signature,
    state_of,
    storable,
)

_NAME = re.compile(r"step-(\d{9,})\.pt")
_HALF = re.compile(rf"\.{_NAME.pattern}\.partial")


@dataclass(frozen=True)
class Checkpoint:
    """What `load_checkpoint` hands back: the file, the number of steps done when it was saved, and `extra`."""

    path: Path
    step: int
    extra: object


@checked
def checkpoint_path(directory: str | Path, step: int) -> Path:
    """The file for this step: step-000000100.pt in `directory`, so that names sort as steps do."""
    require_at_least("checkpoint_path", 0, step=step)
    return Path(directory) / f"step-{step:09d}.pt"


@checked
def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: Optimizer,
    step: int,
    *,
    schedule: object = None,
    sampler: object = None,
    extra: object = None,
    keep: int | None = None,
) -> Path:
    """Write model, optimizer, schedule, sampler, `step` and the generators of torch, NumPy and Python to `path`.

    step: how many steps have been done. schedule, sampler: anything with state_dict() and load_state_dict(). extra:
    tensors, numbers, strings, lists and dicts. keep: afterwards only the newest `keep` checkpoints up to this step stay
    in the directory, which then has to be one run's own; `path` is one of `checkpoint_path`.

    Whatever interrupts it, `path` holds either what it held before or the whole checkpoint. A directory that is missing
    is made. Raises OSError if the file cannot be written, TypeError or ValueError for what a checkpoint cannot hold.
    """
    path = Path(path)
    require_at_least("save_checkpoint", 0, step=step)
    if keep is not None:
        require_at_least("save_checkpoint", 1, keep=keep)
        if path.name != checkpoint_path("", step).name:
            wanted = f"with keep, checkpoint_path(directory, {step}) is asked for"
            raise ValueError(f"save_checkpoint(): path is {path.name!r}; {wanted}.")
    content = {
        "format": FORMAT,
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "optimizer_of": signature(model, optimizer),
        "schedule": state_of("save_checkpoint", "schedule", schedule),
        "sampler": state_of("save_checkpoint", "sampler", sampler),
        "generators": generator_states(),
        "extra": extra,
    }
    write(path, {key: storable(value, key) for key, value in content.items()})
    if keep is not None:
        _prune(path.parent, step, keep)
    return path


@checked
def load_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: Optimizer | None = None,
    *,
    schedule: object = None,
    sampler: object = None,
    generators: bool = True,
) -> Checkpoint:
    """Put model, optimizer, schedule, sampler and generators into the state that `save_checkpoint` saw.

    Model and optimizer stay on the devices where they are; tensors of `extra` arrive on the CPU. generators=False
    leaves torch's, NumPy's and Python's alone. Of the GPUs' generators those are restored that exist on both machines.

    Raises CheckpointDamaged (a ValueError) for a file that is damaged or no checkpoint, ValueError for one of another
    model, optimizer, schedule or sampler, OSError where there is nothing to read. None of them changes anything.
    """
    path = Path(path)
    content = read(path)
    require_fitting_model(path, content["model"], model)
    parts = {"sampler": sampler, "schedule": schedule, "optimizer": optimizer}
    given = {name: part for name, part in parts.items() if part is not None}
    for name, part in given.items():
        state_of("load_checkpoint", name, part)
        if content[name] is None:
            raise ValueError(f"load_checkpoint(): {path.name} was saved without a {name}, and one is given.")
    if optimizer is not None:
        require_fitting_optimizer(path, content["optimizer_of"], signature(model, optimizer))
    wanted = (path, content["generators"]) if generators else None
    load_all([(part, content[name]) for name, part in given.items()], wanted)
    model.load_state_dict(content["model"])
    return Checkpoint(path, content["step"], content["extra"])


@checked
def latest_checkpoint(directory: str | Path) -> Path | None:
    """The newest checkpoint in `directory` that is whole, or None. A newer one that is damaged is warned of by name."""
    for _, path in sorted(_checkpoints(Path(directory)), reverse=True):
        try:
            read(path, only_look=True)
        except CheckpointDamaged as damage:
            # The line that is named is the caller's, beyond the frames of `checked`.
            warnings.warn(f"{damage} The one before it is looked at.", RuntimeWarning, stacklevel=5)
        except FileNotFoundError:  # somebody tidied up meanwhile
            continue
        else:
            return path
    return None


def _checkpoints(directory: Path) -> Iterator[tuple[int, Path]]:
    for path in directory.iterdir() if directory.is_dir() else ():
        if (match := _NAME.fullmatch(path.name)) and path.is_file():
            yield int(match[1]), path


def _prune(directory: Path, step: int, keep: int) -> None:
    """Delete what is older than the newest `keep` up to `step`, and what killed processes left half-written."""
    done = sorted(found for found in _checkpoints(directory) if found[0] <= step)
    old = [path for _, path in done[:-keep]]
    half = [path for path in directory.iterdir() if (match := _HALF.fullmatch(path.name)) and int(match[1]) <= step]
    for path in old + half:
        with suppress(OSError):  # what cannot be deleted does no harm
            path.unlink(missing_ok=True)
