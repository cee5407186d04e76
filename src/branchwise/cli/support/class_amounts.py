"""Options with an amount for each class: weights, priors and costs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from branchwise.cli.options import splits
from branchwise.cli.support.rows import Weights
from branchwise.data.table_schema import Value
from branchwise.data.target import learn_target
from branchwise.data.weights import with_class_weights
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import as_number
from branchwise.files.read_table import TableFile
from branchwise.recipe.costs import Costs


def class_weighted(
    options: Mapping[str, Any], labels: Any, weights: Weights | None
) -> Weights | None:
    """Return the weights of rows with those of their classes, by the options."""
    if options["class_weight"] is None and options["priors"] is None:
        return weights
    classes, codes = learn_target(labels)
    return with_class_weights(
        weights,
        by_class("--class-weight", options["class_weight"]),
        by_class("--priors", options["priors"]),
        classes,
        codes,
    )


#: What options with numbers of classes must be.
_BY_CLASS = {
    "--class-weight": "'balanced' or classes with weights that are not negative, such "
    "as yes=2,no=1",
    "--priors": "every class with its share, such as yes=0.1,no=0.9",
}


def by_class(option: str, given: str | None) -> Any:
    """Return what reads numbers of classes once these are known; ``fit_tree`` takes it.

    "balanced" weights, and None, are returned as they are.
    """
    if given is None or (option == "--class-weight" and given == "balanced"):
        return given

    def read(classes: Sequence[Value]) -> dict[Value, float]:
        what, named = _BY_CLASS[option], {}
        known = [str(label) for label in classes]
        for name, number in _amounts(option, given, f"be {what}"):
            if name not in known:
                raise ParameterError(
                    f"{option} names the class {name!r}, which does not occur. The "
                    f"classes are {quoted(known, 20)}."
                )
            named[name] = number
        absent = [label for label in classes if str(label) not in named]
        if option == "--priors" and (absent or not any(named.values())):
            got = f"none for {quoted(absent)}" if absent else "0 for every class"
            raise ParameterError(f"--priors must be {what}. Got {got}.")
        if not absent and not any(named.values()):
            raise ParameterError(
                f"{option} gives 0 to every class, so that no row counts. Give a "
                "positive weight to a class."
            )
        return {label: named[str(label)] for label in classes if str(label) in named}

    return read


def _amounts(
    option: str, given: str, what: str, sign: str = ""
) -> Iterator[tuple[str, float]]:
    """Read numbers that are not negative, such as ``yes=2,no=1``; names have a sign."""
    for entry in next(csv.reader([given]), []):
        name, _, text = entry.rpartition("=")
        number = as_amount(text)
        if number is None or not name or sign not in name:
            raise ParameterError(f"{option} must {what}. Got {entry!r}.")
        yield name, number


def as_amount(written: str) -> float | None:
    """Read a finite number that is not negative; None is anything else."""
    number = as_number(written)
    return number if number is not None and 0 <= number < np.inf else None


def read_costs(given: str, classes: Sequence[Value]) -> Costs:
    """Return a row for each true class, with the cost of each predicted class.

    They are a table with a row for each true class, whose name is in the first column,
    and a column for each predicted class; or pairs such as ``yes:no=5``, where those
    that are not named cost 1.
    """
    if Path(given).is_file():
        return _from_file(TableFile(given), classes)
    if "=" not in given:
        raise ParameterError(
            "--costs must be a file or pairs of a true and a predicted class with a "
            f"cost, such as yes:no=5. Got {given!r}, and there is no such file."
        )
    return _from_pairs(given, classes)


def _from_pairs(given: str, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    costs = [[float(i != j) for j in range(len(names))] for i in range(len(names))]
    what = (
        "have pairs of a true and a predicted class with a cost that is not negative, "
        "such as yes:no=5"
    )
    for pair, cost in _amounts("--costs", given, what, sign=":"):
        true, prediction = _split_pair(pair, names)
        costs[names.index(true)][names.index(prediction)] = cost
    return tuple(map(tuple, costs))


def _split_pair(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """Split at the colon that has a class on both sides, for a name may have one."""
    for true, prediction in splits(pair, ":"):
        if true in names and prediction in names:
            return true, prediction
    raise ParameterError(
        f"--costs has {pair!r}, which are not two classes with a colon between them. "
        f"The classes are {quoted(names, 20)}."
    )


def _from_file(file: TableFile, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    true_class, *predictions = file.names
    table = file.read(text_columns=[true_class], number_columns=predictions)
    rows = table[true_class].to_pylist()
    for found, where in (
        (rows, f"rows, in column {true_class!r}"),
        (predictions, "columns"),
    ):
        if sorted(map(str, found)) != sorted(names):
            raise DataError(
                f"{file.label} must have each of the classes {quoted(names, 20)} once "
                f"as its {where}. Got {quoted(found, 20)}."
            )
    costs = []
    for name in names:
        row = rows.index(name)
        cells = [table[prediction][row].as_py() for prediction in names]
        wrong = [cell for cell in cells if cell is None or as_amount(str(cell)) is None]
        if wrong:
            raise DataError(
                f"{file.label} must have a finite cost of at least 0 in every cell. "
                f"Got {'none' if wrong[0] is None else wrong[0]} in "
                f"{file.location(row)}."
            )
        costs.append(tuple(float(cell) for cell in cells))
    return tuple(costs)
