"""`save_checkpoint` against torch.save and a flush of the same state, and a verified load against torch.load."""
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

from course_lib.checkpoint import load_checkpoint, save_checkpoint

ROUNDS = 15


def shortest(calls: list[Callable[[], object]]) -> list[float]:
    """The seconds of each call's quickest round, in turns. Seconds of the clock: a flush is waiting, not computing."""
    rounds = []
    for _ in range(ROUNDS):
        times = []
        for call in calls:
            os.sync()  # nobody pays for what another one wrote
            begin = perf_counter()
            call()
            times.append(perf_counter() - begin)
        rounds.append(times)
    return [min(times) for times in zip(*rounds, strict=True)]


def plain_save(path: Path, state: dict) -> None:
    """What everybody writes, and a flush, without which a peer would leave its bytes in the system's memory."""
    torch.save(state, path)
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def ratios() -> Iterator[tuple[str, float]]:
    """A model of 8 million parameters with AdamW's state: 100 MB."""
    model = nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(8)))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 1000)).sum().backward()
    optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.pt"), Path(folder, "theirs.pt")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}
        own, peer = shortest(
            [lambda: save_checkpoint(ours, model, optimizer, 1), lambda: plain_save(theirs, state)]
        )
        yield "save_checkpoint of 100 MB, against torch.save and a flush", own / peer

        def plain_load() -> None:
            content = torch.load(theirs, weights_only=True)
            model.load_state_dict(content["model"])
            optimizer.load_state_dict(content["optimizer"])

        own, peer = shortest([lambda: load_checkpoint(ours, model, optimizer), plain_load])
        yield "load_checkpoint of 100 MB, checksums verified, against torch.load, none verified", own / peer
