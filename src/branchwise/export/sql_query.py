"""SQL queries of trees and ensembles: cases joined with a table of predictions by node.

The query of an ensemble joins the table once for each tree. Trees are added up in their
order, some of them in each step: engines limit how many tables a query joins (SQLite:
64). Trees that divide cases are not joined: steps compute the share of a case at every
end of a tree, and add up what the ends predict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError
from branchwise.export.plan import Plan
from branchwise.export.sql_cases import (
    Cases,
    End,
    Names,
    Wording,
    blocks_of_ends,
    ends_at,
    outputs_of,
)
from branchwise.files.sql_dialects import Dialect
from branchwise.text.as_html import macros
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: Joins of one step.
_MOST_JOINS = 20
#: Trees of an ensemble: engines limit the steps of a query.
_MOST_TREES = 200
#: Trees that divide cases: each takes several steps.
_MOST_DIVIDING = 50


def query(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the query of a tree that sends every case down one way."""
    predictions, node = names.new("answers"), names.new("node")
    outputs = [names.prediction, *names.probabilities]
    wording = Wording(plan, dialect, names.compared)
    cases = Cases(plan, wording)
    body = cases.lines(0, "  ", rejected=wording.rejected())
    joins, passed = joins_of(cases, body, names, Lookup(predictions, node))
    ends = sorted({*passed, *(p for p in range(len(plan.nodes)) if ends_at(plan, p))})
    return [
        f"WITH {predictions} ({', '.join([node, *outputs])}) AS (",
        "  VALUES",
        ",\n".join(
            f"    ({', '.join([str(end), *outputs_of(plan, dialect, end)])})"
            for end in ends
        ),
        ")",
        f"SELECT {names.table}.*,",
        "  " + ", ".join(f"{predictions}.{output}" for output in outputs),
        f"FROM {names.table}",
        *joins,
    ]


class Lookup(NamedTuple):
    """The table of predictions by node, and what it is called where it is joined.

    ``root`` is what numbers of nodes begin with.
    """

    table: str
    node: str
    alias: str = ""
    root: int = 0


def joins_of(
    cases: Cases, body: list[str], names: Names, lookup: Lookup
) -> tuple[list[str], list[int]]:
    """Return the joins that find the prediction, and the stations.

    ``body`` is the CASE of the root. Stations are nodes where one step leaves a case to
    the next.
    """
    predictions, node, alias, root = lookup
    joins: list[str] = []
    passed: list[int] = []
    while cases.postponed:
        stations, cases.postponed = cases.postponed, []
        passed += stations
        step = names.new("step")
        joins += [f"LEFT JOIN {predictions} AS {step} ON {step}.{node} =", *body]
        body = [f"  CASE {step}.{node}"]
        for station in stations:
            body += cases.lines(station, "    ", f"WHEN {root + station} THEN ")
        body += [f"    ELSE {step}.{node}", "  END"]
    named = f"{predictions} AS {alias}" if alias else predictions
    join = f"LEFT JOIN {named} ON {alias or predictions}.{node} ="
    return [*joins, join, *body], passed


class Sums(NamedTuple):
    """Steps that add up what ends or trees predict, as text, and the last one's name.

    ``outputs`` are the columns of the sums: those of predictions, unless there is a
    link between the two. ``table`` is what the query begins with.
    """

    text: str
    last: str
    outputs: list[str]
    table: str = ""


def sums_of_ends(
    plan: Plan, dialect: Dialect, names: Names, cases: str, whole: str
) -> Sums:
    """Return the steps that add up the ends of a tree that divides cases.

    ``whole`` is the column for the label of a case that arrives undivided.
    """
    outputs = names.probabilities or [names.prediction]
    wholes = [] if plan.is_regression else [whole]
    columns = _Columns(names.carried, outputs, wholes)
    text, last = _shares(plan, dialect, names, cases, columns)
    return Sums(text, last, outputs)


class _Columns(NamedTuple):
    """Columns of steps: those kept, the sums, and the label of undivided cases."""

    carried: list[str]
    sums: list[str]
    whole: list[str]


