"""ID3 as the textbook has it: the oracle that the library is held against.

Plain recursive Python over a list of cases, written from the definitions (Quinlan,
"Induction of Decision Trees", 1986; missing values: Quinlan, "C4.5", 1993, section
3.2) and not from the library. No array, no code, no running sum: every candidate
split is made by sorting the cases into lists, and judged by its formula.

Weights and numbers of cases are whole numbers or fractions, so they are exact; only
a logarithm makes a floating-point number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

Cell = str | float | None
Row = Mapping[str, Cell]
Amount = int | Fraction
#: A column's possible values in order, or None for a column of numbers.
Columns = Mapping[str, Sequence[str] | None]

# What leads to a branch, where it is not a value of a categorical column.
AT_MOST, ABOVE, MISSING, KNOWN = "at most", "above", "missing", "known"

#: Scores (and weights of classes) this close to the best are as good as the best.
RELATIVE_TIE = 1e-9
ABSOLUTE_TIE = 1e-12


@dataclass(frozen=True)
class Settings:
    criterion: str = "gain"
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_gain: float = 0.0
    missing: str = "branch"
    unseen: str = "node"
    min_weight_fraction_leaf: float = 0.0


class Whole(NamedTuple):
    """All cases of the training table, to which shares refer."""

    n_cases: int
    weight: Amount


class Case(NamedTuple):
    """A row of the table, or a part of one: what it weighs and how much it is."""

    row: Row
    label: str
    weight: Amount
    part: Amount


@dataclass
class Node:
    weights: dict[str, Amount]
    cases: Amount
    column: str | None = None
    threshold: float | None = None
    children: dict[tuple[str, str | None], Node] = field(default_factory=dict)

    @property
    def weight(self) -> Amount:
        return sum(self.weights.values())

    @property
    def label(self) -> str:
        """The class of most weight, of equals the first in sorted order."""
        return most(self.weights)


class Candidate(NamedTuple):
    """One way to split: the cases of each branch, and those that have none."""

    column: str
    threshold: float | None
    branches: dict[tuple[str, str | None], list[Case]]
    unknown: list[Case]


# ---------------------------------------------------------------------- growing


def fit(
    rows: Sequence[Row],
    labels: Sequence[str],
    columns: Columns,
    settings: Settings,
    weights: Sequence[float] | None = None,
) -> Node:
    """Grow a tree from a table."""
    given = [1] * len(rows) if weights is None else [exact(w) for w in weights]
    cases = [
        Case(row, label, weight, 1)
        for row, label, weight in zip(rows, labels, given, strict=True)
        if weight > 0
    ]
    whole = Whole(len(cases), weight_of(cases))
    return grow(cases, sorted(set(labels)), columns, settings, whole, 0)


def grow(
    cases: list[Case],
    classes: list[str],
    columns: Columns,
    settings: Settings,
    whole: Whole,
    depth: int,
) -> Node:
    """Grow the tree of some cases: a leaf, or the best split and a tree per branch."""
    weights = {
        name: sum(case.weight for case in cases if case.label == name)
        for name in classes
    }
    node = Node(weights, cases_of(cases))
    pure = sum(weight > 0 for weight in weights.values()) < 2
    too_deep = settings.max_depth is not None and depth >= settings.max_depth
    least = max(2, number_of_cases(settings.min_samples_split, whole.n_cases))
    if pure or too_deep or node.cases < least:
        return node
    admissible = [
        candidate
        for column in columns
        for candidate in admissible_splits(
            cases, classes, column, columns[column], settings, whole
        )
    ]
    if not admissible:
        return node
    best = first_best(admissible, [score(c, classes, settings) for c in admissible])
    node.column, node.threshold = best.column, best.threshold
    for key, branch in share_out(best, settings).items():
        node.children[key] = grow(branch, classes, columns, settings, whole, depth + 1)
    return node


def first_best(admissible: list[Candidate], scores: list[float]) -> Candidate:
    """The tie rule: candidates come in the order of columns, then of cuts."""
    top = max(scores)
    least = top - max(RELATIVE_TIE * abs(top), ABSOLUTE_TIE)
    return next(c for c, s in zip(admissible, scores, strict=True) if s >= least)


def admissible_splits(
    cases: list[Case],
    classes: list[str],
    column: str,
    values: Sequence[str] | None,
    settings: Settings,
    whole: Whole,
) -> list[Candidate]:
    """All the ways in which a column may split the cases, the lower cut first."""
    least = number_of_cases(settings.min_samples_leaf, whole.n_cases)
    light = settings.min_weight_fraction_leaf * whole.weight * (1 - RELATIVE_TIE)

    def admissible(candidate: Candidate) -> bool:
        return (
            all(
                cases_of(branch) >= least and weight_of(branch) >= light
                for branch in candidate.branches.values()
            )
            and gain(candidate, classes, settings) >= settings.min_gain - ABSOLUTE_TIE
        )

    if values is not None:
        possible = splits_by_value(cases, column, values, settings)
        return [candidate for candidate in possible if admissible(candidate)]
    possible = splits_by_cut(cases, column, settings)
    allowed = [candidate for candidate in possible if admissible(candidate)]
    if not allowed and settings.missing == "branch":
        possible = splits_by_missing(cases, column)
        allowed = [candidate for candidate in possible if admissible(candidate)]
    return allowed


def splits_by_value(
    cases: list[Case], column: str, values: Sequence[str], settings: Settings
) -> list[Candidate]:
    """One branch for each value, in their order."""
    branches = {
        ("value", value): [case for case in cases if case.row[column] == value]
        for value in values
    }
    return candidates(cases, column, None, branches, settings)


def splits_by_cut(
    cases: list[Case], column: str, settings: Settings
) -> list[Candidate]:
    """Two branches, at every midpoint of neighbouring numbers."""
    known = [case for case in cases if case.row[column] is not None]
    found = []
    for low, high in pairwise(sorted({case.row[column] for case in known})):
        cut = (low + high) / 2
        if not low <= cut < high:  # nothing fits between neighbouring floats
            cut = low
        branches = {
            (AT_MOST, None): [case for case in known if case.row[column] <= cut],
            (ABOVE, None): [case for case in known if case.row[column] > cut],
        }
        found += candidates(cases, column, cut, branches, settings)
    return found


def splits_by_missing(cases: list[Case], column: str) -> list[Candidate]:
    """Two branches: the number is known, or it is not."""
    known = [case for case in cases if case.row[column] is not None]
    branches = {(KNOWN, None): known}
    return candidates(cases, column, None, branches, Settings(missing="branch"))


def candidates(
    cases: list[Case],
    column: str,
    cut: float | None,
    branches: dict[tuple[str, str | None], list[Case]],
    settings: Settings,
) -> list[Candidate]:
    """The split into these branches, if at least two of them have cases."""
    unknown = [case for case in cases if case.row[column] is None]
    if settings.missing == "branch":  # missing is a value like any other, the last
        branches, unknown = branches | {(MISSING, None): unknown}, []
    branches = {key: branch for key, branch in branches.items() if branch}
    if len(branches) < 2:
        return []
    return [Candidate(column, cut, branches, unknown)]


def share_out(chosen: Candidate, settings: Settings) -> dict:
    """Give every branch its cases, those with a missing value by the policy."""
    branches = {key: list(cases) for key, cases in chosen.branches.items()}
    size = {key: weight_of(cases) for key, cases in branches.items()}
    if settings.missing == "largest":
        branches[max(size, key=lambda key: size[key])].extend(chosen.unknown)
    if settings.missing == "split":
        for key, cases in branches.items():
            share = Fraction(size[key], sum(size.values()))
            cases.extend(
                case._replace(weight=case.weight * share, part=case.part * share)
                for case in chosen.unknown
            )
    return branches  # "node": the cases stay where they are


# ------------------------------------------------------------------ definitions


def impurity(weights: list[Amount], settings: Settings) -> float:
    """Entropy in bits, or the Gini index, of class (or branch) weights."""
    total = sum(weights)
    shares = [float(weight / total) for weight in weights if weight > 0]
    if settings.criterion == "gini":
        return 1 - math.fsum(share**2 for share in shares)
    return -math.fsum(share * math.log2(share) for share in shares)


def gain(candidate: Candidate, classes: list[str], settings: Settings) -> float:
    """Impurity of the known cases less that left in the branches, times their share."""
    known = [case for branch in candidate.branches.values() for case in branch]
    weight = weight_of(known)
    before = impurity(by_class(known, classes), settings)
    after = math.fsum(
        float(weight_of(branch) / weight)
        * impurity(by_class(branch, classes), settings)
        for branch in candidate.branches.values()
    )
    known_share = float(weight / (weight + weight_of(candidate.unknown)))
    return known_share * (before - after)


def score(candidate: Candidate, classes: list[str], settings: Settings) -> float:
    """The gain, or its ratio to the information of the split itself."""
    if settings.criterion != "gain_ratio":
        return gain(candidate, classes, settings)
    groups = [*candidate.branches.values(), candidate.unknown]
    information = impurity([weight_of(group) for group in groups], settings)
    return gain(candidate, classes, settings) / information


def most(amounts: Mapping[str, Amount]) -> str:
    """The name with the largest amount; of (nearly) equals, the first in order."""
    least = max(amounts.values()) * (1 - Fraction(RELATIVE_TIE))
    return next(name for name in sorted(amounts) if amounts[name] >= least)


def by_class(cases: list[Case], classes: list[str]) -> list[Amount]:
    return [weight_of([case for case in cases if case.label == c]) for c in classes]


def weight_of(cases: list[Case]) -> Amount:
    return sum(case.weight for case in cases)


def cases_of(cases: list[Case]) -> Amount:
    return sum(case.part for case in cases)


def number_of_cases(limit: float, n_training: int) -> int:
    """A whole number is a number of cases, any other a share of the training cases."""
    return limit if isinstance(limit, int) else math.ceil(limit * n_training)


def exact(weight: float) -> Amount:
    return int(weight) if weight == int(weight) else Fraction(weight)


# ------------------------------------------------------------------- predicting


def arrivals(
    node: Node, row: Row, columns: Columns, settings: Settings
) -> Iterator[tuple[Node, Amount]]:
    """Where a row ends and what share of it: one node, or several under "split"."""
    if node.column is None:
        yield node, 1
        return
    for child, share in ways_down(node, row, columns, settings):
        if child is node:
            yield node, share
        else:
            for end, part in arrivals(child, row, columns, settings):
                yield end, share * part


def ways_down(
    node: Node, row: Row, columns: Columns, settings: Settings
) -> list[tuple[Node, Amount]]:
    """The children a row goes to with their shares, or the node itself to stop."""
    cell, values = row[node.column], columns[node.column]
    policy = None
    if cell is None:
        policy = settings.missing
    elif values is not None and cell not in values:
        policy = settings.unseen
        if policy == "branch":  # taken for a missing value
            policy = settings.missing
    if policy == "split":
        whole = sum(child.weight for child in node.children.values())
        return [(c, Fraction(c.weight, whole)) for c in node.children.values()]
    if policy == "largest":
        return [(max(node.children.values(), key=lambda child: child.weight), 1)]
    if policy == "branch":
        key = (MISSING, None)
    elif policy in ("node", "error"):
        return [(node, 1)]
    elif values is not None:
        key = ("value", cell)
    elif node.threshold is None:
        key = (KNOWN, None)
    else:
        key = (AT_MOST if cell <= node.threshold else ABOVE, None)
    # A value that no training case had at this node has no branch: stop.
    return [(node.children.get(key, node), 1)]


def distribution(
    tree: Node, row: Row, columns: Columns, settings: Settings
) -> dict[str, Amount]:
    """Class probabilities: the mean of the frequencies at the ends, by share."""
    ends = list(arrivals(tree, row, columns, settings))
    return {
        name: sum(
            share * Fraction(end.weights[name], end.weight) for end, share in ends
        )
        for name in sorted(tree.weights)
    }


def predict(tree: Node, row: Row, columns: Columns, settings: Settings) -> str:
    """The most probable class; of equals, the first in sorted order."""
    return most(distribution(tree, row, columns, settings))
