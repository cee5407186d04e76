"""Replay of actions on the same rows or on others, and refits of a session.

On other rows a path may lead to other cases: a value that is not there has no branch,
and a grown part may be split on other columns. So an action is kept with the way to its
node (columns, values and sides, not thresholds), and is left out where the node is
reached by another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np

from branchwise.data.table_schema import Schema, Value
from branchwise.errors import BranchwiseError, ParameterError
from branchwise.recipe import Recipe
from branchwise.studio.actions import (
    Action,
    Grow,
    Lock,
    Note,
    Relabel,
    SetMissing,
    Split,
)
from branchwise.studio.edits import Editor
from branchwise.studio.nodes.node_paths import (
    ROOT,
    ancestors,
    branches_of,
    exists,
    is_below,
    number_of,
    paths,
)
from branchwise.studio.session_state import State
from branchwise.text.conditions import condition_of, one_of, phrase
from branchwise.tree.splits import EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

#: A longer condition is kept as its digest.
_LONGEST = 100
#: What a refit keeps of a tree.
KEEP = ("locked", "all", "none")


def way_to(schema: Schema, tree: Tree, path: str) -> tuple[str, ...]:
    """Return what leads to a node, branch by branch, without thresholds."""
    told = []
    node = number_of(tree, path)
    while node:
        told.append(_told(schema, tree, node))
        node = int(tree.parent[node])
    return tuple(reversed(told))


def _told(schema: Schema, tree: Tree, node: int) -> str:
    condition = condition_of(schema, tree, node)
    if isinstance(condition.value, tuple):
        condition = one_of(condition.column, condition.value)
    elif condition.of is not None and condition.of.is_numeric:
        return f"{condition.column} {condition.op}"
    told = phrase(condition, limit=len(schema.columns) + 10**6)
    if len(told) <= _LONGEST:
        return told
    digest = blake2b(told.encode(), digest_size=8).hexdigest()
    return f"{told[:_LONGEST]}... {digest}"


def carried_out(
    editor: Editor, state: State, action: Action, way: Sequence[str] | None
) -> tuple[State, str | None]:
    """Return the state after an action; where it does not fit, why, in a sentence."""
    try:
        if way is not None and exists(state.tree, action.node):
            found = way_to(editor.schema, state.tree, action.node)
            if found != tuple(way):
                there, was = (" and ".join(each) or "always" for each in (found, way))
                return state, (
                    f"{action.words}: node {action.node!r} is another one here. It was "
                    f"reached by {was}, and now by {there}."
                )
        return editor.apply(state, action), None
    except BranchwiseError as error:
        return state, f"{action.words}: {error}"


def replayed(
    editor: Editor,
    recipe: Recipe,
    actions: Sequence[tuple[Action, Sequence[str] | None]],
    pause: Callable[[], object] = bool,
) -> tuple[State, list[str]]:
    """Carry out actions from the start; return the state and what does not fit.

    ``pause`` is called before each of them.
    """
    state, misfits = editor.start(recipe), []
    for action, way in actions:
        pause()
        state, misfit = carried_out(editor, state, action, way)
        if misfit is not None:
            misfits.append(misfit)
    return state, misfits


def check_keep(keep: object) -> None:
    """Reject what a refit cannot keep."""
    if keep not in KEEP:
        raise ParameterError(
            "keep must be 'locked', 'all' or 'none': which parts of the tree stay as "
            f"they are. Got {keep!r}."
        )


def kept_actions(schema: Schema, state: State) -> list[Action]:
    """Return actions that make the locked parts of a tree, and then grow the rest."""
    tree = state.tree
    actions: list[Action] = []
    for path in sorted(paths(tree), key=lambda path: len(branches_of(path))):
        if _is_kept(path, state):
            actions += _remade(schema, state, path)
    actions += [Lock(path) for path in sorted(state.locks)]
    # Notes and classes that were set by hand, in parts that stay.
    actions.append(Grow(ROOT, state.recipe))
    actions += [
        Note(path, text) for path, text in state.notes.items() if _is_kept(path, state)
    ]
    return actions


def _is_kept(path: str, state: State) -> bool:
    """Whether a node is locked, in a locked part, or on the way to one."""
    above = {path, *ancestors(path)}
    return bool(above & state.locks) or any(
        is_below(lock, path) for lock in state.locks
    )


def _remade(schema: Schema, state: State, path: str) -> list[Action]:
    """Return the actions that make the split and the prediction of a node."""
    tree, node = state.tree, number_of(state.tree, path)
    actions: list[Action] = []
    if tree.n_children[node]:
        actions.append(split_of(schema, tree, path))
        route = int(tree.missing_to[node])
        own = any(tree.is_missing_branch(child) for child in tree.children(node))
        column = schema.columns[int(tree.column[node])]
        surrogates = tree.n_surrogates
        led = surrogates is not None and bool(surrogates[node])
        if column.has_missing and not own and not led:
            to = {STOP: "stop", EVERY_BRANCH: "every"}.get(route, route)
            actions.append(SetMissing(path, to))
    if path in state.predictions:
        label: Value = state.predictions[path]
        if schema.classes:
            label = schema.classes[int(label)]
        actions.append(Relabel(path, label))
    return actions


def split_of(schema: Schema, tree: Tree, path: str) -> Split:
    """Return the action that makes the split of a node."""
    node = number_of(tree, path)
    column = schema.columns[int(tree.column[node])]
    if column.is_numeric:
        threshold = float(tree.threshold[node])
        return Split(path, column.name, None if np.isnan(threshold) else threshold)
    codes = [tree.codes_of(child) for child in tree.children(node)]
    groups = tuple(
        tuple(column.categories[code] for code in each) for each in codes if each
    )
    return Split(path, column.name, groups=groups)
