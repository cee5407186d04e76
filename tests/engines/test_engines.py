"""Rows in parts give the tree that rows in memory give, whatever the parts are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from branchwise import DataError, ParameterError, fit_tree
from branchwise.data.bins import bin_columns
from branchwise.data.table_schema import Column, Columns
from branchwise.engines.base import Task
from branchwise.engines.level_engine import in_buckets
from branchwise.engines.summaries import NumberSummary
from branchwise.recipe import CART, ID3
from branchwise.train.engine_growth import grown_by_engine
from branchwise.train.train import task_of
from engine_tables import RECIPES, in_parts, random_table
from listed_source import ListedPlace
from selection import examples, first_fast


@pytest.mark.parametrize("seed", first_fast(range(20)))
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_parts_give_the_tree_of_the_whole(name, seed, kernel, monkeypatch):
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    rng = np.random.default_rng(seed)
    for _ in range(examples(3)):
        table = random_table(rng)
        recipe = RECIPES[name]
        if recipe.is_regression:
            table["y"] = rng.normal(size=len(table))
        weighted = rng.random() < 0.5
        place = ListedPlace(in_parts(rng, table), int(rng.choice([0, 40, 10**6])))
        task = Task("y", "w" if weighted else None, ("w",))
        plan = place.learn(task_of(recipe, task))
        tree = grown_by_engine(place, plan, recipe)
        model = fit_tree(
            table.drop(columns=["y", "w"]),
            table["y"],
            recipe,
            sample_weight=table["w"] if weighted else None,
        )
        assert model.schema == plan.schema
        assert model.tree == tree


@pytest.mark.parametrize("choice", [{"class_weight": "balanced"}, {"priors": 1}])
def test_classes_weigh_as_they_do_in_memory(choice):
    from branchwise import CARTClassifier

    rng = np.random.default_rng(5)
    table = random_table(rng)
    if "priors" in choice:
        labels = sorted(set(table["y"]))
        choice = {"priors": {label: at + 1.0 for at, label in enumerate(labels)}}
    place = ListedPlace(in_parts(rng, table))
    estimator = CARTClassifier(**choice)
    task = task_of(estimator.recipe, Task("y", "w", **choice))
    tree = grown_by_engine(place, place.learn(task), estimator.recipe)
    estimator.fit(table.drop(columns=["y", "w"]), table["y"], table["w"])
    assert estimator.tree_ == tree


def test_a_level_costs_one_pass_and_the_last_none():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"c{j}": rng.integers(0, 3, 500).astype(str) for j in "abcd"})
    table["y"] = rng.integers(0, 2, 500).astype(str)
    place = ListedPlace([table])
    recipe = replace(ID3, max_depth=3)
    tree = grown_by_engine(place, place.learn(task_of(recipe, Task("y"))), recipe)
    assert tree.max_depth == 3
    assert place.passes == 3


def test_types_of_parts_must_agree():
    parts = [
        pd.DataFrame({"x": [1.5], "y": ["a"]}),
        pd.DataFrame({"x": ["b"], "y": ["a"]}),
    ]
    with pytest.raises(DataError, match="'x' holds numbers in some chunks"):
        ListedPlace(parts).learn(Task("y"))


def test_a_part_without_values_has_no_type():
    parts = [
        pd.DataFrame({"x": [None], "y": ["a"]}),
        pd.DataFrame({"x": [2.5], "y": ["b"]}),
    ]
    column = ListedPlace(parts).learn(Task("y")).schema.columns[0]
    assert column == Column("x", "numeric", (), True)


def test_a_table_that_changes_is_refused():
    table = pd.DataFrame({"x": ["a", "b"], "y": ["n", "p"]})
    place = ListedPlace([table])
    plan = place.learn(Task("y"))
    place.tables = [table.assign(x=["a", "c"])]
    with pytest.raises(DataError, match=r"changed while the tree was grown.*'x'"):
        place.engine(plan)


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([pd.DataFrame({"x": [], "y": []})], "no rows"),
        ([pd.DataFrame({"y": ["a"]})], "no attributes"),
        ([pd.DataFrame({"x": ["a"]})], "no column 'y' to be the target"),
    ],
)
def test_tables_without_something_to_learn(parts, complaint):
    with pytest.raises(DataError, match=complaint):
        ListedPlace(parts).learn(Task("y"))


class Unread(ListedPlace):
    label = "a database"

    def learn(self, task):
        raise AssertionError("not before the parameters are checked")


def test_prices_by_rule_are_refused_before_work():
    recipe = replace(CART, pruning="cost-complexity", ccp_alpha="1-se")
    with pytest.raises(ParameterError, match=r"ccp_alpha='1-se'.*in a database"):
        fit_tree(Unread([]), "y", recipe)


# ---- summaries of numbers ---------------------------------------------------------

NUMBERS = arrays.arrays(
    np.float64, st.integers(0, 60), elements=st.floats(-1e6, 1e6, width=32)
)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.integers(2, 20), st.randoms())
def test_summaries_do_not_depend_on_parts_or_order(parts, max_exact, random):
    whole = NumberSummary.of(np.concatenate(parts), max_exact)
    random.shuffle(parts)
    merged = NumberSummary.of(parts[0], max_exact)
    for part in parts[1:]:
        merged = merged.merge(NumberSummary.of(part, max_exact), max_exact)
    for name in ("low", "high", "count"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name))
    assert merged.dropped == whole.dropped
    assert len(whole.count) <= max_exact
    assert whole.count.sum() == sum(map(len, parts))


@given(NUMBERS.filter(len), st.integers(2, 9))
def test_edges_of_exact_summaries_are_those_of_rows(numbers, max_bins):
    column = Column("x", "numeric", (), False)
    data = Columns(len(numbers), (numbers,))
    expected = bin_columns([column], data, max_bins, None)[1].get(0)
    edges = NumberSummary.of(numbers, 1000).edges(max_bins)
    assert (edges is None) == (expected is None)
    assert edges is None or np.array_equal(edges, expected)


def test_cells_of_a_summary_follow_the_numbers():
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(size=5000)
    summary = NumberSummary.of(numbers, 100)
    assert not summary.exact
    assert 50 < len(summary.count) <= 100
    assert (summary.high[:-1] < summary.low[1:]).all()
    edges = summary.edges(None)
    assert edges is not None
    assert len(edges) < 100
    inside = np.histogram(numbers, [-np.inf, *edges, np.inf])[0]
    assert inside.max() < 5000 / 10


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(50, 100))
def test_buckets_hold_what_they_can(cases, most_rows):
    bucket = in_buckets(np.array(cases, dtype=float), most_rows)
    filled = np.bincount(bucket, cases)
    assert filled.max() <= most_rows
    assert (np.diff(bucket) >= 0).all()
    assert (np.diff(np.unique(bucket)) == 1).all()


@pytest.mark.parametrize("name", ["id3", "c4.5", "divided", "surrogates", "numbers"])
def test_rows_to_prune_with_are_divided_as_the_tree_predicts(name):
    compared = 0
    recipe = replace(RECIPES[name], pruning="reduced-error")
    rng = np.random.default_rng(5)
    for _ in range(6):
        table = random_table(rng).drop(columns="w")
        if recipe.is_regression:
            table["y"] = rng.normal(size=len(table))
        rows, others = table.iloc[::2], table.iloc[1::2]
        if not set(others["y"]) <= set(rows["y"]) and not recipe.is_regression:
            continue
        place = ListedPlace([rows])
        model = fit_tree(place, "y", recipe, validation=ListedPlace([others]))
        expected = fit_tree(rows, "y", recipe, validation=others)
        assert model.tree == expected.tree
        compared += 1
    assert compared


# ---- columns that are left out ---------------------------------------------------


@pytest.mark.parametrize("far_away", [False, True])
def test_only_attributes_can_be_ignored(far_away, tmp_path):
    table = pd.DataFrame({"a": [1, 2] * 9, "b": ["u", "v", "w"] * 6, "y": [0, 1] * 9})
    source = table
    if far_away:
        source = [str(tmp_path / f"{at}.parquet") for at in range(2)]
        for at, path in enumerate(source):
            table.iloc[at::2].to_parquet(path)
    assert fit_tree(source, "y", ignore=["a"]).schema.columns[0].name == "b"
    with pytest.raises(DataError, match=r"has no column 'aa'\. Did you mean 'a'"):
        fit_tree(source, "y", ignore=["aa"])
    with pytest.raises(ParameterError, match="Got 'y', which is the target"):
        fit_tree(source, "y", ignore=["y"])
    with pytest.raises(ParameterError, match=r"must be a list of names.*Got 'ab'"):
        fit_tree(source, "y", ignore="ab")


def test_rows_to_prune_with_may_lack_what_is_ignored():
    table = pd.DataFrame({"a": [1, 2] * 9, "b": ["u", "v", "w"] * 6, "y": [0, 1] * 9})
    recipe = replace(ID3, pruning="reduced-error")
    model = fit_tree(
        table, "y", recipe, ignore=["a"], validation=table.drop(columns="a")
    )
    assert [column.name for column in model.schema.columns] == ["b"]
