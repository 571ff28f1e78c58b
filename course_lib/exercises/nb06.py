"""The exercises of notebook 06: a batch in chunks, backward by hand, FLOPs with frozen layers, what autograd keeps."""
from collections.abc import Iterator

import torch
from einops import einsum
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 6.1


@exercise(
    notebook="06",
    hints=[
        "Take the chunks one by one, from x.split(size) and y.split(size). What does backward() do to a .grad?",
        "F.mse_loss of a chunk is the mean of that chunk. Which share of all examples are its examples?",
        "Multiply each chunk's loss by its number of examples / len(x) before you go backward.",
    ],
    why="The mean over all examples is the sum of the chunks' means, each weighted with the chunk's share of the "
    "examples. backward() adds, so the weighted gradients add up to that of the large batch.",
)
def accumulate_gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor, size: int) -> None:
    """Add to each parameter's .grad what F.mse_loss(model(x), y).backward() would add.

    But the model sees `size` examples at a time, from the first to the last; the last chunk may
    be shorter. At no moment are the activations of more than one chunk kept.
    """
    for inputs, targets in zip(x.split(size), y.split(size), strict=True):
        loss = F.mse_loss(model(inputs), targets)
        (loss * len(inputs) / len(x)).backward()


accumulate_gradients.cases(
    case("nn.Linear(3, 1), torch.randn(8, 3), torch.randn(8, 1), 4", "two equal chunks"),
    case("nn.Linear(3, 1), torch.randn(10, 3), torch.randn(10, 1), 4", "a shorter last chunk"),
    case("nn.Linear(2, 3), torch.randn(7, 2), torch.randn(7, 3), 3", "a last chunk of one example"),
    case("nn.Linear(4, 2), torch.randn(6, 4), torch.randn(6, 2), 6", "one chunk for all"),
    "nn.Linear(4, 2), torch.randn(5, 4), torch.randn(5, 2), 9",
    "nn.Linear(2, 1, bias=False), torch.randn(4, 2), torch.randn(4, 1), 1",
    "nn.Linear(3, 2), torch.randn(9, 3), torch.randn(9, 2), 2",
)


@accumulate_gradients.probe
def two_steps(candidate, args, kwargs):
    """Gradients after one call and after a second one; how much the model saw, and how much it had to keep."""
    model, x, y, size = args
    seen, waiting, most = [], set(), 0

    def watch(module, inputs, output):
        nonlocal most
        seen.append(len(inputs[0]))
        if not output.requires_grad:
            return
        number = len(seen)
        waiting.add(number)
        most = max(most, len(waiting))
        output.register_hook(lambda gradient: waiting.discard(number))

    watching = model.register_forward_hook(watch)
    candidate(model, x, y, size)
    report = {"examples in each forward pass": list(seen), "chunks kept at a time": most}
    report |= {f"{name}.grad": _copy(p.grad) for name, p in model.named_parameters()}
    candidate(model, x, y, size)
    watching.remove()
    report |= {f"after a second call, {name}.grad": _copy(p.grad) for name, p in model.named_parameters()}
    model.zero_grad()
    return report


def _copy(gradient):
    return None if gradient is None else gradient.clone()


def _in_chunks(model, x, y, size):
    for inputs, targets in zip(x.split(size), y.split(size), strict=True):
        yield len(inputs), F.mse_loss(model(inputs), targets)


@accumulate_gradients.misconception(
    "You added up the gradients of means. With n chunks that is n times too much: weight each chunk's loss."
)
def not_divided(model, x, y, size):
    for _, loss in _in_chunks(model, x, y, size):
        loss.backward()


@accumulate_gradients.misconception(
    "You divided by the number of chunks. That is right for equal chunks; a shorter one speaks for fewer examples."
)
def divided_by_chunks(model, x, y, size):
    for _, loss in _in_chunks(model, x, y, size):
        (loss / len(x.split(size))).backward()


@accumulate_gradients.misconception(
    "You gave every chunk the share of a full one. The last chunk's share is the number of its own examples / len(x)."
)
def last_chunk_as_full(model, x, y, size):
    for _, loss in _in_chunks(model, x, y, size):
        (loss * size / len(x)).backward()


@accumulate_gradients.misconception(
    "A chunk's loss is the mean of its examples already. Divided by len(x) alone, each of them counts too little."
)
def divided_by_examples(model, x, y, size):
    for _, loss in _in_chunks(model, x, y, size):
        (loss / len(x)).backward()


