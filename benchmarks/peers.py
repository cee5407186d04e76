"""The tools that a user would pick instead, each growing one tree on one thread.

Every peer has ``fit(X, y, max_depth)`` from a DataFrame as the user has it to a
fitted model, and where it makes sense ``predict(model, X)``. A peer that is not
installed is left out.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Peer:
    """A tool: its name, how it fits and how it predicts."""

    name: str
    fit: Callable[[pd.DataFrame, pd.Series, int | None], Any]
    predict: Callable[[Any, pd.DataFrame], np.ndarray]


def sklearn_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Encode the categories in a pipeline and grow an entropy tree."""
    from sklearn.tree import DecisionTreeClassifier

    return _encoded_fit(DecisionTreeClassifier(criterion="entropy"), X, y, max_depth)


def sklearn_gini_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Encode the categories in a pipeline and grow a tree by Gini's impurity."""
    from sklearn.tree import DecisionTreeClassifier

    return _encoded_fit(DecisionTreeClassifier(criterion="gini"), X, y, max_depth)


def sklearn_regression_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Encode the categories in a pipeline and grow a regression tree."""
    from sklearn.tree import DecisionTreeRegressor

    return _encoded_fit(DecisionTreeRegressor(), X, y, max_depth)


def _encoded_fit(
    tree: Any, X: pd.DataFrame, y: pd.Series, max_depth: int | None
) -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder: Any = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    if len(X.select_dtypes("number").columns):
        encoder = make_column_transformer(
            (encoder, make_column_selector(dtype_exclude="number")),
            remainder="passthrough",
        )
    tree.set_params(max_depth=max_depth, random_state=0)
    return make_pipeline(encoder, tree).fit(X, y)


def branchwise_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Fit on the table as it is."""
    from branchwise import ID3Classifier

    return ID3Classifier(max_depth=max_depth).fit(X, y)


def c45_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow and prune as C4.5 does."""
    from branchwise import C45Classifier

    return C45Classifier(max_depth=max_depth).fit(X, y)


def c45_unpruned_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow as C4.5 does."""
    from branchwise import C45Classifier

    return C45Classifier(max_depth=max_depth, prune=False).fit(X, y)


def cart_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow two-way splits."""
    from branchwise import CARTClassifier

    return CARTClassifier(max_depth=max_depth).fit(X, y)


def cart_regression_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow two-way splits that tell numbers apart."""
    from branchwise import CARTRegressor

    return CARTRegressor(max_depth=max_depth).fit(X, y)


def binned_regression_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow two-way splits of binned numbers."""
    from branchwise import CARTRegressor

    return CARTRegressor(max_depth=max_depth, max_bins=255).fit(X, y)


def chefboost_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow a C4.5 tree, which chefboost does without pruning, a limit or gaps."""
    from chefboost import Chefboost

    if max_depth is not None:
        raise ValueError("chefboost's C4.5 knows no depth.")
    texts = X.select_dtypes(exclude="number").columns
    table = X.astype(dict.fromkeys(texts, "object")).fillna(dict.fromkeys(texts, "?"))
    table["Decision"] = y.astype("object")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(folder)  # it writes its rules to where it runs
        try:
            return Chefboost.fit(
                table, {"algorithm": "C4.5", "enableParallelism": False}
            )
        finally:
            os.chdir(here)


def lightgbm_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow one tree over category columns."""
    target = {
        "objective": "multiclass" if y.nunique() > 2 else "binary",
        "num_class": y.nunique() if y.nunique() > 2 else 1,
    }
    return _lightgbm_tree(_as_category(X), y.cat.codes.to_numpy(), max_depth, target)


def lightgbm_regression_fit(
    X: pd.DataFrame, y: pd.Series, max_depth: int | None
) -> Any:
    """Grow one tree over binned numbers."""
    return _lightgbm_tree(X, y, max_depth, {"objective": "regression"})


def _lightgbm_tree(
    X: pd.DataFrame, y: Any, max_depth: int | None, target: dict[str, Any]
) -> Any:
    import lightgbm

    leaves = 2 ** (max_depth or 17)
    parameters = target | {
        "num_leaves": min(leaves, 131_072),
        "max_depth": max_depth or -1,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(X, label=y)
    return lightgbm.train(parameters, data, num_boost_round=1)


def xgboost_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow one tree over category columns."""
    import xgboost

    model = xgboost.XGBClassifier(
        n_estimators=1,
        max_depth=max_depth or 0,
        min_child_weight=0,
        tree_method="hist",
        enable_categorical=True,
        n_jobs=1,
    )
    return model.fit(_as_category(X), y.cat.codes.to_numpy())


def ydf_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow a CART tree without the pruning that would hold rows back."""
    import ydf

    return _ydf_tree(X, y.astype("str"), max_depth, ydf.Task.CLASSIFICATION)


def ydf_regression_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow a CART tree for numbers, without pruning."""
    import ydf

    return _ydf_tree(X, y, max_depth, ydf.Task.REGRESSION)


