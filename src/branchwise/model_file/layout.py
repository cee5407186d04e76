"""The names of a model file: its format, versions, limits and recipe fields."""

from __future__ import annotations

from branchwise.recipe import FIELDS
from branchwise.recipe.parameters import PARAMETERS

FORMAT = "branchwise-model"
VERSION = 1
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
