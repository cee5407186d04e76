"""Columns of many values do not win by their number: scores of groups are corrected."""

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from branchwise import CARTClassifier, CARTRegressor, ParameterError, Recipe, fit_tree
from branchwise.data.arrays import Floats
from branchwise.grow import many_values
from branchwise.grow.many_values import (
    class_factor,
    contrast_share,
    corrected_share,
    null_excess,
)
from branchwise.recipe import C45, CART

N = 4000
HALF = N // 2


def noisy_table(n_values, seed=0):
    """Return two columns that tell of a class, a noise column, and classes."""
    rng = np.random.default_rng(seed)
    x, c = rng.normal(size=N), rng.integers(0, 6, N)
    noise = rng.integers(0, n_values, N)
    logit = x + np.array([-1, -0.5, 0, 0, 0.5, 1])[c]
    y = rng.random(N) < 1 / (1 + np.exp(-logit))
    table = {
        "shop": np.array([f"s{i}" for i in noise]),
        "x": x,
        "c": np.array([f"c{i}" for i in c]),
    }
    return table, np.where(y, "yes", "no"), logit


def half(table, first):
    rows = slice(0, HALF) if first else slice(HALF, None)
    return {name: cells[rows] for name, cells in table.items()}


def auc(table, y, **parameters):
    tree = CARTClassifier(max_depth=5, min_samples_leaf=20, **parameters)
    tree.fit(half(table, True), y[:HALF])
    return roc_auc_score(y[HALF:], tree.predict_proba(half(table, False))[:, 1])


@pytest.mark.parametrize("n_values", [50, 800])
def test_a_noise_column_costs_nearly_nothing(n_values):
    table, y, _ = noisy_table(n_values)
    without = {name: table[name] for name in ("x", "c")}
    wanted = auc(without, y)
    assert auc(table, y) > wanted - 0.01
    assert auc(table, y, many_values="plain") < wanted - 0.02


def test_numbers_are_predicted_as_well():
    table, _, y = noisy_table(800)
    y = y + np.random.default_rng(1).normal(size=N)
    found = {}
    for how in ("corrected", "plain"):
        tree = CARTRegressor(max_depth=5, min_samples_leaf=20, many_values=how)
        tree.fit(half(table, True), y[:HALF])
        found[how] = r2_score(y[HALF:], tree.predict(half(table, False)))
    assert found["corrected"] > found["plain"] + 0.1


def test_many_values_that_tell_something_are_kept():
    rng = np.random.default_rng(2)
    rate = rng.normal(0, 1.5, 60)
    zip_code = rng.integers(0, 60, N)
    y = np.where(rng.random(N) < 1 / (1 + np.exp(-rate[zip_code])), "yes", "no")
    table = {
        "x": rng.normal(size=N),
        "zip": np.array([f"z{i}" for i in zip_code]),
    }
    tree = CARTClassifier(max_depth=1).fit(table, y)
    assert tree.model_.used_columns == [1]
    assert auc(table, y) > 0.75


def test_the_share_that_is_subtracted():
    values = np.array([1, 2, 8, 9, 100, 100, 9])
    cases: Floats = np.array([5.0, 5.0, 101.0, 1e6 + 1, 1e6 + 1, 101.0, 1.5])
    share = corrected_share(values, cases).tolist()
    # (2 / pi) k and three times 0.962 sqrt(k), less the same of 8 values.
    nine, hundred = 0.6366198 + 2.8857 * (3 - 8**0.5), 58.569 + 2.8857 * (10 - 8**0.5)
    alone = 0.3633802 * 100 * (100 / 101) ** 2
    assert share[:3] == [0, 0, 0]
    assert share[3] * 1e6 == pytest.approx(nine, rel=1e-4)
    assert share[4] * 1e6 == pytest.approx(hundred, rel=1e-4)
    assert share[5] * 100 == pytest.approx(hundred + alone, rel=1e-4)
    assert share[6] == pytest.approx(nine + 0.3633802 * 9, rel=1e-4)


