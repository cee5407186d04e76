"""What all fitted estimators have: predictions, and the methods of their models."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from functools import cache, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    TypeVar,
)

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Floats, Ints
from branchwise.data.cache import Fingerprints
from branchwise.errors import DataError
from branchwise.model import Model
from branchwise.recipe.parameters import (
    parameters_section,
)

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

#: Searches and cross-validation pass the same rows many times.
FINGERPRINTS = Fingerprints()
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Estimator = TypeVar("_Estimator", bound=type)
#: What fitted estimators have, for their docstrings.
_ATTRIBUTES = """\
Attributes
----------
model_ : Model
    The fitted model: schema, tree and recipe.
tree_ : Tree
    The arrays of the tree.
classes_ : ndarray
    The classes in sorted order; not where numbers are predicted.
n_features_in_ : int
    The number of columns.
feature_names_in_ : ndarray of str
    Their names, where the table had names.
feature_importances_ : ndarray
    How much each column contributed, as shares of 1.
"""


def documented(estimator: _Estimator) -> _Estimator:
    """Add all parameters and attributes to the docstring, before the examples."""
    if estimator.__doc__ is None:  # python -OO
        return estimator
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(estimator).parameters.items()
    }
    attributes = getattr(estimator, "attributes_section", _ATTRIBUTES)
    parameters = parameters_section(defaults, attributes is not _ATTRIBUTES)
    sections = f"{parameters}\n\n{attributes}"
    sections = textwrap.indent(sections, " " * 4)
    text, examples, rest = estimator.__doc__.partition("    Examples\n")
    estimator.__doc__ = f"{text}{sections}\n{examples}{rest}"
    return estimator


def of_model(
    method: Callable[Concatenate[Any, _Parameters], _Result],
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """Return a method of estimators that calls this one of their ``model_``."""

    @wraps(method)
    def call(
        self: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        check_is_fitted(self)
        return method(self.model_, *args, **kwargs)

    return call  # type: ignore[return-value]  # of the name of self


class FittedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators: what they tell by their model."""

    model_: Model | Ensemble
    n_jobs: int | None

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # Cached: searches call this several times per fit.
        names: list[str] = super()._get_param_names()
        return names

    @property
    def feature_importances_(self) -> Floats:
        """How much each column contributed, as shares of 1."""
        check_is_fitted(self)
        return self.model_.feature_importances

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the most probable class, or the expected number, of each row.

        Parameters
        ----------
        X : table
            The rows to predict, with the columns of the training rows.

        Returns
        -------
        array
            One prediction for each row.
        """
        check_is_fitted(self)
        return self.model_.predict(FINGERPRINTS.known_table(X), self.n_jobs)

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at (or mostly arrives at).

        Parameters
        ----------
        X : table
            The rows to send down the tree.

        Returns
        -------
        array of int
            A number for each row; of an ensemble one for each tree.
        """
        check_is_fitted(self)
        return self.model_.apply(X, self.n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


class ProbabilityEstimator(ClassifierMixin, FittedEstimator):  # type: ignore[misc]
    """An estimator that predicts classes, and their probabilities."""

    def _labels(self, y: object) -> object:
        return FINGERPRINTS.known_labels(one_dimensional(y))

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X : table
            The rows whose probabilities are wanted.

        Returns
        -------
        array of float, of shape (rows, classes)
            The probabilities; each row adds up to 1.
        """
        check_is_fitted(self)
        return self.model_.predict_proba(FINGERPRINTS.known_table(X), self.n_jobs)

    def predict_log_proba(self, X: object) -> Floats:
        """Return the logarithms of the probabilities; -inf where one is 0.

        Parameters
        ----------
        X : table
            Rows, as :meth:`predict_proba` takes them.

        Returns
        -------
        array of float, of shape (rows, classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.predict_proba(X))
        return logs


def one_dimensional(y: object) -> object:
    """Turn a column vector into a row, with scikit-learn's own warning."""
    if getattr(y, "ndim", 1) == 1 or not hasattr(y, "shape"):
        return y
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise DataError(f"y must have one label for each row. {error}") from None
