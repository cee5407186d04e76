"""What-if: the cheapest change of a row that leads to a wanted prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from branchwise.data.one_row import Cells
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.errors import DataError, ParameterError
from branchwise.explain.constraints import LARGEST, Constraints, FeatureDomain, Range
from branchwise.explain.constraints import Cells as CellSet
from branchwise.explain.explanation import (
    decided_by,
    prediction_words,
    probability_list,
    probability_words,
)
from branchwise.explain.goal import Target, target_of
from branchwise.explain.path import condition_dict
from branchwise.explain.solver import Found, Search, changed_row
from branchwise.text.blocks import Block, Heading, Items, Paragraph
from branchwise.text.bounds import shown
from branchwise.text.conditions import Condition, one_of
from branchwise.text.document import Document
from branchwise.text.label_words import called, title_of, unit_of
from branchwise.text.words import amount, listed, word
from branchwise.train.fitted_tree import FittedTree


@dataclass(frozen=True)
class Change:
    """One cell that changes, to the nearest value that will do; None is missing.

    ``conditions`` are all values with the same effect and cost, everything else being
    equal; ``size`` is how far a number moves in units of its scale, ``whole`` says that
    only whole numbers will do.
    """

    column: str
    old: Value | None
    new: Value | None
    conditions: tuple[Condition, ...]
    cost: float
    size: float
    whole: bool = False

    def __str__(self) -> str:
        old = "missing" if self.old is None else word(called(self._of, self.old))
        name = word(title_of(self._of, self.column))
        return f"{name} from {old} to {self._wanted()}"

    @property
    def _of(self) -> Column | None:
        """The column, if it is known."""
        return next((c.of for c in self.conditions if c.of is not None), None)

    def _bound(self, value: float) -> str:
        return word(called(self._of, value))

    def _least(self, value: float) -> str:
        """Write the lower of two bounds; the unit comes last."""
        return word(called(self._of, value, with_unit=False))

    def _wanted(self) -> str:
        if self.new is None:
            return "missing"
        bounds = {c.op: c.value for c in self.conditions}
        above, at_most = bounds.get(">"), bounds.get("<=")
        if self.whole and {">", "<="} & bounds.keys():
            return _whole_words(above, at_most, self.conditions[0].of)
        if isinstance(above, (int, float)) and isinstance(at_most, (int, float)):
            return f"more than {self._least(above)} and at most {self._bound(at_most)}"
        if isinstance(above, (int, float)):
            return f"more than {self._bound(above)}"
        if isinstance(at_most, (int, float)):
            return f"{self._bound(at_most)} or less"
        if "is known" in bounds:
            dated = self._of is not None and self._of.date is not None
            return "any date" if dated else "any number"
        values = bounds.get("in")
        if isinstance(values, tuple):
            return f"one of {listed([called(self._of, value) for value in values])}"
        return word(called(self._of, self.new))

    def to_dict(self) -> dict[str, Any]:
        """Return the change in plain values."""
        return {
            "column": self.column,
            "old": self.old,
            "new": self.new,
            "conditions": [condition_dict(c) for c in self.conditions],
            "cost": self.cost,
            "size": self.size,
            "text": str(self),
        }


@dataclass(frozen=True)
class Alternative:
    """A row with the wanted prediction, and its differences from the given row.

    ``cost`` and ``size`` are sums over the changes, ``nodes`` those that the new row
    reaches; ``decided_by`` says where costs or smoothed probabilities decided.
    """

    changes: tuple[Change, ...]
    row: dict[str, Value | None]
    prediction: Value
    probabilities: dict[Value, float]
    cost: float
    size: float
    nodes: tuple[int, ...]
    decided_by: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the alternative in plain values."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "row": self.row,
            "prediction": self.prediction,
            "probabilities": probability_list(self.probabilities),
            "cost": self.cost,
            "size": self.size,
            "nodes": list(self.nodes),
            **({"decided_by": self.decided_by} if self.decided_by else {}),
        }


@dataclass(frozen=True, repr=False)
class WhatIf(Document):
    """The smallest change of a row that leads to a wanted prediction.

    ``row``, ``prediction`` and ``probabilities`` are those of the row as it is;
    ``alternatives`` the cheapest ways to the target, to different leaves, best first.
    ``reason`` says why there is none, or why nothing needs to change; ``decided_by``
    where costs or smoothed probabilities decided on the present prediction; ``note``
    which dates are left as they are.
    """

    row: dict[str, Value | None]
    prediction: Value
    probabilities: dict[Value, float]
    target: str
    alternatives: tuple[Alternative, ...]
    reason: str | None = None
    decided_by: str = ""
    schema: Schema | None = field(default=None, repr=False, compare=False)
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.alternatives)

    @property
    def best(self) -> Alternative:
        """The cheapest alternative."""
        if not self.alternatives:
            raise DataError(f"No change gives {self.target}. {self.reason}")
        return self.alternatives[0]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of the cheapest alternative."""
        return self.best.changes

    def __repr__(self) -> str:
        if not self.alternatives:
            return f"<what if: no way to {self.target}>"
        changes = "; ".join(str(change) for change in self.changes)
        return f"<what if: {changes or 'nothing changes'}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        yield Paragraph(f"Now: {_prediction_text(self, self.schema)}")
        if self.reason is not None:
            yield Paragraph(self.reason)
        for position, one in enumerate(self.alternatives):
            if one.changes:
                comma = "," if one.decided_by else ""
                also = "also " if position else ""
                said = _prediction_text(one, self.schema)
                text = f"{said}{comma} {also}if this changes:"
                yield Heading(text)
                yield Items([str(change) for change in one.changes])
                yield Paragraph(f"Cost {amount(one.cost)}.")
        if self.note:
            yield Paragraph(self.note)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {
            "row": self.row,
            "prediction": self.prediction,
            "probabilities": probability_list(self.probabilities),
            "target": self.target,
            "alternatives": [one.to_dict() for one in self.alternatives],
            "reason": self.reason,
            **({"decided_by": self.decided_by} if self.decided_by else {}),
            **({"note": self.note} if self.note else {}),
        }


