"""The chosen split is the best there is: every cut and every grouping is tried here.

The oracle knows no counts, no masses and no kernel: it adds up rows, and takes
impurities from their definitions.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from branchwise import Model, fit_tree
from branchwise.grow.categories import ALL_GROUPINGS, ALL_MERGERS
from branchwise.recipe import C45, CART, Recipe
from random_tables import KERNELS
from selection import examples, first_fast

Sums = tuple[float, ...]
Side = frozenset[Any]
TOLERANCE = 1e-9
FOR_NUMBERS = ("variance", "poisson")


# ------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """Columns of names or of numbers (None: missing), a target, perhaps weights."""

    cells: dict[str, list[Any]]
    target: list[Any]
    weights: list[float] | None
    recipe: Recipe

    def rows(self, order: Sequence[int]) -> Table:
        """The table with these rows, in this order."""
        return replace(
            self,
            cells={name: [c[i] for i in order] for name, c in self.cells.items()},
            target=[self.target[i] for i in order],
            weights=None if self.weights is None else [self.weights[i] for i in order],
        )

    def is_numeric(self, name: str) -> bool:
        return any(isinstance(cell, float) for cell in self.cells[name])

    def fit(self, kernel: str) -> Model:
        cells = {
            name: np.array(cells, dtype=float) if self.is_numeric(name) else cells
            for name, cells in self.cells.items()
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BRANCHWISE_KERNEL", kernel)
            return fit_tree(cells, self.target, self.recipe, sample_weight=self.weights)

    def fit_by_all(self) -> Model:
        """The model; every kernel must have the same."""
        models = [self.fit(kernel) for kernel in KERNELS]
        assert len({model.to_bytes() for model in models}) == 1
        return models[0]


def random_cells(rng: random.Random, n_rows: int, hidden: list[float]) -> list[Any]:
    """A column that has to do with what is hidden, or nothing."""
    related = rng.random() < 0.6
    levels = [level if related else rng.random() for level in hidden]
    if rng.random() < 0.4:
        n_values = rng.choice([2, 4, 9, 40])
        return [float(int(level * n_values)) / 4 for level in levels]
    # Names are in no order that tells anything.
    names = [f"v{i}" for i in range(rng.randint(2, 7))]
    rng.shuffle(names)
    return [names[int(level * len(names))] for level in levels]


def random_target(rng: random.Random, criterion: str, hidden: list[float]) -> list[Any]:
    noise = rng.choice([0.1, 0.5])
    levels = [rng.random() if rng.random() < noise else level for level in hidden]
    if criterion in FOR_NUMBERS:
        shift = 0.0 if criterion == "poisson" else rng.choice([0.0, -3.0, 1000.0])
        steps = rng.choice([3, 1000])
        numbers = [float(int(level * steps)) / 8 + shift for level in levels]
        return numbers if any(numbers) else [1.0, *numbers[1:]]
    classes = "abcd"[: rng.randint(2, 4)]
    # Not in order, or one against the rest would be all there is to find.
    return [classes[int(level * 3 * len(classes)) % len(classes)] for level in levels]


def random_table(seed: int, criteria: Sequence[str], recipe: Recipe = CART) -> Table:
    rng = random.Random(seed)
    criterion = rng.choice(criteria)
    n_rows = rng.choice([3, 6, 10, 15, 25, 40])
    hidden = [rng.random() for _ in range(n_rows)]
    cells = {
        f"x{i}": random_cells(rng, n_rows, hidden) for i in range(rng.randint(1, 3))
    }
    gaps = rng.choice([0.0, 0.15, 0.4])
    for name, column in cells.items():
        cells[name] = [None if rng.random() < gaps else cell for cell in column]
    weights = rng.choice(
        [
            None,
            [float(rng.randint(1, 4)) for _ in hidden],
            [rng.uniform(0.01, 10.0) for _ in hidden],
        ]
    )
    recipe = replace(
        recipe,
        criterion=criterion,
        missing=rng.choice(["largest", "split", "branch", "node"]),
        max_depth=1,
    )
    return Table(cells, random_target(rng, criterion, hidden), weights, recipe)


# -------------------------------------------------------------- what splits are worth


def impurity(sums: Sums, criterion: str) -> float:
    """Weight times impurity: of class weights, or of weight, sum and squares."""
    if criterion in FOR_NUMBERS:
        weight, total, squares = sums
        if criterion == "variance":
            return squares - total * total / weight
        return -total * math.log2(total / weight) if total > 0 else 0.0
    weight = math.fsum(sums)
    if criterion == "gini":
        return weight - math.fsum(s * s for s in sums) / weight
    return -math.fsum(s * math.log2(s / weight) for s in sums if s > 0)


class Oracle:
    """A table's rows, added up by value of each column."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.criterion = str(table.recipe.criterion)
        self.classes = sorted(set(table.target))
        numbers = [y for y in table.target if isinstance(y, float)]
        # Squares of what is left of the mean lose no digits.
        self.centre = 0.0
        if self.criterion == "variance":
            self.centre = math.fsum(numbers) / len(numbers)
        self.weight = self.weight_of(self.added(range(len(table.target))))
        self.sums = {name: self.by_value(name) for name in table.cells}

    def statistics(self, row: int) -> Sums:
        y = self.table.target[row]
        weight = 1.0 if self.table.weights is None else self.table.weights[row]
        if self.criterion in FOR_NUMBERS:
            y = y - self.centre
            return (weight, weight * y, weight * y * y)
        return tuple(weight if y == name else 0.0 for name in self.classes)

    def added(self, rows: Sequence[int]) -> Sums:
        return total([self.statistics(row) for row in rows])

    def weight_of(self, sums: Sums) -> float:
        return sums[0] if self.criterion in FOR_NUMBERS else math.fsum(sums)

    def by_value(self, name: str) -> dict[Any, Sums]:
        """What each value of a column has; None is a missing one."""
        rows = defaultdict(list)
        for row, cell in enumerate(self.table.cells[name]):
            rows[cell].append(row)
        return {value: self.added(rows[value]) for value in rows}

    def score(
        self, known: Sequence[Sums], gone: Sums | None, bits: float = 0.0
    ) -> float:
        """Score branches; missing cases are one more, or are left outside."""
        branches = list(known)
        outside = 0.0
        if gone is not None:
            if self.table.recipe.missing == "branch":
                branches.append(gone)
            else:
                outside = self.weight_of(gone)
        drop = impurity(total(branches), self.criterion) - math.fsum(
            impurity(branch, self.criterion) for branch in branches
        )
        drop = max(drop - bits, 0.0) if bits else drop
        if self.criterion != "gain_ratio":
            return drop / self.weight
        sizes = [self.weight_of(branch) for branch in branches]
        return drop / impurity((*sizes, outside), "gain")

    def worth(self, name: str, sides: Sequence[Side], bits: float = 0.0) -> float:
        """Score a split by the values on each of its sides."""
        sums = self.sums[name]
        known = [total([sums[value] for value in side]) for side in sides]
        return self.score(known, sums.get(None), bits)

    def admissible(self, name: str, sides: Sequence[Side]) -> bool:
        """Whether every branch has as many rows as the recipe asks for."""
        cells = self.table.cells[name]
        sizes = [sum(cell in side for cell in cells) for side in sides]
        if self.table.recipe.missing == "branch" and None in cells:
            sizes.append(cells.count(None))
        if self.criterion == "poisson" and not self.has_events(name, sides):
            return False
        large = [size >= self.table.recipe.min_samples_branch for size in sizes]
        return min(sizes) >= self.table.recipe.min_samples_leaf and sum(large) >= 2

    def has_events(self, name: str, sides: Sequence[Side]) -> bool:
        """Whether no branch would have a rate of 0."""
        sums = self.sums[name]
        branches = [total([sums[value] for value in side]) for side in sides]
        if self.table.recipe.missing == "branch" and None in sums:
            branches.append(sums[None])
        return all(branch[1] > 0 for branch in branches)

    def candidates(self, name: str) -> list[Sequence[Side]]:
        """Every cut of numbers and every two-way grouping of names, if admissible.

        Known against missing if there is none, and if missing is a branch.
        """
        values = sorted(set(self.table.cells[name]) - {None})
        ways = cuts(values) if self.table.is_numeric(name) else two_groups(values)
        if self.criterion == "poisson" and not self.table.is_numeric(name):
            # Along the order of rates: of groupings with an event on each side, one
            # that is not may be better.
            sums = self.sums[name]
            ways = cuts(sorted(values, key=lambda v: sums[v][1] / sums[v][0]))
        found = [sides for sides in ways if self.admissible(name, sides)]
        alone: list[Sequence[Side]] = [[frozenset(values)]] if values else []
        return found or [sides for sides in alone if self.admissible(name, sides)]

    def best(self) -> float | None:
        """The best score that any column has; None where no column can split."""
        scores = [
            self.worth(name, sides)
            for name in self.table.cells
            for sides in self.candidates(name)
        ]
        return max(scores, default=None)


