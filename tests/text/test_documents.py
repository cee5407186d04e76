"""One document, written as text, Markdown, HTML and LaTeX."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from branchwise.text import as_html as html
from branchwise.text.as_html import as_html, policy
from branchwise.text.blocks import (
    TIMES,
    Fold,
    Formula,
    Formulas,
    Heading,
    Items,
    Name,
    Operation,
    Paragraph,
    Table,
    fraction,
    log2,
)
from branchwise.text.document import as_latex, as_markdown, as_text, in_markdown

HALF = fraction("-1", "2")
TERMS = [
    ("-", HALF, " ", log2(HALF)),
    (" + ", Operation("squared", (HALF,)), TIMES, "3"),
    (" + ", Operation("distances", ("4",)), Name("<n>")),
]


def document(text="x"):
    return [
        Heading(text, 1),
        Paragraph(text),
        Items([text, text]),
        Items([text], numbered=True),
        Table([text, "n"], [[text, "10"], [text, "2"]]),
        Formulas([Formula("H", text, TERMS, "-0.5")]),
        Fold(text, [Paragraph("inside")]),
    ]


FORMULA = "H(x) = --1/2 log2 -1/2 + (-1/2)^2 * 3 + sum of (y - 4)^2<n> = -0.5"


def test_text():
    assert as_text(document()).split("\n") == [
        *["x", "=", "", "x", "", "- x", "- x", "", "1. x", "", "x   n", "x  10"],
        *["x   2", "", FORMULA, "", "inside"],
    ]


def test_compact_text():
    written = as_text([Paragraph("a"), *document()[:5]], compact=True)
    assert written.split("\n") == [
        *["a", "", "x", "x", "  - x", "  - x", "  1. x", "  x   n", "  x  10"],
        "  x   2",
    ]


def test_markdown():
    assert as_markdown(document()).split("\n") == [
        *["# x", "", "x", "", "- x", "- x", "", "1. x", "", "| x | n |", "|---|---:|"],
        *["| x | 10 |", "| x | 2 |", "", "```text", FORMULA, "```", "", "inside"],
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"\ ` * _ { } [ ] < > # | ~ & $ @ ^", None),
        ("a: b, c = -1.5 (d) + e!", "a: b, c = -1.5 (d) + e!"),
        (":smile: http://a www.b.c", r"\:smile: http\://a www\.b.c"),
        ("- a", r"\- a"),
        ("+ a", r"\+ a"),
        ("= a", r"\= a"),
        (": a", r"\: a"),
        ("12. a", r"12\. a"),
        ("1) a", r"1\) a"),
        ("a  b", "a &nbsp;b"),
    ],
)
def test_markdown_shows_texts_as_they_are(text, written):
    wanted = re.sub(r"(\S)", r"\\\1", text) if written is None else written
    assert in_markdown(text) == wanted


def test_formulas_cannot_end_their_fence():
    written = as_markdown([Formulas([Formula("H", "````", (), "1")])])
    assert written == "`````text\nH(````) = 1\n`````"


class Texts(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.texts += [value for _, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


HOSTILE = '</script><b onload="x()">&amp;\'{{ 7 * 7 }}{% x %}'


def test_html_escapes_every_text():
    found = Texts(as_html(document(HOSTILE), heading=2))
    assert found.tags == Texts(as_html(document(), heading=2)).tags
    assert "b" not in found.tags
    # Heading, paragraph, items, table, summary; the formula has more.
    assert found.texts.count(HOSTILE) == 1 + 1 + 3 + 3 + 1
    assert any(HOSTILE in text and text != HOSTILE for text in found.texts)


def test_html_hides_nothing():
    page = as_html([Paragraph("a\u202eb\x00c"), Paragraph("d\te\nf")])
    assert page == "<p>a\\u202eb\\x00c</p>\n<p>d\\te\nf</p>"


def test_html_of_blocks():
    page = as_html(document(), heading=3)
    assert page.startswith("<h3>x</h3>\n<p>x</p>\n<ul>\n<li>x</li>\n<li>x</li>\n</ul>")
    assert "<ol>\n<li>x</li>\n</ol>" in page
    assert '<th scope="row" class="words">x</th><td>10</td>' in page
    assert "(−1/2)<sup>2</sup> · 3 + Σ (y − 4)<sup>2</sup>&lt;n&gt;" in page  # noqa: RUF001
    assert page.endswith("<details>\n<summary>x</summary>\n<p>inside</p>\n</details>")
    assert "<details open>" in as_html(document(), reveal=True)
    assert as_html([Heading("x")]) == "<p><strong>x</strong></p>"
    assert as_html([Heading("x", 5)], heading=6) == "<h6>x</h6>"


def test_latex():
    part = as_latex(document("a_b"), document=False)
    assert r"\section*{a\_b}" in part
    assert "\\begin{enumerate}\n\\item a\\_b\n\\end{enumerate}" in part
    assert "\\begin{tabular}{lr}\na\\_b & n \\\\ \\hline\na\\_b & 10 \\\\" in part
    assert r"-\tfrac{-1}{2} \log_2 \tfrac{-1}{2} + \bigl(\tfrac{-1}{2}\bigr)^2" in part
    assert r"\text{\textless{}n\textgreater{}}" in part
    assert "inside\\par\n" in part
    assert as_latex([]).endswith("\\end{document}\n")


def test_json_in_a_page_can_end_no_script():
    nasty = "</script><!--\u2028\u2029'&"
    page = html.page("render/assets/viewer.html", **VALUES | {"data": {"a": nasty}})
    data = re.search(r'id="tree-data">(.*?)</script>', page)[1]
    assert not re.search("[<>&'\u2028\u2029]", data)
    assert json.loads(data) == {"a": nasty}


VALUES = {"policy": "", "title": "", "style": "", "text": "", "script": "", "data": {}}


def test_a_template_needs_all_its_values():
    with pytest.raises(Exception, match="'title' is undefined"):
        html.page("steps/templates/page.html", style="", body="")


def test_policy():
    assert policy(["a"], ["b", "c"]) == (
        "default-src 'none'; script-src "
        "'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0=' "
        "'sha256-Ln0sA6lQeuJl7PW1NWiFpTOTogKdJBOUmXJloaJa78Y='; style-src "
        "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_jinja2_is_imported_when_a_page_is_written():
    code = (
        "import sys, branchwise\n"
        "model = branchwise.fit_tree({'a': ['x', 'y']}, ['n', 'p'])\n"
        "print(model.explain({'a': ['x']}).to_text() and 'jinja2' in sys.modules)\n"
        "model.to_html()\n"
        "print('jinja2' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
