"""Pictures of notebook 09: bytes read as one dtype or another, pages that are loaded, windows of tokens, overlap."""
import mmap
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, STYLE, VERMILION, new_figure

MOST_BYTES, MOST_TOKENS, MOST_WINDOWS, MOST_PANELS = 16, 26, 4, 3
_MONO = {"family": "DejaVu Sans Mono", "weight": "bold"}
_CENTRE = {"ha": "center", "va": "center"}


@rc_context(STYLE)
@checked
def draw_readings(raw: bytes, dtypes: Sequence) -> Figure:
    """A row of bytes, and below it the numbers that each integer dtype of NumPy reads there, little-endian.

    Up to 16 bytes, a whole number of elements of each dtype.
    """
    kinds = [np.dtype(name).newbyteorder("<") for name in dtypes]
    if not 1 <= len(raw) <= MOST_BYTES or any(len(raw) % kind.itemsize for kind in kinds):
        raise ValueError(
            f"draw_readings(): raw is {len(raw)} bytes; 1 to {MOST_BYTES}, a whole number of each dtype, can be drawn."
        )
    figure, axes = new_figure(10, (len(kinds) + 1) * 0.78 + 0.15)
    rows = [("bytes", [f"{byte:02x}" for byte in raw], 1, PALE, INK)]
    for kind, colour in zip(kinds, (BLUE, GREEN, PINK, VERMILION), strict=False):
        numbers = [f"{number:,}" for number in np.frombuffer(raw, kind)]
        rows.append((kind.name, numbers, kind.itemsize, colour, "white"))
    for y, (name, texts, width, face, ink) in enumerate(rows):
        axes.text(-0.25, -y, name, ha="right", va="center", fontsize=16)
        for place, text in enumerate(texts):
            corner = (place * width + 0.03, -y - 0.38)
            axes.add_patch(Rectangle(corner, width - 0.06, 0.76, facecolor=face, linewidth=0))
            axes.text((place + 0.5) * width, -y, text, color=ink, fontsize=15, **_CENTRE, **_MONO)
    axes.set(xlim=(-1.9 * len(raw) / 12, len(raw)), ylim=(0.45 - len(rows), 0.45))
    axes.axis("off")
    return figure


@rc_context(STYLE)
@checked
def draw_loaded(panels: Mapping[str, Bool[np.ndarray, "pages"]], near: str, window: tuple[int, int]) -> Figure:
    """A file page by page, once for each of up to three panels: each page is a square, blue where it is loaded.

    Below, the pages near the bytes window[0] to window[1], as the panel of that name has them. A page is
    `mmap.PAGESIZE` bytes; all panels have as many.
    """
    lengths = {len(loaded) for loaded in panels.values()}
    pages = min(lengths, default=0)
    inside = 0 <= window[0] < window[1] <= pages * mmap.PAGESIZE
    if not (1 <= len(panels) <= MOST_PANELS and len(lengths) == 1 and near in panels and inside):
        raise ValueError(
            f"draw_loaded(): {len(panels)} panels of {sorted(lengths)} pages, near {near!r}, bytes {window}; 1 to "
            f"{MOST_PANELS} panels of the same length, one of them and bytes within it, can be drawn."
        )
    figure, axes = new_figure(10, 5.3, rows=2, columns=len(panels), squeeze=False, height_ratios=(3.1, 1.35))
    for panel, (title, loaded) in zip(axes[0], panels.items(), strict=True):
        _draw_map(panel, loaded)
        panel.set_title(f"{title}\n{int(loaded.sum()):,} of {pages:,} pages")
    grid = axes[1, 0].get_gridspec()
    for panel in axes[1]:
        panel.remove()
    _draw_zoom(figure.add_subplot(grid[1, :]), panels[near], window)
    return figure


