"""The works of forests: growth, predictions, Shapley values, model files."""

from __future__ import annotations

import tempfile
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from generate import Planted, Tables, planted
from measure import Action, Line, best_times, compare, compare_fits, show
from peers import OURS, Peer, forest_others, our_forest, sklearn_forest

#: Trees of every forest.
N_TREES = 100
#: Rows that are explained, those of the background, and the most seconds for both.
EXPLAINED, BACKGROUND, SECONDS_OF_SHAP = 10_000, 100, 30.0
#: Rows that are explained by the forest of the larger table.
BY_LARGE_TREES = 1_000
#: Rows that are explained by paths, beside shap's TreeExplainer, which is slow.
BY_PATHS = 1_000


class ForestWorkloads:
    """The works of the table; each ``time_*`` returns lines.

    Tables have a tenth of the rows of other works, predictions all of them.
    """

    def __init__(self, tables: Tables) -> None:
        self.rows = tables.rows // 10
        self.tables = tables

    @cached_property
    def categories(self) -> Planted:
        """The table of categories."""
        return planted(self.rows, 20)

    @cached_property
    def numbers(self) -> Planted:
        """The table of numbers."""
        return planted(self.rows, 0, 20)

    @cached_property
    def forest(self) -> Any:
        """The forest of the table of categories."""
        X, y = self.categories.frame(), self.categories.labels()
        return our_forest(N_TREES).fit(X, y, None)

    def time_forest_categories(self) -> list[Line]:
        """Grow a forest from categories: 12 x the fastest that grows whole trees."""
        work = f"forest of {N_TREES} trees, {self.rows:,} x 20 category"
        X, y = self.categories.frame(), self.categories.labels()
        every = [sklearn_forest(N_TREES), *forest_others(N_TREES)]
        return [_fit(work, X, y, every, dict.fromkeys(_like_ours(every), 12.0))]

    def time_forest_numbers(self) -> list[Line]:
        """Grow a forest from numbers: 2 x the fastest that has exact thresholds."""
        work = f"forest of {N_TREES} trees, {self.rows:,} x 20 numeric"
        X, y = self.numbers.frame(), self.numbers.labels()
        every = [sklearn_forest(N_TREES), *forest_others(N_TREES)]
        return [_fit(work, X, y, every, dict.fromkeys(_like_ours(every), 2.0))]

    def time_forest_regression(self) -> list[Line]:
        """Grow a forest that predicts numbers: 8 x scikit-learn's."""
        table = planted(self.rows, 5, 10, n_classes=20)
        work = (
            f"forest of {N_TREES} trees, {self.rows:,}, 10 numeric + 5 category, "
            "regression"
        )
        X, y = table.frame(), table.quantities()
        theirs = sklearn_forest(N_TREES, regression=True)
        ours, least = our_forest(N_TREES, regression=True), {theirs.name: 8.0}
        return [compare_fits(work, X, y, None, "", [theirs], 1, ours, least)]

    def time_forest_predict(self) -> list[Line]:
        """Predict with forests of categories and numbers: faster than the fastest."""
        lines = []
        for what, small, large in (
            ("category", self.categories, planted(self.tables.rows, 20)),
            ("numeric", self.numbers, planted(self.tables.rows, 0, 20)),
        ):
            X, y, rows = small.frame(), small.labels(), large.frame()
            peers = [our_forest(N_TREES), sklearn_forest(N_TREES)]
            peers += forest_others(N_TREES)
            actions: dict[str, Action] = {}
            for peer in peers:
                model = peer.fit(X, y, None)
                actions[peer.name] = lambda p=peer, m=model, r=rows: p.predict(m, r)
            turns = dict.fromkeys(actions, 1) | {OURS.name: 2}
            least = dict.fromkeys(_names(peers[1:]), 1.0)
            work = f"predict {len(rows):,} rows x 20 {what}, {N_TREES} trees"
            lines.append(compare(work, actions, turns, at_least=least))
        return lines

    def time_forest_shap_background(self) -> list[Line]:
        """Explain rows against a background: categories, which others do not take.

        By a forest grown from these rows, and some of them by that of the larger table.
        """
        X, y = self.categories.frame(), self.categories.labels()
        rows, background = X.iloc[:EXPLAINED], X.iloc[-BACKGROUND:]
        small = our_forest(N_TREES).fit(rows, y.iloc[:EXPLAINED], None)
        return [
            _explain(small.model_, rows, background, SECONDS_OF_SHAP),
            _explain(self.forest.model_, rows[:BY_LARGE_TREES], background, None),
        ]

    def time_forest_shap_paths(self) -> list[Line]:
        """Explain rows by the training cases: 3 x shap's TreeExplainer."""
        X, y = self.numbers.frame(), self.numbers.labels()
        rows = X.iloc[:BY_PATHS]
        model = our_forest(N_TREES).fit(X, y, None).model_
        actions: dict[str, Action] = {OURS.name: lambda: model.shap(rows)}
        if find_spec("shap"):
            import shap

            theirs = sklearn_forest(N_TREES).fit(X, y, None)
            explainer = shap.TreeExplainer(
                theirs[-1], feature_perturbation="tree_path_dependent"
            )
            actions["shap"] = lambda: explainer.shap_values(rows.to_numpy())
        work = f"path-dependent SHAP, {N_TREES} trees x {len(rows):,} rows, 20 numeric"
        turns = dict.fromkeys(actions, 1) | {OURS.name: 2}
        return [compare(work, actions, turns, at_least={"shap": 3.0})]

    def time_forest_open(self) -> list[Line]:
        """Open the file of a forest, beside a prediction for the training rows."""
        from branchwise import load

        X, forest = self.categories.frame(), self.forest
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "forest.json"
            forest.model_.save(path)
            beside = f"predicting {len(X):,} rows"
            actions = {
                OURS.name: lambda: load(path),
                beside: lambda: load(path).predict(X),
            }
            times = best_times(actions, dict.fromkeys(actions, 3))
        opened, both = times[OURS.name], times[beside]
        work = f"open the file of {N_TREES} trees, 20 category"
        return [
            show(Line(work, opened, {beside: both - opened}, at_least={beside: 1.0}))
        ]


def _explain(
    model: Any, rows: pd.DataFrame, background: pd.DataFrame, at_most: float | None
) -> Line:
    actions = {OURS.name: lambda: model.shap(rows, background)}
    seconds = best_times(actions, {OURS.name: 1})[OURS.name]
    leaves = sum(tree.n_leaves for tree in model.trees) // len(model.trees)
    work = (
        f"interventional SHAP, {N_TREES} trees of {leaves:,} leaves x {len(rows):,} "
        f"rows x {len(background)} of the background, 20 category"
    )
    return show(Line(work, seconds, at_most=at_most))


def _names(peers: list[Peer]) -> list[str]:
    return [peer.name for peer in peers]


def _like_ours(peers: list[Peer]) -> list[str]:
    """Return those with exact thresholds and whole trees, as ours: not LightGBM."""
    return [name for name in _names(peers) if not name.startswith("LightGBM")]


def _fit(
    work: str, X: pd.DataFrame, y: pd.Series, peers: list[Peer], least: dict[str, float]
) -> Line:
    ours = our_forest(N_TREES)
    return compare_fits(work, X, y, None, "", peers, 2, ours, least)
