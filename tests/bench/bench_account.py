"""`account`, against an ordinary training step that answers the same: FLOPs, what autograd saves, and the peak."""
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.accounting import account
from course_lib.storage import measure_peak_memory

sys.path.insert(0, str(Path(__file__).parents[1]))
from accounting_models import Transformer, next_token, tokens

ROUNDS = 5
SIZES = {"GPT of 6 million parameters, 8 × 128 tokens": (256, 6), "GPT of 26 million, 8 × 128 tokens": (512, 8)}


def in_earnest(build_model: Callable, build_batch: Callable) -> None:
    """One step under FlopCounterMode with a hook on what autograd saves, and one at the allocator."""
    model, batch, saved = build_model(), build_batch(), {}
    optimizer = torch.optim.AdamW(model.parameters())

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    def step() -> None:
        optimizer.zero_grad()
        next_token(model(batch)).backward()
        optimizer.step()

    with FlopCounterMode(display=False), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step()
    measure_peak_memory(step, "cpu")


def seconds(call: Callable, *args: Callable) -> float:
    start = perf_counter()
    call(*args)
    return perf_counter() - start


def ratios() -> Iterator[tuple[str, float]]:
    """The shortest of ours against the shortest of the peer's, in turns: a busy machine makes none shorter."""
    for name, (width, depth) in SIZES.items():

        def build_model(width: int = width, depth: int = depth) -> Transformer:
            return Transformer(vocabulary=5000, context=128, dim=width, depth=depth, heads=8)

        task = build_model, tokens(8, 128, 5000)
        rounds = [
            (seconds(account, *task, next_token, torch.optim.AdamW), seconds(in_earnest, *task)) for _ in range(ROUNDS)
        ]
        ours, theirs = map(min, zip(*rounds, strict=True))
        yield f"seconds of account, against a step under FlopCounterMode ({name}, AdamW)", ours / theirs
