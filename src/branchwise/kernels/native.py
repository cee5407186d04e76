"""The compiled twin: hands arrays over, and gets the arrays of a tree back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.criteria import BUILT_IN, SERIES, Masses64
from branchwise.deciding import few_values
from branchwise.extension import available, extension, plain_array
from branchwise.missing import POLICIES, UNSEEN_POLICIES
from branchwise.prune.error_based import Estimate
from branchwise.recipes import BRANCHINGS, Recipe
from branchwise.table.schema import Column, Columns
from branchwise.table.weights import WeightGrid
from branchwise.tree import ARRAYS, Tree

#: The compiled walk writes class codes as bytes, and one code is not a class.
_MOST_LABELS = 255

#: Tables are at least so many codes long, as far as the border is concerned.
_LEAST_CODES = 64

#: Cells (rows x columns) that a node must have for threads to share it out.
WORTH_SHARING = 1 << 18


def serves(recipe: Recipe) -> bool:
    """Whether the compiled twin is to grow this recipe."""
    known = (
        recipe.scoring.function is None
        and recipe.scoring.name in BUILT_IN
        and recipe.quinlan_cuts == recipe.average_gain
        and not (recipe.quinlan_cuts and recipe.criterion != "gain_ratio")
        and recipe.min_significance is None
        and recipe.missing in UNSEEN_POLICIES
    )
    return known and available()


def holds(columns: Sequence[Column], n_classes: int, n_rows: int) -> bool:
    """Whether the compiled twin can hold tables of all values and classes.

    They must be in proportion to the rows; the reference keeps what rows have alone.
    """
    n_codes = max((column.missing_code + 1 for column in columns), default=1)
    most: int = extension().most_cells(n_rows)
    return max(n_codes, _LEAST_CODES) * n_classes <= most


def grow_native(
    columns: Sequence[Column],
    data: Columns,
    labels: Ints,
    n_classes: int,
    grid: WeightGrid,
    recipe: Recipe,
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Tree:
    """Grow the tree that the reference would grow."""
    masses = Masses64(grid.total, grid.whole, table=False)
    n_cases = grid.total if recipe.weights_are_cases else grid.n_cases
    arrays = extension().grow(
        columns=_arrays(data),
        n_codes=[column.missing_code + 1 for column in columns],
        labels=labels.astype(np.uint32),
        n_classes=n_classes,
        weights=_weights(grid),
        fractions=grid.fractions,
        weight_step=grid.step,
        case_step=grid.case_step,
        weights_are_cases=recipe.weights_are_cases,
        criterion=BUILT_IN.index(recipe.scoring.name),
        max_depth=-1 if recipe.max_depth is None else min(int(recipe.max_depth), 2**62),
        cases_to_split=float(recipe.cases_to_split(n_cases)),
        cases_in_leaf=float(recipe.cases_in_leaf(n_cases)),
        cases_in_branch=float(recipe.cases_in_branch(n_cases)),
        branching=BRANCHINGS.index(recipe.branching),
        quinlan=recipe.quinlan_cuts,
        cut_at_value=recipe.cut == "value",
        few_values=few_values(columns, n_cases).tolist(),
        min_gain=float(recipe.min_gain),
        missing=POLICIES.index(recipe.missing),
        unseen=POLICIES.index(recipe.unseen),
        bits=masses.bits,
        series=list(SERIES),
        total=grid.total,
        whole=grid.whole,
        n_threads=n_threads,
        worth_sharing=WORTH_SHARING,
        progress=progress,
    )
    return Tree(**arrays)


def _arrays(data: Columns) -> list[NDArray[Any]]:
    return [plain_array(cells) for cells in data.data]


def _weights(grid: WeightGrid) -> Floats | None:
    return None if grid.weights is None else plain_array(grid.weights)


def prunes(tree: Tree) -> bool:
    """Whether the compiled twin is to prune this tree: costs it does not know."""
    return tree.arrays == ARRAYS and available()


def prune_native(
    columns: Sequence[Column],
    data: Columns,
    labels: Ints,
    grid: WeightGrid,
    tree: Tree,
    recipe: Recipe,
) -> Tree:
    """Collapse a tree and prune it by estimates of its errors, as the recipe says."""
    prunes = recipe.pruning == "error-based"
    # To collapse a tree takes no estimate, and so no limit of the weight.
    total = float(tree.weights[0].sum()) if prunes else 0.0
    estimate = Estimate(recipe.confidence, total)
    arrays = extension().prune(
        columns=_arrays(data),
        n_codes_of_columns=[column.missing_code + 1 for column in columns],
        labels=labels.astype(np.uint32),
        n_classes=tree.weights.shape[1],
        row_weights=_weights(grid),
        fractions=grid.fractions,
        weight_step=grid.step,
        case_step=grid.case_step,
        **{spec.name: plain_array(getattr(tree, spec.name)) for spec in ARRAYS},
        log_confidence=math.log(estimate.confidence),
        z=estimate.z,
        bits=estimate.bits,
        slack=estimate.slack,
        collapses=recipe.collapse,
        prunes=prunes,
        raises=recipe.raise_subtrees,
        new_values=recipe.branching == "values",
    )
    return Tree(**arrays)


class NativeWalk:
    """Walks rows down a tree, in the compiled twin."""

    def __init__(self, columns: Sequence[Column], tree: Tree) -> None:
        n_classes = tree.weights.shape[1]
        self._labels_fit = n_classes <= _MOST_LABELS
        labels = tree.label if self._labels_fit else tree.label[:0]
        # All rows stay at the root of a tree that asks nothing.
        self._root_label = int(tree.label[0]) if tree.is_leaf[0] else None
        self._walk = extension().Walk(
            column=_as_int64(tree.column),
            cut=plain_array(tree.cut),
            n_children=_as_int64(tree.n_children),
            missing_to=_as_int64(tree.missing_to),
            unseen_to=_as_int64(tree.unseen_to),
            n_codes=_as_int64(tree.n_codes),
            codes=_as_int64(tree.codes),
            sizes=tree.weights.sum(axis=1),
            labels=labels.astype(np.uint8),
            values=[0 if c.is_numeric else len(c.categories) for c in columns],
        )

    def labels(self, data: Columns) -> NDArray[np.uint8] | None:
        """Return class codes; None where only the parts of rows can tell."""
        if not self._labels_fit:
            return None
        if self._root_label is not None:
            return np.full(data.n_rows, self._root_label, dtype=np.uint8)
        labels: NDArray[np.uint8] | None = self._walk.label(
            columns=_arrays(data), n_rows=data.n_rows
        )
        return labels

    def reached(self, data: Columns) -> NDArray[np.uint32]:
        """Return the node where each row arrives; a row must not be divided."""
        return self._arrive(data)[0]

    def arrive(self, data: Columns) -> tuple[Ints, Ints, Floats]:
        """Return where rows arrive: (row, node, share), sorted by row, then node."""
        reached, *parts = self._arrive(data)
        row = np.arange(data.n_rows, dtype=np.intp)
        node: Ints = reached.astype(np.intp)
        share = np.ones(data.n_rows)
        if not parts or not len(parts[0]):
            return row, node, share
        whole = reached != extension().DIVIDED
        row = np.concatenate([row[whole], parts[0]])
        node = np.concatenate([node[whole], parts[1]])
        share = np.concatenate([share[whole], parts[2]])
        # The parts of a row lie together already, in order: a stable sort will do.
        order = np.argsort(row, kind="stable")
        return row[order], node[order], share[order]

    def _arrive(self, data: Columns) -> tuple[NDArray[Any], ...]:
        """Return where whole rows arrive, and the parts of the others if there are."""
        if self._root_label is not None:
            return (np.zeros(data.n_rows, dtype=np.uint32),)
        arrived: tuple[NDArray[Any], ...] = self._walk.arrive(
            columns=_arrays(data), n_rows=data.n_rows
        )
        return arrived


def _as_int64(entries: Ints) -> NDArray[np.int64]:
    return plain_array(entries.astype(np.int64, copy=False))
