"""Random forests: many trees of random rows and columns, which predict together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Floats, Ints
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.forest import fit_forest
from branchwise.errors import ParameterError
from branchwise.estimators.base import (
    FINGERPRINTS,
    check_classes_criterion,
    check_numbers_criterion,
    documented,
    one_dimensional,
    set_seen_columns,
)
from branchwise.estimators.forest_reading import ForestReading
from branchwise.model import Model
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.ensemble_recipe import BASES, EnsembleRecipe, Splitter, Voting
from branchwise.recipe.parameters import (
    PARAMETERS,
    Policy,
    Probabilities,
    Pruning,
    canonical,
)

#: Parameters that a forest's trees have from their algorithm unless they are given.
_BY_BASE = ("criterion", "missing", "unseen", "min_samples_leaf")


@dataclass(kw_only=True, eq=False, repr=False)
class ForestEstimator(ForestReading):
    """Base class of forests around :func:`~branchwise.ensemble.forest.fit_forest`."""

    model_: Ensemble = field(init=False)
    n_estimators: int = 100
    base: str = "cart"
    criterion: str | None = None
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float | None = None
    min_weight_fraction_leaf: float = 0.0
    max_features: int | float | str | None = "sqrt"
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
    pruning: Pruning | None = None
    ccp_alpha: float = 0.0
    random_state: object = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # Cached: searches call this several times per fit.
        names: list[str] = super()._get_param_names()
        return names

    def _base_recipe(self) -> Recipe:
        """Return the recipe that parameters which are None leave as it is."""
        PARAMETERS["base"].check(self.base)
        return BASES[self.base]

    @property
    def tree_recipe(self) -> Recipe:
        """The recipe of the trees."""
        recipe, given = self._base_recipe(), vars(self)
        values = {name: given[name] for name in FIELDS if name in given}
        for name in _BY_BASE:
            if values[name] is None:
                del values[name]
        if self.pruning is None and self.ccp_alpha != 0:
            values["pruning"] = "cost-complexity"
        self._check_criterion(canonical(values.get("criterion", recipe.criterion)))
        return replace(recipe, **values)

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        given = vars(self)
        for name in ("oob_score", "warm_start"):
            PARAMETERS[name].check(given[name])
        return EnsembleRecipe(
            tree=self.tree_recipe,
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            bootstrap=self.bootstrap,
            max_samples=self.max_samples,
            splitter=self.splitter,
            voting=given.get("voting", "soft"),
            random_state=_seed(self.random_state),
            balanced_subsample=self._balances_samples,
        )

    @property
    def _balances_samples(self) -> bool:
        weight = getattr(self, "class_weight", None)
        return isinstance(weight, str) and weight == "balanced_subsample"

    def _check_criterion(self, criterion: object) -> None:
        """Refuse criteria for the other kind of target."""

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table
            A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
            list of dicts.
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
        recipe = self.recipe
        if self.oob_score and not recipe.bootstrap and recipe.max_samples is None:
            raise ParameterError(
                "oob_score=True needs rows that are not in every sample. Got "
                "bootstrap=False; set bootstrap=True, or max_samples below 1.0."
            )
        earlier = self._earlier(recipe)
        named = isinstance(y, str)
        weight = None if self._balances_samples else getattr(self, "class_weight", None)
        self.model_ = fit_forest(
            X if named else FINGERPRINTS.known_table(X),
            y if named else self._labels(y),
            earlier[1],
            sample_weight=sample_weight,
            categorical_features=self.categorical_features,
            categories=self.categories,
            class_weight=weight,
            priors=getattr(self, "priors", None),
            n_jobs=self.n_jobs,
            earlier=earlier[0],
        )
        set_seen_columns(self, self.model_.schema)
        if self.oob_score:
            out_of_bag = self.out_of_bag()
            self.oob_score_ = out_of_bag.score
            name = "prediction" if self.model_.is_regression else "decision_function"
            values = out_of_bag.values
            if self.model_.is_regression:
                values = values[:, 0]
            setattr(self, f"oob_{name}_", values)
        return self

    def _earlier(self, recipe: EnsembleRecipe) -> tuple[Sequence[Any], EnsembleRecipe]:
        """Return the trees that are kept by ``warm_start``, and the recipe."""
        if not self.warm_start or not hasattr(self, "model_"):
            return (), recipe
        trees, there = self.model_.trees, self.model_.recipe
        if recipe.n_estimators < len(trees):
            raise ParameterError(
                f"n_estimators must be at least {len(trees)}, the number of trees that "
                f"are grown, where warm_start is True. Got {recipe.n_estimators}."
            )
        if self.random_state is None:
            recipe = replace(recipe, random_state=there.random_state)
        return trees, recipe

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

    @property
    def feature_importances_(self) -> Floats:
        """How much each column contributed to the trees, as shares of 1."""
        check_is_fitted(self)
        return self.model_.feature_importances

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the expected number, of each row."""
        check_is_fitted(self)
        return self.model_.predict(FINGERPRINTS.known_table(X), self.n_jobs)

    def apply(self, X: object) -> Ints:
        """Return the node of each tree that each row (mostly) arrives at."""
        check_is_fitted(self)
        return self.model_.apply(X, self.n_jobs)

    def decision_path(self, X: object) -> tuple[csr_matrix, Ints]:
        """Return which nodes each row visits, and the first node of each tree."""
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _seed(random_state: object) -> int:
    """Return the seed of an estimator; None is a new one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        draw = getattr(random_state, "integers", None) or random_state.randint  # type: ignore[union-attr]
        return int(draw(2**31))
    PARAMETERS["random_state"].check(random_state)
    return int(random_state)  # type: ignore[call-overload,no-any-return]


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestClassifier(ClassifierMixin, ForestEstimator):  # type: ignore[misc]
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
    costs: Sequence[Sequence[float]] | None = None
    probabilities: Probabilities = "frequencies"
    m: float = 2.0
    voting: Voting = "soft"

    def _check_criterion(self, criterion: object) -> None:
        check_classes_criterion(criterion, "RandomForestRegressor")

    def _labels(self, y: object) -> object:
        return FINGERPRINTS.known_labels(one_dimensional(y))

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.model_.predict_proba(FINGERPRINTS.known_table(X), self.n_jobs)

    def predict_log_proba(self, X: object) -> Floats:
        """Return the logarithms of the probabilities; -inf where one is 0."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.predict_proba(X))
        return logs


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestRegressor(RegressorMixin, ForestEstimator):  # type: ignore[misc]
    """A random forest that predicts numbers: the average of its trees.

    Examples
    --------
    >>> from branchwise import RandomForestRegressor
    >>> table = {"x": list(range(100))}
    >>> y = [float(x > 50) for x in table["x"]]
    >>> RandomForestRegressor().fit(table, y).predict({"x": [10, 90]}).tolist()
    [0.0, 1.0]
    """

    max_features: int | float | str | None = 1.0

    def _base_recipe(self) -> Recipe:
        if self.base != "cart":
            raise ParameterError(
                f"base must be 'cart' to predict numbers. Got {self.base!r}."
            )
        return replace(BASES["cart"], criterion="variance")

    def _check_criterion(self, criterion: object) -> None:
        check_numbers_criterion(criterion)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags
