"""Laws that hold for every table, checked on tables that hypothesis makes up."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from branchwise import DataError, ID3Classifier, Model, Recipe, fit_tree, load
from branchwise import model_file as persist
from branchwise.grow import counts as counts_module
from branchwise.grow.counts import Counts, Rows, tally
from branchwise.recipe import C45, CART
from branchwise.text.conditions import Condition, condition_of
from random_tables import KERNELS, as_table, random_table
from selection import examples

law = settings(
    derandomize=True, deadline=None, max_examples=examples(40), database=None
)

#: Every policy that neither raises nor asks which of equal branches comes first.
ORDERLESS = st.sampled_from(["branch", "split", "node"])
POLICIES = st.sampled_from(["branch", "split", "largest", "node"])
CRITERIA = st.sampled_from(["gain", "gain_ratio", "gini"])
#: C4.5 and CART, as they are and with options that change what is grown.
UNPRUNED_C45 = replace(C45, pruning=None, collapse=False)
OTHERS = st.sampled_from(
    [
        C45,
        replace(C45, confidence=0.5, raise_subtrees=False, threshold="midpoint"),
        replace(UNPRUNED_C45, min_samples_branch=1),
        replace(C45, branching="groups", min_samples_branch=1),
        CART,
        replace(CART, criterion="gain", missing="branch", unseen="branch"),
        replace(CART, missing="split", pruning="cost-complexity", ccp_alpha=0.05),
        replace(CART, missing="learned", max_leaf_nodes=4),
        replace(CART, missing="surrogate", pruning="error-based"),
    ]
)
OF_NUMBERS = st.sampled_from(
    [
        replace(CART, criterion="variance"),
        replace(CART, criterion="poisson", missing="split"),
        replace(CART, criterion="variance", missing="learned", max_leaf_nodes=4),
        replace(CART, criterion="poisson", missing="surrogate"),
        replace(CART, criterion="variance", pruning="cost-complexity", ccp_alpha=0.05),
    ]
)


@pytest.fixture(autouse=True, scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every law holds for each kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRANCHWISE_KERNEL", request.param)
        yield


# ------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """Columns of text or of numbers (None: missing), labels and perhaps weights."""

    cells: dict[str, list[Any]]
    numeric: frozenset[str]
    labels: list[str]
    weights: list[float] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> dict[str, Any]:
        return {
            name: np.array(cells, dtype=float) if name in self.numeric else cells
            for name, cells in self.cells.items()
        }

    def rows(self, order: Sequence[int]) -> Table:
        """The table with these rows, in this order."""
        return replace(
            self,
            cells={name: [c[i] for i in order] for name, c in self.cells.items()},
            labels=[self.labels[i] for i in order],
            weights=None if self.weights is None else [self.weights[i] for i in order],
        )

    def fit(self, recipe: Recipe | None = None, **options: Any) -> Model:
        return fit_tree(
            self.columns,
            self.labels,
            recipe or Recipe(),
            sample_weight=self.weights,
            **options,
        )


WEIGHTS = {
    "none": None,
    "whole": st.integers(1, 4).map(float),
    "floats": st.floats(0.01, 100.0),
}


@st.composite
def tables(
    draw: st.DrawFn,
    gaps: bool = True,
    numbers: bool = True,
    weights: Sequence[str] = ("none",),
) -> Table:
    n_rows = draw(st.integers(1, 16))

    def column(cell: st.SearchStrategy[Any]) -> list[Any]:
        # A minority of missing cells, so that trees still have something to ask.
        missing = st.integers(0, 4).flatmap(lambda i: cell if i else st.none())
        cells = missing if gaps else cell
        return draw(st.lists(cells, min_size=n_rows, max_size=n_rows))

    cells, numeric = {}, set()
    for index in range(draw(st.integers(1, 4))):
        name = f"x{index}"
        if numbers and draw(st.booleans()):
            numeric.add(name)
            few = st.integers(-2, 2).map(float)
            cells[name] = column(draw(st.sampled_from([few, st.floats(-1e9, 1e9)])))
        else:
            cells[name] = column(st.sampled_from("pqrst"[: draw(st.integers(1, 5))]))
    classes = "abcde"[: draw(st.integers(2, 5))]
    labels = draw(st.lists(st.sampled_from(classes), min_size=n_rows, max_size=n_rows))
    weight = WEIGHTS[draw(st.sampled_from(weights))]
    drawn = None
    if weight is not None:
        drawn = draw(st.lists(weight, min_size=n_rows, max_size=n_rows))
    return Table(cells, frozenset(numeric), labels, drawn)


@st.composite
def with_numbers(draw: st.DrawFn, table: Table) -> Table:
    """The table with numbers to predict, of which one is above 0 at least."""
    number = draw(st.sampled_from([st.integers(0, 3).map(float), st.floats(0, 1e6)]))
    n = table.n_rows
    numbers = draw(st.lists(number, min_size=n, max_size=n).filter(any))
    return replace(table, labels=numbers)


# ------------------------------------------------------------------ trees in words


def in_words(model: Model, cases: bool = True, weights: bool = True) -> Any:
    """The tree as nested values without codes and numbers of nodes."""
    tree, schema = model.tree, model.schema
    said: dict[int, Any] = {}
    for node in reversed(range(len(tree))):  # children come after their parents
        counts = {
            name: weight
            for name, weight in zip(
                schema.classes, tree.weights[node].tolist(), strict=True
            )
            if weight
        }
        branches = {
            condition_of(schema, tree, child): said.pop(child)
            for child in tree.children(node)
        }
        said[node] = (
            counts if weights else None,
            float(tree.cases[node]) if cases else None,
            branches,
        )
    return said[0]


def renamed(words: Any, values: dict[str, str], classes: dict[str, str]) -> Any:
    """The same with other names for values and classes."""
    counts, cases, branches = words
    return (
        {classes[name]: weight for name, weight in counts.items()},
        cases,
        {
            Condition(condition.column, condition.op, values.get(condition.value))
            if condition.op == "="
            else condition: renamed(child, values, classes)
            for condition, child in branches.items()
        },
    )


def root_gain(model: Model) -> float:
    """The gain of the root's split, from the definition; -1 without a split."""

    def entropy(weights: np.ndarray) -> float:
        shares = weights[weights > 0] / weights.sum()
        return -math.fsum(shares * np.log2(shares))

    tree = model.tree
    children = tree.weights[list(tree.children(0))]
    if not len(children):
        return -1.0
    left = math.fsum(w.sum() * entropy(w) for w in children)
    return entropy(tree.weights[0]) - left / tree.weights[0].sum()


