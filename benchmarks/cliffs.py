"""Growth where bit rows do not apply, against growth of such a table where they do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from branchwise import Recipe, fit_tree
from branchwise.recipe import C45, CART
from generate import Planted, Tables, planted
from measure import Line, Shuffled, best_times, show

#: The recipe that options change.
PLAIN = Recipe()


class CliffWorkloads:
    """The works of the table; each ``track_*`` returns lines."""

    def __init__(self, tables: Tables) -> None:
        self.rows = tables.rows
        self.tables = tables

    def track_cliffs_of_weights(self) -> list[Line]:
        """Grow with weights, by gain and by gain ratio."""
        plain = self.tables["A"]
        return [
            *self._against_the_first(
                {
                    "plain rows": _fit(plain),
                    "whole weights": _fit(plain, self._whole()),
                    "fractional weights": _fit(plain, self._fractional()),
                }
            ),
            *self._against_the_first(
                {
                    "gain ratio": _fit(plain, criterion="gain_ratio"),
                    "gain ratio, fractional weights": _fit(
                        plain, self._fractional(), criterion="gain_ratio"
                    ),
                }
            ),
        ]

    def track_cliffs_of_classes(self) -> list[Line]:
        """Grow with many classes, and with weights."""
        many = planted(self.rows, 20, n_classes=60)
        return self._against_the_first(
            {
                "60 classes": _fit(many),
                "60 classes, whole weights": _fit(many, self._whole()),
                "60 classes, fractional weights": _fit(many, self._fractional()),
            }
        )

    def track_cliffs_of_values(self) -> list[Line]:
        """Grow with a column of many values among the others."""
        plain = self.tables["A"]
        return self._against_the_first(
            {
                "plain rows": _fit(plain),
                "a column of 300 values": _fit(plain, c19=self._column(300)),
                "a column of 5,000 values": _fit(plain, c19=self._column(5000)),
            }
        )

    def track_cliffs_of_groups(self) -> list[Line]:
        """Put many values of many classes in two groups, with weights and gaps."""
        rows, few, two_way = self.rows // 100, (20, 40), {"branching": "two-way"}
        plain = planted(rows, 20, n_classes=20, values=few)
        gaps = planted(rows, 20, n_classes=20, values=few, missing=0.03)
        return self._against_the_first(
            {
                "20 to 40 values of 20 classes": _fit(plain, **two_way),
                "these with weights": _fit(plain, self._fractional()[:rows], **two_way),
                "these with 3 % missing, divided": _fit(
                    gaps, missing="split", **two_way
                ),
            }
        )

    def track_cliffs_of_gaps(self) -> list[Line]:
        """Grow with gaps, by what becomes of them."""
        gaps = planted(self.rows, 20, missing=0.03)
        return self._against_the_first(
            {
                "3 % missing, a branch": _fit(gaps),
                "3 % missing, to the largest branch": _fit(gaps, missing="largest"),
                "3 % missing, divided": _fit(gaps, missing="split"),
            },
            at_most=4,
        )

    def track_cliffs_of_learned_sides(self) -> list[Line]:
        """Grow in two branches with gaps whose side is learned."""
        two_way = {"criterion": "gini", "branching": "two-way"}
        gaps = planted(self.rows, 20, missing=0.03)
        return self._against_the_first(
            {
                "two-way": _fit(self.tables["A"], **two_way),
                "two-way, 3 % missing, learned": _fit(
                    gaps, missing="learned", **two_way
                ),
            },
            at_most=4,
        )

    def track_cliffs_of_pruning(self) -> list[Line]:
        """Grow and prune by estimated errors, with costs, weights and surrogates."""
        mixed = self.tables["mixed fifth"]
        heavy = np.where(mixed.labels().cat.codes == 1, 2.5, 1.0)
        by_errors = replace(CART, pruning="error-based")
        return [
            *self._against_the_first(
                {
                    "C4.5": _fit(mixed, base=C45),
                    "C4.5, costs": _fit(mixed, base=C45, costs=((0, 1), (5, 0))),
                    "C4.5, a heavier class": _fit(mixed, heavy, base=C45),
                }
            ),
            *self._against_the_first(
                {
                    "CART pruned by errors": _fit(mixed, base=by_errors),
                    "CART pruned by errors, surrogates": _fit(
                        mixed, base=by_errors, missing="surrogate"
                    ),
                }
            ),
        ]

    def _whole(self) -> Any:
        return np.random.default_rng(0).integers(1, 3, self.rows).astype(float)

    def _fractional(self) -> Any:
        return np.random.default_rng(0).random(self.rows)

    def _column(self, size: int) -> Any:
        codes = np.random.default_rng(0).integers(0, size, self.rows)
        return pd.Categorical.from_codes(codes, [f"value {v}" for v in range(size)])

    def _against_the_first(
        self, works: dict[str, Fit], at_most: float = 5
    ) -> list[Line]:
        turns = dict.fromkeys(works, 5)
        seconds = best_times(works, turns, lambda name: works[name].table.shuffle())
        splits = {
            name: int(np.count_nonzero(fit().tree.n_children))
            for name, fit in works.items()
        }
        first, *others = works
        return [
            show(
                Line(
                    f"fit {len(works[name].table.X):,} x 20, {name} "
                    f"({splits[name] / splits[first]:.1f} x the splits)",
                    seconds[name] / seconds[first],
                    unit=f"x the time of {first}",
                    at_most=at_most,
                )
            )
            for name in others
        ]


@dataclass(frozen=True)
class Fit:
    """A table in an order of its rows, and how it is fitted."""

    table: Shuffled
    recipe: Recipe

    def __call__(self) -> Any:
        """Fit the table."""
        table = self.table
        return fit_tree(table.X, table.y, self.recipe, sample_weight=table.weights)


def _fit(
    table: Planted,
    weights: Any = None,
    c19: Any = None,
    base: Recipe = PLAIN,
    **options: Any,
) -> Fit:
    """Return how to fit a table, with another last column if one is given."""
    X, y = table.frame(), table.labels()
    if c19 is not None:
        X = X.assign(c19=c19)
    return Fit(Shuffled(X, y, weights), replace(base, **options))
