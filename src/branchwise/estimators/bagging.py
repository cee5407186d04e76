"""Bagging: trees of any recipe from bootstrap samples, which predict together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from branchwise.data.arrays import Floats
from branchwise.errors import ParameterError
from branchwise.estimators import CARTClassifier
from branchwise.estimators.base import TreeClassifier, TreeEstimator
from branchwise.estimators.ensemble import EnsembleClassifier, seed_of
from branchwise.estimators.fitted import FINGERPRINTS, documented, one_dimensional
from branchwise.estimators.forest import SampledEstimator
from branchwise.recipe.ensemble_recipe import EnsembleRecipe, Voting


def _classifies(self: BaggedTrees) -> bool:
    """Whether there are probabilities; raise AttributeError if not."""
    if not self._is_classifier:
        raise AttributeError("BaggedTrees of a regressor have no probabilities.")
    return True


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BaggedTrees(SampledEstimator):
    """Bagging (Breiman 1996): trees of bootstrap samples, which predict together.

    The trees are those of ``estimator``, with all its parameters: pruned trees of C4.5,
    regression trees, trees with costs. Unlike a random forest, every column is a
    candidate at every node. Classes are predicted by the average of the trees'
    probabilities or by majority vote, numbers by their average.

    Examples
    --------
    >>> from branchwise import BaggedTrees, C45Classifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> bagged = BaggedTrees(estimator=C45Classifier(), n_estimators=25)
    >>> bagged.fit(tennis.X, tennis.y).predict(tennis.X)[:3].tolist()
    ['no', 'no', 'yes']
    """

    estimator: TreeEstimator | None = None
    n_estimators: int = 10
    bootstrap: bool = True
    max_samples: int | float | None = None
    oob_score: bool = False
    voting: Voting = "soft"
    random_state: object = 0
    warm_start: bool = False
    n_jobs: int | None = None

    @property
    def _tree_parameters(self) -> TreeEstimator:
        """The estimator of the trees."""
        if self.estimator is None:
            return CARTClassifier()
        if not isinstance(self.estimator, TreeEstimator):
            raise ParameterError(
                "estimator must be an estimator of single trees: ID3Classifier, "
                "C45Classifier, CARTClassifier, CARTRegressor, or None for "
                f"CARTClassifier. Got {self.estimator!r}."
            )
        return self.estimator

    @property
    def _is_classifier(self) -> bool:
        return self.estimator is None or isinstance(self.estimator, TreeClassifier)

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the trees, their number and how they are combined."""
        return EnsembleRecipe(
            tree=self._tree_parameters.recipe,
            n_estimators=self.n_estimators,
            max_features=None,
            bootstrap=self.bootstrap,
            max_samples=self.max_samples,
            voting=self.voting,
            random_state=seed_of(self.random_state),
        )

    def _labels(self, y: object) -> object:
        labels = one_dimensional(y)
        return FINGERPRINTS.known_labels(labels) if self._is_classifier else labels

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        return EnsembleClassifier.predict_proba(self, X)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: object) -> Floats:
        """Return the logarithms of the probabilities; -inf where one is 0."""
        return EnsembleClassifier.predict_log_proba(self, X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy, or R squared where numbers are predicted.

        Parameters
        ----------
        X, y : table and sequence
            Rows and their classes, or numbers.
        sample_weight : sequence of float or None
            Weights; by default each is 1.

        Returns
        -------
        float
            1 at best.
        """
        kind = ClassifierMixin if self._is_classifier else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        trees = (self.estimator or CARTClassifier()).__sklearn_tags__()
        for name in ("estimator_type", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(trees, name))
        tags.target_tags = trees.target_tags
        return tags
