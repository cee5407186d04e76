"""Rows in files that may be larger than memory: read, encoded and counted in parts.

The files are read twice: once to see what there is, once to encode the rows into a
packed temporary file of narrow codes, which all later passes read. Without that file
every pass reads the files again. What is in memory is a part of the rows and the
counts of the open nodes, however many rows there are; nodes that have few rows are
finished from a second temporary file that has their rows together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from branchwise.counts import Ints
from branchwise.engines.facts import Facts
from branchwise.engines.jobs import Job, merged
from branchwise.engines.learning import look, settle, weigh_again
from branchwise.engines.parts import (
    Below,
    Part,
    Route,
    encode_part,
    finished,
    joined,
)
from branchwise.engines.passes import PassEngine
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError
from branchwise.table.store import BatchStore
from branchwise.table.streamed import StreamedTable, TablePart, files_of
from branchwise.tree import Tree

#: Rows of a node that is finished in memory.
MOST_ROWS = 500_000

Say = Callable[[str], None]


class ChunkedTable:
    """A table in files, read part by part.

    Parameters
    ----------
    source : str, path, list of them or StreamedTable
        The files: a path, a pattern such as ``"data/*.parquet"``, a folder.
    cache : bool
        Whether encoded rows are kept in a temporary file.
    temporary_folder : str or None
        Where temporary files are made; by default where the system has them.
    most_rows : int
        Nodes of so many rows are finished in memory.
    """

    engine_name = "chunked"

    def __init__(
        self,
        source: object,
        cache: bool = True,
        temporary_folder: str | None = None,
        most_rows: int = MOST_ROWS,
        say: Say | None = None,
    ) -> None:
        if not isinstance(source, StreamedTable):
            source = StreamedTable(files_of(source))
        self.table = source
        self.label = source.label
        self.most_rows = most_rows if cache else 0
        self._cache = cache
        self._folder_wanted = temporary_folder
        self._say = say or (lambda _: None)
        self._open = ExitStack()
        self._folder: Path | None = None
        self._plan: Plan | None = None
        self._store: BatchStore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the temporary files away."""
        self._open.close()
        self._folder = self._store = None

    def learn(self, task: Task) -> Plan:
        """Look at all rows once; where text turns up late among numbers, twice."""
        facts, kinds = self._looked(task)
        mixed = [name for name, seen in kinds.items() if len(seen) > 1]
        if mixed:
            text = {*self.table.text_columns, *mixed}
            self.table = replace(self.table, text_columns=text)
            facts, _ = self._looked(task)
        return settle(merged(facts), task, self._weighed)

    def _looked(self, task: Task) -> tuple[list[Facts], dict[str, set[bool]]]:
        kinds: dict[str, set[bool]] = {}
        facts: list[Facts] = []
        rows = 0
        for part in self.table.parts():
            found = _asked(part, lambda frame: look(frame, task))
            rows += found.n_rows
            self._say(f"Looking at the rows: {rows:,}")
            for column in found.columns:
                if not column.is_empty:
                    kinds.setdefault(column.column.name, set()).add(
                        column.column.is_numeric
                    )
            if not any(len(seen) > 1 for seen in kinds.values()):
                facts = [merged([*facts, found])]
        return facts, kinds

    def _weighed(self, plan: Plan) -> Any:
        parts = self.table.parts()
        return merged(
            _asked(part, lambda frame: weigh_again(frame, plan)) for part in parts
        )

    def engine(self, plan: Plan) -> PassEngine:
        """Return who counts the rows by a plan."""
        self._plan = plan
        self._store = None
        return PassEngine(plan, self)

    def _parts(self) -> Iterator[Part]:
        """Yield all rows, encoded; the first time they are put in the store."""
        if self._store is not None:
            for arrays in self._store.batches():
                yield self._unpacked(arrays)
            return
        store = BatchStore(self._temporary()) if self._cache else None
        plan, rows = self._known_plan, 0
        for table in self.table.parts():
            part = _asked(table, lambda frame: encode_part(frame, plan))
            rows += part.n_rows
            self._say(f"Encoding the rows: {rows:,} of {plan.n_rows:,}")
            if store is not None:
                store.append(_packed(part))
            yield part
        if rows != plan.n_rows:
            raise DataError(
                f"{self.label} changed while the tree was grown: it had "
                f"{plan.n_rows:,} rows and now has {rows:,}. Fit again while nothing "
                "writes to it."
            )
        self._store = store

    @property
    def _known_plan(self) -> Plan:
        if self._plan is None:
            raise AssertionError("rows are counted by a plan")
        return self._plan

    def _unpacked(self, arrays: list[Any]) -> Part:
        n = len(self._known_plan.schema.columns)
        weights = arrays[n + 1] if len(arrays) > n + 1 else None
        return Part(tuple(arrays[:n]), arrays[n], weights)

    def _temporary(self) -> Path:
        if self._folder is None:
            try:
                folder = tempfile.TemporaryDirectory(
                    prefix="branchwise-", dir=self._folder_wanted
                )
            except OSError as error:
                raise DataError(
                    f"temporary_folder cannot be used: {error.strerror}. Got "
                    f"{self._folder_wanted!r}; choose another, or go without "
                    "(cache=False, --no-cache)."
                ) from None
            self._folder = Path(self._open.enter_context(folder))
        return self._folder

    def run(self, job: Job) -> Any:
        """Ask every part, one after the other."""
        return merged(job(part) for part in self._parts())

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Bring the rows of open nodes together in files, and finish file by file."""
        stores = [BatchStore(self._temporary()) for _ in range(int(bucket.max()) + 1)]
        for part in self._parts():
            _spill(part, route.nodes_of(part), bucket, stores)
        for number, store in enumerate(stores):
            batches = list(store.batches())
            rows = joined([self._unpacked(batch[1:]) for batch in batches])
            nodes = np.concatenate([batch[0] for batch in batches])
            store.remove()
            self._say(f"Finishing nodes: {number + 1:,} of {len(stores):,} files")
            yield from finished(rows, nodes, below)


def _packed(part: Part) -> list[Any]:
    weights = [] if part.weights is None else [part.weights]
    return [*part.codes, part.target, *weights]


def _spill(part: Part, nodes: Any, bucket: Ints, stores: list[BatchStore]) -> None:
    """Add the rows of open nodes to the files of their buckets."""
    place = np.where(nodes >= 0, bucket[nodes], -1)
    if part.weights is not None:
        place = np.where(part.weights > 0, place, -1)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(stores) + 1))
    for number, store in enumerate(stores):
        rows = order[bounds[number] : bounds[number + 1]]
        if len(rows):
            store.append([nodes[rows], *_packed(part.take(rows))])


def _asked(part: TablePart, question: Callable[[Any], Any]) -> Any:
    """Ask a part; an error says where it is."""
    try:
        return question(part.frame)
    except DataError as error:
        raise DataError(f"In {part.label}: {error}") from None
