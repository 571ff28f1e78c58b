"""The solutions of notebook 14 against the course's own library and against real models, and what learners write."""
import itertools
import re

import pytest
import torch
from written_answers import OWN, assert_diagnosed

from course_lib.accounting import account
from course_lib.exercises import nb14
from course_lib.exercises.nb14 import flops_per_token, gpt_parameters, memory_per_gpu, mfu_and_days, plan_run
from course_lib.precision import ParameterBytes
from course_lib.publishing.notebooks import NOTEBOOKS, read_notebook
from course_lib.transformer import GPT, GPT2, GPTConfig, largest_model, next_token_loss, sharded, training_days


def test_parameters_are_those_of_models_that_were_built():
    for tied, dim, depth in itertools.product((True, False), (4, 12), (1, 3)):
        model = GPT(GPTConfig(30, 10, dim, depth, 2, tied=tied))
        assert gpt_parameters(30, 10, dim, depth, tied) == sum(p.numel() for p in model.parameters())
    for config in GPT2.values():
        sizes = config.vocabulary, config.context, config.dim, config.depth
        assert gpt_parameters(*sizes, True) // 10**6 in (124, 354, 773, 1556)


def test_flops_for_a_token_are_those_of_a_step():
    def loss(logits):
        return next_token_loss(logits, torch.zeros(logits.shape[:2], dtype=torch.long))

    for sizes in ((40, 16, 3, 8), (100, 8, 1, 30)):
        vocabulary, dim, depth, sequence = sizes
        config = GPTConfig(vocabulary, sequence, dim, depth, 2)
        step = account(lambda: GPT(config), lambda: torch.zeros(1, sequence, dtype=torch.long), loss)  # noqa: B023
        assert flops_per_token(*sizes) * sequence == step.total_flops
    assert flops_per_token(50257, 768, 12, 1024) * 1024 == 874_944_921_600


def test_memory_is_what_sharding_leaves_and_plans_fit():
    cost = ParameterBytes(weights=2, gradients=2, master=4, state=8, assumes="as in the exercise")
    for stage, gpus in itertools.product(range(4), (1, 2, 7, 64)):
        name = f"ZeRO-{stage}" if stage else "replicated"
        assert memory_per_gpu(10**6, stage, gpus, 77) == pytest.approx(1e6 * sharded(cost, name, gpus).total + 77)
        largest = round(largest_model(gpus, 80e9, cost, name))
        assert memory_per_gpu(largest, stage, gpus, 0) == pytest.approx(80e9)


def test_days_and_mfu_turn_into_each_other():
    mfu, days = mfu_and_days(70e9, 15e12, 1.2e6, 1024, 989.5e12, True)
    assert training_days(70e9, 15e12, 1024, 989.5e12, mfu) == pytest.approx(days)


@pytest.mark.parametrize("dollars", [1e3, 1e5, 1e7])
def test_a_plan_spends_its_dollars_and_fits(dollars):
    plan = plan_run(dollars, 2.5, 8, 80e9, 989.5e12, 0.4)
    assert training_days(plan["parameters"], plan["tokens"], 8, 989.5e12, 0.4) == pytest.approx(plan["days"])
    assert plan["days"] * 24 * 8 * 2.5 == pytest.approx(dollars)
    assert plan["parameters"] <= 8 * 80e9 / 2 / 16
    assert plan["tokens"] >= 20 * plan["parameters"] * (1 - 1e-9)


def test_the_two_guesses_of_notebook_00_come_back():
    """A guess is found by its question, so that both notebooks have to ask it in the same words."""
    sources = (
        "\n".join(cell.source for cell in read_notebook(NOTEBOOKS / name).cells)
        for name in ("00_start_here.ipynb", "14_transformer_accounting.ipynb")
    )
    asked, answered = (re.findall(r'predict\(\s*"([^"]+)",\s*(guess|measured)=', source) for source in sources)
    questions = [question for question, what in asked if what == "guess" and "H100" in question]
    assert len(questions) == 2
    assert [question for question, what in answered if what == "measured" and question in questions] == questions
    assert not [question for question, what in answered if what == "guess" and question in questions]


