"""The query of a tree: cases joined with a table of predictions by node."""

from __future__ import annotations

from typing import NamedTuple

from branchwise.export.plan import Plan
from branchwise.export.sql_cases import Cases, Names, Wording, ends_at, outputs_of
from branchwise.files.sql_dialects import Dialect


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
