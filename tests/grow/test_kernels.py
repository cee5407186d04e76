"""The compiled twin equals the reference to the last bit, and checks its border."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from branchwise import DataError, ParameterError, Recipe, datasets, fit_tree
from branchwise import native as loader
from branchwise.data.table_schema import Column, Columns, Schema
from branchwise.data.target import Classes
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe.parameters import BUILT_IN
from branchwise.tree.apply import Walker
from branchwise.tree.validation import validate
from kernel_problems import (
    assert_same_tree,
    random_problem,
    shared_problem,
    unseen_rows,
)
from native_arguments import growth, with_changes
from selection import first_fast

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

N_TABLES = 5000


def assert_same_answers(columns, tree, rows, context, monkeypatch) -> None:
    monkeypatch.setenv(loader.VARIABLE, "native")
    fast = Walker(columns, tree)
    fast_arrivals = fast.walk(rows)
    fast_labels = fast.classify(rows)
    blended = fast.probabilities(rows)
    monkeypatch.setenv(loader.VARIABLE, "reference")
    plain = Walker(columns, tree)
    plain_arrivals = plain.walk(rows)
    for name in ("row", "node", "share"):
        np.testing.assert_array_equal(
            getattr(fast_arrivals, name), getattr(plain_arrivals, name), str(context)
        )
    expected = plain.distribution(plain_arrivals)
    np.testing.assert_array_equal(fast.distribution(fast_arrivals), expected)
    np.testing.assert_array_equal(blended, expected, str(context))
    np.testing.assert_array_equal(
        fast_labels, plain.labels(plain_arrivals), str(context)
    )


@pytest.mark.parametrize("part", first_fast(range(60)))
def test_same_tree_and_same_answers_on_random_tables(part, monkeypatch):
    for seed in range(part, N_TABLES, 60):
        columns, data, labels, n_classes, grid, recipe = random_problem(seed)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        twin = native.grow_native(columns, data, labels, n_classes, grid, recipe)
        assert_same_tree(reference, twin, (seed, recipe))
        validate(twin, Schema(tuple(columns), tuple(range(n_classes))))

        # Rows walk in blocks; now and then there are more than one holds.
        rng = np.random.default_rng(seed)
        rows = unseen_rows(rng, columns, 1100 if seed % 50 == part % 50 else 40)
        assert_same_answers(columns, twin, rows, seed, monkeypatch)


@pytest.mark.parametrize("kind", ["categories", "numbers", "both"])
def test_same_answers_of_deep_trees(kind, monkeypatch):
    """Rows that have arrived are left out below the first levels."""
    rng = np.random.default_rng(3)
    n = 1500
    columns, cells = [], []
    for j in range(0 if kind == "numbers" else 14):
        columns.append(Column(f"c{j}", "categorical", (0, 1), True))
        cells.append(rng.integers(0, 2, n).astype(np.uint8))
    for j in range(0 if kind == "categories" else 2):
        columns.append(Column(f"n{j}", "numeric", (), True))
        cells.append(rng.exponential(size=n))
    labels = rng.integers(0, 2, n).astype(np.intp)
    data, grid = Columns(n, tuple(cells)), weigh(None, n, fractions=False)
    tree = native.grow_native(columns, data, labels, 2, grid, Recipe(missing="split"))
    assert tree.max_depth > 10
    assert_same_answers(columns, tree, data, kind, monkeypatch)
    assert_same_answers(columns, tree, unseen_rows(rng, columns, n), kind, monkeypatch)


@pytest.mark.parametrize("criterion", BUILT_IN)
@pytest.mark.parametrize("n_columns", [3, 40])
def test_same_tree_on_larger_tables(criterion, n_columns):
    """Enough rows for byte counters to be emptied and tables of masses to end."""
    rng = np.random.default_rng(n_columns)
    n = 70_000
    columns, cells = [], []
    for j in range(n_columns):
        size = int(rng.integers(2, 13))
        columns.append(Column(f"x{j}", "categorical", tuple(range(size))))
        cells.append(rng.integers(0, size, n).astype(np.uint8))
    labels = ((cells[0] + cells[1] + (rng.random(n) < 0.05)) % 3).astype(np.intp)
    grid = weigh(None, n, fractions=False)
    recipe = Recipe(criterion=criterion, max_depth=4)
    data = Columns(n, tuple(cells))
    engine = MemoryEngine(columns, data, Classes(labels, 3), grid)
    twin = native.grow_native(columns, data, labels, 3, grid, recipe)
    assert_same_tree(grow(engine, columns, recipe), twin, criterion)


# Numbers of rows from which bit rows are counted another way: few one by one, groups of
# sixteen, small nodes, counters of a byte, and bytes emptied after 254 groups.
TURNS = [1, 8, 9, 15, 16, 17, 24, 25, 45, 46, 252, 253, 255, 256, 4064, 4080, 4096]


@pytest.mark.parametrize("n_first", TURNS)
@pytest.mark.parametrize("criterion", first_fast(BUILT_IN))
def test_same_tree_of_bit_rows_where_their_counting_turns(criterion, n_first):
    rng = np.random.default_rng(n_first)
    n = n_first + 3
    sizes = [3, 3, 2, 8, 9, 15, 16, 17, 33, 63, 64]
    columns = [
        Column(f"x{j}", "categorical", tuple(range(size)), False)
        for j, size in enumerate(sizes)
    ]
    cells = [rng.integers(0, size, n).astype(np.uint8) for size in sizes]
    cells[0][:] = 0  # a bit that every row has, and below, bits that none has
    cells[1][:] = 2
    few = np.zeros(n, dtype=np.intp)
    few[:3] = 1
    for labels, kept in itertools.product((few, rng.permutation(n) % 2), (5, 11)):
        data = Columns(n, tuple(cells[:kept]))
        grid, recipe = weigh(None, n, False), Recipe(criterion=criterion)
        engine = MemoryEngine(columns[:kept], data, Classes(labels, 2), grid)
        reference = grow(engine, columns[:kept], recipe)
        twin = native.grow_native(columns[:kept], data, labels, 2, grid, recipe)
        assert_same_tree(reference, twin, (n_first, kept))


def test_the_variable_forces_a_kernel(monkeypatch):
    tennis = datasets.load("tennis")
    bytes_of = {}
    for kernel in ("reference", "native"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        assert loader.available() == (kernel == "native")
        bytes_of[kernel] = fit_tree(tennis.X, tennis.y).to_bytes()
    assert bytes_of["reference"] == bytes_of["native"]
    monkeypatch.setenv(loader.VARIABLE, "fast")
    with pytest.raises(
        ParameterError, match=r"must be 'reference' or 'native'\. Got 'fast'"
    ):
        fit_tree(tennis.X, tennis.y)


def test_without_the_extension_the_reference_serves_and_says_so_once():
    script = """