@accumulate_gradients.misconception("You left out the examples that do not fill a chunk. They belong to the batch.")
def rest_dropped(model, x, y, size):
    full = len(x) // size * size
    for examples, loss in _in_chunks(model, x[:full], y[:full], size):
        (loss * examples / len(x)).backward()


@accumulate_gradients.misconception(
    "zero_grad() between the chunks throws away what the earlier ones have added: only the last one is left."
)
def zeroed_between(model, x, y, size):
    for examples, loss in _in_chunks(model, x, y, size):
        model.zero_grad()
        (loss * examples / len(x)).backward()


@accumulate_gradients.misconception(
    "You emptied .grad first. Your function adds, as backward() does; when to begin anew is its caller's to say."
)
def zeroed_first(model, x, y, size):
    model.zero_grad()
    accumulate_gradients.reference(model, x, y, size)


@accumulate_gradients.misconception(
    "The gradient is right, but all chunks' activations were kept at once: go backward before the next forward pass."
)
def one_backward_for_all(model, x, y, size):
    sum(loss * examples / len(x) for examples, loss in _in_chunks(model, x, y, size)).backward()


@accumulate_gradients.misconception("That is the large batch. The model should see no more than `size` examples.")
def all_at_once(model, x, y, size):
    F.mse_loss(model(x), y).backward()


@accumulate_gradients.accepts
def sums_of_squares(model, x, y, size):
    for start in range(0, len(x), size):
        error = model(x[start : start + size]) - y[start : start + size]
        error.square().sum().div(y.numel()).backward()


@accumulate_gradients.accepts
def adding_by_hand(model, x, y, size):
    parameters = list(model.parameters())
    for examples, loss in _in_chunks(model, x, y, size):
        for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            share = gradient * examples / len(x)
            p.grad = share if p.grad is None else p.grad + share


# ---------------------------------------------------------------- 6.2


