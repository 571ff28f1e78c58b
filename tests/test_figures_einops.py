"""The pictures of patterns show what einops says (numbers, shapes, indices by name) and refuse what cannot be drawn."""
import io
from collections import Counter

import pytest
import torch
from einops import einsum, rearrange, reduce, repeat
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from course_lib.figures import draw_einsum, draw_pattern
from course_lib.figures.style import BLUE, GREEN, VERMILION

GRID = torch.arange(24.0).reshape(4, 6)
CUBE = torch.arange(100.0, 112).reshape(2, 3, 2)
DRAWN = {  # name: (tensor, pattern, keywords of the picture, what einops makes of it)
    "permute": (CUBE, "h w c -> c h w", {"follow": "c"}, rearrange(CUBE, "h w c -> c h w")),
    "split": (GRID, "s (h d) -> h s d", {"follow": "h", "h": 2}, rearrange(GRID, "s (h d) -> h s d", h=2)),
    "merge": (CUBE, "h s d -> s (h d)", {}, rearrange(CUBE, "h s d -> s (h d)")),
    "cut a vector": (GRID[0], "(d h) -> h d", {"follow": "h", "h": 2}, rearrange(GRID[0], "(d h) -> h d", h=2)),
    "pool": (
        GRID,
        "(h a) (w b) -> h w",
        {"follow": "h w", "reduction": "mean", "a": 2, "b": 3},
        reduce(GRID, "(h a) (w b) -> h w", "mean", a=2, b=3),
    ),
    "sum all": (GRID, "h w -> ", {"reduction": "sum"}, GRID.sum()),
    "repeat each": (GRID[:, :2], "h w -> h (w n)", {"n": 3}, repeat(GRID[:, :2], "h w -> h (w n)", n=3)),
    "a new axis": (GRID[:2], "h w -> n h w", {"n": 2}, repeat(GRID[:2], "h w -> n h w", n=2)),
    "three in one": (GRID[:2].flatten(), "(a b c) -> b (c a)", {"a": 2, "b": 3}, None),
    "a long pattern": (
        GRID[:, :4],
        "sequence (headcount hiddensize) -> headcount hiddensize sequence",
        {"headcount": 2},
        rearrange(GRID[:, :4], "s (h d) -> h d s", h=2),
    ),
    "negative": (-GRID[:2], "h w -> w h", {"follow": "w"}, -GRID[:2].T),
}


def texts(figure: Figure) -> list[Text]:
    return list(figure.axes[0].texts)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def cells(figure: Figure) -> list[Rectangle]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def numbers(tensor: torch.Tensor) -> list[str]:
    return [f"{number:g}".replace("-", "−") for number in tensor.flatten().tolist()]


def numbers_in(figure: Figure) -> list[str]:
    """What stands in the cells, cell by cell in the order of drawing."""
    inside = {(box.get_x() + 0.5, box.get_y() + 0.47): box for box in cells(figure)}
    return [text.get_text() for text in texts(figure) if text.get_position() in inside]


def colour_of(figure: Figure, word: str) -> set[str]:
    return {to_hex(text.get_color()) for text in texts(figure) if text.get_text() == word}


def png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_and_shapes_are_those_of_einops(name):
    x, pattern, options, result = DRAWN[name]
    if result is None:
        result = rearrange(x, pattern, **options)
    figure = draw_pattern(x, pattern, **options)
    assert numbers_in(figure) == numbers(x) + numbers(result)
    assert {str(tuple(x.shape)), str(tuple(result.shape))} <= set(words(figure))
    assert ("mean" in words(figure), "sum" in words(figure)) == (name == "pool", name == "sum all")


def test_each_number_keeps_its_shade_on_the_way():
    for name in ("permute", "split", "cut a vector", "negative"):
        x, pattern, options, _ = DRAWN[name]
        figure = draw_pattern(x, pattern, **options)
        faces = [to_hex(box.get_facecolor()) for box in cells(figure)]
        seen = Counter(zip(numbers_in(figure), faces, strict=True))
        assert set(seen.values()) == {2}, name
        axis = options["follow"]
        assert len(set(faces)) == {"c": 2, "h": 2, "w": 6}[axis]


def test_a_window_has_one_shade_and_its_mean_the_same():
    x, pattern, options, _ = DRAWN["pool"]
    faces = [to_hex(box.get_facecolor()) for box in cells(draw_pattern(x, pattern, **options))]
    before, after = torch.tensor([sorted(set(faces)).index(face) for face in faces]).split([24, 4])
    assert torch.equal(reduce(before.reshape(4, 6), "(h a) (w b) -> h w", "min", a=2, b=3).flatten(), after)
    assert torch.equal(reduce(before.reshape(4, 6), "(h a) (w b) -> h w", "max", a=2, b=3).flatten(), after)
    assert len(set(after.tolist())) == 4


