"""Worked solutions as plain text and as Markdown."""

from __future__ import annotations

import re
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

_UNDERLINES = {1: "=", 2: "-"}


def to_text(blocks: Sequence[Block]) -> str:
    """Write blocks as text."""
    return "\n".join(_lines(blocks))


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
    for at, block in enumerate(blocks):
        if at:
            yield ""
        match block:
            case Heading(text, level):
                yield text
                yield _UNDERLINES.get(level, "~") * len(text)
            case Paragraph(text):
                yield text
            case Items(items):
                yield from (f"- {item}" for item in items)
            case Formulas(formulas):
                yield from map(plain_formula, formulas)
            case Table():
                yield from table_lines(block)
            case Fold(_, inner):
                yield from _lines(inner)


def table_lines(table: Table) -> list[str]:
    """Set a table in columns; the first and a last one of words to the left."""
    rows = [table.head, *table.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.head))]
    left = {0} | ({len(widths) - 1} if table.head[-1] == "verdict" else set())
    return [
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def plain_formula(formula: Formula) -> str:
    """Write a formula on one line."""
    terms = "".join(_plain(piece) for term in formula.terms for piece in term)
    middle = f" = {terms}" if terms else ""
    return f"{formula.name}({formula.of}){middle} = {formula.value}"


def _plain(piece: Piece) -> str:
    match piece:
        case Fraction(top, bottom):
            return f"{top}/{bottom}"
        case Squared(of):
            return f"({_plain(of)})^2"
        case Log2(of):
            return f"log2 {_plain(of)}"
        case Distances(mean, weighted):
            return f"sum of {'w ' if weighted else ''}(y - {_signed(mean)})^2"
        case Times():
            return " * "
        case Name(text):
            return text
        case other:
            return other


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


#: Everything that means something to Markdown, or to HTML within it.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&$:@=^])")
#: In the middle of a sentence these mean nothing.
_HARMLESS = set("().:=-+!#")


def to_markdown(blocks: Sequence[Block]) -> str:
    """Write blocks as Markdown."""
    return "\n".join(_markdown_lines(blocks))


def _markdown_lines(blocks: Sequence[Block]) -> Iterator[str]:
    for at, block in enumerate(blocks):
        if at:
            yield ""
        match block:
            case Heading(text, level):
                yield f"{'#' * level} {escaped(text)}"
            case Paragraph(text):
                yield escaped(text)
            case Items(items):
                yield from (f"- {escaped(item)}" for item in items)
            case Formulas(formulas):
                yield from _fenced([plain_formula(formula) for formula in formulas])
            case Table(head, rows):
                yield _row(head)
                yield "|---|" + "---:|" * (len(head) - 1)
                yield from map(_row, rows)
            case Fold(_, inner):
                yield from _markdown_lines(inner)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """Set lines in a block of code that no run of ticks among them can end."""
    longest = max(
        (len(run) for line in lines for run in re.findall("`+", line)), default=0
    )
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from lines
    yield fence


def escaped(text: str) -> str:
    """Write text so that Markdown shows it as it is."""
    inside = "".join(
        f"\\{c}" if _SPECIAL.match(c) and c not in _HARMLESS else c for c in text
    )
    # At the beginning of a line some of the others mean something, too.
    if inside[:1] in {"-", "+", "#", "=", ":"}:
        return f"\\{inside}"
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", inside)
