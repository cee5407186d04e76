"""The tools that a user would pick instead, each growing one tree on one thread.

Every peer has ``fit(X, y, max_depth)`` from a DataFrame as the user has it to a
fitted model, and where it makes sense ``predict(model, X)``. A peer that is not
installed is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
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
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier

    encoder: Any = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    if len(X.select_dtypes("number").columns):
        encoder = make_column_transformer(
            (encoder, make_column_selector(dtype_exclude="number")),
            remainder="passthrough",
        )
    tree = DecisionTreeClassifier(
        criterion="entropy", max_depth=max_depth, random_state=0
    )
    return make_pipeline(encoder, tree).fit(X, y)


def branchwise_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Fit on the table as it is."""
    from branchwise import ID3Classifier

    return ID3Classifier(max_depth=max_depth).fit(X, y)


def lightgbm_fit(X: pd.DataFrame, y: pd.Series, max_depth: int | None) -> Any:
    """Grow one tree over category columns."""
    import lightgbm

    leaves = 2 ** (max_depth or 17)
    parameters = {
        "objective": "multiclass" if y.nunique() > 2 else "binary",
        "num_class": y.nunique() if y.nunique() > 2 else 1,
        "num_leaves": min(leaves, 131_072),
        "max_depth": max_depth or -1,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(_as_category(X), label=y.cat.codes.to_numpy())
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

    table = X.astype({c: "str" for c in X.columns if X[c].dtype == "category"})
    table = table.assign(**{y.name: y.astype("str")})
    learner = ydf.CartLearner(
        label=y.name,
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
SKLEARN = Peer("scikit-learn", sklearn_fit, plain_predict)


def others() -> list[Peer]:
    """Return the other peers that are installed."""
    known = [
        ("lightgbm", Peer("LightGBM", lightgbm_fit, lightgbm_predict)),
        ("xgboost", Peer("XGBoost", xgboost_fit, plain_predict)),
        ("ydf", Peer("YDF CART", ydf_fit, plain_predict)),
    ]
    return [peer for module, peer in known if find_spec(module)]
