"""The engine of databases grows the trees that memory does, a query for each level."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from branchwise import fit_tree
from branchwise.engines.base import Task
from branchwise.engines.sql import SqlTable
from branchwise.grow.grow import grow, recount
from branchwise.recipe import C45, CART, ID3
from selection import first_fast
from sql_sources import (
    difference,
    in_duckdb,
    in_memory,
    in_postgresql,
    in_sqlite,
    random_columns,
    read,
)

REGRESSION = replace(CART, criterion="variance")
RECIPES = {
    "id3": ID3,
    "id3, gaps stop": replace(ID3, missing="node"),
    "c4.5": C45,
    "cart": CART,
    "cart, learned": replace(CART, missing="learned"),
    "cart, surrogates": replace(CART, missing="surrogate"),
    "cart, bins": replace(CART, max_bins=5),
    "cart, heavy leaves": replace(CART, min_weight_fraction_leaf=0.1),
    "regression": REGRESSION,
    "regression, heavy leaves": replace(REGRESSION, min_weight_fraction_leaf=0.2),
    "regression, surrogates": replace(REGRESSION, missing="surrogate"),
    "regression, divided": replace(REGRESSION, missing="split", unseen="split"),
}


def task_of(recipe, weighted=False, **more):
    return Task(
        "y",
        weight="w" if weighted else None,
        ignored=() if weighted else ("w",),
        criterion=recipe.criterion if recipe.is_regression else None,
        weights_are_cases=recipe.weights_are_cases,
        divides=recipe.missing == "split",
        max_bins=recipe.max_bins,
        **more,
    )


def check(place, table, recipe, weighted, **options):
    """Grow a tree in a database and in memory, and count it again."""
    columns, classes, engine, grid = in_memory(table, recipe, weighted)
    wanted = grow(engine, columns, recipe)
    with SqlTable(place, "t", **options).open() as rows:
        plan = rows.learn(task_of(recipe, weighted))
        assert plan.schema.columns == columns
        assert plan.schema.classes == classes
        assert plan.grid == replace(grid, weights=None)
        counting = rows.engine(plan)
        tree = grow(counting, columns, recipe)
        assert difference(tree, wanted) is None
        new_values = recipe.branching == "values"
        again, _ = recount(counting, columns, tree, new_values)
        expected, _ = recount(engine, columns, wanted, new_values)
        assert difference(again, expected) is None


def case(seed, name, most_rows=120):
    """Return a random table and a recipe that fits it."""
    rng = np.random.default_rng(seed)
    recipe = replace(RECIPES[name], max_depth=int(rng.integers(2, 6)))
    columns = random_columns(
        rng,
        int(rng.integers(20, most_rows)),
        0.0 if seed % 4 == 0 else 0.1,
        recipe.is_regression,
    )
    return columns, recipe, bool(seed % 2)


#: In the quick tests one recipe after the other has temporary tables.
IN_TURN = [(name, 1 + at % 2) for at, name in enumerate(RECIPES)]
REST = [pair for pair in product(RECIPES, range(4)) if pair not in IN_TURN]


@pytest.mark.parametrize("which", first_fast([*IN_TURN, *REST], len(IN_TURN)))
def test_sqlite_grows_the_same_trees(which, tmp_path):
    name, seed = which
    columns, recipe, weighted = case(seed, name)
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    check(path, read(path), recipe, weighted, temporary_tables=seed > 1)


@pytest.mark.parametrize(
    "name", first_fast(list(RECIPES)[::2] + list(RECIPES)[1::2], 6)
)
def test_duckdb_grows_the_same_trees(name, tmp_path):
    columns, recipe, weighted = case(sum(map(ord, name)), name, 60)
    path = in_duckdb(columns, tmp_path / "t.duckdb")
    check(path, read(path), replace(recipe, max_depth=3), weighted)


@pytest.mark.slow
def test_duckdb_grows_the_same_trees_with_temporary_tables(tmp_path):
    for seed, name in enumerate(["c4.5", "cart, surrogates", "regression, divided"]):
        columns, recipe, weighted = case(seed + 1, name, 60)
        path = in_duckdb(columns, tmp_path / "t.duckdb")
        small = replace(recipe, max_depth=3)
        check(path, read(path), small, weighted, temporary_tables=True)


@pytest.mark.parametrize("first", first_fast([1, 0, 2, 3]))
def test_postgresql_grows_the_same_trees(postgresql, first, tmp_path):
    for seed, name in list(enumerate(RECIPES))[first::4]:
        columns, recipe, weighted = case(seed, name, 60)
        table = read(in_duckdb(columns, tmp_path / "t.duckdb"))
        in_postgresql(columns, postgresql)
        temporary = bool(seed % 3 == 0)
        check(postgresql, table, recipe, weighted, temporary_tables=temporary)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("temporary", [False, True])
def test_many_tables_in_all_databases(name, temporary, tmp_path, request):
    address = request.getfixturevalue("postgresql")
    for seed in range(100, 112):
        columns, recipe, weighted = case(seed, name, 250)
        duckdb = in_duckdb(columns, tmp_path / "t.duckdb")
        sqlite = in_sqlite(columns, tmp_path / "t.sqlite")
        in_postgresql(columns, address)
        options = {"temporary_tables": temporary}
        check(duckdb, read(duckdb), recipe, weighted, **options)
        check(sqlite, read(sqlite), recipe, weighted, **options)
        check(address, read(duckdb), recipe, weighted, **options)


@pytest.mark.parametrize("temporary", [False, True])
@pytest.mark.parametrize("name", ["id3", "c4.5", "cart, surrogates"])
def test_queries_depend_on_levels_not_on_nodes(name, temporary, tmp_path, monkeypatch):
    columns, recipe, _ = case(3, name, 400)
    recipe = replace(recipe, max_depth=4)
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    with SqlTable(path, "t", temporary_tables=temporary).open() as rows:
        plan = rows.learn(task_of(recipe))
        engine = rows.engine(plan)
        asked = []
        fetch = rows.connection.fetch
        monkeypatch.setattr(
            rows.connection, "fetch", lambda *a: (asked.append(a[0]), fetch(*a))[1]
        )
        tree = grow(engine, plan.schema.columns, recipe)
    assert len(tree.column) > 20
    # Counts; for surrogates those by branch, too; totals where they cannot be derived.
    most = {"id3": 1, "c4.5": 2, "cart, surrogates": 3}[name]
    assert len(asked) <= 1 + most * 4
    if name == "id3":
        assert len(asked) == 1 + 4


def chain_of(n_rows):
    """Return a table whose tree takes away one row after the other."""
    return {
        "x": [float(row) for row in range(n_rows)],
        "y": ["a"] * 3 + ["yes" if row % 2 else "no" for row in range(3, n_rows)],
    }


@pytest.mark.parametrize("temporary", first_fast([False, True]))
def test_deep_trees_in_sqlite(temporary, tmp_path):
    path = in_sqlite(chain_of(130), tmp_path / "t.sqlite")
    columns, _, engine, _ = in_memory(read(path), ID3)
    wanted = grow(engine, columns, ID3)
    assert wanted.depth.max() > 120
    with SqlTable(path, "t", temporary_tables=temporary).open() as rows:
        plan = rows.learn(Task("y"))
        assert difference(grow(rows.engine(plan), columns, ID3), wanted) is None


def test_deep_trees_in_postgresql(postgresql):
    in_postgresql(chain_of(130), postgresql)
    with SqlTable(postgresql, "t").open() as rows:
        plan = rows.learn(Task("y"))
        tree = grow(rows.engine(plan), plan.schema.columns, ID3)
    assert tree.depth.max() > 120


@pytest.mark.slow
def test_deep_trees_in_duckdb(tmp_path):
    path = in_duckdb(chain_of(130), tmp_path / "t.duckdb")
    columns, _, engine, _ = in_memory(read(path), ID3)
    wanted = grow(engine, columns, ID3)
    with SqlTable(path, "t").open() as rows:
        plan = rows.learn(Task("y"))
        assert difference(grow(rows.engine(plan), columns, ID3), wanted) is None


@pytest.mark.parametrize("seeds", first_fast([range(2), range(2, 20)]))
@pytest.mark.parametrize("put", [in_sqlite, in_duckdb])
def test_where_only_missing_numbers_go_on(put, seeds, tmp_path):
    """Cuts part the classes, so that both sides end and the gaps alone are open."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = 40
        x = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 6, n))
        columns = {
            "a": rng.choice(["p", "q", None], n).tolist(),
            "b": rng.choice(["u", "v"], n).tolist(),
            "x": [None if number != number else number for number in x.tolist()],
            "y": np.where((x > 2) | (rng.random(n) < 0.5) & (x != x), 1, 0).tolist(),
        }
        place = put(columns, tmp_path / f"{seed}")
        for recipe in (ID3, CART, C45):
            wanted = fit_tree(columns, "y", recipe)
            assert fit_tree(SqlTable(place, "t"), "y", recipe) == wanted


