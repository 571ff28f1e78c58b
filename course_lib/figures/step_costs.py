"""Pictures of notebook 06: the FLOPs of a training step matmul by matmul, and activations over time."""
from collections.abc import Collection, Mapping, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, STYLE, new_figure

MOST_WEIGHTS, MOST_CURVES = 6, 4
_CENTRED = {"ha": "center", "va": "center"}
_CODE = {"family": "DejaVu Sans Mono", "weight": "bold", "fontsize": 14}
_ROWS = (("forward", "y = x @ w", BLUE, "white"), ("backward", "dw", ORANGE, INK), ("backward", "dx", GREEN, INK))
_LEFT, _RIGHT = 1.6, 1.75  # inches beside the bars, for what they are and for their sums


@checked
def draw_step_flops(
    shapes: Mapping[str, tuple[int, int]],
    batch: int,
    *,
    frozen: Collection[str] = (),
    data_requires_grad: bool = False,
) -> Figure:
    """The matmuls of one training step of a chain of linear layers, each as long as its FLOPs.

    `shapes` gives each layer's weight a name and a shape (d, k), from the data to the loss. Three bars: forward, the
    gradients of the weights, the gradients of what enters the layers. What nobody needs is dashed and does not count.
    """
    _require_layers(shapes, batch, frozen)
    flops = {name: 2 * batch * d * k for name, (d, k) in shapes.items()}
    inch = sum(flops.values()) / (10 - _LEFT - _RIGHT)
    figure, axes = new_figure(10, 4.3)
    axes.set(xlim=(-_LEFT * inch, (10 - _LEFT) * inch), ylim=(-3.75, 0.55))
    axes.axis("off")
    _draw_names(axes, flops, inch)
    sums = []
    for row, needed in enumerate(_needed(list(shapes), frozen, data_requires_grad)):
        counted = sum(size for name, size in flops.items() if needed[name])
        _draw_bar(axes, row, flops, needed, frozen, inch)
        axes.text((10 - _LEFT - 0.1) * inch, -0.95 * row - 0.4, f"{counted:,}", ha="right", va="center", **_CODE)
        sums.append(counted)
    _draw_total(axes, 3 * sum(flops.values()), sum(sums), inch)
    return figure


def _require_layers(shapes: Mapping[str, tuple[int, int]], batch: int, frozen: Collection[str]) -> None:
    if not 1 <= len(shapes) <= MOST_WEIGHTS:
        raise ValueError(f"draw_step_flops(): there are {len(shapes)} weights; 1 to {MOST_WEIGHTS} can be drawn.")
    for name, sizes in {**shapes, "the batch": (batch,)}.items():
        if min(sizes) < 1:
            raise ValueError(f"draw_step_flops(): {name} has size {min(sizes)}; at least 1 is asked for.")
    if unknown := [name for name in frozen if name not in shapes]:
        raise ValueError(f"draw_step_flops(): frozen names {unknown[0]!r}; there are {', '.join(shapes)}.")


def _needed(names: list[str], frozen: Collection[str], data_requires_grad: bool) -> list[dict[str, bool]]:
    """For each bar, which layers' matmuls run; dx does where something below, towards the data, wants a gradient."""
    learns = {name: name not in frozen for name in names}
    wanted = [data_requires_grad, *learns.values()]
    return [
        dict.fromkeys(names, True),
        learns,
        {name: any(wanted[: place + 1]) for place, name in enumerate(names)},
    ]


def _draw_names(axes: Axes, flops: Mapping[str, int], inch: float) -> None:
    """Above the bars, each layer's name in the middle of its part; narrow parts' names move to the right."""
    begin, free = 0.0, 0.0
    for name, size in flops.items():
        middle = max(begin + size / 2, free + 0.07 * len(name) * inch)
        axes.text(middle, 0.28, name, **_CENTRED, **_CODE | {"fontsize": 16})
        begin, free = begin + size, middle + (0.07 * len(name) + 0.08) * inch
    axes.text((10 - _LEFT - 0.1) * inch, 0.28, "FLOPs", ha="right", va="center", fontsize=15, color=GREY)