# ---------------------------------------------------------------- order and names


@law
@given(
    tables(weights=["none", "whole", "floats"]),
    POLICIES,
    CRITERIA,
    st.randoms(use_true_random=False),
)
def test_row_order_changes_no_byte(table, missing, criterion, rng) -> None:
    order = list(range(table.n_rows))
    rng.shuffle(order)
    recipe = Recipe(criterion=criterion, missing=missing)
    assert table.rows(order).fit(recipe).to_bytes() == table.fit(recipe).to_bytes()


@law
@given(
    tables(weights=["none", "whole", "floats"]),
    OTHERS,
    st.randoms(use_true_random=False),
)
def test_row_order_changes_no_byte_of_c45_and_cart(table, recipe, rng) -> None:
    order = list(range(table.n_rows))
    rng.shuffle(order)
    assert table.rows(order).fit(recipe).to_bytes() == table.fit(recipe).to_bytes()


@law
@given(
    tables(weights=["none", "whole", "floats"]),
    OF_NUMBERS,
    st.randoms(use_true_random=False),
    st.data(),
)
def test_row_order_changes_no_byte_where_numbers_are_told(
    table, recipe, rng, data
) -> None:
    table = data.draw(with_numbers(table))
    order = list(range(table.n_rows))
    rng.shuffle(order)
    assert table.rows(order).fit(recipe).to_bytes() == table.fit(recipe).to_bytes()


def test_row_order_changes_no_byte_where_the_sum_of_weights_is_near_a_power() -> None:
    # 0.1 + 0.2 + 0.3 + 0.4 is 1.0, but 0.4 + 0.3 + 0.2 + 0.1 is a little less.
    table = Table({"a": list("pqpq")}, frozenset(), list("nyyn"), [0.1, 0.2, 0.3, 0.4])
    assert table.rows([3, 2, 1, 0]).fit().to_bytes() == table.fit().to_bytes()


@law
@given(tables(gaps=False), st.randoms(use_true_random=False))
def test_column_order_does_not_change_what_is_gained(table, rng) -> None:
    names = list(table.cells)
    rng.shuffle(names)
    shuffled = replace(table, cells={name: table.cells[name] for name in names})
    assert root_gain(shuffled.fit()) == pytest.approx(root_gain(table.fit()), abs=1e-9)


