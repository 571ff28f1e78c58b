"""Pictures of notebook 01: ranks as boxes, broadcasting as stretched boxes, the two triangles of a mask."""
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, SKY, VERMILION, new_figure

_LAYER = 0.45  # how far one layer of a rank-3 box peeks out from behind the next, in cells
_AXIS_NAME = {"fontsize": 14, "color": GREY}
_CODE = {"family": "DejaVu Sans Mono", "weight": "bold", "fontsize": 15}


def draw_ranks() -> Figure:
    """A scalar, a vector, a matrix, a rank-3 and a rank-4 tensor, drawn with one box for each number."""
    figure, axes = new_figure(10, 4.3)
    names = ("scalar", "vector", "matrix", "tensor", "tensor")
    shapes = ((), (3,), (2, 3), (4, 2, 3), (2, 4, 2, 3))
    centres = (1.2, 5.0, 10.0, 15.6, 22.2)
    for rank, (name, shape, centre) in enumerate(zip(names, shapes, centres, strict=True)):
        axes.text(centre, 5.4, f"rank {rank}\n{name}", ha="center", va="center", fontsize=15, linespacing=1.5)
        axes.text(centre, -5.3, str(shape), ha="center", va="center", color=BLUE, **_CODE)
        for middle in (1.95, -1.95) if rank == 4 else (0,):
            _draw_box(axes, shape[-3:], centre, middle)
    axes.text(19.9, 1.0, "heads", ha="right", va="center", **_AXIS_NAME)
    axes.text(21.2, 3.6, "sequence", ha="right", va="center", **_AXIS_NAME)
    axes.text(21.5, -4.1, "dim", ha="center", va="center", **_AXIS_NAME)
    axes.text(25.6, 0, "batch", ha="left", va="center", **_AXIS_NAME)
    axes.plot([24.9, 25.2, 25.2, 24.9], [3.6, 3.6, -3.6, -3.6], color=GREY, linewidth=1.5)
    _frame(axes, (0, 28), (-5.8, 6.6))
    return figure


def draw_broadcast(left: torch.Tensor, right: torch.Tensor) -> Figure:
    """left + right, of at most two axes each: both operands stretched to the common shape, and the sum.

    Full colour marks the numbers that exist in memory; the dashed boxes are the same numbers, read again.
    """
    figure, axes = new_figure(10, 4.3)
    _draw_equation(axes, left, "+", right, left + right, "")
    return figure


def draw_silent_broadcast(predictions: torch.Tensor, targets: torch.Tensor) -> Figure:
    """(batch, 1) minus (batch,): every prediction meets every target. The differences that were meant are framed."""
    figure, axes = new_figure(10, 3.7)
    difference = predictions - targets
    corner = _draw_equation(axes, predictions, "−", targets, difference, f"framed: the {len(targets)} you meant")
    for step in range(len(targets)):
        axes.add_patch(Rectangle((corner + step, -step - 1), 1, 1, fill=False, edgecolor=INK, linewidth=4, zorder=3))
    return figure


def draw_causal_masks(words: tuple[str, ...] = ("the", "cat", "sat", "down")) -> Figure:
    """Which word may look at which: `tril` beside `triu`, with queries as rows and keys as columns."""
    figure, axes = new_figure(10, 4.5, columns=2)
    everything = torch.ones(len(words), len(words), dtype=torch.bool)
    _draw_mask(axes[0], everything.tril(), words, "tril keeps the past")
    _draw_mask(axes[1], everything.triu(), words, "triu keeps the future")
    return figure


def _draw_box(axes: Axes, shape: tuple[int, ...], centre: float, middle: float) -> None:
    """One tensor of up to three axes around a point, its layers one behind the other."""
    layers, rows, columns = (1, 1, 1)[: 3 - len(shape)] + shape
    depth = (layers - 1) * _LAYER
    left, top = centre - (columns + depth) / 2, middle + (rows - depth) / 2
    for layer in reversed(range(layers)):
        for row in range(rows):
            for column in range(columns):
                corner = (left + column + layer * _LAYER, top - row - 1 + layer * _LAYER)
                colour = SKY if layer else BLUE
                axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))


def _draw_equation(
    axes: Axes, left: torch.Tensor, sign: str, right: torch.Tensor, result: torch.Tensor, remark: str
) -> float:
    """Operands and result side by side. Returns the x at which the result begins."""
    rows, columns = torch.atleast_2d(result).shape
    step = columns + 1.6
    parts = ((left, BLUE, "white"), (right, ORANGE, INK), (result, GREEN, INK))
    for place, (tensor, colour, ink) in enumerate(parts):
        _draw_stretched(axes, tensor, (rows, columns), place * step, colour, ink)
        centre = place * step + columns / 2
        axes.text(centre, -rows - 0.4, str(tuple(tensor.shape)), ha="center", va="center", **_CODE)
        note = remark if tensor is result else f"stretched to {tuple(result.shape)}"
        if tensor is result or tensor.shape != result.shape:
            axes.text(centre, -rows - 0.9, note, ha="center", va="center", color=GREY, fontsize=14)
    for place, symbol in ((1, sign), (2, "=")):
        axes.text(place * step - 0.8, -rows / 2, symbol, ha="center", va="center", fontsize=26)
    _frame(axes, (-0.2, 2 * step + columns + 0.2), (-rows - 1.2, 0.2))
    return 2 * step


def _draw_stretched(
    axes: Axes, tensor: torch.Tensor, shape: tuple[int, int], left: float, colour: str, ink: str
) -> None:
    own = torch.atleast_2d(tensor)
    for row, numbers in enumerate(own.expand(shape).tolist()):
        for column, number in enumerate(numbers):
            exists = row < own.shape[0] and column < own.shape[1]
            look = {"facecolor": colour} if exists else {"facecolor": "white", "linestyle": (0, (3, 2))}
            corner = (left + column + 0.04, -row - 0.96)
            axes.add_patch(Rectangle(corner, 0.92, 0.92, edgecolor=colour, linewidth=1.8, **look))
            text, text_colour = f"{number:g}".replace("-", "−"), ink if exists else GREY
            x, y = left + column + 0.5, -row - 0.5
            axes.text(x, y, text, ha="center", va="center", color=text_colour, fontsize=17)


def _draw_mask(axes: Axes, keep: torch.Tensor, words: tuple[str, ...], title: str) -> None:
    for query in range(len(words)):
        for key in range(len(words)):
            kept, future = bool(keep[query, key]), key > query
            colour = PALE if not kept else VERMILION if future else BLUE
            axes.add_patch(Rectangle((key + 0.04, query + 0.04), 0.92, 0.92, facecolor=colour))
            mark = "" if not kept else "✗" if future else "✓"
            axes.text(key + 0.5, query + 0.5, mark, ha="center", va="center", color="white", fontsize=22)
    axes.set(xlim=(0, len(words)), ylim=(len(words), 0), aspect="equal")
    axes.set_title(title, fontsize=16, weight="bold", color=INK, pad=10)
    axes.set_xlabel("key: the word looked at", fontsize=14, color=INK)
    axes.set_ylabel("query: the word that looks", fontsize=14, color=INK)
    places = [place + 0.5 for place in range(len(words))]
    axes.set_xticks(places, words, fontsize=14)
    axes.set_yticks(places, words, fontsize=14)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _frame(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.set_axis_off()
