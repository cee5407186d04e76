"""CART: two-way splits, cost-complexity pruning, classes or numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import RegressorMixin

from branchwise.errors import ParameterError
from branchwise.estimators.base import TreeClassifier, TreeEstimator
from branchwise.recipe import (
    CART,
    FOR_NUMBERS,
    CriterionFunction,
    Policy,
    Probabilities,
    Pruning,
    Recipe,
    named,
)

_NO_MEDIANS = (
    " Absolute error needs medians, which are not sums over rows, so that counts "
    "cannot carry them."
)


class CARTClassifier(TreeClassifier):
    """Breiman's classification trees: two-way splits of numbers and of categories.

    Categories are split in two groups of values, with their names; no encoder is
    needed. ``docs/cart.md`` says how groups are found.

    Parameters
    ----------
    criterion : {"gini", "gain", "gain_ratio"} or callable, default="gini"
        What makes a split good; "entropy" and "log_loss" are other names of "gain".
    ccp_alpha : float, "best" or "1-se", default=0.0
        What a leaf costs in units of impurity; or chosen by cross-validation, the
        best or the largest within one standard error of it.
    missing : {"largest", "branch", "learned", "surrogate", "split", "node", "error"}
        What a missing value does: follows the larger branch, has a third branch of
        its own, follows the side that training found better, or surrogate splits.
    max_depth, min_samples_split, min_samples_leaf, min_gain, categorical_features, \
categories, unseen, class_weight, max_bins, max_leaf_nodes, max_p_value, \
pruning, confidence, raise_subtrees, tolerance, validation_fraction, priors, costs, \
probabilities, m, n_jobs
        As in :class:`ID3Classifier`.

    Examples
    --------
    >>> from branchwise import CARTClassifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> print(CARTClassifier(max_depth=2).fit(tennis.X, tennis.y).model_)
    outlook = cloudy: yes (4)
    outlook in {rainy, sunny}:
    |   humidity = high: no (5/1)
    |   humidity = normal: yes (5/1)
    """

    def __init__(
        self,
        criterion: str | CriterionFunction = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        ccp_alpha: float | str = 0.0,
        categorical_features: object = "from_dtype",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: Policy = "largest",
        unseen: Policy = "largest",
        class_weight: Mapping[Any, float] | str | None = None,
        max_bins: int | None = None,
        max_leaf_nodes: int | None = None,
        max_p_value: float | None = None,
        pruning: Pruning | None = None,
        confidence: float = 0.25,
        raise_subtrees: bool = True,
        tolerance: float = 0.0,
        validation_fraction: float | None = None,
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
        self.ccp_alpha = ccp_alpha
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
        self.priors = priors
        self.costs = costs
        self.probabilities = probabilities
        self.m = m
        self.n_jobs = n_jobs

    def _recipe(self) -> Recipe:
        return self._filled(CART)


class CARTRegressor(RegressorMixin, TreeEstimator):  # type: ignore[misc]
    """Breiman's regression trees: two-way splits, the mean at each leaf.

    Parameters
    ----------
    criterion : {"variance", "squared_error", "poisson"}, default="variance"
        What makes a split good; "squared_error" is another name of "variance".
        "absolute_error" is not offered: it needs medians, which are not sums over
        rows, so counts cannot carry them.
    max_depth, min_samples_split, min_samples_leaf, min_gain, ccp_alpha, \
categorical_features, categories, missing, unseen, max_bins, max_leaf_nodes, \
max_p_value, pruning, tolerance, validation_fraction, n_jobs
        As in :class:`CARTClassifier`.

    Examples
    --------
    >>> from branchwise import CARTRegressor
    >>> tree = CARTRegressor(max_depth=1).fit({"x": [1, 2, 8, 9]}, [1.0, 1.0, 5.0, 6.0])
    >>> tree.predict({"x": [0, 10]}).tolist()
    [1.0, 5.5]
    """

    def __init__(
        self,
        criterion: str = "variance",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        ccp_alpha: float | str = 0.0,
        categorical_features: object = "from_dtype",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: Policy = "largest",
        unseen: Policy = "largest",
        max_bins: int | None = None,
        max_leaf_nodes: int | None = None,
        max_p_value: float | None = None,
        pruning: Pruning | None = None,
        tolerance: float = 0.0,
        validation_fraction: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.ccp_alpha = ccp_alpha
        self.categorical_features = categorical_features
        self.categories = categories
        self.missing = missing
        self.unseen = unseen
        self.max_bins = max_bins
        self.max_leaf_nodes = max_leaf_nodes
        self.max_p_value = max_p_value
        self.pruning = pruning
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs

    def _check_criterion(self, criterion: object) -> None:
        if not isinstance(criterion, str) or criterion not in FOR_NUMBERS:
            raise ParameterError(
                f"criterion must be {_for_numbers()} to predict numbers. Got "
                f"{criterion!r} instead."
                + (_NO_MEDIANS if criterion == "absolute_error" else "")
            )

    def _recipe(self) -> Recipe:
        return self._filled(CART)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags


def _for_numbers() -> str:
    return " or ".join(repr(name) for name in named(FOR_NUMBERS))