def best_gain_of_noise(rng, n_values, n):
    """Return the gain of the best two groups, in units of impurity / (n - 1)."""
    values, y = rng.integers(0, n_values, n), rng.random(n) < 0.5
    size = np.bincount(values, minlength=n_values)
    ones = np.bincount(values, y, minlength=n_values)
    order = np.argsort(ones / size, kind="stable")
    left, own = np.cumsum(size[order])[:-1], np.cumsum(ones[order])[:-1]
    gain = (own - left * y.mean()) ** 2 * n / (left * (n - left))
    return gain.max() * (n - 1) / (n * y.mean() * (1 - y.mean()))


@pytest.mark.parametrize("n_values", [13, 50])
def test_a_noise_column_gains_what_is_expected_of_it(n_values):
    rng, n = np.random.default_rng(n_values), 2000
    found = [best_gain_of_noise(rng, n_values, n) for _ in range(300)]
    of_eight = 8 * 2 / np.pi + 2.8857 * 8**0.5
    expected = null_excess(np.array([n_values]), np.array([float(n)]))[0] + of_eight
    assert np.mean(found) + 3 * np.std(found) == pytest.approx(expected, rel=0.12)


def best_gain_of_classes(rng, n_values, n_classes, n):
    """Return the gain of the best two groups by the share of a class, in that unit."""
    values, y = rng.integers(0, n_values, n), rng.integers(0, n_classes, n)
    cells = np.zeros((n_values, n_classes))
    np.add.at(cells, (values, y), 1)
    total = cells.sum(axis=0)
    drops = []
    for label in range(n_classes):
        order = np.argsort(cells[:, label] / cells.sum(axis=1), kind="stable")
        left = np.cumsum(cells[order], axis=0)[:-1]
        right = total - left
        kept = [(side**2).sum(axis=1) / side.sum(axis=1) for side in (left, right)]
        drops.append((kept[0] + kept[1]).max() - (total**2).sum() / n)
    return max(drops) * (n - 1) / (n - (total**2).sum() / n)


@pytest.mark.parametrize(("n_values", "n_classes"), [(50, 3), (50, 6), (200, 6)])
def test_more_classes_gain_less_at_random(n_values, n_classes):
    """What many values gain more than 8 do is less, by the share of one contrast."""
    rng, n = np.random.default_rng(n_values), 4000
    found = {}
    for k in (8, n_values):
        gains = [best_gain_of_classes(rng, k, n_classes, n) for _ in range(100)]
        found[k] = np.mean(gains) + 3 * np.std(gains)
    share = contrast_share(np.ones((1, n_classes)))[0]
    assert share == pytest.approx(1 / (n_classes - 1))
    expected = share * null_excess(np.array([n_values]), np.array([float(n)]))[0]
    assert found[n_values] - found[8] == pytest.approx(expected, rel=0.2)


def test_the_share_of_one_contrast():
    weights = np.array([[5.0, 5, 0], [7, 2, 0], [4, 0, 0], [50, 40, 10], [0, 0, 0]])
    share = contrast_share(weights)
    assert share[:3] == pytest.approx([1, 1, 1])
    # The first class against the others, and what that tells of these.
    assert share[3] == pytest.approx((0.5 * 0.5 + 0.5 * (0.4**2 + 0.1**2) / 0.5) / 0.58)
    assert share[4] == 1
    assert contrast_share(np.array([[3.0, 8.0]])).tolist() == [1]
    values, cases = np.full(4, 20), np.array([1e9, 400.0, 200.0, 20.0])
    factor = class_factor(np.ones((4, 3)), values, cases)
    assert factor == pytest.approx([0.5, 0.75, 1, 1])


