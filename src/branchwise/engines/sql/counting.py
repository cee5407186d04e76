"""SQL that counts rows by node, code and class, and its results as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.target import Scale
from branchwise.engines.sql.connections import Arrays, Binder, coalesced
from branchwise.engines.sql.queries import Writer, limb, step_name, terms
from branchwise.errors import DataError
from branchwise.grow.counts import Counts
from branchwise.tree.splits import Splits

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

    def statement(self, steps: Sequence[str], rows: str, binder: Binder) -> str:
        """Return the query."""
        amounts = self._amounts(binder)
        keys = [f"{self._key(span)} AS {span.key}" for span in self._spans]
        numbers = [
            f"a{span.column} AS x{span.column}"
            for span in self._spans
            if span.by_number
        ]
        inner = ", ".join([*keys, *numbers, *(f"{e} AS {n}" for n, e in amounts)])
        sums = ["COUNT(*)" if name == "one" else f"SUM({name})" for name, _ in amounts]
        dialect = self._writer.dialect
        if self._groups.scale is not None:
            more, rows = self._with_terms(rows)
            steps = [*steps, *more]
        counted = f"SELECT {inner} FROM {rows} AS rows"  # noqa: S608
        if dialect.grouping_sets:
            body = self._in_one_pass(counted, sums)
        else:
            shared = '"branchwise counted"'
            steps = [*steps, f"{shared} {dialect.keep_rows} ({counted})"]
            body = self._one_by_one(shared, sums)
        return f"WITH {', '.join(steps)} {body}" if steps else body

    def _with_terms(self, rows: str) -> tuple[list[str], str]:
        """Add the terms of exact sums to rows, in steps that are computed once."""
        fields, *_ = terms("w" if self._writer.fields.has_weight else None)
        steps = []
        for at, more in enumerate(fields):
            listed = ", ".join(f"{made} AS {name}" for name, made in more.items())
            body = f"SELECT *, {listed} FROM {rows} AS rows"  # noqa: S608
            rows = step_name("terms", at)
            steps.append(f"{rows} AS MATERIALIZED ({body})")
        return steps, rows

    def kinds(self) -> str:
        """Return the types of the columns of the result."""
        return "if" + "f" * len(self._amounts(Binder(self._writer.dialect)))

    def _key(self, span: Span) -> str:
        label = "1" if self._groups.n_classes is None else "y + 1"
        group = f"node * {self._groups.width} + {label}"
        if span.by_number:
            return f"{span.first} + {group}"
        code = "0" if span.column == WHOLE else f"a{span.column}"
        return f"{span.first} + ({group}) * {span.width} + {code} + 1"

    def _in_one_pass(self, counted: str, sums: Sequence[str]) -> str:
        keys = coalesced([span.key for span in self._spans])
        numbers = [f"x{span.column}" for span in self._spans if span.by_number]
        null = f"CAST(NULL AS {self._writer.dialect.types['f']})"
        sets = [
            f"({span.key}, x{span.column})" if span.by_number else f"({span.key})"
            for span in self._spans
        ]
        wanted = [keys, coalesced(numbers) or null, *sums]
        # Names of their own: DuckDB returns columns by name.
        listed = ", ".join(f"{each} AS r{at}" for at, each in enumerate(wanted))
        return (
            f"SELECT {listed} FROM ({counted}) AS keyed "  # noqa: S608
            f"GROUP BY GROUPING SETS ({', '.join(sets)})"
        )

    def _one_by_one(self, shared: str, sums: Sequence[str]) -> str:
        queries = []
        for span in self._spans:
            key = span.key
            number = f"x{span.column}" if span.by_number else "NULL"
            grouped = f"{key}, {number}" if span.by_number else key
            queries.append(
                f"SELECT {', '.join([key, number, *sums])} FROM {shared} "  # noqa: S608
                f"GROUP BY {grouped}"
            )
        return " UNION ALL ".join(queries)

    def _amounts(self, binder: Binder) -> list[tuple[str, str]]:
        """Return the amounts to add up: cases, then weights or moments."""
        fields = self._writer.fields
        cases = [("n_cases", "k")] if fields.has_case else [("one", "1")]
        weight = "w" if fields.has_weight else "1e0"
        scale = self._groups.scale
        if scale is None:
            return [*cases, ("weight", "w")] if fields.has_weight else cases
        _, once, twice = terms("w" if fields.has_weight else None)
        limbs = [
            (f"{kind}{at}", limb(names, limbs, at, binder))
            for kind, names, limbs in (
                ("total", once, scale.sums),
                ("square", twice, scale.squares),
            )
            for at in range(len(limbs))
        ]
        return [*cases, ("weight", weight), *limbs]

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
        return _paired(node * n_codes + code, slot - 1, n_codes, amounts, self._groups)

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


def _paired(
    pair: Ints, label: Ints, n_codes: int, amounts: Arrays, groups: Groups
) -> Counts:
    """Arrange the classes of every node and code in a row."""
    order = np.argsort(pair, kind="stable")
    pair, label = pair[order], label[order]
    amounts = [amount[order] for amount in amounts]
    starts = run_starts(pair)
    cases = np.add.reduceat(amounts[0], starts) if len(starts) else np.empty(0)
    node, code = np.divmod(pair[starts], n_codes)
    width = groups.width - 1 if groups.scale is None else groups.scale.width
    weights = np.zeros((len(starts), width))
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(pair)))
    if groups.scale is not None:
        for at, amount in enumerate(amounts[1:]):
            np.add.at(weights[:, at], owner, amount)
    else:
        np.add.at(weights, (owner, label), amounts[0 if groups.by_cases else -1])
    return Counts(node.astype(np.intp), code.astype(np.intp), weights, cases)


def only(counts: Counts, nodes: Ints, n_nodes: int) -> Counts:
    """Keep the counts of some nodes."""
    wanted: NDArray[np.bool_] = np.zeros(n_nodes, dtype=bool)
    wanted[nodes] = True
    return counts.select(wanted[counts.node])


def by_branch(counts: Counts, splits: Splits) -> Counts:
    """Arrange the counts of branches in a row of their node."""
    first = np.cumsum(splits.n_branches) - splits.n_branches
    parent = np.repeat(np.arange(len(splits.n_branches)), splits.n_branches)
    node = parent[counts.node]
    order = np.lexsort((counts.code, node))
    node, code = node[order], counts.code[order]
    starts = run_starts(node, code)
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(node)))
    weights = np.zeros((len(starts), int(splits.n_branches.max(initial=0))))
    branch = (counts.node - first[parent[counts.node]])[order]
    weights[owner, branch] = counts.weights[order, 0]
    cases = np.zeros(len(starts))
    np.add.at(cases, owner, counts.cases[order])
    return Counts(node[starts], code[starts], weights, cases)
