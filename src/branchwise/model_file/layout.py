"""The names of a model file: its format, versions, limits and recipe fields."""

from __future__ import annotations

from typing import NamedTuple

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema
from branchwise.recipe import FIELDS, Recipe
from branchwise.recipe.ensemble_recipe import (
    ENSEMBLE_FIELDS,
    OF_MARGINS,
    EnsembleRecipe,
)
from branchwise.recipe.parameters import PARAMETERS
from branchwise.tree.tree import Tree

FORMAT = "branchwise-model"
#: The version of files of single trees, and of files of ensembles.
VERSION = 1
ENSEMBLE_VERSION = 2
#: The most bytes of a file.
MAX_BYTES = 2**30

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

#: The parameter of an ensemble's recipe that each field of 'ensemble' holds, all of
#: them written only if they differ from what their absence means; the recipe of the
#: trees is a field of its own.
ENSEMBLE_KEYS = {
    PARAMETERS[name].file_key if name in PARAMETERS else name: name
    for name in ENSEMBLE_FIELDS
    if name != "tree"
}
#: What the absence of each of these fields means, by the names of parameters: the
#: default when the format was made. Files stay true when a default changes.
ABSENT = ENSEMBLE_FIELDS | {"max_features": "sqrt"}


#: What the file of a single tree holds.
StoredTree = tuple[Schema, Tree, Recipe]


class StoredEnsemble(NamedTuple):
    """What the file of an ensemble holds."""

    schema: Schema
    trees: tuple[Tree, ...]
    recipe: EnsembleRecipe
    tree_weights: Floats | None = None
    initial: Floats | None = None
    rule_cases: Floats | None = None


#: The numbers of an ensemble that are fields of 'ensemble', and the methods that have
#: them.
ENSEMBLE_NUMBERS: dict[str, tuple[str, ...]] = {
    "tree_weights": ("boosted",),
    "initial": OF_MARGINS,
    "rule_cases": ("rules",),
}
