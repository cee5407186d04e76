"""The works of CART: two-way splits for classes and for numbers."""

from __future__ import annotations

import pandas as pd

from generate import Tables
from measure import Line, compare_fits
from peers import (
    OUR_BINNED_REGRESSION,
    OUR_CART,
    OUR_REGRESSION,
    SKLEARN,
    SKLEARN_GINI,
    SKLEARN_REGRESSION,
    regression_others,
)

#: Faster than the other tools that grow one tree of a regression.
FASTER = {"LightGBM": 1.0, "YDF CART": 1.0}


class CARTWorkloads:
    """The works of the table; each ``time_*`` returns lines."""

    def __init__(self, tables: Tables) -> None:
        self.rows = tables.rows
        self.tables = tables

    def time_cart_planted(self) -> list[Line]:
        """Fit the first workload: categories fall into two groups."""
        A = self.tables["A"]
        work = f"fit {self.rows:,} x 20 category, CART"
        X, y = A.frame(), A.labels()
        return [
            _fit(f"{work}, depth 8", X, y, 8, {}),
            _fit(f"{work}, unlimited", X, y, None, {SKLEARN.name: 40}),
        ]

    def time_cart_mixed(self) -> list[Line]:
        """Fit numbers, categories and gaps."""
        mixed = self.tables["mixed"]
        X, y = mixed.frame(), mixed.labels()
        work = f"fit {len(X):,}, 10 numeric + 10 category, 3 % missing, CART"
        return [
            _fit(f"{work}, depth 8", X, y, 8, {}),
            _fit(f"{work}, unlimited", X, y, None, {SKLEARN.name: 20}),
        ]

    def time_cart_regression(self) -> list[Line]:
        """Fit numbers to be predicted."""
        table = self.tables["numbers"]
        X, y = table.frame(), table.quantities()
        work = f"fit {len(X):,}, 10 numeric + 5 category, regression"
        ours, sklearn = OUR_REGRESSION, [SKLEARN_REGRESSION]
        every = sklearn + regression_others()
        shallow, full = {SKLEARN.name: 10.0} | FASTER, {SKLEARN.name: 15.0}
        return [
            compare_fits(f"{work}, depth 8", X, y, 8, "", every, 3, ours, shallow),
            compare_fits(f"{work}, unlimited", X, y, None, "", sklearn, 3, ours, full),
        ]

    def time_cart_bins(self) -> list[Line]:
        """Fit many binned numbers, beside LightGBM where it is installed."""
        table = self.tables["binned"]
        X, y = table.frame(), table.quantities()
        work = f"fit {len(X):,} x 20 numeric, regression, depth 8, max_bins=255"
        peers = [peer for peer in regression_others() if peer.name == "LightGBM"]
        ours, least = OUR_BINNED_REGRESSION, {"LightGBM": 3.0}
        return [compare_fits(work, X, y, 8, "", peers, 3, ours, least)]


def _fit(
    work: str, X: pd.DataFrame, y: pd.Series, depth: int | None, least: dict[str, float]
) -> Line:
    return compare_fits(work, X, y, depth, "", [SKLEARN_GINI], 3, OUR_CART, least)
