"""Random forests: many trees of random rows and columns, which predict together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from branchwise.errors import ParameterError
from branchwise.estimators.base import check_classes_criterion, check_numbers_criterion
from branchwise.estimators.ensemble import (
    EnsembleClassifier,
    EnsembleEstimator,
    seed_of,
)
from branchwise.estimators.fitted import documented
from branchwise.estimators.forest_reading import ForestReading, QuantileReading
from branchwise.recipe.ensemble_recipe import (
    EnsembleRecipe,
    Splitter,
    Voting,
    forest_recipe,
)
from branchwise.recipe.parameters import (
    PARAMETERS,
    Policy,
    Probabilities,
    Pruning,
    canonical,
)


class SampledEstimator(ForestReading):
    """Base class of ensembles whose trees have their own samples of the rows."""

    attributes_section = (
        EnsembleEstimator.attributes_section
        + """\
max_features_ : int
    How many columns are candidates at a node.
oob_score_ : float
    The accuracy, or R squared, of the rows out of bag, with ``oob_score``.
oob_decision_function_, oob_prediction_ : ndarray
    The probabilities of classes, or the numbers, that are predicted for them.
"""
    )
    n_estimators: int
    max_features_: int
    oob_score: bool
    random_state: object
    warm_start: bool

    def _fit(
        self, X: object, y: object, sample_weight: object, recipe: EnsembleRecipe
    ) -> None:
        for name in ("oob_score", "warm_start"):
            PARAMETERS[name].check(vars(self)[name])
        if self.oob_score and not recipe.bootstrap and recipe.max_samples is None:
            raise ParameterError(
                "oob_score=True needs rows that are not in every sample. Got "
                "bootstrap=False; set bootstrap=True, or max_samples below 1.0."
            )
        earlier, recipe = self._earlier(recipe)
        self.model_ = self._grown(X, y, sample_weight, recipe, earlier=earlier)
        n_columns = len(self.model_.schema.columns)
        self.max_features_ = self.model_.recipe.columns_drawn(n_columns)
        if self.oob_score:
            out_of_bag = self.out_of_bag()
            self.oob_score_ = out_of_bag.score
            if self.model_.is_regression:
                self.oob_prediction_ = out_of_bag.values[:, 0]
            else:
                self.oob_decision_function_ = out_of_bag.values


@dataclass(kw_only=True, eq=False, repr=False)
class ForestEstimator(SampledEstimator):
    """Base class of forests around :func:`~branchwise.ensemble.fit.fit_ensemble`."""

    _regression: ClassVar[bool] = False
    n_estimators: int = 100
    base: str = "cart"
    criterion: str | None = None
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float | None = None
    min_weight_fraction_leaf: float = 0.0
    max_features: int | float | str | None = "auto"
    max_leaf_nodes: int | None = None
    min_gain: float = 0.0
    max_p_value: float | None = None
    bootstrap: bool = True
    max_samples: int | float | None = None
    oob_score: bool = False
    splitter: Splitter = "best"
    missing: Policy | None = None
    unseen: Policy | None = None
    max_bins: int | None = None
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    order: Mapping[Any, Sequence[Any]] | None = None
    pruning: Pruning | None = None
    ccp_alpha: float = 0.0
    random_state: object = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        if self.criterion is not None:
            self._check_criterion(canonical(self.criterion))
        given = vars(self) | {"random_state": seed_of(self.random_state)}
        return forest_recipe(self._regression, given)

    def _check_criterion(self, criterion: object) -> None:
        """Refuse criteria for the other kind of target."""


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestClassifier(EnsembleClassifier, ForestEstimator):
    """A random forest: trees of bootstrap samples and random columns, which vote.

    Takes tables as they are: text, categories, booleans, numbers, missing cells. The
    same data and seed give the same forest, whatever the order of the rows and the
    number of threads. ``forest[i]`` is one of the trees.

    Examples
    --------
    >>> from branchwise import RandomForestClassifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True)
    >>> forest.fit(tennis.X, tennis.y).predict(tennis.X)[:3].tolist()
    ['no', 'no', 'yes']
    """

    class_weight: Mapping[Any, float] | str | None = None
    priors: Mapping[Any, float] | None = None
    costs: Sequence[Sequence[float]] | Mapping[Any, Any] | None = None
    probabilities: Probabilities = "frequencies"
    m: float = 2.0
    voting: Voting = "soft"

    def _check_criterion(self, criterion: object) -> None:
        check_classes_criterion(criterion, "RandomForestRegressor")


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestRegressor(RegressorMixin, ForestEstimator, QuantileReading):  # type: ignore[misc]
    """A random forest that predicts numbers: the average of its trees.

    Examples
    --------
    >>> from branchwise import RandomForestRegressor
    >>> table = {"x": list(range(100))}
    >>> y = [float(x > 50) for x in table["x"]]
    >>> RandomForestRegressor().fit(table, y).predict({"x": [10, 90]}).tolist()
    [0.0, 1.0]
    """

    _regression = True
    max_features: int | float | str | None = 1.0

    def _check_criterion(self, criterion: object) -> None:
        check_numbers_criterion(criterion)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags
