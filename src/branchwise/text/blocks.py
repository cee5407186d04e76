"""The blocks that documents are made of, and the formulas in them.

A document is a sequence of blocks. ``as_text``, ``as_markdown``, ``as_html`` and
``as_latex`` write any document; names and values are words of ``text/words.py``, which
never break a line, and are escaped where they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """The title of what follows; level 1 is the whole document.

    With ``new_page`` it begins a new page on paper.
    """

    text: str
    level: int = 3
    new_page: bool = False


@dataclass(frozen=True)
class Items:
    """A list, numbered or not."""

    items: Sequence[str]
    numbered: bool = False

    def marked(self) -> Iterator[tuple[str, str]]:
        """Yield the items, each after its mark in plain text."""
        for number, item in enumerate(self.items, 1):
            yield (f"{number}. " if self.numbered else "- "), item


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Table:
    """Cells under a head.

    ``words`` are the columns that hold words: they are set to the left, all others to
    the right. With ``row_heads`` the first cell of a row is its heading.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[int] = (0,)
    row_heads: bool = True

    @property
    def right(self) -> list[bool]:
        """For each column, whether it is set to the right."""
        return [at not in self.words for at in range(len(self.head))]


@dataclass(frozen=True)
class TreeLine:
    """A node of a tree: its depth, the branch to it, and what is there.

    ``value`` is what the branch is for, without the column. ``splits`` is whether
    ``text`` is the column that is split here, whose branches follow.
    """

    depth: int
    branch: str
    value: str
    text: str
    splits: bool = False


@dataclass(frozen=True)
class TreeLines:
    """A small tree, parents before their children."""

    lines: Sequence[TreeLine]

    def indented(self) -> Iterator[str]:
        """Yield the lines of the tree as text, in the way that trees are printed."""
        for line in self.lines:
            text = "" if line.splits else f" {line.text}"
            if line.depth:
                yield f"{'|   ' * (line.depth - 1)}{line.branch}:{text}"
            elif not line.splits:
                yield line.text


#: A place to write by hand.
BLANK = "________"


class Name(str):
    """Words within a formula: of the user, or of the language."""

    __slots__ = ()


@dataclass(frozen=True)
class Operation:
    """An operation within a formula, such as "fraction", and what it is done with."""

    kind: str
    operands: tuple[Piece, ...] = ()


#: A string is a figure, a sign or a bracket.
Piece = str | Name | Operation
Term = tuple[Piece, ...]


def fraction(top: str, bottom: str) -> Operation:
    """Return one amount over another."""
    return Operation("fraction", (top, bottom))


def log2(of: Piece) -> Operation:
    """Return the binary logarithm of a fraction or of a number."""
    return Operation("log2", (of,))


TIMES = Operation("times")


@dataclass(frozen=True)
class Formula:
    """``name(of) = terms = value``; terms bring their signs along."""

    name: str
    of: str
    terms: Sequence[Term]
    value: str


@dataclass(frozen=True)
class Notation:
    """How a format writes the pieces of a formula.

    ``patterns`` has a format string for each kind of operation; ``name`` and
    ``figure`` write words and figures.
    """

    patterns: Mapping[str, str]
    name: Callable[[str], str]
    figure: Callable[[str], str]

    def piece(self, piece: Piece) -> str:
        """Write one piece."""
        if isinstance(piece, Name):
            return self.name(str(piece))
        if isinstance(piece, str):
            return self.figure(piece)
        return self.patterns[piece.kind].format(*map(self.piece, piece.operands))

    def terms(self, terms: Sequence[Term]) -> str:
        """Write terms one after the other."""
        return "".join(self.piece(piece) for term in terms for piece in term)


@dataclass(frozen=True)
class Formulas:
    """Formulas, one a line."""

    formulas: Sequence[Formula]


@dataclass(frozen=True)
class Fold:
    """Blocks that a page may collapse under a summary."""

    summary: str
    blocks: Sequence[Block]


Block = Heading | Paragraph | Items | Table | TreeLines | Fold | Formulas
