"""The tree as CASE expressions that say where a case ends.

Engines limit how deep expressions are nested: SQLite's parser gives up at about 15
CASEs inside each other. So the largest branch of every node of a deep tree stands not
inside a CASE but after it, as further WHENs of the same one. What stands inside has at
most half of the nodes, so that 4,096 times as many nodes nest only 12 levels deeper.
What is deeper still is left to a further step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from branchwise.export.plan import ABOVE, AT_MOST, STOP, Plan, Question
from branchwise.export.sql.dialects import Dialect


@dataclass(frozen=True)
class Reply:
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
        self._values = [dialect.values_of(field) for field in plan.fields]

    def replies(self, question: Question) -> list[Reply]:
        """Return where cases go, in the order of the branches, those that stop last."""
        missing = None if self._plan.refuses_missing else question.missing_to
        if question.surrogates and missing is not None:
            return self._with_surrogates(question)
        return self._direct(question, missing)

    def _direct(self, question: Question, missing: int | None) -> list[Reply]:
        """Return where cases go; None for missing values that are not asked about."""
        numeric = self._plan.fields[question.field].numeric
        unseen = None
        if not numeric and not self._plan.refuses_unseen:
            unseen = question.unseen_to
        codes = self._codes(question)
        condition = self._of_number if numeric else self._of_value
        return [
            Reply(
                to,
                condition(question, codes.get(to, []), to == missing, to == unseen),
                to == unseen,
            )
            for to in _in_order({*codes, missing, unseen})
        ]

    def branch(self, question: Question) -> str:
        """Return an expression for the branch that a case takes, on one line."""
        return self._case(self.replies(question))

    def refused(self) -> list[str]:
        """Return the conditions of rows that have no answer."""
        conditions = []
        for index, field in enumerate(self._plan.fields):
            if self._plan.refuses_missing:
                conditions.append(self._missing(index))
            if self._plan.refuses_unseen and not field.numeric:
                conditions.append(self._unseen(index))
        return conditions

    def _codes(self, question: Question) -> dict[int, list[int]]:
        """Return for every branch, and for STOP, the codes that lead there."""
        codes: dict[int, list[int]] = {}
        for code in _known(self._plan, question):
            codes.setdefault(question.branch_of.get(code, STOP), []).append(code)
        return codes

    def _of_value(
        self, question: Question, codes: list[int], missing: bool, unseen: bool
    ) -> str:
        """Return the condition that a field has one of some values."""
        index = question.field
        parts = [self._one_of(index, codes)] if codes else []
        parts += [self._unseen(index)] if unseen else []
        parts += [self._missing(index)] if missing else []
        return " OR ".join(parts)

    def _of_number(
        self, question: Question, codes: list[int], missing: bool, _: bool
    ) -> str:
        """Return the condition that a number is on one side of the cut, or known."""
        index = question.field
        if not codes:
            return self._missing(index)
        if question.cut is None or len(codes) > 1:
            known = self._known(index)
            return f"{known} OR {self._missing(index)}" if missing else known
        column, cut = self._columns[index], self._dialect.number(question.cut)
        if codes == [AT_MOST]:
            up_to = f"{column} <= {cut}"
            return f"{up_to} OR {self._missing(index)}" if missing else up_to
        above = f"{column} > {cut}"
        if missing:  # where there is NaN, it is above every number
            return f"{above} OR {column} IS NULL"
        nan = self._dialect.not_a_number
        if nan is None or self._plan.refuses_missing:
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
        column, nan = self._columns[index], self._dialect.not_a_number
        if nan is None or not self._plan.fields[index].numeric:
            return f"{column} IS NULL"
        return f"{column} IS NULL OR {nan.format(column)}"

    def _known(self, index: int) -> str:
        column, nan = self._columns[index], self._dialect.not_a_number
        if nan is None:
            return f"{column} IS NOT NULL"
        return f"{column} IS NOT NULL AND NOT {nan.format(column)}"

    def _with_surrogates(self, question: Question) -> list[Reply]:
        """Ask one question after the other: the first that is answered decides."""
        tests = self._direct(question, None)
        for surrogate in question.surrogates:
            replies = self._direct(surrogate, surrogate.missing_to)
            tests += [reply for reply in replies if reply.branch != STOP]
        lines = "".join(f" WHEN {r.condition} THEN {r.branch}" for r in tests)
        branch = f"CASE{lines} ELSE {question.missing_to} END"
        to = _in_order({*(r.branch for r in tests), question.missing_to})
        return [Reply(b, f"{branch} = {b}", False) for b in to]

    @staticmethod
    def _case(replies: Sequence[Reply]) -> str:
        if len(replies) == 1:
            return str(replies[0].branch)
        last = next((r for r in replies if r.catches), replies[-1])
        tests = "".join(
            f" WHEN {r.condition} THEN {r.branch}" for r in replies if r is not last
        )
        return f"CASE{tests} ELSE {last.branch} END"


def _in_order(branches: set[int | None]) -> list[int]:
    """Return the branches, and after them STOP and EVERY_BRANCH."""
    known = [branch for branch in branches if branch is not None]
    return sorted(known, key=lambda branch: (branch < 0, branch))


def ends_at(plan: Plan, position: int) -> bool:
    """Tell whether cases may end at a node."""
    question = plan.nodes[position].question
    if question is None:
        return True
    if any(code not in question.branch_of for code in _known(plan, question)):
        return True
    if question.missing_to == STOP and not plan.refuses_missing:
        return True
    return (
        question.unseen_to == STOP
        and not plan.fields[question.field].numeric
        and not plan.refuses_unseen
    )


def _known(plan: Plan, question: Question) -> range:
    """Return the codes that a known value may have."""
    field = plan.fields[question.field]
    if not field.numeric:
        return range(len(field.values))
    return range(AT_MOST, (AT_MOST if question.cut is None else ABOVE) + 1)


#: CASEs inside each other, the outermost not counted.
MOST_NESTED = 11
#: Trees up to this depth are written branch for branch, as they are drawn.
_SHALLOW = 8
_INDENT = "  "


@dataclass(frozen=True)
class _Part:
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
        #: Nodes that are too deep, to be asked about in a further step.
        self.postponed: list[int] = []

    def lines(
        self, root: int, margin: str, lead: str = "", refused: Sequence[str] = ()
    ) -> list[str]:
        """Write the way from a node; rows that are ``refused`` end nowhere."""
        lines: list[str] = []
        open_: list[_Part | str] = [_Part(root, lead, 0)]
        while open_:
            part = open_.pop()
            if isinstance(part, str):
                lines.append(margin + part)
                continue
            here = margin + _INDENT * part.nested
            position, replies = self._settled(part)
            if part.nested > MOST_NESTED and replies:
                self.postponed.append(position)
                replies = []
            if not replies and not refused:
                lines.append(f"{here}{part.lead}{self._end(position)}")
                continue
            lines.append(f"{here}{part.lead}CASE")
            open_.append(f"{_INDENT * part.nested}END")
            open_ += self._whens(position, replies, part.nested + 1)[::-1]
            if refused:
                open_.append(f"{_INDENT}WHEN {' OR '.join(refused)} THEN NULL")
                refused = ()
        return lines

    def _settled(self, part: _Part) -> tuple[int, list[Reply]]:
        """Pass by questions with one reply; return a node, and no replies at an end."""
        position = part.position
        while not part.ends:
            node = self._plan.nodes[position]
            if node.question is None:
                break
            replies = self._wording.replies(node.question)
            if len(replies) > 1:
                return position, replies
            if replies[0].branch == STOP:
                break
            position = node.child(replies[0].branch)
        return position, []

    def _whens(
        self, position: int, replies: list[Reply], nested: int
    ) -> list[_Part | str]:
        """Return what stands in the CASE of a node."""
        parts: list[_Part | str] = []
        while replies:
            last = self._last(position, replies)
            parts += [
                self._part(position, reply, f"WHEN {reply.condition} THEN ", nested)
                for reply in replies
                if reply is not last
            ]
            rest = self._part(position, last, "ELSE ", nested)
            if self._as_drawn:
                return [*parts, rest]
            position, replies = self._settled(rest)
        return [*parts, _Part(position, "ELSE ", nested, ends=True)]

    def _part(self, position: int, reply: Reply, lead: str, nested: int) -> _Part:
        if reply.branch == STOP:
            return _Part(position, lead, nested, ends=True)
        child = self._plan.nodes[position].child(reply.branch)
        return _Part(child, lead, nested)

    def _last(self, position: int, replies: list[Reply]) -> Reply:
        """Return the reply that ELSE stands for."""
        if self._as_drawn:
            return next((r for r in replies if r.catches), replies[-1])
        node = self._plan.nodes[position]
        return max(
            replies,
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
