"""Criteria: logarithm, masses, gains by hand, and a user's own function."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from branchwise import (
    DataError,
    ID3Classifier,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.grow.criteria import Candidates, Criterion, ImpuritySums64, Scores, log2
from random_tables import KERNELS

TENNIS_GAINS = {
    "outlook": 0.24674981977443933,
    "temperature": 0.02922256565895487,
    "humidity": 0.15183550136234159,
    "wind": 0.04812703040826949,
}


# ------------------------------------------------------------------ the logarithm


def test_log2_is_that_of_the_library_within_some_ulps() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [
            rng.random(3000) * 10,
            2.0 ** rng.uniform(-1000, 1000, 3000),
            rng.integers(1, 10**9, 3000),
            1 + rng.uniform(-1e-3, 1e-3, 3000),
            [5e-324, 1e-310, np.finfo(float).tiny, np.finfo(float).max],
        ]
    )
    got = log2(values)
    wanted = np.array([math.log2(value) for value in values])
    ulps = np.abs(got - wanted) / np.array([math.ulp(value) for value in wanted])
    assert ulps.max() <= 4


def test_log2_of_powers_of_two_is_exact() -> None:
    exponents = np.arange(-1074, 1024)
    assert log2(np.ldexp(1.0, exponents)).tolist() == exponents.tolist()


def test_log2_of_nothing_is_taken_as_nothing() -> None:
    assert log2(np.array([0.0, 1.0, 0.0])).tolist() == [0, 0, 0]


# ------------------------------------------------------------------------- masses


def entropy(weights) -> float:
    total = sum(weights)
    shares = [float(Fraction(weight) / Fraction(total)) for weight in weights if weight]
    return -math.fsum(share * math.log2(share) for share in shares)


def gini(weights) -> float:
    total = Fraction(sum(weights))
    return float(1 - sum((Fraction(weight) / total) ** 2 for weight in weights))


def test_entropy_of_nine_yes_and_five_no() -> None:
    masses = ImpuritySums64(14.0, whole=True)
    got = int(masses.entropy(np.array([9.0, 5.0]))) * masses.unit / 14
    assert got == pytest.approx(0.9402859586706311, rel=1e-15)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("impurity", [entropy, gini])
def test_masses_are_weight_times_impurity(impurity, whole: bool) -> None:
    rng = random.Random(2)
    for _ in range(300):
        size = rng.randint(1, 6)
        if whole:
            weights = [float(rng.randint(0, 50)) for _ in range(size)]
        else:
            weights = [rng.choice([0.0, rng.uniform(1e-6, 9)]) for _ in range(size)]
        weights[0] += 1.0
        masses = ImpuritySums64(sum(weights) * rng.choice([1, 16]), whole)
        got = getattr(masses, impurity.__name__)(np.array([weights]))
        wanted = sum(weights) * impurity(weights)
        assert got.dtype == np.int64
        assert got[0] * masses.unit == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_masses_of_whole_numbers_agree_with_and_without_a_table() -> None:
    # Beyond the largest table the same numbers are worked out one by one.
    small, large = (
        ImpuritySums64(1000.0, whole=True),
        ImpuritySums64(2.0**23, whole=True),
    )
    weights = np.array([[600.0, 300.0, 100.0]])
    assert small.entropy(weights)[0] * small.unit == pytest.approx(
        large.entropy(weights)[0] * large.unit, rel=1e-12
    )


TOTALS = [2.0**-40, 1.0, 1e9, 2.0**52]
FAR_TOTALS = [1e-300, 1e300]


@pytest.mark.parametrize("total", TOTALS + FAR_TOTALS)
def test_entropy_masses_fit_for_every_total(total: float) -> None:
    masses = ImpuritySums64(total, whole=False)
    weights = np.full((1, 4), total / 4)
    assert masses.entropy(weights)[0] * masses.unit == pytest.approx(
        2 * total, rel=1e-9, abs=0
    )


@pytest.mark.parametrize("total", TOTALS + FAR_TOTALS)
def test_gini_masses_fit_for_every_total(total: float) -> None:
    masses = ImpuritySums64(total, whole=False)
    weights = np.full((1, 4), total / 4)
    assert masses.gini(weights)[0] * masses.unit == pytest.approx(
        0.75 * total, rel=1e-9, abs=0
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["gain", "gain_ratio", "gini"])
@pytest.mark.parametrize("weight", [1e-300, 1e-9, 1e15, 2e299])
def test_weights_of_any_size_give_the_same_tree(
    weight: float, name: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    table = {"b": ["u", "u", "v", "v"], "a": ["p", "q", "p", "q"]}
    recipe = Recipe(criterion=name)
    model = fit_tree(table, ["n", "y", "n", "y"], recipe, sample_weight=[weight] * 4)
    assert model.tree.column.tolist() == [1, -1, -1]


@pytest.mark.parametrize("weight", [1e-310, 2e307])
def test_weights_too_small_or_large_to_add_up_are_refused(weight: float) -> None:
    with pytest.raises(DataError, match="sample_weight"):
        fit_tree({"a": ["p", "q"]}, ["n", "y"], sample_weight=[weight] * 2)


# ---------------------------------------------------------------- gains by hand


def candidates(*branches: list[float], unknown: float = 0.0) -> Candidates:
    weights = np.array(branches, dtype=float)
    return Candidates(
        np.array([0]),
        weights,
        np.array([0]),
        weights.sum(axis=0, keepdims=True),
        np.array([unknown]),
    )


def scores(name: str, *branches: list[float], unknown: float = 0.0) -> Scores:
    total = float(np.sum(branches)) + unknown
    given = candidates(*branches, unknown=unknown)
    return Criterion(name).score(given, ImpuritySums64(total, whole=True))


@pytest.mark.parametrize("column", list(TENNIS_GAINS))
def test_tennis_gains(column: str) -> None:
    tennis = datasets.load("tennis")
    branches = [
        [
            sum(
                cell == value and label == answer
                for cell, label in zip(tennis.X[column], tennis.y, strict=True)
            )
            for answer in ("no", "yes")
        ]
        for value in sorted(set(tennis.X[column]))
    ]
    got = scores("gain", *branches)
    assert got.gain[0] == pytest.approx(TENNIS_GAINS[column], rel=1e-13)
    assert got.score[0] == got.gain[0]


@pytest.mark.parametrize("name", ["gain", "gain_ratio", "gini"])
def test_order_of_branches_and_classes_leaves_every_bit(name: str) -> None:
    branches = [[3.0, 1.0, 0.0], [2.0, 5.0, 1.0], [0.0, 4.0, 7.0]]
    one = scores(name, *branches)
    other = scores(name, *[branch[::-1] for branch in branches[::-1]])
    assert (one.score[0], one.gain[0]) == (other.score[0], other.gain[0])


def test_gini_by_hand() -> None:
    # Of 4 yes and 4 no: 1/2; branches (4, 0) and (0, 2), (0, 2) are pure.
    assert scores("gini", [4, 0], [0, 2], [0, 2]).gain[0] == pytest.approx(0.5)
    # (3, 1) and (1, 3): 1/2 - (3/8 + 3/8) / 2 = 1/8.
    assert scores("gini", [3, 1], [1, 3]).gain[0] == pytest.approx(0.125)


def test_gain_ratio_by_hand() -> None:
    # One bit gained, at the price of the 1.5 bits of branches of 4, 2 and 2.
    got = scores("gain_ratio", [4, 0], [0, 2], [0, 2])
    assert got.gain[0] == pytest.approx(1.0)
    assert got.score[0] == pytest.approx(1 / 1.5)


def test_gain_is_scaled_by_the_known_share() -> None:
    for name, gain in (("gain", 1.0), ("gain_ratio", 1.0), ("gini", 0.5)):
        got = scores(name, [2, 0], [0, 2], unknown=4)
        assert got.gain[0] == pytest.approx(gain / 2)


def test_gain_ratio_takes_the_unknown_for_one_more_branch() -> None:
    # Sizes 2, 2 and 4 (unknown): 1.5 bits; half of the one bit is gained.
    got = scores("gain_ratio", [2, 0], [0, 2], unknown=4)
    assert got.score[0] == pytest.approx(0.5 / 1.5)


def test_a_useless_split_gains_nothing_and_not_less() -> None:
    got = scores("gain", [1, 2], [2, 4], [3, 6])
    assert got.gain[0] == pytest.approx(0, abs=1e-14)
    assert got.gain[0] >= 0


def test_equal_gains_are_a_tie_whatever_the_rounding() -> None:
    # Three independent attributes, each combination in proportion: both columns
    # gain exactly nothing, so the first must win.
    parts = [(i, j, c) for i in (0, 1) for j in (0, 1) for c in (0, 1, 2)]
    times = [(1, 2)[j] * (1, 3, 3)[c] for i, j, c in parts]
    rows = [part for part, n in zip(parts, times, strict=True) for _ in range(n)]
    table = {"a": [f"a{i}" for i, _, _ in rows], "b": [f"b{j}" for _, j, _ in rows]}
    model = fit_tree(table, [f"c{c}" for _, _, c in rows], Recipe(max_depth=1))
    assert len(rows) == 42
    assert model.tree.column[0] == 0


def test_min_gain_counts_a_gain_that_is_just_enough() -> None:
    table = {"a": ["p", "p", "q", "q"]}
    labels = ["no", "no", "yes", "yes"]
    assert len(fit_tree(table, labels, Recipe(min_gain=1.0)).tree) == 3
    assert len(fit_tree(table, labels, Recipe(min_gain=1.0 + 1e-9)).tree) == 1


# ------------------------------------------------------------- a user's criterion


def classification_gain(node, branches):
    """Misclassified weight taken away, as a share of the node's weight."""
    wrong = node.sum(axis=1) - node.max(axis=1)
    left = branches.sum(axis=(1, 2)) - branches.max(axis=2).sum(axis=1)
    return (wrong - left) / node.sum(axis=1)


