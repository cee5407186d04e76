"""``branchwise show``: the tree as text, as rules or as JSON."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from branchwise.cli.models import open_model
from branchwise.cli.options import Form, Format, ModelPath
from branchwise.cli.streams import print_json, print_lines
from branchwise.model import Model
from branchwise.rules import Rule
from branchwise.table.schema import Column


def show(
    model_path: ModelPath,
    rules: Annotated[
        bool, typer.Option("--rules", help="One rule for each leaf, not the tree.")
    ] = False,
    max_depth: Annotated[
        int | None,
        typer.Option(
            "--max-depth",
            min=0,
            metavar="N",
            help="How many levels to show.",
            show_default="all",
        ),
    ] = None,
    empty_branches: Annotated[
        bool,
        typer.Option(
            "--empty-branches",
            help="Show possible values without a training case, too.",
        ),
    ] = False,
    form: Format = Form.TEXT,
) -> None:
    """Print a tree, its rules, or all about it as JSON.

    A leaf is followed by (cases) or (cases/errors) of the training table.

    \b
    Examples:
      branchwise show tree.json
      branchwise show tree.json --max-depth 2
      branchwise show tree.json --rules
      branchwise show tree.json --format json
    """
    model = open_model(model_path)
    if form is Form.JSON:
        print_json(described(model))
    elif rules:
        print_lines(str(rule) for rule in model.rules())
    else:
        text = model.to_text(max_depth=max_depth, empty_branches=empty_branches)
        print_lines([text])


def described(model: Model) -> dict[str, Any]:
    """Tell all about a model in plain values."""
    schema = model.schema
    return {
        "algorithm": model.recipe.algorithm,
        "criterion": model.recipe.scoring.name,
        "nodes": len(model.tree),
        "leaves": model.tree.n_leaves,
        "depth": model.tree.max_depth,
        "schema": {
            "target": schema.target,
            "classes": list(schema.classes),
            "columns": [_described_column(column) for column in schema.columns],
        },
        "rules": [_described_rule(rule) for rule in model.rules()],
    }


def _described_column(column: Column) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if not column.is_numeric:
        described["values"] = list(column.categories)
    described["has_missing"] = column.has_missing
    return described


def _described_rule(rule: Rule) -> dict[str, Any]:
    return {
        "conditions": [
            {"column": c.column, "op": c.op, "value": c.value} for c in rule.conditions
        ],
        "label": rule.label,
        "cases": rule.n,
        # A list, because the keys of a JSON object can only be text.
        "counts": [
            {"class": label, "cases": cases} for label, cases in rule.counts.items()
        ],
        "text": str(rule),
    }
