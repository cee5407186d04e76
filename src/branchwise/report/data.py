"""What is in a table: kinds, gaps, values; classes or the spread of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from branchwise.counts import Floats
from branchwise.findings import inspect_table
from branchwise.report.source import Rows, Source
from branchwise.table.raw import Numbers
from branchwise.table.schema import Schema
from branchwise.words import UNNAMED

#: So many values of a column are listed, the most frequent first.
_LISTED = 3
_BINS = 20


def described(source: Source, schema: Schema) -> dict[str, Any]:
    """Tell about the rows: each column, and what is to be predicted."""
    rows = source.rows
    columns = [
        _column(rows, at, column.name, column.kind)
        for at, column in enumerate(schema.columns)
    ]
    cells = len(rows) * len(columns)
    missing = sum(column["missing"] for column in columns)
    return {
        "rows": len(rows),
        "test_rows": None if source.test is None else len(source.test),
        "weighted": rows.weights is not None,
        "columns": columns,
        "missing": missing,
        "missing_share": missing / cells if cells else 0.0,
        "target": _target(rows, source.target or UNNAMED),
    }


def warnings_of(source: Source) -> list[dict[str, Any]]:
    """List what may be wrong with the table, the gravest first."""
    y = None if source.numbers else source.rows.labels
    found = inspect_table(source.rows.table, y, source.target or UNNAMED)
    return [
        {
            "kind": one.kind,
            "columns": list(one.columns),
            "message": one.message,
            "advice": one.advice,
        }
        for one in found
    ]


def _column(rows: Rows, at: int, name: str, kind: str) -> dict[str, Any]:
    raw = rows.table.column(at)
    told: dict[str, Any] = {"name": name, "kind": kind}
    if isinstance(raw, Numbers):
        known = raw.values[~np.isnan(raw.values)]
        told |= {"missing": len(raw.values) - len(known)}
        if kind != "numeric":
            values, counts = np.unique(known, return_counts=True)
            return told | _most(values.tolist(), counts)
        return told | {"distinct": len(np.unique(known))} | _spread(known)
    given = raw.codes[raw.codes >= 0]
    counts = np.bincount(given, minlength=len(raw.values))
    told |= {"missing": len(raw.codes) - len(given)}
    return told | _most(raw.values, counts)


def _most(values: Any, counts: Any) -> dict[str, Any]:
    """Return how many values there are, and which are there most often."""
    order = np.argsort(-counts, kind="stable")[:_LISTED].tolist()
    return {
        "distinct": int((counts > 0).sum()),
        "most": [
            {"value": values[at], "rows": int(counts[at])} for at in order if counts[at]
        ],
    }


def _spread(known: Floats) -> dict[str, Any]:
    if not len(known):
        return {"minimum": None, "median": None, "maximum": None}
    return {
        "minimum": float(known.min()),
        "median": float(np.median(known)),
        "maximum": float(known.max()),
    }


def _target(rows: Rows, name: str) -> dict[str, Any]:
    if rows.classes:
        counts = np.bincount(rows.truth, minlength=len(rows.classes)).tolist()
        return {
            "name": name,
            "classes": [
                {"class": label, "rows": count, "share": count / len(rows)}
                for label, count in zip(rows.classes, counts, strict=True)
            ],
        }
    counts, edges = np.histogram(rows.truth, bins=_BINS)
    return {
        "name": name,
        "mean": float(rows.truth.mean()),
        "deviation": float(rows.truth.std()),
        **_spread(rows.truth),
        "histogram": {"edges": edges.tolist(), "rows": counts.tolist()},
    }
