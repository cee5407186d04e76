"""``branchwise explain``: explanations of the predictions for rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from branchwise.cli.options import shared
from branchwise.cli.options.declaration import option, takes
from branchwise.cli.options.shared import TextFormat
from branchwise.cli.support.models import check_two_streams, located, open_model
from branchwise.cli.support.rows import print_written, read_rows
from branchwise.cli.support.streams import Reporter
from branchwise.explain.explanation import Explanation
from branchwise.files.options import Reading


@takes(reading=shared.reading_options)
def explain(
    model_path: str = shared.MODEL,
    table_path: str | None = shared.OPTIONAL_TABLE,
    row: int | None = option(
        "--row N", "The row to explain, counted from 0.", "all", min=0
    ),
    settings: list[str] | None = shared.SETTINGS,
    level: float = option("--level", "The confidence of the intervals.", default=0.95),
    missing: list[str] | None = shared.NA_VALUES,
    output_format: TextFormat = shared.TEXT_FORMAT,
    quiet: bool = shared.QUIET,
    *,
    reading: Reading,
) -> None:
    """Explain the predictions for the rows of a table, or for one row given by --set.

    Tells the way through the tree in words, what was missing or unseen and what was
    done about it, and how sure the leaf is.

    \b
    Examples:
      branchwise explain tree.json new.csv
      branchwise explain tree.json new.csv --row 0
      branchwise explain tree.json --set outlook=sunny --set humidity=70
      branchwise explain tree.json new.csv --format json
    """
    check_two_streams(MODEL=model_path, TABLE=table_path)
    reporter = Reporter(quiet)
    model = open_model(model_path)
    rows = read_rows(model, table_path, row, settings, missing, reporter, reading)
    with located(rows.file) if rows.file and row is None else nullcontext():
        explained = rows.model.explain(rows.rows, level)
    if isinstance(explained, Explanation):
        explained = replace(explained, row=rows.first)
    print_written(explained, output_format)
