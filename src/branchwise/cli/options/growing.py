"""The options of ``branchwise fit`` that are parameters of the estimators.

None means not given: each algorithm has its own defaults, and an option that it does
not have is an error only if it was given.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from branchwise.cli.options.declaration import flag, option
from branchwise.cli.options.shared import (
    CATEGORICAL,
    IGNORE,
    NA_VALUES,
    NUMERIC,
    READING,
)

_BY_ALGORITHM = "by algorithm"


class Algorithm(StrEnum):
    """The algorithm that grows a tree."""

    ID3 = "id3"
    C45 = "c4.5"
    CART = "cart"


class Criterion(StrEnum):
    """The score of a split."""

    GAIN = "gain"
    ENTROPY = "entropy"
    LOG_LOSS = "log_loss"
    GAIN_RATIO = "gain_ratio"
    GINI = "gini"
    VARIANCE = "variance"
    SQUARED_ERROR = "squared_error"
    POISSON = "poisson"


class Policy(StrEnum):
    """What a missing value does at a split."""

    BRANCH = "branch"
    SPLIT = "split"
    LARGEST = "largest"
    LEARNED = "learned"
    SURROGATE = "surrogate"
    NODE = "node"
    ERROR = "error"


class Unseen(StrEnum):
    """What an unseen category does at a split."""

    BRANCH = "branch"
    SPLIT = "split"
    LARGEST = "largest"
    NODE = "node"
    ERROR = "error"


class Pruning(StrEnum):
    """The pruning method."""

    NONE = "none"
    ERROR_BASED = "error-based"
    REDUCED_ERROR = "reduced-error"
    COST_COMPLEXITY = "cost-complexity"


class Threshold(StrEnum):
    """Position of a threshold between two values."""

    VALUE = "value"
    MIDPOINT = "midpoint"


class Probabilities(StrEnum):
    """The estimate of class probabilities in a leaf."""

    FREQUENCIES = "frequencies"
    LAPLACE = "laplace"
    M_ESTIMATE = "m-estimate"


_WEIGHTS = "Weights, costs and probabilities"
_GROWING = "Growing"
_PRUNING = "Pruning"
N_JOBS = option(
    "--n-jobs",
    "N",
    "Threads to grow with, -1 is all cores; the tree is the same.",
    "1",
    panel=_GROWING,
)
VALIDATION = option(
    "--validation",
    "FILE",
    "reduced-error: a table with rows to prune with.",
    panel=_PRUNING,
)


def growing_options(
    categorical: list[str] | None = CATEGORICAL,
    numeric: list[str] | None = NUMERIC,
    ignore: list[str] | None = IGNORE,
    missing: list[str] | None = NA_VALUES,
    categories: list[str] | None = option(
        "--categories",
        "COLUMN=A,B,...",
        "All possible values of a column, in order; may be repeated.",
        panel=READING,
    ),
    criterion: Criterion | None = option(
        "--criterion",
        None,
        "The score of a split: gain, gain_ratio or gini for id3 [gain]; gini "
        "or gain for cart [gini]; variance or poisson for cart --regression "
        "[variance]. entropy and log_loss are other names of gain, squared_error of "
        "variance.",
        _BY_ALGORITHM,
        panel=_GROWING,
    ),
    max_depth: int | None = option(
        "--max-depth",
        "N",
        "Maximum number of splits from the root to a leaf.",
        "no limit",
        panel=_GROWING,
        min=0,
    ),
    max_leaf_nodes: int | None = option(
        "--max-leaf-nodes",
        "N",
        "Maximum number of leaves; splits that reduce impurity most come first.",
        "no limit",
        panel=_GROWING,
        min=1,
    ),
    min_samples_split: str | None = option(
        "--min-samples-split",
        "NUMBER",
        "The fewest cases a node needs to be split; below 1, a share.",
        "2",
        panel=_GROWING,
    ),
    min_samples_leaf: str | None = option(
        "--min-samples-leaf",
        "NUMBER",
        "The fewest cases each branch must get; below 1, a share. 1, for c4.5 0.",
        _BY_ALGORITHM,
        panel=_GROWING,
    ),
    min_samples_branch: str | None = option(
        "--min-samples-branch",
        "NUMBER",
        "c4.5, Quinlan's -m: the fewest cases that at least two branches must "
        "get; below 1, a share.",
        "2",
        panel=_GROWING,
    ),
    min_gain: float | None = option(
        "--min-gain",
        "NUMBER",
        "The least gain (bits, with gain) that a split must bring.",
        "0",
        panel=_GROWING,
        min=0,
    ),
    max_p_value: float | None = option(
        "--max-p-value",
        "NUMBER",
        "Largest p-value of a split, such as 0.05: of a chi-square or F test, "
        "Bonferroni-adjusted for the number of possible splits and of columns.",
        "no test",
        panel=_GROWING,
    ),
    group_values: bool = flag(
        "--group-values",
        "c4.5, Quinlan's -s: a branch may have several values.",
        _GROWING,
    ),
    threshold: Threshold | None = option(
        "--threshold",
        None,
        "c4.5: whether thresholds are values of the table or midpoints between "
        "two values.",
        "value",
        panel=_GROWING,
    ),
    missing_policy: Policy | None = option(
        "--missing-policy",
        None,
        "What a missing value does: takes its own branch (id3), goes down every "
        "branch with a fraction of its weight (c4.5), takes the largest branch (cart), "
        "the branch that scored better in training, or that of a surrogate split, "
        "stops at the node, or is an error.",
        _BY_ALGORITHM,
        panel=_GROWING,
    ),
    unseen_policy: Unseen | None = option(
        "--unseen-policy",
        None,
        "What an unseen category does; branch treats it as missing. id3: node, "
        "c4.5: split, cart: largest.",
        _BY_ALGORITHM,
        panel=_GROWING,
    ),
    max_bins: int | None = option(
        "--max-bins",
        "N",
        "Maximum number of bins of a numeric column; thresholds are between bins "
        "only. Faster on long tables, no longer exact.",
        "every threshold",
        panel=_GROWING,
        min=2,
    ),
    n_jobs: int | None = N_JOBS,
    pruning: Pruning | None = option(
        "--pruning",
        None,
        "The method of pruning after the tree is grown.",
        "none; c4.5: error-based",
        panel=_PRUNING,
    ),
    no_prune: bool = flag(
        "--no-prune", "c4.5, J48's -U: leave the tree unpruned.", _PRUNING
    ),
    confidence: float | None = option(
        "--confidence",
        "SHARE",
        "error-based, Quinlan's -c as a share: the lower, the more is pruned; up "
        "to 0.5.",
        "0.25",
        panel=_PRUNING,
    ),
    no_raise_subtrees: bool = flag(
        "--no-raise-subtrees", "error-based, J48's -S: no subtree raising.", _PRUNING
    ),
    tolerance: float | None = option(
        "--tolerance",
        "SHARE",
        "reduced-error: the loss of accuracy allowed for each pruned subtree.",
        "0",
        panel=_PRUNING,
    ),
    validation: str | None = VALIDATION,
    validation_fraction: float | None = option(
        "--validation-fraction",
        "SHARE",
        "reduced-error: the share of the rows to hold out for pruning instead.",
        panel=_PRUNING,
    ),
    ccp_alpha: str | None = option(
        "--ccp-alpha",
        "NUMBER|best|1-se",
        "cost-complexity: the complexity parameter, in units of impurity; or "
        "chosen by cross-validation: the best, or the largest within one standard "
        "error of the best. cart needs no --pruning beside it.",
        "0",
        panel=_PRUNING,
    ),
    weight: str | None = option(
        "--weight", "COLUMN", "The column with the weight of each row.", panel=_WEIGHTS
    ),
    class_weight: str | None = option(
        "--class-weight",
        "balanced|CLASS=NUMBER,...",
        "Weights of the classes; those not named have 1.",
        panel=_WEIGHTS,
    ),
    priors: str | None = option(
        "--priors",
        "CLASS=SHARE,...",
        "Prior probabilities of the classes.",
        "as in the table",
        panel=_WEIGHTS,
    ),
    costs: str | None = option(
        "--costs",
        "FILE|TRUE:PREDICTED=COST,...",
        "Costs of misclassification: a table with a row for each true class and "
        "a column for each predicted class, or the pairs that do not cost 1.",
        "1 each",
        panel=_WEIGHTS,
    ),
    probabilities: Probabilities | None = option(
        "--probabilities",
        None,
        "Class probabilities of a leaf: frequencies, Laplace (one more case for "
        "every class), or m-estimate (--m more cases, distributed as in the root).",
        "frequencies",
        panel=_WEIGHTS,
    ),
    m: float | None = option(
        "--m",
        "NUMBER",
        "Number of those cases, for --probabilities m-estimate.",
        "2",
        panel=_WEIGHTS,
    ),
) -> dict[str, Any]:
    """Return the options of columns, growing, pruning and weights, by name."""
    return dict(locals())
