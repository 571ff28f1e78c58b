"""Pictures of notebook 02: the bits of a float, what formats can hold, what rounding does to sums and blocks."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SKY, STYLE, VERMILION, new_figure
from course_lib.floats import FloatFormat

_GROUPS = {"sign": VERMILION, "exponent": GREEN, "fraction": BLUE}
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY, INK)
_CODE = {"family": "DejaVu Sans Mono", "weight": "bold"}


@rc_context(STYLE)
@checked
def draw_float(form: FloatFormat, code: int) -> Figure:
    """The bits of `code` in three colours, what each group means, and the product that makes the value.

    Where there is room, what each bit counts stands above it.
    """
    figure, axes = new_figure(10, 4.6)
    axes.set(xlim=(0, 100), ylim=(0, 46))
    axes.set_axis_off()
    groups = dict(zip(_GROUPS, form.pattern(code).split(" "), strict=True))
    centres = _draw_bits(axes, groups, form)
    places = ((0, 21), (23.5, 33), (59, 41))
    for name, centre, (x, width), lines in zip(_GROUPS, centres, places, _meanings(form, code), strict=True):
        _draw_meaning(axes, name, centre, x, width, lines)
    look = {"size": 21, "weight": "bold"}
    pieces = [TextArea(text, textprops={"color": colour, **look}) for text, colour in _product(form, code)]
    row = AnnotationBbox(HPacker(children=pieces, sep=9, pad=0, align="baseline"), (50, 5), frameon=False)
    row.set_in_layout(False)  # else a long product would shrink the rest
    axes.add_artist(row)
    return figure


def _draw_bits(axes: Axes, groups: Mapping[str, str], form: FloatFormat) -> list[float]:
    """One box for each bit. Returns the centre of each group."""
    gap, weights = 1.2, _weights(form)
    width = min(8.0, (100 - 2 * gap) / form.bits)
    x, centres = (100 - form.bits * width - 2 * gap) / 2, []
    for name, digits in groups.items():
        centres.append(x + len(digits) * width / 2)
        for digit in digits:
            weight = next(weights)
            axes.add_patch(Rectangle((x, 35), width, 7, facecolor=_GROUPS[name], edgecolor="white", linewidth=1.5))
            size = min(20, 8.2 * width)
            axes.text(x + width / 2, 38.3, digit, ha="center", va="center", color="white", fontsize=size, **_CODE)
            if form.fraction_bits <= 7:
                axes.text(x + width / 2, 42.6, weight, ha="center", va="bottom", color=_GROUPS[name], fontsize=13)
            x += width
        x += gap
    return centres


def _weights(form: FloatFormat) -> Iterator[str]:
    """What each bit counts, from the left: the sign, powers of two, halves and quarters."""
    yield "±"
    yield from (f"{1 << place}" for place in reversed(range(form.exponent_bits)))
    yield from (f"1/{1 << place}" for place in range(1, form.fraction_bits + 1))


def _draw_meaning(axes: Axes, name: str, centre: float, x: float, width: float, lines: tuple[str, str]) -> None:
    """A card below the bits that says in two lines what a group stands for, tied to it by a line."""
    middle, colour = x + width / 2, _GROUPS[name]
    axes.plot([centre, centre, middle, middle], [35, 32.9, 31.1, 29], color=colour, linewidth=2)
    card = FancyBboxPatch((x + 0.3, 12.5), width - 0.6, 16.5, boxstyle="round,pad=0,rounding_size=1.2")
    card.set(facecolor="white", edgecolor=colour, linewidth=2.2)
    axes.add_patch(card)
    axes.text(middle, 25.8, name, ha="center", va="center", color=colour, fontsize=16, weight="bold")
    for line, y in zip(lines, (21, 16), strict=True):
        axes.text(middle, y, line, ha="center", va="center", fontsize=15)


def _meanings(form: FloatFormat, code: int) -> tuple[tuple[str, str], ...]:
    sign, exponent, fraction = form.fields(code)
    kind = form.kind(code)
    signs = (f"{sign} means {'−' if sign else '+'}", f"factor {'−' if sign else '+'}1")
    if kind in ("infinity", "nan"):
        value = "0 here: infinity" if kind == "infinity" else "not 0: NaN, not a number"
        return signs, (f"{exponent}: the largest one", "set aside: no number"), (f"{fraction:,}", value)
    power = max(exponent, 1) - form.bias
    how = f"{exponent} − {form.bias} = {power}" if exponent else f"as field 1: 1 − {form.bias} = {power}"
    whole = f"{1 if exponent else 0} + {fraction:,} / $2^{{{form.fraction_bits}}}$"
    return signs, (how.replace("= -", "= −"), f"factor $2^{{{power}}}$"), (whole, f"factor {_significand(form, code)}")


def _significand(form: FloatFormat, code: int) -> str:
    _, exponent, fraction = form.fields(code)
    value = (exponent > 0) + fraction / (1 << form.fraction_bits)
    return f"{value:.8g}" if float(f"{value:.8g}") == value else f"{math.floor(value * 10**6) / 10**6:.6f}…"


def _product(form: FloatFormat, code: int) -> list[tuple[str, str]]:
    """The value as the product of the three factors, each in its group's colour."""
    sign, exponent, _ = form.fields(code)
    if form.kind(code) in ("infinity", "nan"):
        return [(f"{form.decode(code)}".replace("-", "−").replace("inf", "infinity").replace("nan", "NaN"), INK)]
    value = form.decode(code)
    exact = f"{value!r}".replace("-", "−")
    tiny = math.frexp(value)[0] in (0.5, -0.5) and len(exact) > 12  # a power of two says more than its decimals
    result = _power(value) if tiny else exact
    power = _power(2.0 ** (max(exponent, 1) - form.bias))
    factors = (f"{'−' if sign else '+'}1", power, _significand(form, code))
    coloured = [*zip(factors, _GROUPS.values(), strict=True)]
    return [coloured[0], ("×", INK), coloured[1], ("×", INK), coloured[2], ("=", INK), (result, INK)]


