"""The rules of an ensemble of voting rules: their views, and explanations by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.one_row import open_rows
from branchwise.data.table_schema import Columns, Schema, Value
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.errors import ParameterError, counted
from branchwise.explain.explanation import (
    Explanations,
    prediction_words,
    probability_list,
    probability_words,
)
from branchwise.rules.generalise import Mask
from branchwise.rules.rule import Rule, tree_rules
from branchwise.rules.rule_set import Rules
from branchwise.stats import share_interval
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import percent, percent_range, rounded, word

#: Digits of votes that are shown; ``votes`` has all of them.
_DIGITS = 2


@dataclass(frozen=True)
class VotingRule(Rule):
    """A rule that adds ``vote`` to the score of its class where it holds."""

    vote: float = 0.0

    def _support(self) -> str:
        return f"{super()._support()}; vote {shown_vote(self.vote)}"

    def _evidence(self) -> str:
        return f"{super()._evidence()}; vote {shown_vote(self.vote)}"


def shown_vote(vote: float) -> str:
    """Write a vote, or a sum of votes."""
    return rounded(vote, _DIGITS)


class VotingRules(Rules):
    """The rules of an ensemble, each with its vote, those that decide most first.

    The votes of the rules that hold for a row are added to the scores of their classes,
    which begin with ``initial``; the class with the highest score is predicted, and
    probabilities are in proportion to the exponentials of the scores. ``n`` and
    ``counts`` of a rule are of all training cases that fulfil it.
    """

    def __init__(
        self, ensemble: FittedTrees, rules: Sequence[VotingRule], trees: Sequence[int]
    ) -> None:
        super().__init__(rules, ensemble.schema, _NOTE)
        self.voting = tuple(rules)
        self.votes = tuple(rule.vote for rule in rules)
        self.initial = initial_scores(ensemble)
        self._ensemble = ensemble
        self._trees = tuple(trees)

    def _some(self, chosen: Sequence[int]) -> VotingRules:
        some = VotingRules(
            self._ensemble,
            [self.voting[at] for at in chosen],
            [self._trees[at] for at in chosen],
        )
        some._position = [self._position[at] for at in chosen]
        return some

    def __repr__(self) -> str:
        n_conditions = sum(len(rule.conditions) for rule in self)
        return (
            f"<{counted(len(self), 'voting rule')} of branchwise, "
            f"{counted(n_conditions, 'condition')}>"
        )

    def holds(self, X: object) -> Mask:
        """Tell, by row and rule, which rules hold."""
        data = self._ensemble.encoded(X)
        holds = np.zeros((data.n_rows, len(self)), dtype=bool)
        for at, tree in enumerate(self._trees):
            holds[:, at] = self._ensemble.predicted(tree, data)[:, 0] != 0
        return holds

    def overlap(self, X: object) -> Floats:
        """Return, for pairs of rules, the share of rows of one that fulfil the other.

        Row i has the shares of the rows that rule i covers; 0 for one without rows.
        """
        holds = self.holds(X).astype(np.float64)
        together = holds.T @ holds
        shares: Floats = together / np.maximum(np.diag(together), 1.0)[:, np.newaxis]
        return shares

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table of the rules as lists, a column each."""
        columns = super().to_columns()
        del columns["node"]
        return {**columns, "vote": list(self.votes)}

    def _closing(self) -> list[str]:
        scores = ", ".join(
            f"{word(class_called(self.schema, label))} {shown_vote(score)}"
            for label, score in self.initial.items()
        )
        return [f"Before any vote, the scores are: {scores}.", self.note]

    def closing(self) -> list[str]:
        """Return the lines after the rules: the scores before any vote, and a note."""
        return self._closing()

    def to_dict(self) -> dict[str, Any]:
        """Return the rules in plain values, as ``to_json`` writes them."""
        whole = super().to_dict()
        for rule, vote in zip(whole["rules"], self.votes, strict=True):
            del rule["node"]
            rule["vote"] = vote
        initial = [{"class": c, "score": score} for c, score in self.initial.items()]
        return {**whole, "voting": True, "initial": initial}


_NOTE = (
    "The votes of all rules that hold are added to the scores of their classes. The "
    "class with the highest score is predicted; probabilities are in proportion to the "
    "exponentials of the scores. A missing value, or one that training did not have, "
    "fulfils no condition."
)


def initial_scores(ensemble: FittedTrees) -> dict[Value, float]:
    """Return the scores of the classes before any vote."""
    classes, initial = ensemble.schema.classes, ensemble.initial
    if initial is None:
        raise AssertionError("rules that vote have initial scores")
    scores = initial.tolist()
    if len(scores) < len(classes):  # the log odds of the second class
        scores = [0.0, *scores]
    return dict(zip(classes, scores, strict=False))


def check_voting(ensemble: FittedTrees, what: str) -> None:
    """Refuse ensembles whose trees are no rules."""
    if ensemble.recipe.method != "rules":
        raise ParameterError(
            f"{what} needs rules that vote, those of RuleClassifier. Got {ensemble!r}."
        )


def voting_rules(ensemble: FittedTrees) -> VotingRules:
    """Return the rules, those first whose votes add up to most over training cases."""
    check_voting(ensemble, "voting_rules")
    found = []
    for at, tree in enumerate(ensemble.trees):
        if len(tree) > 1:
            rule = _rule(ensemble, at)
            found.append((-rule.vote * rule.n, at, rule))
    found.sort(key=lambda one: one[:2])
    return VotingRules(
        ensemble, [rule for *_, rule in found], [at for _, at, _ in found]
    )


