"""Time of the candidates of a node in a session of growing by hand.

``python benchmarks/candidates.py`` prints, for two tables and three recipes, how long a
session takes to start, and then what ``candidates("/")`` takes: seconds of the clock
and of the processor, the best of some runs. The targets are 50 ms for 100,000 rows x 30
mixed columns and 100 ms for 1,000,000 rows x 20 categories, with two cores at hand.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from branchwise import grow_by_hand
from branchwise.recipe import C45, CART, ID3


def mixed(n_rows: int, n_columns: int = 30) -> tuple[pd.DataFrame, np.ndarray]:
    """Return numbers, half of them with few distinct values, and categories."""
    rng = np.random.default_rng(0)
    half = n_columns // 2
    columns = {
        f"n{j}": rng.normal(size=n_rows)
        if j % 2
        else rng.integers(0, 1000, n_rows) * 1.0
        for j in range(half)
    }
    for j in range(n_columns - half):
        columns[f"c{j}"] = rng.integers(0, 3 + j, n_rows).astype(str)
    total = columns["n0"] / 500 + columns["n1"] + (columns["c0"] == "1")
    noise = rng.normal(size=n_rows)
    return pd.DataFrame(columns), np.where(total + noise > 1.5, "yes", "no")


def categories(n_rows: int, n_columns: int = 20) -> tuple[pd.DataFrame, np.ndarray]:
    """Return categories of 3 to 22 values."""
    rng = np.random.default_rng(0)
    columns = {
        f"c{j}": pd.Categorical.from_codes(
            rng.integers(0, 3 + j, n_rows), [f"v{i}" for i in range(3 + j)]
        )
        for j in range(n_columns)
    }
    total = columns["c0"].codes + columns["c1"].codes
    return pd.DataFrame(columns), np.where(
        total + rng.normal(size=n_rows) > 2, "y", "n"
    )


def measured(table: pd.DataFrame, target: np.ndarray, recipe: object, runs: int) -> str:
    """Return the times of a session on a table."""
    begun = time.perf_counter()
    session = grow_by_hand(table, target, recipe)  # type: ignore[arg-type]
    session.candidates("/")
    started = time.perf_counter() - begun
    clock, processor = [], []
    for _ in range(runs):
        # Every step is searched anew.
        session.note("/", "again")
        begun, own = time.perf_counter(), time.process_time()
        session.candidates("/")
        clock.append(time.perf_counter() - begun)
        processor.append(time.process_time() - own)
    best = f"{1000 * min(clock):.0f} ms ({1000 * min(processor):.0f} ms of processors)"
    return f"start {started:.2f} s, candidates {best}"


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows")
    given = parser.parse_args()
    tables = {
        "100,000 x 30 mixed": mixed(int(100_000 * given.rows)),
        "1,000,000 x 20 categories": categories(int(1_000_000 * given.rows)),
    }
    for name, (table, target) in tables.items():
        for recipe in (ID3, C45, CART):
            told = measured(table, target, recipe, given.runs)
            print(f"{name}, {recipe.algorithm}: {told}", flush=True)


if __name__ == "__main__":
    main()
