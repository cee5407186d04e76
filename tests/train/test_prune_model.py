"""Pruning finished models, rows that are set aside, prices, costs and priors."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from branchwise import (
    BranchwiseError,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    Model,
    Recipe,
    datasets,
    fit_tree,
    load,
    pruning_path,
)
from branchwise.data.encode import learn_columns
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Column, Schema
from branchwise.data.target import learn_target
from branchwise.engines.memory import Training
from branchwise.plot import plot_pruning_path
from branchwise.prune import error_based, estimates, subtrees
from branchwise.recipe import CART
from branchwise.train.cross_validation import choose_alpha
from branchwise.train.hold_out import assigned, held_out
from branchwise.train.prune_model import PruningTable
from branchwise.train.train import grown
from branchwise.tree.tree import Tree

TENNIS = datasets.load("tennis")


def noisy(seed: int, n: int = 200) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return a table with a signal in two columns, and a tenth of noise."""
    rng = np.random.default_rng(seed)
    X = {
        "a": rng.choice(list("pqr"), n),
        "b": rng.choice(list("uvwx"), n),
        "c": rng.choice(list("stuvw"), n),
        "n": rng.integers(0, 30, n).astype(float),
    }
    y = np.where((X["a"] == "p") | (X["n"] > 20), "yes", "no")
    return X, np.where(rng.random(n) < 0.1, rng.choice(["yes", "no"], n), y)


def encoded(X, y, weights=None) -> Training:
    columns, data = learn_columns(open_table(X), "from_dtype", None)
    classes, codes = learn_target(y)
    return Training(columns, data, codes, len(classes), weights)


def permuted(X, order) -> dict[str, np.ndarray]:
    return {name: cells[order] for name, cells in X.items()}


# -- collapsing nodes


def test_collapsing_makes_leaves_and_leaves_the_old_model_alone():
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    before = model.to_bytes()
    small = model.collapse_nodes(3)
    assert str(small).splitlines() == [
        "outlook = cloudy: yes (4)",
        "outlook = rainy:",
        "|   wind = strong: no (2)",
        "|   wind = weak: yes (3)",
        "outlook = sunny: no (5/2)",
    ]
    assert str(model.collapse_nodes(3, 2)) == str(small.collapse_nodes(2))
    assert str(model.collapse_nodes(np.int64(0))) == "yes (14/5)"
    assert model.to_bytes() == before
    assert small.recipe == model.recipe


def test_a_collapsed_model_predicts_and_saves(tmp_path):
    X, y = noisy(0)
    model = ID3Classifier().fit(X, y).model_
    inner = np.flatnonzero(model.tree.n_children)
    small = model.collapse_nodes(*inner[inner >= 3][:4].tolist()[:1])
    small.save(tmp_path / "small.json")
    again = load(tmp_path / "small.json")
    assert again == small
    assert np.array_equal(again.predict(X), small.predict(X))


# -- what the recipe says


def test_the_recipe_tells_the_last_pruning():
    X, y = noisy(1)
    new, wanted = noisy(2)
    model = C45Classifier().fit(X, y).model_
    assert model.recipe.pruning == "error-based"
    by_price = model.prune("cost-complexity", ccp_alpha=0.01)
    assert by_price.recipe == replace(
        model.recipe, pruning="cost-complexity", ccp_alpha=0.01
    )
    by_rows = by_price.prune("reduced-error", new, wanted, tolerance=0.01)
    assert by_rows.recipe == replace(
        model.recipe, pruning="reduced-error", tolerance=0.01
    )
    assert model.recipe.pruning == "error-based"


def test_a_lower_price_does_not_bring_anything_back():
    X, y = noisy(1)
    model = CARTClassifier().fit(X, y).model_
    dear = model.prune("cost-complexity", ccp_alpha=0.02)
    cheap = dear.prune("cost-complexity", ccp_alpha=0.001)
    assert cheap.tree == dear.tree
    assert cheap.recipe.ccp_alpha == 0.02
    assert dear.prune("cost-complexity", ccp_alpha=0.05).recipe.ccp_alpha == 0.05


