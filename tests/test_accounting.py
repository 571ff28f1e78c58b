"""`account` against real training steps, byte by byte, and against published numbers."""

import accounting_models as models
import pytest
import torch
from accounting_models import MODELS, D, mean_square
from torch import nn
from torch.utils._pytree import tree_leaves

from course_lib.accounting import account
from course_lib.storage import measure_memory, measure_peak_memory

CONVOLUTION = "a convolution works in memory of its own, which the peak leaves out."
REPEATED = "a weight is used several times; torch may add up its gradients in place, for a lower peak."
# What autograd keeps and shows to nobody: a generator's state for each checkpoint, and numbers such as 0.5 in x * 0.5.
STATE, NUMBER = len(torch.get_rng_state()), 8
UNSEEN = {
    "LLaMA, recomputed": 2 * STATE,
    "checkpoints": 3 * STATE,
    "checkpoints, reentrant": 3 * STATE,
    "Korthikanti's layer": NUMBER,
}


@pytest.fixture(autouse=True)
def plain_kernels():
    with models.plain_kernels():
        yield


def call(model, batch):
    return model(*batch) if isinstance(batch, tuple) else model(batch)


def storage_bytes(*trees):
    tensors = [leaf for leaf in tree_leaves(trees) if isinstance(leaf, torch.Tensor)]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


class RealStep:
    """The same step in earnest: real tensors on the CPU, no mode and no hook; what torch's allocator says of it."""

    def __init__(self, build_model, build_batch, loss, optimizer=torch.optim.AdamW):
        self.model, self.build_batch, self.loss = build_model(), build_batch, loss
        self.optimizer = optimizer(self.model.parameters()) if optimizer else None
        self.batch = build_batch()
        self.step()

    def step(self):
        self.model.zero_grad(set_to_none=True)
        self.loss(call(self.model, self.batch)).backward()
        if self.optimizer:
            self.optimizer.step()

    def left_by_forward(self):
        """Bytes that the forward pass leaves in use, the batch included if autograd keeps it, without the loss."""
        losses = []
        left = measure_memory(lambda: losses.append(self.loss(call(self.model, self.build_batch()))), "cpu")
        return left - storage_bytes(losses)

    @property
    def state(self):
        return [list(state.values()) for state in self.optimizer.state.values()] if self.optimizer else []

    def peak(self):
        self.model.zero_grad(set_to_none=True)
        resident = storage_bytes(list(self.model.parameters()), list(self.model.buffers()), self.batch, self.state)
        return resident + measure_peak_memory(self.step, "cpu")


@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_of_a_real_step(name):
    build_model, build_batch, loss = MODELS[name]
    step = account(build_model, build_batch, loss, torch.optim.AdamW)
    real = RealStep(build_model, build_batch, loss)
    parameters = list(real.model.parameters())
    inputs = real.batch if isinstance(real.batch, tuple) else (real.batch,)
    assert step.parameters == sum(p.numel() for p in parameters)
    assert step.parameter_bytes == storage_bytes(parameters)
    assert step.batch_bytes == storage_bytes(inputs)
    assert step.gradient_bytes == storage_bytes([x.grad for x in (*parameters, *inputs)])
    assert step.optimizer_bytes == storage_bytes(real.state)
    assert step.activation_bytes == real.left_by_forward() - UNSEEN.get(name, 0)
    if name != "tensors in odd places":
        assert step.buffer_bytes == storage_bytes(list(real.model.buffers()))


def test_tensors_that_a_model_keeps_anywhere_count_with_its_buffers():
    step = account(models.Keeper, models.rows)
    assert step.buffer_bytes == 7 * D * 4


