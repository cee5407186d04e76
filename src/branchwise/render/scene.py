"""Layout of a tree (:func:`tidy`) and the scene of a picture: boxes, texts and bars.

Lengths are in pixels; y grows downwards. SVG and Matplotlib draw the same scene.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from branchwise.render.picture import OTHERS, Drawing, class_colours, fitted, text_width

_NONE = -1
_LEFT, _RIGHT = -1, +1


def tidy(
    n_children: Sequence[int],
    first_child: Sequence[int],
    widths: Sequence[float],
    spacing: float,
) -> list[float]:
    """Return the horizontal middle of every node; the leftmost edge is at 0.

    Nodes are numbered level by level; ``spacing`` is the least distance of neighbours.
    """
    forest = _Forest(n_children, first_child, widths, spacing)
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
        spacing: float,
    ) -> None:
        n = len(n_children)
        self.n_children, self.first_child = n_children, first_child
        self.widths, self.spacing = widths, spacing
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
        return self.spacing + (self.widths[left] + self.widths[right]) / 2

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
        outer_left, outer_left_x = self.first, forest.offset[self.first]
        outer_right, outer_right_x = child, 0.0
        at = right_x + forest.distance(right, left)
        owner = len(self.seen) - 1
        for depth in range(1, common + 1):
            right, right_x = forest.below(right, right_x, _RIGHT)
            left, left_x = forest.below(left, left_x, _LEFT)
            outer_left, outer_left_x = forest.below(outer_left, outer_left_x, _LEFT)
            outer_right, outer_right_x = forest.below(
                outer_right, outer_right_x, _RIGHT
            )
            while forest.height[self.seen[owner]] < depth:
                owner -= 1
            push = right_x + forest.distance(right, left) - left_x - at
            if push > 0:
                at += push
                self._share(push, self.seen[owner], child)
        forest.offset[child] = at
        if common < height:
            target, target_x = forest.below(left, left_x, _LEFT)
            forest.sew(outer_left, outer_left_x, target, at + target_x)
        elif common < forest.height[self.seen[0]]:
            target, target_x = forest.below(right, right_x, _RIGHT)
            forest.sew(outer_right, at + outer_right_x, target, target_x)
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


#: Sizes of letters: in the first line of a node, in the second, and on branches.
HEAD, NOTE, LABEL = 13.0, 11.0, 12.0
#: A node: its height, its padding, and where things are, from its top.
HEIGHT, STUB_HEIGHT, PADDING = 58.0, 24.0, 12.0
HEAD_LINE, BAR_TOP, BAR_HEIGHT, NOTE_LINE = 20.0, 28.0, 7.0, 49.0
#: The space for the text of a branch, above the node that it leads to.
LABEL_SPACE, LABEL_LINE = 20.0, 14.0
_NARROWEST, _STUB_NARROWEST, _WIDEST = 84.0, 64.0, 300.0
_SPACING = 16.0
#: Between levels: at least, at most, and how much of the longest horizontal distance.
_LEVEL_SPACING, _HIGHEST_SPACING, _STEEPNESS = 34.0, 120.0, 0.08
#: How wide branches are drawn: those without cases, and the one with all.
_THIN, _THICK = 1.2, 12.0


class Segment(NamedTuple):
    """A part of a bar, from the left edge of a node, and its colour."""

    x: float
    width: float
    colour: int


@dataclass(frozen=True)
class Scene:
    """The boxes of a picture: middle, top, width and height of each, and the words.

    ``colour_of`` has the position in :data:`CLASS_COLOURS` of each class;
    ``scale`` the least and the greatest number that bars show, for numbers.
    """

    drawing: Drawing
    x: list[float]
    y: list[float]
    width: list[float]
    height: list[float]
    head: list[str]
    note: list[str]
    label: list[str]
    size: tuple[float, float]
    colour_of: list[int]
    scale: tuple[float, float] | None

    def edge_width(self, index: int) -> float:
        """Return how wide the branch to a node is drawn: by its cases."""
        return _THIN + (_THICK - _THIN) * self.drawing.share(index)

    def edge(self, index: int) -> tuple[float, float, float, float]:
        """Return where a branch begins and where it ends: above what stands on it."""
        parent = self.drawing.parent[index]
        space = LABEL_SPACE if self.label[index] else 0.0
        bottom = self.y[parent] + self.height[parent]
        return self.x[parent], bottom, self.x[index], self.y[index] - space

    def bar_width(self, index: int) -> float:
        """Return how wide the bar in a node is."""
        return self.width[index] - 2 * PADDING

    def segments(self, index: int) -> Iterator[Segment]:
        """Yield the parts of a node's bar: the shares of its classes."""
        weights = self.drawing.get("weights", index)
        whole, space = sum(weights), self.bar_width(index)
        x = PADDING
        for label, weight in enumerate(weights):
            if weight:
                width = space * (weight / whole)
                yield Segment(x, width, self.colour_of[label])
                x += width

    def class_names(self) -> Iterator[tuple[int, str]]:
        """Yield colours with the names of their classes, the shared one at the end."""
        shared = sum(colour == OTHERS for colour in self.colour_of)
        for name, colour in zip(
            self.drawing.view["classes"], self.colour_of, strict=True
        ):
            if colour != OTHERS or shared == 1:
                yield colour, name
        if shared > 1:
            yield OTHERS, f"{shared:,} others"

    def spread(self, index: int) -> tuple[float, float, float]:
        """Return where a node's mean is on its bar, and one deviation around it."""
        mean, apart = (self.drawing.get(name, index) for name in ("mean", "deviation"))
        return (
            self.position(index, mean - apart),
            self.position(index, mean),
            self.position(index, mean + apart),
        )

    def position(self, index: int, number: float) -> float:
        """Return where a number is on the bar of a node."""
        return PADDING + self.bar_width(index) * self.strength(number)

    def strength(self, number: float) -> float:
        """Return where a number is between the least and the greatest, as a share."""
        low, high = self.scale or (0.0, 0.0)
        # Halves, because the distance of two large numbers may be none.
        distance = high / 2 - low / 2
        return (
            min(max((number / 2 - low / 2) / distance, 0.0), 1.0) if distance else 0.5
        )