def _prediction_text(result: WhatIf | Alternative, schema: Schema | None) -> str:
    """Return a prediction with its probabilities, and the reason if not those."""
    reason = f"; {result.decided_by}" if result.decided_by else ""
    probabilities = probability_words(result.probabilities, schema)
    return f"{prediction_words(result.prediction, schema)}{probabilities}{reason}"


def _whole_words(above: Any, at_most: Any, column: Column | None) -> str:
    low = high = ""
    if above is not None:
        low = word(called(column, shown(column, float(math.floor(above) + 1))))
    if at_most is not None:
        high = word(called(column, shown(column, float(math.floor(at_most)))))
    if low == high:
        return low
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"{high} or less"


@dataclass(frozen=True)
class WhatIfQuery:
    """One row and a model: the search for changes of its prediction."""

    model: FittedTree
    data: Columns
    cells: Cells

    def what_if(
        self, target: object, constraints: Constraints, how_many: int
    ) -> WhatIf:
        """Find the cheapest changes that reach a target."""
        self._check(how_many)
        model = self.model
        constraints = constraints.checked(model.schema, model.recipe)
        unlimited = self._with_dates(constraints.unlimited)
        constraints = self._with_dates(constraints)
        prediction, probabilities, by = self.outcome(self.data)
        wanted = target_of(target, model.schema, model.tree, prediction)
        domains = self._domains(constraints)
        found = self._search(wanted, domains).best(how_many)
        ways = tuple(self._alternative(one, domains) for one in found)
        reason = None
        if not ways:
            reason = self._why_not(wanted, constraints, unlimited)
        elif not ways[0].changes:
            ways, reason = ways[:1], f"The prediction is {wanted.words} already."
        return WhatIf(
            self._row(),
            prediction,
            probabilities,
            wanted.words,
            ways,
            reason,
            by,
            self.model.schema,
            self._about_dates(),
        )

    @property
    def _dates(self) -> list[str]:
        """The columns of dates from which the tree derives what it splits on."""
        columns = [self.model.schema.columns[at] for at in self.model.tree.used_columns]
        return sorted({c.given_as for c in columns if c.date_feature is not None})

    def _with_dates(self, constraints: Constraints) -> Constraints:
        """Leave dates as they are of which several columns are derived.

        A change of one alone, such as the weekday, may be that of no date.
        """
        dates = self._dates
        if not dates:
            return constraints
        columns = self.model.schema.columns
        left = [column.name for column in columns if column.given_as in dates]
        return replace(constraints, immutable={*constraints.immutable, *left})

    def _row(self) -> dict[str, Value | None]:
        """Return the row without what is derived from its dates."""
        columns = self.model.schema.columns
        derived = {column.name for column in columns if column.date_feature is not None}
        return {n: value for n, value in self.cells.row(0).items() if n not in derived}

    def _about_dates(self) -> str:
        dates = self._dates
        if not dates:
            return ""
        return (
            f"Dates are left as they are where the tree splits on what is derived from "
            f"them: {listed(dates)}."
        )

    def _check(self, how_many: object) -> None:
        if self.data.n_rows != 1:
            raise DataError(
                f"what_if takes one row. Got {self.data.n_rows:,}; pass one of them."
            )
        if isinstance(how_many, bool) or not isinstance(how_many, int) or how_many < 1:
            raise ParameterError(
                f"how_many must be a whole number of at least 1. Got {how_many!r}."
            )

    def outcome(self, data: Columns) -> tuple[Value, dict[Value, float], str]:
        """Return the model's prediction, probabilities, and what else decided."""
        walker, classes = self.model.walker, self.model.schema.classes
        arrivals = walker.walk(data)
        if self.model.tree.is_regression:
            return float(walker.numbers(arrivals)[0]) + 0.0, {}, ""
        label = classes[int(walker.labels(arrivals)[0])]
        probabilities = walker.distribution(arrivals)[0]
        reasons = [self.model.reasons.get(node, "") for node in arrivals.node.tolist()]
        by = decided_by(self.model, probabilities, label, reasons)
        return label, dict(zip(classes, probabilities.tolist(), strict=True)), by

    def _domains(self, constraints: Constraints) -> dict[int, FeatureDomain]:
        tree = self.model.tree
        values = {index: self.cells.value(index, 0) for index in tree.used_columns}
        return constraints.domains(self.model.schema, tree, self.data, values)

    def _search(self, target: Target, domains: dict[int, FeatureDomain]) -> Search:
        goal = target.goal(self.model.tree, self.model.recipe)
        accepts = partial(target.accepts, self.model.walker)
        return Search(self.model.tree, domains, goal, accepts, self.data)

    def _alternative(
        self, found: Found, domains: dict[int, FeatureDomain]
    ) -> Alternative:
        box = found.box
        new = changed_row(self.data, box, domains)
        prediction, probabilities, by = self.outcome(new)
        changes = tuple(
            _change(domains[index], box.cells[index], box.cost_functions[index].cell)
            for index in sorted(box.cost_functions)
        )
        row = self._row() | {change.column: change.new for change in changes}
        return Alternative(
            changes, row, prediction, probabilities, box.cost, box.size, found.nodes, by
        )

    def _why_not(
        self, target: Target, constraints: Constraints, unlimited: Constraints
    ) -> str:
        """Return why no change leads to the target."""
        free = self._domains(unlimited)
        found = self._search(target, free).best()
        if found:
            changes = self._alternative(found[0], free).changes
            stuck = {c.column: constraints.forbids(c.column) for c in changes}
            reasons = [f"{word(c)} is {why}" for c, why in stuck.items() if why]
            needed = "; ".join(str(change) for change in changes)
            limits = f", but {' and '.join(reasons)}" if reasons else ""
            return (
                f"No allowed change gives {target.words}. Without limits the smallest "
                f"would be: {needed}{limits}."
            )
        if not np.any(target.goal(self.model.tree, self.model.recipe).right):
            return f"No change gives {target.words}: no node of the tree predicts it."
        if self._dates:
            return f"No change gives {target.words} while the dates stay as they are."
        if constraints.allow_missing or self.model.recipe.missing == "error":
            return f"No change gives {target.words}: no row reaches a node with it."
        return (
            f"No change gives {target.words}: only rows with missing values may get "
            "it. allow_missing=True proposes them."
        )


