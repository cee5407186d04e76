"""``branchwise predict``: the class, or the number, of every row of a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

from branchwise.cli import options
from branchwise.cli.options import flag, option, read_na_values, takes
from branchwise.cli.options.engine import EngineName, engine_for
from branchwise.cli.support import Reporter, check_outputs, open_output
from branchwise.cli.support.rows import (
    Inputs,
    check_two_streams,
    columns_of,
    input_options,
    located,
    open_model,
    read_for_model,
)
from branchwise.engines.prediction import FilePredictions, What, predicted_columns
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.files.dataset import StreamedTable, files_of
from branchwise.files.read_table import STANDARD_STREAM
from branchwise.files.write_table import (
    FileFormat,
    format_of_name,
    is_compressed_name,
    unwritten_format,
    write_columns,
)


class TableFormat(StrEnum):
    """How a table is written."""

    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


class PredictEngine(StrEnum):
    """How the rows are read."""

    MEMORY = "memory"
    CHUNKED = "chunked"


@takes(inputs=input_options)
def predict(
    model_path: str = options.MODEL,
    table_paths: list[str] = options.TABLES,
    output: str | None = options.OUTPUT,
    proba: bool = flag("--proba", "Add a column with the probability of each class."),
    keep: bool = flag("--keep", "Put the columns of the table before these."),
    escape_formulas: bool = flag(
        "--escape-formulas",
        "Put an apostrophe before texts of CSV and TSV that a spreadsheet "
        "would take for a formula.",
    ),
    output_format: TableFormat | None = option(
        "--format", "How to write.", "by the name of FILE, or csv"
    ),
    engine: PredictEngine | None = option(
        "--engine",
        "Read all rows into memory, or in chunks: CSV, TSV, Parquet and Arrow "
        "files of any size. The predictions are the same.",
        "chunked for patterns and folders, else memory",
    ),
    *,
    inputs: Inputs,
) -> None:
    """Predict the class, or the number, of every row of a table.

    The result has the column "prediction" and, with --proba, a column "probability
    of ..." for each class. The table needs the columns that the tree was fitted with;
    further ones, the target among them, do no harm.

    \b
    Examples:
      branchwise predict tree.json new.csv -o out.csv
      branchwise predict tree.json new.csv --keep --proba
      cat new.csv | branchwise predict tree.json - --format json
      branchwise predict tree.json new/*.parquet -o out.parquet
    """
    reporter = inputs.reporter
    written = _table_format(output_format, output)
    check_two_streams(MODEL=model_path, TABLE=table_paths[0])
    check_outputs({"-o": output}, model_path, *table_paths)
    model = open_model(model_path)
    if proba and model.tree.is_regression:
        raise ParameterError(
            "--proba adds the probabilities of classes, and this model has none: it "
            "predicts numbers. Do without --proba."
        )
    what: list[What] = ["classes", "probabilities"] if proba else ["classes"]
    given = None if engine is None else EngineName(engine)
    if engine_for(table_paths, given) is not None:
        streamed = StreamedTable(
            files_of(table_paths), inputs.reading, read_na_values(inputs.missing)
        )
        check_outputs({"-o": output}, *streamed.paths)
        columns_of(model, streamed, reporter)
        predictions = FilePredictions(model, streamed, what, keep)
        with (
            reporter.working(f"Reading {streamed.label}") as say,
            open_output(output) as stream,
        ):
            n_rows = predictions.write(
                stream,
                cast("FileFormat", written),
                lambda n: say(f"Predicted {counted(n, 'row')}"),
                escape_formulas,
            )
        _tell(n_rows, output, reporter)
        return
    with inputs.opened(table_paths[0]) as (file, say):
        model, table = read_for_model(model, file, reporter)
        say("Predicting")
        columns = file.read_as_is() if keep else {}
        with located(file):
            found = predicted_columns(model, table, what)
        added = {name: cells.tolist() for name, cells in found.items()}
        _check_double(columns, added)
        say("Writing")
        with open_output(output) as stream:
            write_columns(
                stream,
                {**columns, **added},
                cast("FileFormat", written),
                escape_formulas,
            )
    _tell(table.num_rows, output, reporter)


def _tell(n_rows: int, output: str | None, reporter: Reporter) -> None:
    if output is not None and output != STANDARD_STREAM:
        reporter.note(f"{counted(n_rows, 'row')} written to {output}.")


def _table_format(output_format: TableFormat | None, output: str | None) -> TableFormat:
    _check_misnamed(output_format, output)
    if output_format is not None:
        return output_format
    return TableFormat(format_of_name(output or "") or "csv")


def _check_misnamed(output_format: TableFormat | None, output: str | None) -> None:
    """Reject a file name whose format cannot be written."""
    if output is None or (output_format is not None and not is_compressed_name(output)):
        return
    meant = unwritten_format(output)
    if meant is None:
        return
    advice = (
        "Give a name without that ending, and compress the file afterwards"
        if is_compressed_name(output)
        else "Give a name that ends so, or say what to write with --format"
    )
    raise ParameterError(
        "-o must name a file of a format that predict writes: "
        f"{', '.join(TableFormat)}. Got {output!r}, whose ending means {meant}. "
        f"{advice}."
    )


def _check_double(columns: dict[str, list[Any]], added: dict[str, list[Any]]) -> None:
    double = [name for name in added if name in columns]
    if double:
        raise DataError(
            f"With --keep there would be two columns {quoted(double)}: the table has "
            "one of that name already. Rename it there, or do without --keep."
        )
