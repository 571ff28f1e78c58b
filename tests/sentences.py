"""What the set-up says to a person."""


def sentence(text: str) -> str:
    """One line for a person: no traceback, no rest of a format, not too long to read."""
    text = text.strip()
    assert "\n" not in text
    assert 30 < len(text) < 400
    assert not set("{}") & set(text)
    return text
