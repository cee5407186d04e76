"""A plan as a table of states, for targets that walk tables instead of nested ifs.

A state asks about one field; each reply leads to another state. The replies of a state
are numbered: for a numeric field 0 is up to the cut, 1 above it, 2 missing; for another
field the codes of its values, then missing, then unseen. A node is the state of its own
number; states past the nodes are surrogates: they ask in the place of a node whose
value is missing, and never end a case. A reply leads to the own state where the
case stops, and to :data:`DIVIDED` where it goes down every branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from branchwise.export.plan import EVERY_BRANCH, STOP, Plan, Question

#: Where a reply leads that takes a case down every branch.
DIVIDED = -1


@dataclass(frozen=True)
class Machine:
    """States as parallel lists, and the targets of all replies, state after state.

    ``field`` is 0 and ``first`` leads to a single reply, the state itself, for a leaf,
    whose ``asks`` is False. ``owner`` is the node that a state belongs to.
    """

    asks: list[bool]
    field: list[int]
    cut: list[float | None]
    first: list[int]
    owner: list[int]
    to: list[int]

    def __len__(self) -> int:
        return len(self.field)

    def replies(self, state: int) -> list[int]:
        """Return where each reply of a state leads."""
        last = self.first[state + 1] if state + 1 < len(self) else len(self.to)
        return self.to[self.first[state] : last]


def make_machine(plan: Plan) -> Machine:
    """Turn a plan into states."""
    machine = Machine([], [], [], [], [], [])
    spare = len(plan.nodes)  # the next state for a surrogate
    waiting: list[tuple[int, Question, int]] = []
    for position, node in enumerate(plan.nodes):
        question = node.question
        if question is None:
            _add(machine, position, False, 0, None, [position])
            continue
        targets = _targets(plan, question, position, node.first_child)
        if question.surrogates:
            targets[_missing(plan, question)] = spare
            waiting.append((position, question, node.first_child))
            spare += len(question.surrogates)
        _add(machine, position, True, question.field, question.cut, targets)
    for position, question, first_child in waiting:
        _add_surrogates(plan, machine, position, question, first_child)
    return machine


def _add(
    machine: Machine,
    owner: int,
    asks: bool,
    field: int,
    cut: float | None,
    targets: Sequence[int],
) -> None:
    machine.asks.append(asks)
    machine.field.append(field)
    machine.cut.append(cut)
    machine.first.append(len(machine.to))
    machine.owner.append(owner)
    machine.to.extend(targets)


def _missing(plan: Plan, question: Question) -> int:
    """Return the reply of a missing value."""
    field = plan.fields[question.field]
    return 2 if field.numeric else len(field.values)


def _targets(plan: Plan, question: Question, stop: int, first_child: int) -> list[int]:
    """Return where replies lead, ``stop`` being where those without a branch do."""
    field = plan.fields[question.field]
    known = range(2 if field.numeric else len(field.values))
    branches = [question.branch_of.get(code, STOP) for code in known]
    if field.numeric and question.cut is None:
        branches = [branches[0]] * 2
    branches.append(question.missing_to)
    if not field.numeric:
        branches.append(question.unseen_to)
    special = {STOP: stop, EVERY_BRANCH: DIVIDED}
    return [special[b] if b in special else first_child + b for b in branches]


def _add_surrogates(
    plan: Plan, machine: Machine, position: int, question: Question, first_child: int
) -> None:
    """Add a state for each surrogate of a node; the last resort is ``missing_to``."""
    special = {STOP: position, EVERY_BRANCH: DIVIDED}
    to = question.missing_to
    resort = special[to] if to in special else first_child + to
    for turn, surrogate in enumerate(question.surrogates):
        last = turn + 1 == len(question.surrogates)
        onwards = resort if last else len(machine) + 1
        targets = _targets(plan, surrogate, onwards, first_child)
        _add(machine, position, True, surrogate.field, surrogate.cut, targets)
