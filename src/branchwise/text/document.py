"""Documents as plain text, Markdown and LaTeX, and the base of results with blocks.

HTML, which needs templates, is in ``as_html``. LaTeX needs amsmath and textcomp, and
forest for trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from branchwise.errors import json_text
from branchwise.text.as_html import as_html
from branchwise.text.blocks import (
    BLANK,
    Block,
    Fold,
    Formula,
    Formulas,
    Heading,
    Items,
    Notation,
    Paragraph,
    Table,
    TreeLine,
    TreeLines,
)
from branchwise.text.signs import typeset_signs

_UNDERLINES = {1: "=", 2: "-"}
_TEXT_NOTATION = Notation(
    {
        "fraction": "{}/{}",
        "squared": "({})^2",
        "log2": "log2 {}",
        "distances": "sum of (y - {})^2",
        "weighted distances": "sum of w (y - {})^2",
        "times": " * ",
    },
    name=str,
    figure=str,
)


def as_text(blocks: Iterable[Block], compact: bool = False) -> str:
    """Write blocks as text.

    Headings are underlined, and an empty line stands between blocks. With ``compact``
    an empty line stands before headings only, and lists and tables are indented.
    """
    lines: list[str] = []
    for block in blocks:
        written = list(_text(block, compact))
        if lines and written and (not compact or isinstance(block, Heading)):
            lines.append("")
        lines += written
    return "\n".join(lines)


def _text(block: Block, compact: bool) -> Iterable[str]:
    indent = "  " if compact else ""
    match block:
        case Heading(text, level):
            line = _UNDERLINES.get(level, "~") * len(text)
            return [text] if compact else [text, line]
        case Paragraph(text):
            return [text]
        case Items():
            return [f"{indent}{mark}{item}" for mark, item in block.marked()]
        case Table(head, rows):
            return [f"{indent}{line}" for line in aligned([head, *rows], block.right)]
        case TreeLines():
            return block.indented()
        case Formulas(formulas):
            return map(_formula, formulas)
        case Fold(_, blocks):
            return [as_text(blocks, compact)] if blocks else []


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Set cells in columns, to the right where ``right`` says so for a column."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(right))]
    return [
        "  ".join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _formula(formula: Formula) -> str:
    terms = _TEXT_NOTATION.terms(formula.terms)
    middle = f" = {terms}" if terms else ""
    return f"{formula.name}({formula.of}){middle} = {formula.value}"


#: What Markdown, HTML within it or a page that shows it could take for markup; colons
#: of addresses and of :emoji:, and the first point of www. among it.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&$@^]|:(?=\S)|(?<=www)\.", flags=re.IGNORECASE)
#: What makes a list, a heading or a definition at the beginning of a line.
_BEGINNING = re.compile(r"^(\d*)([-+=:.)])")


def in_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it as it is."""
    return _BEGINNING.sub(r"\1\\\2", _cell(text))


def _cell(text: str) -> str:
    """Escape what means something within a line, too."""
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", text)
    return escaped.replace("  ", " &nbsp;")  # pages collapse whitespace


