"""branchwise: decision trees that a person can read, defend and ship."""

from branchwise import datasets
from branchwise.errors import (
    BranchwiseError,
    BranchwiseWarning,
    DataError,
    ExportError,
    ModelFileError,
    ParameterError,
)
from branchwise.findings import Finding, inspect_table
from branchwise.fitting import fit_tree
from branchwise.model import Model, load, pruning_path
from branchwise.recipes import Recipe
from branchwise.table.encoded import EncodedTable
from branchwise.table.read import read_table

__version__ = "0.1.0"

__all__ = [
    "BranchwiseError",
    "BranchwiseWarning",
    "C45Classifier",
    "CARTClassifier",
    "CARTRegressor",
    "DataError",
    "EncodedTable",
    "ExportError",
    "Finding",
    "ID3Classifier",
    "Model",
    "ModelFileError",
    "ParameterError",
    "Recipe",
    "datasets",
    "fit_tree",
    "inspect_table",
    "load",
    "pruning_path",
    "read_table",
]
_ESTIMATORS = ("C45Classifier", "CARTClassifier", "CARTRegressor", "ID3Classifier")


def __getattr__(name: str) -> object:
    """Load the estimators, and scikit-learn with them, when they are asked for."""
    if name in _ESTIMATORS:
        from branchwise import estimators  # noqa: PLC0415

        return getattr(estimators, name)
    raise AttributeError(f"module 'branchwise' has no attribute {name!r}")
