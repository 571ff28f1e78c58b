"""Learning-rate schedules: which share of the learning rate each step takes.

A schedule is a function of the step, counted from 0, as torch's `LambdaLR` asks for:
`LambdaLR(optimizer, warmup(100, then=cosine(900)))`. It remembers nothing, so that a resumed run needs only its step.
"""
import math
from collections.abc import Callable

from course_lib.checked import checked, require_at_least

Schedule = Callable[[int], float]


@checked
def constant(step: int) -> float:
    """1 at every step: the learning rate as it is. Raises ValueError for a negative step."""
    require_at_least("constant", 0, step=step)
    return 1.0


@checked
def cosine(steps: int, final: float = 0.0) -> Schedule:
    """Half a cosine wave from 1 at step 0 down to `final` at step `steps`, and `final` from there on.

    Step t takes final + (1 − final)·(1 + cos(π·t/steps))/2. (torch's CosineAnnealingLR rises again after `steps`.)
    Raises ValueError for fewer than 1 step and for a `final` outside of 0 to 1.
    """
    require_at_least("cosine", 1, steps=steps)
    if not 0 <= final <= 1:
        raise ValueError(f"cosine(): final is {final}; a share from 0 to 1 is asked for.")

    def schedule(step: int) -> float:
        require_at_least("cosine(…)", 0, step=step)
        return final + (1 - final) * (1 + math.cos(math.pi * min(step / steps, 1))) / 2

    return schedule


@checked
def warmup(steps: int, then: Schedule = constant) -> Schedule:
    """A straight line up to 1 within the first `steps` steps, and after them `then`, which counts from 0 again.

    Step t takes (t + 1)/steps: the first step is not lost to a learning rate of 0, and step `steps` − 1 is a full one.
    Raises ValueError for a negative number of steps.
    """
    require_at_least("warmup", 0, steps=steps)

    def schedule(step: int) -> float:
        require_at_least("warmup(…)", 0, step=step)
        return (step + 1) / steps if step < steps else then(step - steps)

    return schedule
