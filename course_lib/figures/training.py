"""Pictures of notebook 11: curves of runs, steps on a parabola, a learning-rate sweep, gradient norms."""
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE, VERMILION, new_figure
from course_lib.training import History

_COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY)
_MARKS = ("o", "s", "^", "D", "v", "P")
MOST_LINES = len(_COLOURS)
_STEPS_DRAWN = 6


@rc_context(STYLE)
@checked
def draw_losses(
    lines: Mapping[str, Sequence[float]],
    *,
    what: str = "loss",
    average: int = 1,
    level: tuple[str, float] | None = None,
    logarithmic: bool = True,
    on_top: bool = False,
) -> Figure:
    """One curve for each of `lines`, step by step; each point is the mean of `average` steps.

    `level` is the name of a height to compare with, and the height. `on_top` draws the first line wide and the last one
    narrow, so that lines on top of each other are all seen.
    """
    _require_lines("draw_losses", lines)
    figure, axes = new_figure(10, 4.2)
    for number, (name, values) in enumerate(lines.items()):
        steps, heights = _averaged(values, average)
        width = 2 + 4.5 * (len(lines) - 1 - number) if on_top else 2.5
        axes.plot(steps, heights, color=_COLOURS[number], label=name, linewidth=width)
    if level is not None:
        axes.axhline(level[1], color=INK, linewidth=1.5, linestyle=(0, (4, 3)), label=level[0])
    axes.set(xlabel="step", ylabel=what, yscale="log" if logarithmic else "linear")
    axes.legend()
    return figure


def _averaged(values: Sequence[float], count: int) -> tuple[list[float], list[float]]:
    chunks = [values[first : first + count] for first in range(0, len(values), count)]
    return [count * i + (len(c) - 1) / 2 for i, c in enumerate(chunks)], [sum(c) / len(c) for c in chunks]


@rc_context(STYLE)
@checked
def draw_overshoot(curvature: float, rates: Sequence[float]) -> Figure:
    """A panel for each learning rate: six steps down the parabola curvature/2 · w², from w = 1."""
    if not 1 <= len(rates) <= 4 or not 0 < curvature < math.inf:
        raise ValueError(f"draw_overshoot(): {len(rates)} rates, curvature {curvature}; 1 to 4, above 0 can be drawn.")
    figure, axes = new_figure(10, 3.9, columns=len(rates), squeeze=False, sharey=True)
    for panel, rate in zip(axes[0], rates, strict=True):
        factor = 1 - rate * curvature
        walk = [factor**step for step in range(_STEPS_DRAWN + 1)]
        far = 1.25 * max(map(abs, walk))
        grid = [far * (i / 50 - 1) for i in range(101)]
        panel.plot(grid, [curvature / 2 * w * w for w in grid], color=GREY)
        _draw_walk(panel, walk, curvature)
        panel.set_title(f"lr {rate:g}: w × {factor:.2g}".replace("-", "−"))
        panel.set(xlabel="w", xlim=(-1.8, 1.8), ylim=(-0.05 * curvature, 1.5 * curvature))
    axes[0, 0].set_ylabel("loss")
    return figure


def _draw_walk(panel: Axes, walk: Sequence[float], curvature: float) -> None:
    heights = [curvature / 2 * w * w for w in walk]
    for (a, b), (c, d) in zip(pairwise(walk), pairwise(heights), strict=True):
        arrow = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 3}
        panel.annotate("", (b, d), (a, c), arrowprops=arrow, annotation_clip=True)
    panel.plot(walk, heights, "o", color=BLUE)
    panel.plot(walk[:1], heights[:1], "o", color=INK, markersize=10)


@rc_context(STYLE)
@checked
def draw_sweep(losses: Mapping[str, Mapping[float, float]], limits: Mapping[str, float]) -> Figure:
    """Loss at the end against learning rate, one line for each model, and a row of crosses for its lost runs.

    `losses` maps a model to {learning rate: loss, inf for a run that blew up}; `limits` maps it to the learning rate
    beyond which it cannot stay at its minimum, a dashed line of its colour.
    """
    _require_lines("draw_sweep", losses)
    figure, axes = new_figure(10, 4.6)
    finite = [loss for row in losses.values() for loss in row.values() if loss < math.inf]
    top = 30 * max(finite, default=1.0)
    for number, (name, row) in enumerate(losses.items()):
        colour, good = _COLOURS[number], {rate: loss for rate, loss in row.items() if loss < math.inf}
        axes.plot(good.keys(), good.values(), color=colour, marker=_MARKS[number], label=name)
        lost = [rate for rate in row if rate not in good]
        height = top * 8.0 ** (len(losses) - 1 - number)
        axes.plot(lost, [height] * len(lost), "x", color=colour, markersize=9, markeredgewidth=2.5)
        if name in limits:
            axes.axvline(limits[name], color=colour, linewidth=1.5, linestyle=(0, (4, 3)))
    axes.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="loss at the end")
    axes.text(min(map(min, losses.values())), top, "× blew up", color=INK, fontsize=14)
    figure.legend(loc="outside lower center", ncols=4)
    return figure


@rc_context(STYLE)
@checked
def draw_norms(runs: Mapping[str, History], limit: float | None = None) -> Figure:
    """Loss and gradient norm of some runs, one panel each; `limit` is where gradients were clipped, a dashed line.

    A run that was stopped ends with a cross. Both axes are logarithmic; what lies beyond 10⁹ is not drawn.
    """
    _require_lines("draw_norms", runs)
    figure, axes = new_figure(10, 4.2, columns=2)
    longest = max(map(len, runs.values()))
    for panel, what in zip(axes, ("losses", "grad_norms"), strict=True):
        for number, (name, history) in enumerate(runs.items()):
            drawn = [value for value in getattr(history, what) if value < 1e9]
            panel.plot(history.steps[: len(drawn)], drawn, color=_COLOURS[number], label=name)
            if len(history) < longest:
                panel.plot(history.steps[len(drawn) - 1], drawn[-1], "x", color=_COLOURS[number], markersize=12,
                           markeredgewidth=3)  # fmt: skip
        panel.set(xlabel="step", yscale="log", title={"losses": "loss", "grad_norms": "gradient norm"}[what])
    if limit is not None:
        axes[1].axhline(limit, color=INK, linewidth=1.5, linestyle=(0, (4, 3)), label=f"clipped to {limit:g}")
    axes[1].legend()
    return figure


def _require_lines(function: str, lines: Mapping[str, object]) -> None:
    if not 1 <= len(lines) <= MOST_LINES:
        raise ValueError(f"{function}(): there are {len(lines)} lines; 1 to {MOST_LINES} can be drawn.")
