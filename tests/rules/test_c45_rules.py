"""The rules of C4.5 one by one, on tables small enough to check by hand.

Numbers are those of docs/c45.md; the figures of rules 2 to 9 are what Quinlan's
release 8 and J48 print for the same tables.
"""

from __future__ import annotations

import doctest
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from branchwise import C45Classifier, Model
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion, ImpuritySums64
from branchwise.grow.thresholds import Thresholds, best_penalised
from branchwise.prune.estimates import Estimate


def fitted(X: dict, y: str | list[str], **options: object) -> Model:
    """Fit a table whose labels may be letters of one word."""
    options = {"prune": False} | options
    return C45Classifier(**options).fit(X, list(y)).model_


def root(model: Model) -> str | None:
    column = int(model.tree.column[0])
    return model.schema.names[column] if column >= 0 else None


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


# ---------------------------------------------------------------------- growing


def test_1_too_few_cases_for_two_branches_are_a_leaf():
    assert root(fitted({"a": list("uuv")}, "ppq")) is None
    assert root(fitted({"a": list("uuvv")}, "ppqq")) == "a"
    assert root(fitted({"a": list("uuvv")}, "ppqq", min_samples_branch=3)) is None


def test_2_two_branches_must_have_the_minimum_the_others_need_not():
    split = fitted({"a": list("uvvvwww")}, "ppppqqq")
    assert root(split) == "a"
    assert sorted(split.tree.weights[1:].sum(axis=1).tolist()) == [1, 3, 3]
    assert root(fitted({"a": list("uvwwwww")}, "pqppppp")) is None


def test_3_unknown_cases_scale_the_gain_and_are_a_part_of_the_split():
    candidates = Candidates(
        node=np.array([0]),
        branches=np.array([[4.0, 0.0], [0.0, 4.0]]),
        starts=np.array([0]),
        known=np.array([[4.0, 4.0]]),
        unknown=np.array([2.0]),
    )
    scores = Criterion("gain_ratio").score(
        candidates, ImpuritySums64(10.0, whole=False)
    )
    assert scores.gain[0] == pytest.approx(0.8)
    assert scores.gain[0] / scores.score[0] == pytest.approx(1.522, abs=5e-4)


def test_4_the_gain_of_a_cut_is_lowered_by_the_choice_there_was():
    weights = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    counts = Counts(np.zeros(20, np.intp), np.arange(20), weights, np.ones(20))
    cuts = Thresholds.between(counts, np.arange(20.0), 1)
    cuts = cuts.select(cuts.fewest_cases >= 2)
    assert len(cuts.node) == 17
    masses = ImpuritySums64(20.0, whole=True)
    candidates = cuts.candidates(np.zeros((1, 2)), False, masses)
    scores = Criterion("gain_ratio").score(candidates, masses)
    n_cuts = np.array([len(cuts.node)])
    best = best_penalised(cuts, scores, candidates, masses, n_cuts, by_ratio=True)
    assert best.threshold.positioned(np.arange(20.0), "midpoint") == [9.5]
    assert best.gain[0] == pytest.approx(0.796, abs=5e-4)


def test_4_an_equally_good_column_of_values_wins_although_it_comes_later():
    X = {"x": np.arange(20.0), "a": list("u" * 10 + "v" * 10)}
    assert root(fitted(X, "p" * 10 + "q" * 10)) == "a"


def test_4_each_side_of_a_cut_needs_a_tenth_of_a_class():
    # 200 cases, 2 classes: 10 on each side. The first 9 cannot be cut off.
    y = "p" * 9 + "q" * 191
    assert root(fitted({"x": np.arange(200.0)}, y, min_samples_branch=2)) == "x"
    cut = fitted({"x": np.arange(200.0)}, y).tree.threshold[0]
    assert cut == 9.0  # the nearest that leaves ten cases, not 8


def test_4_never_more_than_25_on_a_side():
    # A tenth of a class would be 50 of 1,000 cases.
    y = "p" * 25 + "q" * 975
    assert fitted({"x": np.arange(1000.0)}, y).tree.threshold[0] == 24.0
    y = "p" * 24 + "q" * 976
    assert fitted({"x": np.arange(1000.0)}, y).tree.threshold[0] == 24.0


def test_4_values_nearer_than_1e_5_are_not_told_apart():
    y = "ppppqqqq"
    assert root(fitted({"x": numbers(*[1.0] * 4, *[1.0 + 0.9e-5] * 4)}, y)) is None
    assert root(fitted({"x": numbers(*[1.0] * 4, *[1.0 + 1.1e-5] * 4)}, y)) == "x"


