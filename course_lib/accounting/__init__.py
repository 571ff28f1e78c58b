"""What one training step of a model takes, in FLOPs and in bytes, known before anything is run.

- `step.py`: `account`, where a caller comes in
- `rehearsal.py`: the step itself: forward, backward, the optimizer
- `stage.py`: on what it is rehearsed: tensors without memory
- `meter.py`, `flops.py`: what is read off meanwhile
- `report.py`: `Account`, what comes out; `refusals.py`: what is refused, and in which words
"""
from course_lib.accounting.report import Account, Saved
from course_lib.accounting.step import account

__all__ = ["Account", "Saved", "account"]
