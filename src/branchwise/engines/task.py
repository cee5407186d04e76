"""What is wanted of rows that lie elsewhere, and what must be known to count them.

A :class:`Task` says which column is to be predicted and how the others are to be
taken. One look at all rows turns it into a :class:`Plan`: the schema, the numbers
that columns are cut between, and the grids of weights and targets. With the plan
every part of the rows can be encoded and counted by itself, wherever it lies, and
the counts of all parts add up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from branchwise.counts import Floats
from branchwise.engines.sketch import MAX_EXACT
from branchwise.errors import ParameterError
from branchwise.table.bins import Edges
from branchwise.table.read import check_names
from branchwise.table.schema import Schema, Value
from branchwise.table.target import Classes, Quantities, Scale, Spread, scale_of
from branchwise.table.weights import WeightGrid, on_grid


@dataclass(frozen=True)
class Task:
    """What is to be learnt from a table that is elsewhere.

    Parameters
    ----------
    target, weight : str
        The columns of what is to be predicted and, if there is one, of the weights.
    ignored : tuple of str
        Columns that are no attributes.
    categorical_features, categories, classes
        As in :func:`~branchwise.fitting.fit_tree`.
    class_weight : "balanced", dict or None
        What the weights of classes are multiplied with.
    priors : dict or None
        The share of all weight that each class is to have.
    criterion : str or None
        The criterion if the target is a number; None where it is a class.
    weights_are_cases : bool
        Whether a row of weight 2 is two cases.
    divides : bool
        Whether cases with missing values go down every branch.
    refuses_missing : bool
        Whether missing values are an error.
    max_bins : int or None
        The most bins of a numeric column; None is no limit.
    max_exact : int
        The most distinct numbers of a column that are kept apart.
    """

    target: str
    weight: str | None = None
    ignored: tuple[str, ...] = ()
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    classes: Sequence[Value] | None = None
    class_weight: object = None
    priors: object = None
    criterion: str | None = None
    weights_are_cases: bool = False
    divides: bool = False
    refuses_missing: bool = False
    max_bins: int | None = None
    max_exact: int = MAX_EXACT

    @property
    def predicts_numbers(self) -> bool:
        """Whether the target is a number."""
        return self.criterion is not None

    @property
    def no_attributes(self) -> frozenset[str]:
        """The columns that are not attributes."""
        special = {self.target, *self.ignored}
        return frozenset(special if self.weight is None else special | {self.weight})


def check_columns(task: Task, label: str, names: Sequence[str]) -> None:
    """Refuse names that are no columns, and to leave out what is to be predicted."""
    weight = [] if task.weight is None else [task.weight]
    check_names(label, names, [task.target, *weight, *task.ignored])
    if task.target in task.ignored:
        raise ParameterError(
            f"ignore must name attributes. Got {task.target!r}, which is the target."
        )


@dataclass(frozen=True)
class Plan:
    """All that must be known to encode and to count a part of the rows.

    ``values`` has, for every numeric column, the numbers that its codes stand for:
    the distinct numbers, or where ``edges`` has bins for it their positions.
    ``class_factors`` are what weights are
    multiplied with, by class. ``grid`` has no weights: they are in the rows; a step of
    0 leaves them as they are. ``strangers`` says that rows may have values that the
    schema does not know: those are rows to prune with.
    """

    task: Task
    schema: Schema
    n_rows: int
    grid: WeightGrid
    values: Mapping[int, Floats] = field(default_factory=dict)
    edges: Edges = field(default_factory=dict)
    class_factors: Floats | None = None
    spread: Spread | None = None
    strangers: bool = False

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 where numbers are predicted."""
        return len(self.schema.classes)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights that are not all 1."""
        return self.task.weight is not None or self.class_factors is not None

    def n_codes(self, column: int) -> int:
        """Return how many codes a column has, that of missing values included."""
        if column in self.values:
            return len(self.values[column]) + 1
        return self.schema.columns[column].missing_code + 1 + self.strangers

    def weigh(self, weights: Floats | None, labels: Any) -> Floats | None:
        """Put the weights of some rows on the grid."""
        if not self.weighted:
            return None
        given = np.ones(len(labels)) if weights is None else weights
        if self.class_factors is not None:
            given = given * self.class_factors[labels]
        if not self.grid.step:
            return given
        return on_grid(given / self.grid.unit, self.grid.step)

    def grid_of(self, weights: Floats | None) -> WeightGrid:
        """Return the grid with the weights of some rows, already on it."""
        return replace(self.grid, weights=weights)

    def target_of(self, target: Any) -> Classes | Quantities:
        """Make what is to be predicted ready to be counted."""
        if self.scale is None:
            return Classes(target.astype(np.intp), self.n_classes)
        return Quantities(self.scale.in_units(target), self.scale)

    @cached_property
    def scale(self) -> Scale | None:
        """How numbers to be predicted are counted; None where classes are."""
        if self.spread is None:
            return None
        return scale_of(self.spread, self.grid, self.weighted)
