"""The guard: a learner's code runs under a time limit, its output is caught, and the global state is put back."""

import contextlib
import ctypes
import io
import itertools
import os
import random
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

MOST_OUTPUT = 10_000  # characters
_TICKS = 20  # a limit is this many ticks: a machine that stands still for a minute misses one tick, not sixty seconds


class OutOfTime(BaseException):
    """Raised inside code that has used up its time. No Exception, so that `except Exception` does not swallow it."""


class TooMuchOutput(BaseException):
    """Raised by the print that exceeds MOST_OUTPUT."""


@dataclass
class Guard:
    """What a guarded run can be asked: the text that it printed, and whether its time ran out."""

    output: "_Limited"
    rang: bool = False
    running: bool = True

    def stop(self) -> None:
        """The candidate has been left: from now on nothing is raised any more."""
        self.running = False


@contextlib.contextmanager
def guarded(seconds: float) -> Iterator[Guard]:
    """Run the body for at most `seconds`, with its output caught and the global state put back afterwards."""
    guard = Guard(_Limited())
    with _state_put_back(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = guard.output
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _time_limit(seconds, guard):
            yield guard


class _Limited(io.StringIO):
    def write(self, text: str) -> int:
        if self.tell() + len(text) > MOST_OUTPUT:
            raise TooMuchOutput
        return super().write(text)

    def close(self) -> None:
        """Stay open, whatever the candidate closes."""


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """Outside of inference mode, autocast and whatever else the learner has switched on around `check`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        stack.enter_context(_disable_current_modes())
        stack.enter_context(_state_put_back())
        yield


@contextlib.contextmanager
def _state_put_back() -> Iterator[None]:
    """Start from torch's defaults; put generators, default dtype, grad mode and device modes back afterwards."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(gpus), _no_function_modes():
        try:
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            if torch.are_deterministic_algorithms_enabled() != deterministic:  # setting it loads the compiler: 1 s
                torch.use_deterministic_algorithms(deterministic)


@contextlib.contextmanager
def _no_function_modes() -> Iterator[None]:
    """Without a default device or another mode over torch's functions; what the body leaves behind is dropped."""
    modes = _pop_function_modes()
    device = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    torch._GLOBAL_DEVICE_CONTEXT.device_context = None
    try:
        yield
    finally:
        _pop_function_modes()
        torch._GLOBAL_DEVICE_CONTEXT.device_context = device
        for mode in reversed(modes):
            torch._C._push_on_torch_function_stack(mode)


def _pop_function_modes() -> list[object]:
    return [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]


def _time_limit(seconds: float, guard: Guard) -> contextlib.AbstractContextManager:
    in_main = threading.current_thread() is threading.main_thread()
    limit = _limit_by_signal if in_main and hasattr(signal, "setitimer") else _limit_by_thread
    return limit(seconds, guard)


@contextlib.contextmanager
def _limit_by_signal(seconds: float, guard: Guard) -> Iterator[None]:
    """An alarm that raises OutOfTime in the candidate's code, again every 50 ms until the code gives way."""
    tracing, begin, ticks = sys.gettrace(), time.monotonic(), itertools.count(1)

    def ring(_signal: int, frame: types.FrameType | None) -> None:
        if next(ticks) < _TICKS or not guard.running:
            return
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        if not _in_candidate(frame):  # the candidate has been left, its garbage is being freed
            return
        if guard.rang:  # something caught the first: now every next line raises, those of its `except` too
            _raise_on_every_line(frame, guard)
        guard.rang = True
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    others, interval = signal.setitimer(signal.ITIMER_REAL, seconds / _TICKS, seconds / _TICKS)
    try:
        yield
    finally:
        guard.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.settrace(tracing)
        signal.signal(signal.SIGALRM, before)
        if others:  # an alarm that somebody else had set still rings, if late
            signal.setitimer(signal.ITIMER_REAL, max(others - (time.monotonic() - begin), 1e-3), interval)


def _raise_on_every_line(frame: types.FrameType | None, guard: Guard) -> None:
    def trace(frame: types.FrameType, event: str, argument: object):
        if not guard.running or _is_ours(frame):
            return None
        if event == "line":
            raise OutOfTime
        return trace

    while frame is not None and not _is_ours(frame):
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)  # last: from here on, a call of ours would be traced as well


def _in_candidate(frame: types.FrameType | None) -> bool:
    """Whether code that is not the engine's runs at this moment."""
    return frame is not None and not _is_ours(frame)


def _is_ours(frame: types.FrameType) -> bool:
    return os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__)


@contextlib.contextmanager
def _limit_by_thread(seconds: float, guard: Guard) -> Iterator[None]:
    """The same where there is no alarm (Windows, other threads): CPython raises it at the next bytecode."""
    target, done = ctypes.c_ulong(threading.get_ident()), threading.Event()

    def ring() -> None:
        if any(done.wait(seconds / _TICKS) for _ in range(_TICKS)):
            return
        while guard.running and not done.wait(0.05):
            guard.rang = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(OutOfTime))

    watchdog = threading.Thread(target=ring, daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        guard.stop()
        done.set()
        watchdog.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(target, None)  # one that was set but not raised yet
