"""Sentences and formulas of a worked solution: exclusions, choices, leaves, scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from branchwise.errors import counted
from branchwise.steps.numbers import Bars, Candidate, Child, Ending, Group, NodeSteps
from branchwise.text.blocks import (
    TIMES,
    Formula,
    Name,
    Operation,
    Term,
    fraction,
    log2,
)
from branchwise.text.conditions import amount, listed, mean, phrase, rounded, word

#: Names of columns in a sentence.
_SHOWN_NAMES = 8
_OUT = {
    "no value": "no case here has a value",
    "one value": "all cases here have the same value",
    "few large branches": "fewer than two branches would have the {branch} cases that "
    "min_samples_branch requires",
    "light branch": "a branch would have less than {share} of the weight of all cases, "
    "which min_weight_fraction_leaf requires",
    "few missing": "the branch of missing values would have fewer than the {leaf} "
    "cases that min_samples_leaf requires{weight}",
    "no grouping": "no grouping of its values that was tried leaves enough cases "
    "in the branches (min_samples_leaf requires {leaf}{weight})",
    "no score": "the criterion gives it no score",
}


def out_words(
    candidate: Candidate, node: NodeSteps, bars: Bars, figures: Figures
) -> str:
    """Write why a column is excluded; empty where it is not."""
    match candidate.out:
        case None:
            return ""
        case "few cases in a branch":
            return _few_cases(candidate, bars)
        case "no threshold":
            return _no_threshold(candidate, bars)
        case "no information":
            return _no_information(candidate, figures)
        case "average":
            return _below_average(candidate, node, figures)
        case "min_gain":
            return _below_min_gain(candidate, bars, figures)
        case "p-value":
            limit = node.p_value.limit if node.p_value is not None else 1.0
            return f"its p-value is above max_p_value={limit:g}"
        case other:
            return _OUT[other].format(
                leaf=count(bars.cases_in_leaf),
                branch=count(bars.cases_in_branch),
                weight=_weight_words(bars, " and min_weight_fraction_leaf {} "),
                share=f"{bars.weight_share:g}",
            )


def _weight_words(bars: Bars, words: str) -> str:
    """Write what is required of the weight of a branch; empty if nothing is."""
    if not bars.weight_share:
        return ""
    return words.format(f"{bars.weight_share:g}") + "of the weight of all cases"


def _few_cases(candidate: Candidate, bars: Bars) -> str:
    groups = [*candidate.values]
    if bars.missing == "branch" and candidate.missing is not None:
        groups.append(candidate.missing)

    def cases(group: Group) -> float:
        # In C4.5 weights are cases.
        return group.weight if bars.quinlan_thresholds else group.cases

    fewest = min(groups, key=cases)
    name = phrase(fewest.condition) if fewest.condition is not None else "a branch"
    return (
        f"{name} has {cases_words(cases(fewest))}, and min_samples_leaf requires "
        f"{count(bars.cases_in_leaf)} in every branch"
    )


def _no_threshold(candidate: Candidate, bars: Bars) -> str:
    least = cases_words(candidate.least_on_a_side or 0.0)
    apart = " between numbers that are told apart" if bars.quinlan_thresholds else ""
    weight = _weight_words(bars, " and {} ")
    return f"no threshold{apart} leaves {least}{weight} on both sides"


def _no_information(candidate: Candidate, figures: Figures) -> str:
    thresholds = counted(candidate.n_thresholds, "threshold")
    return (
        f"its best threshold gains {figures(candidate.raw_gain)}, no more than the "
        f"penalty for the choice among {thresholds}, {figures(candidate.penalty)}"
    )


def _below_average(candidate: Candidate, node: NodeSteps, figures: Figures) -> str:
    gain, average = figures.apart(candidate.gain or 0.0, node.average or 0.0)
    return f"its gain, {gain}, is below the average gain of the candidates, {average}"


def _below_min_gain(candidate: Candidate, bars: Bars, figures: Figures) -> str:
    gain = candidate.gain if candidate.score is not None else candidate.raw_gain
    return f"its gain, {figures(gain)}, is below min_gain={bars.min_gain:g}"


def cases_words(number: float) -> str:
    """Write a number of cases."""
    return f"{amount(number)} {'case' if number == 1 else 'cases'}"


def measure(bars: Bars) -> str:
    """Return the word for what decides."""
    if bars.own_criterion:
        return "score"
    return "gain ratio" if bars.criterion == "gain_ratio" else "gain"


def choice(node: NodeSteps, bars: Bars, figures: Figures) -> list[str]:
    """Write which column is chosen, and why; or why none is."""
    left = [c for c in node.candidates if c.out is None and c.score is not None]
    if not left:
        return ["No column can split these cases."]
    best = max(left, key=lambda c: c.score or 0.0)
    tied = [c for c in left if c.tied]
    first = tied[0] if tied else best
    sentences = _comparison(first, tied, left, bars, figures)
    if node.p_value is not None:
        sentences.append(_p_value(node, first, bars))
    return sentences


def _comparison(
    first: Candidate,
    tied: list[Candidate],
    left: list[Candidate],
    bars: Bars,
    figures: Figures,
) -> list[str]:
    name, what = word(first.column), measure(bars)
    score = first.score or 0.0
    sentences = []
    if len(left) == 1:
        sentences.append(f"{name} is chosen: it is the only candidate left.")
    elif len(tied) > 1:
        names = listed([c.column for c in tied], _SHOWN_NAMES)
        sentences.append(
            f"{names} have the same {what}, {figures(score)}. Of equals the first "
            f"column of the table is taken: {name} is chosen."
        )
    else:
        others = [c for c in left if c is not first]
        second = max(others, key=lambda c: c.score or 0.0)
        mine, next_best = figures.apart(score, second.score or 0.0)
        sentences.append(
            f"{name} is chosen: its {what}, {mine}, is the highest. Next is "
            f"{word(second.column)} with {next_best}."
        )
    if bars.average_gain:
        sentences.append("Only columns that gain the average are compared by ratio.")
    if first.gains_nothing:
        sentences.append(
            "It gains nothing by itself. It is chosen all the same, because the "
            "splits below it may gain (as in exclusive or)."
        )
    return sentences


def _p_value(node: NodeSteps, first: Candidate, bars: Bars) -> str:
    p_value = node.p_value
    if p_value is None:
        return ""
    test = "F-test" if bars.criterion in ("variance", "poisson") else "chi-square test"
    few = p_value.ways < 1e15
    number = f"{round(p_value.ways):,}" if few else f"{p_value.ways:.3g}"
    ways = "" if p_value.ways <= 1 else f" * {number} ways to split it"
    verdict = "at most" if p_value.total <= p_value.limit else "more than"
    so = (
        "the split stands"
        if p_value.total <= p_value.limit
        else "the node stays a leaf"
    )
    return (
        f"By a {test} the p-value of the split on {word(first.column)} is "
        f"{p_value.probability:.3g}; for the best of many that is "
        f"{p_value.probability:.3g} * {counted(p_value.candidates, 'column')}{ways} = "
        f"{p_value.total:.3g}, {verdict} max_p_value={p_value.limit:g}: {so}."
    )


def afterwards(node: NodeSteps, bars: Bars) -> list[str]:
    """Write how the tree differs from the result of the search."""
    if node.as_chosen or node.ending not in (None, "pruned"):
        return []
    if node.ending == "pruned":
        return [f"But {_pruned_away(bars)}, so the node is a leaf."]
    split_column = word(node.column or "")
    if node.column == node.chosen:
        return [
            f"The branches of {split_column} were changed after the tree was grown."
        ]
    if any("error-based" in words for words in bars.later):
        raised = "pruning has put a branch in the place of its parent"
        why = f"{raised}, with a split that was chosen from that branch's own cases"
    else:
        why = "it was changed after it was grown"
    return [f"But the tree splits on {split_column} here: {why}."]


def _pruned_away(bars: Bars) -> str:
    if not bars.later:
        return "the subtree was collapsed by hand afterwards"
    return f"the subtree was pruned away afterwards ({', '.join(bars.later)})"


def ending_words(ending: Ending, bars: Bars) -> str:
    """Write why a node is a leaf."""
    if ending == "pure":
        numbers = bars.criterion in ("variance", "poisson")
        return (
            "all its numbers are equal" if numbers else "all its cases have one class"
        )
    if ending == "max_depth":
        return f"max_depth={bars.max_depth} allows no further split"
    if ending == "few cases":
        return f"a split needs {count(bars.cases_to_split)} cases"
    if ending == "p-value":
        return "the p-value of its best split is too large"
    if ending == "pruned":
        return _pruned_away(bars)
    if ending == "no cases":
        return "no training case gets here"
    return "no column can split it"


def child_words(child: Child, bars: Bars) -> str:
    """Write the condition and the child of a branch."""
    head = f"{phrase(child.condition)}: node {child.node}, {child.prediction}"
    if child.ending is None:
        return f"{head}, splits on {word(child.column or '')}"
    return f"{head}, a leaf: {ending_words(child.ending, bars)}"


def whole_words(node: NodeSteps, classes: list[str]) -> str:
    """Write the number of cases of a node, by class."""
    whole = node.whole
    cases = cases_words(whole.cases)
    weighted = whole.weight != whole.cases
    if weighted:
        cases = f"{cases} of weight {count(whole.weight)}"
    if whole.mean is not None:
        return f"{cases}, {'weighted ' if weighted else ''}mean {mean(whole.mean)}."
    some = [
        f"{count(weight)} {label}"
        for weight, label in zip(whole.weights, classes, strict=True)
        if weight > 0
    ]
    if not some:
        return f"{cases}."
    return f"{cases}{'; by weight' if weighted else ''}: {', '.join(some)}."


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
