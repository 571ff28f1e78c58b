"""Cells as HTML, for decks and pages alike: formulas as MathML, figures with their texts, nothing from elsewhere."""
import ast
import base64
import binascii
import re
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

from mistune import escape as escape_attribute
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from course_lib.publishing.formulas import FormulaError, mathml
from course_lib.publishing.notebooks import NotebookError, first_line, where

REMOTE = re.compile(r"""<(?!a\b)[^>]*?\s(?:src|srcset|poster|data|href)\s*=\s*["']?\s*(?:[a-z]+:)?//[^\s"'>]*""", re.I)
NOTEBOOK_LINK = re.compile(r"""\s*href=(["'])(?:\./)?(\d\d_\w+)\.ipynb(#[^"']*)?\1""")
UNANSWERED = " (You left the guess open.)"  # of interest to whoever could have made one
TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Heading:
    """A heading of a notebook: its level, the anchor that leads to it, and its text as HTML."""

    level: int
    anchor: str
    html: str


class Renderer:
    """Renders the cells of one notebook, in their order; `headings` are those met so far.

    `stems` are the notebooks that get built along with it: links lead to those as .html, others lose their target.
    A guess can be made, not written down: a question is shown without the call that asks it. What draws a figure is
    folded away, and left out where the page is `projected`.
    """

    def __init__(
        self, notebook: NotebookNode, path: Path, stems: frozenset[str] = frozenset(), projected: bool = False
    ) -> None:
        self.notebook, self.name, self.folder = notebook, path.name, path.parent
        self.stems, self.projected = stems, projected
        self.headings: list[Heading] = []

    def cell(self, index: int) -> str:
        """The HTML of a cell. Raises NotebookError, which names notebook, cell and reason."""
        cell = self.notebook.cells[index]
        try:
            if cell.cell_type == "markdown":
                return self._checked(f'<div class="prose">{self._markdown(cell)}</div>')
            if cell.cell_type != "code":
                return ""
            return self._checked(self._code(cell))
        except _Unfit as reason:
            raise NotebookError(f"{where(self.notebook, self.name, index)}: {reason}.") from None

    def text(self, markdown: str, index: int) -> str:
        """Other Markdown that belongs to a cell, such as its speaker notes."""
        try:
            return self._checked(MarkdownWithMath(_Prose([], self.folder, {})).render(markdown))
        except _Unfit as reason:
            raise NotebookError(f"{where(self.notebook, self.name, index)}, in its notes: {reason}.") from None

    def _markdown(self, cell: NotebookNode) -> str:
        return MarkdownWithMath(_Prose(self.headings, self.folder, cell.get("attachments", {}))).render(cell.source)

    def _code(self, cell: NotebookNode) -> str:
        source, outputs, asked = cell.source, cell.outputs, ""
        if (found := _question(source))[0]:
            asked, source = f'<p class="question"><b>Your guess?</b> {escape(found[0])}</p>', found[1]
            outputs = [output for output in outputs if output.output_type != "execute_result"]
        code = _highlighted(source) if source.strip() else ""
        if _only_shows(source) and outputs:
            code = "" if self.projected else f"<details><summary>How it is drawn</summary>{code}</details>"
        shown = "".join(map(_output, outputs))
        return code + (f'<div class="outputs">{shown}</div>' if shown else "") + asked

    def _checked(self, html: str) -> str:
        if found := REMOTE.search(html):
            raise _Unfit(f"{found[0].split()[-1]!r} would be fetched from elsewhere, and there may be no network")
        return NOTEBOOK_LINK.sub(self._link, html)

    def _link(self, found: re.Match[str]) -> str:
        return f' href="{found[2]}.html{found[3] or ""}"' if found[2] in self.stems else ""


class _Unfit(Exception):
    """A cell cannot be published; the message is the reason."""


