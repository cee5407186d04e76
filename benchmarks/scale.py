"""The same tree from rows in memory, in files, in a database, in Dask and in Spark.

Every case runs in a process of its own, which says how long it took (reading and
encoding included) and how much memory it had at its peak. The table is that of the
other benchmarks: a planted tree of 20 categorical columns, written to Parquet once.

    python benchmarks/scale.py [--rows 10000000] [--cases memory,chunked,...]

Ratios are within one run. scikit-learn and Spark's MLlib grow trees of two-way splits
to the same depth; they are what a user would use instead, not the same tree.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from generate import planted

DEPTH = 8
PART = 1_000_000


def write_table(path: Path, n_rows: int) -> None:
    """Write the table to Parquet, text as text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = planted(n_rows, 20)
    names = [*(f"c{j}" for j in range(20)), "y"]
    schema = pa.schema([(name, pa.string()) for name in names])
    values = [
        *([f"value {v:02d}" for v in range(n)] for n in table.cardinality),
        ["class 0", "class 1"],
    ]
    with parquet.ParquetWriter(path, schema) as writer:
        for begin in range(0, n_rows, PART):
            end = begin + PART
            codes = [*table.codes[begin:end].T, table.y[begin:end]]
            columns = [
                pa.array(v).take(pa.array(c.astype("int8")))
                for v, c in zip(values, codes, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _recipe() -> Any:
    from branchwise.recipe import ID3

    return replace(ID3, max_depth=DEPTH)


def memory(path: str) -> int:
    """Read all rows, then grow."""
    from branchwise import fit_tree

    return len(fit_tree(path, "y", _recipe(), engine="memory").tree)


def chunked(path: str) -> int:
    """Grow from parts of the file."""
    from branchwise import fit_tree

    return len(fit_tree(path, "y", _recipe(), engine="chunked").tree)


def duckdb(path: str) -> int:
    """Grow in DuckDB, from a view of the file."""
    import duckdb as database

    from branchwise import fit_tree
    from branchwise.engines.sql import SqlTable

    connection = database.connect()
    connection.execute("SET threads TO 1")
    query = f"SELECT * FROM read_parquet('{path}')"
    source = SqlTable(connection, query=query, temporary_tables=True)
    return len(fit_tree(source, "y", _recipe()).tree)


def sklearn(path: str) -> int:
    """Export to pandas, encode, and grow scikit-learn's tree."""
    import duckdb as database
    from sklearn.preprocessing import OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier

    connection = database.connect()
    connection.execute("SET threads TO 1")
    table = connection.execute(f"SELECT * FROM read_parquet('{path}')").df()
    X, y = table.drop(columns="y"), table["y"]
    codes = OrdinalEncoder(dtype="float32").fit_transform(X)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=DEPTH).fit(codes, y)
    return int(tree.tree_.node_count)


def dask(path: str) -> int:
    """Grow on two worker processes of Dask."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from branchwise import fit_tree

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two,
        Client(two),
    ):
        frame = dd.read_parquet(path, split_row_groups=True)
        return len(fit_tree(frame, "y", _recipe()).tree)


def _session() -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
        .getOrCreate()
    )


def spark(path: str) -> int:
    """Grow on two cores of Spark."""
    from branchwise import fit_tree

    frame = _session().read.parquet(path)
    return len(fit_tree(frame, "y", _recipe()).tree)


def mllib(path: str) -> int:
    """Grow MLlib's tree on two cores of Spark."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import DecisionTreeClassifier
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    frame = _session().read.parquet(path)
    names = [name for name in frame.columns if name != "y"]
    coded = [f"{name} code" for name in names]
    stages = [
        StringIndexer(inputCols=[*names, "y"], outputCols=[*coded, "label"]),
        VectorAssembler(inputCols=coded, outputCol="features"),
        DecisionTreeClassifier(maxDepth=DEPTH, impurity="entropy", maxMemoryInMB=1024),
    ]
    return int(Pipeline(stages=stages).fit(frame).stages[-1].numNodes)


CASES: dict[str, Callable[[str], int]] = {
    case.__name__: case
    for case in (memory, chunked, duckdb, sklearn, dask, spark, mllib)
}


def run_here(case: str, path: str) -> None:
    """Run a case and print what it took."""
    start = time.perf_counter()
    nodes = CASES[case](path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds, "peak": peak, "nodes": nodes}))


def run_apart(case: str, path: Path) -> dict[str, float]:
    """Run a case in a process of its own."""
    command = [sys.executable, __file__, "--case", case, "--path", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--case")
    parser.add_argument("--path")
    given = parser.parse_args()
    if given.case:
        run_here(given.case, given.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.path or f"{folder}/planted.parquet")
        if not path.exists():
            write_table(path, given.rows)
        print("| engine | seconds | peak of its process, MB | nodes |")
        print("|---|---|---|---|")
        for case in given.cases.split(","):
            found = run_apart(case, path)
            if found:
                print(
                    f"| {case} | {found['seconds']:.1f} | {found['peak']:,.0f} | "
                    f"{found['nodes']:,} |",
                    flush=True,
                )
            else:
                print(f"| {case} | failed | | |", flush=True)


if __name__ == "__main__":
    main()
