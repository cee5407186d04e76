"""Metadata of models, their unused columns, and checks of new tables.

Models of single trees and ensembles share these methods.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.descriptions import Metadata
from branchwise.data.table_schema import Columns, Schema

if TYPE_CHECKING:
    import datetime as dt

    from branchwise.engines.table_check import TableCheck

#: Stands for metadata that stays as it is, as None takes it away.
KEEP: Any = "as it is"


class DescribedModel:
    """What is kept with a model beside what it predicts."""

    schema: Schema

    @property
    def used_columns(self) -> Sequence[int]:
        """The columns that are split on."""
        raise NotImplementedError

    def encoded(self, X: object, n_jobs: int | None = None) -> Columns:
        """Encode the columns that are split on."""
        raise NotImplementedError

    @property
    def metadata(self) -> Metadata:
        """Version of branchwise, name, notes, date and data hash, where known."""
        return self.schema.metadata

    def with_metadata(
        self,
        *,
        name: str | None = KEEP,
        notes: str | None = KEEP,
        date: str | dt.date | None = KEEP,
        data_hash: str | None = KEEP,
    ) -> Self:
        """Return the model with other metadata; it predicts the same.

        Parameters
        ----------
        name, notes : str or None
            Texts of your own; None takes them away.
        date : str, date, datetime or None
            A date, or date and time, in ISO 8601. The clock is never read: the same
            data give the same model file.
        data_hash : str or None
            A hash of the training data, such as ``"sha256:..."``.

        Returns
        -------
        model
            A new one; this one stays as it is.
        """
        given = {"name": name, "notes": notes, "date": date, "data_hash": data_hash}
        changed = {key: value for key, value in given.items() if value is not KEEP}
        metadata = self.metadata.with_values(**changed)
        return self.with_schema(replace(self.schema, metadata=metadata))

    def with_labels(self, labels: object) -> Self:
        """Return the model with titles, units and words for values in its views.

        It predicts the same, and takes tables with the same names and values.

        Parameters
        ----------
        labels : dict or path
            By column, or the target: its ``title``, its ``unit`` and ``words``, a
            dictionary from values to words; or only the title. Or the path of a JSON,
            TOML or CSV file that has them.

        Returns
        -------
        model
            A new one; this one stays as it is.
        """
        from branchwise.text.labels import with_labels

        return self.with_schema(with_labels(self.schema, labels))

    @property
    def shown_schema(self) -> Schema:
        """The schema with the titles and words of labels, for views."""
        schema = self.schema
        if schema.target_label is None and not any(c.label for c in schema.columns):
            return schema
        from branchwise.text.labels import shown_schema

        return shown_schema(schema)

    def drop_unused(self) -> Self:
        """Return the model without the columns that it does not split on.

        It predicts the same. A tree without splits keeps its first column. Models of
        arrays then take arrays of the columns that are left.
        """
        kept = list(self.used_columns) or [0]
        position = np.full(len(self.schema.columns), -1, dtype=np.intp)
        position[kept] = np.arange(len(kept))
        columns = tuple(self.schema.columns[at] for at in kept)
        smaller = self.with_schema(replace(self.schema, columns=columns))
        smaller._move_columns(position)  # noqa: SLF001
        return smaller

    def check_table(self, X: object) -> TableCheck:
        """Compare a table with the training table, by the columns that are split on.

        Parameters
        ----------
        X : table, files, SqlTable, DataFrame of Dask or Spark
            Rows to predict for, as :func:`~branchwise.predict_rows` takes them. Cells
            are counted where the rows are: by one query, or in one pass.

        Returns
        -------
        TableCheck
            How many cells are missing, unseen or outside of the range of training, by
            column; ``to_frame()`` is a table of them.
        """
        from branchwise.engines.table_check import TableCheck, counts_in

        return TableCheck(self.schema, counts_in(self, X))

    def _move_columns(self, position: Ints) -> None:
        """Renumber the columns of the trees."""
        raise NotImplementedError

    def with_schema(self, schema: Schema) -> Self:
        """Return the model with another schema, and nothing that was prepared.

        Parameters
        ----------
        schema : Schema
            Columns of the same kinds and values, in the same order.

        Returns
        -------
        model
            A new one; this one stays as it is.
        """
        new = copy.copy(self)  # takes what is pickled, which leaves out caches
        new.schema = schema
        return new