def _draw_map(panel: Axes, loaded: np.ndarray) -> None:
    side = int(np.ceil(len(loaded) ** 0.5))
    squares = np.full(side * side, 2)  # beyond the end of the file
    squares[: len(loaded)] = loaded
    panel.imshow(squares.reshape(side, side), cmap=ListedColormap([PALE, BLUE, "white"]), vmin=0, vmax=2,
                 interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    for spine in panel.spines.values():
        spine.set_visible(False)


def _draw_zoom(panel: Axes, loaded: np.ndarray, window: tuple[int, int]) -> None:
    """Seven pages or more with the window on them, in the middle."""
    first, last = window[0] // mmap.PAGESIZE, (window[1] - 1) // mmap.PAGESIZE
    begin, end = max(0, first - 3), min(len(loaded), last + 4)
    for page in range(begin, end):
        face, ink = (BLUE, "white") if loaded[page] else (PALE, GREY)
        panel.add_patch(Rectangle((page + 0.02, 0), 0.96, 1, facecolor=face, linewidth=0))
        panel.text(page + 0.5, 0.22, f"page {page:,}", color=ink, fontsize=13, **_CENTRE)
    left, width = window[0] / mmap.PAGESIZE, (window[1] - window[0]) / mmap.PAGESIZE
    panel.add_patch(Rectangle((left, 0.5), width, 0.32, facecolor=ORANGE, edgecolor=INK, linewidth=1.2))
    text = f"one sequence: {window[1] - window[0]:,} B read"
    panel.text(left + width / 2, 1.22, text, fontsize=15, weight="bold", **_CENTRE)
    panel.set(xlim=(begin, end), ylim=(0, 1.45))
    panel.axis("off")


@rc_context(STYLE)
@checked
def draw_windows(tokens: Sequence, sequence_length: int, starts: Sequence) -> Figure:
    """A row of tokens, and below it x and y from each of `starts`; a place after the last token is vermilion.

    The legal starts are numbered in green. Up to 26 tokens and 4 starts.
    """
    count, last = len(tokens), len(tokens) - sequence_length - 1
    if not (1 <= count <= MOST_TOKENS and len(starts) <= MOST_WINDOWS and 1 <= sequence_length < count):
        raise ValueError(
            f"draw_windows(): {count} tokens, {len(starts)} starts, sequence_length {sequence_length}; up to "
            f"{MOST_TOKENS} tokens and {MOST_WINDOWS} starts, and sequences shorter than the row, can be drawn."
        )
    width = max([count, *(start + sequence_length + 1 for start in starts)])
    rows = 2.1 + 2.5 * len(starts)
    figure, axes = new_figure(10, rows * 10 / (width + 3.2))
    for place, token in enumerate(tokens):
        _draw_token(axes, place, 0, token, PALE, INK)
        colour, weight = (GREEN, "bold") if place <= last else (GREY, "normal")
        axes.text(place + 0.5, 1.3, place, color=colour, weight=weight, fontsize=14, **_CENTRE)
    axes.text(-0.35, 0.5, "tokens", ha="right", va="center", fontsize=15)
    axes.text(-0.35, 1.3, "start", ha="right", va="center", fontsize=15, color=GREEN, weight="bold")
    for number, start in enumerate(starts):
        for name, shift, colour, y in (("x", 0, BLUE, -1.45 - 2.5 * number), ("y", 1, ORANGE, -2.5 - 2.5 * number)):
            axes.text(start + shift - 0.3, y + 0.5, name, ha="right", va="center", fontsize=16, color=INK, **_MONO)
            for place in range(start + shift, start + shift + sequence_length):
                there = place < count
                ink = INK if colour == ORANGE and there else "white"
                _draw_token(axes, place, y, tokens[place] if there else "?", colour if there else VERMILION, ink)
    axes.set(xlim=(-3, width + 0.2), ylim=(1.9 - rows - 0.1, 1.8), aspect="equal")
    axes.axis("off")
    return figure


def _draw_token(axes: Axes, place: int, y: float, token: object, face: str, ink: str) -> None:
    axes.add_patch(Rectangle((place + 0.04, y + 0.04), 0.92, 0.92, facecolor=face, linewidth=0))
    axes.text(place + 0.5, y + 0.48, str(token), color=ink, fontsize=15, **_CENTRE, **_MONO)


@rc_context(STYLE)
@checked
def draw_overlap() -> Figure:
    """Three steps on a GPU: copies in the queue of the computations, and in a queue of their own. Not to scale."""
    figure, axes = new_figure(10, 4.6)
    copy, compute = 2.3, 4.2
    queues = ((6.6, "one queue: x.to(device)", True), (2.6, "two queues: pinned memory, non_blocking=True", False))
    for top, title, waits in queues:
        axes.text(0, top + 1.75, title, fontsize=16, va="center", weight="bold")
        ends = 0.0
        for step in range(3):
            begin = step * (copy + compute) if waits else max(0, copy + (step - 1) * compute)
            _draw_block(axes, begin, top + 0.1, copy, f"batch {step}", ORANGE, INK)
            start = max(begin + copy, ends)
            ends = start + compute
            _draw_block(axes, start, top - 1.1, compute, f"step {step}", BLUE, "white")
        axes.text(-0.3, top + 0.6, "copy", fontsize=15, ha="right", va="center")
        axes.text(-0.3, top - 0.6, "compute", fontsize=15, ha="right", va="center")
        axes.plot([ends, ends], [top - 1.25, top + 1.25], color=GREEN, linewidth=3)
        axes.text(ends + 0.15, top, "done", color=GREEN, fontsize=15, weight="bold", va="center")
    axes.text(3 * (copy + compute), 4.9, "time →", ha="right", fontsize=15, color=GREY)
    axes.set(xlim=(-2.4, 3 * (copy + compute) + 1.6), ylim=(1.2, 8.9))
    axes.axis("off")
    return figure


def _draw_block(axes: Axes, x: float, y: float, width: float, text: str, colour: str, ink: str) -> None:
    box = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch((x + 0.03, y), width - 0.06, 1.0, boxstyle=box, facecolor=colour, linewidth=0))
    axes.text(x + width / 2, y + 0.48, text, color=ink, fontsize=15, weight="bold", **_CENTRE)