def test_pairs_of_many_values_are_found():
    """Two columns of 13 ranks that are equal tell of the class, neither does alone."""
    rng = np.random.default_rng(5)
    ranks = rng.integers(0, 13, (2, N))
    y = np.where(ranks[0] == ranks[1], "pair", "none")
    table = {f"rank{j}": np.array([f"r{i}" for i in ranks[j]]) for j in (0, 1)}
    for j, suits in enumerate(rng.integers(0, 4, (4, N))):
        table[f"suit{j}"] = np.array([f"s{i}" for i in suits])
    tree = CARTClassifier().fit(half(table, True), y[:HALF])
    assert (tree.predict(half(table, False)) == y[HALF:]).mean() > 0.92


def test_up_to_eight_values_are_scored_as_they_are():
    table, y, _ = noisy_table(8)
    plain = CARTClassifier(many_values="plain", max_depth=6).fit(table, y)
    assert CARTClassifier(max_depth=6).fit(table, y).tree_ == plain.tree_


def test_it_is_for_two_way_splits_by_some_criteria():
    assert CART.corrects_values
    assert not C45.corrects_values
    assert Recipe(criterion="variance", branching="two-way").corrects_values
    for other in (
        {"criterion": "poisson"},
        {"criterion": "gain_ratio"},
        {"average_gain": True},
        {"many_values": "plain"},
    ):
        assert not Recipe(**{"branching": "two-way"} | other).corrects_values
    with pytest.raises(ParameterError, match="unless branching is 'two-way'"):
        Recipe(many_values="plain")
    with pytest.raises(ParameterError, match="many_values must be 'corrected' or"):
        CARTClassifier(many_values=False).fit({"x": [1, 2]}, [0, 1])


def test_min_gain_is_compared_with_what_is_left():
    table, y, _ = noisy_table(800)
    shop = {"shop": table["shop"]}
    recipe = Recipe(criterion="gini", branching="two-way", min_gain=1e-6, max_depth=1)
    assert fit_tree(shop, y, recipe, on_finding=[].append).tree.n_leaves == 1
    plain = Recipe(**vars(recipe) | {"many_values": "plain"})
    assert fit_tree(shop, y, plain, on_finding=[].append).tree.n_leaves == 2


def check_kernels(monkeypatch, seed):
    """Check that both kernels grow the same tree, with nearly all columns corrected."""
    monkeypatch.setattr(many_values, "FEW_VALUES", 2)
    rng = np.random.default_rng([seed, 7])
    n = int(rng.choice([40, 120, 400, 1500]))
    table = {
        f"c{k}": np.array([f"v{i}" for i in rng.integers(0, k, n)], dtype=object)
        for k in (2, 3, 12, 40)
    }
    table["c12"][rng.random(n) < 0.1] = None
    table["x"] = rng.integers(0, 20, n) / 2
    n_classes = int(rng.choice([2, 3, 5]))
    drawn = np.minimum(rng.geometric(0.4, n), n_classes) - 1
    classes = np.array(list("abcde"))[drawn]
    weights = rng.random(n) + 0.1 if seed % 2 else None
    criterion = str(rng.choice(["gini", "gain", "variance"]))
    y = table["x"] + rng.normal(size=n) if criterion == "variance" else classes
    recipe = Recipe(
        criterion=criterion,
        branching="two-way",
        missing=("learned", "branch", "split", "largest", "surrogate")[seed % 5],
        min_gain=float(rng.choice([0, 0, 0.01])),
        max_depth=int(rng.choice([3, 50])),
    )
    trees = []
    for kernel in ("native", "reference"):
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        shuffled = rng.permutation(n)  # or the tree would come from a cache
        rows = {name: cells[shuffled] for name, cells in table.items()}
        own = None if weights is None else weights[shuffled]
        trees.append(fit_tree(rows, y[shuffled], recipe, sample_weight=own).tree)
    assert trees[0] == trees[1], (seed, recipe)


@pytest.mark.parametrize("seed", range(10))
def test_the_kernel_grows_the_same_tree(monkeypatch, seed):
    check_kernels(monkeypatch, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 410))
def test_the_kernel_grows_the_same_trees(monkeypatch, seed):
    check_kernels(monkeypatch, seed)
