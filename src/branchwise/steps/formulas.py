"""Formulas of a worked solution: impurities, gains and scores, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from branchwise.text.conditions import phrase, rounded, word

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


def candidate_formulas(
    candidate: Candidate, whole: Group, bars: Bars, figures: Figures
) -> list[Formula]:
    """Write how a column comes to its score."""
    if candidate.known is None or not candidate.branches:
        return []
    name = word(candidate.column)
    if bars.own_criterion:
        return [_own_score(candidate, name, whole, figures)]
    formulas = [
        impurity(phrase(group.condition), group, bars, figures)
        for group in candidate.branches[:SHOWN_TERMS]
        if group.condition is not None
    ]
    outside = candidate.known.weight != whole.weight
    if outside:
        formulas.append(impurity(f"{name} is known", candidate.known, bars, figures))
    formulas += [
        _remainder(candidate, candidate.known, name, bars, figures),
        _gain(candidate, candidate.known, name, whole, figures),
    ]
    if candidate.penalty is not None:
        formulas += _penalised(candidate, name, whole, figures)
    if candidate.split_information is not None:
        formulas += _ratio(candidate, name, whole, figures)
    return formulas


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


def _own_score(
    candidate: Candidate, name: str, whole: Group, figures: Figures
) -> Formula:
    known = candidate.known
    score = candidate.score
    if known is None or known.weight == whole.weight or score is None:
        return Formula("score", name, (), figures(score))
    share = known.weight / whole.weight
    factor = fraction(count(known.weight), count(whole.weight))
    term = (factor, TIMES, figures.factor(score / share))
    return Formula("score", name, (term,), figures(score))


def _remainder(
    candidate: Candidate, known: Group, name: str, bars: Bars, figures: Figures
) -> Formula:
    terms: list[Term] = []
    for at, group in enumerate(candidate.branches):
        share = fraction(count(group.weight), count(known.weight))
        sign = (" + ",) if at else ()
        terms.append((*sign, share, TIMES, figures.factor(group.impurity)))
    left = f"S | {name}"
    value = figures(candidate.remainder)
    return Formula(symbol(bars), left, tuple(_shortened(terms)), value)


def _gain(
    candidate: Candidate, known: Group, name: str, whole: Group, figures: Figures
) -> Formula:
    before, left = figures(known.impurity), figures.minus(candidate.remainder)
    terms: tuple[Term, ...] = ((before,), (left,))
    if known.weight != whole.weight:
        factor = fraction(count(known.weight), count(whole.weight))
        terms = ((factor, TIMES, f"({before}"), (f"{left})",))
    return Formula("gain", name, terms, figures(candidate.raw_gain))


def _penalised(
    candidate: Candidate, name: str, whole: Group, figures: Figures
) -> list[Formula]:
    share = fraction("1", count(whole.weight))
    penalty = (share, TIMES, log2(str(candidate.n_thresholds)))
    left = (candidate.raw_gain or 0.0) - (candidate.penalty or 0.0)
    gain = candidate.gain if candidate.gain is not None else left
    return [
        Formula("penalty", name, (penalty,), figures(candidate.penalty)),
        Formula(
            "lowered gain",
            name,
            ((figures(candidate.raw_gain),), (figures.minus(candidate.penalty),)),
            figures(gain),
        ),
    ]


def _ratio(
    candidate: Candidate, name: str, whole: Group, figures: Figures
) -> list[Formula]:
    groups = [*candidate.branches]
    if candidate.known is not None and candidate.known.weight != whole.weight:
        groups += [] if candidate.missing is None else [candidate.missing]
    whole_count = count(whole.weight)
    shares = [fraction(count(g.weight), whole_count) for g in groups if g.weight > 0]
    terms = tuple(_shortened(_logarithms(shares)))
    formulas = [
        Formula("split information", name, terms, figures(candidate.split_information))
    ]
    if candidate.score is not None:
        division: Term = (
            figures(candidate.gain),
            " / ",
            figures(candidate.split_information),
        )
        formulas.append(
            Formula("gain ratio", name, (division,), figures(candidate.score))
        )
    return formulas
