"""Candidate rules: those of bootstrap trees, generalised, each once.

The trees are C4.5's, pruned, with branches of several values. A rule loses the
conditions without which its pessimistic error rate does not rise, as in C4.5rules. Of
rules that cover the same rows for the same class the one of fewest conditions stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Schema
from branchwise.engines.memory import Training
from branchwise.ensemble.forest import TreeProgress, grow_trees
from branchwise.ensemble.sampling import Samples
from branchwise.prune.estimates import Estimate
from branchwise.recipe import C45
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.rules.generalise import (
    Bits,
    Candidate,
    Cases,
    Coverage,
    candidates,
    leaf_order,
)
from branchwise.rules.rule import path_rules
from branchwise.text.conditions import Condition
from branchwise.train.train import grown
from branchwise.tree.tree import Tree

#: The trees whose rules are pooled.
POOLED_TREE = replace(C45, branching="groups")
#: The rows of a sample. Those of a large table are mostly out of bag for each tree, and
#: judge its rules when conditions are dropped.
_SAMPLE_ROWS = 5_000
#: No further tree is grown once the trees have about so many leaves.
_MOST_LEAVES = 10_000


@dataclass(frozen=True)
class CandidateRules:
    """Rules to choose from: conditions, class codes, and the rows each covers.

    These are rows of ``cases``, in their order.
    """

    conditions: tuple[tuple[Condition, ...], ...]
    labels: Ints
    sets: Sequence[Bits]
    cases: Cases

    def __len__(self) -> int:
        return len(self.conditions)


def candidate_rules(
    samples: Samples,
    schema: Schema,
    threads: int = 1,
    progress: TreeProgress | None = None,
) -> CandidateRules:
    """Pool the rules of trees: one of all rows, the others of bootstrap samples."""
    training = samples.training
    trees = [grown(training, POOLED_TREE, threads)]
    cases = _cases(training.take(leaf_order(training.columns, trees[0], training.data)))
    n_rows = int(np.count_nonzero(training.counted))
    forest = EnsembleRecipe(
        tree=POOLED_TREE,
        n_estimators=_number_of_trees(samples.recipe.n_estimators, n_rows, trees[0]),
        max_features=None,
        max_samples=min(n_rows, _SAMPLE_ROWS),
        random_state=samples.recipe.random_state,
    )
    drawn = replace(samples, recipe=forest)
    trees += grow_trees(drawn, range(forest.n_estimators), threads, progress)
    rules = chain.from_iterable(path_rules(schema, tree) for tree in trees)
    estimate = Estimate(POOLED_TREE.confidence, cases.total)
    splitting = (rule for rule in rules if rule.conditions)
    return _distinct(candidates(splitting, schema.classes, cases, estimate), cases)


def _cases(training: Training) -> Cases:
    coverage = Coverage(training.columns, training.data)
    return Cases(coverage, training.target.astype(np.intp), row_weights(training))


def _number_of_trees(wanted: int, n_rows: int, whole: Tree) -> int:
    """Return how many trees are grown from samples.

    Where samples are smaller than half of the rows there are twice as many; fewer where
    they have very many leaves, which are about in proportion to their rows.
    """
    if n_rows > 2 * _SAMPLE_ROWS:
        wanted *= 2
    leaves = whole.n_leaves * min(1.0, _SAMPLE_ROWS / max(n_rows, 1))
    return min(wanted, max(4, int(_MOST_LEAVES / max(leaves, 1.0))))


def row_weights(training: Training) -> Floats:
    """Return the weights of rows, whose mean over rows that count is 1."""
    weights = training.weights
    if weights is None:
        return np.ones(training.data.n_rows)
    total = float(np.sort(weights).sum())
    scaled: Floats = weights * (np.count_nonzero(weights) / total)
    return scaled


def _distinct(found: Sequence[Candidate], cases: Cases) -> CandidateRules:
    """Keep, of rules with the same class and the same rows, the shortest."""
    kept: dict[tuple[int, bytes], Candidate] = {}
    for candidate in found:
        key = candidate.label, candidate.bits.tobytes()
        other = kept.get(key)
        if other is None or len(candidate.conditions) < len(other.conditions):
            kept[key] = candidate
    rules = list(kept.values())
    return CandidateRules(
        tuple(rule.conditions for rule in rules),
        np.array([rule.label for rule in rules], dtype=np.intp),
        [rule.bits for rule in rules],
        cases,
    )
