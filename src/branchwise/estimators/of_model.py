""":func:`to_estimator`: a fitted estimator from a model."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from branchwise.ensemble.ensemble import Ensemble
from branchwise.estimators import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
)
from branchwise.estimators.bagging import BaggedTrees
from branchwise.estimators.base import TreeEstimator, set_seen_columns
from branchwise.estimators.boosting import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from branchwise.estimators.fitted import FittedEstimator
from branchwise.estimators.forest import RandomForestClassifier, RandomForestRegressor
from branchwise.estimators.rules import RuleClassifier
from branchwise.model import Model
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.ensemble_recipe import ENSEMBLE_FIELDS, EnsembleRecipe

#: The estimators of single trees that predict classes, by the algorithm of a recipe.
_CLASSIFIERS: dict[str, type[TreeEstimator]] = {
    "ID3": ID3Classifier,
    "C4.5": C45Classifier,
    "CART": CARTClassifier,
}


def to_estimator(model: Model | Ensemble) -> FittedEstimator:
    """Return the fitted estimator of a model.

    It predicts as the model does, and works where scikit-learn wants an estimator: in
    displays, in inspection, in pipelines. Its parameters are those of the model's
    recipe, as far as the estimator has them.

    Parameters
    ----------
    model : Model or Ensemble
        A model that was fitted, or opened by :func:`~branchwise.load`.

    Returns
    -------
    estimator
        ``CARTClassifier``, ``RandomForestRegressor``, ...

    Examples
    --------
    >>> from branchwise import ID3Classifier, datasets, load
    >>> tennis = datasets.load("tennis")
    >>> content = ID3Classifier(max_depth=2).fit(tennis.X, tennis.y).to_bytes()
    >>> tree = load(content).to_estimator()
    >>> tree
    ID3Classifier(max_depth=2)
    >>> tree.score(tennis.X, tennis.y)
    1.0
    """
    estimator: FittedEstimator
    if isinstance(model, Ensemble):
        estimator = _of_ensemble(model)
    else:
        estimator = _of_tree(model.recipe)
    estimator.model_ = model
    set_seen_columns(estimator, model.schema)
    return estimator


def _of_tree(recipe: Recipe) -> TreeEstimator:
    """Return the unfitted estimator with the parameters of a recipe."""
    estimator = _CLASSIFIERS[recipe.algorithm]
    if recipe.is_regression:
        estimator = CARTRegressor
    values = _shared(estimator, recipe, FIELDS)
    if estimator is C45Classifier:
        # Two-way splits of C4.5 are what cross-validation has chosen.
        values["cross_validate"] = recipe.branching == "two-way"
        values["group_values"] = recipe.branching != "values"
        if recipe.criterion == "gini":
            # Pruning and sides of missing values were chosen with them.
            for name in ("pruning", "ccp_alpha", "risk"):
                values.pop(name, None)
            if recipe.missing == "learned":
                values.pop("missing")
        if recipe.pruning is None:
            values |= {"prune": False, "pruning": C45Classifier.pruning}
    return estimator(**values)


def _of_ensemble(model: Ensemble) -> Any:
    """Return the unfitted estimator with the parameters of an ensemble."""
    recipe = model.recipe
    if recipe.method == "forest" and recipe.max_features is None:
        own = _shared(BaggedTrees, recipe, ENSEMBLE_FIELDS)
        return BaggedTrees(**own, estimator=_of_tree(recipe.tree))
    estimator = _kind(model)
    values = _shared(estimator, recipe.tree, FIELDS)
    values |= _shared(estimator, recipe, ENSEMBLE_FIELDS)
    names = {field.name for field in fields(estimator)}
    if "base" in names:
        values["base"] = recipe.tree.algorithm.lower()
    if "subsample" in names and recipe.max_samples is not None:
        values["subsample"] = recipe.max_samples
    if "prune" in names:
        values["prune"] = recipe.tree.pruning is not None
    if recipe.balanced_subsample:
        values["class_weight"] = "balanced_subsample"
    fitted = estimator(**values)
    if recipe.method != "forest":
        a_round = model.n_outputs if recipe.adds_margins else 1
        fitted.n_estimators_ = len(model) // a_round
    return fitted


def _kind(model: Ensemble) -> Any:
    if model.recipe.method == "boosted":
        return BoostedClassifier
    if model.recipe.method == "rules":
        return RuleClassifier
    if model.recipe.method == "gradient":
        numbers, classes = GradientBoostingRegressor, GradientBoostingClassifier
        return numbers if model.is_regression else classes
    return RandomForestRegressor if model.is_regression else RandomForestClassifier


def _shared(
    estimator: Any, recipe: Recipe | EnsembleRecipe, names: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters of an estimator that a recipe has other values of."""
    usual = {field.name: field.default for field in fields(estimator)}
    values = {name: getattr(recipe, name) for name in names if name in usual}
    # A file has 0 where the parameter is 0.0.
    return {name: value for name, value in values.items() if value != usual[name]}
