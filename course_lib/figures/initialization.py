"""Pictures of notebook 07: signals through many layers, the tails of initial weights, the axis that is fan-in."""
import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SKY, STYLE, VERMILION, new_figure

_COLOURS = (VERMILION, PINK, BLUE, GREEN, ORANGE, SKY)
MOST_LINES, LOWEST, HIGHEST = 6, 1e-9, 1e9
MOST_FAN = 12


@rc_context(STYLE)
@checked
def draw_signals(panels: Mapping[str, Mapping[str, Sequence]]) -> Figure:
    """One panel for each activation: the size of the signal after layer 1, 2, …, one line for each scheme.

    `panels` maps an activation to {scheme: sizes}. The axis is logarithmic, from 10⁻⁹ to 10⁹; a line that leaves it
    ends there. A scheme has the same colour in each panel.
    """
    schemes = list(dict.fromkeys(scheme for lines in panels.values() for scheme in lines))
    if not schemes or len(schemes) > MOST_LINES:
        raise ValueError(f"draw_signals(): panels name {len(schemes)} schemes; 1 to {MOST_LINES} can be drawn.")
    colours = dict(zip(schemes, _COLOURS, strict=False))
    figure, axes = new_figure(10, 4.6, columns=len(panels), squeeze=False, sharey=True)
    for panel, (title, lines) in zip(axes[0], panels.items(), strict=True):
        panel.axhline(1, color=GREY, linewidth=1)
        for scheme, sizes in lines.items():
            panel.plot(range(1, len(sizes) + 1), sizes, color=colours[scheme], label=scheme)
            _say_where_it_ends(panel, sizes, colours[scheme])
        panel.set_title(title)
        panel.set_xlabel("layer")
        panel.set_xticks([1, 10, 20] if max(map(len, lines.values())) >= 20 else [1, 5, 10])
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_ylim(LOWEST, HIGHEST)
    axes[0, 0].set_yticks([10.0**k for k in range(-9, 10, 3)], minor=False)
    axes[0, 0].set_ylabel("size of the signal (RMS)")
    handles = {h.get_label(): h for panel in axes[0] for h in panel.get_legend_handles_labels()[0]}
    figure.legend([handles[scheme] for scheme in schemes], schemes, loc="outside lower center", ncols=4)
    return figure


def _say_where_it_ends(panel: Axes, sizes: Sequence, colour: str) -> None:
    left_at = next((layer for layer, size in enumerate(sizes, start=1) if not size < HIGHEST), None)
    if left_at is not None and math.isfinite(sizes[-1]):
        text = f"to $10^{{{math.log10(sizes[-1]):.0f}}}$"
        panel.text(left_at + 0.6, HIGHEST / 2, text, color=colour, va="top", fontsize=14)


@rc_context(STYLE)
@checked
def draw_tails(draws: Mapping[str, torch.Tensor], std: float, bound: float = 3.0) -> Figure:
    """How many of the drawn weights lie where, counted in standard deviations, one panel for each of `draws`.

    A bar is a quarter of a standard deviation wide. The axis of counts is logarithmic, so that single weights
    far out can be seen. Bars beyond ± bound are vermilion, and their weights are counted in the title.
    """
    if not draws or not 0 < std < math.inf:
        raise ValueError(f"draw_tails(): {len(draws)} draws, std {std}; at least one and above 0 is asked for.")
    figure, axes = new_figure(10, 3.9, columns=len(draws), squeeze=False, sharey=True)
    edges = torch.arange(-6, 6.25, 0.25, dtype=torch.float64)
    for panel, (title, weights) in zip(axes[0], draws.items(), strict=True):
        z = weights.detach().double().flatten().cpu() / std
        counts = torch.histogram(z.clamp(-6, 6), edges).hist
        outside = (edges[1:] + edges[:-1]).abs() / 2 > bound
        for colour, shown in ((BLUE, ~outside), (VERMILION, outside)):
            panel.stairs(counts * shown, edges, fill=True, color=colour, linewidth=0)
        beyond = int((z.abs() > bound * (1 + 1e-6)).sum())
        panel.set_title(f"{title}\n{beyond:,} beyond {bound:g} σ")
        for side in (-bound, bound):
            panel.axvline(side, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        panel.set_xlabel("weight, in σ")
        panel.set_xticks(range(-6, 7, 3))
        panel.set_xlim(-6, 6)
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_ylim(bottom=0.5)
    axes[0, 0].set_ylabel("weights per bar")
    return figure


@rc_context(STYLE)
@checked
def draw_fans(fan_in: int, fan_out: int) -> Figure:
    """One weight in its two layouts: (in, out) as in x @ w, and (out, in) as in torch.nn.Linear.

    The cells that one output sums over are blue: a column of the first, a row of the second. Up to 12 by 12.
    """
    if not (1 <= fan_in <= MOST_FAN and 1 <= fan_out <= MOST_FAN):
        came = f"fan_in is {fan_in} and fan_out is {fan_out}"
        raise ValueError(f"draw_fans(): {came}; 1 to {MOST_FAN} of each can be drawn.")
    left, gap = 2.4, 5.2
    width, height = left + fan_out + gap + fan_in + 1.6, max(fan_in, fan_out)
    figure, axes = new_figure(10, (height + 2.9) * 10 / width)
    axes.set_xlim(0, width)
    axes.set_ylim(-height - 1.6, 1.3)
    axes.set_aspect("equal")
    axes.axis("off")
    for x0, rows, columns, names in (
        (left, fan_in, fan_out, ("w, used as x @ w", "fan_in", "fan_out", 0)),
        (left + fan_out + gap, fan_out, fan_in, ("nn.Linear: x @ weight.T", "fan_out", "fan_in", 1)),
    ):
        _draw_weight(axes, x0, rows, columns, *names)
    return figure


def _draw_weight(axes: Axes, x0: float, rows: int, columns: int, title: str, down: str, across: str, axis: int) -> None:
    """A grid whose top stands at 0. The fan-in axis carries the name in blue; torch.nn.init always takes axis 1."""
    for row in range(rows):
        for column in range(columns):
            summed = (column if axis == 0 else row) == 0
            face = BLUE if summed else PALE
            axes.add_patch(Rectangle((x0 + column, -row - 1), 1, 1, facecolor=face, edgecolor="white", linewidth=2))
    axes.text(x0 + columns / 2, 0.95, title, ha="center", va="center", fontsize=16, weight="bold")
    colours = {"fan_in": BLUE, "fan_out": INK}
    size = f"{down} = {rows}"
    axes.text(x0 - 0.35, -rows / 2, size, ha="center", va="center", fontsize=15, color=colours[down], rotation=90)
    size = f"{across} = {columns}"
    axes.text(x0 + columns / 2, 0.3, size, ha="center", va="center", fontsize=15, color=colours[across])
    verdict = "fan-in, as meant" if axis == 1 else "fan-out, taken for fan-in"
    colour, verdict = INK if axis == 1 else VERMILION, f"torch.nn.init takes axis 1:\n{columns}, {verdict}"
    axes.text(x0 + columns / 2, -rows - 0.4, verdict, ha="center", va="top", fontsize=14, color=colour)
