"""Answers of a model for tables in files of any size, part by part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, get_args, overload

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files import atomic_write
from branchwise.table.arrow import as_arrays
from branchwise.table.frames import Frame
from branchwise.table.matching import columns_for
from branchwise.table.part_files import TablePart
from branchwise.table.raw import RawColumn
from branchwise.table.reading import ENDINGS
from branchwise.table.schema import Column, Schema
from branchwise.table.streamed import StreamedTable
from branchwise.table.write import FileFormat, form_of_name, part_writer
from branchwise.tree import Tree
from branchwise.words import word

What = Literal["classes", "probabilities", "leaves"]
#: Columns by name, of equal length.
Batch = dict[str, NDArray[Any]]


class Predicting(Protocol):
    """A model, as far as it is needed here."""

    schema: Schema
    tree: Tree

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""


@overload
def predict(
    model: Predicting,
    source: object,
    output: None = None,
    what: What | Sequence[What] = "classes",
    keep: bool = False,
) -> Iterator[Batch]: ...


@overload
def predict(
    model: Predicting,
    source: object,
    output: str | os.PathLike[str],
    what: What | Sequence[What] = "classes",
    keep: bool = False,
    escape_formulas: bool = False,
) -> int: ...


def predict(
    model: Predicting,
    source: object,
    output: str | os.PathLike[str] | None = None,
    what: What | Sequence[What] = "classes",
    keep: bool = False,
    escape_formulas: bool = False,
) -> Iterator[Batch] | int:
    """Predict for the rows of files that may be larger than memory.

    Parameters
    ----------
    model : Model
        What :func:`~branchwise.fit_tree` or :func:`~branchwise.load` returns, or an
        estimator that is fitted.
    source : str, path, list of them, pyarrow dataset or StreamedTable
        The files. Columns are found by name, and read as the model has learnt them.
    output : str, path or None
        The file to write: its name ends with .csv, .tsv, .json, .parquet, .arrow or
        .feather. It appears when it is whole, or not at all.
    what : {"classes", "probabilities", "leaves"} or several of them
        "classes" is the column ``prediction``, the class or the number; "probabilities"
        the columns ``probability of ...``, one for each class; "leaves" the column
        ``leaf``, the number of the node.
    keep : bool
        Whether the columns of the table come before these, as they are in the files.
    escape_formulas : bool
        Whether texts that a spreadsheet would take for a formula (they begin with =,
        +, -, @, a tab or a carriage return) get an apostrophe in front, in a CSV or TSV
        file; numbers stay numbers.

    Returns
    -------
    iterator of dict, or int
        Without an output one dict of arrays by name after the other, for some rows
        each; with one how many rows were written.
    """
    table = StreamedTable.of(source)
    answers = Answers(model_of(model), table, what, keep)
    if output is None:
        if escape_formulas:
            raise ParameterError(
                "escape_formulas has no effect without an output, which it is for. "
                "Leave it out, or name a CSV or TSV file."
            )
        return answers.batches()
    form = _form_of(output)
    if Path(output).resolve() in {Path(path).resolve() for path in table.paths}:
        raise ParameterError(
            f"output would write over {os.fspath(output)!r}, which is read. Give the "
            "answers a file of their own."
        )
    with atomic_write(output) as file:
        return answers.write(file, form, escape_formulas=escape_formulas)


def model_of(given: Any) -> Any:
    """Return a model as it is given, or that of a fitted estimator."""
    model = getattr(given, "model_", given)
    if not (hasattr(model, "schema") and hasattr(model, "tree")):
        raise ParameterError(
            "model must be what fit_tree or load returns, or an estimator that is "
            f"fitted. Got {type(given).__name__}."
        )
    return model


class Answers:
    """What a model says of the rows of files, part by part."""

    def __init__(
        self,
        model: Predicting,
        table: StreamedTable,
        what: What | Sequence[What] = "classes",
        keep: bool = False,
    ) -> None:
        self._model = model
        self._wanted = _checked(model, what)
        self._keep = keep
        names = table.names
        self._own = columns_for(model.schema, names, table.label)
        columns = model.schema.columns
        # A tree that asks nothing needs a column all the same: to count the rows.
        used = {columns[at].name for at in model.tree.used_columns or [0]}
        read = {name: c for name, c in self._own.items() if c.name in used}
        self._table = replace(table, ignore=(), only=list(read)).for_columns(read)
        if keep:
            self._refuse_double(names)

    def _refuse_double(self, names: Sequence[str]) -> None:
        double = [name for name in self.names if name in names]
        if double:
            raise DataError(
                f"With keep there would be two columns {quoted(double)}: the table has "
                "one of that name already. Rename it there, or do without keep."
            )

    @property
    def names(self) -> list[str]:
        """The columns that are added."""
        named: dict[str, list[str]] = {
            "classes": ["prediction"],
            "probabilities": [
                f"probability of {word(label)}" for label in self._model.schema.classes
            ],
            "leaves": ["leaf"],
        }
        return [name for what in self._wanted for name in named[what]]

    def batches(self) -> Iterator[Batch]:
        """Yield columns by name, part by part."""
        for kept, added in self._parts():
            yield as_arrays(kept) | added

    def write(
        self,
        file: BinaryIO,
        form: FileFormat,
        progress: Callable[[int], None] | None = None,
        escape_formulas: bool = False,
    ) -> int:
        """Write a file; return how many rows it has, which ``progress`` is told."""
        n_rows = 0
        with part_writer(file, form, escape_formulas) as writer:
            for kept, added in self._parts():
                writer.write(kept | added)
                n_rows += len(next(iter(added.values())))
                if progress is not None:
                    progress(n_rows)
        return n_rows

    def _parts(self) -> Iterator[tuple[dict[str, Any], Batch]]:
        """Yield the columns that are kept, and those that are added."""
        with closing(self._table.parts(self._keep)) as parts:
            for part in parts:
                try:
                    added = self._answered(part)
                except DataError as error:
                    raise part.located(error) from None
                yield dict(part.as_is), added

    def _answered(self, part: TablePart) -> Batch:
        rows = _framed(part.frame, self._own, self._model.schema)
        found: list[NDArray[Any]] = []
        for what in self._wanted:
            if what == "probabilities":
                found.extend(self._model.predict_proba(rows).T)
            elif what == "leaves":
                found.append(self._model.apply(rows))
            else:
                found.append(self._model.predict(rows))
        return dict(zip(self.names, found, strict=True))


@dataclass(frozen=True)
class _Unread:
    """Stands in for a column that the tree does not ask about."""

    name: str

    def __call__(self) -> RawColumn:
        raise AssertionError(f"{self.name} is not read")


def _framed(frame: Frame, own: Mapping[str, Column], schema: Schema) -> Frame:
    """Return a frame that has all columns of a schema, in its order."""
    readers = dict(zip(frame.names, frame.readers, strict=True))
    return Frame(
        tuple(column.name for column in own.values()),
        frame.n_rows,
        schema.named,
        tuple(readers.get(name, _Unread(name)) for name in own),
    )


def _checked(model: Predicting, what: What | Sequence[What]) -> tuple[What, ...]:
    wanted = (what,) if isinstance(what, str) else tuple(what)
    if not wanted or not set(wanted) <= set(get_args(What)):
        raise ParameterError(
            f"what must be one or more of {quoted(get_args(What))}. Got {what!r}."
        )
    if "probabilities" in wanted and not model.schema.classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use 'classes', which are its numbers."
        )
    return wanted


def _form_of(output: str | os.PathLike[str]) -> FileFormat:
    form = form_of_name(output)
    if form is None:
        endings = [end for end in (*ENDINGS, ".json") if form_of_name(f"x{end}")]
        raise ParameterError(
            f"output must be a file whose name ends with {quoted(endings, 99)}. Got "
            f"{os.fspath(output)!r}."
        )
    return form
