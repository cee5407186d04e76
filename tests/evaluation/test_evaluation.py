"""Cross-validation and comparison: scores, intervals, folds."""

from __future__ import annotations

import json
import math
import re
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t
from sklearn import metrics
from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate

from branchwise import (
    C45Classifier,
    CARTRegressor,
    DataError,
    EncodedTable,
    ID3Classifier,
    ParameterError,
    datasets,
)
from branchwise.evaluation import (
    FoldAssignment,
    candidate,
    compare,
    cross_validated,
    search,
)
from branchwise.evaluation.learning_curves import learning_curve
from branchwise.evaluation.metrics import (
    Reliability,
    brier_by_row,
    over_folds,
    over_rows,
    weighed_classes,
    wilson,
)

IRIS = datasets.load("iris")


def every_tenth(name):
    whole = datasets.load(name)
    X = {column: cells[::10] for column, cells in whole.X.items()}
    return SimpleNamespace(X=X, y=whole.y[::10])


VOTES = every_tenth("votes")


def test_scores_of_folds_are_scikit_learns():
    table = EncodedTable(IRIS.X)
    y = np.array(IRIS.y, dtype=object)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=3)
    names = {
        "accuracy": "accuracy",
        "balanced accuracy": "balanced_accuracy",
        "log loss": "neg_log_loss",
        "AUC": "roc_auc_ovr",
    }
    wanted = cross_validate(
        C45Classifier(), table, y, cv=folds, scoring=list(names.values())
    )
    found = cross_validated(C45Classifier(), table, y, cv=5, repeats=2, seed=3)
    for name, theirs in names.items():
        sign = -1 if theirs.startswith("neg_") else 1
        assert found[name].folds == pytest.approx(sign * wanted[f"test_{theirs}"])
    report = metrics.confusion_matrix
    assert found.confusion.sum() == 2 * len(y)
    assert found.confusion.shape == report(y, y).shape


def test_the_interval_over_folds_is_the_corrected_one():
    values = np.array([0.9, 0.8, 0.85, 0.95, 0.9])
    score = over_folds(values, 1 / 4)
    spread = math.sqrt((1 / 5 + 1 / 4) * values.var(ddof=1))
    reach = t.ppf(0.975, 4) * spread
    assert (score.mean, score.low) == pytest.approx((0.88, 0.88 - reach))
    assert score.deviation == pytest.approx(values.std(ddof=1))
    assert score.clipped(0.0, 0.9).high == 0.9
    gaps = over_folds(np.array([0.5, np.nan, 0.7]), 0.5)
    assert gaps.mean == pytest.approx(0.6)
    assert math.isnan(over_folds(np.array([np.nan]), 0.1).mean)
    assert math.isnan(over_folds(np.array([0.5]), 0.1).low)


