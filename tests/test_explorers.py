"""What holds for every explorer: it answers in sentences, shows what Python holds, and has its still forms."""
import json
import random
import re
import struct
from base64 import b64decode

import numpy as np
import pytest
import torch

from course_lib import explorers
from course_lib.explorers.base import Explorer, Nonsense, one_of, script, text_of, whole_number

NAMES = explorers.__all__
GARBAGE = [
    None, True, -1, 10**30, 2.5, "", "sNaN", "x" * 500, "nan", "−3", "()", "1,", "{}",
    [], [1, "a"], {"a": 1}, "\N{SNOWMAN}",
]  # fmt: skip


def made(name: str) -> Explorer:
    return getattr(explorers, name)()


def actions(explorer: Explorer) -> list[str]:
    return [name.removeprefix("do_") for name in dir(type(explorer)) if name.startswith("do_")]


def parameters(explorer: Explorer, action: str) -> list[str]:
    code = getattr(type(explorer), f"do_{action}").__code__
    return [*code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]]


@pytest.mark.parametrize("name", NAMES)
def test_garbage_from_the_page_gets_a_sentence_and_changes_nothing(name):
    explorer, rng, turn = made(name), random.Random(0), 0
    assert actions(explorer)
    for _ in range(300):
        action, turn = rng.choice([one for one in actions(explorer) if one != "measure"]), turn + 1  # it takes seconds
        before = explorer.drawn()
        arguments = {name: rng.choice(GARBAGE) for name in parameters(explorer, action)}
        explorer.asked = {"action": action, "turn": turn, **arguments}
        assert explorer.shown["turn"] == turn
        problem = explorer.shown["problem"]
        if problem:
            assert explorer.drawn() == before
            assert problem["says"].strip().endswith((".", "!", "?")), problem
            assert "\n" not in problem["says"] and "Error" not in problem["says"], problem
            assert not problem["says"].startswith("This cannot be shown"), f"{action} leaked: {problem}"
        json.dumps(explorer.shown, allow_nan=False)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_should_never_send_is_answered(name):
    explorer = made(name)
    odd = [{}, {"action": "no such"}, {"action": actions(explorer)[0], "unknown": 1}, {"action": 3}]
    for turn, asked in enumerate(odd, 1):
        explorer.asked = {**asked, "turn": turn}
        assert explorer.shown["turn"] == turn
        assert explorer.shown["problem"]["says"]


@pytest.mark.parametrize("name", NAMES)
def test_an_action_with_other_arguments_gets_a_sentence(name):
    explorer = made(name)
    action = actions(explorer)[0]
    wanted = parameters(explorer, action)[0]
    for odd in ({}, {"self": 1}, {"unknown": 1, wanted: 2}):
        explorer.asked = {"action": action, "turn": len(odd) + 1, **odd}
        said = f"{action} comes with {', '.join(odd) or 'nothing'}; {wanted}"
        assert explorer.shown["problem"]["says"].startswith(said)
    with pytest.raises(Nonsense, match=f"^{action} comes with nothing; {wanted}"):
        explorer.do(action)


@pytest.mark.parametrize(
    ("numpys", "pythons"),
    [
        (lambda: explorers.FloatExplorer(np.float32(0.5)), lambda: explorers.FloatExplorer(0.5)),
        (lambda: explorers.FloatExplorer(torch.tensor(0.5)), lambda: explorers.FloatExplorer(0.5)),
        (lambda: explorers.StrideExplorer(np.int64(12), np.zeros((2, 3)).shape, (np.int8(1), 2), np.uint8(3)),
         lambda: explorers.StrideExplorer(12, [2, 3], "1, 2", 3)),
        (lambda: explorers.EinopsExplorer("repeat", (np.int64(2), 3), "h w -> c h w", c=np.int64(2)),
         lambda: explorers.EinopsExplorer("repeat", (2, 3), "h w -> c h w", c=2)),
        (lambda: explorers.OptimizerExplorer("valley", "SGD", np.float32(0.1), np.float64(0.5), np.int64(9)),
         lambda: explorers.OptimizerExplorer("valley", "SGD", 0.1, 0.5, 9)),
    ],
)  # fmt: skip
def test_numbers_may_come_from_numpy_and_torch(numpys, pythons):
    assert repr(numpys()) == repr(pythons())


@pytest.mark.parametrize("make", [explorers.StrideExplorer, lambda _, shape: explorers.EinopsExplorer(shape=shape)])
def test_one_number_is_no_shape(make):
    with pytest.raises(Nonsense, match=r"shape is an int \(12\); several whole numbers, as \(3, 4\), are asked for\.$"):
        make(12, 12)


def test_each_view_of_an_explorer_goes_on_counting():
    """Two views that send the same action with the same number would be taken for one."""
    assert '(model.get("asked").turn ?? 0) + 1' in script("floats")


@pytest.mark.parametrize("name", NAMES)
def test_in_python_a_sentence_is_raised(name):
    with pytest.raises(ValueError, match="There is no action") as caught:
        made(name).do("fly")
    assert isinstance(caught.value, Nonsense)


@pytest.mark.parametrize("name", NAMES)
def test_the_still_forms_say_the_same_on_every_run(name):
    (first, metadata), (second, _) = made(name)._repr_mimebundle_(), made(name)._repr_mimebundle_()
    assert first["text/plain"] == second["text/plain"] == repr(made(name)) == metadata["image/png"]["alt"]
    assert len(first["text/plain"]) >= 60
    assert not re.search(r"0x[0-9a-f]{6,}|\bat 0x", first["text/plain"])
    assert first["image/png"] == second["image/png"]
    picture = b64decode(first["image/png"])
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG") and width / height > 1.2
    assert "application/vnd.jupyter.widget-view+json" in first


@pytest.mark.parametrize("name", NAMES)
def test_the_script_fetches_nothing_and_says_what_its_controls_are(name):
    script = str(made(name)._esm)
    assert "export default" in script
    assert not re.search(r"https?://(?!www\.w3\.org)|\bimport\b|\bfetch\(|innerHTML|eval\(", script)


@pytest.mark.parametrize("value", [None, 3, "x" * 201, b"x"])
def test_text_is_text(value):
    with pytest.raises(Nonsense, match=r"asked for|are the most"):
        text_of("number", value)


@pytest.mark.parametrize("value", [None, True, 1.0, "1.5", "many", -1, 11, "11"])
def test_a_whole_number_is_one(value):
    with pytest.raises(Nonsense, match="a whole number from 0 to 10 is asked for"):
        whole_number("bit", value, 0, 10)
    assert whole_number("bit", " 7 ", 0, 10) == 7


def test_a_choice_is_one_of_the_list():
    assert one_of("format", "a", {"a": 1}) == "a"
    with pytest.raises(Nonsense, match="one of a, b is asked for"):
        one_of("format", ["a"], {"a": 1, "b": 2})
