"""Pages: cells, formulas, figures and links as HTML; what would be lost or fetched is refused, with its cell."""
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_samples import ALT, PNG
from publish_samples import BLOCK, INLINE, lecture, parsed, save

from course_lib.publishing.bundle import Lesson
from course_lib.publishing.formulas import FormulaError, mathml
from course_lib.publishing.html import main, page
from course_lib.publishing.notebooks import NotebookError, find_notebooks

# ---- formulas


@pytest.mark.parametrize(
    "tex",
    [
        INLINE, r"2 \cdot m \cdot n \cdot p", r"\text{FLOP/s}", r"\left\lceil \frac{a}{b} \right\rceil", r"x < y",
        r"\sum_{i=1}^{n} x_i^2", r"\sqrt[3]{x}", r"\hat{m}_t \approx 10^{-3}\,\text{s}", r"\mathbb{R}^{B \times D}",
        r"\begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}", r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
        r"\operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d}}\right)", r"\underbrace{2BD^2}_{\text{no } dX}",
        r"\max_i |x_i|", r"5\,\%", r"\{a, b\}", r"\mathbf{W} \mathrm{d}x", BLOCK,
    ],
)  # fmt: skip
def test_a_formula_becomes_mathml_that_says_its_tex(tex: str) -> None:
    math = BeautifulSoup(mathml(tex), "html.parser").math
    assert math["alttext"] == tex
    assert math.text.strip() and not set(math.text) & set("\\&$")


def test_a_block_is_displayed_and_its_parts_are_where_they_belong() -> None:
    assert 'display="block"' in mathml("x", block=True) and 'display="inline"' in mathml("x")
    fraction = BeautifulSoup(mathml(r"\frac{a}{b_i}"), "html.parser").mfrac
    assert [part.text for part in fraction.find_all(recursive=False)] == ["a", "bi"]
    table = BeautifulSoup(mathml(BLOCK), "html.parser").mtable
    assert len(table.find_all("mtr")) == 2


@pytest.mark.parametrize(
    ("tex", "reason"),
    [
        (r"\nonsense{x}", r"\nonsense is unknown"), (r"\text{see \nonsense}", r"see \nonsense is unknown"),
        (r"\frac{1}{", "its braces do not match"), ("a}", "its braces do not match"), (" ", "it is empty"),
        (r"\frac{1}", "a part is missing (mfrac)"), (r"\left( x", "extra left or missing right"),
        ("x^2^3", "double superscripts"), ("x_", "missing super script or subscript"),
        ("a & b", "an & stands outside of a table"), (r"a \\ b", "a line break stands outside of a table"),
        (r"\begin{tikz} x \end{tikz}", "the environment 'tikz' is unknown"),
        (r"\begin{aligned} x", "its environments do not match"), (r"\end{aligned}", "its environments do not match"),
    ],
)  # fmt: skip
def test_a_formula_that_would_lose_a_part_is_refused(tex: str, reason: str) -> None:
    with pytest.raises(FormulaError) as caught:
        mathml(tex)
    assert str(caught.value) == reason


# ---- cells


def rendered(*cells, path: Path = Path("05_x.ipynb")) -> BeautifulSoup:
    made = page(Lesson(path, new_notebook(cells=list(cells))), frozenset({"03_strides"}))
    return BeautifulSoup("".join(made.cells), "html.parser")


def code(data: dict, source: str = "f()", **metadata: object):
    return new_code_cell(source, outputs=[new_output("display_data", data, metadata=metadata)])


def test_formulas_in_prose_are_rendered_and_dollars_in_code_are_not() -> None:
    blocks = f"$$\n{BLOCK}\n$$\n\n\\begin{{align}}a&=b\\end{{align}}"
    shown = rendered(new_markdown_cell(f"A ${INLINE}$ and `$x$`, 5\\$.\n\n{blocks}"))
    assert [math.get("display") for math in shown.select("math")] == ["inline", "block", "block"]
    assert shown.code.text == "$x$" and "5$." in shown.text
    assert not shown.select(".formula .formula, pre")


def test_code_is_highlighted_magics_as_well() -> None:
    shown = rendered(new_code_cell("%load_ext jaxtyping\ndef f(x): return x < 1  # <b>"))
    assert [word.text for word in shown.select("pre.code .k")][1:] == ["def", "return"]
    assert shown.pre.text == "%load_ext jaxtyping\ndef f(x): return x < 1  # <b>"


def test_a_figure_keeps_its_text_and_its_size_and_its_code_is_folded() -> None:
    shown = rendered(code({"image/png": PNG, "text/plain": ALT}, "show(f(), alt=ALT)", **{"image/png": {"width": 900}}))
    assert (shown.img["alt"], shown.img["width"], shown.img["height"]) == (ALT, "900", "900")
    assert shown.details.pre.text == "show(f(), alt=ALT)"
    assert not rendered(code({"image/png": PNG, "text/plain": ALT}, "x = 1\nshow(f(), alt=ALT)")).details


