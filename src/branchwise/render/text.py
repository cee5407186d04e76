"""The tree as text, in the form of Quinlan's programs.

One line a branch; a leaf shows its answer with ``(cases)`` or
``(cases/errors)``. Subtrees too deep to indent are broken off, named ``[S1]``,
``[S2]``, ... and printed after the tree, as C4.5 did.
"""

from __future__ import annotations

from collections.abc import Iterator

from branchwise.errors import ParameterError
from branchwise.table.schema import Schema
from branchwise.tree import Tree
from branchwise.words import (
    SHOWN_VALUES,
    Condition,
    absent_values,
    answer,
    condition_of,
    phrase,
    word,
)

#: Levels of indentation before a subtree is broken off.
_DEEPEST_INDENT = 24


def text_lines(
    schema: Schema,
    tree: Tree,
    max_depth: int | None = None,
    max_values: int = SHOWN_VALUES,
    empty_branches: bool = False,
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
    broken_off = [0]
    for number, root in enumerate(broken_off):  # grows while it is walked
        if root:
            yield ""
            yield f"Subtree [S{number}]"
            yield ""
        yield from _subtree(
            schema, tree, root, broken_off, max_depth, max_values, empty_branches
        )


def _subtree(
    schema: Schema,
    tree: Tree,
    root: int,
    broken_off: list[int],
    max_depth: int | None,
    max_values: int,
    empty_branches: bool,
) -> Iterator[str]:
    # An entry is a node to print below its parent, or (negative) a node whose
    # absent values are to be listed after its branches.
    stack = [(root, -1)]
    while stack:
        node, indent = stack.pop()
        prefix = "|   " * indent
        if node < 0:
            yield from _absent(schema, tree, -node - 1, prefix, max_values)
            continue
        hidden = max_depth is not None and tree.depth[node] >= max_depth
        if node != root:
            line = prefix + phrase(condition_of(schema, tree, node), max_values) + ":"
            if tree.n_children[node] == 0:
                yield f"{line} {answer(schema, tree, node)}"
                continue
            if hidden:
                yield f"{line} {answer(schema, tree, node)} ..."
                continue
            if indent + 1 >= _DEEPEST_INDENT:
                broken_off.append(node)
                yield f"{line} [S{len(broken_off) - 1}]"
                continue
            yield line
        elif hidden:
            yield f"{answer(schema, tree, node)} ..."
            continue
        if empty_branches:
            stack.append((-node - 1, indent + 1))
        stack.extend((child, indent + 1) for child in reversed(tree.children(node)))


def _absent(
    schema: Schema, tree: Tree, node: int, prefix: str, max_values: int
) -> Iterator[str]:
    values = absent_values(schema, tree, node)
    if not values:
        return
    column = schema.columns[int(tree.column[node])].name
    condition = (
        Condition(column, "=", values[0])
        if len(values) == 1
        else Condition(column, "in", values)
    )
    label = word(schema.classes[int(tree.label[node])])
    yield f"{prefix}{phrase(condition, max_values)}: {label} (0)"
