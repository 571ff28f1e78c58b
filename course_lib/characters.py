"""A text that makes itself, one character a token: sentences of a small grammar, so that one can tell right from wrong.

A sentence takes one word from each slot, all alike likely; a slot with an empty word can be skipped. So the grammar
knows every sentence that there is, and how well the next character can be foretold at best.
"""
import math
import random
import re

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from course_lib.checked import checked, describe

ALPHABET = " .abcdefghijklmnopqrstuvwxyz"
_DETERMINERS = ("the", "every", "no", "my")
_ADJECTIVES = ("", "quiet", "noisy", "patient", "frozen", "steep", "lucky", "tired")
_NOUNS = ("gradient", "tensor", "batch", "learner", "optimizer", "weight", "valley", "token")
_VERBS = ("follows", "remembers", "forgets", "divides", "warms", "doubles", "finds", "trusts")
_ENDS = ("", "slowly", "at night", "twice", "by accident", "in bfloat")
_NAMING = (_DETERMINERS, _ADJECTIVES, _NOUNS)
_SLOTS = (*_NAMING, _VERBS, *_NAMING, _ENDS)
_SENTENCE = re.compile("".join("(?:" + "|".join(f"{word} " if word else "" for word in slot) + ")" for slot in _SLOTS))
WORDS = frozenset(word for slot in _SLOTS for phrase in slot for word in phrase.split())


@checked
def make_text(sentences: int, seed: int) -> str:
    """So many sentences, each "the quiet tensor follows my batch twice. ": the same ones for the same seed."""
    if sentences < 1:
        raise ValueError(f"make_text(): sentences is {sentences}; at least 1 is asked for.")
    rng = random.Random(seed)
    chosen = ([rng.choice(slot) for slot in _SLOTS] for _ in range(sentences))
    return "".join(" ".join(filter(None, words)) + ". " for words in chosen)


@checked
def encode(text: str) -> Int64[Tensor, "characters"]:
    """The place of each character in `ALPHABET`. Raises ValueError for a character that is not there."""
    places = {character: place for place, character in enumerate(ALPHABET)}
    if strange := next((character for character in text if character not in places), None):
        raise ValueError(f"encode(): text holds {strange!r}; lower-case letters, spaces and full stops are asked for.")
    return torch.tensor([places[character] for character in text], dtype=torch.int64, device="cpu")


@checked
def decode(tokens: Int64[Tensor, "characters"]) -> str:
    """The text that `encode` would turn into these tokens. Raises ValueError for a token that is no place there."""
    places = tokens.tolist()
    if strange := [token for token in places if not 0 <= token < len(ALPHABET)]:
        raise ValueError(f"decode(): tokens holds {strange[0]}; 0 to {len(ALPHABET) - 1} is asked for.")
    return "".join(ALPHABET[token] for token in places)


@checked
def best_loss() -> float:
    """Nats per character below which no model of this text can get on average: what its choices hold.

    A sentence holds Σ ln(words in a slot), since all words are alike likely and can be told apart; that is divided by
    the mean length of a sentence, its spaces and full stop included.
    """
    length = sum(sum(len(word) + 1 for word in slot if word) / len(slot) for slot in _SLOTS) + 1
    return sum(math.log(len(slot)) for slot in _SLOTS) / length


@checked
def share_of_words(text: str) -> float:
    """Which share of the words of `text` the grammar has, 0 to 1; without the first and the last, which may be cut."""
    words = re.split("[ .]+", text)[1:-1]
    return sum(word in WORDS for word in words) / max(len(words), 1)


@checked
def share_of_sentences(text: str) -> float:
    """Which share of the sentences of `text` the grammar can make, 0 to 1; without the first and the last."""
    sentences = text.split(". ")[1:-1]
    return sum(_SENTENCE.fullmatch(f"{one} ") is not None for one in sentences) / max(len(sentences), 1)


@checked
def write(
    model: nn.Module,
    start: str,
    characters: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> str:
    """`start`, and so many characters after it, each drawn by what `model` says to the len(start) characters before it.

    The model gets tokens of shape (1, len(start)) and gives logits of shape (1, len(ALPHABET)); they are divided by
    `temperature`: below 1 likely characters become likelier still. Raises ValueError for an empty `start`, for a
    temperature that is not above 0, for less than 0 characters, and for logits of another shape or with inf or NaN.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"write(): temperature is {temperature}; a finite number above 0 is asked for.")
    if not start:
        raise ValueError("write(): start is empty; at least one character is asked for.")
    if characters < 0:
        raise ValueError(f"write(): characters is {characters}; at least 0 is asked for.")
    tokens, context = encode(start), len(start)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    with torch.no_grad():
        for _ in range(characters):
            logits = _of_next_character(model(tokens[None, -context:].to(device))) / temperature
            if not logits.isfinite().all():
                came = f"the model's logits, divided by a temperature of {temperature}, hold inf or NaN"
                raise ValueError(f"write(): {came}; finite ones are asked for.")
            token = torch.multinomial(logits.softmax(-1), 1, generator=generator)
            tokens = torch.cat([tokens, token])
    return decode(tokens)


def _of_next_character(logits: object) -> Tensor:
    if not isinstance(logits, Tensor) or logits.shape != (1, len(ALPHABET)):
        wanted = f"one of shape (1, {len(ALPHABET)}), the logits of the next character"
        raise ValueError(f"write(): model(tokens) is {describe(logits)}; {wanted}, is asked for.")
    return logits[0].cpu()
