"""Searches: what scikit-learn's would find, kept, continued, drawn."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from branchwise import (
    BranchwiseError,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    EncodedTable,
    ID3Classifier,
    ParameterError,
    datasets,
    plot,
)
from branchwise.evaluation import SearchResults, learning_curve, search
from branchwise.evaluation.algorithms import candidates, check_scoring, default_grid
from branchwise.evaluation.trials import Trial
from branchwise.evaluation.tune import SearchInterrupted
from selection import first_fast


def every_tenth(name):
    whole = datasets.load(name)
    X = {column: cells[::10] for column, cells in whole.X.items()}
    return SimpleNamespace(X=X, y=whole.y[::10])


VOTES = every_tenth("votes")


CAR = datasets.load("car")
SMALL = {"max_depth": [1, 3, None], "min_samples_leaf": [1, 5]}


def part(dataset, step):
    return {n: cells[::step] for n, cells in dataset.X.items()}, dataset.y[::step]


def by_parameters(results):
    return {
        str(sorted(p.items(), key=str)): at for at, p in enumerate(results["params"])
    }


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (ID3Classifier(), SMALL | {"min_samples_split": [2, 10]}),
        (
            C45Classifier(),
            [{"confidence": [0.05, 0.25], "max_depth": [2, None]}, {"prune": [False]}],
        ),
        (CARTClassifier(), {"ccp_alpha": [0.0, 0.01], "max_depth": [None, 3]}),
    ],
    ids=str,
)
def test_a_search_finds_what_scikit_learns_does(estimator, grid):
    """To the last bit: folds are taken from codes, trees are cut from larger ones."""
    X, y = part(CAR, 5)  # of every third one, safety is low and all are of one class
    assert len(set(y)) == 4
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    theirs = GridSearchCV(estimator, grid, cv=folds, return_train_score=True)
    theirs.fit(pd.DataFrame(X), np.array(y))
    found = search(estimator, X, y, grid, cv=4)
    own, other = found.cv_results_, theirs.cv_results_
    place = by_parameters(own)
    for key, at in by_parameters(other).items():
        for score in ("mean_test_score", "std_test_score", "mean_train_score"):
            assert own[score][place[key]] == pytest.approx(other[score][at], abs=1e-15)
    assert found.best.mean == pytest.approx(theirs.best_score_, abs=1e-15)


def plain(results):
    return [(t.parameters, t.rows, t.test.tolist(), t.leaves) for t in results.trials]


def test_threads_and_order_change_nothing():
    one = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=3)
    three = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=3, n_jobs=3)
    assert plain(one) == plain(three)
    assert one.scoring == "accuracy"
    assert one.best_params_ == one.trials[0].parameters


def test_usual_grids_are_valid_and_searched():
    for estimator in (ID3Classifier(), C45Classifier(), CARTClassifier()):
        assert len(candidates(estimator, default_grid(estimator))) >= 90
    y = np.linspace(0, 1, len(VOTES.y)) + np.array(VOTES.y, dtype=object).argsort()
    found = search(CARTRegressor(), {"y": VOTES.y}, y, cv=2)
    assert found.scoring == "R2"
    with pytest.raises(ParameterError, match=r"no usual grid for GridSearchCV"):
        default_grid(GridSearchCV(ID3Classifier(), {}))


def test_scorers_of_scikit_learn():
    grid = {"max_depth": [1, 2]}
    y = ["yes" if label == VOTES.y[0] else "no" for label in VOTES.y]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for scoring in ("balanced_accuracy", "neg_log_loss", "roc_auc"):
        found = search(ID3Classifier(), VOTES.X, y, grid, cv=3, scoring=scoring)
        theirs = GridSearchCV(ID3Classifier(), grid, cv=folds, scoring=scoring)
        theirs.fit(EncodedTable(VOTES.X), y)
        assert found.best.mean == pytest.approx(theirs.best_score_)
    with pytest.raises(ParameterError, match=r"one of scikit-learn's scorers.*'speed'"):
        search(ID3Classifier(), VOTES.X, y, grid, scoring="speed")


NUMBERS = np.arange(len(VOTES.y), dtype=np.float64)
IS_FIRST = np.array(VOTES.y) == VOTES.y[0]


@pytest.mark.parametrize(
    ("estimator", "y", "scoring", "message"),
    [
        (C45Classifier(), VOTES.y, "r2", "score of classes, .* 'accuracy', .*'r2'"),
        (C45Classifier(), IS_FIRST * 1, "neg_mean_squared_error", "score of classes"),
        (C45Classifier(), VOTES.y, "f1_samples", "score of classes"),
        (CARTRegressor(), NUMBERS, "accuracy", "score of numbers, .* 'r2', .*'accur"),
        (CARTRegressor(), NUMBERS, "rand_score", "score of numbers"),
        (C45Classifier(), CAR.y, "roc_auc", "two classes. Got 4: .*'roc_auc_ovr' or"),
        (C45Classifier(), CAR.y, "f1", "one of them the number 1. Got 4: .*'f1_macro'"),
        (C45Classifier(), VOTES.y, "f1", "Got 2: 'A', 'B'. .*_macro' or 'f1_weighted'"),
        (C45Classifier(), IS_FIRST + 2, "recall", "Got 2: 2, 3. Choose 'recall_macro'"),
        (C45Classifier(), VOTES.y, "jaccard", "'jaccard_macro' or 'jaccard_weighted'"),
        (C45Classifier(), VOTES.y, "average_precision", "takes 1 as one .*'roc_auc'"),
        (C45Classifier(), VOTES.y, "neg_brier_score", "takes numbers .*'neg_log_loss'"),
        (C45Classifier(), CAR.y, "positive_likelihood_ratio", "'balanced_accuracy'"),
    ],
)
def test_scores_that_do_not_fit_are_refused(estimator, y, scoring, message):
    X = CAR.X if y is CAR.y else VOTES.X
    for work in (partial(search, grid={"max_depth": [1, 2]}), learning_curve):
        with pytest.raises(ParameterError, match=message):
            work(estimator, X, y, cv=2, scoring=scoring)


def refused(scoring, classes):
    try:
        check_scoring(scoring, classes)
    except ParameterError:
        return True
    return False


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(
    "classes",
    first_fast(
        [("no", "yes"), ("a", "b", "c"), (2, 3), (0, 1), (False, True), (0, 1, 2)], 2
    ),
)
def test_every_other_score_can_be_had(classes):
    """What is not refused before the fits is not refused by scikit-learn after them."""
    y = np.array(classes)[np.arange(60) % len(classes)]
    X = {"x": np.arange(60) % 7, "y": np.arange(60) % len(classes)}
    fitting = [name for name in get_scorer_names() if not refused(name, classes)]
    assert {"accuracy", "roc_auc_ovr", "f1_macro"} < set(fitting)
    for scoring in fitting:
        if scoring == "neg_brier_score" and len(classes) > 2:
            continue  # only the newer scikit-learn has it for so many
        search(ID3Classifier(), X, y, {"max_depth": [1]}, cv=2, scoring=scoring)


def test_every_score_of_numbers_can_be_had():
    y = np.arange(1.0, 61.0)
    fitting = [name for name in get_scorer_names() if not refused(name, ())]
    assert len(fitting) > 10
    for scoring in fitting:
        search(CARTRegressor(), {"x": y}, y, {"max_depth": [2]}, cv=2, scoring=scoring)


def test_halving_gives_more_rows_to_fewer_candidates():
    X, y = CAR.X, CAR.y
    grid = {"max_depth": [1, 2, 3, 4, 5, 6], "min_samples_leaf": [1, 5, 20]}
    found = search(ID3Classifier(), X, y, grid, method="halving", cv=3)
    rows = [one.rows for one in found.trials]
    assert rows == sorted(rows, reverse=True)
    assert {n: rows.count(n) for n in rows} == {1152: 2, 384: 4, 128: 12}
    assert plain(found) == plain(
        search(ID3Classifier(), X, y, grid, method="halving", cv=3, n_jobs=2)
    )
    best = search(ID3Classifier(), X, y, grid, cv=3).best
    assert found.best.mean >= best.mean - 0.05
    assert str(found).splitlines()[0].split()[0] == "rows"


# State


class Stop:
    """Press Ctrl-C after some fits."""

    def __init__(self, after):
        self.after = after
        self.told = []

    def __call__(self, done, total):
        self.told.append((done, total))
        if done >= self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", ["grid", "halving"])
def test_a_search_goes_on_where_it_was_stopped(tmp_path, n_jobs, method):
    options = {"cv": 3, "method": method, "n_jobs": n_jobs}
    whole = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, **options)
    state = tmp_path / "state.jsonl"
    with pytest.raises(SearchInterrupted) as stopped:
        search(
            ID3Classifier(),
            VOTES.X,
            VOTES.y,
            SMALL,
            **options,
            state=state,
            progress=Stop(7),
        )
    assert 7 <= stopped.value.done < stopped.value.total
    lines = state.read_text().splitlines()
    assert len(lines) >= 8
    told = []
    found = search(
        ID3Classifier(),
        VOTES.X,
        VOTES.y,
        SMALL,
        **options,
        state=state,
        progress=lambda done, total: told.append((done, total)),
    )
    assert plain(found) == plain(whole)
    assert told[-1][0] == told[-1][1]
    assert state.read_text().splitlines()[: len(lines)] == lines
    before = state.read_bytes()
    assert plain(
        search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, **options, state=state)
    ) == plain(whole)
    assert state.read_bytes() == before  # there was nothing left to do


def test_finished_candidates_of_a_stopped_search():
    with pytest.raises(SearchInterrupted) as stopped:
        search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=3, progress=Stop(9))
    found = stopped.value.results
    assert not found.complete
    assert {one.parameters["min_samples_leaf"] for one in found.trials} == {1}


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    state = tmp_path / "state"
    whole = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=2, state=state)
    content = state.read_bytes()
    state.write_bytes(content[: len(content) - 20])
    again = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=2, state=state)
    assert plain(again) == plain(whole)
    assert len(state.read_bytes().splitlines()) == len(content.splitlines())
    more = search(
        ID3Classifier(),
        VOTES.X,
        VOTES.y,
        SMALL | {"max_depth": [1, 2]},
        cv=2,
        state=state,
    )
    assert len(more.trials) == 4  # of another grid what is the same is not done again


def test_the_state_of_another_search_is_refused(tmp_path):
    state = tmp_path / "state"
    grid = {"max_depth": [1, 2]}
    search(ID3Classifier(), VOTES.X, VOTES.y, grid, cv=2, state=state)
    for estimator, y, options, what in (
        (CARTClassifier(), VOTES.y, {"cv": 2}, "estimator"),
        (ID3Classifier(min_gain=0.1), VOTES.y, {"cv": 2}, "estimator"),
        (ID3Classifier(), VOTES.y[::-1], {"cv": 2}, "data and folds"),
        (ID3Classifier(), VOTES.y, {"cv": 3}, "folds"),
        (ID3Classifier(), VOTES.y, {"cv": 2, "scoring": "f1_macro"}, "scoring"),
    ):
        with pytest.raises(DataError, match=f"search that differs in {what}. Name"):
            search(estimator, VOTES.X, y, grid, state=state, **options)
    for content, why in (("a,b\n1,2\n", "is no such file"), ("x", "is no such file")):
        state.write_text(content)
        with pytest.raises(DataError, match=why):
            search(ID3Classifier(), VOTES.X, VOTES.y, grid, cv=2, state=state)
    search(ID3Classifier(), VOTES.X, VOTES.y, grid, cv=2, state=tmp_path / "new")
    with (tmp_path / "new").open("a") as file:
        file.write('{"fold": 1}\n')
    with pytest.raises(DataError, match=r"has a line that is no fit"):
        search(ID3Classifier(), VOTES.X, VOTES.y, grid, cv=2, state=tmp_path / "new")


# Results


def tried(leaves, *scores, rows=100, **parameters):
    return Trial(
        parameters, rows, np.ones(len(scores)), np.array(scores), 0.1, 0.1, leaves, 2.0
    )


def test_the_best_first_and_the_smallest_within_one_standard_error():
    found = SearchResults.ranked(
        [
            tried(9.0, 0.8, 0.9, 1.0, a=1),
            tried(5.0, 0.9, 0.9, 0.9, a=2),
            tried(2.0, 0.84, 0.85, 0.84, a=3),
            tried(1.0, 0.8, 0.8, 0.8, a=None, b=True),
            tried(1.0, 1.0, 1.0, 1.0, rows=50, a=9),
        ],
        "accuracy",
        "grid",
        3,
    )
    assert [one.parameters["a"] for one in found.trials] == [2, 1, 3, None, 9]
    # Equal scores: the smaller tree; its folds are equal, so nothing else is near.
    assert found.best is found.one_se
    spread = SearchResults.ranked(
        [tried(9.0, 0.8, 0.9, 1.0, a=1), found.trials[2]], "", "grid", 3
    )
    assert spread.one_se.parameters == {"a": 3}
    rows = list(csv.reader(io.StringIO(found.to_csv())))
    assert rows[0][:6] == ["rank", "rows", "a", "b", "mean_test", "std_test"]
    assert rows[4][:4] == ["4", "100", "none", "true"]
    assert rows[1][3] == ""
    assert len(rows) == 6
    json.dumps(found.to_dict(), allow_nan=False)
    assert str(found).splitlines()[1].split()[0] == "2"
    assert list(found.lines(2))[-1] == "... and 3 more"


def test_grids_that_cannot_be():
    with pytest.raises(ParameterError, match=r"names 'depth', which ID3Classifier"):
        search(ID3Classifier(), VOTES.X, VOTES.y, {"depth": [1]})
    with pytest.raises(
        ParameterError, match=r"no values for 'max_depth'. Give at least"
    ):
        search(ID3Classifier(), VOTES.X, VOTES.y, {"max_depth": []})
    with pytest.raises(
        ParameterError, match=r"max_depth must be None or a whole number"
    ):
        search(ID3Classifier(), VOTES.X, VOTES.y, {"max_depth": [2, -1]})
    for values, message in (
        (0.1, r"a list of values for 'confidence'. Got 0.1. Write \[0.1\] to try one"),
        ("0.1", r"a list of values for 'confidence'. Got '0.1'. Write \['0.1'\]"),
        (np.array([[0.1]]), "a list of values for 'confidence'"),
        ([0.1, 0.2, 0.1], "has 0.1 twice for 'confidence'. Give every value once"),
    ):
        with pytest.raises(ParameterError, match=message):
            search(C45Classifier(), VOTES.X, VOTES.y, {"confidence": values})
    for grid in (5, "max_depth", [], ["max_depth"]):
        with pytest.raises(ParameterError, match=r"grid must be a dict of parameter"):
            search(ID3Classifier(), VOTES.X, VOTES.y, grid)
    with pytest.raises(ParameterError, match=r"method must be 'grid' or 'halving'. "):
        search(ID3Classifier(), VOTES.X, VOTES.y, method="random")


def test_what_parts_of_a_grid_share_is_tried_once():
    twice = [{"max_depth": [1, 2]}, {"max_depth": range(2, 4)}]
    depths = [one["max_depth"] for one in candidates(ID3Classifier(), twice)]
    assert depths == [1, 2, 3]


# Drawings


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def lines_of(axes):
    return {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}


def test_scores_against_each_parameter(plt):
    found = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=3)
    depth, leaf = plot.plot_search(found)
    assert (depth.get_xlabel(), leaf.get_xlabel()) == ("max_depth", "min_samples_leaf")
    assert [t.get_text() for t in depth.get_xticklabels()] == ["1", "3", "None"]
    best = found.best_params_
    by = {
        (o.parameters["max_depth"], o.parameters["min_samples_leaf"]): o
        for o in found.trials
    }
    wanted = [by[d, best["min_samples_leaf"]] for d in (1, 3, None)]
    drawn = lines_of(depth)
    assert drawn["test"] == [one.mean for one in wanted]
    assert drawn["train"] == [one.train.mean() for one in wanted]
    band = depth.collections[1].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(max(o.mean + o.test.std() for o in wanted))
    theirs = GridSearchCV(ID3Classifier(), SMALL, cv=2).fit(
        EncodedTable(VOTES.X), VOTES.y
    )
    _, own = plt.subplots(1, 2)
    drawn = plot.plot_search(theirs, ax=own)
    assert drawn[0] is own[0]
    assert set(lines_of(own[0])) == {"test", "best"}  # train scores were not wanted
    display = plot.SearchDisplay.from_search(theirs).plot()
    assert display.figure_ is display.axes_[0].figure


def test_searches_that_cannot_be_drawn(plt):
    one = search(ID3Classifier(), VOTES.X, VOTES.y, {"max_depth": [1]}, cv=2)
    with pytest.raises(
        ParameterError, match=r"needs a parameter of which more than one"
    ):
        plot.plot_search(one)
    with pytest.raises(ParameterError, match=r"Got ID3Classifier without cv_results_"):
        plot.plot_search(ID3Classifier())
    several = search(ID3Classifier(), VOTES.X, VOTES.y, SMALL, cv=2)
    with pytest.raises(
        ParameterError, match=r"the 2 parameters max_depth, min_samples_l"
    ):
        plot.plot_search(several, ax=plt.subplots()[1])
    many = GridSearchCV(
        ID3Classifier(), SMALL, cv=2, scoring=["accuracy", "f1_macro"], refit=False
    ).fit(EncodedTable(VOTES.X), VOTES.y)
    with pytest.raises(ParameterError, match=r"searches with one score. Got several"):
        plot.plot_search(many)


def test_a_learning_curve_is_drawn(plt):
    ax = plot.plot_learning_curve(
        ID3Classifier(), VOTES.X, VOTES.y, sizes=[0.3, 1.0], cv=3
    )
    assert set(lines_of(ax)) == {"train", "test"}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("training rows", "accuracy")
    own = plt.subplots()[1]
    assert plot.plot_learning_curve(ID3Classifier(), VOTES.X, VOTES.y, own, cv=2) is own
    for estimator, got in (("x", "str"), (ID3Classifier, "the class ID3Classifier")):
        with pytest.raises(ParameterError, match=f"^estimator must be .* Got {got}"):
            plot.plot_learning_curve(estimator, VOTES.X, VOTES.y)


def test_without_matplotlib(monkeypatch):
    import sys

    from branchwise.evaluation import plots as figures

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(BranchwiseError, match=r"pip install 'branchwise.plot.'"):
        figures.require_matplotlib()
