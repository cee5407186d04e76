""":func:`inspect_table`: what may be wrong with a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from branchwise.data.checks import Finding, find_problems
from branchwise.data.one_row import Framed
from branchwise.errors import counted
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.words import word


class Findings(Framed, Document, list[Finding]):
    """A list of :class:`~branchwise.Finding`, the most serious first."""

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{one.kind} ({', '.join(map(word, one.columns))})" for one in self
        )
        return f"<{counted(len(self), 'finding')}{': ' if self else ''}{kinds}>"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the findings as lists, a column each."""
        return {
            "kind": [one.kind for one in self],
            "columns": [", ".join(one.columns) for one in self],
            "message": [one.message for one in self],
            "advice": [one.advice for one in self],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in plain values."""
        return {
            "findings": [{**asdict(one), "columns": list(one.columns)} for one in self]
        }

    def blocks(self) -> Iterator[Block]:
        """Yield a table of the findings."""
        if not self:
            yield Paragraph("Nothing seems wrong with this table.")
            return
        names = ("kind", "message", "advice")
        rows = [[getattr(one, name) for name in names] for one in self]
        yield Table(["kind", "problem", "advice"], rows, words=(0, 1, 2))


def inspect_table(X: Any, y: Any = None, target: str = "target") -> Findings:
    """Check a table for columns that spoil a tree, the most serious first.

    Finds identifiers, columns of many values, constant, empty and mostly missing ones,
    whole numbers that may be codes, duplicate columns and, with labels, classes with
    one row and columns that determine the class on their own, be it only by whether
    they are missing.

    Parameters
    ----------
    X : table
        Anything that ``fit`` takes.
    y : labels or None
        The classes; numbers are for regression and are not checked.
    target : str
        The name of the labels in messages.

    Returns
    -------
    Findings
        A list of :class:`~branchwise.Finding`, which notebooks show as a table;
        ``to_frame()`` makes it a dataframe.

    Examples
    --------
    >>> import branchwise
    >>> rows = {"id": list("abcdefghijkl"), "one": ["x"] * 12}
    >>> found = branchwise.inspect_table(rows)
    >>> found
    <2 findings: identifier (id), constant (one)>
    >>> print(found[0].message)
    Column 'id' looks like an identifier: every row has a different value.
    """
    return Findings(find_problems(X, y, target))
