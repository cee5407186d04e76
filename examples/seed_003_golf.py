"""Seed 003: the same fourteen days, but golf.

The document works out the gain of the wind in full and states the others. Its tree
is right; its gain of the outlook is truncated (0.246 for 0.247). What it calls a
Kullback-Leibler divergence, the information gain, is the mutual information of a
column and the class: the script computes it that way too and gets the same figure.

It ends with pruning by validation rows, drawn on a tree of loans whose leaves have the
shares of their class, and says that a regression tree predicts a number. Its table of
loans is not given; one is made here, and such trees are grown, pruned and read.
"""

import random
import warnings
from collections import Counter
from math import log2

from _textbook import compare, entropy, where, work_out
from branchwise import CARTRegressor, ID3Classifier, datasets

# %%
# ## Every gain

golf = datasets.load("golf")
at = {
    "root": work_out("All days", golf),
    "Sunny": work_out("Sunny days", where(golf, "Outlook", "Sunny")),
    "Rain": work_out("Rain", where(golf, "Outlook", "Rain")),
}
wind = at["root"]["Wind"]

# %%
# ## The document's figures

print("The document's figures, ours, and how they compare:")
verdicts = compare(
    {
        "entropy of all days": ("0.940", entropy([9, 5])),
        "entropy of strong wind": ("1", wind.entropies["Strong"]),
        "gain of Wind": ("0.048", wind.gain),
        "gain of Outlook": ("0.246", at["root"]["Outlook"].gain),
    }
)

# %%
# ## The gain is the mutual information
#
# It says how many bits a column and the class tell about each other, and needs no
# entropy to be worked out.


def mutual_information(column: list[str], labels: list[str]) -> float:
    n = len(labels)
    values, classes = Counter(column), Counter(labels)
    pairs = Counter(zip(column, labels, strict=True))
    return sum(
        both / n * log2(both * n / (values[value] * classes[label]))
        for (value, label), both in pairs.items()
    )


mutual = {name: mutual_information(golf.X[name], golf.y) for name in golf.X}
print("Mutual information of each column and the class:")
for name, bits in mutual.items():
    print(f"  {name:<12} {bits:.6f}")

# %%
# ## The tree
#
# As text, and in a notebook as a page to open and to try days in.

tree = ID3Classifier().fit(golf.X, golf.y)
print(tree.model_)

# %%
tree.model_

# %%
# ## Overfitting and pruning
#
# Loans that are safe or risky, as in the document's picture: each kind of loan has a
# share of safe ones, and the purpose tells nothing. Half of the rows are to grow from,
# half to validate. The full tree is too large, and a warning says so.


def loans(n_rows: int, seed: int) -> tuple[list[dict[str, str]], list[str]]:
    rng = random.Random(seed)  # noqa: S311
    values = {
        "credit": ["excellent", "fair", "poor"],
        "term": ["3 years", "5 years"],
        "income": ["low", "high"],
        "purpose": ["car", "house", "study", "travel"],
    }
    safe = {
        ("excellent", "any"): 0.92,
        ("fair", "3 years"): 0.19,
        ("fair", "5 years"): 0.81,
        ("poor", "low"): 0.06,
        ("poor", "high"): 0.57,
    }
    rows, labels = [], []
    for _ in range(n_rows):
        row = {name: rng.choice(words) for name, words in values.items()}
        credit = row["credit"]
        second = {"excellent": "any", "fair": row["term"], "poor": row["income"]}
        share = safe[credit, second[credit]]
        rows.append(row)
        labels.append("safe" if rng.random() < share else "risky")
    return rows, labels


grown_from, validation, unseen = loans(300, 1), loans(300, 2), loans(3000, 3)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    full = ID3Classifier().fit(*grown_from)
print(told[0].message)

# %%
# From the bottom up, a subtree becomes a leaf if the validation rows are predicted no
# worse (reduced-error pruning). What stays is what the picture shows. Numbers in
# brackets are the cases of a leaf, and those of the other class.

pruned = ID3Classifier(pruning="reduced-error").fit(*grown_from, validation=validation)
print(pruned.model_)

# %%
# The shares of the leaves, with intervals; and both trees on loans that neither has
# seen.

leaves = pruned.rules().to_columns()
for conditions, label, share, low, high in zip(
    *(leaves[name] for name in ("conditions", "label", "confidence", "low", "high")),
    strict=True,
):
    print(f"{share:.2f} {label:<5} ({low:.2f} to {high:.2f})  {conditions}")
accuracy = {
    name: (one.get_n_leaves(), one.score(*grown_from), one.score(*unseen))
    for name, one in (("full", full), ("pruned", pruned))
}
print("\ntree    leaves  training  unseen")
for name, (n_leaves, on_training, on_unseen) in accuracy.items():
    print(f"{name:<6}  {n_leaves:>6}  {on_training:>8.3f}  {on_unseen:>6.3f}")

# %%
# ## A regression tree
#
# It predicts a number: the width of a petal, from all that else is known of an iris.
# Each leaf has the mean of its cases, and the deviation from it.

iris = datasets.load("iris")
widths = [float(width) for width in iris.X["petalwidth"]]
others = {name: cells for name, cells in iris.X.items() if name != "petalwidth"}
known = others | {"species": iris.y}
regression = CARTRegressor(max_depth=2, threshold="readable").fit(known, widths)
print(regression.model_)
fit_quality = regression.score(known, widths)
print(f"\nR squared of the training rows: {fit_quality:.3f}")

# %% [script only]

figures = {
    "wind_counts": wind.counts,
    "wind_entropies": wind.entropies,
    "gains": {
        place: {column: split.gain for column, split in splits.items()}
        for place, splits in at.items()
    },
    "mutual_information": mutual,
    "verdicts": verdicts,
    "tree": str(tree.model_),
    "size": (len(tree.tree_), tree.get_n_leaves(), tree.get_depth()),
    "pruned": str(pruned.model_),
    "accuracy": accuracy,
    "shares": leaves["confidence"],
    "regression": (str(regression.model_), fit_quality),
}
gallery = {
    "gain of Outlook, in bits": at["root"]["Outlook"].gain,
    "mutual information of Outlook, in bits": mutual["Outlook"],
    "gain of Wind, in bits": wind.gain,
    "leaves": tree.get_n_leaves(),
    "loans, full tree: leaves": accuracy["full"][0],
    "loans, full tree: right on unseen rows": accuracy["full"][2],
    "loans, pruned: leaves": accuracy["pruned"][0],
    "loans, pruned: right on unseen rows": accuracy["pruned"][2],
    "petal width: R squared of four leaves": fit_quality,
}
