"""C4.5 of the library grows, prunes and answers as the naive one does."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

import naive_c45
from branchwise import Model, fit_tree
from branchwise import native as extension
from branchwise.grow import native_kernel as native
from branchwise.recipe import C45
from c45_comparison import assert_same_tree
from selection import first_fast

CHUNK = 10
TABLES = 1000

#: The kernels that grow these trees: the reference, and its twin if that can.
KERNELS = ["reference", *(["native"] if native.serves(C45) else [])]


@dataclass
class Table:
    columns: dict[str, list[str] | None]
    rows: list[dict[str, str | float | None]]
    labels: list[str]
    classes: list[str]
    others: list[dict[str, str | float | None]]


# ------------------------------------------------------------------ random tables


def random_table(seed: int) -> Table:
    rng = random.Random(seed)
    n_rows = rng.choice([4, 8, 12, 20, 30, 45, 60, 80])
    classes = ["c0", "c1", "c2", "c3"][: rng.choice([2, 2, 3, 4])]
    gaps = rng.choice([0.0, 0.1, 0.1, 0.3])
    columns, cells = {}, {}
    for index in range(rng.randint(1, 5)):
        name = f"x{index}"
        if cells and rng.random() < 0.1:
            twin = rng.choice(list(cells))  # a column twice: a tie everywhere
            columns[name], cells[name] = columns[twin], list(cells[twin])
            continue
        columns[name], draw = random_column(rng, n_rows)
        cells[name] = [None if rng.random() < gaps else draw() for _ in range(n_rows)]
    rows = [{name: cells[name][i] for name in cells} for i in range(n_rows)]
    others = [
        {name: rng.choice([None, *cells[name]]) for name in cells} for _ in range(8)
    ]
    labels = random_labels(rng, rows, classes)
    return Table(columns, rows, labels, sorted(set(labels)), others)


def random_column(rng, n_rows):
    """A column's possible values (None: numbers) and how to draw a cell."""
    kind = rng.random()
    if kind < 0.4:
        size = rng.choice([2, 4, 10, 60])
        numbers = [
            float(rng.choice([rng.randint(0, 9), rng.random()])) for _ in range(size)
        ]
        if rng.random() < 0.1:  # too near to be told apart
            numbers.append(numbers[0] + 4e-6)
        return None, lambda: rng.choice(numbers)
    n_values = rng.choice([2, 2, 3, 4, 5, n_rows // 2])
    values = [f"v{i:02}" for i in range(max(n_values, 1))]
    return values, lambda: rng.choice(values)


def random_labels(rng, rows, classes) -> list[str]:
    """Labels at random, or by the first and the last column with some noise."""
    noise = rng.choice([0.1, 0.25, 1.0])
    names, ways, labels = sorted(rows[0]), {}, []
    for row in rows:
        key = [
            round(cell / 3) if isinstance(cell, float) else cell
            for cell in (row[names[0]], row[names[-1]])
        ]
        way = ways.setdefault(str(key), rng.choice(classes))
        labels.append(rng.choice(classes) if rng.random() < noise else way)
    return labels


# -------------------------------------------------------------------- comparison

VARIANTS = {
    "pruned": naive_c45.Settings(),
    "unpruned": naive_c45.Settings(prune=False),
    "no raising": naive_c45.Settings(raise_subtrees=False),
    "other settings": naive_c45.Settings(
        min_branch=3, confidence=0.4, threshold="midpoint"
    ),
}


def as_table(rows, columns) -> dict:
    return {
        name: [row[name] for row in rows]
        if values is not None
        else np.array([row[name] for row in rows], dtype=float)
        for name, values in columns.items()
    }


def library_model(table: Table, settings: naive_c45.Settings) -> Model:
    recipe = replace(
        C45, min_samples_branch=settings.min_branch, threshold=settings.threshold
    )
    if settings.prune:
        recipe = replace(
            recipe,
            confidence=settings.confidence,
            raise_subtrees=settings.raise_subtrees,
        )
    else:
        recipe = replace(recipe, pruning=None)
    declared = {name: v for name, v in table.columns.items() if v is not None}
    return fit_tree(
        as_table(table.rows, table.columns), table.labels, recipe, categories=declared
    )


def assert_same_answers(model: Model, chances: list, table: Table) -> None:
    data = as_table(table.rows + table.others, table.columns)
    wanted = [[float(c[name]) for name in table.classes] for c in chances]
    np.testing.assert_allclose(model.predict_proba(data), wanted, rtol=1e-9, atol=1e-9)
    labels = [naive_c45.most(c) for c in chances]
    assert model.predict(data).tolist() == labels


def compare(seed: int, variant: str) -> None:
    table, settings = random_table(seed), VARIANTS[variant]
    expected = naive_c45.fit(table.rows, table.labels, table.columns, settings)
    chances = []
    if settings.raise_subtrees and settings.prune:
        rows = table.rows + table.others
        chances = [naive_c45.distribution(expected, row) for row in rows]
    for kernel in KERNELS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(extension.VARIABLE, kernel)
            model = library_model(table, settings)
            try:
                assert_same_tree(model, expected)
                if chances:
                    assert_same_answers(model, chances, table)
            except AssertionError as error:
                where = f"seed {seed}, {variant}, {kernel}"
                raise AssertionError(f"{where}: {error}") from error


@pytest.mark.parametrize("first", first_fast(range(0, TABLES, CHUNK)))
def test_agrees_on_random_tables(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for variant in ("pruned", "unpruned", "no raising"):
            compare(seed, variant)


@pytest.mark.parametrize("first", first_fast(range(TABLES, TABLES + 250, CHUNK)))
def test_agrees_with_other_settings(first: int) -> None:
    for seed in range(first, first + CHUNK):
        compare(seed, "other settings")


def test_random_tables_are_worth_comparing() -> None:
    """Each rule has its say in many of the trees."""
    tally = Counter()
    for seed in range(0, TABLES, 4):
        table = random_table(seed)
        grown, kept, tree = (
            library_model(table, VARIANTS[variant]).tree
            for variant in ("unpruned", "no raising", "pruned")
        )
        split = grown.n_children > 0
        tally["split"] += bool(split.any())
        tally["deep"] += grown.max_depth >= 3
        tally["cut"] += not np.isnan(grown.threshold[split]).all()
        tally["values"] += bool(np.isnan(grown.threshold[split]).any())
        tally["fractions"] += bool((grown.weights % 1).any())
        tally["pruned"] += len(tree) < len(grown)
        tally["pruned, not to the root"] += 1 < len(tree) < len(grown)
        tally["raised"] += len(tree) != len(kept)
        tally["four classes"] += grown.weights.shape[1] == 4
    scarce = {what: times for what, times in tally.items() if times < 8}
    assert not scarce, tally
    assert tally["split"] > 120, tally
