"""Dates as a column kind: every input, units, thresholds, views, missing cells."""

from __future__ import annotations

import datetime as dt
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from branchwise import CARTClassifier, DataError, Model, fit_tree, inspect_table
from branchwise.data.conventions.date_format import (
    ISO,
    RECOGNISED,
    DateFormat,
    detect_dates,
    format_named,
    moment_of,
    read_text,
)
from branchwise.engines.base import Task
from branchwise.engines.scan import finalise, scan
from branchwise.recipe import C45, CART, ID3

EPOCH = dt.date(1970, 1, 1)
DAYS = [19_000 + (at * 37) % 200 for at in range(60)]
Y = ["late" if day > 19_100 else "early" for day in DAYS]


def dates(days):
    return [None if day is None else EPOCH + dt.timedelta(day) for day in days]


def times(days):
    midnight = dt.time()
    return [day and dt.datetime.combine(day, midnight) for day in dates(days)]


INPUTS = {
    "pandas": lambda d: pd.DataFrame({"opened": pd.to_datetime(pd.Series(dates(d)))}),
    "pandas in nanoseconds": lambda d: pd.DataFrame(
        {"opened": pd.Series(dates(d), dtype="datetime64[ns]")}
    ),
    "objects in pandas": lambda d: pd.DataFrame(
        {"opened": pd.Series(dates(d), dtype=object)}
    ),
    "periods": lambda d: pd.DataFrame(
        {"opened": pd.PeriodIndex(pd.to_datetime(pd.Series(dates(d))), freq="D")}
    ),
    "arrow in pandas": lambda d: pd.DataFrame(
        {"opened": pd.Series(dates(d), dtype=pd.ArrowDtype(pa.date32()))}
    ),
    "dates of Python": lambda d: {"opened": dates(d)},
    "times of Python": lambda d: {"opened": times(d)},
    "timestamps": lambda d: [
        {"opened": pd.Timestamp(t) if t else None} for t in times(d)
    ],
    "numpy": lambda d: {"opened": np.array(dates(d), dtype="datetime64[D]")},
    "numpy in hours": lambda d: {"opened": np.array(times(d), dtype="datetime64[h]")},
    "polars": lambda d: pl.DataFrame({"opened": dates(d)}),
    "polars with times": lambda d: pl.DataFrame({"opened": times(d)}),
    "arrow": lambda d: pa.table({"opened": pa.array(dates(d), pa.date32())}),
    "arrow in seconds": lambda d: pa.table(
        {"opened": pa.array(times(d), pa.timestamp("s"))}
    ),
    "arrow, 64 bits": lambda d: pa.table({"opened": pa.array(dates(d), pa.date64())}),
    "in a dictionary": lambda d: pa.table(
        {"opened": pa.array(dates(d)).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("make", INPUTS.values(), ids=INPUTS)
def test_every_input_gives_the_same_model(make):
    for days in (DAYS, [None if day % 7 == 0 else day for day in DAYS]):
        expected = fit_tree({"opened": dates(days)}, Y, CART)
        model = fit_tree(make(days), Y, CART)
        assert model.to_bytes() == expected.to_bytes()
        assert (
            model.predict(make(days)).tolist()
            == expected.predict({"opened": dates(days)}).tolist()
        )


def random_times(rng, unit, n):
    step = DateFormat(unit).step
    first = 1_700_000_000_000_000 // step
    return [int(first + rng.integers(0, 300)) for _ in range(n)], step


@pytest.mark.parametrize("unit", ["day", "minute", "second", "microsecond"])
@pytest.mark.parametrize("recipe", [ID3, CART, C45], ids=["id3", "cart", "c45"])
def test_the_tree_is_that_of_whole_numbers(unit, recipe):
    rng = np.random.default_rng(len(unit))
    for _ in range(3):
        numbers, step = random_times(rng, unit, 50)
        y = rng.choice(["a", "b"], 50).tolist()
        moments = [
            dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=number * step)
            for number in numbers
        ]
        model = fit_tree({"t": moments}, y, recipe)
        plain = fit_tree({"t": numbers}, y, recipe)
        assert model.schema.columns[0].date == DateFormat(unit)
        assert np.array_equal(model.tree.parent, plain.tree.parent)
        assert np.array_equal(model.tree.weights, plain.tree.weights)
        thresholds = (m.tree.threshold for m in (model, plain))
        # Readable dates are others than readable numbers.
        same = np.array_equal(*thresholds, equal_nan=True)
        assert same == (recipe.threshold != "readable")
        parts = [{"t": moments[:20], "y": y[:20]}, {"t": moments[20:], "y": y[20:]}]
        task = Task("y", threshold=recipe.threshold)
        plan = finalise(scan(parts[0], task).merge(scan(parts[1], task)), task, None)
        assert plan.schema.columns[0].date == model.schema.columns[0].date


def test_a_date_is_at_most_itself_whatever_its_time_of_day():
    model = fit_tree({"opened": dates(DAYS)}, Y, CART)
    last = EPOCH + dt.timedelta(int(model.tree.threshold[0]))
    evening = dt.datetime.combine(last, dt.time(23, 59, 59, 999_999))
    cells = [last, evening, evening.isoformat(), str(last), np.datetime64(evening)]
    for cell in [*cells, pd.Timestamp(last), pd.Period(last, "D")]:
        assert model.predict({"opened": cell}) == ["early"]
        assert model.predict(pd.DataFrame({"opened": [cell]})) == ["early"]
    for cell in (evening + dt.timedelta(microseconds=1), last + dt.timedelta(1)):
        assert model.predict({"opened": cell}) == ["late"]
    missing = [None, pd.NaT, np.datetime64("NaT"), float("nan"), "", pd.NA]
    assert len({*(model.predict({"opened": cell})[0] for cell in missing)}) == 1


def test_years_from_1_to_9999():
    far = [dt.date(1, 1, 1), dt.date(1, 1, 2), dt.date(9999, 12, 30), dt.date.max]
    model = fit_tree({"d": far}, ["a", "b", "b", "c"], CART)
    assert model.predict({"d": far}).tolist() == ["a", "b", "b", "c"]
    assert "d <= 0001-01-01" in str(model)
    midnights = [dt.datetime.combine(day, dt.time()) for day in far]
    again = fit_tree({"d": midnights}, ["a", "b", "b", "c"], CART)
    assert again.to_bytes() == model.to_bytes()
    # A time of day needs microseconds; midnight is exact in them, however far.
    mixed = [dt.datetime(2024, 1, 1, 7), dt.datetime(9999, 12, 31)]
    assert fit_tree({"d": mixed}, ["a", "b"]).predict({"d": mixed}).tolist() == [
        "a",
        "b",
    ]


def test_times_with_a_time_zone_are_those_of_utc():
    berlin = pd.date_range("2024-03-30 12:00", periods=40, freq="h", tz="Europe/Berlin")
    y = ["a"] * 20 + ["b"] * 20
    model = fit_tree(pd.DataFrame({"t": berlin}), y, CART)
    assert model.schema.columns[0].date == DateFormat("minute", zoned=True)
    assert "Z" in str(model).splitlines()[0]
    others = [
        pd.DataFrame({"t": berlin.tz_convert("Asia/Tokyo")}),
        pl.DataFrame({"t": berlin.to_pydatetime().tolist()}),
        {"t": berlin.to_pydatetime().tolist()},
        pa.table({"t": pa.array(berlin)}),
        {"t": [moment.isoformat() for moment in berlin]},
    ]
    for other in others[:-1]:
        assert fit_tree(other, y, CART).to_bytes() == model.to_bytes()
    for other in others:
        assert model.predict(other).tolist() == y
    message = (
        "Column 't' was learnt as times with a time zone written as YYYY-MM-DD and a "
        "time but now holds dates (2024-01-01 in row 0). Write it as it was for "
        "fitting, or pass dates."
    )
    with pytest.raises(DataError) as caught:
        model.predict({"t": dt.date(2024, 1, 1)})
    assert str(caught.value) == message
    with pytest.raises(DataError, match="now holds text"):
        model.predict({"t": "2024-01-01"})
    naive = fit_tree({"t": dates(DAYS)}, Y)
    with pytest.raises(DataError, match="now holds times with a time zone"):
        naive.predict({"t": berlin[:1]})


def test_other_cells_than_dates_are_refused():
    model = fit_tree({"opened": dates(DAYS)}, Y)
    for cell, got in (
        (19_000, "numbers (19000 in row 0)"),
        ("05.03.2024", "text ('05.03.2024' in row 0)"),
        ("2023-02-30", "text ('2023-02-30' in row 0)"),
        (True, "booleans (True in row 0)"),
    ):
        with pytest.raises(DataError) as caught:
            model.predict({"opened": cell})
        assert str(caught.value) == (
            "Column 'opened' was learnt as dates written as YYYY-MM-DD but now holds "
            f"{got}. Write it as it was for fitting, or pass dates."
        )
    numbers = fit_tree({"opened": DAYS}, Y)
    with pytest.raises(DataError, match="learnt as numbers but now holds dates"):
        numbers.predict({"opened": dates(DAYS)})
    assert numbers.predict({"opened": pd.NaT}) in (["early"], ["late"])


def test_dates_as_categories_are_their_text():
    table = {"opened": dates(DAYS[:6]), "x": [1, 2, 3, 4, 5, 6]}
    model = fit_tree(table, Y[:6], categorical_features=["opened"])
    column = model.schema.columns[0]
    assert column.kind == "categorical"
    assert column.categories == tuple(sorted(map(str, dates(DAYS[:6]))))
    assert model.predict(table).tolist() == Y[:6]


def test_the_model_file_keeps_the_dates(tmp_path):
    moments = [dt.datetime(2024, 1, 1, 7, at % 60) for at in range(60)]
    model = fit_tree({"t": moments, "d": dates(DAYS)}, Y)
    again = Model.from_bytes(model.to_bytes())
    assert again.schema == model.schema
    assert again.to_bytes() == model.to_bytes()
    assert again.schema.describe() == (
        "t         times\nd         dates\n(target)  target, 2 classes: early, late"
    )


# ---- texts --------------------------------------------------------------------------


def as_text(day, written):
    month = day.strftime("%b")
    tokens = {"YYYY": f"{day.year:04}", "MM": f"{day.month:02}", "DD": f"{day.day:02}"}
    for token, text in {**tokens, "Mon": month}.items():
        written = written.replace(token, text)
    return written


@pytest.mark.parametrize("written", RECOGNISED)
def test_recognised_formats(written):
    days = [dt.date(2024, 1, 1) + dt.timedelta(at * 17) for at in range(40)]
    texts = [as_text(day, written) for day in days]
    found = detect_dates(texts)
    assert [*found.moments] == [written]
    times = [f"{text} 14:05:09" for text in texts]
    for given, seconds in ((texts, 0), (times, 14 * 3600 + 5 * 60 + 9)):
        (moments,) = detect_dates(given).moments.values()
        assert [moment.microseconds for moment in moments] == [
            ((day - EPOCH).days * 86_400 + seconds) * 1_000_000 for day in days
        ]
    if written in ("DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "MM-DD-YYYY"):
        few = [as_text(day, written) for day in days if day.day <= 12]
        assert len(detect_dates(few).moments) == 2


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2023-02-30",
            "2024-13-01",
            "2024-00-10",
            "2024-1-0",
            "24-01-02",
            "0000-01-01",
        ),
        *("2024-01-02 24:00", "2024-01-02 7", "2024-01-02T07:60", "2024-01-02 0:00 PM"),
        *("2024-01-02 07:00:00.1234567", "x 2024-01-02", "2024-01-02 x", "", "2024"),
        *("٢٠٢٤-01-02", "2024-01-02 07:00+1", "32.01.2024", "01.Foo.2024"),
    ],
)
def test_texts_that_are_no_dates(text):
    assert not detect_dates([text]).moments


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-03-05T14:30", "2024-03-05 14:30"),
        ("2024-03-05 14:30:00.5", "2024-03-05 14:30:00.500000"),
        ("2024-03-05 2:30 PM", "2024-03-05 14:30"),
        ("2024-03-05 12:00 a.m.", "2024-03-05 00:00"),
        ("2024-03-05 00:30+02:00", "2024-03-04 22:30Z"),
        ("2024-03-05 00:30-0130", "2024-03-05 02:00Z"),
        (" 2024-3-5 ", "2024-03-05 00:00"),
    ],
)
def test_times_of_texts(text, shown):
    moment = moment_of(text, ISO)
    assert moment is not None
    how = DateFormat("microsecond", moment.zoned)
    assert how.show(moment.microseconds) == shown
    assert read_text(text, how) == moment.microseconds


