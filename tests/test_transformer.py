"""The GPT against its formulas, against `account`, against the allocator, and against what others have published."""
import dataclasses
import inspect
import math
import re

import accounting_models as models
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib import transformer
from course_lib.accounting import account
from course_lib.hardware import get_promised_flop_per_sec
from course_lib.modules import get_num_parameters
from course_lib.precision import MasterWeights, ParameterBytes, Precision, StochasticBFloat16
from course_lib.storage import measure_memory, measure_peak_memory
from course_lib.transformer import (
    GPT,
    GPT2,
    SHARDINGS,
    Block,
    CausalAttention,
    GPTConfig,
    Parts,
    korthikanti_activations,
    largest_model,
    next_token_loss,
    sharded,
    step_traffic,
    training_days,
    transformer_activations,
    transformer_flops,
    transformer_memory,
    transformer_parameters,
)

SMALL = GPTConfig(vocabulary=500, context=64, dim=64, depth=3, heads=4)
VARIANTS = {
    "as it is": SMALL,
    "biases": dataclasses.replace(SMALL, bias=True),
    "a head of its own, a narrow MLP": dataclasses.replace(SMALL, tied=False, hidden=100),
    "one block, one head": dataclasses.replace(SMALL, depth=1, heads=1, bias=True, tied=False),
}
FLOAT32 = Precision().bytes_per_parameter()


@pytest.fixture(autouse=True)
def plain_kernels():
    with models.plain_kernels():
        yield


def tokens_of(config, batch, sequence):
    return torch.randint(0, config.vocabulary, (batch, sequence), generator=torch.Generator().manual_seed(batch))


def step_of(config, batch, sequence, optimizer=torch.optim.AdamW, dtype=torch.float32, **options):
    def loss(logits):
        return next_token_loss(logits, torch.zeros(logits.shape[:2], dtype=torch.long))

    build = (lambda: GPT(config, **options).to(dtype), lambda: tokens_of(config, batch, sequence))
    return account(*build, loss, optimizer)


def plan_in_float32(batch=1, sequence=None, **options):
    return transformer_memory(SMALL, batch, sequence, bytes_per_parameter=FLOAT32, itemsize=4, **options)


# ------------------------------------------------------------------------------------------------- published numbers


def test_gpt2_by_nanogpts_table_by_formula_and_by_account():
    config = GPT2["124M"]
    parameters, forward = transformer_parameters(config), transformer_flops(config)
    assert parameters.total == 124_337_664 and forward.total == 291_648_307_200
    assert transformer_flops(config, training=True).total == 874_944_921_600
    assert parameters["embeddings"] == 38_597_376 + 786_432
    assert parameters["attention matrices"] == 12 * (1_769_472 + 589_824)
    assert parameters["MLP"] == 12 * 4_718_592 and parameters["norms"] == 25 * 768 and parameters["head"] == 0
    assert forward["attention matrices"] == 12 * (3_623_878_656 + 1_207_959_552)
    assert forward["attention scores"] == 12 * 2 * 1_610_612_736
    assert forward["MLP"] == 12 * 2 * 4_831_838_208 and forward["head"] == 79_047_426_048
    step = step_of(config, 1, 1024)
    assert step.parameters == 124_337_664
    assert step.forward_flops == 291_648_307_200 and step.total_flops == 874_944_921_600
    assert step.activation_bytes == transformer_activations(config).total


def test_gpt2s_sizes_with_biases_are_the_released_ones():
    released = {"124M": 124_439_808, "355M": 354_823_168, "774M": 774_030_080, "1558M": 1_557_611_200}
    assert {n: transformer_parameters(dataclasses.replace(c, bias=True)).total for n, c in GPT2.items()} == released


def test_palms_flops_a_token_are_those_without_the_embeddings_lookup():
    """6·N + 12·L·D·T (Chowdhery et al. 2022, appendix B), with N without the positions: those multiply nothing."""
    for config in GPT2.values():
        used = transformer_parameters(config).total - config.context * config.dim
        palm = 6 * used + 12 * config.depth * config.dim * config.context
        norms = 6 * transformer_parameters(config)["norms"]  # which are no matrices
        assert transformer_flops(config, training=True).total == config.context * (palm - norms)


