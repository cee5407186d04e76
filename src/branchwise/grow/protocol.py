"""Protocols between growing and counting: levels, count sources and engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.target import Scale
from branchwise.grow.counts import Counts
from branchwise.tree.splits import STOP, Splits, Surrogates
from branchwise.tree.tree import Tree


class CountSource(Protocol):
    """Adds up the counts of the open nodes."""

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column; a code is a position."""

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""


@dataclass(frozen=True)
class Level:
    """The open nodes of one level: their class weights and numbers of cases."""

    weights: Floats
    cases: Floats

    def __len__(self) -> int:
        return len(self.cases)


class Engine(Protocol):
    """Holds rows, counts them by open node, and moves them down splits.

    Open nodes are numbered from 0 within a level. An engine returns weights on the
    exact grid of ``data/weights.py``, so that all engines grow the same tree.
    """

    #: Whether all weights are whole numbers.
    whole: bool
    #: How numbers to be predicted are counted; None where classes are.
    scale: Scale | None

    def totals(self) -> Level:
        """Restart with all rows in the root; return its weights and cases."""

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
        """Keep only some open nodes, renumbered in that order; drop the rest."""

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""


class Levels:
    """The arrays of the tree, level by level."""

    def __init__(self, n_roots: int) -> None:
        self.n_nodes = 0
        self._levels: list[dict[str, NDArray[Any]]] = []
        # No codes lead to the root; the codes of a level are added with its parents.
        self._n_codes = np.zeros(n_roots, dtype=np.intp)
        self._codes = np.empty(0, dtype=np.intp)
        #: By the first node of a level.
        self._surrogates: dict[int, Surrogates] = {}

    def add(self, level: Level, open_nodes: Ints, splits: Splits | None) -> None:
        """Record a level, and the codes that lead to the next one."""
        n = len(level)
        piece = {
            "column": np.full(n, -1, dtype=np.intp),
            "threshold": np.full(n, np.nan),
            "n_children": np.zeros(n, dtype=np.intp),
            "missing_to": np.full(n, STOP, dtype=np.intp),
            "unseen_to": np.full(n, STOP, dtype=np.intp),
            "n_codes": self._n_codes,
            "codes": self._codes,
            "weights": level.weights,
            "cases": level.cases,
        }
        if splits is not None:
            piece["column"][open_nodes] = splits.column
            piece["threshold"][open_nodes] = splits.threshold
            piece["n_children"][open_nodes] = splits.n_branches
            piece["missing_to"][open_nodes] = splits.missing_to
            piece["unseen_to"][open_nodes] = splits.unseen_to
            self._n_codes = splits.n_codes
            self._codes = splits.codes
        self._levels.append(piece)
        if splits is not None and splits.surrogates is not None:
            among = np.full(n, -1, dtype=np.intp)
            among[open_nodes] = np.arange(len(open_nodes))
            self._surrogates[self.n_nodes] = splits.surrogates.take(among)
        self.n_nodes += n

    @property
    def n_next(self) -> int:
        """How many nodes the next level has."""
        return len(self._n_codes)

    def tree(self) -> Tree:
        """Join the levels."""
        tree = Tree(
            **{
                name: np.concatenate([piece[name] for piece in self._levels])
                for name in self._levels[0]
            }
        )
        if not self._surrogates:
            return tree
        return tree.with_surrogates(Surrogates.joined(self._surrogates, self.n_nodes))
