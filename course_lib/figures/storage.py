"""Pictures of notebook 03: the walk that strides take through a storage, who sees which cell, and reading in jumps."""
from collections.abc import Mapping
from itertools import cycle, pairwise, product

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SKY, STYLE, VERMILION, new_figure
from course_lib.storage import same_storage, storage_positions

MOST_CELLS, MOST_ROWS, MOST_READS = 24, 8, 1024
_COLOURS = (BLUE, ORANGE, GREEN, PINK, VERMILION, SKY, "#8C6D1F", INK)
_CODE = {"family": "DejaVu Sans Mono", "weight": "bold", "fontsize": 13}


@checked
def draw_storage(x: torch.Tensor) -> Figure:
    """The grid of `x` beside its storage, one colour for each row of `x`, and the walk that the strides take.

    Arrows above the cells step along a row, arrows below go from row to row; the first of each dimension carries its
    stride. A cell that several rows share is striped, one that no index reaches is pale. At most three dimensions,
    8 rows and 24 stored elements.
    """
    numbers, places = _stored_numbers(x, "draw_storage"), _places(x)
    if x.dim() > 3 or x.numel() == 0 or places[..., 0].numel() > MOST_ROWS:
        raise ValueError(
            f"draw_storage(): x has shape {tuple(x.shape)}; what can be drawn has at least one element, "
            f"at most {MOST_ROWS} rows and at most three dimensions."
        )
    grid_width, grid_height = _grid_size(places)
    beside = grid_width + len(numbers) <= 21
    left = grid_width + 1.7 if beside else 0.4
    above, below = _room_for_arrows(places)
    grid_top = (above - below + grid_height) / 2 if beside else above + grid_height + 0.3
    top, bottom = max(above, grid_top + (0.6 if x.dim() == 3 else 0.2)) + 0.7, -max(below, grid_height - grid_top)
    width = max(left + len(numbers), 17) + 0.9
    figure, axes = new_figure(10, (top - bottom + 0.2) * 10 / width)
    _frame(axes, (-0.7, width - 0.7), (bottom - 0.1, top + 0.1))
    _draw_grid(axes, numbers, places, grid_top)
    _draw_cells(axes, numbers, _colours_of_cells(places), left)
    _draw_walk(axes, places, x.stride(), left)
    _draw_offset(axes, x.storage_offset(), left)
    facts = f"shape {tuple(x.shape)}   stride {x.stride()}   offset {x.storage_offset()}"
    axes.text(0, top, facts, va="top", **_CODE | {"fontsize": 16})
    return figure


@checked
def draw_sharing(tensors: Mapping[str, torch.Tensor]) -> Figure:
    """Each storage behind the named tensors as a row of cells; below it, which index of which tensor sees which cell.

    `5×` marks a cell that five indices of one tensor share. Up to 24 stored elements each.
    """
    _require_names("draw_sharing", tensors)
    numbers = {name: _stored_numbers(tensor, "draw_sharing") for name, tensor in tensors.items()}
    groups: list[list[str]] = []
    for name, tensor in tensors.items():
        known = next((group for group in groups if same_storage(tensors[group[0]], tensor)), None)
        if known is None:
            groups.append([name])
        else:
            known.append(name)
    left = 0.9 + 0.36 * max(map(len, ("storage", *tensors)))
    width = max(left + max(map(len, numbers.values())), 18) + 0.3
    height = sum(0.85 * len(names) + 2.1 for names in groups)
    figure, axes = new_figure(10, height * 10 / width)
    _frame(axes, (0, width), (0.1 - height, 0.1))
    colours, y = dict(zip(tensors, cycle(_COLOURS), strict=False)), -1.0
    for names in groups:
        seen = torch.cat([_places(tensors[name]).flatten() for name in names]).tolist()
        axes.text(left - 0.4, y + 0.5, "storage", ha="right", va="center", fontsize=15, color=GREY)
        _draw_cells(axes, numbers[names[0]], {place: ["white"] for place in seen}, left, y)
        for line, name in enumerate(names, start=1):
            _draw_sight(axes, name, tensors[name], colours[name], left, y - 0.65 - 0.85 * line)
        y -= 0.85 * len(names) + 2.1
    return figure


