"""What an export has to decide: the tree as plain objects, and nothing else.

A plan is made once from schema, tree and recipe, and every export is written from it
alone. All policies are resolved: a node says for each value, for a missing one and
for an unseen one which branch is taken, or that the case stops, or that it goes down
every branch by shares. The rules that an export follows are these.

1. A row gives a value or nothing (missing) for each of ``Plan.fields``. If
   ``refuses_missing`` and one of them is missing, or ``refuses_unseen`` and one of
   them is not among the field's ``values``, there is no answer.
2. From the root, a case at a node that asks takes the branch ``Question.branch_of``
   tells; STOP ends it there. A missing value asks the surrogates in turn first. A
   case that goes down EVERY_BRANCH is divided: its share of 1, the product of the
   shares on its way, multiplied in the order of the way.
3. A case that arrives at one node has that node's ``label`` and ``chances``, or
   ``number``.
4. A divided case has for every class the sum of chance times share over its nodes, and
   its number is the sum of number times share, in ascending order of the nodes'
   positions, starting from 0. Its label is :func:`label_of` those chances.

All arithmetic is that of IEEE 754 binary64, without fused operations. So an export
that follows the rules gives the same bits as the model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.schema import Schema, Value, ValueType
from branchwise.data.ties import TIE
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.apply import class_chances
from branchwise.tree.splits import ABOVE, AT_MOST, EVERY_BRANCH, STOP, Splits
from branchwise.tree.tree import Tree

Cell = Value | None
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Field:
    """A column that the tree asks about.

    ``column`` is its position in the user's table, ``kind`` the family of its values.
    ``values`` are the values that training knew, in the order of their codes; none for
    a number that is compared with cuts (``numeric``).
    """

    name: str
    column: int
    kind: ValueType
    numeric: bool
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Question:
    """What a node asks, and where every reply leads.

    ``branches`` has for each branch the codes that lead there: positions in the
    field's ``values``, or for a numeric field AT_MOST (up to ``cut``) and ABOVE. Where
    a numeric field has no cut, only whether the number is known matters: every number
    is AT_MOST. A known value without a branch stops; a branch without codes is that of
    missing values. ``shares`` are the parts of a divided case.
    ``surrogates`` are questions whose replies stand in for a missing value, each where
    those before it have none (their replies are branches 0 and 1, or STOP).
    """

    field: int
    cut: float | None
    branches: tuple[tuple[int, ...], ...]
    missing_to: int
    unseen_to: int
    shares: tuple[float, ...]
    surrogates: tuple[Question, ...] = ()

    @cached_property
    def branch_of(self) -> dict[int, int]:
        """Code -> branch; a code that is not there stops."""
        return {code: b for b, codes in enumerate(self.branches) for code in codes}

    @property
    def divides(self) -> bool:
        """Whether a case may go down every branch."""
        return EVERY_BRANCH in (self.missing_to, self.unseen_to)


@dataclass(frozen=True)
class Node:
    """A node: its question (None for a leaf), its children, and its answer."""

    question: Question | None
    first_child: int
    label: int
    chances: tuple[float, ...]
    number: float | None

    def child(self, branch: int) -> int:
        """Return the position of the node that a branch leads to."""
        return self.first_child + branch


@dataclass(frozen=True)
class Plan:
    """A tree to be exported: see the head of this file for its rules.

    ``classes`` is empty where numbers are predicted. ``about`` says in a line of
    printable characters what the tree is.
    """

    target: str
    about: str
    fields: tuple[Field, ...]
    classes: tuple[Value, ...]
    nodes: tuple[Node, ...]
    refuses_missing: bool
    refuses_unseen: bool
    costs: tuple[tuple[float, ...], ...] | None

    @property
    def predicts_numbers(self) -> bool:
        """Whether the answers are numbers, not classes."""
        return not self.classes

    @cached_property
    def divides(self) -> bool:
        """Whether a case may arrive at several nodes."""
        return any(n.question is not None and n.question.divides for n in self.nodes)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The parent of every node; -1 for the root."""
        parents = [-1] * len(self.nodes)
        for position, node in enumerate(self.nodes):
            if node.question is not None:
                for branch in range(len(node.question.branches)):
                    parents[node.child(branch)] = position
        return tuple(parents)


