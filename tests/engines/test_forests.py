"""Forests from Dask and files: the bytes of those in memory, or stated samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    BoostedClassifier,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise.engines import subsamples
from branchwise.engines.chunked import ChunkedTable
from branchwise.ensemble.fit import fit_ensemble
from branchwise.ensemble.sampling import times_drawn
from branchwise.files.dataset import StreamedTable
from branchwise.files.table_paths import files_of
from branchwise.grow.draws import draws
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from engine_tables import in_parts
from forest_cases import CASES, columns_of, fitted, table_of
from selection import first_fast

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def dask_table(table: pd.DataFrame, seed: int = 0) -> Any:
    dd = pytest.importorskip("dask.dataframe")
    parts = in_parts(np.random.default_rng(seed), table)
    return dd.from_map(lambda part: part, parts, meta=table.iloc[:0])


@pytest.fixture
def no_client() -> Iterator[None]:
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="threads"):
        yield


@pytest.mark.parametrize("case", first_fast(list(CASES), n_fast=3))
def test_dask_gives_the_bytes_of_a_table_in_memory(client, case):
    table = columns_of(case, table_of())
    found = fitted(case, dask_table(table)).model_.to_bytes()
    assert found == fitted(case, table).model_.to_bytes()


def test_dask_without_a_client(no_client):
    table = columns_of("forest", table_of())
    found = fitted("forest", dask_table(table, seed=1))
    expected = fitted("forest", table)
    assert found.model_.to_bytes() == expected.model_.to_bytes()
    assert found.model_.out_of_bag().score == expected.model_.out_of_bag().score


def test_trees_are_grown_by_the_workers(no_client, monkeypatch):
    from branchwise.ensemble import forest

    shares: list[list[int]] = []
    here: list[int] = []
    grow = forest.grow_trees

    def grow_share(samples: Any, numbers: Any, recipe: Any) -> Any:
        shares.append(list(numbers))
        return grow(samples.for_recipe(recipe), numbers)

    monkeypatch.setattr(forest, "grow_share", grow_share)
    monkeypatch.setattr("branchwise.ensemble.fit.grow_trees", here.append)
    done: list[int] = []
    recipe = RandomForestClassifier(n_estimators=12).recipe
    model = fit_ensemble(
        dask_table(columns_of("forest", table_of())),
        "bought",
        recipe,
        progress=done.append,
    )
    assert len(model) == 12
    assert sorted(each for share in shares for each in share) == list(range(12))
    assert len(shares) > 1
    assert not here
    assert done[-1] == 12
    assert done == sorted(done)


# ---- files ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", list(CASES))
def test_files_that_fit_in_memory_give_the_same_bytes(tmp_path, case):
    table = columns_of(case, table_of(200))
    for at, part in enumerate(in_parts(np.random.default_rng(2), table)):
        part.to_parquet(tmp_path / f"{at}.parquet")
    found = fitted(case, str(tmp_path)).model_.to_bytes()
    assert found == fitted(case, table).model_.to_bytes()


def written(table: pd.DataFrame, path: Path) -> str:
    """Write a table with rows that occur several times."""
    pd.concat([table, table.iloc[::3]]).to_csv(path, index=False)
    return str(path)


def subsampled(
    path: str, recipe: EnsembleRecipe, chunk_rows: int = 10_000, **how: Any
) -> Any:
    """Grow a forest from more rows than fit in memory."""
    table = StreamedTable(files_of(path), chunk_rows=chunk_rows)
    return fit_ensemble(ChunkedTable(table, most_rows=150), "bought", recipe, **how)


FOREST = RandomForestClassifier(n_estimators=6).recipe


@pytest.mark.parametrize(
    ("recipe", "how"),
    [
        (FOREST, {}),
        (replace(FOREST, bootstrap=False, max_samples=60), {"sample_weight": "weight"}),
        (replace(FOREST, balanced_subsample=True), {"n_jobs": 2}),
    ],
    ids=["bootstrap", "without replacement", "balanced"],
)
def test_samples_depend_on_no_chunks_and_no_order_of_rows(
    tmp_path, monkeypatch, recipe, how
):
    monkeypatch.setattr(subsamples, "_MOST_HASHES", 100)
    table = columns_of("balanced samples", table_of())
    if "sample_weight" not in how:
        table = table.drop(columns="weight")
    one = subsampled(written(table, tmp_path / "1.csv"), recipe, **how)
    shuffled = table.iloc[::-1]
    again = pd.concat([table.iloc[::3], shuffled]).sample(frac=1, random_state=0)
    again.to_csv(tmp_path / "2.csv", index=False)
    monkeypatch.setattr(subsamples, "_MOST_HASHES", 1 << 24)
    monkeypatch.setattr(subsamples, "_ROWS_AT_ONCE", 5)
    monkeypatch.setattr(subsamples, "MOST_SAMPLES", 4)
    monkeypatch.setattr("branchwise.ensemble.forest.MOST_SAMPLES", 4)
    other = subsampled(str(tmp_path / "2.csv"), recipe, chunk_rows=37, **how)
    assert one.to_bytes() == other.to_bytes()
    assert one.out_of_bag().score == other.out_of_bag().score


def test_each_tree_has_a_sample_of_its_own(tmp_path):
    done: list[int] = []
    table = columns_of("forest", table_of(1200))
    path = written(table, tmp_path / "rows.csv")
    forest = subsampled(path, FOREST, progress=done.append)
    sizes = np.array([tree.cases[0] for tree in forest.trees])
    assert forest.recipe.max_samples == 150
    assert abs(sizes.mean() - 150) < 4 * math.sqrt(150 / len(sizes))
    assert len({tree.cases.tobytes() for tree in forest.trees}) == len(sizes)
    assert done == list(range(1, len(sizes) + 1))
    # About as many rows are kept as a sample has; most of them are in no tree.
    samples = forest.samples
    assert abs(samples.training.data.n_rows - 150) < 50
    assert 0.7 < forest.out_of_bag().score <= 1.0
    share = np.mean([samples.out_of_bag(tree).mean() for tree in range(6)])
    assert abs(share - math.exp(-150 / 1600)) < 0.1


def test_what_is_out_of_bag_was_not_grown_from(tmp_path):
    """A tree that is told every row's own class is right only about its own rows."""
    rng = np.random.default_rng(0)
    label = rng.choice(["no", "yes"], 2000)
    table = pd.DataFrame({"number": np.arange(2000.0), "bought": label})
    path = written(table.iloc[rng.permutation(2000)], tmp_path / "rows.csv")
    recipe = replace(FOREST, max_samples=120, max_features=None)
    forest = subsampled(path, recipe)
    data, samples = forest.samples.training.data, forest.samples
    for tree, walker in enumerate(forest.walkers):
        right = walker.classify(data) == samples.training.target
        inside = ~samples.out_of_bag(tree)
        assert inside.any()
        assert right[inside].mean() > 0.9
        assert right[~inside].mean() < 0.75


