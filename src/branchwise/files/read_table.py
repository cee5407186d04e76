"""Reading a file of any supported format, or standard input, into an Arrow table.

Text stays as it is in the file: TRUE, 2020-01-02 and, where a column is read as text,
007. Text columns are dictionary columns: values that the file declares are in the
order of their declaration, others sorted, so that nothing depends on the order of
the rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from branchwise.data.arrow import (
    as_dictionary,
    as_list,
    compute,
    declared_table,
    is_text,
    pa,
    with_reading,
)
from branchwise.data.columns import LARGEST_EXACT
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.conventions.spellings import merged_spellings
from branchwise.data.table_schema import MISSING, Schema, Value, check_names
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.delimited import DelimitedFile
from branchwise.files.formats import open_format
from branchwise.files.number_columns import NumberColumns, Reread, warn_numbers
from branchwise.files.options import (
    DELIMITED_FORMATS,
    HEADED_FORMATS,
    TEXT_FORMATS,
    Reading,
)
from branchwise.files.raw_bytes import STANDARD_STREAM
from branchwise.files.typed_columns import untyped, with_types
from branchwise.files.workbook import Workbook

__all__ = [
    "MISSING",
    "STANDARD_STREAM",
    "TableFile",
    "known_na_values",
    "own_na_values",
    "read_table",
]


def own_na_values(given: Sequence[str]) -> tuple[str, ...] | None:
    """Return the missing cells for a model to keep: none if they are the usual ones."""
    return None if tuple(given) == MISSING else tuple(dict.fromkeys(given))


def known_na_values(given: Sequence[str], schema: Schema) -> Sequence[str]:
    """Return the missing cells that are given, else those of the training table."""
    return schema.na_values or given if given is MISSING else given


#: The most columns that a table in a file may have: each takes time and memory.
MOST_COLUMNS = 100_000

_NO_HEADER = (
    " If the first line is a row like the others, read the file without a header."
)
#: The formats in which text that is written like numbers is read as such.
DETECTED_FORMATS = DELIMITED_FORMATS | {"excel", "jsonl", "sqlite"}
_INTEGER = "^[+-]?[0-9]+$"
#: How many columns a message lists.
_SHOWN = 20


class TableFile:
    """An opened file: its column names are known, its columns can be read.

    ``further`` says that it is a table beside the one that ``reading`` is for: options
    that do not fit its format are ignored then. ``missing`` are the cells that are
    missing values.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        reading: Reading | None = None,
        further: bool = False,
        missing: Sequence[str] = MISSING,
    ) -> None:
        self.missing = missing
        self.reading = reading or Reading()
        name = _path_of(source)
        label = "standard input" if name == STANDARD_STREAM else name
        self.file_format, self._format = open_format(name, label, self.reading, further)
        self.label = self._format.label
        #: Titles and units of columns that the file has, by name.
        self.column_labels = getattr(self._format, "column_labels", {})
        #: The names of the columns, in the order of the file; those that the header
        #: does not name are ``unnamed``.
        self.names: tuple[str, ...] = self._format.names
        self.unnamed: tuple[str, ...] = ()
        if self.file_format in HEADED_FORMATS:
            self.names, self.unnamed = filled_names(self._format.names)
        #: The columns of whole numbers that float64 cannot hold, which are text.
        self.identifiers: tuple[str, ...] = ()
        #: The numbers that were read as they are written, not plainly.
        self.numbers = NumberColumns(self.reading, self.label)
        check_width(self.label, len(self.names))

    @property
    def _trimmed(self) -> str | None:
        """The option that strips whitespace around cells, if the format has one."""
        if not isinstance(self._format, DelimitedFile):
            return None
        return self._format.without_spaces

    @property
    def sheets(self) -> tuple[str, ...]:
        """The sheet that is read, and then the others; none if it is no workbook."""
        if not isinstance(self._format, Workbook):
            return ()
        return tuple(dict.fromkeys([self._format.sheet, *self._format.sheets]))

    @property
    def title_lines(self) -> int:
        """How many lines to skip, if those before the header look like a title."""
        return getattr(self._format, "title_lines", 0)

    @property
    def is_text(self) -> bool:
        """Whether the file is text, so that all cells are."""
        return self.file_format in TEXT_FORMATS

    def location(self, row: int) -> str:
        """Return where in the file a row, counted from 0, is: ``line 7``."""
        return self._format.location(row)

    def check_names(self, names: Collection[str]) -> None:
        """Raise an error for a name that is not a column."""
        known = (*self.names, "") if self.unnamed else self.names
        with self.advising():
            check_names(self.label, known, names, self._trimmed)

    @contextmanager
    def advising(self) -> Iterator[None]:
        """Add to errors of column names that the first lines look like a title."""
        try:
            yield
        except DataError as error:
            advice = getattr(self._format, "title_advice", "")
            raise DataError(f"{error}{advice}") from None

    def read(
        self,
        *,
        missing: Sequence[str] | None = None,
        text_columns: Collection[str] | Literal["all"] = (),
        number_columns: Collection[str] = (),
        boolean_columns: Collection[str] = (),
        ignore: Collection[str] = (),
        only: Collection[str] | None = None,
        number_formats: Mapping[str, NumberFormat | DateFormat] | None = None,
        classes: str | None = None,
        known_values: Mapping[str, Sequence[Value]] | None = None,
        allow_ambiguous: bool = False,
    ) -> Any:
        """Read columns into an Arrow table: numbers, and text as dictionary columns.

        The parameters are those of :func:`read_table`, where ``missing`` is that of
        the file unless it is given here; "all" text columns are those
        that are not named as something else. Boolean columns must hold "true" and
        "false", in upper or lower case; ``only`` names the columns to read.
        ``number_formats`` are the conventions of the number columns of a model; without
        it they are detected, but for the column of the ``classes``. Columns that can be
        read in two ways are an error, or stay text with ``allow_ambiguous``. With
        ``known_values`` of columns, other spellings are merged into them.
        """
        other = {*number_columns, *boolean_columns}
        if text_columns == "all":
            text_columns = [name for name in self.names if name not in other]
        self.check_names([*text_columns, *other, *ignore, *(only or ())])
        both = [name for name in text_columns if name in other]
        if both:
            raise ParameterError(
                f"A column is read either as text or as numbers. Got {quoted(both)} "
                "for both; name it only once."
            )
        wanted = set(self.names if only is None else only).difference(ignore)
        if "" in ignore:
            wanted.difference_update(self.unnamed)
        as_text = set(text_columns)
        indices = [i for i, name in enumerate(self.names) if name in wanted]
        check_header(
            self.names, indices, self.label, self.file_format in HEADED_FORMATS
        )
        text = {index for index in indices if self.names[index] in as_text}
        missing = self.missing if missing is None else missing
        known = number_formats
        delimited = self.file_format in DELIMITED_FORMATS
        numbers = NumberColumns(self.reading, self.label, known, plain=delimited)
        if self.is_text:
            known_names = [n for n in number_columns if numbers.known_format(n)]
            known_names += filter(numbers.dates.is_named, self.names)
            text |= {index for index in indices if self.names[index] in known_names}
        loaded = self._format.load(indices, text, missing)
        names = [self.names[index] for index in indices]
        columns = dict(zip(names, loaded, strict=True))

        def reread(suspects: Sequence[str]) -> Mapping[str, Any]:
            where = [self.names.index(name) for name in suspects]
            found = self._format.load(where, where, missing)
            return dict(zip(suspects, found, strict=True))

        fixed = {*as_text, *number_columns, *boolean_columns, classes}
        identifiers = self._long_integers(columns, fixed, reread)
        self.identifiers = tuple(identifiers)
        columns |= identifiers
        if self.file_format in DETECTED_FORMATS:
            known_kind = {*as_text, *boolean_columns, classes, *self.identifiers}
            looked_at = [name for name in names if name not in known_kind]
        else:
            looked_at = [name for name in names if name in number_columns]
        looked_at = [n for n in looked_at if not numbers.dates.is_named(n)]
        columns |= numbers.detected(columns, looked_at, reread if delimited else None)
        columns |= numbers.detected_dates(columns, looked_at)
        if not allow_ambiguous:
            numbers.check_ambiguous()
        self.numbers = numbers
        as_dates = [n for n in names if numbers.dates.is_named(n) and n not in as_text]
        typed = with_types(
            columns,
            {*number_columns, *as_dates},
            boolean_columns,
            numbers,
            self.location,
        )
        declared = self._format.declared
        merges = self.reading.merge_case
        if merges or known_values is not None:
            typed = _merged(typed, names, known_values or {}, declared)
        table = declared_table(typed, names, declared, numbers.written_formats)
        table = with_reading(table, merges, own_na_values(missing))
        # A model derives columns itself.
        features = self.reading.date_features if known is None else None
        features = [each for each in features or () if each.of in wanted]
        if not features:
            return table
        from branchwise.data.conventions.derived_columns import with_features  # noqa: PLC0415

        return with_features(table, features, self.label)

    def _long_integers(
        self, columns: Mapping[str, Any], fixed: Collection[str | None], reread: Reread
    ) -> dict[str, Any]:
        """Return columns of integers that float64 cannot hold, as text."""
        # Integers beyond 64 bits are read from CSV as fractions, and so is 1e300.
        delimited = self.file_format in DELIMITED_FORMATS
        suspects = [
            name
            for name, column in columns.items()
            if name not in fixed
            and (delimited or pa.types.is_integer(column.type))
            and _beyond_exact(column)
        ]
        texts = reread(suspects) if suspects else {}
        return {name: text for name, text in texts.items() if _all_digits(text)}

    def read_as_is(self) -> dict[str, list[Any]]:
        """Read all columns: of text formats every cell, of others every value."""
        table = self.read(missing=(), text_columns="all" if self.is_text else ())
        columns = untyped(table.columns)
        return dict(zip(table.column_names, map(as_list, columns), strict=True))


