"""Timing: its logic by a clock that the test moves, its numbers against torch.utils.benchmark, as ratios."""
import gc
import random
import re
import statistics
import time

import numpy as np
import pytest
import torch
from torch.utils import benchmark

from course_lib import timing
from course_lib.storage import same_storage
from course_lib.timing import Timing, measure_bandwidth, time_call, time_matmul

A, B = torch.randn(64, 32, generator=torch.Generator().manual_seed(0)), torch.eye(32)


class Clock:
    """Stands still unless it is moved; what is called in between moves it."""

    def __init__(self, monkeypatch):
        self.now, self.log = 100.0, []
        monkeypatch.setattr(timing, "perf_counter", self.read)

    def read(self):
        self.log.append("clock")
        return self.now

    def work(self, seconds):
        """A function that takes so many seconds; given a list, one after another, and then the last one over again."""
        left = list(seconds) if isinstance(seconds, list) else [seconds]

        def call():
            self.log.append("call")
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


# ---------------------------------------------------------------------------------------------- the logic

def test_the_first_call_is_left_out(clock):
    timing = time_call(clock.work([50.0, 1.0, 3.0, 2.0]), trials=3)
    assert (timing.trials, timing.calls, timing.median) == ((1.0, 3.0, 2.0), 1, 2.0)
    assert clock.log == ["clock", "call", "clock"] * 4


def test_a_short_call_is_repeated_until_the_clock_can_tell(clock):
    timing = time_call(clock.work(1e-4), trials=5)
    assert timing.calls == 16  # 8 take 0.8 ms: too short to be told from the clock's own noise
    assert timing.trials == pytest.approx([1e-4] * 5)
    assert clock.log.count("call") == 1 + (1 + 2 + 4 + 8) + 5 * 16


def test_a_long_call_is_not_repeated_beyond_its_trials(clock):
    assert time_call(clock.work(1e-3), trials=3).calls == 1
    assert clock.log.count("call") == 1 + 3


def test_a_clock_that_stands_still_ends_all_the_same(clock, monkeypatch):
    monkeypatch.setattr(timing, "MOST_CALLS", 64)
    assert time_call(clock.work(0.0), trials=3) == Timing((0.0, 0.0, 0.0), 64)


@pytest.mark.parametrize("trials", [3, 4, 7, 10])
def test_median_and_spread_are_numpys(trials):
    draw = random.Random(trials)
    seconds = [draw.random() for _ in range(trials)]
    timing = Timing(tuple(seconds), 1)
    lower, upper = np.percentile(seconds, [25, 75])
    assert timing.median == pytest.approx(np.median(seconds))
    assert timing.spread == pytest.approx(upper - lower)


def test_one_disturbed_trial_moves_neither_much(clock):
    timing = time_call(clock.work([1.0] * 4 + [60.0, 1.0]))
    assert len(timing.trials) == 7
    assert (timing.median, timing.spread) == (1.0, 0.0)
    assert statistics.mean(timing.trials) > 9


@pytest.mark.parametrize(
    ("seconds", "calls", "text"),
    [
        ((2.0, 2.5, 3.0), 1, "2.5 s (median of 3 trials of 1 call; interquartile range 0.5 s)"),
        ((1e-3,) * 3, 1, "1 ms (median of 3 trials of 1 call; interquartile range 0 ms)"),
        ((1.5e-4,) * 7, 16, "150 µs (median of 7 trials of 16 calls; interquartile range 0 µs)"),
        ((4e-8, 5e-8, 6e-8), 32768, "50 ns (median of 3 trials of 32,768 calls; interquartile range 10 ns)"),
        ((0.0,) * 3, 1, "0 ns (median of 3 trials of 1 call; interquartile range 0 ns)"),
    ],
)
def test_a_timing_reads_in_a_fitting_unit(seconds, calls, text):
    assert repr(Timing(seconds, calls)) == text


