"""Kills a training process again and again, wherever it may be, and sees that it goes on as if nothing had happened.

    python tests/kill_and_resume.py [--kills 200] [--seed 0]

A run trains a small model with dropout, AdamW and a schedule, on batches that depend on a sampler and on torch's,
NumPy's and Python's generators. It saves a checkpoint after every step and keeps two. Each of its lives is a process of
its own that is killed (SIGKILL) after a random time, until one comes to the end. What that one saves last has to be bit
for bit what a run that nobody killed saves last. Ends with 1 if anything differs or cannot be read.
"""
import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from course_lib.checkpoint import (
    CheckpointDamaged,
    checkpoint_path,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from course_lib.checkpoint.file import read
from course_lib.data import TokenSampler
from course_lib.randomness import seed_everything
from course_lib.schedules import cosine

STEPS, VOCABULARY, PATIENCE_SECONDS = 80, 16, 300
UNREADABLE = "unreadable files under a checkpoint's name"
STRANDED = "kills that left nothing to go on from where there had been a checkpoint"


def live(directory: str, started: Connection | None = None, steps: int = STEPS) -> None:
    """One life of a run: go on from the newest checkpoint, if there is one, and train to the end."""
    torch.set_num_threads(1)
    seed_everything(0)
    model = nn.Sequential(nn.Embedding(VOCABULARY, 12), nn.Dropout(0.2), nn.Linear(12, VOCABULARY))
    optimizer = AdamW(model.parameters(), lr=0.02)
    schedule = LambdaLR(optimizer, cosine(STEPS))
    sampler = TokenSampler(np.arange(997, dtype=np.uint16) ** 2 % VOCABULARY, 4, 8, seed=1)
    if started is not None:
        started.send("training begins")
    newest, step = latest_checkpoint(directory), 0
    if newest is not None:
        step = load_checkpoint(newest, model, optimizer, schedule=schedule, sampler=sampler).step
    while step < steps:
        train_step(model, optimizer, sampler)
        schedule.step()
        step += 1
        path = checkpoint_path(directory, step)
        save_checkpoint(path, model, optimizer, step, schedule=schedule, sampler=sampler, keep=2)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, sampler: TokenSampler) -> None:
    """All three generators and the sampler have a say in it, so that a run without one of them would go elsewhere."""
    x, y = next(sampler)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) * random.uniform(0.5, 1.5) * np.random.uniform(0.5, 1.5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def start(context: BaseContext, directory: Path) -> multiprocessing.Process:
    """Begin a life; returns once it is about to look for a checkpoint."""
    ours, theirs = context.Pipe(duplex=False)
    life = context.Process(target=live, args=(str(directory), theirs))
    life.start()
    theirs.close()
    if not ours.poll(PATIENCE_SECONDS):
        life.kill()
        raise TimeoutError(f"A life did not begin within {PATIENCE_SECONDS} seconds.")
    ours.recv()
    return life


def flat(value: object) -> Iterator[object]:
    """Everything in a checkpoint, one by one; tensors as their bytes, so that equal means bit-equal."""
    if isinstance(value, dict):
        value = [one for pair in value.items() for one in pair]
    if isinstance(value, list | tuple):
        for one in value:
            yield from flat(one)
    else:
        is_tensor = isinstance(value, torch.Tensor)
        yield (value.dtype, value.shape, value.numpy().tobytes()) if is_tensor else value


def look(directory: Path, counts: Counter) -> None:
    """What a kill has left: files that cannot be read, half-written ones, and whether there is one to go on from."""
    whole = []
    for path in sorted(directory.glob("step-*.pt")):
        try:
            read(path, only_look=True)
            whole.append(path)
        except CheckpointDamaged:
            counts[UNREADABLE] += 1
    counts["kills while a file was being written"] += any(directory.glob(".*.partial"))
    counts[STRANDED] += directory in SAVED and not whole
    SAVED.update([directory] if whole else [])


SAVED: set[Path] = set()  # runs that have had a whole checkpoint


def run(context: BaseContext, directory: Path, chance: random.Random, seconds: float, counts: Counter) -> None:
    """Lives of one run until one reaches the end. Each is killed after 0 to `seconds` seconds, if it is still there."""
    while counts["kills"] < counts["asked for"]:
        life = start(context, directory)
        life.join(chance.uniform(0, seconds))
        if life.exitcode is None:
            life.kill()
            life.join(PATIENCE_SECONDS)
        if life.exitcode == 0:
            return
        if life.exitcode > 0:
            raise RuntimeError(f"A life ended by itself, with {life.exitcode}: it could not go on.")
        counts["kills"] += 1
        look(directory, counts)
    start_and_wait(context, directory)


def start_and_wait(context: BaseContext, directory: Path) -> float:
    """A life that nobody kills; the seconds from its first look for a checkpoint to its end."""
    life, begin = start(context, directory), time.perf_counter()
    life.join(PATIENCE_SECONDS)
    if life.exitcode != 0:
        life.kill()
        raise RuntimeError(f"A life that nobody killed ended with {life.exitcode}.")
    return time.perf_counter() - begin


def main() -> int:
    """Kill until there were enough kills, let the last run finish, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # A fork has torch imported already and begins within milliseconds; elsewhere than on Linux it is not safe.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    chance, counts = random.Random(asked.seed), Counter({"asked for": asked.kills, UNREADABLE: 0, STRANDED: 0})
    with tempfile.TemporaryDirectory() as folder:
        live(str(Path(folder, "warm-up")), steps=1)  # imports what the first step needs
        seconds = start_and_wait(context, Path(folder, "never killed")) / 3
        want = list(flat(read(checkpoint_path(Path(folder, "never killed"), STEPS))))
        while counts["kills"] < asked.kills:
            directory = Path(folder, f"run {counts['runs']}")
            run(context, directory, chance, seconds, counts)
            counts["runs"] += 1
            counts["runs that ended bit-equal"] += want == list(flat(read(checkpoint_path(directory, STEPS))))
    return report(counts)


def report(counts: Counter) -> int:
    """Print the figures; 0 if all is well."""
    del counts["asked for"]
    print(*(f"{count:5}  {name}" for name, count in counts.items()), sep="\n")
    bad = counts[UNREADABLE] + counts[STRANDED]
    return int(bad > 0 or counts["runs"] == 0 or counts["runs that ended bit-equal"] < counts["runs"])


if __name__ == "__main__":
    sys.exit(main())
