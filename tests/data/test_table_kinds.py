"""The same rows give the same model, whatever holds them and in whatever order.

Every kind of table is given a column of text that it stores in its own way, as a
dictionary in order of appearance, as categories or as plain text.
"""

from __future__ import annotations

import datetime as dt
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from branchwise import (
    CARTClassifier,
    DataError,
    Model,
    fit_tree,
    read_table,
)
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.files.dataset import StreamedTable
from branchwise.recipe import CART, ID3
from command_line import output, run
from sql_sources import in_sqlite

WORDS, LABELS = list("bdbcb"), list("rqppq")
ORDERS = [[0, 1, 2, 3, 4], [2, 3, 0, 4, 1], [4, 3, 2, 1, 0]]
DECLARED = ["d", "z", "b", "c"]


def dictionary(words):
    return pa.array(words).dictionary_encode()


def chunked(words):
    """Return a dictionary for each row."""
    return pa.chunked_array([dictionary([word]) for word in words])


def with_unused(words):
    values = [*dict.fromkeys(words), "never"]
    codes = pa.array([values.index(word) for word in words], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, values)


def arrow_table(words, labels, column=dictionary):
    return pa.table({"c": column(words), "y": labels})


TABLES = {
    "list": lambda w, y: {"c": w, "y": y},
    "rows": lambda w, y: [{"c": a, "y": b} for a, b in zip(w, y, strict=True)],
    "arrow": arrow_table,
    "arrow, chunks": lambda w, y: arrow_table(w, y, chunked),
    "arrow, unused values": lambda w, y: arrow_table(w, y, with_unused),
    "arrow text": lambda w, y: arrow_table(w, y, pa.array),
    "pandas": lambda w, y: pd.DataFrame({"c": w, "y": y}),
    "pandas category": lambda w, y: pd.DataFrame(
        {"c": pd.Series(w).astype("category"), "y": y}
    ),
    "pandas on Arrow": lambda w, y: pd.DataFrame(
        {"c": pd.Series(dictionary(w), dtype=pd.ArrowDtype(dictionary(w).type)), "y": y}
    ),
    "polars": lambda w, y: pl.DataFrame({"c": w, "y": y}),
    "polars categorical": lambda w, y: pl.DataFrame(
        {"c": pl.Series(w, dtype=pl.Categorical), "y": y}
    ),
}
DECLARING = {
    "pandas": lambda w, y: pd.DataFrame({"c": pd.Categorical(w, DECLARED), "y": y}),
}


def rows(order):
    return [WORDS[at] for at in order], [LABELS[at] for at in order]


def models(make, recipe, **options):
    return {
        fit_tree(make(*rows(order)), "y", recipe, **options).to_bytes()
        for order in ORDERS
    }


@pytest.mark.parametrize("recipe", [ID3, CART], ids=["id3", "cart"])
def test_the_order_of_rows_changes_nothing(recipe):
    expected = models(TABLES["list"], recipe)
    assert len(expected) == 1
    for name, make in TABLES.items():
        assert models(make, recipe) == expected, name


@pytest.mark.parametrize("recipe", [ID3, CART], ids=["id3", "cart"])
def test_declared_values_keep_their_order(recipe):
    expected = models(TABLES["list"], recipe, categories={"c": DECLARED})
    assert len(expected) == 1
    for name, make in DECLARING.items():
        assert models(make, recipe) == expected, name


def test_predictions_do_not_depend_on_the_order_of_rows():
    for column in (dictionary, chunked, with_unused):
        found = set()
        for order in ORDERS:
            words, labels = rows(order)
            X = pa.table({"c": column(words)})
            tree = CARTClassifier(max_depth=1).fit(X, labels)
            found.add(tuple(tree.predict({"c": WORDS})))
        assert len(found) == 1


