"""Base class of the estimators of ensembles: fitting, prediction, single trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Ints
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.fit import fit_ensemble
from branchwise.errors import ParameterError
from branchwise.estimators.base import named_costs, set_seen_columns
from branchwise.estimators.fitted import (
    FINGERPRINTS,
    FittedEstimator,
    ProbabilityEstimator,
    of_model,
    one_dimensional,
)
from branchwise.model import Model
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.recipe.parameters import PARAMETERS


class EnsembleEstimator(FittedEstimator):
    """Base class of estimators around an :class:`~branchwise.ensemble.Ensemble`."""

    #: What fitted estimators have, for their docstrings.
    attributes_section: ClassVar[str] = """\
Attributes
----------
model_ : Ensemble
    The fitted model: schema, trees and recipe.
estimators_ : list of Model
    The trees.
classes_ : ndarray
    The classes in sorted order; not where numbers are predicted.
n_features_in_ : int
    The number of columns.
feature_names_in_ : ndarray of str
    Their names, where the table had names.
feature_importances_ : ndarray
    How much each column contributed to the trees, as shares of 1.
"""
    model_: Ensemble
    n_jobs: int | None
    warm_start: bool

    shap = of_model(Ensemble.shap)
    export = of_model(Ensemble.export)  # type: ignore[arg-type]
    to_bytes = of_model(Ensemble.to_bytes)
    save = of_model(Ensemble.save)

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        raise NotImplementedError

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : table, or a source that :func:`~branchwise.fit_tree` takes
            A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
            list of dicts. With the name of a column as y also files, or a DataFrame of
            Dask or Spark, whose workers grow the trees: see ``docs/scale.md``.
        y : sequence or str
            The label of each row, or the number that is to be predicted; or the name
            of the column of X that has it.
        sample_weight : sequence of float, str or None
            The weight of each row, or the name of the column that has it.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, self.recipe)
        set_seen_columns(self, self.model_.schema)
        return self

    def _fit(
        self, X: object, y: object, sample_weight: object, recipe: EnsembleRecipe
    ) -> None:
        self.model_ = self._grown(X, y, sample_weight, recipe)

    def _grown(
        self,
        X: object,
        y: object,
        sample_weight: object,
        recipe: EnsembleRecipe,
        **others: Any,
    ) -> Ensemble:
        named = isinstance(y, str)
        given = self._tree_parameters
        weight = getattr(given, "class_weight", None)
        return fit_ensemble(
            X if named else FINGERPRINTS.known_table(X),
            y if named else self._labels(y),
            recipe,
            sample_weight=sample_weight,
            categorical_features=given.categorical_features,
            categories=given.categories,
            order=given.order,
            class_weight=None if recipe.balanced_subsample else weight,
            priors=getattr(given, "priors", None),
            costs=named_costs(given),
            n_jobs=self.n_jobs,
            **others,
        )

    def _earlier(
        self, recipe: EnsembleRecipe
    ) -> tuple[Ensemble | None, EnsembleRecipe]:
        """Return the ensemble whose trees ``warm_start`` keeps, and the recipe."""
        PARAMETERS["warm_start"].check(self.warm_start)
        if not self.warm_start or not hasattr(self, "model_"):
            return None, recipe
        there = self.model_.recipe
        n_rounds = len(self.model_)
        if there.method == "gradient":
            n_rounds //= self.model_.n_outputs
        if recipe.n_estimators < n_rounds:
            raise ParameterError(
                f"n_estimators must be at least {n_rounds}, the number of trees that "
                f"are grown, where warm_start is True. Got {recipe.n_estimators}."
            )
        if getattr(self, "random_state", 0) is None:
            recipe = replace(recipe, random_state=there.random_state)
        return self.model_, recipe

    @property
    def _tree_parameters(self) -> Any:
        """What has the parameters of the table and of the classes."""
        return self

    def _labels(self, y: object) -> object:
        return one_dimensional(y)

    @property
    def estimators_(self) -> list[Model]:
        """The trees, as models."""
        check_is_fitted(self)
        return list(self.model_)

    def __getitem__(self, number: int) -> Model:
        """Return one tree as a model, with all its views."""
        check_is_fitted(self)
        return self.model_[number]

    def __len__(self) -> int:
        check_is_fitted(self)
        return len(self.model_)

    def decision_path(self, X: object) -> tuple[csr_matrix, Ints]:
        """Return which nodes each row visits, and the first node of each tree.

        Parameters
        ----------
        X : table
            The rows to follow down all trees.

        Returns
        -------
        csr_matrix and array of int
            1 where a row visits a node, the nodes of all trees side by side; and where
            those of each tree begin.
        """
        check_is_fitted(self)
        paths = []
        for model in self.model_:
            arrivals = model.arrivals(X, self.n_jobs)
            rows, nodes = model.visited(arrivals)
            shape = (arrivals.n_rows, len(model.tree))
            ones = np.ones(len(rows), dtype=np.int64)
            paths.append(csr_matrix((ones, (rows, nodes)), shape=shape))
        sizes = [len(tree) for tree in self.model_.trees]
        return hstack(paths).tocsr(), np.cumsum([0, *sizes])


class EnsembleClassifier(ProbabilityEstimator, EnsembleEstimator):
    """An estimator of an ensemble that predicts classes."""


def seed_of(random_state: object) -> int:
    """Return the seed of an estimator; None is a new one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        draw = getattr(random_state, "integers", None) or random_state.randint  # type: ignore[union-attr]
        return int(draw(2**31))
    PARAMETERS["random_state"].check(random_state)
    return int(random_state)  # type: ignore[call-overload,no-any-return]
