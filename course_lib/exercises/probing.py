"""What the probes of several notebooks share: a sentence instead of a traceback, and everybody's generators."""
import random

import numpy as np
import torch

from course_lib.exercises.engine.freeze import kind_of


def require(holds: bool, came: object, wanted: str) -> None:
    """TypeError with a sentence for the learner if an answer is of a kind that a probe cannot look into."""
    if not holds:
        raise TypeError(f"it gave {_kinds(came)}, and should give {wanted}")


def _kinds(value: object) -> str:
    """The word for a value's type, and for those of its parts if it has a few."""
    if isinstance(value, tuple | list) and 0 < len(value) <= 4:
        return f"{kind_of(value)} of {', '.join(map(kind_of, value))}"
    return kind_of(value)


def is_pair(value: object, kind: type | tuple[type, ...]) -> bool:
    """Whether a value is a tuple or list of two things of this kind."""
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(part, kind) for part in value)


class SharedGenerators:
    """The generators that torch, NumPy and Python keep for everybody, and which of them moved since this was made."""

    def __init__(self) -> None:
        seed = 20_231  # none that an answer would think of: whoever seeds them is seen, too
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        self.before = self._states()

    def moved(self) -> list[str]:
        """Their names."""
        return [name for name, state in self._states().items() if state != self.before[name]]

    @staticmethod
    def _states() -> dict[str, object]:
        numpys = np.random.get_state(legacy=False)["state"]
        return {
            "torch": torch.get_rng_state().numpy().tobytes(),
            "numpy": (numpys["key"].tobytes(), numpys["pos"]),
            "random": random.getstate(),
        }
