"""Pruning: every method against a slow one that is taken from its definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import naive_pruning
from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    Model,
    Recipe,
    fit_tree,
)
from branchwise.prune import error_based, estimates, subtrees
from branchwise.prune.estimates import Estimate
from branchwise.prune.risk import leaf_risk
from branchwise.recipe import C45, CART, unpruned
from branchwise.tree.tree import (
    Tree,
    rearranged,
    stopped_weights,
    subtree_sums,
    with_collapsed,
)
from branchwise.tree.validation import validate
from tree_builder import TreeBuilder


def mixed_table(seed: int, n: int = 60, gaps: bool = False) -> dict[str, list[object]]:
    rng = np.random.default_rng(seed)
    table: dict[str, list[object]] = {
        "a": list(rng.choice(list("pqr"), n)),
        "b": list(rng.choice(list("uvwx"), n)),
        "n": list(rng.integers(0, 12, n).astype(float)),
    }
    if gaps:
        for cells in table.values():
            for row in rng.choice(n, n // 12, replace=False):
                cells[row] = None
    return table


def labels(seed: int, n: int = 60, classes: int = 3) -> np.ndarray:
    return np.random.default_rng(seed + 1000).integers(0, classes, n)


def grown(seed: int, recipe: Recipe, gaps: bool = False, n: int = 60) -> Model:
    return fit_tree(mixed_table(seed, n, gaps), labels(seed, n), recipe)


def inner(tree: Tree) -> list[int]:
    return np.flatnonzero(tree.n_children).tolist()


def nothing(tree: Tree) -> np.ndarray:
    return np.zeros(len(tree), dtype=bool)


# -- surgery


def test_collapsing_nothing_changes_nothing():
    tree = grown(0, Recipe()).tree
    assert with_collapsed(tree, nothing(tree)).tree == tree


@pytest.mark.parametrize("seed", range(5))
def test_collapsing_keeps_everything_else(seed):
    model = grown(seed, Recipe(missing="split"), gaps=True)
    tree = model.tree
    rng = np.random.default_rng(seed)
    leaves = nothing(tree)
    leaves[rng.choice(inner(tree), 4, replace=False)] = True
    new = with_collapsed(tree, leaves)
    validate(new.tree, model.schema)
    assert np.array_equal(new.source, new.position)
    assert np.array_equal(new.tree.weights, tree.weights[new.source])
    # The nodes that are left are those with no collapsed node above them.
    below = np.zeros(len(tree), dtype=bool)
    for node in range(1, len(tree)):
        parent = tree.parent[node]
        below[node] = below[parent] or leaves[parent]
    assert sorted(new.source) == np.flatnonzero(~below).tolist()
    for node, old in enumerate(new.source.tolist()):
        assert new.tree.codes_of(node) == tree.codes_of(old)
        assert (new.tree.n_children[node] == 0) == (
            leaves[old] or not tree.children(old)
        )


def test_raising_a_child_into_the_place_of_its_parent():
    tree = grown(1, Recipe()).tree
    node = next(n for n in inner(tree) if n and any(tree.n_children[tree.children(n)]))
    child = next(c for c in tree.children(node) if tree.n_children[c])
    raised = np.full(len(tree), -1)
    raised[node] = child
    new = rearranged(tree, raised, nothing(tree))
    at = new.position.tolist().index(node)
    assert new.source[at] == child
    # The question is the child's, the way there is the parent's.
    assert new.tree.column[at] == tree.column[child]
    assert new.tree.codes_of(at) == tree.codes_of(node)
    assert node not in new.source.tolist()


def test_sums_over_subtrees():
    tree = grown(2, Recipe()).tree
    leaves = subtree_sums(tree, tree.is_leaf.astype(int))
    assert leaves[0] == tree.n_leaves
    for node in inner(tree):
        assert leaves[node] == leaves[tree.children(node)].sum()


def test_cases_that_stop_at_inner_nodes():
    tree = grown(3, Recipe(missing="node"), gaps=True).tree
    stopped = stopped_weights(tree)
    assert np.array_equal(stopped[tree.is_leaf], tree.weights[tree.is_leaf])
    assert stopped[~tree.is_leaf].sum() > 0
    assert stopped.sum() == tree.weights[0].sum()


# -- the bounds of error-based pruning


@pytest.mark.parametrize("confidence", [0.01, 0.1, 0.25, 0.5])
def test_bounds_without_errors_are_exact(confidence):
    """None of n went wrong: the rate at which that has the chance ``confidence``."""
    for n in (1, 2, 3, 6, 14, 100, 12345):
        rate = scipy.optimize.brentq(
            lambda p, n=n: scipy.stats.binom.cdf(0, n, p) - confidence,
            0,
            1,
            xtol=1e-15,
            rtol=1e-14,
        )
        added = Estimate(confidence, n).added(np.array([float(n)]), np.zeros(1))
        assert added[0] == pytest.approx(n * rate, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.01, 0.1, 0.25, 0.4])
def test_bounds_with_errors_are_those_of_the_normal_approximation(confidence):
    """The highest rate for which so few errors are not less likely than that."""
    z = scipy.stats.norm.isf(confidence)
    for n, errors in itertools.product((2, 5, 10, 100, 5000), (1, 2, 4, 49, 1000.5)):
        if errors + 0.5 >= n:
            continue
        seen = (errors + 0.5) / n

        def excess(p: float, seen: float = seen, n: int = n) -> float:
            return seen - (p - z * np.sqrt(p * (1 - p) / n))

        # The upper end: above what was seen and above the vertex of the parabola.
        rate = scipy.optimize.brentq(excess, seen, 1, xtol=1e-15, rtol=1e-14)
        added = Estimate(confidence, n).added(np.array([n]), np.array([errors]))
        assert errors + added[0] == pytest.approx(n * rate, rel=1e-9)


def test_bounds_between_no_error_and_one_are_in_between():
    estimate = Estimate(0.25, 10)
    none, half, one = estimate.added(np.full(3, 10.0), np.array([0.0, 0.5, 1.0]))
    assert half == pytest.approx((none + one) / 2)


def test_bounds_never_exceed_the_cases():
    estimate = Estimate(0.25, 10)
    total, errors = np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 1.6, 2.0, 2.5])
    assert (errors + estimate.added(total, errors) <= total + 1e-12).all()
    assert estimate.added(total, errors)[1] == pytest.approx(0.4)


def test_the_exponential_is_right_to_the_last_digits():
    x = -np.geomspace(1e-12, 39, 2000)
    assert np.allclose(estimates.expm1(x), np.expm1(x), rtol=1e-14)


def pessimistic(tree: Tree, node: int, confidence: float) -> float:
    weights = tree.weights[node]
    total, errors = weights.sum(), weights.sum() - weights.max()
    added = Estimate(confidence, 1000).added(np.array([total]), np.array([errors]))
    return float(errors + added[0])


def naive_error_based(tree: Tree, confidence: float) -> set[int]:
    """Return the nodes that become leaves, by recursion, without raising."""
    leaves: set[int] = set()

    def best(node: int) -> float:
        as_leaf = pessimistic(tree, node, confidence)
        if not tree.children(node):
            return as_leaf
        as_tree = sum(best(child) for child in tree.children(node))
        if as_leaf <= as_tree + 0.1:
            leaves.add(node)
            return as_leaf
        return as_tree

    best(0)
    return leaves


@pytest.mark.parametrize("confidence", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("seed", range(10))
def test_error_based_pruning_without_raising(seed, confidence):
    tree = grown(seed, Recipe()).tree
    leaves = nothing(tree)
    leaves[list(naive_error_based(tree, confidence))] = True
    found = error_based.pruned(tree, confidence, None)
    assert found == with_collapsed(tree, leaves).tree
    assert len(found) < len(tree)


@pytest.mark.parametrize("seed", range(6))
def test_fitting_with_pruning_is_pruning_what_was_fitted(seed):
    X, y = mixed_table(seed, 300, gaps=True), labels(seed, 300)
    hint = np.array([str(v) in "pq" for v in X["a"]]).astype(int)
    y = np.where(y == 0, y, hint)
    whole = C45Classifier(prune=False).fit(X, y).model_
    for options in ({}, {"raise_subtrees": False}, {"confidence": 0.05}):
        expected = C45Classifier(**options).fit(X, y).model_
        found = whole.prune("error-based", X, y, **options)
        assert found.tree == expected.tree
        assert found.recipe == expected.recipe
    assert whole.prune("error-based").recipe.raise_subtrees is False
    small = C45Classifier(raise_subtrees=False).fit(X, y).model_
    assert whole.prune("error-based").tree == small.tree


def test_raising_happens():
    """Otherwise the test above would show nothing."""
    different = 0
    for seed in range(30):
        X, y = mixed_table(seed, 200), labels(seed, 200, 2)
        y = np.where(np.array(X["n"]) > 5, np.array(X["a"]) == "p", y)
        raised = C45Classifier().fit(X, y).tree_
        different += raised != C45Classifier(raise_subtrees=False).fit(X, y).tree_
    assert different > 0


def test_raising_keeps_the_answers_that_cost_least():
    costs = [[0, 5], [1, 0]]
    for seed in range(30):
        X, y = mixed_table(seed, 200), labels(seed, 200, 2)
        tree = C45Classifier(costs=costs).fit(X, y).tree_
        price = tree.weights @ np.array(costs, dtype=float)
        assert np.array_equal(tree.label, price.argmin(axis=1))


# -- cost-complexity pruning


def all_prunings(tree: Tree, node: int = 0) -> Iterator[frozenset[int]]:
    """Yield every pruning as the set of its leaves."""
    yield frozenset([node])
    children = tree.children(node)
    if children:
        for parts in itertools.product(
            *(list(all_prunings(tree, c)) for c in children)
        ):
            yield frozenset().union(*parts)


SMALL = [
    Recipe(max_depth=3),
    replace(CART, max_depth=4),
    replace(CART, criterion="gain", max_depth=4),
]


@pytest.mark.parametrize("recipe", SMALL, ids=["ID3", "gini", "entropy"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_prunings(recipe, seed):
    tree = grown(seed, recipe, n=14).tree
    risk = leaf_risk(tree, recipe.criterion)
    prunings = list(all_prunings(tree))
    assert len(prunings) > 5
    path = subtrees.pruning_path(tree, recipe.criterion)
    for alpha in [0.0, *path.alphas, *np.random.default_rng(seed).uniform(0, 0.5, 9)]:
        price = [sum(risk[list(leaves)]) + alpha * len(leaves) for leaves in prunings]
        # Of equals the smallest.
        best = min(
            (
                leaves
                for leaves, p in zip(prunings, price, strict=True)
                if p <= min(price) + 1e-9
            ),
            key=len,
        )
        cut = nothing(tree)
        cut[list(best)] = True
        expected = with_collapsed(tree, cut & ~tree.is_leaf).tree
        assert subtrees.pruned(tree, alpha, recipe.criterion) == expected


@pytest.mark.parametrize("seed", range(4))
def test_the_path_says_what_its_trees_are(seed):
    tree = grown(seed, Recipe(missing="node"), gaps=True).tree
    path = subtrees.pruning_path(tree, "gain")
    assert path.alphas[0] == 0
    assert (np.diff(path.alphas) > 0).all()
    assert (np.diff(path.n_leaves) < 0).all()
    assert path.n_leaves[-1] == 1
    risk = leaf_risk(tree, "gain")
    assert path.risks[-1] == pytest.approx(risk[0])
    assert path.pruned_risks[-1] == pytest.approx(risk[0])
    ones = np.ones(len(tree))
    for alpha, size in zip(path.alphas, path.n_leaves, strict=True):
        assert subtrees.pruned(tree, alpha, "gain").n_leaves == size
    assert path.totals(tree, ones, 0 * ones).tolist() == path.n_leaves.tolist()
    # Nodes of each tree: its leaves and its inner nodes.
    nodes = [len(subtrees.pruned(tree, a, "gain")) for a in path.alphas]
    assert path.totals(tree, ones, ones).tolist() == nodes


def odd_risks(tree: Tree, seed: int) -> Tree:
    """Return a tree whose classes have any weights: many ties, and losses by splits."""
    weights = np.random.default_rng(seed).integers(0, 4, tree.weights.shape) * 1.0
    weights[0] += 1.0
    return replace(tree, weights=weights)


def single_branches(tree: Tree) -> Tree:
    """Return a tree with a root above the root, of one branch."""
    return replace(
        tree,
        **{
            name: np.concatenate([getattr(tree, name)[:1], getattr(tree, name)])
            for name in (
                "column",
                "threshold",
                "missing_to",
                "unseen_to",
                "weights",
                "cases",
            )
        },
        n_children=np.concatenate([[1], tree.n_children]),
        n_codes=np.concatenate([[0, 1], tree.n_codes[1:]]),
        codes=np.concatenate([[0], tree.codes]),
    )


@pytest.mark.parametrize("recipe", [Recipe(missing="node"), Recipe(), unpruned(CART)])
@pytest.mark.parametrize("seed", range(8))
def test_the_path_of_the_definition(recipe, seed):
    grown_tree = grown(seed, recipe, gaps=True, n=30).tree
    odd = odd_risks(grown_tree, seed)
    for tree in (
        grown_tree,
        odd,
        single_branches(grown_tree),
        odd_risks(single_branches(single_branches(odd)), seed),
    ):
        path = subtrees.pruning_path(tree, recipe.criterion)
        expected = naive_pruning.pruning_path(tree, recipe.criterion)
        for name, values in vars(expected).items():
            assert getattr(path, name).tolist() == values.tolist(), name


def sklearn_path(estimator, X, y, weights):
    """Return scikit-learn's path without the splits of pure nodes by rounding."""
    path = estimator.cost_complexity_pruning_path(X, y, weights)
    real = path.ccp_alphas > 1e-12
    real[0] = True
    return path.ccp_alphas[real], path.impurities[real]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (CARTClassifier(), DecisionTreeClassifier()),
        (CARTClassifier(criterion="gain"), DecisionTreeClassifier(criterion="entropy")),
        (ID3Classifier(), DecisionTreeClassifier(criterion="entropy")),
        (CARTRegressor(), DecisionTreeRegressor()),
    ],
    ids=["gini", "entropy", "ID3", "variance"],
)
@pytest.mark.parametrize("seed", range(20))
def test_paths_are_those_of_scikit_learn(ours, theirs, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 80))
    X = rng.normal(size=(n, 3)).astype(np.float32).astype(float)
    numbers = isinstance(ours, CARTRegressor)
    y = rng.normal(size=n) if numbers else rng.integers(0, 3, n)
    weights = rng.uniform(0.5, 1.5, n)  # so that there are no ties
    alphas, impurities = sklearn_path(theirs, X, y, weights)
    path = ours.cost_complexity_pruning_path(X, y, weights)
    assert len(path.ccp_alphas) == len(alphas)
    assert np.allclose(path.ccp_alphas, alphas, rtol=1e-9, atol=1e-13)
    assert np.allclose(path.impurities, impurities, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "estimator",
    [
        CARTClassifier(ccp_alpha="1-se"),
        C45Classifier(raise_subtrees=False),
        ID3Classifier(pruning="reduced-error", validation_fraction=0.5),
    ],
)
def test_paths_are_those_of_trees_that_are_not_pruned(estimator):
    X, y = mixed_table(0), labels(0)
    before = estimator.get_params()
    path = estimator.cost_complexity_pruning_path(X, y)
    full = fit_tree(X, y, unpruned(estimator.recipe)).tree
    assert len(path.ccp_alphas) <= full.n_leaves
    assert path.impurities[0] == pytest.approx(
        leaf_risk(full, estimator.recipe.criterion)[full.is_leaf].sum()
    )
    assert estimator.get_params() == before
    assert not hasattr(estimator, "model_")


