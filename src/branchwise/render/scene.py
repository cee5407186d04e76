"""A picture ready to be drawn: boxes with their places, words cut to fit, bars.

Lengths are in pixels; y grows downwards. SVG and Matplotlib draw the same scene.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from branchwise.render.colours import OTHERS, class_colours
from branchwise.render.drawn import Drawn
from branchwise.render.layout import tidy
from branchwise.render.measure import fitted, text_width

#: Sizes of letters: in the first line of a node, in the second, and on branches.
HEAD, NOTE, LABEL = 13.0, 11.0, 12.0
#: A node: its height, blanks at the sides, and where things are, from its top.
HEIGHT, STUB_HEIGHT, PADDING = 58.0, 24.0, 12.0
HEAD_LINE, BAR_TOP, BAR_HEIGHT, NOTE_LINE = 20.0, 28.0, 7.0, 49.0
#: The room for what stands on a branch, above the node that it leads to.
LABEL_ROOM, LABEL_LINE = 20.0, 14.0
_NARROWEST, _STUB_NARROWEST, _WIDEST = 84.0, 64.0, 300.0
_GAP = 16.0
#: Between levels: at least, at most, and how much of the longest way aside.
_LEVEL_GAP, _HIGHEST_GAP, _STEEPNESS = 34.0, 120.0, 0.08
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

    drawn: Drawn
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
        return _THIN + (_THICK - _THIN) * self.drawn.share(index)

    def edge(self, index: int) -> tuple[float, float, float, float]:
        """Return where a branch begins and where it ends: above what stands on it."""
        parent = self.drawn.parent[index]
        room = LABEL_ROOM if self.label[index] else 0.0
        bottom = self.y[parent] + self.height[parent]
        return self.x[parent], bottom, self.x[index], self.y[index] - room

    def bar_width(self, index: int) -> float:
        """Return how wide the bar in a node is."""
        return self.width[index] - 2 * PADDING

    def segments(self, index: int) -> Iterator[Segment]:
        """Yield the parts of a node's bar: the shares of its classes."""
        weights = self.drawn.get("weights", index)
        whole, room = sum(weights), self.bar_width(index)
        x = PADDING
        for label, weight in enumerate(weights):
            if weight:
                width = room * (weight / whole)
                yield Segment(x, width, self.colour_of[label])
                x += width

    def class_names(self) -> Iterator[tuple[int, str]]:
        """Yield colours with the names of their classes, the shared one at the end."""
        shared = sum(colour == OTHERS for colour in self.colour_of)
        for name, colour in zip(
            self.drawn.view["classes"], self.colour_of, strict=True
        ):
            if colour != OTHERS or shared == 1:
                yield colour, name
        if shared > 1:
            yield OTHERS, f"{shared:,} others"

    def spread(self, index: int) -> tuple[float, float, float]:
        """Return where a node's mean is on its bar, and one deviation around it."""
        mean, apart = (self.drawn.get(name, index) for name in ("mean", "deviation"))
        return (
            self.place(index, mean - apart),
            self.place(index, mean),
            self.place(index, mean + apart),
        )

    def place(self, index: int, number: float) -> float:
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


def scene(drawn: Drawn) -> Scene:
    """Give every drawn node its place."""
    every = range(len(drawn))
    head = [fitted(text, _WIDEST, HEAD, bold=True) for text in drawn.head]
    note = [fitted(text, _WIDEST, NOTE) for text in drawn.note]
    label = [fitted(text, _WIDEST, LABEL) for text in drawn.label]
    width = [_box_width(head[i], note[i], bool(drawn.left_out[i])) for i in every]
    height = [STUB_HEIGHT if drawn.left_out[i] else HEIGHT for i in every]
    cell = [
        max(width[i], text_width(label[i], LABEL) + PADDING) if label[i] else width[i]
        for i in every
    ]
    x = tidy(drawn.n_children, drawn.first_child, cell, _GAP)
    y = _tops(drawn, x)
    return Scene(
        drawn,
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
        class_colours(drawn.view["nodes"]["weights"][0]),
        _scale(drawn.view["nodes"]) if drawn.view["predicts"] == "numbers" else None,
    )


def _box_width(head: str, note: str, stub: bool) -> float:
    least = _STUB_NARROWEST if stub else _NARROWEST
    text = max(text_width(head, HEAD, bold=not stub), text_width(note, NOTE))
    return max(least, text + 2 * PADDING)


def _tops(drawn: Drawn, x: list[float]) -> list[float]:
    """Return the top of every node; the wider a level fans out, the higher its gap."""
    tops = [0.0] * len(drawn)
    start, stop = 1, 1 + drawn.n_children[0]
    top = HEIGHT
    while start < stop:
        aside = max(abs(x[i] - x[drawn.parent[i]]) for i in range(start, stop))
        top += min(_LEVEL_GAP + _STEEPNESS * aside, _HIGHEST_GAP) + LABEL_ROOM
        tops[start:stop] = [top] * (stop - start)
        top += HEIGHT
        last = stop - 1
        start, stop = stop, drawn.first_child[last] + drawn.n_children[last]
    return tops


def _scale(nodes: dict[str, list[Any]]) -> tuple[float, float]:
    """Return the least and the greatest number that the bars of a tree show."""
    pairs = list(zip(nodes["mean"], nodes["deviation"], strict=True))
    return min(mean - d for mean, d in pairs), max(mean + d for mean, d in pairs)
