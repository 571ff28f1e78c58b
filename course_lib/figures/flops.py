"""Pictures of notebook 05: what one output of a matmul costs, and what a stopwatch sees of an asynchronous device."""
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, STYLE, VERMILION, new_figure
from course_lib.flops import matmul_flops

_CODE = {"family": "DejaVu Sans Mono", "weight": "bold"}
_CENTRE = {"ha": "center", "va": "center"}


@rc_context(STYLE)
@checked
def draw_matmul(b: int, d: int, k: int) -> Figure:
    """A (b, d) times a (d, k) matrix: the row and the column that make one output, and what all outputs cost.

    Raises ValueError for a size below 1 or above 8: the cells would not be seen.
    """
    for name, size in (("b", b), ("d", d), ("k", k)):
        if not 1 <= size <= 8:
            raise ValueError(f"draw_matmul(): {name} is {size}; 1 to 8 is asked for.")
    figure, axes = new_figure(10, 3.9)
    left, high = 0.0, max(b, d) / 2
    for (rows, columns), name, between in (((b, d), "x", "@"), ((d, k), "w", "="), ((b, k), "y", "")):
        _draw_grid(axes, left, high + rows / 2, rows, columns, name)
        axes.text(left + columns / 2, high + rows / 2 + 0.5, f"{name}  ({rows}, {columns})", fontsize=16, **_CENTRE)
        axes.text(left + columns + 0.9, high, between, fontsize=24, **_CODE, **_CENTRE)
        left += columns + 1.8
    width = left - 1.8
    one = f"one output:  {d} products + {d} additions, the first to 0"
    every = f"{b} · {k} outputs:  2 · {b} · {d} · {k} = {matmul_flops(b, d, k)} FLOPs"
    for line, text, weight in ((0.7, one, "normal"), (1.5, every, "bold")):
        axes.text(width / 2, high - max(b, d) / 2 - line, text, fontsize=17, weight=weight, **_CENTRE)
    axes.set(xlim=(-0.3, width + 0.3), ylim=(high - max(b, d) / 2 - 1.9, high + max(b, d) / 2 + 0.9), aspect="equal")
    axes.axis("off")
    return figure


def _draw_grid(axes: Axes, left: float, top: float, rows: int, columns: int, name: str) -> None:
    """A matrix as cells; coloured are the row of x, the column of w, or the one output of y."""
    for row in range(rows):
        for column in range(columns):
            used = {"x": row == 0, "w": column == columns - 1, "y": row == 0 and column == columns - 1}[name]
            colour = {"x": BLUE, "w": ORANGE, "y": GREEN}[name] if used else PALE
            corner = (left + column, top - row - 1)
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=2.5))


@rc_context(STYLE)
@checked
def draw_asynchronous() -> Figure:
    """Python hands work to a GPU and goes on; below, what a stopwatch shows with and without waiting. Not to scale."""
    figure, axes = new_figure(10, 4.2)
    rows = {"Python": 7.1, "GPU": 5.3}
    for name, y in rows.items():
        axes.text(1.7, y + 0.6, name, ha="right", va="center", fontsize=17, weight="bold")
        axes.plot([2, 19.6], [y - 0.12, y - 0.12], color="#BBBBBB", linewidth=1.5, zorder=0)
    _draw_block(axes, 2.6, rows["Python"], 2.2, "a @ b", ORANGE, code=True)
    _draw_block(axes, 5.0, rows["Python"], 11.2, "torch.cuda.synchronize() waits", PALE, ink=INK)
    _draw_block(axes, 4.2, rows["GPU"], 11.8, "computes a @ b", BLUE)
    axes.annotate("", (4.5, 6.55), (3.9, 7.05), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 2})
    axes.annotate("", (16.1, 7.05), (15.6, 6.55), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 2})
    for x, low in ((2.6, 1.2), (4.8, 3.2), (16.2, 1.2)):
        axes.plot([x, x], [low, 8.5], color=GREY, linewidth=1.5, linestyle=(0, (4, 3)), zorder=0)
    _draw_span(axes, 2.6, 4.8, 3.7, VERMILION, "without synchronize: the launch")
    _draw_span(axes, 2.6, 16.2, 1.7, GREEN, "with synchronize: the launch and the work")
    axes.text(1.7, 2.7, "stop-\nwatch", ha="right", va="center", fontsize=17, weight="bold", linespacing=1.2)
    axes.text(19.6, 4.6, "time →", ha="right", va="center", fontsize=15, color=GREY)
    axes.set(xlim=(-0.6, 20), ylim=(0.8, 8.7))
    axes.axis("off")
    return figure


def _draw_block(
    axes: Axes, x: float, y: float, width: float, text: str, colour: str, ink: str = "white", code: bool = False
) -> None:
    block = FancyBboxPatch((x, y), width, 1.2, boxstyle="round,pad=0,rounding_size=0.15", facecolor=colour, linewidth=0)
    axes.add_patch(block)
    font = _CODE | {"color": INK} if code else {"color": ink, "weight": "bold"}
    axes.text(x + width / 2, y + 0.57, text, fontsize=16, **_CENTRE, **font)


def _draw_span(axes: Axes, start: float, end: float, y: float, colour: str, text: str) -> None:
    """A measured span, with what it measured to the right of its beginning."""
    arrow = {"arrowstyle": "|-|,widthA=0.5,widthB=0.5", "color": colour, "linewidth": 3.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, y), (start, y), arrowprops=arrow)
    inside = end - start > 8
    x = (start + end) / 2 if inside else end + 0.4
    axes.text(x, y + (0.62 if inside else 0), text, ha="center" if inside else "left", va="center", color=colour,
              fontsize=17, weight="bold")
