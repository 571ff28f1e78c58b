"""`checked`: a violation of a type hint is one sentence that names what came and what is allowed."""

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.checked import checked, describe


@checked
def multiply(
    x: Float[Tensor, "b d"], y: Float[Tensor, "d k"], scale: float = 1.0, times: int = 1
) -> Float[Tensor, "b k"]:
    """Multiply."""
    return times * scale * (x @ y)


@checked
def broken(n: int) -> str:
    return n


@checked
def run(call: Callable[[], object]) -> object:
    return call()


class Thing:
    @checked
    def __init__(self, size: int):
        self.size = size

    @checked
    def at(self, index: Int[Tensor, " n"]) -> int:
        return self.size


X, Y = torch.ones(2, 3), torch.ones(3, 4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: multiply([1], Y), 'multiply(): x is a list ([1]); Float[Tensor, "b d"] is asked for.'),
        (
            lambda: multiply(X, torch.ones(5, 4)),
            "multiply(): y is a tensor of dtype float32 and shape (5, 4); "
            'Float[Tensor, "d k"] is asked for, where b=2 and d=3.',
        ),
        (
            lambda: multiply(X.long(), Y),
            'multiply(): x is a tensor of dtype int64 and shape (2, 3); Float[Tensor, "b d"] is asked for.',
        ),
        (lambda: multiply(X, Y, "x"), "multiply(): scale is a str ('x'); a float is asked for."),
        (lambda: multiply(X, Y, 1.0, 2.5), "multiply(): times is a float (2.5); an int is asked for."),
        (lambda: multiply(X, Y, 1.0, None), "multiply(): times is None; an int is asked for."),
        (
            lambda: multiply(X),
            "multiply(): missing a required argument: 'y'; it is called as multiply(x, y, scale=1.0, times=1).",
        ),
        (
            lambda: multiply(X, Y, factor=1),
            "multiply(): got an unexpected keyword argument 'factor'; "
            "it is called as multiply(x, y, scale=1.0, times=1).",
        ),
        (lambda: broken(3), "broken() returned 3; a str was promised."),
        (lambda: run(3), "run(): call is an int (3); a function is asked for."),
        (lambda: Thing(), "Thing(): missing a required argument: 'size'; it is called as Thing(size)."),
        (lambda: Thing("x"), "Thing(): size is a str ('x'); an int is asked for."),
        (lambda: Thing(2).at([1]), 'Thing.at(): index is a list ([1]); Int[Tensor, "n"] is asked for.'),
    ],
)
def test_a_violation_is_one_sentence(call, sentence):
    with pytest.raises(TypeError) as caught:
        call()
    assert type(caught.value) is TypeError and str(caught.value) == sentence
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_an_int_stands_for_a_float_and_a_numpy_number_for_a_python_one():
    assert torch.equal(multiply(X, Y, 2, np.int64(3)), 6 * (X @ Y))
    assert torch.equal(multiply(X, Y, scale=np.float32(2)), 2 * (X @ Y))


@checked
def fit(
    sizes: tuple[float, float],
    path: str | Path = "",
    generator: torch.Generator | None = None,
    fails: object = None,
    then: Callable = max,
) -> tuple:
    if fails:
        raise OSError(fails)
    return sizes


def test_numbers_in_a_tuple_arrive_as_pythons_and_names_come_without_their_modules():
    assert [type(size) for size in fit((np.float32(2), np.int64(3)))] == [float, int]
    for wrong, said in (
        ({"path": 3}, "fit(): path is an int (3); str | Path is asked for."),
        ({"generator": 3}, "fit(): generator is an int (3); Generator | None is asked for."),
        ({"of": 3}, "it is called as fit(sizes, path='', generator=None, fails=None, then=max)."),
    ):
        with pytest.raises(TypeError) as caught:
            fit((1, 2), **wrong)
        assert str(caught.value).endswith(said)


def test_the_functions_own_face_stays():
    assert multiply.__doc__ == "Multiply." and [*inspect.signature(multiply).parameters] == ["x", "y", "scale", "times"]


def test_an_error_in_the_callers_own_code_keeps_its_traceback():
    def mine():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        run(mine)
    assert "mine" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_an_error_of_the_package_shows_none_of_its_frames():
    from course_lib.storage import contiguous_strides

    with pytest.raises(ValueError, match="-1") as caught:
        contiguous_strides((-1,))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames] == ["test_an_error_of_the_package_shows_none_of_its_frames", "call"]


def test_what_the_package_raises_on_purpose_loses_its_frames_and_its_faults_keep_them(monkeypatch):
    def frames(kind, call):
        with pytest.raises(kind) as caught:
            call()
        return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]

    monkeypatch.setattr("course_lib.checked._PACKAGE", __file__)  # as if this file were the package
    assert frames(OSError, lambda: fit((1, 2), fails="full"))[-1] == "call"
    assert frames(ZeroDivisionError, lambda: divide(1))[-1] == "divide"


@checked
def divide(n: int) -> float:
    return n / 0


def test_describe_survives_what_cannot_be_shown():
    class Mute:
        def __repr__(self):
            raise RuntimeError

    assert describe([Mute()]) == "a list" and describe(Mute()) == "a Mute" and describe(int) == "the class int"
    assert describe(np.ones(2)) == "a NumPy array of dtype float64 and shape (2,)"
    assert len(describe("x" * 500)) < 60
