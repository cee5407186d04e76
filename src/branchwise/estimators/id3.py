"""ID3: one branch per value, chosen by information gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from branchwise.estimators.base import TreeClassifier
from branchwise.recipe import (
    ID3,
    CriterionFunction,
    Policy,
    Probabilities,
    Pruning,
    Recipe,
)


class ID3Classifier(TreeClassifier):
    """A decision tree with one branch per value, chosen by information gain.

    Takes tables as they are: text, categories, booleans, numbers, missing cells.
    Number columns are split at exact thresholds by the same gain. The same data
    give the same tree, whatever the order of the rows.

    Parameters
    ----------
    criterion : {"gain", "gain_ratio", "gini"} or callable, default="gain"
        What makes a split good; "entropy" and "log_loss" are other names of "gain".
        A callable gets the class weights of k nodes, shape (k, classes), and of
        their branches, shape (k, branches, classes), and returns k scores, the
        higher the better.
    max_depth : int or None, default=None
        The largest number of splits from the root to a leaf; 0 is the root alone.
    min_samples_split : int or float, default=2
        The fewest cases a node needs to be split; a float is a share.
    min_samples_leaf : int or float, default=1
        The fewest cases that every branch of a split must get; a float is a share.
    min_gain : float, default=0.0
        The least gain, at the node and in bits, that a split must bring.
    categorical_features : "from_dtype", "all", mask, indices or names
        Number columns whose values are names. Text, categories and booleans always
        are.
    categories : dict or None, default=None
        The possible values of columns, by name or index, in order. They may name
        values that never occur; a value that is not among them is an error.
    missing : {"branch", "split", "largest", "node", "error"}, default="branch"
        What a missing value does: has a branch of its own, goes down every branch by
        weight, follows the largest branch, stops at the node, or is an error.
    unseen : {"branch", "split", "largest", "node", "error"}, default="node"
        What a value does at prediction that training did not have; "branch" takes
        it for a missing one.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    max_bins : int or None, default=None
        The largest number of bins of about equal size of a number column, between
        which thresholds are; None tries every exact threshold.
    max_leaf_nodes : int or None, default=None
        The most leaves; the splits that take away most impurity come first.
    max_p_value : float or None, default=None
        The largest p-value of a split, by a chi-square test that accounts for the
        number of values and of columns; splits with a larger one are not made.
    pruning : {"error-based", "reduced-error", "cost-complexity"} or None
        How the tree is made smaller after it is grown.
    confidence : float, default=0.25
        Error-based pruning (Quinlan's -c): the lower, the smaller the tree.
    raise_subtrees : bool, default=True
        Error-based pruning: whether a branch may take the place of its parent.
    tolerance : float, default=0.0
        Reduced-error pruning: by how much the accuracy on the validation rows may
        suffer with each subtree that goes.
    validation_fraction : float or None, default=None
        Reduced-error pruning: the share of the rows that is set aside, chosen by
        what the rows contain; or pass ``validation`` to ``fit``.
    ccp_alpha : float, "best" or "1-se", default=0.0
        Cost-complexity pruning: what a leaf costs in units of impurity; or chosen by
        cross-validation, the best or the largest within one standard error of it.
    priors : dict or None, default=None
        The true shares of the classes, where these differ from their shares of the
        training rows.
    costs : sequence of sequences or None, default=None
        What it costs to predict class j where class i is true, a row for each true
        class, in sorted order; the class of the least expected cost is predicted
        instead of the most probable. Give ``class_weight``, too, to let them guide
        growth.
    probabilities : {"frequencies", "laplace", "m-estimate"}, default="frequencies"
        How leaves turn weights into probabilities: as they are, with one case more
        for every class, or with ``m`` cases more that are shared out as in the root.
    m : float, default=2.0
        The number of these cases.
    n_jobs : int or None, default=None
        Threads to read the table and to grow with; None is one, -1 all cores. The
        tree is the same.

    Attributes
    ----------
    model_ : Model
        The fitted model: schema, tree and recipe.
    tree_ : Tree
        The arrays of the tree.
    classes_ : ndarray
        The classes in sorted order.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the table had names.
    feature_importances_ : ndarray
        How much each column contributed, as shares of 1.

    Examples
    --------
    >>> from branchwise import ID3Classifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> tree = ID3Classifier().fit(tennis.X, tennis.y)
    >>> print(tree.model_)
    outlook = cloudy: yes (4)
    outlook = rainy:
    |   wind = strong: no (2)
    |   wind = weak: yes (3)
    outlook = sunny:
    |   humidity = high: no (3)
    |   humidity = normal: yes (2)
    """

    def __init__(
        self,
        criterion: str | CriterionFunction = "gain",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        categorical_features: object = "from_dtype",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: Policy = "branch",
        unseen: Policy = "node",
        class_weight: Mapping[Any, float] | str | None = None,
        max_bins: int | None = None,
        max_leaf_nodes: int | None = None,
        max_p_value: float | None = None,
        pruning: Pruning | None = None,
        confidence: float = 0.25,
        raise_subtrees: bool = True,
        tolerance: float = 0.0,
        validation_fraction: float | None = None,
        ccp_alpha: float | str = 0.0,
        priors: Mapping[Any, float] | None = None,
        costs: Sequence[Sequence[float]] | None = None,
        probabilities: Probabilities = "frequencies",
        m: float = 2.0,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.categorical_features = categorical_features
        self.categories = categories
        self.missing = missing
        self.unseen = unseen
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.max_leaf_nodes = max_leaf_nodes
        self.max_p_value = max_p_value
        self.pruning = pruning
        self.confidence = confidence
        self.raise_subtrees = raise_subtrees
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.ccp_alpha = ccp_alpha
        self.priors = priors
        self.costs = costs
        self.probabilities = probabilities
        self.m = m
        self.n_jobs = n_jobs

    def _recipe(self) -> Recipe:
        return self._filled(ID3)
