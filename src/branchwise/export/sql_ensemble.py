"""SQL queries of ensembles: a table of all nodes, joined once for each tree.

Trees are added up in their order, some of them in each step: engines limit how many
tables a query joins (SQLite: 64).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from branchwise.errors import ExportError
from branchwise.export.plan import Node, Plan
from branchwise.export.sql_cases import Cases, Names, Wording, ends_at
from branchwise.export.sql_query import Lookup, joins_of
from branchwise.files.sql_dialects import Dialect

#: Joins of one step.
_MOST_JOINS = 20
#: Trees of an ensemble: engines limit the steps of a query.
_MOST_TREES = 200


class Step(NamedTuple):
    """A step of the query: its name, and what it selects."""

    name: str
    text: str


class EnsembleSteps(NamedTuple):
    """The table of the nodes' predictions, and the steps that add them up."""

    table: str
    values: str
    sums: list[Step]


def ensemble_steps(
    plan: Plan, dialect: Dialect, names: Names, cases: str
) -> EnsembleSteps:
    """Return the steps from the distinct cases to the averages over trees."""
    _check(plan)
    lookup = Lookup(names.new("predictions"), names.new("node"))
    waiting = deque(zip(plan.roots, plan.trees, strict=True))
    adding = _Adding(plan, dialect, names, lookup)
    sums: list[Step] = []
    last = cases
    while waiting:
        sums.append(adding.step(last, waiting, is_first=not sums))
        last = sums[-1].name
    columns = ", ".join([lookup.node, *adding.outputs])
    rows = ",\n".join(
        f"    ({', '.join([str(at), *_contribution(plan, plan.nodes[at], dialect)])})"
        for at in sorted(adding.ends)
    )
    return EnsembleSteps(lookup.table, f"({columns}) AS (\n  VALUES\n{rows}\n)", sums)


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
        self, plan: Plan, dialect: Dialect, names: Names, lookup: Lookup
    ) -> None:
        self._n_trees = len(plan.trees)
        self._dialect = dialect
        self._names = names
        self._lookup = lookup
        self.outputs = names.probabilities or [names.prediction]
        self.ends: set[int] = set()

    def step(self, last: str, waiting: deque[tuple[int, Plan]], is_first: bool) -> Step:
        """Return the step that adds the next trees to the sums of the last step."""
        columns = [f"{last}.{column}" for column in self._names.carried]
        tables = [] if is_first else [last]
        joins: list[str] = []
        n_joins = 0
        while waiting and n_joins < _MOST_JOINS:
            root, tree = waiting.popleft()
            alias = self._names.new(f"tree {self._n_trees - len(waiting)}")
            lines = self._joins(columns, root, tree, alias)
            n_joins += sum(line.startswith("LEFT JOIN") for line in lines)
            joins += lines
            tables.append(alias)
        added = [" + ".join(f"{t}.{out}" for t in tables) for out in self.outputs]
        if not waiting:
            count = self._dialect.number(float(self._n_trees))
            added = [f"({total}) / {count}" for total in added]
        values = zip(columns + added, self._names.carried + self.outputs, strict=True)
        selected = ",\n    ".join(f"{value} AS {name}" for value, name in values)
        # Else engines join the tables of all steps at once, and there are too many.
        distinct = "DISTINCT " if self._dialect.keep == "AS" else ""
        lines = [f"  SELECT {distinct}{selected}", f"  FROM {last}", *joins]
        return Step(self._names.new("sums"), "\n".join(lines))

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


def _contribution(plan: Plan, node: Node, dialect: Dialect) -> list[str]:
    """Write what a node adds to the sums: probabilities, a vote, or a number."""
    if node.number is not None:
        return [dialect.number(node.number)]
    shares = node.probabilities
    if plan.votes:
        shares = tuple(float(code == node.label) for code in range(len(plan.classes)))
    return [dialect.number(share) for share in shares]