def test_wilson_is_as_published():
    """Newcombe (1998), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for part, whole, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        score = wilson(part, whole)
        assert (score.low, score.high) == pytest.approx((low, high), abs=5e-5)
    assert math.isnan(wilson(0, 0).mean)
    rows = over_rows(np.array([1.0, 3.0]))
    assert (rows.mean, rows.high) == pytest.approx((2.0, 2 + 1.959964))


def test_a_hold_out_has_intervals_of_its_own():
    found = cross_validated(ID3Classifier(), VOTES.X, VOTES.y, hold_out=0.3)
    tested = int(found.confusion.sum())
    right = int(found.confusion.trace())
    assert tested == round(0.3 * found.n_rows)
    wanted = wilson(right, tested)
    assert found["accuracy"].low == wanted.low
    for name in ("balanced accuracy", "AUC", "calibration error", "log loss"):
        score = found[name]
        assert score.low <= score.mean <= score.high
    again = cross_validated(ID3Classifier(), VOTES.X, VOTES.y, hold_out=0.3)
    assert again.to_dict()["scores"] == found.to_dict()["scores"]
    other = cross_validated(ID3Classifier(), IRIS.X, IRIS.y, hold_out=0.3, seed=1)
    first = cross_validated(ID3Classifier(), IRIS.X, IRIS.y, hold_out=0.3)
    assert other.confusion.tolist() != first.confusion.tolist()
    assert "bootstrap" in found.interval


def test_everyone_gets_the_same_folds_and_threads_change_nothing():
    one = compare(["id3", "c4.5"], IRIS.X, IRIS.y, cv=4)
    two = compare(["c4.5", "sklearn", "id3"], IRIS.X, IRIS.y, cv=4, n_jobs=3)
    assert list(one) == ["id3", "c4.5", "baseline"]
    assert len(two) == 4
    for name in one:
        assert one[name].scores == two[name].scores
    gap = one.difference("c4.5", "id3", "accuracy")
    pairs = np.subtract(one["c4.5"]["accuracy"].folds, one["id3"]["accuracy"].folds)
    assert gap == over_folds(pairs, 1 / 3)
    assert one["baseline"]["leaves"].mean == 1.0
    assert one["baseline"]["accuracy"].mean == pytest.approx(1 / 3, abs=0.02)
    assert one["baseline"]["AUC"].mean == 0.5


def test_numbers_are_scored_by_their_errors():
    X = {"a": IRIS.X["petallength"], "kind": IRIS.y}
    y = [float(value) for value in IRIS.X["petalwidth"]]
    found = compare({"mine": CARTRegressor(max_depth=3)}, X, y, cv=5)
    mine = found["mine"]
    assert list(mine.scores) == ["MAE", "RMSE", "R2", "leaves", "depth"]
    assert mine.confusion is None
    assert mine["R2"].mean > 0.9 > found["baseline"]["R2"].mean
    part = cross_validated(CARTRegressor(), X, y, hold_out=0.4)
    for name in ("MAE", "RMSE", "R2"):
        assert part[name].low < part[name].mean < part[name].high
    sklearn = compare(["cart", "sklearn"], X, y, cv=5, regression=True)
    assert abs(sklearn["cart"]["MAE"].mean - sklearn["sklearn"]["MAE"].mean) < 0.05


def test_calibration():
    chances = np.array([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.25, 0.75]])
    true = np.array([0, 1, 0, 1])
    found = Reliability.of(true, chances)
    assert found.rows.tolist() == [0, 0, 0, 0, 0, 1, 0, 1, 1, 1]
    assert found.mean_probability[[5, 7, 8, 9]] == pytest.approx([0.6, 0.75, 0.9, 0.95])
    assert found.error == pytest.approx((0.4 + 0.25 + 0.9 + 0.05) / 4)
    two = metrics.brier_score_loss(true, chances[:, 1])
    assert brier_by_row(true, chances).mean() == pytest.approx(two)


def test_classes_of_few_rows_are_scored_where_they_are():
    y = [*"a" * 30, *"b" * 27, *"c" * 2, "d"]
    X = {"x": list(range(60))}
    with pytest.warns(UserWarning, match=r"^The rarest class has \d+ rows?, and there"):
        found = cross_validated(ID3Classifier(), X, y, cv=5)
    assert [report.rows for report in found.classes] == [30, 27, 2, 1]
    assert not math.isnan(found["AUC"].mean)
    assert math.isnan(found.classes[3].precision.folds[0])
    assert found.confusion.sum() == 60
    json.dumps(found.to_dict(), allow_nan=False)
    assert "-" in str(found)
    assert cross_validated(ID3Classifier(), X, y, hold_out=0.2).n_rows == 60


def test_weights_are_for_fitting():
    y = np.array(["a", "b", "b"] * 20)
    X = {"x": ["same"] * 60}
    weights = np.where(y == "a", 5.0, 1.0)
    trees = {"id3": ID3Classifier(), "sklearn": candidate("sklearn")}
    found = compare(trees, X, y, cv=4, sample_weight=weights)
    for name in ("id3", "sklearn", "baseline"):
        # All answer with a, which weighs more; a third of the rows has it.
        assert found[name].confusion.tolist() == [[20, 0], [40, 0]]
        assert found[name]["accuracy"].mean == pytest.approx(1 / 3)
    grid = {"max_depth": [1, 2]}
    tuned = search(candidate("sklearn"), X, y, grid, cv=4, sample_weight=weights)
    assert [trial.mean for trial in tuned.trials] == pytest.approx([1 / 3] * 2)


def test_forests_by_name():
    X, y = {"x": list(range(60))}, np.array([at > 30 for at in range(60)])
    found = compare(["forest", "boosted", "id3"], X, y, cv=3)
    assert found["forest"]["accuracy"].mean > 0.9
    assert found["boosted"]["accuracy"].mean > 0.9
    with pytest.raises(ParameterError, match="no algorithm 'boosted' that predicts"):
        candidate("boosted", regression=True)
    found = compare(["forest"], X, np.arange(60.0), cv=3, regression=True)
    assert found["forest"]["R2"].mean > 0.9


def test_rows_that_are_drawn_again_are_scored_as_scikit_learn_does():
    random = np.random.default_rng(0)
    true, counts = random.integers(0, 3, 60), random.integers(0, 4, 60).astype(float)
    chances = random.dirichlet([1, 1, 1], 60).round(1) + 0.01
    chances /= chances.sum(axis=1, keepdims=True)
    guess = chances.argmax(axis=1)
    found = weighed_classes(true, guess, chances, 3)(counts)
    assert found[0] == pytest.approx(
        metrics.balanced_accuracy_score(true, guess, sample_weight=counts)
    )
    assert found[1:4] == pytest.approx(
        metrics.f1_score(true, guess, average=None, sample_weight=counts)
    )
    assert found[4] == pytest.approx(
        metrics.roc_auc_score(true, chances, multi_class="ovr", sample_weight=counts)
    )
    again = np.repeat(np.arange(60), counts.astype(int))
    assert found[5] == pytest.approx(Reliability.of(true[again], chances[again]).error)


def test_labels_may_be_numbers_or_truths():
    numbers = np.array([int(label == VOTES.y[0]) for label in VOTES.y])
    for y in (numbers, numbers.astype(bool)):
        found = compare(["id3", "sklearn"], VOTES.X, y, cv=3)
        assert found["id3"]["accuracy"].mean > 0.9
        json.dumps(found.to_dict(), allow_nan=False)


def test_reports_as_text():
    text = str(compare(["id3"], VOTES.X, VOTES.y, cv=3))
    assert text.startswith("3-fold cross-validation, ")
    assert "\nbaseline " in text
    assert "accuracy, and its difference from that of id3" in text
    alone = str(cross_validated("id3", VOTES.X, VOTES.y, cv=3, repeats=2))
    assert alone.startswith("id3: 3-fold cross-validation, 2 times, ")
    assert "confusion matrix" in alone
    assert "calibration" in alone


def test_a_learning_curve():
    found = learning_curve(
        ID3Classifier(max_depth=3), VOTES.X, VOTES.y, sizes=[0.2, 1.0], cv=3
    )
    assert found.train.shape == found.test.shape == (2, 3)
    assert found.scoring == "accuracy"
    assert found.sizes[0] < found.sizes[1]


def test_what_is_no_estimator_is_refused():
    with pytest.raises(ParameterError, match=r"^algorithms\['a'\] must be .* Got int"):
        compare({"a": 5}, VOTES.X, VOTES.y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv must be a whole number of at least 2. Got 1."),
        ({"repeats": 0}, "repeats must be a whole number of at least 1. Got 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295. Got -1"),
        ({"seed": 2**32}, "seed must be .* to 4294967295. Got 4294967296 instead."),
        ({"seed": 1.0}, "seed must be a whole number from 0 to 4294967295. Got 1.0"),
        ({"hold_out": 1.5}, "hold_out must be None or a share between 0 and 1"),
    ],
)
def test_deals_that_cannot_be(options, message):
    with pytest.raises(ParameterError, match=message):
        FoldAssignment(**options)


@pytest.mark.parametrize(
    ("labels", "share", "message"),
    [
        (
            "aaaaaaaaabbbbb",
            0.05,
            "A hold-out of 5 % of 14 rows is 1 to test on and 13 to fit to. Both need",
        ),
        ("aaaaaaaaabbbbb", 0.05, "2 rows, one for each class. Choose a larger share,"),
        ("aaaaaaaaabbbbb", 0.9, "Choose a smaller share, or pass more rows."),
        ("aaaaaaaaabbbbb", 0.95, "is 14 to test on and 0 to fit to."),
        ("aabb", 0.1, "Choose a larger share, or pass more rows."),
        ("aab", 0.9, "Both need at least 1 row. Choose a smaller share, or pass"),
        ("a", 0.5, "of 1 row is 1 to test on and 0 to fit to. Both need at least"),
    ],
)
def test_hold_outs_that_cannot_be(labels, share, message):
    target = np.unique(list(labels), return_inverse=True)[1]
    with pytest.raises(DataError, match=re.escape(message)):
        FoldAssignment(hold_out=share).splits(target, by_class=len(labels) > 1)


def test_every_hold_out_that_is_not_refused_can_be_dealt():
    for n_rows in range(1, 12):
        for n_classes in range(1, n_rows + 1):
            target = np.arange(n_rows) % n_classes
            for share in np.arange(0.01, 1, 0.07):
                with warnings.catch_warnings(), suppress(DataError):
                    warnings.simplefilter("ignore")
                    ((training, testing),) = FoldAssignment(hold_out=share).splits(
                        target, True
                    )
                    assert sorted([*training, *testing]) == list(range(n_rows))


def test_a_single_class_is_told_once():
    X, y = {"x": range(8)}, ["a"] * 8
    for deal in ({"cv": 2}, {"hold_out": 0.5}):
        with pytest.warns(
            UserWarning, match=r"^All rows have the same class, "
        ) as told:
            found = compare(["id3", "cart"], X, y, **deal)
        assert len(told) == 1
        assert found["id3"].confusion.tolist() == [[8 if "cv" in deal else 4]]


def test_what_cannot_be_evaluated():
    X, y = {"x": [1, 2, 3]}, ["a", "b", "a"]
    with pytest.raises(
        DataError,
        match=r"^10-fold cross-validation needs at least 10 rows. Got 3. Choose fewer",
    ):
        cross_validated("id3", X, y)
    with pytest.raises(DataError, match=r"at least 10 rows. Got 1. Pass more rows."):
        cross_validated("id3", {"x": [1]}, ["a"])
    with pytest.raises(DataError, match=r"No class has as many rows as there are"):
        cross_validated("id3", X, y, cv=3)
    with pytest.raises(ParameterError, match=r"no algorithm 'c5' that predicts"):
        compare(["c5"], X, y)
    with pytest.raises(
        ParameterError, match=r"'id3' that predicts numbers. Choose among"
    ):
        compare(["id3"], X, y, regression=True)
    for alone in ("id3", ID3Classifier()):
        with pytest.raises(
            ParameterError,
            match=r"must be a list of names, .* Got .*, which is neither",
        ):
            compare(alone, X, y)
    with pytest.raises(ParameterError, match=r"must name at least one"):
        compare([], X, y)
    with pytest.raises(ParameterError, match=r"all predict classes or all predict num"):
        compare({"a": ID3Classifier(), "b": CARTRegressor()}, X, y)
    found = compare(["id3"], VOTES.X, VOTES.y, cv=2)
    with pytest.raises(ParameterError, match=r"There is no score 'f2'. Choose among"):
        found["id3"]["f2"]
    with pytest.raises(ParameterError, match=r"no 'cart' in this comparison"):
        found["cart"]
