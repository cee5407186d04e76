"""Parquet files with marks of missing values, odd names and an index of pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from branchwise.cli.main import app


def models_of_marked_files(folder: Path, engine: str, *options: str) -> list[bytes]:
    """Fit by the command line, chunked and by another engine; return both models."""
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame(
        {
            "a.b": rng.choice(["x", "?", "", "y", None], n),
            "`c'\" d": pd.Categorical(rng.choice(["u", "?", "v"], n)),
            "n": rng.integers(0, 9, n),
        }
    )
    table["y"] = np.where(table["a.b"].eq("x") ^ (rng.random(n) < 0.2), "p", "q")
    table.index = pd.Index(rng.permutation(n), name="row")
    files = [str(folder / f"{at}.parquet") for at in range(2)]
    for at, file in enumerate(files):
        table.iloc[at::2].to_parquet(file)
    made = []
    for how in (["--engine", "chunked"], ["--engine", engine, *options]):
        model = folder / "model.json"
        arguments = ["fit", *files, "-t", "y", "-a", "c4.5", *how, "-o", str(model)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (done.output, done.exception)
        made.append(model.read_bytes())
        model.unlink()
    return made
