"""The model file: versioned, canonical JSON, written, read and validated.

The layout is documented field by field in ``docs/model_file.md``. The same model
always gives the same bytes. Reading never runs code: a file is parsed, and every
size, type and index in it is checked before arrays are made.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Schema, Value, value_type
from branchwise.errors import (
    BranchwiseError,
    ModelFileError,
    ParameterError,
    plain,
    quoted,
)
from branchwise.files.raw_bytes import atomic_write
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.parameters import ALPHA_RULES, PARAMETERS
from branchwise.tree.tree import (
    ARRAYS,
    NUMBER_ARRAYS,
    OPTIONAL_ARRAYS,
    PREDICTION_ARRAYS,
    ArraySpec,
    Tree,
)
from branchwise.tree.validation import validate

FORMAT = "branchwise-model"
VERSION = 1

#: Results computed from weights and means up to these are finite.
_LARGEST_WEIGHT = 1e300
_LARGEST_MEAN = 1e150
#: The parameter of a recipe that each field of a file holds; names in files do not
#: change.
RECIPE_FIELDS = {PARAMETERS[name].file_key: name for name in FIELDS}
#: Fields that every file has. The others are written only if they differ from their
#: defaults: a new field must not change the bytes of models that do not need it.
REQUIRED_FIELDS = (
    "algorithm",
    "criterion",
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_gain",
    "missing",
    "unseen",
)


def shown(value: object) -> str:
    """Format a value of a file for a message, truncated if it is long."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_document(document: Any) -> tuple[Schema, Tree, Recipe]:
    """Return schema, tree and recipe of a parsed file; raise if it is not valid."""
    fields = _fields(document, "the file", ("format", "version"))
    if fields["format"] != FORMAT:
        got = shown(fields["format"])
        raise ModelFileError(f"its 'format' is {got}, not {shown(FORMAT)}")
    version = fields["version"]
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"its 'version' is {shown(version)}, and this branchwise reads version "
            f"{VERSION}; a later release may read it"
        )
    _fields(document, "the file", ("recipe", "schema", "tree"))
    schema = _read_schema(fields["schema"])
    tree = _read_tree(fields["tree"])
    if not schema.classes and not tree.is_regression:
        raise ModelFileError("'classes' of 'schema' is empty")
    if schema.classes and tree.is_regression:
        raise ModelFileError("'schema' has classes and yet 'tree' has 'mean'")
    validate(tree, schema)
    recipe = _read_recipe(fields["recipe"])
    n_costs = None if recipe.costs is None else len(recipe.costs)
    if n_costs not in (None, len(schema.classes)):
        raise ModelFileError(
            f"'costs' of 'recipe' has {n_costs} rows, and 'schema' has "
            f"{len(schema.classes)} classes"
        )
    if n_costs is not None and tree.prediction is None:
        raise ModelFileError("'recipe' has costs and yet 'tree' lacks 'answer'")
    return schema, tree, recipe


