"""The model file: versioned, canonical JSON, written, read and validated.

The layout is documented field by field in ``docs/model_file.md``: version 1 is a single
tree, version 2 an ensemble. The same model always gives the same bytes. Reading never
runs code: a file is parsed, and every size, type and index in it is checked before
arrays are made.
"""

from branchwise.model_file.layout import (
    ENSEMBLE_KEYS,
    ENSEMBLE_VERSION,
    FORMAT,
    MAX_BYTES,
    RECIPE_FIELDS,
    REQUIRED_FIELDS,
    VERSION,
    StoredEnsemble,
    StoredTree,
)
from branchwise.model_file.parser import bytes_of
from branchwise.model_file.reader import (
    from_bytes,
    load,
    load_tree,
    tree_from_bytes,
)
from branchwise.model_file.writer import (
    ensemble_to_bytes,
    save,
    save_ensemble,
    to_bytes,
)

__all__ = [
    "ENSEMBLE_KEYS",
    "ENSEMBLE_VERSION",
    "FORMAT",
    "MAX_BYTES",
    "RECIPE_FIELDS",
    "REQUIRED_FIELDS",
    "VERSION",
    "StoredEnsemble",
    "StoredTree",
    "bytes_of",
    "ensemble_to_bytes",
    "from_bytes",
    "load",
    "load_tree",
    "save",
    "save_ensemble",
    "to_bytes",
    "tree_from_bytes",
]
