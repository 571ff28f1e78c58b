"""Pictures of notebook 05: the FLOP/s that work of a given intensity can reach, on paper and measured."""
import math
from collections.abc import Mapping, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, STYLE, VERMILION, new_figure
from course_lib.flops import Roofline

_COLOURS = (VERMILION, ORANGE, PINK, BLUE, GREEN)
_MEMORY, _COMPUTE = "#E4F1FA", "#FDF1DC"  # blue and orange, so pale that text stays readable on them
_BOLD = {"weight": "bold", "color": INK}
Spot = tuple[str, float, float]  # name, FLOPs per byte, FLOP/s


@rc_context(STYLE)
@checked
def draw_roofline(roof: Roofline, work: Mapping[str, float], title: str) -> Figure:
    """One machine's roof, with each kind of work (name -> FLOPs per byte) at the highest FLOP/s that it can reach."""
    spots = [(f"{name} {_say(x)}", x, roof.attainable(x)) for name, x in work.items()]
    figure, axes = new_figure(10, 5.0)
    _frame(axes, roof, [(roof, spots)])
    _draw_roof(axes, roof)
    _draw_spots(axes, spots)
    left, right = axes.get_xlim()
    high, names = axes.get_ylim()[1] / 1.6, {"va": "top", "ha": "center", "fontsize": 17}
    axes.text((left * roof.balance) ** 0.5, high, "memory-bound", color=BLUE, **names)
    axes.text((right * roof.balance) ** 0.5, high, "compute-bound", color="#8A5A00", **names)
    axes.set_title(title)
    _label_the_slope(axes, roof, f"intensity × {roof.bandwidth / 1e12:g}e12 bytes/s")
    return figure


@rc_context(STYLE)
@checked
def draw_rooflines(machines: Mapping[str, tuple[Roofline, Sequence[Spot]]]) -> Figure:
    """The roofs of several machines side by side, on common axes, and what work reached or could reach on each.

    `machines` maps a title to the roof and to (name, FLOPs per byte, FLOP/s) for each kind of work.
    """
    figure, panels = new_figure(10, 5.4, columns=len(machines), squeeze=False, sharex=True, sharey=True)
    for axes, (title, (roof, spots)) in zip(panels[0], machines.items(), strict=True):
        _frame(axes, roof, machines.values())
        _draw_roof(axes, roof)
        _draw_spots(axes, spots)
        axes.set_title(title)
        axes.label_outer()
    return figure


def _frame(axes: Axes, roof: Roofline, drawn: Sequence[tuple[Roofline, Sequence[Spot]]]) -> None:
    """Logarithmic axes that hold all that is drawn; blue where `roof` makes work memory-bound, orange elsewhere."""
    xs = [x for _, spots in drawn for _, x, _ in spots] + [other.balance for other, _ in drawn]
    ys = [y for _, spots in drawn for _, _, y in spots] + [other.peak for other, _ in drawn]
    left, right = min(xs) / 2.5, max(xs) * 18
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(min(ys) / 6, max(ys) * 8))
    axes.set(xlabel="FLOPs per byte moved", ylabel="FLOP/s")
    axes.axvspan(left, roof.balance, color=_MEMORY, linewidth=0, zorder=0)
    axes.axvspan(roof.balance, right, color=_COMPUTE, linewidth=0, zorder=0)
    axes.grid(visible=True, which="major", color="white", linewidth=1.2)
    axes.set_axisbelow(True)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _draw_roof(axes: Axes, roof: Roofline) -> None:
    (left, right), bottom = axes.get_xlim(), axes.get_ylim()[0]
    line = [left, roof.balance, right]
    axes.plot(line, [*map(roof.attainable, line)], color=INK, linewidth=3.5, zorder=3)
    axes.plot([roof.balance] * 2, [bottom, roof.peak], color=GREY, linewidth=1.5, linestyle=(0, (4, 3)), zorder=2)
    label = f"{roof.peak / 1e12:.4g}e12" if roof.peak >= 1e12 else f"{roof.peak / 1e9:.3g}e9"
    offset = {"textcoords": "offset points", "fontsize": 15}
    axes.annotate(f"{label} FLOP/s", (right, roof.peak), xytext=(-6, 9), ha="right", **offset, **_BOLD)
    axes.annotate(_say(roof.balance), (roof.balance, bottom), xytext=(7, 9), **offset, **_BOLD)


def _label_the_slope(axes: Axes, roof: Roofline, label: str) -> None:
    axes.figure.draw_without_rendering()  # the slope's angle on paper is known once the layout is
    start, end = (axes.transData.transform((x, roof.attainable(x))) for x in (axes.get_xlim()[0], roof.balance))
    angle = math.degrees(math.atan2(*reversed(end - start)))
    axes.annotate(label, (roof.balance / 8, roof.peak / 8), xytext=(-4, 8), textcoords="offset points", ha="center",
                  rotation=angle, rotation_mode="anchor", fontsize=15)


def _draw_spots(axes: Axes, spots: Sequence[Spot]) -> None:
    for (name, x, y), colour in zip(spots, _COLOURS, strict=False):
        axes.plot(x, y, "o", color=colour, markersize=12, markeredgecolor="white", zorder=4)
        below = {"xytext": (10, -6), "va": "top"}
        axes.annotate(name, (x, y), textcoords="offset points", fontsize=15, zorder=5, **below, **_BOLD)


def _say(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"
