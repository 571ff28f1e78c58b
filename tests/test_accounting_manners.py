"""`account` as a guest: it leaves models and torch as they are, answers in seconds for any size, and shows a table."""
import copy
import random
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import accounting_models as models
import numpy as np
import pytest
import torch
from accounting_models import D, rows
from torch import nn
from torch.optim.optimizer import _foreach_supported_types

from course_lib.accounting import Account, account


def world():
    """All that a model's code and `account` itself may change in passing."""
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch._C._get_mkldnn_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._len_torch_function_stack(),
        list(_foreach_supported_types),
    )


def untidy():
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    torch.set_default_dtype(torch.float64)
    return nn.Sequential(nn.Linear(D, D), nn.Dropout(0.1), nn.LayerNorm(D))


def broken():
    untidy()
    raise KeyError("broken")


CONTEXTS = {
    "nothing": nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "meta": lambda: torch.device("meta"),
    "cpu": lambda: torch.device("cpu"),
}


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_torch_is_left_as_it_was_and_answers_alike_everywhere(context):
    expected = account(untidy, lambda: rows().double(), None, torch.optim.AdamW)
    with context():
        before = world()
        assert account(untidy, lambda: rows().double(), None, torch.optim.AdamW) == expected
        assert world() == before
        with pytest.raises(KeyError):
            account(broken, rows)
        assert world() == before
        with pytest.raises(ValueError, match="given a tensor"):
            account(lambda: nn.Linear(3, 3), rows)
        assert world() == before


def test_autocast_around_it_is_for_the_forward_pass():
    def build():
        return nn.Sequential(nn.Linear(D, 128), nn.GELU(), nn.Linear(128, D))

    with torch.autocast("cpu", dtype=torch.bfloat16):
        around = account(build, rows, None, torch.optim.AdamW)
    within = account(lambda: models.Autocast(build()), rows, None, torch.optim.AdamW)
    assert {group.dtype for group in account(build, rows).saved} == {"float32"}
    assert {group.dtype for group in around.saved} == {"bfloat16"}
    assert replace(around, model="Autocast") == within


def contents(model):
    return [(key, id(value)) for module in model.modules() for key, value in vars(module).items()]


class ReadOnly(dict):
    """As some libraries keep a model's settings."""

    def clear(self):
        raise TypeError("this can only be read")

    update = __setitem__ = clear


def test_a_live_model_is_left_untouched():
    class Live(models.Keeper):
        def __init__(self):
            super().__init__()
            self.settings = ReadOnly(width=D)

        def forward(self, x):
            self.seen = x
            self.listed.append(x)
            return super().forward(x)

    model, batch = nn.Sequential(Live(), nn.BatchNorm1d(D), nn.LSTM(D, D)), rows()

    def loss(output):
        return output[0].pow(2).mean()

    loss(model(batch)).backward()
    model[0].listed.pop()
    numbers = copy.deepcopy([*model.state_dict().values(), *(p.grad for p in model.parameters())])
    before = contents(model), [id(p) for p in model.parameters()], list(map(id, model[0].listed))
    step = account(lambda: model, lambda: batch, loss, torch.optim.Adam)
    assert model[0].settings == {"width": D}
    assert (contents(model), [id(p) for p in model.parameters()], list(map(id, model[0].listed))) == before
    after = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    assert all(torch.equal(x, y) for x, y in zip(numbers, after, strict=True))
    fresh = account(lambda: nn.Sequential(models.Keeper(), nn.BatchNorm1d(D), nn.LSTM(D, D)), rows, loss)
    assert (step.total_flops, step.buffer_bytes) == (fresh.total_flops, fresh.buffer_bytes)
    assert step.activation_bytes == fresh.activation_bytes
    loss(model(batch)).backward()  # and it still works


def test_tied_weights_of_a_live_model_stay_tied():
    tied = nn.Linear(D, D)
    model = nn.Sequential(tied, nn.ReLU(), tied)
    assert account(lambda: model, rows).parameters == D * D + D


def test_views_of_one_storage_count_once():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            numbers = torch.randn(2, D, D)
            self.first, self.second = nn.Parameter(numbers[0]), nn.Parameter(numbers[1])
            self.register_buffer("row", torch.zeros(100, D)[0])

        def forward(self, x):
            return x @ self.first @ self.second + self.row

    live = Flat()
    for build in (Flat, lambda: live):
        step = account(build, lambda: torch.randn(100, D)[:8])
        assert step.parameter_bytes == 2 * D * D * 4
        assert (step.buffer_bytes, step.batch_bytes) == (100 * D * 4, 100 * D * 4)


def test_weights_can_be_loaded_while_it_builds(capfd):
    trained = nn.Linear(D, D)

    def build():
        model = nn.Linear(D, D)
        model.load_state_dict(trained.state_dict())
        return model

    assert account(build, rows) == account(lambda: nn.Linear(D, D), rows)
    assert capfd.readouterr().err == ""