@exercise(
    notebook="06",
    hints=[
        "Write down the axes of the two that you need and of the one that you want. Which name has to vanish?",
        "dx has a d and no k: sum over k, with w. dw has d and k and nothing else: everything before them is summed.",
        'In einsum, "..." stands for all axes before the last. Leave it out on the right, and it is summed.',
    ],
    why="Each element of y is a sum over d, so each x[…, d] acts on all outputs of its own row, and each w[d, k] acts "
    "on output k of every row. A gradient adds up all that an element acts on: over k for dx, over the rows for dw.",
)
def linear_backward(
    x: torch.Tensor, w: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients (dx, dw) of a loss with respect to x and w, where y = x @ w.

    Shapes: x (..., d), w (d, k), and dy (..., k), the gradient with respect to y. There may be
    any number of axes before the last, such as batch and sequence.
    """
    dx = einsum(dy, w, "... k, d k -> ... d")
    dw = einsum(x, dy, "... d, ... k -> d k")
    return dx, dw


linear_backward.cases(
    "torch.randn(4, 3), torch.randn(3, 2), torch.randn(4, 2)",
    case("torch.randn(2, 5, 3), torch.randn(3, 4), torch.randn(2, 5, 4)", "batch and sequence"),
    case("torch.randn(6, 3), torch.randn(3, 3), torch.randn(6, 3)", "a square weight"),
    case("torch.randn(5), torch.randn(5, 2), torch.randn(2)", "a single vector"),
    case("torch.randn(8, 4), torch.randn(4, 1), torch.randn(8, 1)", "one output"),
    "torch.randn(1, 2), torch.randn(2, 3), torch.randn(1, 3)",
    "torch.randn(2, 3, 4, 5), torch.randn(5, 5), torch.randn(2, 3, 4, 5)",
    "torch.arange(6.).reshape(3, 2), torch.arange(4.).reshape(2, 2), torch.ones(3, 2)",
)


@linear_backward.misconception("A gradient has the shape of what it belongs to: dw is (d, k), as w is, not (k, d).")
def dw_transposed(x, w, dy):
    dx, dw = linear_backward.reference(x, w, dy)
    return dx, dw.T


@linear_backward.misconception("On the way back dy meets w the other way round: its k has to meet the k of w.")
def w_not_transposed(x, w, dy):
    return dy @ w, linear_backward.reference(x, w, dy)[1]


@linear_backward.misconception("Every row has a part in dw, so the rows are added up. You kept one gradient a row.")
def dw_per_row(x, w, dy):
    return linear_backward.reference(x, w, dy)[0], einsum(x, dy, "... d, ... k -> ... d k")


@linear_backward.misconception("Sum over all axes before the last: over the batch and over the sequence.")
def one_axis_summed(x, w, dy):
    dx, dw = linear_backward.reference(x, w, dy)
    return dx, einsum(x, dy, "... s d, ... s k -> ... d k") if x.ndim > 1 else dw


@linear_backward.misconception(
    "Do not divide by the number of rows. If the loss is a mean, the division is in dy already."
)
def averaged_over_rows(x, w, dy):
    dx, dw = linear_backward.reference(x, w, dy)
    return dx, dw / (x.numel() // x.shape[-1])


@linear_backward.misconception("Those are the gradients of y.sum(). dy says how much the loss heeds each output.")
def dy_ignored(x, w, dy):
    return linear_backward.reference(x, w, torch.ones_like(dy))


@linear_backward.misconception("The two are right and in the wrong order: dx first, then dw.")
def wrong_order(x, w, dy):
    return linear_backward.reference(x, w, dy)[::-1]


@linear_backward.misconception("You added dx up over the rows. Each row has a gradient of its own: dx has x's shape.")
def dx_summed(x, w, dy):
    dx, dw = linear_backward.reference(x, w, dy)
    return dx.reshape(-1, dx.shape[-1]).sum(0), dw


@linear_backward.accepts
def transposed_matmuls(x, w, dy):
    return dy @ w.T, x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


@linear_backward.accepts
def asking_autograd(x, w, dy):
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    return torch.autograd.grad(x @ w, (x, w), grad_outputs=dy)


@linear_backward.accepts
def row_by_row(x, w, dy):
    dw = torch.zeros_like(w)
    for row, gradient in zip(x.reshape(-1, len(w)), dy.reshape(-1, w.shape[1]), strict=True):
        dw += torch.outer(row, gradient)
    return torch.einsum("...k,dk->...d", dy, w), dw


# ---------------------------------------------------------------- 6.3


@exercise(
    notebook="06",
    hints=[
        "Forward is one matmul a layer, 2 · batch · d · k FLOPs, frozen or not. Backward has up to two of that size.",
        "dw of a layer is needed if the layer learns. Who needs its dx? Only what lies below it, towards the data.",
        "Go from the first layer to the last and remember whether any layer so far learns.",
    ],
    why="A layer that learns needs its dw. Its dx is needed if anything below learns, because the gradient passes "
    "through. So a frozen layer saves its dw alone, unless all layers below are frozen as well: then its dx goes, too.",
)
def training_flops(batch: int, layers: list[tuple[int, int, bool]]) -> int:
    """FLOPs of all matmuls in one forward and one backward pass through linear layers.

    Each layer is (d, k, learns), from the data to the loss: a (d, k) weight without bias, and
    whether it learns (True) or is frozen (False). The data requires no gradient.
    """
    flops = 0
    learns_below = False
    for d, k, learns in layers:
        matmuls = 1 + learns + learns_below
        flops += 2 * batch * d * k * matmuls
        learns_below = learns_below or learns
    return flops


training_flops.cases(
    case("8, [(64, 64, True), (64, 64, True), (64, 1, True)]", "all of Cruncher(64, 2)"),
    case("8, [(64, 64, False), (64, 64, True), (64, 1, True)]", "the first layer frozen"),
    case("8, [(64, 64, True), (64, 64, False), (64, 1, True)]", "a frozen layer in the middle"),
    case("8, [(64, 64, True), (64, 64, True), (64, 1, False)]", "the last layer frozen"),
    case("1024, [(256, 256, True), (256, 64, True)]", "the two layers above"),
    case("5, [(3, 2, False), (2, 7, False)]", "nothing learns"),
    case("4, [(3, 5, True)]", "a single layer"),
    "2, [(3, 5, False), (5, 7, False), (7, 2, True), (2, 3, False)]",
    "3, [(2, 4, False), (4, 3, True), (3, 5, False), (5, 2, True)]",
    "1, [(6, 1, True), (1, 6, False)]",
)


def _flops(batch, layers, matmuls):
    """Matmuls of each layer, as matmuls(number, learns, learns_below) says, in FLOPs."""
    below = [any(learns for *_, learns in layers[:number]) for number in range(len(layers))]
    counts = [matmuls(i, layers[i][2], below[i]) for i in range(len(layers))]
    return sum(2 * batch * d * k * count for (d, k, _), count in zip(layers, counts, strict=True))


@training_flops.misconception("6 · batch · parameters is near it only: the first layer has no dx, a frozen one no dw.")
def six_times_all(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 3)


@training_flops.misconception("Nobody needs the gradient of the data: the first layer has no dx.")
def dx_for_the_data(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 1 + learns + (below or number == 0))


@training_flops.misconception(
    "A frozen layer is not free on the way back: it needs no dw, but the gradient still has to pass through it, dx."
)
def frozen_has_no_backward(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 1 + learns * (1 + below))


@training_flops.misconception("Where nothing below learns, nobody needs dx: backward ends at the lowest that learns.")
def dx_down_to_the_data(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 1 + learns + (number > 0))


@training_flops.misconception(
    "6 for what learns and 2 for what is frozen is too simple: the gradient passes through frozen layers as well, dx, "
    "and ends where nothing below learns."
)
def six_or_two(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 3 if learns else 1)


@training_flops.misconception("A frozen layer still runs forward: 2 FLOPs for each example and parameter.")
def frozen_has_no_forward(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: learns + learns + below)


@training_flops.misconception("Backward is not one matmul a layer, as forward is: there are two, dw and dx.")
def backward_like_forward(batch, layers):
    return _flops(batch, layers, lambda number, learns, below: 1 + (learns or below))


@training_flops.misconception("You counted the multiplications. Each product is added to a sum as well: 2 FLOPs.")
def multiplications_only(batch, layers):
    return training_flops.reference(batch, layers) // 2


@training_flops.misconception("dx is asked for by what lies below, towards the data, not by what lies above.")
def wrong_direction(batch, layers):
    return training_flops.reference(batch, layers[::-1])


@training_flops.accepts
def from_the_lowest_that_learns(batch, layers):
    lowest = next((i for i, layer in enumerate(layers) if layer[2]), len(layers))
    forward = sum(2 * batch * d * k for d, k, _ in layers)
    weights = sum(2 * batch * d * k for d, k, learns in layers if learns)
    return forward + weights + sum(2 * batch * d * k for d, k, _ in layers[lowest + 1 :])


@training_flops.accepts
def counting_a_real_step(batch, layers):
    weights = [torch.empty(d, k, device="meta", requires_grad=learns) for d, k, learns in layers]
    with FlopCounterMode(display=False) as counter:
        y = torch.empty(batch, layers[0][0], device="meta")
        for weight in weights:
            y = y @ weight
        if y.requires_grad:
            y.sum().backward()
    return counter.get_total_flops()


# ---------------------------------------------------------------- 6.4


@exercise(
    notebook="06",
    hints=[
        "saved_tensors_hooks(pack, unpack) shows each tensor that is kept to pack. Collect what belongs to it there.",
        "Two tensors may lie in one storage, and a tensor may be a small part of its storage. What takes memory?",
        "t.untyped_storage() has .data_ptr() to tell storages apart and .nbytes(). Which ones are parameters, buffers?",
    ],
    why="Memory is held storage by storage: a relu's output that the next matmul keeps as well is held once, a slice "
    "holds all of its storage. Parameters and buffers would be there without backward, so they are no activations.",
)
def activation_bytes(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes that autograd keeps from the forward pass model(x): the activations.

    A storage counts once and as a whole, however many saved tensors lie in it. The batch x
    counts where it is kept. The model's parameters and buffers do not.
    """
    there_anyway = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    return sum(storage.nbytes() for place, storage in kept.items() if place not in there_anyway)


activation_bytes.cases(
    "nn.Linear(8, 3), torch.randn(4, 8)",
    case("nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(4, 8)", "a relu between two layers"),
    case("nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2)), torch.randn(4, 8)", "a gelu"),
    case("nn.Linear(8, 3), torch.randn(4, 16)[:, ::2]", "every second column of a batch"),
    case("nn.Linear(8, 3).double(), torch.randn(4, 8).double()", "float64"),
    case("nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)).eval(), torch.randn(3, 4)", "buffers"),
    "nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.ReLU()).eval(), torch.randn(7, 5)",
    "nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 1)), torch.randn(3, 4)",
    case("nn.Linear(8, 3).requires_grad_(False), torch.randn(4, 8)", "a frozen layer"),
    "nn.Sequential(nn.Linear(8, 8).requires_grad_(False), nn.Tanh(), nn.Linear(8, 3)), torch.randn(4, 8)",
    "nn.Linear(6, 6).bfloat16(), torch.randn(2, 6).bfloat16()",
    "nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.ReLU()), torch.randn(10, 6)[::5]",
)


def _saved(model, x):
    """Every tensor that autograd saves, as often as it does, with the output that holds them."""
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(x)
    return saved, output


def _place(tensor):
    return tensor.untyped_storage().data_ptr()


def _owned(model, parameters=True, buffers=True):
    tensors = [*(model.parameters() if parameters else ()), *(model.buffers() if buffers else ())]
    return {_place(tensor) for tensor in tensors}


def _bytes(saved, left_out):
    """Bytes of the distinct storages, without those at the places in left_out."""
    return sum({_place(t): t.untyped_storage().nbytes() for t in saved if _place(t) not in left_out}.values())


@activation_bytes.misconception(
    "You counted a storage as often as it is kept. What relu keeps is what the next matmul keeps: one storage."
)
def every_tensor_counts(model, x):
    saved, _ = _saved(model, x)
    return sum(t.untyped_storage().nbytes() for t in saved if _place(t) not in _owned(model))


@activation_bytes.misconception("Weights are kept as well, but they are there anyway: leave the parameters out.")
def parameters_too(model, x):
    return _bytes(_saved(model, x)[0], _owned(model, parameters=False))


@activation_bytes.misconception("Buffers, such as running means, are there anyway, as parameters are: leave them out.")
def buffers_too(model, x):
    return _bytes(_saved(model, x)[0], _owned(model, buffers=False))


@activation_bytes.misconception(
    "nn.Linear keeps its weight transposed: another tensor object in the same storage. Compare storages, not objects."
)
def told_apart_by_object(model, x):
    saved, _ = _saved(model, x)
    return _bytes([t for t in saved if not any(t is p for p in (*model.parameters(), *model.buffers()))], set())


@activation_bytes.misconception("You counted the numbers in each tensor. A slice keeps all of its storage alive.")
def only_what_is_seen(model, x):
    saved, _ = _saved(model, x)
    return sum({_place(t): t.nbytes for t in saved if _place(t) not in _owned(model)}.values())


@activation_bytes.misconception("Not every number takes 4 bytes. Ask the storage: .nbytes().")
def always_four_bytes(model, x):
    saved, _ = _saved(model, x)
    sizes = {_place(t): 4 * t.untyped_storage().nbytes() // t.itemsize for t in saved}
    return sum(size for place, size in sizes.items() if place not in _owned(model))


@activation_bytes.misconception("Those are numbers, not bytes.")
def counted_numbers(model, x):
    saved, _ = _saved(model, x)
    sizes = {_place(t): t.untyped_storage().nbytes() // t.itemsize for t in saved}
    return sum(size for place, size in sizes.items() if place not in _owned(model))


@activation_bytes.misconception("The batch was there before, yet backward makes it stay. Where it is kept, it counts.")
def without_the_batch(model, x):
    return _bytes(_saved(model, x)[0], _owned(model) | {_place(x)})


@activation_bytes.misconception(
    "That is what the layers return. Backward does not need all of it, and what it needs may be an input."
)
def outputs_of_layers(model, x):
    outputs = []
    layers = [module for module in model.modules() if not list(module.children())]
    hooks = [layer.register_forward_hook(lambda _, __, output: outputs.append(output)) for layer in layers]
    model(x)
    for hook in hooks:
        hook.remove()
    return _bytes(outputs, set())


@activation_bytes.accepts
def a_set_of_storages(model, x):
    saved, _ = _saved(model, x)
    return sum(nbytes for _, nbytes in {(_place(t), t.untyped_storage().nbytes()) for t in saved
                                        if _place(t) not in _owned(model)})


@activation_bytes.accepts
def walking_the_graph(model, x):
    output = model(x)
    return _bytes(list(_held_by(output.grad_fn)), _owned(model))


def _held_by(node: object) -> Iterator[torch.Tensor]:
    """What a node of the graph and all nodes below it have saved."""
    if node is not None:
        for name in dir(node):
            if name.startswith("_saved_") and isinstance(tensor := getattr(node, name), torch.Tensor):
                yield tensor
        for child, _ in node.next_functions:
            yield from _held_by(child)
