"""What a node costs as a leaf: its share of all weight times its impurity."""

from __future__ import annotations

import numpy as np

from branchwise.counts import Floats
from branchwise.criteria import CriterionFunction
from branchwise.prune.surgery import stopped_weights
from branchwise.tree import Tree


def leaf_risk(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the impurity of every node times its share of the training weight.

    Classes have the Gini impurity where the tree was grown by it, else entropy in
    bits; numbers have their variance, or half their Poisson deviance less what is the
    same for every tree.
    """
    weight = tree.weights.sum(axis=1)
    risk: Floats = weight / weight[0] * impurity(tree, criterion)
    return risk


def impurity(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the impurity of every node."""
    if tree.mean is None or tree.deviation is None:
        return class_impurity(tree.weights, criterion)
    if criterion != "poisson":
        return tree.deviation**2
    # Sums of y log y are not kept, but leaves have the same one in every tree.
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


def left_behind(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the risk of the cases that stop at inner nodes."""
    stopped = stopped_weights(tree)
    weight = stopped.sum(axis=1) / tree.weights[0].sum()
    if tree.predicts_numbers:
        # What they are alone is not known; that they are like the node is a guess.
        return np.where(tree.is_leaf, 0.0, weight * impurity(tree, criterion))
    return np.where(tree.is_leaf, 0.0, weight * class_impurity(stopped, criterion))
