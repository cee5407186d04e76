"""Random models with rows to explain, and their Shapley values."""

from __future__ import annotations

import random

import numpy as np

import naive_shapley as naive
from branchwise.model import Model
from branchwise.shap.products import Term
from branchwise.shap.shapley import Background, Shapley, shapley_values
from mixed_trees import random_model


def term_of(model: Model, weight: float = 1.0) -> Term:
    tree = model.tree
    if tree.mean is not None:
        return Term(tree, tree.mean[:, np.newaxis], weight)
    nodes = range(len(tree))
    values = np.concatenate([model.walker.probabilities_of_node(n) for n in nodes])
    return Term(tree, values, weight)


def explained(model: Model, rows, background=None, weights=None, **options) -> Shapley:
    others = None
    if background is not None:
        share = np.array(weights) / sum(weights)
        others = Background(model.encoded(background), share)
    data = model.encoded(rows)
    return shapley_values(
        model.schema.columns, [term_of(model)], data, others, **options
    )


def drawn(seed: int, n_rows: int = 2, n_others: int = 4):
    """Draw a model, rows to explain, a background and its weights."""
    model, rng = random_model(seed, seed, False), random.Random(seed)
    rows = naive.random_rows(model, n_rows, rng)
    background = naive.random_rows(model, n_others, rng)
    return model, rows, background, [rng.choice([0.5, 1.0, 2.0]) for _ in background]
