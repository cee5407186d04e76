"""The risk of leaves in cost-complexity pruning: their errors, or their impurity.

Breiman, Friedman, Olshen and Stone ("CART", 1984, section 3.3) prune by the rate of
misclassification; with impurity, as in scikit-learn, leaves that predict the same class
with other probabilities are worth keeping, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.recipe import Recipe
from branchwise.recipe.parameters import CriterionFunction
from branchwise.tree.tree import Tree, at_label, stopped_weights


@dataclass(frozen=True)
class Errors:
    """Wrong predictions as the risk of leaves, or what they cost."""

    costs: tuple[tuple[float, ...], ...] | None = None

    def of(self, tree: Tree, weights: Floats) -> Floats:
        """Return the errors that nodes make with cases of these class weights."""
        if self.costs is not None:
            return at_label(tree, weights @ np.array(self.costs))
        wrong: Floats = weights.sum(axis=1) - at_label(tree, weights)
        return wrong


#: What the risk of a leaf is made of: its errors, or its impurity by a criterion.
Measure = str | CriterionFunction | Errors


def measure_of(recipe: Recipe) -> Measure:
    """Return the measure that a recipe prunes by."""
    return Errors(recipe.costs) if recipe.counts_errors else recipe.criterion


def leaf_risk(tree: Tree, measure: Measure) -> Floats:
    """Return the risk of every node by its share of the training weight.

    That is its errors, or its impurity. Classes have Gini impurity where the tree was
    grown by it, else entropy in bits; numbers have variance, or half the Poisson
    deviance up to a constant.
    """
    weight = tree.weights.sum(axis=1)
    if isinstance(measure, Errors):
        errors: Floats = measure.of(tree, tree.weights) / weight[0]
        return errors
    risk: Floats = weight / weight[0] * impurity(tree, measure)
    return risk


def impurity(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the impurity of every node."""
    if tree.mean is None or tree.deviation is None:
        return class_impurity(tree.weights, criterion)
    if criterion != "poisson":
        return tree.deviation**2
    # Sums of y log y are left out: their total is the same for all trees.
    rate = np.where(tree.mean > 0, tree.mean, 1.0)
    deviance: Floats = np.maximum(tree.mean, 0.0) * np.log(tree.mean.max() / rate)
    return deviance


def class_impurity(weights: Floats, criterion: str | CriterionFunction) -> Floats:
    """Return the Gini impurity, or else the entropy, of rows of class weights."""
    total = weights.sum(axis=1, keepdims=True)
    share = weights / np.where(total > 0, total, 1.0)
    if criterion == "gini":
        gini: Floats = 1.0 - (share * share).sum(axis=1)
        return gini
    logs = np.log2(np.where(share > 0, share, 1.0))
    entropy: Floats = -(share * logs).sum(axis=1)
    return entropy + 0.0


def left_behind(tree: Tree, measure: Measure) -> Floats:
    """Return the risk of the cases that stop at inner nodes."""
    stopped = stopped_weights(tree)
    total = tree.weights[0].sum()
    if isinstance(measure, Errors):
        return np.where(tree.is_leaf, 0.0, measure.of(tree, stopped) / total)
    weight = stopped.sum(axis=1) / total
    if tree.is_regression:
        # Their own distribution is not known; that of the node is assumed.
        return np.where(tree.is_leaf, 0.0, weight * impurity(tree, measure))
    return np.where(tree.is_leaf, 0.0, weight * class_impurity(stopped, measure))
