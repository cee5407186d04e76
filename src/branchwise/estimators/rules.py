"""The estimator of rules that vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from branchwise.data.arrays import Floats
from branchwise.ensemble.ensemble import Ensemble
from branchwise.estimators.ensemble import EnsembleClassifier, seed_of
from branchwise.estimators.fitted import documented, of_model
from branchwise.recipe.ensemble_recipe import EnsembleRecipe, rules_recipe


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class RuleClassifier(EnsembleClassifier):
    """A few rules that vote for classes, found in trees of bootstrap samples.

    Takes tables as they are: text, categories, booleans, numbers, missing cells. The
    rules of ``n_estimators`` trees of C4.5, pruned, with branches of several values,
    lose the conditions that do not help; of all these candidates those are kept that
    lower the logarithmic loss by more than their charge, which grows with the number of
    candidates. The votes of the rules that hold for a row add up to the log odds of the
    classes. The same data and seed give the same rules for any order of rows and number
    of threads.

    Examples
    --------
    >>> from branchwise import RuleClassifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> rules = RuleClassifier().fit(tennis.X, tennis.y)
    >>> rules.predict(tennis.X)[:3].tolist()
    ['no', 'no', 'yes']
    """

    n_estimators: int = 20
    max_rules: int | None = None
    rule_cost: float = 0.4
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    order: Mapping[Any, Sequence[Any]] | None = None
    class_weight: Mapping[Any, float] | str | None = None
    priors: Mapping[Any, float] | None = None
    random_state: object = 0
    n_jobs: int | None = None

    rules = of_model(Ensemble.voting_rules)
    explain = of_model(Ensemble.explain)
    to_text = of_model(Ensemble.to_text)
    to_html = of_model(Ensemble.to_html)

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the rules: how they are found and chosen."""
        return rules_recipe(vars(self) | {"random_state": seed_of(self.random_state)})

    def decision_function(self, X: object) -> Floats:
        """Return the margins: log odds of the second class, or one of each class.

        Parameters
        ----------
        X : table
            The rows.

        Returns
        -------
        array of shape (rows,) for two classes, else (rows, classes)
            The margins, from which the probabilities follow.
        """
        check_is_fitted(self)
        margins = self.model_.margins(X, self.n_jobs)
        return margins[:, 0] if margins.shape[1] == 1 else margins
