"""CART: two-way splits, cost-complexity pruning, classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import RegressorMixin

from branchwise.errors import ParameterError
from branchwise.estimators.base import TreeClassifier, TreeEstimator, documented
from branchwise.recipe import CART, FOR_NUMBERS, CriterionFunction, Policy, named

_NO_MEDIANS = (
    " Absolute error needs medians, which are not sums over rows, so that counts "
    "cannot carry them."
)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class CARTClassifier(TreeClassifier):
    """Breiman's classification trees: two-way splits of numbers and of categories.

    Categories are split in two groups of values, with their names; no encoder is
    needed. ``docs/cart.md`` says how groups are found.

    A ``ccp_alpha`` above 0 implies ``pruning="cost-complexity"``. A criterion of your
    own is a function, as for :class:`ID3Classifier`.

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

    _algorithm = CART
    criterion: str | CriterionFunction = "gini"
    missing: Policy = "largest"
    unseen: Policy = "largest"


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class CARTRegressor(RegressorMixin, TreeEstimator):  # type: ignore[misc]
    """Breiman's regression trees: two-way splits, the mean at each leaf.

    The criterion "absolute_error" is not offered: it needs medians, which are not sums
    over rows, so counts cannot carry them.

    Examples
    --------
    >>> from branchwise import CARTRegressor
    >>> tree = CARTRegressor(max_depth=1).fit({"x": [1, 2, 8, 9]}, [1.0, 1.0, 5.0, 6.0])
    >>> tree.predict({"x": [0, 10]}).tolist()
    [1.0, 5.5]
    """

    _algorithm = CART
    criterion: str = "variance"
    missing: Policy = "largest"
    unseen: Policy = "largest"

    def _check_criterion(self, criterion: object) -> None:
        if not isinstance(criterion, str) or criterion not in FOR_NUMBERS:
            names = " or ".join(map(repr, named(FOR_NUMBERS)))
            raise ParameterError(
                f"criterion must be {names} to predict numbers. Got "
                f"{criterion!r} instead."
                + (_NO_MEDIANS if criterion == "absolute_error" else "")
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags
