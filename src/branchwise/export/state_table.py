"""A plan as a table of states, for exports that look up where a case goes."""

from __future__ import annotations

from dataclasses import dataclass

from branchwise.export.plan import Plan, PlanSplit
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: The outcome of a case that goes down every branch.
FRACTIONAL = -1


@dataclass(frozen=True)
class Machine:
    """States as parallel lists, and the outcomes of all codes, state after state.

    For a leaf ``splits_on`` is False, ``field`` is 0, and the only outcome is the state
    itself. ``owner`` is the node that a state belongs to.
    """

    splits_on: list[bool]
    field: list[int]
    threshold: list[float | None]
    first: list[int]
    owner: list[int]
    to: list[int]

    def __len__(self) -> int:
        return len(self.field)

    def add(self, owner: int, split: PlanSplit | None, targets: list[int]) -> None:
        """Add a state of a node: its split, or that of a surrogate; None for a leaf."""
        self.splits_on.append(split is not None)
        self.field.append(0 if split is None else split.field)
        self.threshold.append(None if split is None else split.threshold)
        self.first.append(len(self.to))
        self.owner.append(owner)
        self.to.extend(targets)

    def outcomes(self, state: int) -> list[int]:
        """Return the next state for each code of a state."""
        last = self.first[state + 1] if state + 1 < len(self) else len(self.to)
        return self.to[self.first[state] : last]


def make_machine(plan: Plan) -> Machine:
    """Turn a plan into states: those of all nodes, then those of surrogates."""
    machine = Machine([], [], [], [], [], [])
    spare = len(plan.nodes)  # the next state for a surrogate
    waiting: list[tuple[int, int, PlanSplit]] = []
    for position, node in enumerate(plan.nodes):
        split = node.split
        if split is None:
            machine.add(position, None, [position])
            continue
        targets = _targets(plan, split, position, node.first_child)
        if split.surrogates:
            missing = len(plan.fields[split.field].values)
            targets[2 if plan.fields[split.field].numeric else missing] = spare
            waiting.append((position, node.first_child, split))
            spare += len(split.surrogates)
        machine.add(position, split, targets)
    for position, first_child, split in waiting:
        for turn, surrogate in enumerate(split.surrogates, 1):
            onwards = len(machine) + 1
            if turn == len(split.surrogates):  # the last resort
                onwards = _state(split.missing_to, position, first_child)
            targets = _targets(plan, surrogate, onwards, first_child)
            machine.add(position, surrogate, targets)
    return machine


def _targets(plan: Plan, split: PlanSplit, stop: int, first_child: int) -> list[int]:
    """Return the next state for each code; ``stop`` for those without a branch."""
    field = plan.fields[split.field]
    known = range(2 if field.numeric else len(field.values))
    branches = [split.branch_of.get(code, STOP) for code in known]
    if field.numeric and split.threshold is None:
        branches = [branches[0]] * 2
    branches.append(split.missing_to)
    if not field.numeric:
        branches.append(split.unseen_to)
    return [_state(branch, stop, first_child) for branch in branches]


def _state(branch: int, stop: int, first_child: int) -> int:
    """Return the state that a branch leads to."""
    special = {STOP: stop, EVERY_BRANCH: FRACTIONAL}
    return special.get(branch, first_child + branch)