PLAN = (
    "C = dollars / dollars_per_gpu_hour * 3600 * flop_per_sec * mfu\n    N = min((C / 120) ** 0.5, {})\n    "
    "return dict(parameters=N, tokens={}, days=dollars / dollars_per_gpu_hour / {})"
)
WRITTEN = [  # what a learner may write, and how it is answered: None is "correct"
    ("gpt_parameters", "return dim * (vocabulary * (2 - tied) + context + depth * (12 * dim + 2) + 1)", None),
    ("gpt_parameters", "return dim * (vocabulary + context + depth * (12 * dim + 2) + 1)", "own_head_forgotten"),
    ("gpt_parameters", "return dim * (vocabulary * (2 - tied) + context + depth * 12 * dim)", "norms_forgotten"),
    ("gpt_parameters", "return dim * (vocabulary * (2 - tied) + context + depth * (12 * dim + 2))",
     "last_norm_forgotten"),
    ("gpt_parameters", "return 12 * depth * dim ** 2", OWN),
    ("gpt_parameters", "n = dim * (vocabulary * (2 - tied) + context + depth * (12 * dim + 2) + 1)\n    "
     "return int(torch.tensor(float(n)))", OWN),
    ("flops_per_token", "return 6 * (12 * depth * dim ** 2 + vocabulary * dim + depth * sequence * dim)",
     "one_product_of_attention"),
    ("flops_per_token", "return 72 * depth * dim * dim + 6 * vocabulary * dim + 12 * depth * sequence * dim", None),
    ("flops_per_token", "return 6 * (12 * depth * dim ** 2 + vocabulary * dim)", "without_scores"),
    ("flops_per_token", "return 6 * depth * (12 * dim ** 2 + 2 * sequence * dim)", "without_head"),
    ("flops_per_token", "return 2 * (depth * (12 * dim ** 2 + 2 * sequence * dim) + vocabulary * dim)", "forward_only"),
    ("memory_per_gpu", "o = 12 / (num_gpus if stage > 0 else 1)\n    g = 2 / (num_gpus if stage > 1 else 1)\n    "
     "w = 2 / (num_gpus if stage > 2 else 1)\n    return (o + g + w) * parameters + activations", None),
    ("memory_per_gpu", "return (16 * parameters + activations) / (num_gpus if stage else 1)", OWN),
    ("memory_per_gpu", "return 16 * parameters / (num_gpus if stage else 1) + activations", "all_or_nothing"),
    ("memory_per_gpu", "o = 8 / (num_gpus if stage > 0 else 1)\n    g = 2 / (num_gpus if stage > 1 else 1)\n    "
     "w = 6 / (num_gpus if stage > 2 else 1)\n    return (o + g + w) * parameters + activations",
     "masters_stay_with_weights"),
    ("mfu_and_days", "return (6 * parameters * tokens_per_sec / num_gpus / flop_per_sec, tokens / tokens_per_sec / "
     "(24 * 3600))", None),
    ("mfu_and_days", "f = 8 if recompute else 6\n    return (f * parameters * tokens_per_sec / num_gpus / flop_per_sec,"
     " tokens / tokens_per_sec / 86400)", "recomputing_counts"),
    ("mfu_and_days", "return (6 * parameters * tokens_per_sec / num_gpus / flop_per_sec, tokens / tokens_per_sec / 3600"
     ")", "hours"),
    ("plan_run", PLAN.format("num_gpus * memory_bytes / 32", "C / 6 / N", "num_gpus / 24"), None),
    ("plan_run", PLAN.format("num_gpus * memory_bytes / 32", "20 * N", "num_gpus / 24"), "money_left"),
    ("plan_run", PLAN.format("memory_bytes / 32", "C / 6 / N", "num_gpus / 24"), "memory_of_one"),
    ("plan_run", PLAN.format("1e99", "C / 6 / N", "num_gpus / 24"), "fit_ignored"),
    ("plan_run", PLAN.format("num_gpus * memory_bytes / 32", "C / 6 / N", "24"), "gpu_days"),
]


@pytest.mark.parametrize(("name", "body", "diagnosis"), WRITTEN)
def test_what_learners_write_is_recognised(name, body, diagnosis):
    one = getattr(nb14, name)
    assert_diagnosed(nb14, name, one.stub.removesuffix("...") + body, diagnosis)
