"""The pictures of notebook 06 show what autograd and torch's counter say, and refuse what they cannot draw."""
import io
from collections.abc import Iterator

import pytest
import torch
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.figures import draw_activations, draw_graph, draw_step_flops
from course_lib.figures.gradients import THERE_ANYWAY
from course_lib.figures.style import BLUE, GREEN, GREY, ORANGE


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def two_layers(*, data_requires_grad: bool = False) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    x = torch.randn(1024, 256, requires_grad=data_requires_grad)
    w1, w2 = torch.randn(256, 256, requires_grad=True), torch.randn(256, 64, requires_grad=True)
    h1 = x @ w1
    h2 = h1 @ w2
    return h2.pow(2).mean(), {"x": x, "w1": w1, "h1": h1, "w2": w2, "h2": h2}


def regression() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    x, y, w = torch.randn(8, 64), torch.randn(8), torch.randn(64, 1, requires_grad=True)
    pred = (x @ w).squeeze(-1)
    return F.mse_loss(pred, y), {"x": x, "y": y, "w": w, "pred": pred}


def activated() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    x, w = torch.randn(4, 3), torch.randn(3, 5, requires_grad=True)
    h = (x @ w).relu()
    return h.exp().sum(), {"x": x, "w": w, "h": h}


def no_data() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    w = torch.randn(6, requires_grad=True)
    return w.pow(3).sum(), {"w": w}


