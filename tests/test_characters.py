"""The text that makes itself: what its grammar says of itself holds when one counts."""
import math
from collections import Counter

import pytest
import torch
from torch import nn

from course_lib.characters import (
    ALPHABET,
    WORDS,
    best_loss,
    decode,
    encode,
    make_text,
    share_of_sentences,
    share_of_words,
    write,
)


def test_a_text_repeats_and_holds_only_what_the_grammar_makes():
    text = make_text(3000, 0)
    assert text == make_text(3000, 0) != make_text(3000, 1) and make_text(2, 0) == text[: len(make_text(2, 0))]
    assert set(text) <= set(ALPHABET) and text.count(". ") == 3000
    assert set(text.replace(".", "").split()) == WORDS
    assert share_of_words(text) == share_of_sentences(text) == 1
    assert decode(encode(text[:500])) == text[:500] and encode(ALPHABET).tolist() == [*range(len(ALPHABET))]


def test_no_sentence_is_made_in_two_ways_and_none_foretells_the_next():
    """So the entropy is what the choices hold, and the best loss is it by the mean length."""
    text = make_text(60_000, 1)
    sentences = text.split(". ")[:-1]
    assert best_loss() == pytest.approx(best_loss_by_hand(len(text) / len(sentences)), rel=2e-3)
    starts = Counter(sentence.split()[0] for sentence in sentences)
    assert all(abs(count / len(sentences) - 1 / len(starts)) < 0.01 for count in starts.values())
    assert len(set(sentences)) > 0.95 * len(sentences), "with millions of sentences, hardly one comes twice"


def best_loss_by_hand(length):
    sentences = (4 * 8 * 8) ** 2 * 8 * 6  # all alike likely
    return math.log(sentences) / length


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [("x. the tensor follows my batch. no token warms the weight twice. y", 1, 1),
     ("x. the tensor follows my batch. no token warms the weight slow. y", 10 / 11, 1 / 2),
     ("x. the tensor my batch. token warms the weight. the quiet tired tensor finds my batch. y", 1, 0),
     ("", 0, 0), ("qwrt", 0, 0)],
)  # fmt: skip
def test_right_and_wrong_are_told_apart(text, words, sentences):
    assert share_of_words(text) == pytest.approx(words) and share_of_sentences(text) == pytest.approx(sentences)


class Parrot(nn.Module):
    """Foretells that the first character of its window comes again."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(100.0))

    def forward(self, tokens):
        return self.scale * nn.functional.one_hot(tokens[:, 0], len(ALPHABET))


def test_writing_shows_the_model_what_stands_before():
    assert write(Parrot(), "no way. ", 12) == "no way. no way. no w"
    drawn = [write(Parrot(), "ab", 40, temperature=60.0, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0]) == 42 and len(set(drawn[0])) > 5


WRONG = {
    "make_text(): sentences is 0; at least 1 is asked for.": lambda: make_text(0, 0),
    "encode(): text holds 'Q'; lower-case letters, spaces and full stops are asked for.": lambda: encode("a Q"),
    "write(): temperature is 0; a finite number above 0 is asked for.": lambda: write(Parrot(), "a", 1, temperature=0),
    "write(): start is empty; at least one character is asked for.": lambda: write(Parrot(), "", 1),
}


class Says(nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, tokens):
        return self.logits


@pytest.mark.parametrize("logits", [torch.ones(1, 5, 28), torch.ones(28), "text"])
def test_a_model_of_another_shape_gets_one_sentence(logits):
    said = r"^write\(\): model\(tokens\) is .*; one of shape \(1, 28\), the logits of the next character, is asked"
    with pytest.raises(ValueError, match=said):
        write(Says(logits), "a", 1)


def test_what_is_no_number_is_not_written_with():
    for logits, temperature in ((torch.full((1, 28), math.nan), 1.0), (torch.arange(28.0)[None], 1e-300)):
        with pytest.raises(ValueError, match="hold inf or NaN; finite ones are asked for"):
            write(Says(logits), "a", 1, temperature=temperature)
    with pytest.raises(ValueError, match="characters is -1; at least 0 is asked for"):
        write(Says(torch.ones(1, 28)), "a", -1)
    for token in (-1, 28):
        with pytest.raises(ValueError, match=f"tokens holds {token}; 0 to 27 is asked for"):
            decode(torch.tensor([0, token]))


def test_another_default_device_changes_nothing():
    with torch.device("meta"):
        assert len(write(Says(torch.ones(1, 28, device="cpu")), "ab", 3)) == 5


@pytest.mark.parametrize("sentence", WRONG)
def test_what_makes_no_sense_gets_one_sentence(sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        WRONG[sentence]()
    assert str(caught.value) == sentence
