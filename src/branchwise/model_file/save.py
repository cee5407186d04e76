"""Saving and loading of model files: versioned, canonical JSON.

The layout is documented field by field in ``docs/model_file.md``. The same model
always gives the same bytes. Reading never runs code: a file is parsed, and
``model_file/load.py`` checks every size, type and index in it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.schema import Column, Schema
from branchwise.errors import BranchwiseError, ModelFileError, plain
from branchwise.files.atomic import atomic_write
from branchwise.model_file.load import (
    FORMAT,
    RECIPE_FIELDS,
    REQUIRED_FIELDS,
    VERSION,
    read_document,
    shown,
)
from branchwise.recipe import FIELDS, PARAMETERS, Recipe
from branchwise.tree.tree import Tree

#: The most bytes of a file.
MAX_BYTES = 2**30
_PIECE = 2**20
#: No model has more lists than one for so many bytes, but for a thousand.
_BYTES_A_LIST = 16


def to_bytes(schema: Schema, tree: Tree, recipe: Recipe) -> bytes:
    """Write a model as JSON, one line for each column and each array."""
    lines = [
        "{",
        f'"format": {_json(FORMAT)},',
        f'"version": {VERSION},',
        f'"recipe": {_json(_recipe_fields(recipe))},',
        '"schema": {',
        f'"target": {_json(schema.target)},',
        f'"named": {_json(schema.named)},',
        f'"classes": {_json(schema.classes)},',
        '"columns": [',
        ",\n".join(_json(_column_fields(column)) for column in schema.columns),
        "]",
        "},",
        '"tree": {',
        ",\n".join(
            f'"{spec.key}": {_json(_plain(getattr(tree, spec.name)))}'
            for spec in tree.arrays
        ),
        "}",
        "}",
        "",
    ]
    # Half a surrogate pair is no UTF-8, but its escape is valid JSON.
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def save(
    path: str | os.PathLike[str], schema: Schema, tree: Tree, recipe: Recipe
) -> None:
    """Write a model file atomically."""
    content = to_bytes(schema, tree, recipe)
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
    # Written only if it differs from the default, as for the recipe.
    return fields | {"sketched": True} if column.sketched else fields


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


def load(path: str | os.PathLike[str]) -> tuple[Schema, Tree, Recipe]:
    """Read a model file."""
    return from_bytes(_content(path), plain(os.fsdecode(path)))


def _content(path: str | os.PathLike[str]) -> bytes:
    content = bytearray()
    try:
        with Path(path).open("rb") as file:
            # In pieces: a special file may have no end.
            while len(content) <= MAX_BYTES and (piece := file.read(_PIECE)):
                content += piece
    except FileNotFoundError:
        reason = "There is no model file {}. Check the path."
    except IsADirectoryError:
        reason = "{} is a directory, not a model file. Give a file in it."
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        reason = f"The model file {{}} cannot be read: {why}."
    else:
        return bytes(content)
    raise ModelFileError(reason.format(repr(os.fsdecode(path))))


def from_bytes(content: bytes, source: str = "the file") -> tuple[Schema, Tree, Recipe]:
    """Read a model from the content of a file."""
    try:
        return read_document(_parse(content))
    except ModelFileError as error:
        message = f"{source} is not a branchwise model: {error}."
        raise ModelFileError(message) from None
    except BranchwiseError as error:
        message = f"{source} is not a branchwise model: {error}"
        raise ModelFileError(message) from None


def _parse(content: bytes) -> Any:
    if len(content) > MAX_BYTES:
        raise ModelFileError(
            f"it has more than {MAX_BYTES:,} bytes, the most that a model file may have"
        )
    _check_countless(content)
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_raise_constant,
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(f"it is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelFileError(f"it is not JSON ({error.msg}, {where})") from None
    except (RecursionError, MemoryError):
        raise ModelFileError("it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"it has a number that is too long ({error})") from None


def _check_countless(content: bytes) -> None:
    """Reject too many lists and objects before the parser allocates memory for them.

    An empty list takes three bytes of a file and 64 of memory. In a model most lists
    are those of 'weights', and each of their nodes has an entry in eight more arrays.
    """
    most = 1000 + len(content) // _BYTES_A_LIST
    if content.count(b"[") + content.count(b"{") <= most:
        return
    if _brackets_outside_texts(content) > most:
        raise ModelFileError("it has more lists and objects than a model of its size")


def _brackets_outside_texts(content: bytes) -> int:
    """Count lists and objects, not the brackets in names."""
    content = content.replace(rb"\\", b"").replace(rb"\"", b"")
    found, inside = 0, np.False_
    for start in range(0, len(content), _PIECE):
        piece = np.frombuffer(content[start : start + _PIECE], dtype=np.uint8)
        text = np.logical_xor.accumulate(piece == ord('"')) ^ inside
        opens = (piece == ord("[")) | (piece == ord("{"))
        found += int(np.count_nonzero(opens & ~text))
        inside = text[-1]
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if times[name] > 1)
        raise ModelFileError(f"it has the field {shown(twice)} twice")
    return fields


def _raise_constant(constant: str) -> NoReturn:
    raise ModelFileError(f"it has {constant} where a number must be")
