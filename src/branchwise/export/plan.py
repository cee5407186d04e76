"""The plan of an export: the tree as plain objects, and as a table of states.

A plan is made once from schema, tree and recipe, and every export is written from it
alone. All policies are resolved: a node has for each value, for a missing and for an
unseen one the branch that is taken, or says that the case stops, or that it goes down
every branch with a share of its weight. An export follows these rules.

1. A row has a value or nothing (missing) for each of ``Plan.inputs``. If
   ``rejects_missing`` and one of them is missing, or ``rejects_unseen`` and one of
   them is not among the field's ``values``, there is no prediction. The fields behind
   them are derived from the dates of an input (``feature``), and missing if these are.
2. From the root, a case at an inner node takes the branch ``PlanSplit.branch_of``;
   STOP ends it there. For a missing value the surrogates are evaluated first, in turn.
   A case that goes down EVERY_BRANCH is fractional: its share is the product of the
   shares on its path, multiplied in the order of the path, starting from 1.
3. A case that arrives at one node has that node's ``label`` and ``probabilities``, or
   ``number``.
4. A fractional case has for every class the sum of probability times share over its
   nodes, and its number is the sum of number times share, in ascending order of the
   nodes' positions, starting from 0. Its label is the first class whose probability is
   within a relative 1e-9 of the highest. With costs, minus the expected cost decides,
   added class by class from 0.
5. In an ensemble, the trees are added up in their order, starting from 0: their
   probabilities, votes (1 for the label of a tree, 0 for other classes) or numbers,
   times the tree's weight where there are ``weights``. The sums over ``divisor`` are
   the prediction. Gradient boosting has ``initial`` instead, one number for each sum:
   tree i adds its number to sum i modulo their number, ``initial`` is added to the
   sums, and the ``link`` makes predictions of them. The label is chosen as in 4, of
   votes without costs.

:mod:`branchwise.export.state_table` turns a plan into states with one outcome for each
code, for exports that look up tables.

All arithmetic is that of IEEE 754 binary64, without fused operations. So an export
that follows the rules gives the same bits as the model does; but for a link with
exponentials, which every platform rounds in its own way (:data:`LINK_TOLERANCE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from itertools import accumulate
from typing import Literal

import numpy as np

from branchwise.data.arrays import Floats, added_in_order
from branchwise.data.conventions.date_features import OF_TIMES, DateFeature
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.table_schema import MISSING, Column, Schema, Value, ValueType
from branchwise.errors import counted
from branchwise.recipe import Recipe
from branchwise.recipe.ensemble_recipe import EnsembleRecipe, Method
from branchwise.text.label_words import NO_UNIT, Unit, target_unit
from branchwise.text.labels import class_called, labels_in_words
from branchwise.threads import cached_property
from branchwise.tree.apply import node_probabilities
from branchwise.tree.splits import EVERY_BRANCH, Splits
from branchwise.tree.tree import Tree

Cell = Value | None
Row = tuple[Cell, ...]
#: What makes predictions of sums: e to the power of a sum; the probability of the
#: second of two classes, 1 / (1 + exp(-sum)); or exponentials over their sum. To be
#: computed without overflow, of -|sum| and of the sums less the largest of them.
Link = Literal["exp", "logistic", "softmax"]
#: The relative difference that platforms may have after a link, and the number below
#: which they need not tell results from 0.
LINK_TOLERANCE, LINK_ZERO = 1e-12, 1e-300


#: What an ensemble is called.
_KINDS: dict[Method, str] = {
    "forest": "Forest",
    "boosted": "Boosting",
    "gradient": "Gradient boosting",
    "rules": "Rules",
}


@dataclass(frozen=True)
class Field:
    """A column that the tree splits on, or from whose dates one is derived.

    ``column`` is its position in the schema (-1 if it is not there), ``kind`` the
    family of its values.
    ``values`` are the values of the training rows, in the order of their codes; none
    for a number that is compared with thresholds (``numeric``). ``number_format`` is
    how the numbers of the training rows were written, unless plainly; ``date`` tells
    which dates the numbers are, if they are dates. ``feature`` is how the numbers are
    derived from the dates of the field at ``source``, if they are derived.
    ``schema_column`` is the column of the schema, for conditions in words.
    """

    name: str
    column: int
    kind: ValueType
    numeric: bool
    values: tuple[Value, ...]
    number_format: NumberFormat | None = None
    date: DateFormat | None = None
    feature: DateFeature | None = None
    source: int = -1
    schema_column: Column | None = dataclass_field(
        default=None, compare=False, repr=False
    )


@dataclass(frozen=True)
class PlanSplit:
    """The split of a node, and the branch of every value.

    ``branches`` has for each branch the codes that lead there: positions in the
    field's ``values``, or for a numeric field AT_MOST (up to ``threshold``) and
    ABOVE. If a numeric field has no threshold, only whether the number is known
    matters: every number is AT_MOST. A known value without a branch stops; a branch
    without codes is that of missing values. ``shares`` are the weights of a fractional
    case. ``surrogates`` are splits that replace this one for a missing value, each if
    those before it have no outcome (their outcomes are branches 0 and 1, or STOP).
    """

    field: int
    threshold: float | None
    branches: tuple[tuple[int, ...], ...]
    missing_to: int
    unseen_to: int
    shares: tuple[float, ...]
    surrogates: tuple[PlanSplit, ...] = ()

    @cached_property
    def branch_of(self) -> dict[int, int]:
        """Code -> branch; a code that is not there stops."""
        return {code: b for b, codes in enumerate(self.branches) for code in codes}

    @property
    def divides(self) -> bool:
        """Whether a case may go down every branch."""
        return EVERY_BRANCH in (self.missing_to, self.unseen_to)


@dataclass(frozen=True)
class Node:
    """A node: its split (None for a leaf), its children, and its prediction."""

    split: PlanSplit | None
    first_child: int
    label: int
    probabilities: tuple[float, ...]
    number: float | None

    def child(self, branch: int) -> int:
        """Return the position of the node that a branch leads to."""
        return self.first_child + branch


@dataclass(frozen=True)
class Plan:
    """A tree, or an ensemble, to be exported: see the module's docstring for its rules.

    ``classes`` is empty where numbers are predicted. ``about`` says in a line of
    printable characters what the tree is. The plan of an ensemble has the plan of each
    tree, with the same fields, in ``trees``, and the nodes of all of them one after the
    other in ``nodes``; ``votes`` says that trees contribute classes only. ``weights``,
    ``divisor``, ``initial`` and ``link`` are those of rule 5, where it has them.
    ``class_words`` is what the classes are called by their labels; ``unit`` is that of
    predicted numbers. ``na_values`` are the texts that are missing where numbers are
    written as texts. Of ``fields`` the derived ones are the last. Each tree of a rule
    set is a rule that votes: one of its nodes has a number, the others 0.
    """

    target: str
    about: str
    fields: tuple[Field, ...]
    classes: tuple[Value, ...]
    nodes: tuple[Node, ...]
    rejects_missing: bool
    rejects_unseen: bool
    costs: tuple[tuple[float, ...], ...] | None
    trees: tuple[Plan, ...] = ()
    votes: bool = False
    weights: tuple[float, ...] = ()
    divisor: float | None = None
    initial: tuple[float, ...] = ()
    link: Link | None = None
    class_words: tuple[Value, ...] = dataclass_field(
        default=(), compare=False, repr=False
    )
    unit: Unit = dataclass_field(default=NO_UNIT, compare=False, repr=False)
    na_values: tuple[str, ...] = MISSING
    is_rule_set: bool = False

    @cached_property
    def inputs(self) -> tuple[Field, ...]:
        """The fields whose values are given, in the order of rows."""
        return tuple(field for field in self.fields if field.feature is None)

    @property
    def derived(self) -> tuple[Field, ...]:
        """The fields that are derived from dates of the inputs."""
        return self.fields[len(self.inputs) :]

    @property
    def is_regression(self) -> bool:
        """Whether the predictions are numbers, not classes."""
        return not self.classes

    @property
    def has_numbers(self) -> bool:
        """Whether nodes have numbers: in regression and gradient boosting."""
        return self.nodes[0].number is not None

    @property
    def n_sums(self) -> int:
        """The number of sums over trees: one for each class, or a single one."""
        return len(self.initial) or max(1, len(self.classes))

    def added(self, tree: int, node: Node) -> tuple[float, ...]:
        """Return what a node of a tree adds to each sum, its weight included."""
        if self.initial:
            sums = [0.0] * self.n_sums
            sums[tree % self.n_sums] = node.number or 0.0
            return tuple(sums)
        if node.number is not None:
            return (node.number,)
        if not self.votes:
            return node.probabilities
        weight = self.weights[tree] if self.weights else 1.0
        return tuple(weight * (k == node.label) for k in range(len(self.classes)))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The positions of the roots: one for each tree."""
        return (0, *accumulate(len(tree.nodes) for tree in self.trees[:-1]))

    @cached_property
    def divides(self) -> bool:
        """Whether a case may arrive at several nodes."""
        return any(n.split is not None and n.split.divides for n in self.nodes)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The parent of every node; -1 for the root."""
        parents = [-1] * len(self.nodes)
        for position, node in enumerate(self.nodes):
            if node.split is not None:
                for branch in range(len(node.split.branches)):
                    parents[node.child(branch)] = position
        return tuple(parents)

    @cached_property
    def depths(self) -> list[int]:
        """The number of splits above every node."""
        depths = [-1] * len(self.nodes)
        for node, parent in enumerate(self.parents):
            depths[node] = 0 if parent < 0 else depths[parent] + 1
        return depths

    def split_of(self, position: int) -> PlanSplit:
        """Return the split of a node that is no leaf."""
        split = self.nodes[position].split
        if split is None:
            raise TypeError(f"node {position} is a leaf")
        return split

    def n_codes(self, split: PlanSplit) -> int:
        """Return how many codes a known value may have at a split."""
        field = self.fields[split.field]
        if not field.numeric:
            return len(field.values)
        return 1 if split.threshold is None else 2


def make_plan(
    schema: Schema, tree: Tree, recipe: Recipe, used: Sequence[int] | None = None
) -> Plan:
    """Make the plan of a model; ``used`` are the columns of its fields."""
    fields = _fields(schema, tree.used_columns if used is None else used)
    field_of = {field.column: position for position, field in enumerate(fields)}
    return Plan(
        schema.target if schema.target is not None else "prediction",
        _about(schema, tree, recipe),
        fields,
        schema.classes,
        _nodes(tree, recipe, field_of),
        recipe.missing == "error",
        recipe.unseen == "error",
        recipe.costs,
        class_words=_class_words(schema),
        unit=target_unit(schema),
        na_values=schema.na_values or MISSING,
    )


def make_ensemble_plan(
    schema: Schema,
    trees: Sequence[Tree],
    recipe: EnsembleRecipe,
    tree_weights: Floats | None = None,
    initial: Floats | None = None,
) -> Plan:
    """Make the plan of an ensemble; its fields are the columns that any tree uses."""
    used = sorted({int(column) for tree in trees for column in tree.used_columns})
    of_trees = replace(schema, classes=()) if recipe.tree.is_regression else schema
    plans = tuple(make_plan(of_trees, tree, recipe.tree, used) for tree in trees)
    target = "" if schema.target is None else f" for {schema.target!a}"
    n_leaves = sum(tree.n_leaves for tree in trees)
    about = (
        f"{_KINDS[recipe.method]} of "
        f"{counted(len(trees), f'{recipe.tree.algorithm} tree')}"
        f"{target} with {counted(n_leaves, 'leaf', 'leaves')}"
    )
    if recipe.method == "rules":
        rules = counted(sum(len(tree) > 1 for tree in trees), "rule")
        about = f"A set of {rules} that vote{target}"
    whole = replace(
        plans[0],
        classes=schema.classes,
        about=_with_labels(about, schema),
        trees=plans,
        class_words=_class_words(schema),
        unit=target_unit(schema),
        votes=recipe.voting == "hard",
        is_rule_set=recipe.method == "rules",
    )
    if initial is not None:
        link = _link(recipe, len(schema.classes))
        whole = replace(whole, initial=tuple(initial.tolist()), link=link)
    elif tree_weights is not None:
        weights = tuple(tree_weights.tolist())
        divisor = added_in_order(tree_weights)
        whole = replace(whole, weights=weights, divisor=divisor)
    else:
        whole = replace(whole, divisor=float(len(trees)))
    nodes = (
        replace(node, first_child=node.first_child + root)
        for root, plan in zip(whole.roots, plans, strict=True)
        for node in plan.nodes
    )
    return replace(whole, nodes=tuple(nodes))


def _class_words(schema: Schema) -> tuple[Value, ...]:
    return tuple(class_called(schema, label) for label in schema.classes)


def _link(recipe: EnsembleRecipe, n_classes: int) -> Link | None:
    if recipe.loss == "log_loss":
        return "logistic" if n_classes == 2 else "softmax"
    return "exp" if recipe.loss == "poisson" else None


def _about(schema: Schema, tree: Tree, recipe: Recipe) -> str:
    """Return a line about the tree, and what labels call its columns."""
    return _with_labels(_kind_and_size(schema, tree, recipe), schema)


def _with_labels(about: str, schema: Schema) -> str:
    labels = labels_in_words(schema)
    return f"{about}; {labels}" if labels else about


def _kind_and_size(schema: Schema, tree: Tree, recipe: Recipe) -> str:
    target = "" if schema.target is None else f" for {schema.target!a}"
    leaves = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves:,} leaves"
    return f"{recipe.algorithm} decision tree{target} with {leaves}"


def _fields(schema: Schema, used: Sequence[int]) -> tuple[Field, ...]:
    """Return the columns in use, and the dates that some of them are derived from."""
    columns = schema.columns
    given = [_field(columns[at], at) for at in used if columns[at].date_feature is None]
    position = {field.name: at for at, field in enumerate(given)}
    derived = []
    for at in used:
        feature = columns[at].date_feature
        if feature is None:
            continue
        if feature.of not in position:
            position[feature.of] = len(given)
            given.append(_dates(schema, feature.of, used))
        field = _field(columns[at], at)
        derived.append(replace(field, feature=feature, source=position[feature.of]))
    return (*given, *derived)


def _dates(schema: Schema, name: str, used: Sequence[int]) -> Field:
    """Return a column of dates that the tree does not split on itself."""
    names = schema.names
    at = names.index(name) if name in names else -1
    if at >= 0 and schema.columns[at].date is not None:
        return _field(schema.columns[at], at)
    columns = [schema.columns[index] for index in used]
    features = [c.date_feature for c in columns if c.given_as == name]
    how = next(each.date for each in features if each is not None)
    timed = how.zoned or any(each and each.feature in OF_TIMES for each in features)
    how = replace(how, unit="minute" if timed else "day")
    return _field(Column(name, "numeric", (), True, number_format=how), -1)


def _field(column: Column, index: int) -> Field:
    how = column.number_format
    return Field(
        column.name,
        index,
        column.value_type or "text",
        column.is_numeric,
        column.categories,
        how if isinstance(how, NumberFormat) else None,
        column.date,
        schema_column=column,
    )


def _nodes(tree: Tree, recipe: Recipe, field_of: dict[int, int]) -> tuple[Node, ...]:
    plan_splits = _splits(tree.splits, field_of)
    surrogates: list[PlanSplit | None] = []
    first = [0] * (len(tree) + 1)
    if tree.surrogates is not None:
        surrogates = _splits(tree.surrogates.splits, field_of)
        first = tree.surrogates.first.tolist()
    for node, split in enumerate(plan_splits):
        if split is not None and first[node] < first[node + 1]:
            mine = [q for q in surrogates[first[node] : first[node + 1]] if q]
            plan_splits[node] = replace(split, surrogates=tuple(mine))
    probabilities: list[tuple[float, ...]] = [()] * len(tree)
    if tree.mean is None:
        rows = node_probabilities(tree, recipe).tolist()
        probabilities = [tuple(row) for row in rows]
    numbers = [None] * len(tree) if tree.mean is None else tree.mean.tolist()
    labels = [0] * len(tree) if tree.mean is not None else tree.label.tolist()
    pieces = (plan_splits, tree.first_child.tolist(), labels, probabilities, numbers)
    return tuple(Node(*of_node) for of_node in zip(*pieces, strict=True))


def _splits(splits: Splits, field_of: dict[int, int]) -> list[PlanSplit | None]:
    """Return the split of every node, None for leaves."""
    codes = iter(np.split(splits.codes, np.cumsum(splits.n_codes)[:-1]))
    sizes = iter(splits.sizes.tolist())
    plan_splits: list[PlanSplit | None] = []
    for column, threshold, width, missing_to, unseen_to in zip(
        splits.column.tolist(),
        splits.threshold.tolist(),
        splits.n_branches.tolist(),
        splits.missing_to.tolist(),
        splits.unseen_to.tolist(),
        strict=True,
    ):
        if column < 0:
            plan_splits.append(None)
            continue
        branches = tuple(tuple(next(codes).tolist()) for _ in range(width))
        mine = np.array([next(sizes) for _ in range(width)])
        # As Router.every_branch has it: reduceat adds from left to right.
        whole = float(np.add.reduceat(mine, [0])[0])
        shares = tuple((mine / whole).tolist()) if whole else (0.0,) * width
        threshold = None if np.isnan(threshold) else threshold
        plan_splits.append(
            PlanSplit(
                field_of[column], threshold, branches, missing_to, unseen_to, shares
            )
        )
    return plan_splits
