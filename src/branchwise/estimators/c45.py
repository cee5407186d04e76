"""C4.5: gain ratio, fractional cases, error-based pruning."""

from __future__ import annotations

from dataclasses import dataclass

from branchwise.errors import ParameterError
from branchwise.estimators.base import TreeClassifier, documented
from branchwise.recipe import C45, Policy, Pruning, Recipe


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class C45Classifier(TreeClassifier):
    """Quinlan's C4.5: the trees of release 8 and of Weka's J48, node by node.

    Splits are chosen by gain ratio among those that gain at least the average,
    thresholds are values of the table, with a penalty for their number,
    cases with a missing value go down every branch by weight, and the tree is pruned
    by pessimistic estimates of its errors. ``docs/c45.md`` has all rules.

    Examples
    --------
    >>> from branchwise import C45Classifier, datasets
    >>> golf = datasets.load("tennis")
    >>> tree = C45Classifier(min_samples_branch=1).fit(golf.X, golf.y)
    >>> tree.get_n_leaves(), tree.predict(golf.X)[:3].tolist()
    (5, ['no', 'no', 'yes'])
    """

    _algorithm = C45
    min_samples_leaf: float = 0
    min_samples_branch: float = 2
    group_values: bool = False
    threshold: str = "value"
    missing: Policy = "split"
    unseen: Policy = "split"
    prune: bool = True
    pruning: Pruning | None = "error-based"

    @property
    def recipe(self) -> Recipe:
        """The algorithm and its limits, as the parameters have it."""
        if not self.prune and self.pruning != C45.pruning:
            raise ParameterError(
                f"pruning={self.pruning!r} has no effect with prune=False. Leave one "
                "of them out."
            )
        return self._filled(branching="groups" if self.group_values else "values")
