"""The works of CART: two-way splits for classes and for numbers."""

from __future__ import annotations

from importlib.util import find_spec

import pandas as pd

from generate import Tables
from measure import Line, compare_fits
from peers import (
    LIGHTGBM_REGRESSION,
    OUR_BINNED_REGRESSION,
    OUR_CART,
    OUR_REGRESSION,
    SKLEARN_GINI,
    SKLEARN_REGRESSION,
    Peer,
)


class CARTWorkloads:
    """The works of the table; each ``time_*`` returns lines."""

    def __init__(self, tables: Tables) -> None:
        self.rows = tables.rows
        self.tables = tables

    def time_cart_planted(self) -> list[Line]:
        """Fit the first workload: categories fall into two groups."""
        A = self.tables["A"]
        work = f"fit {self.rows:,} x 20 category, CART"
        return _both_depths(work, A.frame(), A.labels(), OUR_CART, SKLEARN_GINI)

    def time_cart_mixed(self) -> list[Line]:
        """Fit numbers, categories and gaps."""
        mixed = self.tables["mixed"]
        X, y = mixed.frame(), mixed.labels()
        work = f"fit {len(X):,}, 10 numeric + 10 category, 3 % missing, CART"
        return _both_depths(work, X, y, OUR_CART, SKLEARN_GINI)

    def time_cart_regression(self) -> list[Line]:
        """Fit numbers to be predicted."""
        table = self.tables["numbers"]
        X, y = table.frame(), table.quantities()
        work = f"fit {len(X):,}, 10 numeric + 5 category, regression"
        return _both_depths(work, X, y, OUR_REGRESSION, SKLEARN_REGRESSION)

    def time_cart_bins(self) -> list[Line]:
        """Fit many binned numbers, where LightGBM is installed as well."""
        table = self.tables["binned"]
        X, y = table.frame(), table.quantities()
        work = f"fit {len(X):,} x 20 numeric, regression, depth 8, max_bins=255"
        peers = [LIGHTGBM_REGRESSION] if find_spec("lightgbm") else []
        ours = OUR_BINNED_REGRESSION
        return [compare_fits(work, X, y, 8, "3 x LightGBM", peers, 3, ours)]


def _both_depths(
    work: str, X: pd.DataFrame, y: pd.Series, ours: Peer, theirs: Peer, repeats: int = 3
) -> list[Line]:
    return [
        compare_fits(f"{work}, {name}", X, y, max_depth, "", [theirs], repeats, ours)
        for name, max_depth in (("depth 8", 8), ("unlimited", None))
    ]
