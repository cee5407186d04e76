"""Hostile calls of the compiled extension: each returns, or is refused by name.

    python fuzz/native_calls.py --n 50000 --seed 1

A call is one that the library could make, with up to three arguments changed: arrays
of other types, lengths, orders or contents, numbers out of range, objects of any kind.
Calls run in a child process with limits of time and memory, so that a crash or a hang
is a finding; it is printed with what repeats it (``--only``), and the exit code is 1.
``make fuzz-native`` runs them under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import argparse
import math
import mmap
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _hostile import mutated, pick
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes, measure
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import class_cases_of
from branchwise.grow import native_kernel as native
from branchwise.prune.error_based import prune_native
from branchwise.recipe import C45, Recipe
from branchwise.tree.apply import NativeWalk
from branchwise.tree.tree import Tree
from limits import PATIENCE

#: Seconds for one call, bytes for a child, and calls for each of them.
SECONDS = 20
MEMORY = 6 << 30
CALLS = 2500

Call = tuple[str, dict[str, Any]]
_native = native.extension()


class Recorder:
    """Stands for the extension, and keeps what it is called with."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def record(**given: Any) -> dict[str, Any]:
            self.given = given
            raise StopIteration

        return record


def recorded(call: Callable[..., Any], *given: Any) -> dict[str, Any]:
    """Return the arguments that a call hands to the extension."""
    module = sys.modules[call.__module__]
    recorder, kept = Recorder(), module.extension
    module.extension = lambda: recorder
    try:
        with suppress(StopIteration):
            call(*given)
    finally:
        module.extension = kept
    return recorder.given


# ---- calls that the library could make ---------------------------------------------


def a_table(rng: np.random.Generator) -> tuple[list[Column], Columns]:
    """Return some columns of categories and numbers, and their rows."""
    n = int(rng.choice([1, 2, 5, 20, 60, 300]))
    columns, cells = [], []
    for index in range(rng.integers(1, 6)):
        if rng.random() < 0.4:
            columns.append(Column(f"x{index}", "numeric", (), True))
            numbers = rng.choice([rng.normal(size=n), rng.integers(0, 5, n) / 2.0])
            cells.append(np.where(rng.random(n) < 0.1, np.nan, numbers))
        else:
            n_values = int(rng.choice([1, 2, 3, 9, 40, 70, 300, 70_000]))
            values = tuple(range(n_values))
            column = Column(f"x{index}", "categorical", values, True)
            codes = rng.integers(0, n_values + 1, n)
            columns.append(column)
            cells.append(codes.astype(column.code_dtype))
    return columns, Columns(n, tuple(cells))


def a_recipe(rng: np.random.Generator) -> Recipe:
    """Return a recipe that the extension serves."""
    if rng.random() < 0.3:
        return C45
    branching = str(rng.choice(["values", "groups", "two-way"]))
    policies = ["branch", "split", "largest", "node"]
    if branching == "two-way":
        policies += ["learned", "surrogate"]
    return Recipe(
        criterion=str(rng.choice(["gain", "gain_ratio", "gini"])),
        branching=branching,  # type: ignore[arg-type]
        missing=str(rng.choice(policies)),  # type: ignore[arg-type]
        unseen=str(rng.choice(["branch", "split", "largest", "node"])),  # type: ignore[arg-type]
        max_depth=None if rng.random() < 0.7 else int(rng.integers(0, 4)),
        max_p_value=None if rng.random() < 0.7 else float(rng.choice([1.0, 0.1])),
        min_samples_leaf=int(rng.integers(1, 4)),
        min_gain=float(rng.choice([0.0, 0.1])),
    )


