"""A tree in the making: its levels, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Ints
from branchwise.missing import STOP
from branchwise.search import Level
from branchwise.splits import Splits, Surrogates
from branchwise.tree import Tree


class Levels:
    """The arrays of the tree, level by level."""

    def __init__(self, n_roots: int) -> None:
        self.n_nodes = 0
        self._levels: list[dict[str, NDArray[Any]]] = []
        # Nothing leads to the root; the codes of a level come with its parents.
        self._n_codes = np.zeros(n_roots, dtype=np.intp)
        self._codes = np.empty(0, dtype=np.intp)
        #: By the first node of a level.
        self._surrogates: dict[int, Surrogates] = {}

    def add(self, level: Level, open_nodes: Ints, splits: Splits | None) -> None:
        """Record a level, and the codes that lead to the next one."""
        n = len(level)
        part = {
            "column": np.full(n, -1, dtype=np.intp),
            "cut": np.full(n, np.nan),
            "n_children": np.zeros(n, dtype=np.intp),
            "missing_to": np.full(n, STOP, dtype=np.intp),
            "unseen_to": np.full(n, STOP, dtype=np.intp),
            "n_codes": self._n_codes,
            "codes": self._codes,
            "weights": level.weights,
            "cases": level.cases,
        }
        if splits is not None:
            part["column"][open_nodes] = splits.column
            part["cut"][open_nodes] = splits.cut
            part["n_children"][open_nodes] = splits.n_branches
            part["missing_to"][open_nodes] = splits.missing_to
            part["unseen_to"][open_nodes] = splits.unseen_to
            self._n_codes = splits.n_codes
            self._codes = splits.codes
        self._levels.append(part)
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
        """Put the levels together."""
        tree = Tree(
            **{
                name: np.concatenate([part[name] for part in self._levels])
                for name in self._levels[0]
            }
        )
        if not self._surrogates:
            return tree
        return tree.with_surrogates(Surrogates.joined(self._surrogates, self.n_nodes))
