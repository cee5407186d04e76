"""The tables of the accuracy benchmark, their folds, and the half that they are in.

Three kinds: those of ``SHARED/data`` with the ten folds of ``SHARED/reference``, on
which other programs were measured; those that scikit-learn carries; and generated
concepts. The last two have repeated stratified folds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accuracy_concepts import CONCEPTS, generated
from parity import load

Array = NDArray[Any]
HALVES = ("choosing", "confirming")
KINDS = ("shared", "carried", "generated")
#: scikit-learn's tables that are not among the shared ones.
CARRIED = {
    "wine": "wine",
    "breast-cancer-wisconsin": "breast_cancer",
    "diabetes-thirds": "diabetes",
}


def half(name: str) -> str:
    """Return the half of a set, by a hash of its name: fixed once and for all."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


@dataclass(frozen=True)
class Table:
    """Rows, their classes, and the test rows of every fold, which may be repeated."""

    X: pd.DataFrame
    y: Array
    classes: list[str]
    tests: list[Array]


@dataclass(frozen=True)
class DataSet:
    """A table that is loaded when it is needed."""

    name: str
    kind: str
    load: Callable[[], Table]

    @property
    def half(self) -> str:
        """The half that the set belongs to."""
        return half(self.name)


def sets(shared: Path, repeats: int, n_folds: int, least: int) -> Iterator[DataSet]:
    """Yield the sets of at least so many rows; say which are not there."""
    peers = shared / "reference" / "peers.json"
    if peers.is_file():
        about = json.loads(peers.read_text(encoding="utf-8"))["sets"]
        for name, facts in about.items():
            if facts["rows_train"] >= least:
                yield DataSet(name, "shared", partial(_shared, shared, name))
    else:
        print(f"(skipped: the shared sets, as there is no {peers}; see --shared)")
    for name, file in CARRIED.items():
        make = partial(_carried, file, repeats, n_folds)
        yield DataSet(name, "carried", make)
    for name in CONCEPTS:
        make = partial(_concept, name, repeats, n_folds)
        yield DataSet(name, "generated", make)


def _shared(shared: Path, name: str) -> Table:
    data = load(shared, name)
    folds = [np.flatnonzero(data.folds == fold) for fold in range(10)]
    tests = [rows for rows in folds if len(rows)]
    return Table(data.X, data.y, data.classes, tests)


def _carried(name: str, repeats: int, n_folds: int) -> Table:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")(as_frame=True)
    target = found.target.to_numpy()
    if name == "diabetes":
        # The progression of a disease, in thirds.
        target = np.searchsorted(np.quantile(target, [1 / 3, 2 / 3]), target)
    return _folded(found.data, target.astype(str), repeats, n_folds)


def _concept(name: str, repeats: int, n_folds: int) -> Table:
    return _folded(*generated(name), repeats, n_folds)


def _folded(X: pd.DataFrame, y: Array, repeats: int, n_folds: int) -> Table:
    """Deal the rows of every class to folds in turn, shuffled with fixed seeds."""
    tests = []
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]
        fold = np.empty(len(y), dtype=int)
        fold[order] = np.arange(len(y)) % n_folds
        tests += [np.flatnonzero(fold == number) for number in range(n_folds)]
    return Table(X, y, sorted(set(y.tolist())), tests)
