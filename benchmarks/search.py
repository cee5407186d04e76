"""Searches of 200 candidates: our estimators against scikit-learn's tree.

Every search is scikit-learn's ``GridSearchCV`` over 200 candidates and 10 folds on
one thread, without the last fit. scikit-learn's tree has an ``OrdinalEncoder`` before
it; missing categories have a code of their own. Times are CPU seconds, so that other
work on the machine counts little, and ratios are within this run. Other work still
empties the caches: ``--rounds 3`` takes the best of three turns of every search.

    python benchmarks/search.py car.csv adult.csv [--candidates 200] [--folds 10]

Tables are CSV files with names in the first line and the class last; ``?`` is missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from branchwise import C45Classifier, CARTClassifier, EncodedTable, ID3Classifier
from branchwise.data.cache import Fingerprints
from branchwise.estimators import base
from branchwise.evaluation import search

DEPTHS = [2, 3, 4, 5, 6, 8, 10, 12, 16, None]
CASES = [1, 2, 3, 5, 8, 10, 15, 20, 30, 50]
CONFIDENCES = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]


def grids(n_candidates: int) -> dict[str, Any]:
    """Return as many candidates for each algorithm."""
    cases = CASES[: max(1, n_candidates // 20)]
    branches = [2, 5, 10, 20, 50][: max(1, n_candidates // 40)]
    return {
        "sklearn": {
            "decisiontreeclassifier__criterion": ["gini", "entropy"],
            "decisiontreeclassifier__max_depth": DEPTHS,
            "decisiontreeclassifier__min_samples_leaf": cases,
        },
        "id3": {
            "criterion": ["gain", "gini"],
            "max_depth": DEPTHS,
            "min_samples_leaf": cases,
        },
        "c4.5": {
            "confidence": CONFIDENCES,
            "min_samples_branch": branches,
            "max_depth": [4, 8, 16, None],
        },
        "cart": {
            "criterion": ["gini", "gain"],
            "max_depth": DEPTHS,
            "min_samples_leaf": cases,
        },
    }


def pipeline(X: pd.DataFrame) -> Any:
    """Return scikit-learn's tree after its encoder."""
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    )
    columns = make_column_transformer((encoder, text), remainder="passthrough")
    return make_pipeline(columns, DecisionTreeClassifier(random_state=0))


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the CPU seconds of a search, and its best score."""
    before = base.FINGERPRINTS
    base.FINGERPRINTS = Fingerprints()  # nothing is known from the search before
    try:
        start = time.process_time()
        done = work()
        took = time.process_time() - start
    finally:
        base.FINGERPRINTS = before
    return took, getattr(done, "best_score_", None) or done.best.mean


def best_searches(
    X: pd.DataFrame,
    y: pd.Series,
    n_candidates: int,
    folds: int,
    rounds: int,
    one_of_ten: bool = False,
    only: str = "",
) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and best score of every search, scikit-learn's tree first.

    All searches take turns, round after round, and the best time of each counts. With
    ``one_of_ten``, scikit-learn's tree tries only the middle one of the fewest cases of
    a leaf, and its time counts for all of them. Of ours, those named like ``only``.
    """
    grid = grids(n_candidates)
    cases = grid["sklearn"]["decisiontreeclassifier__min_samples_leaf"]
    part = [cases[len(cases) // 2]] if one_of_ten else cases
    grid["sklearn"] |= {"decisiontreeclassifier__min_samples_leaf": part}
    ways = searches(X, y, grid, folds)
    peer, *own = ways
    ways = {way: ways[way] for way in [peer, *(way for way in own if only in way)]}
    took = dict.fromkeys(ways, float("inf"))
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for way, work in ways.items():
            time_now, best[way] = seconds(work)
            took[way] = min(took[way], time_now)
    took[peer] *= len(cases) / len(part)
    return {way: (took[way], best[way]) for way in ways}


def measure(
    path: Path, n_candidates: int, folds: int, rounds: int, one_of_ten: bool = False
) -> None:
    """Print the lines of one table."""
    frame = pd.read_csv(path, na_values="?", skipinitialspace=True)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    found = best_searches(X, y, n_candidates, folds, rounds, one_of_ten)
    peer, *own = found
    theirs, best = found[peer]
    label = f"{path.parent.name or path.stem}, {len(X):,} x {X.shape[1]}"
    print(f"| {label} | {peer} | {theirs:.1f} s | | {best:.4f} |")
    for way in own:
        took, best = found[way]
        print(f"| | {way} | {took:.1f} s | **{theirs / took:.1f} x** | {best:.4f} |")


def searches(
    X: pd.DataFrame, y: pd.Series, grid: dict[str, Any], folds: int
) -> dict[str, Callable[[], Any]]:
    """Return every way to search, scikit-learn's own tree first."""

    def searched(estimator: Any, name: str, table: Any = X, y: Any = y) -> Any:
        done = GridSearchCV(estimator, grid[name], cv=folds, refit=False)
        return lambda: done.fit(table() if callable(table) else table, y)

    plain_y = y.to_numpy(dtype=object)
    ways = {"scikit-learn, encoder and tree": searched(pipeline(X), "sklearn")}
    for name, own in (
        ("id3", ID3Classifier()),
        ("c4.5", C45Classifier()),
        ("cart", CARTClassifier()),
    ):
        ways |= {
            f"{name}: GridSearchCV, pandas table": searched(own, name),
            f"{name}: GridSearchCV, EncodedTable": searched(
                own, name, lambda: EncodedTable(X), plain_y
            ),
            f"{name}: branchwise tune": lambda own=own, name=name: search(
                own, X, y, grid[name], cv=folds
            ),
        }
    return ways


def main() -> None:
    """Measure the tables that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--one-of-ten", action="store_true")
    given = parser.parse_args()
    print("| table | search | CPU time | ratio | best score |\n|---|---|---|---|---|")
    for path in given.tables:
        measure(path, given.candidates, given.folds, given.rounds, given.one_of_ten)


if __name__ == "__main__":
    main()
