"""From counts to plans: how many days, how much memory, how large a model, with every assumption an argument."""
import math

from course_lib.checked import checked
from course_lib.precision import ParameterBytes
from course_lib.transformer.formulas import transformer_activations, transformer_parameters
from course_lib.transformer.model import GPTConfig
from course_lib.transformer.parts import Parts
from course_lib.transformer.sharding import sharded

SECONDS_PER_DAY = 24 * 60 * 60


@checked
def training_days(
    parameters: float,
    tokens: float,
    num_gpus: int,
    flop_per_sec: float,
    mfu: float,
    *,
    flops_per_parameter: float = 6,
) -> float:
    """Days to train on so many tokens.

    - `flop_per_sec` is what one GPU promises, dense, in the dtype that runs (`get_promised_flop_per_sec`)
    - `mfu` is the share of it that the training reaches, above 0 and at most 1
    - `flops_per_parameter`: for each parameter and token. 6 is forward and backward; 8 has the forward pass twice; a
      transformer's attention comes on top, `transformer_flops(config, training=True)` counts it

    70e9 parameters, 15e12 tokens, 1024 H100s at half of 989.5e12 FLOP/s take 143.93 days. Not in it: restarts,
    evaluation, GPUs that wait for each other beyond what `mfu` says.

    Raises ValueError for what is not a finite number above 0, and for an mfu above 1.
    """
    given = {"parameters": parameters, "tokens": tokens, "num_gpus": num_gpus, "flop_per_sec": flop_per_sec}
    _require_positive("training_days", **given, mfu=mfu, flops_per_parameter=flops_per_parameter)
    if mfu > 1:
        raise ValueError(f"training_days(): mfu is {mfu}; a share of the promise, at most 1, is asked for.")
    return flops_per_parameter * parameters * tokens / (num_gpus * flop_per_sec * mfu) / SECONDS_PER_DAY


@checked
def largest_model(
    num_gpus: int,
    memory_bytes: float,
    bytes_per_parameter: ParameterBytes,
    sharding: str,
    *,
    reserved_bytes: float = 0,
) -> float:
    """Parameters of the largest model whose weights, gradients and optimizer state fit.

    `memory_bytes` is the memory of one GPU, of which `reserved_bytes` are kept free for activations and whatever else
    needs room; `bytes_per_parameter` is a recipe's, and `sharding` says what of it is divided (see `sharded`).

    Eight H100s of 80e9 bytes hold 40.0e9 parameters of 16 bytes each with nothing reserved and everything sharded, and
    5.0e9 if each GPU has its own copy. Raises ValueError for what is not a finite number above 0.
    """
    _require_positive("largest_model", num_gpus=num_gpus, memory_bytes=memory_bytes)
    if not 0 <= reserved_bytes < memory_bytes:
        came = f"reserved_bytes is {reserved_bytes}"
        raise ValueError(f"largest_model(): {came}; at least 0 and less than memory_bytes is asked for.")
    each = sharded(bytes_per_parameter, sharding, num_gpus).total
    _require_positive("largest_model", **{"bytes_per_parameter.total": each})
    return (memory_bytes - reserved_bytes) / each


@checked
def transformer_memory(
    config: GPTConfig,
    batch: int,
    sequence: int | None = None,
    *,
    bytes_per_parameter: ParameterBytes,
    itemsize: int,
    recompute: bool = False,
    sharding: str = "replicated",
    num_gpus: int = 1,
) -> Parts:
    """Bytes that training takes on each GPU, by part; `batch` and `sequence` are what one GPU works on at a time.

    `bytes_per_parameter` is a recipe's (`course_lib.precision`), `itemsize` is bytes of an activation. The sum is what
    to plan with; it is not the peak. Where activations outweigh gradients the peak is at the beginning of backward:
    gradients are not there yet, but twice as much again as the logits is, for their own. `course_lib.accounting` finds
    it exactly.

    Tensor parallel is refused, as it divides activations, too: see `korthikanti_activations`.
    """
    if sharding == "tensor parallel":
        raise ValueError("transformer_memory(): sharding is 'tensor parallel', which divides activations as well.")
    each, parameters = sharded(bytes_per_parameter, sharding, num_gpus), transformer_parameters(config).total
    activations = transformer_activations(config, batch, sequence, itemsize=itemsize, recompute=recompute)
    parts = {
        "weights": parameters * each.weights,
        "gradients": parameters * each.gradients,
        "master weights": parameters * each.master,
        "optimizer state": parameters * each.state,
        "activations of the blocks": activations.total - activations["head"],
        "logits and loss": activations["head"],
    }
    return Parts(parts, "bytes")


def _require_positive(function: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{function}(): {name} is {value}; a finite number above 0 is asked for.")