def test_4_the_cut_is_chosen_by_gain_not_by_ratio():
    # Cutting off 4: gain 0.493, ratio 0.608. Cutting off 2: gain 0.371, ratio 0.683.
    model = fitted({"x": np.arange(16.0)}, "ppqpqqqqqqqqqqqq")
    assert model.tree.threshold[0] == 3.0


def test_5_a_ratio_without_gain_does_not_win():
    # a: ratio 0.158, gain 0.031; b: ratio 0.078, gain 0.157; the mean is 0.094.
    groups = {"s": (12, 5), "t": (5, 12), "u": (12, 4), "v": (4, 12)}
    b = [name for name, sizes in groups.items() for _ in range(sum(sizes))]
    y = "".join("p" * p + "q" * q for p, q in groups.values())
    a = ["rare" if row < 2 else "usual" for row in range(66)]
    assert root(fitted({"a": a, "b": b}, y)) == "b"
    assert root(fitted({"a": a}, y)) == "a"


def test_5_columns_with_very_many_values_do_not_raise_the_average():
    # a has 18 values in 20 cases: gain 1.000, ratio 0.243. b: 0.169 and 0.277.
    a = ["v00", "v00", "v01", "v01", *(f"v{i:02}" for i in range(2, 18))]
    y = "pp" + "qq" + "p" * 8 + "q" * 8
    b = ["u" if row in (4, 5, 6) else "w" for row in range(20)]
    assert root(fitted({"a": a, "b": b}, y)) == "b"
    # Four cases of a value each, and a counts for the average: b gains too little.
    five = [f"v{row // 4}" for row in range(20)]
    pure = "ppppqqqqppppqqqqpppp"
    b = ["u" if row in (0, 1, 2) else "w" for row in range(20)]
    assert root(fitted({"a": five, "b": b}, pure)) == "a"


def test_6_a_column_of_values_may_split_without_a_gain_so_xor_is_learnt():
    X = {"a": list("uuuuvvvv"), "b": list("stststst")}
    model = fitted(X, "pqpqqpqp")
    assert root(model) == "a"
    assert model.predict(X).tolist() == list("pqpqqpqp")


@pytest.mark.parametrize("times", range(2, 9))
def test_6_a_cut_without_a_gain_is_none_whatever_rounding_says(times):
    # Neither column gains, so x is out although it comes first. 3 and 5 times over,
    # the masses of the halves do not add up to that of the whole to the last bit.
    x, a, y = [], [], ""
    quarters = [(0, "u", 2, 1), (0, "v", 1, 5), (1, "u", 1, 5), (1, "v", 2, 1)]
    for number, value, p, q in quarters:
        x += [number] * (p + q) * times
        a += [value] * (p + q) * times
        y += ("p" * p + "q" * q) * times
    assert root(fitted({"x": numbers(*x), "a": a}, y)) == "a"


def test_7_the_cut_is_the_largest_value_of_the_file_up_to_the_midpoint():
    X = {"g": list("uuuuuu" + "v" * 12), "x": numbers(*[3] * 3, *[10] * 3, *[6] * 12)}
    y = "pppqqq" + "r" * 12
    model = fitted(X, y)
    assert root(model) == "g"
    assert np.nanmax(model.tree.threshold) == 6.0
    assert np.nanmax(fitted(X, y, threshold="midpoint").tree.threshold) == 6.5


def test_7_rounding_of_the_midpoint():
    X = {
        "g": list("uuuuuu" + "v" * 12),
        "x": numbers(*[3.6] * 3, *[3.8] * 3, *[3.7] * 12),
    }
    model = fitted(X, "pppqqq" + "r" * 12)
    assert np.nanmax(model.tree.threshold) == 3.7


def test_8_unknown_cases_are_shared_out_by_the_known_weight():
    model = fitted({"a": [*"uuuuuuvv", None, None]}, "ppppppqqpq")
    assert model.tree.weights[1:].tolist() == [[6.75, 0.75], [0.25, 2.25]]
    assert model.tree.weights[1:].sum(axis=1).tolist() == [7.5, 2.5]


def test_9_a_value_without_cases_answers_with_the_node():
    X = {"a": list("uuuvv")}
    model = fitted(X, "pppqq", categories={"a": ["u", "v", "w"]})
    assert len(model.tree) == 3
    assert model.predict({"a": ["w"]}).tolist() == ["p"]


def test_10_a_split_that_saves_no_error_is_collapsed():
    X = {"a": list("uuuuvvvv")}
    assert root(fitted(X, "pppqpppp")) is None
    assert root(fitted(X, "pppqqqqq")) == "a"


