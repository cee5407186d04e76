"""C4.5: gain ratio, fractional cases, error-based pruning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from branchwise.errors import ParameterError
from branchwise.estimators.base import TreeClassifier
from branchwise.recipe import C45, Policy, Probabilities, Pruning, Recipe


class C45Classifier(TreeClassifier):
    """Quinlan's C4.5: the trees of release 8 and of Weka's J48, node by node.

    Splits are chosen by gain ratio among those that gain at least the average,
    thresholds are values of the table, with a penalty for their number,
    cases with a missing value go down every branch by weight, and the tree is pruned
    by pessimistic estimates of its errors. ``docs/c45.md`` has all rules.

    Parameters
    ----------
    confidence : float, default=0.25
        Quinlan's -c as a share: the lower, the more is pruned.
    min_samples_branch : int or float, default=2
        Quinlan's -m: the fewest cases that at least two branches of a split must
        get; a float is a share.
    group_values : bool, default=False
        Quinlan's -s: whether values may share a branch.
    prune : bool, default=True
        Whether the tree is pruned (False: J48's -U).
    pruning : {"error-based", "reduced-error", "cost-complexity"}
        How it is pruned; C4.5's own way is "error-based".
    raise_subtrees : bool, default=True
        Whether a branch may take the place of its parent (False: J48's -S).
    threshold : {"value", "midpoint"}, default="value"
        Whether a threshold is a value of the training table, as in C4.5, or the
        midpoint between two.
    max_depth, min_samples_split, min_samples_leaf, min_gain, categorical_features, \
categories, missing, unseen, class_weight, max_bins, max_leaf_nodes, \
max_p_value, tolerance, validation_fraction, ccp_alpha, priors, costs, \
probabilities, m, n_jobs
        As in :class:`ID3Classifier`; the defaults are C4.5's.

    Attributes
    ----------
    model_, tree_, classes_, n_features_in_, feature_names_in_, feature_importances_
        As in :class:`ID3Classifier`.

    Examples
    --------
    >>> from branchwise import C45Classifier, datasets
    >>> golf = datasets.load("tennis")
    >>> print(C45Classifier().fit(golf.X, golf.y).model_)
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
        confidence: float = 0.25,
        min_samples_branch: float = 2,
        group_values: bool = False,
        prune: bool = True,
        pruning: Pruning = "error-based",
        raise_subtrees: bool = True,
        threshold: str = "value",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 0,
        min_gain: float = 0.0,
        categorical_features: object = "from_dtype",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: Policy = "split",
        unseen: Policy = "split",
        class_weight: Mapping[Any, float] | str | None = None,
        max_bins: int | None = None,
        max_leaf_nodes: int | None = None,
        max_p_value: float | None = None,
        tolerance: float = 0.0,
        validation_fraction: float | None = None,
        ccp_alpha: float | str = 0.0,
        priors: Mapping[Any, float] | None = None,
        costs: Sequence[Sequence[float]] | None = None,
        probabilities: Probabilities = "frequencies",
        m: float = 2.0,
        n_jobs: int | None = None,
    ) -> None:
        self.confidence = confidence
        self.min_samples_branch = min_samples_branch
        self.group_values = group_values
        self.prune = prune
        self.pruning = pruning
        self.raise_subtrees = raise_subtrees
        self.threshold = threshold
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
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.ccp_alpha = ccp_alpha
        self.priors = priors
        self.costs = costs
        self.probabilities = probabilities
        self.m = m
        self.n_jobs = n_jobs

    def _recipe(self) -> Recipe:
        if not self.prune and self.pruning != C45.pruning:
            raise ParameterError(
                f"pruning={self.pruning!r} has no effect with prune=False. Leave one "
                "of them out."
            )
        branching = "groups" if self.group_values else "values"
        return self._filled(C45, branching=branching)
