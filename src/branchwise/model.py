"""Models: schema, tree and recipe, with all that they can do as methods.

:class:`~branchwise.train.fitted_tree.FittedTree` predicts and prunes; the classes here
explain, show, save and export. Modules that fitting and prediction do not need are
imported by the methods that use them, to start fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, overload

from branchwise.errors import ParameterError, counted
from branchwise.text import PICTURED_VALUES, SHOWN_VALUES
from branchwise.train.fitted_tree import FittedTree

if TYPE_CHECKING:
    from branchwise.explain.diff import ModelDiff
    from branchwise.explain.explanation import Explanation, Explanations
    from branchwise.explain.what_if import WhatIf
    from branchwise.rules.rule_list import RuleList
    from branchwise.rules.rule_set import Rules
    from branchwise.shap.shap_values import ShapValues
    from branchwise.steps.result import Steps
    from branchwise.train.prune_model import PruningTable


class Reading(FittedTree):
    """Rules, explanations and worked solutions of a model."""

    def rules(self, simplify: bool = False) -> Rules:
        """Return one rule for each leaf, in the order in which the tree is printed.

        Parameters
        ----------
        simplify : bool
            Whether to say each condition in as few words as will do: two bounds on a
            number as one condition, most values of a column by those that are not
            among them. The rules cover the same rows.
        """
        from branchwise.rules.rule_set import rules_of

        return rules_of(self, simplify)

    def generalised_rules(
        self,
        X: object,
        y: object,
        *,
        confidence: float | None = None,
        sample_weight: object = None,
    ) -> RuleList:
        """Return fewer and shorter rules that predict by themselves (C4.5's rules).

        Each rule of the tree loses the conditions that a pessimistic estimate of its
        errors can spare; of the rules of each class a subset is kept.

        Parameters
        ----------
        X, y : table and sequence
            The rows that the tree was grown from.
        confidence : float or None
            The probability that the true error is above its estimate, as in error-based
            pruning; None is what the recipe has.
        sample_weight : sequence of float or None
            The weights of the rows.
        """
        from branchwise.rules.rule_list import generalised_rules

        return generalised_rules(self, X, y, confidence, sample_weight)

    def steps(
        self,
        X: object,
        y: object,
        node: object = 0,
        sample_weight: object = None,
        *,
        criteria: object = (),
        rows: bool = False,
    ) -> Steps:
        """Return the worked solution of nodes: how their splits were chosen.

        Parameters
        ----------
        X, y : table and sequence
            The rows that the tree was grown from.
        node : int, list of int or "all", default=0
            Which nodes; 0 is the root.
        sample_weight : sequence of float or None
            The weights that the tree was grown with.
        criteria : list of str, default=()
            Criteria to compare at each node: "gain", "gain_ratio", "gini".
        rows : bool, default=False
            Whether to list the rows of each node.

        Returns
        -------
        Steps
            The numbers; ``to_text``, ``to_markdown``, ``to_latex`` and ``to_html``
            write them down.
        """
        from branchwise.steps.result import worked_solution

        return worked_solution(self, X, y, node, sample_weight, criteria, rows)

    def explain(
        self,
        X: object,
        level: float = 0.95,
        *,
        shap: bool = False,
        background: object = None,
    ) -> Explanation | Explanations:
        """Explain the predictions for rows: paths in words, and confidence intervals.

        Parameters
        ----------
        X : table or row
            A row is a dict, a list, a series or an array of cells.
        level : float, default=0.95
            The confidence of the intervals at the leaves.
        shap : bool, default=False
            Whether to tell what each column contributed, too: :meth:`shap`.
        background : table or None
            The rows that contributions are measured against, as in :meth:`shap`.

        Returns
        -------
        Explanation or Explanations
            One for a row, or for a table of one row; else a sequence of them.
        """
        from branchwise.explain.explanation import explain_rows

        if not shap and background is not None:
            raise ParameterError(
                "background has no effect without shap=True. Pass both."
            )
        values = self.shap(X, background) if shap else None
        return explain_rows(self, X, level, values)

    def shap(
        self,
        X: object,
        background: object = None,
        *,
        interactions: bool = False,
        background_weight: object = None,
        n_jobs: int | None = None,
    ) -> ShapValues:
        """Return exact Shapley values: what each column contributed to predictions.

        Parameters
        ----------
        X : table or row
            The rows whose predictions are explained.
        background : table or None
            Rows to compare with: a column that is not known has their cells. By
            default such a column goes down every branch as the training cases did.
        interactions : bool, default=False
            Whether to split contributions into those of pairs of columns, too.
        background_weight : sequence of float or None
            The weights of the rows of the background.
        n_jobs : int or None
            The number of threads; None is one, -1 all cores.

        Returns
        -------
        ShapValues
            The values of each row, column and class; with the base values they add up
            to the predictions.
        """
        from branchwise.shap.shap_values import shap_of_rows

        return shap_of_rows(
            self, X, background, interactions, n_jobs, background_weight
        )

    def what_if(
        self,
        row: object,
        target: object = None,
        *,
        immutable: Collection[str] = (),
        costs: Mapping[str, float | Mapping[Any, float] | Callable[..., float]]
        | None = None,
        monotone: Mapping[str, str] | None = None,
        whole: Collection[str] = (),
        allow_missing: bool = False,
        how_many: int = 1,
    ) -> WhatIf:
        """Find the smallest change of a row that leads to a prediction, exactly.

        Of two changes the one that costs less is smaller, by default the one of fewer
        columns; then the one by which numbers move less, each measured by the span of
        its column's thresholds in the tree; then the one of earlier columns and values.

        Parameters
        ----------
        row : dict, list, series, array or table of one row
            The row as it is.
        target : class, pair of numbers, str or None
            The wanted prediction. For numbers a range: ``(10, 20)``, ``(10, None)`` or
            ``">= 10"``. None is any other class than now.
        immutable : collection of str
            Columns that must stay as they are.
        costs : dict or None
            What it costs to change a column, in place of 1: a number; a table of
            ``(old, new)`` pairs of values, others costing 1; or a function of old and
            new, which must not fall the further a number moves. Infinity forbids.
        monotone : dict or None
            Columns (numbers, or categories in an order) that may go only ``"up"`` or
            only ``"down"``.
        whole : collection of str
            Columns of whole numbers, such as a number of children.
        allow_missing : bool, default=False
            Whether a known value may become a missing one.
        how_many : int, default=1
            How many ways to look for, to different leaves.

        Returns
        -------
        WhatIf
            The changes in words, the new row, its prediction and the cost; or the
            reason why there is no such change.
        """
        from branchwise.explain.constraints import Constraints
        from branchwise.explain.what_if import WhatIfQuery

        query = WhatIfQuery(self, *self.encoded_rows(row))
        constraints = Constraints(immutable, costs, monotone, whole, allow_missing)
        return query.what_if(target, constraints, how_many)

    def diff(self, other: FittedTree, X: object = None, y: object = None) -> ModelDiff:
        """Compare a newer model with this one.

        Parameters
        ----------
        other : Model
            The newer model.
        X : table or None
            Rows whose predictions are compared, too.
        y : sequence or None
            Their true classes or numbers.

        Returns
        -------
        ModelDiff
            Which splits changed, and the predictions of which rows.
        """
        from branchwise.explain.diff import Side, diff_models

        if not isinstance(other, FittedTree):
            raise ParameterError(
                f"other must be a branchwise Model. Got {type(other).__name__}; a "
                "fitted estimator has it as model_."
            )
        if y is not None and X is None:
            raise ParameterError("y needs the rows X that it belongs to. Pass both.")
        labelled = None if y is None else (X, y)
        return diff_models(
            Side("old", self, X, labelled), Side("new", other, X, labelled)
        )


#: ``print(model)`` stops here; ``to_text()`` never does.
_PRINTED_LINES = 1000
#: Why a notebook does not show all of a large tree.
_WHY_LESS = 'so that the notebook stays small: to_html("tree.html") writes all of it'


class Showing(FittedTree):
    """A model as text, as pictures and as an interactive page."""

    def view(self, max_values: int = SHOWN_VALUES) -> dict[str, Any]:
        """Return the tree as a dictionary of plain values, ready for ``json.dumps``.

        All views are drawn from it; ``docs/views.md`` lists its keys.
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
        """
        from branchwise.render.svg import svg_picture

        return svg_picture(self.view(max_values), max_depth, max_nodes)

    def to_dot(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree in DOT, for Graphviz; parameters as in :meth:`to_svg`."""
        from branchwise.render.picture import dot_picture

        return dot_picture(self.view(max_values), max_depth, max_nodes)

    def to_mermaid(
        self,
        max_depth: int | None = None,
        max_nodes: int | None = None,
        max_values: int = PICTURED_VALUES,
    ) -> str:
        """Return the tree as a Mermaid flowchart; parameters as in :meth:`to_svg`."""
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


class Model(Reading, Showing):
    """A fitted tree with its schema and recipe.

    Parameters
    ----------
    schema : Schema
        Columns, their kinds and possible values, and the classes.
    tree : Tree
        The arrays of the tree.
    recipe : Recipe
        How it was grown.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def export(
        self,
        target: str,
        path: str | os.PathLike[str] | None = None,
        verify: object = True,
        **options: str,
    ) -> str | bytes:
        """Return the model in another language or format, and write it to a file.

        Parameters
        ----------
        target : str
            One of ``branchwise.export.TARGETS``: see ``docs/export.md``.
        path : str, path or None
            Where to write it to.
        verify : bool or table
            The export is run, and every prediction compared with the model's: on rows
            made to break it (True), or on those of a table. False writes it as it is.
        **options : str
            What the target lets choose.

        Returns
        -------
        str or bytes
            The export; bytes where the format is not text.
        """
        from branchwise import export

        return export.exported_to(self, target, path, verify, **options)

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        from branchwise import model_file

        return model_file.to_bytes(self.schema, self.tree, self.recipe)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the model that the content of a model file holds."""
        from branchwise import model_file

        return cls(*model_file.tree_from_bytes(content, "the content"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all."""
        from branchwise import model_file

        model_file.save(path, self.schema, self.tree, self.recipe)

    def to_estimator(self) -> Any:
        """Return the fitted estimator: :func:`~branchwise.to_estimator`."""
        import branchwise

        return branchwise.to_estimator(self)


def pruning_path(model: Model, X: object = None, y: object = None) -> PruningTable:
    """Return sizes and errors of a model's prunings: :meth:`Model.pruning_path`.

    Parameters
    ----------
    model : Model
        A fitted tree.
    X, y : table and sequence, or None
        Rows that the tree was not grown from; with them there are errors on these, too.
    """
    return model.pruning_path(X, y)
