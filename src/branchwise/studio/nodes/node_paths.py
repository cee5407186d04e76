"""Paths of nodes: "/" is the root, "/0/2" the third branch of its first branch.

A path names a node whatever is split in other parts of the tree; a number does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from numbers import Integral

from branchwise.errors import ParameterError
from branchwise.tree.tree import Tree

ROOT = "/"
#: No path of a session is longer: such a tree is too deep to be edited.
LONGEST = 10_000
_PATH = re.compile(r"/|(/(0|[1-9][0-9]{0,8}))+")


def branches_of(path: str) -> list[int]:
    """Return the positions of the branches that a path takes."""
    return [int(position) for position in path.split("/") if position]


def joined(path: str, branch: int) -> str:
    """Return the path of a branch of a node."""
    return f"{path.removesuffix('/')}/{branch}"


def parent_of(path: str) -> str:
    """Return the path of the parent of a node below the root."""
    return path.rpartition("/")[0] or ROOT


def is_below(path: str, above: str) -> bool:
    """Whether a node is below another one."""
    return path != above and path.startswith(above.removesuffix("/") + "/")


def is_path(text: object) -> bool:
    """Whether a text is written as a path."""
    short = isinstance(text, str) and len(text) <= LONGEST
    return short and _PATH.fullmatch(str(text)) is not None


def path_of(tree: Tree, node: object) -> str:
    """Return the path of a node, given by a path or by its number; raise for others."""
    if isinstance(node, Integral) and not isinstance(node, bool):
        if 0 <= int(node) < len(tree):
            return _path_of_number(tree, int(node))
        raise ParameterError(
            f"node must be a path such as '/0/1', or a number from 0, the root, to "
            f"{len(tree) - 1}. Got {node!r}; session.model.rules() and apply() give "
            "numbers."
        )
    if not is_path(node):
        raise ParameterError(
            "node must be '/', the root, a path of positions of branches such as "
            f"'/0/1', or the number of a node. Got {node!r}."
        )
    number_of(tree, str(node))
    return str(node)


def _path_of_number(tree: Tree, node: int) -> str:
    taken = []
    while node:
        above = int(tree.parent[node])
        taken.append(str(node - int(tree.first_child[above])))
        node = above
    return ROOT + "/".join(reversed(taken))


def number_of(tree: Tree, path: str) -> int:
    """Return the number that a node has in the tree; raise if there is no such node."""
    node, at = 0, ROOT
    for branch in branches_of(path):
        n_branches = int(tree.n_children[node])
        if branch >= n_branches:
            there = "is a leaf"
            if n_branches:
                there = f"has the branches 0 to {n_branches - 1}"
            raise ParameterError(
                f"node must be a node of the tree. Got {path!r}, but {at!r} {there}."
            )
        node, at = int(tree.first_child[node]) + branch, joined(at, branch)
    return node


def exists(tree: Tree, path: str) -> bool:
    """Whether the tree has a node at a path."""
    node = 0
    for branch in branches_of(path):
        if branch >= tree.n_children[node]:
            return False
        node = int(tree.first_child[node]) + branch
    return True


def paths(tree: Tree) -> list[str]:
    """Return the paths of all nodes, in the order of their numbers."""
    found = [ROOT] * len(tree)
    for node in range(len(tree)):
        for branch, child in enumerate(tree.children(node)):
            found[child] = joined(found[node], branch)
    return found


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths of the nodes above a node, the nearest first."""
    while path != ROOT:
        path = parent_of(path)
        yield path
