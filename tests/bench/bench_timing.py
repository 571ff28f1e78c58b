"""What time_matmul measures, against torch.utils.benchmark on the same product in the same run: 1 means they agree."""
from collections.abc import Iterator

import torch
from torch.utils import benchmark

from course_lib.timing import time_matmul

ROUNDS = 9
SIDES = 64, 256, 1024


def of_torch(a: torch.Tensor, b: torch.Tensor) -> float:
    """Median seconds of a @ b as torch measures them, with as many threads as ours."""
    timer = benchmark.Timer("a @ b", globals={"a": a, "b": b}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=0.05).median


def ratios() -> Iterator[tuple[str, float]]:
    """The shortest of ours against the shortest of the peer's, in turns: a busy machine makes none shorter."""
    for side in SIDES:
        a, b = torch.randn(2, side, side)
        rounds = [(time_matmul(a, b), of_torch(a, b)) for _ in range(ROUNDS)]
        ours, theirs = map(min, zip(*rounds, strict=True))
        yield f"seconds of a {side}×{side} product by time_matmul, against torch.utils.benchmark", ours / theirs
