"""branchwise: decision trees that a person can read, defend and ship."""

from branchwise import datasets
from branchwise.errors import (
    BranchwiseError,
    BranchwiseWarning,
    DataError,
    ModelFileError,
    ParameterError,
)
from branchwise.fitting import fit_tree
from branchwise.model import Model, load
from branchwise.recipes import Recipe

__version__ = "0.1.0"

__all__ = [
    "BranchwiseError",
    "BranchwiseWarning",
    "DataError",
    "ID3Classifier",
    "Model",
    "ModelFileError",
    "ParameterError",
    "Recipe",
    "datasets",
    "fit_tree",
    "load",
]


def __getattr__(name: str) -> object:
    """Load the estimators, and scikit-learn with them, when they are asked for."""
    if name == "ID3Classifier":
        from branchwise.estimators import ID3Classifier  # noqa: PLC0415

        return ID3Classifier
    raise AttributeError(f"module 'branchwise' has no attribute {name!r}")
