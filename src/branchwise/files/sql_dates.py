"""What is derived from dates, as expressions of SQL dialects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from branchwise.data.conventions.date_features import DateFeature
from branchwise.files.sql_dialects import DUCKDB, POSTGRESQL, SPARK, SQLITE, Dialect

_EXTRACTED = ("year", "quarter", "month", "day", "hour", "minute")
_FUNCTIONS = {name: f"EXTRACT({name.upper()} FROM {{0}})" for name in _EXTRACTED}
_BEFORE = "(DATE '{1}' - CAST({0} AS DATE))"
#: SQLite rounds fractions of seconds, even up to the next day.
_SECONDS = "substr({0}, 1, 19)"
_SQLITE_FUNCTIONS = {
    name: f"CAST(strftime('%{letter}', {_SECONDS}) AS INTEGER)"
    for name, letter in {
        "year": "Y",
        "month": "m",
        "day": "d",
        "hour": "H",
        "minute": "M",
        "sunday": "w",
    }.items()
}
#: By dialect, with the date at {0} and the day of an age at {1}; Monday is 1.
_OF_DIALECTS: Mapping[str, Mapping[str, str]] = {
    DUCKDB.name: {**_FUNCTIONS, "weekday": "EXTRACT(ISODOW FROM {0})", "age": _BEFORE},
    POSTGRESQL.name: {
        **_FUNCTIONS,
        "weekday": "EXTRACT(ISODOW FROM {0})",
        "age": _BEFORE,
    },
    SPARK.name: {
        **_FUNCTIONS,
        "weekday": "EXTRACT(DAYOFWEEK_ISO FROM {0})",
        "age": "datediff(DATE '{1}', CAST({0} AS DATE))",
    },
    SQLITE.name: {
        **_SQLITE_FUNCTIONS,
        "quarter": f"(({_SQLITE_FUNCTIONS['month']} + 2) / 3)",
        "weekday": f"(({_SQLITE_FUNCTIONS['sunday']} + 6) % 7 + 1)",
        "age": f"CAST(julianday('{{1}}') - julianday(date({_SECONDS})) AS INTEGER)",
    },
}
#: Times with a time zone as those of UTC.
_IN_UTC = {
    DUCKDB.name: "({} AT TIME ZONE 'UTC')",
    POSTGRESQL.name: "({} AT TIME ZONE 'UTC')",
    SPARK.name: "to_utc_timestamp({}, current_timezone())",
}


def derived_number(dialect: Dialect, cell: str, feature: DateFeature) -> str | None:
    """Return the number that is derived from a date; None if the dialect cannot."""
    functions = _OF_DIALECTS.get(dialect.name)
    if functions is None:
        return None
    if feature.zoned:
        cell = _IN_UTC.get(dialect.name, "{}").format(cell)
    if feature.feature != "age_years":
        return functions[feature.feature].format(cell, feature.on)
    on = date.fromisoformat(str(feature.on))
    year, month, day = (
        functions[name].format(cell) for name in ("year", "month", "day")
    )
    later = f"{month} * 32 + {day} > {on.month * 32 + on.day}"
    return f"({on.year} - {year} - CASE WHEN {later} THEN 1 ELSE 0 END)"
