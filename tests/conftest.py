"""The containers that a table may come in, and a fitted model or two."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

from selection import ALL_TESTS, examples
from sql_sources import postgresql  # noqa: F401  (a fixture, one server for all tests)

Table = Mapping[str, Sequence[Any]]
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MakeFrame = Callable[[Table], Any]


def pytest_configure(config: pytest.Config) -> None:
    """Let modules know whether all tests run, and let tests press Ctrl-C.

    A job in the background of a shell ignores Ctrl-C: tests of it would wait for ever.
    """
    if not config.getoption("markexpr"):
        os.environ[ALL_TESTS] = "1"  # as ``make test-all`` does
    else:
        # Programs in Java end before it pays to compile them well.
        os.environ.setdefault("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    # The same examples in every run, on any machine.
    settings.register_profile(
        "deterministic",
        max_examples=examples(100),
        derandomize=True,
        deadline=None,
        database=None,
    )
    settings.load_profile("deterministic")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over the tests: they stay till the end."""
    gc.collect()
    gc.freeze()


def _arrow(table: Table) -> pa.Table:
    return pa.table({name: pa.array(cells) for name, cells in table.items()})


def _arrow_chunked(table: Table) -> pa.Table:
    whole = _arrow(table)
    middle = whole.num_rows // 2
    return pa.concat_tables([whole.slice(0, middle), whole.slice(middle)])


def _pandas_objects(table: Table) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(list(cells), dtype=object) for name, cells in table.items()}
    )


def _pandas_text(kind: str) -> MakeFrame:
    def make(table: Table) -> pd.DataFrame:
        frame = _pandas_objects(table)
        for name in frame:
            if any(isinstance(cell, str) for cell in frame[name]):
                frame[name] = frame[name].astype(kind)
        return frame

    return make


def _structured(table: Table) -> np.ndarray:
    rows = [tuple(row) for row in zip(*table.values(), strict=True)]
    return np.array(rows, dtype=[(name, "O") for name in table])


def _rows(table: Table) -> list[dict[str, Any]]:
    names = list(table)
    cells = zip(*table.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in cells]


CONTAINERS: dict[str, MakeFrame] = {
    "dict of lists": lambda table: {name: list(v) for name, v in table.items()},
    "dict of tuples": lambda table: {name: tuple(v) for name, v in table.items()},
    "dict of arrays": lambda table: {
        name: np.array(list(v), dtype=object) for name, v in table.items()
    },
    "dict of pandas series": lambda table: dict(pd.DataFrame(table).items()),
    "dict of polars series": lambda table: {
        name: pl.Series(list(v)) for name, v in table.items()
    },
    "dict of arrow arrays": lambda table: {
        name: pa.array(v) for name, v in table.items()
    },
    "list of dicts": _rows,
    "structured array": _structured,
    "pandas": pd.DataFrame,
    "pandas objects": _pandas_objects,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas text in Python": _pandas_text("string[python]"),
    "pandas text in Arrow": _pandas_text("string[pyarrow]"),
    "pandas on Arrow": lambda table: _arrow(table).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "polars": lambda table: pl.DataFrame({n: list(v) for n, v in table.items()}),
    "arrow": _arrow,
    "arrow in chunks": _arrow_chunked,
    "arrow record batch": lambda table: pa.record_batch(
        {name: pa.array(cells) for name, cells in table.items()}
    ),
    "arrow stream": lambda table: _arrow_chunked(table).to_reader(),
}


@pytest.fixture(params=CONTAINERS.values(), ids=CONTAINERS.keys())
def frame(request: pytest.FixtureRequest) -> MakeFrame:
    """Turn a dict of columns into a table of one of the supported kinds."""
    make: MakeFrame = request.param
    return make
