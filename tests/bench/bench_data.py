"""`get_batch` against the list-of-slices way of the lecture, and against a plain NumPy gather."""
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from timeit import repeat

import numpy as np
import torch

from course_lib.data import get_batch, open_tokens, write_tokens

TOKENS = 20_000_000
SIZES = (4, 64), (12, 1024), (64, 1024)


def list_of_slices(tokens: np.ndarray, batch_size: int, sequence_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The lecture's way, completed by what it leaves out: targets, int64, and the last start."""
    starts = torch.randint(len(tokens) - sequence_length, (batch_size,))
    x = torch.tensor([tokens[start : start + sequence_length] for start in starts])
    y = torch.tensor([tokens[start + 1 : start + 1 + sequence_length] for start in starts])
    return x.long(), y.long()


def plain_gather(tokens: np.ndarray, batch_size: int, sequence_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One index for each token of the batch."""
    starts = torch.randint(len(tokens) - sequence_length, (batch_size,)).numpy()
    drawn = tokens[starts[:, None] + np.arange(sequence_length + 1)].astype(np.int64)
    return torch.from_numpy(drawn[:, :-1]).contiguous(), torch.from_numpy(drawn[:, 1:]).contiguous()


def ratios() -> Iterator[tuple[str, float]]:
    """How many times our time the peers take: the shortest of each, in turns; a busy machine makes none shorter."""
    warnings.filterwarnings("ignore", "Creating a tensor from a list of numpy")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "tokens.bin")
        write_tokens(path, np.random.default_rng(0).integers(0, 50_000, TOKENS))
        tokens = open_tokens(path)
        tokens.max()  # every page is in memory from here on: it is the loaders that are compared, not a disk
        for size in SIZES:
            ours, *theirs = shortest([get_batch, list_of_slices, plain_gather], tokens, *size)
            lecture, gather = (peer / ours for peer in theirs)
            yield f"the lecture's list of slices for {size[0]} × {size[1]} tokens, against get_batch", lecture
            yield f"a plain NumPy gather of {size[0]} × {size[1]} tokens, against get_batch", gather
        del tokens


def shortest(loaders: list, *args: object) -> list[float]:
    """The processor's seconds for each loader's quickest batch."""
    rounds = [
        [min(repeat(lambda load=load: load(*args), number=5, repeat=3, timer=process_time)) for load in loaders]
        for _ in range(7)
    ]
    return [min(times) for times in zip(*rounds, strict=True)]