def entropy_gain(node, branches):
    """Information gain written as a user would write it."""

    def mass(weights):
        total = weights.sum(axis=-1, keepdims=True)
        share = weights / np.where(total > 0, total, 1)
        bits = -np.log2(np.where(share > 0, share, 1)) * share
        return bits.sum(axis=-1) * total[..., 0]

    return (mass(node) - mass(branches).sum(axis=1)) / node.sum(axis=1)


def test_a_function_can_be_the_criterion() -> None:
    tennis = datasets.load("tennis")
    built_in = ID3Classifier().fit(tennis.X, tennis.y)
    own = ID3Classifier(criterion=entropy_gain).fit(tennis.X, tennis.y)
    assert own.tree_ == built_in.tree_
    assert own.model_.recipe.criterion_name == "entropy_gain"


def test_a_function_decides() -> None:
    # a separates 3 of 4 cases of each class; b isolates one case and errs on three.
    table = {"a": list("ppppqqqq"), "b": list("uvvvvvvv")}
    labels = list("nnnyyyyn")
    own = ID3Classifier(criterion=classification_gain, max_depth=1).fit(table, labels)
    worst = ID3Classifier(
        criterion=lambda node, branches: 1 - classification_gain(node, branches),
        max_depth=1,
    ).fit(table, labels)
    assert own.tree_.column[0] == 0
    assert worst.tree_.column[0] == 1


