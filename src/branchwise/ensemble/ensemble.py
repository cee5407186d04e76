""":class:`Ensemble`: several trees of one schema, which predict together.

``fitted_trees`` has the predictions; the methods here are delegations to the modules
that read an ensemble.
"""

from __future__ import annotations

from collections.abc import Iterator

from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.importances import Importances, importances_of
from branchwise.ensemble.out_of_bag import OutOfBag
from branchwise.model import Model


class Ensemble(FittedTrees):
    """Trees of one schema that predict together: by average, or by majority vote.

    ``ensemble[i]`` is a :class:`~branchwise.Model` of one tree. ``samples`` has the
    training rows; it is not saved, and None for an ensemble from a file.
    """

    def __getitem__(self, number: int) -> Model:
        return Model(self.schema, self.trees[number], self.recipe.tree)

    def __iter__(self) -> Iterator[Model]:
        return map(self.__getitem__, range(len(self)))

    def out_of_bag(self, n_jobs: int | None = None) -> OutOfBag:
        """Return the predictions for the training rows by trees grown without them."""
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
        """
        return importances_of(self, level, n_jobs)
