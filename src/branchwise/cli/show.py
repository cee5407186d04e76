"""``branchwise show``: the tree as text, as rules or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from branchwise.cli.models import open_model
from branchwise.cli.options import Form, Format, ModelPath
from branchwise.cli.streams import print_json, print_lines
from branchwise.errors import ParameterError
from branchwise.model import Model
from branchwise.rules import Rule
from branchwise.table.schema import Column
from branchwise.tree import Tree
from branchwise.words import answer, condition_of, phrase

#: Levels of indentation; deeper nodes have no more.
_DEEPEST_INDENT = 24


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
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="Number the nodes, as branchwise prune --snip wants them, and show "
            "what each would answer.",
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
      branchwise show tree.json --nodes --max-depth 2
      branchwise show tree.json --format json
    """
    if rules and nodes:
        raise ParameterError(
            "--rules has only leaves and --nodes all nodes. Give one of them."
        )
    model = open_model(model_path)
    if form is Form.JSON:
        print_json(described(model))
    elif rules:
        print_lines(str(rule) for rule in model.rules())
    elif nodes:
        print_lines(_numbered(model, max_depth))
    else:
        text = model.to_text(max_depth=max_depth, empty_branches=empty_branches)
        print_lines([text])


def described(model: Model) -> dict[str, Any]:
    """Tell all about a model in plain values."""
    schema = model.schema
    return {
        "algorithm": model.recipe.algorithm,
        "criterion": model.recipe.scoring.name,
        "pruning": model.recipe.pruning,
        "predicts": "numbers" if model.tree.predicts_numbers else "classes",
        "nodes": len(model.tree),
        "leaves": model.tree.n_leaves,
        "depth": model.tree.max_depth,
        "schema": {
            "target": schema.target,
            "classes": list(schema.classes),
            "columns": [_described_column(column) for column in schema.columns],
        },
        "rules": [_described_rule(model.tree, rule) for rule in model.rules()],
    }


def _described_column(column: Column) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if not column.is_numeric:
        described["values"] = list(column.categories)
    described["has_missing"] = column.has_missing
    return described


def _described_rule(tree: Tree, rule: Rule) -> dict[str, Any]:
    return {
        "node": rule.node,
        "conditions": [
            {"column": c.column, "op": c.op, "value": c.value} for c in rule.conditions
        ],
        **_described_answer(tree, rule),
        "text": str(rule),
    }


def _described_answer(tree: Tree, rule: Rule) -> dict[str, Any]:
    if tree.mean is not None and tree.deviation is not None:
        return {
            "mean": float(tree.mean[rule.node]),
            "deviation": float(tree.deviation[rule.node]),
            "cases": rule.n,
        }
    return {
        "label": rule.label,
        "cases": rule.n,
        # A list, because the keys of a JSON object can only be text.
        "counts": [
            {"class": label, "cases": cases} for label, cases in rule.counts.items()
        ],
    }


def _numbered(model: Model, max_depth: int | None) -> Iterator[str]:
    """Yield a line for each node: its number, what leads to it, what it answers."""
    schema, tree = model.schema, model.tree
    width = len(str(len(tree) - 1))
    for node in tree.preorder():
        depth = int(tree.depth[node])
        if max_depth is not None and depth > max_depth:
            continue
        indent = "|   " * min(depth - 1, _DEEPEST_INDENT)
        way = phrase(condition_of(schema, tree, node)) if node else "all cases"
        yield f"{node:>{width}}  {indent}{way}: {answer(schema, tree, node)}"
