"""A table with its target in a column of its own: the same call for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from branchwise.engines.learning import attributes_of, special, weights_in
from branchwise.engines.task import Task, check_columns
from branchwise.errors import ParameterError, quoted
from branchwise.places import is_files
from branchwise.table.frames import Frame, open_table
from branchwise.table.read import TableFile
from branchwise.table.streamed import files_of


def named_columns(
    source: object,
    target: str,
    weight: object,
    ignore: Sequence[str],
    further: bool = False,
) -> tuple[Frame, Any, Any, str]:
    """Return the attributes, the target and the weights of a table, and its name.

    Further rows may lack columns that are ignored.
    """
    if not isinstance(weight, str) and weight is not None:
        raise ParameterError(
            "sample_weight must be the name of a column where the target is one. Got "
            f"{type(weight).__name__}."
        )
    task = Task(target, weight, tuple(ignore))
    frame = open_table(_read(source) if is_files(source) else source)
    attributes = attributes_of(frame, task)
    if not further:
        check_columns(task, "The table", frame.names)
    return attributes, special(frame, target), weights_in(frame, task), target


def _read(source: object) -> object:
    """Read a file into memory."""
    files = files_of(source)
    if len(files) > 1:
        raise ParameterError(
            f"engine='memory' reads one file. Got {quoted(files)}; use "
            "engine='chunked' for several."
        )
    return TableFile(files[0]).read()