@pytest.mark.parametrize("alpha", [0.0, 0.003, 0.02, 10.0])
def test_pruning_by_price_is_fitting_with_it(alpha):
    X, y = noisy(3)
    whole = CARTClassifier().fit(X, y).model_
    expected = CARTClassifier(ccp_alpha=alpha, pruning="cost-complexity").fit(X, y)
    found = whole.prune("cost-complexity", ccp_alpha=alpha)
    assert found.tree == expected.tree_
    assert found.recipe == expected.model_.recipe


def test_rows_choose_the_price():
    X, y = noisy(48)
    new, wanted = noisy(49)
    model = CARTClassifier().fit(X, y).model_
    table = model.pruning_path(new, wanted)
    best = model.prune("cost-complexity", new, wanted, ccp_alpha="best")
    least = table.validation_error.min()
    equals = np.flatnonzero(table.validation_error == least)
    assert best.recipe.ccp_alpha == table.alpha[equals[-1]]
    assert np.mean(best.predict(new) != wanted) == pytest.approx(least)
    small = model.prune("cost-complexity", new, wanted, ccp_alpha="1-se")
    error = np.sqrt(least * (1 - least) / len(wanted))
    within = np.flatnonzero(table.validation_error <= least + error)
    assert small.recipe.ccp_alpha == table.alpha[within[-1]]
    assert small.tree.n_leaves < best.tree.n_leaves


def test_error_based_pruning_with_weights():
    X, y = noisy(6)
    weights = np.random.default_rng(6).uniform(0.5, 2, len(y))
    whole = ID3Classifier().fit(X, y, weights).model_
    expected = ID3Classifier(pruning="error-based").fit(X, y, weights).model_
    assert whole.prune("error-based", X, y, sample_weight=weights) == expected
    with pytest.raises(BranchwiseError, match="These rows give other counts"):
        whole.prune("error-based", X, y)


def test_rows_that_costs_divided_are_refused_with_the_reason():
    X, y = noisy(6)
    gaps = np.random.default_rng(6).random(len(y)) < 0.2
    X["n"][gaps] = np.nan
    costs = {("yes", "no"): 5.0, ("no", "yes"): 1.0}
    tree = C45Classifier(prune=False, costs=costs, costs_in="growth").fit(X, y)
    with pytest.raises(BranchwiseError, match=r"divided them by costs \(costs_in="):
        tree.model_.prune("error-based", X, y)


@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_error_based_pruning_beside_columns_that_are_not_used(
    kernel, weighted, missing, monkeypatch
):
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    X, y = noisy(3)
    n = len(y)
    X = {"constant": np.ones(n), "name": np.array(["same"] * n), **X}
    if missing:
        X["gaps"] = np.where(np.arange(n) % 7 == 0, np.nan, np.arange(n) % 5)
    weights = np.arange(n) % 4 + 0.5 if weighted else None
    whole = ID3Classifier(max_depth=6)
    whole.fit(X, y, sample_weight=weights)
    assert not {0, 1} & set(whole.model_.tree.used_columns)
    pruned = whole.model_.prune("error-based", X, y, sample_weight=weights)
    fitted = ID3Classifier(max_depth=6, pruning="error-based")
    assert pruned == fitted.fit(X, y, sample_weight=weights).model_
    assert len(pruned.tree) < len(whole.model_.tree)


def deep(levels: int, power: int = 0) -> Model:
    """A chain of thresholds, whose leaves have one class after the other.

    Leaves have the same weight, or the more the nearer they are to the root.
    """
    n = 2 * levels + 1
    inner = np.zeros(n, dtype=bool)
    inner[0] = True
    inner[2 : n - 1 : 2] = True
    leaf = np.zeros((levels + 1, 2))
    amounts = 5.0 * np.arange(levels + 1, 0, -1) ** power
    leaf[np.arange(levels + 1), np.arange(levels + 1) % 2] = amounts
    weights = np.empty((n, 2))
    weights[0::2] = leaf[::-1].cumsum(axis=0)[::-1]
    weights[1::2] = leaf[:-1]
    tree = Tree(
        np.where(inner, 0, -1),
        np.where(inner, np.arange(n) / 2, np.nan),
        np.where(inner, 2, 0),
        np.full(n, -1),
        np.full(n, -1),
        np.concatenate([[0], np.ones(n - 1, dtype=int)]),
        np.tile([0, 1], levels),
        weights,
        weights.sum(axis=1),
    )
    return Model(Schema((Column("x", "numeric"),), ("no", "yes")), tree, Recipe())