def test_the_price_of_rates():
    """Differences of risk are differences of the Poisson deviance."""
    rng = np.random.default_rng(0)
    X = {"x": list(range(30))}
    y = rng.poisson(np.linspace(0.2, 6, 30)).astype(float)
    tree = CARTRegressor(criterion="poisson").fit(X, y).tree_
    risk = leaf_risk(tree, "poisson")
    assert (risk >= 0).all()

    def deviance(node: int) -> float:
        rows = [y[i] for i in range(30) if node in way(tree, i)]
        mean = np.mean(rows)
        return sum(v * np.log(v / mean) for v in rows if v > 0) / 30

    for node in inner(tree):
        drop = risk[node] - risk[tree.children(node)].sum()
        expected = deviance(node) - sum(deviance(c) for c in tree.children(node))
        assert drop == pytest.approx(expected, abs=1e-12)


def way(tree: Tree, x: float) -> list[int]:
    node, nodes = 0, [0]
    while tree.children(node):
        node = tree.children(node)[int(x > tree.threshold[node])]
        nodes.append(node)
    return nodes


# -- reduced-error pruning


def naive_reduced_error(model: Model, X, y, tolerance: float) -> Model:
    """Try every node, children first, and look at the errors of the whole model."""
    leaves = nothing(model.tree)

    def errors(mask) -> int:
        pruned = Model(
            model.schema, with_collapsed(model.tree, mask).tree, model.recipe
        )
        return int(np.count_nonzero(pruned.predict(X) != y))

    for node in reversed(inner(model.tree)):
        tried = leaves.copy()
        tried[node] = True
        if errors(tried) <= errors(leaves) + tolerance * len(y):
            leaves = tried
    return Model(model.schema, with_collapsed(model.tree, leaves).tree, model.recipe)


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(6))
def test_reduced_error_pruning_tries_every_node(seed, tolerance):
    model = grown(seed, Recipe(missing="branch"), gaps=True)
    X, y = mixed_table(seed + 50, 40, gaps=True), labels(seed + 50, 40)
    X["a"][0] = "never seen"
    expected = naive_reduced_error(model, X, y, tolerance)
    found = model.prune("reduced-error", X, y, tolerance=tolerance)
    assert found.tree == expected.tree
    assert 1 <= len(found.tree) < len(model.tree)
    assert found.recipe == replace(
        model.recipe, pruning="reduced-error", tolerance=tolerance
    )


