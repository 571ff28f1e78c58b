"""Pictures of notebook 12: resumes with something missing, a file while it is written, how often to save."""
from collections.abc import Mapping, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, STYLE, VERMILION, new_figure

_COLUMNS, _MOST_PANELS, _BEFORE = 3, 6, 25  # steps before the break that are shown
_WRONG = "damaged"


@rc_context(STYLE)
@checked
def draw_resumes(never_stopped: Sequence, resumed: Mapping[str, Sequence], saved_at: int) -> Figure:
    """One panel for each resume: its losses from step `saved_at` on, over those of the run that never stopped.

    Losses are in nats. The axis ends above what the run that never stopped does; a resume that begins higher comes in
    from above. Each panel names the largest gap between the two, or that there is none.
    """
    length = len(never_stopped)
    wrong = [name for name, losses in resumed.items() if len(losses) != length - saved_at]
    if not 1 <= len(resumed) <= _MOST_PANELS or not 0 < saved_at < length or wrong:
        came = f"{len(resumed)} resumes at step {saved_at} of {length}, of which {len(wrong)} do not reach the end"
        raise ValueError(f"draw_resumes(): {came}; 1 to {_MOST_PANELS} that do are asked for.")
    rows = -(-len(resumed) // _COLUMNS)
    figure, axes = new_figure(10, 0.5 + 1.95 * rows, rows, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    start = max(0, saved_at - _BEFORE)
    low, high = min(never_stopped[start:]), max(never_stopped[start:])
    margin = 0.35 * (high - low)
    for number, panel in enumerate(axes.flat):
        panel.set_visible(number < len(resumed))
    for panel, (name, losses) in zip(axes.flat, resumed.items(), strict=False):
        panel.plot(range(start, length), never_stopped[start:], color=GREY, linewidth=1.5)
        gap = max(abs(a - b) for a, b in zip(losses, never_stopped[saved_at:], strict=True))
        colour = VERMILION if gap else BLUE
        panel.plot(range(saved_at, length), losses, color=colour, linewidth=1.8)
        panel.axvline(saved_at, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        panel.set_title(name, fontsize=15)
        verdict = f"off by up to {gap:.2f}" if gap else "bit for bit"
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 2}
        panel.text(0.97, 0.95, verdict, color=colour, ha="right", va="top", transform=panel.transAxes, bbox=plate)
    axes[0, 0].set_ylim(low - margin, high + 2 * margin)
    axes[0, 0].set_xlim(start, length)
    for panel in axes[:, 0]:
        panel.set_ylabel("loss (nats)")
    for panel in axes[-1]:
        panel.set_xlabel("step")
    return figure


@rc_context(STYLE)
@checked
def draw_moments(moments: Sequence, ways: Mapping[str, Mapping[str, Sequence]]) -> Figure:
    """What stands in a file at each of the `moments` of a save, one row for each file of each way to do it.

    A content is a word or two: "damaged" is vermilion, "" means that there is no such file; the first other content is
    blue, and what follows it green.
    """
    files = [(way, name, list(contents)) for way, rows in ways.items() for name, contents in rows.items()]
    if not moments or not files or any(len(contents) != len(moments) for _, _, contents in files):
        raise ValueError(f"draw_moments(): each file needs {len(moments)} contents, one a moment, and there is one.")
    old = next((one for _, _, contents in files for one in contents if one not in ("", _WRONG)), "")
    left, width, gap = 2.6, 1.75, 0.55
    height = len(files) + gap * len(ways) + 0.9
    figure, axes = new_figure(10, 0.62 * height)
    axes.set_xlim(0, left + width * len(moments))
    axes.set_ylim(-height, 0)
    axes.axis("off")
    for number, moment in enumerate(moments):
        axes.text(left + (number + 0.5) * width, -0.45, moment, ha="center", va="center", fontsize=13, color=GREY)
    y, before = -0.75, None
    for way, name, contents in files:
        if way != before:
            y -= gap
            axes.text(0, y + gap / 2, way, va="center", fontsize=15, weight="bold")
        y, before = y - 1, way
        axes.text(left - 0.15, y + 0.5, name, ha="right", va="center", fontsize=13, family="DejaVu Sans Mono")
        for number, content in enumerate(contents):
            _draw_content(axes, left + number * width, y, width, content, old)
    return figure


def _draw_content(axes: Axes, x: float, y: float, width: float, content: str, old: str) -> None:
    colour = {"": "white", _WRONG: VERMILION, old: BLUE}.get(content, GREEN)
    edge = PALE if content == "" else colour
    axes.add_patch(Rectangle((x + 0.06, y + 0.08), width - 0.12, 0.84, facecolor=colour, edgecolor=edge, linewidth=1.5))
    axes.text(x + width / 2, y + 0.5, content or "–", ha="center", va="center", fontsize=14,
              color=GREY if content == "" else "white", weight="bold")  # fmt: skip


@rc_context(STYLE)
@checked
def draw_intervals(hours: Sequence, shares: Mapping[str, Sequence], measured: Sequence, best: float) -> Figure:
    """Shares of the time that are lost, against the hours between two checkpoints, which is a logarithmic axis.

    `shares` has one line for each name; the last is drawn in black as their sum. `measured` are dots at the same hours.
    A vertical line marks `best`, in hours.
    """
    lengths = {len(line) for line in [*shares.values(), measured, hours]}
    if len(lengths) != 1 or not 2 <= len(shares) <= 3 or min(hours, default=0) <= 0 or best <= 0:
        raise ValueError(
            f"draw_intervals(): {len(hours)} hours, {len(shares)} lines, lengths {sorted(lengths)}, best {best}; "
            "2 or 3 lines of one length, and hours above 0 are asked for."
        )
    figure, axes = new_figure(10, 4.6)
    for (name, line), colour in zip(shares.items(), (BLUE, ORANGE, INK)[3 - len(shares) :], strict=True):
        axes.plot(hours, [100 * share for share in line], color=colour, label=name)
    dots = [100 * share for share in measured]
    axes.plot(hours, dots, "o", color=INK, markerfacecolor="white", label="simulated failures")
    axes.axvline(best, color=GREEN, linewidth=2, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32) if min(hours) <= tick <= max(hours)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.15 * max(dots))
    axes.text(best * 1.05, 1.08 * max(dots), f"{best:.1f} h", color=GREEN, va="top", fontsize=15, weight="bold")
    axes.set_xlabel("hours from one checkpoint to the next")
    axes.set_ylabel("time lost (%)")
    figure.legend(loc="outside lower center", ncols=len(shares) + 1)
    return figure
