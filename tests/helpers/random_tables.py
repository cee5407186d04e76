"""Random small tables, and the comparison of a tree with that of the naive oracle."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

import naive
from branchwise import Model
from branchwise import native as extension

#: The kernels that there are: the reference, and its compiled twin if it was built.
KERNELS = ["reference", *(["native"] if extension.extension() else [])]


@dataclass
class Table:
    """A random table: rows to learn from, rows to predict, and how to."""

    columns: dict[str, list[str] | None]
    declared: dict[str, list[str]]
    rows: list[dict[str, str | float | None]]
    labels: list[str]
    weights: list[float] | None
    settings: naive.Settings
    others: list[dict[str, str | float | None]]


def random_table(seed: int) -> Table:
    rng = random.Random(seed)
    n_rows = rng.choice([1, 2, 4, 8, 12, 12, 16, 20, 25, 30])
    classes = ["c0", "c1", "c2", "c3", "c4"][: rng.choice([2, 2, 3, 5])]
    settings = random_settings(rng)
    gaps = 0.0
    if settings.missing != "error":
        gaps = rng.choice([0.0, 0.1, 0.3] if settings.missing == "branch" else [0.2])
    columns: dict[str, list[str] | None] = {}
    declared: dict[str, list[str]] = {}
    cells: dict[str, list[str | float | None]] = {}
    for index in range(rng.randint(1, 4)):
        name = f"x{index}"
        if cells and rng.random() < 0.15:
            twin = rng.choice(list(cells))  # a column twice: a tie everywhere
            cells[name], columns[name] = list(cells[twin]), columns[twin]
            if twin in declared:
                declared[name] = declared[twin]
        else:
            _add_column(rng, name, n_rows, gaps, columns, declared, cells)
    rows = [{name: cells[name][i] for name in cells} for i in range(n_rows)]
    labels = _labels(rng, rows, classes)
    return Table(
        columns,
        declared,
        rows,
        labels,
        _weights(rng, n_rows),
        settings,
        _other_rows(rng, columns, cells, settings),
    )


def random_settings(rng: random.Random) -> naive.Settings:
    """Draw one of every policy and parameter, each limit mostly at its default."""
    missing = rng.choice(["branch", "branch", "split", "split", "largest", "node"])
    if rng.random() < 0.05:
        missing = "error"

    def usually(default, *others):
        return default if rng.random() < 0.75 else rng.choice(others)

    criterion = rng.choice(["gain", "gain", "gain_ratio", "gini"])
    min_gain = usually(0.0, 0.02, 0.1, 0.25, 0.5)
    return naive.Settings(
        criterion=criterion,
        max_depth=usually(None, 0, 1, 2, 3),
        min_samples_split=usually(2, 3, 5, 0.3),
        min_samples_leaf=usually(1, 2, 3, 0.1),
        # test_min_gain_with_gain_ratio has the two together.
        min_gain=0.0 if criterion == "gain_ratio" else min_gain,
        missing=missing,
        unseen=rng.choice(["node", "split", "largest", "branch", "error"]),
    )


def _add_column(rng, name, n_rows, gaps, columns, declared, cells) -> None:
    def gappy(cell):
        return None if rng.random() < gaps else cell

    if rng.random() < 0.4:
        size = rng.choice([1, 2, 3, 40])
        numbers = [rng.choice([rng.randint(-5, 5), rng.random()]) for _ in range(size)]
        if rng.random() < 0.1:  # neighbours with nothing between them
            numbers.append(math.nextafter(numbers[0], math.inf))
        columns[name] = None
        cells[name] = [gappy(float(rng.choice(numbers))) for _ in range(n_rows)]
        return
    values = [f"v{i}" for i in range(rng.randint(1, 6))]
    cells[name] = [gappy(rng.choice(values)) for _ in range(n_rows)]
    if rng.random() < 0.3:
        rng.shuffle(values)
        declared[name] = columns[name] = values
    else:
        columns[name] = sorted({c for c in cells[name] if c is not None})


def _labels(rng, rows, classes) -> list[str]:
    """Draw labels at random, or by a column with some noise."""
    if rng.random() < 0.4:
        return [rng.choice(classes) for _ in rows]
    names = sorted(rows[0])
    ways = {}
    labels = []
    for row in rows:
        key = row[names[0]], row[names[-1]]
        way = ways.setdefault(key, rng.choice(classes))
        labels.append(way if rng.random() < 0.8 else rng.choice(classes))
    return labels


def _weights(rng, n_rows) -> list[float] | None:
    kind = rng.choice(["none", "none", "none", "whole", "quarters", "any"])
    if kind == "none":
        return None
    draw = {
        "whole": lambda: float(rng.randint(0, 3)),
        "quarters": lambda: rng.randint(1, 8) / 4,
        "any": lambda: rng.uniform(0.1, 3.0),
    }[kind]
    weights = [draw() for _ in range(n_rows)]
    weights[rng.randrange(n_rows)] = 1.0
    return weights


def _other_rows(rng, columns, cells, settings) -> list[dict]:
    """Rows to predict: values of training, numbers between, missing, never seen."""

    def cell(name):
        chance = rng.random()
        if chance < 0.15 and settings.missing != "error":
            return None
        if columns[name] is None:
            known = [c for c in cells[name] if c is not None]
            near = rng.choice(known) if known else 0.0
            return near + rng.choice([0.0, 0.5, -0.5, rng.uniform(-2, 2)])
        if chance < 0.3 and settings.unseen != "error":
            return rng.choice(["never seen", "v0 "])
        return rng.choice(columns[name]) if columns[name] else None

    return [{name: cell(name) for name in columns} for _ in range(12)]


def as_table(rows, columns) -> dict:
    """A dict of columns for the library; numbers as an array, whatever is missing."""
    return {
        name: [row[name] for row in rows]
        if values is not None
        else np.array([row[name] for row in rows], dtype=float)
        for name, values in columns.items()
    }


def assert_same_tree(model: Model, expected: naive.Node) -> None:
    """Hold the arrays of the tree against the naive nodes, both from the root down."""
    tree, schema = model.tree, model.schema
    pairs = [(0, expected)]
    for node, naive_node in pairs:  # grows while it is walked
        index = int(tree.column[node])
        column = schema.names[index] if index >= 0 else None
        assert column == naive_node.column, f"node {node}"
        if naive_node.threshold is None:
            assert math.isnan(tree.threshold[node]), f"node {node}"
        else:
            assert tree.threshold[node] == naive_node.threshold, f"node {node}"
        label = schema.classes[tree.label[node]]
        assert label == naive_node.label, f"node {node}"
        wanted = [float(naive_node.weights[name]) for name in schema.classes]
        assert tree.weights[node].tolist() == pytest.approx(wanted, rel=1e-6, abs=1e-9)
        assert tree.cases[node] == pytest.approx(float(naive_node.cases), rel=1e-6)
        children = {key_of(model, child): child for child in tree.children(node)}
        assert list(children) == list(naive_node.children), f"node {node}"
        pairs.extend((children[key], naive_node.children[key]) for key in children)
    assert len(pairs) == len(tree)


def key_of(model: Model, child: int) -> tuple[str, str | None]:
    """What leads to a child, in the naive vocabulary."""
    tree = model.tree
    column = model.schema.columns[tree.column[tree.parent[child]]]
    codes = tree.codes_of(child)
    if not codes:
        return (naive.MISSING, None)
    if not column.is_numeric:
        (code,) = codes
        return ("value", column.categories[code])
    if len(codes) == 2:
        return (naive.KNOWN, None)
    return (naive.AT_MOST if codes == [0] else naive.ABOVE, None)
