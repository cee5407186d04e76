"""Training rows passed down a finished tree, and data classes of a worked solution.

The search is the one that grows trees; nothing here scores anything. The rows go down
the tree's own branches, so a node that pruning has moved, or a user has made, is
searched with the cases that it has now. A user's criterion has no impurity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.bins import Edges
from branchwise.data.table_schema import Column, Value
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.errors import DataError
from branchwise.grow.choose import AVERAGE_SLACK, Verdicts, carried_out, stops, verdicts
from branchwise.grow.grow import cases_of, impurity_sums_of, weight_of
from branchwise.grow.protocol import Level, prescribed_splits
from branchwise.grow.ranks import ranked, splits_in_codes
from branchwise.grow.search import Search
from branchwise.recipe import Recipe
from branchwise.text.conditions import Condition
from branchwise.threads import cached_property
from branchwise.train.train import between_bins, in_bins
from branchwise.tree.splits import Splits
from branchwise.tree.tree import Tree

#: Weights this close, relative to the larger, are equal.
_SAME_WEIGHT = 1e-9


@dataclass(frozen=True)
class Rows:
    """The rows of a tree, ready to be counted down, and the tree in their terms."""

    engine: MemoryEngine
    #: How much the engine's unit of weight is.
    unit: float
    edges: Edges
    #: The tree of the model, with thresholds of binned columns as numbers of bins.
    tree: Tree

    @classmethod
    def of(cls, training: Training, tree: Tree, recipe: Recipe) -> Rows:
        """Make encoded rows ready as growing does."""
        grid = training.grid(recipe)
        training, edges = in_bins(training, grid, recipe)
        return cls(training.engine(grid), grid.unit, edges, between_bins(tree, edges))


@dataclass(frozen=True)
class Visit:
    """Nodes of one level, and what the search would do with those that may be split."""

    nodes: Ints
    level: Level
    stop: Ints
    search: Search
    found: Verdicts
    splits: Splits
    unit: float
    #: The columns of the schema: those of the search have ranks as numbers.
    columns: Sequence[Column]

    @property
    def weight_in_leaf(self) -> float:
        """The least weight of a branch, as the user's weights are."""
        return self.search.weight_in_leaf * self.unit

    @cached_property
    def _first(self) -> tuple[list[int], list[int]]:
        """The first branch of each node, and the first code of each branch."""
        branch = np.concatenate([[0], np.cumsum(self.splits.n_branches)])
        code = np.concatenate([[0], np.cumsum(self.splits.n_codes)])
        return branch.tolist(), code.tolist()

    def codes_of_branches(self, at: int) -> list[list[int]]:
        """Return the codes that lead down each branch of the split of a row."""
        branch, code = self._first
        return [
            self.splits.codes[code[b] : code[b + 1]].tolist()
            for b in range(branch[at], branch[at + 1])
        ]


def visits(
    rows: Rows, training: Training, recipe: Recipe, wanted: NDArray[np.bool_]
) -> Iterator[Visit]:
    """Walk the rows to the wanted nodes, and yield these level by level."""
    tree, engine = rows.tree, rows.engine
    on_way = _on_the_way(tree, wanted)
    # How many nodes before each are on the path: more than none among its children?
    upto = np.concatenate([[0], np.cumsum(on_way)])
    level = engine.totals()
    impurity_sums_at = impurity_sums_of(level, engine, recipe)
    weight = weight_of(level, impurity_sums_at)
    n_cases = cases_of(level, weight, recipe)
    nodes = np.zeros(1, dtype=np.intp)
    depth = 0
    while True:
        _check_other_rows(level, tree, nodes, rows)
        kept = np.flatnonzero(on_way[nodes] & (level.cases > 0))
        engine.retain(kept)
        nodes = nodes[kept]
        level = Level(level.weights[kept], level.cases[kept])
        impurity_sums = impurity_sums_at(level)
        if wanted[nodes].any():
            stop = stops(level, depth, recipe, n_cases, impurity_sums)
            columns = training.columns
            source, searched = ranked(engine, columns, recipe)
            search = Search(
                source, searched, level, recipe, impurity_sums, n_cases, weight
            )
            found = verdicts(search)
            splits = carried_out(search, found)
            if searched is not columns:
                splits = splits_in_codes(splits, columns)
            yield Visit(nodes, level, stop, search, found, splits, rows.unit, columns)
        first = tree.first_child[nodes]
        open_nodes = np.flatnonzero(upto[first + tree.n_children[nodes]] > upto[first])
        engine.retain(open_nodes)
        if not len(open_nodes):
            return
        splits, nodes = prescribed_splits(
            engine, training.columns, tree, nodes[open_nodes], new_values=False
        )
        level = engine.advance(splits)
        depth += 1