def test_a_function_sees_class_weights_and_zeros_for_absent_branches() -> None:
    seen = []

    def watch(node, branches):
        seen.append((node.copy(), branches.copy()))
        return entropy_gain(node, branches)

    table = {"a": list("ppppqqqq"), "b": list("uvwwuuvv")}
    ID3Classifier(criterion=watch).fit(table, list("nnnyyyny"))
    root_node, root_branches = seen[0]
    assert root_node.tolist() == [[4, 4]]
    assert root_branches.tolist() == [[[3, 1], [1, 3]]]
    below = next(branches for node, branches in seen if len(node) == 2)
    assert below.tolist() == [
        [[1, 0], [1, 0], [1, 1]],
        [[0, 2], [1, 1], [0, 0]],
    ]
    for node, branches in seen:
        np.testing.assert_array_equal(branches.sum(axis=1), node)


def test_a_function_is_scaled_by_the_known_share() -> None:
    # On known cases alone b is as good as a, but half of its cells are missing.
    table = {"b": ["u", None, "v", None], "a": list("ppqq")}
    model = ID3Classifier(
        criterion=classification_gain, missing="split", max_depth=1
    ).fit(table, list("nnyy"))
    assert model.model_.schema.names[model.tree_.column[0]] == "a"


def test_a_function_that_returns_the_wrong_shape_is_told() -> None:
    def lazy(node, branches):
        return 0.5

    with pytest.raises(ParameterError, match=r"'lazy' must return one score.*1 nodes"):
        ID3Classifier(criterion=lazy).fit({"a": ["p", "q"]}, ["n", "y"])
    with pytest.raises(ParameterError, match=r"shape \(1, 2\)"):
        ID3Classifier(criterion=lambda node, branches: node).fit(
            {"a": ["p", "q"]}, ["n", "y"]
        )


def test_a_function_that_returns_nan_is_told() -> None:
    def careless(node, branches):
        return np.full(len(node), np.nan)

    with pytest.raises(ParameterError, match=r"'careless' returned NaN.*rows of zeros"):
        ID3Classifier(criterion=careless).fit({"a": ["p", "q"]}, ["n", "y"])


def test_a_function_may_return_negative_scores() -> None:
    def wrong(node, branches):
        return branches.max(axis=2).sum(axis=1) - node.sum(axis=1)

    table = {"b": ["u", "u", "v", "v"], "a": ["p", "q", "p", "q"]}
    model = ID3Classifier(criterion=wrong).fit(table, ["n", "y", "n", "y"])
    assert model.tree_.column.tolist() == [1, -1, -1]


def test_a_function_may_return_infinite_scores() -> None:
    def separated(node, branches):
        right = branches.max(axis=2).sum(axis=1)
        return np.where(right == node.sum(axis=1), np.inf, 0.0)

    table = {"b": ["u", "u", "v", "v"], "a": ["p", "q", "p", "q"]}
    model = ID3Classifier(criterion=separated).fit(table, ["n", "y", "n", "y"])
    assert model.tree_.column.tolist() == [1, -1, -1]


def test_an_object_that_is_called_has_the_name_of_its_class() -> None:
    recipe = Recipe(criterion=partial(classification_gain))
    assert recipe.criterion_name == "partial"


@pytest.mark.parametrize("bad", ["Gain", "", None, 3, dict, np.array(["gain"])])
def test_no_other_criterion_is_taken(bad: object) -> None:
    with pytest.raises(ParameterError, match="criterion must be 'gain' or"):
        Recipe(criterion=bad)
