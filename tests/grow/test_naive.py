"""The library grows and answers as the naive implementation does, table by table."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from itertools import cycle

import numpy as np
import pytest

import naive
from branchwise import DataError, Model, Recipe, fit_tree
from branchwise import native as extension
from random_tables import (
    KERNELS,
    Table,
    as_table,
    assert_same_tree,
    random_table,
)
from selection import examples, first_fast

CHUNK = 50


# ------------------------------------------------------------------ random tables


# -------------------------------------------------------------------- comparison


def library_model(table: Table) -> Model:
    return fit_tree(
        as_table(table.rows, table.columns),
        table.labels,
        Recipe("ID3", **asdict(table.settings)),
        sample_weight=table.weights,
        categories=table.declared,
    )


def assert_same_answers(model: Model, expected: naive.Node, table: Table) -> None:
    rows = table.rows + table.others
    data = as_table(rows, table.columns)
    columns, settings = table.columns, table.settings
    chances = [naive.distribution(expected, r, columns, settings) for r in rows]
    wanted = np.array([[float(c[name]) for name in sorted(c)] for c in chances])
    np.testing.assert_allclose(model.predict_proba(data), wanted, rtol=1e-6, atol=1e-9)
    labels = [naive.predict(expected, r, columns, settings) for r in rows]
    assert model.predict(data).tolist() == labels


def compare(seed: int, **overruled: object) -> None:
    """Hold every kernel's tree of one table, and its answers, against the naive one."""
    table = random_table(seed)
    table.settings = replace(table.settings, **overruled)
    expected = naive.fit(
        table.rows, table.labels, table.columns, table.settings, table.weights
    )
    for kernel in KERNELS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(extension.VARIABLE, kernel)
            model = library_model(table)
            try:
                assert_same_tree(model, expected)
                assert_same_answers(model, expected, table)
            except AssertionError as error:
                where = f"seed {seed}, {kernel}, {table.settings}"
                raise AssertionError(f"{where}: {error}") from error


@pytest.mark.parametrize("first", first_fast(range(0, 2000, CHUNK)))
def test_agrees_on_random_tables(first: int) -> None:
    for seed in range(first, first + CHUNK):
        compare(seed)


def test_min_gain_with_gain_ratio() -> None:
    # The best cut by ratio may gain too little where another gains enough.
    for seed in range(2000, 2000 + examples(250)):
        compare(seed, criterion="gain_ratio", min_gain=0.25)


@pytest.mark.parametrize("missing", ["branch", "split", "largest", "node"])
def test_min_weight_fraction_leaf(missing: str) -> None:
    for seed, share in zip(
        range(3000, 3000 + examples(120)), cycle([0.02, 0.1, 0.25, 0.5])
    ):
        compare(seed, min_weight_fraction_leaf=share, missing=missing)


def test_random_tables_are_worth_comparing() -> None:
    """The mixture has what it promises: each feature in many of its trees."""
    tally = Counter()
    for seed in range(0, 2000, 4):
        table = random_table(seed)
        model = library_model(table)
        tree = model.tree
        numeric = np.array([c.is_numeric for c in model.schema.columns])
        split = tree.n_children > 0
        tally["split"] += bool(split.any())
        tally["deep"] += tree.max_depth >= 3
        tally["numeric"] += bool(numeric[tree.column[split]].any())
        tally["categorical"] += not numeric[tree.column[split]].all()
        tally["third branch"] += bool((tree.n_children[split] == 3).any())
        tally["known against missing"] += bool((tree.n_codes == 2).any())
        tally["fractions"] += bool((tree.cases % 1).any())
        tally["weights"] += table.weights is not None
        tally["one row"] += len(table.rows) == 1
        tally["five classes"] += len(model.schema.classes) == 5
        for name in ("criterion", "missing", "unseen"):
            tally[getattr(table.settings, name)] += 1
    scarce = {what: times for what, times in tally.items() if times < 10}
    assert not scarce, tally
    assert tally["split"] > 300


@pytest.mark.parametrize("policy", ["missing", "unseen"])
def test_error_policies_raise_where_the_cell_is(policy: str) -> None:
    cell = None if policy == "missing" else "never seen"
    model = fit_tree({"a": ["p", "q"]}, ["no", "yes"], Recipe(**{policy: "error"}))
    assert model.predict({"a": ["q"]}).tolist() == ["yes"]
    with pytest.raises(DataError, match=f"row 1.*{policy}='error'"):
        model.predict({"a": ["p", cell]})
