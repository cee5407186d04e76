"""Columns are read side by side; what comes out does not show it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from branchwise import ID3Classifier, fit_tree, threads
from branchwise.data import encode
from branchwise.data.columns import Coded
from branchwise.data.encode import encode_columns, learn_columns
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import Schema
from branchwise.errors import DataError
from branchwise.threads import in_order

N = 3000
RNG = np.random.default_rng(4)
PETS = ["cat", "dog", None, "a long name of an animal", "ox"]
TABLE: dict[str, list[Any]] = {
    "pet": [PETS[k] for k in RNG.integers(0, 5, N)],
    "id": [f"case {k}" for k in RNG.integers(0, 2000, N)],
    "number": [float(k) if k else None for k in RNG.integers(0, 50, N)],
    "whole": RNG.integers(-5, 5, N).tolist(),
    "truth": [[True, False, None][k] for k in RNG.integers(0, 3, N)],
    "nothing": [None] * N,
}
LABELS = ["yes" if k else "no" for k in RNG.integers(0, 2, N)]


@pytest.fixture(autouse=True)
def _threads_for_small_tables(monkeypatch):
    monkeypatch.setattr(encode, "LARGE_TABLE", 0)


@pytest.fixture
def pools(monkeypatch):
    """Note the sizes of the pools that are started."""
    sizes: list[int] = []

    class Noted(threads.ThreadPoolExecutor):
        def __init__(self, size: int) -> None:
            sizes.append(size)
            super().__init__(size)

    monkeypatch.setattr(threads, "ThreadPoolExecutor", Noted)
    return sizes


@pytest.mark.parametrize("n", [2, 4])
def test_threads_do_not_show_in_columns(frame, n, pools):
    one_columns, one = learn_columns(open_table(frame(TABLE)), "from_dtype", None)
    columns, several = learn_columns(open_table(frame(TABLE)), "from_dtype", None, n)
    assert pools == [n]
    assert columns == one_columns
    schema = Schema(columns, ("no", "yes"))
    used = [0, 2, 3, 5]
    encoded = encode_columns(open_table(frame(TABLE)), schema, used, threads=n)
    assert pools == [n, n]
    for index, (cells, expected) in enumerate(zip(several.data, one.data, strict=True)):
        assert cells.dtype == expected.dtype
        np.testing.assert_array_equal(cells, expected)
        if index in used:
            np.testing.assert_array_equal(encoded.data[index], expected)
        else:
            assert not len(encoded.data[index])


def test_threads_do_not_show_in_the_estimator(pools):
    X = pl.DataFrame(TABLE)
    one = ID3Classifier(max_depth=3).fit(X, LABELS)
    chances, nodes = one.predict_proba(X), one.apply(X)
    assert pools == []
    for n_jobs in (2, 4):
        tree = ID3Classifier(max_depth=3, n_jobs=n_jobs).fit(X, LABELS)
        assert tree.model_ == one.model_
        np.testing.assert_array_equal(tree.predict_proba(X), chances)
        np.testing.assert_array_equal(tree.predict(X), one.predict(X))
        np.testing.assert_array_equal(tree.apply(X), nodes)
        assert (tree.decision_path(X) != one.decision_path(X)).nnz == 0
    assert len(pools) == 10


def test_small_tables_and_single_columns_start_no_threads(monkeypatch, pools):
    learn_columns(open_table({"a": TABLE["pet"]}), "from_dtype", None, 4)
    monkeypatch.setattr(encode, "LARGE_TABLE", N * len(TABLE) + 1)
    learn_columns(open_table(TABLE), "from_dtype", None, 4)
    assert pools == []
    monkeypatch.setattr(encode, "LARGE_TABLE", N * len(TABLE))
    learn_columns(open_table(TABLE), "from_dtype", None, 4)
    assert pools == [4]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_first_column_that_is_wrong_is_named(n):
    later = threading.Event()

    def fine() -> Coded:
        return Coded(np.zeros(N, dtype=np.int8), ("x",))

    def wrong() -> Coded:
        # With threads, the other wrong column is found first.
        assert n == 1 or later.wait(60)
        raise DataError("the second")

    def wrong_later() -> Coded:
        later.set()
        raise DataError("the fourth")

    table = Frame(tuple("abcde"), N, True, (fine, wrong, fine, wrong_later, fine))
    with pytest.raises(DataError, match="the second"):
        learn_columns(table, "from_dtype", None, n)
    schema = Schema(learn_columns(open_table(TABLE), "from_dtype", None)[0], ("no",))
    broken = {**TABLE, "id": [*TABLE["id"][:-1], 5], "truth": ["x"] * N}
    with pytest.raises(DataError, match=f"'id' mixes .* in row {N - 1}"):
        encode_columns(open_table(broken), schema, range(6), threads=n)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_wrong_cells_are_found_in_the_same_row(n_jobs):
    X = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in
                      TABLE.items()})  # fmt: skip
    X.loc[1234, "pet"] = 7
    X.loc[17, "truth"] = "maybe"
    with pytest.raises(DataError, match=r"Column 'pet' mixes .* \(7 in row 1234\)"):
        fit_tree(X, LABELS, n_jobs=n_jobs)


def test_results_are_in_order():
    assert in_order(lambda item: item * 2, range(100), 3) == list(range(0, 200, 2))
    assert in_order(str, [], 2) == []