@pytest.mark.parametrize(
    "levels", [10_000, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_deep_trees_are_pruned_in_linear_time(levels):
    # Quadratic time would be hours.
    model = deep(levels)
    assert len(model.prune("error-based").tree) > levels
    assert len(model.prune("error-based", confidence=1e-9).tree) == 1
    assert len(model.prune("cost-complexity", ccp_alpha=1.0).tree) == 1
    # The price of a subtree is the higher, the larger: one goes after the other.
    tree = deep(levels, power=2).tree
    path = subtrees.pruning_path(tree, "gini")
    assert len(path.pruned_alphas) == levels + 1
    assert path.n_leaves[-2:].tolist() == [2, 1]
    assert np.flatnonzero(path.step == 1)[-1] > len(tree) // 2
    rows = {"x": [0.0, 1.0]}
    assert len(model.prune("reduced-error", rows, ["no", "yes"]).tree) < 10


@pytest.mark.parametrize("seed", range(6))
def test_pruning_without_raising_goes_bottom_up(seed):
    """One node after the other, by hand."""
    X, y = noisy(seed)
    tree = ID3Classifier().fit(X, y).model_.tree
    estimate = estimates.Estimate(0.25, float(tree.weights[0].sum()))
    as_leaf = estimate.of(tree.weights)
    errors, leaves = as_leaf.copy(), tree.is_leaf.copy()
    for node in range(len(tree) - 1, -1, -1):
        if not tree.is_leaf[node]:
            errors[node] = errors[tree.children(node)].sum()
            leaves[node] = as_leaf[node] <= errors[node] + estimate.slack
            errors[node] = as_leaf[node] if leaves[node] else errors[node]
    kept = [
        node
        for node in range(len(tree))
        if not any(leaves[above] for above in ancestors(tree, node))
    ]
    pruned = error_based.pruned(tree, 0.25, None)
    assert pruned.weights.tolist() == tree.weights[kept].tolist()


def ancestors(tree: Tree, node: int) -> list[int]:
    found = []
    while node:
        node = int(tree.parent[node])
        found.append(node)
    return found


def test_error_based_pruning_of_binned_numbers():
    X, y = noisy(7, 500)
    whole = ID3Classifier(max_bins=8).fit(X, y).model_
    expected = ID3Classifier(max_bins=8, pruning="error-based").fit(X, y).model_
    assert whole.prune("error-based", X, y) == expected


def test_a_loaded_model_is_pruned_alike(tmp_path):
    X, y = noisy(8)
    model = ID3Classifier().fit(X, y).model_
    model.save(tmp_path / "tree.json")
    again = load(tmp_path / "tree.json").prune("error-based", X, y)
    assert again.tree == model.prune("error-based", X, y).tree


# -- the table


@pytest.mark.parametrize("estimator", [ID3Classifier(), CARTClassifier()])
def test_the_table_tells_what_its_trees_do(estimator):
    X, y = noisy(9)
    new, wanted = noisy(10)
    model = estimator.fit(X, y).model_
    table = pruning_path(model, new, wanted)
    assert len(table) > 4
    for row in range(len(table)):
        small = model.prune("cost-complexity", ccp_alpha=float(table.alpha[row]))
        assert small.tree.n_leaves == table.n_leaves[row]
        assert 1 - small.score(X, y) == pytest.approx(table.train_error[row])
        assert 1 - small.score(new, wanted) == pytest.approx(
            table.validation_error[row]
        )


def test_the_table_of_a_tree_of_numbers():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), rng.normal(size=(50, 2))
    y, wanted = X[:, 0] + rng.normal(size=60), new[:, 0] + rng.normal(size=50)
    model = CARTRegressor().fit(X, y).model_
    table = model.pruning_path(new, wanted)
    for row in range(0, len(table), 7):
        small = model.prune("cost-complexity", ccp_alpha=float(table.alpha[row]))
        assert np.mean((small.predict(X) - y) ** 2) == pytest.approx(
            table.train_error[row], abs=1e-12
        )
        assert np.mean((small.predict(new) - wanted) ** 2) == pytest.approx(
            table.validation_error[row]
        )


def test_the_table_counts_costs():
    X, y = noisy(11)
    costs = [[0, 3], [1, 0]]
    model = ID3Classifier(costs=costs).fit(X, y).model_
    table = model.pruning_path(X, y)
    price = np.array(costs)
    codes = (np.array(y) == "yes").astype(int)
    for row in range(0, len(table), 5):
        small = model.prune("cost-complexity", ccp_alpha=float(table.alpha[row]))
        answers = (small.predict(X) == "yes").astype(int)
        cost = price[codes, answers].mean()
        assert cost == pytest.approx(table.train_error[row])
        assert cost == pytest.approx(table.validation_error[row])


def test_the_table_of_divided_cases_adds_up():
    X, y = noisy(12)
    cells = X["a"].astype(object)
    cells[::7] = None
    model = ID3Classifier(missing="split").fit({**X, "a": cells}, y).model_
    table = model.pruning_path({**X, "a": cells}, y)
    # The same rows: parts of cases count by their shares in both.
    assert table.validation_error == pytest.approx(table.train_error)


def test_the_table_in_print():
    table = PruningTable(
        np.array([0.0, 0.0125, 0.5]),
        np.array([1200, 7, 1]),
        np.array([0.0, 0.1, 1 / 3]),
    )
    assert str(table).splitlines() == [
        " alpha  n_leaves  train_error",
        "     0     1,200            0",
        "0.0125         7          0.1",
        "   0.5         1     0.333333",
    ]
    assert table.to_dict() == {
        "alpha": [0.0, 0.0125, 0.5],
        "n_leaves": [1200, 7, 1],
        "train_error": [0.0, 0.1, 1 / 3],
        "validation_error": None,
    }
    long = PruningTable(np.arange(100.0), np.arange(100, 0, -1), np.zeros(100))
    lines = str(long).splitlines()
    assert len(lines) == 42
    assert lines[21] == "... (60 more rows; to_dict() has all of them)"
    assert lines[20].split() == ["19", "81", "0"]
    assert lines[22].split() == ["80", "20", "0"]


def test_one_leaf_has_a_table_of_one_row():
    model = fit_tree({"a": ["x", "y"]}, ["no", "no"])
    assert model.pruning_path().to_dict() == {
        "alpha": [0.0],
        "n_leaves": [1],
        "train_error": [0.0],
        "validation_error": None,
    }


class Paper:
    """Stands in for axes: notes what is drawn."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.lines: dict[str, tuple[list[float], list[float]]] = {}

    def plot(self, x, y, *_, label: str, **__) -> None:
        self.lines[label] = (np.ravel(x).tolist(), np.ravel(y).tolist())

    def __getattr__(self, name: str):
        return lambda *args: self.calls.append(f"{name}{args}")


def test_the_plot():
    X, y = noisy(13, 800)
    new, wanted = noisy(14)
    model = ID3Classifier().fit(X, y).model_
    table = model.pruning_path(new, wanted)
    paper = Paper()
    assert plot_pruning_path(model, new, wanted, ax=paper) is paper
    errors = table.validation_error
    best = int(np.flatnonzero(errors == errors.min())[-1])
    sizes = table.n_leaves.tolist()
    assert paper.lines == {
        "training": (sizes, table.train_error.tolist()),
        "validation": (sizes, table.validation_error.tolist()),
        f"best: {sizes[best]} leaves": (
            [sizes[best]],
            [float(table.validation_error[best])],
        ),
    }
    assert paper.calls == [
        "set_xscale('log',)",
        "set_xlabel('leaves',)",
        "set_ylabel('error',)",
        "legend()",
    ]
    plain = Paper()
    plot_pruning_path(model.collapse_nodes(0).pruning_path(), ax=plain)
    assert list(plain.lines) == ["training"]
    assert "set_xscale('log',)" not in plain.calls


def test_the_plot_makes_axes_of_its_own(monkeypatch):
    paper = Paper()
    pyplot = SimpleNamespace(subplots=lambda: (None, paper))
    monkeypatch.setitem(sys.modules, "matplotlib", SimpleNamespace(pyplot=pyplot))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    assert plot_pruning_path(model) is paper
    assert "training" in paper.lines


def test_the_plot_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    table = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_.pruning_path()
    with pytest.raises(BranchwiseError) as caught:
        plot_pruning_path(table)
    assert str(caught.value) == (
        "Drawing needs matplotlib. Install it with: pip install 'branchwise[plot]'"
    )


def test_the_plot_with_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    ax = plot_pruning_path(model, TENNIS.X, TENNIS.y)
    ax.figure.canvas.draw()
    assert len(ax.lines) == 3


# -- rows set aside


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_dealt_by_what_they_contain(weighted):
    X, y = noisy(15)
    rng = np.random.default_rng(15)
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else None
    order = rng.permutation(len(y))

    def hands(X, y, weights) -> list[list[tuple[object, ...]]]:
        hand = assigned(encoded(X, y, weights), 5)
        extra = np.ones(len(y)) if weights is None else weights
        rows = list(zip(*X.values(), y, extra, strict=True))
        return [sorted(rows[i] for i in np.flatnonzero(hand == k)) for k in range(5)]

    mixed = None if weights is None else weights[order]
    assert hands(X, y, weights) == hands(permuted(X, order), y[order], mixed)


def test_every_hand_gets_its_share_of_every_class():
    X, y = noisy(16, 203)
    hand = assigned(encoded(X, y), 10)
    for label in ("no", "yes"):
        counts = np.bincount(hand[y == label], minlength=10)
        assert counts.max() - counts.min() <= 1


def test_rows_of_weight_zero_change_no_hand():
    X, y = noisy(17, 60)
    idle = np.arange(60) % 4 == 0
    weights = np.where(idle, 0.0, 1.0)
    whole = assigned(encoded(X, y, weights), 3)
    part = encoded(X, y, weights).take(np.flatnonzero(~idle))
    assert np.array_equal(whole[~idle], assigned(part, 3))


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.25, 0.3, 0.5, 0.7, 0.99])
def test_the_share_that_is_held_out(fraction):
    X, y = noisy(18, 300)
    rest, aside = held_out(encoded(X, y), fraction)
    assert aside.data.n_rows == round(300 * fraction)
    assert rest.data.n_rows == 300 - aside.data.n_rows
    for code in (0, 1):
        wanted = fraction * np.count_nonzero(encoded(X, y).target == code)
        assert abs(np.count_nonzero(aside.target == code) - wanted) <= 1


def test_pruning_with_a_share_set_aside_does_not_depend_on_the_order():
    X, y = noisy(19)
    order = np.random.default_rng(0).permutation(len(y))
    for options in (
        {"pruning": "reduced-error", "validation_fraction": 0.3},
        {"pruning": "cost-complexity", "ccp_alpha": "1-se"},
        {"pruning": "cost-complexity", "ccp_alpha": "best"},
    ):
        tree = ID3Classifier(**options).fit(X, y).tree_
        again = ID3Classifier(**options).fit(permuted(X, order), y[order]).tree_
        assert tree == again
        assert 1 < tree.n_leaves < ID3Classifier().fit(X, y).tree_.n_leaves


def test_a_validation_set_prunes_as_after_fitting():
    X, y = noisy(20)
    new = noisy(21)
    fitted = ID3Classifier(pruning="reduced-error").fit(X, y, validation=new)
    after = ID3Classifier().fit(X, y).model_.prune("reduced-error", *new)
    assert fitted.model_ == after


# -- the price that cross-validation chooses


def naive_alpha(training: Training, recipe: Recipe, rule: str) -> float:
    """Count the errors of every fold's tree at every price, one by one."""
    path = subtrees.pruning_path(grown(training, recipe), recipe.criterion)
    alphas = path.alphas
    prices = [*np.sqrt(alphas[:-1] * alphas[1:]), np.inf]
    hand = assigned(training, 10)
    wrong = np.zeros((len(prices), len(hand)))
    for fold in range(10):
        aside = np.flatnonzero(hand == fold)
        tree = grown(training.take(np.flatnonzero(hand != fold)), recipe)
        for row, price in enumerate(prices):
            small = subtrees.pruned(tree, price, recipe.criterion)
            for i in aside:
                wrong[row, i] = training.target[i] != answer(small, training, i)
    error = wrong.mean(axis=1)
    best = int(np.flatnonzero(error == error.min())[-1])
    if rule == "best":
        return float(alphas[best])
    bar = error[best] + wrong[best].std() / np.sqrt(len(hand))
    return float(alphas[np.flatnonzero(error <= bar)[-1]])


def answer(tree, training: Training, row: int) -> int:
    node = 0
    while tree.children(node):
        column = tree.column[node]
        cell = training.data.data[column][row]
        if training.columns[column].is_numeric:
            cell = int(cell > tree.threshold[node])
        ways = [c for c in tree.children(node) if int(cell) in tree.codes_of(c)]
        if not ways:
            break
        node = ways[0]
    return int(tree.label[node])


@pytest.mark.parametrize("rule", ["best", "1-se"])
@pytest.mark.parametrize("seed", range(3))
def test_the_price_with_the_fewest_errors(seed, rule):
    training = encoded(*noisy(seed + 30, 120))
    for recipe in (Recipe(), replace(CART, unseen="node")):
        expected = naive_alpha(training, recipe, rule)
        assert choose_alpha(training, recipe, rule) == pytest.approx(expected)


def test_noise_is_pruned_to_its_root():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), rng.random(300) < 0.3
    assert CARTClassifier(ccp_alpha="1-se").fit(X, y).get_n_leaves() == 1