def as_markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown."""
    written = ("\n".join(_markdown(block)) for block in blocks)
    return "\n\n".join(filter(None, written))


def _markdown(block: Block) -> Iterable[str]:
    match block:
        case Heading(text, level):
            return [f"{'#' * level} {in_markdown(text)}"]
        case Paragraph(text):
            return [in_markdown(text)]
        case Items():
            return [f"{mark}{in_markdown(item)}" for mark, item in block.marked()]
        case Table(head, rows):
            rule = "".join("---:|" if right else "---|" for right in block.right)
            return [_row(head), f"|{rule}", *map(_row, rows)]
        case TreeLines():
            return _fenced(list(block.indented()))
        case Formulas(formulas):
            return _fenced([_formula(formula) for formula in formulas])
        case Fold(_, blocks):
            return [as_markdown(blocks)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """Set lines in a block of code that no run of ticks among them can end."""
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    yield f"{fence}text"
    yield from lines
    yield fence


#: A term after so many begins a new line.
_TERMS_A_LINE = 4
#: Signs that mean something to LaTeX.
_ESCAPES = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    # As groups of their own they end no command and make no ligature.
    **{sign: f"{{{sign}}}" for sign in "-[]*?!,"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "\u00b1": r"\ensuremath{\pm}",
    "\u2264": r"\ensuremath{\le}",
    "\u2265": r"\ensuremath{\ge}",
}
#: Letters that every LaTeX with T1 fonts has.
_LETTERS = set("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ") | set(
    "ĂăĄąĆćČčĎďĐđĘęĚěĞğİıĹĺĽľŁłŃńŇňŐőŔŕŘřŚśŞşŠšŤťŢţŮůŰűŸŹźŻżŽž"
)
_SECTIONS = {1: "section", 2: "subsection", 3: "subsubsection"}
#: A character that the fonts may not have: pdfTeX gets its number instead.
_CHARACTER = (
    r"\providecommand{\branchwisechar}[1]{\ifdefined\Umathchar\char\"#1\relax"
    r"\else\texttt{U+#1}\fi}"
).replace(r"\"", '"')
_TEXTCOMP = "\\usepackage{textcomp}\n"
_FOREST = r"\begin{forest}"
_PREAMBLE = r"""\documentclass{article}
\usepackage{amsmath}
\usepackage{textcomp}
\ifdefined\Umathchar\else
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\fi
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\begin{document}
"""


def as_latex(blocks: Iterable[Block], document: bool = True) -> str:
    """Write blocks as a document of their own, or as a part to be read into one.

    Trees need the package forest.
    """
    body = "\n".join([_CHARACTER, *_latex_lines(blocks)]) + "\n"
    if not document:
        return body
    preamble = _PREAMBLE
    if _FOREST in body:
        preamble = preamble.replace(_TEXTCOMP, f"{_TEXTCOMP}\\usepackage{{forest}}\n")
    return f"{preamble}{body}\\end{{document}}\n"


def _latex_lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _latex(block)


def _latex(block: Block) -> Iterable[str]:
    match block:
        case Heading(text, level):
            title = f"\\{_SECTIONS.get(level, 'paragraph')}*{{{in_latex(text)}}}"
            return [r"\clearpage", title] if block.new_page else [title]
        case Paragraph(text):
            return [f"{in_latex(text)}\\par"]
        case Items():
            items = [rf"\item {in_latex(item)}" for item in block.items]
            return _within("enumerate" if block.numbered else "itemize", items)
        case Formulas(formulas):
            return _within("align*", [" \\\\\n".join(map(_latex_formula, formulas))])
        case Table():
            return _within("center", _latex_table(block))
        case TreeLines():
            return _within("center", _latex_tree(block.lines))
        case Fold(_, inner):
            return _latex_lines(inner)


def _within(environment: str, lines: Iterable[str]) -> Iterator[str]:
    yield rf"\begin{{{environment}}}"
    yield from lines
    yield rf"\end{{{environment}}}"


def _latex_table(table: Table) -> Iterator[str]:
    columns = "".join("r" if right else "l" for right in table.right)
    yield rf"\begin{{tabular}}{{{columns}}}"
    # Room between the line and the rows.
    rule = r"\noalign{\smallskip}\hline\noalign{\smallskip}"
    yield f"{_latex_row(table.head)} {rule}"
    yield from map(_latex_row, table.rows)
    yield r"\end{tabular}"


def _latex_row(cells: Sequence[str]) -> str:
    # A line of a table must not begin with what the line break would take for its own.
    return " & ".join(map(in_latex, cells)) + r" \\"


def _latex_tree(lines: Sequence[TreeLine]) -> Iterator[str]:
    """Draw a tree with the package forest, made smaller if it is too wide."""
    yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    yield _FOREST
    yield "for tree={align=center, l sep=2.5em, s sep=1.2em}"
    depth = -1
    for line in lines:
        if line.depth <= depth:
            yield "]" * (depth - line.depth + 1)
        depth = line.depth
        font = r"\itshape " if line.splits else ""
        label = in_latex(line.value)
        edge = rf",edge label={{node[midway,fill=white,font=\small]{{{label}}}}}"
        yield f"[{{{font}{in_latex(line.text)}}}{edge if depth else ''}"
    yield "]" * (depth + 1)
    yield r"\end{forest}}"


def _latex_formula(formula: Formula) -> str:
    left = rf"\text{{{in_latex(formula.name)}}}(\text{{{in_latex(formula.of)}}})"
    lines = [
        _LATEX_NOTATION.terms(formula.terms[at : at + _TERMS_A_LINE])
        for at in range(0, len(formula.terms), _TERMS_A_LINE)
    ]
    terms = " \\\\\n&\\quad ".join(lines)
    middle = f" &= {terms} = " if terms else " &= "
    return f"{left}{middle}{_latex_figure(formula.value)}"


def _latex_figure(text: str) -> str:
    """Write figures, signs and brackets, which hold no text of the user."""
    return text.replace("...", r"\dots ").replace(BLANK, r"\rule{5em}{0.4pt}")


def in_latex(text: str) -> str:
    """Write text so that LaTeX shows it as it is, whatever it is."""
    return "".join(map(_latex_character, text))


def _latex_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isascii() or character in _LETTERS:
        return character
    return rf"\branchwisechar{{{ord(character):04X}}}"


_LATEX_NOTATION = Notation(
    {
        "fraction": r"\tfrac{{{}}}{{{}}}",
        "squared": r"\bigl({}\bigr)^2",
        "log2": r"\log_2 {}",
        "distances": r"\sum (y - {})^2",
        "weighted distances": r"\sum w (y - {})^2",
        "times": r" \cdot ",
    },
    name=lambda text: rf"\text{{{in_latex(text)}}}",
    figure=_latex_figure,
)


class Document:
    """What has blocks can be written in every format, and shows itself in notebooks.

    ``compact`` is whether its text has empty lines before headings only.
    """

    compact: ClassVar[bool] = True

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        raise NotImplementedError

    def to_text(self) -> str:
        """Return it as text."""
        return as_text(self.blocks(), self.compact)

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        with typeset_signs():
            return as_markdown(self.blocks())

    def to_html(self) -> str:
        """Return it as a piece of HTML, without styles and scripts."""
        with typeset_signs():
            inside = as_html(self.blocks())
        return f'<div class="branchwise">\n{inside}\n</div>'

    def to_json(self) -> str:
        """Return it as JSON."""
        return json_text(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()