def grow_arguments(rng: np.random.Generator) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return arguments of growth, and what they were made from."""
    columns, data = a_table(rng)
    recipe = a_recipe(rng)
    n_classes = int(rng.choice([1, 2, 3, 9]))
    labels = rng.integers(0, n_classes, data.n_rows)
    weights = None
    if rng.random() < 0.5:
        weights = rng.choice([rng.random(data.n_rows), rng.integers(0, 4, data.n_rows)])
        weights = weights.astype(float)
        weights[0] = 1.0
    grid = weigh(weights, data.n_rows, recipe.missing == "split")
    threads = int(rng.choice([1, 1, 1, 2, 3]))
    source = (columns, data, labels, n_classes, grid, recipe)
    given = recorded(native.grow_native, *source, threads)
    given["options"]["worth_sharing"] = int(rng.choice([1, 1 << 18]))
    if rng.random() < 0.2:
        given["options"]["weight_in_leaf"] = float(rng.random() * 3)
    return given, source


def numbers_call(rng: np.random.Generator) -> Call:
    """Return a call of growth from numbers."""
    columns, data = a_table(rng)
    branching = str(rng.choice(["values", "two-way"]))
    policies = ["branch", "largest", "node"]
    if branching == "two-way":
        policies += ["learned", "surrogate"]
    recipe = replace(
        a_recipe(rng),
        criterion=str(rng.choice(["variance", "poisson"])),
        branching=branching,  # type: ignore[arg-type]
        algorithm="CART",
        missing=str(rng.choice(policies)),  # type: ignore[arg-type]
        pruning=None,
        quinlan_thresholds=False,
        average_gain=False,
        collapse=False,
    )
    y = rng.choice([rng.random(data.n_rows), rng.integers(0, 4, data.n_rows)]) + 1.0
    y *= 10.0 ** float(rng.choice([0, 0, 30, -30]))
    weights = rng.random(data.n_rows) + 0.1 if rng.random() < 0.4 else None
    grid = weigh(weights, data.n_rows, False)
    threads = int(rng.choice([1, 1, 2]))
    times = None
    if weights is None and rng.random() < 0.5:
        times = rng.integers(1, 6, data.n_rows).astype(np.uint8)
        grid = weigh(None, int(times.sum()), False)
    source = (columns, data, measure(y, grid), grid, recipe, threads)
    given = recorded(native.grow_numbers, *source, None, None, times)
    given["options"]["worth_sharing"] = int(rng.choice([1, 1 << 18]))
    given["options"] |= some_draws(rng, branching)
    given["options"]["summarised"] = bool(rng.random() < 0.5)
    return "grow_numbers", given


def forest_call(rng: np.random.Generator) -> Call:
    """Return the making of a forest, and the growth of one of its trees."""
    columns, data, labels, n_classes, _, recipe = grow_arguments(rng)[1]
    n_drawn, n_columns = int(rng.integers(1, 400)), len(columns)
    grid = weigh(None, n_drawn, recipe.missing == "split")
    table = columns, data, labels, n_classes, rng.permutation(data.n_rows)
    given = recorded(native.BitForest.of, *table, grid, recipe, None)
    given["options"] |= some_draws(rng, given["options"]["branching"])
    given |= {"of_tree": rng.permutation(n_columns).tolist()}
    return "bit_forest", given | {"sample_key": 3, "draw_key": 2**64 - 1}


def grow_call(rng: np.random.Generator) -> Call:
    """Return a call of growth."""
    given = grow_arguments(rng)[0]
    options = given["options"]
    options |= some_draws(rng, options["branching"])
    if rng.random() < 0.2:
        options["quinlan_thresholds"] = bool(rng.random() < 0.5)
    return "grow", given


def some_draws(rng: np.random.Generator, branching: str) -> dict[str, Any]:
    """Return options of drawn columns and random splits, and of the average gain."""
    at_random = branching != "groups" and bool(rng.random() < 0.3)
    corrects = branching == "two-way" and not at_random and bool(rng.random() < 0.5)
    return {
        "corrects_values": corrects,
        "few_values_to_group": int(rng.choice([2, 8])),
        "max_features": int(rng.choice([0, 0, 1, 2])),
        "draw_key": int(rng.integers(0, 2**63)),
        "random_splits": at_random,
        "average_gain": bool(rng.random() < 0.3),
    }


def grown(source: tuple[Any, ...]) -> Tree:
    """Grow a tree, whatever its p-values."""
    tree = native.grow_native(*source)
    if tree is None:
        tree = native.grow_native(*source[:-1], replace(source[-1], max_p_value=None))
    if tree is None:
        raise AssertionError("nothing was tested")
    return tree


def prune_call(rng: np.random.Generator) -> Call:
    """Return a call of pruning."""
    _, source = grow_arguments(rng)
    columns, data, labels, _, grid, recipe = source
    tree = grown(source)
    arguments = (columns, data, labels, grid, tree, recipe)
    given = recorded(prune_native, *arguments)
    given["options"] |= {"prunes": True, "raises": bool(rng.random() < 0.8)}
    return "prune", given


def class_cases_call(rng: np.random.Generator) -> Call:
    """Return a call that counts the cases of classes, divided ones among them."""
    _, source = grow_arguments(rng)
    columns, data, labels, n_classes, grid, _ = source
    if not grid.fractions:
        return prune_call(rng)
    table = (columns, data, Classes(labels, n_classes), grid)
    return "class_cases", recorded(class_cases_of, *table, grown(source))


#: The methods of a walk.
WALKS = ("label", "arrive", "blend", "node")


def walk_call(rng: np.random.Generator) -> Call:
    """Return the making of a walk and its use, by the name of the method."""
    _, source = grow_arguments(rng)
    columns, data = source[:2]
    tree = grown(source)
    given = recorded(NativeWalk, columns, tree)
    n_rows = 0 if len(tree) == 1 else data.n_rows  # the library asks no more of a leaf
    method = str(rng.choice(WALKS))
    if method == "node":
        used = tree.used_columns
        cells = [data.data[index][0].item() for index in used] if len(used) else []
        return method, {**given, "row": cells}
    rows: dict[str, Any] = {"columns": list(data.data), "n_rows": n_rows}
    if method == "blend":
        rows["numbers"] = rng.random((len(tree), int(rng.integers(1, 4))))
        some = np.flatnonzero(rng.random(n_rows) < 0.5)
        rows["rows"] = some if rng.random() < 0.5 else None
    return method, {**given, **rows}


def tally_call(rng: np.random.Generator) -> Call:
    """Return a call of counting."""
    n, n_classes, n_nodes = int(rng.integers(1, 50)), 3, 4
    n_codes = [int(size) for size in rng.choice([1, 2, 9, 300], size=2)]
    dtypes = [np.uint8 if size <= 256 else np.uint16 for size in n_codes]
    codes = [rng.integers(0, size, n) for size in n_codes]
    weighted = rng.random() < 0.5
    pairs = [n_nodes * size for size in n_codes]
    counts = 1 if weighted else n_classes
    return "tally", {
        "columns": [c.astype(d) for c, d in zip(codes, dtypes, strict=True)],
        "n_codes": n_codes,
        "labels": rng.integers(0, n_classes, n).astype(np.uint32),
        "n_classes": n_classes,
        "nodes": rng.integers(-1, n_nodes, n).astype(np.int32),
        "n_nodes": n_nodes,
        "weights": rng.random(n) if weighted else None,
        "rows": [np.zeros(size * counts, dtype=np.int64) for size in pairs],
        "sums": [np.zeros(size * n_classes) for size in pairs if weighted],
    }


def moments_call(rng: np.random.Generator) -> Call:
    """Return a call of counting moments, by code or below one."""
    n, width = int(rng.integers(1, 50)), int(pick(rng, (3, 20)))
    n_codes = [int(size) for size in rng.choice([1, 9, 200], size=2)]
    n_cases = int(rng.integers(0, 60))
    shared = rng.random() < 0.5
    given = {
        "columns": [rng.integers(0, size, n).astype(np.uint8) for size in n_codes],
        "rows": rng.integers(0, n, n_cases),
        "shares": rng.random(n_cases) if shared else None,
        "moments": rng.random((n_cases, width)),
    }
    if rng.random() < 0.5:
        out = {"cases": np.zeros(2), "sums": np.zeros(2 * width)}
        return "moments_below", given | {"above": [size // 2 for size in n_codes]} | out
    return "tally_moments", given | {
        "n_codes": n_codes,
        "counts": [np.zeros(size, dtype=np.int64) for size in n_codes],
        "cases": [np.zeros(size) for size in n_codes if shared],
        "sums": [np.zeros(size * width) for size in n_codes],
    }


#: What distances from the mean of a node are rounded by.
STEPS = {"centre": 0.5, "factor": 0.5, "step": 2.0**-49, "low_step": 2.0**-90}


def distances_call(rng: np.random.Generator) -> Call:
    """Return a call of finding the distances of cases from a mean."""
    n = int(rng.integers(0, 50))
    return "number_distances", {
        "moments": rng.random((n, 4)),
        "sum_exponents": [-20.0, -50.0],
        "steps": dict(STEPS),
        "out": np.zeros(2 * n),
    }


def number_thresholds_call(rng: np.random.Generator) -> Call:
    """Return a call of the search for thresholds where numbers are predicted."""
    n, n_codes = int(rng.integers(1, 200)), int(rng.integers(1, 250))
    some = lambda: rng.random() < 0.5  # noqa: E731
    rules = {name: some() for name in ("weights_are_cases", "joins", "branch")}
    numbers = {"fewest_cases": 1.0, "fewest_weight": 0.0, "missing_cases": 2.0}
    return "number_segments", {
        "codes": rng.integers(0, n_codes, n).astype(np.uint16),
        "n_codes": n_codes,
        "rows": rng.permutation(n) if some() else None,
        "weights": rng.random(n) if some() else None,
        "cases": rng.random(n) if some() else None,
        "moments": rng.random((n, 4)),
        "distances": rng.random(2 * n),
        "sum_exponents": [-20.0, -50.0],
        "rules": rules | numbers | {"unit": 2.0**-60, "noise": 2.0**-49} | STEPS,
        "missing": rng.random(3),
        "poisson": some(),
    }


def thresholds_call(rng: np.random.Generator) -> Call:
    """Return a call of the search for thresholds at a node."""
    n, n_codes, n_classes = int(rng.integers(1, 200)), int(rng.integers(1, 250)), 3
    some = lambda: rng.random() < 0.5  # noqa: E731
    flags = ("gini", "by_ratio", "weights_are_cases")
    numbers = ("whole", "information", "resolution", "min_gain", "fewest_weight")
    rules = {name: some() for name in flags} | dict.fromkeys(numbers, 0.0)
    rules |= {"fewest_cases": 1.0, "total": float(n), "unit": 2.0**-50}
    rules |= {"joining_cases": 2.0, "step": 2.0**-20}
    return "threshold_segments", {
        "codes": rng.integers(0, n_codes, n).astype(np.uint16),
        "n_codes": n_codes,
        "rows": rng.permutation(n) if some() else None,
        "labels": rng.integers(0, n_classes, n).astype(np.uint32),
        "n_classes": n_classes,
        "weights": rng.random(n) if some() else None,
        "cases": rng.random(n) if some() else None,
        "rules": rules,
        "values": np.arange(n_codes - 1, dtype=np.float64) if some() else None,
        "joining": np.ones(n_classes) if some() else None,
        "table": np.arange(n + 9) if some() else None,
    }


def texts_call(rng: np.random.Generator) -> Call:
    """Return a call that numbers texts."""
    lengths = rng.integers(0, 40, int(rng.integers(0, 50)))
    offsets = np.append(0, np.cumsum(lengths)).astype(rng.choice([np.int32, np.int64]))
    data = rng.integers(97, 100, int(offsets[-1]), dtype=np.uint8)
    return "number_texts", {"offsets": offsets, "data": data}


def cells_call(rng: np.random.Generator) -> Call:
    """Return a call that numbers cells."""
    width = int(rng.integers(1, 20))
    data = rng.integers(0, 3, width * int(rng.integers(0, 60)), dtype=np.uint8)
    return "number_cells", {"data": data, "width": width}


def csv_call(rng: np.random.Generator) -> Call:
    """Return a call that numbers cells of delimited text."""
    width = int(rng.integers(1, 6))
    cells = np.array(["a", "bb", "", '"c,c"', "x" * 20, '"', "\r"], dtype=object)
    shares = [0.3, 0.3, 0.2, 0.1, 0.08, 0.01, 0.01]
    rows = rng.choice(cells, (int(rng.integers(0, 30)), width), p=shares)
    text = "".join(",".join(row) + "\n" for row in rows)
    columns = rng.permutation(width).tolist()
    first = int(rng.integers(0, width + 1))
    return "number_csv", {
        "text": np.frombuffer(text.encode(), np.uint8),
        "delimiter": 44,
        "width": width,
        "numbered": columns[:first],
        "copied": columns[first:],
    }


def fingerprint_call(rng: np.random.Generator) -> Call:
    """Return a call that compares memory with a copy of it."""
    return "Fingerprint", {"arrays": some_memory(rng)}


def some_memory(rng: np.random.Generator) -> list[np.ndarray]:
    """Return arrays of different lengths and types."""
    kinds = np.uint8, np.float64, np.int32
    lengths = rng.integers(0, 200, int(rng.integers(0, 4)))
    return [np.ones(n, dtype=kinds[int(rng.integers(0, 3))]) for n in lengths]


def a_set(rng: np.random.Generator, n_sets: int, n_rows: int) -> np.ndarray:
    """Return sets of rows as bits, 64 a word, a word more than is needed."""
    sets = np.zeros((n_sets, 64 * (n_rows // 64 + 2)), dtype=bool)
    sets[:, :n_rows] = rng.random((n_sets, n_rows)) < 0.4
    return np.packbits(sets, axis=1, bitorder="little").view(np.uint64)


def generalise_rules_call(rng: np.random.Generator) -> Call:
    """Return a call that drops conditions of rules."""
    n_rows, n_rules = int(rng.integers(0, 200)), int(rng.integers(0, 9))
    starts = np.cumsum([0, *rng.integers(0, 5, n_rules)])
    return "generalise_rules", {
        "holds": a_set(rng, 4, n_rows),
        "starts": starts,
        "conditions": rng.integers(0, 4, starts[-1]),
        "labels": rng.integers(0, 3, n_rules),
        "of_class": a_set(rng, 3, n_rows),
        "counted": a_set(rng, 1, n_rows)[0],
        "weights": rng.random(n_rows) if rng.random() < 0.5 else None,
        "log_confidence": -1.4,
        "z": 0.7,
    }


def chosen_rules_call(rng: np.random.Generator) -> Call:
    """Return the making of a set of rules, and a rule that comes."""
    n_rows, n_rules = int(rng.integers(0, 200)), int(rng.integers(1, 9))
    return "ChosenRules", {
        "sets": a_set(rng, n_rules, n_rows),
        "right": rng.random(n_rows),
        "wrong": rng.random(n_rows),
        "rule": int(rng.integers(0, n_rules)),
        "comes": True,
    }


def vote_sums_call(rng: np.random.Generator) -> Call:
    """Return the making of sums of votes, and a vote."""
    n_rows, n_rules = int(rng.integers(0, 200)), int(rng.integers(1, 9))
    return "VoteSums", {
        "sets": a_set(rng, n_rules, n_rows),
        "labels": rng.integers(0, 3, n_rules),
        "target": rng.integers(0, 3, n_rows),
        "weights": rng.random(n_rows) * 2.0**32,
        "powers": rng.random(3) + 0.1,
        "rule": int(rng.integers(0, n_rules)),
        "factor": float(rng.random()) + 0.5,
        "votes": rng.random(n_rules),
        "grid": 2.0**32,
        "ridge": 1.0,
    }


MAKERS = (grow_call, grow_call, prune_call, walk_call, tally_call, texts_call)
MAKERS = (
    *MAKERS,
    cells_call,
    csv_call,
    fingerprint_call,
    grow_call,
    prune_call,
    prune_call,
    walk_call,
)
MAKERS = (*MAKERS, generalise_rules_call, chosen_rules_call, vote_sums_call)
MAKERS = (*MAKERS, numbers_call, numbers_call, moments_call, thresholds_call)
MAKERS = (*MAKERS, distances_call, number_thresholds_call, forest_call, forest_call)
MAKERS = (*MAKERS, class_cases_call)


# ---- calls that it would not make -----------------------------------------------


def a_call(seed: int, number: int) -> tuple[str, dict[str, Any], list[str]]:
    """Return a call, its arguments and the names of those that were changed."""
    rng = np.random.default_rng([seed, number])
    function, given = pick(rng, MAKERS)(rng)
    places = entries(given)
    some = rng.integers(0, len(places), min(int(rng.integers(0, 4)), len(places)))
    changed = []
    for name, inside in [places[at] for at in sorted(set(some.tolist()))]:
        changed.append(name)
        inside[name] = mutated(rng, inside[name])
    if function == "grow" and rng.random() < 0.2:
        given["progress"] = forgetful(given)
        changed.append("progress")
    if function == "tally" and rng.random() < 0.1:
        share_memory(given)
        changed.append("rows")
    return function, given, changed


def entries(given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the names of arguments and of their entries, and where each is."""
    places = [(name, given) for name in given]
    for value in given.values():
        if isinstance(value, dict):
            places += [(name, value) for name in value]
    return places


