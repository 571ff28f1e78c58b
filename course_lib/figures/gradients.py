"""The picture of notebook 06 that autograd itself draws: what was computed, what comes back, and what is kept."""
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from course_lib.checked import checked
from course_lib.figures.style import BLUE, GREY, INK, VERMILION, YELLOW, new_figure
from course_lib.storage import same_storage

MOST_STEPS, THERE_ANYWAY = 5, "#606060"
_MONO = {"family": "DejaVu Sans Mono", "weight": "bold"}
_CENTRED = {"ha": "center", "va": "center"}
_SIGNS = {"MmBackward0": "@", "MseLossBackward0": "mse"}
_HEAD = "-|>,head_length=7,head_width=3.5"
_ABOVE, _BELOW, _KEPT = 1.35, -0.85, -1.5  # in inches from the chain: weights, gradients, what is kept


@dataclass
class _Step:
    """One operation of a chain, as autograd remembers it."""

    sign: str
    beside: list[tuple[str, bool]]  # what enters from above: name, and whether a gradient goes back there
    made: str  # the name of its result, if it has one
    kept: list[tuple[str, bool]]  # what backward will need: name and bytes, and whether it is a leaf with a gradient


@checked
def draw_graph(loss: torch.Tensor, names: Mapping[str, torch.Tensor], *, saved: bool = True) -> Figure:
    """The chain of operations that led to `loss`, from left to right, and the gradients that go back along it.

    It is read from autograd itself, before backward; `names` gives tensors the names that they have in your code. With
    `saved`, what each operation keeps for backward stands below it, in grey the leaves that require grad, such as
    weights, since they are there anyway.
    At most five operations, each of which continues the one before.
    """
    start, to_start, steps = _chain(loss, names)
    tensors = [start, *(step.made for step in steps)]
    spans = _lay_out([_box_width(name, _shape(name, names)) for name in tensors], [_sign_width(step) for step in steps])
    lines = max(len(step.kept) for step in steps)
    bottom = _KEPT - 0.55 - 0.25 * lines if saved else _BELOW - 0.3
    top = (_ABOVE if any(step.beside for step in steps) else 0) + 0.75
    figure, axes = new_figure(10, top - bottom)
    axes.set(xlim=(0, 10), ylim=(bottom, top), aspect="equal")
    axes.axis("off")
    for place, text, colour in ((0.05, "forward →", BLUE), (1.3, "← backward", VERMILION)):
        axes.text(place, top - 0.05, text, va="top", fontsize=14, color=colour)
    centres = [(left + right) / 2 for left, right in spans]
    for (_, begin), (end, _) in pairwise(span for span in spans if span[1] > span[0]):
        _arrow(axes, (begin + 0.04, 0), (end - 0.04, 0), BLUE)
    for name, centre in zip(tensors, centres[::2], strict=True):
        if name:
            _draw_tensor(axes, centre, 0, name, names)
    for step, centre in zip(steps, centres[1::2], strict=True):
        _draw_step(axes, centre, step, names)
    _draw_way_back(axes, [centres[0], *centres[1::2], spans[-1][1]], tensors, to_start)
    if saved:
        _draw_kept(axes, centres[1::2], steps)
    return figure


def _lay_out(boxes: list[float], signs: list[float]) -> list[tuple[float, float]]:
    """Left and right ends, in inches, of tensors and signs in turn, with equal gaps; no room for what has no name."""
    widths = [width for pair in zip_longest(boxes, signs) for width in pair if width is not None]
    gap = (9.9 - sum(widths)) / (len(widths) - 1)
    if gap < 0.15:
        raise ValueError("draw_graph(): names and shapes do not fit on one line; shorter ones are asked for.")
    starts = [0.05 + sum(widths[:i]) + i * gap for i in range(len(widths))]
    return [(start, start + width) for start, width in zip(starts, widths, strict=True)]


def _box_width(name: str, shape: str) -> float:
    """Inches: letters of 15 and 13 points, and a margin. A result without a name has no box."""
    return max(0.13 * len(name), 0.112 * len(shape)) + 0.2 if name else 0.0


