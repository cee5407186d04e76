"""The memory that files take in parts does not depend on how many rows they have."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

SMALL, LARGE = 500_000, 2_000_000
#: Megabytes by which the peak may differ.
SLACK = 60

FIT = """
    import re, sys
    from pathlib import Path
    from dataclasses import replace
    from branchwise import fit_tree
    from branchwise.recipe import ID3
    fit_tree(sys.argv[1], "y", replace(ID3, max_depth=4)).save(sys.argv[2])
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
PREDICT = """
    import re, sys
    from pathlib import Path
    from branchwise import load
    from branchwise import predict_rows
    predict_rows(load(sys.argv[2]), sys.argv[1], output=sys.argv[3])
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def write(path, n):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(12)], object)
    columns = {f"c{j}": words[rng.integers(0, 12, n)] for j in range(7)}
    columns |= {f"n{j}": np.round(rng.normal(size=n), 2) for j in range(3)}
    right = (columns["n0"] > 0) ^ (columns["c0"] == "word1") ^ (rng.random(n) < 0.2)
    table = pa.table(columns | {"y": np.where(right, "p", "n")})
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path, row_group_size=100_000)


def peak(code, *arguments):
    """Return the megabytes that a process needs."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in /proc")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_four_times_the_rows_take_no_more_memory(form, tmp_path):
    fitting, predicting = [], []
    for n in (SMALL, LARGE):
        path = tmp_path / f"{n}.{form}"
        write(path, n)
        model = tmp_path / f"{n}.json"
        fitting.append(peak(FIT, path, model))
        predicting.append(peak(PREDICT, path, model, tmp_path / f"{n}.out.parquet"))
    assert fitting[1] < fitting[0] + SLACK
    assert predicting[1] < predicting[0] + SLACK
