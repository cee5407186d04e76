"""What a fitted forest tells about itself: methods of the estimators of forests."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.importances import Importances
from branchwise.ensemble.out_of_bag import OutOfBag


class ForestReading(BaseEstimator):  # type: ignore[misc]
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
        """
        return self._read().importances(level, self.n_jobs)