def test_columns_are_chosen_out_of_bag(tmp_path):
    """Files larger than memory: both sides of an interaction, among other columns."""
    rng = np.random.default_rng(4)
    letters = rng.choice(list("abcd"), (2000, 9))
    same = (letters[:, 0] < "c") == (letters[:, 1] < "c")
    table = pd.DataFrame(letters, columns=list("ABCDEFGHI")).assign(same=same)
    path = str(tmp_path / "rows.parquet")
    table.to_parquet(path)
    sizes = {"n_estimators": 55, "max_features": "oob"}
    seen: list[int] = []
    recipe = RandomForestClassifier(**sizes).recipe
    source = ChunkedTable(StreamedTable(files_of(path)), most_rows=400)
    forest = fit_ensemble(source, "same", recipe, progress=seen.append)
    number = forest.recipe.max_features
    assert number > 3
    assert seen == [51, 52, 53, 54, 55]
    given = replace(recipe, max_features=number)
    source = ChunkedTable(StreamedTable(files_of(path)), most_rows=400)
    assert fit_ensemble(source, "same", given).to_bytes() == forest.to_bytes()


def test_numbers_in_bins(tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"number": rng.normal(size=1000), "noise": rng.random(1000)})
    table["bought"] = np.where(table["number"] > 0.25, "yes", "no")
    table.to_parquet(tmp_path / "rows.parquet")
    forest = subsampled(
        str(tmp_path / "rows.parquet"),
        replace(FOREST, tree=replace(FOREST.tree, max_bins=16)),
    )
    used = [tree.threshold[tree.column == 0] for tree in forest.trees]
    assert len(np.unique(np.concatenate(used))) <= 15
    assert (forest.predict(table[["number", "noise"]]) == table["bought"]).mean() > 0.9