def _shares(
    plan: Plan, dialect: Dialect, names: Names, last: str, columns: _Columns
) -> tuple[str, str]:
    """Return steps that add up the ends of a tree, and the name of the last one."""
    blocks = [_block(plan, ends, names.new) for ends in blocks_of_ends(plan)]
    constants = {"STOP": STOP, "EVERY_BRANCH": EVERY_BRANCH}
    written = {"dialect": dialect, "distinct": _distinct(dialect)} | constants
    wording = Wording(plan, dialect, names.carried)
    given: dict[str, Any] = {
        "plan": plan,
        "wording": wording,
        "blocks": blocks,
        "last": last,
    }
    text = macros(
        "export/templates/shares.sql", **given, **written, **columns._asdict()
    )
    return str(text).strip(), blocks[-1]["sums"]


def _block(
    plan: Plan, ends: Sequence[End], new: Callable[[str], str]
) -> dict[str, Any]:
    """Name what the steps of some ends compute: branches, shares and sums."""

    def all_weight(position: int, branch: int) -> bool:
        """Tell whether a fractional case goes down one branch with all its weight."""
        split = plan.split_of(position)
        return split.divides and branch != STOP and split.shares[branch] == 1.0

    # A fractional case may have all of its weight at one of these ends.
    undivided = {
        end.position: [step for step in end.way if all_weight(*step)] for end in ends
    }
    tested = sorted({node for end in ends for node, _ in end.way})
    return {
        "ends": ends,
        "undivided": undivided,
        "outcome": {node: new(f"reply {node}") for node in tested},
        "outcomes": new("replies"),
        "share": {end.position: new(f"share {end.position}") for end in ends},
        "whole": {at: new(f"whole {at}") for at, way in undivided.items() if way},
        "shares": new("shares"),
        "sums": new("sums"),
    }


def _distinct(dialect: Dialect) -> str:
    """Return what makes an engine compute a step before the next one."""
    return "DISTINCT " if dialect.keep == "AS" else ""


def _step(dialect: Dialect, name: str, last: str, columns: Sequence[str]) -> str:
    """Write a step that selects columns of the last one."""
    selected = _distinct(dialect) + ",\n    ".join(columns)
    lines = [f",\n{name} {dialect.keep} (", f"  SELECT {selected}", f"  FROM {last}"]
    return "\n".join([*lines, ")"])


def greatest(dialect: Dialect, scores: Sequence[str]) -> str:
    """Write the greatest of some columns."""
    if len(scores) == 1:
        return scores[0]
    if dialect.greatest is not None:
        return f"{dialect.greatest}({', '.join(scores)})"
    cases = (
        f"WHEN {' AND '.join(f'{score} >= {other}' for other in scores[at:])} "
        f"THEN {score} "
        for at, score in enumerate(scores[:-1], 1)
    )
    return f"CASE {''.join(cases)}ELSE {scores[-1]} END"


def expected_cost(
    dialect: Dialect, costs: Sequence[Sequence[float]], sums: list[str], code: int
) -> str:
    """Write minus the expected cost of predicting a class."""
    number = dialect.number
    terms = zip(sums, costs, strict=True)
    cost = "".join(f" + {total} * ({number(row[code])})" for total, row in terms)
    return f"-({number(0.0)}{cost})"


def first_best(
    dialect: Dialect,
    scores: Sequence[str],
    best: str,
    labels: Sequence[str],
    whole: str = "",
) -> str:
    """Write the first label whose score is as good as the best one.

    Where the column ``whole`` is given, and not NULL, it has the label.
    """
    slack = f"{best} - ABS({best}) * ({dialect.number(TIE)})"
    pairs = zip(scores[:-1], labels[:-1], strict=True)
    cases = [f" WHEN {score} >= {slack} THEN {label}" for score, label in pairs]
    if whole:
        cases.insert(0, f" WHEN {whole} IS NOT NULL THEN {whole}")
    return f"CASE{''.join(cases)} ELSE {labels[-1]} END" if cases else labels[-1]


