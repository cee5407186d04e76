"""The options that say where rows are counted, and the sources that they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from branchwise.cli.options.shared import missing_marks
from branchwise.cli.support.streams import keep_inputs
from branchwise.cli.support.training import Roles
from branchwise.engines.base import place_class
from branchwise.errors import ParameterError, quoted
from branchwise.files.dataset import StreamedTable, files_of, is_many
from branchwise.files.options import Reading
from branchwise.files.read_table import check_names

_PANEL = "Rows that stay where they are"


class EngineName(StrEnum):
    """Who holds the rows and adds up the counts."""

    MEMORY = "memory"
    CHUNKED = "chunked"
    SQL = "sql"
    DASK = "dask"
    SPARK = "spark"


def _option(flag: str, metavar: str | None, text: str) -> Any:
    return typer.Option(
        flag, metavar=metavar, help=text, show_default=False, rich_help_panel=_PANEL
    )


EngineChoice = Annotated[
    EngineName | None,
    _option(
        "--engine",
        None,
        "Who counts the rows: this process with all of them in memory, or in parts of "
        "files; a database; Dask; Spark. The tree is the same. By default chunked for "
        "patterns and folders, sql for addresses, else memory.",
    ),
]
MaxExact = Annotated[
    int | None,
    _option(
        "--max-exact",
        "NUMBER",
        "Distinct numbers of a column that are kept apart; 10,000 unless given. With "
        "more, a column is cut between bins.",
    ),
]
NoCache = Annotated[
    bool,
    _option("--no-cache", None, "chunked: read the files again at every level."),
]
TemporaryFolder = Annotated[
    str | None,
    _option("--temporary-folder", "FOLDER", "chunked: where encoded rows are kept."),
]
TemporaryTables = Annotated[
    bool,
    _option(
        "--temporary-tables",
        None,
        "sql: allow temporary tables, which deep trees are faster with.",
    ),
]
Timeout = Annotated[
    float | None,
    _option(
        "--timeout",
        "SECONDS",
        "sql: seconds that the database may take for a query without giving a row; "
        "3600 unless given, inf for no limit.",
    ),
]
Scheduler = Annotated[
    str | None,
    _option("--scheduler", "ADDRESS", "dask: the scheduler, such as tcp://host:8786."),
]
Master = Annotated[
    str | None,
    _option("--master", "URL", "spark: the master, such as local[2]."),
]

#: Options that belong to one engine, and how they are written.
_ONLY = {
    "no_cache": ("--no-cache", EngineName.CHUNKED),
    "temporary_folder": ("--temporary-folder", EngineName.CHUNKED),
    "temporary_tables": ("--temporary-tables", EngineName.SQL),
    "timeout": ("--timeout", EngineName.SQL),
    "scheduler": ("--scheduler", EngineName.DASK),
    "master": ("--master", EngineName.SPARK),
}

#: All of these, for verbs whose rows are in memory.
ENGINE_OPTIONS = ("engine", "max_exact", *_ONLY)

Say = Callable[[str], None]


def engine_for(paths: Sequence[str], given: EngineName | None) -> EngineName | None:
    """Return the engine that a table is for; None is memory."""
    several = len(paths) > 1 or is_many(paths[0])
    if given is EngineName.MEMORY and several:
        one = len(paths) == 1
        found = f"{paths[0]!r}, which may be several" if one else f"{len(paths)} files"
        raise ParameterError(
            f"--engine memory reads one file. Got {found}. Leave out --engine memory, "
            "then they are read in parts."
        )
    if given is not None:
        return None if given is EngineName.MEMORY else given
    if any("://" in path for path in paths):
        return EngineName.SQL
    return EngineName.CHUNKED if several else None


def refuse_far_options(
    options: Mapping[str, Any], engine: EngineName | None = None
) -> None:
    """Refuse options that have no effect with the engine."""
    for name, (flag, owner) in _ONLY.items():
        if options[name] not in (None, False) and owner is not engine:
            raise ParameterError(f"{flag} has no effect without --engine {owner}.")
    if engine is None and options["max_exact"] is not None:
        raise ParameterError(
            "--max-exact has no effect on rows in memory. Choose another --engine, or "
            "use --max-bins."
        )


@dataclass(frozen=True)
class FarTable:
    """A table elsewhere: its columns, and what makes a source of it.

    The source can be made once it is known what the columns are for.
    """

    engine: EngineName
    label: str
    names: tuple[str, ...]
    source: Callable[[Roles], Any]

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for a name that is not a column."""
        check_names(self.label, self.names, names)

    def categorical_features(self, roles: Roles) -> object:
        """Return the columns whose numbers are names, where they are not text yet."""
        as_text = self.engine in (EngineName.CHUNKED, EngineName.SQL)
        special = {roles.target, roles.weight}
        names = [name for name in roles.text if name not in special]
        return names if names and not as_text else "from_dtype"


def far_source(paths: Sequence[str], options: Mapping[str, Any], say: Say) -> FarTable:
    """Open a table elsewhere, as far as its column names."""
    engine = engine_for(paths, options["engine"]) or EngineName.CHUNKED
    refuse_far_options(options, engine)
    if options["numeric"] and engine is not EngineName.CHUNKED:
        raise ParameterError(
            f"--numeric has no effect with --engine {engine}, where columns have "
            "types. Leave it out, or store the column as numbers."
        )
    reading: Reading = options["reading"]
    marks = missing_marks(options["missing"])
    if engine is EngineName.SQL:
        return _in_database(paths, reading, marks, options)
    table = StreamedTable(files_of(list(paths)), reading, marks)
    keep_inputs({"-o": options["output"]}, *table.paths)  # those of patterns, too
    if engine is EngineName.CHUNKED:
        return _in_files(table, options, say)
    return _in_frame(engine, table, options)


def _in_files(table: StreamedTable, options: Mapping[str, Any], say: Say) -> FarTable:
    make = place_class("chunked")

    def source(roles: Roles) -> Any:
        return make(
            table.with_roles(roles.text, roles.numbers, roles.ignored),
            cache=not options["no_cache"],
            temporary_folder=options["temporary_folder"],
            say=say,
        )

    return FarTable(EngineName.CHUNKED, table.label, table.names, source)


def _in_database(
    paths: Sequence[str],
    reading: Reading,
    marks: Sequence[str],
    options: Mapping[str, Any],
) -> FarTable:
    if len(paths) > 1:
        raise ParameterError(
            f"--engine sql counts the rows of one database. Got {quoted(paths)}. Join "
            "tables of one database by --query."
        )
    make = place_class("sql")
    # The engine has a limit of its own, which is not repeated here.
    limit = {} if options["timeout"] is None else {"timeout": options["timeout"]}

    def opened(text: Sequence[str] = ()) -> Any:
        return make(
            paths[0],
            reading.table,
            reading.query,
            temporary_tables=options["temporary_tables"],
            missing=marks,
            text_columns=text,
            **limit,
        )

    table = opened()
    with table.open() as rows:
        names = rows.names
    return FarTable(
        EngineName.SQL, table.label, names, lambda roles: opened(roles.text)
    )


def _in_frame(
    engine: EngineName, table: StreamedTable, options: Mapping[str, Any]
) -> FarTable:
    """Read files as a frame of Dask or Spark, where they will be counted."""
    make = place_class(str(engine))
    table.check_files()
    address = options["scheduler" if engine is EngineName.DASK else "master"]
    frame = make.frame_of(table.paths, table.names, table.missing, address)
    return FarTable(engine, table.label, table.names, lambda _: make(frame))
