"""What is derived from dates, as steps of whole-number arithmetic.

Every language and format can compute them: sums, differences, products, and quotients
rounded down. They begin with the number of a date in its unit since 1970-01-01, or with
its day and its minute of the day. The calendar is counted in years from March on, in
cycles of 400 years of 146,097 days, so that no number but the first is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from branchwise.data.conventions.date_features import OF_TIMES, DateFeature
from branchwise.data.conventions.date_format import EPOCH, UNITS, DateFormat

Operand = str | int


class Step(NamedTuple):
    """A whole number with a name: ``left`` and ``right`` by "+", "-", "*" or "//"."""

    name: str
    left: Operand
    sign: str
    right: Operand


#: From the day since 1970-01-01 to its weekday; Monday is 1.
_WEEKDAY = (
    Step("from_monday", "day", "+", 719169),  # a Monday is a multiple of 7
    Step("weeks", "from_monday", "//", 7),
    Step("week_days", "weeks", "*", 7),
    Step("in_week", "from_monday", "-", "week_days"),
    Step("weekday", "in_week", "+", 1),
)
#: From the day since 1970-01-01 to year, month and day of the month.
_CALENDAR = (
    Step("shifted", "day", "+", 719468),  # since 0000-03-01
    Step("cycle", "shifted", "//", 146097),
    Step("whole_cycles", "cycle", "*", 146097),
    Step("in_cycle", "shifted", "-", "whole_cycles"),
    Step("leap_days", "in_cycle", "//", 1460),
    Step("centuries", "in_cycle", "//", 36524),
    Step("last_day", "in_cycle", "//", 146096),
    Step("without_leap", "in_cycle", "-", "leap_days"),
    Step("with_century", "without_leap", "+", "centuries"),
    Step("in_years", "with_century", "-", "last_day"),
    Step("year_of_cycle", "in_years", "//", 365),
    Step("year_days", "year_of_cycle", "*", 365),
    Step("fourths", "year_of_cycle", "//", 4),
    Step("hundredths", "year_of_cycle", "//", 100),
    Step("until_year", "year_days", "+", "fourths"),
    Step("first_of_year", "until_year", "-", "hundredths"),
    Step("day_of_year", "in_cycle", "-", "first_of_year"),
    Step("five_days", "day_of_year", "*", 5),
    Step("five_days_on", "five_days", "+", 2),
    Step("from_march", "five_days_on", "//", 153),
    Step("turned", "from_march", "//", 10),  # 1 in January and February
)
_MONTH = (
    Step("twelve", "turned", "*", 12),
    Step("on_from_march", "from_march", "+", 3),
    Step("month", "on_from_march", "-", "twelve"),
)
_DAY = (
    Step("month_days", "from_march", "*", 153),
    Step("month_days_on", "month_days", "+", 2),
    Step("first_of_month", "month_days_on", "//", 5),
    Step("from_first", "day_of_year", "-", "first_of_month"),
    Step("day_of_month", "from_first", "+", 1),
)
_YEAR = (
    Step("cycle_years", "cycle", "*", 400),
    Step("march_year", "cycle_years", "+", "year_of_cycle"),
    Step("year", "march_year", "+", "turned"),
)
_QUARTER = (Step("rounding", "month", "+", 2), Step("quarter", "rounding", "//", 3))
_HOUR = (Step("hour", "time", "//", 60),)
_MINUTE = (
    *_HOUR,
    Step("hour_minutes", "hour", "*", 60),
    Step("minute", "time", "-", "hour_minutes"),
)
_STEPS: dict[str, Sequence[Step]] = {
    "year": (*_CALENDAR, *_YEAR),
    "quarter": (*_CALENDAR, *_MONTH, *_QUARTER),
    "month": (*_CALENDAR, *_MONTH),
    "day": (*_CALENDAR, *_DAY),
    "weekday": _WEEKDAY,
    "hour": _HOUR,
    "minute": _MINUTE,
}


def steps_of(feature: DateFeature) -> list[Step]:
    """Return the steps from "day", or "time", its minute, to the last one's result."""
    if feature.feature in _STEPS:
        return _needed(_STEPS[feature.feature])
    on = date.fromisoformat(str(feature.on))
    if feature.feature == "age":
        return [Step("age", on.toordinal() - EPOCH, "-", "day")]
    # Of months and days as one number; a later one is 1 year less.
    return [
        *(*_CALENDAR, *_MONTH, *_DAY, *_YEAR),
        Step("month_first", "month", "*", 32),
        Step("in_year", "month_first", "+", "day_of_month"),
        Step("later", "in_year", "+", 1023 - on.month * 32 - on.day),
        Step("not_yet", "later", "//", 1024),
        Step("years", on.year, "-", "year"),
        Step("age_years", "years", "-", "not_yet"),
    ]


def steps_from_number(feature: DateFeature, how: DateFormat) -> list[Step]:
    """Return the steps from "number", that of a date in its unit."""
    per_day, per_minute = (UNITS[unit] // how.step for unit in ("day", "minute"))
    steps = [Step("day", "number", "//", per_day)]
    if feature.feature in OF_TIMES:
        time = Step("of_day" if per_minute > 1 else "time", "number", "-", "day_units")
        steps += [Step("day_units", "day", "*", per_day), time]
        if per_minute > 1:
            steps.append(Step("time", "of_day", "//", per_minute))
    return _needed([*steps, *steps_of(feature)])


def _needed(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that the last one needs."""
    needed: set[Operand] = {steps[-1].name}
    found = []
    for step in reversed(steps):
        if step.name in needed:
            found.append(step)
            needed |= {step.left, step.right}
    return found[::-1]
