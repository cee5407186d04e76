"""Rows that are set aside or assigned to folds."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import CARTClassifier, CARTRegressor, ID3Classifier
from selection import examples


@pytest.mark.parametrize("least", [0.0, 1e-300])
@pytest.mark.parametrize(
    "estimator",
    [
        CARTClassifier(ccp_alpha="best"),
        CARTClassifier(ccp_alpha="1-se"),
        CARTRegressor(ccp_alpha="1-se"),
        ID3Classifier(pruning="reduced-error", validation_fraction=0.3),
    ],
)
def test_rows_without_weight_are_rows_that_are_not_there(estimator, least):
    for seed in range(examples(12)):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, (60, 3)).astype(float)
        y = (X[:, 0] + rng.integers(0, 3, 60) > 3).astype(float)
        weights = rng.choice([least, 1.0, 2.5], 60)
        kept = weights > least
        # Thresholds are between values of rows that count: give them all values.
        X[kept.nonzero()[0][:4]] = np.arange(4)[:, None]
        there = estimator.fit(X, y, sample_weight=weights).model_.tree
        gone = estimator.fit(X[kept], y[kept], sample_weight=weights[kept]).model_.tree
        assert there.column.tolist() == gone.column.tolist()
        assert np.array_equal(there.threshold, gone.threshold, equal_nan=True)
