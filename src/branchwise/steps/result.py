"""The result of ``model.steps``: worked solutions as documents in every format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from branchwise.data.table_schema import Schema
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError
from branchwise.steps.criterion_scores import check_criteria, scores_by_criterion
from branchwise.steps.formulas import Figures
from branchwise.steps.layout import Context, page
from branchwise.steps.node_rows import rows_of_nodes
from branchwise.steps.nodes import (
    bars_of,
    encoded,
    in_labels,
    node_steps,
    wanted_nodes,
)
from branchwise.steps.numbers import Bars, NodeSteps
from branchwise.steps.worksheet import worksheet as exercise
from branchwise.text import as_html as html
from branchwise.text.blocks import Block, Heading
from branchwise.text.document import as_latex, as_markdown, as_text
from branchwise.text.signs import typeset_signs
from branchwise.train.fitted_tree import FittedTree

#: Decimals, as textbooks have them.
DIGITS = 3
_MOST_DIGITS = 15
#: Nodes that are named before the rest is left out.
_NAMED_NODES = 5


@dataclass(frozen=True, repr=False)
class Steps:
    """The worked solution of some nodes of a tree: all numbers, node by node.

    ``bars`` is what the recipe demands of splits. Everything that writes it takes
    ``digits``, the decimals of figures, and ``worksheet``: whether to write the
    exercise with a blank for each figure, and the solutions after it.
    """

    nodes: tuple[NodeSteps, ...]
    bars: Bars
    model: FittedTree

    @property
    def schema(self) -> Schema:
        """The columns and the classes."""
        return self.model.schema

    def __iter__(self) -> Iterator[NodeSteps]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, node: int) -> NodeSteps:
        """Return the steps of one node by its number in the tree."""
        for steps in self.nodes:
            if steps.node == node:
                return steps
        raise KeyError(
            f"There are no steps of node {node!r}: these are of "
            f"{', '.join(str(steps.node) for steps in self.nodes[:_NAMED_NODES])}"
            f"{', ...' if len(self) > _NAMED_NODES else ''}."
        )

    def _page(
        self, digits: int, worksheet: bool = False, folded: bool = False
    ) -> list[Block]:
        """Lay out the page for media that have the signs of mathematics."""
        with typeset_signs():
            return self._laid_out(digits, worksheet, folded)

    def _laid_out(
        self, digits: int, worksheet: bool = False, folded: bool = False
    ) -> list[Block]:
        whole = isinstance(digits, int) and not isinstance(digits, bool)
        if not whole or not 1 <= digits <= _MOST_DIGITS:
            raise ParameterError(
                f"digits must be a whole number from 1 to {_MOST_DIGITS}: the decimals "
                f"of figures. Got {digits!r} instead."
            )
        numbers = self.bars.criterion in ("variance", "poisson")
        figures = Figures(digits, numbers and not self.bars.own_criterion)
        context = Context(self.model, self.bars, figures, folded)
        laid_out = exercise if worksheet else page
        return laid_out(self.nodes, context)

    def to_text(self, digits: int = DIGITS, *, worksheet: bool = False) -> str:
        """Return the worked solution as text.

        Parameters
        ----------
        digits : int
            Digits after the point of rounded figures.
        worksheet : bool
            Whether figures are to be filled in, with the solutions after them.

        Returns
        -------
        str
            The text.
        """
        return as_text(self._laid_out(digits, worksheet))

    def to_markdown(self, digits: int = DIGITS, *, worksheet: bool = False) -> str:
        """Return the worked solution as Markdown.

        Parameters
        ----------
        digits, worksheet : int and bool
            As in :meth:`to_text`.

        Returns
        -------
        str
            The text, with formulas in LaTeX.
        """
        return as_markdown(self._page(digits, worksheet))

    def to_latex(
        self, digits: int = DIGITS, document: bool = True, *, worksheet: bool = False
    ) -> str:
        """Return the worked solution as LaTeX; trees are drawn with TikZ.

        Without ``document`` it has no preamble, to be read into a document that uses
        amsmath, textcomp and, for trees, forest.

        Parameters
        ----------
        digits, worksheet : int and bool
            As in :meth:`to_text`.
        document : bool
            Whether to write a whole document, with a preamble.

        Returns
        -------
        str
            The source.
        """
        return as_latex(self._page(digits, worksheet), document)

    def to_html(
        self, digits: int = DIGITS, reveal: bool = False, *, worksheet: bool = False
    ) -> str:
        """Return the worked solution as a page of its own.

        What there is to work out is folded away, unless ``reveal`` is true, and nothing
        outside of the folds tells it.

        Parameters
        ----------
        digits, worksheet : int and bool
            See :meth:`to_text`.
        reveal : bool
            Whether nothing is folded away.

        Returns
        -------
        str
            The page; it needs nothing else.
        """
        title = next(
            b.text for b in self._page(digits, worksheet) if isinstance(b, Heading)
        )
        body = html.markup(self.to_html_fragment(digits, reveal, worksheet=worksheet))
        return html.page(
            "steps/templates/page.html", title=title, style=style_sheet(), body=body
        )

    def to_html_fragment(
        self,
        digits: int = DIGITS,
        reveal: bool = False,
        heading: int = 1,
        *,
        worksheet: bool = False,
    ) -> str:
        """Return a part of a page: a section, without style.

        The page brings :func:`style_sheet` along; ``heading`` is the level of the
        first heading.

        Parameters
        ----------
        digits, reveal, worksheet : int and bool
            As in :meth:`to_html`.
        heading : int
            The level of the first heading.

        Returns
        -------
        str
            The section.
        """
        # On paper the solutions of a worksheet are pages of their own.
        reveal = reveal or worksheet
        blocks = self._page(digits, worksheet, folded=not reveal)
        inside = html.as_html(blocks, heading, reveal)
        return f'<section class="branchwise-steps">\n{inside}\n</section>'

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, ready for JSON."""
        return {
            "algorithm": self.bars.recipe.algorithm,
            "criterion": self.bars.criterion,
            "classes": list(self.schema.classes),
            "nodes": [node.to_dict() for node in self.nodes],
        }

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        numbers = ", ".join(str(steps.node) for steps in self.nodes[:_NAMED_NODES])
        more = ", ..." if len(self.nodes) > _NAMED_NODES else ""
        return f"<branchwise steps of nodes {numbers}{more}; print() shows them>"

    def _repr_html_(self) -> str:
        return f"<style>\n{style_sheet()}</style>\n{self.to_html_fragment()}"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def style_sheet() -> str:
    """Return the style of worked solutions; every selector begins with their class."""
    return html.asset("steps/templates/steps.css")


def worked_solution(
    model: FittedTree,
    X: object,
    y: object,
    node: object,
    sample_weight: object,
    criteria: object = (),
    rows: bool = False,
) -> Steps:
    """Work out nodes of a tree from the rows that it was grown from."""
    training = encoded(model, X, y, sample_weight)
    return worked_training(model, training, node, criteria, rows)


def worked_training(
    model: FittedTree,
    training: Training,
    node: object,
    criteria: object = (),
    rows: bool = False,
) -> Steps:
    """Work out nodes of a tree from its rows, which are encoded already."""
    tree, recipe = model.tree, model.recipe
    wanted, names = wanted_nodes(tree, node), check_criteria(model, criteria)
    model, training = in_labels(model, training)
    nodes = node_steps(model, training, wanted)
    shown = rows_of_nodes(model, training, wanted) if rows else {}
    scores = scores_by_criterion(model, training, wanted, names)
    nodes = [
        replace(one, rows=shown.get(one.node), by_criterion=scores.get(one.node, ()))
        for one in nodes
    ]
    root = tree.weights if recipe.weights_are_cases else tree.cases
    bars = bars_of(recipe, training, float(root[0].sum()))
    return Steps(tuple(nodes), bars, model)
