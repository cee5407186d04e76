"""Fitting of rules that vote: pool, choice, and the ensemble that holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Schema
from branchwise.ensemble.forest import TreeProgress
from branchwise.ensemble.losses import initial_margins
from branchwise.ensemble.sampling import Samples
from branchwise.ensemble.voting.candidate_rules import (
    candidate_rules,
    row_weights,
)
from branchwise.ensemble.voting.chain_tree import ChainTrees
from branchwise.ensemble.voting.vote_selection import VoteSelection
from branchwise.ensemble.voting.vote_sums import vote_sums
from branchwise.grow.counts import add_up
from branchwise.rules.generalise import Coverage
from branchwise.tree.tree import Tree

#: Rules are found in a random sample of so many rows where there are more.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class VotingTrees:
    """Rules as trees, round by round, the margins they start from, and their cases.

    ``rule_cases`` has, for each tree, how many training cases of each class its rule
    covers; for a tree without a rule those of all classes.
    """

    trees: list[Tree]
    initial: Floats
    rule_cases: Floats


def voting_trees(
    samples: Samples,
    schema: Schema,
    threads: int = 1,
    progress: TreeProgress | None = None,
) -> VotingTrees:
    """Find the rules, and make trees of them."""
    recipe, training, n_classes = samples.recipe, samples.training, len(schema.classes)
    initial = initial_margins(
        "log_loss",
        training.target.astype(np.float64),
        row_weights(training),
        n_classes,
    )
    pool = candidate_rules(_judged(samples), schema, threads, progress)
    sums = vote_sums(
        pool.sets,
        pool.labels,
        pool.cases.labels,
        pool.cases.weights,
        _scores(initial),
    )
    selection = VoteSelection(sums, pool.sets, float(recipe.rule_cost))
    selection.run(recipe.max_rules)
    target = training.target.astype(np.intp)
    counted = np.zeros(len(target)) + (row_weights(training) > 0)
    chains = ChainTrees(
        schema,
        Coverage(schema.columns, training.data),
        np.ones(len(target)) if training.weights is None else training.weights,
    )
    rounds = _rounds(selection, pool.labels, n_classes)
    voting = [
        (pool.conditions[rule], vote) for rule, vote in rounds if rule is not None
    ]
    found = chains.of_rules(voting)
    no_rule, every = next(chains.of_rules([((), 0.0)]))
    whole = add_up(target[every], counted[every], n_classes)
    trees: list[Tree] = []
    rule_cases: list[Floats] = []
    for rule, _ in rounds:
        if rule is None:
            trees.append(no_rule)
            rule_cases.append(whole)
            continue
        tree, rows = next(found)
        trees.append(tree)
        rule_cases.append(add_up(target[rows], counted[rows], n_classes))
    return VotingTrees(trees, initial, np.array(rule_cases))


def _judged(samples: Samples) -> Samples:
    """Return the rows that rules are found in and chosen by: all, or a sample."""
    if len(samples.order) <= _MOST_ROWS:
        return samples
    drawn = replace(samples.recipe, bootstrap=False, max_samples=_MOST_ROWS)
    rows = replace(samples, recipe=drawn).rows(0)
    return replace(samples, training=samples.training.take(rows))


def _scores(initial: Floats) -> Floats:
    """Return a score of each class for the margins that rules start from."""
    return np.array([0.0, initial[0]]) if len(initial) == 1 else initial


def _rounds(
    selection: VoteSelection, labels: Ints, n_classes: int
) -> list[tuple[int | None, float]]:
    """Put rules in rounds, a rule or none for each margin, in the order of choice.

    Two classes have one margin, that of the second; votes for the first lower it.
    """
    chosen = list(zip(selection.rules, selection.votes, strict=True))
    if n_classes <= 2:
        signed: list[tuple[int | None, float]] = [
            (rule, vote if labels[rule] else -vote) for rule, vote in chosen
        ]
        return signed or [(None, 0.0)]
    of_class = [
        [(rule, vote) for rule, vote in chosen if labels[rule] == label]
        for label in range(n_classes)
    ]
    n_rounds = max(1, *map(len, of_class))
    return [
        own[number] if number < len(own) else (None, 0.0)
        for number in range(n_rounds)
        for own in of_class
    ]
