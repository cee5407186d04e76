"""Sentences on exclusion, choice and stopping: excluded columns, splits, leaves."""

from __future__ import annotations

from branchwise.errors import counted
from branchwise.steps.formulas import Figures, count
from branchwise.steps.numbers import Bars, Candidate, Child, Ending, Group, NodeSteps
from branchwise.text.conditions import amount, listed, mean, phrase, word

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
    ways = "" if p_value.ways <= 1 else f" * {_way(p_value.ways)} ways to split it"
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


def _way(ways: float) -> str:
    return f"{round(ways):,}" if ways < 1e15 else f"{ways:.3g}"


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
