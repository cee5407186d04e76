"""The path of one case: the splits, and what happens to missing and unseen values.

It is derived from the nodes that prediction has found: there is no second
implementation of how a case passes down a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema, Value
from branchwise.recipe import Recipe
from branchwise.text.bounds import plain_value
from branchwise.text.conditions import Condition, condition_of, phrase, surrogates_of
from branchwise.text.label_words import called, title_of
from branchwise.text.words import share, word
from branchwise.tree.splits import ABOVE, AT_MOST, EVERY_BRANCH
from branchwise.tree.tree import Tree

#: The value of a case in the column of a split.
State = Literal["known", "missing", "unseen", "no branch"]
#: How a case passes a split.
Action = Literal[
    "matching branch",
    "own branch",
    "largest branch",
    "learned branch",
    "named branch",
    "surrogate",
    "every branch",
    "stopped",
]
_WHERE = {
    "largest branch": "sent down the largest branch",
    "learned branch": "sent down the branch that training learned for missing values",
    "named branch": "sent down the branch that the tree has for such cases",
}
_STOPPED = "the case stops here and gets this node's prediction"


@dataclass(frozen=True)
class Step:
    """One split on the path of a case.

    ``value`` is what the case has in the column, None if missing; ``state`` whether it
    is known, unseen in training, or known but without a training case at this node.
    ``branch`` was taken, None where the case stopped, by ``share`` of the case at this
    node: 1, but for "every branch". ``surrogate`` is the condition that replaced the
    split, ``surrogate_value`` what the case has in its column.
    """

    node: int
    column: str
    value: Value | None
    state: State
    action: Action
    branch: Condition | None
    share: float = 1.0
    surrogate: Condition | None = None
    surrogate_value: Value | None = None

    def __str__(self) -> str:
        if self.state == "known" and self.branch is not None:
            branch = self.branch.exact_for(self.value)
            return f"{phrase(branch)}{_having(branch, self.value)}"
        return f"{self._lack()}: {self._remedy()}"

    def _lack(self) -> str:
        of = None if self.branch is None else self.branch.of
        column = word(title_of(of, self.column))
        if self.value is None:
            return f"{column} is missing"
        value = word(called(of, self.value))
        if self.state == "unseen":
            return f"{column} is {value}, a value that training did not have"
        return f"{column} is {value}, without a training case at this node"

    def _remedy(self) -> str:
        if self.branch is None:
            return _STOPPED
        branch = phrase(self.branch)
        if self.action == "own branch":
            return (
                "missing values have a branch of their own"
                if self.state == "missing"
                else "taken for a missing value, which has a branch of its own"
            )
        if self.action == "every branch":
            fraction = share(self.share, 1)
            return f"every branch is followed, {fraction} of the case where {branch}"
        if self.action == "surrogate" and self.surrogate is not None:
            surrogate = self.surrogate.exact_for(self.surrogate_value)
            value = _having(surrogate, self.surrogate_value)
            return f"replaced by the surrogate {phrase(surrogate)}{value}: {branch}"
        return f"{_WHERE[self.action]}: {branch}"

    def to_dict(self) -> dict[str, Any]:
        """Return the step in plain values."""
        document: dict[str, Any] = {
            "node": self.node,
            "column": self.column,
            "value": self.value,
            "state": self.state,
            "action": self.action,
            "branch": condition_dict(self.branch),
            "share": self.share,
        }
        if self.surrogate is not None:
            document["surrogate"] = condition_dict(self.surrogate)
            document["surrogate_value"] = self.surrogate_value
        document["text"] = str(self)
        return document


def condition_dict(condition: Condition | None) -> dict[str, Any] | None:
    """Return a condition in plain values."""
    if condition is None:
        return None
    value = plain_value(condition.of, condition.value)
    return {"column": condition.column, "op": condition.op, "value": value}


def _having(condition: Condition, value: Value | None) -> str:
    """Write the value of the case, unless the condition names it."""
    if condition.worded.op == "=" or value is None:
        return ""
    return f" (it is {word(called(condition.of, value))})"


@dataclass(frozen=True)
class Case:
    """One case: its values in the columns of a tree, encoded and as given.

    ``codes`` has the code of each used column by position, or 0 for known numbers.
    """

    schema: Schema
    tree: Tree
    recipe: Recipe
    values: Mapping[int, Value | None]
    codes: Mapping[int, int]

    def steps(self, node: int) -> tuple[Step, ...]:
        """Return the steps to a node; the last one may be a stop."""
        below = [node]
        while below[-1] > 0:
            below.append(int(self.tree.parent[below[-1]]))
        below.reverse()
        steps = [self._taken(a, b) for a, b in pairwise(below)]
        if self.tree.n_children[node]:
            steps.append(self._step(node, None, "stopped"))
        return tuple(steps)

    def state(self, index: int) -> State:
        """Return the state of the value of the case in a column."""
        if self.values[index] is None:
            return "missing"
        column = self.schema.columns[index]
        if not column.is_numeric and self.codes[index] == column.unseen_code:
            return "unseen"
        return "known"

    def _step(self, node: int, child: int | None, action: Action, **more: Any) -> Step:
        index = int(self.tree.column[node])
        state = self.state(index)
        if state == "known" and child is None:
            state = "no branch"
        return Step(
            node,
            self.schema.columns[index].name,
            self.values[index],
            state,
            action,
            None if child is None else condition_of(self.schema, self.tree, child),
            **more,
        )

    def _taken(self, node: int, child: int) -> Step:
        state = self.state(int(self.tree.column[node]))
        if state == "known":
            return self._step(node, child, "matching branch")
        if state == "missing":
            surrogate = self._surrogate(node)
            if surrogate is not None:
                return self._step(node, child, "surrogate", **surrogate)
        to = self.tree.missing_to if state == "missing" else self.tree.unseen_to
        if to[node] == EVERY_BRANCH:
            sizes = self._branch_sizes(node)
            fraction = float(sizes[child - self.tree.first_child[node]] / sizes.sum())
            return self._step(node, child, "every branch", share=fraction)
        return self._step(node, child, self._sent(node, child, state))

    def _sent(self, node: int, child: int, state: State) -> Action:
        if self.tree.is_missing_branch(child):
            return "own branch"
        policy = self.recipe.missing if state == "missing" else self.recipe.unseen
        if policy == "branch":  # an unseen value is taken for a missing one
            policy = self.recipe.missing
        if policy == "learned":
            return "learned branch"
        sizes = self._branch_sizes(node)
        largest = sizes[child - self.tree.first_child[node]] >= sizes.max()
        return "largest branch" if largest else "named branch"

    def _branch_sizes(self, node: int) -> Floats:
        """Return the weights of the branches of a node."""
        first = int(self.tree.first_child[node]) - 1
        return self.tree.splits.sizes[first : first + int(self.tree.n_children[node])]

    def _surrogate(self, node: int) -> dict[str, Any] | None:
        """Return the condition of the first surrogate whose column is known."""
        if self.tree.n_surrogates is None or not self.tree.n_surrogates[node]:
            return None
        position = {name: at for at, name in enumerate(self.schema.names)}
        for surrogate in surrogates_of(self.schema, self.tree, node):
            index = position[surrogate.first.column]
            value = self.values[index]
            for condition in surrogate:
                if self._meets(index, condition):
                    return {"surrogate": condition, "surrogate_value": value}
        return None

    def _meets(self, index: int, condition: Condition) -> bool:
        value: Any = self.values[index]
        wanted: Any = condition.value
        if self.state(index) != "known":
            return False
        if condition.op in ("<=", ">"):
            return (ABOVE if value > wanted else AT_MOST) == (condition.op == ">")
        return value in (wanted if condition.op == "in" else (wanted,))
