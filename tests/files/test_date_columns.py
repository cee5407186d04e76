"""Text columns of dates: formats, notes, ambiguity, models that read them again."""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing

import pytest

from branchwise import (
    BranchwiseWarning,
    DataError,
    ParameterError,
    fit_tree,
    read_table,
)
from branchwise.engines.chunked import ChunkedTable
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading
from branchwise.model import Model
from command_line import output, run

GERMAN = "opened,y\n05.03.2024,a\n06.03.2024,a\n17.04.2024,b\n18.05.2024,b\n?,b\n"
ISO = "opened,y\n2024-03-05,a\n2024-03-06,a\n2024-04-17,b\n2024-05-18,b\n?,b\n"
UNCLEAR = "opened,y\n05/03/2024,a\n06/03/2024,a\n07/04/2024,b\n08/05/2024,b\n"


@pytest.fixture
def write(tmp_path):
    def written(text, name="t.csv"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return written


def quietly(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BranchwiseWarning)
        return read_table(path, **options)


def test_dates_are_read_and_said(write):
    with pytest.warns(BranchwiseWarning) as said:
        table = read_table(write(GERMAN))
    assert [str(one.message) for one in said] == [
        (
            "1 text column is read as dates: 'opened' ('18.05.2024' is 2024-05-18); "
            "name those to keep as text in text_columns."
        )
    ]
    assert str(table.schema.field("opened").type) == "date32[day]"
    assert table.equals(read_table(write(ISO, "iso.csv")))  # which needs no note


def test_a_model_reads_new_files_the_same_way(write, tmp_path):
    path, model = write(GERMAN), tmp_path / "m.json"
    chunked = tmp_path / "chunked.json"
    note = "'opened' ('18.05.2024' is 2024-05-18); --categorical COLUMN"
    assert note in run("fit", path, "-t", "y", "-o", model)[2]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = run("fit", path, "-t", "y", "-o", chunked, "--engine", "chunked")[2]
    assert note in said
    assert model.read_bytes() == chunked.read_bytes()
    assert json.loads(model.read_text())["schema"]["columns"][0]["date"] == {
        "unit": "day",
        "written": "DD.MM.YYYY",
    }
    # By itself this column could be read in two ways, or only as the other one.
    new = write("opened\n01.02.2024\n2024-12-31\n06.03.2024 10:00\n", "new.csv")
    for engine in ("memory", "chunked"):
        assert output("predict", model, new, "--engine", engine).split() == [
            *("prediction", "a", "b", "a"),
        ]
    assert "(it is 2024-03-06)" in output("explain", model, new, "--row", "2")
    assert output("explain", model, "--set", "opened=31.12.2024").startswith("y: b")
    for wrong in ("2023-02-30", "12/31/2024"):
        message = run("predict", model, write(f"opened\n{wrong}\n", "bad.csv"))[2]
        assert message.startswith(
            "error: Column 'opened' must hold dates written as DD.MM.YYYY, but line 2 "
            f"of {new.parent}/bad.csv has '{wrong}'"
        )
    assert run("explain", model, "--set", "opened=soon")[2] == (
        "error: Column 'opened' takes dates written as DD.MM.YYYY. Got 'soon'; correct "
        "it, or leave it empty if it is missing.\n"
    )
    loaded = Model.from_bytes(model.read_bytes())
    assert loaded.predict({"opened": "31.12.2024"}) == ["b"]


def test_ambiguity_is_a_question(write):
    path = write(UNCLEAR)
    assert run("fit", path, "-t", "y")[2] == (
        f"error: Column 'opened' of {path} can be read in two ways: '05/03/2024' is "
        "2024-03-05 as DD/MM/YYYY or 2024-05-03 as MM/DD/YYYY. Say which is meant: "
        "--date-format opened=DD/MM/YYYY or --date-format opened=MM/DD/YYYY; or keep "
        "the text with --categorical opened.\n"
    )
    for source in (read_table, lambda path: fit_tree(ChunkedTable(path), "y")):
        with pytest.raises(DataError, match=r"date_format={'opened': 'DD/MM/Y"):
            source(path)
    assert "ambiguous: '05/03/2024' is 2024-03-05 as DD/MM/YYYY or" in output(
        "schema", path
    )
    for insisted in ("DD/MM/YYYY", {"opened": "%d/%m/%Y"}):
        table = quietly(path, date_format=insisted)
        assert str(table["opened"][0]) == "2024-03-05"
    assert str(quietly(path, date_format="MM/DD/YYYY")["opened"][0]) == "2024-05-03"
    assert str(read_table(path, text_columns=["opened"])["opened"][0]) == "05/03/2024"
    table = StreamedTable((str(path),), Reading(date_format="DD/MM/YYYY"))
    with pytest.warns(BranchwiseWarning, match="read as dates"):
        model = fit_tree(ChunkedTable(table), "y")
    again = fit_tree(quietly(path, date_format={"opened": "DD/MM/YYYY"}), "y")
    assert model.to_bytes() == again.to_bytes()
    named = StreamedTable((str(path),), Reading(date_format=["opened=DD/MM/YYYY"]))
    assert fit_tree(ChunkedTable(named), "y").to_bytes() == again.to_bytes()


def test_formats_that_must_be_named(write):
    path = write("day,short,y\n20240305,05.03.24,a\n20241231,31.12.23,b\n")
    table = quietly(path)
    assert str(table.schema.field("day").type) == "int64"
    table = quietly(path, date_format={"day": "YYYYMMDD", "short": "DD.MM.YY"})
    assert str(table["day"][1]) == "2024-12-31"
    assert str(table["short"][1]) == "2023-12-31"
    streamed = StreamedTable((str(path),), Reading(date_format=["day=YYYYMMDD"]))
    model = fit_tree(ChunkedTable(streamed), "y")
    assert model.schema.columns[0].date is not None
    with pytest.raises(DataError) as caught:
        quietly(path, date_format={"short": "YYYY-MM-DD"})
    assert "Column 'short' must hold dates written as YYYY-MM-DD" in str(caught.value)
    with pytest.raises(ParameterError) as wrong:
        read_table(path, date_format="DD.MM")
    assert str(wrong.value) == (
        "date_format must have DD, MM (or Mon) and YYYY (or YY), with what is between "
        "them, such as DD.MM.YYYY, MM/DD/YYYY or YYYYMMDD. Got 'DD.MM'."
    )


def test_columns_that_are_no_dates_stay_text(write):
    table = read_table(
        write("a,b,c\n2024-01-01,2024-01-01,1.1.24\n05.03.2024,x,2.2.24\n")
    )
    assert [str(field.type) for field in table.schema] == [
        *["dictionary<values=string, indices=int32, ordered=0>"] * 3
    ]


def test_time_zones_of_texts(write):
    path = write("t,y\n2024-01-01T00:30+02:00,a\n2024-01-01T00:30Z,b\n")
    assert str(read_table(path).schema.field("t").type) == "timestamp[us, tz=UTC]"
    path = write("t,y\n2024-01-01T00:30+02:00,a\n2024-01-01T00:30,b\n")
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert str(caught.value) == (
        f"Column 't' of {path} mixes times with a time zone "
        "('2024-01-01T00:30+02:00') and without one ('2024-01-01T00:30'). Give all of "
        "them a time zone, or none; or keep the text with text_columns=['t']."
    )


def test_schema_shows_dates(write):
    path = write("opened,seen,y\n05.03.2024,2024-01-02 07:30,a\n31.03.2024,,b\n")
    lines = output("schema", path).splitlines()
    assert lines[1].split() == [
        *("opened", "date", "2024-03-05", "to", "2024-03-31", "0"),
        *("'31.03.2024'", "is", "2024-03-31"),
    ]
    assert lines[2].split()[:4] == ["seen", "date", "2024-01-02", "07:30"]
    columns = json.loads(output("schema", path, "--format", "json"))["columns"]
    assert columns[0] | {"hint": None} == {
        "name": "opened",
        "kind": "date",
        "minimum": "2024-03-05",
        "maximum": "2024-03-31",
        "written": "DD.MM.YYYY",
        "missing": 0,
        "hint": None,
    }


def test_a_few_texts_that_keep_a_column_from_being_dates_are_told(write):
    days = [f"2024-01-{day:02}" for day in range(1, 31)]
    rows = [f"{day},{at % 2}" for at, day in enumerate(days)]
    path = write("\n".join(["opened,y", *rows, "2023-02-30,1", ""]))
    advice = "it has dates with --missing 2023-02-30"
    assert advice in run("fit", path, "-t", "y")[2]
    assert advice in output("schema", path)
    assert output("schema", path, "--missing", "2023-02-30").split()[5:7] == [
        *("opened", "date")
    ]
    path = write("\n".join(["opened,y", *rows, "05.03.2024,1", ""]))
    told = (
        "its dates are not all written in one way, such as '05.03.2024', '2024-01-01'"
    )
    assert told in run("fit", path, "-t", "y")[2]


def in_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def in_sqlite(path, rows):
    names = list(rows[0])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"create table t ({' text, '.join(names)} text)")
        marks = ", ".join("?" * len(names))
        cells = [tuple(row.values()) for row in rows]
        database.executemany(f"insert into t values ({marks})", cells)


