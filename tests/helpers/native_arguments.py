"""Arguments of the compiled extension, sound but for what is changed."""

from __future__ import annotations

import numpy as np

from branchwise.grow.criteria import SERIES, ImpuritySums64


def with_changes(given, changed):
    """Arguments, some of them changed: entries of dicts by their own names."""
    for name, value in changed.items():
        inner = [d for d in given.values() if isinstance(d, dict) and name in d]
        (inner or [given])[0][name] = value
    return given


def growth(**changed):
    """Arguments of growth from four rows, some of them changed."""
    given = {
        "columns": [np.array([0, 1, 1, 0], dtype=np.uint8), np.array([0.5, 1, 2, 3])],
        "n_codes": [3, 1],
        "labels": np.array([0, 1, 1, 0], dtype=np.uint32),
        "n_classes": 2,
        "weights": None,
        "times": None,
        "options": {
            "fractions": False,
            "weight_step": 1.0,
            "case_step": 1.0,
            "weights_are_cases": False,
            "criterion": "gain",
            "max_depth": -1,
            "cases_to_split": 2.0,
            "cases_in_leaf": 1.0,
            "cases_in_branch": 0.0,
            "weight_in_leaf": 0.0,
            "branching": "values",
            "quinlan_thresholds": False,
            "average_gain": False,
            "corrects_values": False,
            "few_values_to_group": 2,
            "positions": [0, 0],
            "few_values": [True, True],
            "min_gain": 0.0,
            "missing": "branch",
            "unseen": "node",
            "tests_splits": False,
            "max_log_p": 0.0,
            "bits": ImpuritySums64(4.0, whole=True).bits,
            "series": list(SERIES),
            "total": 4.0,
            "whole": True,
            "n_threads": 1,
            "worth_sharing": 1,
            "max_features": 0,
            "draw_key": 0,
            "random_splits": False,
        },
        "progress": None,
    }
    return with_changes(given, changed)