def _fields(value: Any, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelFileError(
            f"{where} must be an object with named fields, not {shown(value)}"
        )
    absent = [name for name in names if name not in value]
    if absent:
        raise ModelFileError(f"{where} lacks {quoted(absent)}")
    return value


def _typed(
    fields: dict[str, Any], name: str, where: str, what: str | tuple[str, ...]
) -> Any:
    """Return a field, which must be of one of ``_CHECKS``, or among some texts."""
    value = fields[name]
    if isinstance(what, tuple):
        valid, what = value in what, f"one of {quoted(what, limit=len(what))}"
    else:
        valid = _CHECKS[what](value)
    if not valid:
        raise ModelFileError(f"{name!r} of {where} must be {what}, not {shown(value)}")
    return value


def _read_schema(value: Any) -> Schema:
    where = "'schema'"
    fields = _fields(value, where, ("target", "named", "classes", "columns"))
    target = _typed(fields, "target", where, "text or null")
    named = _typed(fields, "named", where, "true or false")
    classes = _read_values(fields, "classes", where)
    columns = _typed(fields, "columns", where, "a list")
    if not columns:
        raise ModelFileError("'columns' of 'schema' is empty")
    read = tuple(_read_column(c, f"column {index}") for index, c in enumerate(columns))
    times = Counter(column.name for column in read)
    twice = [name for name in times if times[name] > 1]
    if twice:
        raise ModelFileError(f"two columns are named {shown(twice[0])}")
    return Schema(read, classes, target, named)


def _read_column(value: Any, where: str) -> Column:
    fields = _fields(value, where, ("name", "kind", "categories", "has_missing"))
    name = _typed(fields, "name", where, "text")
    kind = _typed(fields, "kind", where, ("categorical", "ordinal", "numeric"))
    categories = _read_values(fields, "categories", where)
    if kind == "numeric" and categories:
        raise ModelFileError(f"{where} is numeric and yet has categories")
    has_missing = _typed(fields, "has_missing", where, "true or false")
    fields.setdefault("sketched", False)
    sketched = _typed(fields, "sketched", where, "true or false")
    if sketched and kind != "numeric":
        raise ModelFileError(f"{where} is sketched and yet not numeric")
    return Column(name, kind, categories, has_missing, sketched)


def _read_values(fields: dict[str, Any], name: str, where: str) -> tuple[Value, ...]:
    values = _typed(fields, name, where, "a list")
    for value in values:
        if not isinstance(value, (str, bool, int, float)):
            complaint = f"must hold text, numbers or true and false, not {shown(value)}"
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
        raise ModelFileError(f"{name!r} of {where} lists {shown(twice)} twice")
    return tuple(values)


def _read_tree(value: Any) -> Tree:
    fields = _fields(value, "'tree'", tuple(spec.key for spec in ARRAYS))
    specs = _arrays_of(fields)
    tree = Tree(
        **{
            spec.name: _read_array(fields[spec.key], spec.key, spec.dtype)
            for spec in specs
        }
    )
    with np.errstate(over="ignore"):
        heaviest = tree.weights.sum(axis=-1).max(initial=0)
    if heaviest > _LARGEST_WEIGHT:
        raise ModelFileError("array 'weights' has numbers that are too large")
    for spec in specs:
        if spec in NUMBER_ARRAYS and (
            np.abs(getattr(tree, spec.name)).max(initial=0) > _LARGEST_MEAN
        ):
            raise ModelFileError(f"array {spec.key!r} has numbers that are too large")
    return tree


def _arrays_of(fields: dict[str, Any]) -> tuple[ArraySpec, ...]:
    """Return the arrays that a tree has: each group of them as a whole or not."""
    specs: tuple[ArraySpec, ...] = ARRAYS
    for group in OPTIONAL_ARRAYS:
        if any(spec.key in fields for spec in group):
            specs += group
            _fields(fields, "'tree'", tuple(spec.key for spec in group))
    if set(NUMBER_ARRAYS + PREDICTION_ARRAYS) <= set(specs):
        raise ModelFileError("'tree' has both 'mean' and 'answer'")
    # Unlike in other objects, an unknown field may change the meaning here.
    known = {spec.key for spec in specs}
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise ModelFileError(f"'tree' has the unknown array {shown(unknown[0])}")
    return specs


def _read_array(value: Any, name: str, dtype: type) -> NDArray[Any]:
    two_dimensional = name in ("weights", "class_cases")
    is_list = _CHECKS["a list"]
    if not is_list(value) or (two_dimensional and not all(map(is_list, value))):
        what = "a list of lists" if two_dimensional else "a list"
        raise ModelFileError(f"array {name!r} must be {what}")
    whole = dtype is np.int64
    allowed: set[type] = {int} if whole else {int, float}
    if name in ("cut", "surrogate_cut"):
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
    fields = _fields(value, where, REQUIRED_FIELDS)
    known = {
        key: fields.get(key, FIELDS[parameter])
        for key, parameter in RECIPE_FIELDS.items()
    }
    for key, parameter in RECIPE_FIELDS.items():
        allowed = PARAMETERS[parameter].allowed
        rule = allowed.kind == "alpha" and known[key] in ALPHA_RULES
        if allowed.is_number and not rule:
            _typed(known, key, where, "a number of 64 bits")
        if key in ("algorithm", "missing", "unseen"):
            _typed(known, key, where, allowed.choices)
    _typed(known, "costs", where, "null or a square of numbers")
    criterion = known["criterion"]
    if isinstance(criterion, dict):
        _fields(criterion, "'criterion'", ("function",))
        name = _typed(criterion, "function", "'criterion'", "text")
        known["criterion"] = AbsentCriterion(name)
    return Recipe(**{RECIPE_FIELDS[key]: known[key] for key in known})


def _is_square_or_null(value: object) -> bool:
    if not isinstance(value, list):
        return value is None
    return all(
        isinstance(row, list)
        and len(row) == len(value)
        and all(cost is not None and _is_number_or_null(cost) for cost in row)
        for row in value
    )


def _is_number_or_null(value: object) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return value is None or isinstance(value, float)


#: The types of fields, by their names in messages.
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "text or null": lambda value: value is None or isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "a list": lambda value: isinstance(value, list),
    "a number of 64 bits": _is_number_or_null,
    "null or a square of numbers": _is_square_or_null,
}


class AbsentCriterion:
    """Replacement of a user's criterion, whose code is not in the file."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object) -> NoReturn:
        """Raise: there is no function to compute scores."""
        raise ParameterError(
            f"criterion {self.__name__!r} was a Python function when the model was "
            "fitted, and model files hold no code. Pass the function itself to grow a "
            "new tree."
        )


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
            return bytes(content)
    except FileNotFoundError:
        reason = "There is no model file {}. Check the path."
    except IsADirectoryError:
        reason = "{} is a directory, not a model file. Give a file in it."
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        reason = f"The model file {{}} cannot be read: {why}."
    raise ModelFileError(reason.format(repr(os.fsdecode(path))))


def from_bytes(content: bytes, source: str = "the file") -> tuple[Schema, Tree, Recipe]:
    """Read a model from the content of a file."""
    try:
        return read_document(_parse(content))
    except BranchwiseError as error:
        end = "." if isinstance(error, ModelFileError) else ""
        message = f"{source} is not a branchwise model: {error}{end}"
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
