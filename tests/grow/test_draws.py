"""Random draws of columns: keys, batches, and the trees that follow from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise.data.arrays import Ints
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError
from branchwise.grow.draws import (
    SPLIT,
    ColumnDraws,
    child_keys,
    draws,
    tree_key,
    uniform,
)
from branchwise.recipe import C45, CART, ID3, Recipe
from branchwise.train.train import grown, grown_from_bins, in_bins, is_native
from branchwise.tree.tree import Tree


def test_draws_are_those_of_splitmix64() -> None:
    # The first outputs of the generator's own sequence for the seed 1234567.
    keys = np.full(3, 1234567, dtype=np.uint64)
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert draws(keys, np.arange(3)).tolist() == wanted


def test_keys_differ_by_seed_tree_and_branch() -> None:
    keys = {tree_key(seed, tree) for seed in (0, 1, 2**64, 2**70) for tree in range(50)}
    assert len(keys) == 200
    children = child_keys(np.array([5, 6], dtype=np.uint64), np.array([3, 2]))
    assert len(set(children.tolist()) | {5, 6}) == 7
    alone = child_keys(np.array([6], dtype=np.uint64), np.array([2]))
    assert children[3:].tolist() == alone.tolist()


def test_uniform_numbers_are_below_one() -> None:
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert uniform(extremes).tolist() == [0.0, 1 - 2.0**-53]


def test_every_column_is_in_one_batch() -> None:
    keys = draws(np.zeros(1000, dtype=np.uint64), np.arange(1000))
    batches = ColumnDraws(0, 3).batches(keys, 7)
    for row in batches:
        assert sorted(row.tolist()) == [0, 0, 0, 1, 1, 1, 2]
    first = (batches == 0).mean(axis=0)
    assert np.abs(first - 3 / 7).max() < 0.06


def _table(seed: int, n_rows: int = 200) -> Training:
    from branchwise.data.table_schema import Column, Columns

    rng = np.random.default_rng(seed)
    columns, data = [], []
    for index in range(6):
        if index % 2:
            names = tuple("abcd"[: 2 + index % 3])
            columns.append(Column(f"x{index}", "nominal", names))
            data.append(rng.integers(0, len(names), n_rows).astype(np.uint8))
        else:
            columns.append(Column(f"x{index}", "numeric", ()))
            data.append(rng.integers(0, 20, n_rows).astype(np.float64))
    target = rng.integers(0, 3, n_rows)
    return Training(tuple(columns), Columns(n_rows, tuple(data)), target, 3)


def _drawn(
    training: Training,
    recipe: Recipe,
    key: int,
    max_features: int,
    random_splits: bool = False,
) -> Tree:
    binned, edges = in_bins(
        training, training.grid(recipe), recipe, is_native(training, recipe)
    )
    drawn = ColumnDraws(key, max_features, random_splits)
    return grown_from_bins(training, binned, edges, recipe, drawn)


def _same(one: Tree, other: Tree) -> bool:
    mine, yours = ([getattr(t, a.name) for a in one.arrays] for t in (one, other))
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(mine, yours, strict=True)
    )


@pytest.mark.parametrize("recipe", [ID3, C45, CART], ids=["id3", "c45", "cart"])
def test_all_columns_drawn_is_the_usual_tree(recipe: Recipe) -> None:
    training = _table(0)
    assert _same(_drawn(training, recipe, 1, 6), grown(training, recipe))


@pytest.mark.parametrize("recipe", [ID3, C45, CART], ids=["id3", "c45", "cart"])
def test_trees_depend_on_the_key_and_not_on_the_order_of_rows(recipe: Recipe) -> None:
    training = _table(1)
    one = _drawn(training, recipe, 7, 2)
    shuffled = training.take(np.random.default_rng(0).permutation(200))
    assert _same(one, _drawn(shuffled, recipe, 7, 2))
    assert not _same(one, _drawn(training, recipe, 8, 2))


def test_a_node_splits_if_any_column_can_split_it() -> None:
    """One column varies; the others are drawn first at most roots, and cannot split."""
    training = _table(2)
    constant: list[Ints] = [np.zeros_like(cells) for cells in training.data.data[:-1]]
    data = type(training.data)(200, (*constant, training.data.data[-1]))
    training = Training(training.columns, data, training.target, 3)
    for key in range(30):
        assert _drawn(training, ID3, key, 1).column[0] == 5


def test_splits_are_drawn_from_the_first_batch_that_has_one() -> None:
    training = _table(3)
    for key in range(30):
        drawn = ColumnDraws(key, 2)
        root = drawn.batches(drawn.root_keys, 6)[0]
        assert root[_drawn(training, ID3, key, 2).column[0]] == 0


TWO_WAY = replace(CART, pruning=None, max_depth=2)


def _only(training: Training, index: int) -> Training:
    data = type(training.data)(training.data.n_rows, (training.data.data[index],))
    return Training((training.columns[index],), data, training.target, 3)


def test_the_random_threshold_lies_in_the_gap_that_is_drawn() -> None:
    training = _only(_table(4), 0)
    numbers = np.unique(training.data.data[0])
    for key in range(12):
        tree = _drawn(training, TWO_WAY, key, 1, random_splits=True)
        own = np.array([key], dtype=np.uint64) ^ np.uint64(SPLIT)
        at = uniform(draws(own, np.array([0])))[0] * (numbers[-1] - numbers[0])
        at += numbers[0]
        gap = numbers[numbers <= at][-1], numbers[numbers > at][0]
        assert tree.threshold[0] == sum(gap) / 2


def test_random_groups_are_drawn_value_by_value() -> None:
    training = _only(_table(5), 5)
    n_values = len(training.columns[0].categories)
    sizes = set()
    for key in range(12):
        tree = _drawn(training, TWO_WAY, key, 1, random_splits=True)
        own = draws(np.array([key], dtype=np.uint64) ^ np.uint64(SPLIT), np.array([0]))
        numbers = draws(np.repeat(own, n_values), np.arange(n_values))
        side = (numbers >> np.uint64(63)).astype(int)
        if len(set(side.tolist())) == 1:
            side[np.argmin(numbers)] ^= 1
        first = np.flatnonzero(side == side[0])
        n_first = tree.n_codes[1]
        assert tree.codes[:n_first].tolist() == first.tolist()
        sizes.add(int(n_first))
    assert len(sizes) > 1


@pytest.mark.parametrize("recipe", [ID3, C45, CART], ids=["id3", "c45", "cart"])
def test_random_splits_do_not_depend_on_the_order_of_rows(recipe: Recipe) -> None:
    """They depend on the key, and not on the order of rows."""
    training = _table(6, 60)
    tree = _drawn(training, recipe, 3, 2, random_splits=True)
    assert not _same(tree, _drawn(training, recipe, 3, 2))
    shuffled = training.take(np.random.default_rng(0).permutation(60))
    assert _same(tree, _drawn(shuffled, recipe, 3, 2, random_splits=True))


def test_random_splits_between_huge_numbers() -> None:
    """The difference of the largest and the smallest number overflows."""
    training = _only(_table(7), 0)
    cells = np.where(np.arange(200) % 2, 1.7e308, -1.7e308)
    data = type(training.data)(200, (cells,))
    training = Training(training.columns, data, np.arange(200) % 2, 3)
    tree = _drawn(training, TWO_WAY, 0, 1, random_splits=True)
    assert tree.threshold[0] == 0.0
    assert len(tree) == 3


def test_random_splits_refuse_groups_of_any_number() -> None:
    recipe = replace(C45, branching="groups")
    with pytest.raises(ParameterError, match="branching='groups'"):
        _drawn(_table(8), recipe, 0, 2, random_splits=True)
