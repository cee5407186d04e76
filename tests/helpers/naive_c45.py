"""C4.5 as its rules have it: the oracle that the library is held against.

Plain recursive Python over lists of cases, written from the rules in docs/c45.md
and not from the library. No array, no running sum, no grid: every candidate split is
made by sorting the cases into lists, every estimate is made by counting the cases
down the tree again. Weights are whole numbers or fractions, so they are exact; only
logarithms and the estimates of errors are floating-point numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

Cell = str | float | None
Row = Mapping[str, Cell]
Amount = int | Fraction
#: A column's possible values in order, or None for a column of numbers.
Columns = Mapping[str, Sequence[str] | None]

#: The branches of a cut, named so that they sort as they stand.
AT_MOST, ABOVE = "<=", ">"

#: Amounts this close to the best are as good as the best.
RELATIVE_TIE = 1e-9
ABSOLUTE_TIE = 1e-12
#: Values nearer than this are not told apart.
APART = 1e-5


@dataclass(frozen=True)
class Settings:
    confidence: float = 0.25
    min_branch: int = 2
    prune: bool = True
    raise_subtrees: bool = True
    threshold: str = "value"


class Case(NamedTuple):
    row: Row
    label: str
    weight: Amount


@dataclass
class Node:
    """A question (or none), what becomes of the cases, and the cases themselves."""

    cases: list[Case]
    classes: Sequence[str]
    column: str | None = None
    threshold: float | None = None
    children: dict[str, Node] = field(default_factory=dict)

    @cached_property
    def weights(self) -> dict[str, Amount]:
        return by_class(self.cases, self.classes)

    @property
    def weight(self) -> Amount:
        return sum(self.weights.values())

    @property
    def label(self) -> str:
        return most(self.weights)

    @property
    def errors(self) -> Amount:
        return self.weight - max(self.weights.values())

    @property
    def training_errors(self) -> Amount:
        if not self.children:
            return self.errors
        return sum(child.training_errors for child in self.children.values())


class Candidate(NamedTuple):
    """A way to split that is admissible: its branches, its gain and its ratio."""

    column: str
    threshold: float | None
    branches: dict[str, list[Case]]
    gain: float
    ratio: float


class Table(NamedTuple):
    """What every node has to know of the whole training table."""

    columns: Columns
    classes: Sequence[str]
    n_rows: int
    numbers: Mapping[str, list[float]]


def fit(
    rows: Sequence[Row],
    labels: Sequence[str],
    columns: Columns,
    settings: Settings,
    classes: Sequence[str] | None = None,
) -> Node:
    """Grow a tree from a table, collapse it and prune it."""
    cases = [Case(row, label, 1) for row, label in zip(rows, labels, strict=True)]
    numbers = {
        name: [row[name] for row in rows if row[name] is not None]
        for name, values in columns.items()
        if values is None
    }
    classes = sorted(set(labels)) if classes is None else classes
    tree = grow(cases, Table(columns, classes, len(rows), numbers), settings)
    collapse(tree)
    if settings.prune:
        tree = pruned(tree, settings)
    return tree


# ---------------------------------------------------------------------- growing


def grow(cases: list[Case], table: Table, settings: Settings) -> Node:
    node = Node(cases, table.classes)
    one_class = sum(weight > 0 for weight in node.weights.values()) < 2
    if one_class or node.weight < 2 * settings.min_branch:  # rule 1
        return node
    candidates = {}
    for column, values in table.columns.items():
        if values is None:
            candidate = best_cut(cases, column, table, settings)
        else:
            candidate = split_by_value(cases, column, table, settings)
        if candidate is not None:
            candidates[column] = candidate
    best = chosen(candidates, table)
    if best is None:
        return node
    node.column, node.threshold = best.column, best.threshold
    for way, part in shared_out(cases, node, ways(node, cases)).items():
        node.children[way] = grow(part, table, settings)
    return node


def chosen(candidates: dict[str, Candidate], table: Table) -> Candidate | None:
    """Rule 5: the best ratio of those that gain the average, or nearly; rule 15."""
    if not candidates:
        return None
    ordinary = [
        name
        for name, values in table.columns.items()
        if values is None or len(values) < 0.3 * table.n_rows
    ] or list(table.columns)
    gains = [candidates[name].gain for name in ordinary if name in candidates]
    if not gains:
        return None
    average = math.fsum(gains) / len(gains)
    good = [c for c in candidates.values() if c.gain >= average - 0.001]
    if not good:
        return None
    return first_best(good, [c.ratio for c in good])


def split_by_value(
    cases: list[Case], column: str, table: Table, settings: Settings
) -> Candidate | None:
    branches = {
        value: [case for case in cases if case.row[column] == value]
        for value in table.columns[column]
    }
    branches = {value: part for value, part in branches.items() if part}
    large = [
        part for part in branches.values() if weight_of(part) >= settings.min_branch
    ]
    if len(large) < 2:  # rule 2
        return None
    gain = gain_of(branches, cases, table)
    return Candidate(
        column, None, branches, gain, gain / split_information(branches, cases)
    )


def best_cut(
    cases: list[Case], column: str, table: Table, settings: Settings
) -> Candidate | None:
    """Rule 4: of all cuts that are allowed the one with the largest gain."""
    known = [case for case in cases if case.row[column] is not None]
    tenth = Fraction(weight_of(known), 10 * len(table.classes))
    least = min(25, max(settings.min_branch, tenth))
    cuts, gains = [], []
    for low, high in pairwise(sorted({case.row[column] for case in known})):
        branches = {
            AT_MOST: [case for case in known if case.row[column] <= low],
            ABOVE: [case for case in known if case.row[column] >= high],
        }
        enough = all(weight_of(part) >= least for part in branches.values())
        if enough and low + APART < high:
            middle = (low + high) / 2
            # Nothing may fit between neighbouring floats.
            cuts.append((middle if low <= middle < high else low, branches))
            gains.append(gain_of(branches, cases, table))
    if not cuts:
        return None
    (middle, branches), gain = first_best(list(zip(cuts, gains, strict=True)), gains)
    gain -= math.log2(len(cuts)) / float(weight_of(cases))
    if gain <= ABSOLUTE_TIE:
        return None
    ratio = gain / split_information(branches, cases)
    cut = middle
    if settings.threshold == "value":  # rule 7
        cut = max(number for number in table.numbers[column] if number <= middle)
    return Candidate(column, cut, branches, gain, ratio)


def gain_of(branches: dict[str, list[Case]], cases: list[Case], table: Table) -> float:
    """Rule 3: what the branches tell, times the share of the cases that are known."""
    known = [case for part in branches.values() for case in part]
    after = math.fsum(
        float(weight_of(part) / weight_of(known)) * entropy_of(part, table.classes)
        for part in branches.values()
    )
    share = float(weight_of(known) / weight_of(cases))
    gain = share * (entropy_of(known, table.classes) - after)
    return 0.0 if gain < ABSOLUTE_TIE else gain


def split_information(branches: dict[str, list[Case]], cases: list[Case]) -> float:
    """Rule 3: the unknown cases count as one more branch."""
    sizes = [weight_of(part) for part in branches.values()]
    return entropy([*sizes, weight_of(cases) - sum(sizes)])


def ways(node: Node, cases: list[Case]) -> list[str]:
    """Rule 9: the branches of a question that have a case here."""
    met = {way_of(node, case.row) for case in cases}
    return sorted(way for way in met if way is not None)


def way_of(node: Node, row: Row) -> str | None:
    """The branch that a row takes, or None if it is not known."""
    cell = row[node.column]
    if cell is None or node.threshold is None:
        return cell
    return AT_MOST if cell <= node.threshold else ABOVE


def shared_out(
    cases: list[Case], node: Node, branches: Sequence[str]
) -> dict[str, list[Case]]:
    """Rule 8: a case that is not known goes down every branch, by weight."""
    parts = {
        way: [case for case in cases if way_of(node, case.row) == way]
        for way in branches
    }
    size = {way: weight_of(part) for way, part in parts.items()}
    unknown = [case for case in cases if way_of(node, case.row) is None]
    for way, part in parts.items():
        share = Fraction(size[way], sum(size.values()))
        part.extend(case._replace(weight=case.weight * share) for case in unknown)
    return parts


# ---------------------------------------------------------------------- pruning


def collapse(node: Node) -> None:
    """Rule 10: a subtree that errs no less than a leaf is a leaf."""
    if node.training_errors >= node.errors - Fraction(1, 1000):
        make_leaf(node)
    for child in node.children.values():
        collapse(child)


def make_leaf(node: Node) -> None:
    node.column, node.threshold, node.children = None, None, {}


def pruned(node: Node, settings: Settings) -> Node:
    """Rule 12: a node becomes a leaf, or its largest branch, or stays; bottom up."""
    if not node.children:
        return node
    node.children = {
        way: pruned(child, settings) for way, child in node.children.items()
    }
    as_leaf = estimate(node.weight, node.errors, settings)
    as_tree = estimated(node, settings)
    branch = recounted(largest(node), node.cases) if settings.raise_subtrees else None
    as_branch = estimated(branch, settings) if branch is not None else math.inf
    if as_leaf <= as_tree + 0.1 and as_leaf <= as_branch + 0.1:
        make_leaf(node)
        return node
    if as_branch <= as_tree + 0.1:
        return pruned(branch, settings)
    return node


def largest(node: Node) -> Node:
    """The branch of most weight, of equals the last (children are in order)."""
    most_weight = max(child.weight for child in node.children.values())
    return [c for c in node.children.values() if c.weight == most_weight][-1]


def recounted(node: Node, cases: list[Case]) -> Node:
    """The same questions asked of other cases; new values get a leaf."""
    new = Node(cases, node.classes, node.column, node.threshold)
    if node.children:
        branches = sorted({*node.children, *ways(node, cases)})
        for way, part in shared_out(cases, node, branches).items():
            old = node.children.get(way, Node([], node.classes))
            new.children[way] = recounted(old, part)
    return new


def estimated(node: Node, settings: Settings) -> float:
    """The errors that a subtree will make, by a pessimistic estimate."""
    if not node.children:
        return estimate(node.weight, node.errors, settings)
    return math.fsum(estimated(child, settings) for child in node.children.values())


def estimate(weight: Amount, errors: Amount, settings: Settings) -> float:
    """Rule 11: the errors that were made, and those to be feared beyond them."""
    if weight == 0:
        return 0.0
    return float(errors) + feared(float(weight), float(errors), settings.confidence)


def feared(n: float, e: float, confidence: float) -> float:
    if e == 0:
        return n * (1 - confidence ** (1 / n))
    if e < 1:
        none = feared(n, 0.0, confidence)
        return none + e * (feared(n, 1.0, confidence) - none)
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    seen = e + 0.5
    spread = math.sqrt(seen * (1 - seen / n) + z * z / 4)
    return n * (seen + z * z / 2 + z * spread) / (n + z * z) - e


# ------------------------------------------------------------------- predicting


def distribution(node: Node, row: Row) -> dict[str, Amount]:
    """Rule 14: class frequencies of the ends, weighted by the shares of the row."""
    weights = dict.fromkeys(node.classes, 0)
    for end, share in arrivals(node, row):
        for name, weight in end.weights.items():
            weights[name] += share * Fraction(weight, end.weight)
    return weights


def arrivals(node: Node, row: Row) -> Iterator[tuple[Node, Amount]]:
    if not node.children:
        yield node, 1
        return
    way = way_of(node, row)
    if way is not None and way not in node.children:
        yield node, 1  # an empty leaf answers for its node
        return
    whole = sum(child.weight for child in node.children.values())
    for name, child in node.children.items():
        share = Fraction(child.weight, whole) if way is None else int(way == name)
        if share:
            for end, part in arrivals(child, row):
                yield end, share * part


# ------------------------------------------------------------------ definitions


def entropy(amounts: Sequence[Amount]) -> float:
    """Entropy in bits of class (or branch) weights."""
    total = sum(amounts)
    shares = [float(amount / total) for amount in amounts if amount > 0]
    return -math.fsum(share * math.log2(share) for share in shares)


def entropy_of(cases: list[Case], classes: Sequence[str]) -> float:
    return entropy(list(by_class(cases, classes).values()))


def by_class(cases: list[Case], classes: Sequence[str]) -> dict[str, Amount]:
    return {
        name: weight_of([case for case in cases if case.label == name])
        for name in classes
    }


def weight_of(cases: list[Case]) -> Amount:
    return sum(case.weight for case in cases)


def most(amounts: Mapping[str, Amount]) -> str:
    """The class with the largest amount; of (nearly) equals, the first."""
    least = max(amounts.values()) * (1 - Fraction(RELATIVE_TIE))
    return next(name for name, amount in amounts.items() if amount >= least)


def first_best(things: list, scores: list[float]):
    """Rule 15: of equal scores the first, in the order of columns and of cuts."""
    top = max(scores)
    least = top - max(RELATIVE_TIE * abs(top), ABSOLUTE_TIE)
    return next(t for t, s in zip(things, scores, strict=True) if s >= least)
