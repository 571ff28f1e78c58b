"""What `check` answers, as text and as HTML."""

import html
from dataclasses import dataclass

_MARKS = {"correct": "✓", "not started": "○", "wrong": "✗", "error": "✗"}
_COLOURS = {"correct": "#009E73", "not started": "#767676", "wrong": "#E69F00", "error": "#D55E00"}


@dataclass(frozen=True)
class Result:
    """`status` is "not started", "correct", "wrong" or "error"; `diagnosis` names the misconception, or is None."""

    name: str
    status: str
    message: str
    diagnosis: str | None = None

    def __repr__(self) -> str:
        first, *rest = _printable(self.message).splitlines()
        return "\n".join([f"{_MARKS[self.status]} {self.name} — {first}", *(f"  {line}" for line in rest)])

    def _repr_html_(self) -> str:
        first, *rest = _printable(self.message).splitlines()
        head = f"<b>{_MARKS[self.status]} {html.escape(self.name)}</b> — {html.escape(first)}"
        body = "".join(f"<br>{html.escape(line)}" for line in rest)
        return panel(head + body, _COLOURS[self.status])


@dataclass(frozen=True)
class Note:
    """A text from the tutor: a hint or a solution. `code` is shown as code, in front of the text."""

    text: str
    code: str = ""

    def __repr__(self) -> str:
        return _printable(f"{self.code}\n\n{self.text}" if self.code else self.text)

    def _repr_html_(self) -> str:
        code = (
            f'<pre style="margin:0 0 .6em;white-space:pre-wrap;word-break:normal">{html.escape(self.code)}</pre>'
            if self.code
            else ""
        )
        text = f'<span style="white-space:pre-wrap">{html.escape(self.text)}</span>'
        return panel(code + text, "#56B4E9")


def _printable(text: str) -> str:
    """The text with halves of surrogate pairs written out: they cannot be sent to a browser."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def panel(inner: str, colour: str) -> str:
    """A box with a coloured edge. Inline styles, since a notebook that is not trusted yet keeps no others."""
    return f'<div role="status" style="border-left:4px solid {colour};padding:.3em .8em">{inner}</div>'
