"""The significance stop: chances against scipy, and who is stopped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats

from branchwise import CARTRegressor, ID3Classifier, Recipe, fit_tree, stats
from branchwise.stats import (
    log_chi_square_tail,
    log_f_tail,
    log_groupings,
    log_p_values_of_classes,
    log_p_values_of_numbers,
)


def test_the_tail_of_chi_square():
    rng = np.random.default_rng(0)
    freedom = np.concatenate([rng.integers(1, 12, 500), rng.integers(1, 3000, 500)])
    statistic = freedom * rng.lognormal(0, 0.7, 1000)
    expected = scipy.stats.chi2.logsf(statistic, freedom)
    known = np.isfinite(expected)  # scipy's chances vanish below 1e-308
    assert known.sum() > 900
    found = log_chi_square_tail(statistic, freedom.astype(float))
    assert np.allclose(found[known], expected[known], rtol=1e-9, atol=1e-13)
    assert np.isfinite(found).all()
    assert (found[~known] < -700).all()


def test_the_tail_of_chi_square_at_its_ends():
    # With two degrees of freedom the tail is exp(-x / 2), however small.
    assert log_chi_square_tail(np.array([0.0, 5.0, 1e6]), np.full(3, 2.0)) == (
        pytest.approx([0.0, -2.5, -5e5])
    )
    assert log_chi_square_tail(np.array([3.0]), np.array([0.0])) == 0.0


def test_the_tail_of_f():
    rng = np.random.default_rng(1)
    between = rng.integers(1, 40, 1000).astype(float)
    within = rng.integers(1, 4000, 1000).astype(float)
    ratio = rng.lognormal(0, 1, 1000)
    expected = scipy.stats.f.logsf(ratio, between, within)
    known = np.isfinite(expected)
    assert known.sum() > 900
    found = log_f_tail(ratio, between, within)
    assert np.allclose(found[known], expected[known], rtol=1e-9, atol=1e-12)


def test_the_tail_of_f_at_its_ends():
    found = log_f_tail(np.array([0.0, np.inf]), np.ones(2), np.full(2, 5.0))
    assert found.tolist() == [0.0, -np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_tails_end_where_there_is_nothing_to_add_up(bad, monkeypatch):
    steps = []

    def counted(first, last):
        for step in range(first, last):
            steps.append(step)
            yield step

    monkeypatch.setattr(stats, "range", counted, raising=False)
    with np.errstate(all="ignore"):
        log_chi_square_tail(np.array([bad, 3.0]), np.array([4.0, 4.0]))
        log_f_tail(np.array([bad, 3.0]), np.array([2.0, 2.0]), np.array([5.0, 5.0]))
    assert len(steps) < 1000


def groupings(n_values: int) -> Iterator[list[int]]:
    """Yield every grouping of values as the group of each, from the definition."""
    found = [[0]]
    for _ in range(n_values - 1):
        found = [[*g, k] for g in found for k in range(max(g) + 2)]
    yield from found


@pytest.mark.parametrize("n_values", range(1, 8))
def test_ways_to_group_values(n_values):
    sizes = [max(group) + 1 for group in groupings(n_values)]
    for n_groups in range(1, n_values + 1):
        ways = np.exp(log_groupings(n_values, n_groups))
        assert ways == pytest.approx(sizes.count(n_groups))


def test_ways_to_group_in_two():
    for n_values in (2, 5, 50, 256):
        expected = np.log(2.0 ** (n_values - 1) - 1)
        assert log_groupings(n_values, 2) == pytest.approx(expected)
    # Beyond that a bound that is hardly larger.
    assert log_groupings(1000, 2) == pytest.approx(999 * np.log(2))
    assert log_groupings(1000, 30) > log_groupings(999, 30)


def test_a_table_of_branches_and_classes():
    rng = np.random.default_rng(2)
    tables = [rng.integers(1, 20, (b, 3)).astype(float) for b in rng.integers(2, 6, 30)]
    starts = np.cumsum([0, *(len(t) for t in tables[:-1])])
    cases = np.array([t.sum() for t in tables])
    expected = [
        np.log(scipy.stats.chi2_contingency(t, correction=False).pvalue) for t in tables
    ]
    found = log_p_values_of_classes(np.concatenate(tables), starts, cases)
    assert found == pytest.approx(expected)
    # Weights count for shares only: half the weight for every case changes nothing.
    halves = log_p_values_of_classes(np.concatenate(tables) / 2, starts, cases)
    assert halves == pytest.approx(expected)


def test_a_class_that_is_not_there_does_not_count():
    table = np.array([[8.0, 0.0, 2.0], [3.0, 0.0, 7.0]])
    expected = scipy.stats.chi2_contingency(table[:, ::2], correction=False).pvalue
    found = log_p_values_of_classes(table, np.array([0]), np.array([20.0]))
    assert np.exp(found) == pytest.approx(expected)


def test_branches_of_numbers():
    rng = np.random.default_rng(3)
    groups = [rng.normal(loc, 1, n) for loc, n in ((0, 5), (1, 8), (0.3, 4))]
    whole = np.var(np.concatenate(groups)) * 17
    within = sum(np.var(g) * len(g) for g in groups)
    expected = scipy.stats.f_oneway(*groups).pvalue
    found = log_p_values_of_numbers(
        *(np.array([each]) for each in (whole, within, len(groups), 17.0))
    )
    assert np.exp(found) == pytest.approx(expected)
    # One case a branch: nothing to compare the difference with.
    alone = (np.array([each]) for each in (4.5, 0.0, 2, 2.0))
    assert log_p_values_of_numbers(*alone) == 0.0


def table(seed: int, gaps: bool) -> tuple[dict[str, list[object]], np.ndarray]:
    rng = np.random.default_rng(seed)
    n = 40
    columns: dict[str, list[object]] = {
        "text": list(rng.choice(list("abcde"), n)),
        "number": list(rng.integers(0, 9, n).astype(float)),
        "constant": ["x"] * n,
        "pair": list(rng.choice(["u", "v"], n)),
        "noise": [f"n{k}" for k in rng.integers(0, 15, n)],
    }
    if gaps:
        for name in ("text", "number"):
            for row in rng.choice(n, 5, replace=False):
                columns[name][row] = None
    hint = [str(t) in "ab" for t in columns["text"]]
    return columns, rng.integers(0, 3, n) + 3 * np.array(hint)


def naive_candidates(
    columns: dict[str, list[object]], y: np.ndarray, branching: str
) -> dict[int, tuple[float, float]]:
    """Return the score and the adjusted p-value of every column, each by itself."""
    found = {}
    for index, (name, cells) in enumerate(columns.items()):
        recipe = Recipe(max_depth=1, branching=branching, criterion="gain")
        tree = fit_tree({name: cells}, y, recipe).tree
        if len(tree) == 1:
            continue
        known = {value for value in cells if value is not None}
        tries = 1.0
        if name == "number":
            tries *= len(known) - 1
        elif branching != "values":
            n_groups = int(np.count_nonzero(tree.n_codes[1:]))
            tries *= np.exp(log_groupings(len(known), n_groups))
        branches = tree.weights[1:][:, tree.weights[0] > 0]
        p_value = scipy.stats.chi2_contingency(branches, correction=False).pvalue
        found[index] = gain(branches), float(p_value) * tries
    return {index: (score, p * len(found)) for index, (score, p) in found.items()}


def gain(branches: np.ndarray) -> float:
    def entropy(weights: np.ndarray) -> float:
        return float(scipy.stats.entropy(weights, base=2))

    share = branches.sum(axis=1) / branches.sum()
    left = sum(s * entropy(b) for s, b in zip(share, branches, strict=True))
    return entropy(branches.sum(axis=0)) - left


def root_column(columns, y, branching, bar) -> int:
    recipe = Recipe(
        criterion="gain",
        max_depth=1,
        branching=branching,
        max_p_value=bar,
    )
    return int(fit_tree(columns, y, recipe).tree.column[0])


@pytest.mark.parametrize("branching", ["values", "groups", "two-way"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_the_significant_splits_is_made(branching, gaps, seed):
    columns, y = table(seed, gaps)
    found = naive_candidates(columns, y, branching)
    for edge in sorted(p for _, p in found.values()):
        for bar in (edge * 0.9999, edge * 1.0001):
            if bar > 1:
                continue
            passing = {i: score for i, (score, p) in found.items() if p <= bar}
            expected = max(passing, key=lambda i: passing[i]) if passing else -1
            assert root_column(columns, y, branching, bar) == expected


def test_the_bars_were_worth_testing():
    adjusted, overruled = [], 0
    for seed in range(8):
        for branching in ("values", "groups", "two-way"):
            found = naive_candidates(*table(seed, True), branching)
            adjusted += [p for _, p in found.values()]
            best = max(found, key=lambda i: found[i][0])
            overruled += min(p for _, p in found.values()) < found[best][1]
    assert sum(p < 1 for p in adjusted) > 12
    assert overruled > 4


def test_noise_of_many_values_does_not_hide_a_signal():
    """The noise scores best, but is not significant; the signal is."""
    rng = np.random.default_rng(9)
    noise = rng.integers(0, 100, 300).astype(str)
    sound = rng.integers(0, 2, 300)
    y = np.where(rng.random(300) < 0.25, 1 - sound, sound)
    X = {"noise": noise, "sound": sound.astype(str)}
    assert ID3Classifier(max_depth=1).fit(X, y).tree_.column[0] == 0
    strict = ID3Classifier(max_depth=1, max_p_value=0.01).fit(X, y)
    assert strict.tree_.column[0] == 1
    text = str(strict.model_.steps(X, y))
    assert "its p-value is above max_p_value=0.01" in text
    assert "the split stands" in text


def test_noise_grows_no_tree_and_a_signal_does():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 10))
    noise = rng.integers(0, 2, 400)
    signal = np.where(rng.random(400) < 0.1, noise, X[:, 3] > 0.2)
    strict = ID3Classifier(max_p_value=0.001)
    assert strict.fit(X, noise).get_n_leaves() == 1
    assert strict.fit(X, signal).get_n_leaves() == 2
    assert ID3Classifier().fit(X, noise).get_n_leaves() > 50


def test_weights_that_sum_to_one_do_not_stop_the_tree():
    rng = np.random.default_rng(6)
    X, w = rng.normal(size=(100, 2)), np.full(100, 0.01)
    y = X[:, 0] > 0
    strict = ID3Classifier(max_p_value=0.05)
    assert strict.fit(X, y).tree_.n_leaves == strict.fit(X, y, w).tree_.n_leaves == 2


def test_numbers_are_tested_by_their_means():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 5))
    noise = rng.normal(size=200)
    strict = CARTRegressor(max_p_value=0.01)
    assert strict.fit(X, noise).get_n_leaves() == 1
    assert strict.fit(X, noise + 3 * (X[:, 2] > 0)).get_n_leaves() == 2
    y = noise + 0.7 * (X[:, 2] > 0)
    one = CARTRegressor(max_depth=1).fit(X, y).tree_
    low = X[:, one.column[0]] <= one.threshold[0]
    # Five columns with 199 cuts each.
    adjusted = scipy.stats.f_oneway(y[low], y[~low]).pvalue * 5 * 199
    assert 1e-9 < adjusted < 0.9
    for bar, leaves in ((adjusted * 1.0001, 2), (adjusted * 0.9999, 1)):
        grown = CARTRegressor(max_depth=1, max_p_value=bar).fit(X, y)
        assert grown.get_n_leaves() == leaves


def test_every_node_is_asked():
    """Below a sound split the noise is not split any more."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 4, (300, 6)).astype(str)
    y = np.where(rng.random(300) < 0.2, rng.integers(0, 2, 300), X[:, 0] > "1")
    strict = ID3Classifier(max_p_value=0.001).fit(X, y).tree_
    assert strict.column[0] == 0
    assert strict.n_leaves == 4
