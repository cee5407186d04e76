"""Tables with a planted tree and 5 % label noise, from fixed seeds."""

from __future__ import annotations

from dataclasses import dataclass

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


def planted(
    n_rows: int,
    n_categorical: int,
    n_numeric: int = 0,
    n_classes: int = 2,
    depth: int = 4,
    missing: float = 0.0,
    values: tuple[int, int] = (2, 12),
    seed: int = 0,
) -> Planted:
    """Plant a tree that asks about random columns, and label rows by its leaves."""
    rng = np.random.default_rng(seed)
    cardinality = rng.integers(values[0], values[1] + 1, n_categorical)
    codes = (
        np.stack(
            [rng.integers(0, size, n_rows, dtype=np.int8) for size in cardinality],
            axis=1,
        )
        if n_categorical
        else np.empty((n_rows, 0), dtype=np.int8)
    )
    numbers = rng.normal(size=(n_rows, n_numeric)).round(4)
    y = _plant(rng, codes, cardinality, numbers, n_classes, depth)
    noisy = rng.random(n_rows) < NOISE
    # Another class, so that the best possible accuracy is 0.95.
    y[noisy] = (y[noisy] + rng.integers(1, n_classes, int(noisy.sum()))) % n_classes
    if missing:
        codes = np.where(rng.random(codes.shape) < missing, -1, codes).astype(np.int8)
        numbers = np.where(rng.random(numbers.shape) < missing, np.nan, numbers)
    return Planted(codes, cardinality, numbers, y)


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
