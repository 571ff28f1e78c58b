"""FLOPs of single operators: matrix products, convolutions and attention; everything else counts 0.

The convention is that of `torch.utils.flop_counter.FlopCounterMode`: a multiplication and an addition are two FLOPs.
Its formulas are used where this module has none of its own. It has its own for

- attention that runs as one kernel: the matrix products of the same attention run step by step (torch's math kernel),
  on every device. FlopCounterMode leaves out the CPU's kernel, and adds to the backward pass of CUDA's kernels that
  they compute the scores a second time;
- the gradient of a grouped convolution's weight, which FlopCounterMode counts `groups` times too high;
- products with vectors and cuDNN's recurrent layers, which it leaves out;
- complex numbers: to multiply and add them takes eight FLOPs, not two.
"""
from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from course_lib.checked import checked

aten = torch.ops.aten


@checked
def find_formula(func: OpOverload) -> Callable[..., int] | None:
    """The function that counts the FLOPs of `out = func(*args, **kwargs)`, called with `*args, out_val=out, **kwargs`.

    None for an operator that counts 0.
    """
    counts = _FORMULAS.get(func.overloadpacket) or flop_registry.get(func.overloadpacket)
    if counts is None:
        return None

    def formula(*args: object, out_val: object, **kwargs: object) -> int:
        flops = counts(*args, out_val=out_val, **kwargs)
        complex_numbers = any(isinstance(x, Tensor) and x.is_complex() for x in args)
        return 4 * flops if complex_numbers else flops

    return formula


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> int:
    return sum(_attention_products(query, key, value))


def _attention_backward(_: object, query: Tensor, key: Tensor, value: Tensor, *__: object, **___: object) -> int:
    """One product for the gradient of each input that needs one, and one for the gradient of the weights."""
    scores, mixing = _attention_products(query, key, value)
    inner = query.requires_grad + key.requires_grad
    return mixing * (value.requires_grad + (inner > 0)) + scores * inner


def _attention_products(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, int]:
    """FLOPs of query @ keyᵀ and of weights @ value; heads that share keys still have scores of their own."""
    pairs = prod(query.shape[:-1]) * key.shape[-2]
    return 2 * pairs * query.shape[-1], 2 * pairs * value.shape[-1]


def _convolution_backward(
    grad: Tensor, x: Tensor, weight: Tensor, _bias: object, _stride: object, _padding: object, _dilation: object,
    transposed: bool, _output_padding: object, _groups: int, wanted: Sequence[bool], **_: object,
) -> int:  # fmt: skip
    """The FLOPs of forward for the input's gradient, and once more for the weight's."""
    places = x if transposed else grad
    forward = 2 * places.shape[0] * prod(places.shape[2:]) * weight.numel()
    return forward * (wanted[0] + wanted[1])


def _cudnn_rnn(x: Tensor, weights: Sequence[Tensor], *_: object, **__: object) -> int:
    """Every row of every time step meets every weight matrix; `weights` holds biases, too."""
    return 2 * prod(x.shape[:-1]) * sum(w.numel() for w in weights if w.ndim == 2)


def _cudnn_rnn_backward(x: Tensor, weights: Sequence[Tensor], in_one_layer: int, *more: object, **_: object) -> int:
    """Two products for each of forward's, except for gradients of an input and of a first state that need none."""
    start, layers = more[1], more[10]
    flops = 2 * _cudnn_rnn(x, weights)
    if not x.requires_grad:
        directions = start.shape[0] // layers
        flops -= 2 * prod(x.shape[:-1]) * directions * weights[0].numel()
    if not start.requires_grad:
        flops -= 2 * start.shape[1] * sum(w.numel() for w in weights[1::in_one_layer])
    return flops


_FORMULAS: dict[object, Callable[..., int]] = {
    aten.mv: lambda matrix, vector, **_: 2 * matrix.numel(),
    aten.addmv: lambda start, matrix, vector, **_: 2 * matrix.numel(),
    aten.dot: lambda x, y, **_: 2 * x.numel(),
    aten.vdot: lambda x, y, **_: 2 * x.numel(),
    aten.convolution_backward: _convolution_backward,
    aten._cudnn_rnn: _cudnn_rnn,
    aten._cudnn_rnn_backward: _cudnn_rnn_backward,
    aten._scaled_dot_product_cudnn_attention: _attention,
    aten._scaled_dot_product_cudnn_attention_backward: _attention_backward,
    aten._scaled_dot_product_efficient_attention: _attention,
    aten._scaled_dot_product_efficient_attention_backward: _attention_backward,
    aten._scaled_dot_product_flash_attention: _attention,
    aten._scaled_dot_product_flash_attention_backward: _attention_backward,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    aten._scaled_dot_product_fused_attention_overrideable: _attention,
    aten._scaled_dot_product_fused_attention_overrideable_backward: _attention_backward,
}
