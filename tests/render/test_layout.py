"""Where nodes go: nothing overlaps, parents are in the middle, no room is wasted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchwise.render.scene import tidy

GAP = 5.0
#: What rounding may do.
SLACK = 1e-6


def first_children(n_children):
    firsts, number = [], 1
    for n in n_children:
        firsts.append(number)
        number += n
    return firsts


def levels(n_children):
    """Yield the nodes of each level."""
    start, stop = 0, 1
    while start < stop:
        yield range(start, stop)
        start, stop = stop, stop + sum(n_children[start:stop])


@st.composite
def shapes(draw):
    """Numbers of children, level by level, of a tree of any shape."""
    budget = draw(st.integers(0, 60))
    wanted = draw(st.lists(st.integers(0, 6), min_size=1, max_size=60))
    n_children, open_nodes = [], 1
    for n in wanted:
        if not open_nodes:
            break
        n = min(n, budget)
        n_children.append(n)
        budget -= n
        open_nodes += n - 1
    return n_children + [0] * open_nodes


@st.composite
def sized_shapes(draw):
    n_children = draw(shapes())
    size = st.floats(1, 200)
    widths = draw(st.lists(size, min_size=len(n_children), max_size=len(n_children)))
    return n_children, widths


def check(n_children, widths, x):
    firsts = first_children(n_children)
    for level in levels(n_children):
        for left, right in pairwise(level):
            between = x[right] - widths[right] / 2 - x[left] - widths[left] / 2
            assert between >= GAP - SLACK
    for node, n in enumerate(n_children):
        if n:
            ends = x[firsts[node]], x[firsts[node] + n - 1]
            assert sum(ends) / 2 == pytest.approx(x[node], abs=SLACK)
    edges = [at - width / 2 for at, width in zip(x, widths, strict=True)]
    assert min(edges) == pytest.approx(0, abs=SLACK)


@given(sized_shapes())
def test_nothing_overlaps_and_parents_are_in_the_middle(shape):
    n_children, widths = shape
    x = tidy(n_children, first_children(n_children), widths, GAP)
    check(n_children, widths, x)


def descendants(n_children, firsts, node):
    found, open_ = [], [node]
    while open_:
        node = open_.pop()
        found.append(node)
        open_.extend(range(firsts[node], firsts[node] + n_children[node]))
    return found


@given(sized_shapes())
def test_subtrees_are_as_close_as_they_can_be(shape):
    """The last subtree of a node cannot move left: something is in its way."""
    n_children, widths = shape
    firsts = first_children(n_children)
    x = tidy(n_children, firsts, widths, GAP)
    for node, n in enumerate(n_children):
        if n < 2:
            continue
        last = firsts[node] + n - 1
        moving = set(descendants(n_children, firsts, last))
        siblings = range(firsts[node], last)
        still = {m for s in siblings for m in descendants(n_children, firsts, s)}
        spacings = [
            x[right] - widths[right] / 2 - x[left] - widths[left] / 2
            for level in levels(n_children)
            for left, right in pairwise(level)
            if left in still and right in moving
        ]
        assert min(spacings) == pytest.approx(GAP, abs=SLACK)


@given(sized_shapes())
def test_a_mirrored_tree_is_as_wide(shape):
    """Read from right to left, a tree needs the same room."""
    n_children, widths = shape
    x = tidy(n_children, first_children(n_children), widths, GAP)
    mirrored, places = [], []
    for level in levels(n_children):
        mirrored += [n_children[node] for node in reversed(level)]
        places += list(reversed(level))
    wide = [widths[node] for node in places]
    other = tidy(mirrored, first_children(mirrored), wide, GAP)
    check(mirrored, wide, other)
    # Small subtrees between large ones may be set a little differently.
    if max(n_children) <= 2:
        right = max(at + w / 2 for at, w in zip(x, widths, strict=True))
        mirror = {node: right - other[at] for at, node in enumerate(places)}
        assert [mirror[node] for node in range(len(x))] == pytest.approx(x, abs=SLACK)


def test_small_subtrees_between_large_ones_have_equal_spacings():
    # Four children: the outer ones have wide families of their own.
    n_children = [4, 5, 0, 0, 5] + [0] * 10
    x = tidy(n_children, first_children(n_children), [10.0] * len(n_children), GAP)
    steps = [right - left for left, right in pairwise(x[1:5])]
    assert steps == pytest.approx([25.0] * 3)


def test_one_node():
    assert tidy([0], [1], [30.0], GAP) == [15.0]


class Counting(list):
    """A list that counts how often it is read."""

    reads = 0

    def __getitem__(self, index):
        Counting.reads += 1
        return super().__getitem__(index)


def ladder(levels):
    """A tree with one split after the other."""
    return [2] + [0, 2] * (levels - 1) + [0, 0]


def bush(levels):
    inner = 2**levels - 1
    return [2] * inner + [0] * (inner + 1)


@pytest.mark.parametrize("shape", [ladder, bush])
def test_work_grows_with_the_number_of_nodes(shape):
    """Counted, not timed: ten times the nodes, about ten times the work."""
    sizes = (1000, 10_000) if shape is ladder else (9, 12)
    work = []
    for size in sizes:
        n_children = shape(size)
        Counting.reads = 0
        widths = Counting([10.0] * len(n_children))
        tidy(Counting(n_children), first_children(n_children), widths, GAP)
        work.append(Counting.reads / len(n_children))
    assert work[1] == pytest.approx(work[0], rel=0.05)


@pytest.mark.slow
def test_a_hundred_thousand_levels():
    n_children = ladder(100_000)
    widths = [50.0] * len(n_children)
    check(n_children, widths, tidy(n_children, first_children(n_children), widths, GAP))


def test_nothing_recurses():
    n_children = ladder(3000)
    widths = [1.0] * len(n_children)
    check(n_children, widths, tidy(n_children, first_children(n_children), widths, GAP))