def _on_the_way(tree: Tree, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes are wanted or lead to a wanted one."""
    marked = wanted.copy()
    front = np.flatnonzero(wanted)
    while len(front):
        above = np.unique(tree.parent[front])
        front = above[(above >= 0) & ~marked[above]]
        marked[front] = True
    return marked


def _check_other_rows(level: Level, tree: Tree, nodes: Ints, rows: Rows) -> None:
    scale = rows.engine.scale
    counted = level.weights if scale is None else level.weights[:, :1]
    wanted = tree.weights[nodes]
    same = np.allclose(counted * rows.unit, wanted, rtol=_SAME_WEIGHT, atol=0.0)
    if same and tree.mean is not None and scale is not None:
        off = np.abs(scale.means(level.weights) - tree.mean[nodes])
        close = math.ldexp(_SAME_WEIGHT, scale.unit)
        same = bool((off[counted[:, 0] > 0] <= close).all())
    if not same:
        raise DataError(
            "X and y must be the rows that the tree was grown from, with their "
            "sample_weight (class weights and priors multiply it), for the worked "
            "solution shows what decided. These rows give other counts; leave out rows "
            "that were set aside for pruning."
        )


#: Why a column is excluded.
Out = Literal[
    "no value",
    "one value",
    "few cases in a branch",
    "light branch",
    "few large branches",
    "few missing",
    "no grouping",
    "no threshold",
    "no information",
    "average",
    "min_gain",
    "p-value",
    "no score",
]
#: Why a node is a leaf.
Ending = Literal[
    "no cases",
    "pure",
    "max_depth",
    "few cases",
    "no candidate",
    "p-value",
    "pruned",
]


@dataclass(frozen=True)
class Group:
    """Some of the cases of a node: all of them, those of a value, of a branch.

    ``weights`` are by class, in class order; where numbers are predicted there are
    none, but a ``mean``. ``cases`` is how many cases there are, whatever they weigh.
    """

    condition: Condition | None
    weights: tuple[float, ...]
    weight: float
    cases: float
    impurity: float | None
    mean: float | None = None


@dataclass(frozen=True)
class Threshold:
    """A threshold that was tried: its gain before any penalty.

    Of ordered categories it is the last one up to it.
    """

    threshold: Value
    left: float
    right: float
    gain: float
    score: float


@dataclass(frozen=True)
class Candidate:
    """The best split of one column at a node; what is None or empty does not apply.

    ``values`` are the cases of each value (none for numbers), ``branches`` those of the
    best split, ``known`` all that the branches share out, ``missing`` those of missing
    values that no branch counts; ``joined`` is the branch that counts them where that
    was learnt. ``remainder`` is the impurity left in the branches, ``raw_gain`` what
    the split gains before the ``penalty`` for the choice among C4.5's thresholds, or
    among groups of many values, ``gain`` what counts, and ``score`` what decides;
    ``split_information`` belongs to the gain ratio.

    Of numbers: a threshold could lie at so many ``positions``, ``n_thresholds`` of them
    were admissible, with ``least_on_a_side`` cases on each side; ``thresholds`` lists
    them unless they are very many, ``equal_thresholds`` are as good as the best one.

    ``out`` says why the column is excluded, ``tied`` that its score equals the best,
    ``gains_nothing`` that its gain is no more than what rounding may do.
    """

    column: str
    numeric: bool
    values: tuple[Group, ...] = ()
    branches: tuple[Group, ...] = ()
    missing: Group | None = None
    joined: int | None = None
    known: Group | None = None
    remainder: float | None = None
    raw_gain: float | None = None
    penalty: float | None = None
    gain: float | None = None
    score: float | None = None
    split_information: float | None = None
    positions: int = 0
    n_thresholds: int = 0
    least_on_a_side: float | None = None
    thresholds: tuple[Threshold, ...] = ()
    equal_thresholds: int = 0
    threshold: Value | None = None
    out: Out | None = None
    tied: bool = False
    gains_nothing: bool = False


@dataclass(frozen=True)
class PValue:
    """The p-value of the best split, adjusted for multiple comparisons (Bonferroni).

    ``total`` is the ``probability`` of the split alone times the ``ways`` (thresholds
    or groupings) it was chosen from times the ``candidates`` (columns).
    """

    probability: float
    ways: float
    candidates: int
    total: float
    limit: float


@dataclass(frozen=True)
class Child:
    """A branch of the tree: where it leads, and what is there.

    ``column`` is what the child splits on; a leaf has an ``ending`` instead.
    """

    node: int
    condition: Condition
    prediction: str
    cases: float
    column: str | None
    ending: Ending | None


@dataclass(frozen=True)
class Bars:
    """What a recipe demands of splits, and whether some case weighs other than 1."""

    recipe: Recipe
    cases_to_split: float
    cases_in_leaf: float
    cases_in_branch: float
    weighted: bool

    @property
    def criterion(self) -> str:
        """The name of the criterion."""
        return self.recipe.criterion_name

    @property
    def own_criterion(self) -> bool:
        """Whether the criterion is a function of the user's."""
        return callable(self.recipe.criterion)


@dataclass(frozen=True)
class NodeRows:
    """The first rows of a node in words, and how many there are."""

    head: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True)
