"""Random tables and recipes for comparing engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from branchwise.recipe import C45, CART, ID3

RECIPES = {
    "id3": ID3,
    "shallow": replace(ID3, max_depth=3, missing="largest"),
    "divided": replace(ID3, missing="split"),
    "c4.5": C45,
    "cart": CART,
    "surrogates": replace(CART, missing="surrogate"),
    "learned": replace(CART, missing="learned"),
    "bins": replace(CART, max_bins=4),
    "numbers": replace(CART, criterion="variance"),
    "heavy leaves": replace(ID3, missing="split", min_weight_fraction_leaf=0.1),
}


def random_table(rng: np.random.Generator) -> pd.DataFrame:
    """Return categories and numbers, some of them missing, a target and weights."""
    n = int(rng.integers(3, 300))
    gaps, numbers = rng.choice([0, 0.1]), rng.random() < 0.5
    columns = {}
    for j in range(int(rng.integers(1, 6))):
        if numbers and j % 2:
            cells = np.round(rng.normal(size=n), int(rng.integers(0, 3)))
            cells[rng.random(n) < gaps] = np.nan
        else:
            names = np.array([f"v{i}" for i in range(int(rng.integers(1, 8)))], object)
            cells = names[rng.integers(0, len(names), n)]
            cells[rng.random(n) < gaps] = None
        columns[f"c{j}"] = cells
    table = pd.DataFrame(columns)
    table["y"] = rng.integers(0, int(rng.integers(2, 4)), n).astype(str)
    table["w"] = rng.integers(0, 4, n) if rng.random() < 0.5 else rng.random(n)
    table.loc[0, "w"] = 1
    return table


def in_parts(rng: np.random.Generator, table: pd.DataFrame) -> list[pd.DataFrame]:
    """Part the rows anywhere, so that some parts are empty."""
    cuts = np.sort(rng.integers(0, len(table) + 1, int(rng.integers(0, 5)))).tolist()
    bounds = zip([0, *cuts], [*cuts, len(table)], strict=True)
    return [table.iloc[begin:end] for begin, end in bounds]
