"""The protocol of engines and data sources, and the registry of both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol, Self

from branchwise.data.arrow import is_dataset
from branchwise.engines.fit_plan import Plan, Task
from branchwise.errors import ParameterError, quoted
from branchwise.grow.protocol import Engine

#: The engines by name, with what each is for.
ENGINES = {
    "memory": "tables in this process",
    "chunked": "files that may be larger than memory",
    "sql": "tables and queries of databases",
    "dask": "Dask DataFrames",
    "spark": "Spark DataFrames",
}
_CLASSES = {
    "memory": "MemoryTable",
    "chunked": "ChunkedTable",
    "sql": "SqlTable",
    "dask": "DaskTable",
    "spark": "SparkTable",
}

#: The packages that engines need, which are imported only when they are used.
_NEEDED = {"dask": ("dask", "distributed"), "spark": ("pyspark",)}


def source_of(source: object, engine: str | None = None, named: bool = True) -> Source:
    """Return the data source of an object.

    Parameters
    ----------
    source : object
        A table, files, a frame of Dask or Spark, or a data source itself.
    engine : str or None
        One of ``ENGINES``; None is the engine of the source.
    named : bool
        Whether the target is the name of a column: only then text is a file.
    """
    known = engine_of(source)
    if engine not in (None, known, *ENGINES):
        raise ParameterError(
            f"engine must be None or one of {quoted(ENGINES, len(ENGINES))}. Got "
            f"{engine!r}."
        )
    if known == "chunked" and (engine == "memory" or (engine is None and not named)):
        return _in_memory(source, named)
    wanted = known if engine is None else engine
    if known != wanted:
        raise ParameterError(
            f"engine={wanted!r} is for {ENGINES[wanted]}, and the source is one for "
            f"engine={known!r}: {ENGINES[known]}. Got {type(source).__name__}."
        )
    opened: Any = source if is_source(source) else source_class(wanted)(source)
    # A table of a database is a data source once there is a connection.
    found: Source = opened.open() if hasattr(opened, "open") else opened
    return found


def _in_memory(files: object, named: bool) -> Source:
    """Return the data source of a file that is read into memory."""
    memory = import_module("branchwise.engines.memory")
    found: Source = memory.MemoryTable(memory.table_in_file(files) if named else files)
    return found


def is_source(source: object) -> bool:
    """Whether an object is a data source itself."""
    return hasattr(type(source), "engine_name")


def engine_of(source: object) -> str:
    """Return the engine of a source."""
    if is_source(source):
        name: str = type(source).engine_name  # type: ignore[attr-defined]
        return name
    module = type(source).__module__.partition(".")[0]
    if module in ("dask", "dask_expr"):
        return "dask"
    if module == "pyspark":
        return "spark"
    return "chunked" if is_files(source) else "memory"


def is_files(source: object) -> bool:
    """Whether a source is a file, several of them, or a :class:`StreamedTable`."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(map(is_files, source))
    streamed = getattr(type(source), "reads_files", False)
    return streamed or isinstance(source, (str, os.PathLike)) or is_dataset(source)


def source_class(engine: str) -> Any:
    """Return the class of the data sources of an engine; raise without its package."""
    absent = [name for name in _NEEDED.get(engine, ()) if find_spec(name) is None]
    if absent:
        raise ParameterError(
            f"engine={engine!r} needs the package {absent[0]!r}: pip install "
            f"'branchwise[{engine}]'."
        )
    return getattr(import_module(f"branchwise.engines.{engine}"), _CLASSES[engine])


class Source(Protocol):
    """A table that an engine can count, in memory or where it is."""

    #: The name of its engine.
    engine_name: ClassVar[str]
    #: Its name in messages.
    label: str

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def learn(self, task: Task) -> Plan:
        """Scan all rows once, and return the plan of counting them."""

    def engine(self, plan: Plan) -> Engine:
        """Return the engine that counts the rows by a plan."""

    def __enter__(self) -> Self:
        """Open the source."""

    def __exit__(self, *error: object) -> None:
        """Release temporary files and tables, and memory of workers."""


def model_of(given: Any) -> Any:
    """Return a model, or the model of a fitted estimator."""
    model = getattr(given, "model_", given)
    if not (hasattr(model, "schema") and hasattr(model, "tree")):
        raise ParameterError(
            "model must be what fit_tree or load returns, or an estimator that is "
            f"fitted. Got {type(given).__name__}."
        )
    return model
