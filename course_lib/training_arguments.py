"""What `train` asks of its arguments, and of what the functions among them return; all else is one sentence."""
import inspect
import math
import os
from collections.abc import Callable

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.calls import require_takes
from course_lib.checked import checked, describe


@checked
def require_run(model: nn.Module, optimizer: Optimizer, loss: Callable, functions: dict) -> None:
    """Raise one sentence unless these can be trained with; `functions` holds what is called, and with what."""
    if isinstance(loss, type) and issubclass(loss, nn.Module):
        raise TypeError(f"train(): loss is {describe(loss)}; a function is asked for, such as {loss.__name__}().")
    for name, (function, *arguments) in functions.items():
        if function is not None:
            require_takes("train", name, function, *arguments)
    if any(p.is_meta for p in model.parameters()):
        raise ValueError("train(): model is on the meta device, where there are no numbers to train.")
    needed = [p.name for p in inspect.signature(optimizer.step).parameters.values() if p.default is p.empty]
    if "closure" in needed:
        came = f"optimizer is {type(optimizer).__name__}, which computes the loss several times in a step"
        raise ValueError(f"train(): {came}; one whose step() needs no closure is asked for.")


@checked
def require_numbers(num_train_steps: int, start_step: int, max_grad_norm: float | None) -> None:
    """Raise one sentence unless these numbers can be."""
    if num_train_steps < 0:
        raise ValueError(f"train(): num_train_steps is {num_train_steps}; at least 0 is asked for.")
    if not 0 <= start_step <= num_train_steps:
        raise ValueError(f"train(): start_step is {start_step}; 0 to num_train_steps = {num_train_steps} is asked for.")
    if max_grad_norm is not None and not 0 < max_grad_norm < math.inf:
        raise ValueError(f"train(): max_grad_norm is {max_grad_norm}; a finite number above 0, or None, is asked for.")


@checked
def require_checkpoints(directory: str | os.PathLike | None, sampler: object, **counts: int | None) -> None:
    """Raise one sentence unless checkpoints can be written like this: here, and not after hours of training."""
    for name, count in counts.items():
        if count is not None and directory is None:
            raise ValueError(f"train(): {name} needs a checkpoint_directory to write to.")
        if count is not None and count < 1:
            raise ValueError(f"train(): {name} is {count}; at least 1, or None, is asked for.")
    if directory is None:
        return
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise NotADirectoryError(f"train(): checkpoint_directory is {str(directory)!r}, which is no directory.")
    if sampler is not None and not (hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict")):
        raise TypeError(f"train(): sampler is {describe(sampler)}; something with state_dict() is asked for.")


@checked
def require_batch(get_batch: Callable[[], object], step: int) -> tuple[Tensor, Tensor]:
    """What `get_batch` returns for this step, if it is x and y."""
    try:
        batch = get_batch()
    except StopIteration:
        came = f"get_batch() has no more batches at step {step}"
        raise ValueError(f"train(): {came}; one that begins again, or fewer steps, are asked for.") from None
    if not (isinstance(batch, tuple | list) and len(batch) == 2 and all(isinstance(one, Tensor) for one in batch)):
        raise TypeError(f"train(): get_batch() returned {describe(batch)}; a pair of tensors, x and y, is asked for.")
    return batch[0], batch[1]


@checked
def require_scalar(loss: object) -> None:
    """Raise one sentence unless backward can start from this."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        raise ValueError(f"train(): loss(model(x), y) is {describe(loss)}; a tensor with one element is asked for.")
    if not loss.requires_grad or not loss.is_floating_point():
        came = f"{describe(loss)} that has no gradient" if not loss.requires_grad else describe(loss)
        wanted = "a float that depends on parameters with requires_grad, outside of torch.no_grad()"
        raise ValueError(f"train(): loss(model(x), y) is {came}; {wanted}, is asked for.")


@checked
def require_gradients(gradients: list[Tensor]) -> None:
    """Raise one sentence unless there are gradients, all of them dense."""
    if not gradients:
        wanted = "an optimizer of the model's own parameters is asked for"
        raise ValueError(f"train(): no parameter of the optimizer got a gradient; {wanted}.")
    if sparse := [g for g in gradients if g.is_sparse]:
        wanted = "dense ones are asked for (an Embedding gives them without sparse=True)"
        raise ValueError(f"train(): a gradient of shape {tuple(sparse[0].shape)} is sparse; {wanted}.")


@checked
def share_of(schedule: Callable[[int], object], step: int) -> float:
    """What the schedule says for this step, if it is a share: NaN would end up in all weights."""
    share = schedule(step)
    alone = isinstance(share, np.number) or (isinstance(share, Tensor) and share.numel() == 1)
    number = share.item() if alone else share
    if not isinstance(number, int | float) or not 0 <= number < math.inf:
        raise ValueError(f"train(): schedule({step}) is {describe(share)}; a finite number of at least 0 is asked for.")
    return float(number)
