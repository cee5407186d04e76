"""Metadata of models, statistics of their columns, and models without unused ones."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import branchwise
from branchwise import (
    CARTClassifier,
    Model,
    ModelFileError,
    ParameterError,
    RandomForestClassifier,
    fit_tree,
    load,
)
from branchwise.data.descriptions import ColumnStatistics
from branchwise.engines.sql import SqlTable
from branchwise.recipe import CART, ID3


def rows():
    table = pd.DataFrame(
        {
            "x": [-0.0, 3.5, None, 10.0, 2.0, 1e300],
            "kind": ["a", None, "b", "a", None, "c"],
            "flag": [True, False, True, True, False, False],
            "empty": [None] * 6,
            "y": ["p", "q", "p", "p", "q", "q"],
        }
    )
    return table.astype({"kind": object, "empty": object})


STATISTICS = {
    "x": ColumnStatistics(5, 1, 0.0, 1e300),
    "kind": ColumnStatistics(4, 2),
    "flag": ColumnStatistics(6, 0),
    "empty": ColumnStatistics(0, 6),
}


def statistics_of(model):
    return {column.name: column.statistics for column in model.schema.columns}


@pytest.fixture(name="model")
def fitted():
    return fit_tree(rows(), "y", ID3)


def test_every_engine_finds_the_same_statistics(model, tmp_path):
    assert statistics_of(model) == STATISTICS
    assert np.signbit(statistics_of(model)["x"].low) == 0
    table = rows()
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=2)
    chunked = fit_tree(tmp_path / "rows.parquet", "y", ID3, engine="chunked")
    assert chunked == model
    shuffled = fit_tree(table.sample(frac=1, random_state=0), "y", ID3)
    assert shuffled == model


def test_databases_count_rows_and_not_distinct_values(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = rows().drop(columns=["empty", "flag"])
    with duckdb.connect(tmp_path / "rows.duckdb") as database:
        database.register("given", table)
        database.execute("CREATE TABLE rows AS SELECT * FROM given")
    source = SqlTable(f"duckdb:///{tmp_path}/rows.duckdb", "rows")
    assert fit_tree(source, "y", ID3) == fit_tree(table, "y", ID3)


def test_the_version_is_kept_and_the_rest_is_given(model, tmp_path):
    assert repr(model.metadata) == f"Metadata(branchwise={branchwise.__version__!r})"
    named = model.with_metadata(
        name="Loans", notes="All of 2025.\nWithout staff.", date=dt.date(2026, 3, 31)
    )
    named = named.with_metadata(data_hash="sha256:" + "0" * 64)
    assert model.metadata.name is None  # it has not changed
    assert named.metadata.given == {
        "branchwise": branchwise.__version__,
        "name": "Loans",
        "notes": "All of 2025.\nWithout staff.",
        "date": "2026-03-31",
        "data_hash": "sha256:" + "0" * 64,
    }
    named.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.metadata == named.metadata
    assert loaded.to_bytes() == named.to_bytes()
    assert named.with_metadata(notes=None).metadata.notes is None
    others = (
        named.drop_unused(),
        named.collapse_nodes(0),
        named.merge_same_leaves(),
        named.prune("cost-complexity", ccp_alpha=0.1),
        pickle.loads(pickle.dumps(named)),
    )
    for other in others:
        assert other.metadata == named.metadata
        assert statistics_of(other)["kind"] == STATISTICS["kind"] or (
            len(other.schema.columns) == 1
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": ""}, "name must be a text of 1 to 1,000 characters, or None"),
        ({"name": "a\nb"}, "name must be one line without control characters"),
        ({"name": 5}, "name must be a text .* Got 5"),
        ({"notes": "x" * 100_001}, "notes must be a text .* Got 100,001 characters"),
        ({"date": "31.3.2026"}, "date must be a date, .* such as 2026-03-31"),
        ({"data_hash": "a\tb"}, "data_hash must be one line"),
    ],
)
def test_metadata_that_cannot_be(model, given, message):
    with pytest.raises(ParameterError, match=message):
        model.with_metadata(**given)


def changed(model, change):
    document = json.loads(model.to_bytes())
    change(document)
    return json.dumps(document).encode()


def in_statistics(**values):
    def change(document):
        document["schema"]["columns"][0]["statistics"] |= values

    return change


def without_high(document):
    del document["schema"]["columns"][0]["statistics"]["high"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(metadata=[]), "'metadata' must be an object"),
        (lambda d: d["metadata"].update(author="x"), 'unknown field "author"'),
        (lambda d: d["metadata"].update(name=5), "'name' of 'metadata' must be text"),
        (lambda d: d["metadata"].update(name=None), "must be text, not null"),
        (lambda d: d["metadata"].update(name=""), "in 'metadata', name must be a text"),
        (lambda d: d["metadata"].update(date="x"), "in 'metadata', date must be a"),
        (in_statistics(mean=3), 'of column 0 has the unknown field "mean"'),
        (
            in_statistics(known=-1),
            "'known' of 'statistics' of column 0 must be a whole",
        ),
        (in_statistics(known=1.5), "must be a whole number from 0, not 1.5"),
        (in_statistics(known=True), "must be a whole number from 0, not true"),
        (in_statistics(missing=0), "column 0 contradicts 'has_missing'"),
        (in_statistics(low="a"), "'low' of 'statistics' .* must be a finite number"),
        (in_statistics(high=-3), "has a 'low' above its 'high'"),
        (in_statistics(known=0), "must have 'low' and 'high' if the column is numeric"),
        (without_high, "must have 'low' and 'high'"),
    ],
)
def test_files_with_other_metadata_are_refused(model, change, message):
    with pytest.raises(ModelFileError, match=message):
        Model.from_bytes(changed(model, change))


def test_files_of_earlier_versions_open(model):
    def as_before(document):
        del document["metadata"]
        for column in document["schema"]["columns"]:
            del column["statistics"]

    earlier = Model.from_bytes(changed(model, as_before))
    assert repr(earlier.metadata) == "Metadata()"
    assert set(statistics_of(earlier).values()) == {None}
    assert b"metadata" not in earlier.to_bytes()
    assert b"statistics" not in earlier.to_bytes()
    assert earlier.with_metadata(name="old").metadata.given == {"name": "old"}
    counts = earlier.check_table(rows())["kind"]
    assert vars(counts) == {"missing": 2, "unseen": 0, "below": 0, "above": 0}


def wide_rows(n=80):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"c{at}": rng.normal(size=n) for at in range(6)})
    table["constant"] = 1.0
    table["d"] = rng.choice(["u", "v"], n)
    return table, np.where((table["c3"] > 0) & (table["d"] == "u"), "p", "q")


def test_unused_columns_are_dropped():
    table, labels = wide_rows()
    surrogates = replace(CART, missing="surrogate", max_depth=2)
    for recipe in (CART, surrogates):
        model = fit_tree(table, labels, recipe)
        smaller = model.drop_unused()
        used = [model.schema.names[at] for at in model.used_columns]
        assert smaller.schema.names == used
        assert len(smaller.to_bytes()) < len(model.to_bytes())
        assert np.array_equal(smaller.predict_proba(table), model.predict_proba(table))
        assert Model.from_bytes(smaller.to_bytes()) == smaller
        assert smaller.to_text() == model.to_text()
        assert smaller.drop_unused() == smaller


def test_a_tree_without_splits_keeps_a_column():
    table, labels = wide_rows()
    leaf = fit_tree(table, labels, replace(CART, max_depth=0)).drop_unused()
    assert leaf.schema.names == ["c0"]
    assert Model.from_bytes(leaf.to_bytes()) == leaf


def test_ensembles_have_metadata_and_drop_columns():
    table, labels = wide_rows()
    forest = RandomForestClassifier(n_estimators=3, max_depth=1)
    ensemble = forest.fit(table, labels).model_
    assert ensemble.metadata.branchwise == branchwise.__version__
    assert ensemble[0].metadata == ensemble.metadata
    smaller = ensemble.with_metadata(name="Small").drop_unused()
    assert len(smaller.schema.columns) < len(ensemble.schema.columns)
    loaded = type(smaller).from_bytes(smaller.to_bytes())
    assert loaded.metadata.name == "Small"
    for other in (smaller, loaded):
        assert np.array_equal(other.predict_proba(table), ensemble.predict_proba(table))


def test_arrays_have_only_the_columns_that_are_left():
    table, labels = wide_rows()
    numbers = table.drop(columns="d").to_numpy()
    model = CARTClassifier(max_depth=1).fit(numbers, labels).model_
    smaller = model.drop_unused()
    own = numbers[:, model.used_columns]
    assert np.array_equal(smaller.predict(own), model.predict(numbers))


def test_the_range_of_dates_is_the_same_in_every_engine(tmp_path):
    days = pd.date_range("2024-01-01", periods=8, freq="D")
    times = pd.Series(days).where(pd.Series(range(8)) < 6, days + pd.Timedelta("90s"))
    table = pd.DataFrame({"day": days, "time": times, "y": list("ppppqqqq")})
    table.loc[1, "day"] = None
    model = fit_tree(table, "y", CART)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=3)
    chunked = fit_tree(tmp_path / "rows.parquet", "y", CART, engine="chunked")
    assert statistics_of(chunked) == statistics_of(model)
    first = (days[0] - pd.Timestamp(0)).days
    assert statistics_of(model)["day"] == ColumnStatistics(7, 1, first, first + 7)
    check = model.check_table(table.assign(day=days + pd.Timedelta(days=5)))
    (note,) = check.notes()
    assert note.startswith(
        "column 'day': 5 of 8 values outside of 2024-01-01 to 2024-01"
    )
