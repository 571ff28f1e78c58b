"""The einops explorer shows what einops does: hundreds of random patterns, and every error at its character."""
import math
import random

import einops
import pytest
import torch
from einops import EinopsError

from course_lib.explorers import EinopsExplorer
from course_lib.explorers.base import Nonsense


def some_calls(count: int) -> list[tuple[str, tuple[int, ...], str, dict[str, int]]]:
    """Random patterns that einops takes: axes split on the left, shuffled and merged on the right."""
    rng = random.Random(0)
    for _ in range(count):
        names = ["a", "b", "c", "d"][: rng.randint(1, 4)]
        sizes = {name: rng.choice([1, 2, 2, 3]) for name in names}
        left = groups_of(rng, names)
        right = rng.sample(names, len(names))
        operation = rng.choice(["rearrange", "reduce", "repeat"])
        if operation == "reduce":
            right = right[: rng.randint(0, len(right))]
        if operation == "repeat":
            right.insert(rng.randint(0, len(right)), "new")
        pattern = f"{said(left)} -> {said(groups_of(rng, right))}"
        shape = tuple(math.prod(sizes[name] for name in group) for group in left)
        yield operation, shape, pattern, sizes | ({"new": 2} if operation == "repeat" else {})


def groups_of(rng: random.Random, names: list[str]) -> list[list[str]]:
    groups: list[list[str]] = []
    for name in names:
        if groups and rng.random() < 0.4:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def said(groups: list[list[str]]) -> str:
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in groups)


def test_three_hundred_patterns_as_einops_does_them():
    for operation, shape, pattern, sizes in some_calls(300):
        explorer = EinopsExplorer(operation, shape, pattern, "sum", **sizes)
        x = torch.arange(float(math.prod(shape))).reshape(shape)
        extra = ("sum",) if operation == "reduce" else ()
        want = getattr(einops, operation)(x, pattern, *extra, **sizes)
        assert explorer.shown["error"] == ""
        assert torch.equal(explorer.value, want) and explorer.value.stride() == want.stride()
        drawn = [float(number) for matrix in explorer.shown["output"] for row in matrix for number, _ in row]
        assert drawn == want.flatten().tolist()
        before = explorer.value.clone()
        explorer.x.add_(1)
        assert ("a view" in explorer.shown["result"]) is (not torch.equal(explorer.value, before))
        if operation != "reduce":
            shades = {number: shade for matrix in explorer.shown["input"] for row in matrix for number, shade in row}
            moved = [(number, shade) for matrix in explorer.shown["output"] for row in matrix for number, shade in row]
            assert all(shades[number] == shade for number, shade in moved)


ERRORS = [  # operation, pattern, sizes, what is said, the text that begins where the error arises
    ("rearrange", "h w -> w c", "", "only on one side", "h w -> w c"),
    ("rearrange", "h w -> h w c", "", "only on one side of expression (should be on both): {'c'}", "c"),
    ("rearrange", "(h a) w -> w h a", "a=3", "can't divide axis of length 4 in chunks of 3", "(h a) w"),
    ("rearrange", "h (w a) -> w h a", "a=4", "can't divide axis of length 6 in chunks of 4", "(w a) ->"),
    ("rearrange", "h w", "", "exactly one ->", ""),
    ("rearrange", "h w -> w h -> h", "", "exactly one ->", "-> h"),
    ("rearrange", "h (w -> w h", "", "parenthes", "(w"),
    ("rearrange", "((h) w) -> w h", "", "brackets inside brackets", "(h) w"),
    ("rearrange", "h) w -> h", "", "not balanced", ") w"),
    ("rearrange", "h w & -> h", "", "Unknown character", "& ->"),
    ("rearrange", "h 2w -> h", "", "2w", "2w ->"),
    ("rearrange", "h _w -> h _w", "", "_w", "_w -> h"),
    ("rearrange", "h h -> h", "", "duplicate", "h -> h"),
    ("rearrange", "h w -> w h h", "", "duplicate", "h"),
    ("rearrange", "h ... w ... -> h", "", "ellipsis", "... -> h"),
    ("rearrange", "(h ...) w -> w h", "", "llipsis", "...) w"),
    ("rearrange", "(h 2) w -> h 2 w", "", "anonymous", "2) w"),
    ("rearrange", "a w -> w a", "a=3", "4 != 3", "a w"),
    ("rearrange", "h w -> w h", "c=3", "Axis c is not used", ""),
    ("rearrange", "(a b) w -> a b w", "", "Could not infer sizes for {'a', 'b'}", "a b) w"),
    ("rearrange", "h w c -> c w h", "", "expected 3 dims", "c -> c"),
    ("rearrange", "h -> h", "", "expected 1 dims", " -> h"),
    ("reduce", "h w -> h x", "", "{'x'}", "x"),
    ("repeat", "h w -> h w c", "", "{'c'}", "c"),
]


