"""A CSV, TSV or Parquet file, or standard input -> an Arrow table.

Words stay as they are in the file: TRUE, 2020-01-02 and, where a column is wanted
as text, 007. Text comes as dictionary columns whose values are sorted, so that
nothing depends on the order of the rows.
"""

from __future__ import annotations

import difflib
import mmap
import os
import shlex
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from branchwise.errors import DataError, ParameterError, quoted
from branchwise.table.arrow import as_list, converted, is_text
from branchwise.table.delimited import Buffer, DelimitedFile
from branchwise.table.parquet import MAGIC, ParquetFile

#: Cells that are missing values unless the user says otherwise.
MISSING = ("", "?")
#: The name of standard input, and of standard output.
STANDARD_STREAM = "-"

_TRUTH = {"true": True, "false": False}


class _Format(Protocol):
    """What a file format has to offer."""

    label: str
    names: tuple[str, ...]

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns, those in ``text`` as dictionaries of text."""

    def place(self, row: int) -> str:
        """Tell where in the file a row is."""


class TableFile:
    """A file of which the column names are known, and whose columns can be read.

    Parameters
    ----------
    source : str or path
        A CSV, TSV or Parquet file; ``-`` is standard input.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        name = os.fspath(source)
        self.label = "standard input" if name == STANDARD_STREAM else name
        content = _content(name, self.label)
        if content[:4] == MAGIC:
            self._format: _Format = ParquetFile(content, self.label)
        else:
            delimiter = "\t" if name.lower().endswith((".tsv", ".tab")) else None
            self._format = DelimitedFile(content, self.label, delimiter)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the file."""
        return self._format.names

    @property
    def is_text(self) -> bool:
        """Whether the file is CSV or TSV, where all cells are text."""
        return isinstance(self._format, DelimitedFile)

    def place(self, row: int) -> str:
        """Tell where in the file a row is, counted from 0: ``line 7``."""
        return self._format.place(row)

    def check_names(self, names: Collection[str]) -> None:
        """Raise an error for a name that is not a column."""
        known = set(self.names)
        for name in names:
            if name not in known:
                raise DataError(
                    f"{self.label} has no column {name!r}.{_nearest(name, self.names)} "
                    f"The columns are {quoted(self.names, 20)}."
                )

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
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        other = {*number_columns, *boolean_columns}
        if text_columns == "all":
            text_columns = [name for name in self.names if name not in other]
        self.check_names([*text_columns, *other, *ignore, *(only or ())])
        _refuse_both(text_columns, other)
        wanted = set(self.names if only is None else only).difference(ignore)
        as_text = set(text_columns)
        indices = [i for i, name in enumerate(self.names) if name in wanted]
        self._check_header(indices)
        text = {index for index in indices if self.names[index] in as_text}
        columns = self._format.load(indices, text, missing)
        names = [self.names[index] for index in indices]
        for at, name in enumerate(names):
            if name in number_columns:
                columns[at] = self._as_numbers(name, columns[at])
            elif name in boolean_columns:
                columns[at] = self._as_booleans(name, columns[at])
        return pa.table(columns, names=names)

    def read_as_is(self) -> dict[str, list[Any]]:
        """Read all columns: of delimited text every cell, of Parquet every value."""
        table = self.read(missing=(), text_columns="all" if self.is_text else ())
        return {name: as_list(table[name]) for name in table.column_names}

    def _check_header(self, indices: Sequence[int]) -> None:
        count = Counter(self.names[index] for index in indices)
        double = [name for name, times in count.items() if times > 1]
        unnamed = [index + 1 for index in indices if not self.names[index].strip()]
        if unnamed:
            positions = ", ".join(str(position) for position in unnamed)
            which = (
                "Columns {} of {} have" if len(unnamed) > 1 else "Column {} of {} has"
            )
            name = shlex.quote(self.names[unnamed[0] - 1])
            raise DataError(
                f"{which.format(positions, self.label)} no name. Every column "
                f"needs one: add it to the header, or leave out what has none with "
                f"--ignore {name}."
            )
        if double:
            raise DataError(
                f"{self.label} has more than one column named {quoted(double)}. Every "
                "column needs a name of its own: rename them in the header, or leave "
                f"them out with --ignore {shlex.quote(double[0])}."
            )

    def _as_numbers(self, name: str, column: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        kind = column.type
        if pa.types.is_null(kind):
            return column.cast(pa.float64())
        if is_text(kind):
            refuse = self._wrong_cell(name, "numbers")
            return converted(column, _number, pa.float64(), refuse)
        if pa.types.is_boolean(kind):
            raise DataError(
                f"Column {name!r} of {self.label} must hold numbers. Got {kind}; "
                "convert the column to numbers."
            )
        return column

    def _as_booleans(self, name: str, column: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
            return column.cast(pa.bool_())
        refuse = self._wrong_cell(name, "true or false")
        text = column if is_text(column.type) else column.cast(pa.string())
        return converted(text, _truth, pa.bool_(), refuse)

    def _wrong_cell(self, name: str, what: str) -> Callable[[int, str], DataError]:
        def refuse(row: int, cell: str) -> DataError:
            return DataError(
                f"Column {name!r} must hold {what}, but {self.place(row)} of "
                f"{self.label} has {cell!r}. Correct the cell, or let such cells count "
                f"as missing with --missing {shlex.quote(cell)}."
            )

        return refuse


def read_table(
    source: str | os.PathLike[str],
    *,
    missing: Sequence[str] = MISSING,
    text_columns: Collection[str] | Literal["all"] = (),
    number_columns: Collection[str] = (),
    ignore: Collection[str] = (),
) -> Any:
    """Read a CSV, TSV or Parquet file into a table.

    Parameters
    ----------
    source : str or path
        The file; ``-`` is standard input. Parquet is known by its content, a name
        that ends in .tsv by tabs; else the header tells whether commas, tabs or
        semicolons stand between the cells.
    missing : sequence of str
        The cells that are missing values.
    text_columns : collection of str or "all"
        Columns whose cells are wanted as the text that is in the file.
    number_columns : collection of str
        Columns that must hold numbers.
    ignore : collection of str
        Columns to leave out.

    Returns
    -------
    pyarrow.Table
        Number columns, and text as dictionary columns with sorted values.

    Examples
    --------
    >>> from branchwise import datasets
    >>> table = read_table(datasets.path("weather"))
    >>> table.column_names
    ['outlook', 'temperature', 'humidity', 'windy', 'play']
    >>> table["windy"].unique().to_pylist()
    ['FALSE', 'TRUE']
    """
    return TableFile(source).read(
        missing=missing,
        text_columns=text_columns,
        number_columns=number_columns,
        ignore=ignore,
    )


def _content(name: str, label: str) -> Buffer:
    """Return the bytes of a file, without reading them where that is possible."""
    if name == STANDARD_STREAM:
        if sys.stdin is None:
            raise DataError("Standard input is closed, so no table can be read from it")
        return sys.stdin.buffer.read()
    try:
        with Path(name).open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return file.read()
    except FileNotFoundError:
        raise DataError(f"There is no file {label!r}. Check the path.") from None
    except IsADirectoryError:
        raise DataError(
            f"{label!r} is a directory. Give the CSV, TSV or Parquet file in it."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{label!r} cannot be read: {reason}.") from None


def _nearest(name: str, names: Sequence[str]) -> str:
    """Ask whether a similar name was meant, if there is one."""
    by_case = {other.strip().lower(): other for other in names}
    close = difflib.get_close_matches(name.strip().lower(), by_case, 1)
    return f" Did you mean {by_case[close[0]]!r}?" if close else ""


def _refuse_both(text: Collection[str], other: Collection[str]) -> None:
    both = [name for name in text if name in other]
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
