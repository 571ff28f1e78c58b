"""`account`: what one training step of any PyTorch model takes, found out without memory and without arithmetic."""
import warnings
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.accounting.refusals import Refusal, explained
from course_lib.accounting.rehearsal import rehearse
from course_lib.accounting.report import Account
from course_lib.accounting.stage import OnMeta, Stage, world_left_as_it_is
from course_lib.calls import require_no_arguments
from course_lib.checked import checked, describe
from course_lib.devices import as_device


@checked
def account(
    build_model: Callable[[], nn.Module],
    build_batch: Callable[[], object],
    loss: Callable[[object], Tensor] | None = None,
    optimizer: Callable[[Iterable], Optimizer] | None = None,
    *,
    device: torch.device | str | None = "cpu",
) -> Account:
    """Account for one training step of any PyTorch model, FLOPs and bytes, without running it.

    The model is built without memory and takes its step without arithmetic, so that a model with 70 billion parameters
    takes seconds and a few hundred megabytes. What the numbers mean is said in `Account`, which comes back.

    - `build_model()` returns the model. For one that exists already pass `lambda: model`; it is left untouched.
    - `build_batch()` returns the model's input, a tuple of inputs, or a dict of inputs by name.
    - `loss(output)` returns a tensor with one number; by default it is `output.pow(2).mean()`.
    - `optimizer(parameters)` returns an optimizer, such as `torch.optim.AdamW` or `lambda p: SGD(p, lr=1)`.
    - `device` is the one whose kernels to account for. "cpu", the default, gives the same answer on every machine;
      "cuda" needs a GPU; None means `get_device()`. FLOPs are the same on all.

    On the CPU with oneDNN off, parameters, gradients, optimizer state and activations are a real step's to the byte,
    and the peak of transformers and MLPs with a million parameters or more is within 1 %. What is not seen:

    - in the peak, memory that a kernel takes and gives back (convolutions, 16-bit matrix products, cuBLAS)
    - what CUDA's allocator adds when it rounds up to 512 bytes
    - generator states that activation checkpointing keeps, 5 kB for each checkpoint, and 8 bytes for each Python number
      that autograd keeps, such as the 0.5 of `x * 0.5`
    - in the activations, what a custom autograd function keeps by other means than `save_for_backward`

    The output is taken to be dropped once the loss is known. Numbers that an optimizer reads off tensors are taken to
    be 1.

    Raises ValueError, in one sentence, for what cannot be accounted for: a model that reads numbers off tensors
    (`.item()`, an `if` on data), a batch that the model refuses, a loss that is not one number or has no gradient,
    sparse, nested and quantized tensors, an optimizer that runs the model within its step (LBFGS), and "cuda" where
    torch finds no GPU.
    """
    for name, function in (("build_model", build_model), ("build_batch", build_batch)):
        if isinstance(function, nn.Module):
            raise TypeError(f"account(): {name} is {describe(function)}; a function is asked for: pass lambda: model.")
        require_no_arguments("account", name, function)
    place = as_device(device)
    try:
        with world_left_as_it_is(place):
            return _account(build_model, build_batch, loss or _mean_square, optimizer, place)
    except Refusal as refusal:
        sentence = f"account(): {refusal}"
    raise ValueError(sentence)


def _account(
    build_model: Callable, build_batch: Callable, loss: Callable, optimizer: Callable | None, device: torch.device
) -> Account:
    with OnMeta(), torch.device("meta"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "for .*: copying from a non-meta parameter")  # load_state_dict, on meta
        with explained("build_model()"):
            model = build_model()
        with explained("build_batch()"):
            batch = build_batch()
    if not isinstance(model, nn.Module):
        raise Refusal(f"build_model() returns {describe(model)}; a torch.nn.Module is asked for.")
    if isinstance(batch, Mapping):
        batch = dict(batch)
    stage = Stage(device)
    with stage.mode, stage.replaced(model), stage.replaced(batch) as inputs:
        return rehearse(model, inputs, loss, optimizer, stage)


def _mean_square(output: object) -> Tensor:
    if isinstance(output, Tensor):
        return output.pow(2).mean()
    key = repr(next(iter(output), "key")) if isinstance(output, dict) else "0"
    raise Refusal(
        f"the model returns a {type(output).__name__}, not a tensor; say what the loss is, such as "
        f"loss=lambda output: output[{key}].pow(2).mean()."
    )