def scene(drawing: Drawing) -> Scene:
    """Give every drawn node its place."""
    every = range(len(drawing))
    head = [fitted(text, _WIDEST, HEAD, bold=True) for text in drawing.head]
    note = [fitted(text, _WIDEST, NOTE) for text in drawing.note]
    label = [fitted(text, _WIDEST, LABEL) for text in drawing.label]
    width = [_box_width(head[i], note[i], bool(drawing.left_out[i])) for i in every]
    height = [STUB_HEIGHT if drawing.left_out[i] else HEIGHT for i in every]
    cell = [
        max(width[i], text_width(label[i], LABEL) + PADDING) if label[i] else width[i]
        for i in every
    ]
    x = tidy(drawing.n_children, drawing.first_child, cell, _SPACING)
    y = _tops(drawing, x)
    return Scene(
        drawing,
        x,
        y,
        width,
        height,
        head,
        note,
        label,
        (
            max(x[i] + cell[i] / 2 for i in every),
            max(y[i] + height[i] for i in every),
        ),
        class_colours(drawing.view["nodes"]["weights"][0]),
        _scale(drawing.view["nodes"])
        if drawing.view["predicts"] == "numbers"
        else None,
    )


def _box_width(head: str, note: str, stub: bool) -> float:
    least = _STUB_NARROWEST if stub else _NARROWEST
    text = max(text_width(head, HEAD, bold=not stub), text_width(note, NOTE))
    return max(least, text + 2 * PADDING)


def _tops(drawing: Drawing, x: list[float]) -> list[float]:
    """Return the top of every node; wide levels have more space above them."""
    tops = [0.0] * len(drawing)
    start, stop = 1, 1 + drawing.n_children[0]
    top = HEIGHT
    while start < stop:
        aside = max(abs(x[i] - x[drawing.parent[i]]) for i in range(start, stop))
        top += min(_LEVEL_SPACING + _STEEPNESS * aside, _HIGHEST_SPACING) + LABEL_SPACE
        tops[start:stop] = [top] * (stop - start)
        top += HEIGHT
        last = stop - 1
        start, stop = stop, drawing.first_child[last] + drawing.n_children[last]
    return tops


def _scale(nodes: dict[str, list[Any]]) -> tuple[float, float]:
    """Return the least and the greatest number that the bars of a tree show."""
    pairs = list(zip(nodes["mean"], nodes["deviation"], strict=True))
    return min(mean - d for mean, d in pairs), max(mean + d for mean, d in pairs)
