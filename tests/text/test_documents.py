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
    BLANK,
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
    TreeLine,
    TreeLines,
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
        TreeLines(
            [
                TreeLine(0, "", "", text, splits=True),
                TreeLine(1, text, text, "?"),
                TreeLine(1, text, text, text, splits=True),
                TreeLine(2, text, text, text),
            ]
        ),
        Fold(text, [Paragraph("inside")]),
    ]


FORMULA = "H(x) = --1/2 log2 -1/2 + (-1/2)^2 * 3 + sum of (y - 4)^2<n> = -0.5"


def test_text():
    assert as_text(document()).split("\n") == [
        *["x", "=", "", "x", "", "- x", "- x", "", "1. x", "", "x   n", "x  10"],
        *["x   2", "", FORMULA, "", "x: ?", "x:", "|   x: x", "", "inside"],
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
        *["| x | 10 |", "| x | 2 |", "", "```text", FORMULA, "```", "", "```text"],
        *["x: ?", "x:", "|   x: x", "```", "", "inside"],
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
    # Heading, paragraph, items, table, formula, tree, summary.
    assert found.texts.count(HOSTILE) == 1 + 1 + 3 + 3 + 1 + 0 + 1
    assert any(text.endswith(f"|   {HOSTILE}: {HOSTILE}") for text in found.texts)


def test_html_hides_nothing():
    page = as_html([Paragraph("a\u202eb\x00c"), Paragraph("d\te\nf")])
    assert page == "<p>a\\u202eb\\x00c</p>\n<p>d\\te\nf</p>"


def test_html_of_blocks():
    page = as_html(document(), heading=3)
    assert page.startswith("<h3>x</h3>\n<p>x</p>\n<ul>\n<li>x</li>\n<li>x</li>\n</ul>")
    assert "<ol>\n<li>x</li>\n</ol>" in page
    assert '<th scope="row" class="words">x</th><td>10</td>' in page
    assert '<pre class="tree">x: ?\nx:\n|   x: x</pre>' in page
    assert page.endswith("<details>\n<summary>x</summary>\n<p>inside</p>\n</details>")
    assert "<details open>" in as_html(document(), reveal=True)
    assert as_html([Heading("x")]) == "<p><strong>x</strong></p>"
    assert as_html([Heading("x", 5)], heading=6) == "<h6>x</h6>"


def test_formulas_in_mathml():
    """Every term is a piece of its own, so that a line may end before it."""
    name, first, second, third, value = str(
        as_html([Formulas([Formula("H", "<x>", TERMS, "-0.5")])])
    ).split("</math> <math>")
    half = "<mfrac><mrow><mo>−</mo><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>"  # noqa: RUF001
    equals = '<mo form="infix">=</mo>'
    log = '<msub><mi>log</mi><mn>2</mn></msub><mspace width="0.2em"/>'
    assert name.endswith(
        '<mi>H</mi><mo stretchy="false">(</mo><mtext>&lt;x&gt;</mtext>'
        '<mo stretchy="false">)</mo>'
    )
    assert first == f"{equals}<mo>−</mo>{half}{log}{half}"  # noqa: RUF001
    assert second.endswith(
        f"{half}<mo>)</mo></mrow><mn>2</mn></msup><mo>·</mo><mn>3</mn>"
    )
    assert "<mo>∑</mo><msup><mrow><mo>(</mo><mi>y</mi>" in third
    assert third.endswith("<mtext>&lt;n&gt;</mtext>")
    assert value.startswith(f'{equals}<mrow class="value"><mo>−</mo><mn>0.5</mn>')  # noqa: RUF001
    many = Formulas([Formula("H", "x", [(" ... ", Name("(1,000 more)"))], BLANK)])
    assert "<mo>…</mo>" in as_html([many]).replace(
        ' lspace="0.1em" rspace="0.25em"', ""
    )
    assert f"<mtext>{BLANK}</mtext>" in as_html([many])


def test_trees_in_latex():
    page = as_latex([*document("a[b],c")])
    assert "\\usepackage{forest}" in page
    assert "\\usepackage{forest}" not in as_latex([Paragraph("\\begin{forest}")])
    tree = page.split("\\begin{forest}\n")[1].split("\\end{forest}")[0]
    # What is written in braces is no bracket of the tree.
    bare = re.sub(r"\{[\[\],]\}", "", tree)
    assert (
        bare.count("[{")
        == bare.replace("node[", "").count("]") - bare.count("small]")
        == 4
    )
    depth = 0
    for sign in re.sub(r"node\[[^]]*\]", "", bare):
        depth += {"[": 1, "]": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0


def test_a_new_page_and_blanks():
    heading = Heading("x", 1, new_page=True)
    assert as_html([heading], heading=1) == '<h1 class="new-page">x</h1>'
    blank = Formulas([Formula("H", "x", (), BLANK)])
    page = as_latex([heading, blank], document=False)
    assert "\\clearpage\n\\section*{x}" in page
    assert "&= \\rule{5em}{0.4pt}" in page


def test_latex():
    part = as_latex(document("a_b"), document=False)
    assert r"\section*{a\_b}" in part
    assert "\\begin{enumerate}\n\\item a\\_b\n\\end{enumerate}" in part
    assert "\\begin{tabular}{lr}\na\\_b & n \\\\ \\noalign" in part
    assert "\\hline\\noalign{\\smallskip}\na\\_b & 10 \\\\" in part
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


def test_no_line_of_a_page_ends_before_a_sign():
    page = str(as_html([Paragraph("72.3 % of 12 € are 5 %"), Table(["x"], [["8 %"]])]))
    assert "72.3~% of 12~€ are 5~%" in page.replace("&nbsp;", "~")
    assert ">8&nbsp;%<" in page
    # What is copied, such as a tree in lines, keeps its spaces.
    lines = TreeLines((TreeLine(1, "x <= 5 %", "<= 5 %", "yes"),))
    assert "x &lt;= 5 %: yes" in str(as_html([lines]))
