"""Export to Excel: a workbook whose formulas predict the rows that are typed in.

"Rows" is for the user, with the rule that decided each row; "Rules" and "How to use"
are in words. "Steps" follows every row through the tree, "Tree" has the tree as a table
of states (:mod:`branchwise.export.state_table`), "Values" the values and classes.
Names and values are cells of their own, never parts of formulas.

Spreadsheet programs treat numbers as equal that differ after 15 digits or so. So the
sheet is exact for numbers of up to 14 digits, and its bounds are the largest such
numbers on the same side of the model's threshold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from branchwise.errors import ExportError, ParameterError, counted
from branchwise.export.base import Options, Target
from branchwise.export.excel.cell_formats import (
    PROBABILITY,
    input_format,
    prediction_format,
)
from branchwise.export.excel.ensemble_sheet import EnsembleSteps, rounding
from branchwise.export.excel.serial_dates import cell_format, check_dates_held
from branchwise.export.excel.sheets import (
    DIGITS,
    DOMAIN,
    Content,
    Input,
    Sheet,
    column_name,
    fitting,
    held,
    normal,
    runners,
    workbook,
)
from branchwise.export.excel.steps_sheet import Steps, header
from branchwise.export.excel.word_sheets import (
    FRACTIONAL_RULE,
    column_heading,
    guide_sheet,
    has_rules,
    node_rules,
    probability_headings,
    rules_sheet,
)
from branchwise.export.plan import Field, Plan
from branchwise.export.state_table import Machine, make_machine
from branchwise.text.words import word

#: What a workbook may have: cells with formulas, columns, rows of a table.
_MOST_FORMULAS = 400_000
_MOST_COLUMNS = 16_000
_MOST_STATES = 1_000_000
_MOST_ROWS = 10_000
_MOST_CLASSES = 250
_MOST_FIELDS = 250


def write(plan: Plan, options: Options) -> bytes:
    """Write the workbook."""
    n_rows = _n_rows(options["lines"])
    check_dates_held(plan)
    _check_alike(plan)
    machine = make_machine(plan)
    steps = (EnsembleSteps if plan.trees else Steps)(plan, machine)
    _check_large(plan, machine, steps, n_rows)
    rows = range(2, n_rows + 2)
    predictions = _prediction_names(plan)
    inputs: list[Content] = [header(column_heading(field)) for field in plan.inputs]
    texts = frozenset(i for i, f in enumerate(plan.inputs) if f.kind == "text")
    skipped: list[Content] = [None] * len(plan.inputs)
    first = len(plan.inputs) + 1
    rule: list[Content] = ["rule"] if steps.has_rule else []
    to_fill = Sheet(
        "Rows",
        [
            [*inputs, *predictions, *rule],
            *([*skipped, *steps.predictions(r), *steps.rule(r)] for r in rows),
        ],
        [*(_width(str(name)) for name in [*inputs, *predictions]), *([70] * len(rule))],
        texts,
        number_formats=_predicted(plan, first - 1),
        inputs=[_input(at, field, plan) for at, field in enumerate(plan.inputs)],
    )
    paths = [steps.header(), *(steps.row(r) for r in rows)]
    return workbook(
        [
            to_fill,
            *([rules_sheet(plan)] if has_rules(plan) else []),
            guide_sheet(plan, n_rows),
            Sheet("Steps", paths, technical=True),
            Sheet("Tree", _tree(plan, machine), technical=True),
            Sheet("Values", _values(plan), technical=True),
        ],
        _value_names(plan),
    )


def _input(at: int, field: Field, plan: Plan) -> Input:
    if field.date is not None:
        return Input(date_format=cell_format(field.date))
    if not field.values:
        return Input(number_format=input_format(field))
    return Input(f"known_{at + 1}", field.kind == "text", plan.rejects_unseen)


def _predicted(plan: Plan, column: int) -> dict[int, str]:
    """Return how predicted numbers are shown, or the probabilities beside classes."""
    first, n_classes = column + 1, len(plan.classes)
    shown = prediction_format(plan)
    number = {} if shown is None else {column: shown}
    return dict.fromkeys(range(first, first + n_classes), PROBABILITY) | number


def _value_names(plan: Plan) -> dict[str, str]:
    """Return a name for the values of each field, as lists to choose from need it."""
    names = {}
    for at, field in enumerate(plan.fields):
        column = column_name(2 * at + 1)
        if field.values:
            cells = f"Values!${column}$2:${column}${len(field.values) + 1}"
            names[f"known_{at + 1}"] = cells
    return names


def _n_rows(given: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", given) or not 1 <= int(given) <= _MOST_ROWS:
        raise ParameterError(
            f"lines of the export to 'excel' must be a whole number from 1 to "
            f"{_MOST_ROWS:,}. Got {given!r}."
        )
    return int(given)


def _check_alike(plan: Plan) -> None:
    """Reject values and classes that a sheet cannot distinguish."""
    lists = [(f"Column {f.name!r}", f.values) for f in plan.fields]
    for what, values in [*lists, ("The target", plan.classes)]:
        seen: dict[str, str] = {}
        for value in values:
            if isinstance(value, str):
                other = seen.setdefault(normal(value), value)
                if other != value:
                    raise ExportError(
                        f"{what} has the values {other!r} and {value!r}: programs for "
                        "spreadsheets take these for the same, because they change "
                        "line breaks and tabs. Rename one and fit again."
                    )
    for field in plan.fields:
        for value in field.values:
            if not isinstance(value, (str, bool)) and held(value) != value:
                raise ExportError(
                    f"Column {field.name!r} has the value {value!r}, and programs for "
                    f"spreadsheets tell {DIGITS} digits of a number apart. Use text "
                    "for such values and fit again."
                )


def _check_large(
    plan: Plan, machine: Machine, steps: Steps | EnsembleSteps, n_rows: int
) -> None:
    """Reject a model whose workbook is too large, before it is written."""
    n_columns = len(steps.header())
    problem = None
    if n_columns > _MOST_COLUMNS:
        problem = f"needs {n_columns:,} columns, and a sheet has {_MOST_COLUMNS:,}"
    elif n_columns * n_rows > _MOST_FORMULAS:
        problem = (
            f"needs {n_columns:,} formulas in each of {n_rows:,} lines, more than "
            f"{_MOST_FORMULAS:,} in all"
        )
    elif max(len(machine), len(machine.to)) > _MOST_STATES:
        problem = f"has more than {_MOST_STATES:,} states"
    elif len(plan.fields) > _MOST_FIELDS or len(plan.classes) > _MOST_CLASSES:
        problem = f"has more than {_MOST_FIELDS} columns or classes"
    if problem is not None and plan.trees:
        raise ExportError(
            "An Excel workbook cannot hold this ensemble of "
            f"{counted(len(plan.trees), 'tree')}: it {problem}. Request fewer lines, "
            "fit fewer or smaller trees (n_estimators, max_depth), export one tree "
            "(best_tree() or ensemble[0]), or export it to another target."
        )
    if problem is not None:
        raise ExportError(
            f"An Excel workbook cannot hold this tree: it {problem}. Request fewer "
            "lines, prune the tree, or export it to another target."
        )


def _prediction_names(plan: Plan) -> list[Content]:
    return ["prediction", *(header(str(c)) for c in probability_headings(plan))]


def _width(name: str) -> int:
    return min(40, max(10, len(name) + 2))


def bound(threshold: float) -> float:
    """Return the largest number of 14 digits that is not above a threshold."""
    exact = Decimal(threshold)
    above = float(Context(DIGITS, ROUND_CEILING).create_decimal(exact))
    if above <= threshold:
        return above
    return float(Context(DIGITS, ROUND_FLOOR).create_decimal(exact))


def _tree(plan: Plan, machine: Machine) -> list[list[Content]]:
    """Return the table of states: their splits, outcomes and predictions."""
    costs = plan.costs or ()
    rules = [] if plan.trees or not has_rules(plan) else node_rules(plan)
    predictions = _ensemble_predictions(plan) if plan.trees else _predictions(plan)
    rows: list[list[Content]] = [
        [
            *("state", "field", "numeric", "up to", "first outcome", None, "leads to"),
            "share",
            "prediction",
            *(header(f"probability of {word(c)}") for c in plan.classes),
            *("costs" if not at else None for at in range(len(costs))),
            *(["rule"] if rules else []),
        ]
    ]
    for line in range(max(len(machine), len(machine.to), len(costs))):
        cells: list[Content] = [None] * 6
        if line < len(machine):
            cells = _state(plan, machine, line)
        cells.append(machine.to[line] if line < len(machine.to) else None)
        prediction: list[Content] = [None] * (2 + len(plan.classes))
        if line < len(plan.nodes):
            prediction = predictions[line]
        cells += prediction
        cells += costs[line] if line < len(costs) else [None] * len(costs)
        if line < len(rules):
            cells.append(rules[line])
        rows.append(cells)
    return rows


def _state(plan: Plan, machine: Machine, state: int) -> list[Content]:
    if not machine.splits_on[state]:
        return [state, 0, 0, None, machine.first[state], None]
    field, threshold = machine.field[state], machine.threshold[state]
    # Without a threshold all numbers are on one side, and both outcomes are the same.
    up_to = None
    if plan.fields[field].numeric:
        up_to = 0.0 if threshold is None else bound(threshold)
    numeric = int(plan.fields[field].numeric)
    return [state, field + 1, numeric, up_to, machine.first[state], None]


def _predictions(plan: Plan) -> list[list[Content]]:
    """Return the share, the label or number, and the probabilities of every node."""
    shares = _node_shares(plan)
    return [
        [share, n.label if n.number is None else n.number, *n.probabilities]
        for share, n in zip(shares, plan.nodes, strict=True)
    ]


def _ensemble_predictions(plan: Plan) -> list[list[Content]]:
    """Return the number of every node, or what it adds to the sum of each class."""
    if plan.has_numbers:
        return [[None, n.number, *(None for _ in plan.classes)] for n in plan.nodes]
    return [
        [None, node.label, *plan.added(number, node)]
        for number, tree in enumerate(plan.trees)
        for node in tree.nodes
    ]


def _node_shares(plan: Plan) -> list[float]:
    """Return the weight of a fractional case that goes down to every node."""
    shares = [1.0] * len(plan.nodes)
    for node in plan.nodes:
        if node.split is not None:
            for branch, share in enumerate(node.split.shares):
                shares[node.child(branch)] = share
    return shares


def _values(plan: Plan) -> list[list[Content]]:
    """Return the classes, then for every field its values and what to add for each.

    Added to the code of unseen values, it gives the code of the value. An ensemble has
    a further column: what is added to its sums, or what they are divided by; a tree
    that divides cases has what is said of them.
    """
    columns: list[Sequence[Content]] = [["classes", *plan.classes]]
    for field in plan.fields:
        columns.append([header(field.name), *field.values])
        unseen = len(field.values) + 1
        columns.append(["code", *(i - unseen for i in range(len(field.values)))])
    if plan.trees:
        columns.append(["sums", *(plan.initial or [plan.divisor])])
    elif plan.divides:
        columns.append(["rule", FRACTIONAL_RULE])
    height = max(len(column) for column in columns)
    return [
        [c[line] if line < len(c) else None for c in columns] for line in range(height)
    ]


TARGET = Target(
    "excel",
    ".xlsx",
    write,
    runners,
    {"lines": ("100",)},
    binary=True,
    fitting=fitting,
    domain=DOMAIN,
    rounding=rounding,
)
