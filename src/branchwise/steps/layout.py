"""The layout of worked solutions: nodes, columns, choices and branches as blocks.

A page has the solution; or the solution folded away, so that nothing of it is seen
before it is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Schema, Value
from branchwise.steps.formulas import (
    SHOWN_TERMS,
    Figures,
    average_formula,
    candidate_formulas,
    count,
    impurity,
    symbol,
)
from branchwise.steps.node_rows import known_tree
from branchwise.steps.numbers import Bars, Candidate, Group, NodeSteps
from branchwise.text import as_html as html
from branchwise.text.blocks import (
    Block,
    Fold,
    Formulas,
    Heading,
    Items,
    Paragraph,
    Table,
)
from branchwise.text.conditions import Condition, phrase, without_column
from branchwise.text.label_words import Unit, called, target_unit
from branchwise.text.words import word
from branchwise.threads import cached_property
from branchwise.train.fitted_tree import FittedTree

#: Of more classes only the first have a column, and the rest share one.
_SHOWN_CLASSES = 12
#: Of more thresholds only the best is shown.
_SHOWN_THRESHOLDS = 20
#: Of a longer path only the end is shown.
_SHOWN_CONDITIONS = 8


@dataclass(frozen=True)
class Context:
    """What all nodes of a page share."""

    model: FittedTree
    bars: Bars
    figures: Figures
    #: Whether the solution is folded away.
    folded: bool = False

    @property
    def schema(self) -> Schema:
        """The columns and the classes."""
        return self.model.schema

    @property
    def classes(self) -> list[str]:
        """The classes in words."""
        return [word(label) for label in self.schema.classes]

    @property
    def unit(self) -> Unit:
        """The unit of predicted numbers."""
        return target_unit(self.schema)

    def threshold_words(self, name: str, threshold: Value) -> str:
        """Write a threshold of a column with its unit."""
        column = next((c for c in self.schema.columns if c.name == name), None)
        return word(called(column, threshold))

    @cached_property
    def say(self) -> Any:
        """The sentences, as functions of nodes and candidates."""
        bars, figures = self.bars, self.figures
        return html.macros(
            "steps/templates/sentences.txt",
            recipe=bars.recipe,
            bars=bars,
            figures=figures,
            count=count,
            unit=self.unit,
            threshold_words=self.threshold_words,
            is_regression=bars.criterion in ("variance", "poisson"),
        )


def page(nodes: Sequence[NodeSteps], context: Context) -> list[Block]:
    """Lay out the worked solution of some nodes."""
    blocks: list[Block] = [Heading(title(context), 1)]
    worked: set[int] = set()
    for node in nodes:
        worked.add(node.node)
        shown = _node(node, context, worked)
        if context.folded and node.depth and len(nodes) > 1:
            # Where it is tells what was chosen above.
            shown = [Fold(f"Node {node.node}", tuple(shown))]
        blocks += shown
    blocks.append(
        Paragraph(
            "Figures are rounded for print: each is computed from all digits of those "
            "before it."
        )
    )
    return blocks


def title(context: Context, of: str = "Worked solution") -> str:
    """Return the title of a page: what is predicted, by which criterion."""
    bars, target = context.bars, context.schema.target
    whose = "" if target is None else f" of {word(target)}"
    return f"{of}{whose}: {bars.recipe.algorithm}, {bars.criterion}"


def _node(node: NodeSteps, context: Context, worked: set[int]) -> list[Block]:
    bars, figures, say = context.bars, context.figures, context.say
    by_class = [
        f"{count(weight)} {label}"
        for weight, label in zip(node.whole.weights, context.classes, strict=True)
        if weight > 0
    ]
    blocks: list[Block] = [
        Heading(say.title(node, node.path[-_SHOWN_CONDITIONS:]), 2),
        Paragraph(say.whole(node.whole, by_class)),
        *rows_table(node),
    ]
    if node.whole.impurity is not None:
        before = impurity("S", node.whole, bars, figures)
        blocks.append(Fold(_name_of_impurity(bars), (Formulas((before,)),)))
    for candidate in node.candidates:
        blocks += _candidate(candidate, node, context)
    pieces: list[Block] = []
    if node.candidates:
        blocks.append(Heading("The choice", 3))
        sentences = f"{say.choice(node)} {say.afterwards(node)}".rstrip()
        pieces += [_overview(node, context), Paragraph(sentences)]
        if node.average is not None:
            pieces.insert(0, Formulas((average_formula(node, figures),)))
    elif node.column is not None:
        pieces.append(Paragraph(say.afterwards(node)))
    outcome = [*_criteria(node, context), *_outcome(node, context)]
    if node.column is not None and node.depth:  # else it is as the branches tell
        outcome += _known_tree(node, context, worked)
    if context.folded:
        summary = "Show the choice" if node.candidates else "Split or leaf?"
        return [*blocks, Fold(summary, (*pieces, *outcome))]
    if node.candidates:
        return [*blocks, Fold("Show the choice", tuple(pieces)), *outcome]
    return [*blocks, *pieces, *outcome]


def rows_table(node: NodeSteps) -> list[Block]:
    """Return the rows of a node, where they were requested."""
    if node.rows is None:
        return []
    head, cells, total = node.rows.head, node.rows.cells, node.rows.total
    blocks: list[Block] = [Table(head, cells, words=range(1, len(head)))]
    if total > len(cells):
        blocks.append(Paragraph(f"... and {total - len(cells):,} more rows."))
    return blocks


def _criteria(node: NodeSteps, context: Context) -> list[Block]:
    """Return criteria side by side, where these were requested."""
    every = node.by_criterion
    if not every or not node.candidates:
        return []
    head = ["column", *(one.criterion for one in every)]
    rows = [
        (
            word(candidate.column),
            *(context.figures(one.scores.get(candidate.column)) for one in every),
        )
        for candidate in node.candidates
    ]
    chosen = ["-" if one.chosen is None else word(one.chosen) for one in every]
    by_column: dict[str, list[str]] = {}
    for one, column in zip(every, chosen, strict=True):
        by_column.setdefault(column, []).append(one.criterion)
    disagree = "; ".join(
        f"{' and '.join(names)}: {column}" for column, names in by_column.items()
    )
    agreed = len(by_column) == 1
    said = f"All of them choose {chosen[0]}." if agreed else f"They differ. {disagree}."
    table = Table(head, [*rows, ("chosen", *chosen)])
    return [Heading("Criteria side by side", 3), table, Paragraph(said)]


def _known_tree(node: NodeSteps, context: Context, worked: set[int]) -> list[Block]:
    above, parent = set(worked), context.model.tree.parent
    at = node.node
    while at > 0:
        at = int(parent[at])
        above.add(at)
    drawn = known_tree(context.model, above)
    return [] if drawn is None else [Heading("The tree so far", 3), drawn]


def _name_of_impurity(bars: Bars) -> str:
    names = {"H": "Entropy", "Gini": "Gini impurity", "Var": "Variance"}
    return f"{names.get(symbol(bars), 'Deviance')} of all cases"


def _outcome(node: NodeSteps, context: Context) -> list[Block]:
    if node.ending is not None:
        return [Heading("The prediction", 3), Paragraph(context.say.leaf(node))]
    items = [context.say.child(child) for child in node.children]
    if node.absent:
        items.append(context.say.absent(node))
    if node.missing_goes is not None:
        items.append(f"{word(node.column or '')} is missing: {node.missing_goes}")
    return [Heading("The branches", 3), Items(tuple(items))]


def _candidate(candidate: Candidate, node: NodeSteps, context: Context) -> list[Block]:
    name = word(candidate.column)
    blocks: list[Block] = [Heading(f"Column {name}", 3)]
    hidden: list[Block] = []
    tables = _tables(candidate, context)
    if context.folded:
        blocks += tables_to_fill(candidate, context)
        if candidate.branches and not simple(candidate):
            hidden.append(tables[-1])
    else:
        blocks += tables
    hidden += [Paragraph(s) for s in _notes(candidate, context)]
    if 1 < len(candidate.thresholds) <= _SHOWN_THRESHOLDS:
        hidden.append(_thresholds(candidate, context))
    formulas = candidate_formulas(candidate, node.whole, context.bars, context.figures)
    if shown := tuple(formulas):
        hidden.append(Formulas(shown))
    if candidate.out is not None:
        out = context.say.out(candidate, node)
        hidden.append(Paragraph(f"{name} is out: {out}."))
    if hidden:
        blocks.append(Fold(f"Work out {name}", tuple(hidden)))
    return blocks


def simple(candidate: Candidate) -> bool:
    """Whether each value has a branch of its own, so that no split is to be found."""
    return not candidate.numeric and not _apart(candidate)


def tables_to_fill(
    candidate: Candidate, context: Context, blank: str | None = None
) -> list[Block]:
    """Return the counts that there are before a split is found, without impurities.

    With ``blank`` they have a column for impurities, with this in its cells.
    """
    missing = [] if candidate.missing is None else [candidate.missing]
    if simple(candidate):
        groups = [*candidate.branches, *missing]
        table = _table(candidate.column, groups, context, False)
        if blank and symbol(context.bars):
            rows = [(*row, blank) for row in table.rows]
            table = Table((*table.head, symbol(context.bars)), rows)
        return [table]
    wanted = "threshold" if candidate.numeric else "groups of values"
    blocks: list[Block] = []
    if candidate.values:
        groups = [*candidate.values, *missing]
        blocks.append(_table(candidate.column, groups, context, False))
    if candidate.branches:
        blocks.append(Paragraph(f"Find the best {wanted}."))
    return blocks


def _apart(candidate: Candidate) -> bool:
    """Whether values are counted apart from branches."""
    grouped = any(
        group.condition is not None and group.condition.op == "in"
        for group in candidate.branches
    )
    return grouped or candidate.joined is not None or not candidate.branches


def _tables(candidate: Candidate, context: Context) -> list[Block]:
    """Return the count table of values, and that of branches if these are others."""
    missing = [] if candidate.missing is None else [candidate.missing]
    values = [*candidate.values, *missing]
    if candidate.numeric and not candidate.branches:
        known = [] if candidate.known is None else [candidate.known]
        values = [*(g for g in known if g.cases), *missing]
    blocks: list[Block] = []
    if _apart(candidate) and values:
        blocks.append(_table(candidate.column, values, context, False))
    if candidate.branches:
        outside = [] if candidate.joined is not None else missing
        rows = [*candidate.branches, *outside]
        blocks.append(_table(candidate.column, rows, context, True))
    return blocks


def _table(
    column: str, groups: Sequence[Group], context: Context, with_impurity: bool
) -> Table:
    """Count groups by class; missing cases that no branch has are without impurity."""
    weighted = any(group.weight != group.cases for group in groups)
    impure = with_impurity and bool(symbol(context.bars))
    classes = context.classes
    shown = classes if len(classes) <= _SHOWN_CLASSES else classes[:_SHOWN_CLASSES]
    heads = list(shown)
    if len(shown) < len(classes):
        heads.append(f"{len(classes) - len(shown):,} others")
    by_weight = " (weight)" if weighted else ""
    head = [word(column), *(f"{name}{by_weight}" for name in heads)]
    head += ["weight", "cases"] if weighted else ["cases"]
    head += ["weighted mean" if weighted else "mean"] if not classes else []
    head += [symbol(context.bars)] if impure else []
    rows = [
        _row(group, len(shown), weighted, impure, context)
        for group in groups[:SHOWN_TERMS]
    ]
    if len(groups) > SHOWN_TERMS:
        more = f"... ({len(groups) - SHOWN_TERMS:,} more)"
        rows.append((more, *[""] * (len(head) - 1)))
    return Table(tuple(head), tuple(rows))


def _row(
    group: Group, shown: int, weighted: bool, impure: bool, context: Context
) -> tuple[str, ...]:
    cells = [row_name(group.condition), *map(count, group.weights[:shown])]
    if shown < len(group.weights):
        cells.append(count(sum(group.weights[shown:])))
    cells += [count(group.weight)] if weighted else []
    cells.append(count(group.cases))
    cells += [context.unit.mean(group.mean)] if group.mean is not None else []
    cells += [context.figures(group.impurity)] if impure else []
    return tuple(cells)


def row_name(condition: Condition | None) -> str:
    """Name a row of a count table."""
    if condition is None or condition.op == "is known":
        return "(known)"
    if condition.op == "is missing":
        return "(missing)"
    return without_column(condition.worded)


def _notes(candidate: Candidate, context: Context) -> list[str]:
    """Write how the best split of a column was found."""
    notes = []
    if candidate.numeric and candidate.positions:
        notes.append(context.say.positions(candidate))
    n_values, grouped = len(candidate.values), context.bars.recipe.branching != "values"
    if candidate.branches and grouped and n_values > 2:
        conditions = [group.condition for group in candidate.branches]
        n_groups = sum(c is not None and c.op != "is missing" for c in conditions)
        notes.append(context.say.grouping(n_values, n_groups))
    if candidate.joined is not None:
        branch = candidate.branches[candidate.joined].condition
        if branch is not None:
            notes.append(f"The missing cases fit best with {phrase(branch)}.")
    return notes


def _thresholds(candidate: Candidate, context: Context) -> Table:
    ratio = context.bars.criterion == "gain_ratio"
    rows = [
        (
            context.threshold_words(candidate.column, threshold.threshold),
            count(threshold.left),
            count(threshold.right),
            context.figures(threshold.gain),
            *([context.figures(threshold.score)] if ratio else []),
        )
        for threshold in candidate.thresholds
    ]
    gain = "score" if context.bars.own_criterion else "gain"
    weighted = any(group.weight != group.cases for group in candidate.branches)
    by_weight = " (weight)" if weighted else ""
    head = ("threshold", f"up to it{by_weight}", f"above{by_weight}", gain)
    return Table(head + (("ratio",) if ratio else ()), tuple(rows))


def _overview(node: NodeSteps, context: Context) -> Table:
    """Compare all columns."""
    bars, figures = context.bars, context.figures
    ratio = bars.criterion == "gain_ratio"
    penalty = any(c.penalty is not None for c in node.candidates)
    head = ["column", "score" if bars.own_criterion else "gain"]
    head += ["lowered"] if penalty else []
    head += ["split information", "ratio"] if ratio else []
    rows = []
    for candidate in node.candidates:
        cells = [word(candidate.column), figures(candidate.raw_gain)]
        cells += [figures(candidate.gain)] if penalty else []
        cells += [figures(candidate.split_information)] if ratio else []
        cells += [figures(candidate.score)] if ratio else []
        rows.append((*cells, _verdict(candidate, node)))
    return Table((*head, "verdict"), tuple(rows), words=(0, len(head)))


def _verdict(candidate: Candidate, node: NodeSteps) -> str:
    if candidate.out is not None:
        return "out"
    if candidate.column == node.chosen:
        return "chosen"
    return "equal" if candidate.tied else ""
