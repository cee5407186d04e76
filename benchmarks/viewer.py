"""How long the page of a large tree takes in Chromium: the table of docs/viewer.md.

    python benchmarks/viewer.py

The least and the median of several runs, each in a fresh tab: the time until the first
cards are drawn, and that from choosing all levels until they are. It needs playwright
and a Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from branchwise import ID3Classifier, Model
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import ID3
from branchwise.tree.tree import Tree

_RUNS = 7
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run")


def bushy(n_rows: int = 127_000) -> Model:
    """Learn noise by heart: a tree of about 100,000 nodes."""
    rng = np.random.default_rng(1)
    X = {f"x{at}": rng.random(n_rows).round(4) for at in range(4)}
    found: Model = ID3Classifier().fit(X, rng.integers(0, 3, n_rows)).model_
    return found


def chain(depth: int = 100_000) -> Model:
    """Return a tree that goes on at one side only, as deep as it can be."""
    n = 2 * depth + 1
    inner = np.zeros(n, dtype=bool)
    inner[0], inner[2:-1:2] = True, True
    threshold = np.full(n, np.nan)
    threshold[inner] = np.arange(depth)
    ends = np.arange(n) % 2 == 1
    rest = np.concatenate([[depth + 1], np.repeat(np.arange(depth, 0, -1), 2)])
    weights = np.stack([np.where(ends, 1.0, rest), np.where(ends, 0.0, 1.0)], axis=1)
    tree = Tree(
        np.where(inner, 0, -1),
        threshold,
        np.where(inner, 2, 0),
        np.full(n, -1),
        np.full(n, -1),
        np.concatenate([[0], np.ones(n - 1, dtype=int)]),
        np.tile([0, 1], depth),
        weights,
        weights.sum(axis=1),
    )
    return Model(Schema((Column("x", "numeric"),), ("no", "yes")), tree, ID3)


def measured(browser: Any, path: Path) -> tuple[float, ...]:
    """Return the seconds until a page is drawn, and until all of it is open.

    First by the clock, then those that the page's thread worked: other programs of the
    machine delay the former only.
    """
    context = browser.new_context(viewport={"width": 1200, "height": 760})
    context.set_default_timeout(120_000)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in found if m["name"] == "TaskDuration"))

    times = [(time.perf_counter(), worked())]
    page.goto(path.as_uri())
    page.wait_for_selector("#node-0")
    page.evaluate(_DRAWN)
    times.append((time.perf_counter(), worked()))
    page.select_option("#depth", label="all")
    page.evaluate(_DRAWN)
    times.append((time.perf_counter(), worked()))
    context.close()
    (start, _), (opened, first), (whole, second) = times
    return opened - start, whole - opened, first, second - first


def main() -> None:
    """Print a line of the table for each tree."""
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=_FLAGS)
        print(f"Chromium {browser.version}, {os.cpu_count()} cores, load", end=" ")
        print(", ".join(f"{load:.1f}" for load in os.getloadavg()))
        for model in (bushy(), chain()):
            path = Path(folder) / "tree.html"
            model.to_html(path)
            runs = [measured(browser, path) for _ in range(_RUNS)]
            size = f"{len(model.tree):,} nodes, depth {model.tree.max_depth:,}"
            times = zip(*runs, strict=True)
            told = [
                f"{min(t):.2f} s (median {statistics.median(t):.2f})" for t in times
            ]
            print(f"| {size} | {path.stat().st_size / 1e6:.1f} MB |", " | ".join(told))
        browser.close()


if __name__ == "__main__":
    main()
