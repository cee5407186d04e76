"""Seed 001: is it a fish, and is it a good car.

The document's tree of the five animals is right. Two things are to know about its
figures: what it calls the entropy of a value is that entropy times the value's
share of the rows, and it computes shares in single precision, so that only seven
digits count. Its tree of 1728 cars makes no mistake; neither does ours.
"""

import warnings
from math import log2

import numpy as np

from _textbook import entropy, work_out
from branchwise import FitWarning, ID3Classifier, datasets

# Fitting warns of a tree with as many leaves as that of the cars.
warnings.filterwarnings("ignore", category=FitWarning)

# %%
# ## Five animals
#
# Can it live without surfacing, and has it flippers? The first gains more.

fish = datasets.load("fish")
surfacing, flippers = fish.X
splits = work_out("Five animals", fish)

# %%
# The document computes with shares that were rounded to 32 bits. Doing the same gives
# its figures to the last digit.


def single_precision_entropy(counts: list[int]) -> float:
    shares = [float(np.float32(n) / np.float32(sum(counts))) for n in counts]
    return -sum(share * log2(share) for share in shares)


exact = {
    "all": entropy([2, 3]),
    "surfacing = yes": 3 / 5 * splits[surfacing].entropies["yes"],
    "flippers = yes": 4 / 5 * splits[flippers].entropies["yes"],
}
single = {
    "all": single_precision_entropy([2, 3]),
    "surfacing = yes": float(np.float32(0.6)) * single_precision_entropy([2, 1]),
    "flippers = yes": float(np.float32(0.8)) * single_precision_entropy([2, 2]),
}
print("Share times entropy, exact and as the document's arithmetic gives it:")
for name, bits in exact.items():
    print(f"  {name:<16} {bits:.15f}   {single[name]:.15f}")

# %%
# The tree is the document's.

tree = ID3Classifier().fit(fish.X, fish.y)
print(tree.model_)

# %%
# ## 1728 cars
#
# Six columns of text, four classes, and every combination of values once: so nothing
# contradicts, and a full tree is right about every car.

car = datasets.load("car")
cars = ID3Classifier().fit(car.X, car.y)
right = int((cars.predict(car.X) == car.y).sum())
print(f"{right} of {len(car.y)} right, {cars.model_!r}")
print(cars.model_.to_text(max_depth=2))

# %% [script only]

figures = {
    "gains": {column: split.gain for column, split in splits.items()},
    "weighted": exact,
    "single_precision": single,
    "fish_tree": str(tree.model_),
    "fish_size": (len(tree.tree_), tree.get_n_leaves(), tree.get_depth()),
    "car_right": (right, len(car.y)),
    "car_size": (len(cars.tree_), cars.get_n_leaves(), cars.get_depth()),
}
gallery = {
    "fish: gain of surfacing, in bits": splits[surfacing].gain,
    "fish: gain of flippers, in bits": splits[flippers].gain,
    "fish: leaves": tree.get_n_leaves(),
    "car: leaves": cars.get_n_leaves(),
    "car: right, of 1728": right,
}
