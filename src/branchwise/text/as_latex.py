"""Documents as LaTeX, which needs amsmath and textcomp and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from branchwise.text import blocks as of
from branchwise.text.blocks import Block, Formula, Notation, Table

#: A term after so many begins a new line.
_TERMS_A_LINE = 4
#: Signs that mean something to LaTeX.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",
    "[": r"{[}",
    "]": r"{]}",
    "*": r"{*}",
    "?": r"{?}",
    "!": r"{!}",
    ",": r"{,}",
    "\u00b1": r"\ensuremath{\pm}",
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
    """Write blocks as a document of their own, or as a part to be read into one."""
    body = "\n".join([_CHARACTER, *_lines(blocks)]) + "\n"
    return f"{_PREAMBLE}{body}\\end{{document}}\n" if document else body


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)


def _block(block: Block) -> Iterable[str]:
    match block:
        case of.Heading(text, level):
            return [f"\\{_SECTIONS.get(level, 'paragraph')}*{{{escaped(text)}}}"]
        case of.Paragraph(text) | of.Figure(_, text):
            return [f"{escaped(text)}\\par"]
        case of.Items():
            items = [rf"\item {escaped(item)}" for item in block.items]
            return _within("enumerate" if block.numbered else "itemize", items)
        case of.Formulas(formulas):
            return _within("align*", [" \\\\\n".join(map(_formula, formulas))])
        case Table():
            return _within("center", _table(block))
        case of.Code(lines):
            rows = [rf"\texttt{{{escaped(line)}}}\\" for line in lines]
            return _within("flushleft", rows)
        case of.Fold(_, inner):
            return _lines(inner)
        case of.Columns(columns):
            return (line for column in columns for line in _lines(column))
    return []


def _within(environment: str, lines: Iterable[str]) -> Iterator[str]:
    yield rf"\begin{{{environment}}}"
    yield from lines
    yield rf"\end{{{environment}}}"


def _table(table: Table) -> Iterator[str]:
    columns = "".join("r" if right else "l" for right in table.right)
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield _row(table.head) + r" \hline"
    yield from map(_row, table.rows)
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    # A line of a table must not begin with what the line break would take for its own.
    return " & ".join(map(escaped, cells)) + r" \\"


def _formula(formula: Formula) -> str:
    left = rf"\text{{{escaped(formula.name)}}}(\text{{{escaped(formula.of)}}})"
    lines = [
        _NOTATION.terms(formula.terms[at : at + _TERMS_A_LINE])
        for at in range(0, len(formula.terms), _TERMS_A_LINE)
    ]
    terms = " \\\\\n&\\quad ".join(lines)
    middle = f" &= {terms} = " if terms else " &= "
    return f"{left}{middle}{_figure(formula.value)}"


def _figure(text: str) -> str:
    """Write figures, signs and brackets, which hold no text of the user."""
    return text.replace("...", r"\dots ")


def escaped(text: str) -> str:
    """Write text so that LaTeX shows it as it is, whatever it is."""
    return "".join(map(_escaped_character, text))


def _escaped_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isascii() or character in _LETTERS:
        return character
    return rf"\branchwisechar{{{ord(character):04X}}}"


_NOTATION = Notation(
    {
        "fraction": r"\tfrac{{{}}}{{{}}}",
        "squared": r"\bigl({}\bigr)^2",
        "log2": r"\log_2 {}",
        "distances": r"\sum (y - {})^2",
        "weighted distances": r"\sum w (y - {})^2",
        "times": r" \cdot ",
    },
    name=lambda text: rf"\text{{{escaped(text)}}}",
    figure=_figure,
)
