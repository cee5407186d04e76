"""Export to SQL: a query that adds the answers to a table, or an expression to paste.

The query finds the node where a row ends with CASE expressions, and joins the answers
of the nodes. Where cases are divided, ``sql_shares.py`` has the query.
"""

from __future__ import annotations

from functools import partial

from branchwise.errors import ExportError
from branchwise.export.plan import Plan
from branchwise.export.spelling import comment
from branchwise.export.sql_case import Cases, sizes_and_depth
from branchwise.export.sql_conditions import Wording, ends_at
from branchwise.export.sql_dialects import DIALECTS, Dialect
from branchwise.export.sql_names import Names
from branchwise.export.sql_runners import runners
from branchwise.export.sql_shares import divided_query
from branchwise.export.target import Options, Target


def write(plan: Plan, options: Options) -> bytes:
    """Write the query, or the expression."""
    dialect = DIALECTS[options["dialect"]]
    _refuse_deep(plan, dialect)
    names = Names(plan, dialect, options["table"])
    if options["form"] == "expression":
        lines = _expression(plan, dialect, names)
    elif plan.divides:
        lines = [*_head(plan), *divided_query(plan, dialect, names)]
    else:
        lines = [*_head(plan), *_query(plan, dialect, names)]
    return ("\n".join(lines) + "\n").encode()


def _refuse_deep(plan: Plan, dialect: Dialect) -> None:
    _, depth = sizes_and_depth(plan)
    if dialect.most_levels is not None and depth > dialect.most_levels:
        raise ExportError(
            f"The dialect {dialect.name!r} bears trees of at most "
            f"{dialect.most_levels} levels, and this one has {depth:,}. Prune the "
            "tree, fit it with a smaller max_depth, or choose another dialect."
        )


def _head(plan: Plan) -> list[str]:
    return [f"-- {comment(plan.about)}, written by branchwise."]


def _expression(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the label, or the number, as one expression."""
    if plan.divides:
        raise ExportError(
            "form='expression' cannot carry this tree: it divides cases with missing "
            "or unseen values among branches, and no single CASE expression adds the "
            "parts up. Use form='query'."
        )

    def end(position: int) -> str:
        node = plan.nodes[position]
        if node.number is not None:
            return dialect.number(node.number)
        return dialect.value(plan.classes[node.label])

    wording = Wording(plan, dialect, names.compared)
    cases = Cases(plan, wording, end)
    lines = cases.lines(0, "", refused=wording.refused())
    if cases.postponed:
        raise ExportError(
            f"form='expression' cannot carry this tree of {len(plan.nodes):,} nodes: "
            "its CASE expressions would be nested more deeply than database engines "
            "read. Use form='query', or prune the tree."
        )
    return lines


def _query(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the query of a tree that sends every case down one way."""
    answers, node = names.new("answers"), names.new("node")
    outputs = [names.prediction, *names.chances]
    joins, passed = _joins(plan, dialect, names, answers, node)
    ends = sorted({*passed, *(p for p in range(len(plan.nodes)) if ends_at(plan, p))})
    return [
        f"WITH {answers} ({', '.join([node, *outputs])}) AS (",
        "  VALUES",
        ",\n".join(f"    ({_answer(plan, dialect, position)})" for position in ends),
        ")",
        f"SELECT {names.table}.*,",
        "  " + ", ".join(f"{answers}.{output}" for output in outputs),
        f"FROM {names.table}",
        *joins,
    ]


def _joins(
    plan: Plan, dialect: Dialect, names: Names, answers: str, node: str
) -> tuple[list[str], list[int]]:
    """Return the joins that find the answer, and the stations.

    Stations are nodes where one step leaves a case to the next.
    """
    wording = Wording(plan, dialect, names.compared)
    cases = Cases(plan, wording)
    body = cases.lines(0, "  ", refused=wording.refused())
    joins: list[str] = []
    passed: list[int] = []
    while cases.postponed:
        stations, cases.postponed = cases.postponed, []
        passed += stations
        step = names.new("step")
        joins += [f"LEFT JOIN {answers} AS {step} ON {step}.{node} =", *body]
        body = [f"  CASE {step}.{node}"]
        for station in stations:
            body += cases.lines(station, "    ", f"WHEN {station} THEN ")
        body += [f"    ELSE {step}.{node}", "  END"]
    return [*joins, f"LEFT JOIN {answers} ON {answers}.{node} =", *body], passed


def _answer(plan: Plan, dialect: Dialect, position: int) -> str:
    node = plan.nodes[position]
    if node.number is not None:
        return f"{position}, {dialect.number(node.number)}"
    label = dialect.value(plan.classes[node.label])
    chances = [dialect.number(chance) for chance in node.chances]
    return ", ".join([str(position), label, *chances])


TARGET = Target(
    "sql",
    ".sql",
    write,
    partial(runners, write),
    {
        "dialect": tuple(DIALECTS),
        "table": ("rows",),
        "form": ("query", "expression"),
    },
)