def test_column_order_changes_nothing_but_ties() -> None:
    """Tables in which no two columns are equally good give the same tree."""
    compared = 0
    for seed in range(examples(400)):
        made = random_table(seed)
        if made.settings.missing == "error" or len(made.columns) < 2:
            continue
        limits = replace(made.settings, max_depth=2, min_gain=0.0, unseen="node")
        if columns_tie(made, limits):
            continue
        recipe = Recipe("ID3", **vars(limits))
        names = list(made.columns)
        random.Random(seed).shuffle(names)
        trees = [
            fit_tree(
                as_table(made.rows, {name: made.columns[name] for name in order}),
                made.labels,
                recipe,
                sample_weight=made.weights,
                categories=made.declared,
            )
            for order in (made.columns, names)
        ]
        assert in_words(trees[0]) == in_words(trees[1]), f"seed {seed}"
        compared += len(trees[0].tree) > 1 and names != list(made.columns)
    assert compared >= examples(50)


def columns_tie(made, limits: naive.Settings) -> bool:
    """Whether some node has two equally good columns: the first one wins, so that
    turning the order round lets another win.
    """

    def tree(columns):
        return naive.fit(made.rows, made.labels, columns, limits, made.weights)

    def asked(node):
        return node.column, [asked(child) for child in node.children.values()]

    backwards = dict(reversed(made.columns.items()))
    return asked(tree(made.columns)) != asked(tree(backwards))


@law
@given(
    tables(weights=["none", "floats"]),
    ORDERLESS,
    CRITERIA,
    st.permutations("pqrst"),
    st.permutations("abcde"),
)
def test_renaming_renames_the_tree(table, missing, criterion, values, classes) -> None:
    value = dict(zip("pqrst", values, strict=True))
    name = dict(zip("abcde", classes, strict=True))
    other = replace(
        table,
        cells={
            column: cells if column in table.numeric else [value.get(c) for c in cells]
            for column, cells in table.cells.items()
        },
        labels=[name[label] for label in table.labels],
    )
    recipe = Recipe(criterion=criterion, missing=missing)
    expected = renamed(in_words(table.fit(recipe)), value, name)
    assert in_words(other.fit(recipe)) == expected


@law
@given(tables(), ORDERLESS, CRITERIA, st.permutations("pqrstuv"))
def test_declared_order_changes_nothing(table, missing, criterion, order) -> None:
    recipe = Recipe(criterion=criterion, missing=missing)
    declared = {name: list(order) for name in table.cells if name not in table.numeric}
    plain, other = table.fit(recipe), table.fit(recipe, categories=declared)
    assert in_words(other) == in_words(plain)
    np.testing.assert_array_equal(
        other.predict(table.columns), plain.predict(table.columns)
    )
    np.testing.assert_array_equal(other.feature_importances, plain.feature_importances)


@law
@given(
    tables(),
    st.sampled_from([UNPRUNED_C45, replace(UNPRUNED_C45, min_samples_branch=1)]),
    ORDERLESS,
    st.permutations("pqrstuv"),
)
def test_declared_order_changes_nothing_of_c45(table, recipe, missing, order) -> None:
    recipe = replace(recipe, missing=missing)
    names = [name for name in table.cells if name not in table.numeric]
    # The number of possible values is of weight for C4.5, so it stays as it is.
    declared = {name: [v for v in order if v in table.cells[name]] for name in names}
    declared = {name: values for name, values in declared.items() if values}
    plain, other = table.fit(recipe), table.fit(recipe, categories=declared)
    assert in_words(other) == in_words(plain)
    np.testing.assert_array_equal(
        other.predict(table.columns), plain.predict(table.columns)
    )


# ----------------------------------------------------------------- weights and rows


@law
@given(tables(), st.data())
def test_a_row_twice_is_a_row_of_weight_two(table, data) -> None:
    times = data.draw(
        st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows)
    )
    often = table.rows([i for i, n in enumerate(times) for _ in range(n)]).fit()
    heavy = replace(table, weights=[float(n) for n in times]).fit()
    assert in_words(often, cases=False) == in_words(heavy, cases=False)
    assert often.tree.cases[0] == sum(times)
    assert heavy.tree.cases[0] == table.n_rows


