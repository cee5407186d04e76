"""Time of the candidates of a node in a session of growing by hand.

``python benchmarks/candidates.py`` prints, for some tables and recipes, how long a
session takes to start, and then what ``candidates("/")`` takes: the median of some
calls and the best, by the clock and of processors. The targets are 50 ms for 100,000
rows x 30 mixed columns and 100 ms for 1,000,000 rows x 20 categories, with two cores at
hand; tables of distinct numbers have none. ``--only`` names what lines contain.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from branchwise import Recipe, grow_by_hand
from branchwise.recipe import C45, CART, ID3

VARIANCE = replace(CART, criterion="variance")
#: By name: the recipes whose targets are classes.
CLASSES = {
    "ID3": ID3,
    "C4.5": C45,
    "CART": CART,
    "ID3, gain ratio": replace(ID3, criterion="gain_ratio"),
    "CART, entropy": replace(CART, criterion="gain"),
    "C4.5, groups": replace(C45, branching="groups"),
    "CART, max_p_value": replace(CART, max_p_value=0.05),
}
#: The same with missing values, which these treat in other ways.
POLICIES = {
    "ID3, branch": ID3,
    "C4.5, split": C45,
    "CART, largest": replace(CART, missing="largest"),
    "CART, learned": replace(CART, missing="learned"),
    "CART, surrogate": replace(CART, missing="surrogate"),
}
#: Targets are numbers.
NUMBERS = {
    "variance": VARIANCE,
    "variance by value": replace(ID3, criterion="variance"),
    "variance, max_p_value": replace(VARIANCE, max_p_value=0.05),
    "Poisson": replace(CART, criterion="poisson"),
}
POLICIES_OF_NUMBERS = {
    f"variance, {missing}": replace(VARIANCE, missing=missing)
    for missing in ("branch", "largest", "learned")
}


@dataclass(frozen=True)
class Line:
    """What is measured: a table, its target, a recipe, and perhaps weights."""

    table: str
    name: str
    rows: pd.DataFrame
    target: np.ndarray
    recipe: Recipe
    weights: np.ndarray | None = None


def mixed(n_rows: int, n_columns: int = 30) -> tuple[pd.DataFrame, np.ndarray]:
    """Return numbers, half of them with few distinct values, and categories."""
    rng = np.random.default_rng(0)
    half = n_columns // 2
    columns: dict[str, Any] = {
        f"n{j}": rng.normal(size=n_rows)
        if j % 2
        else rng.integers(0, 1000, n_rows) * 1.0
        for j in range(half)
    }
    for j in range(n_columns - half):
        columns[f"c{j}"] = rng.integers(0, 3 + j, n_rows).astype(str)
    total = columns["n0"] / 500 + columns["n1"] + (columns["c0"] == "1")
    return pd.DataFrame(columns), total + rng.normal(size=n_rows)


def distinct(n_rows: int, n_columns: int = 30) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns in which every number is another one."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(n_rows, n_columns))).add_prefix("n")
    return rows, rows["n0"] + rows["n1"] + rng.normal(size=n_rows)


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
    return pd.DataFrame(columns), total + rng.normal(size=n_rows)


def with_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which a tenth of the cells is missing."""
    rng = np.random.default_rng(1)
    return rows.mask(rng.random(rows.shape) < 0.1)


def two_classes(numbers: np.ndarray, above: float) -> np.ndarray:
    """Return classes of numbers."""
    return np.where(numbers > above, "yes", "no")


def lines(share: float) -> Iterator[Line]:
    """Yield what is measured."""
    rows, numbers = mixed(int(100_000 * share))
    name = f"{len(rows):,} x 30 mixed"
    classes, rates = two_classes(numbers, 1.5), np.floor(np.abs(numbers)) + 1
    rng = np.random.default_rng(2)
    weights = rng.random(len(rows))
    for recipe_name, recipe in CLASSES.items():
        yield Line(name, recipe_name, rows, classes, recipe)
    for recipe_name in ("ID3", "C4.5", "CART"):
        recipe = CLASSES[recipe_name]
        yield Line(name, f"{recipe_name}, weights", rows, classes, recipe, weights)
    for recipe_name, recipe in NUMBERS.items():
        target = rates if recipe_name == "Poisson" else numbers
        yield Line(name, recipe_name, rows, target, recipe)
    yield Line(name, "variance, weights", rows, numbers, VARIANCE, weights)
    gaps = with_gaps(rows)
    for recipe_name, recipe in POLICIES.items():
        yield Line(f"{name}, missing", recipe_name, gaps, classes, recipe)
    for recipe_name, recipe in POLICIES_OF_NUMBERS.items():
        yield Line(f"{name}, missing", recipe_name, gaps, numbers, recipe)
    rows, numbers = distinct(int(100_000 * share))
    yield from usual(f"{len(rows):,} x 30 distinct numbers", rows, numbers, 0)
    rows, numbers = categories(int(1_000_000 * share))
    yield from usual(f"{len(rows):,} x 20 categories", rows, numbers, 2)


def usual(
    name: str, rows: pd.DataFrame, numbers: np.ndarray, above: float
) -> Iterator[Line]:
    """Yield the usual recipes, for classes and for numbers."""
    classes = two_classes(numbers, above)
    for recipe_name in ("ID3", "C4.5", "CART"):
        yield Line(name, recipe_name, rows, classes, CLASSES[recipe_name])
    yield Line(name, "variance", rows, numbers, VARIANCE)


def measured(line: Line, runs: int) -> str:
    """Return the times of a session on a table."""
    begun = time.perf_counter()
    session = grow_by_hand(
        line.rows, line.target, line.recipe, sample_weight=line.weights
    )
    session.candidates("/")
    started = time.perf_counter() - begun
    clock, processor = [], []
    for _ in range(runs):
        # Every step is searched anew.
        session.note("/", "again")
        begun, own = time.perf_counter(), time.process_time()
        session.candidates("/")
        clock.append(1000 * (time.perf_counter() - begun))
        processor.append(1000 * (time.process_time() - own))
    middle = f"{median(clock):.0f} ms ({median(processor):.0f} ms of processors)"
    best = f"{min(clock):.0f} ms ({min(processor):.0f})"
    return f"start {started:.2f} s, candidates {middle}, best {best}"


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--only", default="", help="what the names of lines contain")
    given = parser.parse_args()
    for line in lines(given.rows):
        name = f"{line.table}, {line.name}"
        if given.only in name:
            print(f"{name}: {measured(line, given.runs)}", flush=True)


if __name__ == "__main__":
    main()
