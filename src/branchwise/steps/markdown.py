"""A worked solution as Markdown (GitHub's, for the tables)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from branchwise.steps.page import (
    Block,
    Fold,
    Formulas,
    Heading,
    Items,
    Paragraph,
    Table,
)
from branchwise.steps.text import plain_formula

#: Everything that means something to Markdown, or to HTML within it.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&$:@=^])")
#: In the middle of a sentence these mean nothing.
_HARMLESS = set("().:=-+!#")


def to_markdown(blocks: Sequence[Block]) -> str:
    """Write blocks as Markdown."""
    return "\n".join(_lines(blocks))


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
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
                yield from _lines(inner)


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
