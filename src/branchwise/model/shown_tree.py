"""A model as text, as pictures and as an interactive page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any, overload

from branchwise.errors import counted
from branchwise.text import PICTURED_VALUES, SHOWN_VALUES
from branchwise.train.fitted_tree import FittedTree

#: ``print(model)`` stops here; ``to_text()`` never does.
_PRINTED_LINES = 1000


#: Why a notebook does not show all of a large tree.
_WHY_LESS = 'so that the notebook stays small: to_html("tree.html") writes all of it'


class Showing(FittedTree):
    """A model as text, as pictures and as an interactive page."""

    def view(self, max_values: int = SHOWN_VALUES) -> dict[str, Any]:
        """Return the tree as a dictionary of plain values, ready for ``json.dumps``.

        All views are drawn from it; ``docs/views.md`` lists its keys.

        Parameters
        ----------
        max_values : int
            How many values of a list to write before the rest is only counted.

        Returns
        -------
        dict
            Columns, classes and nodes in lists, one entry for each node.
        """
        from branchwise.render.view import view

        return view(self.shown_schema, self.tree, self.recipe, max_values)

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
            How many levels of splits to show.
        max_values : int
            How many values of a list to show before the rest is only counted.
        empty_branches : bool
            Whether to show possible values that had no training case at a node.
        missing : bool
            Whether to show where missing values go: ``or missing`` after the branch
            that takes them, a line of their own where they stop and get the node's
            prediction. Where neither is there, they go down every branch.
        style : {"quinlan", "box", "markdown"}
            Quinlan's format; lines as the program ``tree`` draws them; or a nested list
            in Markdown.

        Returns
        -------
        str
            A line for each branch.
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
            How many levels of splits to show.
        max_nodes : int or None
            How many nodes to show, those of upper levels first. What is left out is
            counted in the picture.
        max_values : int
            How many values of a list to show before the rest is only counted; all of
            them show when pointed at.

        Returns
        -------
        str
            The document.
        """
        from branchwise.render.svg import svg_picture

        return svg_picture(self.view(max_values), max_depth, max_nodes)

    def to_dot(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree in DOT, for Graphviz.

        Parameters
        ----------
        max_depth, max_nodes, max_values : int or None
            What to show, as in :meth:`to_svg`.

        Returns
        -------
        str
            What the program ``dot`` reads.
        """
        from branchwise.render.picture import dot_picture

        return dot_picture(self.view(max_values), max_depth, max_nodes)

    def to_mermaid(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree as a Mermaid flowchart.

        Parameters
        ----------
        max_depth, max_nodes, max_values : int or None
            How much to show: see :meth:`to_svg`.

        Returns
        -------
        str
            What Mermaid reads.
        """
        from branchwise.render.picture import mermaid_picture

        return mermaid_picture(self.view(max_values), max_depth, max_nodes)

    def _lines(self, *options: object) -> Iterator[str]:
        from branchwise.render.plain_text import TextTree

        return TextTree(self.shown_schema, self.tree, self.reasons, *options).lines()  # type: ignore[arg-type]

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
            The rows that the tree was grown from, and their weights. With them
            the page shows at each node what every column would have gained (for the
            first 200 split nodes).

        Returns
        -------
        str or None
            The page; None if it was written to a file.
        """
        from branchwise.render import view as html
        from branchwise.steps.nodes import candidate_scores
        from branchwise.train.prune_model import Rows

        seen = _page_view(self)
        rows = Rows.of(X, y, sample_weight)
        if rows is not None:
            seen["candidates"] = candidate_scores(
                self, rows.X, rows.y, rows.sample_weight
            )
        page = html.page(seen, str(self), title)
        if path is None:
            return page
        html.save_page(path, page)
        return None

    def _repr_html_(self) -> str:
        """Show the page in a notebook; of large trees the first levels."""
        from branchwise.render import view as html
        from branchwise.train.prune_model import collapse_nodes

        text, depth_limit = str(self), html.beyond_a_notebook(self.tree)
        tree = collapse_nodes(self.tree, depth_limit) if depth_limit else self.tree
        seen = _page_view(FittedTree(self.schema, tree, self.recipe))
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
        predictions = (
            "numbers" if not n_classes else counted(n_classes, "class", "classes")
        )
        return (
            f"<branchwise {self.recipe.algorithm} model: "
            f"{counted(len(self.tree), 'node')}, "
            f"{counted(self.tree.n_leaves, 'leaf', 'leaves')}, "
            f"depth {self.tree.max_depth:,}, "
            f"{counted(len(self.schema.columns), 'column')}, {predictions}>"
        )


def _page_view(model: FittedTree) -> dict[str, Any]:
    from branchwise.render import view as html
    from branchwise.render.view import view

    lists = html.lists_for(model.tree)
    return view(model.shown_schema, model.tree, model.recipe, lists=lists)
