"""The sheets of a workbook that are read: "Rules" and "How to use"."""

from __future__ import annotations

from collections.abc import Iterator

from branchwise.data.table_schema import Column, Value
from branchwise.errors import plain
from branchwise.export.excel.cell_formats import PROBABILITY, prediction_format
from branchwise.export.excel.sheets import Content, Sheet
from branchwise.export.plan import Field, Plan
from branchwise.text.column_conditions import ColumnPath, restricted_path
from branchwise.text.conditions import condition_on, phrase
from branchwise.text.label_words import title_of, unit_of
from branchwise.text.words import word

#: Nodes of the trees, above which a workbook has no rules in words.
MOST_NODES = 20_000
#: Characters of a rule; more cannot be read in a cell.
_MOST_CHARACTERS = 2_000
#: Values of a list before the rest is only counted.
_SHOWN_VALUES = 20
#: What is shown where no single rule decided.
FRACTIONAL_RULE = (
    "several rules: a value is missing or unseen, so the row goes down several "
    "branches, whose predictions are averaged"
)
_RULE_WIDTH, _CELL_WIDTH = 90, 14


def has_rules(plan: Plan) -> bool:
    """Whether the workbook tells the rules in words: not those of very large trees."""
    return len(plan.nodes) <= MOST_NODES


def column_heading(field: Field) -> str:
    """Return the name of a column to fill in, after its title and its unit."""
    title = title_of(field.schema_column, field.name)
    unit = unit_of(field.schema_column).name
    name = f" ({field.name})" if title != field.name else ""
    return f"{title}{f', {unit}' if unit else ''}{name}"


def class_heading(plan: Plan, code: int) -> Value:
    """Return a class, after the word for it, if it has one."""
    label = plan.classes[code]
    called = plan.class_words[code] if plan.class_words else label
    return label if called == label else f"{called} ({word(label)})"


def probability_headings(plan: Plan) -> list[Content]:
    """Return the names of the columns with the probability of each class."""
    codes = range(len(plan.classes))
    return [f"probability of {word(class_heading(plan, code))}" for code in codes]


def node_rules(plan: Plan) -> list[str]:
    """Return for every node of a tree the conditions of its path, in words."""
    rules = [""] * len(plan.nodes)
    for node, path in _paths(plan):
        rules[node] = _in_words(path)
    return rules


def _paths(plan: Plan) -> Iterator[tuple[int, ColumnPath]]:
    """Walk the tree in the order in which it is printed, with the path of each node."""
    columns = [_column(field) for field in plan.fields]
    stack: list[tuple[int, ColumnPath]] = [(0, {})]
    while stack:
        position, path = stack.pop()
        yield position, path
        node = plan.nodes[position]
        if node.split is None:
            continue
        column = columns[node.split.field]
        for branch in reversed(range(len(node.split.branches))):
            codes = node.split.branches[branch]
            condition = condition_on(column, codes, node.split.threshold or 0.0)
            below = restricted_path(path, column, condition)
            stack.append((node.child(branch), below))


def _column(field: Field) -> Column:
    """Return the column of a field, which knows how its conditions are worded."""
    if field.schema_column is not None:
        return field.schema_column
    if field.numeric:
        return Column(field.name, "numeric")
    return Column(field.name, "categorical", field.values)


def _in_words(path: ColumnPath) -> str:
    conditions = [c for of_column in path.values() for c in of_column.simple]
    rule = " and ".join(phrase(c, _SHOWN_VALUES, typeset=True) for c in conditions)
    rule = rule or "all rows"
    if len(rule) <= _MOST_CHARACTERS:
        return rule
    return f"{rule[:_MOST_CHARACTERS]} ..."


def rules_sheet(plan: Plan) -> Sheet:
    """Return the sheet "Rules": a line for each leaf, in the order of the tree."""
    trees = plan.trees or (plan,)
    first: list[Content] = ["tree"] if plan.trees else []
    adds = "adds" if plan.initial else "prediction"
    classes = [] if plan.has_numbers else probability_headings(plan)
    rows: list[list[Content]] = [[*first, "if", adds, *classes]]
    for number, tree in enumerate(trees, start=1):
        for position, path in _paths(tree):
            node = tree.nodes[position]
            if node.split is not None:
                continue
            said: Content = node.number
            if not plan.has_numbers:
                said = class_heading(plan, node.label)
            mine: list[Content] = [number] if plan.trees else []
            rows.append([*mine, _in_words(path), said, *node.probabilities])
    at = len(first)
    probabilities = range(at + 2, at + 2 + len(classes))
    shown = dict.fromkeys(probabilities, PROBABILITY)
    means = prediction_format(plan) if plan.link is None else None
    if means is not None:
        shown[at + 1] = means
    return Sheet(
        "Rules",
        rows,
        [*([6] * at), _RULE_WIDTH, _CELL_WIDTH, *(_CELL_WIDTH + 8 for _ in classes)],
        number_formats=shown,
        wrapped_columns=frozenset([at]),
    )


def guide_sheet(plan: Plan, n_rows: int) -> Sheet:
    """Return the sheet "How to use", a line for each thing to know."""
    rows: list[list[Content]] = [[f"How to use: {plain(plan.about)}"]]
    rows += [[line] for line in _guide(plan, n_rows)]
    return Sheet("How to use", rows, [110], wrapped_columns=frozenset([0]))


def _guide(plan: Plan, n_rows: int) -> Iterator[str]:
    yield (
        "Type or paste one case in each line of the sheet Rows, into the yellow "
        "columns. The prediction is beside it."
    )
    yield "An empty cell is a missing value. An empty line has no prediction."
    if plan.rejects_missing:
        yield "A line with a missing value has no prediction."
    if any(not field.numeric for field in plan.fields):
        unseen = "has no prediction" if plan.rejects_unseen else "counts as unseen"
        yield (
            "Columns of names have a list to choose from. Capitals and spaces matter: "
            f"a value that the training rows did not have is red, and {unseen}."
        )
    if any(field.numeric for field in plan.fields):
        yield (
            "Columns of numbers take numbers. Text is red there, and the prediction "
            "may be #N/A."
        )
    if any(unit_of(field.schema_column).power for field in plan.fields):
        yield (
            "Columns of per cent show and take per cent: 4.39 % in such a cell is "
            "0.0439, as in the model. Paste 0.0439, not 4.39."
        )
    if any(field.date is not None for field in plan.fields):
        yield "Columns of dates take dates from 1900-03-01 on, not text."
    if plan.classes:
        yield "Probabilities are shown in per cent, and have all their digits."
    yield from _about_rules(plan)
    yield (
        f"Formulas are in {n_rows:,} lines. For more, copy the last line of Rows and "
        "the last line of Steps downwards."
    )
    yield (
        "Steps, Tree and Values are what the formulas look up: leave them as they are."
    )
    yield "The formulas predict as the model does, for numbers of up to 14 digits."


def _about_rules(plan: Plan) -> Iterator[str]:
    if not has_rules(plan):
        yield f"Models of more than {MOST_NODES:,} nodes have no rules in words here."
    elif plan.trees:
        yield "Rules has every tree in words, a line for each leaf."
    else:
        yield (
            "The rule that decided a line is beside its prediction. Where a value is "
            "missing, it names the branch that the tree takes for missing values."
        )
        yield "Rules has the whole tree in words, a line for each leaf."
