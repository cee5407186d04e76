"""Boosting: trees that correct each other, by weights of rows or by gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Floats
from branchwise.ensemble.ensemble import Ensemble
from branchwise.errors import ParameterError
from branchwise.estimators.base import check_classes_criterion
from branchwise.estimators.ensemble import (
    EnsembleClassifier,
    EnsembleEstimator,
    seed_of,
)
from branchwise.estimators.fitted import documented, of_model
from branchwise.recipe.ensemble_recipe import (
    ENSEMBLE_FIELDS,
    NUMBER_LOSSES,
    EnsembleRecipe,
    Loss,
    boosted_recipe,
    gradient_recipe,
)
from branchwise.recipe.parameters import PARAMETERS, Policy, canonical


def _check_early_stop(recipe: EnsembleRecipe) -> None:
    """Reject what has no effect; recipes of model files may have it."""
    for name in ("validation_fraction", "tol"):
        value = getattr(recipe, name)
        if recipe.n_iter_no_change is None and value != ENSEMBLE_FIELDS[name]:
            raise ParameterError(
                f"{name}={value!r} has no effect unless n_iter_no_change is given. "
                "Give that, too, or leave it out."
            )


class BoostingEstimator(EnsembleEstimator):
    """Base class of boosting: records of the rounds, predictions after each."""

    attributes_section = (
        EnsembleEstimator.attributes_section
        + """\
n_estimators_ : int
    The number of rounds.
estimator_errors_, train_score_ : ndarray
    The error of each boosted tree among the weighted rows; the loss of the training
    rows after each round of gradient boosting.
validation_score_ : ndarray
    The error or loss of the rows that are held out, after each round.
"""
    )
    n_iter_no_change: int | None

    to_html = of_model(Ensemble.to_html)

    def _fit(
        self, X: object, y: object, sample_weight: object, recipe: EnsembleRecipe
    ) -> None:
        _check_early_stop(recipe)
        rounds: list[tuple[float, float | None]] = []
        earlier, recipe = self._earlier(recipe)
        self.model_ = self._grown(
            X,
            y,
            sample_weight,
            recipe,
            earlier=earlier,
            on_round=lambda *losses: rounds.append(losses),
        )
        self.n_estimators_ = len(rounds)
        self._keep([loss for loss, _ in rounds])
        if recipe.n_iter_no_change is not None:
            self.validation_score_ = np.array([loss for _, loss in rounds])
        elif hasattr(self, "validation_score_"):
            del self.validation_score_

    def _keep(self, losses: Sequence[float]) -> None:
        """Keep the errors or losses after each round."""

    def _staged(self, X: object) -> Iterator[Floats]:
        """Yield what is predicted after each round."""
        check_is_fitted(self)
        model = self.model_
        data = model.encoded(X, self.n_jobs)
        a_round = len(model) // self.n_estimators_
        for tree, total in enumerate(model.totals(data), 1):
            if tree % a_round == 0:
                yield model.linked(total, tree)

    def staged_predict(self, X: object) -> Iterator[NDArray[np.generic]]:
        """Yield the predictions of the trees of the first round, of two rounds, ...

        Parameters
        ----------
        X : table
            Rows to predict again and again.

        Yields
        ------
        array
            The predictions after each round.
        """
        for values in self._staged(X):
            if self.model_.is_regression:
                yield values[:, 0].copy()
            else:
                yield self.classes_.take(self.model_.class_codes(values))


class _BoostingClassifier(EnsembleClassifier, BoostingEstimator):
    """Boosting that predicts classes."""

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the probabilities after each round.

        Parameters
        ----------
        X : table
            Rows, as :meth:`staged_predict` takes them.

        Yields
        ------
        array of float, of shape (rows, classes)
            The probabilities after each round.
        """
        yield from self._staged(X)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedClassifier(_BoostingClassifier):
    """Boosted trees: each is grown from rows that weigh more where others were wrong.

    The trees of C4.5 with the votes of SAMME, in the manner of the trials of C5.0. A
    tree that is perfect ends the boosting, and so does one that is no better than
    guessing; trees of ID3 and CART need limits such as ``max_depth`` to be boosted.
    Probabilities are shares of the weighted votes. Nothing is drawn at random.
    ``n_estimators`` is the most trees.

    Examples
    --------
    >>> from branchwise import BoostedClassifier, datasets
    >>> car = datasets.load("car")
    >>> boosted = BoostedClassifier(n_estimators=5).fit(car.X, car.y)
    >>> len(boosted), boosted.predict(car.X)[:2].tolist()
    (5, ['unacc', 'unacc'])
    """

    n_estimators: int = 10
    base: str = "c4.5"
    criterion: str | None = None
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float | None = None
    min_samples_branch: float | None = None
    min_weight_fraction_leaf: float = 0.0
    max_leaf_nodes: int | None = None
    min_gain: float = 0.0
    max_p_value: float | None = None
    missing: Policy | None = None
    unseen: Policy | None = None
    max_bins: int | None = None
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    order: Mapping[Any, Sequence[Any]] | None = None
    prune: bool = True
    confidence: float = 0.25
    raise_subtrees: bool = True
    class_weight: Mapping[Any, float] | str | None = None
    priors: Mapping[Any, float] | None = None
    costs: Sequence[Sequence[float]] | Mapping[Any, Any] | None = None
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    tol: float = 1e-4
    warm_start: bool = False
    n_jobs: int | None = None

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        criterion = canonical(self.criterion)
        if criterion is not None:
            check_classes_criterion(criterion, "GradientBoostingRegressor")
        return boosted_recipe(vars(self))

    def _keep(self, losses: Sequence[float]) -> None:
        self.estimator_errors_ = np.array(losses)

    @property
    def tree_weights(self) -> Floats:
        """The weight of the vote of each tree."""
        check_is_fitted(self)
        weights = self.model_.tree_weights
        return np.ones(len(self.model_)) if weights is None else weights


