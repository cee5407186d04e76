"""``branchwise what-if``: the smallest change of a row that changes its prediction."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from branchwise.cli.options import shared
from branchwise.cli.options.declaration import flag, option, takes
from branchwise.cli.options.shared import TextFormat
from branchwise.cli.support.models import check_two_streams, open_model
from branchwise.cli.support.rows import print_written, read_rows, split_pair
from branchwise.cli.support.streams import Reporter
from branchwise.data.schema import Value
from branchwise.errors import ParameterError
from branchwise.files.options import Reading
from branchwise.model import Model

#: The heading of the options about changes.
_LIMITS = "Constraints and costs of changes"


@takes(reading=shared.reading_options)
def what_if(
    model_path: str = shared.MODEL,
    table_path: str | None = shared.OPTIONAL_TABLE,
    row: int | None = option("--row N", "The row, counted from 0.", "0", min=0),
    settings: list[str] | None = shared.SETTINGS,
    target: str | None = option(
        "--target CLASS|RANGE",
        'The wanted class; for numbers a range: ">= 10" or "10 to 20".',
        "any other class",
    ),
    immutable: list[str] | None = option(
        "--immutable COLUMN",
        "A column that must stay as it is; may be repeated.",
        panel=_LIMITS,
    ),
    cost: list[str] | None = option(
        "--cost COLUMN=COST",
        "What a change of a column costs, in place of 1; may be repeated.",
        panel=_LIMITS,
    ),
    monotone: list[str] | None = option(
        "--monotone COLUMN=up|down",
        "A column that may only go up, or only down; may be repeated.",
        panel=_LIMITS,
    ),
    whole: list[str] | None = option(
        "--whole COLUMN", "A column of whole numbers; may be repeated.", panel=_LIMITS
    ),
    allow_missing: bool = flag(
        "--allow-missing", "Allow known values to become missing.", panel=_LIMITS
    ),
    how_many: int = option(
        "--how-many N", "Number of changes to find, one per leaf.", default=1, min=1
    ),
    missing: list[str] | None = shared.NA_VALUES,
    output_format: TextFormat = shared.TEXT_FORMAT,
    quiet: bool = shared.QUIET,
    *,
    reading: Reading,
) -> None:
    """Find the smallest change of a row that changes its prediction.

    The fewest columns (or the least cost) come first, then the shortest way for
    numbers. The result is exact. If there is no such change, the reason is printed.

    \b
    Examples:
      branchwise what-if tree.json new.csv --row 0
      branchwise what-if tree.json new.csv --row 0 --target yes --immutable age
      branchwise what-if tree.json new.csv --cost humidity=2 --how-many 3
      branchwise what-if prices.json new.csv --target ">= 10" --monotone age=up
    """
    check_two_streams(MODEL=model_path, TABLE=table_path)
    reporter = Reporter(quiet)
    model = open_model(model_path)
    if table_path is not None:
        row = row or 0
    rows = read_rows(model, table_path, row, settings, missing, reporter, reading)
    names = model.schema.names
    result = rows.model.what_if(
        rows.rows,
        _wanted(model, target),
        immutable=_names(immutable, names),
        costs=_costs(cost, names),
        monotone=dict(split_pair("--monotone", m, names) for m in monotone or ()),
        whole=_names(whole, names),
        allow_missing=allow_missing,
        how_many=how_many,
    )
    print_written(result, output_format)


def _names(given: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """Return the columns that an option names, one by one or as ``a,b``."""
    found: list[str] = []
    for entry in given or ():
        found.extend([entry] if entry in names else next(csv.reader([entry])))
    return found


def _costs(given: Sequence[str] | None, names: Sequence[str]) -> dict[str, Any]:
    unit_costs: dict[str, Any] = {}
    for entry in given or ():
        name, text = split_pair("--cost", entry, names)
        try:
            unit_costs[name] = float(text)
        except ValueError:
            raise ParameterError(
                f"--cost must be COLUMN=COST with a number of at least 0, or inf. Got "
                f"{entry!r}."
            ) from None
    return unit_costs


def _wanted(model: Model, target: str | None) -> Value | str | None:
    """Return the class that is written so; other texts as they are."""
    for label in model.schema.classes:
        if target is not None and str(label).lower() == target.lower():
            exact = str(label) == target
            if exact or not isinstance(label, str):
                return label
    return target
