"""The tree as text, in the form of Quinlan's programs.

One line a branch; a leaf shows its answer with ``(cases)`` or
``(cases/errors)``, or, where numbers are predicted, ``(cases, ± deviation)``.
Subtrees too deep to indent are broken off, named ``[S1]``, ``[S2]``, ... and
printed after the tree, as C4.5 did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from branchwise.errors import ParameterError
from branchwise.table.schema import Schema
from branchwise.tree import Tree
from branchwise.words import (
    SHOWN_VALUES,
    Condition,
    absent_values,
    answer,
    answer_to_none,
    answer_to_stopped,
    branch,
    missing_stops,
    one_of,
    phrase,
)

#: Levels of indentation before a subtree is broken off.
_DEEPEST_INDENT = 24


def text_lines(
    schema: Schema,
    tree: Tree,
    max_depth: int | None = None,
    max_values: int = SHOWN_VALUES,
    empty_branches: bool = False,
    missing: bool = False,
) -> Iterator[str]:
    """Yield the lines of the tree.

    Parameters
    ----------
    schema, tree
        What to print.
    max_depth : int or None
        How many levels of questions to show.
    max_values : int
        How many values of a list to show before the rest is only counted.
    empty_branches : bool
        Whether to show the possible values that had no training case at a node,
        and so get the node's answer.
    missing : bool
        Whether to show where missing values go: ``or missing`` after the branch that
        takes them, a line of their own where they stop and get the node's answer.
        Where neither is there, they go down every branch.
    """
    if max_depth is not None and max_depth < 0:
        raise ParameterError(
            f"max_depth must be None or a whole number of at least 0. Got {max_depth}."
        )
    if max_values < 1:
        raise ParameterError(
            f"max_values must be a whole number of at least 1. Got {max_values}."
        )
    if tree.n_children[0] == 0:
        yield answer(schema, tree, 0)
        return
    printer = _Printer(schema, tree, max_depth, max_values, empty_branches, missing)
    broken_off = [0]
    for number, root in enumerate(broken_off):  # grows while it is walked
        if root:
            yield ""
            yield f"Subtree [S{number}]"
            yield ""
        yield from printer.subtree(root, broken_off)


@dataclass(frozen=True)
class _Printer:
    schema: Schema
    tree: Tree
    max_depth: int | None
    max_values: int
    empty_branches: bool
    missing: bool

    def subtree(self, root: int, broken_off: list[int]) -> Iterator[str]:
        """Yield the lines below a node, and add to the subtrees that come later."""
        # An entry is a node to print below its parent, or (negative) a node whose
        # cases without a branch are to be shown after its branches.
        stack = [(root, -1)]
        while stack:
            node, indent = stack.pop()
            prefix = "|   " * indent
            if node < 0:
                yield from self._without_branch(-node - 1, prefix)
                continue
            if node != root:
                end = self._end(node, indent, broken_off)
                yield f"{prefix}{self._branch(node)}:{end}"
                if end:
                    continue
            elif self._hidden(node):
                yield f"{answer(self.schema, self.tree, node)} ..."
                continue
            children = self.tree.children(node)
            stack.append((-node - 1, indent + 1))
            stack.extend((child, indent + 1) for child in reversed(children))

    def _branch(self, node: int) -> str:
        return branch(self.schema, self.tree, node, self.max_values, self.missing)

    def _hidden(self, node: int) -> bool:
        return self.max_depth is not None and bool(
            self.tree.depth[node] >= self.max_depth
        )

    def _end(self, node: int, indent: int, broken_off: list[int]) -> str:
        """Return what ends the line of a node; nothing if its branches follow."""
        if self.tree.n_children[node] == 0:
            return f" {answer(self.schema, self.tree, node)}"
        if self._hidden(node):
            return f" {answer(self.schema, self.tree, node)} ..."
        if indent + 1 >= _DEEPEST_INDENT:
            broken_off.append(node)
            return f" [S{len(broken_off) - 1}]"
        return ""

    def _without_branch(self, node: int, prefix: str) -> Iterator[str]:
        """Yield lines for missing values that stop, and for values without cases."""
        column = self.schema.columns[int(self.tree.column[node])].name
        if self.missing and missing_stops(self.tree, node):
            reply = answer_to_stopped(self.schema, self.tree, node)
            yield f"{prefix}{phrase(Condition(column, 'is missing'))}: {reply}"
        if not self.empty_branches:
            return
        if values := absent_values(self.schema, self.tree, node):
            words = phrase(one_of(column, values), self.max_values)
            yield f"{prefix}{words}: {answer_to_none(self.schema, self.tree, node)}"
