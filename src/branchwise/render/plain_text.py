"""The tree as text: in the format of Quinlan's programs, with lines, or as Markdown.

One line a branch; a leaf shows its prediction with ``(cases)`` or
``(cases/errors)``, or, where numbers are predicted, ``(cases, ± deviation)``.
Subtrees too deep to indent are broken off, named ``[S1]``, ``[S2]``, ... and
printed after the tree, as C4.5 did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from branchwise.data.table_schema import Schema
from branchwise.errors import ParameterError, check_limit
from branchwise.text import SHOWN_VALUES
from branchwise.text.conditions import (
    Condition,
    absent_values,
    branch,
    missing_stops,
    one_of,
    phrase,
)
from branchwise.text.predictions import (
    Reasons,
    prediction,
    prediction_of_none,
    prediction_of_stopped,
)
from branchwise.text.words import target
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Style:
    """How lines are set; the default is Quinlan's: a bar a level, a colon a branch.

    ``starts`` and ``last_starts`` (of a last branch) begin a line and those below it.
    ``leaf`` and ``split`` are branches with and without a prediction, ``alone`` a tree
    without splits; ``opening`` stands above the tree, ``heading`` above a subtree.
    Everything written is escaped by ``escaped``; with ``typeset`` conditions have the
    signs of mathematics.
    """

    starts: tuple[str, str] = ("", "|   ")
    last_starts: tuple[str, str] = ("", "|   ")
    leaf: str = "{}: {}"
    split: str = "{}:"
    alone: str = "{}"
    opening: tuple[str, ...] = ()
    heading: tuple[str, ...] = ("{}", "")
    escaped: Callable[[str], str] = str
    typeset: bool = False

    def filled(self, pattern: str, *texts: str) -> str:
        """Put texts into a pattern of the style."""
        return pattern.format(*map(self.escaped, texts))

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its prediction if it is a leaf."""
        texts = (branch, end) if end else (branch,)
        return self.filled(self.leaf if end else self.split, *texts)


def _in_markdown(text: str) -> str:
    from branchwise.text.document import in_markdown  # noqa: PLC0415  (not to fit)

    return in_markdown(text)


#: The styles by name; the first is the default.
STYLES: dict[str, Style] = {
    "quinlan": Style(),
    # Box-drawing characters, as the program ``tree`` lists files.
    "box": Style(
        starts=("├── ", "│   "),
        last_starts=("└── ", "    "),
        split="{}",
        opening=("{}",),
        heading=("{}",),
    ),
    "markdown": Style(
        starts=("- ", "  "),
        last_starts=("- ", "  "),
        leaf="{}: **{}**",
        split="{}",
        alone="**{}**",
        heading=("**{}**", ""),
        escaped=_in_markdown,
        typeset=True,
    ),
}


#: Levels of indentation before a subtree is broken off.
_DEEPEST_INDENT = 24


@dataclass(frozen=True)
class TextTree:
    """A tree to be written as lines; the parameters are those of ``Model.to_text``.

    ``reasons`` tell why nodes predict another class than that of most weight.
    """

    schema: Schema
    tree: Tree
    reasons: Reasons | None = None
    max_depth: int | None = None
    max_values: int = SHOWN_VALUES
    empty_branches: bool = False
    missing: bool = False
    style_name: str = "quinlan"

    def __post_init__(self) -> None:
        check_limit("max_depth", self.max_depth, 0)
        check_limit("max_values", self.max_values, 1, optional=False)
        if self.style_name not in STYLES:
            raise ParameterError(
                f"style must be {', '.join(map(repr, list(STYLES)[:-1]))} or "
                f"{list(STYLES)[-1]!r}. Got {self.style_name!r}. Pictures have methods "
                "of their own: to_svg, to_dot, to_mermaid."
            )

    @property
    def style(self) -> Style:
        """How lines are set."""
        return STYLES[self.style_name]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the tree, then those of the subtrees broken off."""
        style = self.style
        if self.tree.n_children[0] == 0:
            yield style.filled(style.alone, self._prediction(0))
            return
        if self._hidden(0):
            yield style.filled(style.alone, f"{self._prediction(0)} ...")
            return
        name = target(self.schema)
        yield from (style.filled(line, name) for line in style.opening)
        broken_off = [0]
        for number, root in enumerate(broken_off):  # grows while it is walked
            if root:
                yield ""
                name = f"Subtree [S{number}]"
                yield from (style.filled(line, name) for line in style.heading)
            yield from self._subtree(root, broken_off)

    def _subtree(self, root: int, broken_off: list[int]) -> Iterator[str]:
        """Yield the lines below a node, and add to the subtrees that come later."""
        # An entry is a node, or a line for cases without a branch, with what its
        # line and those below it begin with, and how deep it is.
        stack: list[tuple[int | str, str, str, int]] = self._below(root, "", 0)
        while stack:
            entry, start, start_below, indent = stack.pop()
            if isinstance(entry, str):
                yield start + entry
                continue
            end = self._end(entry, indent, broken_off)
            yield start + self.style.branch(self._branch(entry), end)
            if not end:
                stack.extend(self._below(entry, start_below, indent + 1))

    def _below(
        self, node: int, start: str, indent: int
    ) -> list[tuple[int | str, str, str, int]]:
        """Return the entries below a node, the first one last."""
        entries = [*self.tree.children(node), *self._without_branch(node)]
        starts = [self.style.starts] * (len(entries) - 1) + [self.style.last_starts]
        every = zip(entries, starts, strict=True)
        return [
            (entry, start + own, start + below, indent) for entry, (own, below) in every
        ][::-1]

    def _prediction(self, node: int) -> str:
        return prediction(self.schema, self.tree, node, self.reasons)

    def _branch(self, node: int) -> str:
        return branch(
            self.schema,
            self.tree,
            node,
            self.max_values,
            self.missing,
            self.style.typeset,
        )

    def _hidden(self, node: int) -> bool:
        return self.max_depth is not None and bool(
            self.tree.depth[node] >= self.max_depth
        )

    def _end(self, node: int, indent: int, broken_off: list[int]) -> str:
        """Return the end of the line of a node; empty if its branches follow."""
        if self.tree.n_children[node] == 0:
            return self._prediction(node)
        if self._hidden(node):
            return f"{self._prediction(node)} ..."
        if indent + 1 >= _DEEPEST_INDENT:
            broken_off.append(node)
            return f"[S{len(broken_off) - 1}]"
        return ""

    def _without_branch(self, node: int) -> Iterator[str]:
        """Yield lines for missing values that stop, and for values without cases."""
        column = self.schema.columns[int(self.tree.column[node])].name
        if self.missing and missing_stops(self.tree, node):
            outcome = prediction_of_stopped(self.schema, self.tree, node)
            yield self.style.branch(phrase(Condition(column, "is missing")), outcome)
        if not self.empty_branches:
            return
        if values := absent_values(self.schema, self.tree, node):
            words = phrase(one_of(column, values), self.max_values)
            outcome = prediction_of_none(self.schema, self.tree, node)
            yield self.style.branch(words, outcome)
