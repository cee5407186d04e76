"""Ensembles in model files, and the comparison of ensembles."""

from __future__ import annotations

import os

from branchwise import model_file
from branchwise.ensemble.fitted_trees import FittedTrees


class SavedTrees(FittedTrees):
    """Trees that predict together, and are saved and compared."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SavedTrees):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    @property
    def stored(self) -> model_file.StoredEnsemble:
        """What a model file holds of it."""
        return model_file.StoredEnsemble(self.schema, self.trees, self.recipe)

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        return model_file.ensemble_to_bytes(self.stored)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all. It has no training rows."""
        model_file.save_ensemble(path, self.stored)
