"""Worked solutions as LaTeX; it needs amsmath and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from branchwise.steps.blocks import (
    Block,
    Fold,
    Formulas,
    Heading,
    Items,
    Paragraph,
    Table,
)
from branchwise.steps.formulas import (
    Distances,
    Formula,
    Fraction,
    Log2,
    Name,
    Piece,
    Squared,
    Times,
)

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


def to_latex(blocks: Sequence[Block], document: bool) -> str:
    """Write blocks as a document of their own, or as a part to be read into one."""
    body = "\n".join([_CHARACTER, *_lines(blocks)]) + "\n"
    return f"{_PREAMBLE}{body}\\end{{document}}\n" if document else body


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(text, level):
                yield f"\\{_SECTIONS[level]}*{{{escaped(text)}}}"
            case Paragraph(text):
                yield f"{escaped(text)}\\par"
            case Items(items):
                yield r"\begin{itemize}"
                yield from (rf"\item {escaped(item)}" for item in items)
                yield r"\end{itemize}"
            case Formulas(formulas):
                yield r"\begin{align*}"
                yield " \\\\\n".join(map(_formula, formulas))
                yield r"\end{align*}"
            case Table():
                yield from _table(block)
            case Fold(_, inner):
                yield from _lines(inner)


def _table(table: Table) -> Iterator[str]:
    right = len(table.head) - 1
    columns = "l" + "r" * right
    if table.head[-1] == "verdict":
        columns = columns[:-1] + "l"
    yield r"\begin{center}"
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield _row(table.head) + r" \hline"
    yield from map(_row, table.rows)
    yield r"\end{tabular}"
    yield r"\end{center}"


def _row(cells: Sequence[str]) -> str:
    # A line of a table must not begin with what the line break would take for its own.
    return " & ".join(map(escaped, cells)) + r" \\"


def _formula(formula: Formula) -> str:
    left = rf"\text{{{escaped(formula.name)}}}(\text{{{escaped(formula.of)}}})"
    lines = [
        "".join(
            _piece(piece)
            for term in formula.terms[at : at + _TERMS_A_LINE]
            for piece in term
        )
        for at in range(0, len(formula.terms), _TERMS_A_LINE)
    ]
    terms = " \\\\\n&\\quad ".join(lines)
    middle = f" &= {terms} = " if terms else " &= "
    return f"{left}{middle}{_plain(formula.value)}"


def _piece(piece: Piece) -> str:
    match piece:
        case Fraction(top, bottom):
            return rf"\tfrac{{{_plain(top)}}}{{{_plain(bottom)}}}"
        case Squared(of):
            return rf"\bigl({_piece(of)}\bigr)^2"
        case Log2(of):
            return rf"\log_2 {_piece(of)}"
        case Distances(mean, weighted):
            return rf"\sum {'w ' if weighted else ''}(y - {_signed(mean)})^2"
        case Times():
            return r" \cdot "
        case Name(text):
            return rf"\text{{{escaped(text)}}}"
        case other:
            return _plain(other)


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _plain(text: str) -> str:
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
