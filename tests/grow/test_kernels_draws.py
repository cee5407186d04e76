"""Trees of drawn columns in the compiled kernel equal those of the reference."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from branchwise import Recipe
from branchwise import native as loader
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes, measure
from branchwise.data.weights import weigh
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.draws import ColumnDraws, tree_key
from branchwise.grow.grow import grow
from branchwise.recipe import C45, CART, ID3
from branchwise.train.train import finished, grown_from_bins, in_bins, is_native
from kernel_problems import assert_same_tree
from kernel_recipes import larger_table, number_problem_with, problem_with
from native_arguments import growth
from number_problems import same_numbers
from selection import examples, first_fast

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


def random_draws(rng, n_columns, random_splits):
    """As few as one column, or nearly all."""
    most = int(rng.integers(1, n_columns + 2))
    key = tree_key(int(rng.integers(0, 2**63)), 3)
    return ColumnDraws(key, most, random_splits)


def random_changes(rng, branchings):
    """Branches of any number, policies and tests of splits."""
    branching = str(rng.choice(branchings))
    policies = ["branch", "branch", "split", "largest", "node", "learned", "surrogate"]
    missing = str(rng.choice(policies[: 5 + 2 * (branching == "two-way")]))
    limit = float(rng.choice([0.5, 0.05])) if rng.random() < 0.2 else None
    return {"branching": branching, "missing": missing, "max_p_value": limit}


def shared_out(seed, monkeypatch):
    """Have a few tables shared out node by node; returns the numbers of threads."""
    monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
    return (1, 2, 7) if seed % 10 == 0 else (1,)


def same_classes(problem, drawn, threads, context):
    columns, data, labels, n_classes, grid, recipe = problem
    engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
    reference = grow(engine, columns, recipe, drawn=drawn)
    undecided = 0
    for n_threads in threads:
        tree = native.grow_native(*problem, n_threads=n_threads, drawn=drawn)
        undecided += tree is None
        if tree is not None:
            assert_same_tree(reference, tree, (context, n_threads, drawn, recipe))
    return undecided


def same_regression(problem, drawn, threads, context):
    columns, data, y, grid, recipe = problem
    target = measure(y, grid)
    engine = MemoryEngine(columns, data, target, grid)
    reference = grow(engine, columns, recipe, drawn=drawn)
    reference = finished(reference, target.scale, grid)
    undecided = 0
    for n_threads in threads:
        tree = native.grow_numbers(
            columns, data, target, grid, recipe, n_threads, drawn=drawn
        )
        undecided += tree is None
        if tree is not None:
            tree = finished(tree, target.scale, grid)
            same_numbers(reference, tree, (context, n_threads, drawn, recipe))
    return undecided


def check_classes(seeds, monkeypatch, random_splits=False):
    undecided = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 3])
        third = "two-way" if random_splits else "groups"
        changes = random_changes(rng, ["values", "values", "two-way", third])
        problem = problem_with(seed, **changes)
        assert native.serves(problem[-1])
        drawn = random_draws(rng, len(problem[0]), random_splits)
        threads = shared_out(seed, monkeypatch)
        undecided += same_classes(problem, drawn, threads, seed)
    assert undecided <= 2


def check_numbers(seeds, monkeypatch, random_splits=False):
    undecided = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 3])
        changes = random_changes(rng, ["values", "two-way"])
        problem = number_problem_with(seed, **changes)
        assert native.serves(problem[-1])
        drawn = random_draws(rng, len(problem[0]), random_splits)
        threads = shared_out(seed, monkeypatch)
        undecided += same_regression(problem, drawn, threads, seed)
    assert undecided <= 2


def bit_rows_problem(seed):
    """Categories alone, some of them constant: the representation as bits."""
    rng = np.random.default_rng([seed, 4])
    n = int(rng.choice([10, 60, 400, 1500]))
    sizes = rng.choice([1, 2, 3, 5, 12, 40], int(rng.integers(2, 16)))
    columns = [
        Column(f"x{j}", "categorical", tuple(range(size)), False)
        for j, size in enumerate(sizes.tolist())
    ]
    cells = [rng.integers(0, size, n).astype(np.uint8) for size in sizes]
    n_classes = int(rng.choice([2, 2, 3, 7]))
    told = (cells[0] + cells[-1]) % n_classes
    labels = np.where(rng.random(n) < 0.7, told, rng.integers(0, n_classes, n))
    recipe = Recipe(
        criterion=str(rng.choice(["gain", "gain_ratio", "gini"])),
        branching=str(rng.choice(["values", "values", "two-way", "groups"])),  # type: ignore[arg-type]
        min_samples_leaf=int(rng.choice([1, 1, 3])),
        max_depth=rng.choice([None, 4]),
    )
    if seed % 5 == 0:
        recipe = replace(C45, pruning=None, collapse=False)
    grid = weigh(None, n, False)
    labels = labels.astype(np.intp)
    return columns, Columns(n, tuple(cells)), labels, n_classes, grid, recipe


def check_bit_rows(seeds, monkeypatch):
    for seed in seeds:
        problem = bit_rows_problem(seed)
        drawn = random_draws(np.random.default_rng([seed, 5]), len(problem[0]), False)
        same_classes(problem, drawn, shared_out(seed, monkeypatch), seed)


def with_gaps(columns, data, rng):
    """Return a table with missing values, which are the last value of a column."""
    columns = [replace(column, has_missing=True) for column in columns]
    share = float(rng.choice([0.03, 0.2, 0.6]))
    lost = [rng.random(data.n_rows) < share for _ in columns]
    cells = tuple(
        np.where(gone, column.missing_code, cells).astype(np.uint8)
        for column, cells, gone in zip(columns, data.data, lost, strict=True)
    )
    return columns, Columns(data.n_rows, cells)


def halves_problem(seed):
    """Two classes by Gini in two branches: values are halved as plain numbers."""
    columns, data, labels, _, grid, _ = bit_rows_problem(seed)
    rng = np.random.default_rng([seed, 6])
    labels = labels % 2
    if rng.random() < 0.3:  # rows that are alike, so that splits tie
        cells = tuple(cells % 3 for cells in data.data)
        data = Columns(data.n_rows, cells)
    missing = "branch"
    if rng.random() < 0.5:
        columns, data = with_gaps(columns, data, rng)
        missing = str(rng.choice(["branch", "learned"]))
    recipe = replace(
        CART,
        missing=missing,  # type: ignore[arg-type]
        min_samples_leaf=int(rng.choice([1, 1, 1, 3])),
        min_gain=float(rng.choice([0, 0, 0, 0.01])),
    )
    return columns, data, labels, 2, grid, recipe


def check_halves(seeds, monkeypatch):
    for seed in seeds:
        problem = halves_problem(seed)
        drawn = random_draws(np.random.default_rng([seed, 5]), len(problem[0]), False)
        same_classes(problem, drawn, shared_out(seed, monkeypatch), seed)


def check_learned_sides(seeds, monkeypatch):
    """Bit rows whose missing values join a branch, with and without draws."""
    for seed in seeds:
        columns, data, labels, n_classes, grid, _ = bit_rows_problem(seed)
        rng = np.random.default_rng([seed, 7])
        columns, data = with_gaps(columns, data, rng)
        recipe = replace(
            CART,
            missing="learned",
            criterion=str(rng.choice(["gini", "gini", "gain", "gain_ratio"])),
            min_samples_leaf=int(rng.choice([1, 1, 3])),
            unseen=str(rng.choice(["largest", "branch"])),  # type: ignore[arg-type]
        )
        problem = columns, data, labels, n_classes, grid, recipe
        drawn = random_draws(rng, len(columns), False) if seed % 2 else None
        same_classes(problem, drawn, shared_out(seed, monkeypatch), seed)


def tied_problem(seed):
    """Few rows of some classes, where many groupings and columns are equally good."""
    rng = np.random.default_rng([seed, 8])
    n, n_classes = int(rng.choice([6, 12, 25, 48, 49, 100])), int(rng.integers(2, 6))
    sizes = rng.integers(2, 14, int(rng.integers(1, 8)))
    columns = [
        Column(f"x{j}", "categorical", tuple(range(size)), False)
        for j, size in enumerate(sizes.tolist())
    ]
    cells = [rng.integers(0, size, n).astype(np.uint8) for size in sizes]
    cells[-1] = (cells[0] % sizes[-1]).astype(np.uint8)
    labels = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 0.5)))
    data, missing = Columns(n, tuple(cells)), "branch"
    if rng.random() < 0.6:
        columns, data = with_gaps(columns, data, rng)
        missing = str(rng.choice(["branch", "learned", "learned"]))
    recipe = replace(
        CART,
        missing=missing,  # type: ignore[arg-type]
        min_samples_leaf=int(rng.choice([1, 1, 1, 2])),
    )
    return columns, data, labels, n_classes, weigh(None, n, False), recipe


def check_ties(seeds, monkeypatch):
    for seed in seeds:
        problem = tied_problem(seed)
        rng = np.random.default_rng([seed, 9])
        drawn = random_draws(rng, len(problem[0]), False) if seed % 3 else None
        same_classes(problem, drawn, shared_out(seed, monkeypatch), seed)


def check_random_splits_of_classes(seeds, monkeypatch):
    check_classes(seeds, monkeypatch, random_splits=True)


def check_random_splits_of_numbers(seeds, monkeypatch):
    check_numbers(seeds, monkeypatch, random_splits=True)


CHECKS = [
    check_classes,
    check_numbers,
    check_bit_rows,
    check_halves,
    check_learned_sides,
    check_ties,
    check_random_splits_of_classes,
    check_random_splits_of_numbers,
]


@pytest.mark.parametrize("check", CHECKS)
def test_same_trees(check, monkeypatch):
    check(range(10_000, 10_000 + examples(30)), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("part", range(10))
def test_same_trees_on_5000_tables(check, part, monkeypatch):
    check(range(part, 5000, 10), monkeypatch)


@pytest.mark.parametrize("most", [1, 3, 5])
@pytest.mark.parametrize("branching", ["values", "two-way"])
def test_bits_of_columns_that_are_not_in_order(most, branching):
    """35, 35, 29 and 29 bits need three words in this order, and two in another."""
    rng = np.random.default_rng(most)
    sizes, n = [36, 36, 30, 30], 700
    columns = [
        Column(f"x{j}", "categorical", tuple(range(size)), False)
        for j, size in enumerate(sizes)
    ]
    # Values that tell alike: the first column must win ties.
    cells = [
        np.minimum(rng.integers(0, 12, n), size).astype(np.uint8) for size in sizes
    ]
    cells[3] = cells[1].copy()
    labels = ((cells[0] + cells[1]) % 3 == 0).astype(np.intp)
    recipe = Recipe(criterion="gini", branching=branching)
    problem = (
        columns,
        Columns(n, tuple(cells)),
        labels,
        2,
        weigh(None, n, False),
        recipe,
    )
    drawn = ColumnDraws(tree_key(0, most), most) if most < len(sizes) else None
    same_classes(problem, drawn, (1,), most)


@pytest.mark.parametrize("n_rows", first_fast([1000, 3000]))
@pytest.mark.parametrize("weighted", first_fast([True, False]))
@pytest.mark.parametrize("branching", ["values", "two-way"])
@pytest.mark.parametrize(("most", "random_splits"), [(1, False), (3, False), (3, True)])
def test_larger_tables_with_any_number_of_threads(
    weighted, branching, most, random_splits, n_rows, monkeypatch
):
    monkeypatch.setattr(native, "WORTH_SHARING", 500)
    columns, data, y, grid = larger_table(n_rows, weighted)
    recipe = Recipe(branching=branching, min_samples_leaf=2 if weighted else 1)
    labels = np.digitize(y, [0.0, 1.0, 3.0]).astype(np.intp)
    drawn = ColumnDraws(tree_key(0, most), most, random_splits)
    problem = columns, data, labels, 4, grid, recipe
    same_classes(problem, drawn, (1, 3), branching)
    recipe = replace(recipe, criterion="variance")
    same_regression((columns, data, y, grid, recipe), drawn, (1, 3), branching)


@pytest.mark.parametrize("recipe", [ID3, C45, CART], ids=["id3", "c45", "cart"])
@pytest.mark.parametrize("max_bins", [None, 7])
@pytest.mark.parametrize("random_splits", [False, True])
def test_same_pruned_trees_of_repeated_rows(
    recipe, max_bins, random_splits, monkeypatch
):
    """A bootstrap sample of a table, with and without bins."""
    columns, data, y, _ = larger_table(600, weighted=False)
    labels = np.digitize(y, [0.0, 1.0, 3.0])
    recipe = replace(recipe, max_bins=max_bins)
    training = Training(tuple(columns), data, labels, 4)
    rows = np.random.default_rng(0).integers(0, 600, 600)
    grown = []
    for kernel in ("native", "reference"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        is_code = is_native(training, recipe)
        assert is_code == (kernel == "native")
        binned, edges = in_bins(training, training.grid(recipe), recipe, is_code)
        drawn = ColumnDraws(tree_key(0, 1), 2, random_splits)
        sampled = training.take(rows), binned.take(rows)
        grown.append(grown_from_bins(*sampled, edges, recipe, drawn))
    assert_same_tree(*grown, recipe)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_features", -1, "max_features must be between 0 and"),
        ("max_features", 1.0, "max_features must be a whole number"),
        ("draw_key", -1, r"draw_key must be between 0 and 2\*\*64 - 1"),
        ("draw_key", 2**64, r"draw_key must be between 0 and 2\*\*64 - 1"),
        ("draw_key", "0", "draw_key must be a whole number"),
        ("random_splits", 1, "random_splits must be True or False"),
    ],
)
def test_the_border_refuses_bad_draws(name, value, error):
    with pytest.raises((ValueError, TypeError), match=error):
        _native.grow(**growth(**{name: value}))


def test_the_border_refuses_random_splits_in_groups():
    error = "random_splits must be False where branching is groups"
    with pytest.raises(ValueError, match=error):
        _native.grow(**growth(random_splits=True, branching="groups"))


def test_an_error_of_progress_reaches_the_caller_in_any_thread():
    columns, data, y, grid = larger_table(3000, weighted=False)
    labels = np.digitize(y, [0.0, 1.0, 3.0]).astype(np.intp)
    drawn = ColumnDraws(tree_key(0, 0), 2)

    def stop(n_nodes):
        raise ZeroDivisionError(n_nodes)

    def grow_one(_):
        with pytest.raises(ZeroDivisionError):
            native.grow_native(columns, data, labels, 4, grid, ID3, 1, stop, drawn)
        target = measure(y, grid)
        with pytest.raises(ZeroDivisionError):
            native.grow_numbers(
                columns, data, target, grid, replace(CART, criterion="variance"), 1,
                stop, drawn,
            )  # fmt: skip
        return True

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(grow_one, range(6)))
