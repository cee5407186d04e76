"""``branchwise predict``: the class, or the number, of every row of a table."""

from __future__ import annotations

from branchwise.cli import options
from branchwise.cli.options import Page, read_na_values, takes
from branchwise.cli.options.engine import check_no_address, engine_for
from branchwise.cli.support import Reporter, check_outputs, open_output
from branchwise.cli.support.models import open_any
from branchwise.cli.support.rows import (
    Inputs,
    check_two_streams,
    columns_of,
    input_options,
    located,
    note_cells,
    read_for_model,
)
from branchwise.engines.prediction import (
    FilePredictions,
    What,
    kept_columns,
    predicted_columns,
)
from branchwise.engines.table_check import TableCheck
from branchwise.errors import ParameterError, counted
from branchwise.files.dataset import StreamedTable
from branchwise.files.read_table import STANDARD_STREAM
from branchwise.files.table_paths import files_of
from branchwise.files.write_table import (
    FILE_FORMATS,
    FileFormat,
    format_of_name,
    is_compressed_name,
    unwritten_format,
    write_columns,
)

_PAGE = Page("predict")


@takes(inputs=input_options)
def predict(
    model_path: str = options.MODEL,
    table_paths: list[str] = options.TABLES,
    output: str | None = options.OUTPUT,
    proba: bool = _PAGE.flag("--proba"),
    keep: bool = _PAGE.flag("--keep"),
    escape_formulas: bool = _PAGE.flag("--escape-formulas"),
    output_format: FileFormat | None = _PAGE.option("--format", choices=FILE_FORMATS),
    engine: str | None = _PAGE.option("--engine", choices=("memory", "chunked")),
    *,
    inputs: Inputs,
) -> None:
    """Predict the class, or the number, of every row of a table."""
    reporter = inputs.reporter
    written = _table_format(output_format, output)
    check_two_streams(MODEL=model_path, TABLE=table_paths[0])
    check_outputs({"-o": output}, model_path, *table_paths)
    model = open_any(model_path)
    if proba and not model.schema.classes:
        raise ParameterError(
            "--proba adds the probabilities of classes, and this model has none: it "
            "predicts numbers. Do without --proba."
        )
    check_no_address("predict", table_paths)
    what: list[What] = ["classes", "probabilities"] if proba else ["classes"]
    if engine_for(table_paths, engine) is not None:
        streamed = StreamedTable(
            files_of(table_paths),
            inputs.reading,
            read_na_values(inputs.missing),
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
                written,
                lambda n: say(f"Predicted {counted(n, 'row')}"),
                escape_formulas,
            )
        note_cells(TableCheck(model.schema, predictions.counts), reporter)
        _tell(n_rows, output, reporter)
        return
    with inputs.opened(table_paths[0]) as (file, say):
        model, table = read_for_model(model, file, reporter, only_used=True)
        say("Predicting")
        columns = file.read_as_is() if keep else {}
        with located(file):
            rows = model.encoded(table)
        check = model.check_table(rows)
        found = predicted_columns(model, rows, what)
        added = {name: cells.tolist() for name, cells in found.items()}
        kept_columns(keep, list(columns), file.label, list(added))
        say("Writing")
        with open_output(output) as stream:
            write_columns(stream, columns | added, written, escape_formulas)
    note_cells(check, reporter)
    _tell(table.num_rows, output, reporter)


def _tell(n_rows: int, output: str | None, reporter: Reporter) -> None:
    if output is not None and output != STANDARD_STREAM:
        reporter.note(f"{counted(n_rows, 'row')} written to {output}.")


def _table_format(output_format: FileFormat | None, output: str | None) -> FileFormat:
    _check_misnamed(output_format, output)
    if output_format is not None:
        return output_format
    return format_of_name(output or "") or "csv"


def _check_misnamed(output_format: FileFormat | None, output: str | None) -> None:
    """Reject a file name whose format cannot be written."""
    if output is None or (output_format is not None and not is_compressed_name(output)):
        return
    meant = unwritten_format(output)
    if meant is None:
        return
    advice = (
        "Give a name without that ending, and compress the file afterwards"
        if is_compressed_name(output)
        else "Use one of these endings, or say what to write with --format"
    )
    raise ParameterError(
        "-o must end with .csv, .tsv, .json, .parquet, .arrow or .xlsx, the formats "
        f"that predict writes. Got {output!r}, whose ending means {meant}. {advice}."
    )
