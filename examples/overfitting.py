"""Overfitting, and three ways out: a depth limit, pruning, a forest.

Two of the documents that the project started from end with the same trouble: a tree
that is right about all rows it was grown from, and much less often about new ones.
They name the remedies: stop early, prune, or let many trees vote and take the most
frequent class. This script tries all of them on 1000 loans, 700 to learn from and 300
held out, and then on the handwritten digits of the fifth document.
"""

import random
import warnings

import numpy as np
from sklearn.datasets import load_digits

from _tables import load, split
from branchwise import FitWarning, ID3Classifier, RandomForestClassifier
from branchwise.datasets import Dataset

# Fitting warns of the trees that this script is about.
warnings.filterwarnings("ignore", category=FitWarning)

DEPTHS = (1, 2, 3, 4, 6, 8, None)
SIZES = (1, 2, 5, 10, 25, 50, 100, 200)


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def accuracies(model: object, train: Dataset, test: Dataset) -> tuple[float, float]:
    """Return the share of right predictions on training and on held-out rows."""
    return tuple(
        float(np.mean(model.predict(rows.X) == np.array(rows.y)))
        for rows in (train, test)
    )


def digits_as_values() -> tuple[Dataset, Dataset]:
    """Return the digits, every pixel as one of 17 values, as in the document."""
    pixels, labels = load_digits(return_X_y=True)
    order = list(range(len(labels)))
    random.Random(0).shuffle(order)  # noqa: S311
    tables = []
    for rows in (order[:1257], order[1257:]):
        X = {
            f"pixel {at:02}": [f"{int(pixels[row, at]):02}" for row in rows]
            for at in range(pixels.shape[1])
        }
        y = [int(labels[row]) for row in rows]
        tables.append(Dataset("digits", X, y, "digit"))
    return tables[0], tables[1]


def main() -> dict[str, object]:
    train, test = split(load("credit-g"), test_size=0.3)
    always = float(np.mean(np.array(test.y) == "good"))

    heading("One tree, deeper and deeper")
    by_depth = {}
    print("depth     nodes  training  held out")
    for depth in DEPTHS:
        tree = ID3Classifier(max_depth=depth).fit(train.X, train.y)
        by_depth[depth] = accuracies(tree, train, test)
        known, new = by_depth[depth]
        name = "no limit" if depth is None else str(depth)
        print(f"{name:<8} {len(tree.tree_):>6} {known:>9.3f} {new:>9.3f}")
    print(f"Always predicting good is right for {always:.3f} of the rows held out.")

    heading("The whole tree, pruned")
    by_pruning = {}
    ways = {
        "none": ID3Classifier(),
        "error-based": ID3Classifier(pruning="error-based"),
        "reduced-error": ID3Classifier(
            pruning="reduced-error", validation_fraction=0.3
        ),
    }
    print("pruning        nodes  training  held out")
    for name, estimator in ways.items():
        tree = estimator.fit(train.X, train.y)
        by_pruning[name] = (len(tree.tree_), *accuracies(tree, train, test))
        nodes, known, new = by_pruning[name]
        print(f"{name:<13} {nodes:>6} {known:>9.3f} {new:>9.3f}")

    heading("Many whole trees, which vote")
    forest = RandomForestClassifier(base="id3", voting="hard", warm_start=True)
    by_trees = {}
    print("trees  training  held out")
    for size in SIZES:
        # Trees are added to those that are there: the first ones stay the same.
        forest.set_params(n_estimators=size).fit(train.X, train.y)
        by_trees[size] = accuracies(forest, train, test)
        known, new = by_trees[size]
        print(f"{size:>5} {known:>9.3f} {new:>9.3f}")
    alone = [accuracies(tree, train, test)[1] for tree in forest.model_]
    low, high = min(alone), max(alone)
    print(
        f"Alone, each of these trees is right for {low:.3f} to {high:.3f} of the rows\n"
        f"held out, {np.mean(alone):.3f} on average: they overfit, but not alike."
    )

    heading("The same without held-out rows: each row by the trees grown without it")
    out = forest.out_of_bag()
    errors = out.error_by_trees
    for size in (10, 50, 200):
        print(f"{size:>5} trees: accuracy {1 - errors[size - 1]:.3f} out of bag")

    heading("One tree to read, in place of 200")
    best = forest.best_tree()
    print(best.summary)
    print(best.to_text(max_depth=1))

    heading("Where it began: 1797 handwritten digits, every pixel as one of 17 values")
    train, test = digits_as_values()
    digits = {
        "one tree": ID3Classifier(),
        "one tree, pruned": ID3Classifier(pruning="error-based"),
        "100 trees, votes": RandomForestClassifier(base="id3", voting="hard"),
        "100 trees, averages": RandomForestClassifier(base="id3"),
    }
    on_digits = {}
    print("model                training  held out")
    for name, estimator in digits.items():
        on_digits[name] = accuracies(estimator.fit(train.X, train.y), train, test)
        known, new = on_digits[name]
        print(f"{name:<20} {known:>8.3f} {new:>9.3f}")
    return {
        "always": always,
        "by_depth": by_depth,
        "by_pruning": by_pruning,
        "by_trees": by_trees,
        "out_of_bag": 1 - float(errors[-1]),
        "best_tree": best.number,
        "alone": (low, high),
        "digits": on_digits,
    }


if __name__ == "__main__":
    main()
