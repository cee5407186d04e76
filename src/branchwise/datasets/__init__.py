"""Small textbook tables that come with branchwise."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from branchwise.errors import ParameterError, quoted

Cell = str | float | None


@dataclass(frozen=True, repr=False)
class Dataset:
    """A table as a dict of columns, its labels, and what they are called.

    Loaded with ``as_frame=True``, the table is a pandas data frame and the labels a
    series. ``target`` is the name of the label column. ``categories`` are possible
    values that the source declares beyond those that occur, ready to be passed on.
    """

    name: str
    X: Any
    y: Any
    target: str
    categories: dict[str, list[str]] | None = None

    def rows(self) -> list[dict[str, Cell]]:
        """Return the table as a list of dicts, which scikit-learn can split."""
        cells = zip(*(self.X[name] for name in self.X), strict=True)
        return [dict(zip(self.X, row, strict=True)) for row in cells]

    def __repr__(self) -> str:
        return (
            f"<dataset {self.name!r}: {len(self.y):,} rows, {len(self.X)} columns, "
            f"target {self.target!r}>"
        )


_DOMAINS = {"color": ["y", "g", "b"], "size": ["s", "l"], "shape": ["r", "i"]}
_DECLARED = {"toy": _DOMAINS, "toy_test": _DOMAINS}


def names() -> list[str]:
    """Return the names of the tables."""
    folder = files("branchwise.datasets") / "tables"
    return sorted(
        entry.name.removesuffix(".csv")
        for entry in folder.iterdir()
        if entry.name.endswith(".csv")
    )


def path(name: str) -> str:
    """Return the path of a table's CSV file."""
    if name not in names():
        raise ParameterError(
            f"There is no dataset {name!r}. Choose one of {quoted(names(), 99)}."
        )
    return str(files("branchwise.datasets") / "tables" / f"{name}.csv")


def load(name: str, *, as_frame: bool = False) -> Dataset:
    """Load a table; its last column is the target, ``?`` is a missing value.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    as_frame : bool, default=False
        Whether to return a pandas data frame and a series, which scikit-learn can
        split into folds, instead of a dict of columns and a list.

    Returns
    -------
    Dataset
        ``X``, the columns, and ``y``, the target.

    Examples
    --------
    >>> from branchwise import datasets
    >>> datasets.load("fish").X["has flippers"]
    ['yes', 'yes', 'no', 'yes', 'yes']
    """
    with open(path(name), encoding="utf-8", newline="") as file:  # noqa: PTH123
        header, *rows = csv.reader(file)
    *attributes, target = header
    columns = [_numbers_if_all(list(cells)) for cells in zip(*rows, strict=True)]
    X = dict(zip(attributes, columns, strict=False))
    y = [row[-1] for row in rows]
    dataset = Dataset(name, X, y, target, _DECLARED.get(name))
    return _framed(dataset) if as_frame else dataset


def _framed(dataset: Dataset) -> Dataset:
    """Return a dataset with its table and labels in pandas."""
    try:
        import pandas as pd  # noqa: PLC0415  (loaded only when it is needed)
    except ImportError:
        raise ParameterError(
            "as_frame=True needs pandas, which is not installed: pip install pandas. "
            "Or leave it out; rows() gives a list that scikit-learn can split."
        ) from None
    labels = pd.Series(dataset.y, name=dataset.target)
    return replace(dataset, X=pd.DataFrame(dataset.X), y=labels)


def _numbers_if_all(cells: list[str]) -> list[Cell]:
    known = [None if cell == "?" else cell for cell in cells]
    try:
        return [None if cell is None else float(cell) for cell in known]
    except ValueError:
        return list(known)
