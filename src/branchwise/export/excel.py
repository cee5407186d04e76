"""Export to Excel: a workbook whose formulas predict the rows that are typed in.

"Rows" is for the user, "Steps" follows every row through the tree, "Tree" has the tree
as a table of states (:class:`branchwise.export.plan.Machine`), "Values" the values and
classes. Names and values are cells of their own, never parts of formulas.

Spreadsheet programs treat numbers as equal that differ after 15 digits or so. So the
sheet is exact for numbers of up to 14 digits, and its bounds are the largest such
numbers on the same side of the model's threshold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError, ParameterError
from branchwise.export.base import Options, Target
from branchwise.export.excel_workbook import (
    DIGITS,
    DOMAIN,
    MOST_CHARACTERS,
    Content,
    Formula,
    Sheet,
    column_name,
    fitting,
    held,
    normal,
    runners,
    workbook,
)
from branchwise.export.plan import FRACTIONAL, Field, Machine, Plan, make_machine
from branchwise.text.conditions import word


class Shares:
    """The columns from ``first`` on; see :meth:`header` for what they are."""

    def __init__(self, plan: Plan, machine: Machine, first: int) -> None:
        _check_cancelling(plan)
        self._plan = plan
        self._machine = machine
        self._ends = sorted(
            {
                machine.owner[state]
                for state in range(len(machine))
                if machine.owner[state] in machine.outcomes(state)
            }
        )
        self._names: list[str] = []
        self._column: dict[str, int] = {}
        self._lay_out(first)

    def _lay_out(self, first: int) -> None:
        plan, machine = self._plan, self._machine
        names = [f"reply {s}" for s in range(len(machine)) if machine.splits_on[s]]
        names += [f"share {node}" for node in range(len(plan.nodes))]
        self._amounts = range(max(1, len(plan.classes)))
        names += [
            f"sum {code}, {node}" for code in self._amounts for node in self._ends
        ]
        if plan.classes:
            if plan.costs is not None:
                names += [f"score {code}" for code in self._amounts]
            names += ["least", *(f"good {code}" for code in self._amounts), "label"]
        self._names = names
        self._column = {name: first + i for i, name in enumerate(names)}

    def header(self) -> list[Content]:
        """Return the names of the columns."""
        return list(self._names)

    def _at(self, name: str, row: int) -> str:
        return f"{column_name(self._column[name])}{row}"

    def row(self, row: int) -> list[str]:
        """Return the formulas of a row."""
        tested = [s for s in range(len(self._machine)) if self._machine.splits_on[s]]
        formulas = [self._outcome(state, row) for state in tested]
        formulas += [self._share(node, row) for node in range(len(self._plan.nodes))]
        for code in self._amounts:
            formulas += self._sums(code, row)
        if self._plan.classes:
            formulas += self._label(row)
        return formulas

    def predictions(self, row: int) -> list[str]:
        """Return the cells with the label and the probabilities, or with the number."""
        sums = [self._at(self._total(code), row) for code in self._amounts]
        return [self._at("label", row), *sums] if self._plan.classes else sums

    def _total(self, code: int) -> str:
        return f"sum {code}, {self._ends[-1]}"

    def _outcome(self, state: int, row: int) -> str:
        """Return the node that a split leads to, by its surrogates where needed."""
        machine = self._machine
        field = machine.field[state]
        value = f"{column_name(field)}{row}"
        targets = machine.outcomes(state)
        if self._plan.fields[field].numeric:
            up_to, above, missing = (self._onwards(t, row) for t in targets)
            threshold = f"Tree!$D${state + 2}"
            return f'IF({value}="",{missing},IF({value}<={threshold},{up_to},{above}))'
        first = machine.first[state] + 2
        to = f"INDEX(Tree!$G${first}:$G${first + len(targets) - 1},{value}+1)"
        n_nodes = len(self._plan.nodes)
        if max(targets) < n_nodes:
            return to
        return f"IF({to}>={n_nodes},{self._onwards(max(targets), row)},{to})"

    def _onwards(self, target: int, row: int) -> str:
        """Return a node, or the outcome of the next surrogate split."""
        if target < len(self._plan.nodes):
            return str(target)
        return self._at(f"reply {target}", row)

    def _share(self, node: int, row: int) -> str:
        parent = self._plan.parents[node]
        if parent < 0:
            return "1"
        share, outcome = (
            self._at(f"share {parent}", row),
            self._at(f"reply {parent}", row),
        )
        piece = f"IF({outcome}={FRACTIONAL},Tree!$H${node + 2},0)"
        return f"{share}*IF({outcome}={node},1,{piece})"

    def _sums(self, code: int, row: int) -> list[str]:
        """Return sum after sum: what every end adds to those before it."""
        formulas = []
        amount = column_name(9 + code if self._plan.classes else 8)
        before = "0"
        for node in self._ends:
            share = self._at(f"share {node}", row)
            if self._machine.splits_on[node]:
                share = f"IF({self._at(f'reply {node}', row)}={node},{share},0)"
            formulas.append(f"{before}+Tree!${amount}${node + 2}*{share}")
            before = self._at(f"sum {code}, {node}", row)
        return formulas

    def _label(self, row: int) -> list[str]:
        """Return the score of every class, the least tied one, and the first tied."""
        names = [self._total(code) for code in self._amounts]
        formulas = []
        if self._plan.costs is not None:
            formulas += [self._cost(prediction, row) for prediction in self._amounts]
            names = [f"score {code}" for code in self._amounts]
        cells = [self._at(name, row) for name in names]
        best = f"MAX({','.join(cells)})"
        least, good = self._at("least", row), f"good {self._amounts[-1]}"
        # A quotient of whole numbers is read as the same number everywhere.
        formulas.append(f"{best}-ABS({best})*(1/{round(1 / TIE)})")
        formulas += [f"IF({cell}>={least},1,0)" for cell in cells]
        goods = f"{self._at('good 0', row)}:{self._at(good, row)}"
        return [*formulas, f"MATCH(1,{goods},0)-1"]

    def _cost(self, prediction: int, row: int) -> str:
        column = column_name(9 + len(self._plan.classes) + prediction)
        terms = [
            f"{self._at(self._total(code), row)}*Tree!${column}${code + 2}"
            for code in self._amounts
        ]
        return f"-({'+'.join(terms)})"


def _check_cancelling(plan: Plan) -> None:
    numbers = [node.number for node in plan.nodes if node.number is not None]
    if numbers and min(numbers) < 0 < max(numbers):
        raise ExportError(
            "An Excel workbook cannot carry this tree: it adds up numbers of both "
            "signs for divided cases, and programs for spreadsheets round sums near "
            "zero in their own way. Fit it with missing='largest' and "
            "unseen='largest', or export it to another target."
        )


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
    _check_alike(plan)
    machine = make_machine(plan)
    steps = _Steps(plan, machine)
    _check_large(plan, machine, steps, n_rows)
    rows = range(2, n_rows + 2)
    predictions = _prediction_names(plan)
    inputs: list[Content] = [_header(field.name) for field in plan.fields]
    texts = frozenset(i for i, f in enumerate(plan.fields) if f.kind == "text")
    skipped: list[Content] = [None] * len(plan.fields)
    return workbook(
        [
            Sheet(
                "Rows",
                [
                    [*inputs, *predictions],
                    *([*skipped, *steps.predictions(r)] for r in rows),
                ],
                [_width(str(name)) for name in [*inputs, *predictions]],
                texts,
            ),
            Sheet("Steps", [steps.header(), *(steps.row(r) for r in rows)]),
            Sheet("Tree", _tree(plan, machine)),
            Sheet("Values", _values(plan)),
        ]
    )


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


def _check_large(plan: Plan, machine: Machine, steps: _Steps, n_rows: int) -> None:
    """Reject a tree whose workbook is too large, before it is written."""
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
    if problem is not None:
        raise ExportError(
            f"An Excel workbook cannot hold this tree: it {problem}. Request fewer "
            "lines, prune the tree, or export it to another target."
        )


def _prediction_names(plan: Plan) -> list[Content]:
    probabilities = [_header(f"probability of {word(c)}") for c in plan.classes]
    return ["prediction", *probabilities]


def _header(name: str) -> str:
    return name[:MOST_CHARACTERS]


def _width(name: str) -> int:
    return min(40, max(10, len(name) + 2))


def bound(threshold: float) -> float:
    """Return the largest number of 14 digits that is not above a threshold."""
    exact = Decimal(threshold)
    above = float(Context(DIGITS, ROUND_CEILING).create_decimal(exact))
    if above <= threshold:
        return above
    return float(Context(DIGITS, ROUND_FLOOR).create_decimal(exact))


class _Steps:
    """The sheet that follows rows through the tree: a header, and a row's formulas."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        self._plan = plan
        self._machine = machine
        self._n_levels = _longest_way(machine)
        #: After the fields, whether the row is refused; then a column a level.
        self._first = len(plan.fields) + 1
        after = self._first + self._n_levels
        self._shares = Shares(plan, machine, after) if plan.divides else None

    def header(self) -> list[Content]:
        """Return the names of the columns."""
        names: list[Content] = [_header(field.name) for field in self._plan.fields]
        levels: list[Content] = [f"level {i}" for i in range(self._n_levels)]
        shares = [] if self._shares is None else self._shares.header()
        return [*names, "refused", *levels, *shares]

    def row(self, row: int) -> list[Content]:
        """Return the formulas of a row."""
        fields = enumerate(self._plan.fields)
        codes = [_code(field, column, row) for column, field in fields]
        before = range(self._first, self._first + self._n_levels - 1)
        levels = ["0", *(self._next(column, row) for column in before)]
        shares = [] if self._shares is None else self._shares.row(row)
        return [Formula(f) for f in [*codes, self._rejected(row), *levels, *shares]]

    def _next(self, column: int, row: int) -> str:
        """Return the state after the one in a column."""
        state = f"{column_name(column)}{row}"
        last = column_name(len(self._plan.fields) - 1)
        tested = f"INDEX(Tree!$B:$B,{state}+2)"
        value = f"INDEX($A{row}:${last}{row},1,{tested})"
        side = f'IF({value}="",2,IF({value}<=INDEX(Tree!$D:$D,{state}+2),0,1))'
        outcome = f"IF(INDEX(Tree!$C:$C,{state}+2)=1,{side},{value})"
        to = f"INDEX(Tree!$G:$G,INDEX(Tree!$E:$E,{state}+2)+2+{outcome})"
        return f"IF({state}<0,{state},IF({tested}=0,{state},{to}))"

    def _rejected(self, row: int) -> str:
        """Return 1 for a row that has no prediction, else 0."""
        tests = []
        for column, field in enumerate(self._plan.fields):
            cell, missing = f"{column_name(column)}{row}", len(field.values)
            if self._plan.rejects_missing:
                tests.append(f'({cell}="")' if field.numeric else f"({cell}={missing})")
            if self._plan.rejects_unseen and not field.numeric:
                tests.append(f"({cell}={missing + 1})")
        return f"IF({'+'.join(tests)}>0,1,0)" if tests else "0"

    def predictions(self, row: int) -> list[Content]:
        """Return the formulas of a row on the first sheet."""
        n_fields = len(self._plan.fields)
        end = f"Steps!{column_name(self._first + self._n_levels - 1)}{row}"
        hidden = f"Steps!{column_name(n_fields)}{row}=1"
        if n_fields:
            filled = f"COUNTA(A{row}:{column_name(n_fields - 1)}{row})"
            hidden = f"OR({filled}=0,{hidden})"
        return [
            Formula(f'IF({hidden},"",{prediction})')
            for prediction in self._predictions(end, row)
        ]

    def _predictions(self, end: str, row: int) -> list[str]:
        """Return the prediction of a row that is not rejected."""
        own = [
            f"INDEX(Tree!${column}:${column},{end}+2)"
            for column in map(column_name, _prediction_columns(self._plan))
        ]
        if self._shares is not None:
            fractional = [f"Steps!{cell}" for cell in self._shares.predictions(row)]
            own = [
                f"IF({end}<0,{d},{mine})"
                for d, mine in zip(fractional, own, strict=True)
            ]
        if self._plan.is_regression:
            return own
        label = f"INDEX(Values!$A:$A,{own[0]}+2)"
        if isinstance(self._plan.classes[0], str):
            label += '&""'
        return [label, *own[1:]]