def forgetful(given: dict[str, Any]) -> Callable[[int], None]:
    """Return a listener that empties the lists it was called beside."""

    def forget(_: int) -> None:
        for value in given.values():
            if isinstance(value, list | dict):
                value.clear()

    return forget


def share_memory(given: dict[str, Any]) -> None:
    """Let what is read be what is written."""
    with suppress(Exception):
        given["nodes"] = given["rows"][0].view(np.int32)[: len(given["labels"])]


# ---- trying them -------------------------------------------------------------------


def try_one(seed: int, number: int) -> str:
    """Make a call; return how it ended, or raise what is a finding."""
    function, given, changed = a_call(seed, number)
    names = [name for name, _ in entries(given)]
    try:
        result = called(function, given)
    except (TypeError, ValueError, OverflowError) as error:
        if not changed:
            raise AssertionError(f"{function} refused a sound call: {error}") from error
        known = "incompatible function arguments" in str(error)
        if not known and not any(name in str(error) for name in names):
            raise AssertionError(f"no argument is named: {error!r}") from error
        return "refused"
    touch(result)
    return "returned"


def called(function: str, given: dict[str, Any]) -> Any:
    """Call a function of the extension, or a method of a walk."""
    if function == "Fingerprint":
        fingerprint = _native.Fingerprint(**given)
        copy = fingerprint.copied()
        if not copy.equals(fingerprint) or copy.sampled() != fingerprint.sampled():
            raise AssertionError("a copy differs")
        return None
    if function == "ChosenRules":
        step = {name: given[name] for name in ("rule", "comes")}
        made = {name: value for name, value in given.items() if name not in step}
        rules = _native.ChosenRules(**made)
        rules.toggle(**step)
        return rules.sums()
    if function == "bit_forest":
        keys = {name: given[name] for name in ("sample_key", "draw_key")}
        others = [name for name in given if name not in (*keys, "of_tree")]
        forest = _native.bit_forest(**{name: given[name] for name in others})
        if forest is None:
            return None
        return forest.grow(columns=given["of_tree"], **keys, progress=None)
    if function == "VoteSums":
        step = {name: given[name] for name in ("rule", "factor")}
        turn = {name: given[name] for name in ("votes", "grid", "ridge")}
        others = [name for name in given if name not in (*step, *turn)]
        sums = _native.VoteSums(**{name: given[name] for name in others})
        sums.vote(**step)
        every = np.arange(len(given["labels"]))
        adjusted = sums.adjust(rules=every, **turn)
        return sums.sums_of(rules=every), sums.rows(0), adjusted[0]
    if function not in WALKS:
        return getattr(_native, function)(**given)
    made = {
        name: given[name]
        for name in ("tree", "sizes", "labels", "values", "surrogates")
    }
    rows = {name: value for name, value in given.items() if name not in made}
    return getattr(_native.Walk(**made), function)(**rows)