def test_a_single_row_has_no_folds():
    tree = CARTClassifier(ccp_alpha="1-se").fit({"a": ["x"]}, ["no"])
    assert tree.get_n_leaves() == 1
    one = CARTClassifier(ccp_alpha="best").fit({"a": ["x", "y"]}, [0, 1], [0, 1])
    assert one.get_n_leaves() == 1


def test_the_standard_error_of_numbers():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = 2.0 * (X[:, 0] > 0) + rng.normal(size=200) * 0.5
    small = CARTRegressor(ccp_alpha="1-se").fit(X, y)
    best = CARTRegressor(ccp_alpha="best").fit(X, y)
    assert 2 <= small.get_n_leaves() <= best.get_n_leaves() < 60


# -- costs and priors


def test_answers_that_cost_least():
    # Eight of ten are "no"; a "yes" that is missed costs five.
    X = {"a": ["x"] * 10 + ["y"] * 10}
    y = ["no"] * 8 + ["yes"] * 2 + ["no"] * 9 + ["yes"]
    # x: "no" costs 2 * 5 = 10, "yes" 8; y: "no" costs 5, "yes" 9.
    tree = ID3Classifier(costs=[[0, 1], [5, 0]]).fit(X, y)
    assert tree.predict({"a": ["x", "y"]}).tolist() == ["yes", "no"]
    assert tree.predict_proba({"a": ["x", "y"]}).tolist() == [[0.8, 0.2], [0.9, 0.1]]
    assert ID3Classifier().fit(X, y).predict({"a": ["x", "y"]}).tolist() == ["no"] * 2


