"""Trees from a Spark DataFrame: ours against Spark's own DecisionTreeClassifier.

Both read the same Parquet file of strings in the same session, on the same cores;
Spark's own tree needs its strings indexed first. Its time from rows that are already
indexed, assembled and cached is in the table, too. Processor seconds are those of all
processes, Java's and the workers', so that other work on the machine does not count.
What the driver receives is shown for every piece of work.

    python benchmarks/spark.py [--rows 1000000 10000000] [--cores 2] [--turns 1]

Needs PySpark and Java 17 or later: pip install 'branchwise[spark]'.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from branchwise import fit_tree
from branchwise.engines.spark import cluster as spark_session
from branchwise.recipe import CART, ID3
from generate import planted

DEPTH = 8


def write_table(path: Path, rows: int) -> None:
    """Write the planted table as strings."""
    table = planted(rows, 20)
    columns = {
        f"c{at}": _texts(table.codes[:, at], "value {:02d}", size)
        for at, size in enumerate(table.cardinality)
    }
    labels = _texts(table.y.astype(np.int8), "class {}", int(table.y.max()) + 1)
    pq.write_table(pa.table({**columns, "y": labels}), path, row_group_size=1 << 20)


def _texts(codes: np.ndarray, form: str, n_values: int) -> pa.Array:
    values = pa.array([form.format(value) for value in range(n_values)])
    return pa.DictionaryArray.from_arrays(pa.array(codes), values).cast(pa.string())


def open_session(cores: int, memory: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def indexed(frame: Any) -> Any:
    """Return the rows as Spark's own trees take them."""
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    names = [name for name in frame.columns if name != "y"]
    codes = [f"{name} code" for name in names]
    indexer = StringIndexer(inputCols=[*names, "y"], outputCols=[*codes, "label"])
    rows = indexer.fit(frame).transform(frame)
    assembler = VectorAssembler(inputCols=codes, outputCol="features")
    return assembler.transform(rows).select("features", "label")


def own_tree(rows: Any) -> int:
    from pyspark.ml.classification import DecisionTreeClassifier

    tree = DecisionTreeClassifier(maxDepth=DEPTH, impurity="entropy").fit(rows)
    return int(tree.numNodes)


class Received:
    """Counts what reaches the driver, work by work."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._collected = spark_session.Session.collected

    def __enter__(self) -> Self:
        def counting(session: Any, frame: Any) -> list[Any]:
            rows = self._collected(session, frame)
            self.sizes.append(sum(len(row.data) for row in rows if "data" in row))
            return rows

        spark_session.Session.collected = counting  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        spark_session.Session.collected = self._collected  # type: ignore[method-assign]


def processor_seconds() -> float:
    """Return what this process and all below it have used, those that ended too."""
    used, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while grown := {pid for pid in parents if parents[pid] in family} - family:
        family |= grown
    return sum(used[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def timed(name: str, action: Callable[[], int], turns: int) -> None:
    best = (float("inf"), float("inf"))
    for _ in range(turns):
        start, used = time.perf_counter(), processor_seconds()
        nodes = action()
        taken = processor_seconds() - used, time.perf_counter() - start
        best = min(best, taken)
    print(f"| {name} | {best[0]:.1f} s | {best[1]:.1f} s | {nodes:,} |", flush=True)


def compare(session: Any, path: Path, rows: int, turns: int) -> None:
    frame = session.read.parquet(str(path))
    print(f"\n{rows:,} rows, 20 columns of strings, depth {DEPTH}\n")
    print("| | processor | time | nodes |\n|---|---:|---:|---:|")
    for name, recipe in (
        ("ID3", ID3),
        ("CART, entropy", replace(CART, criterion="gain")),
    ):
        recipe = replace(recipe, max_depth=DEPTH)
        fit = lambda recipe=recipe: len(fit_tree(frame, "y", recipe).tree)  # noqa: E731
        timed(f"branchwise, {name}", fit, turns)
    timed("Spark's own: index, assemble, fit", lambda: own_tree(indexed(frame)), turns)
    cached = indexed(frame).cache()
    cached.count()
    timed("Spark's own: fit alone, rows cached", lambda: own_tree(cached), turns)
    cached.unpersist()
    with Received() as received:
        fit_tree(frame, "y", replace(CART, max_depth=DEPTH))
    shown = ", ".join(f"{size / 1000:,.0f}" for size in received.sizes)
    print(f"\nCART, kilobytes that reach the driver, work by work: {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="8g", help="of the Java process")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    session = open_session(options.cores, options.memory)
    with tempfile.TemporaryDirectory() as folder:
        # Java and the workers are slow at first.
        for rows in (50_000, *options.rows):
            path = Path(folder) / f"{rows}.parquet"
            write_table(path, rows)
            compare(session, path, rows, options.turns)
    session.stop()


if __name__ == "__main__":
    main()
