"""Early stopping of boosting, by the loss of rows that are held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from branchwise.engines.memory import Training
from branchwise.ensemble.sampling import Samples
from branchwise.errors import DataError
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.train.hold_out import held_out

#: Called after each round with the loss of the training rows, and of held-out rows.
OnRound = Callable[[float, float | None], None]


@dataclass
class EarlyStop:
    """Tells when losses of held-out rows improve no more.

    ``validation`` are these rows, by contents; None if boosting is not to stop early.
    """

    recipe: EnsembleRecipe
    validation: Training | None = None
    losses: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, samples: Samples) -> tuple[Training, EarlyStop]:
        """Return the rows to grow from, and when to stop."""
        training, recipe = samples.training, samples.recipe
        if recipe.n_iter_no_change is None:
            return training, cls(recipe)
        try:
            rest, aside = held_out(training, recipe.validation_fraction)
        except DataError:
            raise DataError(
                f"n_iter_no_change needs rows to hold out, and {training.data.n_rows} "
                f"rows (n_samples={training.data.n_rows}) with validation_fraction="
                f"{recipe.validation_fraction} leave none, or none to grow from. Leave "
                "n_iter_no_change out, or give more rows."
            ) from None
        return rest, cls(recipe, aside)

    def now(self, loss: float) -> bool:
        """Take the loss after a round; tell whether it is time to stop.

        It is if the loss is below none of the last ``n_iter_no_change`` ones by more
        than ``tol``, as in scikit-learn.
        """
        recent = self.losses[-(self.recipe.n_iter_no_change or 0) :]
        self.losses.append(loss)
        if len(recent) < (self.recipe.n_iter_no_change or 0):
            return False
        return not any(loss + self.recipe.tol < earlier for earlier in recent)