@law
@given(
    tables(),
    # Parts of cases and surrogates have bars that count rows.
    st.sampled_from(["largest", "branch", "learned"]),
    st.sampled_from(["gain", "gini", "variance", "poisson"]),
    st.data(),
)
def test_a_row_twice_is_a_row_of_weight_two_for_cart(
    table, missing, criterion, data
) -> None:
    times = data.draw(
        st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows)
    )
    recipe = replace(CART, missing=missing, criterion=criterion)
    if recipe.is_regression:
        table = data.draw(with_numbers(table))
    often = table.rows([i for i, n in enumerate(times) for _ in range(n)]).fit(recipe)
    heavy = replace(table, weights=[float(n) for n in times]).fit(recipe)
    assert shape_of(often) == shape_of(heavy)
    np.testing.assert_allclose(often.tree.weights, heavy.tree.weights, rtol=1e-9)
    if recipe.is_regression:
        # Sums are on a grid that the largest number has a say in.
        np.testing.assert_allclose(often.tree.mean, heavy.tree.mean, 1e-9, atol=1e-6)


def shape_of(model: Model) -> list[Any]:
    """What is asked at each node, and who goes where."""
    tree = model.tree
    words = [condition_of(model.schema, tree, node) for node in range(1, len(tree))]
    return [*words, tree.n_children.tolist(), tree.missing_to.tolist()]


@law
@given(tables(weights=["none", "floats"]), POLICIES, st.data())
def test_a_row_of_weight_zero_is_no_row(table, missing, data) -> None:
    kept = data.draw(st.sets(st.integers(0, table.n_rows - 1), min_size=1).map(sorted))
    given_weights = table.weights or [1.0] * table.n_rows
    zeroed = [w if i in kept else 0.0 for i, w in enumerate(given_weights)]
    recipe = Recipe(missing=missing)
    without = replace(table, weights=given_weights).rows(kept).fit(recipe)
    assert in_words(replace(table, weights=zeroed).fit(recipe)) == in_words(without)


@law
@given(tables(weights=["whole", "floats"]), POLICIES, CRITERIA, st.integers(-40, 40))
def test_weights_times_a_power_of_two(table, missing, criterion, power) -> None:
    recipe = Recipe(criterion=criterion, missing=missing)
    scaled = replace(table, weights=[math.ldexp(w, power) for w in table.weights])
    one, other = table.fit(recipe), scaled.fit(recipe)
    assert in_words(one, weights=False, cases=False) == in_words(
        other, weights=False, cases=False
    )
    np.testing.assert_allclose(
        np.ldexp(one.tree.weights, power), other.tree.weights, rtol=1e-9
    )


@law
@given(tables(), POLICIES, CRITERIA, st.booleans(), st.data())
def test_a_constant_column_changes_nothing(
    table, missing, criterion, numeric, data
) -> None:
    names = list(table.cells)
    names.insert(data.draw(st.integers(0, len(names))), "constant")
    cells = {**table.cells, "constant": [3.0 if numeric else "same"] * table.n_rows}
    wider = replace(
        table,
        cells={name: cells[name] for name in names},
        numeric=table.numeric | ({"constant"} if numeric else set()),
    )
    recipe = Recipe(criterion=criterion, missing=missing)
    assert in_words(wider.fit(recipe)) == in_words(table.fit(recipe))


# -------------------------------------------------------------------------- counts


@st.composite
def counted(draw: st.DrawFn) -> tuple[Rows, np.ndarray]:
    """Rows in 3 nodes with 4 codes and 3 classes, on a grid where sums are exact."""
    n = draw(st.integers(0, 12))

    def ints(below: int) -> np.ndarray:
        drawn = st.lists(st.integers(0, below - 1), min_size=n, max_size=n)
        return np.array(draw(drawn), dtype=np.intp)

    node, label, codes = ints(3), ints(3), ints(4)
    weight, case = (ints(64) + 1) / 16, (ints(8) + 1) / 8
    return Rows(node, label, weight, case), codes.astype(np.uint8)


def add_up(rows: Rows, codes: np.ndarray, way: str = "dense") -> Counts:
    cells = 1 << 30 if way == "dense" else -1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts_module, "_DENSE_CELLS", cells)
        patch.setattr(counts_module, "_DENSE_CELLS_PER_ROW", 0)
        return tally(rows, codes, 3, 4, 3)


def union(*parts: tuple[Rows, np.ndarray]) -> tuple[Rows, np.ndarray]:
    rows = Rows(
        *(
            np.concatenate([getattr(rows, name) for rows, _ in parts])
            for name in ("node", "label", "weight", "case")
        )
    )
    return rows, np.concatenate([codes for _, codes in parts])