import sys, warnings
sys.modules["branchwise._native"] = None
from branchwise import datasets, fit_tree
tennis = datasets.load("tennis")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        fit_tree(tennis.X, tennis.y).predict(tennis.X)
print(len(caught), caught[0].message)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("1 branchwise was installed without its compiled")


def test_without_the_extension_native_cannot_be_forced(monkeypatch):
    monkeypatch.setattr(loader, "extension", lambda: None)
    monkeypatch.setenv(loader.VARIABLE, "native")
    with pytest.raises(
        ParameterError, match="installed without its compiled extension"
    ):
        loader.available()


def test_a_custom_criterion_is_served_by_the_reference():
    def purity(parent, branches):
        return branches.max(axis=2).sum(axis=1) / parent.sum(axis=1)

    recipe = Recipe(criterion=purity)
    assert not native.serves(recipe)
    tennis = datasets.load("tennis")
    assert fit_tree(tennis.X, tennis.y, recipe).score(tennis.X, tennis.y) == 1.0


GOOD = growth()
CODES = np.array([0, 1, 1, 0], dtype=np.uint8)
BAD_GROWTH = {
    "code out of range": {"columns": [CODES + 9, GOOD["columns"][1]]},
    "wrong dtype": {"columns": [CODES.astype(np.int64), GOOD["columns"][1]]},
    "not contiguous": {"columns": [np.repeat(CODES, 2)[::2], GOOD["columns"][1]]},
    "two dimensions": {"columns": [CODES.reshape(2, 2), GOOD["columns"][1]]},
    "not an array": {"columns": ["abcd", GOOD["columns"][1]]},
    "too short": {"columns": [CODES[:2], GOOD["columns"][1]]},
    "numbers too long": {"columns": [CODES, np.zeros(5)]},
    "fewer codes than none": {"n_codes": [-1, 1]},
    "n_codes too few": {"n_codes": [3]},
    "label out of range": {"labels": GOOD["labels"] + 1},
    "no rows": {"labels": np.empty(0, np.uint32)},
    "no classes": {"n_classes": 0},
    "weights too short": {"weights": np.ones(3)},
    "weights between steps": {"weights": np.full(4, 0.5)},
    "weights below zero": {"weights": np.full(4, -1.0)},
    "weights that are no numbers": {"weights": np.full(4, np.nan)},
    "weights without end": {"weights": np.full(4, np.inf)},
    "weights of too many steps": {"weights": np.full(4, 2.0**52)},
    "no step between weights": {"weights": np.ones(4), "weight_step": 0.0},
    "no step between cases": {"weights": np.ones(4), "case_step": 0.0},
    "cases of too many steps": {"weights": np.ones(4), "case_step": 2.0**-52},
    "too few times": {"times": np.ones(3, dtype=np.uint8)},
    "times of rows that do not count": {
        "times": np.array([1, 0, 1, 1], dtype=np.uint8)
    },
    "times of another type": {"times": np.ones(4)},
    "times of rows with weights": {
        "times": np.ones(4, dtype=np.uint8),
        "weights": np.ones(4),
    },
    "two grids without weights": {"fractions": True, "case_step": 0.5},
    "unknown criterion": {"criterion": "variety"},
    "unknown policy": {"missing": "nowhere"},
    "unknown policy of unseen values": {"unseen": "learned"},
    "a learned side of many branches": {"missing": "learned"},
    "surrogates of many branches": {"missing": "surrogate"},
    "no series": {"series": []},
}


