"""Model files: versioned JSON that anyone may open safely.

The layout is documented field by field in ``docs/model_file.md``. The same model
always gives the same bytes. Reading never runs code: a file is parsed, every
size, type and index in it is checked, and only then arrays are made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import BranchwiseError, ModelFileError, ParameterError, quoted
from branchwise.files import atomic_write
from branchwise.missing import POLICIES
from branchwise.recipes import Recipe
from branchwise.table.schema import Column, Schema, Value, value_type
from branchwise.tree import ARRAYS, Tree, validate

FORMAT = "branchwise-model"
VERSION = 1

#: A file beyond this is refused before it is read.
MAX_BYTES = 2**30
_RECIPE_FIELDS = (
    "algorithm",
    "criterion",
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_gain",
    "missing",
    "unseen",
)


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
            f'"{spec.name}": {_json(_plain(getattr(tree, spec.name)))}'
            for spec in ARRAYS
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
    """Write a model file, whole or not at all."""
    content = to_bytes(schema, tree, recipe)
    with atomic_write(path) as file:
        file.write(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _plain(array: NDArray[Any]) -> Any:
    """Turn an array into lists, whole numbers without a point, NaN as null."""
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
    return {
        "name": column.name,
        "kind": column.kind,
        "categories": column.categories,
        "has_missing": column.has_missing,
    }


def _recipe_fields(recipe: Recipe) -> dict[str, object]:
    fields = {name: getattr(recipe, name) for name in _RECIPE_FIELDS}
    if not isinstance(recipe.criterion, str):
        fields["criterion"] = {"function": recipe.scoring.name}
    return fields


def load(path: str | os.PathLike[str]) -> tuple[Schema, Tree, Recipe]:
    """Read a model file."""
    file = Path(path)
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ModelFileError(
            f"{file} has {size:,} bytes; a model file may have {MAX_BYTES:,} at most."
        )
    return from_bytes(file.read_bytes(), str(file))


def from_bytes(content: bytes, source: str = "the file") -> tuple[Schema, Tree, Recipe]:
    """Read a model from the content of a file."""
    if len(content) > MAX_BYTES:
        raise ModelFileError(f"{source} is larger than a model file may be.")
    try:
        return _read(_parse(content))
    except ModelFileError as error:
        raise ModelFileError(f"{source} is not a branchwise model: {error}") from None
    except BranchwiseError as error:
        message = f"{source} is not a sane branchwise model: {error}"
        raise ModelFileError(message) from None


def _parse(content: bytes) -> Any:
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_refuse_constant,
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


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ModelFileError("a field is given twice")
    return fields


def _refuse_constant(constant: str) -> NoReturn:
    raise ModelFileError(f"{constant} is not a number")


def _read(document: Any) -> tuple[Schema, Tree, Recipe]:
    fields = _fields(document, "the file", ("format", "version"))
    if fields["format"] != FORMAT:
        raise ModelFileError(f"its format is {fields['format']!r}, not {FORMAT!r}")
    version = fields["version"]
    if version != VERSION or isinstance(version, bool):
        raise ModelFileError(
            f"its version is {version!r}, and this branchwise reads version {VERSION}; "
            "a later release may read it"
        )
    _fields(document, "the file", ("recipe", "schema", "tree"))
    schema = _read_schema(fields["schema"])
    tree = _read_tree(fields["tree"])
    validate(tree, schema)
    return schema, tree, _read_recipe(fields["recipe"])


def _fields(value: Any, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelFileError(f"{where} must be an object with named fields")
    absent = [name for name in names if name not in value]
    if absent:
        raise ModelFileError(f"{where} lacks {quoted(absent)}")
    return value


def _typed(
    fields: dict[str, Any], name: str, check: Callable[[Any], bool], what: str
) -> Any:
    if not check(fields[name]):
        raise ModelFileError(f"{name!r} must be {what}")
    return fields[name]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _read_schema(value: Any) -> Schema:
    fields = _fields(value, "'schema'", ("target", "named", "classes", "columns"))
    target = _typed(
        fields, "target", lambda v: v is None or _is_text(v), "text or null"
    )
    named = _typed(fields, "named", _is_flag, "true or false")
    columns = _typed(fields, "columns", lambda v: isinstance(v, list), "a list")
    classes = _read_values(fields, "classes")
    if not classes:
        raise ModelFileError("'classes' is empty")
    if not columns:
        raise ModelFileError("'columns' is empty")
    schema = Schema(tuple(_read_column(c) for c in columns), classes, target, named)
    if len(set(schema.names)) < len(schema.names):
        raise ModelFileError("two columns have the same name")
    return schema


def _read_column(value: Any) -> Column:
    fields = _fields(value, "a column", ("name", "kind", "categories", "has_missing"))
    kinds = ("categorical", "ordinal", "numeric")
    kind = _typed(fields, "kind", lambda v: v in kinds, f"one of {quoted(kinds)}")
    categories = _read_values(fields, "categories")
    if kind == "numeric" and categories:
        raise ModelFileError("a numeric column has no categories")
    return Column(
        _typed(fields, "name", _is_text, "text"),
        kind,
        categories,
        _typed(fields, "has_missing", _is_flag, "true or false"),
    )


def _read_values(fields: dict[str, Any], name: str) -> tuple[Value, ...]:
    values = _typed(fields, name, lambda v: isinstance(v, list), "a list")
    if not all(isinstance(value, (str, bool, int, float)) for value in values):
        raise ModelFileError(f"{name!r} must hold text, numbers or true and false")
    if any(isinstance(value, float) and not np.isfinite(value) for value in values):
        raise ModelFileError(f"{name!r} has a number that is not finite")
    if len({value_type(value) for value in values}) > 1:
        raise ModelFileError(f"{name!r} mixes types")
    if len(set(values)) < len(values):
        raise ModelFileError(f"{name!r} lists a value twice")
    return tuple(values)


def _read_tree(value: Any) -> Tree:
    names = tuple(spec.name for spec in ARRAYS)
    fields = _fields(value, "'tree'", names)
    # Unlike elsewhere, a field that is not known may change the meaning here.
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ModelFileError(f"'tree' has unknown arrays: {quoted(unknown)}")
    return Tree(
        **{spec.name: _read_array(fields[spec.name], spec.name) for spec in ARRAYS}
    )


def _read_array(value: Any, name: str) -> NDArray[Any]:
    wanted = next(spec.dtype for spec in ARRAYS if spec.name == name)
    if not isinstance(value, list):
        raise ModelFileError(f"array {name!r} must be a list")
    if name == "cut":
        value = [np.nan if number is None else number for number in value]
    try:
        array = np.array(value) if value else np.empty(0, dtype=wanted)
    except (ValueError, OverflowError):
        raise ModelFileError(f"array {name!r} has rows of different lengths") from None
    if array.dtype.kind not in ("i" if wanted is np.int64 else "if"):
        what = "whole numbers" if wanted is np.int64 else "numbers"
        raise ModelFileError(f"array {name!r} must hold {what} only")
    return array.astype(np.intp if wanted is np.int64 else np.float64)


def _read_recipe(value: Any) -> Recipe:
    fields = _fields(value, "'recipe'", _RECIPE_FIELDS)
    known = {name: fields[name] for name in _RECIPE_FIELDS}
    _typed(known, "algorithm", _is_text, "text")
    for policy in ("missing", "unseen"):
        _typed(known, policy, lambda v: v in POLICIES, f"one of {quoted(POLICIES)}")
    criterion = known["criterion"]
    if isinstance(criterion, dict):
        name = _fields(criterion, "'criterion'", ("function",))["function"]
        known["criterion"] = _absent_criterion(str(name))
    return Recipe(**known)


def _absent_criterion(name: str) -> Callable[..., NoReturn]:
    """Stand in for a user's criterion, whose code is not in the file."""

    def absent(*_: object) -> NoReturn:
        raise ParameterError(
            f"criterion {name!r} was a Python function when the model was fitted, and "
            "model files hold no code. Pass the function itself to grow a new tree."
        )

    absent.__name__ = name
    return absent
