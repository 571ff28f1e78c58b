"""The look that all figures share: colours that colour-blind readers can tell apart, text that the back row can read.

The palette is Okabe and Ito's (https://jfly.uni-koeln.de/color/). The background is opaque white, so that a figure
looks the same in a light and in a dark theme.
"""
import io

import matplotlib
from matplotlib.figure import Figure

BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PINK, YELLOW = "#E69F00", "#D55E00", "#CC79A7", "#F0E442"
INK, GREY, PALE = "#222222", "#767676", "#E8E8E8"  # text; secondary text (4.5:1 on white); fills

DPI = 144  # of the PNG, so that it stays sharp when a projector enlarges it
CSS_PIXELS_PER_INCH = 100  # a figure 10 inches wide takes 1000 pixels of the page
STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": DPI,
    "savefig.facecolor": "white",
    "savefig.dpi": DPI,
    "font.family": "DejaVu Sans",  # matplotlib carries it, so every machine draws the same letters
    "font.size": 14,
    "axes.titlesize": 16,
    "axes.titleweight": "bold",
    "axes.labelsize": 14,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=[BLUE, ORANGE, GREEN, PINK, VERMILION, SKY]),
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "legend.fontsize": 13,
    "legend.frameon": False,
    "lines.linewidth": 2.5,
    "lines.markersize": 8,
}


def new_figure(width: float = 10, height: float = 4, rows: int = 1, columns: int = 1, **subplots):
    """A figure of `width` × `height` inches in our style, and its axes (one, or an array as `plt.subplots` gives).

    It is made without pyplot: nothing keeps it alive or draws it a second time at the end of a cell.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, **subplots)
    return figure, axes


def as_png(figure: Figure) -> tuple[bytes, int]:
    """The figure as the PNG that a page shows, and the CSS pixels that it is wide there."""
    picture = io.BytesIO()
    # Without the Software entry the same figure is the same file under another version of matplotlib.
    figure.savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
    return picture.getvalue(), round(figure.get_figwidth() * CSS_PIXELS_PER_INCH)
