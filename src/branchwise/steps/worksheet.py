"""Worksheets: an exercise with a blank for each figure, and its solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from branchwise.steps.formulas import candidate_formulas, impurity, symbol
from branchwise.steps.layout import (
    Context,
    page,
    rows_table,
    simple,
    tables_to_fill,
    title,
)
from branchwise.steps.numbers import Candidate, NodeSteps
from branchwise.text.blocks import (
    BLANK,
    Block,
    Formula,
    Formulas,
    Heading,
    Paragraph,
    Table,
)
from branchwise.text.conditions import phrase
from branchwise.text.words import word


def worksheet(nodes: Sequence[NodeSteps], context: Context) -> list[Block]:
    """Lay out the exercise of some nodes, and then their worked solution."""
    blocks: list[Block] = [
        Heading(title(context, "Worksheet"), 1),
        Paragraph("Fill in each blank. The solutions are at the end."),
    ]
    first, *later = nodes
    blocks += _exercise(first, context)
    for node in later:
        if node.candidates:
            blocks += _later(node, context)
    solution = page(nodes, context)
    heading = Heading(title(context, "Solutions"), 1, new_page=True)
    return [*blocks, heading, *solution[1:]]


def _exercise(node: NodeSteps, context: Context) -> list[Block]:
    """Return all steps of a node, without their figures."""
    conditions = " and ".join(map(phrase, node.path)) or "the root, all cases"
    by_class = ", ".join(
        f"{cases:g} {label}"
        for cases, label in zip(node.whole.weights, context.classes, strict=True)
    )
    blocks: list[Block] = [
        Heading(f"Node {node.node}: {conditions}", 2),
        Paragraph(f"{by_class}." if by_class else f"{node.whole.cases:g} cases."),
        *rows_table(node),
    ]
    if node.whole.impurity is not None and symbol(context.bars):
        whole = impurity("S", node.whole, context.bars, context.figures)
        blocks.append(Formulas((_blank(whole),)))
    for candidate in node.candidates:
        blocks.append(Heading(f"Column {word(candidate.column)}", 3))
        blocks += tables_to_fill(candidate, context, BLANK)
        if formulas := _to_fill(candidate, node, context):
            blocks.append(Formulas(formulas))
    blocks += [Heading("The choice", 3), *_choice(node, context)]
    blocks += [Heading("The branches", 3), Paragraph(BLANK * 5)]
    return blocks


def _to_fill(
    candidate: Candidate, node: NodeSteps, context: Context
) -> tuple[Formula, ...]:
    """Return the left sides of the formulas; of a split to be found only its score."""
    formulas = candidate_formulas(candidate, node.whole, context.bars, context.figures)
    own = symbol(context.bars)
    found = [
        _blank(formula)
        for formula in formulas
        if simple(candidate) or formula.name != own or formula.of.startswith("S | ")
    ]
    if found and context.bars.criterion == "gain_ratio" and candidate.score is None:
        # Without it one could tell that the column is out.
        found.append(Formula("gain ratio", word(candidate.column), (), BLANK * 3))
    return tuple(found)


def _blank(formula: Formula) -> Formula:
    return replace(formula, terms=(), value=BLANK * 3)


def _choice(node: NodeSteps, context: Context) -> list[Block]:
    score = "gain ratio" if context.bars.criterion == "gain_ratio" else "gain"
    rows = [(word(candidate.column), BLANK) for candidate in node.candidates]
    table = Table(("column", score), rows)
    wanted = f"The column that is chosen: {BLANK}, because {BLANK * 3}"
    return [*([table] if rows else []), Paragraph(wanted)]


def _later(node: NodeSteps, context: Context) -> list[Block]:
    """Return a node further down: what leads to it would tell what was chosen."""
    classes = ", ".join(f"{BLANK} {label}" for label in context.classes)
    return [
        Heading(f"Node {node.node}: {BLANK * 2}", 2),
        Paragraph(classes or f"{BLANK} cases, mean {BLANK}"),
        *_choice(node, context),
    ]
