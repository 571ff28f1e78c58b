"""Pictures of notebook 08: what a module has registered, linear and bent functions, streams of random numbers."""
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor, nn

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, SKY, STYLE, VERMILION, new_figure

MOST_ROWS, MOST_PANELS, MOST_CURVES, MOST_DRAWS = 14, 2, 4, 12
_MONO = {"family": "DejaVu Sans Mono", "fontsize": 13}
_KINDS = {  # what stands beside a name, in the legend's order: face, edge, ink
    "parameter": (BLUE, BLUE, "white"),
    "the same parameter again": ("white", BLUE, BLUE),
    "buffer": (GREEN, GREEN, "white"),
    "not registered": ("white", VERMILION, VERMILION),
}
_COLOURS = (BLUE, ORANGE, GREEN, SKY)


@dataclass(frozen=True)
class Entry:
    """A line of the picture of a module: how deep it stands, its name, what is shown beside it, and its kind."""

    depth: int
    name: str
    text: str
    kind: str  # "module", or one of _KINDS


@checked
def entries(model: nn.Module, name: str = "model") -> list[Entry]:
    """What a module holds, attribute by attribute: modules, parameters, buffers, and what it has not registered.

    Not registered are a tensor that is a plain attribute, and tensors and modules in a list, tuple or dict.
    """
    seen: set[int] = set()
    return [Entry(0, name, type(model).__name__, "module"), *_inside(model, 1, seen)]


def _inside(module: nn.Module, depth: int, seen: set[int]) -> Iterator[Entry]:
    for name, parameter in module._parameters.items():
        if parameter is not None:
            kind = "the same parameter again" if id(parameter) in seen else "parameter"
            seen.add(id(parameter))
            yield Entry(depth, name, _shape(parameter), kind)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            yield Entry(depth, name, _shape(buffer), "buffer")
    for name, child in module._modules.items():
        if child is not None:
            yield Entry(depth, name, type(child).__name__, "module")
            yield from _inside(child, depth + 1, seen)
    for name, value in vars(module).items():
        if not name.startswith("_"):
            yield from _hidden(depth, name, value)


def _hidden(depth: int, name: str, value: object) -> Iterator[Entry]:
    """What a plain attribute hides: a tensor, or a container with tensors or modules in it."""
    if isinstance(value, Tensor):
        yield Entry(depth, name, _shape(value), "not registered")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    found = [part for part in parts if isinstance(part, Tensor | nn.Module)]
    if found:
        words = [_shape(part) if isinstance(part, Tensor) else type(part).__name__ for part in found]
        yield Entry(depth, name, f"{type(value).__name__} of {len(found)} {words[0]}", "not registered")


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


@rc_context(STYLE)
@checked
def draw_modules(models: Mapping[str, nn.Module]) -> Figure:
    """One panel for each model: what it holds, line by line, and in the title how many numbers parameters() gives.

    Blue is a parameter, blue on white one that was there before, green a buffer; dashed vermilion is what the module
    has not registered. Up to two models of up to 14 lines each.
    """
    if not 1 <= len(models) <= MOST_PANELS:
        raise ValueError(f"draw_modules(): there are {len(models)} models; 1 to {MOST_PANELS} can be drawn.")
    shown = {title: entries(model) for title, model in models.items()}
    longest = max(map(len, shown.values()))
    if longest > MOST_ROWS:
        raise ValueError(f"draw_modules(): a model has {longest} lines; {MOST_ROWS} can be drawn.")
    figure, axes = new_figure(10, 0.4 * longest + 1.3, columns=len(models), squeeze=False)
    for panel, (title, rows) in zip(axes[0], shown.items(), strict=True):
        count = sum(parameter.numel() for parameter in models[title].parameters())
        panel.set_title(f"{title}\n{count:,} numbers in parameters()", loc="left")
        _draw_entries(panel, rows, longest, 10 / len(models))
    kinds = {row.kind for rows in shown.values() for row in rows}
    patches = [Patch(facecolor=face, edgecolor=edge, linestyle=_line(kind), label=kind)
               for kind, (face, edge, _) in _KINDS.items() if kind in kinds]  # fmt: skip
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=len(patches))
    return figure


