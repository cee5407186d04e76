"""A model as far as it shows itself: text, pictures, a page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any, overload

import numpy as np

from branchwise.answering import Answering
from branchwise.errors import counted
from branchwise.pruning import Rows
from branchwise.render.drawn import PICTURED_VALUES
from branchwise.render.text import text_lines
from branchwise.view import view
from branchwise.words import SHOWN_VALUES, word

#: ``print(model)`` stops here; ``to_text()`` never does.
_PRINTED_LINES = 1000
#: Nodes whose candidates a page shows.
_WORKED_NODES = 200
#: Why a notebook does not show all of a large tree.
_WHY_LESS = 'so that the notebook stays small: to_html("tree.html") writes all of it'


class Showing(Answering):
    """How a model shows itself.

    Pictures and pages are made by rooms that are opened when they are wanted.
    """

    def view(self, max_values: int = SHOWN_VALUES) -> dict[str, Any]:
        """Return the tree as a dictionary of plain values, ready for ``json.dumps``.

        All views are drawn from it: see :mod:`branchwise.view` for what it holds.
        """
        return view(self.schema, self.tree, self.recipe, max_values)

    def to_text(
        self,
        max_depth: int | None = None,
        max_values: int = SHOWN_VALUES,
        empty_branches: bool = False,
        missing: bool = False,
        style: str = "quinlan",
    ) -> str:
        """Return the whole tree as text.

        Parameters
        ----------
        max_depth : int or None
            How many levels of questions to show.
        max_values : int
            How many values of a list to show before the rest is only counted.
        empty_branches : bool
            Whether to show possible values that had no training case at a node.
        missing : bool
            Whether to show where missing values go: ``or missing`` after the branch
            that takes them, a line of their own where they stop and get the node's
            answer. Where neither is there, they go down every branch.
        style : {"quinlan", "box", "markdown"}
            Quinlan's form; lines as the program ``tree`` draws them; or a nested list
            in Markdown.
        """
        missing = missing and self.recipe.missing != "error"
        lines = self._lines(max_depth, max_values, empty_branches, missing, style)
        return "\n".join(lines)

    def to_svg(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return a picture of the tree as an SVG document.

        Parameters
        ----------
        max_depth : int or None
            How many levels of questions to show.
        max_nodes : int or None
            How many nodes to show, those of upper levels first. What is left out is
            counted in the picture.
        max_values : int
            How many values of a list to show before the rest is only counted; all of
            them show when pointed at.
        """
        from branchwise.render.svg import svg_lines  # noqa: PLC0415

        return "\n".join(svg_lines(self.view(max_values), max_depth, max_nodes))

    def to_dot(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree in DOT, for Graphviz; parameters as in :meth:`to_svg`."""
        from branchwise.render.dot import dot_lines  # noqa: PLC0415

        return "\n".join(dot_lines(self.view(max_values), max_depth, max_nodes))

    def to_mermaid(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree as a Mermaid flowchart; parameters as in :meth:`to_svg`."""
        from branchwise.render.mermaid import mermaid_lines  # noqa: PLC0415

        return "\n".join(mermaid_lines(self.view(max_values), max_depth, max_nodes))

    def _lines(self, *options: object) -> Iterator[str]:
        return text_lines(self.schema, self.tree, self.reasons, *options)  # type: ignore[arg-type]

    @overload
    def to_html(
        self,
        path: None = None,
        title: str | None = None,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
    ) -> str: ...

    @overload
    def to_html(
        self,
        path: str | os.PathLike[str],
        title: str | None = None,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
    ) -> None: ...

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
    ) -> str | None:
        """Return the tree as one HTML page that needs nothing else, not even a network.

        Parameters
        ----------
        path : str, path or None
            A file to write, whole or not at all; None returns the page.
        title : str or None
            The heading of the page; by default what is predicted.
        X, y, sample_weight : table, sequence and sequence, or None
            The very rows that the tree was grown from, and their weights. With them
            the page shows at each node what every column would have gained (for the
            first 200 nodes that ask).
        """
        from branchwise.render import html  # noqa: PLC0415

        seen = _page_view(self)
        rows = Rows.of(X, y, sample_weight)
        if rows is not None:
            seen["candidates"] = _candidates(self, rows.X, rows.y, rows.sample_weight)
        page = html.page(seen, str(self), title)
        if path is None:
            return page
        html.save_page(path, page)
        return None

    def _repr_html_(self) -> str:
        """Show the page in a notebook; of large trees the first levels."""
        from branchwise.pruning import snip  # noqa: PLC0415
        from branchwise.render import html  # noqa: PLC0415

        text, cut = str(self), html.beyond_a_notebook(self.tree)
        tree = snip(self.tree, cut) if cut else self.tree
        seen = _page_view(Answering(self.schema, tree, self.recipe))
        page = html.page(html.abridged(seen, len(self.tree), _WHY_LESS), text)
        return html.in_frame(page, text)

    def __str__(self) -> str:
        lines = list(islice(self._lines(), _PRINTED_LINES + 1))
        if len(lines) > _PRINTED_LINES:
            lines[_PRINTED_LINES:] = [
                f"... (a tree of {len(self.tree):,} nodes; to_text() has all of it)"
            ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        n_classes = len(self.schema.classes)
        answers = "numbers" if not n_classes else counted(n_classes, "class", "classes")
        return (
            f"<branchwise {self.recipe.algorithm} model: "
            f"{counted(len(self.tree), 'node')}, "
            f"{counted(self.tree.n_leaves, 'leaf', 'leaves')}, "
            f"depth {self.tree.max_depth:,}, "
            f"{counted(len(self.schema.columns), 'column')}, {answers}>"
        )


def _page_view(model: Answering) -> dict[str, Any]:
    from branchwise.render import html  # noqa: PLC0415

    lists = html.lists_for(model.tree)
    return view(model.schema, model.tree, model.recipe, lists=lists)


def _candidates(
    model: Answering, X: object, y: object, sample_weight: object
) -> dict[str, list[dict[str, Any]]]:
    """Return, by node, what every column would have gained there."""
    from branchwise.steps.result import worked_solution  # noqa: PLC0415

    asking = np.flatnonzero(model.tree.n_children)[:_WORKED_NODES].tolist()
    if not asking:
        return {}
    worked = worked_solution(
        model.schema, model.tree, model.recipe, X, y, asking, sample_weight
    )
    return {
        str(node.node): [
            {
                "column": word(candidate.column),
                "score": candidate.score,
                "chosen": candidate.column == node.column,
                "note": "" if candidate.out is None else "out",
            }
            for candidate in node.candidates
            if candidate.score is not None
        ]
        for node in worked.nodes
    }
