"""`python -m course_lib.accounting` explains itself by an example."""
import inspect

import torch
from torch import nn

from course_lib.accounting import Account, account


def _example() -> Account:
    """Three matrices, 64×64, 64×64 and 64×1, trained with AdamW on batches of eight rows."""
    return account(
        build_model=lambda: nn.Sequential(*(nn.Linear(64, width, bias=False) for width in (64, 64, 1))),
        build_batch=lambda: torch.randn(8, 64),
        loss=lambda output: output.pow(2).mean(),
        optimizer=torch.optim.AdamW,
    )


if __name__ == "__main__":
    step = _example()
    rule = 6 * 8 * step.parameters
    print("account() says what one training step of a model takes, before anything is run.\n")
    print(inspect.getsource(_example))
    print(step)
    print(f"\nThe rule of thumb, 6 FLOPs per row and parameter, says 6 · 8 · {step.parameters:,} = {rule:,} FLOPs.")
    print(f"That is {rule - step.total_flops:,} = 2 · 8 · 64 · 64 too many: nobody needs the gradient of the data.")
    print('Read on: python -c "from course_lib.accounting import account; help(account)"')