def test_the_border_takes_good_arrays():
    assert len(_native.grow(**GOOD)["column"]) > 1


@pytest.mark.parametrize("case", BAD_GROWTH)
def test_the_border_of_growth_refuses_bad_arrays(case):
    with pytest.raises((ValueError, TypeError)):
        _native.grow(**growth(**BAD_GROWTH[case]))


def walk_arrays():
    """A root with two children on one column of two values."""
    ints = {
        "column": [0, -1, -1],
        "n_children": [2, 0, 0],
        "missing_to": [-1, -1, -1],
        "unseen_to": [-1, -1, -1],
        "n_codes": [0, 1, 1],
        "codes": [0, 1],
    }
    arrays = {name: np.array(entries, dtype=np.int64) for name, entries in ints.items()}
    return {
        "tree": {**arrays, "threshold": np.full(3, np.nan)},
        "sizes": np.array([4.0, 3.0, 1.0]),
        "labels": np.array([0, 0, 1], dtype=np.uint8),
        "values": [2],
        "surrogates": None,
    }


def test_the_border_of_prediction_takes_good_arrays():
    walk = _native.Walk(**walk_arrays())
    cells = np.array([0, 1, 2, 3], dtype=np.uint8)
    nodes, rows, ends, shares = walk.arrive([cells], 4)
    assert nodes.tolist() == [1, 2, 0, 0]
    assert rows.tolist() == ends.tolist() == shares.tolist() == []


def test_the_border_of_prediction_gives_labels():
    cells = np.array([0, 1, 2, 3], dtype=np.uint8)
    labels, divided = _native.Walk(**walk_arrays()).label([cells], 4)
    assert labels.tolist() == [0, 1, 0, 0]
    assert divided.tolist() == []


