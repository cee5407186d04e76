"""The same table in many kinds, and held by many engines: the same model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute

from branchwise import BranchwiseWarning, EncodedTable
from fit_cases import Case, is_missing
from fit_laws import known_rows
from fit_trials import (
    Outcome,
    Refusal,
    fitted,
    same_bits,
    same_model,
    same_tree,
)

Cells = list[Any]


def family(cells: Cells) -> str:
    """Return what a column holds: text, boolean, whole, number or nothing."""
    kinds = {type(cell) for cell in cells if not is_missing(cell)}
    names = {str: "text", bool: "boolean", int: "whole", float: "number"}
    if not kinds:
        return "nothing"
    if kinds == {int, float}:
        return "number"
    return names[kinds.pop()] if len(kinds) == 1 else "mixed"


def with_none(cells: Cells) -> Cells:
    """Return the cells with None for what is missing; numbers of one type."""
    number = float if family(cells) == "number" else lambda cell: cell
    return [None if is_missing(cell) else number(cell) for cell in cells]


# ----------------------------------------------------------------------------- kinds


def arrow_table(columns: dict[str, Cells], **changed: Any) -> pa.Table:
    """Return an Arrow table, its text of another type if one is given."""
    types = {
        "text": changed.get("text", pa.string()),
        "boolean": pa.bool_(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "nothing": pa.float64(),
    }
    arrays = {
        name: pa.array(with_none(cells), types[family(cells)])
        for name, cells in columns.items()
    }
    return pa.table(arrays)


def _dictionaries(columns: dict[str, Cells]) -> pa.Table:
    table = arrow_table(columns)
    arrays = [
        c.dictionary_encode() if pa.types.is_string(c.type) else c
        for c in table.columns
    ]
    return pa.table(dict(zip(table.column_names, arrays, strict=True)))


def _ordered_dictionaries(columns: dict[str, Cells]) -> pa.Table:
    table = arrow_table(columns)
    arrays = []
    for cells, array in zip(columns.values(), table.columns, strict=True):
        if family(cells) == "text":
            values = pa.array(_distinct(cells), pa.string())
            codes = pa.compute.index_in(array.combine_chunks(), values)
            array = pa.DictionaryArray.from_arrays(codes, values, ordered=True)
        arrays.append(array)
    return pa.table(dict(zip(table.column_names, arrays, strict=True)))


def _chunks(columns: dict[str, Cells]) -> pa.Table:
    table = arrow_table(columns)
    third = max(1, table.num_rows // 3)
    parts = [table.slice(i, third) for i in range(0, table.num_rows, third)]
    return pa.concat_tables(parts)


def pandas_frame(columns: dict[str, Cells], types: dict[str, Any]) -> pd.DataFrame:
    """Return a pandas table, its columns of the types given for what they hold."""
    made = {}
    for name, cells in columns.items():
        kind = types.get(family(cells), object)
        made[name] = pd.Series(with_none(cells), dtype=kind)
    return pd.DataFrame(made)


def _polars(columns: dict[str, Cells], text: Callable[[Cells], Any]) -> pl.DataFrame:
    types = {"boolean": pl.Boolean, "whole": pl.Int64, "number": pl.Float64}
    made = []
    for name, cells in columns.items():
        kind = family(cells)
        dtype = text(cells) if kind == "text" else types.get(kind, pl.Float64)
        made.append(pl.Series(name, with_none(cells), dtype=dtype))
    return pl.DataFrame(made)


def _distinct(cells: Cells) -> list[str]:
    return sorted({cell for cell in cells if isinstance(cell, str)})


def _category(columns: dict[str, Cells], ordered: bool = False) -> pd.DataFrame:
    frame = pandas_frame(columns, {"whole": "Int64", "number": "float64"})
    for name, cells in columns.items():
        if family(cells) == "text":
            frame[name] = pd.Categorical(
                with_none(cells), _distinct(cells), ordered=ordered
            )
    return frame


KINDS: dict[str, Callable[[dict[str, Cells]], Any]] = {
    "list of dicts": lambda c: [
        dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)
    ],
    "dict of arrays": lambda c: {
        name: np.array(cells, dtype=object) for name, cells in c.items()
    },
    "pandas, object": lambda c: pandas_frame(c, {}),
    "pandas, plain": pd.DataFrame,
    "pandas, string": lambda c: pandas_frame(
        c, {"text": "string", "number": "float64"}
    ),
    "pandas, nullable": lambda c: pandas_frame(
        c, {"text": "str", "whole": "Int64", "number": "Float64", "boolean": "boolean"}
    ),
    "pandas, category": _category,
    "pandas, pyarrow": lambda c: arrow_table(c).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda c: _polars(c, lambda _: pl.String),
    "polars, Categorical": lambda c: _polars(c, lambda _: pl.Categorical),
    "arrow": arrow_table,
    "arrow, dictionaries": _dictionaries,
    "arrow, chunks": _chunks,
    "arrow, large text": lambda c: arrow_table(c, text=pa.large_string()),
    "encoded": EncodedTable,
}

#: Kinds of tables whose columns have no type.
UNTYPED = ("list of dicts", "dict of arrays", "encoded")
#: How many kinds of tables, and of targets, are tried with one case.
TRIED, TRIED_TARGETS = 5, 3


def check_kinds(case: Case) -> bool:
    """Every kind of table gives the same model; a case tries some of them."""
    if any(family(cells) == "mixed" for cells in case.columns.values()):
        return False
    expected = fitted(case)
    untyped = any(family(cells) == "nothing" for cells in case.columns.values())
    rows = known_rows(case)
    rng = case.random("kinds")
    for name, make in rng.sample(list(KINDS.items()), TRIED):
        if untyped and name not in UNTYPED:
            continue  # a column without values is what its type says
        same_model(expected, fitted(case, make(case.columns)), name)
        if not isinstance(expected, Refusal):
            got = expected.apply(make(rows))
            same_bits(expected.apply(rows), got, f"{name}, to predict")
    _check_targets(case, expected)
    if untyped or rng.random() < 0.5:
        return True
    enum = _polars(case.columns, lambda cells: pl.Enum(_distinct(cells)))
    with warnings.catch_warnings():
        # Of ordered categories that a split may group against their order.
        warnings.simplefilter("ignore", BranchwiseWarning)
        ordered = fitted(case, _category(case.columns, ordered=True))
        same_model(
            ordered, fitted(case, enum), "polars, Enum against ordered categories"
        )
        same_model(
            ordered,
            fitted(case, _ordered_dictionaries(case.columns)),
            "arrow, ordered dictionaries against ordered categories",
        )
    if "categories" in case.parameters:
        return True
    array = np.empty((case.n_rows, len(case.columns)), dtype=object)
    for j, cells in enumerate(case.columns.values()):
        array[:, j] = cells
    same_tree(expected, fitted(case, array), "an array of objects")
    return True


def _check_targets(case: Case, expected: Outcome) -> None:
    """Every kind of target and of weights gives the same model."""
    table = arrow_table({"y": case.y})
    kinds = {
        "array": np.array(case.y),
        "array of objects": np.array(case.y, dtype=object),
        "Series": pd.Series(case.y),
        "Series of objects": pd.Series(case.y, dtype=object),
        "Series of pyarrow": table.to_pandas(types_mapper=pd.ArrowDtype)["y"].rename(
            None
        ),
        "polars": pl.Series(with_none(case.y)),
        "arrow": table["y"],
    }
    if not case.is_regression:
        kinds["dictionary"] = table["y"].dictionary_encode()
        kinds["category"] = pd.Series(pd.Categorical(case.y))
    rng = case.random("targets")
    for name, y in rng.sample(list(kinds.items()), TRIED_TARGETS):
        same_model(expected, fitted(replace(case, y=y)), f"y as {name}")
    if case.weights is not None:
        make = rng.choice((np.array, pd.Series, pl.Series, pa.array))
        got = fitted(replace(case, weights=make(case.weights)))
        same_model(expected, got, f"weights by {make.__name__}")


TABLES: dict[str, Callable[[Case], bool]] = {"kinds": check_kinds}