def _power(value: float) -> str:
    """A power of two, written as one."""
    sign = "−" if value < 0 else ""
    return f"{sign}$\\mathbf{{2^{{{math.frexp(value)[1] - 1}}}}}$"


@rc_context(STYLE)
@checked
def draw_number_lines(forms: Sequence[FloatFormat], low: float, high: float, log: bool = False) -> Figure:
    """Every number that each format has from `low` to `high`, one line for a format, one tick for a number.

    With `log` each power of two takes the same room, so that the range shows; `low` must then be above 0.
    """
    if log and low <= 0:
        raise ValueError(f"draw_number_lines(): low is {low}; with log=True it must be above 0.")
    figure, axes = new_figure(10, 0.6 + 0.72 * len(forms))
    for row, (form, colour) in enumerate(zip(forms, _COLOURS, strict=False)):
        numbers = form.numbers(low, high)
        seen = {round((number - low) / (high - low) * 9000): number for number in numbers}  # nobody sees finer
        ticks = numbers if log else [*seen.values()]
        axes.vlines(ticks, -row - 0.3, -row + 0.3, color=colour, linewidth=min(2.6, max(0.35, 120 / len(numbers))))
        name = {"y": -row + 0.36, "va": "bottom", "fontsize": 15, "color": colour}
        if log:
            axes.text(numbers[0], s=f"{form.name}: {_say(numbers[0])} to {_say(numbers[-1])}", weight="bold", **name)
        else:
            axes.text(low, s=form.name, weight="bold", **name)
            axes.text(high, s=f"{len(numbers):,} numbers", ha="right", **name | {"color": GREY})
    if log:
        axes.set_xscale("log", base=2)
    axes.margins(x=0.006)
    axes.set_ylim(-len(forms) + 0.6, 0.8)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    return figure


def _say(number: float) -> str:
    """A number, as a power of two where it is a small one."""
    return _power(number) if math.frexp(number)[0] == 0.5 and number < 0.1 else f"{number:,g}"


@rc_context(STYLE)
@checked
def draw_rounding(form: FloatFormat, low: float, high: float, values: Sequence[float]) -> Figure:
    """The numbers of a format between `low` and `high`, and where each of `values` is rounded to; ties are dashed."""
    figure, axes = new_figure(10, 2.9)
    numbers = form.numbers(low, high)
    axes.axhline(0, color=GREY, linewidth=1.5, zorder=0)
    for number in numbers:
        even = form.encode(number) % 2 == 0
        axes.plot([number, number], [-0.13, 0.13], color=BLUE if even else SKY, linewidth=6 if even else 4)
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    for value in values:
        _draw_arrow(axes, form, value)
    axes.set(xlim=(low - (high - low) * 0.02, high + (high - low) * 0.02), ylim=(-0.35, 1.35))
    axes.set_xlabel(f"numbers of {form.name}; dark ones are even: their last bit is 0; dashed arrows are ties")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    return figure