def test_reduced_error_pruning_of_numbers():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(80, 2)), rng.normal(size=(60, 2))
    y, wanted = (
        np.where(table[:, 0] > 0, 3.0, 0.0) + rng.normal(size=len(table)) * 0.5
        for table in (X, new)
    )
    model = CARTRegressor().fit(X, y).model_
    pruned = model.prune("reduced-error", new, wanted)
    assert 2 <= pruned.tree.n_leaves < model.tree.n_leaves / 2
    # Nothing that is left could go without harm.
    best = np.mean((pruned.predict(new) - wanted) ** 2)
    for node in inner(pruned.tree):
        worse = np.mean((pruned.collapse_nodes(node).predict(new) - wanted) ** 2)
        assert worse > best


def test_sums_that_differ_by_rounding_are_equal():
    tree = grown(0, Recipe(max_depth=1)).tree
    as_leaf = np.full(len(tree), 0.1)
    as_leaf[0] = 0.1 * (len(tree) - 1) * (1 + 1e-12)
    pruned = subtrees.by_validation(tree, as_leaf, np.zeros(len(tree)), 0.0)
    assert len(pruned) == 1
    as_leaf[0] *= 1 + 1e-6
    assert len(subtrees.by_validation(tree, as_leaf, np.zeros(len(tree)), 0.0)) > 1