def _draw_bar(
    axes: Axes, row: int, flops: Mapping[str, int], needed: Mapping[str, bool], frozen: Collection[str], inch: float
) -> None:
    kind, what, colour, ink = _ROWS[row]
    middle, begin = -0.95 * row - 0.4, 0.0
    axes.text(-0.15 * inch, middle + 0.16, kind, ha="right", va="center", fontsize=15)
    axes.text(-0.15 * inch, middle - 0.16, what, ha="right", va="center", **_CODE)
    for name, size in flops.items():
        look = {"facecolor": colour, "edgecolor": "white"}
        if not needed[name]:
            look = {"facecolor": "white", "edgecolor": GREY, "linestyle": (0, (3, 2))}
        axes.add_patch(Rectangle((begin, middle - 0.38), size, 0.76, linewidth=2, zorder=2 - needed[name], **look))
        if size > 1.25 * inch:
            text, fill = (f"{size:,}", ink) if needed[name] else (f"{_why_not(name, row, frozen)}\n−{size:,}", GREY)
            axes.text(begin + size / 2, middle, text, **_CENTRED, color=fill, fontsize=14, zorder=3)
        begin += size


def _why_not(name: str, row: int, frozen: Collection[str]) -> str:
    return f"{name} is frozen" if row == 1 else "nobody needs it"


def _draw_total(axes: Axes, six: int, total: int, inch: float) -> None:
    """The sum under a line, and what 6 · batch · parameters makes of it."""
    right = (10 - _LEFT - 0.1) * inch
    axes.plot([right - 1.45 * inch, right], [-2.86, -2.86], color=INK, linewidth=1.5)
    axes.text(right, -3.1, f"{total:,}", ha="right", va="center", **_CODE)
    less = f" − {six - total:,} that nobody needs" if six > total else ""
    axes.text(right, -3.5, f"6 · B · N = {six:,}{less}", ha="right", va="center", fontsize=15)


@rc_context(STYLE)
@checked
def draw_activations(curves: Mapping[str, Sequence[int]], counted: str) -> Figure:
    """How many activations are in memory after each operation of a training step: one panel for each way to run it.

    `counted` names what is counted. All panels have the same axes, and each says its largest number.
    """
    if not 1 <= len(curves) <= MOST_CURVES:
        raise ValueError(f"draw_activations(): there are {len(curves)} curves; 1 to {MOST_CURVES} can be drawn.")
    if empty := [name for name, curve in curves.items() if not len(curve)]:
        raise ValueError(f"draw_activations(): the curve {empty[0]!r} is empty; at least one count is asked for.")
    figure, panels = new_figure(10, 0.9 + 1.2 * len(curves), rows=len(curves), sharex=True, sharey=True, squeeze=False)
    longest, most = max(map(len, curves.values())), max(map(max, curves.values()))
    for panel, (name, curve), colour in zip(panels[:, 0], curves.items(), (BLUE, ORANGE, GREEN, PINK), strict=False):
        counts = [0, *map(int, curve)]
        panel.fill_between(range(len(counts)), counts, color=colour, alpha=0.3, linewidth=0)
        panel.plot(counts, color=colour)
        panel.axhline(max(counts), color=GREY, linewidth=1.2, linestyle=(0, (2, 2)), zorder=0)
        text = f"{name}: at most {max(counts)}"
        panel.text(0.995 * longest, max(counts) + 0.04 * most, text, ha="right", va="bottom", fontsize=15)
        panel.set(xlim=(0, longest), ylim=(0, 1.3 * most))
    panels[-1, 0].set_xlabel("operations of the step, forward and then backward")
    figure.supylabel(counted, fontsize=14, color=INK)
    return figure
