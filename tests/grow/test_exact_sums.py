"""Sums are exact: row order, outliers and units of weight do not change a tree."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import branchwise.prune.error_based
import branchwise.train.train
from branchwise import CARTClassifier, CARTRegressor, Model, fit_tree
from branchwise.data.exact_sums import Limbs, lowest_bit, two_product, two_sum
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.errors import DataError, ParameterError
from branchwise.files.dataset import StreamedTable
from branchwise.model_file import from_bytes
from branchwise.recipe import C45, CART, ID3
from selection import first_fast

NUMBERS = replace(CART, criterion="variance")
RATES = replace(CART, criterion="poisson")


def exactly(values, weights=None):
    """Return the float64 nearest to the exact mean."""
    weights = [1] * len(values) if weights is None else weights
    pairs = [(Fraction(v), Fraction(w)) for v, w in zip(values, weights, strict=True)]
    return float(sum(v * w for v, w in pairs) / sum(w for _, w in pairs))


# ---- numbers ------------------------------------------------------------------------

FLOATS = st.floats(-1e100, 1e100).map(lambda x: x if abs(x) > 1e-100 else 0.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=30), st.randoms())
def test_limbs_add_up_to_the_exact_sum(values, shuffled):
    numbers = np.array(values) / 2.0**340
    limbs = Limbs.of(len(values), len(values), 1, lowest_bit(numbers))
    order = list(range(len(values)))
    shuffled.shuffle(order)
    cut = limbs.split_limbs([numbers])
    sums = np.cumsum(cut[order], axis=0)[-1:]
    assert np.array_equal(sums[0], cut.sum(axis=0))
    exact = sum(map(Fraction, numbers.tolist()), Fraction(0))
    assert Fraction(limbs.whole(sums)[0]) * Fraction(limbs.steps[-1]) == exact
    assert sum(Fraction(float(part[0])) for part in limbs.normal(sums)) == exact


@given(st.floats(1e-100, 1e100), st.floats(-1e100, 1e100))
def test_nothing_is_lost_of_products_and_sums(a, b):
    if abs(b) < 1e-100:
        b = 0.0
    product = [float(x[0]) for x in two_product(np.array([a]), np.array([b]))]
    assert Fraction(product[0]) + Fraction(product[1]) == Fraction(a) * Fraction(b)
    total = [float(x[0]) for x in two_sum(np.array([a]), np.array([b]))]
    assert Fraction(total[0]) + Fraction(total[1]) == Fraction(a) + Fraction(b)


def test_an_outlier_takes_no_digit_from_others():
    x = np.arange(10_001.0)[:, np.newaxis]
    y = np.full(10_001, 0.01)
    y[-1] = 1e8
    fitted = CARTRegressor().fit(x, y)
    assert fitted.predict([[0.0], [9_999.0], [10_000.0]]).tolist() == [0.01, 0.01, 1e8]
    assert fitted.model_.tree.deviation.tolist()[1:] == [0.0, 0.0]
    whole = CARTRegressor(max_depth=0).fit(x, np.where(y == 1e8, 1e9, 0.1))
    assert whole.predict([[0.0]]) == exactly([0.1] * 10_000 + [1e9])
    heavy = CARTRegressor().fit([[1], [2]], [3, 10], sample_weight=[1e16, 1e16])
    assert heavy.predict([[1], [2]]).tolist() == [3.0, 10.0]


def test_steps_may_be_subnormal():
    """15 rows are no multiple of what NumPy 1 divides at once."""
    y = [999_996.0, *[0.0] * 12, 1.1818212630765744e-125, 1.0]
    recipe = replace(RATES, missing="split")
    model = fit_tree({"x": [None, *"p" * 14]}, y, recipe, sample_weight=[1.0] * 15)
    assert model.tree.mean[0] == exactly(y)


def test_splits_beside_an_outlier_are_those_without_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = 1e-3 * np.round(x[:, 1], 1) + 1e-4 * (x[:, 2] > 0)
    alone = CARTRegressor(max_depth=3).fit(x, y).model_.tree
    x, y = np.vstack([x, [[50.0, 0.0, 0.0]]]), np.append(y, 1e60)
    beside = CARTRegressor(max_depth=4).fit(x, y).model_.tree
    assert beside.column[0] == 0
    below = [n for n in beside.preorder() if n and beside.depth[n] < 4]
    at = [n for n in below if n != int(np.argmax(beside.mean))]
    found = sorted(zip(beside.column[at], beside.threshold[at], strict=True), key=repr)
    inner = [n for n in alone.preorder() if alone.depth[n] < 3]
    wanted = sorted(
        zip(alone.column[inner], alone.threshold[inner], strict=True), key=repr
    )
    assert repr(found) == repr(wanted)


def test_close_numbers_far_from_zero_are_told_apart():
    x = np.arange(40.0)[:, np.newaxis]
    y = 1e15 + (np.arange(40) % 8 > 3)
    assert CARTRegressor().fit(x, y).predict(x).tolist() == y.tolist()
    # Equal numbers are equal, whatever their digits.
    same = CARTRegressor().fit(x, np.full(40, 0.1)).model_.tree
    assert (len(same), same.mean[0], same.deviation[0]) == (1, 0.1, 0.0)


def hostile_table(seed):
    """Return a column, numbers of very different sizes and weights."""
    rng = random.Random(seed)
    n = rng.choice([3, 20, 60])
    x = [rng.choice("abcde") for _ in range(n)]
    sizes = rng.choice([(0.01, 1e8), (0.1, 1e60, -1e60), (1e-30, 3.0), (-0.0, 1e-300)])
    y = [rng.choice(sizes) * rng.choice([1, 1, rng.random()]) for _ in range(n)]
    kinds = [None, rng.random, lambda: 10.0 ** rng.randint(-12, 12)]
    kind = rng.choice(kinds)
    weights = None if kind is None else [kind() for _ in range(n)]
    return x, y, weights


@pytest.mark.parametrize("seed", range(12))
def test_means_are_rounded_once_whatever_the_order(seed):
    x, y, weights = hostile_table(seed)
    model = fit_tree({"x": x}, y, NUMBERS, sample_weight=weights)
    order = random.Random(seed).sample(range(len(x)), len(x))
    moved = fit_tree(
        {"x": [x[i] for i in order]},
        [y[i] for i in order],
        NUMBERS,
        sample_weight=None if weights is None else [weights[i] for i in order],
    )
    assert model.to_bytes() == moved.to_bytes()
    again = Model(*from_bytes(model.to_bytes()))
    answers = model.predict({"x": list("abcde")})
    assert answers.tobytes() == again.predict({"x": list("abcde")}).tobytes()
    assert not np.signbit(answers[answers == 0]).any()
    if weights is None or max(weights) / min(weights) < 1e10:
        assert model.tree.mean[0] == pytest.approx(exactly(y, weights), rel=1e-10)
    if weights is None:
        assert model.tree.mean[0] == exactly(y)


def write(folder, columns):
    table = pa.table(columns)
    parquet.write_table(table, folder / "t.parquet", row_group_size=7)
    return table


def elsewhere(folder, table):
    """Yield the table where others count its rows."""
    import sqlite3

    import duckdb

    path = folder / "t.parquet"
    yield ChunkedTable(replace(StreamedTable.of(path), chunk_rows=7))
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t AS FROM '{path}'")
    yield SqlTable(str(folder / "t.duckdb"), "t")
    names = table.column_names
    with sqlite3.connect(folder / "t.sqlite") as lite:
        lite.execute("DROP TABLE IF EXISTS t")
        lite.execute(f"CREATE TABLE t ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        rows = zip(*(table[name].to_pylist() for name in names), strict=True)
        lite.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    lite.close()
    yield SqlTable(str(folder / "t.sqlite"), "t")


def agree(folder, columns, recipe, **choices):
    """Fit everywhere, and compare with memory."""
    table = write(folder, columns)
    wanted = fit_tree(table, "y", recipe, **choices).to_bytes()
    for place in elsewhere(folder, table):
        found = fit_tree(place, "y", recipe, **choices).to_bytes()
        assert found == wanted, place


@pytest.mark.parametrize("seed", first_fast(range(6), n_fast=3))
def test_every_engine_adds_up_the_same(seed, tmp_path):
    x, y, weights = hostile_table(seed)
    columns = {"x": x, "n": [ord(c) * 1.5 for c in x[::-1]], "y": y}
    recipe = NUMBERS
    if min(y) >= 0:
        recipe = RATES
    if weights is None:
        return agree(tmp_path, columns, recipe)
    return agree(tmp_path, columns | {"w": weights}, recipe, sample_weight="w")


def test_divided_cases_have_exact_moments_everywhere(tmp_path):
    columns = {
        "x": [*"aabbcc", None, "a", None, "b"],
        "n": [1.0, None, 3.0, 4.0, 5.0, None, 1.0, 2.0, 2.5, 6.0],
        "y": [0.1, 0.2, 1e30, -1e30, 0.3, 0.1, 0.7, 0.9, 1e8, 0.01],
        "w": [0.1, 0.7, 1.0, 0.3, 2.5, 0.2, 1 / 3, 1.0, 1.0, 0.9],
    }
    recipe = replace(NUMBERS, missing="split")
    agree(tmp_path, columns, recipe, sample_weight="w")


# ---- weights ------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", [CART, NUMBERS, replace(ID3, missing="split"), C45])
def test_rows_whose_weight_vanishes_are_absent_everywhere(recipe, tmp_path):
    """They lend no number to a threshold, and none to what is predicted."""
    n = [1.0, 2.0, 2.5, 3.0, 9.0, 9.5, 4.0, 5.0]
    y = [0.1, 0.1, 700.0, 3.0, 3.0, 1e20, 0.1, 3.0]
    w = [3.0, 2.7, 1e-20, 4.0, 5.5, 1e-18, 2.0, 1.0]
    if not recipe.is_regression:
        y = [str(v) if v < 700 else "0.1" for v in y]
    columns = {"n": n, "y": y, "w": w, "m": [v * 2 for v in n]}
    agree(tmp_path, columns, recipe, sample_weight="w")
    model = fit_tree(pa.table(columns), "y", recipe, sample_weight="w")
    assert model.tree.cases[0] == 6
    cuts = model.tree.threshold[~np.isnan(model.tree.threshold)]
    assert not {2.25, 2.75, 9.25} & set(cuts.tolist())


def test_rates_are_checked_on_the_rows_that_count(tmp_path):
    table = {"x": [1, 2], "y": [0.4, 0.0], "w": [1.0, 1e16]}
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet")
    for source in (table, StreamedTable((str(tmp_path / "rows.parquet"),))):
        with pytest.raises(DataError, match="not all 0"):
            fit_tree(source, "y", RATES, sample_weight="w")
    negative = {"x": [1, 2, 3], "y": [0.4, 0.2, -1.0], "w": [1.0, 1.0, 0.0]}
    assert fit_tree(negative, "y", RATES, sample_weight="w").tree.mean[0] > 0


def test_worked_steps_of_large_weights_do_not_overflow():
    X, y = {"age": ["v0", "v1", "v1"]}, [1e8, 1e8, 0.06]
    model = CARTRegressor().fit(X, y, sample_weight=[3e298, 1e298, 2e298]).model_
    steps = model.steps(X, y, sample_weight=[3e298, 1e298, 2e298])
    assert "inf" not in steps.to_text()


def test_a_class_of_weight_zero_lends_no_number(tmp_path):
    columns = {"n": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [*"aabcab"]}
    agree(tmp_path, columns, CART, class_weight={"c": 0.0})


@pytest.mark.parametrize("priors", [{"a": 0.3, "b": 0.7}, None])
def test_weights_of_classes_do_not_depend_on_the_order(priors, tmp_path):
    columns = {"x": [*"qppqpq"], "y": [*"babbbb"]}
    weights = [0.7, 0.3, 1 / 3, 0.2, 1 / 3, 0.2]
    choices = {"priors": priors, "class_weight": "balanced"}
    wanted = fit_tree(
        {"x": columns["x"]}, columns["y"], CART, sample_weight=weights, **choices
    ).to_bytes()
    for order in ([4, 2, 1, 0, 5, 3], [5, 4, 3, 2, 1, 0], [2, 0, 1, 4, 3, 5]):
        moved = fit_tree(
            {"x": [columns["x"][i] for i in order]},
            [columns["y"][i] for i in order],
            CART,
            sample_weight=[weights[i] for i in order],
            **choices,
        )
        assert moved.to_bytes() == wanted
    agree(tmp_path, columns | {"w": weights}, CART, sample_weight="w", **choices)


def test_weights_that_priors_cannot_mend():
    with pytest.raises(ParameterError, match=r"^priors must be reachable by"):
        fit_tree(
            {"x": [1.0, 2.0]},
            ["a", "b"],
            CART,
            sample_weight=[1e-299, 9e299],
            priors={"a": 0.5, "b": 0.5},
        )


SCALED = {
    "id3": ID3,
    "divided": replace(ID3, missing="split"),
    "luck": replace(ID3, max_p_value=0.5),
    "cart": CART,
    "1-se": replace(CART, pruning="cost-complexity", ccp_alpha="1-se"),
    "numbers": NUMBERS,
    "numbers 1-se": replace(NUMBERS, pruning="cost-complexity", ccp_alpha="1-se"),
    "numbers luck": replace(NUMBERS, max_p_value=0.5),
    "rates": replace(RATES, pruning="cost-complexity", ccp_alpha=0.01),
    "rates best": replace(RATES, pruning="cost-complexity", ccp_alpha="best"),
}


@pytest.mark.parametrize("powers", first_fast([(-960,), (71, -60, -1, 1, 960)]))
@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize("name", SCALED)
def test_a_power_of_two_changes_nothing_but_the_weights(
    name, kernel, powers, monkeypatch
):
    if kernel == "reference":
        monkeypatch.setattr(branchwise.train.train.native, "serves", lambda *_: False)
    rng = np.random.default_rng(3)
    x = {
        "a": [*rng.choice(list("pqr"), 29), None],
        "n": rng.normal(size=30).round(1).tolist(),
    }
    labels = rng.choice(["u", "v"], 30).tolist()
    numbers = rng.choice([0.0, 0.1, 2.0, 1e100], 30).tolist()
    recipe = SCALED[name]
    y = numbers if recipe.is_regression else labels
    weights = 10.0 ** rng.integers(-4, 4, 30)
    wanted = fit_tree(x, y, recipe, sample_weight=weights)
    for power in powers:
        scaled = fit_tree(x, y, recipe, sample_weight=np.ldexp(weights, power))
        found = replace(scaled.tree, weights=np.ldexp(scaled.tree.weights, -power))
        assert found == wanted.tree
        assert np.array_equal(scaled.predict(x), wanted.predict(x))


@pytest.mark.parametrize("power", [-900, 990])
@pytest.mark.parametrize("recipe", [NUMBERS, replace(CART, costs=[[0, 1e60], [3, 0]])])
def test_a_power_of_two_leaves_the_errors_of_the_pruning_path(recipe, power):
    x, y = {"x": [*"ppqqrr"]}, [1e20, 0.1, 0.2, -1e20, 3.0, 3.5]
    if not recipe.is_regression:
        y = [*"uvvuvu"]
    weights = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 0.25])
    wanted = fit_tree(x, y, recipe, sample_weight=weights).pruning_path()
    scaled = fit_tree(x, y, recipe, sample_weight=np.ldexp(weights, power))
    assert scaled.pruning_path().to_dict() == wanted.to_dict()


def test_weights_near_the_largest_allowed_overflow_nowhere():
    x, y = {"n": [1.0, 2.0, 3.0]}, ["a", "b", "b"]
    weights = np.array([3e298, 5e298, 1e299])
    tested = replace(C45, pruning=None, max_p_value=0.05)
    found = fit_tree(x, y, tested, sample_weight=weights)
    assert found.tree.n_leaves == 2
    estimate = replace(CART, probabilities="m-estimate", m=1e20)
    wanted = fit_tree(x, y, replace(estimate, m=1e10), sample_weight=weights / 1e10)
    found = fit_tree(x, y, estimate, sample_weight=weights)
    assert found.predict_proba(x) == pytest.approx(wanted.predict_proba(x))
    assert found.rules().to_text()


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_more_weight_than_cases_can_be(kernel, monkeypatch):
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    x, y = {"n": [1.0, 2.0, 3.0, 4.0]}, ["a", "b", "a", "b"]
    with pytest.raises(DataError, match=r"^Error-based pruning treats weights as"):
        fit_tree(x, y, C45, sample_weight=[1e200] * 4)
    for collapse in (False, True):
        whole = replace(C45, pruning=None, collapse=collapse)
        assert fit_tree(x, y, whole, sample_weight=[1e200] * 4).tree.n_leaves > 1


# ---- what counts what ---------------------------------------------------------------

REPEATED = {
    "c4.5": C45,
    "c4.5 grouped": replace(C45, branching="groups"),
    "c4.5 whole": replace(C45, pruning=None, collapse=False, min_samples_branch=3),
    "id3": ID3,
    "cart": CART,
    "numbers": NUMBERS,
}


def without_cases(tree):
    return replace(tree, cases=np.zeros(len(tree)), class_cases=None)


@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize("name", REPEATED)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_a_weight_of_three_is_the_row_three_times(name, kernel, data):
    recipe = REPEATED[name]
    n = data.draw(st.integers(4, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    a, m = rng.choice(list("pqrs"), n), rng.integers(0, 9, n) * 0.5
    y = np.where(
        rng.random(n) < 0.3, rng.choice(list("uvw"), n), np.where(m > 2, "u", "v")
    )
    if recipe.is_regression:
        y = rng.choice([0.1, 3.0, 1e9], n)
    times = rng.integers(1, 5, n)
    with pytest.MonkeyPatch.context() as patch:
        if kernel == "reference":
            patch.setattr(branchwise.train.train.native, "serves", lambda *_: False)
            patch.setattr(branchwise.prune.error_based, "prunes", lambda _: False)
        one = fit_tree({"a": a, "m": m}, y, recipe, sample_weight=times)
        every = {"a": np.repeat(a, times), "m": np.repeat(m, times)}
        other = fit_tree(every, np.repeat(y, times), recipe)
    assert without_cases(one.tree) == without_cases(other.tree)
    assert one.tree.cases[0] == n


def test_divided_cases_of_weight_three_are_three():
    rng = np.random.default_rng(4)
    a = [*rng.choice(list("pqrs"), 50), *[None] * 6]
    m = [None, None, *(rng.integers(0, 9, 54) * 0.5).tolist()]
    y = [*rng.choice(list("uv"), 56)]
    times = rng.integers(1, 5, 56)
    rows = np.repeat(np.arange(56), times)
    recipe = replace(C45, confidence=0.5)
    one = fit_tree({"a": a, "m": m}, y, recipe, sample_weight=times).tree
    other = fit_tree(
        {"a": [a[i] for i in rows], "m": [m[i] for i in rows]},
        [y[i] for i in rows],
        recipe,
    ).tree
    for name in ("column", "threshold", "n_children", "codes"):
        assert np.array_equal(
            getattr(one, name), getattr(other, name), equal_nan=name == "threshold"
        )
    # Parts of cases are rounded, one of weight 3 once and not three times.
    assert np.allclose(one.weights, other.weights, rtol=1e-12)


def test_leaves_of_id3_and_cart_count_rows():
    x, y = {"n": [1.0, 2.0, 3.0]}, ["a", "b", "b"]
    for estimator in (CARTClassifier(min_samples_leaf=2),):
        fitted = estimator.fit(x, y, sample_weight=[9, 1, 1])
        assert fitted.model_.tree.n_leaves == 1
    c45 = replace(C45, pruning=None, collapse=False)
    assert fit_tree(x, y, c45, sample_weight=[9, 1, 1]).tree.n_leaves == 2
    assert fit_tree(x, y, c45).tree.n_leaves == 1
