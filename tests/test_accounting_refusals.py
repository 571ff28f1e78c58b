"""What `account` refuses: one sentence for each that says what to change, and nothing on stderr."""
import subprocess
import sys

import accounting_models as models
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import LBFGS, SGD, AdamW, SparseAdam

from course_lib.accounting import account

ROWS = "a tensor of dtype float32 and shape (4, 8)"
READS = (
    "as .item(), bool(…), an `if` and a mask as index do; tensors hold no numbers here, so let shapes and Python's "
    "numbers decide."
)
NO_GRADIENT = (
    "account(): the loss does not depend on anything that requires grad, so there is no backward pass; let it depend "
    "on a parameter with requires_grad=True, outside of torch.no_grad()."
)
NOT_CUDA = "but torch finds no CUDA device here; leave device out or pass 'cpu'."
needs_no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")


def rows():
    return torch.randn(4, 8)


def layer():
    return nn.Linear(8, 8)


class Net(nn.Module):
    """A layer whose output goes through `after(output)`."""

    def __init__(self, after):
        super().__init__()
        self.layer, self.after = layer(), after

    def forward(self, x):
        return self.after(self.layer(x))


def net(after):
    return lambda: Net(after)


class ReadsWhileBuilt(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 1, 1, 16, batch_first=True)

    def forward(self, x):
        return self.transformer(x, x, tgt_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


def branch(y):
    return y if y.sum() > 0 else -y


def frozen():
    return layer().requires_grad_(False)


class WithoutParameters(nn.Module):
    def forward(self, x):
        return 2 * x


DATA = {
    "branch": net(branch),
    "item": net(lambda y: y * y.max().item()),
    "float": net(lambda y: y * float(y.detach().mean())),
    "mask": net(lambda y: y[y > 0]),
    "nonzero": net(lambda y: y[torch.nonzero(y[:, 0])]),
    "unique": net(lambda y: y.sum() * torch.unique(y).numel()),
    "numpy": net(lambda y: y * y.detach().numpy().max()),
    "tolist": net(lambda y: y * y.tolist()[0][0]),
    "one_hot": net(lambda y: F.one_hot(y.argmax(-1)) * y),
}


@pytest.fixture
def quiet(capfd):
    yield
    assert capfd.readouterr().err == ""


def refuse(call, *, kind=ValueError):
    """What `call` is refused with; the error shows nothing of what is inside."""
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.__suppress_context__ and caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("build_model", DATA.values(), ids=DATA)
def test_a_model_that_reads_numbers_is_refused_and_the_line_named(build_model):
    said = refuse(lambda: account(build_model, rows))
    assert said.startswith(f"account(): the model, given {ROWS}, reads numbers off a tensor in ")
    assert said.endswith(READS)
    assert ("in branch, line " if build_model is DATA["branch"] else "in <lambda>, line ") in said


@pytest.mark.usefixtures("quiet")
def test_where_it_reads_is_said():
    line = ReadsWhileBuilt.__init__.__code__.co_firstlineno + 2
    said = refuse(lambda: account(ReadsWhileBuilt, rows))
    function = "ReadsWhileBuilt.__init__" if sys.version_info >= (3, 12) else "<listcomp>"
    assert said == f"account(): build_model() reads numbers off a tensor in {function}, line {line}, {READS}"
    said = refuse(lambda: account(Masked, lambda: torch.randn(2, 5, 16)))
    line = Masked.forward.__code__.co_firstlineno + 1
    assert f"in Masked.forward, line {line}, in torch.nn's _detect_is_causal_mask, {READS}" in said


CALLS = {
    "account(): the model, given a tensor of dtype float32 and shape (4, 7), fails in torch.nn's Linear.forward: "
    "a and b must have same reduction dim, but got [4, 7] X [8, 8]; let build_batch() return what the model takes.": (
        lambda: account(layer, lambda: torch.randn(4, 7))
    ),
    "account(): the model, given a tensor of dtype int64 and shape (4, 8), fails in torch.nn's Linear.forward: "
    "expected tensors of the same dtype, but got torch.float32 and torch.int64; let build_batch() return what the "
    "model takes.": lambda: account(layer, lambda: torch.ones(4, 8, dtype=torch.long)),
    f"account(): the model, given {ROWS} and {ROWS}, fails: Linear.forward() takes 2 positional arguments but 3 were "
    f"given; let build_batch() return what the model takes.": lambda: account(layer, lambda: (rows(), rows())),
    "account(): the model, given None, fails in torch.nn's Linear.forward: linear(): argument 'input' (position 1) "
    "must be Tensor, not NoneType; let build_batch() return what the model takes.": (
        lambda: account(layer, lambda: None)
    ),
    "account(): the model returns a tuple, not a tensor; say what the loss is, such as "
    "loss=lambda output: output[0].pow(2).mean().": lambda: account(lambda: nn.LSTM(8, 8), rows),
    "account(): the model returns a dict, not a tensor; say what the loss is, such as "
    "loss=lambda output: output['y'].pow(2).mean().": lambda: account(net(lambda y: {"y": y}), rows),
    "account(): loss(output) has shape (4,); one number is asked for, such as its mean().": (
        lambda: account(layer, rows, lambda output: output.sum(1))
    ),
    "account(): loss(output) is None; a tensor with one number is asked for.": (
        lambda: account(layer, rows, lambda output: None)
    ),
    "account(): the backward pass fails: grad can be implicitly created only for real scalar outputs but got "
    "torch.complex64.": lambda: account(layer, rows, lambda output: (output * 1j).sum()),
    "account(): the model has no parameters for an optimizer; leave optimizer out.": (
        lambda: account(WithoutParameters, lambda: rows().requires_grad_(), None, SGD)
    ),
    "account(): LBFGS runs the model again within a step, as often as the data ask for it; choose an optimizer whose "
    "step() needs no closure, such as torch.optim.AdamW.": lambda: account(layer, rows, None, LBFGS),
    "account(): SparseAdam.step() fails: SparseAdam does not support dense gradients, please consider Adam instead.": (
        lambda: account(layer, rows, None, SparseAdam)
    ),
    "account(): optimizer(parameters) returns None; a torch.optim.Optimizer is asked for.": (
        lambda: account(layer, rows, None, lambda parameters: None)
    ),
    "account(): the optimizer has none of the model's parameters; let it take those that it is called with.": (
        lambda: account(layer, rows, None, lambda parameters: SGD(layer().parameters()))
    ),
    "account(): build_model() returns None; a torch.nn.Module is asked for.": lambda: account(lambda: None, rows),
    "account(): build_model() returns the class Linear; a torch.nn.Module is asked for.": (
        lambda: account(lambda: nn.Linear, rows)
    ),
    "account(): a sparse tensor cannot be accounted for; use dense ones, and nn.Embedding with sparse=False.": (
        lambda: account(lambda: nn.Embedding(9, 8, sparse=True), models.tokens(2, 3, 9))
    ),
    "account(): the model has a lazy module, whose sizes are not known yet; give them when you build it.": (
        lambda: account(lambda: nn.LazyLinear(8), rows)
    ),
    "device is a str ('gpu'); 'cpu' or 'cuda' is asked for.": lambda: account(layer, rows, device="gpu"),
    "device is a str ('meta'); 'cpu' or 'cuda' is asked for.": lambda: account(layer, rows, device="meta"),
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("sentence", "call"), CALLS.items(), ids=range(len(CALLS)))
def test_bad_input_gets_one_sentence(sentence, call):
    assert refuse(call) == sentence


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("build_model", "loss"),
    [
        (frozen, None),
        (layer, lambda output: output.detach().mean()),
        (layer, lambda output: (output > 0).sum()),
        (WithoutParameters, None),
    ],
)
def test_a_loss_without_a_gradient_is_refused(build_model, loss):
    assert refuse(lambda: account(build_model, rows, loss)) == NO_GRADIENT