def test_rows_that_are_divided_have_no_label_of_their_own():
    arrays = walk_arrays()
    arrays["tree"]["missing_to"][0] = -2
    walk = _native.Walk(**arrays)
    labels, divided = walk.label([np.array([0, 2], dtype=np.uint8)], 2)
    assert (labels[0], divided.tolist()) == (0, [1])
    labels, divided = walk.label([np.array([0, 1], dtype=np.uint8)], 2)
    assert (labels.tolist(), divided.tolist()) == ([0, 1], [])


def test_a_tree_that_was_given_no_labels_has_none():
    arrays = {**walk_arrays(), "labels": np.empty(0, dtype=np.uint8)}
    cells = np.array([0], dtype=np.uint8)
    with pytest.raises(ValueError, match="without labels"):
        _native.Walk(**arrays).label([cells], 1)
    with pytest.raises(ValueError, match="for each node"):
        _native.Walk(**{**arrays, "labels": np.zeros(2, dtype=np.uint8)})


def test_prediction_divides_rows_that_go_down_every_branch():
    arrays = walk_arrays()
    arrays["tree"]["missing_to"][0] = -2
    nodes, rows, ends, shares = _native.Walk(**arrays).arrive(
        [np.array([0, 2], dtype=np.uint8)], 2
    )
    assert nodes.tolist() == [1, _native.FRACTIONAL]
    assert rows.tolist() == [1, 1]
    assert ends.tolist() == [1, 2]
    assert shares.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("missing", ["node", "split"])
@pytest.mark.parametrize("numbers", [False, True])
def test_same_answers_of_a_tree_that_asks_more_than_255_columns(
    numbers, missing, monkeypatch
):
    """The table of ways has wider entries then."""
    rng = np.random.default_rng(0)
    n, n_columns = 4000, 600
    names = [f"x{j}" for j in range(n_columns)]
    columns = [Column(name, "categorical", (0, 1, 2), True) for name in names]
    cells = [rng.integers(0, 3, n, dtype=np.uint8) for _ in columns]
    for codes in cells:
        codes[rng.integers(n)] = 3  # missing
    if numbers:
        columns[::2] = [Column(c.name, "numeric", (), False) for c in columns[::2]]
        cells[::2] = [rng.normal(size=n).round(1) for _ in cells[::2]]
    data = Columns(n, tuple(cells))
    labels = rng.integers(0, 3, n).astype(np.intp)
    grid = weigh(None, n, missing == "split")
    recipe = Recipe(max_depth=12, missing=missing)
    tree = native.grow_native(columns, data, labels, 3, grid, recipe)
    assert len(tree.used_columns) > 255
    rows = unseen_rows(rng, columns, 700)
    assert_same_answers(columns, tree, rows, "wide", monkeypatch)


@pytest.mark.parametrize("n_classes", [255, 256, 300])
def test_same_labels_where_classes_do_not_fit_a_byte(n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    columns = [Column(f"x{j}", "categorical", tuple(range(9)), False) for j in range(5)]
    n = 4 * n_classes
    data = Columns(n, tuple(rng.integers(0, 9, n, dtype=np.uint8) for _ in columns))
    labels = np.arange(n) % n_classes
    grid = weigh(None, n, fractions=False)
    tree = native.grow_native(columns, data, labels, n_classes, grid, Recipe())
    assert tree.label.max() == n_classes - 1
    assert_same_answers(columns, tree, data, n_classes, monkeypatch)


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("column", [5, -1, -1]),
        ("column", [-1, -1, -1]),
        ("n_children", [3, 0, 0]),
        ("n_children", [-2, 0, 0]),
        ("n_children", [1, 0, 0]),
        ("missing_to", [2, -1, -1]),
        ("unseen_to", [-3, -1, -1]),
        ("n_codes", [0, 9, 1]),
        ("n_codes", [1, 1, 0]),
        ("codes", [0, 7]),
        ("codes", [0, -1]),
        ("codes", [0]),
        ("column", [0]),
    ],
)
def test_the_border_of_prediction_refuses_bad_trees(name, entries):
    arrays = with_changes(walk_arrays(), {name: np.array(entries, dtype=np.int64)})
    with pytest.raises(ValueError, match=r"\w"):
        _native.Walk(**arrays)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([0, 1, 2, 4], dtype=np.uint8),
        np.array([0, 1], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([0, 1, 2, 3], dtype=np.int16),
        None,
    ],
)
def test_the_border_of_prediction_refuses_bad_cells(cells):
    walk = _native.Walk(**walk_arrays())
    with pytest.raises((ValueError, TypeError)):
        walk.arrive([cells], 4)
    with pytest.raises((ValueError, TypeError)):
        walk.label([cells], 4)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_the_border_of_prediction_refuses_a_bad_code_in_any_row(dtype):
    """Codes are checked block by block."""
    walk = _native.Walk(**walk_arrays())
    for row in (0, 127, 128, 511, 512, 1200):
        cells = np.full(1201, 3, dtype=dtype)
        assert walk.label([cells], 1201)[0].tolist() == [0] * 1201
        cells[row] = 4
        with pytest.raises(ValueError, match="beyond that of unseen"):
            walk.label([cells], 1201)