def sums_of_trees(
    plan: Plan, dialect: Dialect, names: Names, cases: str, whole: str
) -> Sums:
    """Return the steps from the distinct cases to the averages or sums of trees."""
    outputs = names.probabilities or [names.prediction]
    if plan.link is not None:
        outputs = [names.new(f"margin {at + 1}") for at in range(plan.n_sums)]
    _check(plan)
    if plan.divides:
        return _DividingTrees(plan, dialect, names, outputs, whole).sums(cases)
    lookup = Lookup(names.new("predictions"), names.new("node"))
    waiting = deque(zip(plan.roots, plan.trees, strict=True))
    adding = _Adding(plan, dialect, names, lookup, outputs)
    steps: list[str] = []
    last = cases
    while waiting:
        name, text = adding.step(last, waiting, is_first=not steps)
        steps.append(f",\n{name} {dialect.keep} (\n{text}\n)")
        last = name
    columns = ", ".join([lookup.node, *outputs])
    added = (
        (root + at, plan.added(tree, node))
        for tree, (root, its) in enumerate(zip(plan.roots, plan.trees, strict=True))
        for at, node in enumerate(its.nodes)
    )
    rows = ",\n".join(
        f"    ({', '.join([str(at), *map(dialect.number, numbers)])})"
        for at, numbers in added
        if at in adding.ends
    )
    table = f"{lookup.table} ({columns}) AS (\n  VALUES\n{rows}\n),\n"
    return Sums("".join(steps), last, outputs, table)


def _check(plan: Plan) -> None:
    """Reject ensembles that no query holds."""
    n_trees = len(plan.trees)
    if plan.divides and n_trees > _MOST_DIVIDING:
        raise ExportError(
            f"SQL cannot carry this ensemble of {n_trees:,} trees: they divide cases "
            "with missing or unseen values among branches, which takes several steps "
            f"for each tree, and a query holds at most {_MOST_DIVIDING} of them. Fit "
            "it with missing='largest' and unseen='largest', fit fewer trees, or "
            "export it to another target."
        )
    if n_trees > _MOST_TREES:
        raise ExportError(
            f"SQL cannot carry this ensemble of {n_trees:,} trees: a query "
            f"joins at most {_MOST_TREES} of them. Fit fewer trees, or export it to "
            "another target."
        )


def _finished(plan: Plan, dialect: Dialect, totals: list[str]) -> list[str]:
    """Return the sums over the divisor, or with what is added to them."""
    number = dialect.number
    if not plan.initial:
        divisor = number(plan.divisor or 1.0)
        if plan.weights:  # may be written as a quotient
            divisor = f"({divisor})"
        return [f"({total}) / {divisor}" for total in totals]
    pairs = zip(totals, plan.initial, strict=True)
    return [f"{total} + ({number(start)})" for total, start in pairs]


