"""Results of a search: a table of candidates, the best first."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.one_row import Framed
from branchwise.errors import DataError, counted
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document, as_text
from branchwise.text.words import number

#: Scores that differ by less are equal; then the smaller tree is better.
_TIE = 1e-12
#: So many candidates are shown; a dataframe has all of them.
_SHOWN = 20
_MEANS = ("mean_test", "std_test", "mean_train", "std_train")


@dataclass(frozen=True)
class Trial:
    """A candidate: its parameters, and what it has scored on each fold."""

    parameters: dict[str, Any]
    rows: int
    train: Floats
    test: Floats
    fit_seconds: float
    score_seconds: float
    leaves: float
    depth: float

    @property
    def mean(self) -> float:
        """The mean test score."""
        return float(self.test.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean test score, as if folds were independent."""
        return float(self.test.std(ddof=1)) / math.sqrt(len(self.test))

    @property
    def means(self) -> list[float]:
        """Mean and deviation of the test scores, then of the train scores."""
        found = (self.test.mean(), self.test.std(), self.train.mean(), self.train.std())
        return [float(value) for value in found]

    def told(self, names: Sequence[str]) -> list[str]:
        """Write the values of parameters; nothing for those that it does not have."""
        own = self.parameters
        return [said(own[name]) if name in own else "" for name in names]


@dataclass(frozen=True)
class SearchResults(Framed, Document):
    """The candidates of a search, the best first.

    Of candidates with equal scores the one with fewer leaves comes first, then the one
    that is first in the grid.

    Attributes
    ----------
    trials : tuple of Trial
        The candidates.
    scoring : str
        The score; more is better.
    method : {"grid", "halving"}
        How they were tried.
    n_folds : int
        The number of folds.
    complete : bool
        Whether nothing is left to be tried.
    """

    trials: tuple[Trial, ...]
    scoring: str
    method: str
    n_folds: int
    complete: bool = True

    @classmethod
    def ranked(
        cls,
        trials: Sequence[Trial],
        scoring: str,
        method: str,
        n_folds: int,
        complete: bool = True,
    ) -> SearchResults:
        """Put candidates in order: those that got most rows, by score and size.

        Parameters
        ----------
        trials : sequence of Trial
            The candidates, with their scores.
        scoring : str
            The score that they are compared by.
        method : str
            How candidates were chosen: ``"grid"`` or ``"halving"``.
        n_folds : int
            The number of folds.
        complete : bool, default=True
            Whether all of them were tried.

        Returns
        -------
        SearchResults
            The candidates, the best first.
        """

        def position(at: int) -> tuple[float, ...]:
            one = trials[at]
            return -one.rows, -round(one.mean / _TIE) * _TIE, one.leaves, at

        order = sorted(range(len(trials)), key=position)
        ordered = tuple(trials[at] for at in order)
        return cls(ordered, scoring, method, n_folds, complete)

    @property
    def best(self) -> Trial:
        """The candidate with the highest mean test score."""
        return self.trials[0]

    @property
    def one_se(self) -> Trial:
        """The smallest tree whose score is within a standard error of the best."""
        best = self.best
        bar = best.mean - best.error - _TIE
        near = [t for t in self.trials if t.rows == best.rows and t.mean >= bar]
        return min(near, key=lambda one: one.leaves)

    @property
    def best_params_(self) -> dict[str, Any]:
        """The parameters of the best candidate."""
        return dict(self.best.parameters)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The table in the form of scikit-learn's ``cv_results_``."""
        names = self.names
        table: dict[str, Any] = {
            "params": [one.parameters for one in self.trials],
            "n_resources": np.array([one.rows for one in self.trials]),
            "mean_fit_time": np.array([one.fit_seconds for one in self.trials]),
            "mean_score_time": np.array([one.score_seconds for one in self.trials]),
            "mean_leaves": np.array([one.leaves for one in self.trials]),
            "rank_test_score": np.arange(1, len(self.trials) + 1),
        }
        for name in names:
            values = [one.parameters.get(name) for one in self.trials]
            absent = [name not in one.parameters for one in self.trials]
            column = np.empty(len(values), dtype=object)
            column[:] = values
            table[f"param_{name}"] = np.ma.MaskedArray(column, absent)
        for piece in ("train", "test"):
            scores = [getattr(one, piece) for one in self.trials]
            table[f"mean_{piece}_score"] = np.array([s.mean() for s in scores])
            table[f"std_{piece}_score"] = np.array([s.std() for s in scores])
        return table

    @property
    def names(self) -> list[str]:
        """The parameters that were tried."""
        return sorted({name for one in self.trials for name in one.parameters})

    def __repr__(self) -> str:
        best = self.best
        chosen = ", ".join(
            f"{name}={value!r}" for name, value in self.best_params_.items()
        )
        return (
            f"<search of {counted(len(self.trials), 'candidate')}: best {self.scoring} "
            f"{best.mean:.4f} with {chosen or 'no parameter changed'}>"
        )

    def to_text(self) -> str:
        """Return the first candidates as text."""
        return "\n".join(self.lines())

    def blocks(self) -> Iterator[Block]:
        """Yield the table of the first candidates."""
        yield self._table(_SHOWN)
        yield from map(Paragraph, self._rest(_SHOWN))

    def lines(self, limit: int | None = _SHOWN) -> Iterator[str]:
        """Write the candidates, the best first.

        Parameters
        ----------
        limit : int or None
            How many candidates to write; None is all.

        Yields
        ------
        str
            A line of the table.
        """
        yield from as_text([self._table(limit)]).split("\n")
        yield from self._rest(limit)

    def _rest(self, limit: int | None) -> Iterator[str]:
        if limit is not None and len(self.trials) > limit:
            yield f"... and {len(self.trials) - limit:,} more"

    def _table(self, limit: int | None) -> Table:
        first = ["rows"] if self.method == "halving" else []
        head = [*first, *self.names, "test", "+-", "train", "+-", "leaves", "fit"]
        words = range(len(first), len(first) + len(self.names))
        return Table(head, list(self._rows(limit)), words)

    def _rows(self, limit: int | None) -> Iterator[list[str]]:
        for one in self.trials[:limit]:
            scores = [f"{value:.4f}" for value in one.means]
            sizes = [f"{one.leaves:,.1f}", f"{one.fit_seconds * 1e3:.1f} ms"]
            row = [*one.told(self.names), *scores, *sizes]
            yield [f"{one.rows:,}", *row] if self.method == "halving" else row

    def to_columns(self) -> dict[str, list[Any]]:
        """Return all candidates as lists, a column each, with the score of every fold.

        A parameter whose values are of several types is written as text.
        """
        trials, folds = self.trials, range(self.n_folds)
        columns: dict[str, list[Any]] = {
            "rank": list(range(1, len(trials) + 1)),
            "rows": [one.rows for one in trials],
        }
        for name in self.names:
            columns[name] = _of_one_type([one.parameters.get(name) for one in trials])
        means = zip(*(one.means for one in trials), strict=True)
        columns |= {name: list(m) for name, m in zip(_MEANS, means, strict=True)}
        for name in ("leaves", "depth", "fit_seconds", "score_seconds"):
            columns[name] = [getattr(one, name) for one in trials]
        for piece in ("test", "train"):
            padded = [_padded(getattr(one, piece), folds) for one in trials]
            columns |= {f"{piece}_{at}": [row[at] for row in padded] for at in folds}
        return columns

    def to_csv(self) -> str:
        """Write all candidates, with the score of every fold, as CSV."""
        columns = self.to_columns()
        for name in self.names:
            columns[name] = [one.told([name])[0] for one in self.trials]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(
                [_written(cell) if isinstance(cell, float) else cell for cell in row]
            )
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Tell all in plain values."""
        return {
            "scoring": self.scoring,
            "method": self.method,
            "complete": self.complete,
            "best": _plain(self.best),
            "one_se": _plain(self.one_se),
            "candidates": [_plain(one) for one in self.trials],
        }


def said(value: object) -> str:
    """Write the value of a parameter."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return number(float(value)) if isinstance(value, (int, float)) else str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Return values that a column of a dataframe can hold."""
    kinds = {type(value) for value in values} - {type(None)}
    if any(kinds <= fitting for fitting in ({bool}, {int, float}, {str})):
        return values
    return [None if value is None else said(value) for value in values]