def _sign_width(step: _Step) -> float:
    return max(0.5, 0.13 * len(step.sign) + 0.2)


def _shape(name: str, names: Mapping[str, torch.Tensor]) -> str:
    return str(tuple(names[name].shape)) if name in names else ""


def _chain(loss: torch.Tensor, names: Mapping[str, torch.Tensor]) -> tuple[str, bool, list[_Step]]:
    """The name of what the chain starts from, whether a gradient goes back to it, and the operations in order."""
    if loss.grad_fn is None:
        raise ValueError("draw_graph(): loss remembers no operation; compute it from something that requires grad.")
    steps: list[_Step] = []
    node, start, learns = loss.grad_fn, "", False
    while node is not None:
        entering = list(_entering(node, names))
        inner = [i for i, (_, before, _) in enumerate(entering) if before is not None]
        if len(inner) > 1 or len(steps) == MOST_STEPS:
            raise ValueError(f"draw_graph(): loss comes from no chain of at most {MOST_STEPS} operations.")
        main = inner[0] if inner else 0
        if not inner:
            start, _, learns = entering[0]
        beside = [(name, grad) for i, (name, _, grad) in enumerate(entering) if i != main]
        made = next((name for name, tensor in names.items() if tensor.grad_fn is node), "" if steps else "loss")
        steps.insert(0, _Step(_sign(node), beside, made, _kept(node, names)))
        node = entering[main][1]
    return start, learns, steps


def _entering(node: object, names: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, object, bool]]:
    """What enters an operation: its name, the operation that made it (None: a leaf), whether it requires grad."""
    constants = [tensor for tensor in _saved_by(node) if not tensor.requires_grad]
    for before, _ in node.next_functions:
        if before is None:  # nothing that requires grad: known only if it is kept
            yield (_name_of(constants.pop(0), names) if constants else "data"), None, False
        elif hasattr(before, "variable"):
            yield _name_of(before.variable, names), None, True
        else:
            yield "", before, True


def _saved_by(node: object) -> list[torch.Tensor]:
    """The tensors that an operation keeps; of `self` and another, `self` comes first."""
    fields = [name for name in dir(node) if name.startswith("_saved_")]
    try:
        tensors = [getattr(node, name) for name in sorted(fields, key=lambda name: (name != "_saved_self", name))]
    except RuntimeError:
        raise ValueError("draw_graph(): backward has run and freed what was kept; draw before it runs.") from None
    return [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]


def _name_of(tensor: torch.Tensor, names: Mapping[str, torch.Tensor]) -> str:
    known = (name for name, other in names.items() if other.shape == tensor.shape and same_storage(other, tensor))
    return next(known, "·")


def _kept(node: object, names: Mapping[str, torch.Tensor]) -> list[tuple[str, bool]]:
    return [
        (f"{_name_of(tensor, names)} {_size(tensor.nbytes)}", tensor.is_leaf and tensor.requires_grad)
        for tensor in _saved_by(node)
    ]


def _sign(node: object) -> str:
    name = node.name()
    if name == "PowBackward0":
        return f"x{str(node._saved_exponent).translate(_RAISED)}"
    return _SIGNS.get(name, name.partition("Backward")[0].lower())


_RAISED = str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹·⁻")


