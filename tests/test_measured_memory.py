"""Measured memory against what is known to be allocated; CUDA's allocator is played by a fake."""
import functools
import gc
import threading
import weakref

import numpy as np
import pytest
import torch

from course_lib import storage
from course_lib.storage import get_memory_usage, measure_memory, measure_peak_memory, same_storage

X = torch.arange(12.0).reshape(3, 4)


# ---------------------------------------------------------------------------------------------- measured memory

MEASURED = {  # name: (make, bytes left, bytes at the peak)
    "ones": (lambda: torch.ones(32, 32), 4096, 4096),
    "tuple": (lambda: (torch.ones(10), [torch.zeros(5, dtype=torch.int8)]), 45, 45),
    "transpose": (lambda: X.T, 0, 0),
    "copy": (lambda: X.T.contiguous(), 48, 48),
    "contiguous already": (lambda: X.contiguous(), 0, 0),
    "reshape to a view": (lambda: X.reshape(12), 0, 0),
    "reshape that copies": (lambda: X.T.reshape(12), 48, 48),
    "expand": (lambda: X[:, :1].expand(3, 1000), 0, 0),
    "small view of a large tensor": (lambda: torch.zeros(1000, 1000)[0], 4_000_000, 4_000_000),
    "temporary": (lambda: X.repeat(100, 1).T[:2].clone(), 2400, 4800 + 2400),
    "in place": (lambda: X.clone().mul_(X), 48, 48),
    "only temporary": (lambda: torch.ones(500).tolist(), 0, 2000),
    "untouched pages": (lambda: torch.empty(2**30, dtype=torch.int8), 2**30, 2**30),
    "nothing": (lambda: None, 0, 0),
    "NumPy and lists": (lambda: (torch.from_numpy(np.ones(100)), [1.0] * 1000), 0, 0),
    "empty": (lambda: torch.empty(0, 5), 0, 0),
}


@pytest.mark.parametrize(("make", "left", "peak"), MEASURED.values(), ids=MEASURED)
def test_memory_is_measured_to_the_byte(make, left, peak):
    for device in (None, "cpu", torch.device("cpu")):
        assert measure_memory(make, device) == left
        assert measure_peak_memory(make, device) == peak


def test_what_a_training_step_leaves_is_its_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    batch = torch.randn(8, 64)
    gradients = sum(map(get_memory_usage, model.parameters()))
    assert measure_memory(lambda: model(batch).sum().backward()) == gradients
    assert measure_peak_memory(lambda: model(batch).sum().backward()) > gradients


def test_temporaries_do_not_pile_up_in_the_peak():
    def one_after_another():
        for _ in range(20):
            torch.ones(250)

    assert (measure_memory(one_after_another), measure_peak_memory(one_after_another)) == (0, 1000)


def test_what_make_leaves_behind_elsewhere_counts():
    kept = []
    assert measure_memory(lambda: kept.append(torch.ones(10))) == 40


def test_freeing_older_tensors_is_no_credit():
    kept = {"x": torch.ones(250)}

    def replace():
        kept["x"] = torch.ones(250)

    # The second tensor that goes is one that the measurement before saw coming.
    assert [measure_memory(replace) for _ in range(3)] == [1000, 1000, 1000]
    assert measure_memory(kept.clear) == 0
    assert measure_peak_memory(lambda: [torch.ones(25), kept.update(x=None), torch.ones(25)]) == 200


def test_garbage_in_cycles_does_not_count_whether_old_or_new():
    def cycle():
        ring = [torch.ones(1000)]
        ring.append(ring)

    cycle()
    assert measure_memory(cycle) == 0
    assert measure_peak_memory(cycle) == 4000
    assert gc.get_freeze_count() == 0


def test_older_garbage_stays_as_it_is():
    """Else what the garbage collector happens to free would be counted, on CUDA, as freed by `make`."""
    class Node:
        pass

    node = Node()
    node.itself, alive = node, weakref.ref(node)
    del node
    measure_memory(lambda: [Node() for _ in range(2000)])
    assert alive() is not None


def test_it_respects_objects_that_were_set_aside_before():
    gc.freeze()
    try:
        assert measure_memory(lambda: torch.ones(10)) == 40
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_an_error_of_make_passes_through_and_leaves_all_as_it_was(monkeypatch):
    error = KeyError("mine")
    monkeypatch.setattr(storage._log_level, "value", 0)

    def fails():
        torch.ones(10)
        raise error

    for measure in (measure_memory, measure_peak_memory):
        with pytest.raises(KeyError) as caught:
            measure(fails)
        assert caught.value is error
        assert not torch.autograd._profiler_enabled()
        assert (gc.get_freeze_count(), storage._log_level.value) == (0, 0)
        assert measure(lambda: torch.ones(10)) == 40


def test_it_does_not_speak_to_stderr(capfd):
    many = [torch.ones(100) for _ in range(2100)]  # torch would speak at the first and at each thousandth of them
    assert measure_memory(many.clear) == 0
    measure_peak_memory(lambda: torch.ones(10))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_other_threads_do_not_disturb_it():
    stop, running = threading.Event(), threading.Event()

    def allocate():
        while not stop.is_set():
            torch.ones(1000)
            running.set()

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        assert running.wait(10)
        assert [measure_memory(lambda: X.clone()) for _ in range(20)] == [48] * 20
    finally:
        stop.set()
        thread.join()


def test_one_measurement_within_another_is_refused_and_the_next_one_works():
    sentence = "Memory is being measured already; one measurement cannot run within another."
    with pytest.raises(RuntimeError, match=f"^{sentence}$"):
        measure_memory(lambda: measure_peak_memory(lambda: X.T))
    assert measure_memory(lambda: X.clone()) == 48