KINDS = {
    "account(): build_model is a Linear; a function is asked for: pass lambda: model.": lambda: account(layer(), rows),
    f"account(): build_batch is {ROWS}; a function is asked for.": lambda: account(layer, rows()),
    "account(): build_model is an int (3); a function is asked for.": lambda: account(3, rows),
    "account(): loss is an int (3); a function is asked for.": lambda: account(layer, rows, 3),
    "account(): optimizer is a str ('AdamW'); a function is asked for.": lambda: account(layer, rows, None, "AdamW"),
    "account(): build_model is called without arguments, but needs after; wrap the call: account(lambda: Net(…)).": (
        lambda: account(Net, rows)
    ),
    "account(): build_batch is called without arguments, but needs batch and length; wrap the call: "
    "account(lambda: tokens(…)).": lambda: account(layer, models.tokens),
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("sentence", "call"), KINDS.items(), ids=range(len(KINDS)))
def test_the_wrong_kind_of_argument_gets_one_sentence(sentence, call):
    assert refuse(call, kind=TypeError) == sentence


@needs_no_cuda
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_is_refused_where_torch_has_none(device):
    """In a process of its own: FakeTensors on such a device abort it."""
    imports = "import torch; from course_lib.accounting import account"
    code = f"{imports}; account(torch.nn.Flatten, list, device={device!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"ValueError: device is {device}, {NOT_CUDA}"


@pytest.mark.filterwarnings("ignore:.*quantiz.*:UserWarning", "ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.quantize_per_tensor(torch.ones(3, device="cpu"), 0.1, 0, torch.qint8), "a quantized tensor"),
        (lambda: torch.eye(3).to_sparse_csr(), "a sparse_csr tensor"),
        (lambda: torch.ones(3, device="cpu").as_subclass(type("Mine", (torch.Tensor,), {})), "a Mine"),
    ],
)
def test_tensors_of_other_kinds_are_refused(make, kind):
    kept = make()

    class Keeps(Net):
        def __init__(self):
            super().__init__(None)
            self.kept = kept

    assert refuse(lambda: account(Keeps, rows)) == (
        f"account(): {kind} cannot be accounted for; use dense tensors of ordinary numbers."
    )


def test_a_bug_in_the_models_own_code_keeps_its_error():
    with pytest.raises(AttributeError, match="laier"):
        account(net(lambda y: y.laier), rows)
    said = refuse(lambda: account(net(lambda y: nn.Linear(3, 3)(y)), rows))
    assert "fails in <lambda>, line " in said


def test_a_numpy_array_is_no_batch():
    said = refuse(lambda: account(layer, lambda: np.ones((4, 8), dtype=np.float32)))
    assert "given a NumPy array of dtype float32 and shape (4, 8), fails" in said


def test_after_a_refusal_all_goes_on():
    before = account(layer, rows, None, AdamW)
    for build_model in DATA.values():
        refuse(lambda build_model=build_model: account(build_model, rows))
    assert account(layer, rows, None, AdamW) == before