@rc_context(STYLE)
@checked
def draw_reads(tensors: Mapping[str, torch.Tensor], line: int = 16) -> Figure:
    """Where in the storage each read lands when a tensor is read row by row; bands are cache lines of `line` elements.

    A read that falls into another line than the one before it is drawn large and counted. Up to 1024 elements each.
    """
    if line < 1:
        raise ValueError(f"draw_reads(): line is {line}; at least 1 element is asked for.")
    _require_names("draw_reads", tensors)
    figure, axes = new_figure(10, 3.9, columns=len(tensors), squeeze=False, sharey=True)
    for panel, (name, tensor) in zip(axes[0], tensors.items(), strict=True):
        places = _places(tensor).flatten()
        if not 0 < len(places) <= MOST_READS:
            raise ValueError(f"draw_reads(): {name} has {len(places)} elements; 1 to {MOST_READS} reads can be drawn.")
        lines = places // line
        moved = torch.cat([torch.ones(1, dtype=torch.bool), lines.diff() != 0])
        for band in range(0, int(lines.max()) + 1, 2):
            panel.axhspan(band * line - 0.5, (band + 1) * line - 0.5, color=PALE, zorder=0)
        steps = torch.arange(len(places))
        panel.plot(steps, places, color=GREY, linewidth=0.8, zorder=1)
        panel.plot(steps[~moved], places[~moved], ".", color=BLUE, markersize=6, label="same cache line as before")
        panel.plot(steps[moved], places[moved], "o", color=VERMILION, markersize=8, label="another cache line")
        panel.set_title(f"{name}: {int(moved.sum())} times to another line")
        panel.set_xlabel("reads, one after the other")
        panel.margins(x=0.02, y=0)
    axes[0, 0].set_ylabel("position in the storage")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _require_names(function: str, tensors: Mapping[str, torch.Tensor]) -> None:
    if not tensors:
        raise ValueError(f"{function}(): tensors is empty; at least one name with its tensor is asked for.")


def _stored_numbers(x: torch.Tensor, function: str) -> list[str]:
    """All that the storage of `x` holds, as text, whether `x` reaches it or not."""
    stored = x.untyped_storage().nbytes() // x.element_size()
    if stored > MOST_CELLS:
        raise ValueError(f"{function}(): the storage holds {stored} elements; at most {MOST_CELLS} can be drawn.")
    everything = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
    return [f"{number:.4g}" if x.dtype.is_floating_point else str(number) for number in everything.tolist()]


def _places(x: torch.Tensor) -> torch.Tensor:
    """For each element of `x` its position in the storage; a scalar counts as a row of one."""
    return storage_positions(x) if x.dim() else storage_positions(x)[None]


def _colours_of_cells(places: torch.Tensor) -> dict[int, list[str]]:
    """Position → the colours of the rows that reach it."""
    colours: dict[int, list[str]] = {}
    for row, colour in zip(_rows(places), _COLOURS, strict=False):
        for place in set(row):
            colours.setdefault(place, []).append(_tint(colour))
    return colours


def _grid_size(places: torch.Tensor) -> tuple[float, int]:
    matrices = places.shape[0] if places.dim() == 3 else 1
    return matrices * (places.shape[-1] + 0.8) - 0.8, places.shape[-2] if places.dim() > 1 else 1


