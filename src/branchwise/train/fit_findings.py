"""Findings about a fitted tree: what happened in training that a user should know.

A tree of one leaf, a tree that has learnt the table by heart, a column of very many
values that took over, and missing values that decide or are not used. Estimators and
:func:`~branchwise.fit.fit_tree` give them as warnings, the command line as notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Schema
from branchwise.errors import quoted
from branchwise.recipe import Recipe
from branchwise.text.label_words import target_unit
from branchwise.text.words import number, percent
from branchwise.train.missing_totals import (
    MissingTotals,
    TotalsOf,
    columns_to_count,
    explained,
    uses_missing,
)
from branchwise.tree.tree import Tree

#: Trees of fewer rows may well have a leaf for every few of them.
_ENOUGH_ROWS = 100
#: A tree with more leaves than this share of the rows has learnt them by heart.
_LEAVES_PER_ROW = 0.1
#: A column has very many values if it has so many, and this share of the rows.
_ENOUGH_VALUES = 20
_VALUES_PER_ROW = 0.1
#: Of a column that may be why nothing was learnt, fewer will do.
_SUSPECTED_PER_ROW = 0.05
#: A column took over if it splits this share of the rows.
_MOST_ROWS = 0.5
#: Missing values decide a split if they alone give this share of what it gives.
_NEARLY_ALL = 0.9
#: With a class of this share or more, weights of classes are worth a try.
_FREQUENT = 0.6


class FitFinding(NamedTuple):
    """What happened in a fit: its kind, the columns, a message and what to try.

    Parameters are written as in Python, such as ``ccp_alpha='1-se'``.
    """

    kind: str
    columns: tuple[str, ...]
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


def fit_findings(
    schema: Schema, tree: Tree, recipe: Recipe, totals_of: TotalsOf | None
) -> list[FitFinding]:
    """Find what a user should know about a fitted tree.

    Without ``totals_of`` the columns, only missing values are not looked at.
    """
    if len(tree) == 1:
        found = [*_one_leaf(schema, tree, recipe)]
    else:
        found = [*_took_over(schema, tree)] or [*_by_heart(tree, recipe)]
    return [*found, *_missing_values(schema, tree, recipe, totals_of)]


def _one_leaf(schema: Schema, tree: Tree, recipe: Recipe) -> Iterator[FitFinding]:
    if recipe.max_depth == 0 or recipe.max_leaf_nodes == 1:
        return  # as requested
    shares = tree.weights[0] / tree.weights[0].sum()
    largest = float(shares.max())
    if tree.mean is not None and tree.deviation is not None:
        same = target_unit(schema).mean(float(tree.mean[0]))
        pure = not tree.deviation[0]
        predicted = f"it predicts the mean, {same}, for every row"
    else:
        same, pure = repr(schema.classes[int(shares.argmax())]), largest == 1.0
        predicted = f"{percent(largest)} of the rows are {same}"
    if pure:
        message = f"The tree is one leaf: the target is {same} in every row."
        yield FitFinding("one_leaf", (), message, "There is nothing to learn from it.")
        return
    reasons, attempts = _obstacles(recipe)
    if attempts and not tree.is_regression and largest >= _FREQUENT:
        attempts.insert(0, "class_weight='balanced'")
    suspected = _with_many_values(schema, tree, _SUSPECTED_PER_ROW)
    if suspected:
        named = ", ".join(f"{c.name!r} ({len(c.categories):,})" for c in suspected)
        attempts.append(f"leaving out columns of very many values: {named}")
    advice = "No column of the table tells the rows apart."
    if attempts:
        advice = f"If its columns tell anything of the target, try {_either(attempts)}."
    yield FitFinding(
        "one_leaf",
        tuple(column.name for column in suspected),
        f"The tree is one leaf: {' or '.join(reasons)}; {predicted}.",
        advice,
    )


def _obstacles(recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return why a tree may have no split, and what to try."""
    reasons, attempts = [], []
    if recipe.pruning == "error-based":
        reasons.append("pruned to the root, as no split lowers the estimated error")
        attempts.append(f"a confidence above {number(recipe.confidence)}")
    elif recipe.pruning == "reduced-error":
        reasons.append(
            "pruned to the root, as no split lowers the error on the validation rows"
        )
        attempts.append("other validation rows")
    elif recipe.pruning == "cost-complexity":
        reasons.append(
            "pruned to the root, as no split lowers the error by what its leaves cost"
        )
        attempts.append(f"a ccp_alpha below {_alpha_of(recipe)}")
    if recipe.max_p_value is not None:
        limit = number(recipe.max_p_value)
        reasons.append(f"no split has a p-value of at most {limit}")
        attempts.append(f"a max_p_value above {limit}")
    limits = [
        f"{name}={getattr(recipe, name)}"
        for name, usual in _LIMITS.items()
        if getattr(recipe, name) > usual
    ]
    if limits:
        reasons.append(f"no split is within {' and '.join(limits)}")
        attempts.append("other limits")
    return reasons or ["no column can split the rows"], attempts


def _alpha_of(recipe: Recipe) -> str:
    """Return the complexity parameter, with its measure where that is not the usual."""
    unit = " with risk='errors'" if recipe.counts_errors else ""
    return f"{number(float(recipe.ccp_alpha))}{unit}"