def total(parts: Sequence[Sums]) -> Sums:
    return tuple(math.fsum(column) for column in zip(*parts, strict=True))


def cuts(values: Sequence[float]) -> Iterator[Sequence[Side]]:
    for i in range(1, len(values)):
        yield frozenset(values[:i]), frozenset(values[i:])


def two_groups(values: Sequence[Any]) -> Iterator[Sequence[Side]]:
    """Every way to part values in two; the first is in the first group."""
    for size in range(len(values) - 1):
        for others in itertools.combinations(values[1:], size):
            group = frozenset([values[0], *others])
            yield group, frozenset(values) - group


def chosen_sides(table: Table, model: Model) -> tuple[str, list[Side]]:
    """The column of the root and the values that it sends down each branch."""
    tree = model.tree
    column = model.schema.columns[int(tree.column[0])]
    present = set(table.cells[column.name]) - {None}
    if column.is_numeric:
        below = frozenset(v for v in present if v <= tree.threshold[0])
        sides = [below, frozenset(present) - below]
        return column.name, [side for side in sides if side]
    codes = [tree.codes_of(child) for child in tree.children(0)]
    named = [frozenset(column.categories[code] for code in part) for part in codes]
    return column.name, [side for side in named if side]


def check_root(table: Table, seed: object) -> str | None:
    """Compare the root with all candidates; return the kind of its column."""
    oracle, model = Oracle(table), table.fit_by_all()
    best = oracle.best()
    if len(model.tree) == 1:
        assert best is None or len(oracle.classes) == 1, seed
        return None
    assert best is not None, seed
    name, sides = chosen_sides(table, model)
    assert oracle.admissible(name, sides), seed
    close = pytest.approx(best, rel=TOLERANCE, abs=TOLERANCE)
    assert oracle.worth(name, sides) == close, seed
    return "numbers" if table.is_numeric(name) else f"{len(sides)} groups"


