"""Algorithms to compare by name, their default grids, and checks of grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from branchwise.data.columns import Numbers
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.table_schema import Value
from branchwise.errors import ParameterError, quoted
from branchwise.estimators import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
)
from branchwise.estimators.boosting import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from branchwise.estimators.ensemble import EnsembleEstimator
from branchwise.estimators.fitted import FittedEstimator
from branchwise.estimators.forest import RandomForestClassifier, RandomForestRegressor
from branchwise.estimators.rules import RuleClassifier
from branchwise.evaluation.trials import candidate_key

#: Every comparison has it: the most frequent class, or the mean.
BASELINE = "baseline"
#: scikit-learn's tree, after its encoder.
SKLEARN = "sklearn"
#: By the names of the command line.
CLASSIFIERS: Mapping[str, type[FittedEstimator]] = {
    "id3": ID3Classifier,
    "c4.5": C45Classifier,
    "cart": CARTClassifier,
    "forest": RandomForestClassifier,
    "boosted": BoostedClassifier,
    "gradient": GradientBoostingClassifier,
    "rules": RuleClassifier,
}
REGRESSORS: Mapping[str, type[FittedEstimator]] = {
    "cart": CARTRegressor,
    "forest": RandomForestRegressor,
    "gradient": GradientBoostingRegressor,
}
CANDIDATES = (*CLASSIFIERS, SKLEARN, BASELINE)


def candidate(name: str, regression: bool = False, **parameters: Any) -> Any:
    """Return an estimator by its name.

    Parameters
    ----------
    name : str
        Which algorithm: "id3", "c4.5", "cart", "forest", "boosted", "gradient",
        "rules", "sklearn" (its tree) or "baseline".
    regression : bool
        Whether numbers are to be predicted.
    **parameters : object
        Parameters of the estimator; "sklearn" and "baseline" have none.

    Returns
    -------
    estimator
        Not fitted yet.
    """
    if name == BASELINE:
        return DummyRegressor() if regression else DummyClassifier(strategy="prior")
    if name == SKLEARN:
        grower = DecisionTreeRegressor if regression else DecisionTreeClassifier
        return grower(random_state=0, **parameters)
    own = REGRESSORS if regression else CLASSIFIERS
    if name not in own:
        what = "numbers" if regression else "classes"
        raise ParameterError(
            f"There is no algorithm {name!r} that predicts {what}. Choose among "
            f"{quoted((*own, SKLEARN, BASELINE), 9)}."
        )
    return own[name](**parameters)


def prepared(estimator: Any, table: EncodedTable) -> tuple[Any, Any]:
    """Return an estimator and the table in the format that it can be fitted with.

    Trees of branchwise, pipelines and other estimators get the encoded table; a tree
    of scikit-learn is put into a pipeline with an encoder.
    """
    if isinstance(estimator, (DummyClassifier, DummyRegressor)):
        return estimator, np.zeros((table.n_rows, 1))
    if isinstance(estimator, (DecisionTreeClassifier, DecisionTreeRegressor)):
        columns = enumerate(table.columns)
        text = [at for at, raw in columns if not isinstance(raw, Numbers)]
        encoder = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=-1,
            encoded_missing_value=-2,
        )
        encoded = make_column_transformer((encoder, text), remainder="passthrough")
        return make_pipeline(encoded, estimator), _cells(table)
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
    """Return the leaves and the depth of a fitted tree; NaN for what is none.

    Of an ensemble, all leaves and the depth of the deepest tree; of rules that vote
    their number and the most conditions.
    """
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    if isinstance(last, RuleClassifier):
        sizes = [len(rule.conditions) for rule in last.rules()]
        return float(len(sizes)), float(max(sizes, default=0))
    if isinstance(last, EnsembleEstimator):
        trees = last.model_.trees
        depth = max(tree.max_depth for tree in trees)
        return float(sum(tree.n_leaves for tree in trees)), float(depth)
    if not hasattr(last, "get_n_leaves"):
        return (1.0, 0.0) if type(last).__name__.startswith("Dummy") else (np.nan,) * 2
    return float(last.get_n_leaves()), float(last.get_depth())


Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]

_Values = dict[str, Sequence[Any]]
_BY_SIZE: _Values = {
    "max_depth": (2, 3, 4, 6, 8, 12, None),
    "min_samples_leaf": (1, 2, 5, 10, 20),
}
_CONFIDENCE: _Values = {"confidence": (0.01, 0.05, 0.1, 0.25, 0.5)}
_C45_SIZES: _Values = {
    "min_samples_branch": (2, 5, 10, 20, 50),
    "max_depth": (4, 8, 16, None),
}
_ID3_CRITERIA: _Values = {"criterion": ("gain", "gain_ratio", "gini")}
_CART_CRITERIA: _Values = {"criterion": ("gini", "gain")}
_FOREST: _Values = {
    "n_estimators": (50, 100, 200),
    "min_samples_leaf": (1, 2, 5),
}
_GRADIENT: _Values = {
    "n_estimators": (50, 100, 200),
    "learning_rate": (0.05, 0.1, 0.2),
    "max_depth": (2, 3, 5),
}
_ALPHAS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)

#: Depth, fewest cases, criterion and pruning of each algorithm; the number of trees.
_GRIDS: dict[type, list[_Values]] = {
    ID3Classifier: [
        _ID3_CRITERIA | _BY_SIZE,
        {
            **_ID3_CRITERIA,
            "min_samples_leaf": _BY_SIZE["min_samples_leaf"],
            "pruning": ("error-based",),
            **_CONFIDENCE,
        },
    ],
    C45Classifier: [_CONFIDENCE | _C45_SIZES, {"prune": (False,), **_C45_SIZES}],
    CARTClassifier: [
        _CART_CRITERIA | _BY_SIZE,
        {**_CART_CRITERIA, "min_samples_leaf": (1, 5), "ccp_alpha": _ALPHAS},
    ],
    CARTRegressor: [
        _BY_SIZE,
        {"ccp_alpha": ("best", "1-se"), "min_samples_leaf": (1, 5)},
    ],
    RandomForestClassifier: [_FOREST | {"max_features": ("auto", 0.5, None)}],
    RandomForestRegressor: [_FOREST | {"max_features": ("sqrt", 0.5, 1.0)}],
    BoostedClassifier: [
        {"n_estimators": (5, 10, 20, 50), "max_depth": (2, 4, 8, None)}
        | {"base": ("c4.5", "cart")}
    ],
    GradientBoostingClassifier: [_GRADIENT],
    GradientBoostingRegressor: [_GRADIENT],
    RuleClassifier: [
        {"rule_cost": (0.2, 0.3, 0.4, 0.6, 0.8, 1.2), "n_estimators": (10, 20, 40)}
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
    if isinstance(estimator, EnsembleEstimator):
        # What differs from the default was chosen, and holds for all candidates.
        usual, own = type(estimator)().get_params(), estimator.get_params()
        return [
            {name: values for name, values in piece.items() if own[name] == usual[name]}
            for piece in grid
        ]
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
    if isinstance(estimator, FittedEstimator):
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


#: What a scorer requires of the classes, whether they are so, and other scorers. The
#: positive class of scikit-learn's scorers is 1, and cannot be changed here.
_Demand = tuple[str, Callable[[Sequence[Value]], bool], tuple[str, ...]]


def _of_one(score: str) -> _Demand:
    return (
        "two classes, one of them the number 1",
        lambda classes: len(classes) == 2 and 1 in classes,
        (f"{score}_macro", f"{score}_weighted"),
    )


def _of_two(*instead: str) -> _Demand:
    return "two classes", lambda classes: len(classes) == 2, instead


_OF_NUMBERED: _Demand = (
    "numbers as names if there are two classes",
    lambda classes: len(classes) != 2 or not isinstance(classes[0], str),
    ("neg_log_loss",),
)
_DEMANDS: dict[str, _Demand] = {
    **{score: _of_one(score) for score in ("f1", "precision", "recall", "jaccard")},
    "roc_auc": _of_two("roc_auc_ovr", "roc_auc_ovo"),
    "positive_likelihood_ratio": _of_two("balanced_accuracy"),
    "neg_negative_likelihood_ratio": _of_two("balanced_accuracy"),
    "average_precision": (
        "1 as one of the names if there are two classes",
        lambda classes: len(classes) != 2 or 1 in classes,
        ("roc_auc", "f1_macro", "f1_weighted"),
    ),
    "neg_brier_score": _OF_NUMBERED,
    "d2_brier_score": _OF_NUMBERED,
}


def check_scoring(scoring: str | None, classes: Sequence[Value]) -> None:
    """Reject a scorer that does not fit the target; without classes, of numbers."""
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
    words, fits, instead = _DEMANDS.get(scoring, ("", bool, ()))
    if words and not fits(classes):
        raise ParameterError(
            f"scoring {scoring!r} takes {words}. Got {len(classes):,}: "
            f"{quoted(classes)}. Choose {' or '.join(map(repr, instead))}."
        )


def _fitting(classes: Sequence[Value]) -> list[str]:
    known = get_scorer_names()
    wanted = _OF_ANY_CLASSES if classes else _OF_NUMBERS
    return [name for name in wanted if name in known]
