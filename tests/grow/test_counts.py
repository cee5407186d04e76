"""Counts: what is added up, by either way of adding it up."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise.data.arrays import run_starts
from branchwise.grow import counts as counts_module
from branchwise.grow.counts import Counts, Rows, tally


@pytest.fixture(params=["dense", "sorted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one of the two ways of counting, and say which one was forced."""
    cells = 1 << 40 if request.param == "dense" else -1
    monkeypatch.setattr(counts_module, "_DENSE_CELLS", cells)
    monkeypatch.setattr(counts_module, "_DENSE_CELLS_PER_ROW", 0)
    return request.param


def rows(node, label, weight=None, case=None) -> Rows:
    def floats(numbers):
        return None if numbers is None else np.array(numbers, dtype=np.float64)

    return Rows(
        np.array(node, dtype=np.intp),
        np.array(label, dtype=np.intp),
        floats(weight),
        floats(case),
    )


def listed(counts: Counts) -> list[tuple]:
    return list(
        zip(
            counts.node.tolist(),
            counts.code.tolist(),
            counts.weights.tolist(),
            counts.cases.tolist(),
            strict=True,
        )
    )


def test_the_forced_way_is_taken(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in ("dense", "sorted"):
        function = getattr(counts_module, f"_tally_{name}")

        def spy(*arguments, name=name, function=function):
            called.append(name)
            return function(*arguments)

        monkeypatch.setattr(counts_module, f"_tally_{name}", spy)
    tally(rows([0], [0]), np.array([0]), 1, 1, 1)
    assert called == [way]


@pytest.mark.usefixtures("way")
def test_rows_count_as_one() -> None:
    codes = np.array([1, 0, 1, 1, 0], dtype=np.uint8)
    got = tally(rows([0, 0, 2, 2, 0], [0, 1, 1, 1, 1]), codes, 3, 4, 2)
    assert listed(got) == [
        (0, 0, [0.0, 2.0], 2.0),
        (0, 1, [1.0, 0.0], 1.0),
        (2, 1, [0.0, 2.0], 2.0),
    ]


@pytest.mark.usefixtures("way")
def test_weights_add_up_and_cases_count_rows() -> None:
    codes = np.array([0, 0, 0, 1])
    got = tally(rows([0] * 4, [0, 1, 1, 0], weight=[0.5, 2, 4, 8]), codes, 1, 2, 2)
    assert listed(got) == [(0, 0, [0.5, 6.0], 3.0), (0, 1, [8.0, 0.0], 1.0)]


@pytest.mark.usefixtures("way")
def test_fractions_of_cases_count_as_such() -> None:
    codes = np.array([1, 0, 1])
    given = rows([0, 0, 0], [1, 0, 0], weight=[2, 1, 0.5], case=[1, 0.25, 0.5])
    got = tally(given, codes, 1, 2, 2)
    assert listed(got) == [(0, 0, [1.0, 0.0], 0.25), (0, 1, [0.5, 2.0], 1.5)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("weight", [None, []])
def test_no_rows_give_no_pairs(weight: list | None) -> None:
    got = tally(rows([], [], weight), np.array([], dtype=np.uint8), 3, 4, 2)
    assert len(got.node) == len(got.code) == len(got.cases) == 0
    assert got.weights.shape == (0, 2)
    weights, cases = got.totals(3)
    assert weights.tolist() == [[0, 0]] * 3
    assert cases.tolist() == [0, 0, 0]


@pytest.mark.usefixtures("way")
def test_narrow_codes_do_not_overflow() -> None:
    codes = np.array([255, 254, 255], dtype=np.uint8)
    got = tally(rows([299, 299, 0], [2, 0, 1]), codes, 300, 256, 3)
    assert listed(got) == [
        (0, 255, [0.0, 1.0, 0.0], 1.0),
        (299, 254, [1.0, 0.0, 0.0], 1.0),
        (299, 255, [0.0, 0.0, 1.0], 1.0),
    ]


def test_codes_are_left_as_they_are() -> None:
    codes = np.array([1, 0], dtype=np.intp)
    node = np.array([1, 0], dtype=np.intp)
    tally(Rows(node, np.array([0, 1]), None, None), codes, 2, 2, 2)
    assert codes.tolist() == [1, 0]
    assert node.tolist() == [1, 0]


def test_many_codes_need_no_table_of_all_cells() -> None:
    codes = np.array([10**12 - 1, 0, 10**12 - 1])  # a dense table would not fit
    got = tally(rows([1, 0, 1], [0, 1, 1]), codes, 2, 10**12, 2)
    assert listed(got) == [
        (0, 0, [0.0, 1.0], 1.0),
        (1, 10**12 - 1, [1.0, 1.0], 2.0),
    ]


def test_merge_adds_equal_pairs_and_sorts() -> None:
    codes = np.array([2, 0])
    one = tally(rows([0, 1], [0, 0]), codes, 2, 3, 2)
    other = tally(rows([0, 0], [1, 1], weight=[0.5, 4]), codes, 2, 3, 2)
    assert listed(one.merge(other)) == [
        (0, 0, [0.0, 4.0], 1.0),
        (0, 2, [1.0, 0.5], 2.0),
        (1, 0, [1.0, 0.0], 1.0),
    ]


def test_merge_with_nothing() -> None:
    nothing = tally(rows([], []), np.array([], dtype=np.intp), 2, 3, 2)
    some = tally(rows([1, 1], [0, 1]), np.array([2, 2]), 2, 3, 2)
    assert listed(some.merge(nothing)) == listed(nothing.merge(some)) == listed(some)
    assert listed(nothing.merge(nothing)) == []


def test_totals_leave_nodes_without_rows_at_zero() -> None:
    got = tally(rows([0, 0, 3], [0, 1, 1], weight=[1, 2, 4]), np.arange(3), 5, 3, 2)
    weights, cases = got.totals(5)
    assert weights.tolist() == [[1, 2], [0, 0], [0, 0], [0, 4], [0, 0]]
    assert cases.tolist() == [2, 0, 0, 1, 0]


def test_select_keeps_pairs() -> None:
    got = tally(rows([0, 0, 1], [0, 1, 1]), np.array([0, 1, 1]), 2, 2, 2)
    assert listed(got.select(got.code == 1)) == [
        (0, 1, [0.0, 1.0], 1.0),
        (1, 1, [0.0, 1.0], 1.0),
    ]


@pytest.mark.parametrize(
    ("keys", "starts"),
    [
        ([[]], []),
        ([[7]], [0]),
        ([[1, 1, 2, 2, 1]], [0, 2, 4]),
        ([[1, 1, 1, 2], [5, 5, 6, 6]], [0, 2, 3]),
    ],
)
def test_run_starts(keys: list[list[int]], starts: list[int]) -> None:
    arrays = [np.array(key, dtype=np.intp) for key in keys]
    assert run_starts(*arrays).tolist() == starts
