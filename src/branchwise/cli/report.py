"""``branchwise report``: an HTML report on a table and its tree."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from branchwise.cli import options
from branchwise.cli.options import Page, check_share, growing, takes
from branchwise.cli.options.model_metadata import orders_of
from branchwise.cli.support import Reporter, check_outputs, open_output, print_json
from branchwise.cli.support.file_schema import as_described
from branchwise.cli.support.models import size_of
from branchwise.cli.support.rows import check_known_rows, check_two_streams
from branchwise.cli.support.training import (
    Growth,
    TrainingTable,
    growth_options,
    read_others,
)
from branchwise.errors import MOST_SEED, ParameterError, counted
from branchwise.files.read_table import MISSING, STANDARD_STREAM

_PAGE = Page("report")
#: Options that name a file; the report tells names, not where files are.
_FILES = ("test", "output", "labels")
#: Options of the report that branchwise fit does not have.
_OWN = ("test", "cv", "hold_out", "seed", "title", "output_format", "output", "quiet")


@takes(growth=growth_options)
def report(
    context: typer.Context,
    table_path: str = options.TABLE,
    target: str = options.TARGET,
    output: str = _PAGE.option("--output", ...),
    algorithm: str | None = growing.ALGORITHM,
    regression: bool = growing.REGRESSION,
    title: str | None = options.TITLE,
    output_format: str = options.FORMAT,
    quiet: bool = options.QUIET,
    test: str | None = _PAGE.option("--test"),
    cv: int | None = _PAGE.option("--cv", min=2),
    hold_out: float | None = _PAGE.option("--hold-out"),
    seed: int = _PAGE.option("--seed", 0, min=0, max=MOST_SEED),
    labels: str | None = options.SHARED.option("--labels", panel=None),
    *,
    growth: Growth,
) -> None:
    """Write an HTML report on a table and its tree."""
    chosen = growing.chosen_algorithm(algorithm, regression)
    growth.check(chosen, regression)
    _check_testing(test, cv, hold_out)
    check_two_streams(TABLE=table_path, **{"--test": test})
    check_outputs({"-o": output}, table_path, test, labels)
    orders = [*(growth.options["order"] or ()), *orders_of(labels)]
    growth = replace(growth, options={**growth.options, "order": orders or None})
    check_known_rows(table_path, "--test", test)
    if output_format == "json" and output == STANDARD_STREAM:
        raise ParameterError(
            "-o - and --format json both write to standard output. Give -o a file."
        )
    from branchwise.report import make_report

    reporter = Reporter(quiet)
    names = _names(table_path, test, output, labels)
    again = _commands(context, names)
    with reporter.reading(table_path) as say:
        rows = growth.read(table_path, target, regression)
        others = None
        if test is not None:
            tested = read_others(test, rows, growth.reading)
            others = tested.attributes, tested.labels
        made = make_report(
            rows.attributes,
            rows.labels,
            growth.estimator(chosen, regression, rows),
            sample_weight=rows.weights,
            target_name=target,
            test=others,
            test_name=names[test] if test is not None else "",
            cv=cv,
            hold_out=hold_out,
            seed=seed,
            title=title,
            commands=again,
            reads=_in_python(names[table_path], rows, growth.reading.given),
            files=_marks(names, table_path, test, labels),
            progress=say,
            labels=labels,
            as_read=lambda schema: as_described(schema, rows),
        )
        say("Writing")
        page = made.to_html().encode("utf-8")
        with open_output(output) as stream:
            stream.write(page)
    if output_format == "json":
        print_json(made.sections)
    if output != STANDARD_STREAM:
        reporter.note(
            f"report on a {size_of(made.model)} from {counted(rows.n_rows, 'row')} "
            f"written to {output}; open it in a browser."
        )


def _check_testing(test: str | None, cv: int | None, hold_out: float | None) -> None:
    given = {"--test": test, "--cv": cv, "--hold-out": hold_out}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ParameterError(
            f"{' and '.join(named)} exclude each other. Give one of them."
        )
    check_share("--hold-out", hold_out)


def _marks(names: Mapping[str, str], *paths: str | None) -> list[dict[str, Any]]:
    """Mark the files that rows were read from; a stream leaves no mark."""
    from branchwise.report.page import file_mark

    return [
        {**file_mark(path), "name": names[path]}
        for path in paths
        if path and Path(path).is_file()
    ]


def _in_python(
    name: str, rows: TrainingTable, reading: Mapping[str, Any]
) -> tuple[str, str]:
    """Write how the table is read and fitted in Python."""
    roles, na_values = rows.roles, rows.file.missing
    said = {
        "missing": na_values if na_values != MISSING else None,
        "text_columns": roles.text,
        "number_columns": roles.numbers,
        "ignore": roles.ignored,
        **reading,
    }
    options = "".join(
        f", {what}={value!r}" for what, value in said.items() if value not in (None, [])
    )
    weight = "" if roles.weight is None else f", sample_weight={roles.weight!r}"
    return f"read_table({name!r}{options})", f"table, {roles.target!r}{weight}"


def _commands(context: typer.Context, names: Mapping[str, str]) -> list[str]:
    """Return this command, and the one that writes the model file."""
    given = list(_given(context, names))
    grown = [words for name, words in given if name not in _OWN]
    if "algorithm" not in [name for name, _ in given]:
        regression = any(name == "regression" for name, _ in given)
        grown.append(["--algorithm", growing.chosen_algorithm(None, regression)])
    reported = [word for _, words in given for word in words]
    fitted = [word for words in grown for word in words]
    named = dict(given).get("algorithm", [""])[-1]
    model = "ensemble.json" if named in growing.ENSEMBLES else "tree.json"
    return [
        shlex.join(["branchwise", "report", *reported]),
        shlex.join(["branchwise", "fit", *fitted, "--output", model]),
    ]


def _given(
    context: typer.Context, names: Mapping[str, str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the arguments and options that were given, in the order of the help."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            yield name, [names[value]]
            continue
        option = max(parameter.opts, key=len)
        if value is True:
            yield name, [option]
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            written = names[one] if name in _FILES else str(one)
            if name == "costs" and Path(one).is_file():
                written = Path(one).name
            yield name, [option, written]


def _names(*paths: str | None) -> dict[str, str]:
    """Name files without their folders, but for what tells them apart."""
    given = {
        path: tuple(Path(path).absolute().as_posix().split("/"))
        for path in paths
        if path is not None
    }
    for n in range(1, max(map(len, given.values())) + 1):
        names = {path: "/".join(pieces[-n:]) for path, pieces in given.items()}
        if len(set(names.values())) == len(set(given.values())):
            break
    return names
