"""SQL queries: names, conditions, ends, nested CASEs without fractional cases.

Engines limit how deep expressions are nested: SQLite's parser gives up at about 15
CASEs inside each other. So the largest branch of every node of a deep tree stands not
inside a CASE but after it, as further WHENs of the same one. What stands inside has at
most half of the nodes, so that 4,096 times as many nodes nest only 12 levels deeper.
What is deeper still is left to a further step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from branchwise.errors import ExportError
from branchwise.export.dates import derived_column, first_above
from branchwise.export.plan import Field, Plan, PlanSplit
from branchwise.files.sql_dialects import SQLITE, WHOLE, Dialect
from branchwise.text.words import word
from branchwise.tree.splits import AT_MOST, STOP


class Names:
    """Gives names that no column of the tree has, nor any name given before."""

    def __init__(self, plan: Plan, dialect: Dialect, table: str) -> None:
        self._dialect = dialect
        fields = [field.name for field in plan.fields]
        dialect.distinct(fields)
        self.table = dialect.named(table)
        #: The columns of the table, made to compare as the model does.
        self.compared = [
            _comparable(dialect, field).format(
                f"{self.table}.{dialect.named(field.name)}"
            )
            for field in plan.inputs
        ]
        dates = [plan.inputs[field.source].name for field in plan.derived]
        self.compared += [
            derived_column(dialect, field, f"{self.table}.{dialect.named(name)}")
            for field, name in zip(plan.derived, dates, strict=True)
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


def _comparable(dialect: Dialect, field: Field) -> str:
    """Return the pattern that makes a column compare as the model does."""
    if field.date is not None:
        date_literal(dialect, field, 0.0)  # which may not be possible
        as_text = dialect is SQLITE and field.date.unit != "day"
        return "REPLACE({}, 'T', ' ')" if as_text else "{}"
    if field.numeric:
        return dialect.number_column
    return dialect.text_column if field.kind == "text" else "{}"


def date_kind(field: Field) -> str:
    """Return whether a field has dates, times or times with a time zone."""
    if field.date is None or field.date.unit == "day":
        return "date"
    return "zoned" if field.date.zoned else "time"


def date_literal(dialect: Dialect, field: Field, threshold: float) -> str:
    """Write the first date above a threshold, which is none of those up to it."""
    if field.date is None or date_kind(field) not in dialect.dates:
        raise ExportError(
            f"Column {field.name!r} holds times with a time zone, and the dialect "
            f"{dialect.name!r} has none. Choose another dialect (duckdb, postgresql, "
            "spark), or convert them to UTC without a time zone and fit again."
        )
    return dialect.dates[date_kind(field)][0].format(first_above(field.date, threshold))


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
        outcomes = self.outcomes(split)
        if len(outcomes) == 1:
            return str(outcomes[0].branch)
        last = _caught_last(outcomes)
        return _case((r for r in outcomes if r is not last), last.branch)

    def rejected(self) -> list[str]:
        """Return the conditions of rows that have no prediction."""
        conditions = []
        for index, field in enumerate(self._plan.inputs):
            if self._plan.rejects_missing:
                conditions.append(self._missing(index))
            if self._plan.rejects_unseen and not field.numeric:
                conditions.append(self._unseen(index))
        return conditions

    def _codes(self, split: PlanSplit) -> dict[int, list[int]]:
        """Return for every branch, and for STOP, the codes that lead there."""
        codes: dict[int, list[int]] = {}
        for code in range(self._plan.n_codes(split)):
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
        column = self._columns[index]
        if self._plan.fields[index].date is not None:
            return self._of_date(split, codes, missing)
        threshold = self._dialect.number(split.threshold)
        if codes == [AT_MOST]:
            up_to = f"{column} <= {threshold}"
            return f"{up_to} OR {self._missing(index)}" if missing else up_to
        above = f"{column} > {threshold}"
        if missing:  # where there is NaN, it is above every number
            return f"{above} OR {column} IS NULL"
        nan = self._nan(index)
        if nan is None or self._plan.rejects_missing:
            return above
        return f"{above} AND NOT {nan.format(column)}"

    def _of_date(self, split: PlanSplit, codes: list[int], missing: bool) -> str:
        """Return the test that a date is before the first one above, or not."""
        index = split.field
        field = self._plan.fields[index]
        literal = date_literal(self._dialect, field, split.threshold or 0.0)
        sign = "<" if codes == [AT_MOST] else ">="
        test = f"{self._columns[index]} {sign} {literal}"
        return f"{test} OR {self._missing(index)}" if missing else test

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
        column, nan = self._columns[index], self._nan(index)
        if nan is None:
            return f"{column} IS NULL"
        return f"{column} IS NULL OR {nan.format(column)}"

    def _nan(self, index: int) -> str | None:
        """Return the test for NaN, where a column may have it."""
        field = self._plan.fields[index]
        plain = field.numeric and field.date is None and field.feature is None
        return self._dialect.is_nan if plain else None

    def _known(self, index: int) -> str:
        column, nan = self._columns[index], self._nan(index)
        if nan is None:
            return f"{column} IS NOT NULL"
        return f"{column} IS NOT NULL AND NOT {nan.format(column)}"

    def _with_surrogates(self, split: PlanSplit) -> list[Outcome]:
        """Return the outcomes with surrogates: the first split with a value decides."""
        tests = self._direct(split, None)
        for surrogate in split.surrogates:
            outcomes = self._direct(surrogate, surrogate.missing_to)
            tests += [outcome for outcome in outcomes if outcome.branch != STOP]
        branch = _case(tests, split.missing_to)
        to = _in_order({*(r.branch for r in tests), split.missing_to})
        return [Outcome(b, f"{branch} = {b}", False) for b in to]


def _case(outcomes: Iterable[Outcome], otherwise: int) -> str:
    """Write a CASE for the number of a branch."""
    tests = "".join(f" WHEN {r.condition} THEN {r.branch}" for r in outcomes)
    return f"CASE{tests} ELSE {otherwise} END"


def _caught_last(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome that is best told by ELSE."""
    return next((r for r in outcomes if r.catches), outcomes[-1])


