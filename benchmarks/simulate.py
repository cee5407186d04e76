"""A thousand partitions through the real reducer: what a level costs, and moves.

The partitions are generated (a planted tree of 20 categorical columns), encoded, and
counted by the job that every engine of passes sends to its parts. The answers are
pickled as they would travel, recorded, and merged by the reducer that the engines
use; the merged counts must be those of all rows, to the last bit.

    python benchmarks/simulate.py [--partitions 1000] [--rows 10000] [--levels 4]

Times are processor seconds, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from branchwise.data.weights import unit_grid
from branchwise.engines.base import Plan, Task
from branchwise.engines.chunk import Chunk, joined
from branchwise.engines.level_engine import CountColumns, PassEngine, merged
from branchwise.engines.scan import finalise, scan
from branchwise.grow.grow import grow
from branchwise.recipe import ID3
from branchwise.train.train import task_of
from generate import planted_parts


@dataclass
class LevelCost:
    """What one level cost: seconds of counting and merging, bytes of answers."""

    open_nodes: int
    counting: float
    merging: float
    answer_bytes: list[int] = field(default_factory=list)
    merged_bytes: int = 0

    def row(self, n_rows: int) -> str:
        """Write the level in Markdown."""
        mean = sum(self.answer_bytes) / len(self.answer_bytes)
        return (
            f"| {self.open_nodes:,} | {self.counting / n_rows * 1e9:.1f} | "
            f"{mean / 1024:.0f} | {self.merged_bytes / 1024:.0f} | "
            f"{self.merging / len(self.answer_bytes) * 1e3:.2f} |"
        )


class Recorder:
    """Counts parts one by one, records the answers as they travel, and merges them."""

    most_rows = 0

    def __init__(self, parts: list[Chunk]) -> None:
        self.parts = parts
        self.levels: list[LevelCost] = []

    def run(self, job: CountColumns) -> Any:
        """Count all parts, pickle the answers, merge them."""
        start = time.process_time()
        answers = [pickle.dumps(job(part)) for part in self.parts]
        counted = time.process_time()
        total = merged(pickle.loads(answer) for answer in answers)
        done = time.process_time()
        cost = LevelCost(job.route.n_open, counted - start, done - counted)
        cost.answer_bytes = [len(answer) for answer in answers]
        cost.merged_bytes = len(pickle.dumps(total))
        self.levels.append(cost)
        return total

    def finish(self, *_: object) -> Iterator[Any]:
        """Finish nothing: every level is counted."""
        return iter(())


def make(n_partitions: int, rows: int) -> tuple[Plan, list[Chunk], float]:
    """Return a plan and the encoded partitions, and the seconds to look at a row."""
    tables = planted_parts((rows,) * n_partitions, 20)
    task = task_of(ID3, Task("y"))
    frames = [table.frame("str").assign(y=table.labels()) for table in tables[:4]]
    start = time.process_time()
    facts = merged(scan(frame, task) for frame in frames)
    seconds = (time.process_time() - start) / (4 * rows)
    plan = finalise(facts, task)
    total = rows * n_partitions
    plan = replace(plan, n_rows=total, grid=unit_grid(total, fractions=False))
    parts = [
        Chunk(
            tuple(np.ascontiguousarray(table.codes.T.astype(np.uint8))),
            table.y.astype(np.uint8),
        )
        for table in tables
    ]
    return plan, parts, seconds


def main() -> None:
    """Print the costs of each level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--levels", type=int, default=4)
    given = parser.parse_args()
    plan, parts, looking = make(given.partitions, given.rows)
    columns = plan.schema.columns
    recipe = replace(ID3, max_depth=given.levels)
    recorder = Recorder(parts)
    start = time.process_time()
    tree = grow(PassEngine(plan, recorder), columns, recipe)
    seconds = time.process_time() - start
    whole = Recorder([joined(parts)])
    again = grow(PassEngine(plan, whole), columns, recipe)
    if tree != again:
        raise SystemExit("the partitions gave another tree than the whole")
    n_rows = plan.n_rows
    spent = sum(level.counting + level.merging for level in recorder.levels)
    print(
        f"{given.partitions:,} partitions of {given.rows:,} rows, {len(columns)} "
        f"columns: the tree of {len(tree):,} nodes is that of the whole.\n"
    )
    print("| open nodes | counting, ns/row | answer, KiB | merged, KiB | merge, ms |")
    print("|---|---|---|---|---|")
    for level in recorder.levels:
        print(level.row(n_rows))
    searched = sum(level.open_nodes for level in recorder.levels)
    print(
        f"\nlooking at a row of text: {looking * 1e9:.0f} ns; choosing splits: "
        f"{(seconds - spent) / searched * 1e6:.0f} us per open node."
    )


if __name__ == "__main__":
    main()