class _Prose(IPythonRenderer):
    """Markdown as JupyterLab shows it, but without scripts and with what screen readers need."""

    def __init__(self, headings: list[Heading], folder: Path, attachments: dict) -> None:
        super().__init__(escape=False, embed_images=True, path=str(folder), attachments=attachments)
        self.met = headings

    def heading(self, text: str, level: int, **attrs: object) -> str:
        base = re.sub(r"[^\w]+", "-", unescape(TAG.sub("", text)).lower()).strip("-") or "section"
        taken = {heading.anchor for heading in self.met}
        anchor = next(name for number in range(1, 1000) if (name := f"{base}-{number}".removesuffix("-1")) not in taken)
        self.met.append(Heading(level, anchor, text))
        return f'<h{level} id="{escape_attribute(anchor)}">{text}</h{level}>\n'

    def inline_math(self, body: str) -> str:
        return _formula(body, block=False)

    def block_math(self, body: str) -> str:
        return f'<span class="formula">{_formula(body, block=True)}</span>'  # mistune puts it into a paragraph

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if not text.strip():
            raise _Unfit(f"the image {first_line(url, 60)} has no alternative text")
        try:
            html = super().image(text, url, title)
        except InvalidNotebook as error:
            raise _Unfit(str(error)) from None
        if 'src="data:' not in html:
            raise _Unfit(f"the image {first_line(url, 60)} is not there to be taken along")
        return html

    def _src_to_base64(self, src: str) -> str | None:
        return src if src.startswith("data:") else super()._src_to_base64(src)


def _formula(tex: str, block: bool) -> str:
    try:
        return mathml(tex, block)
    except FormulaError as reason:
        raise _Unfit(f"the formula {first_line(tex, 60)} cannot be converted: {reason}") from None


def _highlighted(source: str) -> str:
    code = highlight(source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True)).rstrip("\n")
    return f'<pre class="code"><code>{code}</code></pre>'


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a magic, or an error that is taught
        return []


def _question(source: str) -> tuple[str, str]:
    """What a cell asks that ends with a guess left open, and its source before that; "" for every other cell."""
    match _statements(source):
        case [*_, ast.Expr(ast.Call(ast.Name("predict"), [ast.Constant(str(text))], [guess])) as last]:
            if guess.arg == "guess" and ast.unparse(guess.value) == "None":
                return text, "\n".join(source.splitlines()[: last.lineno - 1])
    return "", source


def _only_shows(source: str) -> bool:
    """Whether a cell does nothing but show a figure."""
    match _statements(source):
        case [*before, ast.Expr(ast.Call(ast.Name("show")))]:
            return all(isinstance(one, ast.Import | ast.ImportFrom) for one in before)
    return False


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return _preformatted(output.text)
    if output.output_type == "error":
        return _preformatted("\n".join(output.traceback) or f"{output.ename}: {output.evalue}", "error")
    data = output.data
    if "text/html" in data:
        return f'<div class="html">{data["text/html"].replace(UNANSWERED, "")}</div>'
    if "image/png" in data:
        return _picture(data["image/png"], output.metadata.get("image/png", {}), data.get("text/plain", ""))
    if "text/plain" in data:
        return _preformatted(data["text/plain"])
    raise _Unfit(f"an output can be shown neither as a picture nor as text, only as {', '.join(data) or 'nothing'}")


def _preformatted(text: str, kind: str = "text") -> str:
    return f'<pre class="{kind}">{ansi2html(text.rstrip())}</pre>'


def _picture(png: str, metadata: dict, text: str) -> str:
    alt = metadata.get("alt") or ("" if text.startswith("<") else text)
    if not alt.strip():
        raise _Unfit("a figure has no alternative text")
    try:
        raw = base64.b64decode(png)
    except binascii.Error:
        raw = b""
    if raw[:8] != b"\x89PNG\r\n\x1a\n" or len(raw) < 24:
        raise _Unfit("a figure is no PNG")
    wide, high = (int.from_bytes(raw[at : at + 4], "big") for at in (16, 20))
    width = metadata.get("width") or wide
    # Its size is known before it is drawn, so nothing moves; --width lets a slide scale it together with its text.
    size = f'width="{width}" height="{round(high * width / wide)}" style="--width:{width}"'
    return f'<img src="data:image/png;base64,{"".join(png.split())}" alt="{escape(alt)}" {size}>'
