"""Generalised rules: a list that predicts by itself, held against a naive twin."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.prune.estimates import Estimate
from branchwise.recipe import ID3
from branchwise.rules import generalise
from branchwise.rules.generalise import (
    Candidate,
    Coverage,
    bits_of,
    candidates,
    count_bits,
    error_rates,
)
from branchwise.rules.generalise import Cases as EncodedCases
from branchwise.rules.generalise import rows_of as rows_of_bits
from branchwise.rules.mdl_selection import (
    EXHAUSTIVE,
    Subsets,
    _bits,
    _without_harm,
    selected,
)
from branchwise.rules.rule_list import Rows, RuleList
from branchwise.text.conditions import Condition
from naive_rules import (
    Cases,
    best_subset,
    decided,
    default_of,
    description_length,
    fulfils,
    generalised,
    in_order,
    without_harm,
)
from random_tables import KERNELS
from row_by_row_rules import generalised_row_by_row
from selection import first_fast

DATA = Path(__file__).parents[1] / "data"


def random_table(seed: int, n_rows: int = 60, gaps: bool = True) -> tuple[Any, Any]:
    """Three classes that depend on two columns, with noise."""
    rng = np.random.default_rng(seed)
    X: dict[str, list[Any]] = {
        "c": rng.choice(list("abcd"), n_rows).tolist(),
        "d": rng.choice(list("xyz"), n_rows).tolist(),
        "n": rng.integers(0, 12, n_rows).astype(float).tolist(),
        "m": rng.integers(0, 5, n_rows).astype(float).tolist(),
    }
    y = [
        "r" if rng.random() < 0.15 else "p" if c in "ab" and n > 4 else "q"
        for c, n in zip(X["c"], X["n"], strict=True)
    ]
    if gaps:
        for cells in X.values():
            cells[int(rng.integers(n_rows))] = None
    return X, y


def rows_of(X: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]


def read(name: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Read a bundled table: numbers where all known cells are."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    columns: dict[str, list[Any]] = {}
    for name_, cells in zip(head, zip(*rows, strict=True), strict=True):
        known = [None if cell == "?" else cell for cell in cells]
        try:
            columns[name_] = [None if c is None else float(c) for c in known]
        except ValueError:
            columns[name_] = known
    y = columns.pop(head[-1])
    return columns, y


def grown(X: Any, y: Any, **options: Any) -> Model:
    return C45Classifier(prune=False, **options).fit(X, y).model_


# -- Against the naive twin


def cases_of(model: Model, X: Any, y: Any, weights: Any = None) -> EncodedCases:
    rows = Rows.of(model, X, y, weights)
    coverage = Coverage(model.schema.columns, rows.data)
    return EncodedCases(coverage, rows.labels, rows.weights)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 511, 513, 70_000, 300_001])
@pytest.mark.parametrize("native", [True, False])
def test_bit_sets_hold_and_count_rows(n_rows, native, monkeypatch):
    if not native and hasattr(np, "bitwise_count"):
        monkeypatch.delattr(np, "bitwise_count")
    rng = np.random.default_rng(n_rows)
    masks = [rng.random(n_rows) < share for share in (0.0, 0.01, 0.5, 1.0)]
    bits = np.stack([bits_of(mask) for mask in masks])
    assert count_bits(bits).tolist() == [mask.sum() for mask in masks]
    for one, mask in zip(bits, masks, strict=True):
        assert np.array_equal(rows_of_bits(one), np.flatnonzero(mask))


@pytest.mark.parametrize("seed", range(4))
def test_sets_of_conditions_are_those_of_each(seed):
    """Rows on either side of many thresholds are found together."""
    rng = np.random.default_rng(seed)
    X, y = random_table(seed, n_rows=300)
    X = {**X, "number": rng.choice([-1.5, -0.0, 0.0, 2.0, np.nan], 300)}
    model = grown(X, y, min_samples_branch=1)
    coverage = cases_of(model, X, y).coverage
    thresholds = rng.permutation([-2.0, -1.5, 0.0, -0.0, 1.0, 2.0, 3.0]).tolist()
    wanted = [Condition("number", op, at) for at in thresholds for op in ("<=", ">")]
    wanted += [
        Condition("number", "is known"),
        Condition("number", "within", (0.0, 2.0)),
    ]
    wanted += [c for rule in model.rules() for c in rule.conditions]
    for one, bits in zip(wanted, coverage.sets(wanted), strict=True):
        assert (
            rows_of_bits(bits).tolist() == np.flatnonzero(coverage.holds(one)).tolist()
        )


@pytest.mark.parametrize("weighted", ["no", "whole", "zero", "fractions"])
@pytest.mark.parametrize("seed", first_fast(range(4)))
@pytest.mark.parametrize(
    ("kernel", "most_bytes"),
    [(kernel, most) for kernel in KERNELS for most in (2**26, 200)],
)
def test_rules_are_generalised_together_as_one_by_one(
    seed, weighted, kernel, most_bytes, monkeypatch
):
    """All rules at once, on bit sets, as each by itself, counting rows."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    monkeypatch.setattr(generalise, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(generalise, "_CHUNK_BYTES", most_bytes)
    X, y = random_table(seed, n_rows=300)
    rng = np.random.default_rng(seed)
    weights = {
        "no": np.ones(300),
        "whole": rng.integers(1, 5, 300).astype(float),
        "zero": rng.integers(0, 2, 300).astype(float),
        "fractions": rng.random(300),
    }[weighted]
    model = grown(X, y, min_samples_branch=1)
    classes = model.schema.classes
    cases = cases_of(model, X, y, weights.tolist())
    estimate = Estimate(0.25, cases.total)
    expected: dict[Any, Any] = {}
    for rule in model.rules():
        label = classes.index(rule.label)
        kept, rate, rows = generalised_row_by_row(rule, label, cases, estimate)
        all_right = np.array([cases.weights[cases.labels == label].sum()])
        bar = error_rates(estimate, np.array([cases.total]), all_right)[0]
        if kept and rate <= bar:
            key = label, frozenset(kept)
            expected.setdefault(key, (kept, rule.node, rate, rows.tolist()))
    got = candidates(model.rules(), classes, cases, estimate)
    assert [(c.conditions, c.node, c.rate, c.rows.tolist()) for c in got] == list(
        expected.values()
    )
    assert len(got) > 3  # else this would show nothing


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("confidence", [0.05, 0.25])
def test_conditions_are_dropped_as_on_paper(seed, confidence):
    X, y = random_table(seed)
    weights = [1.0] * len(y) if seed % 2 else [1.0 + (at % 3) for at in range(len(y))]
    model = grown(X, y, min_samples_branch=1)
    cases = cases_of(model, X, y, weights)
    naive = Cases(rows_of(X), y, weights)
    estimate = Estimate(confidence, cases.total)
    found = candidates(model.rules(), model.schema.classes, cases, estimate)
    expected: dict[Any, float] = {}
    for rule in model.rules():
        kept = generalised(rule, naive, confidence)
        rate = naive.rate(kept, rule.label, confidence)
        # Never worse than the leaf's own rule.
        assert rate <= naive.rate(rule.conditions, rule.label, confidence)
        if kept and rate <= naive.rate([], rule.label, confidence):
            expected.setdefault((rule.label, frozenset(kept)), rate)
    got = {
        (model.schema.classes[c.label], frozenset(c.conditions)): c.rate for c in found
    }
    assert len(got) == len(found)  # no duplicates
    assert list(got) == list(expected)
    assert list(got.values()) == pytest.approx(list(expected.values()))
    for candidate in found:
        covered = candidate.rows.tolist()
        assert covered == naive.of(candidate.conditions)


