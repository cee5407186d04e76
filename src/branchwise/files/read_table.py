"""A file of any known form, or standard input -> an Arrow table.

Words stay as they are in the file: TRUE, 2020-01-02 and, where a column is wanted
as text, 007. Text comes as dictionary columns: values that the file declares are in
the order of their declaration, others sorted, so that nothing depends on the order
of the rows.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from branchwise.data.arrow import as_list, converted, declared_table, is_text
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.delimited import DelimitedFile
from branchwise.files.formats import HEADED_FORMS, TEXT_FORMS, open_form
from branchwise.files.options import Reading, make_reading
from branchwise.files.parquet import untyped
from branchwise.files.raw_bytes import STANDARD_STREAM

__all__ = ["MISSING", "STANDARD_STREAM", "TableFile", "read_table"]

#: Cells that are missing values unless the user says otherwise.
MISSING = ("", "?")

#: The most columns that a table in a file may have: each takes time and memory.
MOST_COLUMNS = 100_000

#: Row and text of a cell that cannot be taken, and whether it is one of a few among
#: cells that can -> the error.
Refuse = Callable[[int, str, bool], DataError]

_NO_HEADER = " If the first line is a row like the others, add --no-header."
_ROW = re.compile(r"\b(?:in|of them) row (\d+)\b")
#: How many columns a message lists.
_SHOWN = 20
_TRUTH = {"true": True, "false": False}


class TableFile:
    """A file of which the column names are known, and whose columns can be read.

    Parameters
    ----------
    source : str or path
        A file; ``-`` is standard input.
    reading : Reading or None
        How to read it, where the file itself does not tell.
    further : bool
        Whether it is a further table beside the one that ``reading`` is for: options
        that do not fit its form have no effect then.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        reading: Reading | None = None,
        further: bool = False,
    ) -> None:
        name = _path_of(source)
        label = "standard input" if name == STANDARD_STREAM else name
        self.form, self._format = open_form(name, label, reading or Reading(), further)
        self.label = self._format.label
        check_width(self.label, len(self.names))

    @property
    def _trimmed(self) -> str | None:
        """How to read the file without the blanks around cells, if that can be said."""
        if not isinstance(self._format, DelimitedFile):
            return None
        return self._format.without_blanks

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the file."""
        return self._format.names

    @property
    def is_text(self) -> bool:
        """Whether the file is text, so that all cells are."""
        return self.form in TEXT_FORMS

    def place(self, row: int) -> str:
        """Tell where in the file a row is, counted from 0: ``line 7``."""
        return self._format.place(row)

    def check_names(self, names: Collection[str]) -> None:
        """Raise an error for a name that is not a column."""
        check_names(self.label, self.names, names, self._trimmed)

    def read(
        self,
        *,
        missing: Sequence[str] = MISSING,
        text_columns: Collection[str] | Literal["all"] = (),
        number_columns: Collection[str] = (),
        boolean_columns: Collection[str] = (),
        ignore: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> Any:
        """Read the columns into a table.

        Parameters
        ----------
        missing : sequence of str
            The cells of text and number columns that are missing values.
        text_columns : collection of str or "all"
            Columns whose cells are wanted as the text that is in the file; "all"
            are those that are not named as something else.
        number_columns : collection of str
            Columns that must hold numbers.
        boolean_columns : collection of str
            Columns that must hold "true" and "false", in upper or lower case.
        ignore : collection of str
            Columns to leave out.
        only : collection of str or None
            If given, the columns to read.

        Returns
        -------
        pyarrow.Table
            Number columns, and text as dictionary columns.
        """
        other = {*number_columns, *boolean_columns}
        if text_columns == "all":
            text_columns = [name for name in self.names if name not in other]
        self.check_names([*text_columns, *other, *ignore, *(only or ())])
        _refuse_both(text_columns, other)
        wanted = set(self.names if only is None else only).difference(ignore)
        as_text = set(text_columns)
        indices = [i for i, name in enumerate(self.names) if name in wanted]
        check_header(self.names, indices, self.label, self.form in HEADED_FORMS)
        text = {index for index in indices if self.names[index] in as_text}
        columns = self._format.load(indices, text, missing)
        names = [self.names[index] for index in indices]
        for at, name in enumerate(names):
            if name in number_columns:
                columns[at] = as_numbers(
                    name, columns[at], self.label, self._wrong_cell(name, "numbers")
                )
            elif name in boolean_columns:
                columns[at] = as_booleans(
                    columns[at], self._wrong_cell(name, "true or false")
                )
        return declared_table(columns, names, self._format.declared)

    def read_as_is(self) -> dict[str, list[Any]]:
        """Read all columns: of text every cell, of other forms every value."""
        table = self.read(missing=(), text_columns="all" if self.is_text else ())
        columns = untyped(table.columns)
        return dict(zip(table.column_names, map(as_list, columns), strict=True))

    def _wrong_cell(self, name: str, what: str) -> Refuse:
        return wrong_cell(name, what, self.label, self.place)


def check_width(label: str, n_columns: int) -> None:
    """Refuse a table of more columns than any real one has."""
    if n_columns > MOST_COLUMNS:
        raise DataError(
            f"{label} has {n_columns:,} columns, more than the {MOST_COLUMNS:,} that a "
            "table may have. Is the separator wrong, or are rows and columns exchanged?"
        )


def check_header(
    names: Sequence[str], indices: Sequence[int], label: str, headed: bool
) -> None:
    """Refuse columns that have no name of their own; ``headed`` names may be rows."""
    count = Counter(names[index] for index in indices)
    double = [name for name, times in count.items() if times > 1]
    unnamed = [index + 1 for index in indices if not names[index].strip()]
    if unnamed:
        positions = ", ".join(str(position) for position in unnamed[:_SHOWN])
        if len(unnamed) > _SHOWN:
            positions += f" and {len(unnamed) - _SHOWN:,} more"
        which = "Columns {} of {} have" if len(unnamed) > 1 else "Column {} of {} has"
        raise DataError(
            f"{which.format(positions, label)} no name. Every column needs one: add it "
            f"to the header, or ignore what has none ({names[unnamed[0] - 1]!r})."
            f"{_NO_HEADER if headed else ''}"
        )
    if double:
        raise DataError(
            f"{label} has more than one column named {quoted(double)}. Every column "
            "needs a name of its own: rename them in the header, or ignore them."
            f"{_NO_HEADER if headed else ''}"
        )


def check_names(
    label: str,
    known: Sequence[str],
    names: Collection[str],
    without_blanks: str | None = None,
) -> None:
    """Raise an error for a name that is not a column; suggest the nearest.

    ``without_blanks`` is the option that leaves out the blanks around cells.
    """
    there = frozenset(known)
    for name in names:
        if name not in there:
            meant = _nearest(name, known)
            if without_blanks and name in [other.strip(" \t") for other in known]:
                meant += (
                    " The blanks belong to the name; blanks around cells do not "
                    f"count with {without_blanks}."
                )
            raise DataError(
                f"{label} has no column {name!r}.{meant} The columns are "
                f"{quoted(known, 20)}."
            )


def wrong_cell(name: str, what: str, label: str, place: Callable[[int], str]) -> Refuse:
    """Return who makes the error of a cell that is not what its column must hold."""

    def refuse(row: int, cell: str, is_rare: bool) -> DataError:
        found = f"Column {name!r} must hold {what}, but {place(row)} of {label} has"
        if is_rare:
            return DataError(
                f"{found} {cell!r}. Correct the cell, or let such cells count as "
                f"missing with --missing {shlex.quote(cell)}."
            )
        return DataError(
            f"{found} {cell!r}, and many cells are like it. Is this the column that is "
            "meant? Choose another, or correct the cells."
        )

    return refuse


def with_place(
    error: DataError, label: str, place: Callable[[int], str]
) -> DataError | None:
    """Add where in a file the row is that an error speaks of; None if of none.

    What reads a table counts its rows from 0 and does not know of lines.
    """
    found = _ROW.search(str(error))
    if found is None:
        return None
    where = place(int(found[1]))
    return DataError(f"{error} (Row {found[1]} is {where} of {label}.)")


def as_booleans(column: Any, refuse: Refuse) -> Any:
    """Return a column as booleans, refusing what is neither true nor false."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.bool_())
    text = column if is_text(column.type) else column.cast(pa.string())
    return converted(text, _truth, pa.bool_(), refuse)


