"""Model files are the same to the byte, whoever holds the rows: 20 tables, all engines.

Every engine is given the same text, parted in its own way; ID3 and C4.5, which divides
cases and prunes by raising branches, on bundled tables and on generated ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import datasets, fit_tree
from branchwise.engines.chunked import ChunkedTable
from branchwise.recipe import C45, ID3
from selection import first_fast
from spark_sessions import local_spark
from sql_sources import Server, in_postgresql, no_server

BUNDLED = ("car", "house_votes", "lenses", "tennis", "toy", "voters", "votes")
GENERATED = tuple(range(20 - len(BUNDLED)))
RECIPES = {"id3": ID3, "c4.5": C45}

pytestmark = pytest.mark.xdist_group("engines_agree")


def table_of(name: str | int) -> tuple[pd.DataFrame, str]:
    """Return a table of text, and its target."""
    if isinstance(name, str):
        found = datasets.load(name)
        target = found.target or "class"
        table = pd.DataFrame(found.X)
        table[target] = found.y
        return table.astype(object).map(lambda c: None if c is None else str(c)), target
    rng = np.random.default_rng(name)
    n = int(rng.integers(50, 2000))
    columns: dict[str, Any] = {}
    for j in range(int(rng.integers(2, 9))):
        values = np.array([f"v {i}" for i in range(int(rng.integers(2, 12)))], object)
        cells = values[rng.integers(0, len(values), n)]
        cells[rng.random(n) < (0.08 if name % 2 else 0)] = None
        columns[f"Column {j}"] = cells
    rule = sum(pd.factorize(cells)[0] for cells in columns.values())
    noise = rng.random(n) < 0.1
    labels = np.where(noise, rng.integers(0, 3, n), rule % 3)
    columns["y"] = np.array(["a", "b", "c"], dtype=object)[labels]
    return pd.DataFrame(columns), "y"


Source = Callable[[pd.DataFrame, Path], Any]


@contextmanager
def chunked() -> Iterator[Source]:
    def source(table: pd.DataFrame, folder: Path) -> Any:
        cut = len(table) // 3
        table.iloc[:cut].to_parquet(folder / "1.parquet")
        table.iloc[cut:].to_parquet(folder / "2.parquet", row_group_size=100)
        return ChunkedTable(folder, most_rows=20)

    yield source


@contextmanager
def csv_files() -> Iterator[Source]:
    def source(table: pd.DataFrame, folder: Path) -> Any:
        table.to_csv(folder / "table.csv", index=False)
        return str(folder / "table.csv")

    yield source


@contextmanager
def in_duckdb() -> Iterator[Source]:
    duckdb = pytest.importorskip("duckdb")
    from branchwise.engines.sql import SqlTable

    with ExitStack() as opened:

        def source(table: pd.DataFrame, folder: Path) -> Any:
            connection = opened.enter_context(duckdb.connect())
            connection.register("rows", table)
            connection.execute("CREATE TABLE stored AS SELECT * FROM rows")
            return SqlTable(connection, "stored")

        yield source


@contextmanager
def in_sqlite() -> Iterator[Source]:
    from branchwise.engines.sql import SqlTable

    def source(table: pd.DataFrame, folder: Path) -> Any:
        path = folder / "rows.sqlite"
        connection = sqlite3.connect(path)
        table.to_sql("stored", connection, index=False)
        connection.close()
        return SqlTable(path, "stored")

    yield source


@contextmanager
def on_postgresql() -> Iterator[Source]:
    from branchwise.engines.sql import SqlTable

    reason = no_server()
    if reason is not None:
        pytest.skip(reason)
    server = Server()
    try:

        def source(table: pd.DataFrame, folder: Path) -> Any:
            cells = table.astype(object).where(table.notna(), None)
            in_postgresql(cells.to_dict("list"), server.address, "stored")
            return SqlTable(server.address, "stored")

        yield source
    finally:
        server.stop()


@contextmanager
def on_dask(workers: int = 2) -> Iterator[Source]:
    dask = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):

        def source(table: pd.DataFrame, folder: Path) -> Any:
            return dask.from_pandas(table, npartitions=3)

        yield source


@contextmanager
def on_spark() -> Iterator[Source]:
    with local_spark() as session:

        def source(table: pd.DataFrame, folder: Path) -> Any:
            table.to_parquet(folder / "rows.parquet")
            return session.read.parquet(str(folder / "rows.parquet")).repartition(3)

        yield source


ENGINES = {
    "chunked": chunked,
    "csv": csv_files,
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "postgresql": on_postgresql,
    "dask": on_dask,
    "dask, one worker": partial(on_dask, 1),
    "spark": on_spark,
}
QUICK = ("chunked", "csv", "duckdb", "sqlite")


@pytest.fixture(scope="module")
def sources() -> Iterator[Callable[[str], Source]]:
    """Return what makes sources, each engine started once."""
    with ExitStack() as opened:
        started: dict[str, Source] = {}

        def source_of(engine: str) -> Source:
            if engine not in started:
                started[engine] = opened.enter_context(ENGINES[engine]())
            return started[engine]

        yield source_of


@pytest.mark.parametrize("name", first_fast(("votes", 1, *BUNDLED, *GENERATED), 2))
@pytest.mark.parametrize("engine", QUICK)
def test_model_bytes_are_those_of_memory(engine, name, sources, tmp_path):
    assert_same(engine, name, sources, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUNDLED, *GENERATED])
@pytest.mark.parametrize("engine", ["postgresql", "dask", "dask, one worker", "spark"])
def test_model_bytes_of_servers_are_those_of_memory(engine, name, sources, tmp_path):
    assert_same(engine, name, sources, tmp_path)


def assert_same(engine: str, name: Any, sources: Any, folder: Path) -> None:
    table, target = table_of(name)
    source = sources(engine)(table, folder)
    for recipe in RECIPES.values():
        expected = fit_tree(table, target, recipe).to_bytes()
        assert fit_tree(source, target, recipe).to_bytes() == expected
