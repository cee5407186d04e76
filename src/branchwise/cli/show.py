"""``branchwise show``: the tree as text or as a picture, as rules or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from branchwise.cli.models import open_model
from branchwise.cli.options import (
    Form,
    Format,
    ModelPath,
    Output,
)
from branchwise.cli.streams import check_output, keep_inputs, print_json, print_lines
from branchwise.errors import ParameterError
from branchwise.model import Model
from branchwise.rules import Rule
from branchwise.table.schema import Column
from branchwise.tree import Tree
from branchwise.words import answer, condition_of, phrase

#: Levels of indentation; deeper nodes have no more.
_DEEPEST_INDENT = 24


class Style(StrEnum):
    """How the tree is shown."""

    QUINLAN = "quinlan"
    BOX = "box"
    MARKDOWN = "markdown"
    SVG = "svg"
    DOT = "dot"
    MERMAID = "mermaid"


#: Those that are drawn, not written.
_PICTURES = (Style.SVG, Style.DOT, Style.MERMAID)


def show(
    model_path: ModelPath,
    style: Annotated[
        Style | None,
        typer.Option(
            "--style",
            "-s",
            help="Text in Quinlan's form, with lines, or as a Markdown list; or a "
            "picture: SVG, DOT for Graphviz, or a Mermaid flowchart.",
            show_default="quinlan",
        ),
    ] = None,
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
    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes",
            min=1,
            metavar="N",
            help="How many nodes a picture has; the others are counted in it.",
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
    output: Output = None,
) -> None:
    """Print a tree, draw it, or tell its rules or all about it as JSON.

    A leaf is followed by (cases) or (cases/errors) of the training table.

    \b
    Examples:
      branchwise show tree.json
      branchwise show tree.json --max-depth 2
      branchwise show tree.json --style box
      branchwise show tree.json --style svg -o tree.svg
      branchwise show tree.json --style dot | dot -Tpdf -o tree.pdf
      branchwise show tree.json --rules
      branchwise show tree.json --nodes --max-depth 2
      branchwise show tree.json --format json
    """
    if rules and nodes:
        raise ParameterError(
            "--rules has only leaves and --nodes all nodes. Give one of them."
        )
    given = {
        "--style": style is not None,
        "--rules": rules,
        "--nodes": nodes,
        "--max-depth": max_depth is not None,
        "--max-nodes": max_nodes is not None,
        "--empty-branches": empty_branches,
    }
    style = style or Style.QUINLAN
    _refuse_idle(_shown_is(form, rules, nodes, style), given)
    check_output(output)
    keep_inputs({"-o": output}, model_path)
    model = open_model(model_path)
    if form is Form.JSON:
        print_json(described(model), output)
    elif rules:
        print_lines((str(rule) for rule in model.rules()), output)
    elif nodes:
        print_lines(_numbered(model, max_depth), output)
    else:
        shown = _shown(model, style, max_depth, max_nodes, empty_branches)
        print_lines([shown], output)


def _shown_is(form: Form, rules: bool, nodes: bool, style: Style) -> str:
    """Tell which option decides what is shown."""
    if form is Form.JSON:
        return "--format json"
    if rules or nodes:
        return "--rules" if rules else "--nodes"
    return f"--style {style}"


def _refuse_idle(shown: str, given: dict[str, bool]) -> None:
    """Refuse options that change nothing about what is shown."""
    text = {"--style", "--max-depth", "--empty-branches"}
    picture = {"--style", "--max-depth", "--max-nodes"}
    effective = {
        "--format json": set[str](),
        "--rules": {"--rules"},
        "--nodes": {"--nodes", "--max-depth"},
        **{f"--style {style}": text for style in Style},
        **{f"--style {style}": picture for style in _PICTURES},
    }
    for option, is_given in given.items():
        if is_given and option not in effective[shown]:
            raise ParameterError(
                f"{option} has no effect with {shown}. Leave one of them out."
            )


def _shown(
    model: Model,
    style: Style,
    max_depth: int | None,
    max_nodes: int | None,
    empty_branches: bool,
) -> str:
    """Return the tree in a style."""
    if style is Style.SVG:
        return model.to_svg(max_depth, max_nodes)
    if style is Style.DOT:
        return model.to_dot(max_depth, max_nodes)
    if style is Style.MERMAID:
        return model.to_mermaid(max_depth, max_nodes)
    return model.to_text(
        max_depth=max_depth, empty_branches=empty_branches, style=str(style)
    )


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