def _size(nbytes: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= size:
            return f"{nbytes / size:.4g} {unit}"
    return f"{nbytes} B"


def _draw_tensor(axes: Axes, x: float, y: float, name: str, names: Mapping[str, torch.Tensor]) -> None:
    shape = _shape(name, names)
    _box(axes, x, y, _box_width(name, shape), 0.62 if shape else 0.4, BLUE)
    axes.text(x, y + (0.12 if shape else 0), name, **_CENTRED, **_MONO, fontsize=15)
    axes.text(x, y - 0.15, shape, **_CENTRED, family="DejaVu Sans Mono", fontsize=13)


def _draw_step(axes: Axes, x: float, step: _Step, names: Mapping[str, torch.Tensor]) -> None:
    """The sign of an operation; above it what enters from there, with the gradient that goes back if one does."""
    width = _sign_width(step)
    axes.add_patch(FancyBboxPatch((x - width / 2 + 0.1, -0.15), width - 0.2, 0.3, boxstyle="round,pad=0.1", color=INK))
    axes.text(x, 0, step.sign, **_CENTRED, **_MONO, fontsize=15, color="white")
    for name, learns in step.beside:
        _draw_tensor(axes, x, _ABOVE, name, names)
        shift = 0.12 if learns else 0
        _arrow(axes, (x - shift, _ABOVE - 0.35), (x - shift, 0.29), BLUE)
        if learns:
            _arrow(axes, (x + shift, 0.29), (x + shift, _ABOVE - 0.35), VERMILION)
            axes.text(x + 0.22, 0.62, f"d{name}", va="center", **_MONO, fontsize=15, color=VERMILION)


def _draw_way_back(axes: Axes, places: list[float], tensors: list[str], to_start: bool) -> None:
    """Below the chain, from the loss to the first operation: the gradients of what each operation was given."""
    look = {**_CENTRED, **_MONO, "fontsize": 15, "zorder": 5}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 3}
    for i, name in enumerate(tensors):
        reached = i > 0 or to_start
        left = places[i] + (0.12 if i else 0)
        right = places[i + 1] - (0.12 if i < len(tensors) - 1 else _box_width(name, "") / 2)
        label, colour = (f"d{name}" if name else "", VERMILION) if reached else (f"no d{name}", GREY)
        _swing(axes, right, left, colour, dashed=not reached)
        axes.text((left + right) / 2, _BELOW, label, color=colour, **look)


def _draw_kept(axes: Axes, centres: list[float], steps: list[_Step]) -> None:
    axes.text(0.05, _KEPT - 0.06, "kept for\nbackward", va="top", fontsize=13, linespacing=1.4)
    for x, step in zip(centres, steps, strict=True):
        axes.plot([x, x], [-0.3, _KEPT], color=GREY, linewidth=1.5, linestyle=(0, (1, 2)), zorder=0)
        lines = step.kept or [("nothing", True)]
        width, height = max(0.115 * len(text) for text, _ in lines) + 0.25, 0.27 * len(lines) + 0.2
        face = YELLOW if step.kept else "#F4F4F4"
        _box(axes, x, _KEPT - height / 2, width, height, "#8C6D1F" if step.kept else "#BBBBBB", _tint(face, 0.45))
        for line, (text, leaf) in enumerate(lines):
            colour, y = THERE_ANYWAY if leaf else INK, _KEPT - 0.235 - 0.27 * line
            axes.text(x, y, text, **_CENTRED, family="DejaVu Sans Mono", fontsize=13, color=colour)


def _swing(axes: Axes, begin: float, end: float, colour: str, dashed: bool) -> None:
    path = Path([(begin, -0.3), (begin - 0.1, _BELOW * 1.22), (end + 0.1, _BELOW * 1.22), (end, -0.34)], [1, 4, 4, 4])
    style = {"arrowstyle": "-", "linestyle": (0, (3, 2))} if dashed else {"arrowstyle": _HEAD}
    axes.add_patch(FancyArrowPatch(path=path, color=colour, linewidth=2.2, zorder=1, **style))


def _arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    look = {"arrowstyle": _HEAD, "color": colour, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(begin, end, **look))


def _box(axes: Axes, x: float, y: float, width: float, height: float, edge: str, face: object = "white") -> None:
    corner = (x - width / 2 + 0.06, y - height / 2 + 0.06)
    look = {"facecolor": face, "edgecolor": edge, "linewidth": 2, "boxstyle": "round,pad=0.06"}
    axes.add_patch(FancyBboxPatch(corner, width - 0.12, height - 0.12, **look))


def _tint(colour: str, share: float) -> tuple[float, ...]:
    """The colour mixed with white, so that dark text stays readable on it."""
    return tuple(1 - share * (1 - channel) for channel in to_rgb(colour))
