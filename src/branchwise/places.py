"""Which engine is for which source: a file, a database, a frame of Dask or Spark.

Nothing is imported that the source has not imported itself.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from branchwise.elsewhere import Place
from branchwise.errors import ParameterError, quoted
from branchwise.table.streamed import StreamedTable, is_dataset

#: The engines by name, with what each is for.
ENGINES = {
    "memory": "tables in this process",
    "chunked": "files that may be larger than memory",
    "sql": "tables and queries of databases",
    "dask": "Dask DataFrames",
    "spark": "Spark DataFrames",
}
_CLASSES = {
    "chunked": "ChunkedTable",
    "sql": "SqlTable",
    "dask": "DaskTable",
    "spark": "SparkTable",
}

#: The packages that engines need, which are loaded only when they work.
_NEEDED = {"dask": ("dask", "distributed"), "spark": ("pyspark",)}


def place_of(source: object, engine: str | None = None) -> Place | None:
    """Return where the rows of a source lie; None is in memory.

    Parameters
    ----------
    source : object
        A table, files, a frame of Dask or Spark, or a place itself.
    engine : str or None
        One of ``ENGINES``; None is the one that suits the source.
    """
    if engine is not None and engine not in ENGINES:
        raise ParameterError(
            f"engine must be None or one of {quoted(ENGINES, len(ENGINES))}. Got "
            f"{engine!r}."
        )
    known = engine_of(source)
    wanted = known if engine is None else engine
    if wanted == "memory" and is_files(source):
        return None
    if known != wanted:
        raise ParameterError(
            f"engine={wanted!r} is for {ENGINES[wanted]}, and the source is one for "
            f"engine={known!r}: {ENGINES[known]}. Got {type(source).__name__}."
        )
    if wanted == "memory":
        return None
    place: Any = source if is_place(source) else place_class(wanted)(source)
    # A table of a database is a place once there is a connection.
    found: Place = place.open() if hasattr(place, "open") else place
    return found


def is_place(source: object) -> bool:
    """Whether a source is a place itself."""
    return hasattr(type(source), "engine_name")


def engine_of(source: object) -> str:
    """Return the engine that suits a source."""
    if is_place(source):
        name: str = type(source).engine_name  # type: ignore[attr-defined]
        return name
    module = type(source).__module__.partition(".")[0]
    if module in ("dask", "dask_expr"):
        return "dask"
    if module == "pyspark":
        return "spark"
    return "chunked" if is_files(source) else "memory"


def is_files(source: object) -> bool:
    """Whether a source is a file, several of them, or how to read them."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(map(is_files, source))
    return isinstance(source, (str, os.PathLike, StreamedTable)) or is_dataset(source)


def place_class(engine: str) -> Any:
    """Return the class of the places of an engine, whose package may be absent."""
    absent = [name for name in _NEEDED.get(engine, ()) if find_spec(name) is None]
    if absent:
        raise ParameterError(
            f"engine={engine!r} needs the package {absent[0]!r}: pip install "
            f"'branchwise[{engine}]'."
        )
    return getattr(import_module(f"branchwise.engines.{engine}"), _CLASSES[engine])
