"""Growing of trees in the compiled extension: arguments and results as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.schema import Column, Columns
from branchwise.data.weights import WeightGrid
from branchwise.grow.choose import few_values
from branchwise.grow.criteria import SERIES, ImpuritySums64
from branchwise.native import available, extension, optional_array, plain_arrays
from branchwise.recipe import BRANCHINGS, BUILT_IN, POLICIES, UNSEEN_POLICIES, Recipe
from branchwise.tree.tree import Tree

#: Tables are at least so many codes long, as far as the border is concerned.
_LEAST_CODES = 64

#: Cells (rows x columns) that a node must have to be divided among threads.
WORTH_SHARING = 1 << 18


def serves(recipe: Recipe) -> bool:
    """Whether the native kernel supports this recipe and is to be used."""
    known = (
        isinstance(recipe.criterion, str)
        and recipe.criterion_name in BUILT_IN
        and recipe.quinlan_thresholds == recipe.average_gain
        and not (recipe.quinlan_thresholds and recipe.criterion != "gain_ratio")
        and recipe.max_p_value is None
        and recipe.missing in UNSEEN_POLICIES
    )
    return known and available()


def holds(columns: Sequence[Column], n_classes: int, n_rows: int) -> bool:
    """Whether the native kernel can hold tables of all values and classes.

    Their size must be in proportion to the rows; the reference stores only the values
    that occur.
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
    """Grow the same tree as the reference."""
    impurity_sums = ImpuritySums64(grid.total, grid.whole, table=False)
    n_cases = grid.total if recipe.weights_are_cases else grid.n_cases
    arrays = extension().grow(
        columns=plain_arrays(data.data),
        n_codes=[column.missing_code + 1 for column in columns],
        labels=labels.astype(np.uint32),
        n_classes=n_classes,
        weights=optional_array(grid.weights),
        fractions=grid.fractions,
        weight_step=grid.step,
        case_step=grid.case_step,
        weights_are_cases=recipe.weights_are_cases,
        criterion=BUILT_IN.index(recipe.criterion_name),
        max_depth=-1 if recipe.max_depth is None else min(int(recipe.max_depth), 2**62),
        cases_to_split=float(recipe.cases_to_split(n_cases)),
        cases_in_leaf=float(recipe.cases_in_leaf(n_cases)),
        cases_in_branch=float(recipe.cases_in_branch(n_cases)),
        branching=BRANCHINGS.index(recipe.branching),
        quinlan=recipe.quinlan_thresholds,
        threshold_at_value=recipe.threshold == "value",
        few_values=few_values(columns, n_cases).tolist(),
        min_gain=float(recipe.min_gain),
        missing=POLICIES.index(recipe.missing),
        unseen=POLICIES.index(recipe.unseen),
        bits=impurity_sums.bits,
        series=list(SERIES),
        total=grid.total,
        whole=grid.whole,
        n_threads=n_threads,
        worth_sharing=WORTH_SHARING,
        progress=progress,
    )
    return Tree(**arrays)
