"""What optimizers refuse: one sentence that names what came and what is asked for, and nothing changed."""
import copy

import pytest
import torch
from torch import nn

from course_lib.optim import SGD, AdaGrad, Adam, AdamW, RMSProp

W, B = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(2))
FINITE, SHARE = "a finite number of at least 0 is asked for.", "a number of at least 0 and below 1 is asked for."
OWN = "what state_dict() of Adam returned for the same parameters is asked for."
TENSOR = "a tensor of dtype float32 and shape (2, 3)"


def stepped(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = torch.ones_like(p)
    optimizer.step()
    return optimizer.state_dict()


def fed_sparse():
    embedding = nn.Embedding(4, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    B.grad = torch.ones(2)
    SGD([{"params": B}, {"params": [W, embedding.weight]}]).step()


WRONG_KIND = {
    f"SGD(): params is {TENSOR}; a list of tensors or of groups is asked for.": lambda: SGD(W),
    "SGD(): params is a set; a list of tensors or of groups is asked for.": lambda: SGD({W, B}),
    "SGD(): params is a dict; a list of tensors or of groups is asked for.": lambda: SGD({"params": [W]}),
    "AdaGrad(): params is a Linear; an Iterable is asked for.": lambda: AdaGrad(nn.Linear(2, 2)),
    "Adam(): lr is a str ('1e-3'); a float is asked for.": lambda: Adam([W], "1e-3"),
    f"Adam(): lr of group 0 is {TENSOR}; {FINITE}": lambda: Adam([{"params": W, "lr": W}]),
    f"Adam(): eps of group 1 is None; {FINITE}": lambda: Adam([{"params": W}, {"params": B, "eps": None}]),
    "AdamW(): betas is a float (0.9); tuple[float, float] is asked for.": lambda: AdamW([W], betas=0.9),
    "AdamW(): betas of group 0 is a tuple ((0.9,)); a pair of numbers is asked for.":
        lambda: AdamW([{"params": W, "betas": (0.9,)}]),
    "SGD(): got an unexpected keyword argument 'nesterov'; it is called as "
    "SGD(params, lr=0.001, momentum=0, *, weight_decay=0).": lambda: SGD([W], nesterov=True),
}
WRONG_VALUE = {
    f"SGD(): lr is -0.1; {FINITE}": lambda: SGD([W], -0.1),
    f"AdaGrad(): lr is nan; {FINITE}": lambda: AdaGrad([W], float("nan")),
    f"RMSProp(): lr is inf; {FINITE}": lambda: RMSProp([W], float("inf")),
    f"AdaGrad(): eps is -1e-10; {FINITE}": lambda: AdaGrad([W], eps=-1e-10),
    f"AdamW(): weight_decay is -1; {FINITE}": lambda: AdamW([W], weight_decay=-1),
    f"SGD(): momentum is 1; {SHARE}": lambda: SGD([W], momentum=1),
    f"RMSProp(): alpha is 1.5; {SHARE}": lambda: RMSProp([W], alpha=1.5),
    f"Adam(): betas[1] is 1.0; {SHARE}": lambda: Adam([W], betas=(0.9, 1.0)),
    f"AdamW(): betas[0] of group 1 is -0.1; {SHARE}":
        lambda: AdamW([{"params": W}, {"params": B, "betas": (-0.1, 0.9)}]),
    f"SGD(): lr of group 0 is -1; {FINITE}": lambda: SGD([{"params": W, "lr": -1}]),
    "SGD(): 'params' of group 0 is missing; a dict with 'params' is asked for.": lambda: SGD([{"lr": 0.1}]),
    "SGD(): parameter 1 of group 0 is a tensor of dtype complex64 and shape (2,); "
    "a real floating-point dtype is asked for.": lambda: SGD([W, torch.zeros(2, dtype=torch.complex64)]),
    "Adam(): parameter 0 of group 0 is a tensor of dtype int64 and shape (2,); "
    "a real floating-point dtype is asked for.": lambda: Adam([torch.zeros(2, dtype=torch.int64)]),
    "SGD.step(): the gradient of parameter 1 of group 1 is of layout torch.sparse_coo; a dense one is asked for "
    "(an Embedding gives it without sparse=True).": fed_sparse,
    f"Adam.load_state_dict(): state_dict lacks 'state' or 'param_groups'; {OWN}":
        lambda: Adam([W]).load_state_dict(nn.Linear(2, 2).state_dict()),
    f"Adam.load_state_dict(): group 0 lacks betas and eps; {OWN}":
        lambda: Adam([W, B]).load_state_dict(SGD([W, B]).state_dict()),
    f"Adam.load_state_dict(): of parameter 0 it remembers exp_avg and exp_avg_sq and step; {OWN}":
        lambda: Adam([W, B]).load_state_dict(stepped(torch.optim.Adam([W, B]))),
    f"Adam.load_state_dict(): m of parameter 1 has shape (2,), the parameter (2, 3); {OWN}":
        lambda: Adam([W, W.detach()]).load_state_dict(stepped(Adam([W, B]))),
}


@pytest.mark.parametrize(("sentence", "call"), WRONG_KIND.items(), ids=range(len(WRONG_KIND)))
def test_the_wrong_kind_of_argument_gets_one_sentence(sentence, call):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("sentence", "call"), WRONG_VALUE.items(), ids=range(len(WRONG_VALUE)))
def test_a_wrong_value_gets_one_sentence(sentence, call):
    with pytest.raises(ValueError, match="asked for") as caught:
        call()
    assert str(caught.value) == sentence


def test_what_is_refused_leaves_no_trace():
    B.data.zero_()
    with pytest.raises(ValueError, match="sparse_coo"):
        fed_sparse()
    assert B.tolist() == [0, 0]  # it comes before the sparse one
    optimizer = SGD([W])
    for group in ({"params": B, "lr": -1}, {"params": torch.zeros(2, dtype=torch.int64)}):
        with pytest.raises(ValueError, match="asked for"):
            optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1
    before = copy.deepcopy(stepped(adam := Adam([W])))
    for wrong in (stepped(SGD([W], momentum=0.5)), stepped(Adam([B])), stepped(Adam([W, B]))):
        with pytest.raises(ValueError):  # noqa: PT011 (torch's own words for the last)
            adam.load_state_dict(wrong)
    assert str(adam.state_dict()) == str(before)
