""":class:`Ensemble`: several trees of one schema, which predict together.

``fitted_trees`` has the predictions; the methods here are delegations to the modules
that read an ensemble.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from typing import Any

from branchwise.data.arrays import Floats
from branchwise.ensemble.ensemble_shap import shap_of_ensemble
from branchwise.ensemble.out_of_bag import OutOfBag, has_out_of_bag
from branchwise.ensemble.reading.best_tree import BestTree, best_tree
from branchwise.ensemble.reading.forest_explanation import (
    ForestExplanation,
    explain_forest,
)
from branchwise.ensemble.reading.forest_page import forest_page, summary_page
from branchwise.ensemble.reading.forest_rules import ForestRules, rules_of_forest
from branchwise.ensemble.reading.importances import Importances, importances_of
from branchwise.ensemble.reading.proximities import (
    Prototypes,
    prototypes_of,
    proximities,
)
from branchwise.ensemble.reading.quantiles import (
    LeafTargets,
    interval_quantiles,
    predict_quantiles,
)
from branchwise.ensemble.reading.rules_page import rules_page
from branchwise.ensemble.reading.summary import EnsembleSummary, summary_of
from branchwise.ensemble.reading.voting_rules import (
    VoteExplanation,
    VotingRules,
    explain_votes,
    voting_rules,
)
from branchwise.ensemble.saved_trees import SavedTrees
from branchwise.errors import ParameterError, counted
from branchwise.explain.explanation import Explanations
from branchwise.model import Model
from branchwise.render.view import save_page
from branchwise.shap.shap_values import ShapValues
from branchwise.stats import check_level
from branchwise.threads import cached_property


class Ensemble(SavedTrees):
    """Trees of one schema that predict together: by average, or by majority vote.

    ``ensemble[i]`` is a :class:`~branchwise.Model` of one tree. ``samples`` has the
    training rows; it is not saved, and None for an ensemble from a file.
    """

    def __getitem__(self, number: int) -> Model:
        n_trees = len(self)
        try:
            number = operator.index(number)
        except TypeError:
            raise TypeError(
                f"Trees have numbers from 0 to {n_trees - 1:,}. Got {number!r}; "
                "list() of the ensemble can be sliced."
            ) from None
        if not -n_trees <= number < n_trees:
            raise IndexError(
                f"There are {counted(n_trees, 'tree')}, with numbers from 0 to "
                f"{n_trees - 1:,}. Got {number}."
            )
        return Model(self.tree_schema, self.trees[number], self.recipe.tree)

    def __iter__(self) -> Iterator[Model]:
        return map(self.__getitem__, range(len(self)))

    def out_of_bag(self, n_jobs: int | None = None) -> OutOfBag:
        """Return the predictions for the training rows by trees grown without them.

        Parameters
        ----------
        n_jobs : int or None
            The number of threads; -1 is all cores.

        Returns
        -------
        OutOfBag
            Predictions, and which rows have one; scores follow from them.
        """
        return OutOfBag.of(self, n_jobs)

    def importances(
        self, level: float = 0.95, n_jobs: int | None = None
    ) -> Importances:
        """Return how much each column matters: by permutation out of bag, by impurity.

        Parameters
        ----------
        level : float
            The confidence level of the intervals over trees.
        n_jobs : int or None
            The number of threads.

        Returns
        -------
        Importances
            A row for each column, the most important first.
        """
        return importances_of(self, level, n_jobs)

    @cached_property
    def leaf_targets(self) -> LeafTargets:
        """The training targets in the leaves of a regression forest."""
        if not self.is_regression:
            raise ParameterError(
                "Quantiles need a forest that predicts numbers. Got one that predicts "
                "classes; use predict_proba."
            )
        self._check_independent("Quantiles are those of")
        return LeafTargets.of(self)

    def _check_independent(self, what: str) -> None:
        """Refuse boosted trees, of which none predicts on its own."""
        if self.recipe.method != "forest":
            raise ParameterError(
                f"{what} trees that predict each on its own, and boosted trees correct "
                "each other. Use shap for gradient boosting, or single trees: "
                "ensemble[i]."
            )

    def predict_quantiles(
        self, X: object, quantiles: object = 0.5, n_jobs: int | None = None
    ) -> Floats:
        """Return quantiles of the target of each row, from the targets in the leaves.

        The weight of a training row, for a row of X, is the average over trees of its
        share in the leaf that the row of X arrives at: how often it is in the sample of
        the tree, times its weight, over the sum of these in the leaf. A case that is
        divided among several leaves has the targets of each by its share, one that
        stops at a node those of all its leaves. The mean of the targets by these
        weights is what ``predict`` returns. The quantile q is the smallest target such
        that the weights of all targets up to it add up to at least q (less 1e-12, as
        weights are rounded); for 0 the smallest of any weight. There is no
        interpolation.

        Parameters
        ----------
        X : table
            The rows.
        quantiles : float or sequence of float
            From 0 to 1.
        n_jobs : int or None
            The number of threads.

        Returns
        -------
        array of shape (rows,), or (rows, quantiles) for a sequence
            Targets of training rows.
        """
        return predict_quantiles(self, self.leaf_targets, X, quantiles, n_jobs)

    def predict_interval(
        self, X: object, level: float = 0.9, n_jobs: int | None = None
    ) -> Floats:
        """Return an interval in which the target of each row lies.

        Its ends are the quantiles (1 - level) / 2 and (1 + level) / 2: see
        :meth:`predict_quantiles`.

        Parameters
        ----------
        X : table
            The rows.
        level : float
            The share of targets that the interval is meant to hold.
        n_jobs : int or None
            The number of threads.

        Returns
        -------
        array of shape (rows, 2)
            The lower and the upper end.
        """
        return self.predict_quantiles(X, interval_quantiles(level), n_jobs)

    def proximities(
        self,
        X: object = None,
        Y: object = None,
        out_of_bag: bool = False,
        n_jobs: int | None = None,
    ) -> Any:
        """Return the proximities of rows: shares of trees with both in one leaf.

        A row that is divided among several leaves is in each by its share.

        Parameters
        ----------
        X, Y : table or None
            The rows; without X the training rows, without Y those of X.
        out_of_bag : bool
            Count, for each pair of training rows, only the trees that were grown
            without both.
        n_jobs : int or None
            The number of threads.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (rows of X, rows of Y)
            Pairs that are never in one leaf are not stored.
        """
        return proximities(self, X, Y, out_of_bag, n_jobs)

    def prototypes(self, n_jobs: int | None = None) -> Prototypes:
        """Return the training row of each class that is nearest to those of its class.

        It has the highest average proximity to the rows of its class, by weight.

        Parameters
        ----------
        n_jobs : int or None
            How many threads compare leaves; None is one.

        Returns
        -------
        Prototypes
            A row of the training table for each class, with its proximity.
        """
        return prototypes_of(self, n_jobs)

    def best_tree(self, n_jobs: int | None = None) -> BestTree:
        """Return the tree that agrees most with the forest, as a model.

        Agreement is measured out of bag: see
        :class:`~branchwise.ensemble.reading.best_tree.BestTree`.

        Parameters
        ----------
        n_jobs : int or None
            How many threads predict; None is one.

        Returns
        -------
        BestTree
            The tree as a model, its position in the forest and its agreement.
        """
        return best_tree(self, n_jobs)

    def rules(self, at_most: int = 20, max_conditions: int = 3) -> ForestRules:
        """Return rules that many trees have, judged out of bag, the stablest first.

        Left out are rules whose cover follows from those before, and rules that are
        not right more often than their class is frequent (the interval counts). Rules
        of numbers predict a mean; left out are those whose interval contains the mean
        of all rows.

        Parameters
        ----------
        at_most : int
            The largest number of rules.
        max_conditions : int
            The largest number of conditions of a rule.

        Returns
        -------
        ForestRules
            The rules, with how often trees have them and how often they are right.
        """
        return rules_of_forest(self, at_most, max_conditions)

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

        As :meth:`Model.shap`, of the average of the trees or their votes; of gradient
        boosting of the margins, which ``margins`` returns.

        Parameters
        ----------
        X : table or row
            The rows whose predictions are explained.
        background, interactions, background_weight, n_jobs : object
            As in :meth:`Model.shap`.

        Returns
        -------
        ShapValues
            The values of each row, column and class.
        """
        return shap_of_ensemble(
            self, X, background, interactions, n_jobs, background_weight
        )

    def explain(
        self,
        X: object,
        level: float = 0.95,
        *,
        shap: bool = False,
        background: object = None,
    ) -> ForestExplanation | VoteExplanation | Explanations:
        """Explain the predictions for rows: votes, conditions, intervals.

        For rules that vote: which of them hold, and the scores of the classes.

        Parameters
        ----------
        X : table or row
            A row is a dict, a list, a series or an array of cells.
        level : float, default=0.95
            The confidence of the intervals.
        shap : bool, default=False
            Whether to tell what each column contributed, too: :meth:`shap`.
        background : table or None
            The rows that contributions are measured against, as in :meth:`shap`.

        Returns
        -------
        ForestExplanation, VoteExplanation or Explanations
            One for a row, or for a table of one row; else a sequence of them.
        """
        if self.recipe.method == "rules":
            return self._explain_votes(X, level, shap, background)
        self._check_independent("explain tells the votes of")
        level = check_level(level)
        if not shap and background is not None:
            raise ParameterError(
                "background has no effect without shap=True. Pass both."
            )
        intervals = None
        if self.is_regression and self.samples is not None:
            intervals = self.predict_interval(X, level)
        values = self.shap(X, background) if shap else None
        return explain_forest(self, X, level, intervals, values)

    def _explain_votes(
        self, X: object, level: float, shap: bool, background: object
    ) -> VoteExplanation | Explanations:
        level = check_level(level)
        if shap or background is not None:
            raise ParameterError(
                "explain of rules that vote tells which of them hold, without Shapley "
                "values. Leave out shap and background; use shap(X)."
            )
        return explain_votes(self, X, level)

    def voting_rules(self) -> VotingRules:
        """Return the rules of an ensemble of rules that vote, and their votes.

        Those first whose votes add up to most over the training cases.
        """
        return voting_rules(self)

    def to_text(self) -> str:
        """Return the rules that vote as sentences; of other ensembles the summary."""
        if self.recipe.method == "rules":
            return self.voting_rules().to_text()
        return self.summary().to_text()

    def summary(self, n_jobs: int | None = None) -> EnsembleSummary:
        """Return what the trees are, how they are combined, their score, importances.

        The score is that out of bag; it is not known for an ensemble from a file.

        Parameters
        ----------
        n_jobs : int or None
            Threads of what is computed out of bag; None is one.

        Returns
        -------
        EnsembleSummary
            Its ``str`` and its page in a notebook show all of it.
        """
        return summary_of(self, n_jobs)

    def to_estimator(self) -> Any:
        """Return the fitted estimator: :func:`~branchwise.to_estimator`."""
        import branchwise  # noqa: PLC0415  (it is above this module)

        return branchwise.to_estimator(self)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        n_jobs: int | None = None,
    ) -> str | None:
        """Return all of it as one HTML page that needs nothing else, and no network.

        Figures, error against the number of trees, importances, rules, the best tree,
        the confusion matrix and the prototypes; of numbers what there is of these. Of
        boosting, and of a forest without its training rows or without rows out of bag,
        figures and importances. Of rules that vote the rules, their coverage, and how
        they overlap.

        Parameters
        ----------
        path : str, path or None
            A file to write, whole or not at all; None returns the page.
        title : str or None
            The heading of the page; by default what is predicted.
        n_jobs : int or None
            The number of threads.

        Returns
        -------
        str or None
            The page; None if it was written to a file.
        """
        if self.recipe.method == "rules":
            page = rules_page(self, self.voting_rules(), title)
        elif not has_out_of_bag(self):
            page = summary_page(self.summary(n_jobs), title)
        else:
            page = forest_page(
                self,
                self.out_of_bag(n_jobs),
                self.importances(n_jobs=n_jobs),
                self.best_tree(n_jobs),
                self.rules(),
                None if self.is_regression else self.prototypes(n_jobs),
                title,
            )
        if path is None:
            return page
        save_page(path, page)
        return None
