"""Shapley values against sums over all subsets, for every kind of tree."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive_shapley as naive
from branchwise.shap.shapley import (
    Background,
    Shapley,
    corrected,
    quadrature,
    shapley_values,
)
from selection import first_fast
from shap_models import drawn, explained, term_of

CLOSE = 1e-12


def compare(seed: int) -> None:
    model, rows, background, weights = drawn(seed)
    n = len(model.schema.columns)
    for others in (None, background):
        found = explained(model, rows, others, weights, interactions=True)
        assert np.array_equal(found.predictions, naive.predictions(model, rows))
        for row, values, matrix in zip(
            rows, found.values, found.interactions, strict=True
        ):
            if others is None:
                worth = naive.worth_by_training(model, row)
            else:
                worth = naive.worth_by_background(model, row, others, weights)
            scale = max(1.0, np.abs(worth).max())
            for got, wanted in (
                (found.base, worth[0]),
                (values, naive.shapley(worth, n)),
                (matrix, naive.interactions(worth, n)),
            ):
                assert np.abs(got - wanted).max() <= CLOSE * scale
        assert_adds_up(found)


def assert_adds_up(found: Shapley) -> None:
    """The exact sum is the prediction, as far as the last bits of values go."""
    base = found.base.tolist()
    for values, predictions in zip(found.values, found.predictions, strict=True):
        for k, prediction in enumerate(predictions.tolist()):
            parts = [base[k], *values[:, k].tolist()]
            least = min((abs(v) for v in parts[1:] if v), default=0.0)
            total = math.fsum(parts)
            assert abs(total - prediction) <= max(
                math.ulp(least), math.ulp(prediction) / 2
            )


@pytest.mark.parametrize("seed", first_fast(range(60), 12))
def test_values_are_those_of_the_definition(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_values_of_many_models_are_those_of_the_definition(block):
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        compare(seed)


@pytest.mark.parametrize("seed", [1168, 1462, 1616, 1757, 1838, 1240])
def test_values_of_models_that_were_wrong_once(seed):
    """Rows of which nothing is known, and classes that never occur."""
    compare(seed)


def test_what_is_left_of_other_classes_is_no_error():
    values = np.array([[[0.25, -4e-17], [0.25, 0.0]]])
    corrected(values, np.array([0.5, 0.0]), np.array([[1.0, 0.0]]), 0)
    assert values.tolist() == [[[0.25, 0.0], [0.25, 0.0]]]
    with pytest.raises(ValueError, match="not those of the trees"):
        corrected(values, np.array([0.5, 0.0]), np.array([[1.0, 1e-6]]), 0)


def test_a_row_of_which_nothing_is_known_adds_up():
    base, prediction = 0.42857142857142855, 0.4285714285714286
    values = np.zeros((1, 3, 1))
    corrected(values, np.array([base]), np.array([[prediction]]), 1)
    assert values[0, :, 0].tolist() == [0.0, prediction - base, 0.0]
    assert base + float(values.sum()) == prediction


def test_a_sum_of_trees_has_the_sum_of_their_values():
    model, rows, background, weights = drawn(3)
    columns, data = model.schema.columns, model.encoded(rows)
    terms = [term_of(model, 0.25), term_of(model, 0.75)]
    share = np.array(weights) / sum(weights)
    for others in (None, Background(model.encoded(background), share)):
        one = shapley_values(columns, terms[:1], data, others).values
        both = shapley_values(columns, terms, data, others).values
        assert np.allclose(both, 4 * one, rtol=1e-13, atol=1e-15)


def test_columns_that_the_tree_does_not_use_have_no_value():
    for seed in (8, 12, 13):
        model, rows, background, weights = drawn(seed, 20)
        unused = set(range(len(model.schema.columns))) - set(model.tree.used_columns)
        for others in (None, background):
            found = explained(model, rows, others, weights)
            assert not found.values[:, sorted(unused)].any()


def test_a_tree_without_splits_has_nothing_but_a_base_value():
    model, rows, background, weights = drawn(6)
    assert len(model.tree) == 1
    for others in (None, background):
        found = explained(model, rows, others, weights, interactions=True)
        assert not found.values.any()
        assert not found.interactions.any()
        assert np.array_equal(found.predictions[0], found.base)


def test_interactions_are_symmetric_and_add_up_to_values():
    model, rows, background, weights = drawn(9, 10)
    found = explained(model, rows, background, weights, interactions=True)
    matrix = found.interactions
    assert np.array_equal(matrix, matrix.transpose(0, 2, 1, 3))
    assert np.allclose(matrix.sum(axis=2), found.values, rtol=0, atol=1e-15)


def test_predictions_of_another_model_are_rejected():
    model, rows, *_ = drawn(0)
    with pytest.raises(ValueError, match="not those of the trees"):
        explained(model, rows, predictions=np.full((2, len(model.schema.classes)), 0.9))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 64])
def test_quadrature_is_exact_for_so_many_factors(n):
    points, weights = quadrature(n)
    for degree in range(n):
        exact = 1.0 / (degree + 1)
        assert abs((weights * points**degree).sum() - exact) <= 1e-14