WRITERS = {
    "parquet": lambda table, path: parquet.write_table(table, path, row_group_size=2),
    "feather": lambda table, path: feather.write_feather(table, path, chunksize=2),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("column", [dictionary, with_unused, pa.array])
def test_files_do_not_depend_on_the_order_of_rows(tmp_path, form, column):
    (expected,) = models(TABLES["list"], CART)
    path = tmp_path / f"x.{form}"
    printed = set()
    for order in ORDERS:
        WRITERS[form](arrow_table(*rows(order), column), path)
        assert fit_tree(read_table(path), "y", CART).to_bytes() == expected
        for chunk_rows in (1, 2, 100):
            parts = StreamedTable((str(path),), chunk_rows=chunk_rows)
            made = fit_tree(ChunkedTable(parts), "y", CART)
            assert made.to_bytes() == expected
        printed.add(output("fit", path, "-t", "y", "--algorithm", "cart"))
    assert len(printed) == 1


# Of Dask, which reads an index of Parquet files in its own way.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_dask_does_not_depend_on_the_order_of_rows(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    from branchwise.engines.dask.cluster import parquet_frame
    from branchwise.engines.dask.source import DaskTable

    (expected,) = models(TABLES["list"], CART)
    for order in ORDERS:
        table = TABLES["pandas"](*rows(order))
        parts = dd.from_pandas(table, npartitions=3)
        # Each partition has categories of its own.
        parts["c"] = parts["c"].map_partitions(
            lambda part: part.astype("category"), meta=("c", "category")
        )
        assert fit_tree(DaskTable(parts), "y", CART).to_bytes() == expected
        path = tmp_path / "x.parquet"
        WRITERS["parquet"](arrow_table(*rows(order), with_unused), path)
        stored = DaskTable(parquet_frame([str(path)], ["c", "y"], ()))
        assert fit_tree(stored, "y", CART).to_bytes() == expected


def test_declared_values_survive_a_file(tmp_path):
    path = tmp_path / "x.arff"
    path.write_text(
        "@relation r\n@attribute c {d, z, b, c}\n@attribute y {p, q, r}\n@data\n"
        + "".join(f"{word},{y}\n" for word, y in zip(WORDS, LABELS, strict=True))
    )
    (expected,) = models(TABLES["list"], CART, categories={"c": DECLARED})
    assert fit_tree(read_table(path), "y", CART).to_bytes() == expected
    for form, write in WRITERS.items():
        again = tmp_path / f"x.{form}"
        write(read_table(path), again)
        assert fit_tree(read_table(again), "y", CART).to_bytes() == expected
        assert fit_tree(ChunkedTable(again), "y", CART).to_bytes() == expected


# ---- dates -------------------------------------------------------------------------

DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)]
MOMENTS = [day and dt.datetime.combine(day, dt.time(7)) for day in DAYS]
TIMES = {
    "dates": DAYS,
    "moments": MOMENTS,
    "times of day": [moment and moment.time() for moment in MOMENTS],
    "durations": [dt.timedelta(hours=1), None, None, dt.timedelta(1)],
}
ANSWERS = ["p", "q", "q", "p"]


def refusal(source, **options):
    with pytest.raises(DataError) as caught:
        fit_tree(source, "y", **options)
    return str(caught.value)


def check_refusal(message):
    assert "Column 'day' holds times or durations (" in message
    assert (
        "branchwise takes dates, text, categories, booleans and numbers. Turn it into "
        "a number (such as hours or days) or into text, or leave the column out."
    ) in message


DATES = {name: cells for name, cells in TIMES.items() if name in ("dates", "moments")}
OTHERS = {name: cells for name, cells in TIMES.items() if name not in DATES}


@pytest.mark.parametrize("cells", DATES.values(), ids=DATES)
@pytest.mark.parametrize("form", WRITERS)
def test_dates_of_files_are_dates(tmp_path, form, cells):
    table = pa.table({"day": cells, "y": ANSWERS})
    expected = fit_tree({"day": cells, "y": ANSWERS}, "y").to_bytes()
    path = tmp_path / f"days.{form}"
    WRITERS[form](table, path)
    stored = pa.table({"day": pa.array(cells).dictionary_encode(), "y": ANSWERS})
    sources = [table, stored, pl.from_arrow(table), read_table(path)]
    for source in [*sources, path, ChunkedTable(path)]:
        assert fit_tree(source, "y").to_bytes() == expected
    assert "date  " in output("schema", path, "-t", "y")
    text = tmp_path / "text.json"
    output("fit", path, "-t", "y", "--categorical", "day", "-o", text)
    assert Model.from_bytes(text.read_bytes()).schema.columns[0].kind == "categorical"


@pytest.mark.parametrize("cells", OTHERS.values(), ids=OTHERS)
def test_times_and_durations_of_tables_are_refused(cells):
    table = pa.table({"day": cells, "y": ANSWERS})
    stored = pa.table({"day": pa.array(cells).dictionary_encode(), "y": ANSWERS})
    for X in (table, stored, pl.from_arrow(table)):
        check_refusal(refusal(X))
    with pytest.raises(DataError, match=r"Column 'day' h.*leave the column out"):
        fit_tree({"day": cells, "y": ANSWERS}, "y")


