"""A plan as nested conditions: what exports to programming languages are written from.

The tree is cut into parts, and every part becomes a function of a few levels, so that
no parser, compiler or stack of any language sees how deep or large the tree is. A part
says where a case goes: to the node where it ends (its position), or on to another part
(minus the part's number; part 0 is where cases start). A loop calls one part after the
other, and nothing recurses.

Where no case is divided, a part returns where its case goes. Else it lists all the
places that the case goes to, each with its share: the conditions on the branches of a
question that divides do not exclude each other, and each branch has a share of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from branchwise.export.plan import ABOVE, AT_MOST, EVERY_BRANCH, STOP, Plan, Question

#: Questions below each other, and in all, in one part.
_MOST_LEVELS = 10
_MOST_QUESTIONS = 200
#: A question with more branches is looked up in a table.
_MOST_ARMS = 12


@dataclass(frozen=True)
class Known:
    """The value of a numeric field is not missing."""

    field: int


@dataclass(frozen=True)
class Missing:
    """The value of a field is missing."""

    field: int


@dataclass(frozen=True)
class Other:
    """The value of a field is none that training knew."""

    field: int


@dataclass(frozen=True)
class UpTo:
    """A number is known and not above a cut."""

    field: int
    cut: float


@dataclass(frozen=True)
class Above:
    """A number is known and above a cut."""

    field: int
    cut: float


@dataclass(frozen=True)
class OneOf:
    """The value of a field has one of some codes."""

    field: int
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Went:
    """A :class:`Choose` before chose this branch (or STOP, or EVERY_BRANCH)."""

    level: int
    branch: int


Test = Known | Missing | Other | UpTo | Above | OneOf | Went
#: Any of these must be true.
Tests = tuple[Test, ...]


@dataclass(frozen=True)
class Go:
    """The case goes to a node or a part, with the share of a level."""

    to: int
    share: int


@dataclass(frozen=True)
class Share:
    """The share of a level: that of another level, times ``part`` where ``when``."""

    level: int
    of: int
    part: float
    when: Tests


@dataclass(frozen=True)
class Choose:
    """Choose a branch, that of the first arm whose tests are true, or ``default``."""

    level: int
    arms: tuple[tuple[Tests, int], ...]
    default: int


@dataclass(frozen=True)
class Arm:
    """Statements for cases that pass any of some tests."""

    tests: Tests
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class If:
    """Arms of which one is taken, the last if no other; or, ``divided``, several."""

    arms: tuple[Arm, ...]
    divided: bool


@dataclass(frozen=True)
class Table:
    """Where the case goes for every code, if missing, and if unknown.

    It is None that goes to all of ``every``, with a part of the share each.
    """

    node: int
    field: int
    share: int
    of_codes: tuple[int, ...]
    of_missing: int | None
    of_other: int | None
    every: tuple[tuple[int, float], ...]


Statement = Go | Share | Choose | If | Table


@dataclass(frozen=True)
class Part:
    """A function: its root, its statements, and the fields that these look at."""

    number: int
    root: int
    statements: tuple[Statement, ...]
    fields: tuple[int, ...]


def parts_of(plan: Plan) -> Iterator[Part]:
    """Cut a tree into parts, beginning with that of the root."""
    number_of = {0: 0}
    roots = deque([0])
    while roots:
        root = roots.popleft()
        inside, below = _reach(plan, root)
        for node in below:
            number_of[node] = len(number_of)
        roots.extend(below)
        nested = _Nested(plan, inside, number_of)
        yield Part(
            number_of[root], root, nested.block(root), tuple(sorted(nested.seen))
        )


def _reach(plan: Plan, root: int) -> tuple[set[int], list[int]]:
    """Return the nodes whose questions a part asks, and the roots of parts below."""
    inside: set[int] = set()
    below: list[int] = []
    open_ = deque([(root, 0)])
    while open_:
        node, level = open_.popleft()
        question = plan.nodes[node].question
        if question is None:
            continue
        if level == _MOST_LEVELS or len(inside) == _MOST_QUESTIONS:
            below.append(node)
            continue
        inside.add(node)
        # The children of a table are called by it: each is a part of its own.
        deeper = _MOST_LEVELS if is_wide(question) else level + 1
        children = range(len(question.branches))
        open_.extend((plan.nodes[node].child(branch), deeper) for branch in children)
    return inside, below


def is_wide(question: Question) -> bool:
    """Tell whether a question is looked up in a table."""
    return len(question.branches) > _MOST_ARMS and not question.surrogates


class _Nested:
    """Makes the statements of a part."""

    def __init__(
        self, plan: Plan, inside: Collection[int], number_of: dict[int, int]
    ) -> None:
        self._plan = plan
        self._inside = inside
        self._number_of = number_of
        self.seen: set[int] = set()

    def block(self, node: int, level: int = 0, share: int = 0) -> tuple[Statement, ...]:
        """Return what happens to a case at a node; as deep as a part is, no deeper."""
        question = self._plan.nodes[node].question
        if question is None or node not in self._inside:
            return (Go(self._to(node), share),)
        self.seen.add(question.field)
        if is_wide(question):
            return (self._table(node, question, share),)
        if question.surrogates and not self._plan.refuses_missing:
            return self._chosen(node, question, level, share)
        branches = [self._tests(question, b) for b in range(len(question.branches))]
        every = self._tests(question, EVERY_BRANCH)
        stop = self._tests(question, STOP)
        return self._arms(node, branches, every, stop, level, share)

    def _to(self, node: int) -> int:
        is_leaf = self._plan.nodes[node].question is None
        return node if is_leaf else -self._number_of[node]

    def _arms(
        self,
        node: int,
        branches: Sequence[Tests],
        every: Tests,
        stop: Tests,
        level: int,
        share: int,
    ) -> tuple[Statement, ...]:
        """Return the branches of a question, and the end of cases that stop."""
        question = self._plan.nodes[node].question
        arms = []
        for branch, tests in enumerate(branches):
            child = self._plan.nodes[node].child(branch)
            if every and question is not None:
                when = every if tests else ()
                part = Share(level + 1, share, question.shares[branch], when)
                body = (part, *self.block(child, level + 1, level + 1))
                arms.append(Arm((*tests, *every), body))
            elif tests:
                arms.append(Arm(tests, self.block(child, level + 1, share)))
        if stop or not arms:
            arms.append(Arm(stop, (Go(node, share),)))
        return (If(tuple(arms), divided=bool(every)),)

    def _chosen(
        self, node: int, question: Question, level: int, share: int
    ) -> tuple[Statement, ...]:
        """Let surrogates choose where the value is missing."""
        choice = Choose(level, tuple(self._replies(question)), question.missing_to)
        ways = {branch for _, branch in choice.arms} | {choice.default}

        def went(branch: int) -> Tests:
            return (Went(level, branch),) if branch in ways else ()

        branches = [went(branch) for branch in range(len(question.branches))]
        arms = self._arms(node, branches, went(EVERY_BRANCH), went(STOP), level, share)
        return (choice, *arms)

    def _replies(self, question: Question) -> Iterator[tuple[Tests, int]]:
        """Yield what chooses each branch, the question's own replies first."""
        for way in (*range(len(question.branches)), STOP, EVERY_BRANCH):
            own = [t for t in self._tests(question, way) if not isinstance(t, Missing)]
            if own:
                yield tuple(own), way
        for surrogate in question.surrogates:
            self.seen.add(surrogate.field)
            for branch in range(len(surrogate.branches)):
                tests = self._tests(surrogate, branch)
                if tests:
                    yield tests, branch

    def _tests(self, question: Question, way: int) -> Tests:
        """Return what goes down a branch, stops, or goes down every branch."""
        plan = self._plan
        numeric = plan.fields[question.field].numeric
        tests: list[Test] = []
        codes = self._codes(question, way)
        if codes:
            tests.append(_has(question, codes, numeric))
        if question.missing_to == way and not plan.refuses_missing:
            tests.append(Missing(question.field))
        if question.unseen_to == way and not plan.refuses_unseen and not numeric:
            tests.append(Other(question.field))
        return tuple(tests)

    def _codes(self, question: Question, way: int) -> tuple[int, ...]:
        """Return the codes that lead somewhere."""
        if way == EVERY_BRANCH:
            return ()
        field = self._plan.fields[question.field]
        codes: Sequence[int] = range(len(field.values))
        if field.numeric:
            codes = (AT_MOST,) if question.cut is None else (AT_MOST, ABOVE)
        if way >= 0:
            return tuple(code for code in question.branches[way] if code in codes)
        return tuple(code for code in codes if code not in question.branch_of)

    def _table(self, node: int, question: Question, share: int) -> Table:
        place = self._plan.nodes[node]

        def to(way: int) -> int | None:
            if way == EVERY_BRANCH:
                return None
            return node if way == STOP else self._to(place.child(way))

        n_codes = len(self._plan.fields[question.field].values)
        ways = (question.branch_of.get(code, STOP) for code in range(n_codes))
        every = enumerate(question.shares)
        return Table(
            node,
            question.field,
            share,
            tuple(node if w == STOP else self._to(place.child(w)) for w in ways),
            to(question.missing_to),
            to(question.unseen_to),
            tuple((self._to(place.child(b)), part) for b, part in every)
            if question.divides
            else (),
        )


def _has(question: Question, codes: tuple[int, ...], numeric: bool) -> Test:
    """Return the test for some codes of a question."""
    if not numeric:
        return OneOf(question.field, codes)
    if question.cut is None or len(codes) > 1:
        return Known(question.field)
    cut = question.cut
    return (UpTo if codes[0] == AT_MOST else Above)(question.field, cut)
