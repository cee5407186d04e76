"""Ordered rule lists, which predict by the first rule that holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Columns, Schema, Value
from branchwise.data.target import check_together, learn_target
from branchwise.data.weights import check_weights, weigh
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.grow.counts import add_up
from branchwise.prune.estimates import Estimate
from branchwise.recipe import Recipe
from branchwise.rules.generalise import (
    Candidate,
    Cases,
    Coverage,
    candidates,
    leaf_order,
)
from branchwise.rules.mdl_selection import selected
from branchwise.rules.rule import Rule, path_rules, tree_rules
from branchwise.rules.rule_set import Rules, cell_of, table_of
from branchwise.text.blocks import Block, Table
from branchwise.text.column_conditions import simplified
from branchwise.text.conditions import Condition
from branchwise.text.document import Document, as_text
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import amount, word
from branchwise.train.fitted_tree import FittedTree

#: What the table says in place of the conditions of its last line.
OTHERWISE = "otherwise"
#: ``str`` of a longer table leaves out what follows.
_SHOWN_RULES = 1000


@dataclass(frozen=True)
class Usage:
    """How many rows each rule, and last the default, decides, and how many wrongly.

    ``weighted`` is, where rows had weights, the share of weight that the rules are
    right about, and that of the tree.
    """

    used: Floats
    errors: Floats
    tree_errors: float
    weighted: tuple[float, float] | None = None

    @property
    def accuracy(self) -> float:
        """The share of rows that the rules are right about."""
        return 1.0 - float(self.errors.sum()) / float(self.used.sum())

    @property
    def tree_accuracy(self) -> float:
        """The share of rows that the tree is right about."""
        return 1.0 - self.tree_errors / float(self.used.sum())


@dataclass(frozen=True)
class RuleTable(Framed, Document):
    """How well the rules of a list do, and all of them beside the tree.

    ``default`` is the class of rows that fulfil no rule, ``estimates`` are the
    pessimistic error rates of the rules, ``tree_size`` how many rules and conditions
    the tree has; ``training`` and ``test`` tell how the training rows and those of a
    test fare.
    """

    rules: Rules
    default: Value
    estimates: tuple[float, ...]
    tree_size: tuple[int, int]
    training: Usage
    test: Usage | None = None

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the lines of the rules as lists, a column each.

        ``cases``, ``coverage`` and ``confidence`` are of all training rows that fulfil
        a rule, ``used`` and ``errors`` of those that it decides about.
        """
        rules, left = self.rules, float(self.training.used[-1])
        columns: dict[str, list[Any]] = {
            "rule": list(range(1, len(rules) + 2)),
            "label": [*(rule.label for rule in rules), self.default],
            "cases": [*(rule.n for rule in rules), left],
            "coverage": [
                *(rule.coverage for rule in rules),
                left / float(self.training.used.sum()),
            ],
            "confidence": [
                *(rule.confidence for rule in rules),
                1 - float(self.training.errors[-1]) / left if left else None,
            ],
            "estimated_error": [*self.estimates, None],
            "used": self.training.used.tolist(),
            "errors": self.training.errors.tolist(),
        }
        if self.test is not None:
            columns["test_used"] = self.test.used.tolist()
            columns["test_errors"] = self.test.errors.tolist()
        columns["conditions"] = [*(rule.premise for rule in rules), OTHERWISE]
        return columns

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Sizes and accuracies of the tree and of the rules; the default is no rule.

        Accuracies count rows; where rows had weights there are weighted ones, too.
        """
        n_conditions = sum(len(rule.conditions) for rule in self.rules)
        sides = {
            "tree": (*self.tree_size, self.training.tree_accuracy),
            "rules": (len(self.rules), n_conditions, self.training.accuracy),
        }
        figures: dict[str, dict[str, float]] = {
            name: dict(zip(("rules", "conditions", "accuracy"), side, strict=True))
            for name, side in sides.items()
        }
        _add_weighted(figures, "weighted_accuracy", self.training)
        if self.test is not None:
            figures["tree"]["test_accuracy"] = self.test.tree_accuracy
            figures["rules"]["test_accuracy"] = self.test.accuracy
            _add_weighted(figures, "weighted_test_accuracy", self.test)
        return figures

    def to_dict(self) -> dict[str, Any]:
        """Return the table in plain values."""
        columns = self.to_columns()
        lines = [
            dict(zip(columns, line, strict=True))
            for line in zip(*columns.values(), strict=True)
        ]
        return {"lines": lines, "summary": self.summary}

    def _rules_table(self, limit: int | None = None) -> Table:
        """Return the lines of the rules in words."""
        return table_of(self.to_columns(), limit)

    def _summary_table(self) -> Table:
        sides = self.summary
        head = ["", *(name.replace("_", " ") for name in sides["tree"])]
        rows = [
            [side, *(cell_of(name, number) for name, number in figures.items())]
            for side, figures in sides.items()
        ]
        return Table(head, rows)

    def blocks(self) -> Iterator[Block]:
        """Yield both tables."""
        yield self._rules_table()
        yield self._summary_table()

    def to_text(self) -> str:
        """Return both tables as text; of many rules the first."""
        written = as_text([self._rules_table(_SHOWN_RULES)])
        extra = len(self.rules) + 1 - _SHOWN_RULES
        if extra > 0:
            written += f"\n... ({extra:,} more; to_columns() has all of them)"
        return f"{written}\n\n{as_text([self._summary_table()])}"

    def __repr__(self) -> str:
        sides = [self.training.accuracy, self.training.tree_accuracy]
        rules, tree = (f"{accuracy:.4f}" for accuracy in sides)
        return (
            f"<table of {counted(len(self.rules), 'rule')}, otherwise "
            f"{word(self.default)}: accuracy {rules}, of the tree {tree}>"
        )


def _add_weighted(
    figures: dict[str, dict[str, float]], name: str, usage: Usage
) -> None:
    """Add the accuracy by weight, where rows had weights."""
    if usage.weighted is not None:
        figures["rules"][name], figures["tree"][name] = usage.weighted


def weighted(weights: Floats) -> bool:
    """Whether rows that count have weights other than 1."""
    return not bool(((weights == 0) | (weights == 1)).all())


@dataclass(frozen=True)
class Rows:
    """Encoded rows, their class codes (-1: ``unseen_labels``) and weights."""

    data: Columns
    labels: Ints
    weights: Floats
    unseen_labels: tuple[Value, ...]

    @classmethod
    def of(cls, model: FittedTree, X: object, y: object, sample_weight: object) -> Rows:
        """Encode rows and their classes."""
        data = model.encoded(X)
        if not data.n_rows:
            raise DataError("X has no rows. Pass at least one whose class is known.")
        labels, codes = learn_target(y, data.n_rows)
        position = {label: code for code, label in enumerate(model.schema.classes)}
        unseen_labels = tuple(label for label in labels if label not in position)
        code = np.array([position.get(label, -1) for label in labels], dtype=np.intp)
        weights = np.ones(data.n_rows)
        if sample_weight is not None:
            given = check_weights(sample_weight, data.n_rows)
            # On the grid where sums are exact, in any order of the rows.
            grid = weigh(given, data.n_rows, fractions=False, as_cases=True)
            weights = given if grid.weights is None else grid.weights
        return cls(data, code[codes], weights, unseen_labels)


def _coverage(model: FittedTree, data: Columns) -> Coverage:
    """Return the check of which rows fulfil a condition."""
    return Coverage(model.schema.columns, data, model.recipe.unseen == "branch")


class RuleList(Rules):
    """An ordered list of rules that predicts by itself.

    The first rule whose conditions hold decides; where none does, ``default`` is
    predicted. ``n`` and ``counts`` of a rule are of all rows that fulfil it, whichever
    rule decides; ``estimates`` are the pessimistic error rates. Sorted or filtered, it
    is a plain set of rules that predicts no more.
    """

    def __init__(
        self,
        model: FittedTree,
        rules: Sequence[Rule],
        default: Value,
        estimates: Sequence[float],
        training: Rows,
    ) -> None:
        super().__init__(rules, model.schema, _note(model.recipe))
        self.default = default
        self.estimates = tuple(estimates)
        self._model = model
        self._training = self._usage(training)

    def __repr__(self) -> str:
        n_conditions = sum(len(rule.conditions) for rule in self)
        return (
            f"<branchwise rule list: {len(self):,} rules, {n_conditions:,} conditions, "
            f"otherwise {word(self.default)}>"
        )

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class of each row: that of the first rule that holds.

        Parameters
        ----------
        X : table or row
            Rows to classify; one row is a dict or a series, by name.

        Returns
        -------
        array
            One class for each row.
        """
        codes, _ = self._decided(self._model.encoded(X))
        return self.schema.class_array.take(codes)

    def score(self, X: object, y: object) -> float:
        """Return the share of rows whose class is predicted right.

        Parameters
        ----------
        X, y : table and sequence
            Rows and their true classes.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def fired(self, X: object) -> Ints:
        """Return the position of the rule that decides about each row.

        ``len(rules)`` is the default's.

        Parameters
        ----------
        X : table or row
            Rows of which the deciding rule is wanted.

        Returns
        -------
        array of int
            A position for each row.
        """
        return self._decided(self._model.encoded(X))[1]

    def _decided(self, data: Columns) -> tuple[Ints, Ints]:
        """Return the class code of each row, and which rule decides."""
        first = _coverage(self._model, data).first([rule.conditions for rule in self])
        code = self.schema.classes.index
        predictions = [code(rule.label) for rule in self] + [code(self.default)]
        return np.array(predictions, dtype=np.intp)[first], first

    def _usage(self, rows: Rows) -> Usage:
        """Work out how rows fare."""
        codes, first = self._decided(rows.data)
        wrong = codes != rows.labels
        missed = self._model.walker.classify(rows.data) != rows.labels
        case = (rows.weights > 0).astype(np.float64)
        whole = float(rows.weights.sum())
        return Usage(
            add_up(first, case, len(self) + 1),
            add_up(first, case * wrong, len(self) + 1),
            float(case[missed].sum()),
            (
                1.0 - float(rows.weights[wrong].sum()) / whole,
                1.0 - float(rows.weights[missed].sum()) / whole,
            )
            if weighted(rows.weights)
            else None,
        )

    def table(
        self, X: object = None, y: object = None, sample_weight: object = None
    ) -> RuleTable:
        """Return how well each rule does, and all of them beside the tree.

        Parameters
        ----------
        X, y : table and sequence, or None
            Rows to test with; without them the table is about the training rows only.
            A class that the tree does not know counts as an error.
        sample_weight : sequence of float or None
            The weights of the rows of X.

        Returns
        -------
        RuleTable
            A row for each rule; the last lines are of all rules and of the tree.
        """
        test = None
        if check_together(X, y, sample_weight):
            test = self._usage(Rows.of(self._model, X, y, sample_weight))
        tree = tree_rules(self.schema, self._model.tree, simplify=True)
        size = len(tree), sum(len(rule.conditions) for rule in tree)
        return RuleTable(self, self.default, self.estimates, size, self._training, test)

    def _closing(self) -> list[str]:
        target = target_title(self.schema) or "the prediction"
        left = float(self._training.used[-1])
        cases = "no training case"
        if left:
            right = left - float(self._training.errors[-1])
            noun = "training case" if left == 1 else "training cases"
            cases = f"{amount(right)} of {amount(left)} {noun}"
        default = class_called(self.schema, self.default)
        prediction = f"{word(target)} is {word(default)}"
        return [f"Otherwise, {prediction} ({cases}).", self.note]

    def to_dict(self) -> dict[str, Any]:
        """Return the rules in plain values, as ``to_json`` writes them."""
        whole = super().to_dict()
        for rule, estimate in zip(whole["rules"], self.estimates, strict=True):
            rule["estimated_error"] = estimate
        return {**whole, "ordered": True, "default": self.default}


def _note(recipe: Recipe) -> str:
    missing, unseen = recipe.missing == "error", recipe.unseen == "error"
    if missing and unseen:
        return (
            "The first rule that holds decides. Missing values, and values that "
            "training did not have, are refused."
        )
    taken = (
        "is refused"
        if unseen
        else "is taken for a missing one"
        if recipe.unseen == "branch"
        else "fulfils no condition"
    )
    gone = "is refused" if missing else "fulfils no condition but that it is missing"
    return (
        f"The first rule that holds decides. A missing value {gone}; a value that "
        f"training did not have {taken}."
    )


def generalised_rules(
    model: FittedTree,
    X: object,
    y: object,
    confidence: float | None = None,
    sample_weight: object = None,
) -> RuleList:
    """Make a rule list of a tree and the rows that it was grown from."""
    schema = model.schema
    if model.tree.is_regression:
        raise ParameterError(
            "generalised_rules needs a tree that predicts classes: it counts wrong "
            "predictions. Got one that predicts numbers; use rules()."
        )
    # The recipe knows what is allowed, and says so.
    level = model.recipe.confidence if confidence is None else confidence
    level = Recipe(pruning="error-based", confidence=level).confidence
    rows = Rows.of(model, X, y, sample_weight)
    if rows.unseen_labels:
        raise DataError(
            f"y has {quoted(rows.unseen_labels)}, but the classes of the tree are "
            f"{quoted(schema.classes)}. Pass the rows that the tree was grown from."
        )
    cases = _cases(model, rows)
    estimate = Estimate(level, cases.total)
    found = candidates(path_rules(schema, model.tree), schema.classes, cases, estimate)
    choice = selected(found, schema.columns, cases)
    return RuleList(
        model,
        [_listed(candidate, schema, cases) for candidate in choice.chosen],
        schema.classes[choice.default],
        [candidate.rate for candidate in choice.chosen],
        rows,
    )


def _cases(model: FittedTree, rows: Rows) -> Cases:
    order = leaf_order(model.schema.columns, model.tree, rows.data)
    coverage = _coverage(model, rows.data.take(order))
    return Cases(coverage, rows.labels[order], rows.weights[order])


def _listed(candidate: Candidate, schema: Schema, cases: Cases) -> Rule:
    """Make a rule of a candidate, with its figures and in as few words as will do."""
    rows = candidate.rows
    weights = cases.weights[rows]
    case = (weights > 0).astype(np.float64)

    def by_class(amounts: Floats) -> dict[Value, float]:
        sums = add_up(cases.labels[rows], amounts, len(schema.classes))
        return dict(zip(schema.classes, sums.tolist(), strict=True))

    rule = Rule(
        _in_few_words(candidate.conditions, schema),
        schema.classes[candidate.label],
        float(case.sum()),
        by_class(case),
        candidate.node,
        total=float(np.count_nonzero(cases.weights)),
        target=target_title(schema),
        called=class_called(schema, schema.classes[candidate.label]),
    )
    if not weighted(cases.weights):
        return rule
    return replace(
        rule,
        weight=float(weights.sum()),
        weights=by_class(weights),
        total_weight=cases.total,
    )


def _in_few_words(
    conditions: Sequence[Condition], schema: Schema
) -> tuple[Condition, ...]:
    # Conditions on a column follow each other: that is how a path is merged.
    columns = {column.name: column for column in schema.columns}
    groups = groupby(conditions, key=lambda condition: condition.column)
    return tuple(
        c for name, group in groups for c in simplified(tuple(group), columns[name])
    )
