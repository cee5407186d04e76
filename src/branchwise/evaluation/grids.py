"""Default parameter grids, and checks of grids and of scorers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid

from branchwise.data.schema import Value
from branchwise.errors import ParameterError, quoted
from branchwise.estimators import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
)
from branchwise.estimators.base import TreeEstimator
from branchwise.evaluation.trials import candidate_key

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]

_DEPTHS = (2, 3, 4, 6, 8, 12, None)
_LEAVES = (1, 2, 5, 10, 20)
_CONFIDENCES = (0.01, 0.05, 0.1, 0.25, 0.5)

#: Depth, fewest cases, criterion and pruning of each algorithm.
_GRIDS: dict[type, list[dict[str, Sequence[Any]]]] = {
    ID3Classifier: [
        {
            "criterion": ("gain", "gain_ratio", "gini"),
            "max_depth": _DEPTHS,
            "min_samples_leaf": _LEAVES,
        },
        {
            "criterion": ("gain", "gain_ratio", "gini"),
            "min_samples_leaf": _LEAVES,
            "pruning": ("error-based",),
            "confidence": _CONFIDENCES,
        },
    ],
    C45Classifier: [
        {
            "confidence": _CONFIDENCES,
            "min_samples_branch": (2, 5, 10, 20, 50),
            "max_depth": (4, 8, 16, None),
        },
        {
            "prune": (False,),
            "min_samples_branch": (2, 5, 10, 20, 50),
            "max_depth": (4, 8, 16, None),
        },
    ],
    CARTClassifier: [
        {
            "criterion": ("gini", "gain"),
            "max_depth": _DEPTHS,
            "min_samples_leaf": _LEAVES,
        },
        {
            "criterion": ("gini", "gain"),
            "min_samples_leaf": (1, 5),
            "ccp_alpha": (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02),
        },
    ],
    CARTRegressor: [
        {"max_depth": _DEPTHS, "min_samples_leaf": _LEAVES},
        {"ccp_alpha": ("best", "1-se"), "min_samples_leaf": (1, 5)},
    ],
}


def default_grid(estimator: Any) -> Grid:
    """Return the default grid of an estimator."""
    grid = _GRIDS.get(type(estimator))
    if grid is None:
        raise ParameterError(
            f"There is no usual grid for {type(estimator).__name__}. Pass one: a dict "
            "of parameter to the values to try."
        )
    return grid


def candidates(estimator: Any, grid: Grid) -> list[dict[str, Any]]:
    """List the candidates, without duplicates, and check them."""
    known = estimator.get_params()
    for piece in _pieces(grid):
        unknown = [name for name in piece if name not in known]
        if unknown:
            raise ParameterError(
                f"The grid names {quoted(unknown)}, which "
                f"{type(estimator).__name__} does not have. Its parameters are "
                f"{quoted(known, 40)}."
            )
        for name, values in piece.items():
            _check_values(name, values)
    # Several dicts may have candidates in common.
    listed = list({candidate_key(one): one for one in ParameterGrid(grid)}.values())
    if isinstance(estimator, TreeEstimator):
        for one in listed:
            # Rejects invalid parameters before any work is done.
            _ = clone(estimator).set_params(**one).recipe
    return listed


def _pieces(grid: Any) -> Sequence[Mapping[str, Any]]:
    pieces: Sequence[Any] = [grid] if isinstance(grid, Mapping) else grid
    fit = isinstance(pieces, Sequence) and len(pieces) > 0
    if not fit or not all(isinstance(piece, Mapping) for piece in pieces):
        raise ParameterError(
            "grid must be a dict of parameter to the values to try, such as "
            f"{{'max_depth': [2, 4]}}, or a list of such dicts. Got {grid!r}."
        )
    return pieces


def _check_values(name: str, values: Any) -> None:
    """Reject anything but a list of distinct values."""
    vector = isinstance(values, np.ndarray) and values.ndim == 1
    if isinstance(values, str) or not (vector or isinstance(values, Sequence)):
        raise ParameterError(
            f"The grid must have a list of values for {name!r}. Got {values!r}. Write "
            f"[{values!r}] to try one value."
        )
    if not len(values):
        raise ParameterError(f"The grid has no values for {name!r}. Give at least one.")
    seen: set[str] = set()
    for value in values:
        key = candidate_key({name: value})
        if key in seen:
            raise ParameterError(
                f"The grid has {value!r} twice for {name!r}. Give every value once."
            )
        seen.add(key)


#: Scores of numbers, the usual ones first; every other scorer compares classes.
_OF_NUMBERS = (
    "r2",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_median_absolute_error",
    "neg_max_error",
    "explained_variance",
    "max_error",
    "d2_absolute_error_score",
    "neg_mean_absolute_percentage_error",
    "neg_mean_gamma_deviance",
    "neg_mean_poisson_deviance",
    "neg_mean_squared_log_error",
    "neg_root_mean_squared_log_error",
)
#: Scores of classes that fit however many there are, and whatever they are called.
_OF_ANY_CLASSES = (
    "accuracy",
    "balanced_accuracy",
    "f1_macro",
    "f1_weighted",
    "matthews_corrcoef",
    "neg_log_loss",
    "roc_auc_ovr",
)
_SHOWN = 7


@dataclass(frozen=True)
class _Demand:
    """What a scorer requires of the classes, and alternative scorers."""

    words: str
    fits: Callable[[Sequence[Value]], bool]
    instead: tuple[str, ...]


def _averaged(score: str) -> _Demand:
    # The positive class of scikit-learn's scorers is 1, and cannot be changed here.
    return _Demand(
        "two classes, one of them the number 1",
        lambda classes: len(classes) == 2 and 1 in classes,
        (f"{score}_macro", f"{score}_weighted"),
    )


def _of_two(*instead: str) -> _Demand:
    return _Demand("two classes", lambda classes: len(classes) == 2, instead)


def _of_numbered(*instead: str) -> _Demand:
    return _Demand(
        "numbers as names if there are two classes",
        lambda classes: len(classes) != 2 or not isinstance(classes[0], str),
        instead,
    )


_DEMANDS = {
    **{score: _averaged(score) for score in ("f1", "precision", "recall", "jaccard")},
    "roc_auc": _of_two("roc_auc_ovr", "roc_auc_ovo"),
    "positive_likelihood_ratio": _of_two("balanced_accuracy"),
    "neg_negative_likelihood_ratio": _of_two("balanced_accuracy"),
    "average_precision": _Demand(
        "1 as one of the names if there are two classes",
        lambda classes: len(classes) != 2 or 1 in classes,
        ("roc_auc", "f1_macro", "f1_weighted"),
    ),
    "neg_brier_score": _of_numbered("neg_log_loss"),
    "d2_brier_score": _of_numbered("neg_log_loss"),
}


def check_scoring(scoring: str | None, classes: Sequence[Value]) -> None:
    """Reject a scorer that does not fit the target.

    Parameters
    ----------
    scoring : str or None
        The name of a scorer; None is the usual score, which fits.
    classes : sequence
        The classes; none where numbers are predicted.
    """
    if scoring is None:
        return
    if scoring not in get_scorer_names():
        raise ParameterError(
            "scoring must be one of scikit-learn's scorers, such as "
            f"{quoted(_fitting(classes), _SHOWN)}. Got {scoring!r}."
        )
    of_numbers = scoring in _OF_NUMBERS
    # "samples" averages over several labels of each row.
    if of_numbers is bool(classes) or scoring.endswith("_samples"):
        predicted = "classes" if classes else "numbers"
        raise ParameterError(
            f"scoring must be a score of {predicted}, which are predicted here, such "
            f"as {quoted(_fitting(classes), _SHOWN)}. Got {scoring!r}."
        )
    demand = _DEMANDS.get(scoring)
    if demand is not None and not demand.fits(classes):
        raise ParameterError(
            f"scoring {scoring!r} takes {demand.words}. Got {len(classes):,}: "
            f"{quoted(classes)}. Choose {' or '.join(map(repr, demand.instead))}."
        )


def _fitting(classes: Sequence[Value]) -> list[str]:
    known = get_scorer_names()
    wanted = _OF_ANY_CLASSES if classes else _OF_NUMBERS
    return [name for name in wanted if name in known]