def assert_equal_counts(one: Counts, other: Counts) -> None:
    for name in ("node", "code", "weights", "cases"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@law
@given(counted(), counted(), counted())
def test_counts_merged_are_counts_of_the_union(first, second, third) -> None:
    a, b, c = (add_up(*part) for part in (first, second, third))
    whole = add_up(*union(first, second, third))
    assert_equal_counts(a.merge(b).merge(c), whole)
    assert_equal_counts(a.merge(b.merge(c)), whole)
    assert_equal_counts(c.merge(a).merge(b), whole)


@law
@given(counted(), st.sampled_from(["rows", "weights", "fractions"]))
def test_both_ways_of_counting_agree(part, kind) -> None:
    rows, codes = part
    if kind == "rows":
        rows = replace(rows, weight=None, case=None)
    elif kind == "weights":
        rows = replace(rows, case=None)
    assert_equal_counts(add_up(rows, codes, "dense"), add_up(rows, codes, "sorted"))


@law
@given(counted())
def test_totals_are_sums_over_codes(part) -> None:
    rows, codes = part
    weights, cases = add_up(rows, codes).totals(3)
    for node in range(3):
        here = rows.node == node
        assert cases[node] == rows.case[here].sum()
        for label in range(3):
            mine = here & (rows.label == label)
            assert weights[node, label] == rows.weight[mine].sum()


# ----------------------------------------------------------- what a model promises


@st.composite
def strange_rows(draw: st.DrawFn, table: Table, gaps: bool = True) -> dict[str, Any]:
    """Rows with missing cells and with values and numbers never seen."""
    n = draw(st.integers(1, 8))
    text = st.sampled_from([*"pqrst", "never seen", ""])
    number = st.one_of(st.floats(-1e10, 1e10), st.integers(-3, 3))
    if gaps:
        text, number = st.none() | text, st.none() | number
    return {
        name: np.array(draw(st.lists(number, min_size=n, max_size=n)), dtype=float)
        if name in table.numeric
        else draw(st.lists(text, min_size=n, max_size=n))
        for name in table.cells
    }


@law
@given(tables(weights=["none", "floats"]), POLICIES, POLICIES, CRITERIA, st.data())
def test_strange_cells_get_probabilities(
    table, missing, unseen, criterion, data
) -> None:
    model = table.fit(Recipe(criterion=criterion, missing=missing, unseen=unseen))
    rows = data.draw(strange_rows(table))
    chances = model.predict_proba(rows)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-9)
    assert (chances >= 0).all()
    best = chances[np.arange(len(chances)), model_codes(model, model.predict(rows))]
    np.testing.assert_allclose(best, chances.max(axis=1), rtol=1e-9)


def model_codes(model: Model, labels: np.ndarray) -> list[int]:
    return [model.schema.classes.index(label) for label in labels.tolist()]


@law
@given(tables(gaps=False), st.data())
def test_strange_cells_raise_where_that_is_asked(table, data) -> None:
    model = table.fit(Recipe(missing="error", unseen="error"))
    rows = data.draw(strange_rows(table))
    strange = any(
        is_strange(cell, model.schema.columns[index].categories)
        for index in model.tree.used_columns
        for cell in list(rows[model.schema.names[index]])
    )
    if strange:
        with pytest.raises(DataError, match="'error' allows no"):
            model.predict(rows)
    else:
        assert len(model.predict(rows)) == len(rows["x0"])


def is_strange(cell: Any, categories: tuple) -> bool:
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or cell not in categories


@law
@given(tables(weights=["none", "floats"]), POLICIES, POLICIES, CRITERIA, st.data())
def test_a_model_comes_back_from_its_file(
    table, missing, unseen, criterion, data
) -> None:
    model = table.fit(Recipe(criterion=criterion, missing=missing, unseen=unseen))
    content = model.to_bytes()
    back = Model(*persist.from_bytes(content))
    assert back.to_bytes() == content
    assert back.tree == model.tree
    assert back.schema == model.schema
    rows = data.draw(strange_rows(table))
    assert back.predict_proba(rows).tobytes() == model.predict_proba(rows).tobytes()
    assert back.predict(rows).tolist() == model.predict(rows).tolist()


