"""A model as far as it is read: rules, the worked solution, explanations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from branchwise.answering import Answering
from branchwise.errors import ParameterError
from branchwise.table.rows import Cells, open_rows

if TYPE_CHECKING:
    from branchwise.explain.diff import ModelDiff, Side
    from branchwise.explain.explanation import Explanation, Explanations
    from branchwise.explain.what_if import WhatIf
    from branchwise.rulelist import RuleList
    from branchwise.ruleset import Rules
    from branchwise.steps.result import Steps


class Reading(Answering):
    """What can be read off a model.

    The rooms behind these doors are opened when somebody knocks: most who import
    branchwise want to fit and predict.
    """

    def rules(self, simplify: bool = False) -> Rules:
        """Return one rule for each leaf, in the order in which the tree is printed.

        Parameters
        ----------
        simplify : bool
            Whether to say each condition in as few words as will do: two bounds on a
            number as one condition, most values of a column by those that are not
            among them. The rules cover the same rows.
        """
        from branchwise.ruleset import rules_of  # noqa: PLC0415

        return rules_of(self.schema, self.tree, self.recipe, simplify)

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
            The chance that the true error is above its estimate, as in error-based
            pruning; None is what the recipe has.
        sample_weight : sequence of float or None
            The weights of the rows.
        """
        from branchwise.rulelist import Source, generalised_rules  # noqa: PLC0415

        source = Source(self.schema, self.tree, self.recipe)
        return generalised_rules(source, X, y, confidence, sample_weight)

    def steps(
        self, X: object, y: object, node: object = 0, sample_weight: object = None
    ) -> Steps:
        """Work out how the split of a node was found, as one writes it by hand.

        Parameters
        ----------
        X, y : table and sequence
            The very rows that the tree was grown from.
        node : int, list of int or "all", default=0
            Which nodes; 0 is the root.
        sample_weight : sequence of float or None
            The weights that the tree was grown with.

        Returns
        -------
        Steps
            The numbers; ``to_text``, ``to_markdown``, ``to_latex`` and ``to_html``
            write them down.
        """
        from branchwise.steps.result import worked_solution  # noqa: PLC0415

        return worked_solution(
            self.schema, self.tree, self.recipe, X, y, node, sample_weight
        )

    def explain(self, X: object, level: float = 0.95) -> Explanation | Explanations:
        """Tell why rows get their answers: the way in words, and how sure the leaf is.

        Parameters
        ----------
        X : table or row
            A row is a dict, a list, a series or an array of cells.
        level : float, default=0.95
            The confidence of the intervals at the leaves.

        Returns
        -------
        Explanation or Explanations
            One for a row, or for a table of one row; else a sequence of them.
        """
        from branchwise.explain.explanation import explain_rows  # noqa: PLC0415

        frame = open_rows(X)
        data, cells = self._encoded_frame(frame), Cells(frame, self.schema)
        return explain_rows(
            self.schema, self.tree, self.recipe, self.walker, cells, data, level
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
        """Find the smallest change of a row that brings about an answer: exactly.

        Of two changes the one that costs less is smaller, by default the one of fewer
        columns; then the one by which numbers move less, each measured by the span of
        its column's cuts in the tree; then the one of earlier columns and values.

        Parameters
        ----------
        row : dict, list, series, array or table of one row
            The row as it is.
        target : class, pair of numbers, str or None
            The wanted answer. For numbers a range: ``(10, 20)``, ``(10, None)`` or
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
            The changes in words, the new row, its answer and the cost; or the reason
            why there is no such change.
        """
        from branchwise.explain.what_if import Asker  # noqa: PLC0415
        from branchwise.explain.wishes import Wishes  # noqa: PLC0415

        frame = open_rows(row)
        data, cells = self._encoded_frame(frame), Cells(frame, self.schema)
        asker = Asker(self.schema, self.tree, self.recipe, self.walker, cells, data)
        wishes = Wishes(immutable, costs, monotone, whole, allow_missing)
        return asker.what_if(target, wishes, how_many)

    def diff(self, other: Answering, X: object = None, y: object = None) -> ModelDiff:
        """Tell what sets a newer model apart from this one.

        Parameters
        ----------
        other : Model
            The newer model.
        X : table or None
            Rows whose answers are compared, too.
        y : sequence or None
            The true answers to them.

        Returns
        -------
        ModelDiff
            Which questions moved, and which rows change answer.
        """
        from branchwise.explain.diff import diff_models  # noqa: PLC0415

        if not isinstance(other, Answering):
            raise ParameterError(
                f"other must be a branchwise Model. Got {type(other).__name__}; a "
                "fitted estimator has it as model_."
            )
        if y is not None and X is None:
            raise ParameterError("y needs the rows X that it belongs to. Pass both.")
        return diff_models(_side(self), _side(other), X, y)


def _side(model: Answering) -> Side:
    from branchwise.explain.diff import Side  # noqa: PLC0415

    return Side(
        model.schema,
        model.tree,
        model.recipe.algorithm,
        model.predict,
        model.apply,
        model.score,
        model.reasons,
    )
