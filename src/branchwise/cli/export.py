"""``branchwise export``: a model in another language or format, verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from branchwise import export as exports
from branchwise.cli import options
from branchwise.cli.options import Page, check_without_table, split_entry, takes
from branchwise.cli.support import check_outputs, open_output
from branchwise.cli.support.models import open_any, tree_of
from branchwise.cli.support.rows import (
    Inputs,
    check_two_streams,
    input_options,
    located,
    read_for_model,
)
from branchwise.errors import ParameterError

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble
    from branchwise.model import Model

_PAGE = Page("export")
_TARGETS = "|".join(exports.TARGETS)


@takes(inputs=input_options)
def export(
    model_path: str = options.MODEL,
    to: str = _PAGE.option("--to", ..., names=f"--to {_TARGETS}"),
    output: str | None = options.OUTPUT,
    option: list[str] | None = _PAGE.option("--option"),
    verify: str | None = _PAGE.option("--verify"),
    no_verify: bool = _PAGE.flag("--no-verify"),
    tree: int | None = options.TREE,
    *,
    inputs: Inputs,
) -> None:
    """Write a tree or an ensemble as code, rules or a file of another program."""
    if verify is not None and no_verify:
        raise ParameterError("--verify and --no-verify exclude each other. Give one.")
    check_without_table(inputs.reading, "--verify", verify, missing=inputs.missing)
    target = exports.target_named(to)
    check_two_streams(MODEL=model_path, TABLE=verify)
    if target.binary and output is None:
        raise ParameterError(
            f"--to {target.name} writes a file that is no text. Say where to with -o "
            "FILE; -o - is standard output."
        )
    check_outputs({"-o": output}, model_path, verify)
    model = open_any(model_path)
    if tree is not None:
        model = tree_of(model, model_path, tree)
    options = _options(option or ())
    if no_verify:
        content = exports.write(model, target.name, **options)
    else:
        content = _verified(model, target.name, options, verify, inputs)
    with open_output(output) as stream:
        stream.write(content)


def _options(given: Sequence[str]) -> dict[str, str]:
    options = {}
    for entry in given:
        split = split_entry(entry)
        if split is None:
            raise ParameterError(
                f"--option takes NAME=VALUE, such as dialect=sqlite. Got {entry!r}."
            )
        options[split[0]] = split[1]
    return options


def _verified(
    model: Model | Ensemble,
    target: str,
    options: dict[str, str],
    verify: str | None,
    inputs: Inputs,
) -> bytes:
    reporter = inputs.reporter
    if verify is None:
        with reporter.working("Verifying"):
            content, done = exports.exported(model, target, **options)
    else:
        with inputs.opened(verify) as (file, say):
            model, table = read_for_model(model, file, reporter)
            say("Verifying")
            with located(file):
                content, done = exports.exported(model, target, table, **options)
    for line in str(done).splitlines():
        reporter.note(line)
    return content
