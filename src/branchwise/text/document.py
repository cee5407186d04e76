"""Paragraphs, lists and tables, written as text, Markdown or HTML.

A result is assembled once, as blocks; the three formats differ only in how a block is
written. Names and values are words of ``text/conditions.py``, which never break a
line; here they are escaped for the format.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.errors import json_text

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&$])")


@dataclass(frozen=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A sentence or two."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list, numbered or not."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True)
class Grid:
    """A table; columns after the first are set to the right if they hold numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[bool]


Block = Heading | Paragraph | Items | Grid


class Written:
    """What has blocks can be written in every form, and shows itself in notebooks."""

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        raise NotImplementedError

    def to_text(self) -> str:
        """Return it as text."""
        return as_text(self.blocks())

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        return as_markdown(self.blocks())

    def to_html(self) -> str:
        """Return it as a piece of HTML, without styles and scripts."""
        return as_html(self.blocks())

    def to_json(self) -> str:
        """Return it as JSON."""
        return json_text(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def as_text(blocks: Iterable[Block]) -> str:
    """Write blocks as text; a heading has an empty line before it."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            lines += ["", block.text] if lines else [block.text]
        elif isinstance(block, Paragraph):
            lines.append(block.text)
        elif isinstance(block, Items):
            lines += [f"  {mark}{item}" for mark, item in _marked(block, "- ")]
        else:
            lines += [f"  {line}" for line in _aligned(block)]
    return "\n".join(lines)


def _marked(block: Items, bullet: str) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(block.items, 1):
        yield (f"{number}. " if block.numbered else bullet), item


def _aligned(grid: Grid) -> list[str]:
    rows = [grid.head, *grid.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(grid.right))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, grid.right, strict=True)
        ).rstrip()
        for row in rows
    ]


def in_markdown(text: str) -> str:
    """Escape what Markdown would take for markup."""
    return _MARKDOWN.sub(r"\\\1", text)


def as_markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown."""
    return "\n\n".join(_markdown(block) for block in blocks)


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"### {in_markdown(block.text)}"
    if isinstance(block, Paragraph):
        return in_markdown(block.text)
    if isinstance(block, Items):
        return "\n".join(f"{m}{in_markdown(item)}" for m, item in _marked(block, "- "))
    rule = ["---:" if right else "---" for right in block.right]
    rows = [[in_markdown(cell) for cell in row] for row in (block.head, *block.rows)]
    rows.insert(1, rule)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def as_html(blocks: Iterable[Block]) -> str:
    """Write blocks as a piece of HTML."""
    inner = "\n".join(_html(block) for block in blocks)
    return f'<div class="branchwise">\n{inner}\n</div>'


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<p><strong>{html.escape(block.text)}</strong></p>"
    if isinstance(block, Paragraph):
        return f"<p>{html.escape(block.text)}</p>"
    if isinstance(block, Items):
        tag = "ol" if block.numbered else "ul"
        items = "".join(f"<li>{html.escape(item)}</li>" for item in block.items)
        return f"<{tag}>{items}</{tag}>"
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in block.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in block.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
