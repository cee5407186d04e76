"""Model files: versioned JSON that anyone may open safely.

The layout is documented field by field in ``docs/model_file.md``. The same model
always gives the same bytes. Reading never runs code: a file is parsed, every
size, type and index in it is checked, and only then arrays are made.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable
from itertools import chain
from numbers import Integral
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

#: A file beyond this is refused.
MAX_BYTES = 2**30
_PIECE = 2**20
#: What is computed from weights up to this is finite.
_LARGEST_WEIGHT = 1e300
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
#: Written only where they say something, and what their absence means: a field that
#: comes later must not change the bytes of models that do not need it.
_RECIPE_EXTRAS: dict[str, object] = {"max_bins": None}


_RECIPE_NUMBERS = (
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_gain",
    "max_bins",
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
    for name, usual in _RECIPE_EXTRAS.items():
        if getattr(recipe, name) != usual:
            fields[name] = getattr(recipe, name)
    for name in _RECIPE_NUMBERS:
        # Parameters may be numpy's numbers, which are no JSON.
        value = fields.get(name)
        if isinstance(value, Integral):
            fields[name] = int(value)
        elif value is not None:
            fields[name] = _plain_number(float(value))
    if not isinstance(recipe.criterion, str):
        fields["criterion"] = {"function": recipe.scoring.name}
    return fields


def load(path: str | os.PathLike[str]) -> tuple[Schema, Tree, Recipe]:
    """Read a model file."""
    content = bytearray()
    with Path(path).open("rb") as file:
        # Piece by piece: what the system calls a file may have no end.
        while piece := file.read(_PIECE):
            content += piece
            if len(content) > MAX_BYTES:
                raise ModelFileError(
                    f"{path} is not a branchwise model: it has more than "
                    f"{MAX_BYTES:,} bytes, the most that a model file may have."
                )
    return from_bytes(bytes(content), os.fspath(path))


def from_bytes(content: bytes, source: str = "the file") -> tuple[Schema, Tree, Recipe]:
    """Read a model from the content of a file."""
    try:
        return _read(_parse(content))
    except ModelFileError as error:
        message = f"{source} is not a branchwise model: {error}."
        raise ModelFileError(message) from None
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
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if times[name] > 1)
        raise ModelFileError(f"it has the field {_shown(twice)} twice")
    return fields


def _refuse_constant(constant: str) -> NoReturn:
    raise ModelFileError(f"it has {constant} where a number must be")


def _shown(value: object) -> str:
    """Show a piece of a file in a message, cut off where it gets long."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read(document: Any) -> tuple[Schema, Tree, Recipe]:
    fields = _fields(document, "the file", ("format", "version"))
    if fields["format"] != FORMAT:
        got = _shown(fields["format"])
        raise ModelFileError(f"its 'format' is {got}, not {_shown(FORMAT)}")
    version = fields["version"]
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"its 'version' is {_shown(version)}, and this branchwise reads version "
            f"{VERSION}; a later release may read it"
        )
    _fields(document, "the file", ("recipe", "schema", "tree"))
    schema = _read_schema(fields["schema"])
    tree = _read_tree(fields["tree"])
    validate(tree, schema)
    return schema, tree, _read_recipe(fields["recipe"])


