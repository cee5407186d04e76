"""The in-memory engine, the reference of the others.

Rows stay in their order; an array has the open node of each. Rows of closed nodes are
dropped. Where missing values go down every branch, a row becomes several, each with a
fraction of the weight, rounded to the weight grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import (
    Classes,
    Quantities,
)
from branchwise.data.weights import (
    WeightGrid,
    on_grid,
)
from branchwise.grow.counts import Counts, Rows, add_up, tally
from branchwise.grow.native_table import grid_options, table_arguments
from branchwise.grow.protocol import Level, class_cases, finished_splits
from branchwise.native import available, extension
from branchwise.tree.apply import NativeWalk, native_arrays
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router, Splits
from branchwise.tree.tree import Tree, subtree_sums


@dataclass(frozen=True)
class Countable:
    """A column for counting: codes, their number, and the numbers they stand for."""

    codes: NDArray[Any]
    n_codes: int
    values: Floats


@dataclass(frozen=True)
class Cases:
    """The rows, or fractions of rows, of a node.

    ``weight`` and ``case`` are None where every row counts as one.
    """

    row: Ints
    weight: Floats | None = None
    case: Floats | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        arrays = (self.row, self.weight, self.case)
        return sum(array.nbytes for array in arrays if array is not None)


class MemoryEngine:
    """Counts and moves the rows of encoded columns.

    ``countable`` is given for a chunk of a table, so that codes do not depend on the
    values of this chunk.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        data: Columns,
        target: Classes | Quantities,
        grid: WeightGrid,
        countable: Sequence[Countable] | None = None,
    ) -> None:
        self._schema = columns
        self._data = data
        counted = None if grid.weights is None else grid.weights > 0
        self._columns = countable or [
            countable_column(c, d, counted)
            for c, d in zip(columns, data.data, strict=True)
        ]
        self._target = target
        self._n_classes = target.n_classes if isinstance(target, Classes) else 0
        self.grid = grid
        self.whole = grid.whole
        self.scale = target.scale if isinstance(target, Quantities) else None
        cases = _all_cases(data.n_rows, grid)
        self.begin(cases, self._moments_of(cases))

    def below(self, cases: Cases) -> MemoryEngine:
        """Return an engine of the same rows whose root has only these cases."""
        engine = copy(self)
        engine.begin(cases, self._moments_below(cases))
        return engine

    def begin(self, cases: Cases, moments: Floats | None) -> None:
        """Put cases in the root, with their moments where numbers are predicted."""
        #: The cases that are counted from.
        self.root = cases
        self._root_moments = moments
        self.restart()

    def _moments_below(self, cases: Cases) -> Floats | None:
        """Return the moments of cases: whole ones have those that they have here."""
        if cases is self.root or self._root_moments is None:
            return self._root_moments
        if cases.case is not None:
            return self._moments_of(cases)
        return self._root_moments[np.searchsorted(self.root.row, cases.row)]

    def cases(self, node: int) -> Cases:
        """Return the cases of an open node."""
        own = self._node == node
        weight, case = self._weight, self._case
        return Cases(
            self._row[own],
            None if weight is None else weight[own],
            None if case is None else case[own],
        )

    def restart(self) -> None:
        """Put the cases of the root, all that have a weight, in the root."""
        self._row = self.root.row
        self._weight, self._case = self.root.weight, self.root.case
        self._node = np.zeros(len(self._row), dtype=np.intp)
        self._n_nodes = 1
        self._moments = self._root_moments

    def _moments_of(self, cases: Cases) -> Floats | None:
        """Return the moments of rows that have numbers."""
        if not isinstance(self._target, Quantities):
            return None
        values = self._target.values[cases.row]
        return self._target.scale.moments(values, cases.weight)

    @property
    def moments(self) -> Floats | None:
        """The moments of the cases in open nodes, where numbers are predicted."""
        return self._moments

    @property
    def countable(self) -> Sequence[Countable]:
        """The columns as they are counted."""
        return self._columns

    @property
    def rows(self) -> Ints:
        """The rows, or fractions of rows, that are in open nodes."""
        return self._row

    @property
    def nodes(self) -> Ints:
        """The open nodes that they are in."""
        return self._node

    def totals(self) -> Level:
        """Put all cases in the root; return its class weights and cases."""
        self.restart()
        return self._totals(1)

    def _totals(self, n_nodes: int) -> Level:
        one_code = np.zeros(1, dtype=np.uint8)
        counts = tally(self._rows(None), one_code, n_nodes, 1, self._n_classes)
        return Level(*counts.totals(n_nodes))

    def _rows(self, chosen: NDArray[np.bool_] | None) -> Rows:
        chunk: Any = slice(None) if chosen is None else chosen
        node, row = self._node[chunk], self._row[chunk]
        weight = None if self._weight is None else self._weight[chunk]
        case = None if self._case is None else self._case[chunk]
        if isinstance(self._target, Classes):
            return Rows(node, self._target.labels[row], weight, case)
        moments = None if self._moments is None else self._moments[chunk]
        return Rows(node, row, weight, case, moments)

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""
        return class_cases(self, self.cases_by_class, tree)

    def cases_by_class(self) -> Floats:
        """Count the cases of each class in the open nodes, whatever they weigh."""
        rows = replace(self._rows(None), weight=self._case, case=None)
        one_code = np.zeros(1, dtype=np.uint8)
        counts = tally(rows, one_code, self._n_nodes, 1, self._n_classes)
        return counts.totals(self._n_nodes)[0]

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        coded = self._columns[column]
        chosen = None
        row = self._row
        if nodes is not None and len(nodes) < self._n_nodes:
            wanted = np.zeros(self._n_nodes, dtype=bool)
            wanted[nodes] = True
            chosen = wanted[self._node]
            row = row[chosen]
        return tally(
            self._rows(chosen),
            coded.codes[row],
            self._n_nodes,
            coded.n_codes,
            self._n_classes,
        )

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column."""
        return self._columns[column].values

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        schema = self._schema[column]
        if schema.is_numeric:
            return len(self._columns[column].values)
        return schema.missing_code

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take, in place of their class."""
        n_branches = int(splits.n_branches.max(initial=0))
        nowhere = np.full(len(splits.column), STOP, dtype=np.intp)
        decided = replace(splits, missing_to=nowhere, unseen_to=nowhere)
        branch = Router(self._schema, decided).branches(
            self._data, self._row, self._node
        )
        chosen = branch >= 0
        rows = replace(self._rows(chosen), label=branch[chosen], moments=None)
        for coded in self._columns:
            codes = coded.codes[self._row[chosen]]
            yield tally(rows, codes, self._n_nodes, coded.n_codes, n_branches)

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes; drop the rows of the rest."""
        new = np.full(self._n_nodes, -1, dtype=np.intp)
        new[nodes] = np.arange(len(nodes))
        node = new[self._node]
        self._keep(node >= 0, node)
        self._n_nodes = len(nodes)

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches."""
        router = Router(self._schema, splits)
        branch = router.branches(self._data, self._row, self._node)
        every = np.flatnonzero(branch == EVERY_BRANCH)
        fractions = self._fractions(router, every) if len(every) else None
        self._keep(branch >= 0, router.first_branch[self._node] + branch)
        if fractions is not None:
            self._append(*fractions)
        self._n_nodes = len(splits.sizes)
        return self._totals(self._n_nodes)

    def _fractions(
        self, router: Router, every: Ints
    ) -> tuple[Ints, Ints, Floats, Floats]:
        """Send rows down every branch; return row, node, weight, case of fractions."""
        origin, target, share = router.every_branch(self._node[every])
        rows = every[origin]
        weight = share if self._weight is None else self._weight[rows] * share
        case = share if self._case is None else self._case[rows] * share
        weight = on_grid(weight, self.grid.step)
        case = on_grid(case, self.grid.case_step)
        kept = weight > 0
        return self._row[rows][kept], target[kept], weight[kept], case[kept]

    def _append(self, row: Ints, node: Ints, weight: Floats, case: Floats) -> None:
        whole = np.ones(len(self._row))
        own_weight = whole if self._weight is None else self._weight
        own_case = whole if self._case is None else self._case
        self._row = np.concatenate([self._row, row])
        self._node = np.concatenate([self._node, node])
        self._weight = np.concatenate([own_weight, weight])
        self._case = np.concatenate([own_case, case])
        more = self._moments_of(Cases(row, weight))
        if self._moments is not None and more is not None:
            self._moments = np.concatenate([self._moments, more])

    def _keep(self, kept: NDArray[np.bool_], node: Ints) -> None:
        self._row, self._node = self._row[kept], node[kept]
        if self._weight is not None:
            self._weight = self._weight[kept]
        if self._case is not None:
            self._case = self._case[kept]
        if self._moments is not None:
            self._moments = self._moments[kept]