def _change(domain: FeatureDomain, cells: CellSet, cell: float | None) -> Change:
    name = domain.column.name
    cost_function = domain.cost_function(cells)
    cost, size = (0.0, 0.0) if cost_function is None else cost_function[:2]
    if cell is None:
        new: Value | None = None
        conditions: tuple[Condition, ...] = (
            Condition(name, "is missing", of=_plainly(domain.column)),
        )
    elif isinstance(cells, Range):
        new = shown(domain.column, float(cell))
        conditions = _bounds(domain.column, cells)
    else:
        values = domain.column.categories
        new = values[int(cell)]
        same = [
            value
            for code, value in enumerate(values)
            if cells.mask >> code & 1 and domain.cost(domain.value, value) == cost
        ]
        conditions = (replace(one_of(name, tuple(same)), of=domain.column),)
    return Change(name, domain.value, new, conditions, cost, size, domain.whole)


def _plainly(column: Column) -> Column | None:
    """Return a column whose bounds are written as they are, if it is needed to."""
    if column.date is not None:
        return column
    if column.label is None and not unit_of(column).name:
        return None
    return replace(column, number_kind="any")


def _bounds(column: Column, cells: Range) -> tuple[Condition, ...]:
    bounds, name = [], column.name
    of = _plainly(column)
    if cells.above > -np.inf:
        bounds.append(Condition(name, ">", cells.above + 0.0, of))
    if cells.at_most < LARGEST:
        bounds.append(Condition(name, "<=", cells.at_most + 0.0, of))
    return tuple(bounds) or (Condition(name, "is known", None, of),)