def test_formats_may_be_those_of_strptime():
    assert format_named("%d.%m.%Y") == "DD.MM.YYYY"
    assert format_named("%d-%b-%y") == "DD-Mon-YY"
    for wrong in ("", "DD.MM", "DD.MM.YYYY DD", "%H", "YYYY", "day", "DDxMMxYYYY"):
        assert format_named(wrong) is None
    assert moment_of("05.03.68", "DD.MM.YY") == moment_of("2068-03-05", ISO)
    assert moment_of("05.03.69", "DD.MM.YY") == moment_of("1969-03-05", ISO)
    assert moment_of("20240305", "YYYYMMDD") == moment_of("2024-03-05", ISO)
    assert moment_of("5. März 2024", "DD. Mon YYYY") == moment_of("2024-03-05", ISO)


def test_what_is_shown_is_read_again():
    draw = random.Random(1)
    for unit in ("day", "minute", "second", "microsecond"):
        for zoned in (False, True) if unit != "day" else (False,):
            how = DateFormat(unit, zoned)
            for _ in range(50):
                moment = draw.randrange(-(2**53) + 1, 2**53) // how.step
                assert read_text(how.show(moment), how) == moment


def test_dates_are_neither_identifiers_nor_codes():
    days = [EPOCH + dt.timedelta(at) for at in range(60)]
    few = [EPOCH + dt.timedelta(at % 5) for at in range(60)]
    found = inspect_table({"day": days, "few": few, "n": list(range(60))})
    assert [(one.kind, one.columns) for one in found if "n" not in one.columns] == []


def test_estimators_take_dates():
    frame = INPUTS["pandas"](DAYS)
    tree = CARTClassifier().fit(frame, Y)
    assert tree.score(frame, Y) == 1.0
    assert tree.predict({"opened": "2022-01-08"}) == ["early"]