@pytest.mark.parametrize("seed", range(6))
def test_the_subset_of_a_class_takes_the_fewest_bits(seed):
    """All subsets, recounted one by one; and greedy ones that no step improves."""
    X, y = random_table(seed, n_rows=50)
    model = grown(X, y, min_samples_branch=1)
    cases = cases_of(model, X, y)
    naive = Cases(rows_of(X), y, [1.0] * len(y))
    estimate = Estimate(0.5, cases.total)
    found = candidates(model.rules(), model.schema.classes, cases, estimate)
    bits = _bits(found, model.schema.columns)
    for code, label in enumerate(model.schema.classes):
        places = [at for at, c in enumerate(found) if c.label == code][:8]
        some = [found[at].conditions for at in places]
        sets = [found[at].bits for at in places]
        problem = Subsets(sets, bits[places], cases.labels == code, cases.weights)
        chosen = best_subset(some, bits[places].tolist(), label, naive)
        assert set(problem.best()) == chosen
        if not places:
            continue
        greedy = set(problem._greedy())
        each = bits[places].tolist()

        def cost(subset, some=some, each=each, label=label) -> float:
            one = [some[at] for at in sorted(subset)]
            told = [each[at] for at in sorted(subset)]
            return description_length(one, told, label, naive)

        assert cost(greedy) >= cost(chosen) - 1e-6
        for at in range(len(places)):
            assert cost(greedy ^ {at}) >= cost(greedy) - 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_the_whole_list_as_on_paper(seed):
    """Subsets, the order of classes, the default, and what does harm."""
    X, y = random_table(seed + 20, n_rows=45)
    model = grown(X, y, min_samples_branch=1)
    cases = cases_of(model, X, y)
    naive = Cases(rows_of(X), y, [1.0] * len(y))
    estimate = Estimate(0.25, cases.total)
    found = candidates(model.rules(), model.schema.classes, cases, estimate)
    bits = _bits(found, model.schema.columns)
    kept: dict[Any, list[Any]] = {}
    for code, label in enumerate(model.schema.classes):
        places = [at for at, c in enumerate(found) if c.label == code]
        assert len(places) <= EXHAUSTIVE
        some = [found[at].conditions for at in places]
        chosen = best_subset(some, bits[places].tolist(), label, naive)
        rates = {at: found[places[at]].rate for at in chosen}
        ordered = sorted(chosen, key=lambda at: (rates[at], at))
        if chosen:
            kept[label] = [(some[at], label) for at in ordered]
    every = in_order(kept, naive)
    default = default_of(every, naive)
    expected = without_harm(every, default, naive)
    choice = selected(found, model.schema.columns, cases)
    classes = model.schema.classes
    assert classes[choice.default] == default
    assert [(c.conditions, classes[c.label]) for c in choice.chosen] == expected