class _DividingTrees:
    """Writes steps that add up trees of which some divide cases, one after another."""

    def __init__(
        self,
        plan: Plan,
        dialect: Dialect,
        names: Names,
        outputs: list[str],
        whole: str,
    ) -> None:
        self._plan = plan
        self._dialect = dialect
        self._names = names
        self._outputs = outputs
        self._whole = whole
        n_own = max(1, len(plan.trees[0].classes))
        self._own = [names.new(f"own {at + 1}") for at in range(n_own)]
        self._scores = self._own
        if plan.votes:
            self._best, self._vote = names.new("best of tree"), names.new("vote")
            if plan.costs is not None:
                self._scores = [names.new(f"score of {own}") for own in range(n_own)]

    def sums(self, last: str) -> Sums:
        """Return the steps of all trees."""
        texts = []
        for at, tree in enumerate(self._plan.trees):
            kept = [*self._names.carried, *(self._outputs if at else [])]
            text, last = self._of_tree(tree, last, kept)
            texts.append(text)
            if self._plan.votes:
                text, last = self._of_vote(tree, last, kept)
                texts.append(text)
            name = self._names.new("sums of trees")
            texts.append(_step(self._dialect, name, last, self._added(at)))
            last = name
        return Sums("".join(texts), last, self._outputs)

    def _of_tree(self, tree: Plan, last: str, kept: list[str]) -> tuple[str, str]:
        # A vote is the code of a class.
        coded = replace(tree, classes=tuple(range(len(tree.classes))))
        whole = [self._whole] if self._plan.votes else []
        columns = _Columns(kept, self._own, whole)
        return _shares(coded, self._dialect, self._names, last, columns)

    def _of_vote(self, tree: Plan, last: str, kept: list[str]) -> tuple[str, str]:
        """Return the steps that find the class that a tree votes for."""
        dialect, new = self._dialect, self._names.new
        text, kept_too = "", [*kept, self._whole]
        if tree.costs is not None:
            costs = [
                f"{expected_cost(dialect, tree.costs, self._own, code)} AS {score}"
                for code, score in enumerate(self._scores)
            ]
            name = new("scores of tree")
            text += _step(dialect, name, last, [*kept_too, *costs])
            last = name
        best = f"{greatest(dialect, self._scores)} AS {self._best}"
        name = new("best of trees")
        text += _step(dialect, name, last, [*kept_too, *self._scores, best])
        codes = [str(code) for code in range(len(self._scores))]
        vote = first_best(dialect, self._scores, self._best, codes, self._whole)
        voted = new("votes")
        text += _step(dialect, voted, name, [*kept, f"{vote} AS {self._vote}"])
        return text, voted

    def _added(self, tree: int) -> list[str]:
        """Return the columns of the sums after a tree."""
        plan, number = self._plan, self._dialect.number
        totals = list(self._outputs) if tree else [number(0.0)] * len(self._outputs)
        for at in range(len(totals)):
            added = self._own[at if len(self._own) > 1 else 0]
            if plan.votes:
                weight = number(plan.weights[tree] if plan.weights else 1.0)
                otherwise = number(0.0)
                added = (
                    f"CASE {self._vote} WHEN {at} THEN {weight} ELSE {otherwise} END"
                )
            if not plan.has_numbers or at == tree % plan.n_sums:
                totals[at] = f"{totals[at]} + {added}"
        if tree + 1 == len(plan.trees):
            totals = _finished(plan, self._dialect, totals)
        pairs = zip(totals, self._outputs, strict=True)
        return [*self._names.carried, *(f"{total} AS {out}" for total, out in pairs)]


class _Adding:
    """Writes steps that add up trees; ``ends`` are the nodes that they look up."""

    def __init__(
        self,
        plan: Plan,
        dialect: Dialect,
        names: Names,
        lookup: Lookup,
        outputs: list[str],
    ) -> None:
        self._plan = plan
        self._dialect = dialect
        self._names = names
        self._lookup = lookup
        self._outputs = outputs
        self.ends: set[int] = set()

    def step(
        self, last: str, waiting: deque[tuple[int, Plan]], is_first: bool
    ) -> tuple[str, str]:
        """Return name and text of the step that adds the next trees to those so far."""
        columns = [f"{last}.{column}" for column in self._names.carried]
        tables = [] if is_first else [last]
        joins: list[str] = []
        n_joins = 0
        while waiting and n_joins < _MOST_JOINS:
            root, tree = waiting.popleft()
            alias = self._names.new(f"tree {len(self._plan.trees) - len(waiting)}")
            lines = self._joins(columns, root, tree, alias)
            n_joins += sum(line.startswith("LEFT JOIN") for line in lines)
            joins += lines
            tables.append(alias)
        added = [" + ".join(f"{t}.{out}" for t in tables) for out in self._outputs]
        if not waiting:
            added = _finished(self._plan, self._dialect, added)
        values = zip(columns + added, self._names.carried + self._outputs, strict=True)
        selected = ",\n    ".join(f"{value} AS {name}" for value, name in values)
        # Else engines join the tables of all steps at once, and there are too many.
        distinct = _distinct(self._dialect)
        lines = [f"  SELECT {distinct}{selected}", f"  FROM {last}", *joins]
        return self._names.new("sums"), "\n".join(lines)

    def _joins(
        self, columns: list[str], root: int, tree: Plan, alias: str
    ) -> list[str]:
        """Return the joins that look up what a tree contributes."""
        cases = Cases(
            tree,
            Wording(tree, self._dialect, columns),
            lambda position: str(root + position),
        )
        body = cases.lines(0, "  ")
        lookup = self._lookup._replace(alias=alias, root=root)
        joins, passed = joins_of(cases, body, self._names, lookup)
        ends = (at for at in range(len(tree.nodes)) if ends_at(tree, at))
        self.ends.update(root + at for at in (*passed, *ends))
        return joins