# ------------------------------------------------------------------ no split is better


@pytest.mark.parametrize("first", first_fast(range(0, 600, 100)))
def test_no_cut_and_no_grouping_is_better(first: int) -> None:
    kinds: Counter[str | None] = Counter()
    for seed in range(first, first + 100):
        table = random_table(seed, ["gain", "gini", "variance", "poisson"])
        kinds[check_root(table, seed)] += 1
    assert min(kinds["numbers"], kinds["2 groups"]) > 20
    assert kinds[None] < 15


def test_no_ratio_is_better() -> None:
    """Groups are chosen by the ratio of known cases, so none has gaps as a branch."""
    kinds: Counter[str | None] = Counter()
    for seed in range(2000, 2000 + examples(150)):
        table = random_table(seed, ["gain_ratio"])
        if table.recipe.missing == "branch":
            numbers = {n: c for n, c in table.cells.items() if table.is_numeric(n)}
            table = replace(table, cells=numbers)
        if table.cells:
            kinds[check_root(table, seed)] += 1
    assert min(kinds["numbers"], kinds["2 groups"]) > examples(21)


def test_no_admissible_split_is_better() -> None:
    """With more classes than two; groups in order are the best of all, not of these."""
    kinds: Counter[str | None] = Counter()
    for seed in range(3000, 3150):
        least = random.Random(seed).choice([2, 3, 5])
        recipe = replace(CART, min_samples_leaf=least)
        table = random_table(seed, ["gain", "gini"], recipe)
        if len(set(table.target)) > 2:
            kinds[check_root(table, seed)] += 1
    assert min(kinds["numbers"], kinds["2 groups"]) > 20


