"""Pictures of notebook 13: weights that move or stall, gradients and float16's range, bytes of each recipe."""
import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullLocator
from torch import Tensor

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SKY, STYLE, VERMILION, new_figure
from course_lib.floats import BFLOAT16, FLOAT16

_PATH_COLOURS = (VERMILION, BLUE, GREEN, PINK)
_LOSS_COLOURS = (SKY, ORANGE, GREEN, INK, VERMILION, PINK)
_PART_COLOURS = {"weights": BLUE, "gradients": ORANGE, "master": GREEN, "state": SKY}
_OTHER_COLOURS = (PINK, GREY)
MOST_PATHS, MOST_LEVELS, MOST_RECIPES = len(_PATH_COLOURS), 24, 8
_LOWEST_POWER, _HIGHEST_POWER = -40, 20  # of two, at the ends of the gradients' axis


@rc_context(STYLE)
@checked
def draw_weight_paths(paths: Mapping[str, Tensor]) -> Figure:
    """Where a weight is after each step, one path for each of `paths`: a 1-D tensor that begins with step 0.

    A bfloat16 path is drawn as stairs, others as a smooth line. Thin grey lines are the bfloat16 numbers.
    """
    if not 1 <= len(paths) <= MOST_PATHS or any(path.ndim != 1 or not len(path) for path in paths.values()):
        came = f"{len(paths)} paths of shapes {[tuple(path.shape) for path in paths.values()]}"
        raise ValueError(f"draw_weight_paths(): {came}; 1 to {MOST_PATHS} 1-D ones can be drawn.")
    figure, axes = new_figure(10, 4.4)
    low = min(path.detach().float().min().item() for path in paths.values())
    high = max(path.detach().float().max().item() for path in paths.values())
    levels = BFLOAT16.numbers(BFLOAT16.neighbours(low)[0], BFLOAT16.round(high))
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"draw_weight_paths(): {len(levels)} bfloat16 numbers lie there; {MOST_LEVELS} can be drawn.")
    for level in levels:
        axes.axhline(level, color=PALE, linewidth=1.6, zorder=0)
    for (name, path), colour in zip(paths.items(), _PATH_COLOURS, strict=False):
        values = path.detach().float().tolist()
        style = {"drawstyle": "steps-post"} if path.dtype is torch.bfloat16 else {"linewidth": 1.8}
        axes.plot(range(len(values)), values, color=colour, label=name, **style)
    axes.set(xlabel="step", ylabel="weight", xlim=(0, max(map(len, paths.values())) - 1))
    margin = (levels[1] - levels[0]) * 0.3
    axes.set_ylim(min(low, levels[0]) - margin, max(high, levels[-1]) + margin)
    axes.yaxis.set_major_locator(FixedLocator(levels if len(levels) <= 9 else levels[::2]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4f}"))
    axes.legend(loc="lower left", facecolor="white", framealpha=1, frameon=True, edgecolor="white")
    return figure


@rc_context(STYLE)
@checked
def draw_gradients(panels: Mapping[str, Tensor]) -> Figure:
    """How many gradients have which size, counted in powers of two, and where float16 ends; a panel for each tensor.

    What float16 would round to 0 is vermilion; what would be infinite is pink. Zeros are left out.
    """
    if not 1 <= len(panels) <= 3 or not all(g.numel() for g in panels.values()):
        raise ValueError(f"draw_gradients(): {len(panels)} panels; 1 to 3, none of them empty, can be drawn.")
    figure, axes = new_figure(10, 4.2, columns=len(panels), squeeze=False, sharey=True)
    for panel, (title, gradients) in zip(axes[0], panels.items(), strict=True):
        _draw_sizes(panel, title, gradients.detach().double().flatten().cpu())
    axes[0, 0].set_ylabel("share of the gradients")
    axes[0, 0].yaxis.set_major_locator(MultipleLocator(0.05))
    axes[0, 0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    return figure


@rc_context(STYLE)
@checked
def draw_recipe_losses(curves: Mapping[str, Sequence[float]]) -> Figure:
    """The loss of each recipe, step by step, on a logarithmic axis.

    The first curve is drawn wide and each later one narrower, so that curves on top of each other are all seen.
    """
    if not 1 <= len(curves) <= len(_LOSS_COLOURS):
        raise ValueError(f"draw_recipe_losses(): {len(curves)} curves; 1 to {len(_LOSS_COLOURS)} can be drawn.")
    figure, axes = new_figure(10, 4.2)
    for number, (name, losses) in enumerate(curves.items()):
        width = max(2.0, 11 - 3 * number)
        axes.plot(losses, color=_LOSS_COLOURS[number], linewidth=width, solid_capstyle="butt", label=name)
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    for line in axes.legend(loc="lower left").get_lines():
        line.set_linewidth(min(6, line.get_linewidth()))
    return figure


def _draw_sizes(panel: Axes, title: str, gradients: Tensor) -> None:
    lost = gradients.half() == 0
    powers = torch.frexp(gradients[gradients != 0]).exponent - 1
    kept = powers.clamp(_LOWEST_POWER, _HIGHEST_POWER - 1)
    counts = torch.bincount(kept - _LOWEST_POWER, minlength=_HIGHEST_POWER - _LOWEST_POWER).double() / len(gradients)
    lowest, highest = math.log2(FLOAT16.smallest_subnormal) - 1, math.log2(FLOAT16.max)
    for place, share in enumerate(counts.tolist()):
        power = place + _LOWEST_POWER
        colour = VERMILION if power < lowest else PINK if power > highest else BLUE
        panel.bar(power + 0.5, share, width=1, color=colour, linewidth=0)
    panel.axvspan(lowest, highest, color=PALE, zorder=0)
    panel.set_title(f"{title}\n{lost.double().mean():.0%} become 0")
    panel.set_xlim(_LOWEST_POWER, _HIGHEST_POWER)
    panel.set_xticks([-40, -25, -10, 0, 16], [f"$2^{{{power}}}$" for power in (-40, -25, -10, 0, 16)])
    panel.set_xlabel("size of a gradient; grey: what float16 holds")


@rc_context(STYLE)
@checked
def draw_recipe_bytes(recipes: Mapping[str, Mapping[str, float]]) -> Figure:
    """Bytes per parameter of each recipe as a bar, made of its parts; the sum stands at its end.

    `recipes` maps a name to {part: bytes}. Parts of no bytes are left out. A part has the same colour in each bar.
    """
    if not 1 <= len(recipes) <= MOST_RECIPES:
        raise ValueError(f"draw_recipe_bytes(): {len(recipes)} recipes; 1 to {MOST_RECIPES} can be drawn.")
    names = list(dict.fromkeys(part for parts in recipes.values() for part in parts))
    spare = iter(_OTHER_COLOURS)
    colours = {name: _PART_COLOURS[name] if name in _PART_COLOURS else next(spare, GREY) for name in names}
    figure, axes = new_figure(10, 1.5 + 0.55 * len(recipes))
    for row, parts in enumerate(recipes.values()):
        begin = 0.0
        for part, size in parts.items():
            if size > 0:
                axes.barh(row, size, left=begin, height=0.7, color=colours[part], edgecolor="white", linewidth=2)
                ink = INK if part == "state" or part == "gradients" else "white"
                axes.text(begin + size / 2, row, f"{size:g}", ha="center", va="center", color=ink, fontsize=14)
                begin += size
        axes.text(begin + 0.25, row, f"{begin:g}", va="center", fontsize=15, weight="bold")
    axes.set_yticks(range(len(recipes)), recipes)
    axes.tick_params(axis="y", length=0, labelsize=14)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08 * max(sum(parts.values()) for parts in recipes.values()))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 4, 5, 10]))
    axes.set_xlabel("bytes per parameter")
    drawn = [name for name in names if any(parts.get(name, 0) > 0 for parts in recipes.values())]
    boxes = [axes.barh(0, 0, color=colours[name]) for name in drawn]
    figure.legend(boxes, drawn, loc="outside upper center", ncols=4)
    return figure
