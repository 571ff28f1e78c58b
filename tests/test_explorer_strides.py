"""The stride explorer shows what torch does: hundreds of random layouts, views, copies and refusals."""
import random

import pytest
import torch

from course_lib.explorers import StrideExplorer
from course_lib.explorers.base import Nonsense
from course_lib.explorers.strides import _SECOND


def some_layouts(count: int, seed: int = 0) -> list[tuple[int, tuple, tuple, int]]:
    rng = random.Random(seed)
    for _ in range(count):
        rank = rng.randint(1, 3)
        shape = tuple(rng.choice([1, 2, 2, 3, 4]) for _ in range(rank))
        strides = tuple(rng.choice([0, 1, 1, 2, 3, 4, 8]) for _ in range(rank))
        if rank < 3 or shape[0] * shape[1] <= 8:
            yield rng.randint(1, 24), shape, strides, rng.randint(0, 5)


def torch_allows(size: int, shape: tuple, strides: tuple, offset: int) -> bool:
    try:
        torch.arange(size).as_strided(shape, strides, offset)
    except RuntimeError:
        return False
    return True


def test_four_hundred_layouts_are_taken_or_refused_as_by_torch():
    taken = 0
    for size, shape, strides, offset in some_layouts(400):
        if not torch_allows(size, shape, strides, offset):
            with pytest.raises(Nonsense, match=f"the storage ends at {size - 1}, and torch refuses"):
                StrideExplorer(size, shape, strides, offset)
            continue
        taken += 1
        explorer = StrideExplorer(size, shape, strides, offset)
        x = torch.arange(size).as_strided(shape, strides, offset)
        shown = explorer.shown
        assert torch.equal(explorer.value, x) and explorer.value.stride() == x.stride()
        assert [n for matrix in shown["matrices"] for row in matrix for n in row] == x.flatten().tolist()
        assert [cell["x"] for cell in shown["cells"]] == [x.eq(place).sum().item() for place in range(size)]
        assert ("not contiguous" in shown["layout"]) is not x.is_contiguous()
        for step in range(x.numel()):
            explorer.asked = {"action": "walk", "to": step, "turn": step + 1}
            assert explorer.shown["here"] == x.flatten()[step] == eval(shown_index(explorer), {"x": x})
    assert taken > 100


def shown_index(explorer: StrideExplorer) -> str:
    """The index that the walk stands at, as it is written: "x[1, 2]"."""
    return explorer.shown["where"].split(" lies")[0]


def torch_views(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor | str:
    """The view, or what torch says against it."""
    try:
        return x.view(shape)
    except RuntimeError as error:
        return str(error)


def test_view_is_answered_as_torch_does():
    rng, answers = random.Random(1), set()
    for size, shape, strides, offset in some_layouts(300, seed=1):
        if not torch_allows(size, shape, strides, offset):
            continue
        explorer = StrideExplorer(size, shape, strides, offset)
        wanted = tuple(rng.choice([-1, 1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 3)))
        explorer.do("view_as", text=str(wanted))
        answer, view = explorer.shown["view"], torch_views(explorer.value, wanted)
        if isinstance(view, torch.Tensor):
            answers.add("works")
            assert f"strides {view.stride()}" in answer
        else:
            answers.add("stride" if "two strides" in answer else "number")
            assert "is refused" in answer
            assert ("two strides" in answer) is ("not compatible" in view)
    assert answers == {"stride", "number", "works"}


@pytest.mark.parametrize("name", [name for name in _SECOND if name != "none"])
def test_the_other_tensor_shares_what_torch_shares(name):
    for swapped in (False, True):
        explorer = StrideExplorer(24, (4, 3), (6, 1), 1)
        if swapped:
            explorer.do("swap")
        explorer.do("second", name=name)
        x, other = explorer.value, explorer.second
        before = x.clone()
        other.fill_(-1)
        reached = (x != before).sum().item()
        assert ("is a copy" in explorer.shown["sharing"]) is (reached == 0)
        if reached:
            assert f"{reached} cells are seen by both" in explorer.shown["sharing"]


def test_the_still_picture_is_there_for_every_layout():
    rng = random.Random(2)
    for size, shape, strides, offset in some_layouts(60, seed=2):
        if torch_allows(size, shape, strides, offset):
            explorer = StrideExplorer(size, shape, strides, offset)
            explorer.asked = {"action": "second", "name": rng.choice([*_SECOND]), "turn": 1}
            explorer.figure()
            assert explorer.facts()


def test_the_number_of_dimensions_may_change():
    explorer = StrideExplorer()
    explorer.do("second", name="x[:, ::2]")
    explorer.do("shape", text="2, 3, 2")
    assert explorer.value.stride() == (6, 2, 1)
    explorer.do("shape", text="12")
    assert explorer.value.stride() == (1,) and explorer.second is None
    with pytest.raises(Nonsense, match="two are needed"):
        explorer.do("swap")
    with pytest.raises(Nonsense, match="another number of dimensions"):
        explorer.do("second", name="x.mT")
    with pytest.raises(Nonsense, match="2 strides for 1 dimensions"):
        explorer.do("strides", text="1, 2")
    explorer.do("walk", to=11)
    explorer.do("shape", text="5")
    assert explorer.shown["here"] == 4
    explorer.do("walk", to=5)
    assert explorer.shown["here"] == 0  # after the last comes the first


@pytest.mark.parametrize(("action", "field", "value"), [
    ("shape", "text", "3, x"), ("shape", "text", "0, 3"), ("shape", "text", "1,1,1,1"), ("strides", "text", "-1, 1"),
    ("offset", "count", "1.5"), ("size", "count", 25), ("size", "count", 3), ("shape", "text", "9, 1"),
])  # fmt: skip
def test_nonsense_gets_a_sentence_beside_its_field(action, field, value):
    explorer = StrideExplorer()
    explorer.asked = {"action": action, field: value, "turn": 1}
    assert explorer.shown["problem"]["field"] == action
    assert explorer.value.shape == (3, 4)