def test_progress_is_told_the_number_of_nodes(monkeypatch):
    rng = np.random.default_rng(0)
    X = {f"x{j}": rng.integers(0, 9, 60_000).astype(str) for j in range(12)}
    y = rng.integers(0, 2, 60_000)
    for kernel in ("reference", "native"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        told: list[int] = []
        model = fit_tree(X, y, Recipe(max_depth=5), progress=told.append)
        assert told
        assert told == sorted(told)
        assert told[-1] <= len(model.tree)


def test_an_error_in_progress_reaches_the_caller():
    rng = np.random.default_rng(0)
    X = {f"x{j}": rng.integers(0, 9, 60_000).astype(str) for j in range(12)}

    def give_up(n_nodes: int) -> None:
        raise DataError("enough")

    with pytest.raises(DataError, match="enough"):
        fit_tree(X, rng.integers(0, 2, 60_000), progress=give_up)


@pytest.mark.parametrize("n", first_fast([10_000, 30_000]))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_numeric", [0, 2])
def test_any_number_of_threads_grows_the_same_tree(weighted, n_numeric, n):
    """Enough rows that subtrees are handed over."""
    rng = np.random.default_rng(7)
    X = {f"x{j}": rng.integers(0, 5, n).astype(str) for j in range(6)}
    X |= {f"n{j}": rng.normal(size=n).round(2) for j in range(n_numeric)}
    X["x0"][rng.random(n) < 0.05] = ""
    y = (rng.random(n) < 0.3).astype(int) ^ (X["x1"] == X["x2"])
    weights = rng.random(n) if weighted else None
    one = fit_tree(X, y, sample_weight=weights)
    for n_jobs in (2, 3, -1):
        assert fit_tree(X, y, sample_weight=weights, n_jobs=n_jobs) == one


@pytest.mark.parametrize("part", first_fast(range(4)))
def test_threads_that_share_small_nodes_grow_the_same_tree(part, monkeypatch):
    """Every node is worth sharing: its columns, its rows and its subtrees."""
    for seed in range(part, N_TABLES // 10, 4):
        problem = random_problem(seed)
        monkeypatch.setattr(native, "WORTH_SHARING", 2**40)
        one = native.grow_native(*problem, n_threads=1)
        for n_threads, worth_sharing in ((2, 1), (3, 200), (3, 20_000)):
            monkeypatch.setattr(native, "WORTH_SHARING", worth_sharing)
            shared = native.grow_native(*problem, n_threads=n_threads)
            assert_same_tree(one, shared, (seed, n_threads, worth_sharing))


@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_threads_that_share_bit_rows_grow_the_same_tree(n_classes, monkeypatch):
    """Rows of one or more pairs of words, in pieces: of large, small and no classes."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(300, 6000))
        sizes = rng.choice([2, 5, 12, 64], size=3 + 4 * (seed % 2))
        columns = [
            Column(f"x{j}", "categorical", tuple(range(size)))
            for j, size in enumerate(sizes)
        ]
        cells = [(size * rng.random(n) ** 2).astype(np.uint8) for size in sizes]
        noise = (n_classes * rng.random(n) ** 3).astype(np.intp)
        labels = (noise + cells[0] * cells[1]) % n_classes
        data, grid = Columns(n, tuple(cells)), weigh(None, n, fractions=False)
        problem = columns, data, labels, n_classes, grid, Recipe()
        reference = grow(
            MemoryEngine(columns, data, Classes(labels, n_classes), grid),
            columns,
            Recipe(),
        )
        assert reference.n_children[0] > 1
        monkeypatch.setattr(native, "WORTH_SHARING", 1)
        for n_threads in (1, 2, 3):
            twin = native.grow_native(*problem, n_threads=n_threads)
            assert_same_tree(reference, twin, (seed, n_threads))


@pytest.mark.parametrize("n_numeric", [0, 2])
def test_an_error_in_progress_ends_all_threads(n_numeric):
    def give_up(n_nodes: int) -> None:
        raise DataError("enough")

    for n_threads in (2, 5):
        with pytest.raises(DataError, match="enough"):
            native.grow_native(*shared_problem(n_numeric), n_threads, give_up)


@pytest.mark.skipif(
    sys.platform != "linux" or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="limits memory as Linux does; AddressSanitizer ends the process instead",
)
def test_threads_that_run_out_of_memory_end_with_an_error():
    """Sorting needs large arrays in every thread: an exception, never a hang."""
    script = """
import resource
import numpy as np
from branchwise import Recipe
from branchwise.grow import native_kernel as native
from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import weigh

n = 400_000
rng = np.random.default_rng(0)
columns = [Column(f"n{j}", "numeric", ()) for j in range(4)]
data = Columns(n, tuple(rng.normal(size=n) for _ in columns))
labels = rng.integers(0, 2, n)
problem = columns, data, labels, 2, weigh(None, n, False), Recipe(max_depth=2)
native.grow_native(*problem, n_threads=3)
pages = int(open("/proc/self/statm").read().split()[0])
_, hard = resource.getrlimit(resource.RLIMIT_AS)
ends = set()
for megabytes in (1, 2, 4, 8, 16, *range(30, 300, 30)):
    limit = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        native.grow_native(*problem, n_threads=3)
        ends.add("grown")
    except MemoryError:
        ends.add("out of memory")
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(sorted(ends))
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert run.stdout.strip() == "['grown', 'out of memory']"


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("n_numeric", [0, 2])
def test_ctrl_c_ends_all_threads(n_numeric):
    script = f"""
import os, signal, sys
sys.path.insert(0, "tests/helpers")
from branchwise.grow import native_kernel as native
from kernel_problems import shared_problem
problem = shared_problem({n_numeric})
def press(n_nodes):
    os.kill(os.getpid(), signal.SIGINT)
try:
    while True:
        native.grow_native(*problem, 3, press)
except KeyboardInterrupt:
    print("interrupted")
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert run.stdout.strip() == "interrupted"


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_n_jobs_must_be_a_number_of_threads(n_jobs):
    tennis = datasets.load("tennis")
    with pytest.raises(ParameterError, match="n_jobs must be None or a whole number"):
        fit_tree(tennis.X, tennis.y, n_jobs=n_jobs)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 2**70},
        {"min_samples_split": 10**400},
        {"min_samples_leaf": 10**40},
    ],
)
def test_limits_beyond_every_number(limits):
    tennis = datasets.load("tennis")
    model = fit_tree(tennis.X, tennis.y, Recipe(**limits))
    assert len(model.tree) == (8 if "max_depth" in limits else 1)


TEXTS = ["", "a", "b", "ab", "ba", "abcdefgh", "abcdefghi", "x" * 50, "é", "日本", "\0"]


@pytest.mark.parametrize("seed", range(20))
def test_texts_are_numbered_as_arrow_does(seed):
    pa = pytest.importorskip("pyarrow")
    from branchwise.data.arrow import number_texts

    rng = np.random.default_rng(seed)
    pool = [*TEXTS, *(f"id {k}" for k in range(int(rng.integers(0, 2000))))]
    cells = [pool[k] for k in rng.integers(0, len(pool), int(rng.integers(0, 3000)))]
    if seed % 2:
        cells = [None if rng.random() < 0.2 else cell for cell in cells]
    kind = pa.large_string() if seed % 3 else pa.string()
    array = pa.array(cells, type=kind)
    if seed % 4 == 0 and len(array) > 5:
        array = array.slice(3, len(array) - 4)
    codes, values = number_texts(array)
    assert len(set(values)) == len(values)
    assert [None if c < 0 else values[c] for c in codes.tolist()] == array.to_pylist()
    assert set(values) == set(array.to_pylist()) - {None}


def test_chunks_of_text_are_numbered_together():
    pa = pytest.importorskip("pyarrow")
    from branchwise.data.arrow import number_texts

    codes, values = number_texts(pa.chunked_array([["a", "b"], ["b", None, "a"]]))
    assert [values[c] if c >= 0 else None for c in codes] == ["a", "b", "b", None, "a"]
    assert number_texts(pa.array([1, 2])) is None


@pytest.mark.parametrize(
    "offsets",
    [
        np.array([], dtype=np.int32),
        np.array([0, 9], dtype=np.int32),
        np.array([-1, 2], dtype=np.int64),
        np.array([2, 1], dtype=np.int64),
        np.array([0, 1], dtype=np.uint8),
        np.array([0.0, 1.0]),
    ],
)
def test_the_border_of_texts_refuses_bad_offsets(offsets):
    with pytest.raises((ValueError, TypeError)):
        _native.number_texts(offsets, np.zeros(3, dtype=np.uint8))


@pytest.mark.parametrize("length", range(34))
def test_texts_that_differ_in_one_byte_get_numbers_of_their_own(length):
    text = bytes(range(97, 97 + 26)) + bytes(range(65, 65 + 26))
    other = [
        text[:at] + b"\0" + text[at + 1 : length]
        for at in range(length)  # at the ends and between
    ]
    texts = [text[:length], *other, text[: length + 1], text[:length] + b"\0"]
    for rows in (texts * 3, (texts * 3)[::-1]):
        data = np.frombuffer(b"".join(rows), dtype=np.uint8)
        offsets = np.cumsum([0, *map(len, rows)])
        codes, firsts = _native.number_texts(offsets, data)
        distinct = dict.fromkeys(rows)
        assert [rows[first] for first in firsts] == list(distinct)
        assert [list(distinct)[code] for code in codes] == rows


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "U1", "U3", "U11", "O"])
def test_cells_are_numbered_by_their_bytes(dtype):
    from branchwise.data.arrow import number_cells

    rng = np.random.default_rng(5)
    for n in (1, 2, 3000):
        cells = rng.integers(0, 90, (n, 2)).astype(dtype)[:, 0]
        if dtype == "O":
            pool = np.array([f"text {k}" for k in range(90)], dtype=object)
            cells = np.stack([pool[cells.astype(int)]] * 2, axis=1)[:, 1]
        codes, firsts = number_cells(cells)
        assert codes.dtype == np.int32
        assert firsts.tolist() == sorted(firsts.tolist())
        assert len(set(cells[firsts].tolist())) == len(firsts)
        assert cells[firsts][codes].tolist() == cells.tolist()


def test_equal_objects_are_not_the_same_object():
    from branchwise.data.arrow import number_cells

    cells = np.array([str(1000), str(1000)] * 2, dtype=object)
    codes, firsts = number_cells(cells)
    assert (codes.tolist(), firsts.tolist()) == ([0, 1, 0, 1], [0, 1])


def test_nothing_is_numbered_without_the_extension(monkeypatch):
    from branchwise.data.arrow import number_cells

    assert number_cells(np.array([], dtype=object)) is None
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    assert number_cells(np.array([1.0])) is None


@pytest.mark.parametrize("width", [0, -1, 2, 8])
def test_the_border_of_cells_refuses_bad_widths(width):
    with pytest.raises((ValueError, TypeError)):
        _native.number_cells(np.zeros(3, dtype=np.uint8), width)
