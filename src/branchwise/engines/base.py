"""The protocol of engines and data sources, and the registry of both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol, Self

from branchwise.engines.fit_plan import Plan, Task
from branchwise.errors import ParameterError, quoted
from branchwise.files.dataset import StreamedTable, is_dataset
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


class Place(Protocol):
    """Where rows lie, and who can count them there."""

    #: The engine that it is for.
    engine_name: ClassVar[str]
    #: What messages call it.
    label: str

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def learn(self, task: Task) -> Plan:
        """Look at all rows once."""

    def engine(self, plan: Plan) -> Engine:
        """Return who counts the rows by a plan."""

    def __enter__(self) -> Self:
        """Begin to use it."""

    def __exit__(self, *error: object) -> None:
        """Give back all that was taken: temporary files and tables, remote memory."""


def model_of(given: Any) -> Any:
    """Return a model as it is given, or that of a fitted estimator."""
    model = getattr(given, "model_", given)
    if not (hasattr(model, "schema") and hasattr(model, "tree")):
        raise ParameterError(
            "model must be what fit_tree or load returns, or an estimator that is "
            f"fitted. Got {type(given).__name__}."
        )
    return model
