"""Credit: who will pay back.

1000 loans of a German bank, 700 paid back (good) and 300 not (bad). The table comes
with the costs of errors: a loan that is not paid back costs five times
as much as a refused loan that would have been. The study grows trees for these costs,
explains one refusal to the person refused, and finds what would have to change.
"""

import warnings

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, confusion_matrix
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from _pictures import calibration, confusion
from _tables import compare_trees, load, look_at, split
from branchwise import C45Classifier, CARTClassifier, FitWarning, ID3Classifier

# Some trees are grown to the end, to compare. Fitting warns of trees as large as these.
warnings.filterwarnings("ignore", category=FitWarning)

# %%
# ## The table

loans = load("credit-g")
look_at(loans)

# %%
# ## Which tree, if all errors were alike?
#
# 700 loans to learn from, 300 to test. Accuracy is a poor guide: to lend to everybody
# is right seven times of ten.

train, test = split(loans, test_size=0.3)
trees = {
    "ID3": ID3Classifier(),
    "ID3, pruned by errors": ID3Classifier(pruning="error-based"),
    "C4.5": C45Classifier(),
    "CART": CARTClassifier(),
    "CART, best price": CARTClassifier(ccp_alpha="best"),
    "CART, 20 cases a leaf": CARTClassifier(min_samples_leaf=20),
}
scores = compare_trees(trees, train, test)

# %%
# ## What errors cost
#
# A row for each true class and a column for each predicted class, bad and good. With
# `costs` a leaf predicts the class that costs least, so that it predicts good only
# where fewer than one case of six is bad. This needs leaves with enough cases.

COSTS = [[0, 5], [1, 0]]
trees |= {
    "C4.5, costs": C45Classifier(costs=COSTS),
    "CART, best price, costs": CARTClassifier(ccp_alpha="best", costs=COSTS),
    "CART, 20 cases a leaf, costs": CARTClassifier(min_samples_leaf=20, costs=COSTS),
}


def counted(truth: list[str], predicted: list[str]) -> np.ndarray:
    return confusion_matrix(truth, predicted, labels=["bad", "good"])


def mean_cost(truth: list[str], predicted: list[str]) -> float:
    return float((counted(truth, predicted) * COSTS).sum() / len(truth))


predicted = {
    "lend to everybody": ["good"] * len(test.y),
    "lend to no one": ["bad"] * len(test.y),
}
predicted |= {
    name: tree.fit(train.X, train.y).predict(test.X) for name, tree in trees.items()
}
costs = {name: mean_cost(test.y, said) for name, said in predicted.items()}
for name, cost in costs.items():
    print(f"{name:<29} {cost:.3f} a loan")

# %%
# 300 loans are few. Ten folds use all 1000 for testing. The order is the same, and the
# best is nearer to lending to no one, at 0.7, than the one split suggested.

folds = StratifiedKFold(10, shuffle=True, random_state=0)
in_folds = {
    name: mean_cost(
        loans.y, cross_val_predict(trees[name], loans.rows(), loans.y, cv=folds)
    )
    for name in ("CART", "CART, 20 cases a leaf", "CART, 20 cases a leaf, costs")
}
for name, cost in in_folds.items():
    print(f"{name:<29} {cost:.3f} a loan")

# %%
# The tree that costs least turns away many who would pay: that is what five to one
# means. Rows are true classes, columns predicted ones.

careful = trees["CART, 20 cases a leaf, costs"]
matrix = counted(test.y, predicted["CART, 20 cases a leaf, costs"])
print(matrix)
pictures = [confusion("confusion", matrix, ["bad", "good"])]
pictures[-1]

# %%
# ## Can its probabilities be trusted?
#
# Costs change predictions, not probabilities.

bad = np.array(test.y) == "bad"
curves, brier = {}, {}
for name in ("CART", "CART, 20 cases a leaf, costs"):
    said = trees[name].predict_proba(test.X)[:, 0]
    brier[name] = brier_score_loss(bad, said)
    came_true, mean_said = calibration_curve(bad, said, n_bins=4)
    curves[name] = mean_said, came_true
    print(f"{name}: Brier score {brier[name]:.4f}")
    for one, true in zip(mean_said, came_true, strict=True):
        print(f"  said {one:6.1%}, came true {true:6.1%}")
pictures.append(calibration("calibration", curves))
pictures[-1]

# %%
# ## Rules
#
# Where the bank can lend with the least risk. Some split on age: whether a bank may is
# for the law to say, and the rules make it visible.

rules = careful.model_.rules(simplify=True)
for rule in rules.for_class("good").sort_by("confidence"):
    print(rule.sentence(), end="\n\n")

# %%
# ## A refusal, explained
#
# The first of the test loans that was refused although it was paid back.

refused = next(
    row
    for row, truth, said in zip(
        test.rows(), test.y, careful.predict(test.X), strict=True
    )
    if truth == "good" and said == "bad"
)
why = careful.model_.explain(refused)
print(why)

# %%
# ## What would have to change?
#
# The fewest changes that give another prediction, then the smallest. Without limits
# the tree proposes changes that are impossible or unreasonable.

anything = careful.model_.what_if(refused, "good")
print(anything)

# %%
# So we say what must stay, what may move in one direction only, and what is whole. The
# advice is about the tree, not about the world: it does not make a loan safer.

advice = careful.model_.what_if(
    refused,
    "good",
    immutable=[
        "age",
        "checking_status",
        "credit_history",
        "existing_credits",
        "foreign_worker",
        "job",
        "num_dependents",
        "personal_status",
        "purpose",
        "residence_since",
    ],
    monotone={"credit_amount": "down", "duration": "down"},
    whole=["credit_amount", "duration"],
)
print(advice if advice else advice.reason)

# %% [script only]

figures = {
    "rows": (len(train.y), len(test.y)),
    "scores": scores,
    "costs": costs,
    "in_folds": in_folds,
    "matrix": matrix.tolist(),
    "brier": brier,
    "rules": (len(rules), len(rules.for_class("good"))),
    "answer": why.prediction,
    "anything": [str(change) for change in anything.changes],
    "advice": [str(change) for change in advice.changes],
    "now_good": bool(advice) and str(careful.predict([advice.best.row])[0]) == "good",
    "pictures": pictures,
}
gallery = {
    **{name: (score.leaves, score.test) for name, score in scores.items()},
    **{f"cost of a loan: {name}": cost for name, cost in costs.items()},
    **{f"cost in ten folds: {name}": cost for name, cost in in_folds.items()},
}