def touch(result: Any) -> None:
    """Read every entry of what came out, and see that a tree is one."""
    if isinstance(result, dict):
        if int(result["n_children"].sum()) != len(result["column"]) - 1:
            raise AssertionError("the nodes do not make a tree")
        touch(tuple(result.values()))
    elif isinstance(result, tuple):
        for array in result:
            touch(array)
    elif isinstance(result, np.ndarray):
        result.tobytes()


def child(seed: int, first: int, last: int, place: str) -> int:
    """Make calls, and note each before it is made."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    done: Counter[str] = Counter()
    with Path(place).open("r+b") as file, mmap.mmap(file.fileno(), 8) as note:
        for number in range(first, last):
            note[:8] = number.to_bytes(8, "little")
            _limit_processor_time()
            try:
                done[try_one(seed, number)] += 1
            except Exception:
                traceback.print_exc()
                return 1
    print(" ".join(f"{name}={count}" for name, count in done.items()))
    return 0


def _limit_processor_time() -> None:
    """Let the kernel end this process if the next call computes for too long."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time()) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft, most))


class Campaign:
    """Calls in child processes, one after the other; a child dies of its finding."""

    def __init__(self, seed: int, n: int) -> None:
        self.seed, self.n = seed, n
        self.findings: list[tuple[int, str]] = []
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """Make all calls."""
        first = 0
        with tempfile.TemporaryDirectory() as folder:
            while first < self.n:
                first = self._some(first, min(first + CALLS, self.n), Path(folder))

    def _some(self, first: int, last: int, folder: Path) -> int:
        """Let a child make calls; return the number of the next."""
        place, output = folder / "note", folder / "output"
        place.write_bytes(first.to_bytes(8, "little"))
        limits = [str(self.seed), str(first), str(last), str(place)]
        with output.open("wb") as kept:
            process = subprocess.Popen(
                [sys.executable, __file__, "--child", *limits],
                stdout=kept,
                stderr=subprocess.STDOUT,
            )
            hangs = self._watch(process, place)
        text = output.read_text(errors="replace")
        if process.returncode == 0 and not hangs:
            for entry in text.split()[-2:]:
                name, _, count = entry.partition("=")
                self.done[name] += int(count)
            return last
        number = int.from_bytes(place.read_bytes(), "little")
        why = (
            f"more than {SECONDS} s"
            if hangs or process.returncode == -signal.SIGXCPU
            else f"exit code {process.returncode}"
        )
        self.findings.append((number, f"{why}\n{text[-4000:]}"))
        print(f"call {number}: {why}\n{text[-4000:]}", flush=True)
        return number + 1

    @staticmethod
    def _watch(process: subprocess.Popen[bytes], place: Path) -> bool:
        """Wait for a child, or end it if one call waits without end."""
        number, since = place.read_bytes(), time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            now = place.read_bytes()
            if now != number:
                number, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE * SECONDS:
                process.kill()
                process.wait()
                return True
        return False


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=50_000, help="how many calls")
    parser.add_argument("--seed", type=int, help="a fresh one by default")
    parser.add_argument("--only", type=int, help="make one call, in this process")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        seed, first, last, place = asked.child
        return child(int(seed), int(first), int(last), place)
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    if asked.only is not None:
        function, _, changed = a_call(seed, asked.only)
        print(f"{function}, changed: {', '.join(changed)}", flush=True)
        print(try_one(seed, asked.only))
        return 0
    print(f"seed {seed}", flush=True)
    campaign = Campaign(seed, asked.n)
    campaign.run()
    counts = ", ".join(f"{count:,} {name}" for name, count in campaign.done.items())
    print(f"{asked.n:,} hostile calls: {counts}; {len(campaign.findings)} findings")
    for number, why in campaign.findings:
        repeat = f"python fuzz/native_calls.py --seed {seed} --only {number}"
        print(f"  {repeat}: {why.splitlines()[0]}")
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
