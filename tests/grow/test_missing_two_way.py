"""Missing values in two-way trees: a side that is learnt, and surrogate splits.

The oracles here are written from the definitions: plain Python over lists of rows,
every cut, every grouping and either side tried one by one.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from branchwise import (
    CARTClassifier,
    CARTRegressor,
    DataError,
    Model,
    ParameterError,
    fit_tree,
)
from branchwise import (
    native as extension,
)
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.target import Classes
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow.grow import grow, recount
from branchwise.recipe import CART, Recipe
from branchwise.text.conditions import surrogates_of
from branchwise.tree.tree import ARRAYS, SURROGATE_ARRAYS, Tree
from branchwise.tree.validation import validate
from random_tables import KERNELS
from selection import examples, first_fast

Row = dict[str, Any]
TIE = 1e-9


# ------------------------------------------------------------------------- tables


@dataclass
class Table:
    """Rows with gaps, what is to be predicted, weights; None marks numbers."""

    columns: dict[str, list[str] | None]
    rows: list[Row]
    target: list[Any]
    weights: list[float] | None
    criterion: str

    def cells(self, rows: list[Row] | None = None) -> dict[str, Any]:
        rows = self.rows if rows is None else rows
        return {
            name: [row[name] for row in rows]
            if values is not None
            else np.array([row[name] for row in rows], dtype=float)
            for name, values in self.columns.items()
        }

    def fit(self, missing: str, **options: Any) -> Model:
        options = {"threshold": "midpoint", "criterion": self.criterion} | options
        return fit_tree(
            self.cells(),
            self.target,
            replace(CART, missing=missing, **options),
            sample_weight=self.weights,
            categories={name: v for name, v in self.columns.items() if v is not None},
        )

    def weight(self, index: int) -> float:
        """Return a multiple of a quarter, so that sums are exact."""
        return 1.0 if self.weights is None else self.weights[index]


def random_table(
    seed: int, gaps: float = 0.25, numbers: bool = False, large: bool = False
) -> Table:
    rng = random.Random(seed)
    n_rows = rng.choice([24, 40] if large else [4, 8, 12, 16, 24])
    criterion = rng.choice(["gini", "gini", "gain", "variance", "poisson"])
    columns: dict[str, list[str] | None] = {}
    rows: list[Row] = [{} for _ in range(n_rows)]
    hidden = [rng.random() for _ in rows]
    for index in range(rng.randint(4, 9) if large else rng.randint(2, 4)):
        name = f"x{index}"
        related = rng.random() < 0.7
        numeric = numbers or rng.random() < 0.5
        columns[name] = None if numeric else [f"v{i}" for i in range(rng.randint(2, 5))]
        for row, level in zip(rows, hidden, strict=True):
            level = level if related else rng.random()
            level = (1 - level) if index == 2 else level
            step = int(level * (7 if numeric else len(columns[name] or ())))
            row[name] = float(step) if numeric else f"v{step}"
            if rng.random() < gaps:
                row[name] = None
    target: list[Any]
    if criterion in ("variance", "poisson"):
        target = [float(rng.randint(0, 3)) for _ in rows]
        target[0] = 1.0
    else:
        classes = "abc"[: rng.choice([2, 2, 3])]
        target = [
            classes[int(level * len(classes))]
            if rng.random() < 0.7
            else rng.choice(classes)
            for level in hidden
        ]
    weights = None
    if rng.random() < 0.4:
        weights = [rng.randint(1, 12) / 4 for _ in rows]
    return Table(columns, rows, target, weights, criterion)


# ------------------------------------------------------------- the learnt side, naive


def impurity(table: Table, rows: list[int]) -> float:
    """Weight times impurity of some rows."""
    total = weight_of(table, rows)
    if table.criterion in ("variance", "poisson"):
        events = math.fsum(table.weight(i) * table.target[i] for i in rows)
        mean = events / total
        if table.criterion == "poisson":
            # A rate of 0 is not allowed.
            return -events * math.log2(mean) if events else math.inf
        return math.fsum(table.weight(i) * (table.target[i] - mean) ** 2 for i in rows)
    shares = [
        sum(table.weight(i) for i in rows if table.target[i] == name) / total
        for name in sorted(set(table.target))
    ]
    if table.criterion == "gini":
        return total * (1 - math.fsum(share**2 for share in shares))
    return -total * math.fsum(p * math.log2(p) for p in shares if p)


def weight_of(table: Table, rows: list[int]) -> float:
    return sum(table.weight(i) for i in rows)


@dataclass
class Candidate:
    """A way to split: known rows on either side, the side of the others, a score."""

    column: str
    threshold: float | None
    known: tuple[list[int], list[int]]
    missing_to: int | None
    score: float


def groupings(values: list[str]) -> Iterator[set[str]]:
    """Every set of values that has the first one, but not all of them."""
    first, *others = values
    for size in range(len(others)):
        for chosen in itertools.combinations(others, size):
            yield {first, *chosen}


def ways_to_part(
    table: Table, rows: list[int], name: str
) -> Iterator[tuple[float | None, Callable[[Any], bool]]]:
    known = sorted({table.rows[i][name] for i in rows} - {None})
    if table.columns[name] is None:
        for low, high in itertools.pairwise(known):
            cut = (low + high) / 2
            yield cut, lambda cell, cut=cut: cell <= cut
    elif known:
        for group in groupings(known):
            yield None, lambda cell, group=group: cell in group


def learned_candidates(table: Table, rows: list[int]) -> Iterator[Candidate]:
    """Every cut or grouping, missing rows on the larger side and on the other."""
    whole = impurity(table, rows)
    for name in table.columns:
        gone = [i for i in rows if table.rows[i][name] is None]
        for cut, goes_left in ways_to_part(table, rows, name):
            known = [i for i in rows if table.rows[i][name] is not None]
            left = [i for i in known if goes_left(table.rows[i][name])]
            right = [i for i in known if not goes_left(table.rows[i][name])]
            larger = int(weight_of(table, left) < weight_of(table, right))
            for side in (larger, 1 - larger) if gone else (None,):
                sides = (
                    left + gone if side == 0 else left,
                    right + gone if side == 1 else right,
                )
                score = whole - impurity(table, sides[0]) - impurity(table, sides[1])
                yield Candidate(name, cut, (left, right), side, score)


def first_best(candidates: list[Candidate]) -> Candidate:
    top = max(c.score for c in candidates)
    return next(c for c in candidates if c.score >= top - max(TIE * abs(top), 1e-9))


def root_sides(model: Model, table: Table) -> tuple[list[int], list[int]]:
    """Take the rows down the root of the tree, by its arrays alone."""
    tree, schema = model.tree, model.schema
    name = schema.names[int(tree.column[0])]
    column = schema.columns[int(tree.column[0])]
    sides: tuple[list[int], list[int]] = ([], [])
    for index, row in enumerate(table.rows):
        if row[name] is None:
            branch = int(tree.missing_to[0])
        else:
            code = (
                int(row[name] > tree.threshold[0])
                if column.is_numeric
                else column.code_of[row[name]]
            )
            (branch,) = [b for b in (0, 1) if code in tree.codes_of(1 + b)]
        sides[branch].append(index)
    return sides


# --------------------------------------------------------------------------- learnt


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_cut_grouping_or_side_is_better(first: int) -> None:
    sides_learnt = set()
    for seed in range(first, first + 100):
        table = random_table(seed)
        rows = list(range(len(table.rows)))
        model = table.fit("learned", max_depth=1)
        candidates = list(learned_candidates(table, rows))
        if len(model.tree) == 1:
            assert not candidates or len(set(table.target)) == 1, seed
            continue
        sides = root_sides(model, table)
        score = impurity(table, rows) - sum(impurity(table, side) for side in sides)
        best = max(c.score for c in candidates)
        assert score == pytest.approx(best, rel=1e-9, abs=1e-9), seed
        # Among the same known rows on either side, the rule says where gaps go.
        name = model.schema.names[int(model.tree.column[0])]
        known = tuple(known_rows(table, name, side) for side in sides)
        expected = first_best([c for c in candidates if same_known(c, name, known)])
        if expected.missing_to is not None:
            assert int(model.tree.missing_to[0]) == expected.missing_to, seed
            first_is_larger = weight_of(table, known[0]) >= weight_of(table, known[1])
            sides_learnt.add((expected.missing_to, first_is_larger))
    # Either side wins, as the larger one and as the smaller one.
    assert len(sides_learnt) == 4


def known_rows(table: Table, name: str, rows: list[int]) -> list[int]:
    return [i for i in rows if table.rows[i][name] is not None]


def same_known(candidate: Candidate, name: str, known: tuple[list[int], ...]) -> bool:
    return candidate.column == name and candidate.known == known


@pytest.mark.parametrize("first", range(1000, 1200, 100))
def test_number_tables_have_the_very_cut_and_side(first: int) -> None:
    """Ties: the lower column, the lower cut, the larger known side, the left."""
    for seed in range(first, first + 100):
        table = random_table(seed, numbers=True)
        model = table.fit("learned", max_depth=1)
        if len(model.tree) == 1:
            continue
        best = first_best(list(learned_candidates(table, list(range(len(table.rows))))))
        assert model.schema.names[int(model.tree.column[0])] == best.column, seed
        assert model.tree.threshold[0] == best.threshold, seed
        if best.missing_to is not None:
            assert model.tree.missing_to[0] == best.missing_to, seed


def test_many_values_and_classes_are_no_worse_than_any_one_against_the_rest() -> None:
    rng = random.Random(5)
    values = [f"v{i:02}" for i in range(12)]
    for _ in range(20):
        rows = [{"x": rng.choice([*values, None, None])} for _ in range(60)]
        target = [rng.choice("abc") for _ in rows]
        table = Table({"x": values}, rows, target, None, "gini")
        model = table.fit("learned", max_depth=1)
        every = list(range(60))
        score = impurity(table, every) - sum(
            impurity(table, side) for side in root_sides(model, table)
        )
        for value in {row["x"] for row in rows} - {None}:
            one = [i for i in every if rows[i]["x"] == value]
            gone = [i for i in every if rows[i]["x"] is None]
            rest = [i for i in every if rows[i]["x"] not in (value, None)]
            for sides in ((one + gone, rest), (one, rest + gone)):
                other = impurity(table, every) - sum(impurity(table, s) for s in sides)
                assert score >= other - 1e-9


def test_the_side_is_learnt_where_it_tells() -> None:
    x = np.array([1, 2, 3, 4, 5, 6, np.nan, np.nan])
    tree = CARTClassifier(missing="learned").fit({"x": x}, list("aaabbbbb"))
    assert tree.tree_.missing_to.tolist() == [1, -1, -1]
    assert tree.tree_.weights.tolist() == [[3, 5], [3, 0], [0, 5]]
    assert tree.predict({"x": np.array([np.nan, 1])}).tolist() == ["b", "a"]
    tree = CARTClassifier(missing="learned").fit({"x": x}, list("aaabbbaa"))
    assert tree.tree_.missing_to.tolist() == [0, -1, -1]


def test_where_both_sides_are_as_good_the_larger_one_has_missing_cases() -> None:
    y = list("abababab")
    for x, branch in (([1, 1, 2, 2, 2, 2], 1), ([1, 1, 1, 1, 2, 2], 0)):
        numbers = np.array([*x, np.nan, np.nan])
        names = [*map(str, x), None, None]
        for cells in (numbers, names):
            tree = CARTClassifier(missing="learned", max_depth=1).fit({"x": cells}, y)
            assert tree.tree_.missing_to[0] == branch
    # Of sides that are equally large, the first.
    x = np.array([1, 1, 2, 2, np.nan, np.nan])
    tree = CARTClassifier(missing="learned", max_depth=1).fit({"x": x}, list("ababab"))
    assert tree.tree_.missing_to[0] == 0


def test_without_missing_cases_the_larger_branch_has_them() -> None:
    cells = {"x": [1.0, 2, 3, 4, 5]}
    tree = CARTClassifier(missing="learned").fit(cells, list("aaabb")).tree_
    assert tree.missing_to[0] == 0
    tree = CARTClassifier(missing="learned").fit(cells, list("aabbb")).tree_
    assert tree.missing_to[0] == 1


def test_missing_cases_count_for_the_least_cases_of_a_branch() -> None:
    x = np.array([1, 2, 3, 4, 5, np.nan, np.nan])
    y = list("abbbbaa")
    tree = CARTClassifier(missing="learned", min_samples_leaf=3, max_depth=1)
    assert tree.fit({"x": x}, y).tree_.threshold[0] == 1.0
    assert tree.tree_.cases.tolist() == [7, 3, 4]


def test_known_against_missing_is_no_split() -> None:
    x = np.array([1, 1, np.nan, np.nan])
    assert len(CARTClassifier(missing="learned").fit({"x": x}, list("aabb")).tree_) == 1
    cells = {"x": ["p", "p", None, None]}
    assert len(CARTClassifier(missing="learned").fit(cells, list("aabb")).tree_) == 1


# --------------------------------------------------------------- surrogates, naive


@dataclass
class Naive:
    """A surrogate from the definition: which cell goes where (None: no answer)."""

    column: str
    agreement: float
    threshold: float | None
    branch: dict[Any, int]

    def prediction(self, cell: Any) -> int | None:
        if cell is None:
            return None
        if self.threshold is not None:
            return self.branch["<=" if cell <= self.threshold else ">"]
        return self.branch.get(cell)


def naive_surrogates(
    table: Table, rows: list[int], primary: str, side: dict[int, int]
) -> list[Naive]:
    """The surrogates of a split that sends row i to ``side[i]``, best first."""
    size = [
        weight_of(table, [i for i in rows if side.get(i) == branch])
        for branch in (0, 1)
    ]
    larger = int(size[0] < size[1])
    found = []
    for name, values in table.columns.items():
        if name == primary:
            continue
        both = [i for i in rows if i in side and table.rows[i][name] is not None]
        ways = naive_cuts if values is None else naive_groups
        possible = ways(table, both, name, side, larger)
        if possible:
            found.append(
                max(possible, key=lambda s: s.agreement)
            )  # the first of equals
    good = [s for s in found if s.agreement > max(size)]
    return sorted(good, key=lambda s: -s.agreement)[:5]


def naive_cuts(
    table: Table, both: list[int], name: str, side: dict[int, int], _: int
) -> list[Naive]:
    found = []
    for low, high in itertools.pairwise(sorted({table.rows[i][name] for i in both})):
        cut = (low + high) / 2
        below = [i for i in both if table.rows[i][name] <= cut]
        above = [i for i in both if table.rows[i][name] > cut]
        if min(len(below), len(above)) < 2:
            continue
        for left in (0, 1):
            same = [i for i in below if side[i] == left]
            same += [i for i in above if side[i] != left]
            way = {"<=": left, ">": 1 - left}
            found.append(Naive(name, weight_of(table, same), cut, way))
    return found


def naive_groups(
    table: Table, both: list[int], name: str, side: dict[int, int], larger: int
) -> list[Naive]:
    way, agreement = {}, 0.0
    for value in {table.rows[i][name] for i in both}:
        mine = [i for i in both if table.rows[i][name] == value]
        weight = [weight_of(table, [i for i in mine if side[i] == b]) for b in (0, 1)]
        way[value] = larger if weight[0] == weight[1] else int(weight[0] < weight[1])
        agreement += max(weight)
    sent = [way[table.rows[i][name]] for i in both]
    if min(sent.count(0), sent.count(1)) < 2:
        return []
    return [Naive(name, agreement, None, way)]


def primary_branch(model: Model, node: int, row: Row) -> int | None:
    """Where its own value sends a row; None for a missing one, -1 for no branch."""
    tree = model.tree
    column = model.schema.columns[int(tree.column[node])]
    cell = row[column.name]
    if cell is None:
        return None
    code = (
        int(cell > tree.threshold[node]) if column.is_numeric else column.code_of[cell]
    )
    first = int(tree.first_child[node])
    ways = [b for b in (0, 1) if code in tree.codes_of(first + b)]
    return ways[0] if ways else -1


def shown(model: Model, node: int) -> list[tuple[str, float | None, dict[Any, int]]]:
    """The surrogates of a node of a tree in the form of the naive ones."""
    result = []
    for surrogate in surrogates_of(model.schema, model.tree, node):
        way, cut = {}, None
        for branch, condition in enumerate(surrogate):
            if condition.op in ("<=", ">"):
                way[condition.op], cut = branch, condition.value
            else:
                values = condition.value
                values = values if isinstance(values, tuple) else (values,)
                way |= dict.fromkeys(values, branch)
        result.append((surrogate.first.column, cut, way))
    return result


@pytest.mark.parametrize("first", first_fast(range(0, 120, 30)))
def test_surrogates_are_those_of_the_definition(first: int) -> None:
    """At every node: the surrogates, and where they send the rows without a value."""
    number = used = kinds = most = 0
    for seed in range(first, first + 30):
        table = random_table(seed, gaps=(0.05, 0.2)[seed % 2], large=True)
        model = table.fit("surrogate")
        tree = model.tree
        validate(tree, model.schema)
        at: dict[int, list[int]] = {0: list(range(len(table.rows)))}
        for node in range(len(tree)):
            rows = at[node]
            assert tree.cases[node] == len(rows), (seed, node)
            weight = float(weight_of(table, rows))
            assert tree.weights[node].sum() == pytest.approx(weight), (seed, node)
            if not tree.n_children[node]:
                continue
            side = {
                i: branch
                for i in rows
                if (branch := primary_branch(model, node, table.rows[i])) is not None
            }
            name = model.schema.names[int(tree.column[node])]
            expected = naive_surrogates(table, rows, name, side)
            wanted = [(s.column, s.threshold, s.branch) for s in expected]
            assert shown(model, node) == wanted, (seed, node)
            first_child = int(tree.first_child[node])
            at[first_child], at[first_child + 1] = [], []
            for i in rows:
                branch = side.get(i)
                if branch is None:
                    answers = [s.prediction(table.rows[i][s.column]) for s in expected]
                    known = [a for a in answers if a is not None]
                    branch = known[0] if known else int(tree.missing_to[node])
                    used += bool(known)
                at[first_child + branch].append(i)
            number += len(expected)
            most = max(most, len(expected))
            kinds |= sum(1 << (s.threshold is None) for s in expected[:1])
        arrived = dict.fromkeys(range(len(tree)), 0)
        for node in model.apply(table.cells()).tolist():
            arrived[node] += 1
        assert all(arrived[n] == tree.cases[n] for n in np.flatnonzero(tree.is_leaf))
    assert number > 200
    assert used > 50
    assert kinds == 3  # cuts and groups
    assert most == 5


@pytest.mark.parametrize("kernel", KERNELS)
def test_new_rows_are_answered_by_the_first_surrogate_that_knows(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(extension.VARIABLE, kernel)
    rng = random.Random(3)
    followed = 0
    for seed in range(60):
        table = random_table(seed)
        model = table.fit("surrogate")
        tree = model.tree
        rows = [
            {
                name: None
                if rng.random() < 0.4
                else float(rng.randint(0, 7))
                if values is None
                else rng.choice(values)
                for name, values in table.columns.items()
            }
            for _ in range(30)
        ]
        for row, reached in zip(rows, model.apply(table.cells(rows)), strict=True):
            node = 0
            while tree.n_children[node]:
                branch = primary_branch(model, node, row)
                if branch is None:
                    branch = int(tree.missing_to[node])
                    for name, cut, way in shown(model, node):
                        answer = Naive(name, 0.0, cut, way).prediction(row[name])
                        if answer is not None:
                            followed += answer != branch
                            branch = answer
                            break
                if branch < 0:  # a value without a case at the node
                    break
                node = int(tree.first_child[node]) + branch
            assert node == reached, seed
    assert followed > 50


def test_the_larger_branch_is_that_of_known_cases() -> None:
    x = np.array([1, 2, 3, 4, 5, np.nan])
    tree = CARTClassifier(missing="surrogate").fit({"x": x}, list("aabbba")).tree_
    assert tree.missing_to[0] == 1
    assert tree.surrogates is None


# ---------------------------------------------------------------------- by hand


def test_a_twin_of_the_column_restores_every_answer() -> None:
    x = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    y = list("aaabbbaa")
    cells = {"x": x, "noise": [1.0, 1, 2, 2, 1, 1, 2, 2], "twin": -x}
    model = CARTClassifier(missing="surrogate").fit(cells, y).model_
    best = surrogates_of(model.schema, model.tree, 0)[0]
    assert str(best) == "twin >= -3, twin <= -4"
    gone = cells | {"x": np.full(8, np.nan)}
    assert model.predict(gone).tolist() == y
    largest = CARTClassifier(missing="largest").fit(cells, y)
    assert largest.predict(gone).tolist() != y


def test_a_category_stands_in_for_a_number() -> None:
    x = np.array([1, 2, 3, 4, 5, 6.0])
    y = [1.0, 1, 1, 5, 5, 5]
    colour = ["red", "blue", "red", "green", "green", "white"]
    model = CARTRegressor(missing="surrogate").fit({"x": x, "colour": colour}, y).model_
    (surrogate,) = surrogates_of(model.schema, model.tree, 0)
    assert str(surrogate) == "colour in {blue, red}, colour in {green, white}"
    gone = {"x": np.full(6, np.nan), "colour": colour}
    assert model.predict(gone).tolist() == y
    # What no surrogate knows follows the larger branch, here the first of equals.
    unknown = {"x": np.full(2, np.nan), "colour": ["pink", None]}
    assert model.predict(unknown).tolist() == [1.0, 1.0]


def weight_and_height() -> tuple[dict[str, Any], list[int]]:
    weight = np.array([10, 9, 8, 7, 6, 5, np.nan, 3, 2, 1])
    height = np.array([10, 9, 8, 7, 5, 6, 4, 3, 2, 1.0])
    return {"weight": weight, "height": height}, [1] * 5 + [0] * 5


def test_the_rules_of_rpart_on_a_small_table() -> None:
    """Its summary: weight < 5.5, 1 missing; height, agree=0.889, adj=0.75, 1 split.

    Of the nine cases with a known weight five are above the cut, so the blind rule
    is right for five, and the best cut of height for eight: (8 - 5) / (9 - 5).
    """
    cells, y = weight_and_height()
    model = CARTClassifier(missing="surrogate", max_depth=1).fit(cells, y).model_
    tree = model.tree
    assert (model.schema.names[int(tree.column[0])], tree.threshold[0]) == (
        "weight",
        5.0,
    )
    # Ours lies between cases that know both columns, 3 and 5; rpart's at 3.5.
    assert shown(model, 0) == [("height", 4.0, {"<=": 0, ">": 1})]
    assert tree.missing_to[0] == 1
    assert tree.cases.tolist() == [10, 5, 5]
    nothing = np.array([np.nan])
    assert model.predict({"weight": nothing, "height": nothing}).tolist() == [1]
    assert model.predict({"weight": nothing, "height": np.array([2.0])}).tolist() == [0]


def test_a_surrogate_must_beat_the_larger_branch() -> None:
    cells, y = weight_and_height()
    # Agrees for five of nine: no better than sending all above the cut.
    useless = np.array([1, 1, 1, 2, 2, 1, 1, 1, 2, 2.0])
    model = CARTClassifier(missing="surrogate", max_depth=1).fit(
        {"weight": cells["weight"], "useless": useless}, y
    )
    assert model.tree_.surrogates is None
    # Perfect, but known for so few that guessing is right more often.
    rare = np.full(10, np.nan)
    rare[[0, 1, 8, 9]] = [2, 2, 1, 1]
    model = CARTClassifier(missing="surrogate", max_depth=1).fit(
        {"weight": cells["weight"], "rare": rare}, y
    )
    assert model.tree_.surrogates is None


def test_a_surrogate_sends_two_cases_either_way() -> None:
    x = np.array([1, 2, 3, 4, 5.0])
    y = list("abbbb")
    alone = CARTClassifier(missing="surrogate").fit({"x": x, "twin": x}, y)
    assert alone.tree_.surrogates is None
    x = np.array([1, 1, 3, 4, 5.0])
    two = CARTClassifier(missing="surrogate").fit({"x": x, "twin": x}, list("aabbb"))
    assert two.tree_.n_surrogates is not None


def test_no_more_than_five_and_of_equals_the_lower_column() -> None:
    x = np.array([1, 2, 3, 4, 5, 6.0])
    nearly = np.array([1, 2, 4, 3, 5, 6.0])
    cells = {"x": x, "nearly": nearly} | {f"twin{i}": x for i in range(6)}
    model = CARTClassifier(missing="surrogate").fit(cells, list("aaabbb")).model_
    names = [name for name, _, _ in shown(model, 0)]
    assert names == [f"twin{i}" for i in range(5)]
    cells = {"x": x, "nearly": nearly, "twin": x}
    model = CARTClassifier(missing="surrogate").fit(cells, list("aaabbb")).model_
    assert [name for name, _, _ in shown(model, 0)] == ["twin", "nearly"]


def test_weights_decide_what_agrees() -> None:
    x = np.array([1, 1, 1, 2, 2, 2.0])
    first = np.array([1, 1, 2, 2, 2, 2.0])  # errs for row 2
    second = np.array([1, 1, 1, 1, 2, 2.0])  # errs for row 3
    cells = {"x": x, "first": first, "second": second}
    for heavy, expected in ((2, ["second", "first"]), (3, ["first", "second"])):
        weights = np.ones(6)
        weights[heavy] = 1.5
        tree = CARTClassifier(missing="surrogate").fit(cells, list("aaabbb"), weights)
        assert [name for name, _, _ in shown(tree.model_, 0)] == expected


# -------------------------------------------------------------------------- laws


def same_but_for_surrogates(one: Tree, other: Tree) -> bool:
    return all(
        np.array_equal(
            getattr(one, spec.name),
            getattr(other, spec.name),
            equal_nan=spec.dtype is np.float64,
        )
        for spec in ARRAYS
    )


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_without_gaps_the_tree_is_that_of_largest(missing: str) -> None:
    for seed in range(examples(80)):
        table = random_table(seed, gaps=0.0)
        options = {"min_samples_leaf": 1 + seed % 3}
        tree = table.fit(missing, **options).tree
        assert same_but_for_surrogates(tree, table.fit("largest", **options).tree), seed


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_the_order_of_rows_does_not_matter(missing: str) -> None:
    rng = random.Random(1)
    for seed in range(examples(60)):
        table = random_table(seed)
        order = list(range(len(table.rows)))
        rng.shuffle(order)
        other = replace(
            table,
            rows=[table.rows[i] for i in order],
            target=[table.target[i] for i in order],
            weights=None
            if table.weights is None
            else [table.weights[i] for i in order],
        )
        assert table.fit(missing).tree == other.fit(missing).tree, seed


def test_a_weight_is_as_good_as_that_many_rows() -> None:
    """For the learnt side; surrogates want a number of cases, whatever they weigh."""
    rng = random.Random(2)
    for seed in range(examples(60)):
        table = random_table(seed)
        times = [rng.randint(1, 3) for _ in table.rows]
        weighted = replace(table, weights=[float(n) for n in times])
        every = [i for i, n in enumerate(times) for _ in range(n)]
        repeated = replace(
            table,
            rows=[table.rows[i] for i in every],
            target=[table.target[i] for i in every],
            weights=None,
        )
        one, other = weighted.fit("learned").tree, repeated.fit("learned").tree
        for spec in ARRAYS:
            if spec.name != "cases":
                a, b = getattr(one, spec.name), getattr(other, spec.name)
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), seed


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_bins": 3},
        {"threshold": "value"},
        {"max_leaf_nodes": 4},
        {"pruning": "cost-complexity", "ccp_alpha": 0.02},
    ],
    ids=["plain", "bins", "cut at a value", "few leaves", "pruned"],
)
def test_training_rows_arrive_where_growth_has_put_them(
    missing: str, options: dict[str, Any]
) -> None:
    kept = 0
    for seed in range(examples(60)):
        table = random_table(seed)
        model = table.fit(missing, **options)
        tree = model.tree
        validate(tree, model.schema)
        arrived = np.bincount(model.apply(table.cells()), minlength=len(tree))
        assert arrived[tree.is_leaf].tolist() == tree.cases[tree.is_leaf].tolist(), seed
        kept += tree.n_surrogates is not None
    assert (kept > examples(20)) == (missing == "surrogate")


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_raised_branches_keep_what_they_do_with_gaps(missing: str) -> None:
    for seed in range(examples(60)):
        table = random_table(seed)
        if table.criterion not in ("gini", "gain"):
            continue
        model = table.fit(missing, pruning="error-based", confidence=0.4)
        validate(model.tree, model.schema)
        arrived = np.bincount(model.apply(table.cells()), minlength=len(model.tree))
        at_leaves = model.tree.cases[model.tree.is_leaf]
        assert arrived[model.tree.is_leaf].tolist() == at_leaves.tolist(), seed


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_counting_again_changes_nothing(missing: str) -> None:
    recipe = replace(CART, missing=missing)
    for seed in range(30):
        table = random_table(seed)
        if table.criterion not in ("gini", "gain"):
            continue
        schema = table.fit(missing).schema
        every = range(len(table.columns))
        data = encode_columns(open_table(table.cells()), schema, every)
        labels = np.array([schema.classes.index(name) for name in table.target])
        training = Training(schema.columns, data, labels, len(schema.classes))
        target = Classes(labels, len(schema.classes))
        grid = training.grid(recipe)
        engine = MemoryEngine(schema.columns, data, target, grid)
        tree = grow(engine, schema.columns, recipe)
        again, origin = recount(engine, schema.columns, tree, False)
        assert again == tree, seed
        assert origin.tolist() == list(range(len(tree)))


def test_pruned_nodes_lose_their_surrogates_and_others_keep_them() -> None:
    for seed in range(examples(40)):
        table = random_table(seed)
        full = table.fit("surrogate")
        small = table.fit("surrogate", max_depth=1)
        few = table.fit("surrogate", max_leaf_nodes=2)
        assert few.tree == small.tree, seed
        assert shown(small, 0) == shown(full, 0), seed


def test_both_kernels_answer_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(30):
        table = random_table(seed)
        for missing in ("learned", "surrogate"):
            model = table.fit(missing)
            answers = []
            for kernel in KERNELS:
                monkeypatch.setenv(extension.VARIABLE, kernel)
                answers.append(model.predict(table.cells()).tolist())
            assert all(answer == answers[0] for answer in answers)


# ------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("policy", ["learned", "surrogate"])
@pytest.mark.parametrize("branching", ["values", "groups"])
def test_only_two_way_trees_take_them(policy: str, branching: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Recipe(missing=policy, branching=branching)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"missing={policy!r} is for trees with two-way splits, such as CART's. Got "
        f"branching={branching!r}; choose 'branch', 'split', 'largest' or 'node' for "
        "it."
    )


@pytest.mark.parametrize("policy", ["learned", "surrogate"])
def test_unseen_values_do_not_take_them(policy: str) -> None:
    with pytest.raises(ParameterError, match="unseen must be 'branch' or") as caught:
        CARTClassifier(unseen=policy).fit({"x": [1.0, 2]}, ["a", "b"])  # type: ignore[arg-type]
    assert str(caught.value).endswith(f"Got {policy!r} instead.")


@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_unseen_values_follow_the_larger_branch(missing: str) -> None:
    cells = {"x": ["p", "p", "q", "q", "q"], "twin": ["p", "p", "q", "q", "q"]}
    model = CARTClassifier(missing=missing).fit(cells, list("aabbb"))  # type: ignore[arg-type]
    assert model.predict({"x": ["z"], "twin": ["p"]}).tolist() == ["b"]


def test_the_larger_branch_is_counted_with_the_missing_cases_it_has() -> None:
    cells = {"x": ["p", "p", "q", None, None]}
    model = CARTClassifier(missing="learned").fit(cells, list("aabbb"))
    assert model.tree_.weights.tolist() == [[2, 3], [2, 0], [0, 3]]
    assert model.predict({"x": ["z"]}).tolist() == ["b"]


def sane_tree() -> tuple[Model, Tree]:
    x = np.array([1, 2, 3, 4, 5, 6.0])
    colour = ["red", "blue", "red", "green", "green", "green"]
    cells = {"x": x, "twin": x, "colour": colour}
    model = CARTClassifier(missing="surrogate").fit(cells, list("aaabbb")).model_
    return model, model.tree


def test_the_arrays_say_what_they_should() -> None:
    _, tree = sane_tree()
    got = [getattr(tree, spec.name).tolist() for spec in SURROGATE_ARRAYS]
    assert got[0] == [2, 0, 0]
    assert got[1] == [1, 2]
    assert got[2][0] == 3.0
    assert math.isnan(got[2][1])
    assert got[3] == [1, 1, 2, 1]
    assert got[4] == [0, 1, 0, 2, 1]
    assert tree.arrays == ARRAYS + SURROGATE_ARRAYS
    assert tree.used_columns == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"surrogate_threshold": None}, "all of the arrays 'n_surrogates', "),
        ({"n_surrogates": [2, 0]}, "array 'n_surrogates' has shape"),
        ({"surrogate_threshold": [3.5]}, "array 'surrogate_cut' has shape"),
        ({"surrogate_n_codes": [1, 1]}, "array 'surrogate_n_codes' has shape"),
        ({"n_surrogates": [1, 0, 0]}, "n_surrogates must add up"),
        ({"n_surrogates": [3, -1, 0]}, "n_surrogates must add up"),
        ({"n_surrogates": [1, 1, 0]}, "a node without two branches"),
        ({"surrogate_column": [0, 2]}, "a surrogate on the node's own column"),
        ({"surrogate_column": [1, 3]}, "one beyond those of the schema"),
        ({"surrogate_column": [-1, 2]}, "one beyond those of the schema"),
        (
            {"surrogate_threshold": [np.nan, np.nan]},
            "a surrogate needs a threshold on numbers",
        ),
        (
            {"surrogate_threshold": [3.5, 1.0]},
            "a surrogate needs a threshold on numbers",
        ),
        (
            {"surrogate_threshold": [np.inf, np.nan]},
            "a surrogate needs a threshold on numbers",
        ),
        (
            {"surrogate_threshold": [3.5, np.inf]},
            "a surrogate needs a threshold on numbers",
        ),
        ({"surrogate_n_codes": [1, 1, 3, 0]}, "surrogate_n_codes must add up"),
        ({"surrogate_n_codes": [1, 1, 1, 1]}, "surrogate_n_codes must add up"),
        ({"surrogate_codes": [0, 2, 0, 2, 1]}, "no value of a surrogate's column"),
        ({"surrogate_codes": [0, -1, 0, 2, 1]}, "no value of a surrogate's column"),
        ({"surrogate_codes": [0, 1, 0, 3, 1]}, "no value of a surrogate's column"),
        ({"surrogate_codes": [0, 0, 0, 2, 1]}, "two branches of a surrogate"),
        ({"surrogate_codes": [0, 1, 0, 2, 2]}, "two branches of a surrogate"),
    ],
)
def test_insane_surrogates_are_refused(change: dict[str, Any], complaint: str) -> None:
    model, tree = sane_tree()
    validate(tree, model.schema)
    arrays = {
        name: None
        if values is None
        else np.array(values, dtype=getattr(tree, name).dtype)
        for name, values in change.items()
    }
    with pytest.raises(DataError, match=complaint):
        validate(replace(tree, **arrays), model.schema)
