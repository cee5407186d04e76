"""Laws of fitting: what may not change a model, and what changes it in a known way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from branchwise import BranchwiseError
from fit_cases import Case, is_missing
from fit_trials import (
    Outcome,
    Refusal,
    fail_unless,
    fitted,
    kernel,
    same_bits,
    same_model,
    same_tree,
)

#: Parameters whose bars count cases, whatever they weigh.
COUNTS_CASES = (
    "min_samples_split",
    "min_samples_leaf",
    "min_samples_branch",
    "max_p_value",
    "max_bins",
)
#: Cells of a node that threads share out.
MANY_CELLS = 2**18 + 1000


def deals_rows(case: Case) -> bool:
    """Whether rows are set aside or dealt to folds by what they contain."""
    return "validation_fraction" in case.parameters or isinstance(
        case.parameters.get("ccp_alpha"), str
    )


def check_row_order(case: Case) -> bool:
    """Shuffled rows give the same model."""
    if case.n_rows < 2:
        return False
    rng = case.random("row order")
    expected = fitted(case)
    orders = [list(range(case.n_rows))[::-1], list(range(case.n_rows))]
    rng.shuffle(orders[1])
    for order in orders:
        same_model(
            expected, fitted(case.take(order)), f"rows in the order {order[:12]}"
        )
    return True


def check_threads(case: Case) -> bool:
    """The number of threads does not matter."""
    rows = list(range(case.n_rows))
    if case.random("threads").random() < 0.02:  # enough for threads to share a node
        rows *= 1 + MANY_CELLS // (case.n_rows * len(case.columns))
    case = case.take(rows)
    expected = fitted(case, n_jobs=1)
    for n_jobs in (2, 3):
        same_model(expected, fitted(case, n_jobs=n_jobs), f"n_jobs={n_jobs}")
    return True


def check_kernels(case: Case) -> bool:
    """The compiled kernel grows and predicts what the reference does."""
    with kernel("reference"):
        expected = fitted(case)
    with kernel("native"):
        got = fitted(case)
    same_model(expected, got, "native against reference")
    if isinstance(expected, Refusal) or isinstance(got, Refusal):
        return True
    rows = known_rows(case)
    for method in ("predict", "apply"):
        with kernel("reference"):
            one = getattr(expected, method)(rows)
        with kernel("native"):
            other = getattr(got, method)(rows)
        same_bits(one, other, f"{method}, native against reference")
    return True


def known_rows(case: Case) -> dict[str, list[Any]]:
    """Return the training rows, and further ones that the model does not refuse."""
    if "error" in (case.parameters.get("missing"), case.parameters.get("unseen")):
        return case.columns
    return {name: [*cells, *case.others[name]] for name, cells in case.columns.items()}


def check_renaming(case: Case) -> bool:
    """Other names, and other values in the same order, give the same tree."""
    if deals_rows(case):
        return False

    def renamed(cell: Any) -> Any:
        return f"q{cell}" if isinstance(cell, str) else cell

    names = {name: f"column {i}" for i, name in enumerate(case.columns)}
    parameters = dict(case.parameters)
    if "categories" in parameters:
        parameters["categories"] = {
            names[name]: [renamed(v) for v in values]
            for name, values in parameters["categories"].items()
        }
    for name in ("class_weight", "priors"):
        if isinstance(parameters.get(name), dict):
            parameters[name] = {renamed(k): v for k, v in parameters[name].items()}
    other = replace(
        case,
        parameters=parameters,
        columns={
            names[name]: [renamed(c) for c in cells]
            for name, cells in case.columns.items()
        },
        y=[renamed(label) for label in case.y],
    )
    same_tree(fitted(case), fitted(other), "columns and values renamed")
    return True


def check_useless_columns(case: Case) -> bool:
    """A constant column, or a column a second time, changes no tree."""
    if deals_rows(case) or "max_p_value" in case.parameters:
        return False
    if case.parameters.get("missing") == "surrogate":
        return False
    if case.estimator == "C45Classifier":
        return False  # its average gain is one of all columns and their values
    expected = fitted(case)
    constant = replace(case, columns={**case.columns, "constant": ["c"] * case.n_rows})
    same_tree(expected, fitted(constant), "a constant column more")
    twins = {f"twin {i}": list(c) for i, c in enumerate(case.columns.values())}
    categories = case.parameters.get("categories")
    parameters = dict(case.parameters)
    if categories:
        more = {
            f"twin {i}": categories[name]
            for i, name in enumerate(case.columns)
            if name in categories
        }
        parameters["categories"] = {**categories, **more}
    twice = replace(case, columns={**case.columns, **twins}, parameters=parameters)
    same_tree(expected, fitted(twice), "every column twice")
    return True


def check_column_scale(case: Case) -> bool:
    """Numbers of a column times two: the same tree with thresholds times two."""
    if deals_rows(case) or case.estimator == "C45Classifier":
        return False  # C4.5 does not tell numbers apart that are nearer than 1e-5
    if case.parameters.get("categorical_features") == "all":
        return False

    def safe(cell: Any) -> bool:
        return is_missing(cell) or cell == 0 or 1e-290 < abs(cell) < 1e300

    def scalable(cells: list[Any]) -> bool:
        return all(type(c) is float or is_missing(c) for c in cells)

    columns = {}
    for name, cells in case.columns.items():
        columns[name] = cells
        if scalable(cells):
            if not all(map(safe, cells)):
                return False
            columns[name] = [None if is_missing(c) else 2 * c for c in cells]
    expected, got = (
        fitted(one, threshold="midpoint")
        for one in (case, replace(case, columns=columns))
    )
    same_tree(expected, got, "numbers times 2", "threshold", "surrogate_threshold")
    if isinstance(expected, Refusal) or isinstance(got, Refusal):
        return True
    scaled = np.array([scalable(cells) for cells in case.columns.values()])
    at = expected.tree.column >= 0
    factor = np.where(at & scaled[expected.tree.column], 2.0, 1.0)
    same_bits(
        expected.tree.threshold * factor, got.tree.threshold, "thresholds times 2"
    )
    return True


def check_depth(case: Case) -> bool:
    """A tree with a lower max_depth is the top of the deeper one."""
    shaping = ("pruning", "max_leaf_nodes", "ccp_alpha", "max_depth")
    if any(name in case.parameters for name in shaping):
        return False
    if case.estimator == "C45Classifier":
        case = replace(case, parameters={**case.parameters, "prune": False})
    depth = case.random("depth").choice([0, 1, 2])
    deep, low = fitted(case), fitted(case, max_depth=depth)
    if isinstance(deep, Refusal) or isinstance(low, Refusal):
        same_model(deep, low, f"max_depth={depth}")
        return True
    if case.estimator == "C45Classifier":
        return len(low.tree) > 0  # collapsing looks at what is below
    n, inner = len(low.tree), int((low.tree.depth < depth).sum())
    for name in ("weights", "cases", "mean", "deviation"):
        if getattr(deep.tree, name) is not None:
            one, other = (getattr(m.tree, name)[:n] for m in (deep, low))
            same_bits(one, other, f"max_depth={depth}: {name}")
    for name in ("column", "threshold", "n_children", "missing_to", "unseen_to"):
        one, other = (getattr(m.tree, name)[:inner] for m in (deep, low))
        same_bits(one, other, f"max_depth={depth}: {name}")
    return True


def check_prune_later(case: Case) -> bool:
    """A tree that is pruned after it was fitted is the one that fitting prunes."""
    later = ("pruning", "ccp_alpha", "confidence", "raise_subtrees")
    given = {name: case.parameters[name] for name in later if name in case.parameters}
    kind = given.pop("pruning", None)
    if kind not in ("cost-complexity", "error-based") or deals_rows(case):
        return False
    if case.estimator == "C45Classifier":
        return False  # collapses before it prunes
    if "class_weight" in case.parameters or "priors" in case.parameters:
        return False
    expected, full = fitted(case), fitted(case.without(*later))
    if isinstance(full, Refusal):
        same_model(expected, full, "pruned later")
        return True
    rows: dict[str, Any] = {}
    if kind == "error-based" and given.get("raise_subtrees", True):
        rows = {"X": case.columns, "y": case.y, "sample_weight": case.weights}
    pruned: Outcome
    try:
        pruned = full.prune(kind, **given, **rows)
    except BranchwiseError as error:  # such as weights beyond what pruning can count
        pruned = Refusal(error)
    same_model(expected, pruned, "pruned later")
    return True


# ------------------------------------------------------------------------- weights


def check_weight_scale(case: Case) -> bool:
    """Weights times a power of two give the same splits and predictions."""
    if case.weights is None or case.estimator == "C45Classifier":
        return False
    absolute = ("probabilities", "max_p_value", "validation_fraction")
    if any(name in case.parameters for name in absolute):
        return False
    if case.parameters.get("pruning") == "error-based":
        return False
    power = case.random("weight scale").choice([-3, -1, 1, 5])
    scaled = [math.ldexp(w, power) for w in case.weights]
    if not all(
        math.ldexp(s, -power) == w for s, w in zip(scaled, case.weights, strict=True)
    ):
        return False
    total = math.fsum(case.weights)
    if not 1e-290 < total < 1e290:
        return False
    expected = fitted(case)
    got = fitted(replace(case, weights=scaled))
    same_tree(
        expected,
        got,
        f"weights times 2^{power}",
        "weights",
        *_cases_kept_once(got, expected),
    )
    return True


def _cases_kept_once(one: Outcome, other: Outcome) -> tuple[str, ...]:
    """Name the cases by class where only one of two trees has them.

    They are kept where they are not the weights. Weights may equal them by accident:
    0.4, 1.8 and 0.8 are together the weight of three cases.
    """
    if isinstance(one, Refusal) or isinstance(other, Refusal):
        return ()
    kept = [m.tree.class_cases is not None for m in (one, other)]
    return ("class_cases",) if any(kept) and not all(kept) else ()


def check_zero_weights(case: Case) -> bool:
    """Rows of weight 0 are rows that are not there."""
    rng = case.random("zero weights")
    if case.n_rows < 2:
        return False
    weights = case.weights or [1.0] * case.n_rows
    weights = [0.0 if rng.random() < 0.3 else w for w in weights]
    kept = [i for i, w in enumerate(weights) if w > 0]
    if (
        len(kept) in (0, case.n_rows)
        or case.parameters.get("class_weight") == "balanced"
    ):
        return False
    given = replace(case, weights=weights)
    removed = given.take(kept)
    if not _same_contents(case, removed):
        return False
    same_tree(fitted(removed), fitted(given), "rows of weight 0 against no such rows")
    return True


def _same_contents(case: Case, removed: Case) -> bool:
    """Whether both tables have the same values, classes and gaps, column by column."""

    def values(cells: list[Any]) -> set[str]:
        return {"missing" if is_missing(c) else repr(c) for c in cells}

    return set(map(repr, case.y)) == set(map(repr, removed.y)) and all(
        values(cells) == values(removed.columns[name])
        for name, cells in case.columns.items()
    )


def check_repeated_rows(case: Case) -> bool:
    """A row of weight 3 is that row three times."""
    if deals_rows(case) or case.n_rows > 100:
        return False
    if any(name in case.parameters for name in COUNTS_CASES):
        return False
    if "class_weight" in case.parameters or "priors" in case.parameters:
        return False  # whose products are rounded row by row
    missing = case.parameters.get("missing")
    if missing == "surrogate":
        return False  # a surrogate split needs two cases either way
    if missing == "split" and case.estimator != "C45Classifier":
        return False  # a branch needs one case, of which a fraction has any weight
    if case.estimator.startswith("CART"):  # whose correction for values counts cases
        case = replace(case, parameters={**case.parameters, "many_values": "plain"})
    rng = case.random("repeated rows")
    times = [rng.randint(1, 3) for _ in case.y]
    repeated = [i for i, n in enumerate(times) for _ in range(n)]
    weighted = replace(case, weights=[float(n) for n in times])
    plain = replace(case, weights=None).take(repeated)
    what = "repeated rows against whole weights"
    one, other = fitted(plain), fitted(weighted)
    same_tree(one, other, what, "cases", "class_cases", "weights")
    if isinstance(one, Refusal) or isinstance(other, Refusal):
        return True
    # Fractions of cases are rounded row by row, so that their sums may differ a little.
    close = np.allclose(one.tree.weights, other.tree.weights, rtol=1e-9, atol=1e-9)
    fail_unless(close, f"{what}: array weights")
    return True


# ------------------------------------------------------------------ numbers to predict


def check_target_scale(case: Case) -> bool:
    """Numbers times a power of two: the same splits, the means times as much."""
    if not case.is_regression or deals_rows(case) or "min_gain" in case.parameters:
        return False
    if case.parameters.get("ccp_alpha", 0) or "tolerance" in case.parameters:
        return False
    largest = max(abs(v) for v in case.y)
    least = min((abs(v) for v in case.y if v), default=1.0)
    if largest > 1e100 or least < 1e-100:
        return False
    power = case.random("target scale").choice([-7, -1, 2, 10])
    expected = fitted(case)
    scaled = replace(case, y=[math.ldexp(v, power) for v in case.y])
    got = fitted(scaled)
    what = f"numbers times 2^{power}"
    same_tree(expected, got, what, "mean", "deviation")
    if isinstance(expected, Refusal) or isinstance(got, Refusal):
        return True
    for name in ("mean", "deviation"):
        wanted = np.ldexp(getattr(expected.tree, name), power)
        same_bits(wanted, getattr(got.tree, name), f"{what}: {name}")
    return True


def _is_categorical_with_missing(cells: list[Any]) -> bool:
    known = [cell for cell in cells if not is_missing(cell)]
    is_numeric = all(type(cell) in (int, float) for cell in known)
    return len(known) < len(cells) and not is_numeric


def check_target_shift(case: Case) -> bool:
    """Whole numbers plus a whole number: the same splits."""
    if not case.is_regression or deals_rows(case):
        return False
    if case.parameters.get("criterion") == "poisson":
        return False
    if not all(isinstance(v, int) for v in case.y):
        return False
    if any(_is_categorical_with_missing(cells) for cells in case.columns.values()):
        # Where the rows with a known value have one target, no split of them gains:
        # the order of values whose means are equal but for rounding decides.
        return False
    expected = fitted(case)
    got = fitted(replace(case, y=[v + 1024 for v in case.y]))
    same_tree(expected, got, "numbers plus 1024", "mean", "deviation")
    if not isinstance(expected, Refusal) and not isinstance(got, Refusal):
        apart = np.abs(got.tree.mean - expected.tree.mean - 1024)
        fail_unless(
            (apart < 1e-9).all(), f"means moved by {apart.max()} else than 1024"
        )
    return True


LAWS = {
    "row_order": check_row_order,
    "threads": check_threads,
    "kernels": check_kernels,
    "renaming": check_renaming,
    "useless_columns": check_useless_columns,
    "column_scale": check_column_scale,
    "depth": check_depth,
    "prune_later": check_prune_later,
    "weight_scale": check_weight_scale,
    "zero_weights": check_zero_weights,
    "repeated_rows": check_repeated_rows,
    "target_scale": check_target_scale,
    "target_shift": check_target_shift,
}