def label_of(chances: Sequence[float], plan: Plan) -> int:
    """Return the class of a divided case: the most probable or the cheapest.

    Chances (or costs) that differ by less than a relative 1e-9 from the best are
    equal to it, and the first of them wins.
    """
    scores = chances if plan.costs is None else _prices(chances, plan.costs)
    best = max(scores)
    least = best - abs(best) * TIE
    return next(code for code, score in enumerate(scores) if score >= least)


def _prices(
    chances: Sequence[float], costs: Sequence[Sequence[float]]
) -> Sequence[float]:
    """Return what every answer costs, negative, added class after class from 0."""
    prices = []
    for answer in range(len(costs[0])):
        price = 0.0
        for chance, row in zip(chances, costs, strict=True):
            price += chance * row[answer]
        prices.append(-price)
    return prices


def make_plan(schema: Schema, tree: Tree, recipe: Recipe) -> Plan:
    """Make the plan of a model."""
    used = tree.used_columns
    field_of = {column: position for position, column in enumerate(used)}
    return Plan(
        schema.target if schema.target is not None else "prediction",
        _about(schema, tree, recipe),
        tuple(_field(schema, column) for column in used),
        schema.classes,
        _nodes(tree, recipe, field_of),
        recipe.missing == "error",
        recipe.unseen == "error",
        recipe.costs,
    )


def _about(schema: Schema, tree: Tree, recipe: Recipe) -> str:
    target = "" if schema.target is None else f" for {schema.target!a}"
    leaves = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves:,} leaves"
    return f"{recipe.algorithm} decision tree{target} with {leaves}"


def _field(schema: Schema, index: int) -> Field:
    column = schema.columns[index]
    kind = column.value_type or "text"
    return Field(column.name, index, kind, column.is_numeric, column.categories)


def _nodes(tree: Tree, recipe: Recipe, field_of: dict[int, int]) -> tuple[Node, ...]:
    questions = _questions(tree.splits, field_of)
    surrogates: list[Question | None] = []
    first = [0] * (len(tree) + 1)
    if tree.surrogates is not None:
        surrogates = _questions(tree.surrogates.splits, field_of)
        first = tree.surrogates.first.tolist()
    for node, question in enumerate(questions):
        if question is not None and first[node] < first[node + 1]:
            mine = [q for q in surrogates[first[node] : first[node + 1]] if q]
            questions[node] = _with_surrogates(question, tuple(mine))
    chances: list[tuple[float, ...]] = [()] * len(tree)
    if tree.mean is None:
        rows = class_chances(tree.weights, tree.weights[0], recipe).tolist()
        chances = [tuple(row) for row in rows]
    numbers = [None] * len(tree) if tree.mean is None else tree.mean.tolist()
    labels = [0] * len(tree) if tree.mean is not None else tree.label.tolist()
    parts = (questions, tree.first_child.tolist(), labels, chances, numbers)
    return tuple(Node(*of_node) for of_node in zip(*parts, strict=True))


def _with_surrogates(question: Question, surrogates: tuple[Question, ...]) -> Question:
    return Question(
        question.field,
        question.cut,
        question.branches,
        question.missing_to,
        question.unseen_to,
        question.shares,
        surrogates,
    )


def _questions(splits: Splits, field_of: dict[int, int]) -> list[Question | None]:
    """Return the question of every node, None for leaves."""
    codes = iter(np.split(splits.codes, np.cumsum(splits.n_codes)[:-1]))
    sizes = iter(splits.sizes.tolist())
    questions: list[Question | None] = []
    for column, cut, width, missing_to, unseen_to in zip(
        splits.column.tolist(),
        splits.cut.tolist(),
        splits.n_branches.tolist(),
        splits.missing_to.tolist(),
        splits.unseen_to.tolist(),
        strict=True,
    ):
        if column < 0:
            questions.append(None)
            continue
        branches = tuple(tuple(next(codes).tolist()) for _ in range(width))
        mine = np.array([next(sizes) for _ in range(width)])
        # As Router.every_branch has it: reduceat adds from left to right.
        whole = float(np.add.reduceat(mine, [0])[0])
        shares = tuple((mine / whole).tolist()) if whole else (0.0,) * width
        cut = None if np.isnan(cut) else cut
        questions.append(
            Question(field_of[column], cut, branches, missing_to, unseen_to, shares)
        )
    return questions


__all__ = [
    "ABOVE",
    "AT_MOST",
    "EVERY_BRANCH",
    "STOP",
    "Cell",
    "Field",
    "Node",
    "Plan",
    "Question",
    "Row",
    "label_of",
    "make_plan",
]


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