def test_the_lectures_days():
    days = training_days(70e9, 15e12, 1024, get_promised_flop_per_sec("H100", torch.bfloat16), 0.5)
    assert f"{days:.2f}" == "143.93"
    assert f"{training_days(70e9, 15e12, 1024, 1979e12, 0.5):.2f}" == "71.96"
    assert training_days(70e9, 15e12, 1024, 989.5e12, 0.5, flops_per_parameter=8) == pytest.approx(days * 8 / 6)


def test_the_lectures_largest_models():
    recipes = Precision(), StochasticBFloat16(), MasterWeights(), MasterWeights("bfloat16")
    costs = [recipe.bytes_per_parameter() for recipe in recipes]
    fits = {cost.total: f"{largest_model(8, 80e9, cost, 'ZeRO-3') / 1e9:.1f}" for cost in costs}
    assert fits == {16: "40.0", 12: "53.3", 18: "35.6", 20: "32.0"}
    assert largest_model(8, 80e9, FLOAT32, "replicated") == 5.0e9
    assert largest_model(8, 80e9, FLOAT32, "ZeRO-3", reserved_bytes=20e9) == 30.0e9


def test_korthikantis_formula():
    config = GPTConfig(51200, 2048, 12288, 96, 96)  # GPT-3
    s, b, h, a = 2048, 1, 12288, 96
    one = s * b * h * (34 + 5 * a * s / h)
    assert korthikanti_activations(config) == 96 * one
    assert korthikanti_activations(config, tensor_parallel=8) == 96 * s * b * h * (10 + 24 / 8 + 5 * a * s / (h * 8))
    assert korthikanti_activations(config, tensor_parallel=8, sequence_parallel=True) == pytest.approx(96 * one / 8)
    scores = korthikanti_activations(config, recompute="scores")
    assert scores == 96 * s * b * h * 34
    assert 1 - scores / korthikanti_activations(config) == pytest.approx(0.70, abs=0.01)  # "70 %" for GPT-3, section 5
    assert korthikanti_activations(config, recompute="layers") == 96 * 2 * s * b * h


def test_our_layer_keeps_what_korthikanti_says_but_for_dropout_and_scores():
    without = dataclasses.replace(SMALL, depth=1)
    ours = transformer_activations(SMALL, 2, itemsize=2).total - transformer_activations(without, 2, itemsize=2).total
    rows = 2 * 64 * 2  # tokens of two layers
    statistics = rows * (2 * 2 * 2 + 4 * SMALL.heads)
    theirs = korthikanti_activations(dataclasses.replace(SMALL, depth=2), 2, recompute="scores")
    assert ours - statistics == theirs - 2 * rows * 64, "two dropout masks of a byte each, and everything else agrees"


# ---------------------------------------------------------------------------------------------------- account and real


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("options", [{}, {"recompute": True}], ids=["keeps all", "recomputes"])
def test_the_formulas_are_what_account_finds(config, options):
    step = step_of(config, 3, 48, **options)
    assert step.parameters == transformer_parameters(config).total
    assert step.forward_flops == transformer_flops(config, 3, 48).total
    assert step.total_flops == transformer_flops(config, 3, 48, training=True, **options).total
    assert step.activation_bytes == transformer_activations(config, 3, 48, **options).total


def test_the_formulas_hold_in_sixteen_bits():
    step = step_of(SMALL, 3, 48, dtype=torch.bfloat16)
    assert step.activation_bytes == transformer_activations(SMALL, 3, 48, itemsize=2).total
    assert step.optimizer_bytes == 4 * step.parameters + 4 * len(list(GPT(SMALL).parameters()))


