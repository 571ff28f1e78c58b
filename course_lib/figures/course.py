"""Pictures of the course itself: the map of notebook 00 and the loop that the README opens with."""
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from course_lib.chapters import CHAPTERS, Chapter
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, VERMILION, new_figure

_LANE = {"02": 1, "09": 2, "13": 1}  # side tracks; all other chapters lie on the main line
_LANE_COLOUR = (BLUE, ORANGE, GREEN)


def draw_course() -> Figure:
    """The course as a map of lines: a line leads from each notebook to those that build on it."""
    figure, axes = new_figure(10, 5.3)
    row = {chapter.number: -place for place, chapter in enumerate(CHAPTERS)}
    for chapter in CHAPTERS:
        for need in chapter.needs:
            _draw_line(axes, need, chapter.number, row)
    for chapter in CHAPTERS:
        _draw_station(axes, chapter, row[chapter.number])
    axes.set(xlim=(-0.6, 19), ylim=(-14.6, 0.6))
    axes.set_axis_off()
    return figure


def draw_predict_measure_reconcile() -> Figure:
    """The loop of every section, with an example: a perfect prediction whose loss is not 0."""
    import torch

    predictions, targets = torch.arange(4.0)[:, None], torch.arange(4.0)
    differences = predictions - targets
    figure, axes = new_figure(10, 3.3)
    _draw_card(axes, 0, "predict", BLUE, "predictions = targets.\nThe loss will be", f"{0:g}")
    measured = differences.pow(2).mean().item()
    _draw_card(axes, 10.6, "measure", VERMILION, "(predictions − targets)\n.pow(2).mean() gives", f"{measured:g}")
    _draw_card(axes, 21.2, "reconcile", GREEN, "(4, 1) − (4,) is (4, 4):\n16 differences, not 4", "")
    for row, values in enumerate(differences.tolist()):
        for column, value in enumerate(values):
            meant = row == column
            corner = (24.0 + column * 0.95, 3.25 - row * 0.95)
            axes.add_patch(Rectangle(corner, 0.87, 0.87, facecolor=GREEN if meant else PALE))
            text, colour = f"{value:g}".replace("-", "−"), "white" if meant else INK
            axes.text(corner[0] + 0.44, corner[1] + 0.41, text, ha="center", va="center", color=colour, fontsize=13)
    for x in (10.05, 20.65):
        arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 2}
        axes.annotate("", (x + 0.45, 4.5), (x - 0.45, 4.5), arrowprops=arrow)
    axes.set(xlim=(-0.1, 30.8), ylim=(-0.3, 9.5), aspect="equal")
    axes.set_axis_off()
    return figure


def _draw_line(axes: Axes, start: str, end: str, row: dict[str, int]) -> None:
    """A track that changes lanes next to its ends and runs straight in between."""
    x0, x1, y0, y1 = _LANE.get(start, 0), _LANE.get(end, 0), row[start], row[end]
    lane = max(x0, x1)
    points, codes = [(x0, y0)], [Path.MOVETO]
    if x0 != lane:
        points += [(x0, y0 - 0.6), (lane, y0 - 0.4), (lane, y0 - 1)]
        codes += [Path.CURVE4] * 3
    if x1 != lane:
        points += [(lane, y1 + 1), (lane, y1 + 0.4), (x1, y1 + 0.6), (x1, y1)]
        codes += [Path.LINETO] + [Path.CURVE4] * 3
    else:
        points.append((x1, y1))
        codes.append(Path.LINETO)
    axes.add_patch(PathPatch(Path(points, codes), fill=False, edgecolor=_LANE_COLOUR[lane], linewidth=4, zorder=1))


def _draw_station(axes: Axes, chapter: Chapter, y: int) -> None:
    lane = _LANE.get(chapter.number, 0)
    fill = _LANE_COLOUR[lane] if chapter.ready else "white"
    axes.scatter([lane], [y], s=130, facecolor=fill, edgecolor=_LANE_COLOUR[lane], linewidth=2.5, zorder=2)
    weight = "bold" if chapter.ready else "normal"
    axes.text(2.8, y, chapter.number, va="center", fontsize=13, color=INK, weight=weight)
    axes.text(3.7, y, chapter.title, va="center", fontsize=13, color=INK, weight=weight)
    axes.text(10.5, y, chapter.asks, va="center", fontsize=13, color=GREY)


def _draw_card(axes: Axes, left: float, title: str, colour: str, text: str, number: str) -> None:
    look = {"boxstyle": "round,pad=0,rounding_size=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 2.5}
    axes.add_patch(FancyBboxPatch((left, 0), 9.5, 9, **look))
    middle = left + 4.75
    axes.text(middle, 8.1, title, ha="center", va="center", fontsize=17, weight="bold", color=colour)
    axes.text(middle, 6.0, text, ha="center", va="center", fontsize=13, color=INK, linespacing=1.5)
    axes.text(middle, 2.4, number, ha="center", va="center", fontsize=46, weight="bold", color=colour)