def test_equal_costs_give_the_first_class():
    X, y = {"a": ["x"] * 6}, ["no"] * 4 + ["yes"] * 2
    # "no" costs 2 * 2, "yes" 4 * 1.
    assert ID3Classifier(costs=[[0, 1], [2, 0]]).fit(X, y).predict(X)[0] == "no"
    assert ID3Classifier(costs=[[0, 1], [2.1, 0]]).fit(X, y).predict(X)[0] == "yes"


def test_divided_cases_cost_least_too():
    X = {"a": ["x"] * 4 + ["y"] * 4}
    y = ["no"] * 4 + ["no"] * 2 + ["yes"] * 2
    tree = ID3Classifier(missing="split", costs=[[0, 1], [4, 0]]).fit(X, y)
    # A quarter is "yes": "no" costs 4 / 4, "yes" 3 / 4.
    assert tree.predict({"a": [None]}).tolist() == ["yes"]


def test_reduced_error_pruning_counts_costs():
    X = {"a": ["x"] * 5 + ["y"] * 5}
    y = ["no"] * 5 + ["yes"] * 5
    # Of the rows with y three are "no" and two "yes". As a leaf, the root ("no" by
    # the tie) errs on those two; as it is, the tree errs on the three.
    new = {"a": ["x"] * 5 + ["y"] * 5}
    wanted = ["no"] * 5 + ["no"] * 3 + ["yes"] * 2
    plain = ID3Classifier().fit(X, y).model_
    assert plain.prune("reduced-error", new, wanted).tree.n_leaves == 1
    # Where a missed "yes" costs two, the root ("yes": 5 against 10) would cost 8, and
    # the tree costs 3.
    dear = ID3Classifier(costs=[[0, 1], [2, 0]]).fit(X, y).model_
    assert dear.prune("reduced-error", new, wanted).tree.n_leaves == 2


