"""Engine of databases: rows are counted by SQL, in the database.

A level of the tree is one query, however many nodes it has: rows are moved down the
tree by joins with the routes of its nodes and counted by GROUP BY. Nothing is written,
unless temporary tables are allowed: then rows are stored as codes, with the node they
are in, and every level continues from the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.target import Scale
from branchwise.engines.level_engine import branch_totals, of_nodes
from branchwise.engines.sql.connections import (
    Arrays,
    Binder,
    TooManyValues,
    coalesced,
)
from branchwise.engines.sql.queries import Writer
from branchwise.engines.sql.routes import (
    MOST_JOINED_LEVELS,
    Step,
    TooDeep,
    in_nodes,
    renumbering,
    step_of,
)
from branchwise.errors import DataError
from branchwise.grow.counts import Counts, Rows, tally
from branchwise.grow.protocol import Level, class_cases
from branchwise.tree.splits import Splits
from branchwise.tree.tree import Tree

#: The most columns that one query counts: databases limit the length of statements.
COLUMNS_A_QUERY = 300


#: The most rows of a result, as far as they can be estimated.
LONGEST_RESULT = 20_000_000


#: A pseudo-column with one value, whose counts are the totals.
WHOLE = -1


def changed(label: str) -> DataError:
    """Return the error of a table that changed between two queries."""
    return DataError(
        f"The rows of {label} changed while they were read: two queries disagree. Read "
        "a table that does not change and is no random sample, or copy the rows first."
    )


@dataclass(frozen=True)
class Groups:
    """The number of nodes and classes that are counted.

    Without classes weights of all classes are counted, or in regression the moments of
    a scale. With ``by_cases`` cases are counted in place of weights.
    """

    n_nodes: int
    n_classes: int | None
    scale: Scale | None = None
    by_cases: bool = False

    @property
    def width(self) -> int:
        """The number of keys of a node; the first is for unseen labels."""
        return 2 if self.n_classes is None else self.n_classes + 1


@dataclass(frozen=True)
class Span:
    """The keys of a column: from ``first`` on, so many for every node and class."""

    column: int
    first: int
    width: int
    by_number: bool

    @property
    def key(self) -> str:
        """The name of the key."""
        return "whole" if self.column == WHOLE else f"k{self.column}"

    @property
    def number(self) -> str:
        """The name of the number, where rows are counted by it."""
        return f"x{self.column}"

    @property
    def code(self) -> str:
        """The expression for the code, or for the number."""
        return "0" if self.column == WHOLE else f"a{self.column}"


class Counting:
    """A query for the counts of some columns."""

    def __init__(self, writer: Writer, groups: Groups, columns: Sequence[int]) -> None:
        self._writer = writer
        self._groups = groups
        self._spans: list[Span] = []
        first = 0
        for column in columns or (WHOLE,):
            by_number = column != WHOLE and writer.by_number[column]
            # One more at both ends: values that are new, or unseen.
            width = 1 if by_number else self._n_codes(column) + 2
            self._spans.append(Span(column, first, width, by_number))
            first += groups.n_nodes * groups.width * width

    def _n_codes(self, column: int) -> int:
        return 1 if column == WHOLE else self._writer.n_codes[column]

    def statement(self, steps: str, rows: str, binder: Binder) -> str:
        """Return the query."""
        return self._writer.rendered(
            "counts.sql",
            binder,
            steps=steps,
            rows=rows,
            groups=self._groups,
            spans=self._spans,
            sums=self._sums(),
            coalesced=coalesced,
        )

    def kinds(self) -> str:
        """Return the types of the columns of the result."""
        return "if" + "f" * len(self._sums())

    def _sums(self) -> list[str]:
        """Return the sums of the result: cases, then weights or moments."""
        scale = self._groups.scale
        sums = ["SUM(cases)" if self._writer.has_case else "COUNT(*)"]
        if scale is not None or self._writer.has_weight:
            sums.append("SUM(weight)")
        if scale is not None:
            sums += [f"SUM(total{at})" for at in range(len(scale.sums))]
            sums += [f"SUM(square{at})" for at in range(len(scale.squares))]
        return sums

    def read(self, result: Arrays, label: str) -> dict[int, Counts]:
        """Return the counts of the columns."""
        key, number, *amounts = result
        order = np.argsort(key, kind="stable")
        key, number = key[order], number[order]
        amounts = [amount[order] for amount in amounts]
        per_column = self._groups.n_nodes * self._groups.width
        counts = {}
        for span in self._spans:
            end = span.first + per_column * span.width
            begin, stop = np.searchsorted(key, [span.first, end])
            piece = slice(int(begin), int(stop))
            counts[span.column] = self._column(
                span,
                key[piece] - span.first,
                number[piece],
                [amount[piece] for amount in amounts],
                label,
            )
        return counts

    def _column(
        self, span: Span, key: Ints, number: Floats, amounts: Arrays, label: str
    ) -> Counts:
        if span.by_number:
            group = key
            code = self._code_of_number(span.column, number, label)
        else:
            group, code = np.divmod(key, span.width)
            code -= 1
        node, slot = np.divmod(group, self._groups.width)
        n_codes = self._n_codes(span.column) + 1  # with unseen values
        if ((slot == 0) | (code < 0)).any():
            raise changed(label)
        cases, groups = amounts[0], self._groups
        rows = Rows(node, slot - 1, cases if groups.by_cases else amounts[-1], cases)
        if groups.scale is not None:
            rows = replace(rows, moments=np.stack(amounts[1:], axis=1))
        return tally(rows, code, groups.n_nodes, n_codes, groups.width - 1)

    def _code_of_number(self, column: int, number: Floats, label: str) -> Ints:
        values = self._writer.plan.values[column]
        gone = np.isnan(number)
        if not len(values):
            if not gone.all():
                raise changed(label)
            return np.zeros(len(number), dtype=np.intp)
        at = np.minimum(np.searchsorted(values, number), len(values) - 1)
        if (values[at] != number)[~gone].any():
            raise changed(label)
        return np.where(gone, len(values), at).astype(np.intp)


def by_branch(counts: Counts, splits: Splits) -> Counts:
    """Arrange the counts of branches in a row of their node."""
    first = np.cumsum(splits.n_branches) - splits.n_branches
    parent = np.repeat(np.arange(len(splits.n_branches)), splits.n_branches)
    node = parent[counts.node]
    branch = counts.node - first[node]
    rows = Rows(node, branch, counts.weights[:, 0], counts.cases)
    n_codes = int(counts.code.max(initial=0)) + 1
    n_branches = int(splits.n_branches.max(initial=0))
    return tally(rows, counts.code, len(splits.n_branches), n_codes, n_branches)


class SqlEngine:
    """Counts and moves the rows of a database."""

    def __init__(self, writer: Writer, temporary_tables: bool) -> None:
        self._writer = writer
        self._plan = writer.plan
        self._columns = writer.plan.schema.columns
        self._connection = writer.source.connection
        self._temporary = temporary_tables
        self._table: str | None = None
        self._n_tables = 0
        self.whole = writer.plan.grid.whole
        self.scale = writer.plan.scale
        self._start()

    def _start(self) -> None:
        if self._table is not None:
            self._connection.drop(self._table)
        self._table = None
        self._steps: list[Step] = []
        self._n_nodes = 1
        self._cache: dict[int, Counts] = {}
        self._level: Level | None = None

    def totals(self) -> Level:
        """Put all rows in the root; return its class weights and cases."""
        self._start()
        return self._totals()

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column."""
        return self._plan.values.get(column, np.empty(0))

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        return self._writer.n_codes[column] - 1

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        if not self._cache:
            if self._temporary:
                self._keep()
            self._cache = self._counted(self._groups(), self._steps)
            self._check()
        counts = self._cache[column]
        if nodes is None or len(nodes) == self._n_nodes:
            return counts
        return of_nodes(counts, nodes, self._n_nodes)

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take, in place of their class."""
        decided = step_of(self._columns, splits, decided=True)
        groups = Groups(len(splits.sizes), None)
        found = self._counted(groups, [*self._steps, decided])
        for column in range(len(self._columns)):
            yield by_branch(found[column], splits)

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes; drop the rows of the rest."""
        if self._steps:
            self._steps[-1] = self._steps[-1].retained(nodes)
        elif len(nodes) < self._n_nodes:
            self._steps.append(renumbering(self._n_nodes, nodes))
        self._n_nodes = len(nodes)
        self._cache = {}
        if self._level is not None:
            self._level = Level(self._level.weights[nodes], self._level.cases[nodes])

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches."""
        level = branch_totals(self._cache, self._plan, splits)
        step = step_of(self._columns, splits)
        # Without missing values there is nothing to divide, whatever the policy.
        divides = self._plan.grid.fractions
        self._steps.append(step if divides else step.undivided())
        self._n_nodes = len(splits.sizes)
        self._cache = {}
        if level is None:
            return self._totals()
        self._level = level
        return level

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""
        return class_cases(self, self.cases_by_class, tree)

    def cases_by_class(self) -> Floats:
        """Count the cases of each class in the open nodes, whatever they weigh."""
        if self._temporary:
            self._keep()
        groups = replace(self._groups(), by_cases=True)
        counts = self._counted(groups, self._steps, columns=())[WHOLE]
        return counts.totals(self._n_nodes)[0]

    def _groups(self) -> Groups:
        if self._plan.spread is not None:
            return Groups(self._n_nodes, None, self.scale)
        return Groups(self._n_nodes, self._plan.n_classes)

    def _totals(self) -> Level:
        """Fetch the weights and cases of the nodes."""
        counts = self._counted(self._groups(), self._steps, columns=())[WHOLE]
        self._level = Level(*counts.totals(self._n_nodes))
        return self._level

    def _counted(
        self,
        groups: Groups,
        steps: Sequence[Step],
        columns: Sequence[int] | None = None,
    ) -> dict[int, Counts]:
        """Count columns; none of them is the rows themselves."""
        wanted = range(len(self._columns)) if columns is None else columns
        counts: dict[int, Counts] = {}
        for piece in self._portions(groups, wanted) or [[]]:
            counting = Counting(self._writer, groups, piece)
            binder = Binder(self._writer.dialect)
            with self._limited():
                statement = counting.statement(*self._rows(binder, steps), binder)
            result = self._connection.fetch(statement, binder.values, counting.kinds())
            counts |= counting.read(result, self._connection.label)
        return counts

    def _portions(self, groups: Groups, columns: Sequence[int]) -> list[list[int]]:
        """Divide columns among queries whose results are not too long."""
        rows = np.inf if self._level is None else self._level.cases.sum()
        portions: list[list[int]] = []
        length = 0.0
        for column in columns:
            keys = groups.n_nodes * groups.width * self._writer.n_codes[column]
            length += min(rows, keys)
            last = len(portions[-1]) if portions else COLUMNS_A_QUERY
            if last == COLUMNS_A_QUERY or length > LONGEST_RESULT:
                portions.append([])
                length = min(rows, keys)
            portions[-1].append(column)
        return portions

    def _rows(self, binder: Binder, steps: Sequence[Step]) -> tuple[str, str]:
        """Return the steps of a query for rows in their nodes, and the last name."""
        first, rows = "", self._table
        if rows is None:
            first, rows = self._writer.rows(binder)
        down, rows = in_nodes(self._writer, binder, rows, steps)
        return first + down, rows

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Raise an error for a statement that would be too long or too deep."""
        try:
            yield
        except TooDeep:
            raise DataError(
                f"Level {len(self._steps)} of the tree is too deep for a query "
                f"that starts with the rows of {self._connection.label}: missing "
                f"values or many nodes allow {MOST_JOINED_LEVELS} levels. Allow "
                "temporary tables (temporary_tables=True), or limit max_depth."
            ) from None
        except TooManyValues:
            raise DataError(
                f"Level {len(self._steps)} of the tree needs a query with more than "
                f"{self._writer.dialect.most_values:,} values, which "
                f"{self._writer.dialect.title} does not take. Allow temporary tables "
                "(temporary_tables=True), grow a smaller tree with max_depth, or leave "
                "out columns with very many values."
            ) from None

    def _check(self) -> None:
        """Compare the counts with the known totals of the nodes."""
        if self._level is None:
            return
        for counts in self._cache.values():
            weights, cases = counts.totals(self._n_nodes)
            if not (
                np.array_equal(weights, self._level.weights)
                and np.array_equal(cases, self._level.cases)
            ):
                raise changed(self._connection.label)

    def _keep(self) -> None:
        """Store the rows with their current nodes in a temporary table."""
        if self._table is not None and not self._steps:
            return
        binder = Binder(self._writer.dialect)
        with self._limited():
            written, rows = self._rows(binder, self._steps)
        self._n_tables += 1
        columns = {"node": self._writer.dialect.types["i"], **self._writer.fields}
        table = self._connection.create(f"branchwise {self._n_tables}", columns)
        names = ", ".join(columns)
        self._connection.run(
            f"INSERT INTO {table} ({names}) WITH {written} "  # noqa: S608
            f'"branchwise kept" AS (SELECT {names} FROM {rows}) '
            f'SELECT {names} FROM "branchwise kept"',
            binder.values,
        )
        if self._table is not None:
            self._connection.drop(self._table)
        self._table, self._steps = table, []