@pytest.mark.parametrize("criterion", ["gain", "gini", "variance", "poisson"])
def test_groups_in_order_are_the_best_of_all(criterion: str) -> None:
    """Two classes or numbers: with many values, too, no grouping is better."""
    for seed in range(examples(12)):
        table = many_values(seed, criterion, n_values=11, n_classes=2)
        assert check_root(table, seed) in (None, "2 groups")


@pytest.mark.parametrize("criterion", ["gain", "gini", "gain_ratio"])
def test_many_values_are_no_worse_than_the_documented_search(criterion: str) -> None:
    """One value against the rest, and values cut in the order of a class's share."""
    better = 0
    for seed in range(examples(60)):
        n_values = random.Random(seed).randint(ALL_GROUPINGS + 1, 16)
        table = many_values(seed, criterion, n_values, n_classes=3 + seed % 2)
        oracle, model = Oracle(table), table.fit_by_all()
        score = oracle.worth(*chosen_sides(table, model))
        values = sorted(set(table.cells["x"]) - {None})
        every = frozenset(values)
        single = max(oracle.worth("x", [frozenset([v]), every - {v}]) for v in values)
        ordered = max(
            oracle.worth("x", [group, every - group])
            for label in range(len(oracle.classes))
            for group in in_order_of_share(oracle, values, label)
        )
        assert score == pytest.approx(max(single, ordered), abs=TOLERANCE), seed
        better += score > single + 1e-6
    assert better > examples(15)


def test_one_value_may_be_better_than_any_cut_in_order() -> None:
    """The value v has the most of a and b together, but the most of no class."""
    counts = {f"p{i}": [5, 5, 5, 5] for i in range(6)} | {"v": [40, 40, 10, 10]}
    counts |= {"a": [9, 1, 5, 5], "b": [1, 9, 5, 5]}
    counts |= {"c": [5, 5, 9, 1], "d": [5, 5, 1, 9]}
    cells, target = [], []
    for name, sizes in counts.items():
        cells += [name] * sum(sizes)
        target += [y for y, n in zip("abcd", sizes, strict=True) for _ in range(n)]
    for criterion in ("gain", "gini"):
        recipe = replace(CART, criterion=criterion, max_depth=1)
        table = Table({"x": cells}, target, None, recipe)
        _, sides = chosen_sides(table, table.fit_by_all())
        assert {"v"} in sides


def in_order_of_share(oracle: Oracle, values: list[Any], label: int) -> Iterator[Side]:
    sums = oracle.sums["x"]
    shares = {v: sums[v][label] / math.fsum(sums[v]) for v in values}
    order = sorted(values, key=lambda v: shares[v])
    for size in range(1, len(order)):
        yield frozenset(order[:size])


def many_values(seed: int, criterion: str, n_values: int, n_classes: int) -> Table:
    """One column of names; each has its own distribution of what is to be told."""
    rng = random.Random(seed)
    names = [f"v{i:02}" for i in range(n_values)]
    likes = {name: [rng.random() ** 2 for _ in range(n_classes)] for name in names}
    cells = [rng.choice(names) for _ in range(rng.choice([40, 120]))]
    target: list[Any] = [
        rng.choices("abcd"[:n_classes], likes[name])[0] for name in cells
    ]
    if criterion in FOR_NUMBERS:
        target = [5 * likes[name][0] + rng.random() for name in cells]
    gaps = rng.choice([0.0, 0.2])
    weights = [rng.uniform(0.1, 3.0) for _ in cells] if rng.random() < 0.5 else None
    missing = rng.choice(["largest", "split"])
    return Table(
        {"x": [None if rng.random() < gaps else cell for cell in cells]},
        target,
        weights,
        replace(CART, criterion=criterion, missing=missing, max_depth=1),
    )


# ------------------------------------------------------------- groups of any number


