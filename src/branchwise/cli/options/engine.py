"""Options of engines, and the data sources that they describe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from branchwise.cli.options import SHARED, check_idle, listed_names, read_na_values
from branchwise.cli.support import check_outputs
from branchwise.cli.support.training import Roles
from branchwise.data.columns import Coded
from branchwise.data.conventions.number_format import detect_texts
from branchwise.data.table_schema import check_names
from branchwise.engines.base import source_class
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.dataset import StreamedTable, open_chunk_file
from branchwise.files.options import Reading
from branchwise.files.table_paths import files_of, is_many

_ENGINES = ("memory", "chunked", "sql", "dask", "spark")


def engine_options(
    engine: str | None = SHARED.option("--engine", choices=_ENGINES),
    max_exact: int | None = SHARED.option("--max-exact"),
    no_cache: bool = SHARED.flag("--no-cache"),
    temporary_folder: str | None = SHARED.option("--temporary-folder"),
    temporary_tables: bool = SHARED.flag("--temporary-tables"),
    timeout: float | None = SHARED.option("--timeout"),
    scheduler: str | None = SHARED.option("--scheduler"),
    master: str | None = SHARED.option("--master"),
) -> dict[str, Any]:
    """Return the options of engines, by name."""
    return dict(locals())


#: Options that belong to one engine.
_ONLY = {
    "no_cache": "chunked",
    "temporary_folder": "chunked",
    "temporary_tables": "sql",
    "timeout": "sql",
    "scheduler": "dask",
    "master": "spark",
}

Say = Callable[[str], None]


def engine_for(paths: Sequence[str], given: str | None) -> str | None:
    """Return the engine for a table; None is memory."""
    several = len(paths) > 1 or is_many(paths[0])
    if given == "memory" and several:
        one = len(paths) == 1
        found = f"{paths[0]!r}, which may be several" if one else f"{len(paths)} files"
        raise ParameterError(
            f"--engine memory reads one file. Got {found}. Leave out --engine memory, "
            "then they are read in chunks."
        )
    if given is not None:
        return None if given == "memory" else given
    if any("://" in path for path in paths):
        return "sql"
    return "chunked" if several else None


def check_no_address(subcommand: str, paths: Sequence[str]) -> None:
    """Reject the address of a database where files are read."""
    for path in paths:
        if "://" in path:
            raise ParameterError(
                f"{subcommand} reads files. Got the address {path!r}. Give a SQLite or "
                "DuckDB file and --table, or a file of the rows; in Python "
                "branchwise.predict_rows takes a SqlTable, and the tree can be "
                "exported to SQL (branchwise export MODEL --to sql)."
            )


def check_remote_options(options: Mapping[str, Any], engine: str | None = None) -> None:
    """Reject options that have no effect with the engine."""
    for name, owner in _ONLY.items():
        if owner != engine:
            written = f"--{name.replace('_', '-')}"
            check_idle({written: options[name]}, f"without --engine {owner}.")
    if engine is None:
        why = "on rows in memory. Choose another --engine, or use --max-bins."
        check_idle({"--max-exact": options["max_exact"]}, why)


@dataclass(frozen=True)
class RemoteTable:
    """A table that an engine reads: its columns, and a function that makes a source.

    The source is made once the roles of the columns are known.
    """

    engine: str
    label: str
    names: tuple[str, ...]
    source: Callable[[Roles], Any]
    unnamed: bool = False

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for a name that is not a column; "" are those without one."""
        known = (*self.names, "") if self.unnamed else self.names
        check_names(self.label, known, names)

    def categorical_features(self, roles: Roles) -> object:
        """Return the columns whose numbers are names, where they are not text yet."""
        as_text = self.engine in ("chunked", "sql")
        special = {roles.target, roles.weight}
        names = [name for name in roles.text if name not in special]
        return names if names and not as_text else "from_dtype"