@pytest.mark.parametrize("store", [in_lines, in_sqlite])
def test_records_and_sqlite_have_texts_of_dates(store, tmp_path):
    table, new, model = (tmp_path / name for name in ("table", "new", "model.json"))
    days = ("05.03.2024", "06.03.2024", "17.04.2024", "18.05.2024", None)
    fixed = {"paid": "1.234,5 €", "zip": "00123"}
    rows = [
        {"opened": day, **fixed, "y": "a" if at < 2 else "b"}
        for at, day in enumerate(days)
    ]
    store(table, rows)
    read = quietly(table)
    assert [str(day) for day in read["opened"].to_pylist()[:2]] == [
        "2024-03-05",
        "2024-03-06",
    ]
    assert read["paid"].to_pylist() == [1234.5] * 5
    assert read["zip"].to_pylist() == ["00123"] * 5
    assert quietly(table, text_columns=["opened"])["opened"].to_pylist() == [*days]
    _, _, err = run("fit", table, "-t", "y", "-a", "cart", "-o", model)
    assert "1 text column is read as dates: 'opened' ('18.05.2024' is 2024-05-18" in err
    assert "opened <= 2024-03-" in output("show", model)
    # An ISO date is always understood.
    store(new, [{"opened": day} for day in ("05.03.2024", "04.05.2024", "2024-05-06")])
    assert output("predict", model, new).split() == ["prediction", "a", "b", "b"]
    new = tmp_path / "wrong"
    store(new, [{"opened": "soon"}])
    assert "must hold dates" in run("predict", model, new)[2]
