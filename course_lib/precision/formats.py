"""Small floats with scales, simulated, and stochastic rounding: what is left of numbers that are stored in few bits.

Sources: the Open Compute Project's Microscaling Formats (MX) Specification 1.0, sections 5.2 and 6.3, for blocks of 32
with a power-of-two scale; NVIDIA's description of NVFP4 (2025) for blocks of 16 with an E4M3 scale and a float32 scale
for the tensor.
"""
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import BFloat16, Float, Float32
from torch import Tensor

from course_lib.checked import checked
from course_lib.floats import E2M1, E4M3, FloatFormat

Scale = Literal["power of two", "E4M3", "float32"]
_SCALE_BITS = {"power of two": 8, "E4M3": 8, "float32": 32}
_LOWEST, _HIGHEST = -127, 127  # exponents of a power-of-two scale: it is stored as 8 bits of exponent and nothing else


@dataclass(frozen=True)
class BlockFormat:
    """Numbers of the format `element`, each times the scale of its block: `block` neighbours along one axis.

    `scale` says how the scale is kept:

    - "power of two": the largest power of two in the block, divided by the largest in `element` (MX); numbers between
      there and the next power of two saturate;
    - "E4M3": the block's largest magnitude / `element.max`, rounded to E4M3 in units of a float32 scale for the whole
      tensor, which brings the largest of these scales to 448 (NVFP4);
    - "float32": the block's largest magnitude / `element.max`.

    With `block` None the whole tensor is one block.
    """

    name: str
    element: FloatFormat
    block: int | None
    scale: Scale

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise ValueError(f"BlockFormat(): block is {self.block}; at least 1, or None, is asked for.")

    @property
    def bits(self) -> float:
        """Bits per number, scales included, in a tensor of full blocks; a scale for the whole tensor is left out."""
        return self.element.bits + (_SCALE_BITS[self.scale] / self.block if self.block is not None else 0)

    @checked
    def round_tensor(self, x: Float[Tensor, "*shape"], axis: int = -1) -> Float[Tensor, "*shape"]:
        """What is left of `x` when it is stored in this format: x's shape, dtype and units.

        Blocks lie along `axis`; where its size is no multiple of `block`, the last block is shorter. A block (of NVFP4,
        a tensor) that holds an infinity or a NaN, or asks for a float32 scale beyond float32, becomes NaN. Raises
        ValueError for an axis that x does not have, and for a sparse x.
        """
        if x.layout is not torch.strided:
            raise ValueError(f"round_tensor(): x is of layout {x.layout}; a dense tensor is asked for.")
        if x.ndim == 0:
            return self.round_tensor(x.reshape(1), axis).reshape(())
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"round_tensor(): axis is {axis}; {-x.ndim} to {x.ndim - 1} is asked for.")
        if x.numel() == 0:
            return x.clone()
        if self.block is None:
            return self._round_blocks(x.detach().double().reshape(1, -1)).view(x.shape).to(x.dtype)
        wide = x.detach().double().movedim(axis, -1)
        block = min(self.block, wide.shape[-1])  # a block that is longer than x takes no more memory than x
        padding = -wide.shape[-1] % block
        blocks = F.pad(wide, (0, padding)).unflatten(-1, (-1, block))
        rounded = self._round_blocks(blocks).flatten(-2)[..., : wide.shape[-1]]
        return rounded.movedim(-1, axis).to(x.dtype)

    def _round_blocks(self, blocks: Tensor) -> Tensor:
        """Each row of the last axis with a scale of its own. In float64, so that dividing by a scale rounds nothing."""
        largest = blocks.abs().amax(-1, keepdim=True)
        scales = self._scales(largest)
        usable = torch.where(scales.isfinite() & (scales > 0), scales, 1.0)
        rounded = self.element.round_tensor((blocks / usable).nan_to_num()) * scales
        return torch.where(scales.isfinite(), rounded, torch.nan)

    def _scales(self, largest: Tensor) -> Tensor:
        if self.scale == "power of two":
            lowered = _exponent(largest) - _exponent(torch.tensor(self.element.max, device=largest.device))
            scales = torch.exp2(lowered.clamp(_LOWEST, _HIGHEST).double())
        elif self.scale == "float32":
            scales = (largest / self.element.max).float().double()
        else:
            of_tensor = (largest.max() / (self.element.max * E4M3.max)).float().double()
            units = largest / self.element.max / torch.where(of_tensor > 0, of_tensor, 1.0)
            scales = E4M3.round_tensor(units.nan_to_num()) * of_tensor
        return torch.where(largest.isfinite(), scales, torch.nan)


def _exponent(x: Tensor) -> Tensor:
    """floor(log2(x)) of numbers above 0, exactly."""
    return torch.frexp(x).exponent - 1


BlockFormat.__init__ = checked(BlockFormat.__init__)  # the dataclass wrote it, so a decorator had no place to stand

FP8 = BlockFormat("FP8", E4M3, None, "float32")
MXFP8 = BlockFormat("MXFP8", E4M3, 32, "power of two")
MXFP4 = BlockFormat("MXFP4", E2M1, 32, "power of two")
NVFP4 = BlockFormat("NVFP4", E2M1, 16, "E4M3")


@checked
def stochastic_round(
    x: Float32[Tensor, "*shape"], generator: torch.Generator | None = None
) -> BFloat16[Tensor, "*shape"]:
    """`x` in bfloat16, up or down at random: what lies a third of the way up goes up one time in three.

    So the mean over many roundings is x itself, and small steps are not lost but taken now and then. A bfloat16 is the
    upper half of a float32: a random number is added to the lower half, which is then cut off. What lies above
    bfloat16's largest number may become infinite. `generator` draws; None is torch's own on x's device.
    """
    where = x.device if generator is None else generator.device
    noise = torch.randint(0, 1 << 16, x.shape, dtype=torch.int32, device=where, generator=generator).to(x.device)
    drawn = (x.detach().resolve_neg().view(torch.int32) + noise) & -(1 << 16)
    return torch.where(x.isfinite(), drawn.view(torch.float32), x.detach()).to(torch.bfloat16)
