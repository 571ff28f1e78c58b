"""Tricks that code can play on the checker: it answers in a clear sentence, never raises, lets no wrong one pass."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.exercises import check
from course_lib.exercises.engine import judge as judging
from course_lib.exercises.engine.compare import Rules, difference
from course_lib.exercises.engine.freeze import Atom, freeze
from course_lib.exercises.engine.guard import OutOfTime, guarded
from course_lib.exercises.engine.observe import Observation, Raised

LIMIT_SECONDS = 0.4
TRICKS: dict[str, tuple] = {}


@pytest.fixture(autouse=True)
def impatient(monkeypatch, samples):
    monkeypatch.setattr(judging.judge, "__defaults__", (LIMIT_SECONDS,))


def trick(exercise: str, status: str, *says: str):
    """Register a trick: which exercise it plays on, the status it must get, and words that the message must contain."""

    def register(function):
        TRICKS[function.__name__] = (function, exercise, status, says)
        return function

    return register


def right(strides, index, offset=0):
    return offset + sum(i * s for i, s in zip(index, strides, strict=True))


# ---------------------------------------------------------------- code that does not come back
@trick("position_in", "error", "did not finish", "loop that never ends")
def loops_for_ever(strides, index, offset=0):
    while True:
        pass


@trick("position_in", "error", "did not finish")
def swallows_exceptions(strides, index, offset=0):
    while True:
        try:
            while True:
                pass
        except Exception:
            pass


@trick("position_in", "error", "did not finish")
def swallows_everything(strides, index, offset=0):
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722
            pass


@trick("position_in", "error", "did not finish")
def sleeps(strides, index, offset=0):
    time.sleep(100)


@trick("position_in", "error", "printed more than 10,000 characters")
def prints_for_ever(strides, index, offset=0):
    while True:
        print("hello")


@trick("position_in", "error", "RecursionError", "line ")
def recurses(strides, index, offset=0):
    return recurses(strides, index, offset)


@trick("position_in", "wrong", "gave a generator, expected an int")
def yields_for_ever(strides, index, offset=0):
    while True:
        yield 1


# ---------------------------------------------------------------- code that leaves
@trick("position_in", "error", "raised SystemExit")
def exits(strides, index, offset=0):
    raise SystemExit(3)


@trick("position_in", "error", "was interrupted")
def interrupts(strides, index, offset=0):
    raise KeyboardInterrupt


@trick("position_in", "error", "raised RuntimeError: oh dear", "line ", 'raise RuntimeError("oh dear")')
def raises(strides, index, offset=0):
    raise RuntimeError("oh dear")


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no words")


@trick("position_in", "error", "raised Speechless")
def raises_what_has_no_text(strides, index, offset=0):
    raise Speechless


@trick("position_in", "error", "TypeError")
def takes_one_argument(strides):
    return 1


# ---------------------------------------------------------------- things that only look like the answer
class YesInt(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@trick("position_in", "wrong", "gave -1, expected 6")
def an_int_that_equals_all(strides, index, offset=0):
    return YesInt(-1)


class Yes:
    __class__ = int

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __index__(self):
        return 6


@trick("position_in", "wrong", "gave a Yes, expected an int")
def an_object_that_equals_all(strides, index, offset=0):
    return Yes()


class Mute:
    def __eq__(self, other):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")

    __hash__ = None


@trick("position_in", "wrong", "gave a Mute, expected an int")
def an_object_without_repr(strides, index, offset=0):
    return Mute()


@trick("position_in", "wrong", "expected an int")
def a_list_inside_itself(strides, index, offset=0):
    endless = []
    endless.append(endless)
    return endless


@trick("position_in", "wrong", "a float (6.0), expected an int (6)")
def a_float(strides, index, offset=0):
    return float(right(strides, index, offset))


@trick("position_in", "wrong", "a Tensor, expected an int")
def a_tensor(strides, index, offset=0):
    return torch.tensor(right(strides, index, offset))


@trick("position_in", "wrong", "a bool (True), expected an int")
def a_bool(strides, index, offset=0):
    return True


@trick("position_in", "wrong", "a str ('6'), expected an int")
def a_text(strides, index, offset=0):
    return str(right(strides, index, offset))


@trick("position_in", "wrong", "a float (nan), expected an int")
def nan(strides, index, offset=0):
    return float("nan")


@trick("position_in", "wrong", "gave None, expected an int (6)")
def forgets_to_return(strides, index, offset=0):
    _ = right(strides, index, offset)


@trick("position_in", "correct")
def a_numpy_int(strides, index, offset=0):
    return np.int64(right(strides, index, offset))


_calls = []


@trick("position_in", "wrong", "expected")
def right_only_once(strides, index, offset=0):
    _calls.append(1)
    return right(strides, index, offset) if len(_calls) == 1 else 0


# ---------------------------------------------------------------- tensors
@trick("windows_of", "wrong", "device meta, expected cpu")
def on_meta(x, size):
    return torch.empty(x.numel() - size + 1, size, device="meta", dtype=x.dtype)


@trick("windows_of", "wrong", "layout sparse_coo, expected strided")
def sparse(x, size):
    return x.unfold(0, size, 1).to_sparse()


@trick("windows_of", "wrong", "dtype complex64, expected float32")
def complex_numbers(x, size):
    return x.unfold(0, size, 1) * 1j


@trick("windows_of", "wrong", "dtype float64, expected float32")
def other_dtype(x, size):
    return x.unfold(0, size, 1).double()


@trick("windows_of", "wrong", "nan")
def nan_in_place(x, size):
    return x.fill_(float("nan") if x.is_floating_point() else 0).unfold(0, size, 1)


@trick("windows_of", "wrong", "a NumPy array, expected a Tensor")
def a_numpy_array(x, size):
    return x.unfold(0, size, 1).float().numpy()


@trick("windows_of", "wrong", "a list", "expected a Tensor")
def a_nested_list(x, size):
    return x.unfold(0, size, 1).tolist()


@trick("windows_of", "wrong", "gave shape (1, 4, 3), expected (4, 3)")
def one_axis_more(x, size):
    return x.unfold(0, size, 1)[None]


@trick("windows_of", "wrong", "left its input x changed")
def leaves_a_gradient_behind(x, size):
    if x.is_floating_point():
        x.requires_grad_()
    return x.detach().unfold(0, size, 1)


@trick("windows_of", "error", "raised RuntimeError")
def huge(x, size):
    return torch.empty(10**15)


@trick("windows_of", "wrong", "shape (100000, 100000), expected (4, 3)")
def huge_but_free(x, size):
    return x[:1, None].expand(100_000, 100_000)


class Claims(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


@trick("windows_of", "wrong", "expected")
def a_subclass_that_says_yes(x, size):
    return torch.zeros(x.numel() - size + 1, size).as_subclass(Claims)


@trick("windows_of", "correct")
def a_plain_subclass(x, size):
    return torch.Tensor.as_subclass(x.unfold(0, size, 1), type("Sub", (torch.Tensor,), {}))


@trick("windows_of", "correct")
def meddles_with_global_state(x, size):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.manual_seed(1)
    np.random.seed(1)
    torch.set_grad_enabled(False)
    return x.unfold(0, size, 1)


@trick("windows_of", "correct")
def prints_a_little(x, size):
    print("windows of", size)
    return x.unfold(0, size, 1)


@trick("blend_", "wrong", "gave average another storage", "Write into it")
def new_data(average, value, decay):
    average.data = decay * average + (1 - decay) * value
    return average


@trick("blend_", "wrong", "left its input value changed")
def changes_the_other_input(average, value, decay):
    average.mul_(decay).add_(value, alpha=1 - decay)
    value.zero_()
    return average


@trick("blend_", "wrong", "expected")
def rebinds(average, value, decay):
    average = decay * average + (1 - decay) * value
    return average


@trick("blend_", "wrong", "requires_grad")
def turns_on_gradients(average, value, decay):
    average.mul_(decay).add_(value, alpha=1 - decay)
    value.requires_grad_()
    return average


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_gets_its_sentence(name, samples):
    function, exercise, status, says = TRICKS[name]
    _calls.clear()
    function.__name__ = exercise
    begin = time.perf_counter()
    result = check(function)
    spent = time.perf_counter() - begin
    assert result.status == status, result
    for words in says:
        assert words in repr(result), result
    assert "Traceback" not in repr(result) and repr(result) and result._repr_html_()
    assert spent < 10, f"{spent:.1f} s"


def test_global_state_is_as_before(samples):
    torch.manual_seed(3)
    np.random.seed(3)
    before = (torch.random.get_rng_state(), np.random.get_state()[1].tolist(), torch.get_default_dtype())
    meddles_with_global_state.__name__ = "windows_of"
    assert check(meddles_with_global_state).status == "correct"
    assert torch.equal(before[0], torch.random.get_rng_state()) and before[1] == np.random.get_state()[1].tolist()
    assert before[2] == torch.get_default_dtype() and torch.is_grad_enabled()
    assert torch.empty(1).device.type == "cpu"


def test_the_learners_own_defaults_do_not_matter_and_stay(samples):
    torch.set_default_dtype(torch.float64)
    try:
        assert check(samples["windows_of"].alternatives["unfold"]).status == "error"  # its name is no exercise
        named = samples["windows_of"].alternatives["unfold"]
        assert judging.judge(samples["windows_of"], named).status == "correct"
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


# ---------------------------------------------------------------- what is handed to check
def test_things_that_are_no_answer(samples):
    position_in = samples["position_in"]
    cases = {
        "None": None,
        "a number": 3,
        "a list": [right],
        "a text": "nonsense",
        "a module": torch.nn.Linear(2, 2),
        "a lambda": lambda: 1,
        "a builtin": print,
        "a class": torch.nn.Linear,
        "a type": type,
        "the exercise itself": position_in,
        "raises on everything": Mute(),
    }
    for what, answer in cases.items():
        result = check(answer)
        assert result.status == "error" and "pass the" in result.message, (what, result)
        assert result._repr_html_()


def test_a_value_or_the_wrong_kind_under_the_right_name(samples):
    position_in = right((4, 1), (1, 2))
    assert "an int; pass the function itself, without calling it" in check(position_in).message
    SmallAdaGrad = lambda params: None  # noqa: E731
    assert "this is a function; a class is asked for" in check(SmallAdaGrad).message
    windows_of = type("windows_of", (), {})
    assert "this is a class; a function is asked for" in check(windows_of).message
    assert check("blend_").status == "error"


def test_a_misspelt_name_gets_a_suggestion(samples):
    def position_inn(strides, index, offset=0):
        return 1

    assert "check(position_in)" in check(position_inn).message


def test_lambdas_partials_decorated_and_callable_objects_are_found_by_their_variable(samples):
    position_in = lambda strides, index, offset=0: right(strides, index, offset)  # noqa: E731
    assert check(position_in).status == "correct"
    position_in = functools.partial(right)
    assert check(position_in).status == "correct"
    position_in = functools.lru_cache(right)
    assert check(position_in).status == "correct"

    class Callable:
        def __call__(self, *args, **kwargs):
            return right(*args, **kwargs)

    position_in = Callable()
    assert check(position_in).status == "correct"


# ---------------------------------------------------------------- stubs in every state
def _wrapped(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize(
    "body",
    [
        "...",
        "pass",
        "return",
        "return None",
        "return ...",
        "raise NotImplementedError",
        "raise NotImplementedError('todo')",
    ],
)
def test_an_empty_function_is_not_started(body, samples):
    scope = {}
    exec(f"def position_in(strides, index, offset=0):\n    '''Another docstring.'''\n    {body}", scope)
    assert check(scope["position_in"]).status == "not started"
    assert check(_wrapped(scope["position_in"])).status == "not started"
    assert check(torch.no_grad()(scope["position_in"])).status == "not started"
    exec(f"def position_in(strides, index, offset=0):\n    {body}", scope)
    assert check(scope["position_in"]).status == "not started"


@pytest.mark.parametrize(
    "body", ["return 5", "return 'x'", "return True", "return strides", "raise ValueError", "return ()"]
)
def test_a_function_that_does_something_is_started(body, samples):
    scope = {}
    exec(f"def position_in(strides, index, offset=0):\n    {body}", scope)
    assert check(scope["position_in"]).status in ("wrong", "error")


def test_a_half_filled_class_names_what_is_missing(samples):
    class SmallAdaGrad(torch.optim.Optimizer):
        def __init__(self, params, lr=0.01, eps=1e-10):
            super().__init__(params, {"lr": lr, "eps": eps})

        @torch.no_grad()
        def step(self): ...

    result = check(SmallAdaGrad)
    assert result.status == "not started" and "step still to be written" in result.message


def test_a_class_without_the_methods_and_one_that_fails_are_told_apart(samples):
    SmallAdaGrad = type("SmallAdaGrad", (), {})
    assert check(SmallAdaGrad).status == "error" and "TypeError" in check(SmallAdaGrad).message

    class SmallAdaGrad(torch.optim.Optimizer):
        def __init__(self, params, lr=0.01, eps=1e-10):
            super().__init__(params, {"lr": lr, "eps": eps})

        def step(self):
            return self.nothing

    result = check(SmallAdaGrad)
    assert result.status == "error" and "return self.nothing" in result.message


# ---------------------------------------------------------------- the guard itself
def test_the_limit_also_holds_outside_the_main_thread(samples):
    outcome = []

    def run():
        loops_for_ever.__name__ = "position_in"
        outcome.append(check(loops_for_ever))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(300)
    assert outcome and "did not finish" in outcome[0].message


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be made to stand still here")
@pytest.mark.parametrize("where", ["in the main thread", "in another thread"])
def test_a_machine_that_stands_still_is_no_loop_that_never_ends(where):
    asleep = subprocess.Popen([sys.executable, "-c", STANDS_STILL, where], stdout=subprocess.PIPE, text=True)
    os.waitid(os.P_PID, asleep.pid, os.WSTOPPED | os.WNOWAIT)
    time.sleep(3)  # far beyond the limit
    asleep.send_signal(signal.SIGCONT)
    assert asleep.communicate()[0] == "in time\n"


STANDS_STILL = """
import os, signal, sys, threading
from course_lib.exercises.engine.guard import guarded

