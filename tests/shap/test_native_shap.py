"""The compiled implementation: equal to the reference, for any number of threads."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from branchwise import CARTClassifier, CARTRegressor, ID3Classifier
from branchwise.shap.shapley import Background, shapley_values
from native_arguments import with_changes
from selection import first_fast
from shap_models import drawn, explained, term_of

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


def both(monkeypatch, compute):
    """Return the results of the two implementations."""
    found = []
    for kernel in ("reference", "native"):
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        found.append(compute())
    return found


def assert_close(one, other):
    size = max(np.abs(one.values).max(initial=0.0), np.abs(one.predictions).max())
    for name in ("values", "base", "predictions", "interactions"):
        wanted, got = getattr(one, name), getattr(other, name)
        if wanted is not None:
            assert np.abs(wanted - got).max(initial=0.0) <= 1e-13 * max(size, 1.0), name


@pytest.mark.parametrize("seed", first_fast(range(28), 2))
def test_both_implementations_agree(seed, monkeypatch):
    model, rows, background, weights = drawn(seed, n_rows=40, n_others=15)
    for others in (None, background):
        for pairs in (False, True):
            assert_close(
                *both(
                    monkeypatch,
                    lambda o=others, p=pairs: explained(
                        model, rows, o, weights, interactions=p
                    ),
                )
            )


def wide_table(n_rows: int, n_columns: int = 12, seed: int = 0):
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcd"))
    X = {f"c{i}": letters[rng.integers(0, 4, n_rows)] for i in range(n_columns // 2)}
    for i in range(n_columns // 2):
        numbers = rng.normal(size=n_rows)
        X[f"n{i}"] = np.where(rng.random(n_rows) < 0.05, np.nan, numbers)
    y = (X["c0"] == "a") ^ (np.nan_to_num(X["n0"]) > np.nan_to_num(X["n1"]))
    return X, y ^ (rng.random(n_rows) < 0.1)


MODELS = {
    "sets": (CARTClassifier(missing="largest"), 60),
    "surrogates": (CARTClassifier(missing="surrogate", max_depth=5), 8),
    "fractions": (CARTClassifier(missing="split", max_depth=6), 8),
    "values": (ID3Classifier(missing="branch", max_depth=4), 40),
    "numbers": (CARTRegressor(missing="learned"), 30),
}


@pytest.mark.parametrize("name", MODELS)
def test_large_trees_agree_for_any_number_of_threads(name, monkeypatch):
    estimator, n_others = MODELS[name]
    X, y = wide_table(900)
    model = estimator.fit(X, y.astype(float) if name == "numbers" else y).model_
    data = model.encoded({key: cells[:600] for key, cells in X.items()})
    rest = {key: cells[-n_others:] for key, cells in X.items()}
    others = Background(model.encoded(rest), np.full(n_others, 1 / n_others))
    terms, columns = [term_of(model, 0.5), term_of(model, 0.5)], model.schema.columns
    for background in (None, others):
        one, *several = [
            shapley_values(columns, terms, data, background, threads=threads)
            for threads in (1, 2, 3)
        ]
        for other in several:
            assert np.array_equal(one.values, other.values)
        few = shapley_values(
            columns,
            terms,
            model.encoded({key: cells[:40] for key, cells in X.items()}),
            background,
        )
        assert np.allclose(few.values, one.values[:40], rtol=0, atol=1e-14)
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    data = model.encoded({key: cells[:20] for key, cells in X.items()})
    few = shapley_values(columns, terms[:1], data, others)
    assert np.allclose(2 * few.values, one.values[:20], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_values_of_a_row_do_not_depend_on_other_rows(name):
    """Rows are sorted by the first tests of a tree, and each gets its own values."""
    estimator, n_others = MODELS[name]
    X, y = wide_table(900)
    model = estimator.fit(X, y.astype(float) if name == "numbers" else y).model_
    rest = {key: cells[-n_others:] for key, cells in X.items()}
    others = Background(model.encoded(rest), np.full(n_others, 1 / n_others))
    order = np.random.default_rng(1).permutation(900)
    terms = [term_of(model, 0.5), term_of(model, 0.5)]
    one, other = [
        shapley_values(
            model.schema.columns,
            terms,
            model.encoded({key: cells[rows] for key, cells in X.items()}),
            others,
        ).values
        for rows in (np.arange(900), order)
    ]
    assert np.array_equal(one[order], other)


@pytest.mark.parametrize("classes", [2, 4])
def test_long_paths_of_several_classes(classes, monkeypatch):
    """The first column with a "b" decides, so that paths have up to 22 columns."""
    rng = np.random.default_rng(classes)
    cells = np.where(rng.random((3000, 22)) < 0.12, "b", "a")
    X = {f"c{i}": cells[:, i] for i in range(cells.shape[1])}
    y = (cells == "b").argmax(axis=1) % classes
    model = CARTClassifier().fit(X, y).model_
    assert model.tree.depth.max() > 18
    rows, others = (
        {k: c[part] for k, c in X.items()} for part in (slice(9), slice(-7, None))
    )
    assert_close(*both(monkeypatch, lambda: explained(model, rows, others, [1] * 7)))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_rows_of_the_background_may_be_repeated(name):
    """Few rows are taken one by one, of many the sums over sets of columns."""
    X, y = wide_table(900)
    model = MODELS[name][0].fit(X, y.astype(float) if name == "numbers" else y).model_
    data = model.encoded({key: cells[:300] for key, cells in X.items()})
    found = []
    for times in (1, 50):
        rest = {key: np.tile(cells[-12:], times) for key, cells in X.items()}
        weights = np.full(12 * times, 1 / (12 * times))
        others = Background(model.encoded(rest), weights)
        found.append(
            shapley_values(model.schema.columns, [term_of(model)], data, others)
        )
    assert_close(*found)


def test_paths_of_more_columns_than_a_word_has_bits(monkeypatch):
    n = 70
    rng = np.random.default_rng(0)
    X = {f"c{i}": np.where(np.arange(n) == i, "yes", "no") for i in range(n)}
    model = CARTRegressor().fit(X, rng.permutation(2.0 ** np.arange(n) / 2**n)).model_
    few = {key: cells[:3] for key, cells in X.items()}
    rest = {key: cells[-3:] for key, cells in X.items()}
    others = Background(model.encoded(rest), np.full(3, 1 / 3))
    assert model.tree.depth.max() > 64
    columns, terms = model.schema.columns, [term_of(model)]
    assert_close(
        *both(
            monkeypatch,
            lambda: shapley_values(columns, terms, model.encoded(few), others),
        )
    )


@pytest.mark.skipif(os.name == "nt", reason="a process cannot send itself Ctrl-C")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_it(threads):
    X, y = wide_table(6000, 24)
    model = CARTClassifier(missing="largest").fit(X, y ^ (X["c1"] == "b")).model_
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    data = model.encoded(X)
    others = Background(data, np.full(6000, 1 / 6000))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shapley_values(
            model.schema.columns, [term_of(model)] * 50, data, others, threads=threads
        )
    assert time.monotonic() - begun < 3.0


def ints(*entries):
    return np.array(entries, dtype=np.int64)


def arguments(**changed):
    """Arguments for a root with two leaves and two rows, some of them changed."""
    given = {
        "tree": {
            "column": ints(0, -1, -1),
            "threshold": np.full(3, np.nan),
            "n_children": ints(2, 0, 0),
            "missing_to": ints(-1, -1, -1),
            "unseen_to": ints(-1, -1, -1),
            "n_codes": ints(0, 1, 1),
            "codes": ints(0, 1),
        },
        "surrogates": None,
        "sizes": np.array([4.0, 2.0, 2.0]),
        "values": [2],
        "node_values": np.array([[0.5], [0.0], [1.0]]),
        "columns": [np.array([0, 1], dtype=np.uint8)],
        "n_rows": 2,
        "background": [np.array([0], dtype=np.uint8)],
        "weights": np.array([1.0]),
        "pairs": False,
        "n_threads": 1,
        "out": np.zeros(2),
    }
    return with_changes(given, changed)


def test_sound_arguments():
    given = arguments()
    _native.add_shap(**given)
    assert given["out"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"out": np.zeros(3)}, "out must have 2 entries"),
        ({"out": np.zeros(2, dtype=np.float32)}, "out must be an array of float64"),
        ({"n_rows": 3}, r"columns\[0\] must have one entry for each of 3 rows"),
        ({"columns": []}, "columns must have one entry for each column"),
        ({"columns": [np.array([0, 4], dtype=np.uint8)]}, "no code that is beyond"),
        ({"columns": [np.zeros(2)]}, r"columns\[0\] must hold codes"),
        ({"background": []}, "background must have one entry for each column"),
        ({"background": 3}, "background must be a list or None"),
        ({"weights": np.zeros(0)}, "weights must have between 1 and"),
        ({"weights": np.array([-1.0])}, "weights must be finite and not negative"),
        ({"sizes": np.array([4.0, 0.0, 2.0])}, "sizes must be larger than 0"),
        ({"sizes": np.zeros(2)}, "sizes must have 3 entries"),
        ({"node_values": np.zeros((2, 1))}, "one line for each node"),
        ({"node_values": np.zeros((3, 0))}, "one line for each node"),
        ({"n_threads": 0}, "n_threads must be between 1 and 256"),
        ({"codes": ints(0, 2)}, "codes of the children"),
    ],
)
def test_arguments_that_are_not_sound(changed, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        _native.add_shap(**arguments(**changed))