def class_cases_of(
    columns: Sequence[Column],
    data: Columns,
    target: Classes,
    grid: WeightGrid,
    tree: Tree,
) -> Floats:
    """Count the cases of each class down a finished tree, whatever they weigh.

    Rows of weight 0 are left out. Fractional cases count by their fractions.
    """
    if grid.fractions and available() and tree.surrogate_column is None:
        return _divided_class_cases(columns, data, target, grid, tree)
    if grid.fractions or not available():
        # Nothing is counted by code, so no codes are needed.
        nothing = Countable(np.empty(0, dtype=np.uint8), 1, np.empty(0))
        countable = [nothing] * len(columns)
        return MemoryEngine(columns, data, target, grid, countable).class_cases(tree)
    node = NativeWalk(columns, tree).reached(data).astype(np.intp)
    label = target.labels
    if grid.weights is not None:
        counted = grid.weights > 0
        node, label = node[counted], label[counted]
    cells = len(tree) * target.n_classes
    own = add_up(node * target.n_classes + label, np.ones(len(node)), cells)
    cases: Floats = subtree_sums(tree, own.reshape(len(tree), target.n_classes))
    return cases


def _divided_class_cases(
    columns: Sequence[Column],
    data: Columns,
    target: Classes,
    grid: WeightGrid,
    tree: Tree,
) -> Floats:
    """Count the cases of each class where some go down every branch, natively."""
    nodes = np.flatnonzero(tree.n_children)
    shares = np.zeros(len(tree))
    if len(nodes):
        splits, child = finished_splits(tree, nodes)
        router = Router(columns, splits)
        _, branch, share = router.every_branch(np.arange(len(nodes)))
        shares[child[branch]] = share
    cases: Floats = extension().class_cases(
        **table_arguments(columns, data, target.labels, target.n_classes, grid),
        tree=native_arrays(tree),
        shares=shares,
        options=grid_options(grid),
    )
    return cases


def _all_cases(n_rows: int, grid: WeightGrid) -> Cases:
    """Return all rows that have a weight."""
    if grid.weights is None:
        return Cases(np.arange(n_rows, dtype=np.intp))
    row = np.flatnonzero(grid.weights)
    return Cases(row, grid.weights[row])


def countable_column(
    column: Column, data: NDArray[Any], counted: NDArray[np.bool_] | None
) -> Countable:
    """Prepare a column for counting; rows that are not ``counted`` are absent."""
    if not column.is_numeric:
        return Countable(data, column.missing_code + 1, np.empty(0))
    numbers = data.astype(np.float64, copy=False)
    known = ~np.isnan(numbers)
    if counted is not None:
        known &= counted
    values, rank = np.unique(numbers[known], return_inverse=True)
    dtype = np.promote_types(np.min_scalar_type(len(values)), np.uint8)
    codes = np.full(len(numbers), len(values), dtype=dtype)
    codes[known] = rank
    return Countable(codes, len(values) + 1, values)