@pytest.mark.parametrize(("operation", "pattern", "sizes", "says", "rest"), ERRORS)
def test_the_error_stands_at_its_character(operation, pattern, sizes, says, rest):
    explorer = EinopsExplorer("rearrange", (4, 6), "h w -> w h")
    explorer.do("operation", name=operation)
    explorer.do("sizes", text=sizes)
    explorer.do("pattern", text=pattern)
    assert says in explorer.shown["error"] and explorer.value is None
    assert pattern[explorer.shown["at"] :].startswith(rest) and (rest or explorer.shown["at"] == len(pattern))
    assert "Traceback" not in explorer.shown["error"] and "\n" not in explorer.shown["error"]
    assert explorer.figure()


def test_what_is_typed_at_random_gets_einops_answer():
    rng = random.Random(1)
    explorer = EinopsExplorer("rearrange", (4, 6), "h w -> w h")
    taken = 0
    pieces = ["h", "w", " ", "(", ")", "->", "...", "2", "1", "_", "&", "c"]
    for _ in range(500):
        typed = ["h", " ", "w", " ", "->", " ", "w", " ", "h"]
        for _ in range(rng.randint(0, 3)):
            typed.insert(rng.randint(0, len(typed)), rng.choice(pieces))
            typed.pop(rng.randrange(len(typed)))
        text = "".join(typed)
        explorer.do("pattern", text=text)
        try:
            want = einops.rearrange(explorer.x, text.strip())
        except (EinopsError, ValueError):
            assert explorer.value is None and explorer.shown["error"]
            assert 0 <= explorer.shown["at"] <= len(text)
        else:
            taken += 1
            assert torch.equal(explorer.value, want)
    assert 50 < taken < 450
    explorer.do("pattern", text="h w -> w h")
    assert explorer.shown["error"] == ""


def test_sets_of_names_come_in_one_order():
    explorer = EinopsExplorer("rearrange", (2, 3), "zeta alpha -> mu")
    assert "{'alpha', 'mu', 'zeta'}" in explorer.shown["error"]


@pytest.mark.parametrize(("action", "text", "says"), [
    ("shape", "0, 3", "from 1 to 64"), ("shape", "9, 9", "more than the 64 numbers"), ("shape", "a", "whole numbers"),
    ("sizes", "h2", "no size of an axis"), ("sizes", "h=0", "from 1 to 64"), ("sizes", "pattern=2", "own arguments"),
    ("pattern", "x" * 300, "300 characters"),
])  # fmt: skip
def test_nonsense_gets_a_sentence_beside_its_field(action, text, says):
    explorer = EinopsExplorer()
    explorer.asked = {"action": action, "text": text, "turn": 1}
    assert explorer.shown["problem"]["field"] == action and says in explorer.shown["problem"]["says"]
    assert explorer.value.shape == (2, 3, 4)


def test_the_examples_have_a_picture_of_their_numbers():
    explorer = EinopsExplorer()
    for name in explorer.shown["presets"]:
        explorer.do("preset", name=name)
        assert bool(explorer.figure().get_figheight() > 2) is (explorer.value is not None), name


def test_too_large_to_draw_is_said():
    explorer = EinopsExplorer("repeat", (8, 8), "h w -> h w c", c=64)
    assert "too many to draw" in explorer.shown["error"]


def test_a_wrong_operation_is_refused_in_python():
    with pytest.raises(Nonsense, match="one of rearrange, reduce, repeat"):
        EinopsExplorer("transpose")


@pytest.mark.parametrize("name", ["x", "follow", "patterns", "self", "axes"])
def test_axes_may_be_called_as_arguments_are(name):
    explorer = EinopsExplorer("rearrange", (4, 3), "h w -> w h")
    explorer.do("pattern", text=f"({name} b) w -> w {name} b")
    explorer.do("sizes", text=f"{name}=2")
    assert explorer.value.shape == (3, 2, 2)
    assert explorer._repr_mimebundle_()[0]["image/png"]


def test_the_axes_of_both_sides_have_their_names():
    def names(explorer: EinopsExplorer) -> list[list[str]]:
        return [["".join(text for text, _ in group) for group in side] for side in explorer.shown["sides"]]

    explorer = EinopsExplorer()
    assert names(explorer) == [["seq", "(heads dim)"], ["heads", "seq", "dim"]]
    number = {text: axis for group in explorer.shown["sides"][0] for text, axis in group}
    assert (number["seq"], number["heads"], number["dim"]) == (0, 1, 2)
    explorer.do("pattern", text="seq dim -> seq heads")
    assert names(explorer) == [["seq", "dim"], []]
    for text in ("seq", "seq dim more -> seq", "... dim -> dim ...", "a -> b -> c"):
        explorer.do("pattern", text=text)
        assert names(explorer)[0] == []
