"""Growing of trees in the compiled extension: arguments and results as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.conventions.threshold_positions import POSITIONS
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Quantities, Scale
from branchwise.data.weights import WeightGrid
from branchwise.grow import many_values
from branchwise.grow.choose import few_values, splits_by_rank
from branchwise.grow.criteria import SERIES, ImpuritySums64
from branchwise.grow.moments import gain_unit
from branchwise.grow.native_table import (
    cell_arguments,
    grid_options,
    table_arguments,
)
from branchwise.native import available, extension, optional_array, plain_array
from branchwise.recipe import Recipe
from branchwise.tree.tree import Tree

if TYPE_CHECKING:
    from branchwise.grow.draws import ColumnDraws

#: Cells (rows x columns) that a node must have to be divided among threads.
WORTH_SHARING = 1 << 18


def serves(recipe: Recipe, columns: Sequence[Column] = ()) -> bool:
    """Whether the native kernel supports this recipe and is to be used."""
    if recipe.branching == "groups" and any(c.kind == "ordinal" for c in columns):
        return False  # it may put any values together
    return isinstance(recipe.criterion, str) and available()


def holds(columns: Sequence[Column], n_classes: int, n_rows: int) -> bool:
    """Whether the native kernel can hold tables of all values and classes.

    Their size must be in proportion to the rows; the reference stores only the values
    that occur.
    """
    n_codes = max((column.missing_code + 1 for column in columns), default=1)
    fits: bool = extension().holds(n_codes, n_classes, n_rows)
    return fits


@dataclass(frozen=True)
class _Searched:
    """A table as splits are searched for in it: ordered categories are ranks."""

    given: Sequence[Column]
    columns: Sequence[Column]
    data: Columns

    @classmethod
    def of(cls, columns: Sequence[Column], data: Columns, recipe: Recipe) -> _Searched:
        if not splits_by_rank(columns, recipe):
            return cls(columns, columns, data)
        from branchwise.grow import ranks  # noqa: PLC0415  (loaded when needed)

        searched = ranks.ranked_columns(columns)
        return cls(columns, searched, ranks.ranks_of_codes(columns, data))

    def tree(self, arrays: dict[str, Any]) -> Tree:
        """Return the tree of these arrays, with the codes of the given columns."""
        tree = Tree(**arrays)
        if self.columns is self.given:
            return tree
        from branchwise.grow import ranks  # noqa: PLC0415  (loaded when needed)

        return ranks.tree_in_codes(tree, self.given)


def grow_native(
    columns: Sequence[Column],
    data: Columns,
    labels: Ints,
    n_classes: int,
    grid: WeightGrid,
    recipe: Recipe,
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
    drawn: ColumnDraws | None = None,
    times: NDArray[np.uint8] | None = None,
) -> Tree | None:
    """Grow the same tree as the reference.

    With ``times``, rows count as if each were repeated so often. None if a p-value is
    so close to its limit that only the reference can tell.
    """
    table = _Searched.of(columns, data, recipe)
    arrays = extension().grow(
        **table_arguments(table.columns, table.data, labels, n_classes, grid),
        times=optional_array(times),
        options=_class_options(table.columns, grid, recipe, n_threads, drawn),
        progress=progress,
    )
    return None if arrays is None else table.tree(arrays)


class BitForest:
    """A table as bits, from which the trees of a forest are grown."""

    def __init__(self, forest: Any) -> None:
        self._forest = forest

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        data: Columns,
        labels: Ints,
        n_classes: int,
        order: Ints,
        grid: WeightGrid,
        recipe: Recipe,
        drawn: ColumnDraws | None,
    ) -> BitForest | None:
        """Return the table; None where its rows cannot be bits.

        ``order`` has the rows by rank, and ``grid`` is that of a sample.
        """
        if splits_by_rank(columns, recipe):
            return None
        table = table_arguments(columns, data, labels, n_classes, grid)
        del table["weights"]
        forest = extension().bit_forest(
            **table,
            order=plain_array(order),
            n_drawn=int(grid.n_cases),
            options=_class_options(columns, grid, recipe, 1, drawn),
        )
        return None if forest is None else cls(forest)

    def tree(
        self,
        columns: Ints,
        sample_key: int,
        draw_key: int,
        progress: Callable[[int], None] | None,
    ) -> Tree:
        """Grow a tree from a bootstrap sample, with the columns in this order.

        The tree has the columns of the table.
        """
        arrays = self._forest.grow(columns.tolist(), sample_key, draw_key, progress)
        return Tree(**arrays)


def grow_numbers(
    columns: Sequence[Column],
    data: Columns,
    target: Quantities,
    grid: WeightGrid,
    recipe: Recipe,
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
    drawn: ColumnDraws | None = None,
    times: NDArray[np.uint8] | None = None,
    summarised: bool = False,
) -> Tree | None:
    """Grow the same tree as the reference from rows that have numbers.

    With ``times``, rows count as if each were repeated so often. The weights of its
    nodes are their moments; if ``summarised``, nodes have weight, mean and deviation
    instead, which takes less memory. None as in :func:`grow_native`.
    """
    scale, values = target.scale, target.values
    if grid.weights is not None:
        # Rows without weight are absent, and their numbers may be anything.
        values = np.where(grid.weights > 0, values, 0.0)
    table = _Searched.of(columns, data, recipe)
    options = {
        **_options(table.columns, grid, recipe, n_threads, drawn),
        "min_gain": float(recipe.min_gain / gain_unit(scale, recipe.criterion)),
        **_limbs(scale),
        "case_bits": math.frexp(scale.n_cases)[1],
        "summarised": summarised,
        "unit": scale.unit,
    }
    arrays = extension().grow_numbers(
        **cell_arguments(table.columns, table.data, grid),
        values=plain_array(values),
        times=optional_array(times),
        options=options,
        progress=progress,
    )
    return None if arrays is None else table.tree(arrays)


def summarise(scale: Scale, moments: Floats) -> tuple[Floats, Floats]:
    """Return the means of nodes, and their variances in the unit squared.

    They are those of ``scale``, which takes one node at a time.
    """
    if not available():
        return scale.means(moments), scale.variances(moments)
    means, variances = np.empty(len(moments)), np.empty(len(moments))
    extension().summarise(
        plain_array(moments), scale.weight_step, **_limbs(scale),
        unit=scale.unit, means=means, variances=variances,
    )  # fmt: skip
    return means, variances


def _limbs(scale: Scale) -> dict[str, list[float]]:
    return {
        "sum_exponents": [float(exponent) for exponent in scale.sums.exponents],
        "square_exponents": [float(exponent) for exponent in scale.squares.exponents],
    }


def _class_options(
    columns: Sequence[Column],
    grid: WeightGrid,
    recipe: Recipe,
    n_threads: int,
    drawn: ColumnDraws | None,
) -> dict[str, Any]:
    return {
        **_options(columns, grid, recipe, n_threads, drawn),
        "min_gain": float(recipe.min_gain),
        "bits": ImpuritySums64(grid.total, grid.whole, table=False).bits,
        "total": float(grid.total),
        "whole": grid.whole,
    }


def _options(
    columns: Sequence[Column],
    grid: WeightGrid,
    recipe: Recipe,
    n_threads: int,
    drawn: ColumnDraws | None,
) -> dict[str, Any]:
    if drawn is not None:
        drawn.check(recipe.branching)
    n_cases = grid.total if recipe.weights_are_cases else grid.n_cases
    p_value = recipe.max_p_value
    at_random = drawn is not None and drawn.random_splits
    many = any(len(column.categories) > many_values.FEW_VALUES for column in columns)
    return {
        **grid_options(grid),
        "weights_are_cases": recipe.weights_are_cases,
        "criterion": recipe.criterion_name,
        "max_depth": -1
        if recipe.max_depth is None
        else min(int(recipe.max_depth), 2**62),
        "cases_to_split": float(recipe.cases_to_split(n_cases)),
        "cases_in_leaf": float(recipe.cases_in_leaf(n_cases)),
        "cases_in_branch": float(recipe.cases_in_branch(n_cases)),
        "weight_in_leaf": float(recipe.weight_in_leaf(grid.total)),
        "branching": recipe.branching,
        "quinlan_thresholds": recipe.quinlan_thresholds,
        "average_gain": recipe.average_gain,
        "corrects_values": recipe.corrects_values and not at_random and many,
        "few_values_to_group": many_values.FEW_VALUES,
        "positions": [
            POSITIONS.index(column.position(recipe.threshold)) for column in columns
        ],
        "few_values": few_values(columns, n_cases).tolist(),
        "missing": recipe.missing,
        "unseen": recipe.unseen,
        "tests_splits": recipe.tests_splits,
        "max_log_p": float(np.log(1.0 if p_value is None else p_value)),
        "max_features": 0 if drawn is None else drawn.max_features,
        "draw_key": 0 if drawn is None else drawn.key,
        "random_splits": at_random,
        "series": list(SERIES),
        "n_threads": n_threads,
        "worth_sharing": WORTH_SHARING,
    }
