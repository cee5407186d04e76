"""Algorithms to compare by name, and their input tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from branchwise.data.columns import Numbers
from branchwise.data.encoded_table import EncodedTable
from branchwise.errors import ParameterError, quoted
from branchwise.estimators import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
)
from branchwise.estimators.base import TreeEstimator

#: Every comparison has it: the most frequent class, or the mean.
BASELINE = "baseline"
#: scikit-learn's tree, after its encoder.
SKLEARN = "sklearn"
#: By the names of the command line.
CLASSIFIERS: Mapping[str, type[TreeEstimator]] = {
    "id3": ID3Classifier,
    "c4.5": C45Classifier,
    "cart": CARTClassifier,
}
CANDIDATES = (*CLASSIFIERS, SKLEARN, BASELINE)


def candidate(name: str, regression: bool = False, **parameters: Any) -> Any:
    """Return an estimator by its name.

    Parameters
    ----------
    name : {"id3", "c4.5", "cart", "sklearn", "baseline"}
        Which algorithm.
    regression : bool
        Whether numbers are to be predicted.
    **parameters : object
        Parameters of the estimator; "sklearn" and "baseline" have none.
    """
    if name == BASELINE:
        return DummyRegressor() if regression else DummyClassifier(strategy="prior")
    if name == SKLEARN:
        grower = DecisionTreeRegressor if regression else DecisionTreeClassifier
        return grower(random_state=0, **parameters)
    if regression and name == "cart":
        return CARTRegressor(**parameters)
    if name not in CLASSIFIERS or regression:
        known = ("cart", SKLEARN, BASELINE) if regression else CANDIDATES
        what = "numbers" if regression else "classes"
        raise ParameterError(
            f"There is no algorithm {name!r} that predicts {what}. Choose among "
            f"{quoted(known)}."
        )
    return CLASSIFIERS[name](**parameters)


def prepared(estimator: Any, table: EncodedTable) -> tuple[Any, Any]:
    """Return an estimator and the table in the format that it can be fitted with.

    Trees of branchwise, pipelines and other estimators get the encoded table; a tree
    of scikit-learn is put into a pipeline with an encoder.
    """
    if isinstance(estimator, (DummyClassifier, DummyRegressor)):
        return estimator, np.zeros((table.n_rows, 1))
    if isinstance(estimator, (DecisionTreeClassifier, DecisionTreeRegressor)):
        text = [
            index
            for index, raw in enumerate(table.columns)
            if not isinstance(raw, Numbers)
        ]
        encoder = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=-1,
            encoded_missing_value=-2,
        )
        columns = make_column_transformer((encoder, text), remainder="passthrough")
        return make_pipeline(columns, estimator), _cells(table)
    return estimator, table


def _cells(table: EncodedTable) -> NDArray[Any]:
    """Return the cells as an array of objects, None or NaN where they are missing."""
    cells = np.empty(table.shape, dtype=object)
    for index, raw in enumerate(table.columns):
        if isinstance(raw, Numbers):
            cells[:, index] = raw.values
        else:
            values = np.empty(len(raw.values) + 1, dtype=object)
            values[:-1] = raw.values  # -1 is the last one: None
            cells[:, index] = values[raw.codes]
    return cells


def is_regression(estimator: Any, called: str = "estimator") -> bool:
    """Whether an estimator predicts numbers; other objects are an error.

    ``called`` is the parameter that it was given as.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        got = estimator if isinstance(estimator, type) else type(estimator)
        which = "the class " if isinstance(estimator, type) else ""
        raise ParameterError(
            f"{called} must be an object that can be fitted, such as C45Classifier(). "
            f"Got {which}{got.__name__}."
        )
    return bool(is_regressor(estimator))


def size_of(fitted: Any) -> tuple[float, float]:
    """Return the leaves and the depth of a fitted tree; NaN for what is none."""
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    if not hasattr(last, "get_n_leaves"):
        return (1.0, 0.0) if type(last).__name__.startswith("Dummy") else (np.nan,) * 2
    return float(last.get_n_leaves()), float(last.get_depth())