@pytest.mark.parametrize("cells", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("form", WRITERS)
def test_times_and_durations_of_files_are_refused(tmp_path, form, cells):
    path = tmp_path / f"days.{form}"
    WRITERS[form](pa.table({"day": cells, "y": ANSWERS}), path)
    check_refusal(refusal(read_table(path)))
    check_refusal(refusal(ChunkedTable(path)))
    code, _, complaint = run("fit", path, "-t", "y")
    assert code == 1
    check_refusal(complaint)
    assert "unusable" in output("schema", path, "-t", "y")
    output("fit", path, "-t", "y", "--categorical", "day")


def test_dates_of_workbooks_and_databases(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    expected = fit_tree({"day": DAYS, "y": ANSWERS}, "y").to_bytes()
    book = openpyxl.Workbook()
    for row in zip(["day", *DAYS], ["y", *ANSWERS], strict=True):
        book.active.append(row)
    book.save(tmp_path / "days.xlsx")
    assert fit_tree(read_table(tmp_path / "days.xlsx"), "y").to_bytes() == expected
    path = str(tmp_path / "days.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("create table t (day date, y varchar)")
        for row in zip(DAYS, ANSWERS, strict=True):
            connection.execute("insert into t values (?, ?)", row)
    assert fit_tree(read_table(path), "y").to_bytes() == expected
    assert fit_tree(SqlTable(path, "t"), "y").to_bytes() == expected
    # SQLite has no type for dates: their text is read as in CSV, but by the engine.
    path = str(tmp_path / "days.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (day date, y text)")
        texts = [None if day is None else day.isoformat() for day in DAYS]
        rows = zip(texts, ANSWERS, strict=True)
        connection.executemany("insert into t values (?, ?)", rows)
    connection.close()
    assert fit_tree(read_table(path), "y").to_bytes() == expected
    model = fit_tree(SqlTable(path, "t"), "y")
    assert model.schema.columns[0].kind == "categorical"


def test_dates_are_written_beside_predictions(tmp_path):
    path = tmp_path / "days.parquet"
    parquet.write_table(pa.table({"day": DAYS, "x": [1, 2, 2, 1], "y": ANSWERS}), path)
    model = tmp_path / "m.json"
    output("fit", path, "-t", "y", "--ignore", "day", "-o", model)
    for engine in ("memory", "chunked"):
        lines = output(
            "predict", model, path, "--engine", engine, "--keep"
        ).splitlines()
        assert lines[1].startswith("2024-01-01,1,")


def test_text_of_csv_that_is_dates_is_read_as_such(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("day,y\n2024-01-01,p\n2024-01-02,q\n")
    assert fit_tree(read_table(path), "y").schema.columns[0].date is not None
    table = read_table(path, text_columns=["day"])
    assert fit_tree(table, "y").schema.columns[0].kind == "categorical"


def test_numbers_in_dictionaries_are_sorted():
    numbers = pa.array([3, 1, 2, 1]).dictionary_encode()
    model = fit_tree(pa.table({"c": numbers}), np.array([0, 1, 0, 1]))
    assert model.schema.columns[0].categories == (1, 2, 3)


# ---- ordered categories -------------------------------------------------------------

ORDERED = pd.DataFrame(
    {"c": pd.Categorical(WORDS, ["d", "b", "c"], ordered=True), "y": LABELS}
)


def test_ordered_categories_are_the_same_wherever_the_table_is(tmp_path):
    order = ["d", "b", "c"]
    path = tmp_path / "x.parquet"
    ORDERED.to_parquet(path)
    plain = pd.DataFrame({"c": WORDS, "y": LABELS})
    enum = pl.DataFrame({"c": pl.Series(WORDS, dtype=pl.Enum(order)), "y": LABELS})
    enum.write_parquet(tmp_path / "enum.parquet")
    expected = fit_tree(ORDERED, "y", CART).to_bytes()
    tables = [enum, pa.Table.from_pandas(ORDERED), ChunkedTable(path), path]
    for table in [*tables, tmp_path / "enum.parquet"]:
        assert fit_tree(table, "y", CART).to_bytes() == expected
    assert fit_tree(plain, "y", CART, order={"c": order}).to_bytes() == expected
    database = in_sqlite(plain.to_dict("list"), tmp_path / "t.sqlite")
    plain.to_csv(tmp_path / "t.csv", index=False)
    for source in (SqlTable(database, "t"), ChunkedTable(tmp_path / "t.csv")):
        model = fit_tree(source, "y", CART, order={"c": order})
        assert model.to_bytes() == expected


def test_a_branch_for_each_value_keeps_no_order_to_break(recwarn):
    fit_tree(ORDERED, "y", ID3)
    unordered = ORDERED.assign(c=ORDERED["c"].cat.as_unordered())
    fit_tree(unordered, "y", CART)
    assert not recwarn.list


@pytest.mark.parametrize("name", ["", " ", "\t", "\u00a0"])
def test_a_column_needs_a_name_wherever_the_table_is(tmp_path, name):
    """A blank name is refused unless the column is left out; predicting ignores it."""
    columns, labels = {"a": [1, 2], name: [3, 4]}, ["p", "q"]
    frames = [columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    model = fit_tree({"a": [1, 2]}, labels)
    for frame in frames:
        with pytest.raises(DataError, match=r"Column 2 of 2 .*has no name"):
            fit_tree(frame, labels)
        assert list(model.predict(frame)) == labels
    whole = pa.table({**columns, "y": labels})
    parquet.write_table(whole, tmp_path / "t.parquet")
    feather.write_feather(whole, tmp_path / "t.feather")
    database = in_sqlite(whole.to_pydict(), tmp_path / "t.sqlite")
    for path in (tmp_path / "t.parquet", tmp_path / "t.feather", database):
        with pytest.raises(DataError, match=r"Column 2 of .* has no name") as caught:
            read_table(path)
        assert "--" not in str(caught.value)
        assert read_table(path, ignore=[name]).column_names == ["a", "y"]
    with pytest.raises(DataError, match=r"Column 2 of 2 .*has no name"):
        fit_tree(SqlTable(database, "t"), "y")