def test_the_garbage_collector_waits_and_is_as_before_afterwards():
    seen = []
    time_call(lambda: seen.append(gc.isenabled()) or time.sleep(1e-3), trials=3)
    assert set(seen) == {False}
    assert gc.isenabled()
    gc.disable()
    try:
        time_call(lambda: time.sleep(1e-3), trials=3)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_of_the_call_passes_through():
    error = KeyError("mine")

    def fails():
        raise error

    with pytest.raises(KeyError) as caught:
        time_call(fails)
    assert caught.value is error
    assert gc.isenabled()


@pytest.mark.parametrize("device", [None, "cuda", torch.device("cuda", 0)])
def test_on_cuda_the_clock_is_read_when_the_device_is_done(clock, monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda on: clock.log.append(f"wait for {on.type}"))
    time_call(clock.work(1.0), trials=3, device=device)
    assert clock.log == ["wait for cuda", "clock", "call", "wait for cuda", "clock"] * 4


def test_on_the_cpu_nothing_is_waited_for(clock, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda on: clock.log.append("wait"))
    monkeypatch.setattr(timing, "MOST_CALLS", 4)
    time_call(clock.work(1.0), device="cpu")
    time_matmul(A, B)
    assert clock.log.count("clock") == 2 * (1 + 7) + 2 * (1 + 2 + 7)
    assert "wait" not in clock.log


def test_a_matmul_is_waited_for_where_its_tensors_are(clock, monkeypatch):
    monkeypatch.setattr(timing, "MOST_CALLS", 1)
    monkeypatch.setattr(timing, "as_device", lambda device: {"cpu": torch.device("cuda")}.get(str(device), device))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda on: clock.log.append(f"wait for {on}"))
    time_matmul(A, B)  # as if A and B lived on a GPU
    assert clock.log[:4] == ["wait for cuda", "clock", "wait for cuda", "clock"]


# ---------------------------------------------------------------------------------------------- against a peer

