"""Files of a table: paths, patterns, folders and datasets."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from branchwise.data.arrow import is_dataset, pa
from branchwise.errors import DataError, quoted

_PARTITION = re.compile(r"([^=]+)=[^=]*")


def is_many(path: str) -> bool:
    """Whether a path means several files: a folder, or a pattern."""
    return Path(path).is_dir() or (glob.has_magic(path) and not Path(path).exists())


def files_of(source: object) -> tuple[str, ...]:
    """Return the files of a path, a folder, a pattern or a list of them.

    A pyarrow dataset stands for its files.
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
            f"{address!r} is not a file. Pass a table of a database as "
            "branchwise.engines.sql.SqlTable(address, table)."
        )
    return tuple(found)


def _files_in(folder: str) -> list[str]:
    """Return the files of a folder and its folders, which must not be partitions."""
    inside = sorted(p for p in Path(folder).rglob("*") if _holds_rows(p, folder))
    for path in inside:
        for name in path.relative_to(folder).parts[:-1]:
            found = _PARTITION.fullmatch(name)
            if found is not None:
                raise _told_by_folders([found[1]], folder)
    return [str(path) for path in inside]


def _holds_rows(path: Path, folder: str) -> bool:
    # Spark and Hive write markers such as _SUCCESS beside the rows.
    names = path.relative_to(folder).parts
    return path.is_file() and not any(name.startswith(("_", ".")) for name in names)


def _told_by_folders(names: Sequence[str], where: str) -> DataError:
    columns = "column {} is" if len(names) == 1 else "columns {} are"
    return DataError(
        f"In {where} the {columns.format(quoted(names))} given by the names of "
        "folders, and not in the files. Write the rows to files with all columns, or "
        "give the files themselves (a pattern such as 'data/*/*.parquet') to do "
        "without."
    )


def _files_of_dataset(dataset: Any) -> tuple[str, ...]:
    """Return the files of a dataset without filters or partitions."""
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
    """Reject a dataset whose columns are not those of its files."""
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
