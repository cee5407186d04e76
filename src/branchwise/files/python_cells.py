"""Conversion of Python cells, of a sheet or a database, to a typed column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from branchwise.data.arrow import sorted_dictionary
from branchwise.data.columns import LARGEST_EXACT
from branchwise.errors import DataError

_LARGEST = 2**63


def column_of_cells(
    cells: Sequence[Any], name: str, label: str, as_text: bool, missing: Sequence[str]
) -> Any:
    """Return a column of numbers, booleans, dates or, if they are mixed, of text.

    Parameters
    ----------
    cells : sequence
        Texts, numbers, booleans, dates and None.
    name, label : str
        The names of the column and the file in messages.
    as_text : bool
        Whether to return text in any case.
    missing : sequence of str
        The texts that are missing values.
    """
    import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

    na_values = frozenset(missing)
    cells = [
        None if cell is None or (isinstance(cell, str) and cell in na_values) else cell
        for cell in cells
    ]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds:
        return pa.chunked_array([pa.nulls(len(cells))])
    if kinds == {bool} and not as_text:
        return pa.chunked_array([pa.array(cells, pa.bool_())])
    if kinds <= {int, float} and not as_text:
        return pa.chunked_array([_numbers(cells, name, label)])
    dated = None if as_text else _dates(cells, kinds)
    if dated is not None:
        return pa.chunked_array([dated])
    texts = [None if cell is None else _text(cell, name, label) for cell in cells]
    try:
        column = pa.chunked_array([pa.array(texts, pa.string())])
    except UnicodeEncodeError:
        raise DataError(
            f"Column {name!r} of {label} has a text that is not Unicode. Correct it, "
            "or leave the column out (ignore)."
        ) from None
    return sorted_dictionary(column)


def _numbers(cells: Sequence[Any], name: str, label: str) -> Any:
    """Return integers, where all are whole, or float64."""
    import pyarrow as pa  # noqa: PLC0415

    inexact = [c for c in cells if isinstance(c, int) and abs(c) > LARGEST_EXACT]
    # Larger floats are neither counts nor codes.
    largest = _LARGEST if inexact else LARGEST_EXACT
    if all(cell is None or _is_whole(cell, largest) for cell in cells):
        whole = [None if cell is None else int(cell) for cell in cells]
        return pa.array(whole, pa.int64())
    if inexact:
        raise DataError(
            f"Column {name!r} of {label} has the integer {inexact[0]} among fractions, "
            "beyond 2**53, where float64 is no longer exact. If it is an identifier, "
            "leave it out or store it as text."
        )
    return pa.array([None if c is None else float(c) for c in cells], pa.float64())


def _dates(cells: Sequence[Any], kinds: set[type]) -> Any:
    """Return dates or times as such; None if there is anything else."""
    import pyarrow as pa  # noqa: PLC0415

    if kinds <= {date, datetime}:
        if datetime not in kinds:
            return pa.array(cells)
        # A sheet may mix dates with and without a time of day.
        moments = [_moment(cell) for cell in cells]
        whole = not any(moment and moment.microsecond for moment in moments)
        return pa.array(moments, pa.timestamp("s" if whole else "us"))
    return pa.array(cells) if kinds in ({time}, {timedelta}) else None


def _moment(cell: date | None) -> datetime | None:
    if cell is None or isinstance(cell, datetime):
        return cell
    return datetime.combine(cell, time())


def _is_whole(cell: float, largest: int) -> bool:
    if isinstance(cell, int):
        return True
    return cell.is_integer() and -largest <= cell < largest


def _text(cell: Any, name: str, label: str) -> str:
    """Return the text of a cell as in CSV."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if abs(cell) < 1e15 and cell == int(cell) else repr(cell)
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, (int, timedelta)):
        return str(cell)
    raise DataError(
        f"Column {name!r} of {label} holds values of type {type(cell).__name__}, which "
        f"are no text and no numbers. Leave it out (ignore)."
    )