def test_a_real_step_on_the_cpu_takes_what_the_formulas_say():
    """Byte by byte; the batch was there before, and the loss, one number, is alive meanwhile."""
    batch, length, made, losses = 4, 64, [], []
    x, y = tokens_of(SMALL, batch, length), tokens_of(SMALL, batch, length)
    given, loss_itself, number = 2 * batch * length * 8, 4, transformer_parameters(SMALL).total
    activations = transformer_activations(SMALL, batch, length).total - given
    assert measure_memory(lambda: made.append(GPT(SMALL)), "cpu") == 4 * number
    model, optimizer = made[0], torch.optim.AdamW(made[0].parameters())
    forward = measure_memory(lambda: losses.append(next_token_loss(model(x), y)), "cpu")
    assert forward == activations + loss_itself
    assert measure_memory(losses.pop().backward, "cpu") == 4 * number
    assert measure_memory(optimizer.step, "cpu") == 8 * number + 4 * len(list(model.parameters()))
    optimizer.zero_grad()

    def step():
        next_token_loss(model(x), y).backward()
        optimizer.step()

    logits = batch * length * SMALL.vocabulary * 4
    assert measure_peak_memory(step, "cpu") == activations + 2 * logits + loss_itself
    planned = plan_in_float32(batch, length)
    assert planned.total == 16 * number + activations + given
    assert list(planned.values())[:4] == [4 * number, 4 * number, 0, 8 * number]


# ----------------------------------------------------------------------------------------------------------- the model


def test_the_gpt_computes_what_the_same_gpt_without_einops_does():
    config = dataclasses.replace(SMALL, bias=True)
    model, x = GPT(config), tokens_of(config, 2, 20)
    h = model.tokens.weight[x] + model.positions.weight[:20]
    for block in model.blocks:
        q, k, v = block.attention.qkv(block.norm1(h)).split(64, dim=-1)
        q, k, v = (z.view(2, 20, 4, 16).transpose(1, 2) for z in (q, k, v))
        scores = (q @ k.mT / 4).masked_fill(torch.ones(20, 20).tril() == 0, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 20, 64)
        h = h + block.attention.out(mixed)
        h = h + F.linear(F.gelu(block.up(block.norm2(h))), block.down.weight, block.down.bias)
    torch.testing.assert_close(model(x), model.norm(h) @ model.tokens.weight.T, atol=1e-5, rtol=1e-4)


def test_no_token_sees_a_later_one_and_each_sees_the_earlier_ones():
    model, x = GPT(SMALL), tokens_of(SMALL, 1, 30)
    changed = x.clone()
    changed[0, 12] = (x[0, 12] + 1) % SMALL.vocabulary
    moved = (model(x) - model(changed)).abs().amax(-1)[0]
    assert (moved[:12] < 1e-6).all() and (moved[12:] > 1e-5).all()


def test_a_new_gpt_knows_nothing_and_its_stream_does_not_grow_with_depth():
    sizes = {}
    for depth in (2, 16):
        model = GPT(dataclasses.replace(SMALL, depth=depth), generator=torch.Generator().manual_seed(0))
        x, seen = tokens_of(SMALL, 8, 64), []
        model.norm.register_forward_pre_hook(lambda _, args, seen=seen: seen.append(args[0].std().item()))
        loss = next_token_loss(model(x[:, :-1]), x[:, 1:])
        assert loss.item() == pytest.approx(math.log(SMALL.vocabulary), abs=0.1)
        sizes[depth] = seen[0]
    assert sizes[16] < 1.5 * sizes[2], "eight times as many blocks would make it √8 times as large"


