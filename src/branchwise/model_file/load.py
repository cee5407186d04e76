"""Validation of model files: from parsed JSON to schema, tree and recipe.

Every size, type and index is checked before arrays are made. The names of fields and
the meaning of their absence are defined here, too; ``docs/model_file.md`` documents
them one by one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.schema import Column, Schema, Value, value_type
from branchwise.errors import ModelFileError, ParameterError, quoted
from branchwise.recipe import ALPHA_RULES, FIELDS, PARAMETERS, Recipe
from branchwise.tree.builder import validate
from branchwise.tree.tree import (
    ARRAYS,
    NUMBER_ARRAYS,
    OPTIONAL_ARRAYS,
    PREDICTION_ARRAYS,
    ArraySpec,
    Tree,
)

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
    _check_costs(recipe, schema, tree)
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
    fields: dict[str, Any],
    name: str,
    where: str,
    check: Callable[[Any], bool],
    what: str,
) -> Any:
    if not check(fields[name]):
        got = shown(fields[name])
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
    columns = _typed(fields, "columns", where, _is_list, "a list")
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
    name = _typed(fields, "name", where, _is_text, "text")
    kinds = ("categorical", "ordinal", "numeric")
    kind = _typed(
        fields, "kind", where, lambda v: v in kinds, f"one of {quoted(kinds)}"
    )
    categories = _read_values(fields, "categories", where)
    if kind == "numeric" and categories:
        raise ModelFileError(f"{where} is numeric and yet has categories")
    has_missing = _typed(fields, "has_missing", where, _is_flag, "true or false")
    fields.setdefault("sketched", False)
    sketched = _typed(fields, "sketched", where, _is_flag, "true or false")
    if sketched and kind != "numeric":
        raise ModelFileError(f"{where} is sketched and yet not numeric")
    return Column(name, kind, categories, has_missing, sketched)


def _read_values(fields: dict[str, Any], name: str, where: str) -> tuple[Value, ...]:
    values = _typed(fields, name, where, _is_list, "a list")
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
    if not _is_list(value) or (two_dimensional and not all(map(_is_list, value))):
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
            _typed(known, key, where, _is_number_or_null, "a number of 64 bits")
        if key in ("algorithm", "missing", "unseen"):
            choices = allowed.choices
            what = f"one of {quoted(choices, limit=len(choices))}"
            _typed(known, key, where, choices.__contains__, what)
    _typed(known, "costs", where, _is_square_or_null, "null or a square of numbers")
    criterion = known["criterion"]
    if isinstance(criterion, dict):
        _fields(criterion, "'criterion'", ("function",))
        name = _typed(criterion, "function", "'criterion'", _is_text, "text")
        known["criterion"] = AbsentCriterion(name)
    return Recipe(**{RECIPE_FIELDS[key]: known[key] for key in known})


def _check_costs(recipe: Recipe, schema: Schema, tree: Tree) -> None:
    """Reject costs of other classes, and costs without predictions by them."""
    if recipe.costs is None:
        return
    if len(recipe.costs) != len(schema.classes):
        raise ModelFileError(
            f"'costs' of 'recipe' has {len(recipe.costs)} rows, and 'schema' has "
            f"{len(schema.classes)} classes"
        )
    if tree.prediction is None:
        raise ModelFileError("'recipe' has costs and yet 'tree' lacks 'answer'")


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