@dataclass(kw_only=True, eq=False, repr=False)
class GradientEstimator(BoostingEstimator):
    """Base class of gradient boosting."""

    learning_rate: float = 0.1
    n_estimators: int = 100
    subsample: float = 1.0
    max_depth: int | None = 3
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: int | float | str | None = None
    max_leaf_nodes: int | None = None
    min_gain: float = 0.0
    missing: Policy = "learned"
    unseen: Policy = "largest"
    max_bins: int | None = None
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    order: Mapping[Any, Sequence[Any]] | None = None
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    tol: float = 1e-4
    random_state: object = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @property
    def _loss(self) -> Loss:
        raise NotImplementedError

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        given = vars(self) | {"random_state": seed_of(self.random_state)}
        return gradient_recipe(self._loss, given)

    def _keep(self, losses: Sequence[float]) -> None:
        self.train_score_ = np.array(losses)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingClassifier(_BoostingClassifier, GradientEstimator):
    """Gradient boosting: trees that add up to the log odds of the classes.

    Takes tables as they are: text, categories, booleans, numbers, missing cells. With
    three or more classes each round has a tree for each of them; ``n_estimators`` is
    the most rounds. The same data and seed give the same trees for any order of rows
    and number of threads.

    Examples
    --------
    >>> from branchwise import GradientBoostingClassifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> boosted = GradientBoostingClassifier(n_estimators=20).fit(tennis.X, tennis.y)
    >>> boosted.predict(tennis.X)[:3].tolist()
    ['no', 'no', 'yes']
    """

    class_weight: Mapping[Any, float] | str | None = None
    priors: Mapping[Any, float] | None = None

    @property
    def _loss(self) -> Loss:
        return "log_loss"

    def decision_function(self, X: object) -> Floats:
        """Return the margins: log odds of the second class, or one of each class.

        Parameters
        ----------
        X : table
            The rows whose margins are wanted.

        Returns
        -------
        array of float
            Of shape (rows,) for two classes, else (rows, classes).
        """
        check_is_fitted(self)
        margins = self.model_.margins(X, self.n_jobs)
        return margins[:, 0] if margins.shape[1] == 1 else margins


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingRegressor(RegressorMixin, GradientEstimator):  # type: ignore[misc]
    """Gradient boosting: trees that add up to a number, or to its logarithm.

    Absolute error is not offered: it needs medians, which are not sums over rows.

    Examples
    --------
    >>> from branchwise import GradientBoostingRegressor
    >>> table = {"x": list(range(100))}
    >>> y = [float(x > 50) for x in table["x"]]
    >>> GradientBoostingRegressor().fit(table, y).predict({"x": [10, 90]}).round(3)
    array([0., 1.])
    """

    loss: Loss = "squared_error"

    @property
    def _loss(self) -> Loss:
        PARAMETERS["loss"].check(self.loss, NUMBER_LOSSES)
        return self.loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags
