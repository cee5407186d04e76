"""Forests of bits that all trees share, and memory that is kept from tree to tree."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import RandomForestClassifier
from branchwise.ensemble import forest
from branchwise.grow.criteria import ImpuritySums64
from branchwise.native import KeptMemory, extension
from native_arguments import growth, with_changes
from selection import examples

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


def random_table(rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """Return columns of few and many categories, some with missing cells; classes."""
    n_rows = int(rng.choice([1, 5, 40, 300, 900]))
    columns = {}
    for j in range(int(rng.integers(1, 9))):
        n_values = int(rng.choice([1, 2, 3, 7, 12, 40]))
        codes = rng.integers(0, n_values, n_rows)
        if rng.random() < 0.3:
            codes[rng.random(n_rows) < 0.1] = -1
        names = [f"v{value}" for value in range(n_values)]
        columns[f"c{j}"] = pd.Categorical.from_codes(codes, names)
    labels = rng.integers(0, int(rng.choice([1, 2, 2, 3, 6])), n_rows)
    first = np.asarray(pd.DataFrame(columns)["c0"].cat.codes) % 2
    return pd.DataFrame(columns), [f"k{label}" for label in labels + first]


def random_settings(rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters of a forest."""
    base = str(rng.choice(["cart", "cart", "id3", "c4.5"]))
    settings: dict[str, Any] = {
        "base": base,
        "max_features": [1, 2, "sqrt", None][int(rng.integers(4))],
        "max_samples": [None, 0.4, 1][int(rng.integers(3))],
        "random_state": int(rng.integers(100)),
        "max_depth": [None, None, 3][int(rng.integers(3))],
        "min_samples_leaf": int(rng.choice([1, 1, 3])),
    }
    if base != "c4.5" and rng.random() < 0.2:
        settings["splitter"] = "random"
    if base == "cart" and rng.random() < 0.3:
        settings["missing"] = "branch"
    return settings


def trees_of(X: pd.DataFrame, y: list[str], **settings: Any) -> bytes:
    """Return the model file of a forest of four trees."""
    model = RandomForestClassifier(n_estimators=4, **settings).fit(X, y).model_
    return bytes(model.to_bytes())


@pytest.mark.parametrize("part", range(5))
def test_same_forest_as_from_rows_of_samples(part: int, monkeypatch: Any) -> None:
    for seed in range(part, examples(300), 5):
        rng = np.random.default_rng([seed, 17])
        X, y = random_table(rng)
        settings = random_settings(rng)
        shared = trees_of(X, y, **settings)
        with monkeypatch.context() as without:
            without.setattr(forest, "_bits_of", lambda *_: None)
            assert trees_of(X, y, **settings) == shared, (seed, settings)
        if len(X) <= 40:
            with monkeypatch.context() as without:
                without.setenv("BRANCHWISE_KERNEL", "reference")
                assert trees_of(X, y, **settings) == shared, (seed, settings)


def test_same_forest_by_any_number_of_threads_and_in_any_order() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({f"c{j}": rng.integers(0, j + 2, 2000) for j in range(12)})
    X = X.astype("category")
    y = np.where(rng.random(2000) < 0.1, "a", X["c3"].astype(str))
    one = trees_of(X, y)
    assert trees_of(X, y, n_jobs=3) == one
    order = rng.permutation(len(X))
    assert trees_of(X.iloc[order], y[order]) == one


def arguments(**changed: Any) -> dict[str, Any]:
    """Return the arguments of a forest of samples of five rows."""
    given = growth(branching="two-way", missing="learned", max_features=1)
    del given["weights"], given["times"], given["progress"]
    given |= {
        "columns": [np.array([0, 1, 1, 0], np.uint8), np.array([2, 0, 1, 1], np.uint8)],
        "n_codes": [3, 4],
        "order": np.arange(4),
        "n_drawn": 5,
    }
    given["options"] |= {"total": 5.0, "bits": ImpuritySums64(5.0, whole=True).bits}
    return dict(with_changes(given, changed))


def test_a_sound_forest_has_trees() -> None:
    made = _native.bit_forest(**arguments())
    tree = made.grow([1, 0], 3, 4, None)
    assert tree["cases"][0] == 5
    again = made.grow(columns=[1, 0], sample_key=3, draw_key=4, progress=None)
    assert again.keys() == tree.keys()
    for name, array in tree.items():
        np.testing.assert_array_equal(array, again[name])


def test_rows_with_numbers_are_no_bits() -> None:
    numbers = {"columns": [np.arange(4.0), np.array([2, 0, 1, 1], np.uint8)]}
    assert _native.bit_forest(**arguments(n_codes=[0, 4], **numbers)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_drawn", 0),
        ("order", np.array([0, 4])),
        ("order", np.array([-1])),
        ("order", np.array([], dtype=np.int64)),
        ("order", None),
        ("labels", np.array([0, 1, 0, 2], dtype=np.uint32)),
        ("n_codes", [3]),
        ("total", 4.0),
        ("positions", [0]),
        ("missing", "nowhere"),
    ],
)
def test_arguments_of_a_forest(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        _native.bit_forest(**arguments(**{name: value}))


@pytest.mark.parametrize("columns", [[0], [0, 0], [0, 2], [0, 1, 1], [0, -1], "ab"])
def test_columns_of_a_tree_are_each_there_once(columns: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="columns"):
        _native.bit_forest(**arguments()).grow(columns, 3, 4, None)


def test_trees_call_progress_and_may_be_stopped() -> None:
    made = _native.bit_forest(**arguments())
    seen: list[int] = []
    made.grow([0, 1], 3, 4, seen.append)
    assert seen

    def stop(_: int) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        made.grow([0, 1], 3, 4, stop)


def test_kept_memory_is_of_one_thread() -> None:
    memory = extension().KeptMemory()
    with memory, pytest.raises(ValueError, match="one thread at a time"):
        memory.__enter__()
    with pytest.raises(ValueError, match="left by the thread"):
        memory.__exit__(None, None, None)
    found: list[str] = []

    def leave() -> None:
        try:
            memory.__exit__(None, None, None)
        except ValueError as error:
            found.append(str(error))

    with memory:
        other = threading.Thread(target=leave)
        other.start()
        other.join()
    assert len(found) == 1


def test_kept_memory_is_used_again() -> None:
    memory = KeptMemory()
    with memory.in_use(), memory.in_use():  # one for each at the same time
        pass
    free = list(memory._free)
    assert len(free) == 2
    with memory.in_use():
        assert len(memory._free) == 1
    assert set(map(id, memory._free)) == set(map(id, free))


def test_nothing_is_kept_by_the_reference(monkeypatch: Any) -> None:
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    memory = KeptMemory()
    with memory.in_use():
        pass
    assert not memory._free
