"""What each of several GPUs has to hold, by how the model is divided among them: arithmetic, no communication.

ZeRO: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models". PyTorch calls
its third stage FSDP. Tensor parallel: Shoeybi et al. 2019, "Megatron-LM".
"""
import math
from dataclasses import replace

from course_lib.checked import checked
from course_lib.precision import ParameterBytes
from course_lib.transformer.parts import require_itemsize

# What is divided among the GPUs; the rest each of them holds whole.
SHARDINGS = {
    "replicated": (),
    "ZeRO-1": ("master", "state"),
    "ZeRO-2": ("master", "state", "gradients"),
    "ZeRO-3": ("master", "state", "gradients", "weights"),
    "tensor parallel": ("master", "state", "gradients", "weights"),
}


@checked
def sharded(bytes_per_parameter: ParameterBytes, sharding: str, num_gpus: int) -> ParameterBytes:
    """Bytes for each parameter of the model that one of `num_gpus` GPUs holds.

    `bytes_per_parameter` is what a recipe costs (`course_lib.precision`). `sharding` is one of `SHARDINGS`:
    "replicated" (plain data parallel), "ZeRO-1", "ZeRO-2", "ZeRO-3", or "tensor parallel", which divides every matrix;
    that norms and biases stay whole there is left out, they are a thousandth. Raises ValueError for another name and
    for less than one GPU.
    """
    divided = _require_sharding("sharded", sharding)
    _require_gpus("sharded", num_gpus)
    each = {name: size / num_gpus for name, size in bytes_per_parameter.parts.items() if name in divided}
    return replace(bytes_per_parameter, **each)


@checked
def step_traffic(parameters: float, sharding: str, num_gpus: int, *, itemsize: int = 2) -> float:
    """Bytes that each GPU sends in a training step to keep the state in step, gradients and weights in `itemsize`.

    Gradients are added up over all GPUs, and each gets what it needs of the new weights: in a ring that takes
    2·(n − 1)/n numbers for each parameter. ZeRO-3 gathers weights once more, for backward: 3·(n − 1)/n. (ZeRO, section
    7.) Tensor parallel sends activations instead, so it is refused here: four sums over all GPUs of batch · sequence ·
    dim numbers in each block.
    """
    _require_sharding("step_traffic", sharding)
    _require_gpus("step_traffic", num_gpus)
    if sharding == "tensor parallel":
        raise ValueError("step_traffic(): sharding is 'tensor parallel', whose traffic depends on the batch.")
    if not 0 < parameters < math.inf:
        raise ValueError(f"step_traffic(): parameters is {parameters}; a finite number above 0 is asked for.")
    require_itemsize("step_traffic", itemsize)
    rounds = 3 if sharding == "ZeRO-3" else 2
    return rounds * (num_gpus - 1) / num_gpus * parameters * itemsize


def _require_sharding(function: str, sharding: str) -> tuple[str, ...]:
    if sharding not in SHARDINGS:
        known = ", ".join(map(repr, SHARDINGS))
        raise ValueError(f"{function}(): sharding is {sharding!r}; one of {known} is asked for.")
    return SHARDINGS[sharding]


def _require_gpus(function: str, num_gpus: int) -> None:
    if num_gpus < 1:
        raise ValueError(f"{function}(): num_gpus is {num_gpus}; at least 1 is asked for.")
