"""The border of the extension: what is not sound is refused by name, never followed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from branchwise import CARTClassifier, Recipe, fit_tree
from branchwise.data.arrow import number_texts
from branchwise.data.table_schema import Column
from branchwise.grow import native_kernel as native
from branchwise.grow.criteria import ImpuritySums64
from branchwise.recipe import C45
from native_arguments import growth, with_changes

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

ROOT = Path(__file__).parents[2]


def ints(*entries):
    return np.array(entries, dtype=np.int64)


def misaligned(array):
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def pruning(**changed):
    """Arguments of pruning: a root with two children, one of which has two."""
    given = {
        "columns": [np.array([0, 1, 1, 0], dtype=np.uint8)],
        "n_codes": [3],
        "labels": np.array([0, 1, 1, 0], dtype=np.uint32),
        "n_classes": 2,
        "weights": None,
        "tree": {
            "column": ints(0, 0, -1, -1, -1),
            "threshold": np.full(5, np.nan),
            "n_children": ints(2, 2, 0, 0, 0),
            "missing_to": ints(-1, -1, -1, -1, -1),
            "unseen_to": ints(-1, -1, -1, -1, -1),
            "n_codes": ints(0, 1, 1, 1, 1),
            "codes": ints(0, 1, 0, 1),
            "weights": np.array([[2.0, 2], [2, 1], [0, 1], [2, 0], [0, 1]]),
            "cases": np.array([4.0, 3, 1, 2, 1]),
        },
        "surrogates": None,
        "options": {
            "fractions": False,
            "weight_step": 1.0,
            "case_step": 1.0,
            "log_confidence": -1.4,
            "z": 0.67,
            "bits": 50,
            "slack": 1 << 40,
            "collapses": False,
            "prunes": True,
            "raises": True,
            "new_values": True,
            "costs": [],
            "case_factors": [],
            "usual_costs": [],
        },
    }
    return with_changes(given, changed)


def case_counting(**changed):
    """Arguments of counting cases of classes down the same tree."""
    given = pruning()
    del given["surrogates"]
    for name in ("weights", "cases"):
        del given["tree"][name]
    steps = ("weight_step", "case_step")
    grid = {"fractions": True, **dict.fromkeys(steps, 2.0**-30)}
    given |= {"options": grid, "shares": np.array([0, 0.75, 0.25, 1, 0])}
    return with_changes(given, changed)


def counting(**changed):
    return {
        "columns": [np.array([0, 1, 1], dtype=np.uint8)],
        "n_codes": [2],
        "labels": np.array([0, 1, 0], dtype=np.uint32),
        "n_classes": 2,
        "nodes": np.array([0, -1, 0], dtype=np.int32),
        "n_nodes": 1,
        "weights": None,
        "rows": [np.zeros(4, dtype=np.int64)],
        "sums": [],
        **changed,
    }


def test_sound_calls_are_answered():
    assert len(_native.grow(**growth())["column"]) == 3
    assert len(_native.prune(**pruning())["column"]) >= 1
    given = counting()
    _native.tally(**given)
    assert given["rows"][0].tolist() == [1, 0, 1, 0]
    cases = _native.class_cases(**case_counting())
    assert cases.tolist() == [[2, 2], [2, 0], [0, 2], [2, 0], [0, 0]]
    missing = np.array([0, 1, 2, 2], dtype=np.uint8)
    routes = ints(-2, -1, -1, -1, -1)
    given = case_counting(columns=[missing], missing_to=routes)
    assert _native.class_cases(**given).tolist() == [
        [2, 2], [1.75, 0.75], [0.25, 1.25], [1, 0], [0, 0]
    ]  # fmt: skip


REFUSED_CASE_COUNTING = {
    "a code beyond": ({"columns": [np.full(4, 3, dtype=np.uint8)]}, r"columns\[0\]"),
    "a share above 1": ({"shares": np.full(5, 1.5)}, "shares"),
    "a share that is no number": ({"shares": np.full(5, np.nan)}, "shares"),
    "too few shares": ({"shares": np.ones(4)}, "shares"),
    "no shares": ({"shares": None}, "shares"),
    "a label beyond": ({"labels": np.full(4, 2, dtype=np.uint32)}, "labels"),
    "a tree without end": ({"n_children": ints(2, 3, 0, 0, 0)}, "n_children"),
    "a step that is no power": ({"case_step": 0.3}, "case_step"),
    "an option more": ({"options": {"other": 1}}, "options"),
    "weights off their grid": ({"weights": np.full(4, 1e-12)}, "weights"),
}


@pytest.mark.parametrize("case", REFUSED_CASE_COUNTING)
def test_counting_cases_refuses(case):
    changed, named = REFUSED_CASE_COUNTING[case]
    with pytest.raises((ValueError, TypeError), match=named):
        _native.class_cases(**{**case_counting(), **case_counting(**changed)})


CODES = np.array([0, 1, 1, 0], dtype=np.uint8)
NUMBERS = np.array([0.5, 1, 2, 3])
REFUSED_GROWTH = {
    # Once they were converted, and read after the copy was gone.
    "weights of another type": ({"weights": np.ones(4, dtype=np.float32)}, "weights"),
    "weights in steps": ({"weights": np.ones(8)[::2]}, "weights"),
    "weights in a list": ({"weights": [1.0] * 4}, "weights"),
    "labels of another type": ({"labels": np.zeros(4, dtype=np.int64)}, "labels"),
    "no labels": ({"labels": None}, "labels"),
    "misaligned": ({"columns": [CODES, misaligned(NUMBERS)]}, r"columns\[1\].*aligned"),
    "swapped": ({"columns": [CODES, NUMBERS.astype(">f8")]}, r"columns\[1\]"),
    "infinite": ({"columns": [CODES, NUMBERS * np.inf]}, r"columns\[1\].*finite"),
    "no dimension": ({"columns": [CODES, np.array(1.0)]}, r"columns\[1\].*dimension"),
    "dates": ({"columns": [CODES, NUMBERS.astype("M8[s]")]}, r"columns\[1\]"),
    "huge codes": ({"n_codes": [2**31 - 1, 1]}, "n_codes"),
    "endless codes": ({"n_codes": [10**40, 1]}, "n_codes"),
    "codes that are no numbers": ({"n_codes": [3.0, 1]}, "n_codes"),
    "huge classes": ({"n_classes": 2**31 - 1}, "n_classes"),
    "threads": ({"n_threads": 2**31}, "n_threads"),
    "no threads": ({"n_threads": 0}, "n_threads"),
    "bits": ({"bits": 62}, "bits"),
    "no bits": ({"bits": -(2**31)}, "bits"),
    "another total": ({"total": 3.0}, "total"),
    "no total": ({"total": float("nan")}, "total"),
    "an endless total": ({"total": float("inf")}, "total"),
    "a total for a larger table": ({"total": 1e9}, "bits"),
    "a series of anything": ({"series": [1e300]}, "series"),
    "no leaf": ({"cases_in_leaf": float("nan")}, "cases_in_leaf"),
    "less than no leaf": ({"cases_in_leaf": -5.0}, "cases_in_leaf"),
    "no gain": ({"min_gain": float("nan")}, "min_gain"),
    "whole fractions": ({"fractions": True}, "case_step"),
    "a step that is no power of two": ({"weight_step": 0.3, "case_step": 0.3}, "step"),
    "a listener that is none": ({"progress": 7}, "progress"),
    "flags": ({"few_values": [1, 0]}, "few_values"),
    "positions": ({"positions": [0, 8]}, "positions"),
    "few positions": ({"positions": [0]}, "positions"),
    "a criterion by its number": ({"criterion": 0}, "criterion.*gain_ratio"),
    "an unknown policy": ({"missing": "luckily"}, "missing.*largest"),
    "a learned side": ({"missing": "learned"}, "missing.*two-way"),
    "a test of nothing": ({"max_log_p": 0.5}, "max_log_p"),
    "a depth that is no number": ({"max_depth": 2.0}, "max_depth"),
    "less than no weight": ({"weight_in_leaf": -1.0}, "weight_in_leaf"),
    "an unknown option": ({"options": {**growth()["options"], "x": 1}}, "options"),
    "no options": ({"options": {}}, "options"),
    "parts of cases that are whole": (
        {
            "columns": [CODES, np.array([0.5, np.nan, 2, 3])],
            "missing": "split",
        },
        "fractions",
    ),
}


@pytest.mark.parametrize("case", REFUSED_GROWTH)
def test_growth_refuses(case):
    changed, named = REFUSED_GROWTH[case]
    with pytest.raises((ValueError, TypeError), match=named):
        _native.grow(**growth(**changed))


REFUSED_PRUNING = {
    # A child with no number as its weight left the root as the largest: no end.
    "no number": ({"weights": np.full((5, 2), np.nan)}, "weights"),
    "less than nothing": ({"weights": np.full((5, 2), -1.0)}, "weights"),
    "without end": ({"weights": np.full((5, 2), np.inf)}, "weights"),
    "turned": ({"weights": np.ones((2, 5)).T}, "weights"),
    # Node 1 as the child of itself.
    "cyclic": (
        {"column": ints(-1, 0, 0, -1, -1), "n_children": ints(0, 2, 2, 0, 0)},
        "n_children",
    ),
    "bits": ({"bits": 4000}, "bits"),
    "slack": ({"slack": 2**63 - 1}, "slack"),
    "less slack than none": ({"slack": -1}, "slack"),
    "confidence": ({"log_confidence": float("nan")}, "log_confidence"),
    "z": ({"z": float("inf")}, "z"),
    "costs of some pairs": ({"costs": [0.0, 1.0, 1.0]}, "costs"),
    "costs below none": ({"costs": [0.0, -1.0, 1.0, 0.0]}, r"costs\[1\]"),
    "costs without factors": ({"costs": [0.0, 1.0, 1.0, 0.0]}, "case_factors"),
    "factors without costs": ({"case_factors": [1.0, 1.0]}, "case_factors"),
    "usual costs without costs": ({"usual_costs": [1.0, 1.0]}, "usual_costs"),
    "costs that are no numbers": ({"costs": ["0"] * 4}, r"costs\[0\]"),
    "surrogates in a list": ({"surrogates": []}, "surrogates"),
    "a surrogate on a column beyond": (
        {
            "surrogates": {
                "n_surrogates": ints(1, 0, 0, 0, 0),
                "surrogate_column": ints(1),
                "surrogate_threshold": np.array([np.nan]),
                "surrogate_n_codes": ints(1, 1),
                "surrogate_codes": ints(0, 1),
            }
        },
        "surrogate_column",
    ),
}


@pytest.mark.parametrize(
    "weights", [np.array([1, np.nan, 1, 1]), np.full(4, 0.5), np.full(3, 1.0)]
)
def test_pruning_refuses_weights_of_rows(weights):
    with pytest.raises(ValueError, match="weights"):
        _native.prune(**{**pruning(), "weights": weights})


@pytest.mark.parametrize("case", REFUSED_PRUNING)
def test_pruning_refuses(case):
    changed, named = REFUSED_PRUNING[case]
    with pytest.raises((ValueError, TypeError), match=named):
        _native.prune(**pruning(**changed))


@pytest.mark.parametrize("fractions", [False, True])
def test_pruning_a_tree_that_contradicts_its_rows_ends(fractions):
    """Estimates that no sum can hold stay where they are."""
    step = 2.0**-50 if fractions else 1.0
    for weights in (np.full((5, 2), 1e300), np.zeros((5, 2)), np.eye(5, 2) * 1e18):
        steps = {"weight_step": step, "case_step": step}
        given = pruning(weights=weights, bits=60, fractions=fractions, **steps)
        tree = _native.prune(**given)
        assert tree["n_children"].sum() == len(tree["column"]) - 1


def test_pruning_a_tree_whose_rows_are_all_in_one_branch_ends():
    """A branch takes the place of its parent, and no row has come to it anew."""
    weights = np.array([[8.0, 5], [6, 8], [5, 6], [7, 2], [0, 2]])
    rows = [np.zeros(4, dtype=np.uint8)]
    given = pruning(columns=rows, weights=weights, slack=0, new_values=False)
    assert len(_native.prune(**given)["column"]) == 3


def shared_counting():
    rows = np.zeros(4, dtype=np.int64)
    return {"rows": [rows], "nodes": rows.view(np.int32)[:3]}


REFUSED_COUNTING = {
    # Counts went to a copy that was gone by then.
    "other counts": ({"rows": [np.zeros(4, dtype=np.int32)]}, r"rows\[0\]"),
    "counts in steps": ({"rows": [np.zeros(8, dtype=np.int64)[::2]]}, r"rows\[0\]"),
    "a list": ({"rows": [[0, 0, 0, 0]]}, r"rows\[0\]"),
    "bytes": ({"rows": [bytes(32)]}, r"rows\[0\].*writable"),
    "too short": ({"rows": [np.zeros(3, dtype=np.int64)]}, r"rows\[0\].*4 entries"),
    "what is read": (shared_counting(), r"rows\[0\].*share memory"),
    "huge": ({"n_classes": 2**31 - 1, "n_nodes": 2**31 - 1}, "entries|n_classes"),
    "beyond": ({"nodes": np.array([0, 0, 1], dtype=np.int32)}, "nodes"),
    "numbers": ({"columns": [np.zeros(3)]}, r"columns\[0\].*codes"),
}


@pytest.mark.parametrize("case", REFUSED_COUNTING)
def test_counting_refuses(case):
    changed, named = REFUSED_COUNTING[case]
    with pytest.raises((ValueError, TypeError), match=named):
        _native.tally(**counting(**changed))


def test_counts_that_overflow_are_no_error():
    rows = [np.full(4, np.iinfo(np.int64).max)]
    _native.tally(**counting(rows=rows))
    assert rows[0].min() == np.iinfo(np.int64).min


def leaf_walk():
    nothing = np.array([-1], dtype=np.int64)
    zero = np.zeros(1, dtype=np.int64)
    return _native.Walk(
        tree={
            "column": nothing,
            "threshold": np.array([np.nan]),
            "n_children": zero,
            "missing_to": nothing,
            "unseen_to": nothing,
            "n_codes": zero,
            "codes": zero[:0],
        },
        sizes=np.ones(1),
        labels=np.zeros(1, dtype=np.uint8),
        values=[0],
        surrogates=None,
    )


def test_rows_that_nothing_tells_of_take_no_memory():
    for ask in (leaf_walk().label, leaf_walk().arrive):
        with pytest.raises(ValueError, match="n_rows"):
            ask([np.empty(0)], 2**32 - 2)


def test_arrays_are_held_whatever_becomes_of_their_list():
    columns = [np.tile(CODES, 50_000), np.random.default_rng(0).normal(size=200_000)]
    labels = np.tile(np.array([0, 1, 1, 1], dtype=np.uint32), 50_000)
    given = growth(columns=columns, labels=labels, total=200_000.0)
    given["options"]["bits"] = ImpuritySums64(200_000.0, whole=True).bits
    given["progress"] = lambda _: columns.clear()
    assert len(_native.grow(**given)["column"]) > 1
    assert not columns


def test_hostile_calls():
    """A small part of what ``make fuzz-native`` runs under sanitizers."""
    campaign = [sys.executable, "fuzz/native_calls.py", "--n", "400", "--seed", "1"]
    done = subprocess.run(
        campaign, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 findings" in done.stdout


# ---- through the library ---------------------------------------------------------


def test_a_table_that_is_misaligned_is_fitted_and_predicted():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(60, 1))
    odd = misaligned(plain[:, 0]).reshape(60, 1)
    y = rng.integers(0, 3, 60)
    fitted = CARTClassifier().fit(odd, y)
    assert fitted.model_.to_bytes() == CARTClassifier().fit(plain, y).model_.to_bytes()
    assert fitted.predict(odd).tolist() == fitted.predict(plain).tolist()


def test_texts_whose_offsets_are_misaligned_are_numbered():
    offsets = misaligned(np.array([0, 1, 2, 3], dtype=np.int32))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"aba")]
    array = pa.Array.from_buffers(pa.string(), 3, buffers)
    codes, texts = number_texts(array)
    assert (codes.tolist(), texts) == ([0, 1, 0], ("a", "b"))


def test_more_values_than_tables_can_hold_are_left_to_the_reference():
    many = (Column("x", "categorical", tuple(range(70_000)), False),)
    assert native.holds(many, 2, 10)
    assert not native.holds(many, 200, 10)
    assert native.holds(many, 200, 70_000)
    assert not native.holds((), 70_000, 10)


@pytest.mark.parametrize("total", [1e-3, 1e-30, 1e-200])
def test_bits_that_outweigh_all_weights_are_the_same_in_both_kernels(
    total, monkeypatch
):
    """Bits of a description beside small weights: once beyond any integer."""
    rng = np.random.default_rng(0)
    X = {"a": rng.choice(list("pqrstu"), 40), "n": rng.normal(size=40)}
    y = rng.integers(0, 2, 40)
    weights = np.full(40, total / 40)
    grown = {}
    for kernel in ("reference", "native"):
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        for recipe in (C45, Recipe(branching="groups")):
            made = fit_tree(X, y, recipe, sample_weight=weights).to_bytes()
            grown.setdefault(recipe, []).append(made)
    for reference, twin in grown.values():
        assert reference == twin


# ---- numbering texts -------------------------------------------------------------


def collide_without_a_key(n):
    """Texts of sixteen bytes that had one hash when it had no key."""
    head = np.arange(n, dtype=np.uint64)
    mixed = (head ^ np.uint64(16)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return np.stack([head, mixed ^ np.uint64(12345)], axis=1)


def related_texts(n):
    """Families of texts that differ in few places."""
    counted = np.arange(n, dtype=np.uint64)
    zero = np.zeros(n, dtype=np.uint64)
    yield "heads", np.stack([counted, zero], axis=1)
    yield "tails", np.stack([zero, counted], axis=1)
    yield "high bits", np.stack([counted << np.uint64(48), zero], axis=1)
    yield "both", np.stack([counted, counted], axis=1)
    yield "turned", np.stack([counted, counted[::-1]], axis=1)
    yield "middles", np.stack([zero, counted, zero], axis=1)
    yield "far apart", np.stack([counted, zero, zero, counted, zero], axis=1)


def seconds(words):
    data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
    width = 8 * words.shape[1]
    spent = []
    for _ in range(3):
        start = time.process_time()
        codes, firsts = _native.number_cells(data, width)
        spent.append(time.process_time() - start)
    assert codes.tolist() == firsts.tolist() == list(range(len(words)))
    return min(spent)


def test_texts_made_to_collide_take_no_longer_than_others():
    """Without the key these take 250 times as long, and four times twice as many."""
    n = 50_000
    usual = seconds(np.random.default_rng(0).integers(0, 2**63, (n, 2)))
    assert seconds(collide_without_a_key(n)) < 20 * usual


def test_related_texts_take_no_longer_than_others():
    n = 30_000
    usual = seconds(np.random.default_rng(0).integers(0, 2**63, (n, 2)))
    for family, words in related_texts(n):
        # Where texts collide it is seconds; a coarse clock may say 0.
        assert seconds(words) < 20 * usual + 0.1, family


def test_numbers_of_texts_do_not_depend_on_the_key():
    program = """
import numpy as np
from branchwise import _native
rng = np.random.default_rng(0)
offsets = np.append(0, np.cumsum(rng.integers(0, 40, 2000)))
data = rng.integers(97, 99, int(offsets[-1]), dtype=np.uint8)
for array in _native.number_texts(offsets, data):
    print(array.tolist())
"""
    run = [sys.executable, "-c", program]
    first, second = (subprocess.check_output(run) for _ in range(2))
    assert first == second
