"""FLOPs in `account`: against torch's FlopCounterMode over a real step, and against formulas where that one errs."""
import accounting_models as models
import pytest
import torch
from accounting_models import MODELS, D, mean_square
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_lib.accounting import account
from course_lib.accounting.flops import find_formula

aten = torch.ops.aten
# Where FlopCounterMode errs or looks away: a grouped convolution's gradient, complex numbers, products with vectors,
# and an encoder layer that runs as one operator.
NOT_COMPARED = {"convolutions", "convolutions, channels last", "convolutions in one dimension", "spectral norm"}
NOT_COMPARED |= {"frozen encoder, no_grad", "frozen encoder, inference_mode"}


@pytest.fixture(autouse=True)
def plain_kernels():
    with models.plain_kernels():
        yield


def count(build_model, build_batch, loss):
    """FLOPs of forward and of backward in a real step, with attention step by step: FlopCounterMode sees it then."""
    model, batch = build_model(), build_batch()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        value = loss(model(*batch) if isinstance(batch, tuple) else model(batch))
        forward = counter.get_total_flops()
        value.backward()
    return forward, counter.get_total_flops() - forward


@pytest.mark.parametrize("name", [name for name in MODELS if name not in NOT_COMPARED])
def test_flops_are_those_that_torch_counts_in_a_real_step(name):
    step = account(*MODELS[name])
    assert (step.forward_flops, step.backward_flops) == count(*MODELS[name])


@pytest.mark.parametrize("frozen", ["q", "k", "v", "qk", "qv", "kv"])
def test_attention_computes_no_gradient_that_nobody_needs(frozen):
    task = (lambda: models.Attention(frozen, is_causal=True), models.sequences, mean_square)
    step = account(*task)
    assert (step.forward_flops, step.backward_flops) == count(*task)


def test_attention_whose_values_have_another_width():
    class Narrow(models.Attention):
        def __init__(self):
            super().__init__()
            self.projections["v"] = nn.Linear(D, D // 2)

    assert account(Narrow, models.sequences).total_flops == sum(count(Narrow, models.sequences, mean_square))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_a_convolution_costs_as_much_in_each_part_of_backward_as_in_forward(transposed, groups):
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    build = lambda: kind(8, 16, 3, stride=2, groups=groups)  # noqa: E731
    step = account(build, lambda: torch.randn(2, 8, 9, 9, requires_grad=True))
    places = 9 * 9 if transposed else 4 * 4
    assert step.forward_flops == 2 * 2 * places * (8 * 16 // groups) * 9
    assert step.backward_flops == 2 * step.forward_flops
    if groups == 1:
        task = (build, lambda: torch.randn(2, 8, 9, 9, requires_grad=True), mean_square)
        assert (step.forward_flops, step.backward_flops) == count(*task)


class Product(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return x @ self.weight


def test_products_with_vectors_are_products():
    matrix_times_vector = account(lambda: Product(torch.randn(D)), models.rows)
    assert matrix_times_vector.forward_flops == 2 * 8 * D
    dot = account(lambda: Product(torch.randn(D)), lambda: torch.randn(D))
    assert dot.forward_flops == 2 * D


def test_complex_numbers_cost_four_times_as_much():
    real = account(lambda: Product(torch.randn(D, D)), models.rows)
    complicated = account(
        lambda: Product(torch.randn(D, D, dtype=torch.complex64)),
        lambda: torch.randn(8, D, dtype=torch.complex64),
        lambda output: output.abs().mean(),
    )
    assert complicated.total_flops == 4 * real.total_flops


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_frozen_encoder_in_eval_mode_is_not_free(mode):
    step = account(lambda: models.Frozen(mode), models.sequences)
    layer = account(models.encoder_layer, models.sequences)
    assert step.forward_flops == layer.forward_flops + 2 * 4 * 16 * D * 4


def test_recomputation_is_part_of_backward():
    plain, recomputed = MODELS["LLaMA"], MODELS["LLaMA, recomputed"]
    assert account(*recomputed).forward_flops == account(*plain).forward_flops
    # torch stops recomputing when it has all that backward needs: what the last product of a block returns is not that.
    again = account(*recomputed).backward_flops - account(*plain).backward_flops
    tokens, blocks, head = 2 * 32, 2, 2 * (2 * 32) * D * 500
    last = 2 * tokens * 100 * D
    assert again == account(*plain).forward_flops - head - blocks * last


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"bidirectional": True, "num_layers": 2}, {"proj_size": 16}])
def test_the_formula_for_cudnn_counts_what_the_cpu_does(options, requires_grad):
    def batch():
        return torch.randn(5, 3, D, requires_grad=requires_grad)

    step = account(lambda: nn.LSTM(D, 32, **options), batch, lambda output: output[0].pow(2).mean())
    model = nn.LSTM(D, 32, **options, device="meta")
    weights, x = list(model.parameters()), batch().to("meta")
    in_one_layer = len(model.all_weights[0])
    start = torch.zeros(len(model.all_weights), 3, 32, device="meta")
    # Both take these first; where forward has c_0 and the mode, backward has the outputs and their gradients between.
    common, sizes = (x, weights, in_one_layer, None, start, None), (2, 32, model.proj_size, model.num_layers)
    forward = find_formula(aten._cudnn_rnn.default)(*common, *sizes, out_val=None)
    backward = find_formula(aten._cudnn_rnn_backward.default)(*common, None, None, None, None, *sizes, out_val=None)
    assert (forward, backward) == (step.forward_flops, step.backward_flops)


def test_every_kernel_for_attention_counts_the_same():
    q, k, v = (torch.randn(2, heads, 16, 8, device="meta", requires_grad=True) for heads in (4, 2, 2))
    names = ("efficient_attention", "flash_attention", "cudnn_attention", "flash_attention_for_cpu")
    for name in (*names, "fused_attention_overrideable"):
        forward = find_formula(getattr(aten, f"_scaled_dot_product_{name}").default)(q, k, v, out_val=None)
        backward = find_formula(getattr(aten, f"_scaled_dot_product_{name}_backward").default)(q, q, k, v, out_val=None)
        assert (forward, backward) == (2 * 2 * (2 * 4 * 16 * 16 * 8), 4 * 2 * (2 * 4 * 16 * 16 * 8))
