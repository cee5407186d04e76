"""Divided cases on the sheet "Steps": what each question leads to, shares, sums.

Every sum is made cell by cell, in the order of the nodes, so that it has the same
roundings as the model's.
"""

from __future__ import annotations

from branchwise.errors import ExportError
from branchwise.export.machine import DIVIDED, Machine
from branchwise.export.plan import Plan
from branchwise.export.workbook import Content, column_name
from branchwise.ties import TIE


class Shares:
    """The columns from ``first`` on; see :meth:`header` for what they are."""

    def __init__(self, plan: Plan, machine: Machine, first: int) -> None:
        _refuse_cancelling(plan)
        self._plan = plan
        self._machine = machine
        self._ends = sorted(
            {
                machine.owner[state]
                for state in range(len(machine))
                if machine.owner[state] in machine.replies(state)
            }
        )
        self._names: list[str] = []
        self._column: dict[str, int] = {}
        self._lay_out(first)

    def _lay_out(self, first: int) -> None:
        plan, machine = self._plan, self._machine
        names = [f"reply {s}" for s in range(len(machine)) if machine.asks[s]]
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
        asked = [s for s in range(len(self._machine)) if self._machine.asks[s]]
        formulas = [self._reply(state, row) for state in asked]
        formulas += [self._share(node, row) for node in range(len(self._plan.nodes))]
        for code in self._amounts:
            formulas += self._sums(code, row)
        if self._plan.classes:
            formulas += self._label(row)
        return formulas

    def answers(self, row: int) -> list[str]:
        """Return the cells with the label and the chances, or with the number."""
        sums = [self._at(self._total(code), row) for code in self._amounts]
        return [self._at("label", row), *sums] if self._plan.classes else sums

    def _total(self, code: int) -> str:
        return f"sum {code}, {self._ends[-1]}"

    def _reply(self, state: int, row: int) -> str:
        """Return the node that a question leads to, whatever its surrogates say."""
        machine = self._machine
        field = machine.field[state]
        value = f"{column_name(field)}{row}"
        targets = machine.replies(state)
        if self._plan.fields[field].numeric:
            up_to, above, missing = (self._onwards(t, row) for t in targets)
            cut = f"Tree!$D${state + 2}"
            return f'IF({value}="",{missing},IF({value}<={cut},{up_to},{above}))'
        first = machine.first[state] + 2
        to = f"INDEX(Tree!$G${first}:$G${first + len(targets) - 1},{value}+1)"
        n_nodes = len(self._plan.nodes)
        if max(targets) < n_nodes:
            return to
        return f"IF({to}>={n_nodes},{self._onwards(max(targets), row)},{to})"

    def _onwards(self, target: int, row: int) -> str:
        """Return a node, or what the surrogate that is asked next leads to."""
        if target < len(self._plan.nodes):
            return str(target)
        return self._at(f"reply {target}", row)

    def _share(self, node: int, row: int) -> str:
        parent = self._plan.parents[node]
        if parent < 0:
            return "1"
        share, reply = (
            self._at(f"share {parent}", row),
            self._at(f"reply {parent}", row),
        )
        part = f"IF({reply}={DIVIDED},Tree!$H${node + 2},0)"
        return f"{share}*IF({reply}={node},1,{part})"

    def _sums(self, code: int, row: int) -> list[str]:
        """Return sum after sum: what every end adds to those before it."""
        formulas = []
        amount = column_name(9 + code if self._plan.classes else 8)
        before = "0"
        for node in self._ends:
            share = self._at(f"share {node}", row)
            if self._machine.asks[node]:
                share = f"IF({self._at(f'reply {node}', row)}={node},{share},0)"
            formulas.append(f"{before}+Tree!${amount}${node + 2}*{share}")
            before = self._at(f"sum {code}, {node}", row)
        return formulas

    def _label(self, row: int) -> list[str]:
        """Return the score of every answer, the least good one, and the first good."""
        names = [self._total(code) for code in self._amounts]
        formulas = []
        if self._plan.costs is not None:
            formulas += [self._price(answer, row) for answer in self._amounts]
            names = [f"score {code}" for code in self._amounts]
        cells = [self._at(name, row) for name in names]
        best = f"MAX({','.join(cells)})"
        least, good = self._at("least", row), f"good {self._amounts[-1]}"
        # A quotient of whole numbers is read as the same number everywhere.
        formulas.append(f"{best}-ABS({best})*(1/{round(1 / TIE)})")
        formulas += [f"IF({cell}>={least},1,0)" for cell in cells]
        goods = f"{self._at('good 0', row)}:{self._at(good, row)}"
        return [*formulas, f"MATCH(1,{goods},0)-1"]

    def _price(self, answer: int, row: int) -> str:
        column = column_name(9 + len(self._plan.classes) + answer)
        terms = [
            f"{self._at(self._total(code), row)}*Tree!${column}${code + 2}"
            for code in self._amounts
        ]
        return f"-({'+'.join(terms)})"


def _refuse_cancelling(plan: Plan) -> None:
    numbers = [node.number for node in plan.nodes if node.number is not None]
    if numbers and min(numbers) < 0 < max(numbers):
        raise ExportError(
            "An Excel workbook cannot carry this tree: it adds up numbers of both "
            "signs for divided cases, and programs for spreadsheets round sums near "
            "zero in their own way. Fit it with missing='largest' and "
            "unseen='largest', or export it to another target."
        )