def _draw_grid(axes: Axes, numbers: list[str], places: torch.Tensor, top: float) -> None:
    """The tensor as a reader thinks of it: a matrix, or the matrices of a rank-3 tensor side by side."""
    rows = iter(_COLOURS)
    matrices = places.reshape((-1,) + (places.shape[-2:] if places.dim() > 1 else (1, len(places))))
    for matrix, block in enumerate(matrices):
        left = matrix * (block.shape[1] + 0.8)
        if places.dim() == 3:
            axes.text(left + block.shape[1] / 2, top + 0.12, f"[{matrix}]", ha="center", color=GREY, **_CODE)
        for line, row in enumerate(block.tolist()):
            colour = next(rows)
            for column, place in enumerate(row):
                _cell(axes, left + column, top - line - 1, numbers[place], [_tint(colour)])


def _draw_cells(axes: Axes, numbers: list[str], colours: Mapping[int, list[str]], left: float, y: float = 0) -> None:
    """The storage: one row of cells with their positions below; cells without a colour are pale."""
    for place, number in enumerate(numbers):
        _cell(axes, left + place, y, number, colours.get(place, []))
        axes.text(left + place + 0.5, y - 0.1, str(place), ha="center", va="top", fontsize=13, color=GREY)


def _cell(axes: Axes, x: float, y: float, text: str, colours: list[str]) -> None:
    for stripe, colour in enumerate(colours):
        height = 1 / len(colours)
        axes.add_patch(Rectangle((x, y + 1 - (stripe + 1) * height), 1, height, facecolor=colour, linewidth=0))
    edge, ink = (INK, INK) if colours else ("#BBBBBB", "#9A9A9A")
    face = "none" if colours else "#F4F4F4"
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor=edge, linewidth=1.3, zorder=2 if colours else 1))
    size = _fitting_size(axes, text, 15)
    axes.text(x + 0.5, y + 0.47, text, ha="center", va="center", fontsize=size, color=ink, zorder=3)


def _draw_sight(axes: Axes, name: str, x: torch.Tensor, colour: str, left: float, y: float) -> None:
    """One tensor's line below a storage: in each cell that it sees, the index that sees it (… when several do)."""
    axes.text(left - 0.4, y + 0.45, name, ha="right", va="center", **_CODE | {"fontsize": 15})
    seen: dict[int, list[str]] = {}
    for index, place in zip(product(*map(range, x.shape)), _places(x).flatten().tolist(), strict=True):
        seen.setdefault(place, []).append(",".join(map(str, index)) or "()")
    for place, indices in seen.items():
        corner = (left + place + 0.04, y + 0.06)
        axes.add_patch(Rectangle(corner, 0.92, 0.76, facecolor=_tint(colour), edgecolor=colour))
        text = indices[0] if len(indices) == 1 else f"{len(indices)}×"
        size = _fitting_size(axes, text, 14)
        axes.text(left + place + 0.5, y + 0.43, text, ha="center", va="center", fontsize=size)


def _fitting_size(axes: Axes, text: str, most: float) -> float:
    """The font size, in points, at which `text` fits into one cell."""
    cell = 72 * axes.figure.get_figwidth() / (axes.get_xlim()[1] - axes.get_xlim()[0])
    return min(most, 1.45 * cell / max(len(text), 2))  # a character is about 0.62 of the font size wide


def _room_for_arrows(places: torch.Tensor) -> tuple[float, float]:
    """How far the arrows reach above and below the line on which the cells stand."""
    row_steps = places.diff(dim=-1)
    lanes = len(_rows(places)) if _rows_overlap(places) else 1
    above = 1 + _arc_height(int(row_steps.abs().max())) + 0.2 * (lanes - 1) + 0.7 if row_steps.numel() else 1.2
    jumps = [abs(to - start) for _, start, to in _steps_between_rows(places)]
    return above, 0.75 + (_arc_height(max(jumps)) + 0.5 * (places.dim() - 1) if jumps else 0)


