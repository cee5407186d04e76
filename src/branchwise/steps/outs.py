"""Why a column is no candidate at a node, or is one no longer."""

from __future__ import annotations

import numpy as np

from branchwise.deciding import AVERAGE_SLACK
from branchwise.steps.numbers import Candidate, Out
from branchwise.steps.walk import Visit


def why_out(candidate: Candidate, visit: Visit, at: int, index: int) -> Out | None:
    """Tell why a column is out at the node of a row; None where it is not."""
    found = visit.found
    if found.scores[at, index] > -np.inf:
        return None
    if found.found[at, index] > -np.inf:
        if not np.isnan(found.log_p[at, index]):
            return "p-value"
        low = not found.gains[at, index] >= found.average[at] - AVERAGE_SLACK
        return "average" if visit.search.recipe.average_gain and low else "min_gain"
    if candidate.numeric:
        return _numbers_out(candidate, visit)
    return _values_out(candidate, visit)


def _values_out(candidate: Candidate, visit: Visit) -> Out:
    search = visit.search
    branches = list(candidate.values)
    if search.recipe.missing == "branch" and candidate.missing is not None:
        branches.append(candidate.missing)
    if not candidate.values:
        return "no value"
    if len(branches) < 2:
        return "one value"
    if search.recipe.branching != "values":
        return "no grouping"
    as_weights = search.recipe.weights_are_cases
    cases = [group.weight if as_weights else group.cases for group in branches]
    if min(cases) < search.cases_in_leaf:
        return "few cases in a branch"
    large = sum(count >= search.cases_in_branch for count in cases)
    return "few large branches" if large < 2 else "no score"


def _numbers_out(candidate: Candidate, visit: Visit) -> Out:
    recipe = visit.search.recipe
    if candidate.known is None or not candidate.known.cases:
        return "no value"
    if candidate.n_cuts:
        if recipe.quinlan_cuts:
            return "no information"
        return "min_gain" if recipe.min_gain else "no score"
    missing = candidate.missing
    own_branch = recipe.missing == "branch" and missing is not None
    if own_branch and missing is not None:
        cases = missing.weight if recipe.weights_are_cases else missing.cases
        if cases < visit.search.cases_in_leaf:
            return "few missing"
    return "no cut" if candidate.places else "one value"