def test_priors_are_the_shares_of_the_classes():
    X = {"a": ["x", "x", "x", "y"] * 2}
    y = ["no", "no", "yes", "yes"] * 2
    tree = ID3Classifier(priors={"no": 0.9, "yes": 0.1}).fit(X, y)
    assert tree.predict_proba({"a": ["z"]})[0] == pytest.approx([0.9, 0.1])
    # x has all of "no" and half of "yes": 0.9 against 0.05.
    assert tree.predict_proba({"a": ["x"]})[0] == pytest.approx([18 / 19, 1 / 19])
    # Shares need not sum to one, and weights of rows count within a class.
    weighted = ID3Classifier(priors={"no": 9, "yes": 1})
    weighted.fit(X, y, [1, 1, 3, 1, 1, 1, 3, 1])
    assert weighted.predict_proba({"a": ["z"]})[0] == pytest.approx([0.9, 0.1])
    assert weighted.predict_proba({"a": ["y"]})[0] == pytest.approx([0.0, 1.0])
    assert weighted.tree_.weights[1] == pytest.approx([10.8, 0.9])


def test_a_class_of_prior_zero_is_never_answered():
    X = {"a": ["x", "x", "y", "y"]}
    tree = ID3Classifier(priors={0: 0, 1: 1}).fit(X, [0, 1, 0, 1])
    assert tree.predict(X).tolist() == [1, 1, 1, 1]


