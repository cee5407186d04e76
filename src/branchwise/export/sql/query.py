"""Export to SQL: a query that adds predictions to a table, or an expression to paste.

The query finds the node where a row ends with CASE expressions, and joins the
predictions of the nodes. For trees with fractional cases it computes the weight of a
case at every node, and sums weighted predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from branchwise.data.arrays import TIE
from branchwise.data.schema import Value, ValueType
from branchwise.errors import ExportError
from branchwise.export.base import Options, Target
from branchwise.export.code_writer import comment
from branchwise.export.plan import EVERY_BRANCH, STOP, Node, Plan
from branchwise.export.sql.cases import (
    Cases,
    Names,
    Wording,
    ends_at,
    sizes_and_depth,
)
from branchwise.export.sql.runners import runners
from branchwise.files.sql_dialects import DIALECTS, Dialect

#: Ends and splits of one step: engines limit terms (1,000) and columns (1,664).
_MOST_ENDS = 300
_MOST_SPLITS = 900
#: Splits on all paths to all ends: every case computes all of them.
_MOST_FACTORS = 300_000


#: What is compared in the place of missing values.
_NOTHING: dict[ValueType, Value] = {"text": "", "number": 0.0, "boolean": False}


@dataclass(frozen=True)
class _End:
    """A node where cases end, and the (node, branch) pairs on the way there."""

    position: int
    way: tuple[tuple[int, int], ...]


def fractional_query(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the lines of the query."""
    query = _Query(plan, dialect, names)
    query.cases()
    for block in _blocks(plan):
        query.add(block)
    query.write_prediction()
    return query.lines()


def _blocks(plan: Plan) -> list[list[_End]]:
    """Group the ends so that no step has too many, or reject the tree."""
    blocks: list[list[_End]] = [[]]
    tested: set[int] = set()
    factors = 0
    for end in _ends(plan):
        own = {node for node, _ in end.way}
        factors += len(end.way)
        if len(own) > _MOST_SPLITS or factors > _MOST_FACTORS:
            raise ExportError(
                "SQL cannot carry this tree: it divides cases with missing or unseen "
                f"values among branches, and its paths have more than {_MOST_SPLITS} "
                f"splits, or together more than {_MOST_FACTORS:,}. Prune the tree, "
                "fit it with missing='largest' and unseen='largest', or export it to "
                "another target."
            )
        if len(blocks[-1]) == _MOST_ENDS or len(tested | own) > _MOST_SPLITS:
            blocks.append([])
            tested = set()
        blocks[-1].append(end)
        tested |= own
    return blocks


def _ends(plan: Plan) -> list[_End]:
    """Return the ends in the order of their positions."""
    ways: list[tuple[tuple[int, int], ...]] = [()] * len(plan.nodes)
    ends = []
    for position, node in enumerate(plan.nodes):
        way, ways[position] = ways[position], ()
        if node.split is not None:
            for branch in range(len(node.split.branches)):
                ways[node.child(branch)] = (*way, (position, branch))
        if ends_at(plan, position):
            stop = () if node.split is None else ((position, STOP),)
            ends.append(_End(position, way + stop))
    return ends


