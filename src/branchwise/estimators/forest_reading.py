"""What a fitted forest tells about itself: methods of the estimators of forests."""

from __future__ import annotations

import os

from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Floats
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.out_of_bag import OutOfBag
from branchwise.ensemble.reading.best_tree import BestTree
from branchwise.ensemble.reading.importances import Importances
from branchwise.ensemble.reading.proximities import Prototypes
from branchwise.estimators.ensemble import EnsembleEstimator
from branchwise.estimators.fitted import of_model


class ForestReading(EnsembleEstimator):
    """Delegations to the fitted :class:`~branchwise.ensemble.ensemble.Ensemble`."""

    model_: Ensemble
    n_jobs: int | None

    def _read(self) -> Ensemble:
        check_is_fitted(self)
        return self.model_

    def out_of_bag(self) -> OutOfBag:
        """Return the predictions for the training rows by trees grown without them."""
        return self._read().out_of_bag(self.n_jobs)

    def importances(self, level: float = 0.95) -> Importances:
        """Return how much each column matters: by permutation out of bag, by impurity.

        Parameters
        ----------
        level : float
            The confidence level of the intervals over trees.

        Returns
        -------
        Importances
            A row for each column, the most important first.
        """
        return self._read().importances(level, self.n_jobs)

    def proximities(
        self, X: object = None, Y: object = None, out_of_bag: bool = False
    ) -> csr_matrix:
        """Return the proximities of rows: shares of trees with both in one leaf.

        Parameters
        ----------
        X, Y : table or None
            The rows; without X the training rows, without Y those of X.
        out_of_bag : bool
            Count, for each pair of training rows, only the trees that were grown
            without both.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (rows of X, rows of Y)
            Pairs that are never in one leaf are not stored.
        """
        return self._read().proximities(X, Y, out_of_bag, self.n_jobs)

    def prototypes(self) -> Prototypes:
        """Return the training row of each class that is nearest to those of its class.

        It has the highest average proximity to the rows of its class, by weight.
        """
        return self._read().prototypes(self.n_jobs)

    def best_tree(self) -> BestTree:
        """Return the tree that agrees most with the forest out of bag, as a model."""
        return self._read().best_tree(self.n_jobs)

    rules = of_model(Ensemble.rules)
    explain = of_model(Ensemble.explain)

    def to_html(
        self, path: str | os.PathLike[str] | None = None, title: str | None = None
    ) -> str | None:
        """Return all of it as one HTML page that needs nothing else, and no network.

        Parameters
        ----------
        path : str, path or None
            A file to write, whole or not at all; None returns the page.
        title : str or None
            The heading of the page; by default what is predicted.

        Returns
        -------
        str or None
            The page; None if it was written to a file.
        """
        return self._read().to_html(path, title, self.n_jobs)


class QuantileReading(ForestReading):
    """Quantiles of the targets, of forests that predict numbers."""

    def predict_quantiles(self, X: object, quantiles: object = 0.5) -> Floats:
        """Return quantiles of the target of each row, from the targets in the leaves.

        The quantile q is the smallest training target such that the weights of all
        targets up to it add up to at least q. The weight of a training row is the
        average over trees of its share in the leaf of the row of X, as often as it is
        in the tree's sample (Meinshausen 2006); so the mean by these weights is what
        ``predict`` returns. There is no interpolation.

        Parameters
        ----------
        X : table
            The rows.
        quantiles : float or sequence of float
            From 0 to 1.

        Returns
        -------
        array of shape (rows,), or (rows, quantiles) for a sequence
            Targets of training rows.
        """
        return self._read().predict_quantiles(X, quantiles, self.n_jobs)

    def predict_interval(self, X: object, level: float = 0.9) -> Floats:
        """Return an interval in which the target of each row lies.

        Its ends are the quantiles (1 - level) / 2 and (1 + level) / 2.

        Parameters
        ----------
        X : table
            The rows.
        level : float
            The share of targets that the interval is meant to hold.

        Returns
        -------
        array of shape (rows, 2)
            The lower and the upper end.
        """
        return self._read().predict_interval(X, level, self.n_jobs)
