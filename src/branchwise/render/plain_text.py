"""The tree as text: in the format of Quinlan's programs, with lines, or as Markdown.

One line a branch; a leaf shows its prediction with ``(cases)`` or
``(cases/errors)``, or, where numbers are predicted, ``(cases, ± deviation)``.
Subtrees too deep to indent are broken off, named ``[S1]``, ``[S2]``, ... and
printed after the tree, as C4.5 did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from branchwise.data.schema import Schema
from branchwise.errors import ParameterError, check_limit
from branchwise.text.conditions import (
    SHOWN_VALUES,
    Condition,
    absent_values,
    branch,
    missing_stops,
    one_of,
    phrase,
    target,
)
from branchwise.text.document import in_markdown
from branchwise.text.predictions import (
    Reasons,
    prediction,
    prediction_of_none,
    prediction_of_stopped,
)
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Style:
    """Quinlan's: a bar for each level, a colon after every branch."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:  # noqa: ARG002
        """Return the start of a line, and that of the lines below it."""
        return start, start + "|   "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its prediction if it is a leaf."""
        return f"{branch}: {end}" if end else f"{branch}:"

    def prediction(self, prediction: str) -> str:
        """Write the prediction of a tree without splits."""
        return prediction

    def opening(self, target: str) -> Iterator[str]:  # noqa: ARG002
        """Yield what stands above the tree."""
        yield from ()

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield name
        yield ""


@dataclass(frozen=True)
class Box(Style):
    """Box-drawing characters, as the program ``tree`` lists files."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:
        """Return the start of a line, and that of the lines below it."""
        if last:
            return f"{start}└── ", f"{start}    "
        return f"{start}├── ", f"{start}│   "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its prediction if it is a leaf."""
        return f"{branch}: {end}" if end else branch

    def opening(self, target: str) -> Iterator[str]:
        """Yield what stands above the tree: what is predicted."""
        yield target

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield name


@dataclass(frozen=True)
class Markdown(Style):
    """A nested list; predictions are bold."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:  # noqa: ARG002
        """Return the start of a line, and that of the lines below it."""
        return f"{start}- ", f"{start}  "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its prediction if it is a leaf."""
        return (
            f"{in_markdown(branch)}: **{in_markdown(end)}**"
            if end
            else in_markdown(branch)
        )

    def prediction(self, prediction: str) -> str:
        """Write the prediction of a tree without splits."""
        return f"**{in_markdown(prediction)}**"

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield f"**{in_markdown(name)}**"
        yield ""


#: The styles by name; the first is the default.
STYLES: dict[str, Style] = {"quinlan": Style(), "box": Box(), "markdown": Markdown()}


#: Levels of indentation before a subtree is broken off.
_DEEPEST_INDENT = 24


def text_lines(
    schema: Schema,
    tree: Tree,
    reasons: Reasons | None = None,
    max_depth: int | None = None,
    max_values: int = SHOWN_VALUES,
    empty_branches: bool = False,
    missing: bool = False,
    style: str = "quinlan",
) -> Iterator[str]:
    """Yield the lines of the tree.

    Parameters
    ----------
    schema, tree
        What to print.
    reasons : dict or None
        Why nodes predict another class than that of most weight, by node.
    max_depth : int or None
        How many levels of splits to show.
    max_values : int
        How many values of a list to show before the rest is only counted.
    empty_branches : bool
        Whether to show the possible values that had no training case at a node,
        and so get the node's prediction.
    missing : bool
        Whether to show where missing values go: ``or missing`` after the branch that
        takes them, a line of their own where they stop and get the node's
        prediction. Where neither is there, they go down every branch.
    style : {"quinlan", "box", "markdown"}
        How lines are set.
    """
    check_limit("max_depth", max_depth, 0)
    check_limit("max_values", max_values, 1, optional=False)
    if style not in STYLES:
        raise ParameterError(
            f"style must be {', '.join(map(repr, list(STYLES)[:-1]))} or "
            f"{list(STYLES)[-1]!r}. Got {style!r}. Pictures have methods of their own: "
            "to_svg, to_dot, to_mermaid."
        )
    printer = _Printer(
        schema,
        tree,
        max_depth,
        max_values,
        empty_branches,
        missing,
        STYLES[style],
        reasons,
    )
    yield from printer.lines()


@dataclass(frozen=True)
class _Printer:
    schema: Schema
    tree: Tree
    max_depth: int | None
    max_values: int
    empty_branches: bool
    missing: bool
    style: Style
    reasons: Reasons | None

    def lines(self) -> Iterator[str]:
        """Yield the lines of the tree, then those of the subtrees broken off."""
        if self.tree.n_children[0] == 0:
            yield self.style.prediction(self._prediction(0))
            return
        if self._hidden(0):
            yield self.style.prediction(f"{self._prediction(0)} ...")
            return
        yield from self.style.opening(target(self.schema))
        broken_off = [0]
        for number, root in enumerate(broken_off):  # grows while it is walked
            if root:
                yield ""
                yield from self.style.heading(f"Subtree [S{number}]")
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
        starts = [self.style.starts(start, last=False)] * (len(entries) - 1)
        starts.append(self.style.starts(start, last=True))
        every = zip(entries, starts, strict=True)
        return [(entry, *pair, indent) for entry, pair in every][::-1]

    def _prediction(self, node: int) -> str:
        return prediction(self.schema, self.tree, node, self.reasons)

    def _branch(self, node: int) -> str:
        return branch(self.schema, self.tree, node, self.max_values, self.missing)

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