def _draw_entries(axes: Axes, rows: Sequence[Entry], longest: int, width: float) -> None:
    axes.set(xlim=(0, width), ylim=(-longest, 0.1))
    axes.axis("off")
    for place, row in enumerate(rows):
        x, y = 0.1 + 0.3 * row.depth, -place - 0.5
        if row.depth:
            parent = max(i for i in range(place) if rows[i].depth < row.depth)
            axes.plot([x - 0.2, x - 0.2, x - 0.05], [-parent - 0.9, y, y], color=GREY, linewidth=1.2)
        _, edge, ink = _KINDS.get(row.kind, (PALE, PALE, INK))
        axes.text(x, y, row.name, va="center", weight="bold", color=edge if row.kind in _KINDS else INK, **_MONO)
        left = x + 0.125 * len(row.name) + 0.12
        if row.kind == "module":
            axes.text(left, y, row.text, va="center", color=GREY, **_MONO)
            continue
        face, edge, ink = _KINDS[row.kind]
        size = 0.125 * len(row.text) + 0.16
        axes.add_patch(Rectangle((left, y - 0.4), size, 0.8, facecolor=face, edgecolor=edge, linewidth=1.6,
                                 linestyle=_line(row.kind)))  # fmt: skip
        axes.text(left + size / 2, y, row.text, va="center", ha="center", color=ink, **_MONO)


def _line(kind: str) -> object:
    return (0, (3, 2)) if kind == "not registered" else "solid"


@rc_context(STYLE)
@checked
def draw_curves(t: Float[Tensor, "points"], curves: Mapping[str, Float[Tensor, "points"]]) -> Figure:
    """The outputs of models along a line through their inputs, one curve for each model; up to four."""
    if not 1 <= len(curves) <= MOST_CURVES:
        raise ValueError(f"draw_curves(): there are {len(curves)} curves; 1 to {MOST_CURVES} can be drawn.")
    figure, axes = new_figure(10, 3.9)
    for (name, values), colour in zip(curves.items(), _COLOURS, strict=False):
        axes.plot(t.detach().cpu(), values.detach().cpu(), color=colour, label=name)
    axes.set_xlabel("t, the place on a line through the inputs")
    axes.set_ylabel("output")
    figure.legend(loc="outside right center")
    return figure


@rc_context(STYLE)
@checked
def draw_streams(rows: Mapping[str, Sequence[tuple[str, float]]]) -> Figure:
    """Random numbers in the order in which they are drawn, one row for each way of drawing them.

    Each row is a list of (purpose, number). A purpose has the same colour in each row; up to 12 draws and 4 purposes.
    """
    purposes = list(dict.fromkeys(purpose for draws in rows.values() for purpose, _ in draws))
    most = max(map(len, rows.values()), default=0)
    if not (1 <= len(purposes) <= len(_COLOURS) and most <= MOST_DRAWS):
        came = f"{len(purposes)} purposes and up to {most} draws"
        raise ValueError(f"draw_streams(): there are {came}; 1 to {len(_COLOURS)} and {MOST_DRAWS} can be drawn.")
    colours = dict(zip(purposes, _COLOURS, strict=False))
    left = 0.125 * max(map(len, rows)) + 0.3
    size = (10 - left) / most
    figure, axes = new_figure(10, 0.75 * len(rows) + 0.9)
    axes.set(xlim=(0, 10), ylim=(-len(rows), 0))
    axes.axis("off")
    for place, (name, draws) in enumerate(rows.items()):
        axes.text(0, -place - 0.5, name, va="center", fontsize=14)
        for i, (purpose, number) in enumerate(draws):
            colour = colours[purpose]
            axes.add_patch(Rectangle((left + i * size, -place - 0.85), size, 0.7, facecolor=colour, edgecolor="white"))
            ink = INK if colour in (ORANGE, SKY) else "white"
            axes.text(left + (i + 0.5) * size, -place - 0.5, f"{number:.2f}", ha="center", va="center",
                      fontsize=14, color=ink)  # fmt: skip
    patches = [Patch(facecolor=colours[purpose], label=purpose) for purpose in purposes]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches))
    return figure
