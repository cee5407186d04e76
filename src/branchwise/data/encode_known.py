"""Encoding of cached tables by the schema of a model, each column once.

The models of a search that are fitted to the same rows share the columns of their
schema, so those are recognised as the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.encode import encode_columns
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.table_schema import Column, Columns, Schema


class _Encoded(NamedTuple):
    """Cells of a table, encoded by the columns of a schema, which it keeps alive."""

    columns: tuple[Column, ...]
    cells: dict[int, NDArray[Any]]


def encode_known(table: EncodedTable, schema: Schema, used: Sequence[int]) -> Columns:
    """Return what ``encode_columns`` returns if all values are allowed."""
    if table.named != schema.named:  # which is worth a warning each time
        return encode_columns(table, schema, used)
    name = "by schema", id(schema.columns)
    known = table.cache.get(name)
    cells: dict[int, NDArray[Any]] = {}
    is_new = not isinstance(known, _Encoded) or known.columns is not schema.columns
    if isinstance(known, _Encoded) and not is_new:
        cells = known.cells
    wanted = [index for index in used if index not in cells]
    if wanted or is_new:
        encoded = encode_columns(table, schema, wanted)
        cells = cells | {index: encoded.data[index] for index in wanted}
        n_bytes = sum(column.nbytes for column in cells.values())
        table.cache.put(name, _Encoded(schema.columns, cells), n_bytes)
    data: list[NDArray[Any]] = [np.empty(0)] * len(schema.columns)
    for index in used:
        data[index] = cells[index]
    return Columns(table.n_rows, tuple(data))