@pytest.mark.parametrize("thread", [False, True])
def test_within_a_profiler_it_is_refused_and_the_profiler_goes_on(thread):
    said = []

    def measure():
        with pytest.raises(RuntimeError) as caught:
            measure_memory(lambda: X.T)
        said.append(str(caught.value))

    with torch.autograd.profiler.profile() as profiler:
        if thread:
            other = threading.Thread(target=measure)
            other.start()
            other.join()
        else:
            measure()
        torch.ones(3)
    assert said == ["Memory cannot be measured while a profiler runs; measure outside of it."]
    assert any(event.name == "aten::ones" for event in profiler.function_events)


def test_a_torch_without_kineto_is_named(monkeypatch):
    monkeypatch.setattr(storage, "kineto_available", lambda: False)
    with pytest.raises(RuntimeError) as caught:
        measure_memory(lambda: X.T)
    sentence = "The CPU's memory cannot be measured: this torch is built without its profiler, kineto."
    assert str(caught.value) == sentence


# ---------------------------------------------------------------------------------------------- CUDA, played by a fake

class FakeCuda:
    """CUDA's allocator as far as it is asked; `log` keeps the order of the calls."""

    def __init__(self, monkeypatch):
        self.now, self.peak, self.log, self.ready = 5120, 99_999, [], False
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", self.clear, raising=False)
        for name in ("synchronize", "memory_allocated", "max_memory_allocated", "reset_peak_memory_stats"):
            monkeypatch.setattr(torch.cuda, name, functools.partial(self.called, name))

    def called(self, name, device):
        assert torch.device(device).type == "cuda"
        self.log.append(name)
        if name == "reset_peak_memory_stats":
            self.peak = self.now
        return {"memory_allocated": self.now, "max_memory_allocated": self.peak}.get(name)

    def clear(self):
        self.log.append("clear cuBLAS")

    def allocate(self, size):
        self.log.append("allocate" if size > 0 else "free")
        self.now += size
        self.peak = max(self.peak, self.now)


@pytest.mark.parametrize("device", ["cuda", torch.device("cuda", 0)])
def test_on_cuda_the_allocator_is_read_once_the_device_is_done(monkeypatch, device):
    cuda = FakeCuda(monkeypatch)

    def make():
        cuda.allocate(1024)
        cuda.allocate(512)
        cuda.allocate(-512)
        return torch.ones(32)  # on the CPU, which is not asked about

    assert measure_memory(make, device) == 1024
    read = ["synchronize", "clear cuBLAS", "memory_allocated"]
    made = ["allocate", "allocate", "free"]
    assert cuda.log == [*read, "reset_peak_memory_stats", *made, *read, "max_memory_allocated"]
    assert measure_peak_memory(make, device) == 1536


def test_with_a_gpu_both_devices_are_measured(monkeypatch):
    cuda = FakeCuda(monkeypatch)

    def make():
        cuda.allocate(512)
        return torch.ones(32)

    assert measure_memory(make) == 512 + 128
    assert measure_peak_memory(make) == 512 + 128
    assert measure_memory(make, "cpu") == 128


def test_on_cuda_too_the_result_is_alive_while_it_is_measured(monkeypatch):
    cuda = FakeCuda(monkeypatch)

    class OnCuda:
        def __init__(self):
            cuda.allocate(2048)

        def __del__(self):
            cuda.allocate(-2048)

    assert measure_memory(OnCuda, "cuda") == 2048
    assert cuda.log[-1] == "free"
    with pytest.raises(RuntimeError, match="within another"):
        measure_memory(lambda: measure_memory(OnCuda, "cuda"), "cuda")


# ---------------------------------------------------------------------------------------------- sentences

TENSOR = "a tensor of dtype float32 and shape (3, 4)"
WRONG_KIND = {
    "measure_memory(): make is {TENSOR}; a function is asked for.": lambda: measure_memory(X),
    "measure_peak_memory(): make is {TENSOR}; a function is asked for.": lambda: measure_peak_memory(X),
    "measure_memory(): make is called without arguments, but needs x and y; "
    "wrap the call: measure_memory(lambda: same_storage(…)).": lambda: measure_memory(same_storage),
    "measure_peak_memory(): make is called without arguments, but needs x; "
    "wrap the call: measure_peak_memory(lambda: make(…)).": lambda: measure_peak_memory(lambda x, *more, size=3: x),
    "measure_memory(): device is an int (0); device | str | None is asked for.": lambda: measure_memory(lambda: X, 0),
}
WRONG_VALUE = {
    "device is a str ('gpu'); 'cpu' or 'cuda' is asked for.": lambda: measure_memory(lambda: X, "gpu"),
    "device is meta; 'cpu' or 'cuda' is asked for.": lambda: measure_peak_memory(lambda: X, torch.device("meta")),
}


@pytest.mark.parametrize(("sentence", "call"), WRONG_KIND.items(), ids=range(len(WRONG_KIND)))
def test_the_wrong_kind_of_argument_gets_one_sentence(sentence, call):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == sentence.format(TENSOR=TENSOR)


@pytest.mark.parametrize(("sentence", "call"), WRONG_VALUE.items(), ids=range(len(WRONG_VALUE)))
def test_a_wrong_value_gets_one_sentence(sentence, call):
    with pytest.raises(ValueError, match="asked for") as caught:
        call()
    assert str(caught.value) == sentence.format(TENSOR=TENSOR)