def _merged(
    columns: Sequence[Any],
    names: Sequence[str],
    known: Mapping[str, Sequence[Value]],
    declared: Collection[str],
) -> list[Any]:
    """Merge the spellings of values, but for those that a file declares."""
    return [
        merged_spellings(column, known.get(name, ()))
        if is_text(column.type) and name not in declared
        else column
        for name, column in zip(names, columns, strict=True)
    ]


def filled_names(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the columns that a header does not name by their number: ``column_3``.

    Returns all names, and these.
    """
    unnamed = [at for at, name in enumerate(names) if not name.strip()]
    found, taken = list(names), set(names)
    for at in unnamed:
        name = f"column_{at + 1}"
        while name in taken:
            name += "_"
        found[at] = name
        taken.add(name)
    return tuple(found), tuple(found[at] for at in unnamed)


def _beyond_exact(column: Any) -> bool:
    """Whether numbers are beyond 2**53, where float64 does not hold all integers."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    ends = compute.min_max(column).as_py().values()
    return any(end is not None and abs(end) > LARGEST_EXACT for end in ends)


def _all_digits(texts: Any) -> bool:
    """Whether all texts of a dictionary column are whole numbers without exponents."""
    distinct = as_dictionary(texts).dictionary
    return bool(compute.all(compute.match_substring_regex(distinct, _INTEGER)).as_py())


def check_width(label: str, n_columns: int) -> None:
    """Reject a table with more columns than the limit."""
    if n_columns > MOST_COLUMNS:
        raise DataError(
            f"{label} has {n_columns:,} columns, more than the {MOST_COLUMNS:,} that a "
            "table may have. Is the separator wrong, or are rows and columns exchanged?"
        )


def check_header(
    names: Sequence[str], indices: Sequence[int], label: str, headed: bool
) -> None:
    """Reject columns without a name or with the name of another.

    ``headed`` says that the names are from the first row of the file.
    """
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


def with_location(
    error: DataError, label: str, location: Callable[[int], str]
) -> DataError | None:
    """Add the location in a file to an error that names a row; None if it names none.

    Readers of tables count rows from 0 and do not know of lines.
    """
    if error.row is None:
        return None
    where = location(error.row)
    return DataError(
        f"{error} (Row {error.row} is {where} of {label}.)",
        row=error.row,
        column=error.column,
    )


def read_table(
    source: str | os.PathLike[str],
    *,
    missing: Sequence[str] = MISSING,
    text_columns: Collection[str] | Literal["all"] = (),
    number_columns: Collection[str] = (),
    ignore: Collection[str] = (),
    file_format: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    skip: int = 0,
    names: Sequence[str] | None = None,
    names_file: str | os.PathLike[str] | None = None,
    sheet: str | int | None = None,
    table: str | None = None,
    query: str | None = None,
    max_size: str | int | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    date_format: str | Mapping[str, str] | None = None,
    date_features: Mapping[str, Sequence[str] | str] | None = None,
    merge_case: bool = False,
) -> Any:
    """Read a file into a table that ``fit`` accepts.

    CSV, TSV, ARFF, C4.5's files, Parquet, Arrow, Excel, JSON lines, SPSS, SAS, Stata,
    SQLite and DuckDB; text also compressed with gzip or zstd. The format is recognised
    by the content, else by the name. Opening a file never runs code.

    Parameters
    ----------
    source : str or path
        The file; ``-`` is standard input.
    missing : sequence of str
        The cells that are missing values.
    text_columns : collection of str or "all"
        Columns to read as the text that is in the file.
    number_columns : collection of str
        Columns that must hold numbers.
    ignore : collection of str
        Columns to leave out.
    file_format : str or None
        The format, if it cannot be recognised: "csv", "tsv", "arff", "c4.5",
        "parquet", "arrow", "excel", "jsonl", "spss", "sas", "stata", "sqlite" or
        "duckdb".
    separator : str or None
        The separator of cells of CSV: a character, "tab" or "whitespace".
    encoding : str or None
        The encoding of text, such as "cp1252"; without it UTF-8, or what a byte order
        mark says.
    header : bool
        Whether the first row has the names of the columns; else they are x0, x1, ...
        A column without a name is called by its number, such as ``column_3``.
    skip : int
        How many lines, or rows of a sheet, are above the header.
    names : sequence of str or None
        The names of the columns of a file without a header.
    names_file : str, path or None
        A file with these names, one per line, or a C4.5 names file.
    sheet : str, int or None
        The sheet of a workbook, by name or by number from 1; without it the first.
    table, query : str or None
        The table of a database, or a query to it.
    max_size : int, str or None
        The most bytes from a pipe or a compressed file, as a number or as text such
        as ``"20GB"``; without it 8 GB.
    decimal, thousands : str or None
        The decimal mark (``"."`` or ``","``) and the mark between thousands (also
        ``" "`` and ``"'"``), where a column does not tell: 1,234 may be 1.234 or 1234.
    date_format : str, dict or None
        How dates are written, such as ``"DD/MM/YYYY"``, where a column does not tell;
        or a dict of such formats by column.
    date_features : dict or None
        What is derived from columns of dates: see :func:`~branchwise.date_features`.
    merge_case : bool
        Whether texts that differ only in case or whitespace around them become one, the
        most frequent of them.

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
    options = dict(locals())
    columns = ("missing", "text_columns", "number_columns", "ignore")
    wanted = {name: options.pop(name) for name in columns}
    file = TableFile(options.pop("source"), Reading(**options))
    read = file.read(**wanted)
    warn_numbers(file.numbers, file.identifiers)
    return read


def _path_of(source: object) -> str:
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise ParameterError(
            "source must be the path of a file, or '-' for standard input. Got "
            f"{type(source).__name__}; pass a table in memory to fit directly."
        )
    return path
