"""Tables for tests of ensembles."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed(n_rows: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table of categories, numbers and missing cells, and classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", None], n_rows),
            "size": rng.choice(["s", "m", "l"], n_rows),
            "age": rng.integers(18, 90, n_rows).astype(float),
            "income": rng.normal(size=n_rows).round(2),
            "noise": rng.normal(size=n_rows),
        }
    )
    X.loc[rng.random(n_rows) < 0.05, "age"] = np.nan
    large = (X["size"] == "l").astype(int)
    score = large + (X["age"] > 50) + (X["income"] > 0) + (rng.random(n_rows) < 0.2)
    return X, pd.Series(np.where(score >= 2, "yes", "no"), name="bought")
