"""Mushroom: which may be eaten.

8124 descriptions of mushrooms, 22 columns of single letters, edible (e) or poisonous
(p). The classes can be separated without an error. The study finds how few splits and
training rows this takes, and what happens where a value, such as the odor, is missing.
"""

import warnings

from sklearn.metrics import confusion_matrix

from _tables import compare_trees, load, look_at, split
from branchwise import C45Classifier, CARTClassifier, FitWarning, ID3Classifier

# Fitting warns that `stalk-root` is missing more often in poisonous mushrooms.
warnings.filterwarnings("ignore", category=FitWarning)

# %%
# ## The table
#
# Every cell is text. `stalk-root` is missing in a third of the rows; `veil-type` has
# one value, so no tree splits on it.

mushrooms = load("mushroom")
look_at(mushrooms)

# %%
# ## Which tree?
#
# Half of the rows to learn from, the other half to test. All trees are right or nearly
# so; they differ in size. ID3 and C4.5 make a branch for each value, CART two groups of
# values; scikit-learn's tree splits on one value at a time, in columns of 0 and 1.

train, test = split(mushrooms, test_size=0.5)
trees = {"ID3": ID3Classifier(), "C4.5": C45Classifier(), "CART": CARTClassifier()}
scores = compare_trees(trees, train, test)

# %%
# The smallest in full. Cases are in brackets; after a slash, those that it gets wrong.

print(trees["CART"].model_)

# %%
# ## How many examples does it take?
#
# The error that matters is a poisonous mushroom called edible. A few dozen examples
# teach what smells bad; the last poisonous ones without a smell are rare, and take
# thousands.


def poisoned(tree: ID3Classifier | C45Classifier | CARTClassifier) -> int:
    counts = confusion_matrix(test.y, tree.predict(test.X), labels=["e", "p"])
    return int(counts[1, 0])


few = {}
print(f"poisonous called edible, of {test.y.count('p')}")
print("rows    ID3  C4.5  CART")
for share in (0.01, 0.02, 0.05, 0.1, 0.5):
    _, some = split(train, test_size=share)
    few[len(some.y)] = [
        poisoned(make().fit(some.X, some.y))
        for make in (ID3Classifier, C45Classifier, CARTClassifier)
    ]
    print(f"{len(some.y):>4} ", *(f"{count:>5}" for count in few[len(some.y)]))

# %%
# ## Rules
#
# The tree of C4.5 as sentences, the rules that cover most mushrooms first.

model = trees["C4.5"].model_
rules = model.rules(simplify=True)
for rule in rules.sort_by("coverage")[:4]:
    print(rule.sentence())

# %%
# Fewer and more general ones, which decide in their order.

listed = model.generalised_rules(train.X, train.y)
listed_right = listed.table(test.X, test.y).summary["rules"]["test_accuracy"]
print(listed)
print(f"\n{len(listed)} rules, {listed_right:.4f} of the test rows right")

# %%
# ## One mushroom
#
# Why should this one stay in the wood?

mushroom = test.rows()[0]
why = model.explain(mushroom)
print(why)

# %%
# ## With a cold
#
# Every tree begins with the odor. What if it cannot be smelled? C4.5 sends a case whose
# value is missing down every branch and takes the mean; the prediction for our mushroom
# changes.

unsmelled = model.explain(mushroom | {"odor": None})
print(str(unsmelled).partition("\n\n")[0])

# %%
# So a tree that is right about every mushroom calls nearly every poisonous one edible
# for those who have a cold. What can be done: let other columns replace the odor
# (surrogate splits); give the cost of errors, with which C4.5 calls nothing edible; or,
# best, grow a tree without this column: other columns together predict as well.

unsmelled_test = test.X | {"odor": [None] * len(test.y)}
without = {name: cells for name, cells in train.X.items() if name != "odor"}
remedies = {
    "C4.5, divided": C45Classifier().fit(train.X, train.y),
    "C4.5, an error costs 1000": C45Classifier(costs=[[0, 1], [1000, 0]]).fit(
        train.X, train.y
    ),
    "CART, surrogates": CARTClassifier(missing="surrogate").fit(train.X, train.y),
    "C4.5, grown without odor": C45Classifier().fit(without, train.y),
}
with_a_cold = {}
print("                           poisoned  eaten")
for name, tree in remedies.items():
    cells = {column: unsmelled_test[column] for column in tree.feature_names_in_}
    counts = confusion_matrix(test.y, tree.predict(cells), labels=["e", "p"])
    with_a_cold[name] = int(counts[1, 0]), int(counts[0, 0])
    print(f"{name:<26} {counts[1, 0]:>8}  {counts[0, 0]:>5}")
print(f"{'of':<26} {test.y.count('p'):>8}  {test.y.count('e'):>5}")

# %% [script only]

figures = {
    "rows": (len(train.y), len(test.y)),
    "scores": scores,
    "few": few,
    "rules": (len(rules), len(listed)),
    "listed_right": listed_right,
    "answers": (why.prediction, unsmelled.prediction),
    "with_a_cold": with_a_cold,
}
gallery = {
    **{name: (score.leaves, score.test) for name, score in scores.items()},
    "C4.5, its rules in short": (len(listed), listed_right),
    **{f"with a cold: {name}": counts for name, counts in with_a_cold.items()},
}
