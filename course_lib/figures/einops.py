"""Pictures of notebook 04: where a pattern's named axes take each number, and which products an einsum adds up."""
import math
import re
from dataclasses import dataclass
from itertools import cycle

import torch
from einops import EinopsError, einsum, rearrange, reduce, repeat
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, VERMILION, new_figure

MOST_CELLS, MOST_AXES, MOST_ACROSS = 36, 3, 24  # the last in cells: a wider picture's letters would collide
_AXIS_COLOURS = (BLUE, VERMILION, GREEN, "#A0527D", "#8C6D1F", INK)
_MONO = {"family": "DejaVu Sans Mono", "weight": "bold"}
_CENTRED = {"ha": "center", "va": "center", "fontsize": 14}
_GAP, _LINE, _BESIDE, _ARROW = 0.22, 0.62, 1.2, 2.3  # in cells: gap in an axis, line of indices above, beside, arrow
_CELLS_ACROSS = 17.0  # a picture 10 inches wide has at least room for so many cells


@dataclass
class _Side:
    """One side of a pattern: the names in each group, the numbers, and for each number its place along `follow`."""

    groups: list[tuple[str, ...]]
    sizes: dict[str, int]
    values: torch.Tensor
    shades: torch.Tensor

    def spans(self, axis: int, size: float = 1.0, between: float = 0.0) -> list[tuple[float, float]]:
        """Where each index of an axis (−1 columns, −2 rows, −3 matrices) begins and ends, with gaps between blocks."""
        names = self.names(axis)
        total = math.prod(self.sizes[name] for name in names)
        inner = [math.prod(self.sizes[name] for name in names[i + 1 :]) for i in range(len(names) - 1)]
        starts = [i * (size + between) + _GAP * sum(i // run for run in inner) for i in range(total)]
        return [(start, start + size) for start in starts]

    def names(self, axis: int) -> tuple[str, ...]:
        return self.groups[axis] if len(self.groups) >= -axis else ()

    @property
    def header(self) -> float:
        return _LINE * (len(self.names(-1)) + len(self.names(-3)))

    @property
    def left(self) -> float:
        """Width of the lines of indices beside the cells, or of the names before the lines above them."""
        above = max((len(name) for name in self.names(-1) + self.names(-3)), default=0)
        return max(0.36 * above + 0.35, _BESIDE * len(self.names(-2)))

    @property
    def matrix(self) -> tuple[float, float]:
        return self.spans(-1)[-1][1], self.spans(-2)[-1][1]

    @property
    def width(self) -> float:
        return self.left + self.spans(-3, self.matrix[0], 0.6)[-1][1]


@checked
def draw_pattern(x: torch.Tensor, /, *patterns: str, follow: str = "", reduction: str = "", **sizes: int) -> Figure:
    """What einops makes of `x` by each pattern: every number before and after, beside the named indices of its axes.

    The axes named in `follow` (on the left side, "h w" names two) shade the numbers, so that the eye can find them
    again. A name that is new on the right repeats, one that is missing there is reduced by `reduction`. At most three
    axes and 36 numbers a side; names are single words.
    """
    if not patterns:
        raise ValueError("draw_pattern(): there is no pattern; at least one is asked for.")
    panels = [_both_sides(x, pattern, follow, reduction, sizes) for pattern in patterns]
    colours = _colours_of(" ".join(patterns))
    width = max(_CELLS_ACROSS, *map(_width, panels)) + 0.4
    heights = [max(s.header + s.matrix[1] for s in sides) + 1.65 for sides in panels]
    height = sum(heights) + 0.5 * (len(panels) - 1)
    figure, axes = _canvas(width, height)
    top, hue = 0.0, colours.get(f"{follow} ".split(" ")[0], GREY)
    for pattern, (before, after), tall in zip(patterns, panels, heights, strict=True):
        word = reduction if {*before.sizes} - {*_names(pattern.split("->")[1])} else ""
        _draw_coloured(axes, 0, top - 0.5, pattern.replace("->", "→"), colours, 17)
        lowest = top - tall + 0.7  # where the cells end
        body = max(before.matrix[1], after.matrix[1])
        _draw_side(axes, before, 0, lowest + (body + before.matrix[1]) / 2, colours, hue)
        _draw_arrow(axes, before.width + 0.45, lowest + body / 2, word)
        _draw_side(axes, after, before.width + _ARROW, lowest + (body + after.matrix[1]) / 2, colours, hue)
        top -= tall + 0.5
    return figure


@checked
def draw_einsum(a: torch.Tensor, b: torch.Tensor, pattern: str, at: tuple[int, int]) -> Figure:
    """Two matrices, the matrix that an einsum makes of them, and how its element `at` comes about.

    The pattern is of the kind "query hidden, key hidden -> query key": one name is shared and vanishes.
    """
    parts = [re.findall(r"\w+", part) for part in re.split(",|->", pattern)]
    shared = _shared_name(a, b, pattern, parts)
    result = einsum(a, b, pattern)
    if not all(0 <= index < size for index, size in zip(at, result.shape, strict=True)):
        raise ValueError(f"draw_einsum(): at is {at}; an index into shape {tuple(result.shape)} is asked for.")
    chosen, colours = dict(zip(parts[2], at, strict=True)), _colours_of(pattern)
    sides = [_matrix(names, x, chosen) for names, x in zip(parts, (a, b, result), strict=True)]
    width = max(_CELLS_ACROSS, sum(side.width for side in sides) + 2 * 1.5) + 0.4
    height = max(s.header + s.matrix[1] for s in sides) + 2.45
    figure, axes = _canvas(width, height)
    _draw_coloured(axes, 0, -0.5, pattern.replace("->", "→"), colours, 17)
    body, x0, lowest = max(s.matrix[1] for s in sides), 0.0, 1.5 - height
    for side, sign in zip(sides, (",", "→", ""), strict=True):
        _draw_side(axes, side, x0, lowest + (body + side.matrix[1]) / 2, colours, ORANGE)
        x0 += side.width + 1.5
        axes.text(x0 - 0.75, lowest + body / 2, sign, ha="center", va="center", fontsize=26, color=GREY)
    pairs = zip(*(side.values[side.shades == 1].tolist() for side in sides[:2]), strict=True)
    terms = " + ".join(f"{_number(p)}·{_number(q)}" for p, q in pairs)
    where = ", ".join(f"{name} {index}" for name, index in chosen.items())
    line = f"{where}:  {terms} = {_number(float(result[at]))}   summed over {shared}"
    _draw_coloured(axes, 0, 0.3 - height, line, colours, 15)
    return figure


def _width(sides: list[_Side]) -> float:
    return sum(side.width for side in sides) + _ARROW


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure, axes = new_figure(10, 10 * height / width)
    axes.set(xlim=(-0.1, width - 0.1), ylim=(-height, 0), aspect="equal")
    axes.axis("off")
    return figure, axes


def _both_sides(x: torch.Tensor, pattern: str, follow: str, reduction: str, sizes: dict[str, int]) -> list[_Side]:
    if not re.fullmatch(r"[a-z_0-9() ]+->[a-z_0-9() ]*", pattern) or re.search(r"\b\d", pattern):
        raise ValueError(f"draw_pattern(): pattern is {pattern!r}; names and parentheses with one '->' are asked for.")
    left, right = pattern.split("->")
    named = [_names(left), _names(right)]
    own = {name: size for name, size in sizes.items() if name in named[0]}
    try:
        apart = rearrange(x, f"{left} -> {' '.join(named[0])}", **own)
        lengths = {**sizes, **dict(zip(named[0], apart.shape, strict=True))}
        followed = _places_along(follow.split(), named[0], lengths)
        together = rearrange(followed, f"{' '.join(named[0])} -> {left}", **own)
        result, shades = (_apply(t, pattern, how, sizes, named) for t, how in ((x, reduction), (together, "max")))
    except (EinopsError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise ValueError(f"draw_pattern(): pattern {pattern!r} does not suit x: {reason}") from None
    sides = [_Side(_groups(left), lengths, x, together), _Side(_groups(right), lengths, result, shades)]
    for tensor in (x, result):
        if tensor.dim() > MOST_AXES or not 0 < tensor.numel() <= MOST_CELLS or _width(sides) > MOST_ACROSS:
            raise ValueError(
                f"draw_pattern(): a side has shape {tuple(tensor.shape)}; what can be drawn has 1 to {MOST_CELLS} "
                f"elements, at most {MOST_AXES} axes, and room for both sides beside each other."
            )
    return sides


def _apply(x: torch.Tensor, pattern: str, reduction: str, sizes: dict[str, int], named: list) -> torch.Tensor:
    if set(named[1]) - set(named[0]):
        return repeat(x, pattern, **sizes)
    return reduce(x, pattern, reduction, **sizes) if set(named[0]) - set(named[1]) else rearrange(x, pattern, **sizes)


def _places_along(follow: list[str], names: list[str], sizes: dict[str, int]) -> torch.Tensor:
    """For each element of a tensor with one axis per name: its index along the followed axes, counted through."""
    if unknown := [name for name in follow if name not in names]:
        raise ValueError(f"draw_pattern(): follow names {unknown[0]!r}, which is not on the left; there are {names}.")
    places = torch.zeros([sizes[name] for name in names], dtype=torch.int64)
    for name in follow:
        steps = torch.arange(sizes[name]).view([-1 if other == name else 1 for other in names])
        places = places * sizes[name] + steps
    return places


def _groups(side: str) -> list[tuple[str, ...]]:
    """"c (r p) w" → [("c",), ("r", "p"), ("w",)]."""
    return [tuple((inner or name).split()) for inner, name in re.findall(r"\(([^)]*)\)|(\w+)", side)]


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\w+", text)))


def _colours_of(text: str) -> dict[str, str]:
    return dict(zip(_names(text), cycle(_AXIS_COLOURS), strict=False))


def _shared_name(a: torch.Tensor, b: torch.Tensor, pattern: str, parts: list[list[str]]) -> str:
    """The name that both matrices have and the result has not; ValueError if the pattern is of another kind."""
    common = set.intersection(*({*zip(p, x.shape, strict=False)} for p, x in zip(parts, (a, b), strict=False)))
    if [*map(len, parts), a.dim(), b.dim(), len(common)] != [2, 2, 2, 2, 2, 1]:
        raise ValueError(
            f"draw_einsum(): pattern is {pattern!r} for shapes {tuple(a.shape)} and {tuple(b.shape)}; two matrices "
            "are asked for that share one name of one size, which vanishes."
        )
    return common.pop()[0]


def _matrix(names: list[str], x: torch.Tensor, chosen: dict[str, int]) -> _Side:
    """A matrix in which stands out what has the chosen index along each name that is chosen."""
    marked = torch.ones(x.shape, dtype=torch.int64)
    for axis, name in enumerate(names):
        if name in chosen:
            along = (torch.arange(x.shape[axis]) == chosen[name]).long()
            marked = marked * (along[:, None] if axis == 0 else along)
    return _Side([(name,) for name in names], dict(zip(names, x.shape, strict=True)), x, marked)


def _draw_side(axes: Axes, side: _Side, x0: float, top: float, colours: dict[str, str], hue: str) -> None:
    """The cells with their upper edge at `top`, lines of indices above and beside them, and the shape below."""
    wide, tall = side.matrix
    matrices = [(x0 + side.left + begin, x0 + side.left + end) for begin, end in side.spans(-3, wide, 0.6)]
    shape = (len(matrices), len(side.spans(-2)), len(side.spans(-1)))
    values, shades = (t.reshape(shape).tolist() for t in (side.values, side.shades / max(int(side.shades.max()), 1)))
    for matrix, (left, _) in enumerate(matrices):
        columns = [(left + begin, left + end) for begin, end in side.spans(-1)]
        for row, (above, _) in enumerate(side.spans(-2)):
            for column, (begin, _) in enumerate(columns):
                number = _number(values[matrix][row][column])
                _draw_cell(axes, begin, top - above - 1, number, hue, shades[matrix][row][column])
        _draw_indices(axes, side, -1, columns, top + 0.08, colours, x0 + side.left - 0.3 if matrix == 0 else None)
    upper = top + 0.08 + _LINE * len(side.names(-1))
    _draw_indices(axes, side, -3, matrices, upper, colours, x0 + side.left - 0.3)
    _draw_indices_beside(axes, side, x0 + side.left, top, colours)
    middle = (matrices[0][0] + matrices[-1][1]) / 2
    axes.text(middle, top - tall - 0.42, str(tuple(side.values.shape)), **_CENTRED, **_MONO)


def _draw_indices(
    axes: Axes, side: _Side, axis: int, spans: list, y: float, colours: dict[str, str], name_at: float | None
) -> None:
    """Above the cells: a line for each name of an axis, the last one lowest, its indices over what they span."""
    names = side.names(axis)
    for line, name in enumerate(reversed(names)):
        level, look = y + _LINE * line + 0.24, _CENTRED | _MONO | {"color": colours[name]}
        for begin, end, index in _runs(side, names, name, spans):
            axes.text((begin + end) / 2, level, index, **look)
            if end - begin > 1.01:
                _draw_bracket(axes, begin + 0.06, end - 0.06, level, colours[name])
        if name_at is not None:
            axes.text(name_at, level, name, **look | {"ha": "right"})


def _draw_indices_beside(axes: Axes, side: _Side, x: float, top: float, colours: dict[str, str]) -> None:
    """Left of the cells: a column for each name of the rows' axis, the last one nearest, its name standing upright."""
    names, spans = side.names(-2), [(top - begin, top - end) for begin, end in side.spans(-2)]
    middle = (spans[0][0] + spans[-1][1]) / 2
    for line, name in enumerate(reversed(names)):
        place, look = x - 0.3 - _BESIDE * line, _CENTRED | _MONO | {"color": colours[name]}
        for begin, end, index in _runs(side, names, name, spans):
            axes.text(place, (begin + end) / 2, index, **look)
            if begin - end > 1.01:
                _draw_bracket(axes, end + 0.06, begin - 0.06, place, colours[name], upright=True)
        fitting = {"fontsize": min(14, 49 * len(spans) / len(name))}  # a cell is at least 30 points high
        axes.text(place - 0.55, middle, name, rotation=90 * (len(name) > 2), **look | fitting)


def _draw_bracket(axes: Axes, begin: float, end: float, level: float, colour: str, upright: bool = False) -> None:
    """A line on either side of the index in the middle, its ends bent towards the cells."""
    middle, inner = (begin + end) / 2, level + (0.2 if upright else -0.2)
    halves = ([begin, begin, middle - 0.3], [inner, level, level]), ([end, end, middle + 0.3], [inner, level, level])
    for along, across in halves:
        axes.plot(*((across, along) if upright else (along, across)), color=colour, linewidth=2)


def _runs(side: _Side, names: tuple[str, ...], name: str, spans: list) -> list[tuple[float, float, str]]:
    """(begin, end, index) for each stretch of an axis over which the index of `name` stays the same."""
    run = math.prod(side.sizes[other] for other in names[names.index(name) + 1 :])
    starts = range(0, len(spans), run)
    return [(spans[s][0], spans[s + run - 1][1], str(s // run % side.sizes[name])) for s in starts]


def _draw_cell(axes: Axes, x: float, y: float, text: str, hue: str, share: float) -> None:
    mixed = tuple(1 - (0.1 + 0.75 * share) * (1 - channel) for channel in to_rgb(hue))
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=mixed, edgecolor=INK, linewidth=1.2))
    cell = 72 * axes.figure.get_figwidth() / (axes.get_xlim()[1] - axes.get_xlim()[0])
    size = min(15, 1.45 * cell / max(len(text), 2))
    ink = "white" if share > 0.66 and hue != ORANGE else INK
    axes.text(x + 0.5, y + 0.47, text, ha="center", va="center", fontsize=size, color=ink)


def _draw_arrow(axes: Axes, begin: float, y: float, word: str) -> None:
    end = begin + _ARROW - 0.9
    arrow = {"arrowstyle": "-|>,head_length=9,head_width=5", "color": GREY, "linewidth": 3}
    axes.add_patch(FancyArrowPatch((begin, y), (end, y), **arrow, shrinkA=0, shrinkB=0))
    axes.text((begin + end) / 2, y + 0.45, word, **_CENTRED)


def _draw_coloured(axes: Axes, x: float, y: float, text: str, colours: dict[str, str], size: float) -> None:
    """A line of code in which each name has its colour: every letter is 0.602 of the font size wide."""
    size = min(size, 1150 / len(text))  # points, so that the line fits into ten inches
    step = 0.602 * size / 720 * (axes.get_xlim()[1] - axes.get_xlim()[0])
    for piece in re.finditer(r"\w+|\S", text):
        colour = colours.get(piece[0], INK)
        axes.text(x + piece.start() * step, y, piece[0], **_MONO, color=colour, fontsize=size)


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")