def test_poisson_draws_have_their_mean_and_variance():
    keys = draws(np.arange(200_000, dtype=np.uint64), np.zeros(1, dtype=np.uint64))
    times = times_drawn(keys, FOREST, 3, 0.4)
    assert abs(times.mean() - 0.4) < 0.01
    assert abs(times.var() - 0.4) < 0.01
    once = times_drawn(keys, replace(FOREST, bootstrap=False), 3, 0.4)
    assert set(once.tolist()) == {0, 1}
    assert abs(once.mean() - 0.4) < 0.01


def test_quantiles_of_a_forest_from_files(tmp_path):
    table = columns_of("regression", table_of(600)).drop(columns="weight")
    table.to_parquet(tmp_path / "rows.parquet")
    source = ChunkedTable(str(tmp_path), most_rows=200)
    recipe = RandomForestRegressor(n_estimators=5).recipe
    forest = fit_ensemble(source, "spent", recipe)
    X = table.drop(columns="spent")
    middle = forest.predict_quantiles(X, 0.5)
    assert np.corrcoef(middle, table["spent"])[0, 1] > 0.5


# ---- what is refused -----------------------------------------------------------------


def test_boosting_is_refused_where_rows_do_not_fit(tmp_path):
    table = columns_of("boosted", table_of())
    path = written(table, tmp_path / "rows.csv")
    recipe = BoostedClassifier().recipe
    message = r"Boosting needs all rows in memory.*has 400 rows.*most_rows allows 150"
    with pytest.raises(ParameterError, match=message):
        subsampled(path, recipe)


def test_samples_beyond_the_memory_are_refused(tmp_path):
    table = columns_of("forest", table_of())
    path = written(table, tmp_path / "rows.csv")
    message = (
        r"max_samples must be at most most_rows, 150.*Got 0.5, which is 200 of 400"
    )
    with pytest.raises(ParameterError, match=message):
        subsampled(path, replace(FOREST, max_samples=0.5))


def test_empty_samples_are_refused(tmp_path):
    table = columns_of("forest", table_of())
    path = written(table, tmp_path / "rows.csv")
    recipe = replace(FOREST, max_samples=1, n_estimators=20)
    with pytest.raises(ParameterError, match=r"max_samples must be larger: .* empty"):
        subsampled(path, recipe)


def test_databases_are_refused_by_name(tmp_path):
    import sqlite3

    from branchwise.engines.sql import SqlTable

    path = tmp_path / "rows.db"
    table = columns_of("forest", table_of(20))
    with sqlite3.connect(path) as connection:
        table.to_sql("sales", connection, index=False)
    connection.close()
    source = SqlTable(f"sqlite:///{path}", "sales")
    with pytest.raises(ParameterError, match=r"engine='sql' grows single trees.*sales"):
        RandomForestClassifier().fit(source, "bought")


def test_rows_elsewhere_need_the_name_of_the_target():
    table = columns_of("forest", table_of(20))
    with pytest.raises(ParameterError, match="target must be the name of a column"):
        fit_ensemble(dask_table(table), [1, 2], FOREST)


def test_engines_are_checked():
    table = columns_of("forest", table_of(20))
    with pytest.raises(ParameterError, match="engine='dask' is for Dask DataFrames"):
        fit_ensemble(table, "bought", FOREST, engine="dask")