#: Limits on the size of nodes, and up to where they do not matter.
_LIMITS = {
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_samples_branch": 2,
    "min_weight_fraction_leaf": 0.0,
    "min_gain": 0.0,
}


def _by_heart(tree: Tree, recipe: Recipe) -> Iterator[FitFinding]:
    n_rows, n_leaves = int(tree.n_cases), tree.n_leaves
    if n_rows < _ENOUGH_ROWS or n_leaves <= _LEAVES_PER_ROW * n_rows:
        return
    if recipe.pruning is None and recipe.algorithm == "CART":
        attempts = ["ccp_alpha='1-se'"]
    elif recipe.pruning is None:
        attempts = ["C4.5, which prunes", "pruning='error-based'"]
    elif recipe.pruning == "error-based":
        attempts = [f"a confidence below {number(recipe.confidence)}"]
    elif recipe.pruning == "cost-complexity":
        attempts = [f"a ccp_alpha above {_alpha_of(recipe)}"]
    else:
        attempts = ["more validation rows"]
    fewest = 20 if n_rows >= 10 * _ENOUGH_ROWS else 5
    tries = _either([*attempts, f"min_samples_leaf={fewest}"])
    yield FitFinding(
        "by_heart",
        (),
        f"The tree has {n_leaves:,} leaves for {n_rows:,} rows: it may have "
        "learnt the table by heart. Test it on other rows.",
        f"If it does badly there, try {tries}.",
    )


def _took_over(schema: Schema, tree: Tree) -> Iterator[FitFinding]:
    """Find columns of very many values that split most rows."""
    n_rows = tree.n_cases
    for column in _with_many_values(schema, tree, _VALUES_PER_ROW):
        own = tree.column == schema.columns.index(column)
        n_split = float(tree.case_counts[_topmost(tree, own)].sum())
        if n_split < _MOST_ROWS * n_rows:
            continue
        yield FitFinding(
            "took_over",
            (column.name,),
            f"Column {column.name!r} splits {percent(n_split / n_rows)} of the rows "
            f"and has {len(column.categories):,} values for {n_rows:,.0f} rows, "
            "which says little of rows with other values.",
            "If it names rows rather than describes them, leave it out.",
        )


def _with_many_values(schema: Schema, tree: Tree, share: float) -> list[Column]:
    """Return the category columns with very many values for the rows."""
    least = max(_ENOUGH_VALUES, share * tree.n_cases)
    return [column for column in schema.columns if len(column.categories) >= least]


def _topmost(tree: Tree, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of some nodes have none of the others above them."""
    below = np.zeros(len(tree), dtype=bool)
    for start, stop in tree.levels():
        if start:
            parent = tree.parent[start:stop]
            below[start:stop] = below[parent] | chosen[parent]
    return chosen & ~below


def _missing_values(
    schema: Schema, tree: Tree, recipe: Recipe, totals_of: TotalsOf | None
) -> Iterator[FitFinding]:
    """Find columns whose missing values decide, or tell what is not used."""
    if totals_of is None:
        return
    found = [(at, totals_of(at)) for at in columns_to_count(schema, tree, recipe)]
    told = [(at, totals) for at, totals in found if totals is not None]
    if uses_missing(recipe):
        yield from (each for one in told for each in _deciding(schema, tree, *one))
        return
    unused = sorted(
        [(schema.columns[at].name, totals) for at, totals in told if totals.is_telling],
        key=lambda one: -one[1].share,
    )
    if not unused:
        return
    names = [name for name, _ in unused]
    yield FitFinding(
        "missing_not_used",
        tuple(names),
        f"Whether a value is missing tells of the target, but is not used: "
        f"{unused[0][1].words(schema, names[0])}"
        + (f" (so in column {quoted(names[1:])})." if names[1:] else "."),
        f"Try {_use_of_missing(recipe)}, unless a value is filled in only once the "
        "target is known.",
    )


def _use_of_missing(recipe: Recipe) -> str:
    two_way = recipe.branching == "two-way"
    return _either([*["missing='learned'"] * two_way, "missing='branch'"])


def _deciding(
    schema: Schema, tree: Tree, index: int, told: MissingTotals
) -> Iterator[FitFinding]:
    """Find that the root splits known from missing values, more or less."""
    if told.share < _NEARLY_ALL * _share_of_root(tree):
        return
    name = schema.columns[index].name
    yield FitFinding(
        "missing_decides",
        (name,),
        f"The first split is by whether {name!r} is known: {told.words(schema, name)}.",
        "If it is filled in only once the target is known, leave it out.",
    )


def _share_of_root(tree: Tree) -> float:
    """Return the share of the impurity that the first split explains."""
    branches = list(tree.children(0))
    if tree.mean is None or tree.deviation is None:
        return explained(tree.weights[branches], False)
    weight, mean_of = tree.weights[:, 0], tree.mean - tree.mean[0]
    sums = weight * mean_of
    squares = weight * (tree.deviation**2 + mean_of**2)
    return explained(np.stack([weight, sums, squares], axis=1)[branches], True)


def _either(attempts: Sequence[str]) -> str:
    *others, last = attempts
    return f"{', '.join(others)} or {last}" if others else last
