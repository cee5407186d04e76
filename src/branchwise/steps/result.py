"""The result of ``model.steps``: all numbers, and documents in every format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from branchwise.data.schema import Schema
from branchwise.errors import ParameterError
from branchwise.recipe import Recipe
from branchwise.steps.formulas import Figures
from branchwise.steps.layout import Context, page
from branchwise.steps.nodes import bars_of, encoded, node_steps, wanted_nodes
from branchwise.steps.numbers import Bars, NodeSteps
from branchwise.text import as_html as html
from branchwise.text.as_latex import as_latex
from branchwise.text.as_text import as_markdown, as_text
from branchwise.text.blocks import Block, Heading
from branchwise.tree.tree import Tree

#: Decimals, as textbooks have them.
DIGITS = 3
_MOST_DIGITS = 15
#: Nodes that are named before the rest is left out.
_NAMED_NODES = 5


@dataclass(frozen=True, repr=False)
class Steps:
    """The worked solution of some nodes of a tree.

    Attributes
    ----------
    nodes : tuple of NodeSteps
        All numbers, node by node.
    bars : Bars
        What the recipe demands of splits.
    schema : Schema
        Names of columns and classes.
    """

    nodes: tuple[NodeSteps, ...]
    bars: Bars
    schema: Schema

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

    def _page(self, digits: int) -> list[Block]:
        whole = isinstance(digits, int) and not isinstance(digits, bool)
        if not whole or not 1 <= digits <= _MOST_DIGITS:
            raise ParameterError(
                f"digits must be a whole number from 1 to {_MOST_DIGITS}: the decimals "
                f"of figures. Got {digits!r} instead."
            )
        numbers = self.bars.criterion in ("variance", "poisson")
        figures = Figures(digits, numbers and not self.bars.own_criterion)
        return page(self.nodes, Context(self.schema, self.bars, figures))

    def to_text(self, digits: int = DIGITS) -> str:
        """Return the worked solution as text, figures with so many decimals."""
        return as_text(self._page(digits))

    def to_markdown(self, digits: int = DIGITS) -> str:
        """Return the worked solution as Markdown."""
        return as_markdown(self._page(digits))

    def to_latex(self, digits: int = DIGITS, document: bool = True) -> str:
        r"""Return the worked solution as LaTeX.

        Without ``document`` it has no preamble, to be read into a document that uses
        amsmath and textcomp.
        """
        return as_latex(self._page(digits), document)

    def to_html(self, digits: int = DIGITS, reveal: bool = False) -> str:
        """Return the worked solution as a page of its own.

        What there is to work out is folded away, unless ``reveal`` is true.
        """
        title = next(b.text for b in self._page(digits) if isinstance(b, Heading))
        body = html.markup(self.to_html_fragment(digits, reveal))
        return html.page(
            "steps/templates/page.html", title=title, style=style_sheet(), body=body
        )

    def to_html_fragment(
        self, digits: int = DIGITS, reveal: bool = False, heading: int = 1
    ) -> str:
        """Return a part of a page: a section, without style.

        The page brings :func:`style_sheet` along; ``heading`` is the level of the
        first heading.
        """
        inside = html.as_html(self._page(digits), heading, reveal)
        return f'<section class="branchwise-steps">\n{inside}\n</section>'

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, ready for JSON."""
        return {
            "algorithm": self.bars.algorithm,
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
    schema: Schema,
    tree: Tree,
    recipe: Recipe,
    X: object,
    y: object,
    node: object,
    sample_weight: object,
) -> Steps:
    """Work out nodes of a tree from the rows that it was grown from."""
    wanted = wanted_nodes(tree, node)
    training = encoded(schema, recipe, X, y, sample_weight)
    nodes = node_steps(schema, tree, recipe, training, wanted)
    root = tree.weights if recipe.weights_are_cases else tree.cases
    bars = bars_of(recipe, training, float(root[0].sum()))
    return Steps(tuple(nodes), bars, schema)
