"""Tables in databases for tests: DuckDB and SQLite files, and a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from branchwise import read_table
from branchwise.data.encode import learn_columns
from branchwise.data.frames import open_table
from branchwise.data.target import Classes, learn_numbers, learn_target, measure
from branchwise.data.weights import weigh
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.train.train import in_bins
from programs import their_environment

HOSTILE = ("it's", 'say "hi"', "a;b -- c", "naïve 🌲", "select", "", "100%", "$1 ?1")


class Server:
    """A PostgreSQL server of its own, on a socket in a temporary folder."""

    def __init__(self) -> None:
        self._programs = server_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="bw"))
        self.folder.chmod(0o755)
        self._user = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody")
            self._user = ["runuser", "-u", "nobody", "--"]
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8")
        sockets = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", data, "-o", sockets, "-l", log, "-w", "start")
        self.address = f"postgresql://tester@/postgres?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._user, str(self._programs / program), *arguments]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            cwd="/",
            env=their_environment(),
            timeout=60,
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def server_programs() -> Path | None:
    """Return where the programs of a PostgreSQL server are."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


def no_server() -> str | None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if server_programs() is None:
        return "no PostgreSQL server is installed"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "a PostgreSQL server does not run as root"
    return None


@pytest.fixture(scope="session")
def postgresql():
    """Return the address of a server, or skip."""
    reason = no_server()
    if reason is not None:
        pytest.skip(reason)
    server = Server()
    yield server.address
    server.stop()


def named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_duckdb(columns, path, table="t"):
    duckdb = pytest.importorskip("duckdb")
    import pyarrow as pa

    given = pa.table(columns)
    with closing(duckdb.connect(str(path))) as connection:
        connection.register("given", given)
        connection.execute(f"CREATE OR REPLACE TABLE {named(table)} AS FROM given")
    return str(path)


def in_sqlite(columns, path, table="t"):
    with closing(sqlite3.connect(path)) as connection:
        listed = ", ".join(named(name) for name in columns)
        connection.execute(f"DROP TABLE IF EXISTS {named(table)}")
        connection.execute(f"CREATE TABLE {named(table)} ({listed})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO {named(table)} VALUES ({marks})", rows)
        connection.commit()
    return str(path)


def in_postgresql(columns, address, table="t"):
    import psycopg

    with psycopg.connect(address) as connection:
        listed = ", ".join(f"{named(n)} {_type(c)}" for n, c in columns.items())
        connection.execute(f"DROP TABLE IF EXISTS {named(table)} CASCADE")
        connection.execute(f"CREATE TABLE {named(table)} ({listed})")
        marks = ", ".join(["%s"] * len(columns))
        connection.cursor().executemany(
            f"INSERT INTO {named(table)} VALUES ({marks})",
            list(zip(*columns.values(), strict=True)),
        )
    return address


def _type(cells) -> str:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {bool}:
        return "boolean"
    return "text" if str in kinds else "float8" if float in kinds else "bigint"


def random_columns(rng, n_rows, missing=0.1, numbers_to_predict=False):
    """Return the columns of a table with all kinds of cells and hostile names."""

    def with_gaps(cells):
        return [None if rng.random() < missing else cell for cell in cells]

    words = [word for word in HOSTILE if word]
    columns = {
        'the "colour"; --': with_gaps(rng.choice(words[:4], n_rows).tolist()),
        "size": with_gaps(rng.integers(0, 6, n_rows).tolist()),
        "order": with_gaps(rng.normal(size=n_rows).round(2).tolist()),
        "naïve 🌲": with_gaps(rng.choice(["a", "b"], n_rows).tolist()),
        "many": with_gaps([f"v{v}" for v in rng.integers(0, 20, n_rows)]),
    }
    truth = sum(
        np.array([0 if c is None else len(str(c)) for c in columns[name]])
        for name in ('the "colour"; --', "size")
    ) + rng.integers(0, 2, n_rows)
    if numbers_to_predict:
        columns["y"] = (truth + rng.normal(size=n_rows).round(3)).tolist()
    else:
        columns["y"] = [["no", "yes", "it's"][t % 3] for t in truth.tolist()]
    columns["w"] = [0.0, *(rng.random(n_rows - 1) * 3).round(1).tolist()]
    return columns


def in_memory(table, recipe, weighted=False, columns=None, **choices):
    """Return columns, classes, engine and grid of an Arrow table in memory."""
    import pyarrow as pa

    X = table.drop_columns([n for n in ("y", "w") if n in table.column_names])
    frame = open_table(X)
    learnt, data = learn_columns(
        frame,
        choices.get("categorical_features", "from_dtype"),
        choices.get("categories"),
    )
    split = recipe.missing == "split" and any(c.has_missing for c in learnt)
    weights = None
    if weighted:
        weights = table["w"].cast(pa.float64()).to_numpy()
    grid = weigh(weights, table.num_rows, split, recipe.weights_are_cases)
    classes = ()
    if recipe.is_regression:
        wanted = learn_numbers(table["y"], table.num_rows)
        target = measure(wanted, grid)
    else:
        classes, wanted = learn_target(table["y"], table.num_rows)
        target = Classes(wanted, len(classes))
    training = Training(learnt, data, wanted, len(classes), weights)
    training, _ = in_bins(training, grid, recipe)
    return learnt, classes, MemoryEngine(learnt, training.data, target, grid), grid


def read(path):
    return read_table(path, table="t")


def difference(tree, other):
    """Return the first array in which two trees differ, or None."""
    for name in tree.__dataclass_fields__:
        mine, further = getattr(tree, name), getattr(other, name)
        if mine is None and further is None:
            continue
        mine, further = np.asarray(mine), np.asarray(further)
        is_float = mine.dtype.kind == "f"
        if not np.array_equal(mine, further, equal_nan=is_float):
            return name
    return None