def _longest_way(machine: Machine) -> int:
    """Return how many states a case passes at most."""
    level = [0] * len(machine)
    order = sorted(range(len(machine)), key=lambda s: (machine.owner[s], s))
    for state in order:
        for to in machine.outcomes(state):
            if to >= 0 and to != state:
                level[to] = max(level[to], level[state] + 1)
    return max(level) + 1


def _code(field: Field, column: int, row: int) -> str:
    """Return the encoded cell: its code, or for a numeric field the number."""
    cell = f"Rows!{column_name(column)}{row}"
    empty = f"LEN({cell})=0"
    if field.numeric:
        return f'IF({empty},"",IF(ISNUMBER({cell}),{cell},NA()))'
    n_values = len(field.values)
    values, shifts = (
        f"Values!${c}$2:${c}${n_values + 1}"
        for c in map(column_name, (2 * column + 1, 2 * column + 2))
    )
    unseen = n_values + 1
    if not n_values:
        return f"IF({empty},0,1)"
    if field.kind == "boolean":
        code = str(unseen)
        for position, value in enumerate(field.values):
            code = f"IF({cell}={'TRUE' if value else 'FALSE'},{position},{code})"
        return f"IF({empty},{n_values},{code})"
    same = f"EXACT({values},{cell})" if field.kind == "text" else f"({values}={cell})"
    return f"IF({empty},{n_values},{unseen}+SUMPRODUCT(--{same},{shifts}))"


