"""The works on data sets that lie beside the repository, in the folder of parity.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from measure import Line, Runs, Shuffled, best_times, show
from parity import load
from peers import OURS, SKLEARN

#: Generalising the rules of a tree may take this many seconds.
SECONDS_OF_RULES = 1.0
#: A search over our estimators is this many times as fast as over scikit-learn's tree.
FASTER_SEARCH = 15.0


class SharedWorkloads:
    """The works of the table; without the data set, a work says so and has no lines."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared

    def time_rules_poker(self) -> list[Line]:
        """Generalise the rules of trees of poker-hand, whose columns are categories."""
        return self._rules("poker-hand", categories=True, rows=22_500)

    def time_rules_adult(self) -> list[Line]:
        """Generalise the rules of trees of adult."""
        return self._rules("adult")

    def time_search_car(self) -> list[Line]:
        """Search 200 candidates over 10 folds of car."""
        return self._search("car")

    def time_search_adult(self) -> list[Line]:
        """Search 200 candidates over 10 folds of adult.

        scikit-learn tries 20 of its candidates, one leaf size of ten.
        """
        return self._search("adult", one_of_ten=True)

    def _has(self, name: str) -> bool:
        here = (self.shared / "data" / name / "meta.json").is_file()
        if not here:
            print(f"(skipped: no {name} in {self.shared}; see --shared)", flush=True)
        return here

    def _rules(
        self, name: str, categories: bool = False, rows: int | None = None
    ) -> list[Line]:
        from branchwise import fit_tree
        from branchwise.recipe import C45, Recipe

        if not self._has(name):
            return []
        data = load(self.shared, name)
        X = data.X.astype("str").astype("category") if categories else data.X
        table = Shuffled(X[:rows], pd.Series(data.y[:rows], name="y"))
        lines = []
        trees = {"ID3": Recipe(), "unpruned C4.5": replace(C45, pruning=None)}
        for title, recipe in trees.items():
            now: dict[str, Any] = {}

            def grow(_: str, recipe: Any = recipe, now: Any = now) -> None:
                table.shuffle()
                now["model"] = fit_tree(table.X, table.y, recipe)

            def generalise(now: Any = now) -> None:
                now["rules"] = now["model"].generalised_rules(table.X, table.y)

            actions, turns = {OURS.name: generalise}, {OURS.name: 3}
            seconds = best_times(actions, turns, grow)[OURS.name]
            leaves, rules = now["model"].tree.n_leaves, len(now["rules"])
            work = f"generalised rules of {name}, {len(table.X):,} rows, {title}"
            sizes = f"{leaves:,} leaves to {rules:,} rules"
            most = SECONDS_OF_RULES
            lines.append(show(Line(f"{work}, {sizes}", seconds, at_most=most)))
        return lines

    def _search(self, name: str, one_of_ten: bool = False) -> list[Line]:
        """Search plain pandas tables: texts, numbers and missing values."""
        from search import best_searches

        if not self._has(name):
            return []
        data = load(self.shared, name)
        texts = data.X.select_dtypes(exclude="number").columns
        X = data.X.astype(dict.fromkeys(texts, "str"))
        table = Shuffled(X, pd.Series(data.y, name="y"))
        found = best_searches(
            table.X, table.y, 200, 10, Runs.most or 1, one_of_ten, "pandas"
        )
        theirs = found.pop(next(iter(found)))[0]
        work = f"GridSearchCV of {name}, 200 candidates x 10 folds"
        return [
            show(Line(
                f"{work}, {way}",
                seconds,
                {SKLEARN.name: theirs},
                at_least={SKLEARN.name: FASTER_SEARCH},
            ))
            for way, (seconds, _) in found.items()
        ]  # fmt: skip
