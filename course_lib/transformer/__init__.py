"""A small GPT and its whole account: parameters, FLOPs, bytes, days, and what fits on how many GPUs.

- `model.py`: the model itself, and the sizes of GPT-2
- `formulas.py`: its parameters, FLOPs and activations, part by part, without building it
- `planning.py`: from those to days, and to the largest model that fits, with every assumption an argument
- `sharding.py`: what data parallel, ZeRO and tensor parallel leave on each GPU
- `parts.py`: a sum by its parts, which all of them return
"""
from course_lib.transformer.formulas import (
    korthikanti_activations,
    transformer_activations,
    transformer_flops,
    transformer_parameters,
)
from course_lib.transformer.model import GPT, GPT2, Block, CausalAttention, GPTConfig, next_token_loss
from course_lib.transformer.parts import Parts
from course_lib.transformer.planning import largest_model, training_days, transformer_memory
from course_lib.transformer.sharding import SHARDINGS, sharded, step_traffic

__all__ = [
    "GPT",
    "GPT2",
    "SHARDINGS",
    "Block",
    "CausalAttention",
    "GPTConfig",
    "Parts",
    "korthikanti_activations",
    "largest_model",
    "next_token_loss",
    "sharded",
    "step_traffic",
    "training_days",
    "transformer_activations",
    "transformer_flops",
    "transformer_memory",
    "transformer_parameters",
]
