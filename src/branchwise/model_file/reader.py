"""Bytes to models: every size, type and index is checked before arrays are made."""

from __future__ import annotations

import math
import os
from collections import Counter
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Schema, Value, value_type
from branchwise.errors import BranchwiseError, ModelFileError, ParameterError, plain
from branchwise.model_file.fields import CHECKS, fields_of, shown, typed
from branchwise.model_file.layout import FORMAT, RECIPE_FIELDS, REQUIRED_FIELDS, VERSION
from branchwise.model_file.parser import content_of, parse
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

#: Results computed from weights and means up to these are finite.
_LARGEST_WEIGHT = 1e300
_LARGEST_MEAN = 1e150


def load(path: str | os.PathLike[str]) -> tuple[Schema, Tree, Recipe]:
    """Read a model file."""
    return from_bytes(content_of(path), plain(os.fsdecode(path)))


def from_bytes(content: bytes, source: str = "the file") -> tuple[Schema, Tree, Recipe]:
    """Read a model from the content of a file."""
    try:
        return read_document(parse(content))
    except BranchwiseError as error:
        end = "." if isinstance(error, ModelFileError) else ""
        message = f"{source} is not a branchwise model: {error}{end}"
        raise ModelFileError(message) from None


def read_document(document: Any) -> tuple[Schema, Tree, Recipe]:
    """Return schema, tree and recipe of a parsed file; raise if it is not valid."""
    fields = fields_of(document, "the file", ("format", "version"))
    if fields["format"] != FORMAT:
        got = shown(fields["format"])
        raise ModelFileError(f"its 'format' is {got}, not {shown(FORMAT)}")
    version = fields["version"]
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"its 'version' is {shown(version)}, and this branchwise reads version "
            f"{VERSION}; a later release may read it"
        )
    fields_of(document, "the file", ("recipe", "schema", "tree"))
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


def _read_schema(value: Any) -> Schema:
    where = "'schema'"
    fields = fields_of(value, where, ("target", "named", "classes", "columns"))
    target = typed(fields, "target", where, "text or null")
    named = typed(fields, "named", where, "true or false")
    classes = _read_values(fields, "classes", where)
    columns = typed(fields, "columns", where, "a list")
    if not columns:
        raise ModelFileError("'columns' of 'schema' is empty")
    read = tuple(_read_column(c, f"column {index}") for index, c in enumerate(columns))
    times = Counter(column.name for column in read)
    twice = [name for name in times if times[name] > 1]
    if twice:
        raise ModelFileError(f"two columns are named {shown(twice[0])}")
    return Schema(read, classes, target, named)


def _read_column(value: Any, where: str) -> Column:
    fields = fields_of(value, where, ("name", "kind", "categories", "has_missing"))
    name = typed(fields, "name", where, "text")
    kind = typed(fields, "kind", where, ("categorical", "ordinal", "numeric"))
    categories = _read_values(fields, "categories", where)
    if kind == "numeric" and categories:
        raise ModelFileError(f"{where} is numeric and yet has categories")
    has_missing = typed(fields, "has_missing", where, "true or false")
    fields.setdefault("sketched", False)
    sketched = typed(fields, "sketched", where, "true or false")
    if sketched and kind != "numeric":
        raise ModelFileError(f"{where} is sketched and yet not numeric")
    return Column(name, kind, categories, has_missing, sketched)


def _read_values(fields: dict[str, Any], name: str, where: str) -> tuple[Value, ...]:
    values = typed(fields, name, where, "a list")
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
    fields = fields_of(value, "'tree'", tuple(spec.key for spec in ARRAYS))
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
            fields_of(fields, "'tree'", tuple(spec.key for spec in group))
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
    is_list = CHECKS["a list"]
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
    fields = fields_of(value, where, REQUIRED_FIELDS)
    known = {
        key: fields.get(key, FIELDS[parameter])
        for key, parameter in RECIPE_FIELDS.items()
    }
    for key, parameter in RECIPE_FIELDS.items():
        allowed = PARAMETERS[parameter].allowed
        rule = allowed.kind == "alpha" and known[key] in ALPHA_RULES
        if allowed.is_number and not rule:
            typed(known, key, where, "a number of 64 bits")
        if key in ("algorithm", "missing", "unseen"):
            typed(known, key, where, allowed.choices)
    typed(known, "costs", where, "null or a square of numbers")
    criterion = known["criterion"]
    if isinstance(criterion, dict):
        fields_of(criterion, "'criterion'", ("function",))
        name = typed(criterion, "function", "'criterion'", "text")
        known["criterion"] = AbsentCriterion(name)
    return Recipe(**{RECIPE_FIELDS[key]: known[key] for key in known})


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