def test_pruned_models_are_models():
    X, y = noisy(40)
    model = ID3Classifier().fit(X, y).model_
    for small in (
        model.prune("error-based"),
        model.prune("error-based", X, y),
        model.prune("reduced-error", *noisy(41)),
        model.prune("cost-complexity", ccp_alpha=0.01),
        model.merge_same_leaves(),
    ):
        assert isinstance(small, Model)
        assert small.schema is model.schema
        assert len(small.tree) < len(model.tree)
        assert small.predict(X).shape == y.shape


def test_rows_to_prune_with_may_be_much_smaller_than_what_is_predicted():
    x = {"x": [1.0, 2.0, 3.0]}
    model = CARTRegressor().fit(x, [1e119, 0.0, 1.0]).model_
    # A leaf, which predicts a third of 1e119, errs less on rows that are all small.
    assert model.prune("reduced-error", x, [0.0, 0.0, 1.0]).tree.n_leaves == 1
    errors = model.pruning_path(x, [0.0, 0.0, 1.0]).validation_error
    assert errors[-1] == pytest.approx(1e238 / 9)


def test_predictions_of_smoothed_leaves_are_not_kept_for_nothing():
    X, y, w = {"c": ["a", "b"]}, ["p", "q"], [4.6e-300, 4.1e-300]
    options = {"pruning": "error-based", "raise_subtrees": False}
    smoothed = CARTClassifier(probabilities="laplace")
    whole = smoothed.fit(X, y, sample_weight=w).model_
    smoothed.set_params(**options).fit(X, y, sample_weight=w)
    later = whole.prune("error-based", raise_subtrees=False)
    assert later.to_bytes() == smoothed.model_.to_bytes()
