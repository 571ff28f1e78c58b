"""Pictures of notebook 10: paths down a surface, the steps that a large gradient leaves behind, memory part by part."""
import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SKY, STYLE, VERMILION, new_figure
from course_lib.surfaces import Surface

_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY)
_LINES = ("-", (0, (6, 2)), "-", (0, (3, 1.5)), "-", (0, (1, 1)))
_MARKS, _SIZES = "os^Dv*", (5, 5, 9, 4, 5, 7)  # hollow and large what others would hide
MOST_PATHS, MOST_BARS, MOST_PARTS, LEVELS = 6, 8, 6, 11
# One colour for each part of the memory, and the one of the text that can be read on it.
_FILLS = ((BLUE, "white"), (ORANGE, INK), (GREEN, INK), (PINK, INK), (SKY, INK), (PALE, INK))


@rc_context(STYLE)
@checked
def draw_paths(panels: Mapping[Surface, Mapping[str, Float[Tensor, "_ 2"]]]) -> Figure:
    """One panel for each surface: lines of equal loss, and each named path with a mark at every step.

    A path is what `descend` returns. A name has the same colour and mark in each panel. The ring is the start of the
    first path, the star a lowest point.
    """
    names = list(dict.fromkeys(name for paths in panels.values() for name in paths))
    if not names or len(names) > MOST_PATHS:
        raise ValueError(f"draw_paths(): panels name {len(names)} paths; 1 to {MOST_PATHS} can be drawn.")
    heights = [abs(s.y_range[1] - s.y_range[0]) / abs(s.x_range[1] - s.x_range[0]) for s in panels]
    width = 9.2 / len(panels)
    figure, axes = new_figure(10, min(width * max(heights) + 1.4, 5.0), columns=len(panels), squeeze=False)
    for panel, (surface, paths) in zip(axes[0], panels.items(), strict=True):
        _draw_surface(panel, surface)
        for name, path in paths.items():
            look = names.index(name)
            panel.plot(
                path[:, 0],
                path[:, 1],
                color=_COLOURS[look],
                linestyle=_LINES[look],
                marker=_MARKS[look],
                markersize=_SIZES[look],
                fillstyle="none" if _SIZES[look] > 5 else "full",
                linewidth=2,
                label=name,
                zorder=3,
            )
        start = next(iter(paths.values()))[0]
        panel.plot(*start.tolist(), "o", color=INK, markersize=13, fillstyle="none", markeredgewidth=2, zorder=4)
    handles = {h.get_label(): h for panel in axes[0] for h in panel.get_legend_handles_labels()[0]}
    figure.legend([handles[name] for name in names], names, loc="outside lower center", ncols=len(names))
    return figure


def _draw_surface(panel: Axes, surface: Surface) -> None:
    sides = (torch.linspace(*side, 201, dtype=torch.float64) for side in (surface.x_range, surface.y_range))
    points = torch.stack(torch.meshgrid(*sides, indexing="xy"), dim=-1)
    x, y = points.unbind(-1)
    loss = surface(points)
    low, high = surface(torch.tensor(surface.lowest[0], dtype=torch.float64)), loss.max()
    levels = low + (high - low) * torch.linspace(0.04, 1, LEVELS) ** 2  # closer where it is flat
    panel.contour(x, y, loss, levels=levels.tolist(), colors=GREY, linewidths=0.8, linestyles="solid", zorder=1)
    panel.plot(*zip(*surface.lowest, strict=True), "*", color=INK, markersize=15, zorder=4, linestyle="none")
    panel.set(xlim=surface.x_range, ylim=surface.y_range, aspect="equal", title=surface.name, xlabel="x", ylabel="y")


@rc_context(STYLE)
@checked
def draw_steps(curves: Mapping[str, Sequence], ylabel: str) -> Figure:
    """A number for each step, one line for each name, both axes logarithmic; the first number is that of step 1."""
    if not 1 <= len(curves) <= MOST_PATHS:
        raise ValueError(f"draw_steps(): there are {len(curves)} curves; 1 to {MOST_PATHS} can be drawn.")
    figure, axes = new_figure(10, 3.7)
    axes.axhline(1, color=GREY, linewidth=1)
    for (name, sizes), colour, line in zip(curves.items(), _COLOURS, _LINES, strict=False):
        axes.plot(range(1, len(sizes) + 1), sizes, color=colour, linestyle=line, label=name)
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel=ylabel)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


@rc_context(STYLE)
@checked
def draw_bytes(bars: Mapping[str, Mapping[str, float]], unit: str) -> Figure:
    """One stacked bar for each name: its parts in the order of the first bars that have them, and the sum at its end.

    A part has one colour throughout, and carries its number where it is wide enough.
    """
    parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
    if not (1 <= len(bars) <= MOST_BARS and 1 <= len(parts) <= MOST_PARTS):
        came = f"there are {len(bars)} bars of {len(parts)} parts"
        raise ValueError(f"draw_bytes(): {came}; 1 to {MOST_BARS} bars of 1 to {MOST_PARTS} parts can be drawn.")
    if wrong := [name for name, bar in bars.items() if not all(0 <= size < math.inf for size in bar.values())]:
        raise ValueError(f"draw_bytes(): a part of {wrong[0]!r} is negative or not finite; bytes are asked for.")
    longest = max(sum(bar.values()) for bar in bars.values()) or 1
    figure, axes = new_figure(10, 1.1 + 0.52 * len(bars))
    for row, bar in enumerate(bars.values()):
        begin = 0.0
        for part, (colour, ink) in zip(parts, _FILLS, strict=False):
            size = bar.get(part, 0)
            first = part not in axes.get_legend_handles_labels()[1]
            axes.barh(row, size, left=begin, color=colour, edgecolor="white", label=part if first else None)
            if size > 0.06 * longest:
                axes.text(begin + size / 2, row, _number(size), ha="center", va="center", color=ink, fontsize=14)
            begin += size
        axes.text(begin + 0.01 * longest, row, _number(begin), ha="left", va="center", weight="bold", fontsize=15)
    axes.set_yticks(range(len(bars)), list(bars), fontsize=14)
    axes.set(xlim=(0, 1.12 * longest), xlabel=unit)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda size, _: _number(size))
    axes.invert_yaxis()
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(parts))
    return figure


def _number(size: float) -> str:
    return f"{size:,.0f}" if size == round(size) or size >= 1000 else f"{size:.3g}"
