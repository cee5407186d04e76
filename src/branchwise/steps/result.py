"""The result of ``model.steps``: worked solutions as documents in every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Schema
from branchwise.errors import ParameterError
from branchwise.steps.formulas import (
    SHOWN_TERMS,
    Figures,
    average_formula,
    candidate_formulas,
    count,
    impurity,
    symbol,
)
from branchwise.steps.nodes import bars_of, encoded, node_steps, wanted_nodes
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
from branchwise.text.conditions import (
    Condition,
    listed,
    mean,
    phrase,
    without_column,
    word,
)
from branchwise.text.document import as_latex, as_markdown, as_text
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

    schema: Schema
    bars: Bars
    figures: Figures

    @property
    def classes(self) -> list[str]:
        """The classes in words."""
        return [word(label) for label in self.schema.classes]

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
            is_regression=bars.criterion in ("variance", "poisson"),
        )


def page(nodes: Sequence[NodeSteps], context: Context) -> list[Block]:
    """Lay out the worked solution of some nodes."""
    bars = context.bars
    blocks: list[Block] = [
        Heading(f"Worked solution: {bars.recipe.algorithm}, {bars.criterion}", 1)
    ]
    for node in nodes:
        blocks += _node(node, context)
    blocks.append(
        Paragraph(
            "Figures are rounded for print: each is computed from all digits of those "
            "before it."
        )
    )
    return blocks


def _node(node: NodeSteps, context: Context) -> list[Block]:
    bars, figures, say = context.bars, context.figures, context.say
    by_class = [
        f"{count(weight)} {label}"
        for weight, label in zip(node.whole.weights, context.classes, strict=True)
        if weight > 0
    ]
    blocks: list[Block] = [
        Heading(say.title(node, node.path[-_SHOWN_CONDITIONS:]), 2),
        Paragraph(say.whole(node.whole, by_class)),
    ]
    if node.whole.impurity is not None:
        before = impurity("S", node.whole, bars, figures)
        blocks.append(Fold(_name_of_impurity(bars), (Formulas((before,)),)))
    for candidate in node.candidates:
        blocks += _candidate(candidate, node, context)
    if node.candidates:
        blocks.append(Heading("The choice", 3))
        sentences = f"{say.choice(node)} {say.afterwards(node)}".rstrip()
        pieces: list[Block] = [_overview(node, context), Paragraph(sentences)]
        if node.average is not None:
            pieces.insert(0, Formulas((average_formula(node, figures),)))
        blocks.append(Fold("Show the choice", tuple(pieces)))
    elif node.column is not None:
        blocks.append(Paragraph(say.afterwards(node)))
    blocks += _outcome(node, context)
    return blocks


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
    blocks += _tables(candidate, context)
    hidden: list[Block] = [Paragraph(s) for s in _notes(candidate, context)]
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


def _tables(candidate: Candidate, context: Context) -> list[Block]:
    """Return the count table of values, and that of branches if these are others."""
    grouped = any(
        group.condition is not None and group.condition.op == "in"
        for group in candidate.branches
    )
    missing = [] if candidate.missing is None else [candidate.missing]
    values = [*candidate.values, *missing]
    if candidate.numeric and not candidate.branches:
        known = [] if candidate.known is None else [candidate.known]
        values = [*(g for g in known if g.cases), *missing]
    blocks: list[Block] = []
    apart = grouped or candidate.joined is not None or not candidate.branches
    if apart and values:
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
    cells += [mean(group.mean)] if group.mean is not None else []
    cells += [context.figures(group.impurity)] if impure else []
    return tuple(cells)


def row_name(condition: Condition | None) -> str:
    """Name a row of a count table."""
    if condition is None or condition.op == "is known":
        return "(known)"
    if condition.op == "is missing":
        return "(missing)"
    of = condition.of
    if of is not None and (of.kind == "ordinal" or of.date is not None):
        return without_column(condition.worded)
    if isinstance(condition.value, tuple):
        return listed(condition.value)
    if condition.value is None:
        return condition.op
    value = word(condition.value)
    return value if condition.op == "=" else f"{condition.op} {value}"


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
            word(threshold.threshold),
            count(threshold.left),
            count(threshold.right),
            context.figures(threshold.gain),
            *([context.figures(threshold.score)] if ratio else []),
        )
        for threshold in candidate.thresholds
    ]
    gain = "score" if context.bars.own_criterion else "gain"
    head = ("threshold", "up to it", "above", gain)
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


#: Decimals, as textbooks have them.
DIGITS = 3
_MOST_DIGITS = 15
#: Nodes that are named before the rest is left out.
_NAMED_NODES = 5


@dataclass(frozen=True, repr=False)
class Steps:
    """The worked solution of some nodes of a tree: all numbers, node by node.

    ``bars`` is what the recipe demands of splits.
    """

    nodes: tuple[NodeSteps, ...]
    bars: Bars
    schema: Schema

    def __iter__(self) -> Iterator[NodeSteps]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, node: int) -> NodeSteps:
        """Return the steps of one node by its number in the tree."""
        for steps in self.nodes:
            if steps.node == node:
                return steps
        raise KeyError(
            f"There are no steps of node {node!r}: these are of "
            f"{', '.join(str(steps.node) for steps in self.nodes[:_NAMED_NODES])}"
            f"{', ...' if len(self) > _NAMED_NODES else ''}."
        )

    def _page(self, digits: int) -> list[Block]:
        whole = isinstance(digits, int) and not isinstance(digits, bool)
        if not whole or not 1 <= digits <= _MOST_DIGITS:
            raise ParameterError(
                f"digits must be a whole number from 1 to {_MOST_DIGITS}: the decimals "
                f"of figures. Got {digits!r} instead."
            )
        numbers = self.bars.criterion in ("variance", "poisson")
        figures = Figures(digits, numbers and not self.bars.own_criterion)
        return page(self.nodes, Context(self.schema, self.bars, figures))

    def to_text(self, digits: int = DIGITS) -> str:
        """Return the worked solution as text, figures with so many decimals."""
        return as_text(self._page(digits))

    def to_markdown(self, digits: int = DIGITS) -> str:
        """Return the worked solution as Markdown."""
        return as_markdown(self._page(digits))

    def to_latex(self, digits: int = DIGITS, document: bool = True) -> str:
        r"""Return the worked solution as LaTeX.

        Without ``document`` it has no preamble, to be read into a document that uses
        amsmath and textcomp.
        """
        return as_latex(self._page(digits), document)

    def to_html(self, digits: int = DIGITS, reveal: bool = False) -> str:
        """Return the worked solution as a page of its own.

        What there is to work out is folded away, unless ``reveal`` is true.
        """
        title = next(b.text for b in self._page(digits) if isinstance(b, Heading))
        body = html.markup(self.to_html_fragment(digits, reveal))
        return html.page(
            "steps/templates/page.html", title=title, style=style_sheet(), body=body
        )

    def to_html_fragment(
        self, digits: int = DIGITS, reveal: bool = False, heading: int = 1
    ) -> str:
        """Return a part of a page: a section, without style.

        The page brings :func:`style_sheet` along; ``heading`` is the level of the
        first heading.
        """
        inside = html.as_html(self._page(digits), heading, reveal)
        return f'<section class="branchwise-steps">\n{inside}\n</section>'

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, ready for JSON."""
        return {
            "algorithm": self.bars.recipe.algorithm,
            "criterion": self.bars.criterion,
            "classes": list(self.schema.classes),
            "nodes": [node.to_dict() for node in self.nodes],
        }

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        numbers = ", ".join(str(steps.node) for steps in self.nodes[:_NAMED_NODES])
        more = ", ..." if len(self.nodes) > _NAMED_NODES else ""
        return f"<branchwise steps of nodes {numbers}{more}; print() shows them>"

    def _repr_html_(self) -> str:
        return f"<style>\n{style_sheet()}</style>\n{self.to_html_fragment()}"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def style_sheet() -> str:
    """Return the style of worked solutions; every selector begins with their class."""
    return html.asset("steps/templates/steps.css")


def worked_solution(
    model: FittedTree, X: object, y: object, node: object, sample_weight: object
) -> Steps:
    """Work out nodes of a tree from the rows that it was grown from."""
    tree, recipe = model.tree, model.recipe
    wanted = wanted_nodes(tree, node)
    training = encoded(model, X, y, sample_weight)
    nodes = node_steps(model, training, wanted)
    root = tree.weights if recipe.weights_are_cases else tree.cases
    bars = bars_of(recipe, training, float(root[0].sum()))
    return Steps(tuple(nodes), bars, model.schema)
