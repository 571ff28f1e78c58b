"""Which numbers of a training step have how many bits: recipes that `train` can be given, block formats, accounting."""
from course_lib.precision.formats import FP8, MXFP4, MXFP8, NVFP4, BlockFormat, stochastic_round
from course_lib.precision.master import MasterWeights, PlainBFloat16, StochasticBFloat16
from course_lib.precision.recipes import AutocastBFloat16, ParameterBytes, Precision, ScaledFloat16, SimulatedMatmuls

__all__ = [
    "FP8",
    "MXFP4",
    "MXFP8",
    "NVFP4",
    "AutocastBFloat16",
    "BlockFormat",
    "MasterWeights",
    "ParameterBytes",
    "PlainBFloat16",
    "Precision",
    "ScaledFloat16",
    "SimulatedMatmuls",
    "StochasticBFloat16",
    "stochastic_round",
]
