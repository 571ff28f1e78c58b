"""Repeatable random numbers: one seed for all three generators, or a generator of its own for each purpose."""
import hashlib
import random

import numpy as np
import torch

from course_lib.checked import checked


@checked
def seed_everything(seed: int) -> None:
    """Seed torch (the CPU's generator and every GPU's), NumPy and Python: each has one of its own.

    All code shares these three, so that one extra draw anywhere shifts all that follows; see `make_generator`.
    Raises ValueError for a seed outside of 0 to 2³² − 1, which is what all three take.
    """
    _require_seed("seed_everything", seed)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@checked
def make_generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose, such as "weights" or "data": draws for another purpose do not shift its numbers.

    The same seed and purpose give the same numbers, on any machine with this version of torch; other seeds and
    purposes give unrelated ones. Raises ValueError for a seed outside of 0 to 2³² − 1 and an empty purpose.
    """
    _require_seed("make_generator", seed)
    if not purpose:
        raise ValueError("make_generator(): purpose is empty; a word for what is drawn is asked for.")
    digest = hashlib.sha256(f"{seed} {purpose}".encode()).digest()
    # torch's generator on the CPU looks at the lowest 32 bits of a seed alone, so no more are given.
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:4], "little"))


def _require_seed(function: str, seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"{function}(): seed is {seed}; 0 to {2**32 - 1} is asked for.")
