"""The float explorer shows what torch holds: for hundreds of numbers, every bit, every step, every format."""
import math
import random
import struct

import ml_dtypes
import numpy as np
import pytest
import torch

from course_lib.explorers import FloatExplorer
from course_lib.explorers.base import Nonsense
from course_lib.floats import BFLOAT16, E2M1, E4M3, FLOAT16, FLOAT32, FloatFormat

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64,
          "E4M3": torch.float8_e4m3fn, "E5M2": torch.float8_e5m2}  # fmt: skip


def some_numbers(count: int) -> list[float]:
    rng = random.Random(0)
    return [rng.choice([-1, 1]) * rng.uniform(1, 2) * 2.0 ** rng.randint(-20, 15) for _ in range(count)]


def test_three_hundred_numbers_in_all_formats_as_torch_rounds_them():
    explorer = FloatExplorer()
    for number in some_numbers(300):
        explorer.do("number", text=repr(number))
        shown = {row["format"]: float(row["becomes"]) for row in explorer.shown["others"]}
        want = {name: torch.tensor(number, dtype=torch.float64).to(dtype).item() for name, dtype in DTYPES.items()}
        want["E2M1"] = float(np.float64(max(-6.0, min(6.0, number))).astype(ml_dtypes.float4_e2m1fn))
        assert shown == want
        assert explorer.value == want["float32"]
        assert explorer.code == struct.unpack(">I", struct.pack(">f", number))[0]
        assert "".join(explorer.shown["groups"]) == f"{explorer.code:032b}"


def test_every_bit_flips_its_own():
    rng = random.Random(1)
    for form, integer in ((FLOAT32, torch.int32), (FLOAT16, torch.int16), (BFLOAT16, torch.int16)):
        for number in some_numbers(20):
            explorer, bit = FloatExplorer(number, form), rng.randrange(form.bits)
            before = torch.tensor(number, dtype=DTYPES[form.name]).view(integer).item() % (1 << form.bits)
            explorer.asked = {"action": "flip", "bit": bit, "turn": 1}
            code = before ^ 1 << form.bits - 1 - bit
            signed = code - (1 << form.bits if code >> form.bits - 1 else 0)
            value = torch.tensor(signed, dtype=integer).view(DTYPES[form.name]).item()
            assert explorer.code == code
            assert explorer.value == value or (math.isnan(explorer.value) and math.isnan(value))
            explorer.do("flip", bit=bit)
            assert explorer.code == before


@pytest.mark.parametrize("by", [-1, 1])
def test_steps_are_those_of_nextafter(by):
    for number in some_numbers(50):
        explorer = FloatExplorer(number)
        want = np.nextafter(np.float32(number), np.float32(by * np.inf))
        explorer.do("step", by=by)
        assert explorer.value == want
        assert explorer.form.round(float(explorer.shown["typed"])) == want


def test_what_is_lost_is_the_exact_difference():
    rows = {row["format"]: row["lost"] for row in FloatExplorer("0.1").shown["others"]}
    assert rows["float32"] == "1.49e-09 (1.5e-08 of it)"
    assert rows["E2M1"] == "-0.1 (all of it)"
    assert FloatExplorer("257", BFLOAT16).value == 256
    rows = {row["format"]: row["lost"] for row in FloatExplorer("65504").shown["others"]}
    assert rows["float16"] == rows["float32"] == "nothing"
    assert {row["becomes"] for row in FloatExplorer("65520").shown["others"] if row["format"] == "float16"} == {"inf"}


def test_a_change_of_format_rounds_what_was_typed_once():
    explorer = FloatExplorer("0.1", E4M3)
    explorer.do("format", name="float32")
    assert explorer.value == torch.tensor(0.1).item()


@pytest.mark.parametrize("text", ["", "hello", "1e999999999", "1e-999999", "0x10", "1,5", "1/3", "--1", "٣ und 4"])
def test_what_is_no_number_is_said_beside_the_field(text):
    explorer = FloatExplorer("0.1")
    explorer.asked = {"action": "number", "text": text, "turn": 1}
    assert explorer.shown["problem"]["field"] == "number"
    assert explorer.shown["typed"] == "0.1" and explorer.value == torch.tensor(0.1).item()


def test_a_format_without_nan_refuses_it():
    explorer = FloatExplorer("nan")
    explorer.asked = {"action": "format", "name": "E2M1", "turn": 1}
    assert explorer.shown["problem"]["field"] == "format" and explorer.form is FLOAT32
    with pytest.raises(Nonsense, match="no neighbours"):
        explorer.do("step", by=1)
    with pytest.raises(Nonsense, match="largest number of E2M1"):
        FloatExplorer("6", E2M1).do("step", by=1)


def test_your_own_format():
    explorer = FloatExplorer("0.3", FloatFormat("mine", 3, 4))
    assert explorer.value == 0.296875 and "mine" in explorer.shown["formats"]


@pytest.mark.parametrize("wrong", [{"form": "float32"}, {"number": "many"}, {"number": None}])
def test_a_wrong_argument_gets_a_sentence(wrong):
    with pytest.raises((TypeError, ValueError), match=r"asked for|is no number"):
        FloatExplorer(**wrong)
