"""Which parameters a search tries, if nobody says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from branchwise.errors import ParameterError, quoted
from branchwise.estimators import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
)
from branchwise.estimators.base import TreeEstimator
from branchwise.evaluation.state import candidate_key

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
    """Return what is worth trying for an estimator."""
    grid = _GRIDS.get(type(estimator))
    if grid is None:
        raise ParameterError(
            f"There is no usual grid for {type(estimator).__name__}. Pass one: a dict "
            "of parameter to the values to try."
        )
    return grid


def candidates(estimator: Any, grid: Grid) -> list[dict[str, Any]]:
    """List what is to be tried, each once and checked."""
    known = estimator.get_params()
    for part in _parts(grid):
        unknown = [name for name in part if name not in known]
        if unknown:
            raise ParameterError(
                f"The grid names {quoted(unknown)}, which "
                f"{type(estimator).__name__} does not know. Its parameters are "
                f"{quoted(known, 40)}."
            )
        for name, values in part.items():
            _check_values(name, values)
    # Several parts may have candidates in common.
    listed = list({candidate_key(one): one for one in ParameterGrid(grid)}.values())
    if isinstance(estimator, TreeEstimator):
        for one in listed:
            # Refuses what cannot be, before any work is done.
            _ = clone(estimator).set_params(**one).recipe
    return listed


def _parts(grid: Any) -> Sequence[Mapping[str, Any]]:
    parts: Sequence[Any] = [grid] if isinstance(grid, Mapping) else grid
    fit = isinstance(parts, Sequence) and len(parts) > 0
    if not fit or not all(isinstance(part, Mapping) for part in parts):
        raise ParameterError(
            "grid must be a dict of parameter to the values to try, such as "
            f"{{'max_depth': [2, 4]}}, or a list of such dicts. Got {grid!r}."
        )
    return parts


def _check_values(name: str, values: Any) -> None:
    """Refuse what is no list of different values."""
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