def _ydf_tree(X: pd.DataFrame, y: pd.Series, max_depth: int | None, task: Any) -> Any:
    import ydf

    table = X.astype({c: "str" for c in X.columns if X[c].dtype == "category"})
    table = table.assign(**{y.name: y})
    learner = ydf.CartLearner(
        label=y.name,
        task=task,
        max_depth=-1 if max_depth is None else max_depth + 1,
        min_examples=1,
        validation_ratio=0.0,
        num_threads=1,
    )
    return learner.train(table, verbose=0)


def _as_category(X: pd.DataFrame) -> pd.DataFrame:
    texts = [c for c in X.columns if pd.api.types.is_string_dtype(X[c].dtype)]
    return X.astype(dict.fromkeys(texts, "category")) if texts else X


def lightgbm_predict(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Predict with one thread."""
    return model.predict(X, num_threads=1)


def plain_predict(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Predict as scikit-learn does."""
    return model.predict(X)


OURS = Peer("branchwise", branchwise_fit, plain_predict)
OUR_C45 = Peer(OURS.name, c45_fit, plain_predict)
OUR_UNPRUNED_C45 = Peer(OURS.name, c45_unpruned_fit, plain_predict)
OUR_CART = Peer(OURS.name, cart_fit, plain_predict)
OUR_REGRESSION = Peer(OURS.name, cart_regression_fit, plain_predict)
OUR_BINNED_REGRESSION = Peer(OURS.name, binned_regression_fit, plain_predict)
SKLEARN = Peer("scikit-learn", sklearn_fit, plain_predict)
SKLEARN_GINI = Peer("scikit-learn", sklearn_gini_fit, plain_predict)
SKLEARN_REGRESSION = Peer("scikit-learn", sklearn_regression_fit, plain_predict)
CHEFBOOST = Peer("chefboost", chefboost_fit, plain_predict)


def others() -> list[Peer]:
    """Return the other peers that are installed."""
    known = [
        ("lightgbm", Peer("LightGBM", lightgbm_fit, lightgbm_predict)),
        ("xgboost", Peer("XGBoost", xgboost_fit, plain_predict)),
        ("ydf", Peer("YDF CART", ydf_fit, plain_predict)),
    ]
    return [peer for module, peer in known if find_spec(module)]


def regression_others() -> list[Peer]:
    """Return the other peers that are installed and predict numbers."""
    known = [
        ("lightgbm", Peer("LightGBM", lightgbm_regression_fit, lightgbm_predict)),
        ("ydf", Peer("YDF CART", ydf_regression_fit, plain_predict)),
    ]
    return [peer for module, peer in known if find_spec(module)]


def our_forest(n_trees: int, regression: bool = False) -> Peer:
    """Return our forest, of the table as it is."""

    def fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
        from branchwise import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestRegressor if regression else RandomForestClassifier
        return kind(n_estimators=n_trees, max_depth=max_depth).fit(X, y)

    return Peer(OURS.name, fit, plain_predict)


def sklearn_forest(n_trees: int, regression: bool = False) -> Peer:
    """Return scikit-learn's forest, after its encoder of categories."""

    def fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestRegressor if regression else RandomForestClassifier
        # In regression nodes of both try all columns, else the square root of them,
        # which ours rounds up.
        forest = kind(n_estimators=n_trees, n_jobs=1)
        return _encoded_fit(forest, X, y, max_depth)

    return Peer(SKLEARN.name, fit, plain_predict)


def forest_others(n_trees: int) -> list[Peer]:
    """Return the forests of other tools that are installed, for classes."""

    def lightgbm_forest(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
        import lightgbm

        forest = lightgbm.LGBMClassifier(
            boosting_type="rf",
            n_estimators=n_trees,
            num_leaves=4096,
            max_depth=max_depth or -1,
            min_child_samples=1,
            subsample=0.632,
            subsample_freq=1,
            colsample_bynode=X.shape[1] ** -0.5,
            n_jobs=1,
            verbosity=-1,
        )
        return forest.fit(_as_category(X), y.cat.codes.to_numpy())

    def ydf_forest(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
        import ydf

        texts = {c: "str" for c in X.columns if X[c].dtype == "category"}
        learner = ydf.RandomForestLearner(
            label=y.name,
            num_trees=n_trees,
            max_depth=-1 if max_depth is None else max_depth + 1,
            min_examples=1,
            winner_take_all=False,
            compute_oob_performances=False,
            num_threads=1,
        )
        return learner.train(
            X.astype(texts).assign(**{y.name: y.astype("str")}), verbose=0
        )

    known = [
        ("lightgbm", Peer("LightGBM rf", lightgbm_forest, plain_predict)),
        ("ydf", Peer("YDF", ydf_forest, plain_predict)),
    ]
    return [peer for module, peer in known if find_spec(module)]