def as_numbers(name: str, column: Any, label: str, refuse: Refuse) -> Any:
    """Return a column as numbers, refusing what is none."""
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.float64())
    if is_text(kind):
        return converted(column, _number, pa.float64(), refuse)
    if pa.types.is_boolean(kind):
        raise DataError(
            f"Column {name!r} of {label} must hold numbers. Got {kind}; convert the "
            "column to numbers."
        )
    return column


def read_table(
    source: str | os.PathLike[str],
    *,
    missing: Sequence[str] = MISSING,
    text_columns: Collection[str] | Literal["all"] = (),
    number_columns: Collection[str] = (),
    ignore: Collection[str] = (),
    form: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
    names_file: str | os.PathLike[str] | None = None,
    sheet: str | int | None = None,
    table: str | None = None,
    query: str | None = None,
    max_size: str | int | None = None,
) -> Any:
    """Read a file into a table that ``fit`` takes.

    CSV, TSV, ARFF, C4.5's files, Parquet, Arrow, Excel, SQLite and DuckDB; text also
    packed with gzip or zstd. The form is known by the content, else by the name.
    Opening a file never runs code.

    Parameters
    ----------
    source : str or path
        The file; ``-`` is standard input.
    missing : sequence of str
        The cells that are missing values.
    text_columns : collection of str or "all"
        Columns whose cells are wanted as the text that is in the file.
    number_columns : collection of str
        Columns that must hold numbers.
    ignore : collection of str
        Columns to leave out.
    form : str or None
        What the file is, if that cannot be told: "csv", "tsv", "arff", "c4.5",
        "parquet", "arrow", "excel", "sqlite" or "duckdb".
    separator : str or None
        What stands between the cells of CSV: a character, "tab" or "blanks".
    encoding : str or None
        The encoding of text, such as "cp1252"; without it UTF-8, or what a byte order
        mark says.
    header : bool
        Whether the first row has the names of the columns; else they are x0, x1, ...
    names : sequence of str or None
        The names of the columns of a file without a header.
    names_file : str, path or None
        A file with these names, one a line, or a C4.5 names file.
    sheet : str, int or None
        The sheet of a workbook, by name or by number from 1; without it the first.
    table, query : str or None
        The table of a database, or a query to it.
    max_size : int, str or None
        How many bytes may come through a pipe or out of a packed file; without it 8
        GB. ``"20GB"`` will do.

    Returns
    -------
    pyarrow.Table
        Number columns, and text as dictionary columns: declared values in the order
        of their declaration, others sorted.

    Examples
    --------
    >>> from branchwise import datasets
    >>> table = read_table(datasets.path("weather"))
    >>> table.column_names
    ['outlook', 'temperature', 'humidity', 'windy', 'play']
    >>> table["windy"].unique().to_pylist()
    ['FALSE', 'TRUE']
    """
    reading = make_reading(
        form,
        separator,
        encoding,
        header,
        names,
        None if names_file is None else os.fspath(names_file),
        sheet,
        table,
        query,
        max_size,
    )
    return TableFile(source, reading).read(
        missing=missing,
        text_columns=text_columns,
        number_columns=number_columns,
        ignore=ignore,
    )


def _path_of(source: object) -> str:
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise ParameterError(
            "source must be the path of a file, or '-' for standard input. Got "
            f"{type(source).__name__}; a table in memory needs no reading: pass it to "
            "fit as it is."
        )
    return path


def _nearest(name: str, names: Sequence[str]) -> str:
    """Ask whether a similar name was meant, if there is one."""
    by_case = {other.strip().lower(): other for other in names}
    close = difflib.get_close_matches(name.strip().lower(), by_case, 1)
    return f" Did you mean {by_case[close[0]]!r}?" if close else ""


def _refuse_both(text: Collection[str], other: Collection[str]) -> None:
    others = frozenset(other)
    both = [name for name in text if name in others]
    if both:
        raise ParameterError(
            f"A column is read either as text or as numbers. Got {quoted(both)} for "
            "both; name it only once."
        )


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _truth(cell: str) -> bool | None:
    return _TRUTH.get(cell.strip().lower())