def remote_source(
    paths: Sequence[str], options: Mapping[str, Any], say: Say
) -> RemoteTable:
    """Open the table of an engine, and read its column names."""
    engine = engine_for(paths, options["engine"]) or "chunked"
    check_remote_options(options, engine)
    if engine != "chunked":
        check_idle(
            {"--numeric": options["numeric"]},
            f"with --engine {engine}, where columns have types. Leave it out, or store "
            "the column as numbers.",
        )
    reading: Reading = options["reading"]
    if engine != "chunked":
        check_idle(
            {"--merge-case": reading.merge_case},
            f"with --engine {engine}: it is for files that are read here. Leave it "
            "out, or write the values in one way.",
        )
        check_idle(
            {
                "--decimal": reading.decimal,
                "--thousands": reading.thousands,
                "--date-format": reading.date_format,
            },
            f"with --engine {engine}, where columns have types. Leave it out, or store "
            "the column as numbers or dates.",
        )
    na_values = read_na_values(options["missing"])
    if engine == "sql":
        return _in_database(paths, reading, na_values, options)
    table = StreamedTable(files_of(list(paths)), reading, na_values)
    check_outputs({"-o": options["output"]}, *table.paths)  # those of patterns, too
    make = source_class(engine)
    if engine != "chunked":
        # Read as a frame of Dask or Spark, where the rows will be counted.
        table.check_files()
        _check_written_numbers(table, engine, options)
        address = options["scheduler" if engine == "dask" else "master"]
        frame = make.frame_of(table.paths, table.names, table.missing, address)
        return RemoteTable(engine, table.label, table.names, lambda _: make(frame))

    def source(roles: Roles) -> Any:
        return make(
            table.with_roles(roles.text, roles.numbers, roles.ignored),
            cache=not options["no_cache"],
            temporary_folder=options["temporary_folder"],
            say=say,
        )

    # Spellings are merged once all rows have been scanned.
    unmerged = replace(table, reading=replace(reading, merge_case=False))
    unnamed = bool(open_chunk_file(table.paths[0], unmerged).unnamed)
    return RemoteTable(engine, table.label, unmerged.names, source, unnamed)


def _check_written_numbers(
    table: StreamedTable, engine: str, options: Mapping[str, Any]
) -> None:
    """Reject text that is read as numbers in memory, judged by the first rows."""
    if not table.is_delimited:
        return
    said = [*(options["categorical"] or ()), *(options["ignore"] or ())]
    fixed = {*listed_names(said, table.names), options["target"]}
    with closing(table.chunks()) as chunks:
        frame = next(chunks).frame
    for index, name in enumerate(frame.names):
        raw = None if name in fixed or "all" in said else frame.column(index)
        if isinstance(raw, Coded) and detect_texts(list(map(str, raw.values))).formats:
            raise DataError(
                f"Column {name!r} of {table.label} has numbers that are not written "
                f"plainly, such as {raw.values[0]!r}, and --engine {engine} would read "
                "text. Use --engine chunked or memory, which read numbers; or take it "
                f"as text with --categorical {shlex.quote(name)}."
            )


def _in_database(
    paths: Sequence[str],
    reading: Reading,
    na_values: Sequence[str],
    options: Mapping[str, Any],
) -> RemoteTable:
    if len(paths) > 1:
        raise ParameterError(
            f"--engine sql counts the rows of one database. Got {quoted(paths)}. Join "
            "tables of one database by --query."
        )
    make = source_class("sql")
    # The engine has a limit of its own, which is not repeated here.
    limit = {} if options["timeout"] is None else {"timeout": options["timeout"]}

    def opened(text: Sequence[str] = ()) -> Any:
        return make(
            paths[0],
            reading.table,
            reading.query,
            temporary_tables=options["temporary_tables"],
            missing=na_values,
            text_columns=text,
            **limit,
        )

    table = opened()
    with table.open() as rows:
        names = rows.names
    return RemoteTable("sql", table.label, names, lambda roles: opened(roles.text))
