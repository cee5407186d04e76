"""Texts of files that are read in chunks: their values, and spellings to be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from branchwise.data.arrow import number_column, text_column
from branchwise.data.columns import Coded
from branchwise.data.conventions.spellings import chosen_spellings
from branchwise.data.table_schema import Schema, Value, value_type
from branchwise.engines.base import Task
from branchwise.engines.summaries import ColumnSummary, Summary
from branchwise.files.dataset import StreamedTable


def arrow_values(summary: ColumnSummary) -> Any:
    """Return the distinct values of a column, or the numbers that are known of it."""
    if summary.numbers is not None:
        known = np.concatenate([summary.numbers.low, summary.numbers.high])
        return number_column(known)
    return text_column([str(value) for value in summary.column.categories])


def merged_values(table: StreamedTable) -> dict[str, Sequence[Value]]:
    """Count the texts of all rows, and return the spelling of each value, by column."""
    counted: dict[str, Counter[str]] = {}
    with closing(table.chunks()) as chunks:
        for chunk in chunks:
            for at, name in enumerate(chunk.frame.names):
                raw = chunk.frame.column(at)
                if isinstance(raw, Coded) and not raw.declared:
                    known = raw.codes[raw.codes >= 0]
                    times = np.bincount(known, minlength=len(raw.values)).tolist()
                    cells = zip(raw.values, times, strict=True)
                    of_texts = {v: n for v, n in cells if isinstance(v, str)}
                    counted.setdefault(name, Counter()).update(of_texts)
    return {
        name: list(chosen_spellings(times).values()) for name, times in counted.items()
    }


def known_values(schema: Schema, target: str) -> dict[str, Sequence[Value]]:
    """Return the values into which other spellings are merged."""
    columns = [column for column in schema.columns if not column.is_numeric]
    known: dict[str, Sequence[Value]] = {c.name: c.categories for c in columns}
    return {**known, target: schema.classes} if schema.classes else known


def kinds_of(statistics: Summary, task: Task) -> Iterator[tuple[str, bool]]:
    """Yield which columns are numbers and which are not, where they have values."""
    for summary in statistics.columns:
        if not summary.is_empty:
            yield summary.column.name, summary.column.is_numeric
    if statistics.labels is not None:
        for label in list(statistics.labels)[:1]:
            yield task.target, value_type(label) == "number"


def mixed_columns(kinds: Mapping[str, set[bool]]) -> list[str]:
    """Return the columns that hold numbers in some chunks and text in others."""
    return [name for name, seen in kinds.items() if len(seen) > 1]
