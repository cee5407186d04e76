"""Locks of nodes: what may be changed, and what is grown beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from branchwise.errors import ParameterError, quoted
from branchwise.studio.nodes.node_paths import (
    branches_of,
    is_below,
    joined,
    number_of,
)
from branchwise.studio.session_state import State


def check_unlocked(state: State, path: str, what: str, below: bool = True) -> None:
    """Reject an edit of a locked node, or with ``below`` of one above a locked node."""
    for lock in sorted(state.locks):
        first = f"Call session.unlock({lock!r}) before."
        if path == lock:
            raise ParameterError(
                f"{what} changes node {path!r}, which is locked. {first}"
            )
        if is_below(path, lock):
            raise ParameterError(
                f"{what} changes node {path!r}, which is below {lock!r}, and that is "
                f"locked. {first}"
            )
        if below and is_below(lock, path):
            raise ParameterError(
                f"{what} at node {path!r} would remove node {lock!r} below it, which "
                f"is locked. {first}"
            )


def unlocked(state: State, path: str) -> State:
    """Return the state without a lock."""
    if path not in state.locks:
        locked = quoted(sorted(state.locks), 20) if state.locks else "none"
        raise ParameterError(
            f"node must be a locked node. Got {path!r}; the locked ones are: {locked}."
        )
    return replace(state, locks=state.locks - {path})


def free_leaves(state: State, path: str) -> list[tuple[int, str]]:
    """Return the leaves at or below a node that are not locked and can be split."""
    tree, found = state.tree, []
    mixed = np.ones(len(tree), dtype=bool)
    if not state.recipe.is_regression:
        mixed = np.count_nonzero(tree.weights, axis=1) > 1
    waiting = [(number_of(tree, path), path)]
    while waiting:
        node, at = waiting.pop()
        if at in state.locks:
            continue
        if not tree.n_children[node] and mixed[node]:
            found.append((node, at))
        children = enumerate(tree.children(node))
        waiting += [(int(child), joined(at, branch)) for branch, child in children]
    return found


def free_nodes(state: State, path: str) -> list[str]:
    """Return the highest nodes at or below a node that can be grown again.

    No node at or below them is locked.
    """
    tree, free, waiting = state.tree, [], [path]
    while waiting:
        node = waiting.pop()
        if node in state.locks:
            continue
        if not any(is_below(lock, node) for lock in state.locks):
            free.append(node)
            continue
        n_branches = int(tree.n_children[number_of(tree, node)])
        waiting += [joined(node, branch) for branch in range(n_branches)]
    return sorted(free, key=branches_of)