# ---------------------------------------------------------------------- pruning


def upper_limit(n: float, e: float, confidence: float) -> float:
    """The rate above all that a normal approximation would still believe."""
    seen, z = (e + 0.5) / n, NormalDist().inv_cdf(1 - confidence)
    low, high = seen, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        believed = middle - seen <= z * math.sqrt(middle * (1 - middle) / n)
        low, high = (middle, high) if believed else (low, middle)
    return n * low


def chance_of_no_error(n: float, confidence: float) -> float:
    """The rate with which a run of n goes well with the chance of confidence."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        likely = n * math.log1p(-middle) > math.log(confidence)
        low, high = (middle, high) if likely else (low, middle)
    return n * low


def test_11_any_confidence_that_is_allowed_has_an_estimate():
    zs = [Estimate(c, 1000.0).z for c in (5e-324, 1e-300, 1e-17, 1e-9, 0.25)]
    assert zs == sorted(zs, reverse=True)
    assert zs[1] == pytest.approx(37.0470963)
    assert zs[3] == pytest.approx(5.9978070150)
    X, y = {"c": ["x", "y", "x", "y"]}, ["no", "yes", "no", "yes"]
    model = C45Classifier(confidence=1e-300).fit(X, y).model_
    assert model.tree.n_leaves == 1
    assert model.generalised_rules(X, y).default == "no"


@pytest.mark.parametrize("confidence", [0.01, 0.1, 0.25, 0.5])
def test_11_estimates_equal_a_numerical_solution(confidence):
    estimate = Estimate(confidence, 1000.0)

    def expected(n: float, e: float) -> float:
        return e + float(estimate.added(np.array([n]), np.array([e]))[0])

    for n in (1.0, 2.0, 2.5, 6.0, 14.25, 100.0, 1000.0):
        none = chance_of_no_error(n, confidence)
        assert expected(n, 0.0) == pytest.approx(none, rel=1e-12)
        for e in (1.0, 1.75, 5.0, 40.0):
            if e + 0.5 < n:
                assert expected(n, e) == pytest.approx(
                    upper_limit(n, e, confidence), rel=1e-12
                )
        if n > 1.5:
            half = (none + upper_limit(n, 1.0, confidence)) / 2
            assert expected(n, 0.5) == pytest.approx(half, rel=1e-12)


def test_11_figures():
    estimate = Estimate(0.25, 100.0)

    def errors(n: float, e: float) -> float:
        weights = np.array([[n - e, e]])
        return math.ldexp(float(estimate.of(weights)[0]), -estimate.bits)

    assert errors(10, 5) == pytest.approx(6.52, abs=5e-3)  # release 8: 6.54
    assert errors(6, 0) == pytest.approx(1.238, abs=5e-4)
    assert errors(0, 0) == 0.0
    assert float(estimate.added(numbers(5), numbers(4.75))[0]) == 0.25


def test_12_a_leaf_that_promises_as_few_errors_takes_the_place():
    # 8 cases with 1 error as a leaf: 2.18. Leaves of 4/0 and 4/1: 1.17 + 2.02.
    X, y = {"a": list("uuuuvvvv")}, "pppppqqp"
    assert root(fitted(X, y)) is None  # collapsed: two errors either way
    y = "ppppqqqp"
    assert root(fitted(X, y)) == "a"
    assert root(fitted(X, y, prune=True)) == "a"
    assert root(fitted(X, y, prune=True, confidence=0.001)) is None


# ------------------------------------------------------------ predicting and ties


def test_14_a_missing_value_asks_all_branches():
    model = fitted({"a": list("uuuuuuvv")}, "ppppppqq")
    X = {"a": [None, "v", "u"]}
    assert model.predict(X).tolist() == ["p", "q", "p"]
    assert model.predict_proba(X).tolist() == [[0.75, 0.25], [0.0, 1.0], [1.0, 0.0]]


def test_15_equal_scores_go_to_the_first_column_the_lowest_cut_the_first_class():
    X = {"b": list("uuvv"), "a": list("uuvv")}
    assert root(fitted(X, "ppqq")) == "b"
    model = fitted({"x": np.repeat([0.0, 1.0, 2.0], 4)}, "qqqqppppqqqq")
    assert model.tree.threshold[0] == 0.0
    assert fitted({"a": list("uu")}, "qp").predict({"a": ["u"]}).tolist() == ["p"]


def test_the_page_shows_what_happens():
    page = Path(__file__).parents[2] / "docs" / "c45.md"
    tried = doctest.testfile(str(page), module_relative=False)
    assert tried.failed == 0
    assert tried.attempted == 8