def test_a_target_that_the_loss_keeps():
    target = torch.ones(8, D)
    step = account(lambda: nn.Linear(D, D), rows, lambda output: (output - target).pow(2).mean())
    assert step.buffer_bytes == 8 * D * 4


def test_an_optimizer_may_ask_for_numbers_where_a_model_may_not():
    class Clipped(torch.optim.SGD):
        def step(self, closure=None):
            norms = [p.grad.norm().item() for group in self.param_groups for p in group["params"]]
            if max(norms) > 0:
                super().step(closure)

    step = account(lambda: nn.Linear(D, D), rows, None, lambda parameters: Clipped(parameters, momentum=0.9))
    assert step.optimizer_bytes == (D + 1) * D * 4


BIG = """
import resource, sys
sys.path.insert(0, {tests!r})
import torch
from accounting_models import Transformer, next_token, tokens
from course_lib.accounting import account
for recompute in (False, True):
    step = account(
        lambda: Transformer(128256, 0, 8192, 80, 64, 8, 28672, gated=True, recompute=recompute),
        tokens(1, 4096, 128256), next_token, None if recompute else torch.optim.AdamW,
    )
    print(step.parameters, step.forward_flops, step.backward_flops, step.activation_bytes, step.peak_bytes)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


# A process inherits the peak of the one that starts it, and this one has run many tests: a small one stands between.
BY_A_SMALL_PROCESS = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell a process's peak memory in this way")
def test_seventy_billion_parameters_fit_in_a_gigabyte():
    code = BIG.format(tests=str(models.__file__).rpartition("/")[0])
    command = [sys.executable, "-c", BY_A_SMALL_PROCESS, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    plain, recomputed, (memory,) = (list(map(int, line.split())) for line in ended.stdout.splitlines())
    tokens, width, context = 4096, 8192, 4096
    parameters = 70_553_706_496
    in_matrices = parameters - 128256 * width - 161 * width  # all but the embedding and the norms
    attention = 80 * 2 * 2 * tokens * context * width
    assert plain[0] == recomputed[0] == parameters
    assert plain[1] == recomputed[1] == 2 * tokens * in_matrices + attention
    assert plain[2] == 2 * plain[1] < recomputed[2] < 3 * plain[1]
    assert recomputed[3] < plain[3] / 10
    assert plain[4] > 16 * parameters > recomputed[4] > 8 * parameters  # in float32: weights, gradients, two moments
    assert memory < 10**9


TABLE = """\
One training step of Cruncher (8,256 parameters) with AdamW, on cpu
forward               132,096 FLOPs
backward              198,656 FLOPs
forward and backward  330,752 FLOPs
parameters                 33,024 B   32.2 KiB
buffers                         0 B
batch                       2,048 B    2.0 KiB
gradients                  33,024 B   32.2 KiB
optimizer state            66,060 B   64.5 KiB
saved for backward          6,208 B    6.1 KiB
peak of the step          183,308 B  179.0 KiB"""


def test_the_table_reads_the_same_everywhere():
    step = account(lambda: models.Cruncher(64, 2), rows, models.mse, torch.optim.AdamW)
    assert repr(step) == TABLE
    html = step._repr_html_()
    for line in TABLE.splitlines()[1:]:
        name, exact, *rough = filter(None, map(str.strip, line.split("  ")))
        assert f">{name}</td>" in html and f">{exact}</td>" in html and all(f">{text}</td>" in html for text in rough)
    assert "style='" in html and "class=" not in html


def test_large_numbers_are_also_rounded():
    sizes = dict.fromkeys(("gradient_bytes", "optimizer_bytes", "activation_bytes", "buffer_bytes", "batch_bytes"), 0)
    numbers = {"parameters": 1, "forward_flops": 613_338_509_737_984, "backward_flops": 10**6, "peak_bytes": 2**70}
    table = repr(Account("<b>", None, "cpu", parameter_bytes=262 * 2**30, saved=(), notes=("why",), **sizes, **numbers))
    assert "613,338,509,737,984 FLOPs" in table and "6.13e14" in table and "1.00e6" in table
    assert "262.0 GiB" in table and "1,048,576.0 PiB" in table and table.endswith("Note: why")


def test_a_name_is_shown_as_text_in_html():
    odd = type("<script>", (nn.Linear,), {})
    assert "&lt;script&gt;" in account(lambda: odd(D, D), rows)._repr_html_()


def test_the_module_explains_itself():
    command = [sys.executable, "-m", "course_lib.accounting"]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "330,752 FLOPs" in ended.stdout and "396,288" in ended.stdout and "65,536 = 2 · 8 · 64 · 64" in ended.stdout
    assert len(ended.stdout.splitlines()) < 30


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # importing torch's compiler
def test_a_compiled_model_is_taken_as_it_was_written():
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.compile(nn.Linear(D, D))

        def forward(self, x):
            return self.layer(x)

    assert account(Compiled, rows).total_flops == account(lambda: nn.Linear(D, D), rows).total_flops
