"""Ensembles that engines are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from branchwise import (
    BaggedTrees,
    BoostedClassifier,
    C45Classifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest_tables import mixed


def table_of(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Return a table with a class, a number and weights."""
    X, y = mixed(n_rows, seed)
    rng = np.random.default_rng(seed)
    number = X["income"] * 2 + (y == "yes") + rng.normal(size=n_rows).round(1)
    weight = rng.integers(0, 3, n_rows).astype(float)
    return X.assign(bought=y, spent=number, weight=weight)


#: Estimators, the target and the weights.
CASES: dict[str, tuple[Any, str, str | None]] = {
    "forest": (RandomForestClassifier(n_estimators=5), "bought", None),
    "columns out of bag": (
        RandomForestClassifier(n_estimators=6, max_features="oob"),
        "bought",
        "weight",
    ),
    "regression": (RandomForestRegressor(n_estimators=4), "spent", "weight"),
    "boosted": (BoostedClassifier(n_estimators=3), "bought", None),
    "balanced samples": (
        RandomForestClassifier(
            n_estimators=3, class_weight="balanced_subsample", max_samples=0.5
        ),
        "bought",
        "weight",
    ),
    "bins": (
        RandomForestClassifier(n_estimators=3, max_bins=8, class_weight="balanced"),
        "bought",
        "weight",
    ),
    "bagged": (
        BaggedTrees(estimator=C45Classifier(), n_estimators=3),
        "bought",
        "weight",
    ),
    "gradient": (GradientBoostingRegressor(n_estimators=3), "spent", "weight"),
}


def fitted(case: str, source: object) -> Any:
    """Fit an estimator from a source with the columns of its case."""
    estimator, target, weight = CASES[case]
    return estimator.fit(source, target, sample_weight=weight)


def columns_of(case: str, table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the columns that are no attributes of a case."""
    _, target, weight = CASES[case]
    unused = {"bought", "spent", "weight"} - {target, weight}
    return table.drop(columns=sorted(unused))
