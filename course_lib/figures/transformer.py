"""Pictures of notebook 14: a transformer by its parts, its memory, who holds what, and what assumptions decide."""
from collections.abc import Mapping, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_lib.checked import checked
from course_lib.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PINK,
    SKY,
    STYLE,
    VERMILION,
    YELLOW,
    new_figure,
)
from course_lib.precision import ParameterBytes
from course_lib.transformer import SHARDINGS, Parts, sharded

MOST_BARS, MOST_PARTS, MOST_GPUS = 8, 7, 8
_PART_COLOURS = (YELLOW, BLUE, VERMILION, ORANGE, GREY, GREEN, PINK)
_BYTE_COLOURS = (BLUE, ORANGE, PINK, GREEN, SKY, YELLOW, GREY)
_ON_DARK = (BLUE, GREY, VERMILION, GREEN)  # white reads well on these, ink on the others
_CENTRED = {"ha": "center", "va": "center"}
_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


@rc_context(STYLE)
@checked
def draw_parts(bars: Mapping[str, Parts]) -> Figure:
    """One bar for each of `bars`, all equally long, divided by parts; the same part has the same colour in each.

    Shares of at least 5 % are written down, and beside each bar its total, in words and with its unit.
    """
    names = _part_names("draw_parts", bars)
    colours = dict(zip(names, _PART_COLOURS, strict=False))
    figure, axes = new_figure(10, 1.5 + 0.8 * len(bars))
    axes.set(xlim=(-0.24, 1.28), ylim=(-len(bars) + 0.45, 0.55))
    axes.axis("off")
    for row, (title, parts) in enumerate(bars.items()):
        begin = 0.0
        axes.text(-0.02, -row, title, ha="right", va="center", fontsize=15)
        axes.text(1.02, -row, f"{_in_words(parts.total)}\n{parts.unit}", ha="left", va="center", fontsize=14)
        for name in parts:
            share = parts.share(name)
            _add_segment(axes, begin, row, share, colours[name], f"{share:.0%}" if share >= 0.05 else "")
            begin += share
    _add_legend(figure, colours)
    return figure


@rc_context(STYLE)
@checked
def draw_memory(bars: Mapping[str, Parts], limit_bytes: float, limit: str) -> Figure:
    """Bytes by part as stacked bars on one scale, in GB, against a line at `limit_bytes` that `limit` names.

    A total stands at the end of each bar, in vermilion where it is beyond the line.
    """
    names = _part_names("draw_memory", bars)
    if limit_bytes <= 0:
        raise ValueError(f"draw_memory(): limit_bytes is {limit_bytes}; a number above 0 is asked for.")
    colours = dict(zip(names, _BYTE_COLOURS, strict=False))
    figure, axes = new_figure(10, 2.1 + 0.7 * len(bars))
    longest = max(limit_bytes, *(parts.total for parts in bars.values())) / 1e9
    for row, (_, parts) in enumerate(bars.items()):
        begin = 0.0
        for name, size in parts.items():
            _add_segment(axes, begin, row, size / 1e9, colours[name], edge=0.5)
            begin += size / 1e9
        colour = VERMILION if parts.total > limit_bytes else INK
        axes.text(begin + 0.01 * longest, -row, f"{begin:.0f} GB", va="center", fontsize=15, color=colour)
    axes.axvline(limit_bytes / 1e9, color=INK, linewidth=1.5, linestyle=(0, (4, 3)))
    axes.text(limit_bytes / 1e9, 0.55, limit, ha="center", va="bottom", fontsize=14)
    axes.set(xlim=(0, 1.16 * longest), ylim=(-len(bars) + 0.45, 0.55), xlabel="GB on each GPU")
    axes.set_yticks([-row for row in range(len(bars))], list(bars), fontsize=14)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _add_legend(figure, colours)
    return figure


@rc_context(STYLE)
@checked
def draw_sharding(bytes_per_parameter: ParameterBytes, num_gpus: int = 4) -> Figure:
    """Who holds what: for plain data parallel and the stages of ZeRO, what of the training state lies on which GPU.

    Each GPU is a column as high as all bytes of a parameter. What it holds is filled: all of a part, or its own slice
    of one that is divided. Above each group stands how much that is for each parameter of the model.
    """
    if not 2 <= num_gpus <= MOST_GPUS:
        raise ValueError(f"draw_sharding(): num_gpus is {num_gpus}; 2 to {MOST_GPUS} can be drawn.")
    groups = [name for name in SHARDINGS if name != "tensor parallel"]
    figure, axes = new_figure(10, 4.4)
    parts = {name: size for name, size in bytes_per_parameter.parts.items() if size}
    colours, total = dict(zip(parts, _BYTE_COLOURS, strict=False)), bytes_per_parameter.total
    step = num_gpus + 1
    axes.set(xlim=(-0.3, len(groups) * step - 0.7), ylim=(-0.13 * total, 1.27 * total))
    axes.axis("off")
    for place, group in enumerate(groups):
        middle = place * step + num_gpus / 2
        each = sharded(bytes_per_parameter, group, num_gpus).total
        axes.text(middle, 1.21 * total, group, **_CENTRED, fontsize=16, weight="bold")
        axes.text(middle, 1.09 * total, f"{each:.3g} B a parameter", **_CENTRED, fontsize=15)
        for gpu in range(num_gpus):
            _add_gpu(axes, place * step + gpu, gpu, num_gpus, parts, SHARDINGS[group], colours)
        axes.text(middle, -0.07 * total, f"GPU 0 to {num_gpus - 1}", **_CENTRED, fontsize=14, color=GREY)
    _add_legend(figure, {f"{name}, {size:g} B": colours[name] for name, size in parts.items()})
    return figure


