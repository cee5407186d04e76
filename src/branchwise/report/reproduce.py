"""How to make a report again: commands, versions, and marks of the files."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from branchwise import __version__
from branchwise.estimators.base import TreeEstimator
from branchwise.model import Model
from branchwise.report.source import Source


def file_mark(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the name of a file (without its directory), its size and its SHA-256."""
    file = Path(path)
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}


def reproduction(
    source: Source,
    model: Model,
    seed: int,
    commands: list[str],
    files: list[dict[str, Any]],
    reads: tuple[str, str] | None,
) -> dict[str, Any]:
    """Tell all that is needed to make the same page again."""
    return {
        "commands": commands,
        "python": python_lines(source, reads),
        "seed": seed,
        "versions": {
            "branchwise": __version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "files": files,
        "model_file": _model_mark(model),
    }


def _model_mark(model: Model) -> dict[str, Any] | None:
    """Mark the file that the model would be; there is none with a Python function."""
    if callable(model.recipe.criterion):
        return None
    content = model.to_bytes()
    return {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def parameter(value: object) -> str:
    """Write a parameter as Python does; of a function only its name."""
    return str(getattr(value, "__name__", "?")) if callable(value) else repr(value)


def python_lines(source: Source, reads: tuple[str, str] | None = None) -> list[str]:
    """Return the lines that read the table, if that is known, and grow the tree."""
    estimator = source.estimator
    name = type(estimator).__name__
    if reads is not None:
        return [
            f"from branchwise import {name}, read_table",
            f"table = {reads[0]}",
            f"tree = {_written(estimator)}",
            f"tree.fit({reads[1]})",
        ]
    weights = "" if source.rows.weights is None else ", sample_weight=weights"
    aside = "" if source.pruned_with is None else ", validation=(X_valid, y_valid)"
    return [
        f"from branchwise import {name}",
        f"tree = {_written(estimator)}",
        f"tree.fit(X, y{weights}{aside})",
    ]


def _written(estimator: TreeEstimator) -> str:
    """Write an estimator with the parameters that are not as usual."""
    given = ", ".join(f"{n}={written}" for n, written in changed(estimator).items())
    return f"{type(estimator).__name__}({given})"


def changed(estimator: TreeEstimator) -> dict[str, str]:
    """Return the parameters that are not as usual, as Python writes them."""
    usual = type(estimator)().get_params(deep=False)
    return {
        name: parameter(value)
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(usual[name])
    }
