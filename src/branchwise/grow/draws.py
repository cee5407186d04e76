"""Random draws of columns, by a counter-based generator.

A draw is a hash (SplitMix64) of a key and a counter, so that it depends neither on the
order in which nodes are split, nor on threads, nor on the kernel. The key of a root is
made of the seed and the number of the tree, that of a child of its parent's key and
its branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.errors import ParameterError

Keys = NDArray[np.uint64]

#: Of SplitMix64 (Steele, Lea, Flood 2014): the step of counters, and the mixing.
GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
#: Keys of children must differ from draws of columns by the same key.
CHILD = 0xD1B54A32D192ED03
#: So must the numbers that random splits are made of.
SPLIT = 0x8CB92BA72F3D8DD7
#: And those that put the columns of a tree in order.
ORDER = 0xE7037ED1A0B428DB


def draws(keys: Keys, counters: Ints | Keys) -> Keys:
    """Return random numbers of 64 bits, one for each pair of key and counter."""
    with np.errstate(over="ignore"):
        step = (counters.astype(np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
        mixed = keys + step
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(MIX_1)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(MIX_2)
        result: Keys = mixed ^ (mixed >> np.uint64(31))
    return result


def tree_key(seed: int, tree: int) -> int:
    """Return the key of the root of a tree."""
    seeds = np.array([seed % 2**64], dtype=np.uint64)
    own = draws(seeds, np.array([seed // 2**64 % 2**64], dtype=np.uint64))
    return int(draws(own, np.array([tree], dtype=np.uint64))[0])


def column_order(key: int, n_columns: int) -> Ints:
    """Return the columns of a tree in random order."""
    keys = np.array([key ^ ORDER], dtype=np.uint64)
    return np.argsort(draws(keys, np.arange(n_columns)), kind="stable")


def child_keys(keys: Keys, n_branches: Ints) -> Keys:
    """Return the keys of the children of nodes, in the order of the branches."""
    parent = np.repeat(np.arange(len(keys)), n_branches)
    first = np.cumsum(n_branches) - n_branches
    branch = np.arange(len(parent)) - first[parent]
    return draws(keys[parent] ^ np.uint64(CHILD), branch)


def uniform(numbers: Keys) -> Floats:
    """Return random numbers from 0 up to but not including 1."""
    shares: Floats = (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return shares


@dataclass(frozen=True)
class ColumnDraws:
    """Draws of the columns that may split a node.

    At each node, the columns are put in random order. The first ``max_features`` of
    them are candidates; if none of these has a split, so are the next ones. With
    ``random_splits`` every column has one random split at a node.
    """

    key: int
    max_features: int
    random_splits: bool = False

    def check(self, branching: str) -> None:
        """Reject groups of any number, which random splits cannot be made of."""
        if self.random_splits and branching == "groups":
            raise ParameterError(
                "random_splits=True needs branching='two-way' or 'values': values "
                "are divided at random in two groups. Got branching='groups'."
            )

    @property
    def root_keys(self) -> Keys:
        """The key of the root, as an array."""
        return np.array([self.key], dtype=np.uint64)

    def batches(self, keys: Keys, n_columns: int) -> Ints:
        """Return, by node and column, in which batch the column is a candidate."""
        counters = np.arange(n_columns, dtype=np.uint64)
        order = np.argsort(draws(keys[:, np.newaxis], counters), axis=1, kind="stable")
        batches = np.empty(order.shape, dtype=np.intp)
        ranks = np.broadcast_to(np.arange(n_columns), order.shape)
        np.put_along_axis(batches, order, ranks // self.max_features, axis=1)
        return batches