# -- best-first


def naive_best_first(tree: Tree, max_leaves: int, criterion: str) -> Tree:
    """Split the leaf that gains most, again and again."""
    risk = leaf_risk(tree, criterion)
    leaves, passed = [0], set()
    while True:
        able = [n for n in leaves if tree.children(n) and n not in passed]
        if not able:
            break
        gain = {n: round(risk[n] - risk[tree.children(n)].sum(), 11) for n in able}
        node = max(able, key=lambda n: (gain[n], -n))
        if len(leaves) + len(tree.children(node)) - 1 > max_leaves:
            passed.add(node)
            continue
        leaves.remove(node)
        leaves.extend(tree.children(node))
    cut = nothing(tree)
    cut[leaves] = True
    return with_collapsed(tree, cut & ~tree.is_leaf).tree


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 5, 8, 20, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_splits_come_first(seed, max_leaves):
    recipe = Recipe(missing="split")
    tree = grown(seed, recipe).tree
    expected = naive_best_first(tree, max_leaves, "gain")
    assert subtrees.limited(tree, max_leaves, "gain") == expected
    limited = grown(seed, replace(recipe, max_leaf_nodes=max_leaves)).tree
    assert limited == expected
    assert limited.n_leaves <= max_leaves


@pytest.mark.parametrize("seed", range(6))
def test_so_many_leaves_as_in_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 4)).astype(np.float32).astype(float)
    y, weights = rng.integers(0, 3, 100), rng.uniform(0.5, 1.5, 100)
    for leaves in (2, 5, 17):
        ours = CARTClassifier(max_leaf_nodes=leaves).fit(X, y, weights)
        theirs = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        theirs.fit(X, y, weights)
        assert ours.get_n_leaves() == leaves
        assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X))


