"""The protocol that every engine keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from branchwise.counts import Counts, Floats, Ints
from branchwise.search import Level
from branchwise.splits import Splits
from branchwise.table.target import Scale
from branchwise.tree import Tree


class Engine(Protocol):
    """Rows somewhere, and who can count and move them.

    Open nodes are numbered from 0 within a level. An engine answers in weights on
    the exact grid of ``table/weights.py``, so that all engines grow the same tree.
    """

    #: Whether all weights are whole numbers.
    whole: bool
    #: How numbers to be predicted are counted; None where classes are.
    scale: Scale | None

    def totals(self) -> Level:
        """Begin (again) with all rows in the root; return its weights and cases."""

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column; a code is a position."""

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column in turn by the branch of the open nodes that rows take,
        in place of their class. Rows whose own value leads to no branch are left out.
        """  # noqa: D205

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches, which become the
        open nodes; return their class weights and cases.
        """  # noqa: D205

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes, numbered anew in that order; forget the rest."""

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""