def _in_order(branches: set[int | None]) -> list[int]:
    """Return the branches, and after them STOP and EVERY_BRANCH."""
    known = [branch for branch in branches if branch is not None]
    return sorted(known, key=lambda branch: (branch < 0, branch))


def ends_at(plan: Plan, position: int) -> bool:
    """Tell whether cases may end at a node."""
    split = plan.nodes[position].split
    if split is None:
        return True
    if any(code not in split.branch_of for code in range(plan.n_codes(split))):
        return True
    if split.missing_to == STOP and not plan.rejects_missing:
        return True
    return (
        split.unseen_to == STOP
        and not plan.fields[split.field].numeric
        and not plan.rejects_unseen
    )


#: Ends and splits of one step: engines limit terms (1,000) and columns (1,664).
_MOST_ENDS = 300
_MOST_SPLITS = 900
#: Splits on all paths to all ends: every case computes all of them.
_MOST_FACTORS = 300_000


class End(NamedTuple):
    """A node where cases end, and the (node, branch) pairs on the way there."""

    position: int
    way: tuple[tuple[int, int], ...]


def blocks_of_ends(plan: Plan) -> list[list[End]]:
    """Group the ends so that no step has too many, or reject the tree."""
    blocks: list[list[End]] = [[]]
    tested: set[int] = set()
    factors = 0
    for end in _ends(plan):
        own = {node for node, _ in end.way}
        factors += len(end.way)
        if len(own) > _MOST_SPLITS or factors > _MOST_FACTORS:
            raise ExportError(
                "SQL cannot carry this tree: it divides cases with missing or unseen "
                f"values among branches, and its paths have more than {_MOST_SPLITS} "
                f"splits, or together more than {_MOST_FACTORS:,}. Prune the tree, "
                "fit it with missing='largest' and unseen='largest', or export it to "
                "another target."
            )
        if len(blocks[-1]) == _MOST_ENDS or len(tested | own) > _MOST_SPLITS:
            blocks.append([])
            tested = set()
        blocks[-1].append(end)
        tested |= own
    return blocks


def _ends(plan: Plan) -> list[End]:
    """Return the ends in the order of their positions."""
    ways: list[tuple[tuple[int, int], ...]] = [()] * len(plan.nodes)
    ends = []
    for position, node in enumerate(plan.nodes):
        way, ways[position] = ways[position], ()
        if node.split is not None:
            for branch in range(len(node.split.branches)):
                ways[node.child(branch)] = (*way, (position, branch))
        if ends_at(plan, position):
            stop = () if node.split is None else ((position, STOP),)
            ends.append(End(position, way + stop))
    return ends


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
        self._sizes = [1] * len(plan.nodes)
        for position in range(len(plan.nodes) - 1, 0, -1):
            self._sizes[plan.parents[position]] += self._sizes[position]
        self._as_drawn = max(plan.depths) <= _SHALLOW
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
            return _caught_last(outcomes)
        node = self._plan.nodes[position]
        return max(
            outcomes,
            key=lambda r: 0 if r.branch == STOP else self._sizes[node.child(r.branch)],
        )


def expression(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the label, or the number, as one expression."""
    if plan.divides:
        raise ExportError(
            "form='expression' cannot carry this tree: it divides cases with missing "
            "or unseen values among branches, and no single CASE expression adds the "
            "parts up. Use form='query'."
        )

    wording = Wording(plan, dialect, names.compared)
    cases = Cases(plan, wording, lambda end: outputs_of(plan, dialect, end)[0])
    lines = cases.lines(0, "", rejected=wording.rejected())
    if cases.postponed:
        raise ExportError(
            f"form='expression' cannot carry this tree of {len(plan.nodes):,} nodes: "
            "its CASE expressions would be nested more deeply than database engines "
            "read. Use form='query', or prune the tree."
        )
    return lines


def outputs_of(plan: Plan, dialect: Dialect, position: int) -> list[str]:
    """Write the label and the probabilities of a node, or its number."""
    node = plan.nodes[position]
    if node.number is not None:
        return [dialect.number(node.number)]
    label = dialect.value(plan.classes[node.label])
    return [label, *map(dialect.number, node.probabilities)]
