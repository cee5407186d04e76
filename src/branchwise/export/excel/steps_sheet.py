"""The sheet "Steps" of an Excel workbook: rows on their way through a tree."""

from __future__ import annotations

from collections.abc import Sequence

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError
from branchwise.export.excel.serial_dates import date_code, feature_code
from branchwise.export.excel.sheets import (
    MOST_CHARACTERS,
    Content,
    Formula,
    column_name,
)
from branchwise.export.excel.word_sheets import has_rules
from branchwise.export.plan import Field, Plan
from branchwise.export.state_table import FRACTIONAL, Machine


def header(name: str) -> str:
    """Return a name that a cell can hold."""
    return name[:MOST_CHARACTERS]


class Encoding:
    """The columns that a row begins with: codes of cells, and whether it is refused.

    From ``first`` on there are those of the levels of trees.
    """

    def __init__(self, plan: Plan, machine: Machine) -> None:
        self._plan = plan
        self._machine = machine
        self._first = len(plan.fields) + 1
        #: Whether one rule in words decides a row.
        self.has_rule = has_rules(plan) and not plan.trees

    def rule(self, row: int) -> list[Content]:  # noqa: ARG002
        """Return the formula of the rule that decided a row, where there is one."""
        return []

    def _names(self) -> list[Content]:
        return [*(header(field.name) for field in self._plan.fields), "refused"]

    def _encoded(self, row: int) -> list[str]:
        """Return the formulas of the codes, and of whether the row is refused."""
        fields = enumerate(self._plan.fields)
        codes = [_code(field, column, row) for column, field in fields]
        return [*codes, self._rejected(row)]

    def _after(self, state: str) -> str:
        """Return the state after the one in a cell, which has the number of its row."""
        row = state.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
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
        for column, field in enumerate(self._plan.inputs):
            cell, missing = f"{column_name(column)}{row}", len(field.values)
            if self._plan.rejects_missing:
                tests.append(f'({cell}="")' if field.numeric else f"({cell}={missing})")
            if self._plan.rejects_unseen and not field.numeric:
                tests.append(f"({cell}={missing + 1})")
        return f"IF({'+'.join(tests)}>0,1,0)" if tests else "0"

    def _shown(self, predictions: Sequence[str], row: int) -> list[Content]:
        """Return the formulas of predictions, which rows without one do not show."""
        n_inputs = len(self._plan.inputs)
        hidden = f"Steps!{column_name(len(self._plan.fields))}{row}=1"
        if n_inputs:
            filled = f"COUNTA(A{row}:{column_name(n_inputs - 1)}{row})"
            hidden = f"OR({filled}=0,{hidden})"
        return [Formula(f'IF({hidden},"",{prediction})') for prediction in predictions]

    def _label(self, code: str) -> str:
        """Return the class of a code."""
        label = f"INDEX(Values!$A:$A,{code}+2)"
        return f'{label}&""' if isinstance(self._plan.classes[0], str) else label


class Steps(Encoding):
    """The sheet that follows rows through the tree: a header, and a row's formulas."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        super().__init__(plan, machine)
        self._n_levels = max(levels(machine)) + 1
        after = self._first + self._n_levels
        self._shares = Shares(plan, machine, after) if plan.divides else None

    def header(self) -> list[Content]:
        """Return the names of the columns."""
        names: list[Content] = [f"level {i}" for i in range(self._n_levels)]
        shares = [] if self._shares is None else self._shares.header()
        return [*self._names(), *names, *shares]

    def row(self, row: int) -> list[Content]:
        """Return the formulas of a row."""
        before = range(self._first, self._first + self._n_levels - 1)
        path = ["0", *(self._after(f"{column_name(at)}{row}") for at in before)]
        shares = [] if self._shares is None else self._shares.row(row)
        return [Formula(f) for f in [*self._encoded(row), *path, *shares]]

    def predictions(self, row: int) -> list[Content]:
        """Return the formulas of a row on the first sheet."""
        end = f"Steps!{column_name(self._first + self._n_levels - 1)}{row}"
        return self._shown(self._predictions(end, row), row)

    def rule(self, row: int) -> list[Content]:
        """Return the formula of the rule that decided a row, in words."""
        if not self.has_rule:
            return []
        plan = self._plan
        end = f"Steps!{column_name(self._first + self._n_levels - 1)}{row}"
        column = column_name(9 + len(plan.classes) + len(plan.costs or ()))
        rule = f"INDEX(Tree!${column}:${column},{end}+2)"
        if self._shares is not None:
            several = f"Values!${column_name(2 * len(plan.fields) + 1)}$2"
            rule = f"IF({end}<0,{several},{rule})"
        return self._shown([rule], row)

    def _predictions(self, end: str, row: int) -> list[str]:
        """Return the prediction of a row that is not rejected."""
        own = [
            f"INDEX(Tree!${column}:${column},{end}+2)"
            for column in map(column_name, range(8, 9 + len(self._plan.classes)))
        ]
        if self._shares is not None:
            fractional = [f"Steps!{cell}" for cell in self._shares.predictions(row)]
            own = [
                f"IF({end}<0,{d},{mine})"
                for d, mine in zip(fractional, own, strict=True)
            ]
        if self._plan.is_regression:
            return own
        return [self._label(own[0]), *own[1:]]


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
        names = [f"outcome {s}" for s in range(len(machine)) if machine.splits_on[s]]
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
        return self._at(f"outcome {target}", row)

    def _share(self, node: int, row: int) -> str:
        parent = self._plan.parents[node]
        if parent < 0:
            return "1"
        share, outcome = (
            self._at(f"share {parent}", row),
            self._at(f"outcome {parent}", row),
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
                share = f"IF({self._at(f'outcome {node}', row)}={node},{share},0)"
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


def levels(machine: Machine) -> list[int]:
    """Return for every state how many states a case passes before it, at most."""
    level = [0] * len(machine)
    order = sorted(range(len(machine)), key=lambda s: (machine.owner[s], s))
    for state in order:
        for to in machine.outcomes(state):
            if to >= 0 and to != state:
                level[to] = max(level[to], level[state] + 1)
    return level


def _code(field: Field, column: int, row: int) -> str:
    """Return the encoded cell: its code, or for a numeric field the number."""
    at = column if field.feature is None else field.source
    cell = f"Rows!{column_name(at)}{row}"
    empty = f"LEN({cell})=0"
    if field.numeric:
        number = cell if field.date is None else date_code(field.date, cell)
        if field.feature is not None:
            number = feature_code(field.feature, cell)
        return f'IF({empty},"",IF(ISNUMBER({cell}),{number},NA()))'
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
