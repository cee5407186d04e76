"""The model file: versioned, canonical JSON, written, read and validated.

The layout is documented field by field in ``docs/model_file.md``. The same model
always gives the same bytes. Reading never runs code: a file is parsed, and every
size, type and index in it is checked before arrays are made.
"""

from branchwise.model_file.layout import (
    FORMAT,
    MAX_BYTES,
    RECIPE_FIELDS,
    REQUIRED_FIELDS,
    VERSION,
)
from branchwise.model_file.reader import from_bytes, load
from branchwise.model_file.writer import save, to_bytes

__all__ = [
    "FORMAT",
    "MAX_BYTES",
    "RECIPE_FIELDS",
    "REQUIRED_FIELDS",
    "VERSION",
    "from_bytes",
    "load",
    "save",
    "to_bytes",
]
