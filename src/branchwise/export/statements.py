"""A plan as nested conditions, from which programming languages are written.

The tree is divided into pieces, and every piece becomes a function of a few levels, so
that no parser, compiler or stack of any language has to handle the depth of the tree. A
piece returns where a case goes: to the node where it ends (its position), or on to
another piece (minus the piece's number; cases start at piece 0). A loop calls one piece
after the other, without recursion.

Without fractional cases, a piece returns one position. Else it lists all positions that
the case goes to, each with its share: the conditions on the branches of a split that
divides a case do not exclude each other, and each branch has a share of its own.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from branchwise.export.plan import Plan, PlanSplit
from branchwise.tree.splits import ABOVE, AT_MOST, EVERY_BRANCH, STOP

#: Levels of splits, and all splits, of one piece.
_MOST_LEVELS = 10
_MOST_SPLITS = 200
#: A split with more branches is looked up in a table.
_MOST_ARMS = 12


class Test(NamedTuple):
    """A test of a case.

    The value of ``field`` is "known", "missing" or "other" (none that training knew);
    it is "up to" or "above" the ``threshold``, or "one of" some ``codes``; or "went":
    a :class:`Choose` before, of ``level``, chose a ``branch`` (or STOP, EVERY_BRANCH).
    """

    kind: Literal["known", "missing", "other", "up to", "above", "one of", "went"]
    field: int = -1
    threshold: float = math.nan
    codes: tuple[int, ...] = ()
    level: int = -1
    branch: int = STOP


#: Any of these must be true.
Tests = tuple[Test, ...]


class Go(NamedTuple):
    """The case goes to a node or a piece, with the share of a level."""

    to: int
    share: int


@dataclass(frozen=True)
class Share:
    """The share of a level: that of another level, times ``part`` where ``when``."""

    level: int
    of: int
    piece: float
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
    fractional: bool


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
class Piece:
    """A function: its root, its statements, and the fields that these look at."""

    number: int
    root: int
    statements: tuple[Statement, ...]
    fields: tuple[int, ...]


def pieces_of(plan: Plan) -> Iterator[Piece]:
    """Divide trees into pieces, beginning with those of their roots."""
    number_of = {root: number for number, root in enumerate(plan.roots)}
    roots = deque(plan.roots)
    while roots:
        root = roots.popleft()
        inside, below = _reach(plan, root)
        for node in below:
            number_of[node] = len(number_of)
        roots.extend(below)
        nested = _Nested(plan, inside, number_of)
        yield Piece(
            number_of[root], root, nested.block(root), tuple(sorted(nested.seen))
        )


def _reach(plan: Plan, root: int) -> tuple[set[int], list[int]]:
    """Return the inner nodes of a piece, and the roots of the pieces below."""
    inside: set[int] = set()
    below: list[int] = []
    open_ = deque([(root, 0)])
    while open_:
        node, level = open_.popleft()
        split = plan.nodes[node].split
        if split is None:
            continue
        if level == _MOST_LEVELS or len(inside) == _MOST_SPLITS:
            below.append(node)
            continue
        inside.add(node)
        # The children of a table are called by it: each is a piece of its own.
        deeper = _MOST_LEVELS if is_wide(split) else level + 1
        children = range(len(split.branches))
        open_.extend((plan.nodes[node].child(branch), deeper) for branch in children)
    return inside, below


def is_wide(split: PlanSplit) -> bool:
    """Tell whether a split is looked up in a table."""
    return len(split.branches) > _MOST_ARMS and not split.surrogates


class _Nested:
    """Makes the statements of a piece."""

    def __init__(
        self, plan: Plan, inside: Collection[int], number_of: dict[int, int]
    ) -> None:
        self._plan = plan
        self._inside = inside
        self._number_of = number_of
        self.seen: set[int] = set()

    def block(self, node: int, level: int = 0, share: int = 0) -> tuple[Statement, ...]:
        """Return the statements of a node; the depth is limited by that of a piece."""
        split = self._plan.nodes[node].split
        if split is None or node not in self._inside:
            return (Go(self._to(node), share),)
        self.seen.add(split.field)
        if is_wide(split):
            return (self._table(node, split, share),)
        if split.surrogates and not self._plan.rejects_missing:
            return self._chosen(node, split, level, share)
        branches = [self._tests(split, b) for b in range(len(split.branches))]
        every = self._tests(split, EVERY_BRANCH)
        stop = self._tests(split, STOP)
        return self._arms(node, branches, every, stop, level, share)

    def _to(self, node: int) -> int:
        is_leaf = self._plan.nodes[node].split is None
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
        """Return the branches of a split, and the end of cases that stop."""
        split = self._plan.nodes[node].split
        arms = []
        for branch, tests in enumerate(branches):
            child = self._plan.nodes[node].child(branch)
            if every and split is not None:
                when = every if tests else ()
                piece = Share(level + 1, share, split.shares[branch], when)
                body = (piece, *self.block(child, level + 1, level + 1))
                arms.append(Arm((*tests, *every), body))
            elif tests:
                arms.append(Arm(tests, self.block(child, level + 1, share)))
        if stop or not arms:
            arms.append(Arm(stop, (Go(node, share),)))
        return (If(tuple(arms), fractional=bool(every)),)

    def _chosen(
        self, node: int, split: PlanSplit, level: int, share: int
    ) -> tuple[Statement, ...]:
        """Return the surrogate splits for a missing value."""
        choice = Choose(level, tuple(self._outcomes(split)), split.missing_to)
        ways = {branch for _, branch in choice.arms} | {choice.default}

        def went(branch: int) -> Tests:
            return (Test("went", level=level, branch=branch),) if branch in ways else ()

        branches = [went(branch) for branch in range(len(split.branches))]
        arms = self._arms(node, branches, went(EVERY_BRANCH), went(STOP), level, share)
        return (choice, *arms)

    def _outcomes(self, split: PlanSplit) -> Iterator[tuple[Tests, int]]:
        """Yield the tests of each branch, those of the split itself first."""
        for way in (*range(len(split.branches)), STOP, EVERY_BRANCH):
            own = [t for t in self._tests(split, way) if t.kind != "missing"]
            if own:
                yield tuple(own), way
        for surrogate in split.surrogates:
            self.seen.add(surrogate.field)
            for branch in range(len(surrogate.branches)):
                tests = self._tests(surrogate, branch)
                if tests:
                    yield tests, branch

    def _tests(self, split: PlanSplit, way: int) -> Tests:
        """Return what goes down a branch, stops, or goes down every branch."""
        plan = self._plan
        numeric = plan.fields[split.field].numeric
        tests: list[Test] = []
        codes = self._codes(split, way)
        if codes:
            tests.append(_has(split, codes, numeric))
        if split.missing_to == way and not plan.rejects_missing:
            tests.append(Test("missing", split.field))
        if split.unseen_to == way and not plan.rejects_unseen and not numeric:
            tests.append(Test("other", split.field))
        return tuple(tests)

    def _codes(self, split: PlanSplit, way: int) -> tuple[int, ...]:
        """Return the codes that lead somewhere."""
        if way == EVERY_BRANCH:
            return ()
        field = self._plan.fields[split.field]
        codes: Sequence[int] = range(len(field.values))
        if field.numeric:
            codes = (AT_MOST,) if split.threshold is None else (AT_MOST, ABOVE)
        if way >= 0:
            return tuple(code for code in split.branches[way] if code in codes)
        return tuple(code for code in codes if code not in split.branch_of)

    def _table(self, node: int, split: PlanSplit, share: int) -> Table:
        position = self._plan.nodes[node]

        def to(way: int) -> int | None:
            if way == EVERY_BRANCH:
                return None
            return node if way == STOP else self._to(position.child(way))

        n_codes = len(self._plan.fields[split.field].values)
        ways = (split.branch_of.get(code, STOP) for code in range(n_codes))
        every = enumerate(split.shares)
        return Table(
            node,
            split.field,
            share,
            tuple(node if w == STOP else self._to(position.child(w)) for w in ways),
            to(split.missing_to),
            to(split.unseen_to),
            tuple((self._to(position.child(b)), piece) for b, piece in every)
            if split.divides
            else (),
        )


def _has(split: PlanSplit, codes: tuple[int, ...], numeric: bool) -> Test:
    """Return the test for some codes of a split."""
    if not numeric:
        return Test("one of", split.field, codes=codes)
    if split.threshold is None or len(codes) > 1:
        return Test("known", split.field)
    kind: Literal["up to", "above"] = "up to" if codes[0] == AT_MOST else "above"
    return Test(kind, split.field, split.threshold)
