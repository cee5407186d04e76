"""Documents as plain text and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from branchwise.text.blocks import (
    Block,
    Code,
    Columns,
    Figure,
    Fold,
    Formula,
    Formulas,
    Heading,
    Items,
    Notation,
    Paragraph,
    Table,
)

_UNDERLINES = {1: "=", 2: "-"}
_NOTATION = Notation(
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
        case Paragraph(text) | Figure(_, text):
            return [text]
        case Items():
            return [f"{indent}{mark}{item}" for mark, item in block.marked()]
        case Table(head, rows):
            return [f"{indent}{line}" for line in aligned([head, *rows], block.right)]
        case Formulas(formulas):
            return map(_formula, formulas)
        case Code(lines):
            return lines
        case Fold(_, blocks):
            return [as_text(blocks, compact)] if blocks else []
        case Columns(columns):
            return [as_text(chain.from_iterable(columns), compact)]
    return []


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Set cells in columns.

    Parameters
    ----------
    rows : sequence of sequence of str
        The cells, the head of the table included.
    right : sequence of bool
        For each column, whether it is set to the right.
    """
    widths = [max(len(row[at]) for row in rows) for at in range(len(right))]
    return [
        "  ".join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _formula(formula: Formula) -> str:
    terms = _NOTATION.terms(formula.terms)
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
        case Paragraph(text) | Figure(_, text):
            return [in_markdown(text)]
        case Items():
            return [f"{mark}{in_markdown(item)}" for mark, item in block.marked()]
        case Table(head, rows):
            rule = "".join("---:|" if right else "---|" for right in block.right)
            return [_row(head), f"|{rule}", *map(_row, rows)]
        case Formulas(formulas):
            return _fenced([_formula(formula) for formula in formulas])
        case Code(lines):
            return _fenced(lines)
        case Fold(_, blocks):
            return [as_markdown(blocks)]
        case Columns(columns):
            return [as_markdown(chain.from_iterable(columns))]
    return []


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """Set lines in a block of code that no run of ticks among them can end."""
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    yield f"{fence}text"
    yield from lines
    yield fence
