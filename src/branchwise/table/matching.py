"""Which column of a frame is which column of a schema, and its cells as they are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from branchwise.errors import BranchwiseWarning, DataError, quoted
from branchwise.table.frames import Frame
from branchwise.table.raw import Numbers, RawColumn
from branchwise.table.schema import Column, Schema, Value


def match_columns(frame: Frame, schema: Schema) -> list[int]:
    """For every column of the schema, its position in the frame."""
    if frame.named and schema.named:
        position = {name: index for index, name in enumerate(frame.names)}
        absent = [name for name in schema.names if name not in position]
        if absent:
            noun = "column" if len(absent) == 1 else "columns"
            raise DataError(
                f"X lacks the {noun} {quoted(absent)} that the tree was fitted with. "
                f"Its columns are {quoted(frame.names, 20)}; rename or add what is "
                "lacking."
            )
        # Further columns do no harm: the tree asks for its own by name.
        return [position[name] for name in schema.names]
    if len(frame.names) != len(schema.columns):
        raise DataError(
            f"X has {len(frame.names)} features, but branchwise is expecting "
            f"{len(schema.columns)} features as input: {quoted(schema.names, 20)}. "
            "Pass the columns that the tree was fitted with, in that order."
        )
    if frame.named != schema.named:
        given, learnt = ("has", "without") if frame.named else ("has no", "with")
        warnings.warn(
            f"X {given} column names but the tree was fitted {learnt} them; columns "
            "are matched by position. Pass the same kind of table to both.",
            BranchwiseWarning,
            stacklevel=2,
        )
    return list(range(len(schema.columns)))


def columns_for(
    schema: Schema, names: Sequence[str], label: str, besides: Sequence[str] = ()
) -> dict[str, Column]:
    """Return which columns of a file are which columns of a schema.

    Where the schema has no names of the user's and the file does not have its names,
    columns are taken in their order, but for those ``besides``.
    """
    wanted = schema.names
    if set(wanted) <= set(names) or schema.named:
        refuse_absent(label, names, wanted, "the tree was fitted with")
        return dict(zip(wanted, schema.columns, strict=True))
    left = [name for name in names if name not in besides]
    if len(left) != len(wanted):
        raise DataError(
            f"The model was fitted on a table of {len(wanted):,} columns without "
            f"names, so the columns are taken in their order; {label} has "
            f"{len(left):,}. Leave out the columns that do not belong."
        )
    return dict(zip(left, schema.columns, strict=True))


def refuse_absent(
    label: str, names: Sequence[str], wanted: Sequence[str], that: str
) -> None:
    """Refuse a file that lacks columns."""
    absent = [name for name in wanted if name not in names]
    if absent:
        columns = "column" if len(absent) == 1 else "columns"
        raise DataError(
            f"{label} lacks the {columns} {quoted(absent)} that {that}. Got "
            f"{quoted(names, 20)}; add what is lacking, with empty cells if it is "
            "not known."
        )


def plain_cells(
    frame: Frame, schema: Schema, used: Sequence[int]
) -> list[list[Value | None]]:
    """Return the cells of columns of a schema, None where they are missing."""
    source = match_columns(frame, schema)
    return [_plain(frame.column(source[index])) for index in used]


def _plain(raw: RawColumn) -> list[Value | None]:
    if isinstance(raw, Numbers):
        cells: list[Value | None] = raw.values.tolist()
        for row in np.flatnonzero(np.isnan(raw.values)).tolist():
            cells[row] = None
        return cells
    values: list[Value | None] = [*raw.values, None]  # -1 is the last one
    return [values[code] for code in raw.codes.tolist()]
