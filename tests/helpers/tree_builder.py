"""Trees by hand, child by child."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema, Value
from branchwise.errors import DataError
from branchwise.recipe.parameters import Policy
from branchwise.tree.splits import ABOVE, AT_MOST, STOP, routes
from branchwise.tree.tree import Tree
from branchwise.tree.validation import validate


@dataclass
class _Draft:
    column: int | None
    threshold: float
    codes: list[int]
    weights: Floats
    cases: float
    children: list[int]
    class_cases: Floats | None = None


class TreeBuilder:
    """Build a tree by hand, child by child.

    Examples
    --------
    >>> from branchwise.data.table_schema import Column, Schema
    >>> schema = Schema(
    ...     (Column("wind", "categorical", ("strong", "weak")),), ("no", "yes")
    ... )
    >>> builder = TreeBuilder(schema, weights=[5, 9])
    >>> _ = builder.child(0, "wind", values=["strong"], weights=[3, 3])
    >>> _ = builder.child(0, "wind", values=["weak"], weights=[2, 6])
    >>> tree = builder.build()
    >>> len(tree), tree.n_leaves, tree.max_depth
    (3, 2, 1)
    """

    def __init__(
        self,
        schema: Schema,
        weights: Sequence[float],
        cases: float | None = None,
        class_cases: Sequence[float] | None = None,
    ) -> None:
        self.schema = schema
        self._columns = {name: index for index, name in enumerate(schema.names)}
        self._drafts = [self._draft([], weights, cases, class_cases)]

    def child(
        self,
        parent: int,
        column: str,
        *,
        weights: Sequence[float],
        values: Sequence[Value] | None = None,
        at_most: float | None = None,
        above: float | None = None,
        missing: bool = False,
        cases: float | None = None,
        class_cases: Sequence[float] | None = None,
    ) -> int:
        """Add a child where ``column`` has one of ``values``, or a number up to or
        above a threshold, or is missing; return the number of the node.

        ``weights`` are those of the classes. ``cases`` says how many cases they are
        of, ``class_cases`` how many of each class, for all nodes or for none; by
        default every case weighs 1.
        """
        index = self._index(column)
        given = [values is not None, at_most is not None, above is not None, missing]
        if sum(given) != 1:
            raise DataError(
                f"A child on {column!r} needs exactly one of values, at_most, above "
                f"and missing. Got {sum(given)}."
            )
        if not 0 <= parent < len(self._drafts):
            raise DataError(f"There is no node {parent} to give a child.")
        draft = self._drafts[parent]
        codes = self._codes(index, values, at_most is not None, missing)
        child = self._draft(codes, weights, cases, class_cases)
        numbers = [number for number in (at_most, above) if number is not None]
        threshold = float(numbers[0]) if numbers else np.nan
        self._agree(draft, parent, index, threshold)
        self._drafts.append(child)
        draft.children.append(len(self._drafts) - 1)
        return len(self._drafts) - 1

    def build(self, missing: Policy = "branch", unseen: Policy = "node") -> Tree:
        """Return the tree, its nodes numbered level by level, after checking it."""
        order = [0]
        for node in order:  # grows while it is walked: breadth first
            order.extend(self._drafts[node].children)
        drafts = [self._drafts[node] for node in order]
        n_children = np.array([len(d.children) for d in drafts], dtype=np.intp)
        n_codes = np.array([len(d.codes) for d in drafts], dtype=np.intp)
        weights = np.array([d.weights for d in drafts])
        missing_to = np.full(len(drafts), STOP, dtype=np.intp)
        unseen_to = np.full(len(drafts), STOP, dtype=np.intp)
        split = np.flatnonzero(n_children)
        if len(split):
            starts = (np.cumsum(n_children) - n_children)[split]
            last = starts + n_children[split] - 1
            own = np.where(n_codes[1:][last] == 0, n_children[split] - 1, STOP)
            sizes = weights[1:].sum(axis=1)
            missing_to[split], unseen_to[split] = routes(
                missing, unseen, sizes, starts, own
            )
        tree = Tree(
            np.array([-1 if d.column is None else d.column for d in drafts], np.intp),
            np.array([d.threshold for d in drafts]),
            n_children,
            missing_to,
            unseen_to,
            n_codes,
            np.array([code for d in drafts for code in d.codes], dtype=np.intp),
            weights,
            np.array([d.cases for d in drafts]),
        )
        given = [d.class_cases for d in drafts if d.class_cases is not None]
        if given and len(given) < len(drafts):
            raise DataError(
                f"class_cases must be given for all of the {len(drafts):,} nodes or "
                f"for none. Got it for {len(given):,}."
            )
        if given:
            tree = tree.with_class_cases(np.array(given))
        validate(tree, self.schema)
        return tree

    def _draft(
        self,
        codes: list[int],
        weights: Sequence[float],
        cases: float | None,
        class_cases: Sequence[float] | None,
    ) -> _Draft:
        given = self._by_class("weights", weights)
        counted = None
        if class_cases is not None:
            counted = self._by_class("class_cases", class_cases)
        if cases is None:
            cases = float((given if counted is None else counted).sum())
        return _Draft(None, np.nan, codes, given, float(cases), [], counted)

    def _by_class(self, name: str, amounts: Sequence[float]) -> Floats:
        given = np.asarray(amounts, dtype=np.float64)
        if given.shape != (len(self.schema.classes),):
            raise DataError(
                f"{name} must have one entry for each of the "
                f"{len(self.schema.classes)} classes. Got shape {given.shape}."
            )
        return given

    def _index(self, column: str) -> int:
        if column not in self._columns:
            raise DataError(f"{column!r} is not a column of the schema.")
        return self._columns[column]

    def _agree(self, draft: _Draft, node: int, index: int, threshold: float) -> None:
        """Check that all children of a node have the same column and threshold."""
        if draft.column not in (None, index):
            raise DataError(f"Node {node} has children on another column already.")
        if (
            not np.isnan(threshold)
            and not np.isnan(draft.threshold)
            and draft.threshold != threshold
        ):
            raise DataError(f"Node {node} has the threshold {draft.threshold} already.")
        draft.column = index
        draft.threshold = draft.threshold if np.isnan(threshold) else threshold

    def _codes(
        self, index: int, values: Sequence[Value] | None, at_most: bool, missing: bool
    ) -> list[int]:
        column = self.schema.columns[index]
        if missing:
            return []
        if (values is None) != column.is_numeric:
            needs = "at_most or above" if column.is_numeric else "values"
            raise DataError(f"Column {column.name!r} is {column.kind}: give {needs}.")
        if values is None:
            return [AT_MOST if at_most else ABOVE]
        if not values:
            raise DataError(f"A child on {column.name!r} needs at least one value.")
        for value in values:
            if value not in column.code_of:
                raise DataError(f"{value!r} is not a category of {column.name!r}.")
        return sorted(column.code_of[value] for value in values)