@pytest.fixture
def one_thread():
    """Threads that wait for each other on a busy machine differ a hundredfold from one moment to the next."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def agree(measure, peer, factor=1.5, tries=20):
    """Whether the shortest times agree within a factor: other programs lengthen some tries, and none gets shorter."""
    ours, theirs = [], []
    for _ in range(tries):
        ours.append(measure())
        theirs.append(peer())
        if 1 / factor < min(ours) / min(theirs) < factor:
            return True
    pytest.fail(f"The shortest of {tries} took {min(ours)} s, and {min(theirs)} s with torch.utils.benchmark.")


def of_torch(statement, **names):
    return benchmark.Timer(statement, globals=names, num_threads=1).blocked_autorange(min_run_time=0.01).median


@pytest.mark.usefixtures("one_thread")
def test_times_are_those_of_torchs_benchmark():
    a, b = torch.randn(128, 192), torch.randn(192, 160)
    assert agree(lambda: time_matmul(a, b), lambda: of_torch("a @ b", a=a, b=b))
    assert agree(lambda: time_call(lambda: a @ b).median, lambda: of_torch("a @ b", a=a, b=b))
    assert agree(lambda: time_call(a.neg_).median, lambda: of_torch("a.neg_()", a=a))


@pytest.mark.usefixtures("one_thread")
def test_bandwidth_is_bytes_read_and_written_per_second():
    size = 2**25
    source = torch.arange(size // 8)
    target = torch.empty_like(source)
    assert agree(
        lambda: 2 * size / measure_bandwidth("cpu", buffer_bytes=size),
        lambda: of_torch("target.copy_(source)", target=target, source=source),
    )


def test_bandwidth_copies_two_buffers_of_written_numbers(clock, monkeypatch):
    copied = []
    work = clock.work(0.5)
    monkeypatch.setattr(torch.Tensor, "copy_", lambda target, source: copied.append((target, source)) or work())
    assert measure_bandwidth("cpu", trials=3) == 2 * 2**28 / 0.5
    assert len(copied) == 1 + 3
    target, source = copied[0]
    assert target.nbytes == source.nbytes == 2**28
    assert not same_storage(target, source)
    first_in_each_page = source[::512]
    assert first_in_each_page.unique().numel() == 2**28 // 4096
    assert measure_bandwidth(buffer_bytes=1024) == 2 * 1024 / 0.5


def test_random_numbers_stay_as_they_were_seeded():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    measure_bandwidth(buffer_bytes=2**12)
    time_matmul(A, B)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_batches_and_any_layout_are_timed(batch):
    a = torch.randn(*batch, 4, 6).transpose(-1, -2)
    assert time_matmul(a, torch.randn(4, 5)) > 0
    assert time_matmul(torch.randn(1, 1), torch.ones(1, 1)) > 0  # one element cannot help being constant
    assert time_matmul(torch.randint(9, (8, 8)), torch.randint(9, (8, 8))) > 0


# ---------------------------------------------------------------------------------------------- sentences

CONSTANT = (
    "random numbers are asked for, since a chip multiplies constant ones faster "
    "(time_call(lambda: a @ b) times them all the same)."
)
WRONG_KIND = {
    'time_matmul(): a is a list ([[1.0]]); Shaped[Tensor, "... m d"] is asked for.': lambda: time_matmul([[1.0]], B),
    "time_matmul(): b is a NumPy array of dtype float32 and shape (32, 32); "
    'Shaped[Tensor, "... d k"] is asked for, where m=64 and d=32.': lambda: time_matmul(A, B.numpy()),
    "time_matmul(): b is a tensor of dtype float32 and shape (64, 32); "
    'Shaped[Tensor, "... d k"] is asked for, where m=64 and d=32.': lambda: time_matmul(A, A),
    "time_call(): call is a tensor of dtype float32 and shape (64, 32); a function is asked for.": lambda: time_call(A),
    "time_call(): call is called without arguments, but needs a and b; "
    "wrap the call: time_call(lambda: time_matmul(…)).": lambda: time_call(time_matmul),
    "time_call(): trials is a float (2.5); an int is asked for.": lambda: time_call(lambda: A, trials=2.5),
    "measure_bandwidth(): buffer_bytes is a float (1000000.0); an int is asked for.":
        lambda: measure_bandwidth(buffer_bytes=1e6),
}
WRONG_VALUE = {
    "time_call(): trials is 2; at least 3 is asked for.": lambda: time_call(lambda: A, trials=2),
    "device is a str ('gpu'); 'cpu' or 'cuda' is asked for.": lambda: time_call(lambda: A, device="gpu"),
    "device is a str ('tpu'); 'cpu' or 'cuda' is asked for.": lambda: measure_bandwidth("tpu"),
    "measure_bandwidth(): buffer_bytes is -1; at least 1024 is asked for.": lambda: measure_bandwidth(buffer_bytes=-1),
    "measure_bandwidth(): buffer_bytes is 1023; at least 1024 is asked for.":
        lambda: measure_bandwidth("cpu", buffer_bytes=1023),
    "time_matmul(): a is torch.float32 and b is torch.float64; the same dtype is asked for.":
        lambda: time_matmul(A, B.double()),
    "time_matmul(): a is on cpu and b on meta; the same device is asked for.": lambda: time_matmul(A, B.to("meta")),
    "device is meta; 'cpu' or 'cuda' is asked for.": lambda: time_matmul(A.to("meta"), B.to("meta")),
    "time_matmul(): a has shape (0, 32); at least one element is asked for.": lambda: time_matmul(A[:0], B),
    f"time_matmul(): all elements of a are 0; {CONSTANT}": lambda: time_matmul(torch.zeros(3, 32), B),
    f"time_matmul(): all elements of b are 1; {CONSTANT}": lambda: time_matmul(A, torch.ones(2, 32, 5)),
    f"time_matmul(): all elements of b are 0.5; {CONSTANT}": lambda: time_matmul(A, torch.full((7, 32), 0.5).T),
}


@pytest.mark.parametrize(("sentence", "call"), WRONG_KIND.items(), ids=range(len(WRONG_KIND)))
def test_the_wrong_kind_of_argument_gets_one_sentence(sentence, call):
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        call()


@pytest.mark.parametrize(("sentence", "call"), WRONG_VALUE.items(), ids=range(len(WRONG_VALUE)))
def test_a_wrong_value_gets_one_sentence(sentence, call):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        call()
