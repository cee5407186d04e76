"""CASE expressions for the node where a case ends.

Engines limit how deep expressions are nested: SQLite's parser gives up at about 15
CASEs inside each other. So the largest branch of every node of a deep tree stands not
inside a CASE but after it, as further WHENs of the same one. What stands inside has at
most half of the nodes, so that 4,096 times as many nodes nest only 12 levels deeper.
What is deeper still is left to a further step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from branchwise.errors import ExportError
from branchwise.export.plan import ABOVE, AT_MOST, STOP, Field, Plan, PlanSplit
from branchwise.files.sql_dialects import WHOLE, Dialect
from branchwise.text.conditions import word


class Names:
    """Gives names that no column of the tree has, nor any name given before."""

    def __init__(self, plan: Plan, dialect: Dialect, table: str) -> None:
        self._dialect = dialect
        fields = [field.name for field in plan.fields]
        dialect.distinct(fields)
        self.table = dialect.named(table)
        #: The columns of the table, made to compare as the model does.
        self.compared = [
            compared(dialect, field, f"{self.table}.{dialect.named(field.name)}")
            for field in plan.fields
        ]
        self._taken = {dialect.folds(name) for name in [table, *fields]}
        #: What steps of a query call these columns. To SQLite, true and false are
        #: constants, and no names for what a step selects.
        self.carried = [
            self.new(f"column {name}")
            if name.lower() in ("true", "false")
            else dialect.named(name)
            for name in fields
        ]
        self.prediction = self.new("prediction")
        self.probabilities = [
            self.new(f"probability of {word(c)}", f"probability {code + 1}")
            for code, c in enumerate(plan.classes)
        ]

    def new(self, name: str, instead: str = "name") -> str:
        """Return a name, quoted: ``instead`` if it cannot be one, changed if taken."""
        if self._dialect.no_name(name) is not None:
            name = instead
        number, free = 1, name
        while self._dialect.folds(free) in self._taken:
            number += 1
            free = f"{name} ({number})"
            if self._dialect.no_name(free) is not None:
                name = free = instead
        self._taken.add(self._dialect.folds(free))
        return self._dialect.named(free)


def compared(dialect: Dialect, field: Field, written: str) -> str:
    """Make a column compare as the model does."""
    template = "{}"
    if field.numeric:
        template = dialect.number_column
    elif field.kind == "text":
        template = dialect.text_column
    return template.format(written)


def _values(dialect: Dialect, field: Field) -> list[str]:
    """Write the values that a field may have."""
    large = [v for v in field.values if isinstance(v, int) and abs(v) > WHOLE]
    if large:
        raise ExportError(
            f"Column {field.name!r} has the value {large[0]}: whole numbers beyond "
            "2**53 are the same as their neighbours in a column of floating-point "
            "numbers. Use text for such numbers and fit again."
        )
    return [dialect.value(value) for value in field.values]


@dataclass(frozen=True)
class Outcome:
    """A branch (or STOP, EVERY_BRANCH), and the condition that leads there.

    ``catches`` says that values which training did not have go there: best told last,
    by ELSE.
    """

    branch: int
    condition: str
    catches: bool


class Wording:
    """Writes conditions on the fields of a plan; ``columns`` are those to compare."""

    def __init__(self, plan: Plan, dialect: Dialect, columns: Sequence[str]) -> None:
        self._plan = plan
        self._dialect = dialect
        self._columns = columns
        self._values = [_values(dialect, field) for field in plan.fields]

    def outcomes(self, split: PlanSplit) -> list[Outcome]:
        """Return where cases go, in the order of the branches, those that stop last."""
        missing = None if self._plan.rejects_missing else split.missing_to
        if split.surrogates and missing is not None:
            return self._with_surrogates(split)
        return self._direct(split, missing)

    def _direct(self, split: PlanSplit, missing: int | None) -> list[Outcome]:
        """Return the outcomes of a split; None leaves out missing values."""
        numeric = self._plan.fields[split.field].numeric
        unseen = None
        if not numeric and not self._plan.rejects_unseen:
            unseen = split.unseen_to
        codes = self._codes(split)
        condition = self._of_number if numeric else self._of_value
        return [
            Outcome(
                to,
                condition(split, codes.get(to, []), to == missing, to == unseen),
                to == unseen,
            )
            for to in _in_order({*codes, missing, unseen})
        ]

    def branch(self, split: PlanSplit) -> str:
        """Return an expression for the branch that a case takes, on one line."""
        return self._case(self.outcomes(split))

    def rejected(self) -> list[str]:
        """Return the conditions of rows that have no prediction."""
        conditions = []
        for index, field in enumerate(self._plan.fields):
            if self._plan.rejects_missing:
                conditions.append(self._missing(index))
            if self._plan.rejects_unseen and not field.numeric:
                conditions.append(self._unseen(index))
        return conditions

    def _codes(self, split: PlanSplit) -> dict[int, list[int]]:
        """Return for every branch, and for STOP, the codes that lead there."""
        codes: dict[int, list[int]] = {}
        for code in _known(self._plan, split):
            codes.setdefault(split.branch_of.get(code, STOP), []).append(code)
        return codes

    def _of_value(
        self, split: PlanSplit, codes: list[int], missing: bool, unseen: bool
    ) -> str:
        """Return the condition that a field has one of some values."""
        index = split.field
        pieces = [self._one_of(index, codes)] if codes else []
        pieces += [self._unseen(index)] if unseen else []
        pieces += [self._missing(index)] if missing else []
        return " OR ".join(pieces)

    def _of_number(
        self, split: PlanSplit, codes: list[int], missing: bool, _: bool
    ) -> str:
        """Return the test that a number is up to or above a threshold, or known."""
        index = split.field
        if not codes:
            return self._missing(index)
        if split.threshold is None or len(codes) > 1:
            known = self._known(index)
            return f"{known} OR {self._missing(index)}" if missing else known
        column, threshold = self._columns[index], self._dialect.number(split.threshold)
        if codes == [AT_MOST]:
            up_to = f"{column} <= {threshold}"
            return f"{up_to} OR {self._missing(index)}" if missing else up_to
        above = f"{column} > {threshold}"
        if missing:  # where there is NaN, it is above every number
            return f"{above} OR {column} IS NULL"
        nan = self._dialect.is_nan
        if nan is None or self._plan.rejects_missing:
            return above
        return f"{above} AND NOT {nan.format(column)}"

    def _one_of(self, index: int, codes: Sequence[int]) -> str:
        values = [self._values[index][code] for code in codes]
        if len(values) == 1:
            return f"{self._columns[index]} = {values[0]}"
        return f"{self._columns[index]} IN ({', '.join(values)})"

    def _unseen(self, index: int) -> str:
        values = self._values[index]
        if not values:
            return f"{self._columns[index]} IS NOT NULL"
        if len(values) == 1:
            return f"{self._columns[index]} <> {values[0]}"
        return f"{self._columns[index]} NOT IN ({', '.join(values)})"

    def _missing(self, index: int) -> str:
        column, nan = self._columns[index], self._dialect.is_nan
        if nan is None or not self._plan.fields[index].numeric:
            return f"{column} IS NULL"
        return f"{column} IS NULL OR {nan.format(column)}"

    def _known(self, index: int) -> str:
        column, nan = self._columns[index], self._dialect.is_nan
        if nan is None:
            return f"{column} IS NOT NULL"
        return f"{column} IS NOT NULL AND NOT {nan.format(column)}"

    def _with_surrogates(self, split: PlanSplit) -> list[Outcome]:
        """Return the outcomes with surrogates: the first split with a value decides."""
        tests = self._direct(split, None)
        for surrogate in split.surrogates:
            outcomes = self._direct(surrogate, surrogate.missing_to)
            tests += [outcome for outcome in outcomes if outcome.branch != STOP]
        lines = "".join(f" WHEN {r.condition} THEN {r.branch}" for r in tests)
        branch = f"CASE{lines} ELSE {split.missing_to} END"
        to = _in_order({*(r.branch for r in tests), split.missing_to})
        return [Outcome(b, f"{branch} = {b}", False) for b in to]

    @staticmethod
    def _case(outcomes: Sequence[Outcome]) -> str:
        if len(outcomes) == 1:
            return str(outcomes[0].branch)
        last = next((r for r in outcomes if r.catches), outcomes[-1])
        tests = "".join(
            f" WHEN {r.condition} THEN {r.branch}" for r in outcomes if r is not last
        )
        return f"CASE{tests} ELSE {last.branch} END"


def _in_order(branches: set[int | None]) -> list[int]:
    """Return the branches, and after them STOP and EVERY_BRANCH."""
    known = [branch for branch in branches if branch is not None]
    return sorted(known, key=lambda branch: (branch < 0, branch))


def ends_at(plan: Plan, position: int) -> bool:
    """Tell whether cases may end at a node."""
    split = plan.nodes[position].split
    if split is None:
        return True
    if any(code not in split.branch_of for code in _known(plan, split)):
        return True
    if split.missing_to == STOP and not plan.rejects_missing:
        return True
    return (
        split.unseen_to == STOP
        and not plan.fields[split.field].numeric
        and not plan.rejects_unseen
    )


def _known(plan: Plan, split: PlanSplit) -> range:
    """Return the codes that a known value may have."""
    field = plan.fields[split.field]
    if not field.numeric:
        return range(len(field.values))
    return range(AT_MOST, (AT_MOST if split.threshold is None else ABOVE) + 1)


#: CASEs inside each other, the outermost not counted.
MOST_NESTED = 11
#: Trees up to this depth are written branch by branch.
_SHALLOW = 8
_INDENT = "  "


class _Piece(NamedTuple):
    """A node to be written after ``lead``, so many CASEs deep."""

    position: int
    lead: str
    nested: int
    ends: bool = False


class Cases:
    """Writes the ways from nodes to where cases end, as lines."""

    def __init__(
        self, plan: Plan, wording: Wording, end: Callable[[int], str] = str
    ) -> None:
        self._plan = plan
        self._wording = wording
        self._end = end
        self._sizes, depth = sizes_and_depth(plan)
        self._as_drawn = depth <= _SHALLOW
        #: Nodes that are too deep, left to a further step.
        self.postponed: list[int] = []

    def lines(
        self, root: int, margin: str, lead: str = "", rejected: Sequence[str] = ()
    ) -> list[str]:
        """Write the CASE from a node; rows that are ``refused`` have no end."""
        lines: list[str] = []
        open_: list[_Piece | str] = [_Piece(root, lead, 0)]
        while open_:
            piece = open_.pop()
            if isinstance(piece, str):
                lines.append(margin + piece)
                continue
            here = margin + _INDENT * piece.nested
            position, outcomes = self._settled(piece)
            if piece.nested > MOST_NESTED and outcomes:
                self.postponed.append(position)
                outcomes = []
            if not outcomes and not rejected:
                lines.append(f"{here}{piece.lead}{self._end(position)}")
                continue
            lines.append(f"{here}{piece.lead}CASE")
            open_.append(f"{_INDENT * piece.nested}END")
            open_ += self._whens(position, outcomes, piece.nested + 1)[::-1]
            if rejected:
                open_.append(f"{_INDENT}WHEN {' OR '.join(rejected)} THEN NULL")
                rejected = ()
        return lines

    def _settled(self, piece: _Piece) -> tuple[int, list[Outcome]]:
        """Skip splits with one outcome; return a node, without outcomes at an end."""
        position = piece.position
        while not piece.ends:
            node = self._plan.nodes[position]
            if node.split is None:
                break
            outcomes = self._wording.outcomes(node.split)
            if len(outcomes) > 1:
                return position, outcomes
            if outcomes[0].branch == STOP:
                break
            position = node.child(outcomes[0].branch)
        return position, []

    def _whens(
        self, position: int, outcomes: list[Outcome], nested: int
    ) -> list[_Piece | str]:
        """Return the content of the CASE of a node."""
        pieces: list[_Piece | str] = []
        while outcomes:
            last = self._last(position, outcomes)
            pieces += [
                self._piece(
                    position, outcome, f"WHEN {outcome.condition} THEN ", nested
                )
                for outcome in outcomes
                if outcome is not last
            ]
            rest = self._piece(position, last, "ELSE ", nested)
            if self._as_drawn:
                return [*pieces, rest]
            position, outcomes = self._settled(rest)
        return [*pieces, _Piece(position, "ELSE ", nested, ends=True)]

    def _piece(self, position: int, outcome: Outcome, lead: str, nested: int) -> _Piece:
        if outcome.branch == STOP:
            return _Piece(position, lead, nested, ends=True)
        child = self._plan.nodes[position].child(outcome.branch)
        return _Piece(child, lead, nested)

    def _last(self, position: int, outcomes: list[Outcome]) -> Outcome:
        """Return the outcome of the ELSE."""
        if self._as_drawn:
            return next((r for r in outcomes if r.catches), outcomes[-1])
        node = self._plan.nodes[position]
        return max(
            outcomes,
            key=lambda r: 0 if r.branch == STOP else self._sizes[node.child(r.branch)],
        )


def sizes_and_depth(plan: Plan) -> tuple[list[int], int]:
    """Return the number of nodes from each node down, and the depth of the tree."""
    sizes, levels = [1] * len(plan.nodes), [0] * len(plan.nodes)
    for position, parent in enumerate(plan.parents):
        if parent >= 0:
            levels[position] = levels[parent] + 1
    for position in range(len(plan.nodes) - 1, 0, -1):
        sizes[plan.parents[position]] += sizes[position]
    return sizes, max(levels)
