"""Answers for the rows of Spark DataFrames, added where the rows are.

Trees are grown from them by ``fit_tree``: see ``docs/scale.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from branchwise.engines.predicting import model_of
from branchwise.engines.spark_session import mapped
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.model import Model
from branchwise.table.arrow import table_of, with_columns
from branchwise.words import word

ANSWERS = ("classes", "probabilities", "leaves")
_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def predict(model: Model, frame: Any, what: str = "classes") -> Any:
    """Return a DataFrame with columns added for what a model says of its rows.

    Nothing is computed before Spark is asked for the rows.

    Parameters
    ----------
    model : Model
        The model, or an estimator that is fitted.
    frame : pyspark.sql.DataFrame
        The rows. Columns are found by name.
    what : {"classes", "probabilities", "leaves"}
        "classes" adds ``prediction``, the class or the number; "probabilities" adds
        ``probability of ...`` for every class; "leaves" adds ``leaf``, the number of
        the node.
    """
    model = model_of(model)
    if not hasattr(frame, "mapInArrow"):
        raise DataError(
            f"frame must be a DataFrame of Spark. Got {type(frame).__name__}; a table "
            "in memory is answered by model.predict."
        )
    added = _added(model, what)
    names = [column.name for column in model.schema.columns]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"The table lacks {quoted(absent)}, which the tree was fitted with. Its "
            f"columns are {quoted(frame.columns, 20)}; rename or add what is lacking."
        )
    double = [name for name in added if name in frame.columns]
    if double:
        raise DataError(
            f"There would be two columns {quoted(double)}: the table has one of that "
            "name already. Rename it first."
        )
    # By position on the way: Spark takes dots in names for parts.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    schema = deepcopy(numbered.schema)
    for at, kind in enumerate(added.values()):
        schema.add(f"added{at}", kind)
    places = {name: frame.columns.index(name) for name in names}
    new = tuple(schema.names[len(frame.columns) :])
    answered = mapped(numbered, _Predict(model, what, places, new), schema)
    return answered.toDF(*frame.columns, *added)


def _added(model: Model, what: str) -> dict[str, str]:
    """Return the columns that are added, with their types."""
    if what not in ANSWERS:
        raise ParameterError(f"what must be one of {quoted(ANSWERS)}. Got {what!r}.")
    if what == "leaves":
        return {"leaf": "long"}
    classes = model.schema.classes
    if what == "classes":
        return {"prediction": _TYPES[type(classes[0])] if classes else "double"}
    if not classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use what='classes', which adds those."
        )
    return {f"probability of {word(label)}": "double" for label in classes}


@dataclass(frozen=True)
class _Predict:
    """Adds columns to the batches of a partition."""

    model: Model
    what: str
    places: dict[str, int]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            asked = table_of(batch, self.places)
            yield with_columns(batch, self.names, self._answers(asked))

    def _answers(self, table: Any) -> list[Any]:
        if self.what == "leaves":
            return [self.model.apply(table)]
        if self.what == "classes":
            return [self.model.predict(table)]
        return list(self.model.predict_proba(table).T)