def test_rules_that_do_harm_go_the_worst_first():
    """All candidates in any order, so that there is much harm and much that is idle."""
    shorter = 0
    for seed in range(12):
        X, y = random_table(seed + 40, n_rows=45)
        model = grown(X, y, min_samples_branch=1)
        cases, classes = cases_of(model, X, y), model.schema.classes
        naive = Cases(rows_of(X), y, [1.0] * len(y))
        estimate = Estimate(0.25, cases.total)
        found = candidates(model.rules(), classes, cases, estimate)
        rng = np.random.default_rng(seed)
        order = [found[at] for at in rng.permutation(len(found))]
        default = int(rng.integers(len(classes)))
        plain = [(c.conditions, classes[c.label]) for c in order]
        expected = without_harm(plain, classes[default], naive)
        got = _without_harm(order, default, cases)
        assert [(c.conditions, classes[c.label]) for c in got] == expected
        shorter += len(expected) < len(plain)
    assert shorter > 6  # else this would show nothing


def test_the_worst_rule_goes_before_the_first_harmful_one():
    """Without the second rule the first does no more harm, though it did before."""
    labels = np.array([0, 1, 1, 1])
    model = grown(*random_table(0))
    cases = EncodedCases(cases_of(model, *random_table(0)).coverage, labels, np.ones(4))

    def rule(label: int, *rows: int) -> Candidate:
        return Candidate((), label, 0, 0.0, bits_of(np.isin(np.arange(4), rows)))

    first, second = rule(1, 0), rule(0, 0, 1, 2, 3)
    assert _without_harm([first, second], 1, cases) == [first]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_kernels_make_the_same_rules(seed, weighted, monkeypatch):
    """Enough rules for the search step by step, which the reference defines."""
    X, y = random_table(seed, n_rows=700)
    weights = np.random.default_rng(seed).random(700) if weighted else None
    model = grown(X, y, min_samples_branch=1)
    lists = []
    for kernel in KERNELS:
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        found = model.generalised_rules(X, y, confidence=0.5, sample_weight=weights)
        lists.append((found.to_json(), found.estimates, found.default))
    assert all(one == lists[0] for one in lists)


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_rules_are_searched_step_by_step(kernel, monkeypatch):
    """More rules than are tried in all subsets: those that tell nothing are left."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    n_rows = 200
    rng = np.random.default_rng(3)
    of_class = np.arange(n_rows) < 100
    good = [np.arange(at * 20, at * 20 + 20) for at in range(5)]
    noise = [np.sort(rng.choice(n_rows, 20, replace=False)) for _ in range(20)]
    rules = [*noise[:10], *good, *noise[10:]]
    problem = Subsets(
        [bits_of(np.isin(np.arange(n_rows), rows)) for rows in rules],
        np.full(25, 6.0),
        of_class,
        np.ones(n_rows),
    )
    assert EXHAUSTIVE < 25
    assert problem.best() == [10, 11, 12, 13, 14]


def test_what_a_condition_takes_to_tell():
    model = grown(*random_table(0, gaps=False))
    columns = model.schema.columns

    class Fake:
        def __init__(self, *conditions: Condition) -> None:
            self.conditions = conditions

    fakes: Any = [
        Fake(Condition("c", "=", "a")),
        Fake(Condition("n", "<=", 1.0)),
        Fake(Condition("n", ">", 2.0), Condition("c", "in", ("a", "b"))),
        Fake(Condition("n", "is missing")),
    ]
    cuts = math.log2(3)  # 1, 2 and None
    assert _bits(fakes, columns).tolist() == pytest.approx(
        [2 + 2, 2 + 1 + cuts, (2 + 1 + cuts) + (2 + 4) - 1, 2 + 1]
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_list_decides_as_its_rules_say(seed):
    X, y = random_table(seed)
    rules = grown(X, y, min_samples_branch=1).generalised_rules(X, y)
    assert isinstance(rules, RuleList)
    plain = [(rule.conditions, rule.label) for rule in rules]
    new, wanted = random_table(seed + 100)
    new["c"][3] = "never seen"
    for table, labels in ((X, y), (new, wanted)):
        rows = [
            {k: None if v == "never seen" else v for k, v in row.items()}
            for row in rows_of(table)
        ]
        naive = [decided(plain, rules.default, row) for row in rows]
        assert rules.predict(table).tolist() == [label for _, label in naive]
        assert rules.fired(table).tolist() == [at for at, _ in naive]
        right = [g == w for (_, g), w in zip(naive, labels, strict=True)]
        assert rules.score(table, labels) == np.mean(right)


@pytest.mark.parametrize("seed", range(6))
def test_the_table_counted_again(seed):
    """Every number of the accuracy table, row by row."""
    X, y = random_table(seed)
    model = grown(X, y, min_samples_branch=1)
    rules = model.generalised_rules(X, y, sample_weight=[2.0] * len(y))
    new, wanted = random_table(seed + 50)
    wanted[0] = "a class that the tree does not know"
    table = rules.table(new, wanted, sample_weight=[0.5] * len(wanted))
    columns = table.to_columns()
    plain = [(rule.conditions, rule.label) for rule in rules]
    for cells, labels, used, errors in (
        (X, y, "used", "errors"),
        (new, wanted, "test_used", "test_errors"),
    ):
        naive = [decided(plain, rules.default, row) for row in rows_of(cells)]
        for at in range(len(rules) + 1):
            mine = [k for k, (place, _) in enumerate(naive) if place == at]
            wrong = [k for k in mine if naive[k][1] != labels[k]]
            assert columns[used][at] == len(mine)
            assert columns[errors][at] == len(wrong)
    rows = rows_of(X)
    for at, rule in enumerate(rules):
        covered = [k for k, row in enumerate(rows) if fulfils(rule.conditions, row)]
        right = [k for k in covered if y[k] == rule.label]
        assert columns["cases"][at] == rule.n == len(covered)
        assert rule.weight == 2.0 * len(covered)
        assert columns["confidence"][at] == len(right) / len(covered)
        assert columns["coverage"][at] == len(covered) / len(y)
        assert columns["label"][at] == rule.label
    assert columns["label"][-1] == rules.default
    assert columns["conditions"][-1] == "otherwise"
    assert table.summary == {
        "tree": {
            "rules": model.tree.n_leaves,
            "conditions": sum(len(r.conditions) for r in model.rules(simplify=True)),
            "accuracy": pytest.approx(model.score(X, y)),
            "weighted_accuracy": pytest.approx(model.score(X, y)),
            "test_accuracy": pytest.approx(model.score(new, wanted)),
            "weighted_test_accuracy": pytest.approx(model.score(new, wanted)),
        },
        "rules": {
            "rules": len(rules),
            "conditions": sum(len(r.conditions) for r in rules),
            "accuracy": pytest.approx(rules.score(X, y)),
            "weighted_accuracy": pytest.approx(rules.score(X, y)),
            "test_accuracy": pytest.approx(rules.score(new, wanted)),
            "weighted_test_accuracy": pytest.approx(rules.score(new, wanted)),
        },
    }


# -- What the list is like


def test_classes_come_in_order_and_rules_by_their_estimates():
    X, y = read("credit-g.csv")
    rules = grown(X, y).generalised_rules(X, y)
    labels = [rule.label for rule in rules]
    blocks = [b for a, b in zip(["", *labels], labels, strict=False) if a != b]
    assert len(blocks) == len(set(labels))
    for label in blocks:
        own = [
            e for e, r in zip(rules.estimates, rules, strict=True) if r.label == label
        ]
        assert own == sorted(own)
    columns = rules.table().to_columns()
    assert all(used > 0 for used in columns["used"][:-1])
    keys = [(rule.label, frozenset(rule.conditions)) for rule in rules]
    assert len(set(keys)) == len(keys)


FIGURES = {
    "credit-g.csv": {"tree": (250, 1512, 940), "rules": (23, 63, 795)},
    "hepatitis.csv": {"tree": (16, 79, 149), "rules": (7, 21, 147)},
    "car": {"tree": (134, 631, 1666), "rules": (79, 343, 1671)},
}


@pytest.mark.parametrize("name", FIGURES)
def test_far_fewer_rules_on_real_data(name):
    """How many rules and conditions there are, and how many training rows are right:
    as measured once, so that a change is seen.
    """
    if name == "car":
        data = datasets.load(name)
        X, y = data.X, data.y
    else:
        X, y = read(name)
    summary = grown(X, y).generalised_rules(X, y).table().summary
    got = {
        side: (
            figures["rules"],
            figures["conditions"],
            round(figures["accuracy"] * len(y)),
        )
        for side, figures in summary.items()
    }
    assert got == FIGURES[name]


def test_the_order_of_rows_does_not_matter():
    X, y = random_table(4)
    weights = np.random.default_rng(1).random(len(y))
    model = fit_tree(X, y, sample_weight=weights)
    order = np.random.default_rng(2).permutation(len(y))
    shuffled = {name: [cells[at] for at in order] for name, cells in X.items()}
    one = model.generalised_rules(X, y, sample_weight=weights)
    other = model.generalised_rules(
        shuffled, [y[at] for at in order], sample_weight=weights[order]
    )
    assert one == other
    assert (one.default, one.estimates) == (other.default, other.estimates)
    assert one.to_json() == other.to_json()


def test_lower_confidence_leaves_fewer_conditions():
    X, y = read("credit-g.csv")
    model = grown(X, y)
    sizes = [
        sum(len(r.conditions) for r in model.generalised_rules(X, y, confidence=c))
        for c in (0.01, 0.5)
    ]
    assert sizes[0] < sizes[1]
    assert model.generalised_rules(X, y) == model.generalised_rules(
        X, y, confidence=model.recipe.confidence
    )


def test_a_tree_of_one_leaf_has_no_rules_but_a_prediction():
    X, y = {"c": ["x", "y", "x"]}, ["no", "yes", "yes"]
    model = fit_tree(X, y, Recipe(max_depth=0))
    rules = model.generalised_rules(X, y)
    assert (len(rules), rules.default) == (0, "yes")
    assert rules.predict({"c": ["x", "z"]}).tolist() == ["yes", "yes"]
    assert rules.to_text().splitlines()[1] == (
        "Otherwise, the prediction is yes (2 of 3 training cases)."
    )
    assert json.loads(rules.to_json())["rules"] == []


def test_predictions_that_cost_choose_the_classes_of_rules():
    X = {"c": ["x"] * 6 + ["y"] * 6, "n": [float(at) for at in range(12)]}
    y = ["no"] * 4 + ["yes"] * 2 + ["no"] * 6
    recipe = Recipe(costs=((0.0, 1.0), (9.0, 0.0)), max_depth=1)
    model = fit_tree(X, y, recipe)
    rules = model.generalised_rules(X, y)
    assert {rule.label for rule in rules} <= set(model.schema.classes)
    assert rules.table().summary["rules"]["accuracy"] == rules.score(X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        ID3Classifier(),
        ID3Classifier(missing="split", unseen="largest"),
        C45Classifier(group_values=True, prune=False),
        CARTClassifier(missing="surrogate"),
        CARTClassifier(missing="learned"),
    ],
)
def test_every_kind_of_tree(estimator):
    X, y = random_table(7)
    model = estimator.fit(X, y).model_
    rules = model.generalised_rules(X, y)
    plain = [(rule.conditions, rule.label) for rule in rules]
    naive = [decided(plain, rules.default, row)[1] for row in rows_of(X)]
    assert rules.predict(X).tolist() == naive
    assert rules.score(X, y) > 0.6


def test_unseen_values_are_missing_ones_where_the_tree_takes_them_so():
    X = {"c": ["x"] * 9 + ["y"] * 9 + [None] * 9}
    y = ["a"] * 9 + ["b"] * 9 + ["d"] * 9
    new = {"c": ["z", None, "x"]}
    for unseen, first_prediction in (("branch", "d"), ("node", None)):
        rules = fit_tree(X, y, Recipe(unseen=unseen)).generalised_rules(X, y)
        assert "c is missing" in {str(c) for rule in rules for c in rule.conditions}
        assert rules.default != "d"
        expected = [first_prediction or rules.default, "d", "a"]
        assert rules.predict(new).tolist() == expected


def test_notes_say_what_missing_values_do():
    X, y = random_table(1, gaps=False)
    strict = fit_tree(X, y, Recipe(missing="error", unseen="error"))
    assert strict.generalised_rules(X, y).note == (
        "The first rule that holds decides. Missing values, and values that training "
        "did not have, are refused."
    )
    loose = fit_tree(X, y, Recipe(missing="split", unseen="branch"))
    assert loose.generalised_rules(X, y).note == (
        "The first rule that holds decides. A missing value fulfils no condition but "
        "that it is missing; a value that training did not have is taken for a missing "
        "one."
    )
    half = fit_tree(X, y, Recipe(missing="error", unseen="node"))
    assert "A missing value is refused; a value that training did not have fulfils" in (
        half.generalised_rules(X, y).note
    )


# -- In print


def weather() -> tuple[RuleList, Any, Any]:
    data = datasets.load("weather")
    recipe = replace(ID3, threshold="midpoint")
    model = fit_tree(data.X, data.y, recipe, target_name="play")
    return model.generalised_rules(data.X, data.y), data.X, data.y


def test_the_list_in_sentences():
    rules, *_ = weather()
    text = rules.to_text().splitlines()
    assert text[4:] == [
        (
            "5. If humidity is at most 77.5, then play is yes (4 of 5 training cases, "
            "80 %; covers 36 % of all; 95 % interval 37-97 %)."
        ),
        "",
        "Otherwise, play is yes (no training case).",
        "",
        rules.note,
    ]
    assert repr(rules) == (
        "<branchwise rule list: 5 rules, 8 conditions, otherwise yes>"
    )
    assert rules.to_markdown().splitlines()[4:] == text[4:]


def test_the_list_as_json():
    rules, *_ = weather()
    document = json.loads(rules.to_json())
    assert (document["ordered"], document["default"]) == (True, "yes")
    got = [rule["estimated_error"] for rule in document["rules"]]
    assert got == list(rules.estimates)


def test_the_table_in_print():
    rules, X, y = weather()
    lines = str(rules.table(X, y)).splitlines()
    assert lines[0].split("  ")[0] == "rule"
    assert lines[5] == (
        "   5  yes        5      36 %        80 %             45 %     2       0"
        "          2            0  humidity <= 77.5"
    )
    assert lines[6].split() == [
        "6",
        "yes",
        "0",
        "0",
        "%",
        "0",
        "0",
        "0",
        "0",
        "otherwise",
    ]
    assert lines[8:] == [
        "       rules  conditions  accuracy  test accuracy",
        "tree       5           9    1.0000         1.0000",
        "rules      5           8    1.0000         1.0000",
    ]
    markdown = rules.table().to_markdown().splitlines()
    assert markdown[0].startswith("| rule | label | cases |")
    assert "humidity ≤ 77.5 |" in markdown[6]
    assert list(rules.table().to_frame().columns) == list(rules.table().to_columns())
    document = rules.table(X, y).to_dict()
    assert len(document["lines"]) == 6
    assert document["summary"]["tree"]["rules"] == 5


def test_sorted_it_is_a_plain_set_of_rules():
    rules, *_ = weather()
    some = rules.for_class("yes").sort_by("coverage")
    assert not isinstance(some, RuleList)
    assert [rule.n for rule in some] == [5, 4, 3]


# -- What is refused


def refused(call: Any, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_what_is_refused():
    rules, X, y = weather()
    model = fit_tree(X, y)
    number = CARTRegressor().fit({"x": [1.0, 2.0]}, [1.0, 2.0]).model_
    assert refused(lambda: number.generalised_rules(X, y), ParameterError) == (
        "generalised_rules needs a tree that predicts classes: it counts wrong "
        "predictions. Got one that predicts numbers; use rules()."
    )
    wrong = ["maybe", *y[1:]]
    assert refused(lambda: model.generalised_rules(X, wrong), DataError) == (
        "y has 'maybe', but the classes of the tree are 'no', 'yes'. Pass the rows "
        "that the tree was grown from."
    )
    empty = {name: [] for name in X}
    assert refused(lambda: model.generalised_rules(empty, []), DataError) == (
        "X has no rows. Pass at least one whose class is known."
    )
    message = refused(
        lambda: model.generalised_rules(X, y, confidence=0.7), ParameterError
    )
    assert message.startswith("confidence must be a number above 0 and up to 0.5.")
    assert refused(lambda: rules.table(X), ParameterError) == (
        "X and y belong together: a table and its target. Got X without y."
    )
    assert refused(lambda: rules.table(None, y), ParameterError) == (
        "X and y belong together: a table and its target. Got y without X."
    )
    assert refused(lambda: rules.table(sample_weight=[1]), ParameterError) == (
        "sample_weight has no effect without X and y."
    )
    strict = fit_tree(X, y, Recipe(missing="error")).generalised_rules(X, y)
    gone = {**X, "outlook": [None, *X["outlook"][1:]]}
    assert "missing='error'" in refused(lambda: strict.predict(gone), DataError)
