"""Edits: a state of a session and an action give a new state.

Only the rows of the action's node are counted. Trees here are counted in the units of
the grid (``studio/nodes/row_counts.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from branchwise.data.arrays import first_best
from branchwise.data.table_schema import Schema, Value
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError, quoted
from branchwise.grow.grow import Grafts
from branchwise.grow.protocol import Level, Levels, prescribed_splits
from branchwise.recipe import Recipe
from branchwise.studio.actions import (
    Action,
    Grow,
    Lock,
    Note,
    Prune,
    Relabel,
    SetMissing,
    Split,
    Unlock,
    check_criterion,
)
from branchwise.studio.locks import check_unlocked, free_leaves, free_nodes, unlocked
from branchwise.studio.nodes.given_splits import given_split
from branchwise.studio.nodes.node_paths import (
    ROOT,
    branches_of,
    is_below,
    number_of,
    paths,
)
from branchwise.studio.nodes.node_search import NodeSearch
from branchwise.studio.nodes.row_counts import RowCounts
from branchwise.studio.session_state import State
from branchwise.tree.splits import EVERY_BRANCH, STOP, Splits
from branchwise.tree.tree import Tree, rearranged, with_collapsed


class Editor:
    """Carries out actions on the rows of a session."""

    def __init__(self, rows: Training, schema: Schema, threads: int = 1) -> None:
        self.rows, self.schema, self.threads = rows, schema, threads
        self._counts: dict[Any, RowCounts] = {}

    def counts(self, recipe: Recipe) -> RowCounts:
        """Return the rows as a recipe counts them."""
        key = (
            recipe.missing in ("split", "error") and recipe.missing,
            recipe.weights_are_cases,
            recipe.max_bins,
            recipe.threshold,
            recipe.criterion == "poisson",
        )
        if key not in self._counts:
            self._counts[key] = RowCounts(self.rows, recipe, self.threads)
        return self._counts[key]

    def start(self, recipe: Recipe) -> State:
        """Return the state with all rows in one leaf."""
        check_recipe(recipe, self.schema)
        return State(self.counts(recipe).start(), recipe)

    def search(self, state: State, path: str) -> NodeSearch:
        """Return the search for splits at a node."""
        counts = self.counts(state.recipe)
        node = np.array([number_of(state.tree, path)])
        level = Level(state.tree.weights[node], state.tree.cases[node])
        cases = counts.cases(state.tree, path)
        return NodeSearch(counts, cases, state.recipe, level)

    def apply(self, state: State, action: Action) -> State:
        """Return the state after an action; raise where it cannot be done."""
        number_of(state.tree, action.node)
        after = self._applied(state, action)
        empty = np.flatnonzero(after.tree.cases <= 0)
        if len(empty):
            raise ParameterError(
                f"{action.do} at node {action.node!r} would leave node "
                f"{paths(after.tree)[int(empty[0])]!r} without rows, and a model has "
                "no such nodes. Prune the split above it before."
            )
        return after

    def _applied(self, state: State, action: Action) -> State:
        match action:
            case Split():
                return self._split(state, action)
            case Grow():
                return self._grow(state, action)
            case Prune():
                return self._prune(state, action.node)
            case Lock(path):
                return replace(state, locks=state.locks | {path})
            case Unlock(path):
                return unlocked(state, path)
            case Relabel():
                return self._relabel(state, action)
            case Note(path, text):
                notes = {**state.notes, path: text}
                if not text:
                    del notes[path]
                return replace(state, notes=notes)
            case SetMissing():
                return self._set_missing(state, action)
        raise AssertionError(f"an action without an edit: {action}")

    def _split(self, state: State, action: Split) -> State:
        check_unlocked(state, action.node, "split")
        search = self.search(state, action.node)
        index, given = given_split(self.schema, search, action)
        splits = search.best(index) if given is None else search.prescribed(given)
        if splits is None:
            raise ParameterError(
                f"column {action.column!r} has no split at node {action.node!r} that "
                "the recipe allows: see session.candidates(). Give a threshold or "
                "groups to split it all the same."
            )
        subtree = self._one_level(state, action.node, splits)
        tree = replaced(state.tree, action.node, subtree)
        new = forgotten(state, action.node, tree)
        return replace(new, hand=new.hand | {action.node})

    def _one_level(self, state: State, path: str, splits: Splits) -> Tree:
        """Return the tree of a split at a node, its branches being leaves."""
        counts = self.counts(state.recipe)
        engine = counts.engine.below(counts.cases(state.tree, path))
        pieces = Levels(1)
        pieces.add(engine.totals(), np.zeros(1, dtype=np.intp), splits)
        pieces.add(engine.advance(splits), np.empty(0, dtype=np.intp), None)
        return pieces.tree()

    def _grow(self, state: State, action: Grow) -> State:
        path = action.node
        check_unlocked(state, path, "grow", below=False)
        recipe = state.recipe if action.recipe is None else action.recipe
        check_recipe(recipe, self.schema)
        self._check_growth(state, recipe, action)
        counts = self.counts(recipe)
        recipe = counts.settled(recipe)
        if _grows_all(state, action):
            state = self._with_recipe(state, recipe)
        if action.leaves:
            return self._grow_leaves(state, action, recipe)
        tree, kept = state.tree, counts is self.counts(state.recipe)
        # The way to locked nodes stays; what is beside it is grown.
        for free in free_nodes(state, path):
            depth = len(branches_of(free))
            if recipe.max_depth is not None and depth >= recipe.max_depth:
                continue
            levels = action.levels
            if levels is not None:
                levels -= depth - len(branches_of(path))
                if levels < 1:
                    continue
            cases = counts.cases(tree, free)
            if not len(cases.row):
                continue
            subtree = counts.grown(cases, recipe, depth, levels)
            if not kept:
                own = self.counts(state.recipe)
                subtree = own.counted(subtree, own.cases(tree, free))
            tree = replaced(tree, free, subtree)
            state = forgotten(state, free, tree)
        return state

    def _grow_leaves(self, state: State, action: Grow, recipe: Recipe) -> State:
        """Grow the leaves at and below a node; the splits that there are stay."""
        counts, own = self.counts(recipe), self.counts(state.recipe)
        tree, grown = state.tree, []
        with Grafts() as grafts:
            for leaf, path in free_leaves(state, action.node):
                depth = len(branches_of(path))
                cases = counts.cases(tree, path)
                deep = recipe.max_depth is not None and depth >= recipe.max_depth
                if deep or not len(cases.row):
                    continue
                subtree = counts.grown(cases, recipe, depth, action.levels)
                if len(subtree) == 1:
                    continue
                if counts is not own:
                    subtree = own.counted(subtree, own.cases(tree, path))
                grafts.add(leaf, subtree)
                grown.append(path)
            tree = grafts.onto(tree)
        for path in grown:
            state = forgotten(state, path, tree)
        return replace(state, tree=tree)

    def _check_growth(self, state: State, recipe: Recipe, action: Grow) -> None:
        """Reject recipes that this session, or this node, does not allow."""
        if recipe.is_regression != state.recipe.is_regression:
            raise ParameterError(
                f"recipe must predict the same as the session, {_kind(state.recipe)}. "
                f"Got criterion={recipe.criterion!r}, which is for {_kind(recipe)}."
            )
        depth = len(branches_of(action.node))
        if recipe.max_depth is not None and depth >= recipe.max_depth:
            raise ParameterError(
                f"max_depth={recipe.max_depth} of the recipe is the depth of the whole "
                f"tree, and node {action.node!r} is at depth {depth}. Pass a recipe "
                "with a larger max_depth, or None."
            )
        fractions = self.counts(state.recipe).grid.fractions
        others = not _grows_all(state, action) or bool(state.locks)
        if others and fractions != self.counts(recipe).grid.fractions:
            raise ParameterError(
                f"missing={recipe.missing!r} of the recipe does not go with the rest "
                f"of the tree, which has missing={state.recipe.missing!r}: only one of "
                "them divides cases among branches. Pass a recipe with "
                f"missing={state.recipe.missing!r}, or grow '/' without locks."
            )

    def _with_recipe(self, state: State, recipe: Recipe) -> State:
        """Return the state of another recipe, the rows counted as it demands."""
        old, new = self.counts(state.recipe), self.counts(recipe)
        tree = state.tree
        if new is not old:
            tree = new.counted(tree, new.cases(tree, ROOT))
        return replace(state, tree=tree, recipe=recipe)

    def _prune(self, state: State, path: str) -> State:
        check_unlocked(state, path, "prune")
        node = number_of(state.tree, path)
        if not state.tree.n_children[node]:
            raise ParameterError(
                f"node must be a node with branches to prune. Got {path!r}, a leaf."
            )
        tree = with_collapsed(state.tree, _mask(state.tree, node)).tree
        return forgotten(state, path, tree)

    def _relabel(self, state: State, action: Relabel) -> State:
        check_unlocked(state, action.node, "relabel", below=False)
        predicted = self._predicted(action.prediction)
        predictions = {**state.predictions, action.node: predicted}
        return replace(state, predictions=predictions)

    def _predicted(self, label: Value) -> float:
        """Return the code of a class, or the number where numbers are predicted."""
        classes = self.schema.classes
        if not classes:
            if isinstance(label, (str, bool)):
                raise ParameterError(
                    "prediction must be a number, for this tree predicts numbers. Got "
                    f"{label!r}."
                )
            return float(label)
        same = [at for at, each in enumerate(classes) if _same(each, label)]
        if not same:
            raise ParameterError(
                f"prediction must be one of the classes {quoted(classes, 20)}. Got "
                f"{label!r}."
            )
        return same[0]

    def _set_missing(self, state: State, action: SetMissing) -> State:
        path, tree = action.node, state.tree
        check_unlocked(state, path, "set_missing", below=False)
        node = number_of(tree, path)
        route = self._route(state, node, action)
        missing_to = tree.missing_to.copy()
        missing_to[node] = route
        tree = replace(tree, missing_to=missing_to)
        if tree.surrogates is not None:
            # Surrogates would send missing values down their own branches.
            kept = np.where(_mask(tree, node), -1, np.arange(len(tree)))
            tree = tree.with_surrogates(tree.surrogates.take(kept))
        counts = self.counts(state.recipe)
        subtree = subtree_of(tree, node)
        counted = counts.counted(subtree, counts.cases(state.tree, path))
        return replace(state, tree=replaced(tree, path, counted))

    def _route(self, state: State, node: int, action: SetMissing) -> int:
        """Return the route of missing values at a node, as a tree has it."""
        tree, to = state.tree, action.to
        children = tree.children(node)
        if not len(children):
            raise ParameterError(
                f"node must be a node with branches. Got {action.node!r}, a leaf, "
                "where no value is looked at."
            )
        if any(tree.is_missing_branch(child) for child in children):
            raise ParameterError(
                f"Missing values have a branch of their own at node {action.node!r}. "
                "To send them down another, split the node by a recipe whose missing "
                "is not 'branch'."
            )
        if isinstance(to, int):
            if to >= len(children):
                raise ParameterError(
                    f"missing must be 'largest', 'stop', 'every' or the position of a "
                    f"branch, from 0 to {len(children) - 1}. Got {to!r}."
                )
            return to
        if to == "stop":
            return STOP
        if to == "every":
            column = self.schema.columns[int(tree.column[node])]
            if column.has_missing and not self.counts(state.recipe).grid.fractions:
                raise ParameterError(
                    "missing='every' divides cases among the branches, which needs a "
                    f"session whose recipe has missing='split'. Got a recipe with "
                    f"missing={state.recipe.missing!r}."
                )
            return EVERY_BRANCH
        counts = self.counts(state.recipe)
        engine = counts.engine.below(counts.cases(tree, action.node))
        splits, _ = prescribed_splits(
            engine, counts.columns, tree, np.array([node]), new_values=False
        )
        first = np.zeros(1, dtype=np.intp)
        return int(first_best(splits.sizes, first, np.zeros(1))[0])


def finished_tree(editor: Editor, state: State) -> Tree:
    """Return the tree of a state as that of a model, with what was set by hand."""
    tree = editor.counts(state.recipe).finished(state.tree, state.recipe)
    if not state.predictions:
        return tree
    if tree.mean is not None:
        mean = tree.mean.copy()
        for path, number in state.predictions.items():
            mean[number_of(tree, path)] = number
        return replace(tree, mean=mean)
    prediction = tree.label.copy()
    for path, label in state.predictions.items():
        prediction[number_of(tree, path)] = label
    usual = state.recipe.costs is None and np.array_equal(prediction, tree.heaviest)
    return replace(tree, prediction=None if usual else prediction)


def check_recipe(recipe: Recipe, schema: Schema) -> None:
    """Reject recipes that cannot be followed by hand."""
    check_criterion(recipe)
    if recipe.costs_in == "growth":
        raise ParameterError(
            "costs_in='growth' weighs rows by costs while the tree is grown, so that "
            "the counts of nodes would not be those of the rows. Use "
            "costs_in='prediction' in a session."
        )
    if recipe.pruning == "reduced-error":
        raise ParameterError(
            "pruning='reduced-error' needs other rows to prune with, and those that "
            "validation_fraction sets aside are kept to score the tree. Use "
            "'error-based' or 'cost-complexity'."
        )
    if recipe.costs is not None and len(recipe.costs) != len(schema.classes):
        raise ParameterError(
            f"costs must have a row and a column for each of the {len(schema.classes)} "
            f"classes {quoted(schema.classes)}. Got {len(recipe.costs)} rows."
        )


def _kind(recipe: Recipe) -> str:
    return "numbers" if recipe.is_regression else "classes"


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _grows_all(state: State, action: Grow) -> bool:
    """Whether nothing of the tree stays, but for what is locked."""
    keeps = action.leaves and len(state.tree) > 1
    return action.node == ROOT and not keeps


def forgotten(state: State, path: str, tree: Tree) -> State:
    """Return the state with another tree below a node, whose nodes are other ones."""

    def other(each: str) -> bool:
        return not is_below(each, path)

    def outside(each: str) -> bool:
        return each != path and other(each)

    return replace(
        state,
        tree=tree,
        hand=frozenset(filter(outside, state.hand)),
        notes={at: text for at, text in state.notes.items() if other(at)},
        predictions={
            at: label for at, label in state.predictions.items() if outside(at)
        },
    )


def _mask(tree: Tree, node: int) -> Any:
    mask = np.zeros(len(tree), dtype=bool)
    mask[node] = True
    return mask


def replaced(tree: Tree, path: str, subtree: Tree) -> Tree:
    """Put a tree, counted from the cases of a node, in the place of the node."""
    node = number_of(tree, path)
    base = with_collapsed(tree, _mask(tree, node))
    if len(subtree) == 1:
        return base.tree
    leaf = int(np.flatnonzero(base.source == node)[0])
    with Grafts() as grafts:
        grafts.add(leaf, subtree)
        return grafts.onto(base.tree)


def subtree_of(tree: Tree, node: int) -> Tree:
    """Return the tree below a node, which is its root."""
    raised = np.full(len(tree), -1, dtype=np.intp)
    if node:
        raised[0] = node
    return rearranged(tree, raised, np.zeros(len(tree), dtype=bool)).tree
