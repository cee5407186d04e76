"""``--costs``: what wrong answers cost, from a file or from the option itself."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from branchwise.cli.training import as_amount
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.table.labels import learn_target
from branchwise.table.read import TableFile
from branchwise.table.schema import Value

Costs = tuple[tuple[float, ...], ...]


def read_costs(given: str, labels: Any) -> Costs:
    """Return a row for each true class, with what each answer costs.

    Parameters
    ----------
    given : str
        A table with a row for each true class, whose name is in the first column,
        and a column for each answer; or pairs such as ``yes:no=5``, where those that
        are not named cost 1.
    labels : pyarrow column
        The target, which tells the classes and their order.
    """
    return _read(given, learn_target(labels)[0])


def costs_by_class(given: str | None) -> Callable[[Sequence[Value]], Costs] | None:
    """Return what reads costs once the classes are known."""
    return None if given is None else lambda classes: _read(given, classes)


def _read(given: str, classes: Sequence[Value]) -> Costs:
    if Path(given).is_file():
        return _from_file(TableFile(given), classes)
    if "=" not in given:
        raise ParameterError(
            "--costs must be a file or pairs of a true class and an answer with their "
            f"cost, such as yes:no=5. Got {given!r}, and there is no such file."
        )
    return _from_pairs(given, classes)


def _from_pairs(given: str, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    costs = [[float(i != j) for j in range(len(names))] for i in range(len(names))]
    for entry in next(csv.reader([given]), []):
        pair, _, written = entry.rpartition("=")
        cost = as_amount(written)
        if cost is None or ":" not in pair:
            raise ParameterError(
                "--costs must have pairs of a true class and an answer with a cost "
                f"that is not negative, such as yes:no=5. Got {entry!r}."
            )
        true, answer = _split_pair(pair, names)
        costs[names.index(true)][names.index(answer)] = cost
    return tuple(map(tuple, costs))


def _split_pair(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """Split at the colon that has a class on both sides, for a name may have one."""
    parts = pair.split(":")
    for at in range(1, len(parts)):
        true, answer = ":".join(parts[:at]), ":".join(parts[at:])
        if true in names and answer in names:
            return true, answer
    raise ParameterError(
        f"--costs has {pair!r}, which are not two classes with a colon between them. "
        f"The classes are {quoted(names, 20)}."
    )


def _from_file(file: TableFile, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    true_class, *answers = file.names
    table = file.read(text_columns=[true_class], number_columns=answers)
    rows = table[true_class].to_pylist()
    for found, where in (
        (rows, f"rows, in column {true_class!r}"),
        (answers, "columns"),
    ):
        if sorted(map(str, found)) != sorted(names):
            raise DataError(
                f"{file.label} must have each of the classes {quoted(names, 20)} once "
                f"as its {where}. Got {quoted(found, 20)}."
            )
    costs = []
    for name in names:
        row = rows.index(name)
        cells = [table[answer][row].as_py() for answer in names]
        wrong = [cell for cell in cells if cell is None or as_amount(str(cell)) is None]
        if wrong:
            raise DataError(
                f"{file.label} must have a finite cost of at least 0 in every cell. "
                f"Got {'none' if wrong[0] is None else wrong[0]} in {file.place(row)}."
            )
        costs.append(tuple(float(cell) for cell in cells))
    return tuple(costs)
