"""Export of models to other languages and formats, verified row by row.

>>> from branchwise import datasets, export, fit_tree
>>> weather = datasets.load("weather")
>>> model = fit_tree(weather.X, weather.y)
>>> print(export.verify(model, "json"))
json: 1,000 rows in rules_reader.py in a Python process: 0 differences
"""

from branchwise.errors import ExportError
from branchwise.export.verification import (
    TARGETS,
    Verification,
    exported,
    exported_to,
    target_named,
    verify,
    write,
)

__all__ = [
    "TARGETS",
    "ExportError",
    "Verification",
    "exported",
    "exported_to",
    "target_named",
    "verify",
    "write",
]