# -- leaves that say the same


def both_ways(model: Model, X) -> Iterator[tuple[Model, bool]]:
    for change in (False, True):
        merged = model.merge_same_leaves(change_probabilities=change)
        validate(merged.tree, model.schema)
        assert np.array_equal(merged.tree.weights[0], model.tree.weights[0])
        yield merged, change


@pytest.mark.parametrize(
    "probabilities", ["frequencies", "laplace", "m-estimate", "shrunk"]
)
@pytest.mark.parametrize("missing", ["branch", "split", "largest", "node"])
@pytest.mark.parametrize("branching", ["values", "two-way", "groups"])
@pytest.mark.parametrize("seed", range(3))
def test_merging_changes_no_probability(seed, branching, missing, probabilities):
    recipe = Recipe(
        missing=missing,
        unseen=missing,
        branching=branching,
        probabilities=probabilities,
        min_samples_leaf=1 + seed,
    )
    model = grown(seed, recipe, gaps=True)
    X = mixed_table(seed + 7, 200, gaps=True)
    X["a"][:5] = ["never seen"] * 5
    sizes = []
    for merged, change in both_ways(model, X):
        sizes.append(len(merged.tree))
        if not change:
            assert np.allclose(merged.predict_proba(X), model.predict_proba(X))
        if missing != "split":
            assert np.array_equal(merged.predict(X), model.predict(X))
        assert merged.merge_same_leaves(change).tree == merged.tree
        assert merged.recipe == model.recipe
    assert sizes[1] <= sizes[0] <= len(model.tree)
    if seed < 2:
        assert sizes[1] < len(model.tree)
    if (seed, branching, missing, probabilities) == (
        0,
        "values",
        "branch",
        "frequencies",
    ):
        assert sizes[0] < len(model.tree)