def _padded(scores: Floats, folds: range) -> list[float]:
    return [*scores.tolist(), *([math.nan] * (len(folds) - len(scores)))]


def _written(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _plain(one: Trial) -> dict[str, Any]:
    return {
        "parameters": one.parameters,
        "rows": one.rows,
        **dict(zip(_MEANS, one.means, strict=True)),
        "leaves": one.leaves,
        "depth": one.depth,
        "fit_seconds": one.fit_seconds,
    }


_KIND = "branchwise search"
_VERSION = 1


@dataclass(frozen=True)
class Fit:
    """What one candidate has scored on one fold."""

    candidate: str
    fold: int
    rows: int
    train: float
    test: float
    fit_seconds: float
    score_seconds: float
    leaves: float
    depth: float

    @property
    def key(self) -> tuple[str, int, int]:
        """Candidate, fold and number of training rows."""
        return self.candidate, self.fold, self.rows


def candidate_key(parameters: Mapping[str, Any]) -> str:
    """Write parameters such that equal ones are equal texts."""
    plain = {
        name: value if isinstance(value, (str, int, float, type(None))) else repr(value)
        for name, value in parameters.items()
    }
    return json.dumps(plain, sort_keys=True)


class StateFile:
    """Checkpoint of finished fits, in a file that is made if it is not there.

    Without a path nothing is kept. What ``search`` tells must be the same for its fits
    to be those of this search.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, search: Mapping[str, Any]
    ) -> None:
        self.done: dict[tuple[str, int, int], Fit] = {}
        self._path = None if path is None else Path(path)
        self._head = {"kind": _KIND, "version": _VERSION, **search}
        if self._path is not None:
            self._open(self._path)

    def _open(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            if content:
                self._reject("is no such file")
            path.write_text(json.dumps(self._head) + "\n", encoding="utf-8")
            return
        first, *lines = whole.splitlines()
        self._check(first)
        for line in lines:
            fit = self._read(line)
            self.done[fit.key] = fit
        if len(whole) < len(content):
            with path.open("rb+") as file:
                file.truncate(len(whole))

    def _check(self, line: bytes) -> None:
        try:
            head = json.loads(line)
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.get("kind") != _KIND:
            self._reject("is no such file")
        other = [name for name, value in self._head.items() if head.get(name) != value]
        if other:
            self._reject(f"is of a search that differs in {' and '.join(other)}")

    def _reject(self, why: str) -> NoReturn:
        raise DataError(
            f"{str(self._path)!r} is to hold the fits of this search, but {why}. Name "
            "another file, which is made if it is not there, or remove this one."
        )

    def _read(self, line: bytes) -> Fit:
        try:
            return Fit(**json.loads(line))
        except (ValueError, TypeError):
            self._reject(f"has a line that is no fit: {line[:60]!r}")

    def add(self, fits: Iterable[Fit]) -> None:
        """Write fits down."""
        fits = list(fits)
        self.done.update((fit.key, fit) for fit in fits)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(fit)) + "\n" for fit in fits)
