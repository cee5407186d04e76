"""Bytes to models: every size, type and index is checked before arrays are made."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema
from branchwise.errors import (
    BranchwiseError,
    DataError,
    ModelFileError,
    ParameterError,
    counted,
    plain,
)
from branchwise.model_file.array_text import array_of_text
from branchwise.model_file.fields import CHECKS, check_known, fields_of, shown, typed
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
    StoredTree,
)
from branchwise.model_file.parser import content_of, parse
from branchwise.model_file.schema_fields import read_schema
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.recipe.parameters import ALPHA_RULES, PARAMETERS
from branchwise.tree.tree import (
    ARRAYS,
    NUMBER_ARRAYS,
    OPTIONAL_ARRAYS,
    PREDICTION_ARRAYS,
    ArraySpec,
    Tree,
)
from branchwise.tree.validation import validate, validate_shapes

#: Results computed from weights and means up to these are finite.
_LARGEST_WEIGHT = 1e300
_LARGEST_MEAN = 1e150
#: The arrays that every tree has.
_REQUIRED_ARRAYS = tuple(spec.key for spec in ARRAYS)


def load(path: str | os.PathLike[str]) -> StoredTree | StoredEnsemble:
    """Read a model file, of a single tree or of an ensemble."""
    return from_bytes(content_of(path), plain(os.fsdecode(path)))


def load_tree(path: str | os.PathLike[str]) -> StoredTree:
    """Read the file of a single tree."""
    return tree_from_bytes(content_of(path), plain(os.fsdecode(path)))


def from_bytes(content: bytes, source: str = "the file") -> StoredTree | StoredEnsemble:
    """Read a tree or an ensemble from the content of a file."""
    try:
        return read_document(parse(content))
    except BranchwiseError as error:
        end = "." if isinstance(error, ModelFileError) else ""
        message = f"{source} is not a branchwise model: {error}{end}"
        raise ModelFileError(message) from None


def tree_from_bytes(content: bytes, source: str = "the file") -> StoredTree:
    """Read a single tree from the content of a file."""
    stored = from_bytes(content, source)
    if isinstance(stored, StoredEnsemble):
        raise ModelFileError(
            f"{source} holds an ensemble of {counted(len(stored.trees), 'tree')}, and "
            "a single tree is needed here. Open it with branchwise.load: ensemble[0] "
            "is the model of its first tree, which can be saved."
        )
    return stored


def read_document(document: Any) -> StoredTree | StoredEnsemble:
    """Return what a parsed file holds; raise if it is not valid."""
    fields = fields_of(document, "the file", ("format", "version"))
    if fields["format"] != FORMAT:
        got = shown(fields["format"])
        raise ModelFileError(f"its 'format' is {got}, not {shown(FORMAT)}")
    version = fields["version"]
    if type(version) is not int or version not in _READERS:
        raise ModelFileError(
            f"its 'version' is {shown(version)}, and this branchwise reads versions "
            f"{VERSION} and {ENSEMBLE_VERSION}; a later release may read it"
        )
    return _READERS[version](fields)


def _read_single_tree(document: dict[str, Any]) -> StoredTree:
    """Return schema, tree and recipe of a file of version 1."""
    fields = fields_of(document, "the file", ("recipe", "schema", "tree"))
    schema = read_schema(fields)
    tree = _read_tree(fields["tree"])
    _check_target(schema, tree, "'tree'")
    validate(tree, schema)
    recipe = _read_recipe(fields["recipe"])
    _check_costs(recipe, schema)
    _check_predictions(recipe, tree, "'tree'")
    return schema, tree, recipe


def _read_ensemble(document: dict[str, Any]) -> StoredEnsemble:
    """Return what a file of version 2 holds."""
    names = ("ensemble", "recipe", "schema", "trees")
    fields = fields_of(document, "the file", names)
    schema = read_schema(fields)
    recipe = _read_recipe(fields["recipe"])
    _check_costs(recipe, schema)
    given = fields_of(fields["ensemble"], "'ensemble'", ())
    ensemble_recipe = _read_ensemble_recipe(given, recipe)
    _check_kinds(ensemble_recipe, schema)
    stored = typed(fields, "trees", "the file", "a list")
    if not stored:
        raise ModelFileError("'trees' is empty")
    n_outputs = ensemble_recipe.n_outputs(len(schema.classes))
    sizes = {
        "tree_weights": len(stored),
        "initial": n_outputs,
        "rule_cases": len(stored) * len(schema.classes),
    }
    numbers = _read_ensemble_numbers(given, ensemble_recipe, sizes)
    if ensemble_recipe.adds_margins and len(stored) % n_outputs:
        raise ModelFileError(f"'trees' must have {n_outputs} trees for each round")
    # Trees of gradient boosting predict numbers, also where an ensemble has classes.
    tree_schema = replace(schema, classes=()) if recipe.is_regression else schema
    trees = []
    for number, value in enumerate(stored):
        where = f"tree {number}"
        try:
            tree = _read_encoded_tree(value, where, tree_schema)
            validate(tree, tree_schema)
        except DataError as error:
            raise ModelFileError(f"{where}: {str(error).removesuffix('.')}") from None
        _check_predictions(recipe, tree, where)
        if ensemble_recipe.method == "rules":
            _check_rule(tree, where)
        trees.append(tree)
    return StoredEnsemble(schema, tuple(trees), ensemble_recipe, **numbers)


def _check_kinds(recipe: EnsembleRecipe, schema: Schema) -> None:
    """Reject an ensemble whose trees do not go with its target."""
    trees_of_numbers = recipe.tree.is_regression
    if recipe.adds_margins and not trees_of_numbers:
        raise ModelFileError("'ensemble' adds up numbers and 'recipe' predicts classes")
    if not schema.classes and not trees_of_numbers:
        raise ModelFileError("'schema' has no classes and 'recipe' predicts classes")
    if not schema.classes and recipe.loss == "log_loss":
        raise ModelFileError("'schema' has no classes and 'loss' is for classes")
    if schema.classes and trees_of_numbers and recipe.loss != "log_loss":
        raise ModelFileError("'schema' has classes and 'recipe' predicts numbers")


def _read_ensemble_numbers(
    fields: dict[str, Any], recipe: EnsembleRecipe, sizes: dict[str, int]
) -> dict[str, Floats]:
    """Return the numbers that an ensemble of its method has."""
    where = "'ensemble'"
    found: dict[str, Floats] = {}
    for name, methods in ENSEMBLE_NUMBERS.items():
        if (name in fields) != (recipe.method in methods):
            state = "lacks" if recipe.method in methods else "has"
            raise ModelFileError(
                f"{where} {state} {name!r}, and its 'method' is {shown(recipe.method)}"
            )
        if name not in fields:
            continue
        numbers = _read_array(fields[name], name, np.float64)
        wanted = sizes[name]
        if len(numbers) != wanted:
            raise ModelFileError(
                f"{name!r} of {where} must have {counted(wanted, 'number')}, not "
                f"{len(numbers)}"
            )
        if not (np.abs(numbers) <= _LARGEST_MEAN).all():
            raise ModelFileError(f"{name!r} of {where} must have finite numbers")
        found[name] = numbers
    if "tree_weights" in found and not (
        (found["tree_weights"] >= 0).all() and found["tree_weights"].any()
    ):
        raise ModelFileError(f"'tree_weights' of {where} are negative, or all are 0")
    if "rule_cases" in found and not (found["rule_cases"] >= 0).all():
        raise ModelFileError(f"'rule_cases' of {where} must be at least 0")
    return found


def _check_rule(tree: Tree, where: str) -> None:
    """Reject a tree that is no rule: one path, with a number at its end alone."""
    if tree.mean is None:
        raise AssertionError("trees of rules have numbers")
    voting = np.flatnonzero(tree.mean)
    splits = ~tree.is_leaf
    path = len(tree) == 2 * np.count_nonzero(splits) + 1 and (
        tree.max_depth == np.count_nonzero(splits)
    )
    ends = len(voting) == 0 or (
        len(voting) == 1 and tree.depth[voting[0]] == (tree.max_depth)
    )
    if not path or not ends or (splits.any() and not len(voting)):
        raise ModelFileError(
            f"{where} is no rule: a rule has one split for each condition, and a vote "
            "at the end of the last"
        )


#: What reads the fields of a file of each version.
_READERS: dict[int, Callable[[dict[str, Any]], StoredTree | StoredEnsemble]] = {
    VERSION: _read_single_tree,
    ENSEMBLE_VERSION: _read_ensemble,
}


def _check_target(schema: Schema, tree: Tree, where: str) -> None:
    if not schema.classes and not tree.is_regression:
        raise ModelFileError("'classes' of 'schema' is empty")
    if schema.classes and tree.is_regression:
        raise ModelFileError(f"'schema' has classes and yet {where} has 'mean'")


def _check_costs(recipe: Recipe, schema: Schema) -> None:
    n_costs = None if recipe.costs is None else len(recipe.costs)
    if n_costs not in (None, len(schema.classes)):
        raise ModelFileError(
            f"'costs' of 'recipe' has {n_costs} rows, and 'schema' has "
            f"{len(schema.classes)} classes"
        )


def _check_predictions(recipe: Recipe, tree: Tree, where: str) -> None:
    if recipe.costs is not None and tree.prediction is None:
        raise ModelFileError(f"'recipe' has costs and yet {where} lacks 'answer'")


def _read_tree(value: Any) -> Tree:
    fields = fields_of(value, "'tree'", _REQUIRED_ARRAYS)
    specs = _arrays_of(fields, "'tree'")
    tree = Tree(
        **{
            spec.name: _read_array(fields[spec.key], spec.key, spec.dtype)
            for spec in specs
        }
    )
    _check_amounts(tree)
    return tree


def _read_encoded_tree(value: Any, where: str, schema: Schema) -> Tree:
    """Return a tree whose arrays are texts."""
    fields = fields_of(value, where, _REQUIRED_ARRAYS)
    width = max(1, len(schema.classes))
    arrays: dict[str, Any] = {}
    for spec in _arrays_of(fields, where):
        text = typed(fields, spec.key, where, "text")
        array = array_of_text(text, spec.key, spec.dtype is np.float64)
        if spec.name in ("weights", "class_cases") and len(array) % width == 0:
            array = array.reshape(-1, width)
        arrays[spec.name] = array
    # As small as in the file: sizes are checked before numbers take 8 bytes each.
    small = Tree(**arrays)
    _check_target(schema, small, where)
    validate_shapes(small, len(small), width)
    for spec in small.arrays:
        dtype = np.intp if spec.dtype is np.int64 else np.float64
        arrays[spec.name] = arrays[spec.name].astype(dtype)
    tree = Tree(**arrays)
    _check_amounts(tree)
    return tree


def _check_amounts(tree: Tree) -> None:
    """Reject amounts from which results would be computed that are not finite."""
    with np.errstate(over="ignore"):
        heaviest = tree.weights.sum(axis=-1).max(initial=0)
    if heaviest > _LARGEST_WEIGHT:
        raise ModelFileError("array 'weights' has numbers that are too large")
    for spec in tree.arrays:
        if spec in NUMBER_ARRAYS and (
            np.abs(getattr(tree, spec.name)).max(initial=0) > _LARGEST_MEAN
        ):
            raise ModelFileError(f"array {spec.key!r} has numbers that are too large")


def _arrays_of(fields: dict[str, Any], where: str) -> tuple[ArraySpec, ...]:
    """Return the arrays that a tree has: each group of them as a whole or not."""
    specs: tuple[ArraySpec, ...] = ARRAYS
    for group in OPTIONAL_ARRAYS:
        if any(spec.key in fields for spec in group):
            specs += group
            fields_of(fields, where, tuple(spec.key for spec in group))
    if set(NUMBER_ARRAYS + PREDICTION_ARRAYS) <= set(specs):
        raise ModelFileError(f"{where} has both 'mean' and 'answer'")
    # Unlike in other objects, an unknown field may change the meaning here.
    check_known(fields, [spec.key for spec in specs], where, "array")
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


def _read_ensemble_recipe(fields: dict[str, Any], recipe: Recipe) -> EnsembleRecipe:
    where = "'ensemble'"
    # An unknown field may change how predictions are combined.
    known_names = {*ENSEMBLE_KEYS, *ENSEMBLE_NUMBERS}
    check_known(fields, known_names, where, "field")
    known = {}
    for key, name in ENSEMBLE_KEYS.items():
        absent = ABSENT[name]
        known[name] = fields.get(key, absent)
        if isinstance(absent, bool) and name not in PARAMETERS:
            typed({key: known[name]}, key, where, "true or false")
    if known["max_features"] == "oob":
        raise ModelFileError(
            f"'max_features' of {where} must be the number of columns that was chosen, "
            'not "oob"'
        )
    return EnsembleRecipe(tree=recipe, **known)


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
