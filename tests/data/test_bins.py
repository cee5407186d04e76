"""Numbers in bins: fewer cuts, the same answers where there are few numbers."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import (
    CARTClassifier,
    ID3Classifier,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data.arrays import number_kind
from branchwise.data.bins import bin_codes, bin_columns, numbers_of_thresholds
from branchwise.data.table_schema import Column, Columns
from branchwise.native import extension
from branchwise.train import train

KERNELS = ["reference", "native"]


def wavy(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = {"x": rng.normal(size=n), "z": rng.normal(size=n)}
    X["z"][rng.random(n) < 0.1] = np.nan
    y = np.where(np.sin(3 * X["x"]) + rng.normal(size=n) / 4 > 0, "up", "down")
    return X, y


def bins_of(numbers, max_bins):
    column = Column("x", "numeric")
    data = Columns(len(numbers), (np.asarray(numbers, dtype=float),))
    return bin_columns([column], data, max_bins, None)


def test_bins_are_ranges_of_about_equal_size():
    numbers = np.random.default_rng(1).permutation(1000).astype(float)
    binned, edges = bins_of(numbers, 10)
    np.testing.assert_array_equal(edges[0], np.arange(99.5, 900, 100))
    assert np.bincount(binned.data[0].astype(int)).tolist() == [100] * 10


def test_a_bin_holds_what_is_at_most_its_edge():
    numbers = np.array([1, 1, 1, 1, 1, 2, 3, 4, np.nan])
    binned, edges = bins_of(numbers, 3)
    for number, code in zip(numbers[:-1], binned.data[0][:-1].astype(int), strict=True):
        assert (number > edges[0][:code]).all()
        assert (number <= edges[0][code:]).all()
    assert np.isnan(binned.data[0][-1])


def drawn(rng: np.random.Generator) -> np.ndarray:
    """Numbers of some shape: even, skewed, clustered, tied, far apart, missing."""
    n = int(
        rng.choice([1, 2, 20, 300, 5000, 40_000], p=[0.05, 0.05, 0.3, 0.3, 0.2, 0.1])
    )
    numbers = [
        lambda: rng.normal(size=n),
        lambda: rng.normal(size=n).round(int(rng.integers(0, 4))),
        lambda: np.exp(rng.normal(size=n) * rng.choice([1, 10, 100])),
        lambda: rng.integers(0, rng.choice([2, 5, 300, 10**6]), n).astype(float),
        lambda: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
        lambda: np.where(rng.random(n) < 0.9, 7.0, -rng.random(n)),
        lambda: rng.normal(size=n) * rng.choice([1, 1e300, 5e-324, 1e-310], n),
        lambda: 1.0 + rng.integers(0, 2000, n) * 2.0**-52,
        lambda: np.copysign(rng.integers(0, 2, n), rng.normal(size=n)) * 1e308,
    ][rng.integers(9)]()
    numbers[rng.random(n) < rng.choice([0, 0, 0.1, 1])] = np.nan
    return numbers


@pytest.mark.parametrize("part", range(5))
def test_both_kernels_find_the_same_bins(part):
    for seed in range(part, 400, 5):
        rng = np.random.default_rng(seed)
        numbers = drawn(rng)
        max_bins = int(rng.choice([2, 3, 10, 254, 255, 256, 1000, 4096]))
        counted = None if seed % 3 else rng.random(len(numbers)) < 0.5
        kind = number_kind(numbers) if seed % 8 else "any"
        column = Column("x", "numeric", number_kind=kind)
        given = [column], Columns(len(numbers), (numbers,)), max_bins
        threshold = ["readable", "midpoint", "value", "midpoint"][seed % 4]
        expected, edges = bin_columns(*given, counted, threshold)
        found, found_edges = bin_codes(*given, counted, 1, threshold)
        assert found_edges.keys() == edges.keys(), seed
        (codes,) = found.data
        if edges:
            assert codes.dtype == (np.uint8 if max_bins <= 255 else np.uint16)
            missing = codes == np.iinfo(codes.dtype).max
            codes = np.where(missing, np.nan, codes)
            np.testing.assert_array_equal(found_edges[0], edges[0], str(seed))
        np.testing.assert_array_equal(codes, expected.data[0], str(seed))


def test_several_threads_find_the_same_bins():
    rng = np.random.default_rng(0)
    columns = [Column("x", "numeric")] * 5
    data = Columns(900, tuple(rng.normal(size=900) for _ in columns))
    (alone, edges), (shared, same) = (
        bin_codes(columns, data, 20, None, threads) for threads in (1, 3)
    )
    for j in range(5):
        np.testing.assert_array_equal(edges[j], same[j])
        np.testing.assert_array_equal(alone.data[j], shared.data[j])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", [np.zeros(3, dtype=np.float32)]),
        ("columns", [np.zeros(3), np.zeros(4)]),
        ("columns", [np.array([1.0, np.inf, 2.0])]),
        ("counted", np.ones(2, dtype=np.uint8)),
        ("max_bins", 1),
        ("max_bins", 2**16),
        ("positions", [0, 0]),
        ("positions", [8]),
        ("n_threads", 0),
    ],
)
def test_invalid_columns_are_not_binned(name, value):
    given = {
        "columns": [np.arange(3.0)],
        "counted": np.ones(3, dtype=np.uint8),
        "max_bins": 2,
        "positions": [0],
        "n_threads": 1,
    }
    extension().bin_columns(**given)
    with pytest.raises((ValueError, TypeError), match=name):
        extension().bin_columns(**given | {name: value})


def test_few_numbers_keep_their_exact_cuts():
    iris = datasets.load("iris")
    exact = fit_tree(iris.X, iris.y, Recipe())
    assert fit_tree(iris.X, iris.y, Recipe(max_bins=200)).tree == exact.tree
    assert fit_tree(iris.X, iris.y, Recipe(max_bins=4)).tree != exact.tree


@pytest.mark.parametrize("max_bins", [2, 16, 255])
def test_training_rows_follow_the_cuts_that_are_printed(max_bins):
    """Growth saw bins, prediction sees numbers: they must part rows alike."""
    X, y = wavy(3000)
    model = fit_tree(X, y, Recipe(max_bins=max_bins))
    proba = model.predict_proba(X)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        weights = model.tree.weights[leaf]
        if model.tree.n_children[leaf] == 0:
            assert np.count_nonzero(leaves == leaf) == weights.sum()
            np.testing.assert_allclose(
                proba[leaves == leaf][0], weights / weights.sum()
            )


def test_many_bins_lose_little():
    X, y = wavy(20_000)
    new, truth = wavy(20_000, seed=5)
    exact = fit_tree(X, y, Recipe(max_depth=6)).score(new, truth)
    binned = fit_tree(X, y, Recipe(max_depth=6, max_bins=255)).score(new, truth)
    assert abs(exact - binned) < 0.01


def test_both_kernels_and_any_row_order_give_the_same_tree(monkeypatch):
    X, y = wavy(2000)
    order = np.random.default_rng(3).permutation(2000)
    weights = np.random.default_rng(4).integers(0, 3, 2000).astype(float)
    models = []
    for kernel in KERNELS:
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        for rows in (np.arange(2000), order):
            table = {name: column[rows] for name, column in X.items()}
            recipe = Recipe(max_bins=20)
            model = fit_tree(table, y[rows], recipe, sample_weight=weights[rows])
            models.append(model.to_bytes())
    assert len(set(models)) == 1


def test_rows_without_weight_do_not_count():
    X, y = wavy(500)
    kept = np.arange(500) < 300
    whole = fit_tree(X, y, Recipe(max_bins=8), sample_weight=kept.astype(float))
    part = fit_tree(
        {name: column[kept] for name, column in X.items()}, y[kept], Recipe(max_bins=8)
    )
    assert whole.tree == part.tree


def test_cuts_between_bins_become_cuts_between_numbers():
    cut = np.array([np.nan, 0.5, 2.0])
    column = np.array([1, 0, 0])
    edges = {0: np.array([10.0, 20.0, 30.0])}
    np.testing.assert_array_equal(
        numbers_of_thresholds(cut, column, edges), [np.nan, 10, 30]
    )


@pytest.mark.parametrize("max_bins", [1, 0, 2.5, "many"])
def test_max_bins_must_be_a_number_of_bins(max_bins):
    with pytest.raises(ParameterError, match="max_bins must be None or a whole number"):
        ID3Classifier(max_bins=max_bins).fit({"x": [1, 2]}, ["a", "b"])


def test_a_model_file_tells_the_bins_only_where_there_are_some(tmp_path):
    from branchwise import load

    X, y = wavy(300)
    path = tmp_path / "tree.json"
    fit_tree(X, y, Recipe(max_bins=np.int64(5))).save(path)
    assert load(path).recipe.max_bins == 5
    fit_tree(X, y).save(path)
    assert "max_bins" not in path.read_text()
    assert load(path).recipe.max_bins is None


@pytest.mark.parametrize("max_bins", [8, 400])
def test_a_tree_that_is_left_to_the_reference_has_the_same_bins(max_bins, monkeypatch):
    """p-values close to their limit are left to it, after the kernel made codes."""
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=2000), "b": rng.normal(size=2000)}
    X["a"][rng.random(2000) < 0.2] = np.nan
    y = np.where(np.isnan(X["a"]) | (X["b"] > 0.3), "p", "q")
    tree = CARTClassifier(max_bins=max_bins, max_p_value=0.05, max_depth=4)
    monkeypatch.setenv("BRANCHWISE_CACHE", "off")
    native = tree.fit(X, y).model_
    monkeypatch.setattr(train.native, "grow_native", lambda *_: None)
    assert tree.fit(X, y).model_ == native
