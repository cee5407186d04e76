"""Formulas of a worked solution: impurities, gains and scores, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.grow.many_values import class_factor, null_excess
from branchwise.steps.numbers import Bars, Candidate, Group, NodeSteps
from branchwise.text.blocks import (
    TIMES,
    Formula,
    Name,
    Operation,
    Term,
    fraction,
    log2,
)
from branchwise.text.conditions import phrase
from branchwise.text.words import rounded, word

#: Digits of weights that are not whole.
_WEIGHT_DIGITS = 5
#: Of more terms only the first are written.
SHOWN_TERMS = 24
_SYMBOLS = {
    "gain": "H",
    "gain_ratio": "H",
    "gini": "Gini",
    "variance": "Var",
    "poisson": "D",
}


@dataclass(frozen=True)
class Figures:
    """How figures are written: so many decimals, or digits for numbers to predict."""

    digits: int
    for_numbers: bool

    def __call__(self, value: float | None) -> str:
        """Write an impurity, a gain or a ratio."""
        if value is None:
            return "-"
        if self.for_numbers:
            return rounded(value, self.digits + 2)
        written = f"{value:.{self.digits}f}"
        # No minus before a zero.
        return written.lstrip("-") if float(written) == 0 else written

    def minus(self, value: float | None) -> str:
        """Write a subtrahend with its sign."""
        return f" - {self.factor(value)}"

    def factor(self, value: float | None) -> str:
        """Write a factor, in brackets if it is negative."""
        return in_brackets(self(value))

    def apart(self, one: float, other: float) -> tuple[str, str]:
        """Write two figures with as many digits as it takes to tell them apart."""
        for digits in range(self.digits, 17):
            figures = Figures(digits, self.for_numbers)
            if figures(one) != figures(other):
                return figures(one), figures(other)
        return self(one), self(other)


def in_brackets(written: str) -> str:
    """Put a negative number in brackets."""
    return f"({written})" if written.startswith("-") else written


def count(weight: float) -> str:
    """Write a weight as part of a fraction."""
    if weight == round(weight) and abs(weight) < 1e15:
        return str(round(weight))
    return rounded(weight, _WEIGHT_DIGITS)


def symbol(bars: Bars) -> str:
    """Return the symbol of the impurity."""
    return _SYMBOLS.get(bars.criterion, "")


def impurity(name: str, group: Group, bars: Bars, figures: Figures) -> Formula:
    """Write how the impurity of a group comes about."""
    terms: list[Term]
    if bars.criterion == "variance":
        mean = rounded(group.mean or 0.0, figures.digits + 2)
        kind = "weighted distances" if bars.weighted else "distances"
        distances = Operation(kind, (in_brackets(mean),))
        terms = [(fraction("1", count(group.weight)), TIMES, distances)]
    elif bars.criterion == "poisson":
        mean = rounded(group.mean or 0.0, figures.digits + 2)
        terms = [("-", mean, " ", log2(mean))] if group.mean else [("0",)]
    elif bars.criterion == "gini":
        squares = [Operation("squared", (share,)) for share in _shares(group)]
        terms = [("1",), *((" - ", square) for square in squares)]
    else:
        terms = _logarithms(_shares(group))
    return Formula(
        symbol(bars), name, tuple(_shortened(terms)), figures(group.impurity)
    )


def _shares(group: Group) -> list[Operation]:
    whole = count(group.weight)
    return [fraction(count(weight), whole) for weight in group.weights if weight > 0]


def _logarithms(shares: Sequence[Operation]) -> list[Term]:
    return [
        (" - " if at else "-", share, " ", log2(share))
        for at, share in enumerate(shares)
    ]


def _shortened(terms: Sequence[Term]) -> list[Term]:
    if len(terms) <= SHOWN_TERMS:
        return list(terms)
    more = len(terms) - SHOWN_TERMS
    return [*terms[:SHOWN_TERMS], (" ... ", Name(f"({more:,} more)"))]


def average_formula(node: NodeSteps, figures: Figures) -> Formula:
    """Write how the average gain comes about that a candidate must have."""
    gains = [c.gain for c in node.candidates if c.column in node.averaged]
    terms: list[Term] = [
        (" + " if at else "", figures.factor(gain)) for at, gain in enumerate(gains)
    ]
    terms[0] = (fraction("1", str(len(gains))), TIMES, "(", *terms[0])
    terms = _shortened(terms)
    terms[-1] = (*terms[-1], ")")
    return Formula("average gain", "S", tuple(terms), figures(node.average))


def candidate_formulas(
    candidate: Candidate, whole: Group, bars: Bars, figures: Figures
) -> Iterator[Formula]:
    """Write how a column comes to its score."""
    known, name = candidate.known, word(candidate.column)
    if known is None or not candidate.branches:
        return
    if bars.own_criterion:
        yield _own_score(candidate, known, whole, figures)
        return
    for group in candidate.branches[:SHOWN_TERMS]:
        if group.condition is not None:
            yield impurity(phrase(group.condition), group, bars, figures)
    if known.weight != whole.weight:
        yield impurity(f"{name} is known", known, bars, figures)
    terms: list[Term] = []
    for at, group in enumerate(candidate.branches):
        share = fraction(count(group.weight), count(known.weight))
        sign = (" + ",) if at else ()
        terms.append((*sign, share, TIMES, figures.factor(group.impurity)))
    remainder = figures(candidate.remainder)
    yield Formula(symbol(bars), f"S | {name}", tuple(_shortened(terms)), remainder)
    yield from _scores(candidate, known, whole, figures)


def _own_score(
    candidate: Candidate, known: Group, whole: Group, figures: Figures
) -> Formula:
    terms: tuple[Term, ...] = ()
    if known.weight != whole.weight and candidate.score is not None:
        factor = fraction(count(known.weight), count(whole.weight))
        score = candidate.score / (known.weight / whole.weight)
        terms = ((factor, TIMES, figures.factor(score)),)
    return Formula("score", word(candidate.column), terms, figures(candidate.score))


def _penalty(candidate: Candidate, whole: Group, figures: Figures) -> Term:
    """Write C4.5's penalty of thresholds, or CART's correction for many values."""
    if candidate.numeric:
        choices = log2(str(candidate.n_thresholds))
        return fraction("1", count(whole.weight)), TIMES, choices
    values, cases = np.array([len(candidate.values)]), np.array([whole.cases])
    excess = null_excess(values, cases)
    if whole.weights:
        excess = excess * class_factor(np.array([whole.weights]), values, cases)
    share = fraction(figures(float(excess[0])), count(max(whole.cases - 1.0, 1.0)))
    return share, TIMES, figures(whole.impurity)


def _scores(
    candidate: Candidate, known: Group, whole: Group, figures: Figures
) -> Iterator[Formula]:
    """Write the gain, less its penalty, and the gain ratio."""
    weight, penalty = count(whole.weight), candidate.penalty

    def formula(name: str, value: float | None, *terms: Term) -> Formula:
        of, shown = word(candidate.column), tuple(_shortened(terms))
        return Formula(name, of, shown, figures(value))

    before, left = figures(known.impurity), figures.minus(candidate.remainder)
    terms: tuple[Term, ...] = ((before,), (left,))
    if known.weight != whole.weight:
        share = fraction(count(known.weight), weight)
        terms = ((share, TIMES, f"({before}"), (f"{left})",))
    yield formula("gain", candidate.raw_gain, *terms)
    if penalty is not None:
        yield formula("penalty", penalty, _penalty(candidate, whole, figures))
        raw, gain = candidate.raw_gain, candidate.gain
        lowered = (raw or 0.0) - penalty if gain is None else gain
        yield formula(
            "lowered gain", lowered, (figures(raw),), (figures.minus(penalty),)
        )
    information = candidate.split_information
    if information is None:
        return
    groups = [*candidate.branches]
    if known.weight != whole.weight and candidate.missing is not None:
        groups.append(candidate.missing)
    shares = [fraction(count(g.weight), weight) for g in groups if g.weight > 0]
    yield formula("split information", information, *_logarithms(shares))
    if candidate.score is not None:
        ratio = (figures(candidate.gain), " / ", figures(information))
        yield formula("gain ratio", candidate.score, ratio)