def _draw_arrow(axes: Axes, form: FloatFormat, value: float) -> None:
    target = form.round(value)
    below, above = form.neighbours(value)
    tie = value - below == above - value and target != value
    arrow = {"arrowstyle": "-|>", "color": VERMILION, "linewidth": 2.2, "linestyle": "--" if tie else "-", "shrinkA": 0}
    axes.annotate("", (target, 0.16), (value, 0.78), arrowprops=arrow)
    axes.text(value, 0.85, f"{value:g}", ha="center", va="bottom", fontsize=15, color=VERMILION, weight="bold")


@rc_context(STYLE)
@checked
def draw_precision(forms: Sequence[FloatFormat]) -> Figure:
    """Distance to the next number, relative to the number, at each power of two. Wide: large range; high: precise."""
    figure, axes = new_figure(10, 4.2)
    for form, colour in zip(forms, _COLOURS, strict=False):
        powers = range(round(math.log2(form.smallest_subnormal)), math.floor(math.log2(form.max)) + 1)
        x = [2.0**power for power in powers] + [form.max]
        y = [form.spacing(2.0**power) / 2.0**power for power in powers] + [form.eps]
        axes.plot(x, y, color=colour, linewidth=4, marker="o", markevery=[0, -1], markersize=8)
        place = {"E4M3": (-36, 14), "E2M1": (12, -8)}.get(form.name, (12, 0))  # so that no two names touch
        axes.annotate(form.name, (form.max, form.eps), place, textcoords="offset points", va="center",
                      color=colour, fontsize=15, weight="bold")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(1e-47, 1e54), ylim=(3, 3e-8))
    axes.set_xlabel("the number")
    axes.set_ylabel("distance to the next one,\nrelative to the number")
    axes.set_xticks([10.0**power for power in range(-40, 41, 10)])
    axes.set_yticks([10.0**power for power in range(-7, 1)])
    axes.minorticks_off()
    axes.grid(color=PALE, linewidth=1)
    axes.set_axisbelow(True)
    return figure


@rc_context(STYLE)
@checked
def draw_running_sums(sums: Mapping[str, torch.Tensor]) -> Figure:
    """Running sums of ones, one 1-D tensor for each name, against the number of ones added."""
    figure, axes = new_figure(10, 4.3)
    for (name, values), colour in zip(sums.items(), (GREY, *_COLOURS), strict=False):
        steps, last = torch.arange(1, len(values) + 1), values[-1].item()
        axes.loglog(steps, values.double(), color=colour, linewidth=3.5)
        axes.annotate(f"{name}: {last:,g}", (len(values), last), (8, 0), textcoords="offset points", color=colour,
                      fontsize=16, weight="bold", va="center")  # fmt: skip
    axes.set_xlabel("ones added, one by one")
    axes.set_ylabel("running sum")
    most = math.ceil(math.log10(max(map(len, sums.values()))))
    axes.set_xlim(1, 10 ** (most * 1.36))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([10**power for power in range(most + 1)], [f"{10**power:,}" for power in range(most + 1)])
    axes.minorticks_off()
    axes.grid(color=PALE, linewidth=1)
    axes.set_axisbelow(True)
    return figure


@rc_context(STYLE)
@checked
def draw_quantised(x: torch.Tensor, versions: Mapping[str, torch.Tensor], block: int) -> Figure:
    """A 1-D tensor as bars and its rounded versions as dots, one panel a version; bands mark blocks of `block`.

    The axis ends at seven times the median magnitude; a bar that goes on carries its value.
    """
    figure, axes = new_figure(10, 2.05 * len(versions) + 0.6, rows=len(versions), squeeze=False, sharex=True)
    places, end = torch.arange(len(x)), x.abs().median().item() * 7
    for panel, (name, rounded) in zip(axes[:, 0], versions.items(), strict=True):
        for start in range(0, len(x), 2 * block):
            panel.axvspan(start - 0.5, start + block - 0.5, color="#F1F1F1", zorder=0)
        panel.bar(places.tolist(), x.tolist(), width=0.55, color=SKY, label="the numbers")
        panel.plot(places, rounded, "o", color=VERMILION, markersize=6, label="what 4 bits and a scale keep")
        for place in places[x.abs() > end].tolist():
            panel.text(place + 0.7, end, f"↑ {x[place].item():.2g}", fontsize=14, va="top")
        panel.set_title(f"{name}: {int((rounded != 0).sum())} of {len(x)} are not 0", loc="left", fontsize=16)
        panel.axhline(0, color=INK, linewidth=0.8)
        panel.set(xlim=(-1, len(x)), ylim=(-end, end))
    axes[-1, 0].set_xticks(range(0, len(x) + 1, block))
    axes[-1, 0].set_xlabel("position")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2)
    return figure
