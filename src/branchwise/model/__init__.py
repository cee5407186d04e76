"""Models: schema, tree and recipe, with all that they can do as methods.

:class:`~branchwise.train.fitted_tree.FittedTree` predicts and prunes; the classes here
explain, show, save and export. Modules that fitting and prediction do not need are
imported by the methods that use them, to start fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Self

from branchwise.errors import ParameterError
from branchwise.model.shown_tree import Showing
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

        Returns
        -------
        Rules
            A sequence; ``to_text``, ``to_markdown``, ``to_html`` and ``to_frame`` write
            all.

        Examples
        --------
        >>> from branchwise import datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> print(fit_tree(tennis.X, tennis.y).rules()[1])
        if outlook = rainy and wind = strong then no (2 of 2 cases, 100 %)
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

        Returns
        -------
        RuleList
            An ordered list with a default class, which has ``predict`` of its own.
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

        Examples
        --------
        >>> from branchwise import datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> model = fit_tree(tennis.X, tennis.y)
        >>> row = {"outlook": "sunny", "humidity": "high", "wind": "weak"}
        >>> print(model.explain(row).to_text().splitlines()[0])
        Prediction: no (no 100 %)
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
        from branchwise.shap.row_values import shap_of_rows

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

        Examples
        --------
        >>> from branchwise import datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> model = fit_tree(tennis.X, tennis.y)
        >>> model.export("sql", verify=False).splitlines()[0]
        '-- ID3 decision tree with 5 leaves, written by branchwise.'
        """
        from branchwise import export

        return export.exported_to(self, target, path, verify, **options)

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        from branchwise import model_file

        return model_file.to_bytes(self.schema, self.tree, self.recipe)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the model that the content of a model file holds.

        Parameters
        ----------
        content : bytes
            What :meth:`to_bytes` returned, or a model file holds.

        Returns
        -------
        Model
            It equals the one that was saved.

        Examples
        --------
        >>> from branchwise import Model, datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> model = fit_tree(tennis.X, tennis.y)
        >>> Model.from_bytes(model.to_bytes()) == model
        True
        """
        from branchwise import model_file

        return cls(*model_file.tree_from_bytes(content, "the content"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all.

        Parameters
        ----------
        path : str or path
            The file; what it held is replaced. :func:`branchwise.load` reads it.
        """
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

    Returns
    -------
    PruningTable
        A row for each size of the tree.
    """
    return model.pruning_path(X, y)
