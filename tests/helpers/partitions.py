"""Partitions of a Dask table that misbehave; workers import this module."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd


def faulty(rows: pd.DataFrame, log: str, failures: int) -> pd.DataFrame:
    """Fail so many times, which a file remembers, where the row 0 is."""
    if 0 in rows.index:
        seen = Path(log)
        times = len(seen.read_text()) if seen.exists() else 0
        seen.write_text("x" * (times + 1))
        if times < failures:
            raise OSError("the disk is gone")
    return rows


def moody(rows: pd.DataFrame, log: str) -> pd.DataFrame:
    """Swap two values as long as a file is there."""
    if Path(log).exists():
        return rows.assign(c0=rows["c0"].map({"v0": "v1", "v1": "v0"}))
    return rows


def slow(rows: pd.DataFrame) -> pd.DataFrame:
    """Take long."""
    time.sleep(3)
    return rows