def _fields(value: Any, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelFileError(
            f"{where} must be an object with named fields, not {_shown(value)}"
        )
    absent = [name for name in names if name not in value]
    if absent:
        raise ModelFileError(f"{where} lacks {quoted(absent)}")
    return value


def _typed(
    fields: dict[str, Any],
    name: str,
    where: str,
    check: Callable[[Any], bool],
    what: str,
) -> Any:
    if not check(fields[name]):
        got = _shown(fields[name])
        raise ModelFileError(f"{name!r} of {where} must be {what}, not {got}")
    return fields[name]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _read_schema(value: Any) -> Schema:
    where = "'schema'"
    fields = _fields(value, where, ("target", "named", "classes", "columns"))
    target = _typed(
        fields, "target", where, lambda v: v is None or _is_text(v), "text or null"
    )
    named = _typed(fields, "named", where, _is_flag, "true or false")
    classes = _read_values(fields, "classes", where)
    if not classes:
        raise ModelFileError("'classes' of 'schema' is empty")
    columns = _typed(fields, "columns", where, _is_list, "a list")
    if not columns:
        raise ModelFileError("'columns' of 'schema' is empty")
    read = tuple(_read_column(c, f"column {index}") for index, c in enumerate(columns))
    times = Counter(column.name for column in read)
    twice = [name for name in times if times[name] > 1]
    if twice:
        raise ModelFileError(f"two columns are named {_shown(twice[0])}")
    return Schema(read, classes, target, named)


def _read_column(value: Any, where: str) -> Column:
    fields = _fields(value, where, ("name", "kind", "categories", "has_missing"))
    name = _typed(fields, "name", where, _is_text, "text")
    kinds = ("categorical", "ordinal", "numeric")
    kind = _typed(
        fields, "kind", where, lambda v: v in kinds, f"one of {quoted(kinds)}"
    )
    categories = _read_values(fields, "categories", where)
    if kind == "numeric" and categories:
        raise ModelFileError(f"{where} is numeric and yet has categories")
    has_missing = _typed(fields, "has_missing", where, _is_flag, "true or false")
    return Column(name, kind, categories, has_missing)


def _read_values(fields: dict[str, Any], name: str, where: str) -> tuple[Value, ...]:
    values = _typed(fields, name, where, _is_list, "a list")
    for value in values:
        if not isinstance(value, (str, bool, int, float)):
            complaint = (
                f"must hold text, numbers or true and false, not {_shown(value)}"
            )
        elif isinstance(value, float) and not math.isfinite(value):
            complaint = "has a number that is not finite"
        elif not isinstance(value, (str, float)) and not -(2**63) <= value < 2**63:
            complaint = "has a whole number beyond 64 bits"
        else:
            continue
        raise ModelFileError(f"{name!r} of {where} {complaint}")
    if len({value_type(value) for value in values}) > 1:
        raise ModelFileError(f"{name!r} of {where} mixes types")
    times = Counter(values)
    if len(times) < len(values):
        twice = next(value for value in times if times[value] > 1)
        raise ModelFileError(f"{name!r} of {where} lists {_shown(twice)} twice")
    return tuple(values)


def _read_tree(value: Any) -> Tree:
    names = tuple(spec.name for spec in ARRAYS)
    fields = _fields(value, "'tree'", names)
    # Unlike elsewhere, a field that is not known may change the meaning here.
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ModelFileError(f"'tree' has the unknown array {_shown(unknown[0])}")
    tree = Tree(
        **{
            spec.name: _read_array(fields[spec.name], spec.name, spec.dtype)
            for spec in ARRAYS
        }
    )
    with np.errstate(over="ignore"):
        absurd = tree.weights.sum() > _LARGEST_WEIGHT
    if absurd:
        raise ModelFileError("array 'weights' has numbers that are too large")
    return tree


def _read_array(value: Any, name: str, dtype: type) -> NDArray[Any]:
    two_dimensional = name == "weights"
    if not _is_list(value) or (two_dimensional and not all(map(_is_list, value))):
        what = "a list of lists" if two_dimensional else "a list"
        raise ModelFileError(f"array {name!r} must be {what}")
    whole = dtype is np.int64
    allowed: set[type] = {int} if whole else {int, float}
    if name == "cut":
        allowed.add(type(None))
    # numpy would take true for 1 and "1" for a number.
    cells = chain.from_iterable(value) if two_dimensional else value
    if not set(map(type, cells)) <= allowed:
        what = "whole numbers" if whole else "numbers"
        raise ModelFileError(f"array {name!r} must hold {what} only")
    try:
        return np.array(value, dtype=np.intp if whole else np.float64)
    except OverflowError:
        raise ModelFileError(f"array {name!r} has numbers that are too large") from None
    except ValueError:
        raise ModelFileError(f"array {name!r} has rows of different lengths") from None


def _read_recipe(value: Any) -> Recipe:
    where = "'recipe'"
    fields = _fields(value, where, _RECIPE_FIELDS)
    known = {name: fields[name] for name in _RECIPE_FIELDS}
    known |= {name: fields.get(name, usual) for name, usual in _RECIPE_EXTRAS.items()}
    _typed(known, "algorithm", where, _is_text, "text")
    for name in _RECIPE_NUMBERS:
        _typed(known, name, where, _is_number_or_null, "a number of 64 bits")
    for policy in ("missing", "unseen"):
        allowed = f"one of {quoted(POLICIES)}"
        _typed(known, policy, where, lambda v: v in POLICIES, allowed)
    criterion = known["criterion"]
    if isinstance(criterion, dict):
        _fields(criterion, "'criterion'", ("function",))
        name = _typed(criterion, "function", "'criterion'", _is_text, "text")
        known["criterion"] = AbsentCriterion(name)
    return Recipe(**known)


def _is_number_or_null(value: object) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return value is None or isinstance(value, float)


class AbsentCriterion:
    """Stands in for a user's criterion, whose code is not in the file."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object) -> NoReturn:
        """Refuse to score."""
        raise ParameterError(
            f"criterion {self.__name__!r} was a Python function when the model was "
            "fitted, and model files hold no code. Pass the function itself to grow a "
            "new tree."
        )
