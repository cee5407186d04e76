""":func:`load`: a model or an ensemble from a model file."""

from __future__ import annotations

import os

from branchwise import model_file
from branchwise.ensemble.ensemble import Ensemble
from branchwise.model import Model


def load(path: str | os.PathLike[str]) -> Model | Ensemble:
    """Open a model file. This never runs code from the file.

    Parameters
    ----------
    path : str or path
        A file written by :meth:`Model.save`, by ``Ensemble.save`` or by ``branchwise
        fit``.

    Returns
    -------
    Model or Ensemble
        The model, which predicts exactly as the one that was saved: a
        :class:`~branchwise.Model` for a single tree, an ``Ensemble`` for several.
    """
    return model_of(model_file.load(path))


def model_of(
    stored: model_file.StoredTree | model_file.StoredEnsemble,
) -> Model | Ensemble:
    """Return what the content of a model file is."""
    if isinstance(stored, model_file.StoredEnsemble):
        return Ensemble(*stored)
    return Model(*stored)