class CriterionScores:
    """What a criterion says of each column of a node, and which one it chooses."""

    criterion: str
    scores: dict[str, float | None]
    chosen: str | None


@dataclass(frozen=True)
class NodeSteps:
    """How one node was worked out.

    ``path`` has the last 100 conditions that lead there, ``whole`` all its cases,
    ``prediction`` what it predicts in words. ``candidates`` are all columns, unless the
    node was not searched; ``average`` is the gain that they must have (but for 0.001),
    the mean over the columns ``averaged``, which leaves out those with very many
    values. ``chosen`` is the column that the search chooses, ``column`` the one that
    the tree splits on (None at a leaf), ``as_chosen`` whether the tree does what the
    search says, ``ending`` why the node is a leaf. ``absent`` are possible values
    without a case here, which have no branch; ``missing_goes`` says where missing cases
    go that have none. ``rows`` are its rows, ``by_criterion`` scores by other criteria,
    where these were requested.
    """

    node: int
    depth: int
    path: tuple[Condition, ...]
    whole: Group
    prediction: str
    candidates: tuple[Candidate, ...] = ()
    average: float | None = None
    averaged: tuple[str, ...] = ()
    p_value: PValue | None = None
    chosen: str | None = None
    column: str | None = None
    as_chosen: bool = False
    ending: Ending | None = None
    children: tuple[Child, ...] = ()
    absent: tuple[Value, ...] = ()
    missing_goes: str | None = None
    rows: NodeRows | None = None
    by_criterion: tuple[CriterionScores, ...] = ()

    def candidate(self, column: str) -> Candidate:
        """Return the candidate of a column."""
        return next(c for c in self.candidates if c.column == column)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self, dict_factory=_without_columns)


def _without_columns(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    # Conditions know their columns for the sake of words only.
    return {name: value for name, value in fields if name != "of"}


def why_out(candidate: Candidate, visit: Visit, at: int, index: int) -> Out | None:
    """Return why a column is excluded at the node of a row; None where it is not."""
    found = visit.found
    if found.scores[at, index] > -np.inf:
        return None
    if found.found[at, index] > -np.inf:
        if not np.isnan(found.log_p[at, index]):
            return "p-value"
        low = not found.gains[at, index] >= found.average[at] - AVERAGE_SLACK
        return "average" if visit.search.recipe.average_gain and low else "min_gain"
    if candidate.numeric:
        return _numbers_out(candidate, visit)
    return _values_out(candidate, visit)


def _values_out(candidate: Candidate, visit: Visit) -> Out:
    search = visit.search
    branches = list(candidate.values)
    if search.recipe.missing == "branch" and candidate.missing is not None:
        branches.append(candidate.missing)
    if not candidate.values:
        return "no value"
    if len(branches) < 2:
        return "one value"
    if search.recipe.branching != "values":
        return "no grouping"
    as_weights = search.recipe.weights_are_cases
    cases = [group.weight if as_weights else group.cases for group in branches]
    if min(cases) < search.cases_in_leaf:
        return "few cases in a branch"
    if min(group.weight for group in branches) < visit.weight_in_leaf:
        return "light branch"
    large = sum(count >= search.cases_in_branch for count in cases)
    return "few large branches" if large < 2 else "no score"


def _numbers_out(candidate: Candidate, visit: Visit) -> Out:
    recipe = visit.search.recipe
    if candidate.known is None or not candidate.known.cases:
        return "no value"
    if candidate.n_thresholds:
        if recipe.quinlan_thresholds:
            return "no information"
        return "min_gain" if recipe.min_gain else "no score"
    missing = candidate.missing
    own_branch = recipe.missing == "branch" and missing is not None
    if own_branch and missing is not None:
        cases = missing.weight if recipe.weights_are_cases else missing.cases
        if cases < visit.search.cases_in_leaf or missing.weight < visit.weight_in_leaf:
            return "few missing"
    return "no threshold" if candidate.positions else "one value"
