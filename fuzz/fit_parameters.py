"""Random parameters for each estimator: most at their defaults, each drawn at times."""

from __future__ import annotations

import random
from typing import Any

#: Parameter -> what may be drawn in place of the default.
GROWTH: dict[str, tuple[Any, ...]] = {
    "max_depth": (0, 1, 2, 3, 3, 4, 6),
    "min_samples_split": (3, 5, 8, 0.1, 0.3, 10**6),
    "min_samples_leaf": (2, 2, 3, 0.03, 0.1),
    "min_gain": (0.01, 0.01, 0.05, 0.3, 1e-12),
    "max_bins": (2, 3, 8, 255),
    "max_leaf_nodes": (1, 2, 3, 6, 12),
    "max_p_value": (0.05, 0.5, 1.0, 1e-6),
    "unseen": ("branch", "split", "largest", "node", "error"),
}
MISSING = ("branch", "split", "largest", "node", "error")
TWO_WAY_MISSING = (*MISSING, "learned", "surrogate")
CRITERIA = {
    "ID3Classifier": ("gain", "gain_ratio", "gini"),
    "CARTClassifier": ("gini", "gain", "log_loss", "gain_ratio"),
    "CARTRegressor": ("variance", "squared_error", "poisson"),
}


def draw_parameters(rng: random.Random, estimator: str) -> dict[str, Any]:
    """Return parameters of an estimator that do not depend on its table."""
    drawn: dict[str, Any] = {}
    often = rng.choice([0.0, 0.05, 0.1, 0.3])
    if rng.random() < 0.2:
        return drawn
    for name, values in GROWTH.items():
        if rng.random() < often:
            drawn[name] = rng.choice(values)
    if rng.random() < 0.4:
        two_way = estimator.startswith("CART")
        drawn["missing"] = rng.choice(TWO_WAY_MISSING if two_way else MISSING)
    if estimator in CRITERIA and rng.random() < 0.4:
        drawn["criterion"] = rng.choice(CRITERIA[estimator])
    if estimator == "C45Classifier":
        _add_c45(rng, drawn)
    if rng.random() < 0.35:
        _add_pruning(rng, estimator, drawn)
    if estimator != "CARTRegressor" and rng.random() < 0.25:
        drawn["probabilities"] = rng.choice(["laplace", "m-estimate"])
        if drawn["probabilities"] == "m-estimate" and rng.random() < 0.5:
            drawn["m"] = rng.choice([0.5, 5, 50.0])
    return drawn


def _add_c45(rng: random.Random, drawn: dict[str, Any]) -> None:
    if rng.random() < 0.25:
        drawn["min_samples_branch"] = rng.choice([1, 1, 3, 0.1])
    if rng.random() < 0.25:
        drawn["group_values"] = True
    if rng.random() < 0.25:
        drawn["threshold"] = "midpoint"
    if rng.random() < 0.4:
        drawn["prune"] = False


def _add_pruning(rng: random.Random, estimator: str, drawn: dict[str, Any]) -> None:
    """Draw a way of pruning with what belongs to it."""
    kinds = ["cost-complexity", "reduced-error"]
    if estimator != "CARTRegressor":
        kinds.append("error-based")
    kind = rng.choice(kinds)
    if drawn.get("prune") is False:
        return
    drawn["pruning"] = kind
    if kind == "error-based":
        drawn["confidence"] = rng.choice([0.1, 0.25, 0.5])
        drawn["raise_subtrees"] = rng.random() < 0.5
    elif kind == "reduced-error":
        drawn["validation_fraction"] = rng.choice([0.2, 0.5])
        if rng.random() < 0.3:
            drawn["tolerance"] = rng.choice([0.01, 0.1])
    else:
        drawn["ccp_alpha"] = rng.choice([0.001, 0.01, 0.05, 0.5, "best", "1-se"])
