"""`setup`, `predict`, `show`, and the logbook that remembers guesses."""

import json
import random

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from course_lib import logbook
from course_lib.figures.style import new_figure
from course_lib.lesson import predict, setup, show


def test_setup_makes_all_three_generators_repeat_and_prints_nothing(capsys):
    def draw():
        setup()
        return torch.rand(1).item(), np.random.rand(), random.random()

    assert draw() == draw() and len(set(draw())) == 3
    setup(seed=1)
    assert torch.rand(1).item() != draw()[0]
    assert str(torch.tensor([1e-3, 1000.0])) == "tensor([   0.0010, 1000.0000])"
    assert capsys.readouterr() == ("", "")


def test_predict_asks_then_answers():
    question = "Bytes that x.T allocates"
    assert repr(predict(question, guess=None)) == f"{question}: no guess yet. Replace None, run again, then go on."
    answer = predict(question, measured=0, because="only the strides changed", unit="B")
    assert repr(answer) == f"{question}: 0 B — only the strides changed. (You left the guess open.)"
    assert repr(predict("How many?", guess=None)).startswith("How many? no guess yet.")


@pytest.mark.parametrize(
    ("guess", "measured", "verdict"),
    [
        (48, 48, "Your guess, 48, is right."),
        (47.9, 48, "Your guess, 47.9, is 0.21% too small."),
        (257, 256, "Your guess, 257, is 0.39% too large."),
        ("4,096", 4096, "Your guess, 4,096, is right."),
        ("19303.08984375", 19303.08984375, "is right."),
        ([0.1, 2], [0.1, 2.0], "is right."),
        ([True], [1], "was another."),
        (1, True, "Your guess, 1, was another."),
        ("[", 4, "Your guess, [, was another."),
        (1e200, 1e-200, "was another."),
        (96, 48, "Your guess, 96, is 2 times that."),
        (12, 48, "Your guess, 12, is 1/4 of that."),
        (0, 48, "Your guess, 0, was another."),
        (48, 0, "Your guess, 48, was another."),
        (-1, 48, "Your guess, -1, was another."),
        (True, False, "Your guess, True, was another."),
        ("same", "same", "Your guess, same, is right."),
        ((1, 4), (1, 4), "Your guess, (1, 4), is right."),
        (float("inf"), 65504.0, "Your guess, inf, was another."),
        (1_000_000, 10**30, "is 1/1e+24 of that."),
    ],
)
def test_a_guess_is_compared_with_what_was_measured(guess, measured, verdict):
    assert repr(predict("q", guess=guess)).endswith("is noted. Go on.")
    assert repr(predict("q", measured=measured)).endswith(verdict)


def test_a_rough_measurement_says_how_rough():
    predict("q", guess=13)
    assert repr(predict("q", measured=13.6, within=0.1)).endswith("Your guess, 13, is right.")
    assert repr(predict("q", measured=19303.08984375, digits=13)).startswith("q: 19,303.08984375.")
    assert repr(predict("q", guess="4096 B", unit="B")) == "q: your guess, 4,096 B, is noted. Go on."


def test_a_guess_is_kept_for_a_later_notebook(own_logbook):
    predict("Days to train", guess=30, unit="days")
    assert logbook.read("guesses") == {"Days to train": 30}
    assert "Your guess, 30 days, is" in repr(predict("Days to train", measured=143.9, unit="days"))


def test_tensors_and_numpy_numbers_are_shown_as_numbers():
    assert (
        repr(predict("q", guess=torch.tensor(3), measured=torch.tensor([4, 1])))
        == "q: (4, 1). Your guess, 3, was another."
    )
    assert repr(predict("q", guess=np.float32(0.5))).startswith("q: your guess, 0.5, is noted.")
    assert repr(predict("q", measured=2415919104, unit="B")).startswith("q: 2,415,919,104 B.")


def test_predict_is_displayed_as_html_without_markup_of_the_learner():
    assert "&lt;i&gt;" in predict("<i>q</i>")._repr_html_()


def test_a_question_that_is_none_gets_one_sentence():
    with pytest.raises(TypeError, match=r"predict\(\): question is an int \(3\); a sentence is asked for."):
        predict(3)


def test_show_needs_a_figure_and_words():
    figure, _ = new_figure()
    with pytest.raises(TypeError, match=r"figure is a list .*; a matplotlib Figure is asked for"):
        show([1], alt="a list of one number")
    for alt in ("", "plot", None):
        with pytest.raises((TypeError, ValueError), match=r"alt is .*; a sentence that says what the figure shows"):
            show(figure, alt=alt)


def test_show_sends_a_png_with_its_alternative_text(monkeypatch):
    sent = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", lambda *args, **kwargs: sent.append((args, kwargs)))
    figure, axes = new_figure(width=8, height=3)
    axes.plot([1, 2, 3])
    assert show(figure, alt="A line that rises from 1 to 3.") is None
    ((data,), more) = sent[0]
    assert data["text/plain"] == "A line that rises from 1 to 3." and data["image/png"].startswith(b"\x89PNG")
    assert more["metadata"]["image/png"] == {"alt": "A line that rises from 1 to 3.", "width": 800}


def test_a_figure_is_the_same_file_each_time(monkeypatch):
    sent = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", lambda data, **_: sent.append(data["image/png"]))
    for _ in range(2):
        figure, axes = new_figure()
        axes.plot([1, 2, 3])
        show(figure, alt="A line that rises.")
    assert isinstance(figure, Figure) and sent[0] == sent[1] and b"Matplotlib" not in sent[0]


# ---------------------------------------------------------------- the logbook
@pytest.mark.parametrize("content", ["", "{", "[]", '{"solved": 3}', "\x00\x01"])
def test_a_damaged_logbook_is_set_aside_and_a_new_one_begun(content, own_logbook):
    own_logbook.write_text(content)
    assert logbook.read("solved") == {}
    assert logbook.record("solved", "f", True)
    assert logbook.read("solved") == {"f": True}
    assert [p.read_text() for p in own_logbook.parent.glob("*unreadable*")] == [content]


def test_sections_and_unknown_entries_of_a_newer_version_stay(own_logbook):
    logbook.record("guesses", "q", 1)
    logbook.record("solved", "f", True)
    assert json.loads(own_logbook.read_text()) == {"guesses": {"q": 1}, "solved": {"f": True}}
    assert not list(own_logbook.parent.glob("*.new"))


def test_a_logbook_that_cannot_be_written_is_left_alone(own_logbook, monkeypatch):
    logbook.record("solved", "f", True)
    before = own_logbook.read_text()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    assert not logbook.record("solved", "g", True)
    assert own_logbook.read_text() == before and len(list(own_logbook.parent.iterdir())) == 1


def test_the_default_place_is_the_users_data_directory(monkeypatch):
    monkeypatch.delenv("COURSE_PROGRESS")
    assert logbook.path().name == "progress.json" and "pytorch-foundations" in str(logbook.path())
