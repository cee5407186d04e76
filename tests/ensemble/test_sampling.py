"""Samples of the training rows."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import RandomForestClassifier
from branchwise.native import extension


@pytest.mark.parametrize("n_rows", [1, 7, 500])
@pytest.mark.parametrize("max_samples", [None, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_bootstrap(n_rows, max_samples, weighted):
    rng = np.random.default_rng(n_rows)
    table = {"a": rng.integers(0, 5, n_rows).astype(float)}
    weights = np.arange(n_rows) % 3 + (n_rows < 3) if weighted else None
    forest = RandomForestClassifier(n_estimators=1, max_samples=max_samples)
    forest.fit(table, rng.integers(0, 2, n_rows), sample_weight=weights)
    samples = forest.model_.samples
    for tree in range(5):
        times = samples.times(tree)
        rows = samples.rows(tree)
        np.testing.assert_array_equal(rows, np.repeat(np.arange(n_rows), times))


@pytest.mark.skipif(extension() is None, reason="no compiled extension")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_drawn", 0),
        ("n_rows", 0),
        ("n_rows", 2),
        ("order", np.array([0, 1, 3])),
        ("order", np.array([0, -1, 2])),
        ("order", np.array([], dtype=np.int64)),
        ("order", np.arange(3.0)),
        ("order", None),
    ],
)
def test_arguments_of_bootstrap_times(name, value):
    given = {"key": 5, "n_drawn": 4, "order": np.arange(3), "n_rows": 3}
    extension().bootstrap_times(**given)
    with pytest.raises((ValueError, TypeError), match=name):
        extension().bootstrap_times(**given | {name: value})
