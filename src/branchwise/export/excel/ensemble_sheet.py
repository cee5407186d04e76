"""The sheet "Steps" of an ensemble's workbook: rows on their way through all trees.

After the states that a row passes, tree by tree, sums over trees are added up in their
order, and become predictions: every step is a cell.
"""

from __future__ import annotations

from collections.abc import Sequence

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError
from branchwise.export.excel.sheets import Content, Formula, column_name
from branchwise.export.excel.steps_sheet import Encoding, levels
from branchwise.export.plan import Plan
from branchwise.export.state_table import Machine

#: Trees that one formula adds up.
_IN_FORMULA = 20
#: The part of the largest sum of numbers by which programs may differ: those of both
#: signs are rounded to 0 where they nearly cancel each other.
_ROUNDING = 1e-12


class EnsembleSteps(Encoding):
    """A header, and a row's formulas, which have ``#`` for the number of the row."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        if plan.divides:
            raise ExportError(
                "An Excel workbook cannot carry this ensemble: its trees divide cases "
                "with missing or unseen values among branches, which would take "
                "columns for every node. Fit it with missing='largest' and "
                "unseen='largest', export one tree (best_tree() or ensemble[0]), or "
                "export it to another target."
            )
        super().__init__(plan, machine)
        self._columns: list[str] = []
        self._formulas: list[str] = []
        ends = self._add_paths()
        totals = [self._add_total(at, ends) for at in range(plan.n_sums)]
        self._results = self._add_link(totals)
        if plan.classes:
            self._results = [self._add_label(self._results), *self._results]

    def header(self) -> list[Content]:
        """Return the names of the columns."""
        return [*self._names(), *self._columns]

    def row(self, row: int) -> list[Content]:
        """Return the formulas of a row."""
        further = (formula.replace("#", str(row)) for formula in self._formulas)
        return [Formula(f) for f in [*self._encoded(row), *further]]

    def predictions(self, row: int) -> list[Content]:
        """Return the formulas of a row on the first sheet."""
        cells = [f"Steps!{cell.replace('#', str(row))}" for cell in self._results]
        if self._plan.classes:
            cells[0] = self._label(cells[0])
        return self._shown(cells, row)

    def _add(self, name: str, formula: str) -> str:
        """Add a column, and return its cell."""
        self._columns.append(name)
        self._formulas.append(formula)
        return f"{column_name(self._first + len(self._columns) - 1)}#"

    def _add_paths(self) -> list[str]:
        """Add the states that a row passes; return the cells of the last ones."""
        plan, machine = self._plan, self._machine
        tree_of = [at for at, tree in enumerate(plan.trees) for _ in tree.nodes]
        longest = [0] * len(plan.trees)
        for state, level in enumerate(levels(machine)):
            tree = tree_of[machine.owner[state]]
            longest[tree] = max(longest[tree], level)
        ends = []
        for tree, (root, n_levels) in enumerate(zip(plan.roots, longest, strict=True)):
            cell = self._add(f"tree {tree + 1}", str(root))
            for level in range(n_levels):
                name = f"tree {tree + 1}, level {level + 1}"
                cell = self._add(name, self._after(cell))
            ends.append(cell)
        return ends

    def _add_total(self, at: int, ends: Sequence[str]) -> str:
        """Add a sum over trees, over the divisor or with what is added to it."""
        plan = self._plan
        if plan.has_numbers:
            ends = ends[at :: plan.n_sums]
        added = column_name(8 if plan.has_numbers else 9 + at)
        terms = [f"INDEX(Tree!${added}:${added},{end}+2)" for end in ends]
        total = ""
        for start in range(0, len(terms), _IN_FORMULA):
            some = "+".join(terms[start : start + _IN_FORMULA])
            name = f"sum {at + 1}, {min(start + _IN_FORMULA, len(terms))} trees"
            total = self._add(name, f"{total}+{some}" if total else some)
        constants = column_name(2 * len(plan.fields) + 1)
        if plan.initial:
            initial = f"Values!${constants}${at + 2}"
            return self._add(f"total {at + 1}", f"{total}+{initial}")
        return self._add(f"total {at + 1}", f"{total}/Values!${constants}$2")

    def _add_link(self, totals: list[str]) -> list[str]:
        """Return the cells of the number or the probabilities."""
        link = self._plan.link
        if link is None:
            return totals
        if link == "exp":
            return [self._add("number", f"EXP({totals[0]})")]
        if link == "logistic":
            # The log odds of both classes: 0, and that of the second.
            totals = [self._add("total 0", "0"), *totals]
        top = self._add("top", f"MAX({','.join(totals)})")
        powers = [
            self._add(f"power {at}", f"EXP({total}-{top})")
            for at, total in enumerate(totals, 1)
        ]
        whole = self._add("powers", "+".join(powers))
        return [
            self._add(f"probability {at}", f"{power}/{whole}")
            for at, power in enumerate(powers, 1)
        ]

    def _add_label(self, probabilities: list[str]) -> str:
        """Add the code of the first class that is as good as the best."""
        plan, scores = self._plan, probabilities
        if plan.costs is not None and not plan.votes:
            scores = [
                self._add(f"score {at + 1}", self._score(at, probabilities))
                for at in range(len(probabilities))
            ]
        best = self._add("best", f"MAX({','.join(scores)})")
        # A quotient of whole numbers is read as the same number everywhere.
        least = self._add("least", f"{best}-ABS({best})*(1/{round(1 / TIE)})")
        good = [
            self._add(f"good {at}", f"IF({score}>={least},1,0)")
            for at, score in enumerate(scores, 1)
        ]
        return self._add("label", f"MATCH(1,{good[0]}:{good[-1]},0)-1")

    def _score(self, prediction: int, probabilities: Sequence[str]) -> str:
        """Return minus the expected cost of a class."""
        costs = column_name(9 + len(self._plan.classes) + prediction)
        terms = [
            f"{probability}*Tree!${costs}${at + 2}"
            for at, probability in enumerate(probabilities)
        ]
        return f"-({'+'.join(terms)})"


def rounding(plan: Plan) -> float:
    """Return by how much numbers may differ: not at all, unless signs are mixed."""
    if not plan.trees or not plan.is_regression or plan.link is not None:
        return 0.0
    numbers = [[node.number or 0.0 for node in tree.nodes] for tree in plan.trees]
    ends = [number for of_tree in (*numbers, plan.initial) for number in of_tree]
    if min(ends) >= 0 or max(ends) <= 0:
        return 0.0
    largest = sum(max(map(abs, of_tree)) for of_tree in numbers)
    largest += sum(map(abs, plan.initial))
    return _ROUNDING * largest / (plan.divisor or 1.0)