def _draw_walk(axes: Axes, places: torch.Tensor, strides: tuple[int, ...], left: float) -> None:
    """Arrows above for the steps along each row, arrows below for the steps from row to row."""
    rows = _rows(places)
    lane = 0.2 if _rows_overlap(places) else 0
    for number, (row, colour) in enumerate(zip(rows, _COLOURS, strict=False)):
        lift, shift = lane * (len(rows) - 1 - number), 0.25 * lane * (2 * number - len(rows) + 1)
        pairs = dict.fromkeys(pairwise(row))  # with a stride of 0 all steps are the same one
        for start, to in pairs:
            _arc(axes, left + start + 0.5 + shift, left + to + 0.5 + shift, 1.05, 1, colour, lift)
        if number == 0 and pairs:
            peak = 1.05 + _arc_height(abs(strides[-1])) + lane * (len(rows) - 1)
            label = f"stride[{len(strides) - 1}] = {strides[-1]}"
            axes.text(left + row[0] + 0.2, peak + 0.12, label, va="bottom", color=INK, **_CODE)
    steps = _steps_between_rows(places)
    for dimension, start, to in steps:
        colour = INK if dimension == places.dim() - 2 else GREY
        _arc(axes, left + start + 0.5, left + to + 0.5, -0.62, -1, colour, dashed=True)
    lowest = -0.62 - max((_arc_height(abs(to - start)) for _, start, to in steps), default=0)
    for line, dimension in enumerate(sorted({dimension for dimension, *_ in steps}, reverse=True)):
        label, colour = f"stride[{dimension}] = {strides[dimension]}", GREY if line else INK
        axes.text(left + places.min() + 0.4, lowest - 0.15 - 0.5 * line, label, va="top", color=colour, **_CODE)


def _steps_between_rows(places: torch.Tensor) -> list[tuple[int, int, int]]:
    """(dimension, from, to) for each step along a dimension that is not the last, the later indices being 0."""
    steps = []
    for dimension in range(places.dim() - 1):
        firsts = places[(slice(None),) * (dimension + 1) + (0,) * (places.dim() - dimension - 1)]
        starts, ends = firsts[..., :-1].flatten().tolist(), firsts[..., 1:].flatten().tolist()
        steps += dict.fromkeys((dimension, start, to) for start, to in zip(starts, ends, strict=True))
    return steps


def _rows(places: torch.Tensor) -> list[list[int]]:
    return places.reshape(-1, places.shape[-1]).tolist()


def _rows_overlap(places: torch.Tensor) -> bool:
    rows = _rows(places)
    return sum(len(set(row)) for row in rows) > len({place for row in rows for place in row})


def _arc_height(distance: int) -> float:
    return 0.42 + 0.16 * min(distance, 8)


def _arc(
    axes: Axes, start: float, end: float, y: float, up: int, colour: str, lift: float = 0, dashed: bool = False
) -> None:
    """An arrow from one cell to another, above (`up` = 1) or below (−1) them; a step of 0 is a loop."""
    height = up * (_arc_height(round(abs(end - start))) + lift) / 0.75  # a cubic's peak is at 3/4 of its handles
    side = 0.22 if start == end else 0.1 if end > start else -0.1
    begin, stop = (start - side, end + side) if start == end else (start + side, end - side)
    path = Path([(begin, y), (begin, y + height), (stop, y + height), (stop, y)], [1, 4, 4, 4])
    style = "-|>,head_length=6,head_width=3"
    line = (0, (3, 1.5)) if dashed else "-"
    axes.add_patch(FancyArrowPatch(path=path, arrowstyle=style, color=colour, linewidth=2, linestyle=line, zorder=4))


def _draw_offset(axes: Axes, offset: int, left: float) -> None:
    if offset:
        arrow = {"arrowstyle": "<->", "color": VERMILION, "linewidth": 2}
        axes.annotate("", (left + offset, -0.8), (left, -0.8), arrowprops=arrow)
        axes.text(left + offset - 0.1, -0.95, f"offset {offset}", ha="right", va="top", color=VERMILION, **_CODE)


def _tint(colour: str, share: float = 0.38) -> tuple[float, ...]:
    """The colour mixed with white, so that dark text stays readable on it."""
    return tuple(1 - share * (1 - channel) for channel in to_rgb(colour))


def _frame(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.axis("off")
