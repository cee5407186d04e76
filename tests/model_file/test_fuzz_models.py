"""A small part of ``fuzz/models.py``, and what it has found."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from branchwise import DataError, Model, export
from branchwise import model_file as persist
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import C45, CART
from branchwise.stats import share_interval, student
from branchwise.tree.splits import Router
from selection import first_fast
from tree_builder import TreeBuilder

FUZZ = Path(__file__).parents[2] / "fuzz" / "models.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_models", FUZZ)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_hundred_mutated_model_files(fuzz):
    done = Counter(fuzz.try_one(0, number) for number in range(200))
    assert set(done) == {"refused", "used"}
    assert min(done.values()) > 20


def test_valid_files_do_everything(fuzz):
    for content, document, _ in fuzz.sources():
        assert persist.from_bytes(content)
        assert json.loads(content) == document


SCHEMA = Schema((Column("n", "numeric"),), ("no", "yes"))


def tiny(weight: float) -> Model:
    """Return a tree whose cases weigh next to nothing."""
    builder = TreeBuilder(SCHEMA, weights=[2 * weight, weight], cases=3)
    builder.child(0, "n", at_most=0.5, weights=[weight, 0], cases=1)
    builder.child(0, "n", above=0.5, weights=[weight, weight], cases=2)
    return Model(SCHEMA, builder.build(), C45)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-150, 1e50, 1e299])
def test_amounts_next_to_nothing_and_beyond_all(weight):
    model = Model(*persist.from_bytes(tiny(weight).to_bytes()))
    with np.errstate(all="raise", under="ignore"):
        assert [rule.sentence() for rule in model.rules()]
        assert str(model.explain({"n": 1.0}))
        assert len(model.pruning_path()) >= 1
        if weight < 1e150:
            assert len(model.prune("error-based").tree) in (1, 3)
            return
        with pytest.raises(
            DataError,
            match=r"1e\+100 of them\. Got weights that add up to 3e\+299",
        ):
            model.prune("error-based")


def test_intervals_of_next_to_nothing_say_nothing():
    assert share_interval(0.5, 5e-324, 0.95) == pytest.approx((0.0, 1.0))
    assert share_interval(0.5, 1e300, 0.95) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999999])
def test_student_of_very_many_cases(level):
    """A model file may tell of 1e50 cases: no sum of so many terms."""
    below, above = student(level, 1e6), student(level, np.nextafter(1e6, 2e6))
    assert above == pytest.approx(below, rel=1e-8)
    assert above == pytest.approx(stats.t.isf((1 - level) / 2, 1e6), rel=1e-12)
    normal = -NormalDist().inv_cdf((1 - level) / 2)
    assert student(level, 1e299) == pytest.approx(normal, rel=1e-12)


def test_the_price_of_a_single_branch():
    """Cutting below it saves no leaf."""
    builder = TreeBuilder(SCHEMA, weights=[5, 5])
    builder.child(0, "n", at_most=0.5, weights=[0, 4])
    only = builder.child(0, "n", above=0.5, weights=[5, 1])
    builder.child(only, "n", above=0.7, weights=[5, 0])
    model = Model(SCHEMA, builder.build(), CART)
    assert model.pruning_path().n_leaves.tolist() == [2, 1]
    assert len(model.prune("cost-complexity", ccp_alpha=0.0).tree) == 4


@pytest.mark.parametrize("target", first_fast(["onnx", "pmml"]))
def test_classes_that_are_no_whole_numbers(target):
    """Fitting has none, but a file may: they must not be cut to whole numbers."""
    document = json.loads(tiny(1.0).to_bytes())
    document["schema"]["classes"] = [0.5, 1.25]
    model = Model(*persist.from_bytes(json.dumps(document).encode()))
    done = export.verify(model, target)
    assert done.ok or not done.ran, str(done)


def test_branches_without_weight_share_nothing():
    splits = replace(tiny(1.0).tree.splits, sizes=np.zeros(2))
    origin, target, share = Router(SCHEMA.columns, splits).every_branch(np.array([0]))
    assert (origin.tolist(), target.tolist()) == ([0, 0], [0, 1])
    assert share.tolist() == [0.0, 0.0]
