"""A table in files that may be larger than memory: read part by part, many times.

Parts hold what reading the whole would give: words as they are in the file, numbers
where all cells are numbers, marks of missing values.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from branchwise.errors import DataError, counted, quoted
from branchwise.table.arrow import give_back
from branchwise.table.part_files import PartFile, Parts, open_part_file
from branchwise.table.read import MISSING, check_names
from branchwise.table.reading import Reading
from branchwise.table.schema import Column, columns_by_type

#: Cells of a part, about: so many rows times columns are in memory at once.
PART_CELLS = 2_000_000
_FEWEST_ROWS = 4096
_PARTITION = re.compile(r"([^=]+)=[^=]*")


@dataclass(frozen=True)
class StreamedTable:
    """Files with the rows of one table, read part by part.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    reading : Reading
        How to read them, where they do not tell themselves.
    missing : sequence of str
        The cells that are missing values.
    text_columns, number_columns : collection of str
        Columns that are wanted as text, and those that must hold numbers.
    ignore : collection of str
        Columns to leave out.
    part_rows : int or None
        The most rows of a part; by default as many as fit ``PART_CELLS``.
    boolean_columns : collection of str
        Columns that must hold "true" and "false".
    only : collection of str or None
        If given, the columns to read.
    """

    paths: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    missing: Sequence[str] = MISSING
    text_columns: Collection[str] = ()
    number_columns: Collection[str] = ()
    ignore: Collection[str] = ()
    part_rows: int | None = None
    boolean_columns: Collection[str] = ()
    only: Collection[str] | None = None

    @classmethod
    def of(cls, source: object) -> StreamedTable:
        """Return the table that files mean, however they are given."""
        return source if isinstance(source, cls) else cls(files_of(source))

    @property
    def label(self) -> str:
        """What messages call the table."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {counted(more, 'more file')}" if more else "")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the first file."""
        return open_part_file(self.paths[0], self).names

    def parts(self, keep: bool = False) -> Parts:
        """Read the table once more, part by part; there is always a first one.

        With ``keep`` parts also have all columns as they are in the file.
        """
        n_rows = 0
        names = self.names
        wanted, kept = self._wanted(names), names if keep else ()
        for file in self._opened(names):
            file.check({*wanted, *kept})
            with closing(file.parts(wanted, kept)) as parts:
                for part in parts:
                    n_rows += part.frame.n_rows
                    yield part
                    give_back()
        if not n_rows:
            yield file.nothing(wanted, kept)

    def check_files(self) -> None:
        """Refuse files that are not there, or that do not have the same columns."""
        for _ in self._opened(self.names):
            pass

    def _opened(self, names: Sequence[str]) -> Iterator[PartFile]:
        for path in self.paths:
            file = open_part_file(path, self)
            if set(file.names) != set(names) or len(file.names) != len(names):
                raise DataError(
                    f"All files of a table must have the same columns. Got "
                    f"{quoted(names, 20)} in {self.paths[0]} and "
                    f"{quoted(file.names, 20)} in {path}."
                )
            yield file

    def _wanted(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are read; all that are named must be there."""
        said = (*self.text_columns, *self.number_columns, *self.boolean_columns)
        check_names(self.label, names, (*said, *self.ignore, *(self.only or ())))
        left = [name for name in names if name not in self.ignore]
        return left if self.only is None else [n for n in left if n in self.only]

    def with_roles(
        self, text: Collection[str], numbers: Collection[str], ignore: Collection[str]
    ) -> StreamedTable:
        """Return the table with columns as text, as numbers, and left out."""
        return replace(self, text_columns=text, number_columns=numbers, ignore=ignore)

    def for_columns(self, columns: Mapping[str, Column]) -> StreamedTable:
        """Return the table with some columns read as they were learnt."""
        types = columns_by_type(columns)
        named = {name for name in columns if name not in self.ignore}
        return replace(
            self,
            text_columns={*self.text_columns, *named.intersection(types["text"])},
            number_columns={*self.number_columns, *named.intersection(types["number"])},
            boolean_columns=named.intersection(types["boolean"]),
        )

    def stamps(self) -> dict[str, tuple[int, int, int]]:
        """Return what changes with the files: which they are, their sizes and times."""
        found = {}
        for path in self.paths:
            with suppress(OSError):  # who opens it says what is wrong
                status = Path(path).stat()
                found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return found

    def rows_of_part(self, n_columns: int) -> int:
        """Return how many rows a part has."""
        if self.part_rows is not None:
            return self.part_rows
        return max(_FEWEST_ROWS, PART_CELLS // max(n_columns, 1))


def is_many(path: str) -> bool:
    """Whether a path means several files: a folder, or a pattern."""
    return Path(path).is_dir() or (glob.has_magic(path) and not Path(path).exists())


def files_of(source: object) -> tuple[str, ...]:
    """Return the files that a path, a folder, a pattern or a list of them means.

    A dataset of pyarrow means its files, too.
    """
    if is_dataset(source):
        return _files_of_dataset(source)
    given = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(entry, (str, os.PathLike)) for entry in given
    ):
        raise DataError(
            "A table in files must be given as a path, a pattern such as 'data/*.csv', "
            f"a folder or a list of paths. Got {type(source).__name__}."
        )
    found: list[str] = []
    for entry in given:
        path = os.fspath(entry)
        if Path(path).is_dir():
            found.extend(_files_in(path))
        elif is_many(path):
            found.extend(sorted(glob.glob(path, recursive=True)))  # noqa: PTH207
        else:
            found.append(path)
    if not found:
        raise DataError(f"There is no file {quoted(map(str, given))}. Check the path.")
    address = next((path for path in found if "://" in path), None)
    if address is not None:
        raise DataError(
            f"{address!r} is no file. Rows of a database are told by SqlTable(address, "
            "table), of branchwise.engines.sql; on the command line by --table."
        )
    return tuple(found)