class _Query:
    """Collects the steps, each a table that the next one reads."""

    def __init__(self, plan: Plan, dialect: Dialect, names: Names) -> None:
        self._plan = plan
        self._dialect = dialect
        self._names = names
        self._wording = Wording(plan, dialect, names.carried)
        self._steps: list[str] = []
        self._last = names.table
        self._one, self._nothing = dialect.number(1.0), dialect.number(0.0)
        #: Sums so far: the probability of every class, or the number.
        self._sums = names.probabilities or [names.prediction]
        #: The label of a case that is not fractional.
        self._whole = names.new("label of the whole")
        self._started = False

    def _step(self, name: str, select: Sequence[str], rest: Sequence[str] = ()) -> None:
        """Add a step that reads the last one."""
        table = self._names.new(name)
        columns = ",\n    ".join(select)
        # Without it, engines put the expressions of a step wherever the next ones
        # use its columns, again and again. Cases are distinct anyhow.
        distinct = "DISTINCT " if self._dialect.keep == "AS" or not self._steps else ""
        lines = [f"  SELECT {distinct}{columns}", f"  FROM {self._last}", *rest]
        body = "\n".join(lines)
        self._steps.append(f"{table} {self._dialect.keep} (\n{body}\n)")
        self._last = table

    def cases(self) -> None:
        """Select the distinct cases that have a prediction."""
        names = self._names
        select = [
            f"{column} AS {name}"
            for column, name in zip(names.compared, names.carried, strict=True)
        ]
        rejected = Wording(self._plan, self._dialect, names.compared).rejected()
        where = []
        if rejected:
            where = [f"  WHERE CASE WHEN {' OR '.join(rejected)} THEN 0 ELSE 1 END = 1"]
        self._step("cases", select, where)

    @property
    def _kept(self) -> list[str]:
        """What every step hands on."""
        if not self._started:
            return [*self._names.carried]
        label = [] if self._plan.is_regression else [self._whole]
        return [*self._names.carried, *self._sums, *label]

    def add(self, ends: Sequence[_End]) -> None:
        """Add what the cases have at some ends to the sums."""
        tested = sorted({node for end in ends for node, _ in end.way})
        outcome = {node: self._names.new(f"reply {node}") for node in tested}
        self._step(
            "replies",
            [*self._kept, *(f"{self._branch(n)} AS {outcome[n]}" for n in tested)],
        )
        share = {end.position: self._names.new(f"share {end.position}") for end in ends}
        shares = [
            f"{self._share(end, outcome)} AS {share[end.position]}" for end in ends
        ]
        fractional = [end for end in ends if self._looks_whole(end)]
        flag = {
            end.position: self._names.new(f"whole {end.position}") for end in fractional
        }
        flags = [
            f"{self._is_fractional(e, outcome)} AS {flag[e.position]}"
            for e in fractional
        ]
        self._step("shares", [*self._kept, *shares, *flags])
        sums = [
            f"{self._sum(code, ends, share)} AS {name}"
            for code, name in enumerate(self._sums)
        ]
        label = []
        if not self._plan.is_regression:
            label = [f"{self._label(ends, share, flag)} AS {self._whole}"]
        self._step("sums", [*self._names.carried, *sums, *label])
        self._started = True

    def _branch(self, position: int) -> str:
        split = self._plan.nodes[position].split
        return "" if split is None else self._wording.branch(split)

    def _share(self, end: _End, outcome: dict[int, str]) -> str:
        """Return the product of the shares that the splits on a path give a case."""
        factors = [
            self._factor(node, branch, outcome[node]) for node, branch in end.way
        ]
        return " * ".join(factors) or self._one

    def _factor(self, position: int, branch: int, outcome: str) -> str:
        split = self._plan.nodes[position].split
        piece = ""
        if split is not None and split.divides and branch != STOP:
            given = self._dialect.number(split.shares[branch])
            piece = f" WHEN {EVERY_BRANCH} THEN {given}"
        return (
            f"CASE {outcome} WHEN {branch} THEN {self._one}{piece} "
            f"ELSE {self._nothing} END"
        )

    def _looks_whole(self, end: _End) -> bool:
        """Tell whether a fractional case may have all of its weight at one end."""
        return any(self._all_weight(node, branch) for node, branch in end.way)

    def _all_weight(self, position: int, branch: int) -> bool:
        split = self._plan.nodes[position].split
        return (
            split is not None
            and split.divides
            and branch != STOP
            and split.shares[branch] == 1.0
        )

    def _is_fractional(self, end: _End, outcome: dict[int, str]) -> str:
        """Return 1 where a fractional case has all its weight at one end."""
        tests = [
            f"{outcome[node]} = {EVERY_BRANCH}"
            for node, branch in end.way
            if self._all_weight(node, branch)
        ]
        return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END"

    def _sum(self, code: int, ends: Sequence[_End], share: dict[int, str]) -> str:
        """Return the sum so far plus the terms of these ends, without those of 0."""
        terms = [self._sums[code]] if self._started else [self._nothing]
        for end in ends:
            amount = _amount(self._plan.nodes[end.position], code)
            if amount:
                written = self._dialect.number(amount)
                terms.append(f"({written}) * {share[end.position]}")
        return " + ".join(terms)

    def _label(
        self, ends: Sequence[_End], share: dict[int, str], flag: dict[int, str]
    ) -> str:
        """Return the label of the end that a case has come to as a whole."""
        tests = []
        for end in ends:
            test = f"{share[end.position]} = {self._one}"
            if end.position in flag:
                test += f" AND {flag[end.position]} = 0"
            label = self._plan.classes[self._plan.nodes[end.position].label]
            tests.append(f"WHEN {test} THEN {self._dialect.value(label)}")
        before = self._whole if self._started else "NULL"
        return f"CASE {' '.join(tests)} ELSE {before} END"

    def write_prediction(self) -> None:
        """Find the labels of fractional cases."""
        if self._plan.is_regression:
            return
        scores = self._sums
        if self._plan.costs is not None:
            scores = [self._names.new(f"score {a}") for a in range(len(self._sums))]
            self._step(
                "scores",
                [
                    *self._kept,
                    *(f"{self._cost(a)} AS {name}" for a, name in enumerate(scores)),
                ],
            )
        best = self._names.new("best")
        handed_on = list(dict.fromkeys([*self._kept, *scores]))
        self._step("best of all", [*handed_on, f"{self._greatest(scores)} AS {best}"])
        least = f"{best} - ABS({best}) * ({self._dialect.number(TIE)})"
        labels = [self._dialect.value(label) for label in self._plan.classes]
        tests = [
            f"WHEN {score} >= {least} THEN {label}"
            for score, label in zip(scores[:-1], labels, strict=False)
        ]
        first = f"WHEN {self._whole} IS NOT NULL THEN {self._whole}"
        label = f"CASE {' '.join([first, *tests])} ELSE {labels[-1]} END"
        columns = [*self._names.carried, f"{label} AS {self._names.prediction}"]
        self._step("answers", [*columns, *self._sums])

    def _cost(self, write_prediction: int) -> str:
        costs = self._plan.costs or ()
        terms = [self._nothing]
        for probability, row in zip(self._sums, costs, strict=True):
            terms.append(
                f"{probability} * ({self._dialect.number(row[write_prediction])})"
            )
        return f"-({' + '.join(terms)})"

    def _greatest(self, scores: Sequence[str]) -> str:
        if len(scores) == 1:
            return scores[0]
        if self._dialect.greatest is not None:
            return f"{self._dialect.greatest}({', '.join(scores)})"
        tests = []
        for index, score in enumerate(scores[:-1]):
            wins = " AND ".join(f"{score} >= {other}" for other in scores[index + 1 :])
            tests.append(f"WHEN {wins} THEN {score}")
        return f"CASE {' '.join(tests)} ELSE {scores[-1]} END"

    def lines(self) -> list[str]:
        """Return the whole query."""
        names = self._names
        outputs = [
            f"{self._last}.{o}" for o in (names.prediction, *names.probabilities)
        ]
        same = [
            self._dialect.same.format(
                column,
                f"{self._last}.{name}",
                self._dialect.value(_NOTHING[field.kind]),
            )
            for field, column, name in zip(
                self._plan.fields, names.compared, names.carried, strict=True
            )
        ]
        return [
            "WITH " + ",\n".join(self._steps),
            f"SELECT {names.table}.*,",
            f"  {', '.join(outputs)}",
            f"FROM {names.table}",
            f"LEFT JOIN {self._last} ON " + "\n  AND ".join(same),
        ]


