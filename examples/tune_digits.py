"""Seed 004's study in a few lines: tune trees for handwritten digits, and compare.

The document splits the digits 70 to 30, fits scikit-learn's tree with its defaults,
with entropy and with parameters that a grid search found, and then an ID3 of its own,
with pixels as they are and in three bins. Here all have the same rows, ours with
one branch for each brightness, for each bin, and as CART with thresholds. What is
tuned is tuned on the training rows alone, and is then fitted to all of them.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from branchwise import CARTClassifier, ID3Classifier
from branchwise.evaluation import FoldAssignment, compare, search

GRID = {"criterion": ["gini", "gain"], "max_depth": [5, 8, 11, 14]}
SKLEARN_GRID = {"criterion": ["gini", "entropy"], "max_depth": [5, 8, 11, 14]}
HOLD_OUT = 0.3


def tuned(estimator, grid, pixels, labels, name):
    """Search on the training rows; return the estimator with what was found."""
    found = search(estimator, pixels, labels, grid, cv=3, n_jobs=-1)
    best = found.best
    print(f"{name}: {best.parameters}, {best.mean:.4f} +- {best.test.std():.4f}")
    return estimator.set_params(**best.parameters), found


def main() -> dict[str, object]:
    pixels, labels = load_digits(return_X_y=True)
    bins = np.digitize(pixels, [4, 10], right=True)
    # The rows that compare() will fit to, so that no row is tuned and tested on.
    train, test = FoldAssignment(hold_out=HOLD_OUT).splits(labels, by_class=True)[0]

    print("Tuned by 3-fold cross-validation within the training rows:")
    cart, cart_search = tuned(
        CARTClassifier(), GRID, pixels[train], labels[train], "CART"
    )
    scikit, _ = tuned(
        DecisionTreeClassifier(random_state=0),
        SKLEARN_GRID,
        pixels[train],
        labels[train],
        "scikit-learn",
    )
    print()
    print(cart_search, end="\n\n")

    entropy = DecisionTreeClassifier(criterion="entropy", random_state=0)
    numbers = compare(
        {
            "CART": CARTClassifier(),
            "CART, tuned": cart,
            "scikit-learn": DecisionTreeClassifier(random_state=0),
            "scikit-learn, entropy": entropy,
            "scikit-learn, tuned": scikit,
        },
        pixels,
        labels,
        hold_out=HOLD_OUT,
    )
    as_values = ID3Classifier(categorical_features="all")
    values = compare({"ID3, 17 values": as_values}, pixels, labels, hold_out=HOLD_OUT)
    binned = compare({"ID3, 3 bins": as_values}, bins, labels, hold_out=HOLD_OUT)

    print(f"On the {len(test)} rows held out:\n")
    results = {
        name: one
        for comparison in (numbers, values, binned)
        for name, one in comparison.evaluations.items()
    }
    for name, one in results.items():
        accuracy = one["accuracy"]
        print(
            f"{name:<22} {accuracy.mean:.4f}  ({accuracy.low:.4f} to "
            f"{accuracy.high:.4f})  {one['leaves'].mean:,.0f} leaves"
        )
    print()
    print(results["CART, tuned"])
    return {
        "rows": (len(train), len(test)),
        "accuracy": {name: one["accuracy"].mean for name, one in results.items()},
        "leaves": {name: one["leaves"].mean for name, one in results.items()},
        "best": cart_search.best_params_,
        "confusion": results["CART, tuned"].confusion,
    }


if __name__ == "__main__":
    main()