def test_merging_collapses_and_joins():
    from branchwise.data.table_schema import Column, Schema

    schema = Schema(
        (
            Column("sky", "categorical", ("clear", "cloudy", "rain", "snow")),
            Column("wind", "numeric"),
        ),
        ("no", "yes"),
    )
    builder = TreeBuilder(schema, weights=[7, 11])
    builder.child(0, "sky", values=["clear"], weights=[0, 3])
    builder.child(0, "sky", values=["cloudy"], weights=[2, 4])
    builder.child(0, "sky", values=["rain"], weights=[0, 2])
    snow = builder.child(0, "sky", values=["snow"], weights=[5, 2])
    builder.child(snow, "wind", at_most=3, weights=[2, 1])
    builder.child(snow, "wind", above=3, weights=[3, 0])
    builder.child(snow, "wind", missing=True, weights=[0, 1])
    model = Model(schema, builder.build(), Recipe())
    assert str(model.merge_same_leaves()).splitlines() == [
        "sky in {clear, rain}: yes (5)",
        "sky = cloudy: yes (6/2)",
        "sky = snow:",
        "|   wind <= 3: no (3/1)",
        "|   wind > 3: no (3)",
        "|   wind is missing: yes (1)",
    ]
    assert str(model.merge_same_leaves(change_probabilities=True)).splitlines() == [
        "sky not in {snow}: yes (11/2)",
        "sky = snow:",
        "|   wind is known: no (6/1)",
        "|   wind is missing: yes (1)",
    ]


