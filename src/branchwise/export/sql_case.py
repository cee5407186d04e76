"""The tree as CASE expressions that say where a case ends.

Engines limit how deep expressions are nested: SQLite's parser gives up at about 15
CASEs inside each other. So the largest branch of every node of a deep tree stands not
inside a CASE but after it, as further WHENs of the same one. What stands inside has at
most half of the nodes, so that 4,096 times as many nodes nest only 12 levels deeper.
What is deeper still is left to a further step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from branchwise.export.plan import STOP, Plan
from branchwise.export.sql_conditions import Reply, Wording

#: CASEs inside each other, the outermost not counted.
MOST_NESTED = 11
#: Trees up to this depth are written branch for branch, as they are drawn.
_SHALLOW = 8
_INDENT = "  "


@dataclass(frozen=True)
class _Part:
    """A node to be written after ``lead``, so many CASEs deep."""

    position: int
    lead: str
    nested: int
    ends: bool = False


class Cases:
    """Writes the ways from nodes to where cases end, as lines."""

    def __init__(
        self, plan: Plan, wording: Wording, end: Callable[[int], str] = str
    ) -> None:
        self._plan = plan
        self._wording = wording
        self._end = end
        self._sizes, depth = sizes_and_depth(plan)
        self._as_drawn = depth <= _SHALLOW
        #: Nodes that are too deep, to be asked about in a further step.
        self.postponed: list[int] = []

    def lines(
        self, root: int, margin: str, lead: str = "", refused: Sequence[str] = ()
    ) -> list[str]:
        """Write the way from a node; rows that are ``refused`` end nowhere."""
        lines: list[str] = []
        open_: list[_Part | str] = [_Part(root, lead, 0)]
        while open_:
            part = open_.pop()
            if isinstance(part, str):
                lines.append(margin + part)
                continue
            here = margin + _INDENT * part.nested
            position, replies = self._settled(part)
            if part.nested > MOST_NESTED and replies:
                self.postponed.append(position)
                replies = []
            if not replies and not refused:
                lines.append(f"{here}{part.lead}{self._end(position)}")
                continue
            lines.append(f"{here}{part.lead}CASE")
            open_.append(f"{_INDENT * part.nested}END")
            open_ += self._whens(position, replies, part.nested + 1)[::-1]
            if refused:
                open_.append(f"{_INDENT}WHEN {' OR '.join(refused)} THEN NULL")
                refused = ()
        return lines

    def _settled(self, part: _Part) -> tuple[int, list[Reply]]:
        """Pass by questions with one reply; return a node, and no replies at an end."""
        position = part.position
        while not part.ends:
            node = self._plan.nodes[position]
            if node.question is None:
                break
            replies = self._wording.replies(node.question)
            if len(replies) > 1:
                return position, replies
            if replies[0].branch == STOP:
                break
            position = node.child(replies[0].branch)
        return position, []

    def _whens(
        self, position: int, replies: list[Reply], nested: int
    ) -> list[_Part | str]:
        """Return what stands in the CASE of a node."""
        parts: list[_Part | str] = []
        while replies:
            last = self._last(position, replies)
            parts += [
                self._part(position, reply, f"WHEN {reply.condition} THEN ", nested)
                for reply in replies
                if reply is not last
            ]
            rest = self._part(position, last, "ELSE ", nested)
            if self._as_drawn:
                return [*parts, rest]
            position, replies = self._settled(rest)
        return [*parts, _Part(position, "ELSE ", nested, ends=True)]

    def _part(self, position: int, reply: Reply, lead: str, nested: int) -> _Part:
        if reply.branch == STOP:
            return _Part(position, lead, nested, ends=True)
        child = self._plan.nodes[position].child(reply.branch)
        return _Part(child, lead, nested)

    def _last(self, position: int, replies: list[Reply]) -> Reply:
        """Return the reply that ELSE stands for."""
        if self._as_drawn:
            return next((r for r in replies if r.catches), replies[-1])
        node = self._plan.nodes[position]
        return max(
            replies,
            key=lambda r: 0 if r.branch == STOP else self._sizes[node.child(r.branch)],
        )


def sizes_and_depth(plan: Plan) -> tuple[list[int], int]:
    """Return the number of nodes from each node down, and the depth of the tree."""
    sizes, levels = [1] * len(plan.nodes), [0] * len(plan.nodes)
    for position, parent in enumerate(plan.parents):
        if parent >= 0:
            levels[position] = levels[parent] + 1
    for position in range(len(plan.nodes) - 1, 0, -1):
        sizes[plan.parents[position]] += sizes[position]
    return sizes, max(levels)