@law
@given(tables(weights=["none", "floats"]), st.one_of(OTHERS, OF_NUMBERS), st.data())
def test_models_of_c45_and_cart_come_back_from_their_files(table, recipe, data) -> None:
    if recipe.is_regression:
        table = data.draw(with_numbers(table))
    model = table.fit(recipe)
    content = model.to_bytes()
    back = Model(*persist.from_bytes(content))
    assert back.to_bytes() == content
    assert back == model
    rows = data.draw(strange_rows(table))
    assert back.predict(rows).tolist() == model.predict(rows).tolist()
    assert back.apply(rows).tolist() == model.apply(rows).tolist()
    if not recipe.is_regression:
        assert back.predict_proba(rows).tobytes() == model.predict_proba(rows).tobytes()


def test_a_saved_file_is_what_the_bytes_are(tmp_path: Path) -> None:
    model = Table({"a": list("pqq")}, frozenset(), list("nyn")).fit()
    model.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == model.to_bytes()
    assert load(tmp_path / "model.json") == model


@law
@given(tables(gaps=False, numbers=False, weights=["none", "whole"]), CRITERIA)
def test_nothing_learns_distinct_rows_better(table, criterion) -> None:
    """An unlimited tree is as right as a table of the best answer for each row."""
    model = table.fit(Recipe(criterion=criterion))
    weights = table.weights or [1.0] * table.n_rows
    by_row: dict[tuple, Counter] = defaultdict(Counter)
    keys = list(zip(*table.cells.values(), strict=True))
    for key, label, weight in zip(keys, table.labels, weights, strict=True):
        by_row[key][label] += weight
    best = sum(max(counter.values()) for counter in by_row.values())
    answers = model.predict(table.columns).tolist()
    right = sum(
        weight
        for answer, label, weight in zip(answers, table.labels, weights, strict=True)
        if answer == label
    )
    assert right == best


# ------------------------------------------------------------------ rules and paths


def holds(condition: Condition, row: dict[str, Any]) -> bool:
    cell = row[condition.column]
    return {
        "=": lambda: cell == condition.value,
        "in": lambda: cell in condition.value,
        "<=": lambda: cell <= condition.value,
        ">": lambda: cell > condition.value,
    }[condition.op]()


@law
@given(tables(gaps=False, weights=["none", "floats"]), CRITERIA, st.integers(0, 5))
def test_one_rule_holds_for_each_row(table, criterion, depth) -> None:
    model = table.fit(Recipe(criterion=criterion, max_depth=depth))
    rules = model.rules()
    assert sum(rule.n for rule in rules) == pytest.approx(model.tree.case_counts[0])
    nodes, labels = (
        model.apply(table.columns).tolist(),
        model.predict(table.columns).tolist(),
    )
    for index in range(table.n_rows):
        row = {name: cells[index] for name, cells in table.cells.items()}
        (rule,) = [r for r in rules if all(holds(c, row) for c in r.conditions)]
        assert (rule.node, rule.label) == (nodes[index], labels[index])


@law
@given(tables(gaps=False), POLICIES, st.data())
def test_no_two_rules_hold_for_a_row(table, unseen, data) -> None:
    model = table.fit(Recipe(unseen=unseen))
    rows = data.draw(strange_rows(table, gaps=False))
    for index in range(len(rows["x0"])):
        row = {name: cells[index] for name, cells in rows.items()}
        rules = [r for r in model.rules() if all(holds(c, row) for c in r.conditions)]
        assert len(rules) <= 1
        if rules:
            one = {name: cells[index : index + 1] for name, cells in rows.items()}
            assert model.apply(one).tolist() == [rules[0].node]


@law
@given(tables(weights=["none", "floats"]), POLICIES, POLICIES, st.data())
def test_paths_lead_to_where_rows_arrive(table, missing, unseen, data) -> None:
    tree = ID3Classifier(missing=missing, unseen=unseen)
    tree.fit(table.columns, table.labels, table.weights)
    rows = data.draw(strange_rows(table))
    paths = tree.decision_path(rows)
    arrivals = tree.model_.arrivals(rows)
    parent, depth = tree.tree_.parent, tree.tree_.depth
    assert paths.shape == (len(rows["x0"]), len(tree.tree_))
    for row, node in enumerate(tree.apply(rows).tolist()):
        way = set(paths[[row]].indices.tolist())
        ends = set(arrivals.node[arrivals.row == row].tolist())
        assert {0, node} <= way
        assert node in ends
        assert all(int(parent[step]) in way for step in way if step)
        assert way - {int(parent[step]) for step in way} <= ends <= way
        if len(ends) == 1:
            assert len(way) == depth[node] + 1