def _files_in(folder: str) -> list[str]:
    """Return the files of a folder and its folders, which must not tell of columns."""
    inside = sorted(p for p in Path(folder).rglob("*") if _holds_rows(p, folder))
    for path in inside:
        for part in path.relative_to(folder).parts[:-1]:
            found = _PARTITION.fullmatch(part)
            if found is not None:
                raise _told_by_folders([found[1]], folder)
    return [str(path) for path in inside]


def _holds_rows(path: Path, folder: str) -> bool:
    # Folders that Spark and Hive write have marks such as _SUCCESS beside the rows.
    parts = path.relative_to(folder).parts
    return path.is_file() and not any(part.startswith(("_", ".")) for part in parts)


def _told_by_folders(names: Sequence[str], where: str) -> DataError:
    columns = "column {} is" if len(names) == 1 else "columns {} are"
    return DataError(
        f"In {where} the {columns.format(quoted(names))} told by the names of folders, "
        "and not in the files. Write the rows to files that have all columns, or "
        "give the files themselves (a pattern such as 'data/*/*.parquet') to do "
        "without."
    )


def is_dataset(source: object) -> bool:
    """Whether a source is a dataset of pyarrow."""
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(source).__mro__]
    return "pyarrow._dataset.Dataset" in kinds


def _files_of_dataset(dataset: Any) -> tuple[str, ...]:
    """Return the files of a dataset that is no more than its files."""
    import pyarrow as pa  # noqa: PLC0415  (the user has loaded it)

    files = getattr(dataset, "files", None)
    if files is None:
        raise DataError(
            f"A dataset must be one of files. Got {type(dataset).__name__}; pass the "
            "rows themselves: dataset.to_table()."
        )
    if type(dataset.filesystem) is not pa.fs.LocalFileSystem:
        raise DataError(
            "A dataset must have its files on this machine. Got "
            f"{type(dataset.filesystem).__name__}; copy the files, or pass the rows "
            "themselves: dataset.to_table()."
        )
    if getattr(dataset, "_scan_options", None):
        raise DataError(
            "A dataset with a filter has other rows than its files. Pass the dataset "
            "without the filter, or the rows themselves: dataset.to_table()."
        )
    if files:
        _check_columns(dataset)
    return tuple(files) or files_of([])


def _check_columns(dataset: Any) -> None:
    """Refuse a dataset whose columns are not those of its files."""
    names = dataset.schema.names
    own = next(dataset.get_fragments()).physical_schema.names
    absent = [name for name in names if name not in own]
    if absent:
        raise _told_by_folders(absent, "the dataset")
    left_out = [name for name in own if name not in names]
    if left_out:
        raise DataError(
            f"The schema of the dataset leaves out {quoted(left_out)}, which its files "
            "have. Make the dataset without a schema, and leave columns out with "
            "ignore."
        )