@pytest.mark.parametrize(
    "choice",
    [
        {"class_weight": "balanced"},
        {"priors": {"no": 0.2, "yes": 0.4, "it's": 0.4}},
    ],
)
def test_classes_weigh_as_they_do_in_memory(choice, tmp_path):
    columns, _, _ = case(5, "cart")
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    how = {"sample_weight": "w", **choice}
    expected = fit_tree(read(path), "y", CART, **how)
    assert fit_tree(SqlTable(path, "t"), "y", CART, **how).tree == expected.tree


def test_rows_to_prune_with_may_be_in_the_database(tmp_path):
    columns, _, _ = case(5, "cart")
    first = {name: cells[::2] for name, cells in columns.items()}
    second = {name: cells[1::2] for name, cells in columns.items()}
    paths = [
        in_sqlite(part, tmp_path / f"{at}.sqlite")
        for at, part in enumerate((first, second))
    ]
    recipe = replace(ID3, pruning="reduced-error")
    tables = [read(path) for path in paths]
    how = {"ignore": ["w"]}
    expected = fit_tree(tables[0], "y", recipe, validation=tables[1], **how)
    sources = [SqlTable(path, "t") for path in paths]
    model = fit_tree(sources[0], "y", recipe, validation=sources[1], **how)
    assert model.to_bytes() == expected.to_bytes()