def grouping_table(seed: int) -> Table:
    """A table for C4.5's groups: few values or many, with bars to pass."""
    rng = random.Random(seed)
    n_values = rng.choice([2, 3, 4, 5, 6, 7, 9, 12, ALL_MERGERS, ALL_MERGERS + 6])
    table = many_values(seed, "gain_ratio", n_values, n_classes=rng.randint(2, 4))
    recipe = replace(
        C45,
        branching="groups",
        missing=rng.choice(["split", "largest", "node"]),
        min_samples_branch=rng.choice([1, 2, 5]),
        min_samples_leaf=rng.choice([0, 0, 3]),
        max_depth=1,
        pruning=None,
        collapse=False,
    )
    return replace(table, recipe=recipe)


def merged_step_by_step(oracle: Oracle) -> list[Side] | None:
    """The documented search: the best merger, again and again; the best on the way."""
    values = sorted(set(oracle.table.cells["x"]) - {None})
    groups: list[Side] = [frozenset([value]) for value in values]
    best, found = -math.inf, None
    while len(groups) >= 2:
        # What it takes to say which grouping it is: the bound of Rennie and Dobson.
        ways = math.comb(len(values), len(groups)) / 2
        ways *= len(groups) ** (len(values) - len(groups))
        score = oracle.worth("x", groups, max(math.log2(ways), 0.0))
        as_good = score >= best - max(abs(best) * TOLERANCE, 1e-12)
        if oracle.admissible("x", groups) and (found is None or as_good):
            best, found = score, groups
        mergers = [
            merger(groups, a, b)
            for a, b in itertools.combinations(range(len(groups)), 2)
        ]
        if len(groups) == 2:
            return found
        scores = [oracle.worth("x", merged) for merged in mergers]
        top = max(scores)
        bar = top - max(abs(top) * TOLERANCE, 1e-12)
        groups = next(m for m, s in zip(mergers, scores, strict=True) if s >= bar)
    return found


def merger(groups: list[Side], a: int, b: int) -> list[Side]:
    joined = [group for i, group in enumerate(groups) if i != b]
    joined[a] = groups[a] | groups[b]
    return joined


@pytest.mark.parametrize("first", first_fast(range(0, 120, 40)))
def test_groups_are_those_of_the_documented_search(first: int) -> None:
    shared = 0
    for seed in range(first, first + 40):
        table = grouping_table(seed)
        values = set(table.cells["x"]) - {None}
        if len(values) > 12:
            continue
        expected = merged_step_by_step(Oracle(table))
        model = table.fit_by_all()
        if expected is None:
            assert len(model.tree) == 1, seed
            continue
        _, sides = chosen_sides(table, model)
        assert set(sides) == set(expected), seed
        shared += len(sides) < len(values)
    assert shared > 10


def test_groups_are_admissible_and_in_order() -> None:
    split = 0
    for seed in range(examples(60)):
        table = grouping_table(seed)
        model = table.fit_by_all()
        if len(model.tree) == 1:
            continue
        split += 1
        tree = model.tree
        codes = [tree.codes_of(child) for child in tree.children(0)]
        # Values in order within a branch, branches in the order of their first ones.
        assert all(part == sorted(part) for part in codes), seed
        assert [part[0] for part in codes] == sorted(part[0] for part in codes), seed
        # All values of the node, each once.
        named = [model.schema.columns[0].categories[c] for part in codes for c in part]
        assert sorted(named) == sorted(set(table.cells["x"]) - {None}), seed
        oracle = Oracle(table)
        name, sides = chosen_sides(table, model)
        assert oracle.admissible(name, sides), seed
        apart = [frozenset([value]) for value in sorted(named)]
        if oracle.admissible(name, apart):
            assert oracle.worth(name, sides) >= oracle.worth(name, apart) - TOLERANCE
    assert split > examples(30)


@pytest.mark.parametrize(
    "make",
    [
        grouping_table,
        lambda seed: random_table(seed, ["gain", "gini"]),
        lambda seed: random_table(seed, ["variance", "poisson"]),
    ],
    ids=["groups", "two-way", "numbers"],
)
def test_row_order_changes_no_group(make: Callable[[int], Table]) -> None:
    for seed in range(examples(15)):
        table = make(seed)
        order = list(range(len(table.target)))
        random.Random(seed).shuffle(order)
        model = table.fit_by_all().to_bytes()
        assert table.fit_by_all().to_bytes() == model, seed
        assert table.rows(order).fit_by_all().to_bytes() == model, seed
