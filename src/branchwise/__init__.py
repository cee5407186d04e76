"""branchwise: decision trees that a person can read, defend and ship."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from branchwise import datasets
    from branchwise.data.checks import Finding
    from branchwise.data.conventions.derived_columns import date_features
    from branchwise.data.encoded_table import EncodedTable
    from branchwise.ensemble.stored_model import load
    from branchwise.errors import (
        BranchwiseError,
        BranchwiseWarning,
        DataError,
        ExportError,
        FitWarning,
        ModelFileError,
        ParameterError,
    )
    from branchwise.estimators import (
        C45Classifier,
        CARTClassifier,
        CARTRegressor,
        ID3Classifier,
    )
    from branchwise.estimators.bagging import BaggedTrees
    from branchwise.estimators.boosting import (
        BoostedClassifier,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from branchwise.estimators.forest import (
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from branchwise.estimators.of_model import to_estimator
    from branchwise.estimators.rules import RuleClassifier
    from branchwise.files.read_table import read_table
    from branchwise.fit import fit_tree
    from branchwise.model import Model, pruning_path
    from branchwise.predict import predict_rows
    from branchwise.recipe import Recipe
    from branchwise.studio.session import grow_by_hand, open_session
    from branchwise.text.findings import inspect_table

__version__ = "0.1.0"

__all__ = [
    "BaggedTrees",
    "BoostedClassifier",
    "BranchwiseError",
    "BranchwiseWarning",
    "C45Classifier",
    "CARTClassifier",
    "CARTRegressor",
    "DataError",
    "EncodedTable",
    "ExportError",
    "Finding",
    "FitWarning",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "ID3Classifier",
    "Model",
    "ModelFileError",
    "ParameterError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Recipe",
    "RuleClassifier",
    "datasets",
    "date_features",
    "fit_tree",
    "grow_by_hand",
    "inspect_table",
    "load",
    "open_session",
    "predict_rows",
    "pruning_path",
    "read_table",
    "to_estimator",
]

#: Public names by the module that has them; imported on first use, so that
#: ``import branchwise`` is fast.
_MODULES = {
    "data.checks": ("Finding",),
    "data.conventions.derived_columns": ("date_features",),
    "data.encoded_table": ("EncodedTable",),
    "ensemble.stored_model": ("load",),
    "errors": (
        "BranchwiseError",
        "BranchwiseWarning",
        "DataError",
        "ExportError",
        "FitWarning",
        "ModelFileError",
        "ParameterError",
    ),
    "estimators": (
        "C45Classifier",
        "CARTClassifier",
        "CARTRegressor",
        "ID3Classifier",
    ),
    "estimators.bagging": ("BaggedTrees",),
    "estimators.boosting": (
        "BoostedClassifier",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
    ),
    "estimators.forest": ("RandomForestClassifier", "RandomForestRegressor"),
    "estimators.of_model": ("to_estimator",),
    "estimators.rules": ("RuleClassifier",),
    "files.read_table": ("read_table",),
    "fit": ("fit_tree",),
    "model": ("Model", "pruning_path"),
    "predict": ("predict_rows",),
    "recipe": ("Recipe",),
    "studio.session": ("grow_by_hand", "open_session"),
    "text.findings": ("inspect_table",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name == "datasets":
        return import_module("branchwise.datasets")
    if name in _MODULE_OF:
        found = getattr(import_module(f"branchwise.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'branchwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
