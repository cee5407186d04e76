"""A few stable rules of a forest, judged out of bag.

The share of trees that have a rule is its frequency; rules that many trees have are
stable (Benard, Biau, da Veiga, Scornet, "SIRUS: Stable and Interpretable RUle Set for
classification", 2021). Of these, one after the other is chosen: the one with which the
rules predict best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Columns, Value
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import (
    OutOfBag,
    average,
    row_weights,
    samples_of,
    score_of,
    validate_out_of_bag,
)
from branchwise.ensemble.reading.rule_pool import (
    Found,
    Key,
    conditions_of,
    key_of,
    pooled,
)
from branchwise.errors import ParameterError
from branchwise.grow.counts import add_up
from branchwise.rules.generalise import Coverage, Mask
from branchwise.rules.rule import INTERVAL, Rule
from branchwise.rules.rule_list import weighted
from branchwise.rules.rule_set import Rules
from branchwise.stats import mean_interval
from branchwise.text.conditions import Condition
from branchwise.text.label_words import target_unit
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import percent, share, word
from branchwise.tree.apply import predicted_classes

#: Rules that are judged for each one that is wanted, the most frequent first.
_JUDGED = 25
#: The most training rows that rules are chosen by.
_ROWS = 5000
#: The least share of the error without rules that a rule must take away.
_LEAST_GAIN = 1e-3


class ForestRules(Rules):
    """Rules of a forest, the most useful one first, and a default for all other rows.

    ``frequency`` is the share of trees that have each rule. ``n``, ``counts``, means
    and what follows from them are averages over these trees: each counts the rows that
    it was grown without. The rules that hold for a row predict together, by the average
    of their shares of the classes, or of their means; where none does, ``default`` is
    predicted, the most frequent class, or the mean, of such training rows.
    ``accuracy`` is the share of training rows, by weight, for which that is right, or R
    squared where numbers are predicted; ``forest_accuracy`` is that of the forest out
    of bag.
    """

    def __init__(
        self,
        ensemble: FittedTrees,
        rules: Sequence[Rule],
        frequency: Sequence[float],
        training: _Rows,
        forest_accuracy: float,
    ) -> None:
        numbers = ensemble.is_regression
        super().__init__(
            rules, ensemble.schema, _NOTE.format("means" if numbers else "shares")
        )
        self.frequency = tuple(frequency)
        self.forest_accuracy = forest_accuracy
        self._ensemble = ensemble
        holds = self._holds(training.data)
        rest: Mask = holds.sum(axis=0) == 0
        rows = rest if rest.any() else np.ones(len(rest), dtype=bool)
        self._rest = _usual(ensemble, training.target[rows], training.weight[rows])
        self.default: Value = float(self._rest[0])
        if not numbers:
            self.default = self.schema.classes[int(np.argmax(self._rest))]
        averages = self._averages(holds)
        predicted = averages[:, 0] if numbers else np.argmax(averages, axis=1)
        self.accuracy = score_of(ensemble, samples_of(ensemble).order, predicted)

    def __repr__(self) -> str:
        return (
            f"<{len(self):,} rules of a forest of {len(self._ensemble):,} trees, "
            f"otherwise {self._default}>"
        )

    @property
    def _default(self) -> str:
        if self._ensemble.is_regression:
            return target_unit(self.schema).mean(float(self.default))
        return word(class_called(self.schema, self.default))

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the most probable class, or the expected number, of each row."""
        averages = self._averages(self._holds(self._ensemble.encoded(X)))
        if self._ensemble.is_regression:
            numbers: Floats = averages[:, 0]
            return numbers
        codes: Ints = np.argmax(averages, axis=1)
        return self.schema.class_array.take(codes)

    def predict_proba(self, X: object) -> Floats:
        """Return the average of the shares of the classes in the rules that hold.

        Where none does, the shares of the classes in such training rows.
        """
        if self._ensemble.is_regression:
            raise ParameterError(
                "predict_proba needs rules that predict classes. These predict "
                "numbers; use predict."
            )
        return self._averages(self._holds(self._ensemble.encoded(X)))

    def score(self, X: object, y: object) -> float:
        """Return the share of rows whose class is predicted right, or R squared."""
        predicted, true = self.predict(X), np.asarray(y)
        if not self._ensemble.is_regression:
            return float(np.mean(predicted == true))
        errors, spread = true - predicted, true - true.mean()
        return 1.0 - float(errors @ errors) / float(spread @ spread)

    def _holds(self, data: Columns) -> Mask:
        """Tell, by rule and row, which rules hold."""
        coverage = _coverage(self._ensemble, data)
        holds = np.zeros((len(self), data.n_rows), dtype=bool)
        for at, rule in enumerate(self):
            holds[at] = coverage.covered(rule.conditions)
        return holds

    def _averages(self, holds: Mask) -> Floats:
        total = np.zeros((holds.shape[1], len(self._rest)))
        # One after the other, so that the result for a row is always the same.
        for rule, mask in zip(self, holds, strict=True):
            total[mask] += _shares(self._ensemble, rule)
        n_holding = holds.sum(axis=0)
        total[n_holding == 0] = self._rest
        averages: Floats = total / np.maximum(n_holding, 1)[:, np.newaxis]
        return averages

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table of the rules as lists, a column each."""
        columns = super().to_columns()
        del columns["node"]
        return {**columns, "frequency": list(self.frequency)}

    def _closing(self) -> list[str]:
        target = target_title(self.schema) or "the prediction"
        frequent = ""
        if self.frequency:
            high, low = percent(max(self.frequency)), percent(min(self.frequency))
            frequent = f" Each rule is in {low} to {high} of the trees."
        otherwise = f"Otherwise, {word(target)} is {self._default}"
        if self._ensemble.is_regression:
            right = (
                f"R squared of the rules is {self.accuracy:.3f} in the training rows; "
                f"that of the forest, out of bag, {self.forest_accuracy:.3f}."
            )
            otherwise += " on average"
        else:
            right = (
                f"The rules are right about {share(self.accuracy, 1)} of the training "
                f"rows; the forest, out of bag, about {share(self.forest_accuracy, 1)}."
            )
        return [f"{otherwise}.", f"{right}{frequent} {self.note}"]

    def closing(self) -> list[str]:
        """Return the lines after the rules: the default class, and the accuracy."""
        return self._closing()

    def to_dict(self) -> dict[str, Any]:
        """Return the rules in plain values, as ``to_json`` writes them."""
        whole = super().to_dict()
        for rule, frequency in zip(whole["rules"], self.frequency, strict=True):
            del rule["node"]
            rule["frequency"] = frequency
        name = "r_squared" if self._ensemble.is_regression else "accuracy"
        return {**whole, "default": self.default, name: self.accuracy}


_NOTE = (
    "Cases are averages over the trees that have the rule, of the rows that each was "
    "grown without. The rules that hold predict together, by the average of their "
    "{}. A missing value fulfils no condition but that it is missing."
)


def _coverage(ensemble: FittedTrees, data: Columns) -> Coverage:
    unseen = ensemble.recipe.tree.unseen == "branch"
    return Coverage(ensemble.schema.columns, data, unseen)


@dataclass(frozen=True)
class _Rows:
    """Training rows in the order of contents, and out of which bags each one is."""

    data: Columns
    target: Ints | Floats
    weight: Floats
    out: NDArray[np.float32]

    @classmethod
    def of(cls, ensemble: FittedTrees) -> _Rows:
        samples = samples_of(ensemble, "Rules")
        validate_out_of_bag(samples)
        order, training = samples.order, samples.training
        out = [samples.out_of_bag(tree)[order] for tree in range(len(ensemble))]
        return cls(
            training.data.take(order),
            training.target[order],
            row_weights(training)[order],
            np.stack(out, axis=1).astype(np.float32),
        )


def rules_of_forest(
    ensemble: FittedTrees, at_most: int = 20, max_conditions: int = 3
) -> ForestRules:
    """Return at most so many rules of a forest, the most useful one first."""
    for name, value in (("at_most", at_most), ("max_conditions", max_conditions)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(
                f"{name} must be a whole number of at least 1. Got {value!r}."
            )
    rows = _Rows.of(ensemble)
    found = pooled(ensemble, rows.data, max_conditions)
    # A rule of one tree is not stable. Of equally frequent rules, first those of few
    # conditions.
    several = min(2, len(ensemble))
    stable = sorted(
        (key for key, rule in found.items() if len(rule.trees) >= several),
        key=lambda key: (-len(found[key].trees), len(key), key_of(key)),
    )
    judged = list(_judged(ensemble, rows, stable[: _JUDGED * at_most], found))
    chosen = [judged[at] for at in _useful(ensemble, rows, judged, at_most)]
    return ForestRules(
        ensemble,
        [each.rule for each in chosen],
        [each.frequency for each in chosen],
        rows,
        OutOfBag.of(ensemble).score,
    )


@dataclass(frozen=True)
class _Judged:
    """A rule, the share of trees that have it, and the training rows it holds for."""

    rule: Rule
    frequency: float
    covered: Mask


def _judged(
    ensemble: FittedTrees,
    rows: _Rows,
    stable: Sequence[Key],
    found: dict[Key, Found],
) -> Iterator[_Judged]:
    """Yield the rules that are certainly better than none, the most frequent first."""
    usual = _usual(ensemble, rows.target, rows.weight)
    judge = _mean_rule if ensemble.is_regression else _class_rule
    coverage = _coverage(ensemble, rows.data)
    for key in stable:
        pooled = found[key]
        conditions = conditions_of(ensemble.schema.columns, key, pooled.thresholds)
        covered = coverage.covered(conditions)
        rule = judge(ensemble, rows, pooled, conditions, covered)
        if _tells(rule, ensemble.schema.classes, usual):
            yield _Judged(rule, len(pooled.trees) / len(ensemble), covered)


def _useful(
    ensemble: FittedTrees, rows: _Rows, judged: Sequence[_Judged], at_most: int
) -> Iterator[int]:
    """Yield the positions of rules, each the one that lowers the squared error most.

    The error is that of the average of the rules that hold: of shares of the classes
    (Brier's score), or of means. Rows without a rule have the mean of all of them. Of
    equal ones the most frequent is chosen.
    """
    some = np.linspace(0, len(rows.target) - 1, min(len(rows.target), _ROWS))
    at = some.astype(np.intp)
    target, weight = rows.target[at, np.newaxis], rows.weight[at]
    if not ensemble.is_regression:
        target = target == np.arange(len(ensemble.schema.classes))
    target = target.astype(np.float64)
    values = [_shares(ensemble, each.rule) for each in judged]
    holds = [np.flatnonzero(each.covered[at]) for each in judged]
    total, number, error = 0.0 * target, 0.0 * weight, 0.0 * weight

    def errors_of(rule: int) -> Floats:
        """Return the errors of the rows that a rule holds for, with it."""
        own = holds[rule]
        together = (total[own] + values[rule]) / (number[own, np.newaxis] + 1)
        errors: Floats = ((target[own] - together) ** 2).sum(axis=1) * weight[own]
        return errors

    def sums_of(rows: Ints) -> Floats:
        """Return the weight of rows, and the sums of targets and of their squares."""
        own, squares = weight[rows], (target[rows] ** 2).sum(axis=1)
        return np.concatenate([[own.sum()], own @ target[rows], [own @ squares]])

    rest = sums_of(np.arange(len(at)))
    whole = now = _spread(rest)
    left = list(range(len(judged)))
    for _ in range(at_most):
        with_rule = []
        for rule in left:
            own = holds[rule]
            first = rest - sums_of(own[number[own] == 0])
            change = float((errors_of(rule) - error[own]).sum())
            with_rule.append(float(error.sum()) + change + _spread(first))
        if not with_rule or now - min(with_rule) <= _LEAST_GAIN * whole:
            return
        now, best = min(with_rule), left.pop(int(np.argmin(with_rule)))
        own = holds[best]
        rest = rest - sums_of(own[number[own] == 0])
        error[own] = errors_of(best)
        total[own] += values[best]
        number[own] += 1
        yield best


def _spread(sums: Floats) -> float:
    """Return the squared error of the mean of rows, from their sums."""
    weight, total, squares = sums[0], sums[1:-1], sums[-1]
    return float(max(squares - total @ total / weight, 0.0)) if weight > 0 else 0.0


def _shares(ensemble: FittedTrees, rule: Rule) -> Floats:
    """Return what a rule predicts: its shares of the classes, or its mean."""
    if ensemble.is_regression:
        return np.array([float(rule.label)])
    counts = np.array([rule.counts[label] for label in ensemble.schema.classes])
    shares: Floats = counts / rule.n
    return shares


def _usual(ensemble: FittedTrees, target: Ints | Floats, weight: Floats) -> Floats:
    """Return the shares of the classes, or the mean, of some rows by weight."""
    if ensemble.is_regression:
        return np.array([average(target.astype(np.float64), weight)])
    n_classes = len(ensemble.schema.classes)
    sums = add_up(target.astype(np.intp), weight, n_classes)
    shares: Floats = sums / sums.sum()
    return shares


def _tells(rule: Rule, classes: Sequence[Value], usual: Floats) -> bool:
    """Whether a rule is certainly better than what is predicted without any."""
    if rule.interval is None:
        return False
    low, high = rule.interval
    if classes:
        return low > float(usual[classes.index(rule.label)])
    return not low <= float(usual[0]) <= high


def _mean_rule(
    ensemble: FittedTrees,
    rows: _Rows,
    found: Found,
    conditions: tuple[Condition, ...],
    covered: Mask,
) -> Rule:
    """Judge a rule of numbers by the rows that its trees were grown without."""
    outside = _outside(rows, found)
    n, amounts = float(outside[covered].sum()), outside * rows.weight
    target, own = rows.target[covered].astype(np.float64), amounts[covered]
    middle, weight = average(target, own), float(own.sum())
    deviation = math.sqrt(average((target - middle) ** 2, own)) if weight > 0 else 0.0
    rule = Rule(
        conditions,
        middle,
        n,
        {},
        -1,
        deviation,
        total=float(outside.sum()),
        target=target_title(ensemble.schema),
        mean_interval=mean_interval(middle, deviation, n, INTERVAL),
        unit=target_unit(ensemble.schema),
    )
    if not weighted(rows.weight):
        return rule
    return replace(rule, weight=weight, total_weight=float(amounts.sum()))


def _outside(rows: _Rows, found: Found) -> Floats:
    """Return the share of the trees of a rule that were grown without each row."""
    share: Floats = rows.out[:, found.trees].mean(axis=1, dtype=np.float64)
    return share


def _class_rule(
    ensemble: FittedTrees,
    rows: _Rows,
    found: Found,
    conditions: tuple[Condition, ...],
    covered: Mask,
) -> Rule:
    """Judge a rule of classes by the rows that its trees were grown without."""
    classes = ensemble.schema.classes
    root = np.sum([ensemble.trees[tree].weights[0] for tree in found.trees], axis=0)
    weights = np.asarray(found.weights)[np.newaxis]
    label = int(predicted_classes(weights, root, ensemble.recipe.tree)[0])
    outside, target = _outside(rows, found), rows.target.astype(np.intp)

    def by_class(amounts: Floats, mask: Mask) -> dict[Value, float]:
        sums = add_up(target[mask], amounts[mask], len(classes))
        return dict(zip(classes, sums.tolist(), strict=True))

    counts = by_class(outside, covered)
    rule = Rule(
        conditions,
        classes[label],
        sum(counts.values()),
        counts,
        -1,
        total=float(outside.sum()),
        target=target_title(ensemble.schema),
        called=class_called(ensemble.schema, classes[label]),
    )
    if not weighted(rows.weight):
        return rule
    amounts = outside * rows.weight
    by_weight = by_class(amounts, covered)
    return replace(
        rule,
        weight=sum(by_weight.values()),
        weights=by_weight,
        total_weight=float(amounts.sum()),
    )