def _prediction_columns(plan: Plan) -> range:
    """Return the columns of the tree's sheet with the predictions."""
    return range(8, 9 + len(plan.classes))


def _tree(plan: Plan, machine: Machine) -> list[list[Content]]:
    """Return the table of states: their splits, outcomes and predictions."""
    costs = plan.costs or ()
    shares = _node_shares(plan)
    rows: list[list[Content]] = [
        [
            *("state", "field", "numeric", "up to", "first reply", None, "leads to"),
            "share",
            "answer",
            *(_header(f"probability of {word(c)}") for c in plan.classes),
            *(["costs"] if costs else []),
        ]
    ]
    for line in range(max(len(machine), len(machine.to), len(costs))):
        cells: list[Content] = [None] * 6
        if line < len(machine):
            cells = _state(plan, machine, line)
        cells.append(machine.to[line] if line < len(machine.to) else None)
        prediction: list[Content] = [None] * (2 + len(plan.classes))
        if line < len(plan.nodes):
            node = plan.nodes[line]
            first = node.label if node.number is None else node.number
            prediction = [shares[line], first, *node.probabilities]
        cells += prediction
        if line < len(costs):
            cells += costs[line]
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

    Added to the code of unseen values, it gives the code of the value.
    """
    columns: list[Sequence[Content]] = [["classes", *plan.classes]]
    for field in plan.fields:
        columns.append([_header(field.name), *field.values])
        unseen = len(field.values) + 1
        columns.append(["code", *(i - unseen for i in range(len(field.values)))])
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
)
