"""The guard: a learner's code runs under a time limit, its output is caught, and the global state is put back."""

import contextlib
import ctypes
import io
import os
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator

import numpy as np
import torch

MOST_OUTPUT = 10_000  # characters


class OutOfTime(BaseException):
    """Raised inside code that has used up its time. No Exception, so that `except Exception` does not swallow it."""


class TooMuchOutput(BaseException):
    """Raised by the print that exceeds MOST_OUTPUT."""


@contextlib.contextmanager
def guarded(seconds: float) -> Iterator[io.StringIO]:
    """Run the body for at most `seconds`; yields the buffer that catches what it prints."""
    output = _Limited()
    with _state_put_back(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _time_limit(seconds):
            yield output


class _Limited(io.StringIO):
    def write(self, text: str) -> int:
        if self.tell() + len(text) > MOST_OUTPUT:
            raise TooMuchOutput
        return super().write(text)


@contextlib.contextmanager
def _state_put_back() -> Iterator[None]:
    """Start from torch's defaults; put the generators, default dtype, default device and grad mode back afterwards."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(gpus):
        try:
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)
            torch.set_grad_enabled(True)
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)
            torch.set_default_dtype(dtype)
            torch.set_default_device(None if device == torch.device("cpu") else device)
            torch.set_grad_enabled(grad)
            if torch.are_deterministic_algorithms_enabled() != deterministic:  # setting it loads the compiler: 1 s
                torch.use_deterministic_algorithms(deterministic)


def _time_limit(seconds: float) -> contextlib.AbstractContextManager:
    in_main = threading.current_thread() is threading.main_thread()
    return _limit_by_signal(seconds) if in_main and hasattr(signal, "setitimer") else _limit_by_thread(seconds)


@contextlib.contextmanager
def _limit_by_signal(seconds: float) -> Iterator[None]:
    """An alarm that raises OutOfTime in the code, again every 50 ms until the code gives way."""
    tracing, rings = sys.gettrace(), 0

    def ring(_signal: int, frame: types.FrameType | None) -> None:
        nonlocal rings
        rings += 1
        if rings > 1:  # something caught the first: now every next line raises, those of its `except` too
            _raise_on_every_line(frame)
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.settrace(tracing)


def _raise_on_every_line(frame: types.FrameType | None) -> None:
    def trace(frame: types.FrameType, event: str, argument: object):
        if _is_ours(frame):
            return None
        if event == "line":
            raise OutOfTime
        return trace

    while frame is not None and not _is_ours(frame):
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)  # last: from here on, a call of ours would be traced as well


def _is_ours(frame: types.FrameType) -> bool:
    return os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__)


@contextlib.contextmanager
def _limit_by_thread(seconds: float) -> Iterator[None]:
    """The same where there is no alarm (Windows, other threads): CPython raises it at the next bytecode."""
    target, done = ctypes.c_ulong(threading.get_ident()), threading.Event()

    def ring() -> None:
        wait = seconds
        while not done.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(OutOfTime))
            wait = 0.05

    watchdog = threading.Thread(target=ring, daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        done.set()
        watchdog.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(target, None)  # one that was set but not raised yet
