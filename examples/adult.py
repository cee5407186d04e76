"""Adult: who earns more than 50,000 dollars a year.

A sample of the census of 1994: 4000 persons to learn from and 2000 to test, numbers
and text side by side, unknown employers among them. Here the classes cannot be told
apart, and a tree grown to the end learns noise: the study prunes it, looks at missing
values, at how far probabilities can be trusted, and at who bears the errors.
"""

import warnings

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from _pictures import calibration
from _tables import compare_trees, load, look_at
from branchwise import C45Classifier, CARTClassifier, FitWarning, ID3Classifier

# Some trees are grown to the end, to compare. Fitting warns of trees as large as these.
warnings.filterwarnings("ignore", category=FitWarning)

# %%
# ## The table
#
# `fnlwgt`, a number of the census office, is different in nearly every row: a column
# for trees to learn noise from. `education-num` says the same as `education`.

train, test = load("adult_train"), load("adult_test")
look_at(train)

# %%
# ## Which tree?
#
# Grown to the end, trees know every training row and are only a little better than the
# guess on others. Pruned, they are smaller and better. CART's price of a leaf is chosen
# by cross-validation: the best, or that of the smallest tree within one standard error.

trees = {
    "ID3": ID3Classifier(),
    "ID3, pruned by errors": ID3Classifier(pruning="error-based"),
    "C4.5": C45Classifier(),
    "CART": CARTClassifier(),
    "CART, best price": CARTClassifier(ccp_alpha="best"),
    "CART, 1-se price": CARTClassifier(ccp_alpha="1-se"),
}
scores = compare_trees(trees, train, test)

# %%
# Seven leaves do nearly as well as any.

small = trees["CART, 1-se price"].model_
print(small)

# %%
# Pruning afterwards, without growing again: all trees of the pruning path, and their
# errors on the test rows. (To choose a tree by these would spoil them for testing.)

path = trees["CART"].model_.pruning_path(test.X, test.y)
print(f"{len(path)} trees, every twelfth of them:\n")
print("leaves  errors: train  test")
columns = path.n_leaves, path.train_error, path.validation_error
for leaves, on_train, on_test in list(zip(*columns, strict=True))[::12]:
    print(f"{leaves:>6}        {on_train:.4f}  {on_test:.4f}")

# %%
# ## Missing values
#
# Employer, occupation and country are unknown for some. What a tree does with them is a
# choice, and none is always best. Here one or two rows of a hundred depend on it.

policies = {}
for missing in ("largest", "branch", "split", "learned", "surrogate"):
    tree = CARTClassifier(ccp_alpha=0.001, missing=missing).fit(train.X, train.y)
    policies[missing] = tree.score(test.X, test.y)
    print(f'missing="{missing}"'.ljust(22), f"{policies[missing]:.4f}")

# %%
# ## Rules for people

for rule in small.rules(simplify=True).sort_by("coverage"):
    print(rule.sentence(), end="\n\n")

# %%
# ## One person
#
# Why, and what a larger tree says about the same person.

person = test.rows()[1]
why = small.explain(person)
print(why)

# %%
# What would the best-priced tree say differently about the test rows?

diff = small.diff(trees["CART, best price"].model_, test.X, test.y)
print(f"{diff.predictions.agreement:.1%} of the test rows get the same prediction")

# %%
# ## Can the probabilities be trusted?
#
# A leaf of two cases that agree says 100 %, and is wrong about it. Leaves of at least
# twenty cases, or smoothing, give better probabilities than accuracy alone tells: the
# Brier score is the mean squared error of the probability.

rich = np.array(test.y) == ">50K"
sure = {
    "CART": trees["CART"],
    "C4.5": trees["C4.5"],
    "C4.5, Laplace": C45Classifier(probabilities="laplace").fit(train.X, train.y),
    "CART, 20 cases a leaf": CARTClassifier(min_samples_leaf=20).fit(train.X, train.y),
}
trusted, curves = {}, {}
print("                        Brier     AUC")
for name, tree in sure.items():
    said = tree.predict_proba(test.X)[:, list(tree.classes_).index(">50K")]
    trusted[name] = brier_score_loss(rich, said), roc_auc_score(rich, said)
    came_true, mean_said = calibration_curve(rich, said, n_bins=5)
    curves[name] = mean_said, came_true
    print(f"{name:<22} {trusted[name][0]:.4f}  {trusted[name][1]:.4f}")

# %%
# Said, and come true, in fifths of the probability.

for name in ("CART", "CART, 20 cases a leaf"):
    print(name)
    for said, true in zip(*curves[name], strict=True):
        print(f"  said {said:6.1%}, came true {true:6.1%}")
picture = calibration("calibration", curves)
picture

# %%
# ## Who bears the errors?
#
# The tree of seven leaves splits on neither sex nor race, and yet treats women and men
# differently: of those who do earn more it finds fewer women.

said = np.array(small.predict(test.X)) == ">50K"
found = {}
for sex in ("Female", "Male"):
    here = np.array(test.X["sex"]) == sex
    found[sex] = float(said[here & rich].mean())
    print(
        f"{sex:<6} {here.sum():>5} persons, {rich[here].mean():.1%} earn more; it says "
        f"so of {said[here].mean():.1%} and finds {found[sex]:.1%} of them"
    )

# %% [script only]

figures = {
    "rows": (len(train.y), len(test.y)),
    "scores": scores,
    "path": (len(path), int(path.n_leaves[0])),
    "policies": policies,
    "answer": why.prediction,
    "agreement": diff.predictions.agreement,
    "trusted": trusted,
    "found": found,
    "pictures": [picture],
}
gallery = {
    **{name: (score.leaves, score.test) for name, score in scores.items()},
    **{f"probabilities of {name}": pair for name, pair in trusted.items()},
    **{f"found by seven leaves, {sex}": share for sex, share in found.items()},
}
