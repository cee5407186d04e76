"""Tables with a planted tree and 5 % label noise, from fixed seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

NOISE = 0.05


@dataclass(frozen=True)
class Planted:
    """A generated table: categorical codes, their cardinalities, numbers, classes."""

    codes: np.ndarray
    cardinality: np.ndarray
    numbers: np.ndarray
    y: np.ndarray

    def frame(self, dtype: str = "category") -> pd.DataFrame:
        """Return the attributes as a DataFrame of categories or of strings."""
        columns: dict[str, object] = {}
        for j, size in enumerate(self.cardinality):
            names = np.array([f"value {v:02d}" for v in range(size)], dtype=object)
            column = self.codes[:, j]
            columns[f"c{j}"] = (
                pd.Categorical.from_codes(column, names)
                if dtype == "category"
                else pd.Series(names[column], dtype="str")
            )
        for j in range(self.numbers.shape[1]):
            columns[f"n{j}"] = self.numbers[:, j]
        return pd.DataFrame(columns)

    def labels(self) -> pd.Series:
        """Return the classes as a category Series."""
        names = [f"class {c}" for c in range(int(self.y.max()) + 1)]
        return pd.Series(pd.Categorical.from_codes(self.y, names), name="y")

    def quantities(self) -> pd.Series:
        """Return numbers to predict: the number of the class, and normal noise."""
        noise = np.random.default_rng(1).normal(size=len(self.y))
        return pd.Series(self.y + noise, name="y")


def planted(n_rows: int, n_categorical: int, n_numeric: int = 0, **how: Any) -> Planted:
    """Plant a tree that asks about random columns, and label rows by its leaves."""
    return planted_parts((n_rows,), n_categorical, n_numeric, **how)[0]


def planted_parts(
    sizes: tuple[int, ...],
    n_categorical: int,
    n_numeric: int = 0,
    n_classes: int = 2,
    depth: int = 4,
    missing: float = 0.0,
    values: tuple[int, int] = (2, 12),
    seed: int = 0,
) -> list[Planted]:
    """Label several tables by the same planted tree.

    The first is the table that ``planted`` gives, as long as it has rows in every
    leaf; the others are further rows, to test on.
    """
    # Each part has its own numbers, so that no part changes what another draws.
    rngs = [
        np.random.default_rng([seed, part] if part else seed)
        for part in range(len(sizes))
    ]
    cardinality = rngs[0].integers(values[0], values[1] + 1, n_categorical)
    cells = [
        _cells(rng, size, cardinality, n_numeric)
        for rng, size in zip(rngs, sizes, strict=True)
    ]
    codes = np.concatenate([part[0] for part in cells])
    numbers = np.concatenate([part[1] for part in cells])
    y = _plant(rngs[0], codes, cardinality, numbers, n_classes, depth)
    labels = np.split(y, np.cumsum(sizes)[:-1])
    return [
        _spoilt(rng, Planted(part[0], cardinality, part[1], truth), n_classes, missing)
        for rng, part, truth in zip(rngs, cells, labels, strict=True)
    ]


def _cells(
    rng: np.random.Generator, n_rows: int, cardinality: np.ndarray, n_numeric: int
) -> tuple[np.ndarray, np.ndarray]:
    columns = [rng.integers(0, size, n_rows, dtype=np.int8) for size in cardinality]
    codes = np.stack(columns, axis=1) if columns else np.empty((n_rows, 0), np.int8)
    return codes, rng.normal(size=(n_rows, n_numeric)).round(4)


def _spoilt(
    rng: np.random.Generator, table: Planted, n_classes: int, missing: float
) -> Planted:
    """Get some labels wrong, and lose some cells."""
    codes, numbers, y = table.codes, table.numbers, table.y
    noisy = rng.random(len(y)) < NOISE
    # Another class, so that the best possible accuracy is 0.95.
    y[noisy] = (y[noisy] + rng.integers(1, n_classes, int(noisy.sum()))) % n_classes
    if missing:
        codes = np.where(rng.random(codes.shape) < missing, -1, codes).astype(np.int8)
        numbers = np.where(rng.random(numbers.shape) < missing, np.nan, numbers)
    return Planted(codes, table.cardinality, numbers, y)


def _plant(
    rng: np.random.Generator,
    codes: np.ndarray,
    cardinality: np.ndarray,
    numbers: np.ndarray,
    n_classes: int,
    depth: int,
) -> np.ndarray:
    node = np.zeros(len(codes), dtype=np.int64)
    n_columns = codes.shape[1] + numbers.shape[1]
    for _ in range(depth):
        n_nodes = int(node.max()) + 1
        column = rng.integers(0, n_columns, n_nodes)[node]
        cut = rng.normal(size=n_nodes)[node]
        branch = np.zeros(len(node), dtype=np.int64)
        for j in range(codes.shape[1]):
            branch = np.where(column == j, codes[:, j], branch)
        for j in range(numbers.shape[1]):
            asked = column == codes.shape[1] + j
            branch = np.where(asked, numbers[:, j] > cut, branch)
        width = int(cardinality.max(initial=2))
        node = np.unique(node * width + branch, return_inverse=True)[1]
    return rng.integers(0, n_classes, int(node.max()) + 1)[node]


class Tables:
    """The tables of the benchmark by name; each is generated once."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._made: dict[str, Planted] = {}

    def __getitem__(self, name: str) -> Planted:
        if name not in self._made:
            self._make(name)
        return self._made[name]

    def _make(self, name: str) -> None:
        rows = self.rows
        if name in ("A", "A further"):
            parts = planted_parts((rows, 3 * rows // 10), 20)
            self._made |= dict(zip(("A", "A further"), parts, strict=True))
        if name == "C":
            self._made[name] = planted(rows // 10, 100, n_classes=5)
        if name == "mixed":
            self._made[name] = planted(rows // 2, 10, 10, missing=0.03)
        if name == "mixed fifth":
            self._made[name] = planted(rows // 5, 10, 10, missing=0.03)
        if name == "binned":
            self._made[name] = planted(rows, 0, 20, n_classes=20)
        if name == "numbers":
            self._made[name] = planted(rows // 5, 5, 10, n_classes=20)