def test_merging_collapses_from_the_bottom_up():
    X = {"a": list("xxyy"), "b": list("uvuv")}
    y = ["yes", "yes", "yes", "yes"]
    # Gain 0 everywhere would not be split, so the tree is made by hand.
    schema = fit_tree(X, y, classes=["no", "yes"]).schema
    builder = TreeBuilder(schema, weights=[0, 4])
    for value in "xy":
        node = builder.child(0, "a", values=[value], weights=[0, 2])
        for other in "uv":
            builder.child(node, "b", values=[other], weights=[0, 1])
    model = Model(schema, builder.build(), Recipe())
    assert str(model.merge_same_leaves()) == "yes (4)"
    # One case more for every class: two leaves of one are not as sure as one of two.
    unsure = Model(schema, builder.build(), Recipe(probabilities="laplace"))
    assert unsure.merge_same_leaves().tree == unsure.tree
    assert str(unsure.merge_same_leaves(change_probabilities=True)) == "yes (4)"


def test_merging_leaves_no_node_with_a_single_branch():
    """Those who stay behind say something else, so the node is still needed."""
    X = {"a": ["x", "x", "y", "y", None]}
    model = fit_tree(X, ["yes"] * 4 + ["no"], Recipe(missing="node"))
    assert model.tree.n_leaves == 2
    assert model.merge_same_leaves().tree == model.tree
    assert str(model.merge_same_leaves(change_probabilities=True)) == "yes (5/1)"


def test_merging_numbers_needs_equal_means():
    X = {"a": list("xxyyzz")}
    model = fit_tree(X, [1.0, 3.0, 2.0, 2.0, 7.0, 7.0], Recipe(criterion="variance"))
    for merged, _ in both_ways(model, X):
        assert merged.tree.n_leaves == 2
        assert merged.tree.mean.tolist() == [22 / 6, 2.0, 7.0]
        assert merged.tree.deviation[1] == pytest.approx(np.std([1, 3, 2, 2]))
        assert merged.predict(X).tolist() == model.predict(X).tolist()


def test_c45_prunes_what_its_recipe_says():
    """A recipe is a value: the estimator adds nothing of its own."""
    X, y = mixed_table(3, 200), labels(3, 200)
    assert fit_tree(X, y, C45).tree == C45Classifier().fit(X, y).tree_
