"""Reading a table whose rows are fitted and tested many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.growth import Growth
from branchwise.cli.models import located
from branchwise.cli.options import missing_marks
from branchwise.cli.reading import remark_header
from branchwise.cli.streams import Reporter
from branchwise.cli.training import (
    parted,
    remark_columns,
    remark_findings,
    remark_target,
)
from branchwise.table.encoded import EncodedTable
from branchwise.table.read import TableFile
from branchwise.table.reading import Reading


@dataclass(frozen=True)
class ReadyRows:
    """A table that is encoded, its target and its weights."""

    table: EncodedTable
    labels: Any
    weights: NDArray[np.float64] | None
    categories: dict[str, list[str]] | None
    file: TableFile


def read_fold_rows(
    path: str,
    target: str,
    growth: Growth,
    regression: bool,
    reading: Reading,
    reporter: Reporter,
    threads: int | None,
) -> ReadyRows:
    """Read and encode a table, each column as the options say."""
    with reporter.reading(path):
        file = TableFile(path, reading)
        roles = growth.roles(file, target, regression)
        table = file.read(
            missing=missing_marks(growth.of_columns("missing")),
            text_columns=roles.text,
            number_columns=roles.numbers,
            ignore=roles.ignored,
        )
        labels, attributes = parted(table, roles, file)
        weights = growth.weights(table, file)
        with located(file):
            encoded = EncodedTable(attributes, n_jobs=threads)
    remark_header(file, reading, reporter)
    remark_columns(attributes, roles, reporter)
    remark_findings(attributes, labels, roles, reporter)
    remark_target(labels, roles, reporter)
    return ReadyRows(encoded, labels, weights, roles.categories or None, file)