GRAPHS = {
    "two layers": (
        two_layers,
        {"dw1", "dw2", "dh1", "dh2", "no dx"},
        ["x 1 MiB", "h1 1 MiB", "w2 64 KiB", "h2 256 KiB"],
    ),
    "the data too": (
        lambda: two_layers(data_requires_grad=True),
        {"dw1", "dw2", "dh1", "dh2", "dx"},
        ["x 1 MiB", "w1 256 KiB", "h1 1 MiB", "w2 64 KiB", "h2 256 KiB"],
    ),
    "a regression": (regression, {"dw", "dpred", "no dx"}, ["x 2 KiB", "pred 32 B", "y 32 B"]),
    "an activation": (activated, {"dw", "dh", "no dx"}, ["x 48 B", "h 80 B", "· 80 B"]),
    "no data": (no_data, {"dw"}, ["w 24 B"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_names_every_gradient_and_everything_that_is_kept(name: str) -> None:
    build, gradients, kept = GRAPHS[name]
    loss, names = build()
    shown = texts(draw_graph(loss, names))
    assert {text for text in shown if text.startswith(("d", "no "))} == gradients | {"dloss"}
    assert sorted(text for text in shown if text.endswith("B")) == sorted(kept)
    for tensor_name, tensor in names.items():
        assert shown.count(tensor_name) == 1
        assert str(tuple(tensor.shape)) in shown
    assert not [text for text in texts(draw_graph(loss, names, saved=False)) if text.endswith("B")]


def test_what_the_graph_shows_as_kept_is_what_the_hooks_see() -> None:
    seen: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append(tensor.nbytes)
        return tensor

    for build in (two_layers, regression, activated):
        seen.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss, names = build()
        units = {"B": 1, "KiB": 2**10, "MiB": 2**20}
        kept = [text.split()[1:] for text in texts(draw_graph(loss, names)) if text.endswith("B")]
        assert sorted(float(number) * units[unit] for number, unit in kept) == sorted(seen)


def test_weights_are_grey_where_they_are_kept_and_the_way_to_the_data_is_dashed() -> None:
    figure = draw_graph(*two_layers())
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert same_color(colours["w2 64 KiB"], THERE_ANYWAY)
    assert not same_color(colours["h1 1 MiB"], THERE_ANYWAY)
    dashed = [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch) and p.get_linestyle() != "solid"]
    assert len(dashed) == 1 and same_color(dashed[0].get_edgecolor(), GREY)
    assert same_color(colours["no dx"], GREY)


def bars(figure: Figure) -> Iterator[tuple[str, float]]:
    """(colour, length) of each part of a bar; dashed parts are grey."""
    for patch in figure.axes[0].patches:
        if isinstance(patch, Rectangle):
            missing = same_color(patch.get_edgecolor(), GREY)
            yield GREY if missing else next(c for c in (BLUE, ORANGE, GREEN) if same_color(c, patch.get_facecolor())), (
                patch.get_width()
            )


@pytest.mark.parametrize("data_requires_grad", [False, True])
@pytest.mark.parametrize("frozen", [(), ("a",), ("b",), ("c",), ("a", "b"), ("a", "b", "c")])
def test_the_bars_are_as_long_as_the_flops_that_torch_counts(frozen: tuple, data_requires_grad: bool) -> None:
    shapes = {"a": (16, 32), "b": (32, 24), "c": (24, 1)}
    figure = draw_step_flops(shapes, 8, frozen=frozen, data_requires_grad=data_requires_grad)
    with FlopCounterMode(display=False) as counter:
        y = torch.empty(8, 16, device="meta", requires_grad=data_requires_grad)
        for name, shape in shapes.items():
            y = y @ torch.empty(shape, device="meta", requires_grad=name not in frozen)
        forward = counter.get_total_flops()
        if y.requires_grad:
            y.sum().backward()
    total, six = counter.get_total_flops(), 3 * forward
    lengths = list(bars(figure))
    assert sum(length for colour, length in lengths if colour == BLUE) == forward
    assert sum(length for colour, length in lengths if colour != GREY) == total
    assert sum(length for colour, length in lengths if colour == GREY) == six - total
    shown = texts(figure)
    assert f"{total:,}" in shown
    less = f" − {six - total:,} that nobody needs" if six > total else ""
    assert f"6 · B · N = {six:,}{less}" in shown


def test_a_missing_part_says_why_and_a_name_stands_above_its_part() -> None:
    shown = texts(draw_step_flops({"w1": (64, 64), "w2": (64, 64), "w3": (64, 1)}, 8, frozen=["w1"]))
    assert shown.count("w1 is frozen\n−65,536") == 1
    assert shown.count("nobody needs it\n−65,536") == 2
    assert {"w1", "w2", "w3", "132,096", "66,560", "1,024", "199,680"} <= set(shown)


def test_activations_are_drawn_as_counted_and_each_panel_names_its_highest() -> None:
    curves = {"plain": [1, 2, 3, 2, 1, 0], "again": [1, 2, 1, 2, 1, 2, 0]}
    figure = draw_activations(curves, "outputs in memory")
    for panel, (name, curve) in zip(figure.axes, curves.items(), strict=True):
        assert panel.lines[0].get_ydata().tolist() == [0, *curve]
        assert [text.get_text() for text in panel.texts] == [f"{name}: at most {max(curve)}"]
        assert panel.get_xlim() == (0, 7)
    assert figure.get_supylabel() == "outputs in memory"


PICTURES = {
    **{name: lambda build=build: draw_graph(*build()) for name, (build, *_) in GRAPHS.items()},
    "step": lambda: draw_step_flops({"w1": (256, 256), "w2": (256, 64)}, 1024),
    "narrow parts": lambda: draw_step_flops({f"w{i}": (64, 64 if i < 3 else 1) for i in range(6)}, 8),
    "activations": lambda: draw_activations({"plain": [*range(33), *range(33)][::-1]}, "outputs"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_drawn_outside_of_the_picture_or_too_small(name: str) -> None:
    figure = PICTURES[name]()
    figure.draw_without_rendering()
    frame = figure.bbox
    for text in (text for axes in figure.axes for text in axes.texts if text.get_text()):
        box = text.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1, text
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1, text
        assert text.get_fontsize() >= 13, text


def test_a_picture_is_the_same_each_time_and_changes_nothing() -> None:
    loss, names = two_layers()
    assert png(draw_graph(loss, names)) == png(draw_graph(loss, names))
    loss.backward()  # nothing was freed
    assert names["w1"].grad is not None


def used_up() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss, names = two_layers()
    loss.backward()
    return loss, names


def branching() -> torch.Tensor:
    w = torch.randn(3, requires_grad=True)
    return (w.exp() + w.sin()).sum()


def long_chain() -> torch.Tensor:
    w = torch.randn(3, requires_grad=True)
    return w.exp().sin().cos().exp().sin().sum()


def long_names() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss, names = two_layers()
    return loss, {f"{name}_of_the_first_encoder": tensor for name, tensor in names.items()}


@pytest.mark.parametrize(
    ("draw", "error", "sentence"),
    [
        (lambda: draw_graph(torch.zeros(()), {}), ValueError, "loss remembers no operation"),
        (lambda: draw_graph(*used_up()), ValueError, "draw before it runs"),
        (lambda: draw_graph(branching(), {}), ValueError, "no chain of at most 5"),
        (lambda: draw_graph(long_chain(), {}), ValueError, "no chain of at most 5"),
        (lambda: draw_graph(*long_names()), ValueError, "do not fit on one line"),
        (lambda: draw_graph([1.0], {}), TypeError, "loss is a list"),
        (lambda: draw_step_flops({}, 8), ValueError, "0 weights; 1 to 6"),
        (lambda: draw_step_flops({"w": (0, 3)}, 8), ValueError, "w has size 0; at least 1"),
        (lambda: draw_step_flops({"w": (2, 3)}, 0), ValueError, "the batch has size 0"),
        (lambda: draw_step_flops({"w": (2, 3)}, 8, frozen=["v"]), ValueError, "frozen names 'v'; there are w"),
        (lambda: draw_activations({}, "outputs"), ValueError, "0 curves; 1 to 4"),
        (lambda: draw_activations({"a": []}, "outputs"), ValueError, "the curve 'a' is empty"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(draw, error, sentence) -> None:
    with pytest.raises(error, match=sentence) as raised:
        draw()
    assert str(raised.value).count("\n") == 0