OPTIMIZERS = {
    name: kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and name not in ("Optimizer", "LBFGS", "SparseAdam", "Muon")
} | {
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam, AMSGrad, all at once": lambda p: torch.optim.Adam(p, amsgrad=True, foreach=True),
    "ASGD, all at once": lambda p: torch.optim.ASGD(p, foreach=True),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, fused=True),
    "RMSprop, centered": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
    "two groups": lambda p: torch.optim.AdamW([{"params": list(p)[:2]}], lr=0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_every_optimizer_has_the_state_and_the_peak_of_a_real_one(optimizer):
    task = (lambda: nn.Sequential(nn.Linear(D, 128), nn.LayerNorm(128), nn.Linear(128, 10)), models.rows, mean_square)
    step, real = account(*task, optimizer), RealStep(*task, optimizer)
    assert step.optimizer_bytes == storage_bytes(real.state)
    assert step.peak_bytes == pytest.approx(real.peak(), rel=1e-3)


def test_an_optimizer_for_matrices_only():
    task = (lambda: nn.Linear(D, D, bias=False), models.rows, mean_square, torch.optim.Muon)
    assert account(*task).optimizer_bytes == storage_bytes(RealStep(*task).state) == D * D * 4


def mlp(width, depth, rows, activation=nn.ReLU):
    layers = [module for _ in range(depth) for module in (nn.Linear(width, width), activation())]
    return lambda: nn.Sequential(*layers[:-1]), lambda: torch.randn(rows, width), mean_square


def llama(depth, **options):
    return lambda: models.Transformer(1000, 0, 256, depth, 8, 4, 600, gated=True, **options)


ADAMW = torch.optim.AdamW
LARGE = {
    "MLP, few rows": (*mlp(700, 3, 16), ADAMW),
    "MLP, many rows": (*mlp(600, 3, 1024, nn.GELU), None),
    "Cruncher": (lambda: models.Cruncher(600, 3), lambda: torch.randn(512, 600), models.mse, ADAMW),
    "GPT": (lambda: models.Transformer(1000, 64, 160, 3, 5), models.tokens(4, 64), models.next_token, ADAMW),
    "LLaMA": (llama(2), models.tokens(1, 256), models.next_token, None),
    "LLaMA, recomputed": (llama(3, recompute=True), models.tokens(1, 256), models.next_token, None),
    "LLaMA, recomputed, AdamW": (llama(3, recompute=True), models.tokens(1, 256), models.next_token, ADAMW),
    "nn.Transformer": (
        lambda: nn.Transformer(160, 4, 2, 2, 512, batch_first=True),
        lambda: (torch.randn(2, 64, 160), torch.randn(2, 48, 160)),
        mean_square,
        None,
    ),
    "LSTM": (lambda: nn.LSTM(256, 256, 2), lambda: torch.randn(8, 16, 256), mean_square, ADAMW),
}


@pytest.mark.parametrize("task", LARGE.values(), ids=LARGE)
def test_the_peak_is_within_one_percent_of_the_allocators(task):
    step = account(*task)
    assert step.parameters >= 10**6
    assert not step.notes
    assert step.peak_bytes == pytest.approx(RealStep(*task).peak(), rel=0.01)


@pytest.mark.parametrize(("name", "note"), [("convolutions", CONVOLUTION), ("one matrix, repeatedly", REPEATED)])
def test_a_peak_that_is_an_estimate_is_marked_as_one(name, note, record_property):
    step = account(*MODELS[name], torch.optim.AdamW)
    record_property("peak in account / peak in the allocator", step.peak_bytes / RealStep(*MODELS[name]).peak())
    assert step.notes == (note,)
    assert note in repr(step) and note in step._repr_html_()


# ---------------------------------------------------------------------------------------------- published numbers


def test_the_running_example_of_the_course():
    step = account(lambda: models.Cruncher(64, 2), models.rows, models.mse, torch.optim.AdamW)
    assert step.parameters == 8256
    assert step.total_flops == 330_752 == 6 * 8 * 8256 - 2 * 8 * 64 * 64
    assert step.activation_bytes == 4 * (8 * 64 * 3 + 2 * 8)
    assert [(group.count, group.shape, group.dtype) for group in step.saved] == [
        (3, (8, 64), "float32"),
        (2, (8,), "float32"),
    ]
    assert sum(group.bytes for group in step.saved) == step.activation_bytes


@pytest.mark.parametrize(("requires_grad", "flops"), [(False, 369_098_752), (True, 503_316_480)])
def test_the_lectures_two_layers(requires_grad, flops):
    step = account(lambda: models.TwoLayers(256, 64), lambda: torch.randn(1024, 256, requires_grad=requires_grad))
    assert step.total_flops == flops
    assert step.gradient_bytes == step.parameter_bytes + requires_grad * step.batch_bytes


def test_gpt2_by_nanogpts_table():
    step = account(
        lambda: models.Transformer(50257, 1024, 768, 12, 12), models.tokens(1, 1024, 50257), models.next_token
    )
    assert step.parameters == 124_337_664
    assert step.forward_flops == 291_648_307_200
    assert step.total_flops == 874_944_921_600


def test_activations_of_a_layer_by_korthikantis_formula():
    """s·b·h·(34 + 5·a·s/h) bytes. Here, dropout masks take two bytes instead of one, and norms keep two statistics."""
    s, b, h, a = 48, 3, 64, 4
    step = account(
        lambda: models.KorthikantiLayer(h, a).bfloat16(),
        lambda: torch.randn(b, s, h, dtype=torch.bfloat16),
        lambda output: output.sum(),
    )
    masks, statistics = 2 * s * b * h + a * s * s * b, 2 * 2 * 2 * s * b
    assert step.activation_bytes == s * b * (34 * h + 5 * a * s) + masks + statistics


@pytest.mark.parametrize(
    ("build_model", "parameters"),
    [
        (lambda: nn.Transformer(512, 8, batch_first=True), 44_140_544),
        (lambda: nn.TransformerEncoderLayer(512, 8, batch_first=True), 3_152_384),
        (lambda: nn.LSTM(512, 512, 2), 4_202_496),
    ],
    ids=["nn.Transformer", "nn.TransformerEncoderLayer", "LSTM"],
)
def test_modules_of_torch(build_model, parameters):
    inputs = 2 if parameters > 10**7 else 1
    step = account(build_model, lambda: (torch.randn(2, 10, 512),) * inputs, mean_square, torch.optim.AdamW)
    with torch.device("meta"):
        assert step.parameters == parameters == sum(p.numel() for p in build_model().parameters())
    assert step.forward_flops > 2 * 10 * parameters


def test_a_model_of_hugging_face():
    transformers = pytest.importorskip("transformers")
    sizes = {"n_layer": 2, "n_embd": D, "n_head": 4, "vocab_size": 500, "n_positions": 32}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)

    def build():
        return transformers.GPT2LMHeadModel(config)

    def loss(output):
        return output.logits.pow(2).mean()

    step, real = account(build, models.tokens(2, 32), loss), RealStep(build, models.tokens(2, 32), loss, None)
    assert step.parameters == real.model.num_parameters()
    assert real.left_by_forward() - step.activation_bytes in range(0, 100, NUMBER)
    by_name = account(build, lambda: {"input_ids": models.tokens(2, 32)()}, loss)
    assert by_name == step
