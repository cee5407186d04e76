"""What a model keeps of the file that it was grown from."""

from __future__ import annotations

from dataclasses import replace

from branchwise.cli.support.training import TrainingTable
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.table_schema import Schema


def as_read(schema: Schema, rows: TrainingTable) -> Schema:
    """Return the schema with how new files are read, as that of the table was."""
    how = rows.file.numbers.formats.get(rows.roles.target)
    return replace(
        schema,
        target_format=how if isinstance(how, NumberFormat) else None,
    )


def as_described(schema: Schema, rows: TrainingTable) -> Schema:
    """Return the schema as it is read, with the titles and units of the file."""
    from branchwise.text.labels import with_found_labels

    found = rows.file.column_labels
    schema = as_read(schema, rows)
    return with_found_labels(schema, found) if found else schema
