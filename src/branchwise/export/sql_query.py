"""SQL queries of trees and ensembles: cases joined with a table of predictions by node.

The query of an ensemble joins the table once for each tree. Trees are added up in their
order, some of them in each step: engines limit how many tables a query joins (SQLite:
64).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from branchwise.errors import ExportError
from branchwise.export.plan import Plan
from branchwise.export.sql_cases import Cases, Names, Wording, ends_at, outputs_of
from branchwise.files.sql_dialects import Dialect

#: Joins of one step.
_MOST_JOINS = 20
#: Trees of an ensemble: engines limit the steps of a query.
_MOST_TREES = 200


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


class Step(NamedTuple):
    """A step of the query: its name, and what it selects."""

    name: str
    text: str


class EnsembleSteps(NamedTuple):
    """The table of the nodes' predictions, and the steps that add them up.

    ``outputs`` are the columns of the sums: those of predictions, unless there is a
    link between the two.
    """

    table: str
    values: str
    sums: list[Step]
    outputs: list[str]


def ensemble_steps(
    plan: Plan, dialect: Dialect, names: Names, cases: str
) -> EnsembleSteps:
    """Return the steps from the distinct cases to the averages or sums of trees."""
    _check(plan)
    lookup = Lookup(names.new("predictions"), names.new("node"))
    outputs = names.probabilities or [names.prediction]
    if plan.link is not None:
        outputs = [names.new(f"margin {at + 1}") for at in range(plan.n_sums)]
    waiting = deque(zip(plan.roots, plan.trees, strict=True))
    adding = _Adding(plan, dialect, names, lookup, outputs)
    sums: list[Step] = []
    last = cases
    while waiting:
        sums.append(adding.step(last, waiting, is_first=not sums))
        last = sums[-1].name
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
    values = f"({columns}) AS (\n  VALUES\n{rows}\n)"
    return EnsembleSteps(lookup.table, values, sums, outputs)


def _check(plan: Plan) -> None:
    """Reject ensembles that no query holds."""
    if plan.divides:
        raise ExportError(
            "SQL cannot carry this ensemble: its trees divide cases with missing or "
            "unseen values among branches, which would take thousands of steps. Fit it "
            "with missing='largest' and unseen='largest', or export it to another "
            "target."
        )
    if len(plan.trees) > _MOST_TREES:
        raise ExportError(
            f"SQL cannot carry this ensemble of {len(plan.trees):,} trees: a query "
            f"joins at most {_MOST_TREES} of them. Export it to another target."
        )


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

    def step(self, last: str, waiting: deque[tuple[int, Plan]], is_first: bool) -> Step:
        """Return the step that adds the next trees to the sums of the last step."""
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
            added = self._finished(added)
        values = zip(columns + added, self._names.carried + self._outputs, strict=True)
        selected = ",\n    ".join(f"{value} AS {name}" for value, name in values)
        # Else engines join the tables of all steps at once, and there are too many.
        distinct = "DISTINCT " if self._dialect.keep == "AS" else ""
        lines = [f"  SELECT {distinct}{selected}", f"  FROM {last}", *joins]
        return Step(self._names.new("sums"), "\n".join(lines))

    def _finished(self, totals: list[str]) -> list[str]:
        """Return the sums over the divisor, or with what is added to them."""
        number = self._dialect.number
        if not self._plan.initial:
            divisor = number(self._plan.divisor or 1.0)
            if self._plan.weights:  # may be written as a quotient
                divisor = f"({divisor})"
            return [f"({total}) / {divisor}" for total in totals]
        pairs = zip(totals, self._plan.initial, strict=True)
        return [f"{total} + ({number(start)})" for total, start in pairs]

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