def _rule(ensemble: FittedTrees, at: int) -> VotingRule:
    """Return the rule of a tree."""
    schema, tree = ensemble.schema, ensemble.trees[at]
    if tree.mean is None or ensemble.rule_cases is None:
        raise AssertionError("the trees of rules have votes and cases")
    end = int(np.flatnonzero(tree.mean)[0])
    vote = float(tree.mean[end])
    label = at % ensemble.n_outputs
    if ensemble.n_outputs == 1:
        label = int(vote > 0)
    path = next(
        rule
        for rule in tree_rules(ensemble.tree_schema, tree, simplify=True)
        if rule.node == end
    )
    cases = ensemble.rule_cases[at]
    return VotingRule(
        path.conditions,
        schema.classes[label],
        float(cases.sum()),
        dict(zip(schema.classes, cases.tolist(), strict=True)),
        -1,
        total=float(tree.cases[0]),
        target=target_title(schema),
        called=class_called(schema, schema.classes[label]),
        vote=abs(vote),
    )


@dataclass(frozen=True, repr=False)
class VoteExplanation(Document):
    """The explanation of a prediction for one row, counted from 0.

    ``rules`` are the rules that hold, with their numbers from 1 in the list of all,
    and ``scores`` those of the classes: ``initial`` and the votes. ``level`` is that of
    the intervals of confidences.
    """

    row: int
    prediction: Value
    probabilities: dict[Value, float]
    rules: tuple[tuple[int, VotingRule], ...]
    initial: dict[Value, float]
    scores: dict[Value, float]
    n_rules: int
    schema: Schema
    level: float = 0.95

    def __repr__(self) -> str:
        return (
            f"<explanation of row {self.row}: {prediction_words(self.prediction)}, "
            f"{len(self.rules):,} of {counted(self.n_rules, 'rule')} hold>"
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the prediction, the rules that hold, and the scores."""
        title = target_title(self.schema)
        target = "Prediction" if title is None else word(title)
        probabilities = probability_words(self.probabilities, self.schema)
        predicted = prediction_words(self.prediction, self.schema)
        yield Paragraph(f"{target}: {predicted}{probabilities}")
        rules = counted(self.n_rules, "rule")
        if not self.rules:
            yield Paragraph(f"None of {rules} holds.")
        else:
            held = "holds" if len(self.rules) == 1 else "hold"
            yield Paragraph(f"Of {rules} {len(self.rules):,} {held}:")
            yield Table(
                [
                    "rule",
                    "class",
                    "vote",
                    "confidence",
                    f"{percent(self.level)} interval",
                    "conditions",
                ],
                [
                    [
                        str(number),
                        self._class(rule.label),
                        shown_vote(rule.vote),
                        percent(rule.confidence or 0.0),
                        percent_range(*self._interval(rule)),
                        rule.premise,
                    ]
                    for number, rule in self.rules
                ],
                words=(1, 5),
            )
        yield Paragraph("Scores:")
        yield Table(
            ["class", "before", "votes", "score"],
            [
                [
                    self._class(label),
                    shown_vote(self.initial[label]),
                    shown_vote(score - self.initial[label]),
                    shown_vote(score),
                ]
                for label, score in self.scores.items()
            ],
            words=(0,),
        )

    def _interval(self, rule: VotingRule) -> tuple[float, float]:
        return share_interval(rule.confidence or 0.0, rule.n, self.level)

    def _class(self, label: Value) -> str:
        return word(class_called(self.schema, label))

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in plain values."""
        return {
            "row": self.row,
            "prediction": self.prediction,
            "probabilities": probability_list(self.probabilities),
            "level": self.level,
            "rules": [
                {
                    "rule": number,
                    "label": rule.label,
                    "vote": rule.vote,
                    "confidence": rule.confidence,
                    "interval": list(self._interval(rule)),
                    "text": str(rule),
                }
                for number, rule in self.rules
            ],
            "scores": [
                {"class": label, "before": self.initial[label], "score": score}
                for label, score in self.scores.items()
            ],
        }


def explain_votes(
    ensemble: FittedTrees, X: object, level: float = 0.95
) -> VoteExplanation | Explanations:
    """Explain the predictions for a table or a row by the rules that hold."""
    schema, frame = ensemble.schema, open_rows(X)
    data: Columns = ensemble.encoded(frame)
    rules = voting_rules(ensemble)
    holds = rules.holds(data)
    probabilities = ensemble.average(data)
    codes = ensemble.class_codes(probabilities)
    explanations = []
    for row in range(data.n_rows):
        held = np.flatnonzero(holds[row]).tolist()
        own = [(at + 1, rules.voting[at]) for at in held]
        scores = dict(rules.initial)
        for _, rule in own:
            scores[rule.label] += rule.vote
        explanations.append(
            VoteExplanation(
                row,
                schema.classes[int(codes[row])],
                dict(zip(schema.classes, probabilities[row].tolist(), strict=True)),
                tuple(own),
                rules.initial,
                scores,
                len(rules),
                schema,
                level,
            )
        )
    if data.n_rows == 1:
        return explanations[0]
    return Explanations(cast(Any, explanations))
