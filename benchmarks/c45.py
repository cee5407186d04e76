"""The works of C4.5: growth, pruning, and prediction with missing values."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from generate import Tables
from measure import Action, Line, Shuffled, best_times, compare, compare_fits, show
from peers import CHEFBOOST, OUR_C45, OUR_UNPRUNED_C45, OURS, SKLEARN, Peer

#: J48 needs Java and Weka. What it did on a planted table was measured once, beside
#: scikit-learn's full tree. The ratio of their times carries over; accuracy and leaves
#: depend on the draw of the table, which is not recorded.
J48_TO_SKLEARN = 0.94
J48_ACCURACY = 0.931
J48_LEAVES = 25_000


class C45Workloads:
    """The works of the table; each ``time_*`` returns lines."""

    def __init__(self, tables: Tables, adult: Path | None) -> None:
        self.rows = tables.rows
        self.tables = tables
        self.adult = adult

    def time_c45_planted(self) -> list[Line]:
        """Fit the first workload, and test on further rows of the same tree."""
        A, further = self.tables["A"], self.tables["A further"]
        X, y = A.frame(), A.labels()
        table, models = Shuffled(X, y), {}

        def fit_and_keep(peer: Peer) -> None:
            models[peer.name] = peer.fit(table.X, table.y, None)

        size = f"{self.rows:,} x 20 category"
        actions: dict[str, Action] = {
            peer.name: (lambda peer=peer: fit_and_keep(peer))
            for peer in (OUR_C45, SKLEARN)
        }
        turns = {OURS.name: 5, SKLEARN.name: 1}
        times = best_times(actions, turns, lambda _: table.shuffle())
        theirs = times[SKLEARN.name]
        j48 = f"J48 by its recorded ratio, {J48_TO_SKLEARN} x scikit-learn's fit time:"
        line = Line(
            f"fit {size}, C4.5, pruned",
            times[OURS.name],
            {SKLEARN.name: theirs, j48: J48_TO_SKLEARN * theirs},
            f"10 x J48 ({J48_TO_SKLEARN} x scikit-learn's fit time, recorded)",
        )
        right = further.labels().astype("str").to_numpy()
        rows = further.frame()
        accuracy = {
            name: float(np.mean(model.predict(rows) == right))
            for name, model in models.items()
        }
        leaves = models[SKLEARN.name][-1].get_n_leaves()
        return [
            show(line),
            show(Line(
                f"accuracy of it on {len(right):,} further rows",
                100 * accuracy[OURS.name],
                bar=f"at least J48's {100 * J48_ACCURACY:.3g} % (best possible: 95 %)",
                unit="%",
                digits=4,
                beside=f"{SKLEARN.name} {100 * accuracy[SKLEARN.name]:.4g} %, "
                f"J48 {100 * J48_ACCURACY:.3g} % (recorded, draw unknown)",
            )),
            show(Line(
                "leaves of it",
                models[OURS.name].get_n_leaves(),
                bar=f"at most J48's {J48_LEAVES:,}",
                unit="leaves",
                beside=f"{SKLEARN.name} {leaves:,}, J48 {J48_LEAVES:,} "
                "(recorded, draw unknown)",
            )),
            compare_fits(
                f"fit {size}, C4.5, prune=False", X, y, None, "", [],
                ours=OUR_UNPRUNED_C45,
            ),
        ]  # fmt: skip

    def time_c45_pruning(self) -> list[Line]:
        """Prune the first workload: what the time of pruning is to that of growth."""
        A = self.tables["A"]
        size = f"{self.rows:,} x 20 category"
        return [_pruning(size, A.frame(), A.labels(), 2)]

    def time_c45_mixed_fifth(self) -> list[Line]:
        """Fit a smaller table of numbers, categories and gaps."""
        return [self._fit_mixed("mixed fifth")]

    def _fit_mixed(self, name: str) -> Line:
        mixed = self.tables[name]
        X, y = mixed.frame(), mixed.labels()
        size = f"{len(X):,}, 10 numeric + 10 category, 3 % missing"
        work, least = f"fit {size}, C4.5, pruned", {SKLEARN.name: 20.0}
        return compare_fits(work, X, y, None, "", [SKLEARN], 3, OUR_C45, least)

    def time_c45_mixed(self) -> list[Line]:
        """Fit numbers, categories and gaps: rows with gaps go down every branch."""
        mixed = self.tables["mixed"]
        X, y = mixed.frame(), mixed.labels()
        size = f"{self.rows // 2:,}, 10 numeric + 10 category, 3 % missing"
        return [
            self._fit_mixed("mixed"),
            compare_fits(
                f"fit {size}, C4.5, prune=False", X, y, None, "", [], 3,
                OUR_UNPRUNED_C45,
            ),
            _pruning(size, X, y),
        ]  # fmt: skip

    def time_c45_adult(self) -> list[Line]:
        """Fit adult, where a copy of it is given."""
        if self.adult is None:
            return []
        X, y = read_adult(self.adult)
        peers = [SKLEARN, *([CHEFBOOST] if find_spec("chefboost") else [])]
        work = f"fit adult, {len(X):,} x {X.shape[1]}, C4.5, pruned"
        bar = "20 x J48 (not at hand: no record of its time), 20 x chefboost"
        return [
            compare_fits(work, X, y, None, bar, peers, 10, OUR_C45),
            _pruning(f"adult, {len(X):,} x {X.shape[1]}", X, y),
        ]

    def time_c45_predict(self) -> list[Line]:
        """Predict rows with gaps by a pruned tree: they go down several branches."""
        mixed = self.tables["mixed"]
        X, y = mixed.frame(), mixed.labels()
        ours, theirs = OUR_C45.fit(X, y, None), SKLEARN.fit(X, y, None)
        turns = {OURS.name: 5, SKLEARN.name: 2}
        work = f"{len(X):,} rows with 3 % missing, pruned C4.5 tree"
        return [
            compare(f"predict {work}", {
                OURS.name: lambda: ours.predict(X),
                SKLEARN.name: lambda: theirs.predict(X),
            }, turns),
            compare(f"predict probabilities of {work}", {
                OURS.name: lambda: ours.predict_proba(X),
                SKLEARN.name: lambda: theirs.predict_proba(X),
            }, turns),
        ]  # fmt: skip


def _pruning(size: str, X: pd.DataFrame, y: pd.Series, at_most: float = 1) -> Line:
    """Time growth and pruning apart, from ready codes; collapse belongs to pruning.

    Every run has its rows in a new order: growth first, then pruning of its tree.
    """
    from branchwise.data.encode import learn_columns
    from branchwise.data.frames import open_table
    from branchwise.data.target import learn_target
    from branchwise.engines.memory import Training
    from branchwise.grow.native_kernel import grow_native
    from branchwise.prune.error_based import prune_native
    from branchwise.recipe import C45

    table = Shuffled(X, y)
    now: dict[str, Any] = {}

    def encode() -> None:
        table.shuffle()
        columns, data = learn_columns(open_table(table.X), "from_dtype", None)
        classes, labels = learn_target(table.y)
        grid = Training(columns, data, labels, len(classes)).grid(C45)
        now.update(parts=(columns, data, labels), classes=len(classes), grid=grid)

    def grow() -> None:
        now["tree"] = grow_native(*now["parts"], now["classes"], now["grid"], C45)

    def prune() -> None:
        now["pruned"] = prune_native(*now["parts"], now["grid"], now["tree"], C45)

    actions: dict[str, Action] = {"growth": grow, "pruning": prune}
    times = best_times(
        actions,
        dict.fromkeys(actions, 5),
        lambda name: encode() if name == "growth" else None,
    )
    leaves = f"{now['tree'].n_leaves:,} to {now['pruned'].n_leaves:,} leaves"
    return show(Line(
        f"pruning alone, {size}, {leaves}",
        times["pruning"] / times["growth"],
        unit="x growth",
        beside=f"pruning {times['pruning']:.3g} s, growth {times['growth']:.3g} s",
        at_most=at_most,
    ))  # fmt: skip


def read_adult(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read adult from a file with names in its first line and the class at the end."""
    table = pd.read_csv(path, na_values="?", skipinitialspace=True)
    texts = table.select_dtypes(exclude="number").columns
    table = table.astype(dict.fromkeys(texts, "category"))
    return table.iloc[:, :-1], table.iloc[:, -1]