def answer():
    with guarded(1.0) as guard:
        os.kill(os.getpid(), signal.SIGSTOP)
    print("too late" if guard.rang else "in time")

if sys.argv[1] == "in the main thread":
    answer()
else:
    thread = threading.Thread(target=answer)
    thread.start()
    thread.join()
"""


def test_an_alarm_set_by_others_is_put_back():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        ours = signal.getsignal(signal.SIGALRM)
        with pytest.raises(OutOfTime), guarded(0.05):
            loops_for_ever((), ())
        assert signal.getsignal(signal.SIGALRM) is ours
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_fault_of_the_checker_is_not_blamed_on_the_learner(samples, monkeypatch):
    from course_lib.exercises import tutor

    monkeypatch.setattr(tutor, "judge", lambda *_: 1 / 0)
    right.__name__ = "position_in"
    result = check(right)
    right.__name__ = "right"
    assert result.status == "error" and "the checker itself failed (ZeroDivisionError)" in result.message


# ---------------------------------------------------------------- freezing
@dataclass
class Record:
    size: int
    values: torch.Tensor


class Sly(Record):
    def __getattribute__(self, name):
        return 3 if name == "size" else object.__getattribute__(self, name)


def test_a_record_is_frozen_field_by_field_whatever_it_says_of_itself():
    frozen = freeze(Record(1, torch.zeros(2)))
    assert frozen.kind == "Record"
    assert freeze(Sly(1, torch.zeros(2))).rows[Atom("str", "size")] == Atom("int", 1)


def test_a_frozen_tensor_no_longer_follows_the_learners():
    x = torch.zeros(3)
    frozen = freeze([x])
    x.fill_(7)
    assert frozen.items[0].values.tolist() == [0, 0, 0]


def test_a_result_with_too_many_parts_is_cut_off_soon():
    wide = [0] * 50
    for _ in range(7):
        wide = [wide] * 50
    begin = time.perf_counter()
    freeze(wide)
    assert time.perf_counter() - begin < 5


# ---------------------------------------------------------------- what surrounds a check
def named(function, name):
    function.__name__ = name
    return function


def test_a_time_out_is_one_however_long_the_garbage_takes(samples):
    def leaves_much_behind(strides, index, offset=0):
        piles = [list(range(300_000)) for _ in range(20)]
        while piles:
            pass

    for _ in range(3):
        assert "did not finish" in check(named(leaves_much_behind, "position_in")).message


def test_a_swallowed_time_out_is_no_answer(samples):
    def sleeps_and_goes_on(strides, index, offset=0):
        with contextlib.suppress(BaseException):
            time.sleep(10)
        return right(strides, index, offset)

    assert "did not finish" in check(named(sleeps_and_goes_on, "position_in")).message


def test_modes_around_a_check_do_not_matter(samples):
    windows = named(lambda x, size: x.unfold(0, size, 1), "windows_of")
    for one in samples.values():
        one._seen.clear()
    with torch.inference_mode():
        assert check(windows).status == "correct"
    assert check(windows).status == "correct"
    with torch.device("meta"):
        assert check(windows).status == "correct"
    with torch.autocast("cpu"):
        assert check(windows).status == "correct"
    with FakeTensorMode():
        assert check(windows).status == "correct"


def test_sixteen_bits_do_not_buy_patience(samples):
    rough = named(lambda average, value, decay: (average * 1.01).bfloat16(), "blend_")
    assert check(rough).status == "wrong"
    got, want = freeze(torch.full((2,), 1.01).bfloat16()), freeze(torch.ones(2))
    assert difference(Observation(got), Observation(want), Rules()).kind == "value"


def test_a_stop_while_the_reference_runs_is_forgotten(samples, monkeypatch):
    position_in = samples["position_in"]
    position_in._seen.clear()
    with monkeypatch.context() as patch:
        patch.setattr(position_in, "observe", lambda *_: Observation(raised=Raised(KeyboardInterrupt, "", "")))
        assert "interrupted" in check(named(right, "position_in")).message
    assert check(named(right, "position_in")).status == "correct"


def test_a_check_inside_the_function_that_it_checks(samples):
    def position_in(strides, index, offset=0):
        return check(position_in).message

    assert "this check stands inside" in check(position_in).message


def test_an_alarm_of_others_rings_later(samples):
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert check(named(right, "position_in")).status == "correct"
        time.sleep(0.8)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rang == [1]


def test_a_storage_that_was_shrunk_is_not_read(samples):
    def windows_of(x, size):
        x.untyped_storage().resize_(0)
        return x

    assert check(windows_of).status in ("wrong", "error")


def test_shared_memory_is_a_view_whatever_made_it(samples):
    def windows_of(x, size):
        if x.dtype == torch.bfloat16:
            return x.unfold(0, size, 1)
        return torch.from_numpy(np.lib.stride_tricks.sliding_window_view(x.numpy(), size, writeable=True))

    assert check(windows_of).status == "correct"


def test_a_real_function_that_wraps_the_stub_is_judged(samples):
    def position_in(strides, index, offset=0): ...

    answer = functools.wraps(position_in)(lambda strides, index, offset=0: right(strides, index, offset))
    assert check(answer).status == "correct"


def test_odd_things_get_a_sentence(samples):
    loop = named(lambda *_: 1 / 0, "position_in")
    loop.__wrapped__ = loop
    huge = named(lambda *_: 10**9_000, "position_in")
    half = named(lambda *_: print("\ud800"), "position_in")
    many = named(lambda *_: [0] * 5_000_000, "position_in")
    for answer in (loop, huge, half, many):
        result = check(answer)
        assert "checker itself" not in result.message
        assert repr(result).encode()
        assert result._repr_html_().encode()
    assert "about 9,000 digits" in check(huge).message
    assert "list of 5,000,000 parts" in check(many).message
    assert check().status == "error"


def test_two_numbers_that_differ_are_seen_to_differ():
    want = torch.tensor([0.1, 0.2], dtype=torch.float64)
    for off, digits in ((1e-5, 6), (1e-6, 9), (1e-12, 17)):
        got, rules = freeze(want + off * want), Rules(tolerance=(0.0, 0.0))
        came, wanted = difference(Observation(got), Observation(freeze(want)), rules).text.split(", expected ")
        assert came.removeprefix("gave ") != wanted and len(wanted) < 4 * digits
