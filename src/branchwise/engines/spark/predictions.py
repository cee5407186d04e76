"""Predictions for Spark DataFrames, computed by the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from branchwise.data.arrow import table_of, with_columns
from branchwise.engines.prediction import (
    Keep,
    What,
    kept_columns,
    predicted_columns,
    prediction_names,
)
from branchwise.engines.spark.cluster import mapped
from branchwise.errors import DataError, quoted

_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def spark_predictions(
    model: Any, frame: Any, wanted: Sequence[What], keep: Keep
) -> Any:
    """Return a DataFrame of predictions, after the columns that are kept.

    Nothing is computed before the rows are collected or written.
    """
    if not hasattr(frame, "mapInArrow"):
        raise DataError(
            f"source must be a DataFrame of Spark. Got {type(frame).__name__}."
        )
    added = _added(model, wanted)
    names = [column.name for column in model.schema.columns]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"The table lacks {quoted(absent)}, which the tree was fitted with. Its "
            f"columns are {quoted(frame.columns, 20)}; rename or add what is lacking."
        )
    kept = kept_columns(keep, frame.columns, "The table", list(added))
    # By position: Spark treats dots in names as access to fields.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    schema = deepcopy(numbered.schema)
    for at, kind in enumerate(added.values()):
        schema.add(f"added{at}", kind)
    positions = {name: frame.columns.index(name) for name in names}
    new = tuple(schema.names[len(frame.columns) :])
    work = _Predict(model, tuple(wanted), positions, new)
    chosen = [f"c{frame.columns.index(name)}" for name in kept]
    rows = mapped(numbered, work, schema).select(*chosen, *new)
    return rows.toDF(*kept, *added)


def _added(model: Any, wanted: Sequence[What]) -> dict[str, str]:
    """Return the columns that are added, with their types."""
    classes = model.schema.classes
    types = {
        "classes": _TYPES[type(classes[0])] if classes else "double",
        "probabilities": "double",
        "leaves": "long",
    }
    return {
        name: types[what]
        for what in wanted
        for name in prediction_names(model.schema, what)
    }


@dataclass(frozen=True)
class _Predict:
    """Adds columns to the batches of a partition."""

    model: Any
    wanted: tuple[What, ...]
    positions: dict[str, int]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = table_of(batch, self.positions)
            added = predicted_columns(self.model, rows, self.wanted)
            yield with_columns(batch, self.names, list(added.values()))