def _amount(node: Node, code: int) -> float:
    """Return the number of an end, or its probability of a class."""
    return node.probabilities[code] if node.number is None else node.number


def write(plan: Plan, options: Options) -> bytes:
    """Write the query, or the expression."""
    dialect = DIALECTS[options["dialect"]]
    _check_deep(plan, dialect)
    names = Names(plan, dialect, options["table"])
    if options["form"] == "expression":
        lines = _expression(plan, dialect, names)
    elif plan.divides:
        lines = [*_head(plan), *fractional_query(plan, dialect, names)]
    else:
        lines = [*_head(plan), *_query(plan, dialect, names)]
    return ("\n".join(lines) + "\n").encode()


def _check_deep(plan: Plan, dialect: Dialect) -> None:
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
    lines = cases.lines(0, "", rejected=wording.rejected())
    if cases.postponed:
        raise ExportError(
            f"form='expression' cannot carry this tree of {len(plan.nodes):,} nodes: "
            "its CASE expressions would be nested more deeply than database engines "
            "read. Use form='query', or prune the tree."
        )
    return lines


def _query(plan: Plan, dialect: Dialect, names: Names) -> list[str]:
    """Return the query of a tree that sends every case down one way."""
    predictions, node = names.new("answers"), names.new("node")
    outputs = [names.prediction, *names.probabilities]
    joins, passed = _joins(plan, dialect, names, predictions, node)
    ends = sorted({*passed, *(p for p in range(len(plan.nodes)) if ends_at(plan, p))})
    return [
        f"WITH {predictions} ({', '.join([node, *outputs])}) AS (",
        "  VALUES",
        ",\n".join(
            f"    ({_prediction(plan, dialect, position)})" for position in ends
        ),
        ")",
        f"SELECT {names.table}.*,",
        "  " + ", ".join(f"{predictions}.{output}" for output in outputs),
        f"FROM {names.table}",
        *joins,
    ]


def _joins(
    plan: Plan, dialect: Dialect, names: Names, predictions: str, node: str
) -> tuple[list[str], list[int]]:
    """Return the joins that find the prediction, and the stations.

    Stations are nodes where one step leaves a case to the next.
    """
    wording = Wording(plan, dialect, names.compared)
    cases = Cases(plan, wording)
    body = cases.lines(0, "  ", rejected=wording.rejected())
    joins: list[str] = []
    passed: list[int] = []
    while cases.postponed:
        stations, cases.postponed = cases.postponed, []
        passed += stations
        step = names.new("step")
        joins += [f"LEFT JOIN {predictions} AS {step} ON {step}.{node} =", *body]
        body = [f"  CASE {step}.{node}"]
        for station in stations:
            body += cases.lines(station, "    ", f"WHEN {station} THEN ")
        body += [f"    ELSE {step}.{node}", "  END"]
    return [*joins, f"LEFT JOIN {predictions} ON {predictions}.{node} =", *body], passed


def _prediction(plan: Plan, dialect: Dialect, position: int) -> str:
    node = plan.nodes[position]
    if node.number is not None:
        return f"{position}, {dialect.number(node.number)}"
    label = dialect.value(plan.classes[node.label])
    probabilities = [dialect.number(probability) for probability in node.probabilities]
    return ", ".join([str(position), label, *probabilities])


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
