"""Models to bytes: canonical JSON, the same bytes for the same model."""

from __future__ import annotations

import json
import os
from numbers import Integral, Real
from typing import Any

from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Schema
from branchwise.files.raw_bytes import atomic_write
from branchwise.model_file.array_text import array_text
from branchwise.model_file.layout import (
    ABSENT,
    ENSEMBLE_KEYS,
    ENSEMBLE_NUMBERS,
    ENSEMBLE_VERSION,
    FORMAT,
    RECIPE_FIELDS,
    REQUIRED_FIELDS,
    VERSION,
    StoredEnsemble,
)
from branchwise.model_file.metadata_fields import label_fields, statistics_fields
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.parameters import PARAMETERS
from branchwise.tree.tree import Tree


def to_bytes(schema: Schema, tree: Tree, recipe: Recipe) -> bytes:
    """Write a model as JSON, one line for each column and each array."""
    arrays = [(s.key, _json(_plain(getattr(tree, s.name)))) for s in tree.arrays]
    return _document(
        VERSION,
        *_metadata_lines(schema),
        f'"recipe": {_json(_recipe_fields(recipe))},',
        *_schema_lines(schema),
        '"tree": {',
        ",\n".join(f'"{key}": {numbers}' for key, numbers in arrays),
        "}",
    )


def ensemble_to_bytes(stored: StoredEnsemble) -> bytes:
    """Write an ensemble as JSON, one line for each column and each tree."""
    return _document(
        ENSEMBLE_VERSION,
        *_metadata_lines(stored.schema),
        f'"ensemble": {_json(_ensemble_fields(stored))},',
        f'"recipe": {_json(_recipe_fields(stored.recipe.tree))},',
        *_schema_lines(stored.schema),
        '"trees": [',
        ",\n".join(
            _json({s.key: array_text(getattr(tree, s.name)) for s in tree.arrays})
            for tree in stored.trees
        ),
        "]",
    )


def _document(version: int, *lines: str) -> bytes:
    """Return the content of a file of these fields."""
    head = ("{", f'"format": {_json(FORMAT)},', f'"version": {version},')
    # Half a surrogate pair is no UTF-8, but its escape is valid JSON.
    return "\n".join((*head, *lines, "}", "")).encode("utf-8", "backslashreplace")


def _metadata_lines(schema: Schema) -> tuple[str, ...]:
    given = schema.metadata.given
    return (f'"metadata": {_json(given)},',) if given else ()


def _target_label(schema: Schema) -> tuple[str, ...]:
    label = schema.target_label
    return () if label is None else (f'"label": {_json(label_fields(label))},',)


def _reading_lines(schema: Schema) -> tuple[str, ...]:
    """Return how files are read, where it is not plainly."""
    lines = ['"merge_case": true,'] if schema.merge_case else []
    if schema.target_format is not None:
        lines.append(f'"number_format": {_json(schema.target_format.fields)},')
    if schema.na_values is not None:
        lines.append(f'"na_values": {_json(schema.na_values)},')
    return tuple(lines)


def _schema_lines(schema: Schema) -> tuple[str, ...]:
    return (
        '"schema": {',
        f'"target": {_json(schema.target)},',
        *_target_label(schema),
        *_reading_lines(schema),
        f'"named": {_json(schema.named)},',
        f'"classes": {_json(schema.classes)},',
        '"columns": [',
        ",\n".join(_json(_column_fields(column)) for column in schema.columns),
        "]",
        "},",
    )


def save(
    path: str | os.PathLike[str], schema: Schema, tree: Tree, recipe: Recipe
) -> None:
    """Write a model file atomically."""
    _save(path, to_bytes(schema, tree, recipe))


def save_ensemble(path: str | os.PathLike[str], stored: StoredEnsemble) -> None:
    """Write the file of an ensemble atomically."""
    _save(path, ensemble_to_bytes(stored))


def _save(path: str | os.PathLike[str], content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _plain(array: NDArray[Any]) -> Any:
    """Convert an array to lists, whole numbers without a point, NaN as null."""
    if array.dtype.kind != "f":
        return array.tolist()
    if array.ndim == 2:
        return [_plain(row) for row in array]
    return [_plain_number(number) for number in array.tolist()]


def _plain_number(number: float) -> float | int | None:
    if number != number:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _column_fields(column: Column) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": column.name,
        "kind": column.kind,
        "categories": column.categories,
        "has_missing": column.has_missing,
    }
    # Written only if they differ from their defaults, as for the recipe.
    if column.sketched:
        fields["sketched"] = True
    if column.number_format is not None:
        name = "number_format" if column.date is None else "date"
        name = name if column.date_feature is None else "derived"
        fields[name] = column.number_format.fields
    if column.number_kind != "any":
        fields["number_kind"] = column.number_kind
    if column.statistics is not None:
        fields["statistics"] = statistics_fields(column.statistics)
    if column.label is not None:
        fields["label"] = label_fields(column.label)
    return fields


def _recipe_fields(recipe: Recipe) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, name in RECIPE_FIELDS.items():
        value = getattr(recipe, name)
        if PARAMETERS[name].allowed.is_number:
            # Parameters may be numbers of numpy, which JSON cannot encode.
            if isinstance(value, Integral):
                value = int(value)
            elif isinstance(value, Real):
                value = _plain_number(float(value))
        if key in REQUIRED_FIELDS or value != FIELDS[name]:
            fields[key] = value
    if recipe.costs is not None:
        fields["costs"] = [
            [_plain_number(cost) for cost in row] for row in recipe.costs
        ]
    if not isinstance(recipe.criterion, str):
        fields["criterion"] = {"function": recipe.criterion_name}
    return fields


def _ensemble_fields(stored: StoredEnsemble) -> dict[str, object]:
    """Return the fields that differ from what their absence means.

    A number keeps its type: 1 is a number of columns or rows, 1.0 all of them.
    """
    fields: dict[str, object] = {}
    for key, name in ENSEMBLE_KEYS.items():
        value, absent = getattr(stored.recipe, name), ABSENT[name]
        if isinstance(value, Integral) and not isinstance(value, bool):
            value = int(value)
        elif isinstance(value, Real) and not isinstance(value, bool):
            value = float(value)
        if value != absent or type(value) is not type(absent):
            fields[key] = value
    for name, methods in ENSEMBLE_NUMBERS.items():
        if stored.recipe.method in methods:
            fields[name] = getattr(stored, name).ravel().tolist()
    return fields
