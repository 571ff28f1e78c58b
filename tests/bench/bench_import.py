"""What importing course_lib costs, against importing torch. Each import is a process of its own, in turns."""
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

TRIALS = 7
PEER = "import torch"
OURS = {
    "import course_lib": "import course_lib",
    "what a notebook imports": "import torch; from course_lib import check, hint, predict, setup, show",
    "the subject floor": "import course_lib.devices, course_lib.storage, course_lib.floats, course_lib.timing",
}


def seconds(statement: str) -> float:
    """The time that a fresh Python takes for one statement, start and end of the process included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def ratios() -> Iterator[tuple[str, float]]:
    """Median over the rounds of ours against the peer of the same round, so that a busy machine disturbs both alike."""
    statements = [PEER, *OURS.values()]
    rounds = [{statement: seconds(statement) for statement in statements} for _ in range(1 + TRIALS)]
    for name, statement in OURS.items():
        yield f"{name}, against {PEER}", statistics.median(one[statement] / one[PEER] for one in rounds[1:])