def test_text_and_errors_stay_text() -> None:
    said = new_output("stream", text="1 < 2 \x1b[31mred\x1b[0m\n")
    failed = new_output("error", ename="E", evalue="no", traceback=["E: <no>"])
    shown = rendered(new_code_cell("f()", outputs=[said, failed]))
    assert [pre.text for pre in shown.select(".outputs pre")] == ["1 < 2 red", "E: <no>"]
    assert shown.select_one("pre.error")


def test_headings_can_be_linked_to_and_make_the_contents() -> None:
    cells = [new_markdown_cell("# 05 · X"), new_markdown_cell("## A `b` & c\n\n### Sub\n\n### Sub\n\n## A b c")]
    made = page(Lesson(Path("05_x.ipynb"), new_notebook(cells=cells)))
    anchors = [(section.anchor, [inner.anchor for inner in within]) for section, within in made.contents]
    assert anchors == [("a-b-c", ["sub", "sub-2"]), ("a-b-c-2", [])]
    assert all(BeautifulSoup("".join(made.cells), "html.parser").find(id=anchor) for anchor, _ in anchors)


def test_pictures_of_the_course_are_taken_along(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    shown = rendered(new_markdown_cell("![A dot.](p.png)"), path=tmp_path / "05_x.ipynb")
    assert shown.img["src"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (new_markdown_cell("Sum $\\nonsense$."), r"the formula \nonsense cannot be converted: \nonsense is unknown."),
        (new_markdown_cell("$$\nx_{\n$$"), "the formula x_{ cannot be converted: its braces do not match."),
        (new_markdown_cell("![A dot.](https://example.org/p.png)"), "is not there to be taken along."),
        (new_markdown_cell("![A dot.](missing.png)"), "the image missing.png is not there to be taken along."),
        (new_markdown_cell("![A dot.](attachment:p.png)"), "missing attachment: p.png."),
        (new_markdown_cell("![](p.png)"), "the image p.png has no alternative text."),
        (new_markdown_cell("<img alt='x' src='//example.org/p.png'>"), "would be fetched from elsewhere"),
        (code({"text/html": "<script src=\"https://example.org/x.js\"></script>"}), "would be fetched from elsewhere"),
        (code({"text/html": "<link href=http://example.org/x.css>"}), "would be fetched from elsewhere"),
        (code({"image/png": PNG}), "a figure has no alternative text."),
        (code({"image/png": PNG, "text/plain": "<Figure size 640x480>"}), "a figure has no alternative text."),
        (code({"image/png": "AAAA", "text/plain": ALT}), "a figure is no PNG."),
        (code({"application/x-video": "x"}), "neither as a picture nor as text, only as application/x-video."),
    ],
)  # fmt: skip
def test_a_cell_that_cannot_be_shown_is_named(cell, said: str) -> None:
    with pytest.raises(NotebookError) as caught:
        rendered(new_markdown_cell("# 05 · X"), cell)
    assert str(caught.value).startswith("05_x.ipynb, cell 2 (")
    assert str(caught.value).endswith(said) or said in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- the site


def test_the_course_becomes_pages_that_lead_from_one_to_the_next(tmp_path: Path) -> None:
    assert main(["--into", str(tmp_path)]) == 0
    names = [f"{path.stem}.html" for path in find_notebooks([])]
    pages = {path.name: parsed(path) for path in (tmp_path / "html").glob("*.html")}
    anchors = {name: {element["id"] for element in html.select("[id]")} for name, html in pages.items()}
    assert sorted(pages) == sorted([*names, "index.html"])
    assert [row.a["href"] for row in pages["index.html"].select("table.course tbody tr")] == names
    for before, name, after in zip([None, *names], names, [*names[1:], None], strict=False):
        ways = {link["rel"][0]: link["href"] for link in pages[name].select("nav.ways a")}
        assert ways == {rel: other for rel, other in (("prev", before), ("next", after)) if other}
        assert len(pages[name].select("h1")) == 1
    for name, html in pages.items():
        for link in html.select("a[href]:not([href^=http])"):
            target, _, anchor = link["href"].partition("#")
            assert not anchor or anchor in anchors[target or name], link
            assert target in {*pages, ""}, link
        assert not html.select("[src^=http], link[href^=http]")


def test_trouble_with_one_page_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    assert main([str(save(tmp_path)), "--into", str(tmp_path)]) == 0
    notebook = lecture()
    notebook.cells[2].source = "$x_{$"
    with pytest.raises(NotebookError, match=re.escape("07_formulas.ipynb, cell 3 ('$x_{$'): the formula x_{ cannot")):
        main([str(save(tmp_path, notebook)), "--into", str(tmp_path)])
    assert (tmp_path / "html" / "07_formulas.html").is_file()
