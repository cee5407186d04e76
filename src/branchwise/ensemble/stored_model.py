""":func:`load`: a model or an ensemble from a model file."""

from __future__ import annotations

import os
from typing import BinaryIO

from branchwise import model_file
from branchwise.ensemble.ensemble import Ensemble
from branchwise.errors import ParameterError
from branchwise.model import Model


def load(path: str | os.PathLike[str] | BinaryIO | bytes) -> Model | Ensemble:
    """Open a model file. This never runs code from the file.

    Parameters
    ----------
    path : str, path, file or bytes
        A file written by :meth:`Model.save`, by ``Ensemble.save`` or by ``branchwise
        fit``: its path, an open file that gives bytes, or its content.

    Returns
    -------
    Model or Ensemble
        The model, which predicts exactly as the one that was saved: a
        :class:`~branchwise.Model` for a single tree, an ``Ensemble`` for several.
    """
    if isinstance(path, bytes | bytearray | memoryview):
        return model_of(model_file.from_bytes(bytes(path), "the content"))
    if isinstance(path, str | os.PathLike):
        return model_of(model_file.load(path))
    if not hasattr(path, "read"):
        raise ParameterError(
            f"path must be a path, an open file or bytes. Got {path!r}."
        )
    return model_of(model_file.from_bytes(model_file.bytes_of(path), "the file"))


def model_of(
    stored: model_file.StoredTree | model_file.StoredEnsemble,
) -> Model | Ensemble:
    """Return what the content of a model file is."""
    if isinstance(stored, model_file.StoredEnsemble):
        return Ensemble(*stored)
    return Model(*stored)