def test_it_learns_and_recomputing_changes_nothing():
    def losses(recompute):
        generator = torch.Generator().manual_seed(1)
        model = GPT(dataclasses.replace(SMALL, depth=2), recompute=recompute, generator=generator)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        x = torch.arange(40).repeat(2, 1) * 3 % 50
        for _ in range(25):
            loss = next_token_loss(model(x[:, :-1]), x[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    kept, again = list(losses(False)), list(losses(True))
    assert kept == again and kept[-1] < 0.5 * kept[0]


def test_a_tied_head_is_one_tensor_and_a_generator_decides_the_weights():
    tied, own = GPT(SMALL), GPT(dataclasses.replace(SMALL, tied=False))
    assert tied.head.weight is tied.tokens.weight and own.head.weight is not own.tokens.weight
    assert get_num_parameters(own) - get_num_parameters(tied) == 500 * 64
    first, second = (GPT(SMALL, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    biases = [p for name, p in GPT(VARIANTS["biases"]).named_parameters() if name.endswith("bias")]
    assert len(biases) == 3 * 6 + 1 and not any(b.any() for b in biases)


# ------------------------------------------------------------------------------------------------------------ sharding


def test_what_each_zero_stage_divides():
    cost = ParameterBytes(weights=2, gradients=2, master=4, state=8, assumes="as in the ZeRO paper")
    held = {name: sharded(cost, name, 64).total for name in SHARDINGS}
    # The ZeRO paper, figure 1: a 7.5-billion-parameter model on 64 GPUs takes 120, 31.4, 16.6 and 1.9 GB.
    assert {name: round(7.5 * size, 1) for name, size in held.items()} == {
        "replicated": 120, "ZeRO-1": 31.4, "ZeRO-2": 16.6, "ZeRO-3": 1.9, "tensor parallel": 1.9,
    }  # fmt: skip
    assert all(sharded(cost, name, 1) == cost for name in SHARDINGS)


def test_traffic_is_one_and_a_half_times_as_much_where_weights_are_divided():
    sent = [step_traffic(1e9, name, 8) for name in ("replicated", "ZeRO-1", "ZeRO-2", "ZeRO-3")]
    assert sent == [3.5e9, 3.5e9, 3.5e9, 5.25e9]
    assert step_traffic(1e9, "replicated", 1) == 0


def test_a_plan_shards_the_state_and_not_the_activations():
    config = GPT2["355M"]
    whole = transformer_memory(config, 4, bytes_per_parameter=FLOAT32, itemsize=2, recompute=True)
    eighth = transformer_memory(
        config, 4, bytes_per_parameter=FLOAT32, itemsize=2, recompute=True, sharding="ZeRO-3", num_gpus=8
    )
    assert sum(list(eighth.values())[:4]) * 8 == sum(list(whole.values())[:4]) == 16 * 354_551_808
    assert list(eighth.values())[4:] == list(whole.values())[4:]
    assert sum(list(whole.values())[4:]) == transformer_activations(config, 4, itemsize=2, recompute=True).total


# -------------------------------------------------------------------------------------------------------------- manners


def test_parts_add_up_and_display_themselves():
    parts = Parts({"a": 3, "b<": 1}, "FLOPs")
    assert (parts.total, parts.share("a"), parts.share("a", "b<"), parts.times(2)["a"]) == (4, 0.75, 1, 6)
    assert repr(parts) == "a      3  75.0%\nb<     1  25.0%\ntotal  4  FLOPs"
    assert "<td style='text-align:right;padding:2px 14px'>75.0%</td>" in parts._repr_html_()
    assert "b&lt;" in parts._repr_html_()
    assert Parts({"a": 0}, "bytes").share("a") == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: GPTConfig(10, 8, 12, 1, 5), "dim is 12; a multiple of heads, 5"),
        (lambda: GPTConfig(0, 8, 12, 1, 3), "vocabulary is 0; at least 1"),
        (lambda: GPTConfig(10, 8, 12, 1, 3, hidden=0), "hidden is 0; at least 1"),
        (lambda: GPT(SMALL)(torch.zeros(1, 65, dtype=torch.long)), "65 positions; 64 are the most"),
        (lambda: transformer_flops(SMALL, 0), "batch is 0"),
        (lambda: transformer_flops(SMALL, 1, 65), "sequence is 65; 1 to the context, 64"),
        (lambda: transformer_activations(SMALL, 1, 0), "sequence is 0; 1 to the context"),
        (lambda: korthikanti_activations(SMALL, recompute="all"), "recompute is 'all'; one of 'nothing'"),
        (lambda: korthikanti_activations(VARIANTS["a head of its own, a narrow MLP"]), "hidden is 100"),
        (lambda: korthikanti_activations(SMALL, tensor_parallel=0), "tensor_parallel is 0"),
        (lambda: training_days(0, 1, 1, 1, 0.5), "parameters is 0"),
        (lambda: training_days(1, 1, 1, 1, 1.1), "mfu is 1.1; a share of the promise"),
        (lambda: largest_model(8, 80e9, FLOAT32, "FSDP"), "sharding is 'FSDP'; one of 'replicated'"),
        (lambda: largest_model(0, 80e9, FLOAT32, "ZeRO-3"), "num_gpus is 0"),
        (lambda: largest_model(8, 80e9, FLOAT32, "ZeRO-3", reserved_bytes=80e9), "reserved_bytes is 80000000000.0"),
        (lambda: sharded(FLOAT32, "ZeRO-1", 0), "num_gpus is 0"),
        (lambda: step_traffic(1e9, "tensor parallel", 8), "traffic depends on the batch"),
        (lambda: plan_in_float32(sharding="tensor parallel"), "which divides activations as well"),
        (lambda: Parts({"a": 1}, "bytes").share("b"), "there is no part 'b'; there are a"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_sizes_and_bytes_of_another_type_are_refused():
    for call in (lambda: GPTConfig(10, 8, 12.0, 1, 3), lambda: Block(8, 2, 2.5)):
        with pytest.raises(TypeError, match="asked for"):
            call()
    with pytest.raises(TypeError, match="Float"):
        CausalAttention(8, 2)(torch.zeros(2, 8))


SENTENCES = {
    "GPT.forward(): tokens holds -1 to 9; 0 to 9 is asked for.":
        lambda: GPT(GPTConfig(10, 8, 4, 1, 2))(torch.tensor([[3, -1, 9]])),
    "GPT.forward(): tokens holds 3 to 10; 0 to 9 is asked for.":
        lambda: GPT(GPTConfig(10, 8, 4, 1, 2))(torch.tensor([[3, 10]])),
    "CausalAttention(): heads is 0; at least 1 is asked for.": lambda: CausalAttention(8, 0),
    "CausalAttention(): dim is -8; at least 1 is asked for.": lambda: CausalAttention(-8, 1),
    "CausalAttention(): dim is 8; a multiple of heads, 3, is asked for.": lambda: CausalAttention(8, 3),
    "Block(): hidden is 0; at least 1 is asked for.": lambda: Block(8, 2, 0),
    "transformer_activations(): itemsize is 0; at least 1 byte is asked for.":
        lambda: transformer_activations(SMALL, itemsize=0),
    "step_traffic(): itemsize is -2; at least 1 byte is asked for.": lambda: step_traffic(1, "ZeRO-3", 8, itemsize=-2),
    "largest_model(): bytes_per_parameter.total is 0.0; a finite number above 0 is asked for.":
        lambda: largest_model(8, 80e9, ParameterBytes(0, 0, 0, 0, "nothing"), "ZeRO-3"),
}  # fmt: skip


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_cannot_be_gets_one_sentence(sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        SENTENCES[sentence]()


def test_a_config_takes_numpys_numbers_and_holds_pythons():
    config = GPTConfig(np.int64(10), np.int32(8), 4, 1, 2, bias=np.bool_(True))
    assert config == GPTConfig(10, 8, 4, 1, 2, bias=True) and type(config.vocabulary) is int
    for wrong in ({"vocabulary": True}, {"bias": "no"}, {"tied": None}, {"dim": 4.0}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))} is .*is asked for"):
            GPTConfig(**{"vocabulary": 10, "context": 8, "dim": 4, "depth": 1, "heads": 2, **wrong})


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_tokens_may_be_small_integers(dtype):
    model, tokens = GPT(GPTConfig(10, 8, 4, 1, 2)), torch.tensor([[3, 1, 9]])
    logits = model(tokens.to(dtype))
    assert torch.equal(logits, model(tokens))
    assert torch.equal(next_token_loss(logits, tokens.to(dtype)), next_token_loss(logits, tokens))


def test_flops_stay_whole_numbers_however_many_they_are():
    large = GPTConfig(50257, 10**7 + 1, 10**7 + 1, 97, 1)
    again = transformer_flops(large, 3, training=True, recompute=True)
    assert 6 * again["MLP"] == 7 * transformer_flops(large, 3, training=True)["MLP"] and type(again["MLP"]) is int


def test_everything_the_package_offers_says_what_it_does():
    offered = [getattr(transformer, name) for name in transformer.__all__]
    assert all(inspect.getdoc(one) for one in offered if callable(one))
    assert isinstance(GPT(SMALL), nn.Module)
