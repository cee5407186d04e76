"""How good are generalised rules? Trees and rules by ten-fold cross-validation.

    python benchmarks/rules.py [--shared ../shared] [--set NAME ...]

The rules come from C4.5 trees without pruning, as in C4.5rules; beside them stand
these trees and the pruned ones. Data sets and folds are those of ``parity.py``. All
settings are the defaults; nothing was tuned. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from branchwise.recipe import C45
from parity import ROOT, DataSet, load

SETS = (
    *("audiology", "balance-scale", "breast-cancer", "car", "credit-g", "glass"),
    *("hepatitis", "house-votes-84", "primary-tumor", "splice", "tic-tac-toe", "zoo"),
)
FULL = replace(C45, pruning=None)
HEAD = (
    *("data set", "rows", "leaves unpruned", "accuracy", "leaves pruned", "accuracy"),
    *("rules", "conditions", "accuracy"),
)


def fold_figures(data: DataSet, fold: int) -> np.ndarray:
    """Return sizes, and the right answers on the rows held out, of one fold."""
    aside = data.folds == fold
    X, y = data.X[~aside], data.y[~aside]
    new, wanted = data.X[aside], data.y[aside]
    full, pruned = data.fitted(FULL, ~aside), data.fitted(C45, ~aside)
    rules = full.generalised_rules(X, y)
    return np.array(
        [
            full.tree.n_leaves,
            (full.predict(new) == wanted).sum(),
            pruned.tree.n_leaves,
            (pruned.predict(new) == wanted).sum(),
            len(rules),
            sum(len(rule.conditions) for rule in rules),
            (rules.predict(new) == wanted).sum(),
        ],
        dtype=float,
    )


def line(shared: Path, name: str) -> str:
    """Return the line of a data set: mean sizes, accuracy over all folds."""
    data = load(shared, name)
    folds = [fold_figures(data, fold) for fold in range(int(data.folds.max()) + 1)]
    total = np.sum(folds, axis=0)
    size = [f"{number:.1f}" for number in total / len(folds)]
    right = [f"{100 * number / len(data.y):.1f} %" for number in total]
    cells = [
        *(name, f"{len(data.y):,}", size[0], right[1], size[2], right[3]),
        *(size[4], size[5], right[6]),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--set", nargs="*", default=SETS, choices=SETS)
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |")
    print(f"|{'|'.join('---' if not at else '---:' for at in range(len(HEAD)))}|")
    for name in arguments.set:
        print(line(arguments.shared, name), flush=True)


if __name__ == "__main__":
    main()
