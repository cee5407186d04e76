"""``branchwise rules``: the rules of a tree, or rules that vote, as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from branchwise.cli import options
from branchwise.cli.options import Page, check_idle, check_without_table, takes
from branchwise.cli.support import open_output, print_json, print_lines
from branchwise.cli.support.models import open_any, open_tree, tree_of
from branchwise.cli.support.rows import (
    Inputs,
    KnownRows,
    check_two_streams,
    class_written,
    input_options,
    located,
    read_known_rows,
)
from branchwise.data.table_schema import Schema, Value
from branchwise.errors import ParameterError, quoted
from branchwise.files.write_table import write_columns
from branchwise.model import Model
from branchwise.rules.rule_list import RuleList, RuleTable
from branchwise.rules.rule_set import Rules

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

_PAGE = Page("rules")
_FORMATS = ("text", "markdown", "json", "csv")
_ORDERS = ("tree", "coverage", "confidence")
_OF_ENSEMBLES = (
    "Choose one with --tree N, from 0 to {last:,}. (The rules of a whole forest are "
    "judged out of bag, by its training rows: branchwise report has them.)"
)


@takes(inputs=input_options)
def rules(
    model_path: str = options.MODEL,
    simplify: bool | None = _PAGE.option("--simplify/--no-simplify"),
    label: str | None = _PAGE.option("--class"),
    sort: str | None = _PAGE.option("--sort", choices=_ORDERS),
    generalise: str | None = _PAGE.option("--generalise"),
    test: str | None = _PAGE.option("--test"),
    target: str | None = _PAGE.option("--target"),
    weight: str | None = _PAGE.option("--weight"),
    confidence: float | None = _PAGE.option("--confidence"),
    output_format: str = _PAGE.option("--format", "text", choices=_FORMATS),
    tree: int | None = options.TREE,
    *,
    inputs: Inputs,
) -> None:
    """Print the rules of a tree as sentences, with coverage and confidence."""
    if generalise is None:
        check_idle(
            {
                "--test": test,
                "--target": target,
                "--weight": weight,
                "--confidence": confidence,
                "--missing": inputs.missing,
            },
            "without --generalise. Give --generalise TABLE with the rows that the tree "
            "was grown from.",
        )
        check_without_table(inputs.reading, "--generalise", None)
        found = _found(open_any(model_path), model_path, tree, simplify)
        _print_rules(_chosen(found, label, sort), output_format)
        return
    _check_with_rows(simplify, label, sort)
    check_two_streams(MODEL=model_path, **{"--generalise": generalise, "--test": test})
    model = open_tree(model_path, tree, _OF_ENSEMBLES)
    with inputs.opened(generalise) as (file, say):
        read = read_known_rows(model, file, target, weight, inputs.reporter)
        say("Generalising")
        with located(read.file):
            listed = read.model.generalised_rules(
                read.X, read.y, confidence=confidence, sample_weight=read.weights
            )
        tested = KnownRows(model)
        if test is not None:
            say("Testing")
            file = inputs.open(test, further=True)
            tested = read_known_rows(model, file, target, weight, inputs.reporter)
        with located(tested.file):
            table = listed.table(tested.X, tested.y, tested.weights)
    _print_list(listed, table, output_format)


def _check_with_rows(
    simplify: bool | None, label: str | None, sort: str | None
) -> None:
    """Reject options that do not apply to a rule list."""
    given: Mapping[str, Any] = {
        "--no-simplify": simplify is False or None,
        "--class": label,
        "--sort": sort,
    }
    idle = [name for name, value in given.items() if value is not None]
    if idle:
        raise ParameterError(
            f"{idle[0]} does not go with --generalise, whose rules are simplified and "
            "decide together, in their order. Give one of them."
        )


def _found(
    model: Model | Ensemble, path: str, tree: int | None, simplify: bool | None
) -> Rules:
    """Return the rules of a tree, or those that vote."""
    votes = not isinstance(model, Model) and model.recipe.method == "rules"
    if tree is None and votes:
        check_idle(
            {"--no-simplify": simplify is False},
            "on rules that vote, which are no paths of a tree. Leave it out.",
        )
        return cast("Ensemble", model).voting_rules()
    return tree_of(model, path, tree, _OF_ENSEMBLES).rules(
        simplify=simplify is not False
    )


def _chosen(found: Rules, label: str | None, sort: str | None) -> Rules:
    if label is not None:
        found = found.for_class(_class_called(found.schema, label))
    return found if sort is None else found.sort_by(sort)


def _class_called(schema: Schema, text: str) -> Value:
    """Return the class that is written like this."""
    classes = schema.classes
    if not classes:
        raise ParameterError(
            "--class needs a model that predicts classes. This one predicts numbers."
        )
    label = class_written(schema, text)
    if label is None:
        raise ParameterError(
            f"--class must be one of {quoted(classes, 20)}. Got {text!r} instead."
        )
    return label


def _print_rules(found: Rules, output_format: str) -> None:
    if output_format == "json":
        print_json(found.to_dict())
    elif output_format == "csv":
        _print_csv(found.to_columns())
    else:
        text = output_format == "text"
        print_lines([found.to_text() if text else found.to_markdown()])


def _print_list(listed: RuleList, table: RuleTable, output_format: str) -> None:
    if output_format == "json":
        print_json({**listed.to_dict(), "table": table.to_dict()})
    elif output_format == "csv":
        _print_csv(table.to_columns())
    elif output_format == "markdown":
        print_lines([listed.to_markdown(), "", table.to_markdown()])
    else:
        print_lines([listed.to_text(), "", str(table)])


def _print_csv(columns: Mapping[str, list[Any]]) -> None:
    with open_output(None) as file:
        write_columns(file, columns, "csv")