def test_indices_stand_over_what_they_count():
    figure = draw_pattern(GRID[0, :4], "(h d) -> h d", "(d h) -> h d", h=2)
    found = [[t.get_text() for t in texts(figure) if to_hex(t.get_color()).upper() == hue] for hue in (BLUE, VERMILION)]
    h, d = ([text for text in line if text.isdigit()] for line in found)
    # (h d): one index of h for two numbers; (d h): h alternates. On the right, each stands once.
    assert h == [*"01", *"01", *"0101", *"01"]
    assert d == [*"0101", *"01", *"01", *"01"]


def test_a_name_has_one_colour_wherever_it_stands():
    figure = draw_pattern(GRID, "seq (heads hidden) -> heads seq hidden", heads=2)
    for name, colour in (("seq", BLUE), ("heads", VERMILION), ("hidden", GREEN)):
        assert colour_of(figure, name) == {colour.lower()}
        assert words(figure).count(name) == 4  # twice in the pattern, once on each side


def test_an_einsum_shows_both_matrices_the_result_and_one_sum():
    q, k = torch.tensor([[1.0, 2.0, 0.0], [3.0, 1.0, -1.0]]), torch.arange(12.0).reshape(4, 3)
    pattern = "query hidden, key hidden -> key query"
    figure = draw_einsum(q, k, pattern, at=(2, 1))
    assert numbers_in(figure) == numbers(q) + numbers(k) + numbers(einsum(q, k, pattern))
    lowest = min(text.get_position()[1] for text in texts(figure))
    line = "".join(text.get_text() for text in texts(figure) if text.get_position()[1] == lowest)
    assert line == "key2,query1:3·6+1·7+−1·8=17summedoverhidden"
    shaded = [to_hex(box.get_facecolor()) for box in cells(figure)]
    dark = [number for number, face in zip(numbers_in(figure), shaded, strict=True) if face != shaded[0]]
    assert dark == ["3", "1", "−1", "6", "7", "8", "17"]


def test_a_picture_is_the_same_each_time():
    assert png(draw_pattern(GRID, "h w -> w h", follow="w")) == png(draw_pattern(GRID, "h w -> w h", follow="w"))


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_outside_of_the_picture_or_on_each_other(name):
    x, pattern, options, _ = DRAWN[name]
    figure = draw_pattern(x, pattern, pattern, **options)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts(figure) if text.get_text()]
    for number, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other.padded(-2)) for other in boxes[:number]), texts(figure)[number]


@pytest.mark.parametrize(
    ("draw", "error", "sentence"),
    [
        (lambda: draw_pattern(GRID), ValueError, "there is no pattern"),
        (lambda: draw_pattern(GRID, "h w"), ValueError, "names and parentheses with one '->'"),
        (lambda: draw_pattern(GRID, "... w -> w ..."), ValueError, "names and parentheses with one '->'"),
        (lambda: draw_pattern(GRID, "h w -> 1 h w"), ValueError, "names and parentheses with one '->'"),
        (lambda: draw_pattern(GRID, "h w c -> h w c"), ValueError, "expected 3 dims. Received 2-dim tensor"),
        (lambda: draw_pattern(GRID, "h (a b) -> h a b", a=4), ValueError, "can't divide axis of length 6"),
        (lambda: draw_pattern(GRID, "h w -> h"), ValueError, "Unknown reduction"),
        (lambda: draw_pattern(GRID.long(), "h w -> h", reduction="mean"), ValueError, "non-floating"),
        (lambda: draw_pattern(GRID, "h w -> w h", follow="c"), ValueError, "follow names 'c'"),
        (lambda: draw_pattern(torch.zeros(6, 7), "h w -> w h"), ValueError, r"shape \(6, 7\); what can be drawn"),
        (lambda: draw_pattern(GRID, "h w -> h w n", n=2), ValueError, r"shape \(4, 6, 2\); what can be drawn"),
        (lambda: draw_pattern(GRID.flatten(), "(h w) -> w h", h=4), ValueError, "room for both sides"),
        (lambda: draw_pattern(GRID, "h (a b) -> h a b a2", a=2, a2=1), ValueError, "at most 3 axes"),
        (lambda: draw_pattern(torch.zeros(0, 2), "h w -> w h"), ValueError, r"shape \(0, 2\)"),
        (lambda: draw_pattern([1, 2], "h -> h"), TypeError, "x is a list"),
        (lambda: draw_einsum(GRID, GRID, "a b, c b -> a c d", at=(0, 0)), ValueError, "share one name"),
        (lambda: draw_einsum(GRID, GRID, "a b, a b -> a b", at=(0, 0)), ValueError, "share one name"),
        (lambda: draw_einsum(GRID, GRID.T, "a b, c b -> a c", at=(0, 0)), ValueError, r"shapes \(4, 6\) and \(6, 4\)"),
        (lambda: draw_einsum(GRID, GRID, "a b", at=(0, 0)), ValueError, "share one name"),
        (lambda: draw_einsum(GRID, GRID, "a b, c b -> a c", at=(0, 9)), ValueError, "at is"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(draw, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        draw()
    assert str(raised.value).count("\n") == 0
