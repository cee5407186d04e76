"""The scikit-learn estimators: parameters in, a fitted model out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import RegressorMixin

from branchwise.errors import ParameterError
from branchwise.estimators.base import (
    TreeClassifier,
    TreeEstimator,
    check_numbers_criterion,
)
from branchwise.estimators.fitted import documented
from branchwise.recipe import C45, CART, ID3, Recipe
from branchwise.recipe.parameters import (
    PARAMETERS,
    CriterionFunction,
    ManyValues,
    Policy,
    Pruning,
)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class ID3Classifier(TreeClassifier):
    """A decision tree with one branch per value, chosen by information gain.

    Takes tables as they are: text, categories, booleans, numbers, missing cells.
    Number columns are split at exact thresholds by the same gain. The same data
    give the same tree, whatever the order of the rows.

    A criterion of your own is a function of the class weights of k nodes, shape (k,
    classes), and of their branches, shape (k, branches, classes), that returns k
    scores, the higher the better.

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

    _algorithm = ID3
    criterion: str | CriterionFunction = "gain"


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class C45Classifier(TreeClassifier):
    """Quinlan's C4.5: the trees of release 8 and of Weka's J48, node by node.

    Splits are chosen by gain ratio among those that gain at least the average,
    thresholds are values of the table, with a penalty for their number,
    cases with a missing value go down every branch by weight, and the tree is pruned
    by pessimistic estimates of its errors. ``docs/c45.md`` has all rules.

    Examples
    --------
    >>> from branchwise import C45Classifier, datasets
    >>> golf = datasets.load("tennis")
    >>> tree = C45Classifier(min_samples_branch=1).fit(golf.X, golf.y)
    >>> tree.get_n_leaves(), tree.predict(golf.X)[:3].tolist()
    (5, ['no', 'no', 'yes'])
    """

    _algorithm = C45
    min_samples_leaf: float = 0
    min_samples_branch: float = 2
    group_values: bool = False
    cross_validate: bool = False
    threshold: str = "value"
    missing: Policy = "split"
    unseen: Policy = "split"
    prune: bool = True
    pruning: Pruning | None = "error-based"

    @property
    def recipe(self) -> Recipe:
        """The algorithm and its limits, as the parameters have it."""
        for name in ("group_values", "prune"):
            PARAMETERS[name].check(vars(self)[name])
        if self.cross_validate is True and not self.group_values:
            raise ParameterError(
                "cross_validate=True has no effect unless group_values is True. Got "
                "group_values=False."
            )
        if not self.prune and self.pruning != C45.pruning:
            raise ParameterError(
                f"pruning={self.pruning!r} has no effect with prune=False. Leave one "
                "of them out."
            )
        return self._filled(branching="groups" if self.group_values else "values")


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
    missing: Policy = "learned"
    unseen: Policy = "largest"
    many_values: ManyValues = "corrected"


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
    missing: Policy = "learned"
    unseen: Policy = "largest"
    many_values: ManyValues = "corrected"

    def _check_criterion(self, criterion: object) -> None:
        check_numbers_criterion(criterion)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags
