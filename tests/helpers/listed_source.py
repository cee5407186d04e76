"""Rows in parts that lie in a list: what every engine of passes is made of."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from branchwise.engines.base import Plan, Task
from branchwise.engines.chunk import encode_chunk, finished, joined
from branchwise.engines.level_engine import PassEngine, merged
from branchwise.engines.scan import finalise, scan


class ListedPlace:
    """Parts of a table, one after the other; jobs travel as they would elsewhere."""

    engine_name = "list"
    label = "a list of tables"

    def __init__(self, tables: Sequence[Any], most_rows: int = 0) -> None:
        self.tables = tables
        self.most_rows = most_rows
        self.passes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @property
    def names(self) -> list[str]:
        return list(self.tables[0])

    def learn(self, task: Task) -> Plan:
        def again(request: Any, plan: Plan) -> Any:
            return merged(request(table, plan) for table in self.tables)

        return finalise(merged(scan(table, task) for table in self.tables), task, again)

    def engine(self, plan: Plan) -> PassEngine:
        self.parts = [encode_chunk(table, plan) for table in self.tables]
        return PassEngine(plan, self)

    def run(self, job: Any) -> Any:
        self.passes += 1
        job = pickle.loads(pickle.dumps(job))
        return merged(job(part) for part in self.parts)

    def finish(self, route: Any, bucket: Any, below: Any) -> Iterator[Any]:
        nodes = np.concatenate([route.nodes_of(part) for part in self.parts])
        kept = np.flatnonzero(bucket[nodes] >= 0)
        kept = kept[nodes[kept] >= 0]
        yield from finished(joined(self.parts).take(kept), nodes[kept], below)
