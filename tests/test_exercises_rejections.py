"""Wrong answers that are right on ordinary inputs: the cases and probes of notebooks 00 to 03 reject each."""

import importlib

import pytest

from course_lib.exercises import exercises
from course_lib.exercises.engine.judge import judge

ALL = exercises()
WRONG = {  # exercise: {what is wrong: source of a function}
    "times_as_many": {
        "math.pow": "lambda factor, axes: int(math.pow(factor, axes))",
        "32 bits": "lambda factor, axes: int(torch.tensor(factor, dtype=torch.int32) ** axes)",
        "float32": "lambda factor, axes: int(torch.tensor(float(factor)) ** axes)",
    },
    "tensor_bytes": {
        "a table": "lambda s, d: math.prod(s) * {'float32': 4, 'float64': 8, 'bfloat16': 2, 'bool': 1, 'int64': 8}"
        "[str(d)[6:]]",
        "each int has 8 bytes": "lambda s, d: math.prod(s) * (d.itemsize if d.is_floating_point or d.is_complex else"
        " 1 if d == torch.bool else 8)",
        "finfo for complex": "lambda s, d: math.prod(s) * (torch.finfo(d).bits // 8 if d.is_complex else d.itemsize)",
        "float16 has 4 bytes": "lambda s, d: math.prod(s) * (4 if d == torch.float16 else d.itemsize)",
        "four axes": "lambda s, d: math.prod(s[:4]) * d.itemsize",
    },
    "broadcast_shape": {
        "conflict at the last axis alone": "lambda a, b: tuple(n if m == 1 else m for m, n in zip(*_pad(a, b))) "
        "if not a or not b or a[-1] == b[-1] or 1 in (a[-1], b[-1]) else numpys_own(a, b)",
        "conflict if both are above 1": "lambda a, b: tuple(min(m, n) if 0 in (m, n) else max(m, n) "
        "for m, n in zip(*_pad(a, b))) if not any(m != n and m > 1 and n > 1 for m, n in zip(*_pad(a, b))) "
        "else numpys_own(a, b)",
    },
    "mean_squared_error": {
        "a new leaf": "lambda p, t: torch.tensor(mean_squared_error.reference(p, t).item(), dtype=p.dtype, "
        "requires_grad=p.requires_grad)",
        "detached": "lambda p, t: mean_squared_error.reference(p, t).detach().requires_grad_(p.requires_grad)",
    },
    "first_missing_integer": {
        "ceil": "lambda f, largest: min(2 ** (f + 1) + 1, math.ceil(largest) + (f == 2))",
        "round": "lambda f, largest: 2 ** (f + 1) + 1 if largest >= 2 ** (f + 1) else round(largest)",
        "a power of two": "lambda f, largest: 2 ** (f + 1) + 1 if largest >= 2 ** (f + 1) else 2**f",
    },
    "bfloat16_code": {
        "a NaN has a lower half": "lambda c: 0x7FC0 if c & 0x7FFFFFFF > 0x7F800000 and c & 0xFFFF "
        "else (c + 0x7FFF + (c >> 16 & 1)) >> 16",
        "a tie stays finite": "lambda c: 0x7F7F if c == 0x7F7F8000 else bfloat16_code.reference(c)",
        "text": "lambda c: f'{bfloat16_code.reference(c):#06x}'",
        "a float": "lambda c: float(bfloat16_code.reference(c))",
        "its own format": "lambda c: type('Code', (int,), {'__format__': lambda self, spec: "
        "format(bfloat16_code.reference(c), spec)})(0)",
    },
    "decode_e4m3": {
        "-448": "lambda c: -240.0 if c == 0xFE else decode_e4m3.reference(c)",
        "negative, largest field": "lambda c: math.nan if c > 0xFD else decode_e4m3.reference(c)",
        "smallest negative subnormal": "lambda c: 0.0 if c == 0x81 else decode_e4m3.reference(c)",
        "a negative field": "lambda c: decode_e4m3.reference(c) * (1 + (c >> 7 and c >> 3 & 15 == 9))",
    },
    "quantise_blocks": {
        "a view": "lambda x, block: quantise_blocks.reference(x.view(-1, block), block).view(x.shape)",
        "a smallest scale": "lambda x, block: _quantised(x, block, lambda b: (_largest(b) / 6).clamp(min=1e-6))",
        "1e-9 more": "lambda x, block: _quantised(x, block, lambda b: _largest(b) / 6 + 1e-9)",
    },
    "stable_softmax": {
        "float64": "lambda s: _normalised(s.double().exp()).to(s.dtype)",
        "the mean": "lambda s: _normalised((s.float() - s.float().masked_fill(s.isinf(), 0).mean(-1, keepdim=True))"
        ".exp()).to(s.dtype)",
    },
    "storage_position": {
        "three axes": "lambda strides, index, offset=0: offset + sum(i * s for i, s in zip(index[:3], strides[:3]))",
        "float32": "lambda strides, index, offset=0: int(offset + torch.tensor([*index, 0.0]) "
        "@ torch.tensor([*strides, 0.0]))",
    },
    "contiguous_strides": {
        "four axes": "lambda shape: tuple(math.prod(shape[axis + 1 : 4]) for axis in range(len(shape)))",
    },
    "aliases": {
        "4 bytes": "lambda x: _shared(x, more=['x.float()'] if x.itemsize == 4 else [])",
        "text": "lambda x: 'x[0]'",
        "an unknown name": "lambda x: _shared(x, more=['x.T.T'])",
    },
    "can_view": {
        "a leading 1 is left over": "lambda s, t, n: can_view.reference(s, t, n) and not "
        "(n[:1] == (1,) and s[:1] != (1,) and len(s) > 1)",
        "a last 1 is left over": "lambda s, t, n: can_view.reference(s, t, n) and not "
        "(n[-1:] == (1,) and s[-1:] != (1,) and len(s) > 1)",
        "either size": "lambda s, t, n: can_view.reference(s, t, n) or math.prod(n) == math.prod(s) == 6 "
        "and len(s) == 2 and 0 not in t and t[0] == s[0] * t[1]",
    },
}


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, answers in WRONG.items() for wrong in answers])
def test_a_wrong_answer_is_rejected(name, wrong):
    exercise = ALL[name]
    candidate = eval(WRONG[name][wrong], dict(vars(importlib.import_module(exercise.reference.__module__))))
    result = judge(exercise, candidate)
    assert result.status in ("wrong", "error"), result


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("bfloat16_code", "text", "type: gave 'str', expected 'int'"),
        ("aliases", "text", "type: gave 'str', expected 'set'"),
        ("aliases", "an unknown name", "names that are none of the twelve: gave 1 element, ['x.T.T'], expected 0"),
    ],
)
def test_an_answer_of_another_kind_raises_nothing(name, wrong, sentence):
    exercise = ALL[name]
    candidate = eval(WRONG[name][wrong], dict(vars(importlib.import_module(exercise.reference.__module__))))
    result = judge(exercise, candidate)
    assert result.status == "wrong" and sentence in result.message, result
