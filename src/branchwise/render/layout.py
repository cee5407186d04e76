"""Where the nodes of a drawn tree go: a tidy layout for any number of branches.

Every level has a height of its own, so only the horizontal positions are sought:
parents over the middle of their branches, subtrees as close as they can be, equal
gaps between the small subtrees that stand between two large ones (the rules of
Reingold and Tilford 1981, Walker 1990, Buchheim et al. 2002). Time is linear in the
number of nodes, and nothing recurses: nodes are numbered level by level, so walking
them backwards meets all branches before their parent.

The outline of a subtree is walked from its root down: to the first (or last) child,
and from a node without children along its *thread*, which leads to where the outline
goes on in a neighbouring, deeper subtree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_NONE = -1
_LEFT, _RIGHT = -1, +1


def tidy(
    n_children: Sequence[int],
    first_child: Sequence[int],
    widths: Sequence[float],
    gap: float,
) -> list[float]:
    """Return the horizontal middle of every node; the leftmost edge is at 0.

    Parameters
    ----------
    n_children, first_child : sequence of int
        The shape; nodes are numbered level by level.
    widths : sequence of float
        How wide each node is.
    gap : float
        The least distance between neighbours.
    """
    forest = _Forest(n_children, first_child, widths, gap)
    for node in reversed(range(len(n_children))):
        if n_children[node]:
            forest.join_children(node)
    return forest.positions()


class _Forest:
    """Subtrees that are joined from the bottom up."""

    def __init__(
        self,
        n_children: Sequence[int],
        first_child: Sequence[int],
        widths: Sequence[float],
        gap: float,
    ) -> None:
        n = len(n_children)
        self.n_children, self.first_child = n_children, first_child
        self.widths, self.gap = widths, gap
        #: Levels below a node.
        self.height = [0] * n
        #: Position relative to the parent; while siblings are joined, to the first.
        self.offset = [0.0] * n
        #: Where the outline goes on below a node without children, and how far aside.
        self.thread = [_NONE] * n
        self.aside = [0.0] * n

    def positions(self) -> list[float]:
        """Add up the offsets from the root down."""
        x = self.offset[:]
        for node, number in enumerate(self.n_children):
            first = self.first_child[node]
            for child in range(first, first + number):
                x[child] += x[node]
        left = min(at - w / 2 for at, w in zip(x, self.widths, strict=True))
        return [at - left for at in x]

    def join_children(self, parent: int) -> None:
        """Put the subtrees of a node side by side, and the node over their middle."""
        first = self.first_child[parent]
        siblings = range(first, first + self.n_children[parent])
        self.height[parent] = 1 + max(self.height[child] for child in siblings)
        row = _Row(self, first)
        for child in siblings[1:]:
            row.add(child)
        row.even_out(siblings)
        middle = (self.offset[first] + self.offset[siblings[-1]]) / 2
        for child in siblings:
            self.offset[child] -= middle

    def below(self, node: int, x: float, side: int) -> tuple[int, float]:
        """Return the next node of the left or the right outline, and where it is."""
        number = self.n_children[node]
        if number:
            child = self.first_child[node] + (number - 1 if side == _RIGHT else 0)
            return child, x + self.offset[child]
        return self.thread[node], x + self.aside[node]

    def distance(self, left: int, right: int) -> float:
        """Return how far apart the middles of two neighbours must be."""
        return self.gap + (self.widths[left] + self.widths[right]) / 2

    def sew(self, node: int, x: float, target: int, target_x: float) -> None:
        """Let an outline that ends at a node go on at another."""
        self.thread[node], self.aside[node] = target, target_x - x


@dataclass
class _Row:
    """Siblings that are being put side by side, from left to right."""

    forest: _Forest
    first: int
    #: Those whose lowest level is seen from the right, the deepest of them first.
    seen: list[int] = field(init=False)
    #: Pushes: where the siblings begin that share in one, and where they end.
    begins: dict[int, float] = field(default_factory=dict)
    ends: dict[int, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seen = [self.first]

    def add(self, child: int) -> None:
        """Put the next subtree to the right of all that are there."""
        forest = self.forest
        height = forest.height[child]
        common = min(forest.height[self.seen[0]], height)
        # The outlines that face each other, and the two on the far sides.
        right, right_x = child - 1, forest.offset[child - 1]
        left, left_x = child, 0.0
        far_left, far_left_x = self.first, forest.offset[self.first]
        far_right, far_right_x = child, 0.0
        at = right_x + forest.distance(right, left)
        owner = len(self.seen) - 1
        for depth in range(1, common + 1):
            right, right_x = forest.below(right, right_x, _RIGHT)
            left, left_x = forest.below(left, left_x, _LEFT)
            far_left, far_left_x = forest.below(far_left, far_left_x, _LEFT)
            far_right, far_right_x = forest.below(far_right, far_right_x, _RIGHT)
            while forest.height[self.seen[owner]] < depth:
                owner -= 1
            push = right_x + forest.distance(right, left) - left_x - at
            if push > 0:
                at += push
                self._share(push, self.seen[owner], child)
        forest.offset[child] = at
        if common < height:
            target, target_x = forest.below(left, left_x, _LEFT)
            forest.sew(far_left, far_left_x, target, at + target_x)
        elif common < forest.height[self.seen[0]]:
            target, target_x = forest.below(right, right_x, _RIGHT)
            forest.sew(far_right, at + far_right_x, target, target_x)
        while self.seen and forest.height[self.seen[-1]] <= height:
            self.seen.pop()
        self.seen.append(child)

    def _share(self, push: float, pusher: int, pushed: int) -> None:
        """Note that siblings between two shall move along, the nearer the farther."""
        step = push / (pushed - pusher)
        self.begins[pusher] = self.begins.get(pusher, 0.0) + step
        steps, pushes = self.ends.get(pushed, (0.0, 0.0))
        self.ends[pushed] = steps + step, pushes + push

    def even_out(self, siblings: range) -> None:
        """Move the siblings between others that pushed each other apart.

        They are less deep than the one that was pushed, so they are no part of an
        outline any more, and threads stay right.
        """
        if not self.begins:
            return
        forest = self.forest
        move, step = 0.0, 0.0
        for child in siblings:
            move += step
            steps, pushes = self.ends.get(child, (0.0, 0.0))
            move, step = move - pushes, step - steps + self.begins.get(child, 0.0)
            forest.offset[child] += move
