"""Ensembles in model files and in other languages, and their comparison."""

from __future__ import annotations

import os
from typing import Self

from branchwise import model_file
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.errors import ModelFileError


class SavedTrees(FittedTrees):
    """Trees that predict together, and are saved, compared and exported."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SavedTrees):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    @property
    def stored(self) -> model_file.StoredEnsemble:
        """What a model file holds of it."""
        return model_file.StoredEnsemble(
            self.schema,
            self.trees,
            self.recipe,
            self.tree_weights,
            self.initial,
            self.rule_cases,
        )

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        return model_file.ensemble_to_bytes(self.stored)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the ensemble that the content of a model file holds.

        Parameters
        ----------
        content : bytes
            The bytes of a model file of an ensemble.

        Returns
        -------
        Ensemble
            It predicts as the saved one; it has no training rows.
        """
        stored = model_file.from_bytes(content, "the content")
        if not isinstance(stored, model_file.StoredEnsemble):
            raise ModelFileError(
                "the content holds a single tree, and an ensemble is needed here. Open "
                "it with branchwise.load or Model.from_bytes."
            )
        return cls(*stored)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all. It has no training rows.

        Parameters
        ----------
        path : str or path
            The file; what it held is replaced.
        """
        model_file.save_ensemble(path, self.stored)

    def export(
        self,
        target: str,
        path: str | os.PathLike[str] | None = None,
        verify: object = True,
        **options: str,
    ) -> str | bytes:
        """Return the ensemble in another language or format, and write it to a file.

        Parameters
        ----------
        target, path, verify, **options
            As in :meth:`branchwise.Model.export`; ``docs/export.md`` says what targets
            cannot hold.

        Returns
        -------
        str or bytes
            The export; bytes where the format is not text.
        """
        from branchwise import export  # noqa: PLC0415

        return export.exported_to(self, target, path, verify, **options)
