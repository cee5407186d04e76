"""A table as the compiled extension takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import WeightGrid
from branchwise.native import optional_array, plain_arrays


def table_arguments(
    columns: Sequence[Column],
    data: Columns,
    labels: Ints,
    n_classes: int,
    grid: WeightGrid,
) -> dict[str, Any]:
    """Return the arguments of the extension that are a table with its target."""
    return {
        **cell_arguments(columns, data, grid),
        "labels": labels.astype(np.uint32),
        "n_classes": n_classes,
    }


def cell_arguments(
    columns: Sequence[Column], data: Columns, grid: WeightGrid
) -> dict[str, Any]:
    """Return the arguments of the extension that are the cells and weights of rows."""
    # Of a numeric column with codes, these are bins.
    n_codes = [
        0 if column.is_numeric and cells.dtype.kind == "u" else column.missing_code + 1
        for column, cells in zip(columns, data.data, strict=True)
    ]
    return {
        "columns": plain_arrays(data.data),
        "n_codes": n_codes,
        "weights": optional_array(grid.weights),
    }


def grid_options(grid: WeightGrid) -> dict[str, Any]:
    """Return the options of the extension that describe the grid of weights."""
    return {
        "fractions": grid.fractions,
        "weight_step": float(grid.step),
        "case_step": float(grid.case_step),
    }
