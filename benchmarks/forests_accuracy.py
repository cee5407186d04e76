"""Compare the accuracy of forests on the shared sets and their folds, or on others.

    python benchmarks/forests_accuracy.py [--shared ../shared] [--method NAME ...]
                                          [--kind shared|others] [--set TEXT ...]
                                          [--half HALF] [--seeds 1] [--output FILE]

100 trees each, one thread. Peers are scikit-learn's forest, whose categories are
columns of 0 and 1, and LightGBM where it is installed. The others are the sets of
``accuracy.py`` that are not shared: five folds, once. Defaults are chosen by the sets
of the choosing half (``accuracy_sets.half``) only, and confirmed by the others.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accuracy_sets import HALVES, Table, sets

N_TREES = 100
#: Sets with fewer rows are examples of textbooks.
LEAST_ROWS = 50
#: A simulated set, which is not one of the 25.
LEFT_OUT = "votes-sim"
ROOT = Path(__file__).resolve().parent.parent

#: From training rows, their classes, test rows and a seed to predictions.
Predict = Callable[[pd.DataFrame, Any, pd.DataFrame, int], NDArray[Any]]


def ours(**parameters: Any) -> Predict:
    """Predict by our forest."""

    def predict(X: pd.DataFrame, y: Any, rows: pd.DataFrame, seed: int) -> Any:
        from branchwise import RandomForestClassifier

        forest = RandomForestClassifier(
            n_estimators=N_TREES, random_state=seed, n_jobs=1, **parameters
        )
        return forest.fit(X, y).predict(rows)

    return predict


def sklearn_forest(X: pd.DataFrame, y: Any, rows: pd.DataFrame, seed: int) -> Any:
    """Predict by scikit-learn's forest; a missing category is one more category."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    texts = X.select_dtypes(exclude="number").columns
    known = dict.fromkeys(texts, "str")
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(
        make_column_transformer((encoder, list(texts)), remainder="passthrough"),
        RandomForestClassifier(N_TREES, random_state=seed, n_jobs=1),
    )
    return model.fit(X.astype(known), y).predict(rows.astype(known))


def lightgbm(X: pd.DataFrame, y: Any, rows: pd.DataFrame, seed: int) -> Any:
    """Predict by LightGBM's boosting, which is not a forest, with its defaults."""
    from lightgbm import LGBMClassifier

    texts = X.select_dtypes(exclude="number").columns
    kinds = {name: pd.CategoricalDtype(X[name].dropna().unique()) for name in texts}
    names = [f"column_{number}" for number in range(X.shape[1])]
    train = X.astype(kinds).set_axis(names, axis=1)
    model = LGBMClassifier(
        n_estimators=N_TREES, num_threads=1, verbose=-1, random_state=seed
    )
    return model.fit(train, y).predict(rows.astype(kinds).set_axis(names, axis=1))


METHODS: dict[str, Predict] = {
    "forest": ours(),
    "forest, columns chosen out of bag": ours(max_features="oob"),
    "forest of ID3 trees": ours(base="id3"),
    "forest of C4.5 trees": ours(base="c4.5"),
    "scikit-learn": sklearn_forest,
    "LightGBM": lightgbm,
}
#: What is measured unless said otherwise.
USUAL = ["forest", "scikit-learn", "LightGBM"]


def accuracy(table: Table, predict: Predict, seeds: int) -> float:
    """Return the percentage of right predictions, over folds and seeds."""
    right = []
    for test in table.tests:
        train = np.setdiff1d(np.arange(len(table.y)), test)
        for seed in range(seeds):
            found = predict(
                table.X.iloc[train], table.y[train], table.X.iloc[test], seed
            )
            right.append(found == table.y[test])
    return float(100 * np.concatenate(right).mean())


def report(found: dict[str, dict[str, Any]], methods: list[str]) -> str:
    """Return the figures as a table, with means of both halves and of all."""
    lines = [
        "| set | half | rows | " + " | ".join(methods) + " |",
        "|---|---|---|" + "---|" * len(methods),
    ]
    for name, row in sorted(found.items()):
        cells = " | ".join(f"{row[method]:.2f}" for method in methods)
        lines.append(f"| {name} | {row['half']} | {row['rows']:,} | {cells} |")
    for half in (*HALVES, "all"):
        rows = [row for row in found.values() if half in (row["half"], "all")]
        if rows:
            means = (np.mean([row[method] for row in rows]) for method in methods)
            cells = " | ".join(f"{mean:.2f}" for mean in means)
            lines.append(f"| mean of {len(rows)} | {half} | | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--kind", choices=["shared", "others"], default="shared")
    parser.add_argument("--set", action="append", metavar="TEXT")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", type=Path, help="the table; beside it, JSON")
    options = parser.parse_args()
    methods = options.method or USUAL
    if "LightGBM" in methods and not find_spec("lightgbm"):
        print("(LightGBM is not installed)")
        methods.remove("LightGBM")
    found: dict[str, dict[str, Any]] = {}
    for data in sets(options.shared, 1, 5, LEAST_ROWS):
        if (data.kind == "shared") != (options.kind == "shared"):
            continue
        if data.name == LEFT_OUT:
            continue
        if options.half not in (None, data.half):
            continue
        if options.set and not any(text in data.name for text in options.set):
            continue
        table = data.load()
        row: dict[str, Any] = {"half": data.half, "rows": len(table.y)}
        for method in methods:
            begun = time.process_time()
            row[method] = accuracy(table, METHODS[method], options.seeds)
            seconds = time.process_time() - begun
            print(
                f"{data.name}, {method}: {row[method]:.2f}, {seconds:.1f} s", flush=True
            )
        found[data.name] = row
        text = report(found, methods)
        if options.output:
            options.output.write_text(text + "\n", encoding="utf-8")
            figures = options.output.with_suffix(".json")
            figures.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(report(found, methods))


if __name__ == "__main__":
    main()