@rc_context(STYLE)
@checked
def draw_changes(base: float, changes: Mapping[str, float], unit: str) -> Figure:
    """What becomes of a result if one assumption is another: one bar for each, from `base` to the new value.

    A bar that ends below `base` is green, one that ends above is orange; each says where it ends.
    """
    if not 1 <= len(changes) <= MOST_BARS:
        raise ValueError(f"draw_changes(): there are {len(changes)} changes; 1 to {MOST_BARS} can be drawn.")
    figure, axes = new_figure(10, 1.3 + 0.5 * len(changes))
    ends = [base, *changes.values()]
    span = max(ends) - min(ends) or 1.0
    for row, value in enumerate(changes.values()):
        colour, side = (GREEN, "right") if value < base else (ORANGE, "left")
        axes.barh(-row, value - base, left=base, height=0.66, color=colour)
        gap = -0.012 * span if side == "right" else 0.012 * span
        axes.text(value + gap, -row, f"{value:.4g}", ha=side, va="center", fontsize=15)
    axes.axvline(base, color=INK, linewidth=1.5)
    axes.text(base, 0.62, f"{base:.4g} {unit}", ha="center", va="bottom", fontsize=15, weight="bold")
    axes.set(xlim=(min(ends) - 0.12 * span, max(ends) + 0.12 * span), ylim=(-len(changes) + 0.4, 0.6), xlabel=unit)
    axes.set_yticks([-row for row in range(len(changes))], list(changes), fontsize=14)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


@rc_context(STYLE)
@checked
def draw_fitting(gpus: Sequence[int], curves: Mapping[str, Sequence], marked: int) -> Figure:
    """How large a model fits on how many GPUs: parameters, one curve for each way to divide it, on log axes.

    The values at `marked` GPUs are dots with their numbers, in billions.
    """
    if marked not in gpus or not 1 <= len(curves) <= len(_BYTE_COLOURS):
        came = f"{len(curves)} curves, marked at {marked} of {list(gpus)} GPUs"
        raise ValueError(f"draw_fitting(): {came}; 1 to {len(_BYTE_COLOURS)}, at one of those, is asked for.")
    figure, axes = new_figure(10, 4.8)
    place = list(gpus).index(marked)
    for (name, sizes), colour in zip(curves.items(), (GREY, ORANGE, BLUE, GREEN, PINK, VERMILION, SKY), strict=False):
        billions = [size / 1e9 for size in sizes]
        axes.plot(gpus, billions, color=colour)
        axes.plot(marked, billions[place], "o", color=colour, markersize=9)
        text = f"{billions[place]:.3g}"
        axes.annotate(text, (marked, billions[place]), (-7, 6), textcoords="offset points", ha="right", fontsize=15)
        axes.annotate(name, (gpus[-1], billions[-1]), (8, 0), textcoords="offset points", va="center", fontsize=15)
    axes.axvline(marked, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(gpus, [f"{n}" for n in gpus])
    low, high = (round(end) for end in axes.get_ylim())
    axes.set_yticks(ticks := [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= n <= high], map(str, ticks))
    axes.minorticks_off()
    axes.set(xlabel="GPUs", ylabel="billion parameters that fit")
    return figure


def _part_names(function: str, bars: Mapping[str, Parts]) -> list[str]:
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    if not 1 <= len(bars) <= MOST_BARS or not 1 <= len(names) <= MOST_PARTS:
        came = f"there are {len(bars)} bars of {len(names)} parts"
        raise ValueError(f"{function}(): {came}; 1 to {MOST_BARS} bars and 1 to {MOST_PARTS} parts can be drawn.")
    return names


def _add_segment(
    axes: Axes, begin: float, row: int, size: float, colour: str, text: str = "", edge: float = 1.5
) -> None:
    axes.add_patch(Rectangle((begin, -row - 0.35), size, 0.7, facecolor=colour, edgecolor="white", linewidth=edge))
    if text:
        ink = "white" if colour in _ON_DARK else INK
        axes.text(begin + size / 2, -row, text, **_CENTRED, fontsize=15, color=ink)


def _add_gpu(
    axes: Axes, left: float, gpu: int, num_gpus: int, parts: Mapping[str, float], divided: Sequence[str],
    colours: Mapping[str, str],
) -> None:  # fmt: skip
    """One column: its parts from the bottom up, each filled or, where it is divided, with its slice filled."""
    bottom = 0.0
    for name, size in parts.items():
        outline = {"edgecolor": "white", "linewidth": 1.5}
        axes.add_patch(Rectangle((left, bottom), 0.94, size, facecolor=PALE, **outline))
        begin, height = (gpu * size / num_gpus, size / num_gpus) if name in divided else (0.0, size)
        axes.add_patch(Rectangle((left, bottom + begin), 0.94, height, facecolor=colours[name], **outline))
        bottom += size


def _add_legend(figure: Figure, colours: Mapping[str, str]) -> None:
    handles = [Patch(facecolor=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if len(handles) > 4 else 4, fontsize=14)


def _in_words(count: float) -> str:
    """Three digits and a word: 124337664 → "124 million"."""
    for size, word in _WORDS:
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"
