"""The exercises of notebook 05: FLOPs of an einsum, a benchmark, utilisation, intensity, a batch large enough."""
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from statistics import mean, median

import numpy as np
import torch

from course_lib.exercises.engine import case, exercise

# ---------------------------------------------------------------- 5.1


@exercise(
    notebook="05",
    hints=[
        "Give each letter its size. One product is formed for every combination of all letters, shared ones once.",
        "Is there a letter that the output lacks? Then products are added up, and every addition counts as well.",
    ],
    why="An einsum forms one product for each combination of its letters. Where a letter vanishes the products are "
    "added up: one addition for each, so the FLOPs double. For b d, d k -> b k that is 2·b·d·k.",
)
def einsum_flops(equation: str, x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> int:
    """FLOPs of torch.einsum(equation, x, y), counted as 2·b·d·k counts a matmul.

    A product counts 1. Where products are summed, each one that is added to its sum counts
    1 more. A letter that the output lacks is in both inputs; none is twice in one input.
    """
    inputs, output = equation.replace(" ", "").split("->")
    x_axes, y_axes = inputs.split(",")
    sizes = dict(zip(x_axes + y_axes, x_shape + y_shape, strict=True))
    products = math.prod(sizes.values())
    return products if set(output) == set(sizes) else 2 * products


einsum_flops.cases(
    "'bd,dk->bk', (2, 3), (3, 5)",
    case("'b d, d k -> b k', (16, 32), (32, 8)", "a matmul"),
    case("'bij,bjk->bik', (4, 2, 3), (4, 3, 5)", "a batched matmul"),
    case("'bqhd,bkhd->bhqk', (2, 5, 3, 7), (2, 4, 3, 7)", "attention scores"),
    case("'i,i->', (7,), (7,)", "a dot product"),
    case("'ij,j->i', (4, 6), (6,)", "a matrix times a vector"),
    case("'i,j->ij', (3,), (5,)", "an outer product"),
    case("'b d, b d -> b d', (3, 4), (3, 4)", "element by element"),
    case("'ij,ij->', (3, 4), (3, 4)", "two axes that vanish"),
    case("'bsd,df->bsf', (1, 1, 4), (4, 1)", "axes of size 1"),
    case("'hd,kd->k', (1, 2), (3, 2)", "an axis of size 1 that vanishes"),
)


def _axes(equation, x_shape, y_shape):
    """The letters of x, of y and of the output, and the size of each letter."""
    inputs, output = equation.replace(" ", "").split("->")
    x, y = inputs.split(",")
    return x, y, output, dict(zip(x + y, x_shape + y_shape, strict=True))


@einsum_flops.misconception("You counted the multiplications. Each product is also added to a sum: 2 FLOPs, not 1.")
def multiplications_only(equation, x_shape, y_shape):
    return math.prod(_axes(equation, x_shape, y_shape)[3].values())


@einsum_flops.misconception("That is how many numbers the three tensors hold. FLOPs are counted per product.")
def counted_elements(equation, x_shape, y_shape):
    _, _, output, sizes = _axes(equation, x_shape, y_shape)
    return math.prod(x_shape) + math.prod(y_shape) + math.prod(sizes[axis] for axis in output)


@einsum_flops.misconception("You multiplied the two shapes. A letter that x and y share is one axis: count it once.")
def shared_axes_twice(equation, x_shape, y_shape):
    return 2 * math.prod(x_shape) * math.prod(y_shape)


@einsum_flops.misconception("Two FLOPs for each output? Each is a sum over the letters that vanish: a sum of products.")
def outputs_only(equation, x_shape, y_shape):
    _, _, output, sizes = _axes(equation, x_shape, y_shape)
    return 2 * math.prod(sizes[axis] for axis in output)


@einsum_flops.misconception("You left out a letter that both inputs and the output have. Each matrix of a batch costs.")
def one_of_the_batch(equation, x_shape, y_shape):
    x, y, output, sizes = _axes(equation, x_shape, y_shape)
    return 2 * math.prod(size for axis, size in sizes.items() if not (axis in x and axis in y and axis in output))


@einsum_flops.misconception("Nothing vanishes here, so nothing is added up: each output is one product, 1 FLOP.")
def always_doubled(equation, x_shape, y_shape):
    return 2 * math.prod(_axes(equation, x_shape, y_shape)[3].values())


@einsum_flops.misconception(
    "A sum of n products does need n − 1 additions. By convention it counts n: hardware adds the first product to 0."
)
def exact_additions(equation, x_shape, y_shape):
    _, _, output, sizes = _axes(equation, x_shape, y_shape)
    products = math.prod(sizes.values())
    return 2 * products - math.prod(sizes[axis] for axis in output)


@einsum_flops.accepts
def adding_up_ones(equation, x_shape, y_shape):
    x, y = torch.ones(x_shape, dtype=torch.float64), torch.ones(y_shape, dtype=torch.float64)
    products = int(torch.einsum(equation, x, y).sum())
    inputs, output = equation.split("->")
    return products * (2 if set(inputs) - set(", ") - set(output) else 1)


@einsum_flops.accepts
def x_times_what_y_adds(equation, x_shape, y_shape):
    x, y, output, sizes = _axes(equation, x_shape, y_shape)
    flops = math.prod(x_shape)
    for axis in y:
        flops *= 1 if axis in x else sizes[axis]
    return 2 * flops if any(axis not in output for axis in x) else flops


# ---------------------------------------------------------------- 5.2


@exercise(
    notebook="05",
    hints=[
        "Which runs are timed? Not the first. And what may still be at work when you start the stopwatch?",
        "call() has returned: is the work done? Read the clock only after synchronize().",
        "Keep the seconds of each run in a list. Which of mean, minimum and median does one slow run not move?",
    ],
    why="The first run pays for what later ones do not. The device has to be idle when the clock starts and done when "
    "it stops, so synchronize() comes before both readings. One disturbed run moves the mean, luck moves the minimum.",
)
def benchmark(call: Callable, trials: int, synchronize: Callable, clock: Callable) -> float:
    """Median seconds of `trials` runs of call(), each timed alone, after one run to warm up.

    call() hands work to a device and returns before it is done. synchronize() returns once the
    device has done all of its work. clock() tells the time in seconds. `trials` is odd.
    """
    call()
    synchronize()
    seconds = []
    for _ in range(trials):
        start = clock()
        call()
        synchronize()
        seconds.append(clock() - start)
    return median(seconds)


benchmark.cases(
    "runs=[9, 2, 4, 3], trials=3",
    case("runs=[8, 1], trials=1", "a single trial"),
    case("runs=[5, 2, 2, 40, 3, 2], trials=5", "a run that was disturbed"),
    case("runs=[0.5, 0.5, 0.25, 0.375], trials=3", "short runs"),
    case("runs=[3, 6, 1, 5, 2, 4, 7, 8], trials=7", "runs that differ"),
    case("runs=[6, 2, 4, 3], trials=3, at_once=True", "a device that works at once"),
)


class _Device:
    """Works through what it is given while the caller goes on, as a GPU does; work and waiting move its clock."""

    LAUNCH = 2**-10  # seconds that call() itself takes

    def __init__(self, runs, at_once):
        self.runs, self.at_once = list(runs), at_once
        self.now, self.done_at, self.calls = 64.0, 0.0, 0

    def call(self):
        self.calls += 1
        seconds = self.runs[min(self.calls, len(self.runs)) - 1]
        self.now += self.LAUNCH
        self.done_at = max(self.now, self.done_at) + seconds
        if self.at_once:
            self.synchronize()

    def synchronize(self):
        self.now = max(self.now, self.done_at)

    def clock(self):
        return self.now


@benchmark.probe
def on_a_device(candidate, args, kwargs):
    """`runs` are the seconds that the device needs for one run after another."""
    device = _Device(kwargs["runs"], kwargs.get("at_once", False))
    seconds = candidate(device.call, kwargs["trials"], device.synchronize, device.clock)
    return {"seconds": seconds, "calls of call()": device.calls}


def _timed(call, trials, synchronize, clock):
    """The seconds of each run, rightly measured, without a run to warm up."""
    seconds = []
    for _ in range(trials):
        start = clock()
        call()
        synchronize()
        seconds.append(clock() - start)
    return seconds


@benchmark.misconception("Without synchronize() after call() you time how long it takes to hand the work over.")
def launches_only(call, trials, synchronize, clock):
    call()
    synchronize()
    return median(_timed(call, trials, lambda: None, clock))


@benchmark.misconception("You timed the first run as well. It pays for what later ones do not: let one run go before.")
def no_warm_up(call, trials, synchronize, clock):
    return median(_timed(call, trials, synchronize, clock))


@benchmark.misconception("The run that warms up is still at work when you start the clock: synchronize() before, too.")
def warm_up_leaks(call, trials, synchronize, clock):
    call()
    return median(_timed(call, trials, synchronize, clock))


@benchmark.misconception("The mean lets one disturbed run speak for all. Take the median.")
def averaged(call, trials, synchronize, clock):
    call()
    synchronize()
    return mean(_timed(call, trials, synchronize, clock))


@benchmark.misconception("The fastest run is what happens on a lucky day. Take the median.")
def fastest(call, trials, synchronize, clock):
    call()
    synchronize()
    return min(_timed(call, trials, synchronize, clock))


@benchmark.misconception("One stopwatch around all runs gives their mean. Time each run alone and take the median.")
def one_stopwatch(call, trials, synchronize, clock):
    call()
    synchronize()
    start = clock()
    for _ in range(trials):
        call()
    synchronize()
    return (clock() - start) / trials


@benchmark.misconception("You warmed up and then let that run count. The median should see the later runs alone.")
def warm_up_counts(call, trials, synchronize, clock):
    return median(_timed(call, trials + 1, synchronize, clock))


@benchmark.accepts
def middle_of_the_sorted(call, trials, synchronize, clock):
    synchronize()
    call()
    seconds = []
    while len(seconds) < trials:
        synchronize()
        start = clock()
        call()
        synchronize()
        seconds.append(clock() - start)
    return sorted(seconds)[trials // 2]


@benchmark.accepts
def all_but_the_first(call, trials, synchronize, clock):
    return float(np.median(_timed(call, trials + 1, synchronize, clock)[1:]))


# ---------------------------------------------------------------- 5.3


@exercise(
    notebook="05",
    hints=[
        "FLOP/s reached: two FLOPs for each token and each parameter, divided by the seconds.",
        "FLOP/s promised: by all GPUs together, without sparsity. Which of the two goes on top?",
        "A share of what was promised cannot be more than 1. When it is, raise ValueError.",
    ],
    why="2 · parameters · tokens / seconds is what ran. What could have run is the dense peak of the dtype, times the "
    "number of GPUs. No program beats it, so a share above 1 tells that the peak belongs to another dtype or device.",
)
def forward_mfu(
    parameters: int, tokens: int, seconds: float, printed: float, sparse: bool, gpus: int = 1
) -> float:
    """Model FLOPs utilisation of a forward pass: the share of the promised FLOP/s that it reached.

    `printed` is what the data sheet prints for one GPU and the dtype that ran, in FLOP/s. If
    `sparse`, it is the figure with sparsity, twice the dense one. Raise ValueError if the share
    comes out above 1: then the peak is wrong.
    """
    reached = 2 * parameters * tokens / seconds
    dense = 0.5 * printed if sparse else printed
    share = reached / (gpus * dense)
    if share > 1:
        raise ValueError(f"wrong peak: {share:.0%} of it was reached")
    return share


forward_mfu.cases(
    "7e9, 4096, 0.125, 989.5e12, False",
    case("7e9, 4096, 0.125, 1979e12, True", "a figure with sparsity"),
    case("70e9, 65536, 2.5, 989.5e12, False, gpus=8", "eight GPUs"),
    case("70e9, 65536, 2.0, 1979e12, True, gpus=16", "sixteen GPUs"),
    case("2.68435456e8, 16384, 1.2285, 20.31e12, False", "the RTX 3070 in float32"),
    case("2.68435456e8, 16384, 0.42, 20.31e12, False", "bfloat16 over the float32 peak"),
    case("2.68435456e8, 16384, 0.42, 40.6e12, False", "bfloat16 over its own peak"),
    case("5, 10, 2.0, 50.0, False", "all that was promised"),
    "3, 7, 5.0, 10.0, False",
    "3, 7, 5.0, 25.0, True",
    case("3, 7, 5.0, 15.0, True", "above 1"),
    "3, 7, 1.0, 24.0, False",
    "3, 7, 1.0, 24.0, False, gpus=2",
)


@forward_mfu.probe
def refused_or_not(candidate, args, kwargs):
    """A ValueError is an answer as well, whatever it says."""
    try:
        return {"raises ValueError": False, "share": candidate(*args, **kwargs)}
    except ValueError:
        return {"raises ValueError": True, "share": None}


def _share(parameters, tokens, seconds, promised, flops=2):
    share = flops * parameters * tokens / seconds / promised
    if share > 1:
        raise ValueError
    return share


@forward_mfu.misconception("A figure with sparsity counts zeros that are skipped. A matmul is dense: take half of it.")
def sparse_taken_as_it_is(parameters, tokens, seconds, printed, sparse, gpus=1):
    return _share(parameters, tokens, seconds, gpus * printed)


@forward_mfu.misconception("You halved a figure that was dense already. Halve it only if it holds with sparsity.")
def always_halved(parameters, tokens, seconds, printed, sparse, gpus=1):
    return _share(parameters, tokens, seconds, gpus * printed / 2)


@forward_mfu.misconception("The figure is that of one GPU. All of them together promised gpus times as much.")
def one_gpu(parameters, tokens, seconds, printed, sparse, gpus=1):
    return _share(parameters, tokens, seconds, printed / 2 if sparse else printed)


@forward_mfu.misconception("For each parameter a token needs a multiplication and an addition: two FLOPs, not one.")
def one_flop_a_parameter(parameters, tokens, seconds, printed, sparse, gpus=1):
    return _share(parameters, tokens, seconds, gpus * (printed / 2 if sparse else printed), flops=1)


@forward_mfu.misconception("6 FLOPs a token and parameter is a training step, with its backward pass. Forward takes 2.")
def whole_training_step(parameters, tokens, seconds, printed, sparse, gpus=1):
    return _share(parameters, tokens, seconds, gpus * (printed / 2 if sparse else printed), flops=6)


@forward_mfu.misconception("Upside down: what was reached goes on top, what was promised below.")
def upside_down(parameters, tokens, seconds, printed, sparse, gpus=1):
    return gpus * (printed / 2 if sparse else printed) * seconds / (2 * parameters * tokens)


@forward_mfu.misconception("You returned a share above 1. No program beats the peak: the peak is wrong, so say so.")
def above_one(parameters, tokens, seconds, printed, sparse, gpus=1):
    return 2 * parameters * tokens / seconds / gpus / (printed / 2 if sparse else printed)


@forward_mfu.misconception("You cut a share above 1 down to 1 and hid the mistake: a wrong peak. Raise ValueError.")
def cut_down(parameters, tokens, seconds, printed, sparse, gpus=1):
    return min(1.0, above_one(parameters, tokens, seconds, printed, sparse, gpus))


@forward_mfu.accepts
def flops_over_flops(parameters, tokens, seconds, printed, sparse, gpus=1):
    possible = printed * seconds * gpus
    if sparse:
        possible /= 2
    needed = 2 * parameters * tokens
    if needed > possible:
        raise ValueError("more than the peak allows")
    return needed / possible


@forward_mfu.accepts
def seconds_over_seconds(parameters, tokens, seconds, printed, sparse, gpus=1):
    least = 2 * tokens * parameters / (printed / (1 + bool(sparse))) / gpus
    if seconds < least:
        raise ValueError
    return least / seconds


# ---------------------------------------------------------------- 5.4


@exercise(
    notebook="05",
    hints=[
        "FLOPs on top: you know them. Below: how many numbers are read, how many are written?",
        "Two inputs and one result, and each number takes `dtype.itemsize` bytes.",
    ],
    why="2·b·d·k FLOPs, and b·d + d·k numbers to read and b·k to write. With b = 1 nearly all bytes are weights, each "
    "of them used once. With a large batch each weight is used b times for the one time that it is read.",
)
def matmul_intensity(b: int, d: int, k: int, dtype: torch.dtype) -> float:
    """Arithmetic intensity, in FLOPs per byte, of a (b, d) times a (d, k) matrix.

    Both inputs are read from memory once and the result is written once, all in `dtype`.
    """
    elements = b * d + d * k + b * k
    return 2 * b * d * k / (dtype.itemsize * elements)


matmul_intensity.cases(
    "2, 3, 5, torch.float32",
    case("1, 1024, 1024, torch.bfloat16", "a single row"),
    case("1024, 1024, 1024, torch.bfloat16", "a square"),
    case("1024, 1024, 1024, torch.float32", "the same in float32"),
    case("319, 8192, 8192, torch.bfloat16", "a batch of 319"),
    case("8, 64, 1, torch.float32", "one output"),
    case("4, 1, 6, torch.float64", "an outer product"),
    case("16, 128, 32, torch.float8_e4m3fn", "one byte a number"),
    case("1, 1, 1, torch.float16", "one number each"),
)


@matmul_intensity.misconception("That is FLOPs per number. A number takes dtype.itemsize bytes.")
def per_element(b, d, k, dtype):
    return 2 * b * d * k / (b * d + d * k + b * k)


@matmul_intensity.misconception("You took 2 bytes a number whatever the dtype is. Ask dtype.itemsize.")
def always_two_bytes(b, d, k, dtype):
    return b * d * k / (b * d + d * k + b * k)


@matmul_intensity.misconception("The result has to be written to memory as well: b·k numbers more.")
def without_the_result(b, d, k, dtype):
    return 2 * b * d * k / (dtype.itemsize * (b * d + d * k))


@matmul_intensity.misconception("You counted the weights alone. The batch is read and the result is written, too.")
def weights_only(b, d, k, dtype):
    return 2 * b / dtype.itemsize


@matmul_intensity.misconception("You counted the multiplications. Each product is also added to a sum: 2·b·d·k FLOPs.")
def half_the_flops(b, d, k, dtype):
    return b * d * k / (dtype.itemsize * (b * d + d * k + b * k))


@matmul_intensity.misconception("Those are bytes per FLOP. Intensity is FLOPs per byte.")
def bytes_per_flop(b, d, k, dtype):
    return dtype.itemsize * (b * d + d * k + b * k) / (2 * b * d * k)


@matmul_intensity.misconception("You read both numbers anew for every product. What was read once is kept and reused.")
def nothing_kept(b, d, k, dtype):
    return 2 * b * d * k / (dtype.itemsize * (2 * b * d * k + b * k))


@matmul_intensity.accepts
def from_tensors(b, d, k, dtype):
    x, w, y = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((b, d), (d, k), (b, k)))
    return 2 * x.numel() * k / (x.nbytes + w.nbytes + y.nbytes)


@matmul_intensity.accepts
def harmonic(b, d, k, dtype):
    return 2 / dtype.itemsize / (1 / b + 1 / d + 1 / k)


# ---------------------------------------------------------------- 5.5


@exercise(
    notebook="05",
    hints=[
        "Write the condition down: 2·b·d·k ≥ R · itemsize · (b·d + d·k + b·k), where R = peak / bandwidth.",
        "Bring all terms that have b to one side. What must hold so that a larger b helps at all?",
        "With r = R · itemsize: b ≥ r·d·k / (2·d·k − r·(d + k)), as long as what stands below is above 0.",
    ],
    why="The weights, d·k numbers, are read once whatever the batch is; each further row adds 2·d·k FLOPs and d + k "
    "numbers. If a row alone is too few FLOPs for its own bytes, no batch is large enough.",
)
def compute_bound_batch(d: int, k: int, itemsize: int, peak: float, bandwidth: float) -> int | None:
    """Smallest b for which a (b, d) times (d, k) matmul is compute-bound; None if there is none.

    It is when its FLOPs per byte are at least peak / bandwidth (FLOP/s over bytes/s). Inputs are
    read once, the result is written once, and each number takes `itemsize` bytes.
    """
    needed = itemsize * peak / bandwidth  # FLOPs for each number that moves
    gained = 2 * d * k - needed * (d + k)  # FLOPs that one more row leaves for the weights
    return math.ceil(needed * d * k / gained) if gained > 0 else None


compute_bound_batch.cases(
    case("8192, 8192, 2, 989.5e12, 3.35e12", "an H100 in bfloat16"),
    case("8192, 8192, 4, 66.9e12, 3.35e12", "an H100 in float32"),
    case("4096, 11008, 2, 312e12, 2.039e12", "an A100"),
    case("8192, 8192, 2, 40.6e12, 448e9", "an RTX 3070"),
    case("64, 64, 2, 989.5e12, 3.35e12", "matrices too small for any batch"),
    "512, 128, 2, 989.5e12, 3.35e12",
    case("8, 8, 2, 2e12, 1e12", "a batch that balances exactly"),
    case("16, 16, 2, 4e12, 1e12", "a batch that balances exactly"),
    case("8, 8, 2, 4e12, 1e12", "a limit that is never reached"),
    "8, 8, 2, 3.96875e12, 1e12",
    "100, 7, 1, 3e12, 1e12",
)


def _smallest(d, k, needed, result=True):
    gained = 2 * d * k - needed * (d + k * result)
    return math.ceil(needed * d * k / gained) if gained > 0 else None


@compute_bound_batch.misconception(
    "You weighed the FLOPs against the weights alone. Rows are read and written, too, and fade only as d and k grow."
)
def weights_alone(d, k, itemsize, peak, bandwidth):
    return math.ceil(itemsize * peak / bandwidth / 2)


@compute_bound_batch.misconception("The result has to be written as well: each row moves d + k numbers, not d.")
def result_not_written(d, k, itemsize, peak, bandwidth):
    return _smallest(d, k, itemsize * peak / bandwidth, result=False)


@compute_bound_batch.misconception("You counted numbers. The peak ratio is FLOPs per byte: each takes itemsize bytes.")
def numbers_not_bytes(d, k, itemsize, peak, bandwidth):
    return _smallest(d, k, peak / bandwidth)


@compute_bound_batch.misconception("You counted one FLOP a product. Each is added to a sum as well: 2·b·d·k.")
def one_flop_a_product(d, k, itemsize, peak, bandwidth):
    return _smallest(d, k, 2 * itemsize * peak / bandwidth)


@compute_bound_batch.misconception("One row too few: rounded down, the batch is still memory-bound. Round up.")
def rounded_down(d, k, itemsize, peak, bandwidth):
    needed = itemsize * peak / bandwidth
    gained = 2 * d * k - needed * (d + k)
    return int(needed * d * k / gained) if gained > 0 else None


@compute_bound_batch.misconception("Where FLOPs and bytes balance exactly, the chip computes all the time: enough.")
def strictly_above(d, k, itemsize, peak, bandwidth):
    needed = itemsize * peak / bandwidth
    gained = 2 * d * k - needed * (d + k)
    return int(needed * d * k / gained) + 1 if gained > 0 else None


@compute_bound_batch.misconception("No batch is large enough here: a further row is not even worth its own bytes.")
def some_batch_will_do(d, k, itemsize, peak, bandwidth):
    needed = itemsize * peak / bandwidth
    return math.ceil(needed * d * k / (2 * d * k - needed * (d + k)))


@compute_bound_batch.accepts
def trying_all(d, k, itemsize, peak, bandwidth):
    def intensity(b):
        return 2 * b * d * k / (itemsize * (b * d + d * k + b * k))

    if 2 * d * k / (itemsize * (d + k)) <= peak / bandwidth:
        return None
    return next(b for b in count(1) if intensity(b) >= peak / bandwidth)


@compute_bound_batch.accepts
def by_inverses(d, k, itemsize, peak, bandwidth):
    left = Fraction(2) * Fraction(bandwidth) / (itemsize * Fraction(peak)) - Fraction(1, d) - Fraction(1, k)
    return math.ceil(1 / left) if left > 0 else None
