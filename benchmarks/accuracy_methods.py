"""The methods that the accuracy benchmark compares: a line for each.

A method is a name and how it is fitted: from a table, its classes and all class names
to a model with ``predict`` and ``predict_proba``, columns in the order of the names.
``REFERENCE`` are programs whose errors on the shared folds were recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from branchwise import RandomForestClassifier, fit_tree
from branchwise.ensemble.fit import fit_ensemble
from branchwise.recipe import C45, CART, Recipe
from branchwise.recipe.ensemble_recipe import rules_recipe

#: From table, classes of the rows and all class names to a fitted model.
Fit = Callable[[Any, Any, list[str]], Any]


def tree(recipe: Recipe) -> Fit:
    """Fit a tree by a recipe."""

    def fit(X: Any, y: Any, classes: list[str]) -> Any:
        return fit_tree(X, y, recipe, classes=classes)

    return fit


def estimator(make: Callable[[], Any]) -> Fit:
    """Fit an estimator of scikit-learn's interface."""

    def fit(X: Any, y: Any, classes: list[str]) -> Any:  # noqa: ARG001
        return make().fit(X, y)

    return fit


def rules(X: Any, y: Any, classes: list[str]) -> Any:
    """Fit rules that vote."""
    return fit_ensemble(X, y, rules_recipe({}), classes=classes)


GROUPS = replace(C45, branching="groups")
PRUNED = replace(CART, pruning="cost-complexity")

METHODS: dict[str, Fit] = {
    "C4.5": tree(C45),
    "C4.5 groups": tree(GROUPS),
    "C4.5 cross-validated": tree(replace(GROUPS, cross_validate=True)),
    "C4.5 groups unpruned": tree(replace(GROUPS, pruning=None)),
    "CART": tree(CART),
    "CART 1-SE": tree(replace(PRUNED, ccp_alpha="1-se")),
    "CART best": tree(replace(PRUNED, ccp_alpha="best")),
    "forest": estimator(lambda: RandomForestClassifier(random_state=0, n_jobs=1)),
    "forest, columns chosen": estimator(
        lambda: RandomForestClassifier(max_features="oob", random_state=0, n_jobs=1)
    ),
    "rules": rules,
}
#: Names of recorded programs, as parity.py names their figures.
REFERENCE = {
    "J48": "j48",
    "R8 -s": "c45r8_double_subset",
    "C5.0": "c50",
    "C5.0 rules": "c50_rules",
    "rpart": "rpart_full",
    "rpart 1-SE": "rpart_1se",
}
