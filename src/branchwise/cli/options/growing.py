"""The options of ``branchwise fit`` that are parameters of the estimators.

None means not given: each algorithm has its own defaults, and an option that it does
not have is an error only if it was given.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

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


def _option(panel: str, *names: str, default: str | bool = False, **more: Any) -> Any:
    return typer.Option(*names, show_default=default, rich_help_panel=panel, **more)


_WEIGHTS = "Weights, costs and probabilities"
Weight = Annotated[
    str | None,
    _option(
        _WEIGHTS,
        "--weight",
        metavar="COLUMN",
        help="The column with the weight of each row.",
    ),
]
ClassWeight = Annotated[
    str | None,
    _option(
        _WEIGHTS,
        "--class-weight",
        metavar="balanced|CLASS=NUMBER,...",
        help="Weights of the classes; those not named have 1.",
    ),
]
Priors = Annotated[
    str | None,
    _option(
        _WEIGHTS,
        "--priors",
        metavar="CLASS=SHARE,...",
        help="Prior probabilities of the classes.",
        default="as in the table",
    ),
]
Costs = Annotated[
    str | None,
    _option(
        _WEIGHTS,
        "--costs",
        metavar="FILE|TRUE:PREDICTED=COST,...",
        help="Costs of misclassification: a table with a row for each true class and "
        "a column for each predicted class, or the pairs that do not cost 1.",
        default="1 each",
    ),
]
ProbabilitiesFrom = Annotated[
    Probabilities | None,
    _option(
        _WEIGHTS,
        "--probabilities",
        help="Class probabilities of a leaf: frequencies, Laplace (one more case for "
        "every class), or m-estimate (--m more cases, distributed as in the root).",
        default="frequencies",
    ),
]
M = Annotated[
    float | None,
    _option(
        _WEIGHTS,
        "--m",
        metavar="NUMBER",
        help="Number of those cases, for --probabilities m-estimate.",
        default="2",
    ),
]

_GROWING = "Growing"
CriterionOf = Annotated[
    Criterion | None,
    _option(
        _GROWING,
        "--criterion",
        help="The score of a split: gain, gain_ratio or gini for id3 [gain]; gini "
        "or gain for cart [gini]; variance or poisson for cart --regression "
        "[variance]. entropy and log_loss are other names of gain, squared_error of "
        "variance.",
        default=_BY_ALGORITHM,
    ),
]
MaxDepth = Annotated[
    int | None,
    _option(
        _GROWING,
        "--max-depth",
        min=0,
        metavar="N",
        help="Maximum number of splits from the root to a leaf.",
        default="no limit",
    ),
]
MaxLeafNodes = Annotated[
    int | None,
    _option(
        _GROWING,
        "--max-leaf-nodes",
        min=1,
        metavar="N",
        help="Maximum number of leaves; splits that reduce impurity most come first.",
        default="no limit",
    ),
]
MinSamplesSplit = Annotated[
    str | None,
    _option(
        _GROWING,
        "--min-samples-split",
        metavar="NUMBER",
        help="The fewest cases a node needs to be split; below 1, a share.",
        default="2",
    ),
]
MinSamplesLeaf = Annotated[
    str | None,
    _option(
        _GROWING,
        "--min-samples-leaf",
        metavar="NUMBER",
        help="The fewest cases each branch must get; below 1, a share. 1, for c4.5 0.",
        default=_BY_ALGORITHM,
    ),
]
MinSamplesBranch = Annotated[
    str | None,
    _option(
        _GROWING,
        "--min-samples-branch",
        metavar="NUMBER",
        help="c4.5, Quinlan's -m: the fewest cases that at least two branches must "
        "get; below 1, a share.",
        default="2",
    ),
]
MinGain = Annotated[
    float | None,
    _option(
        _GROWING,
        "--min-gain",
        min=0,
        metavar="NUMBER",
        help="The least gain (bits, with gain) that a split must bring.",
        default="0",
    ),
]
MaxPValue = Annotated[
    float | None,
    _option(
        _GROWING,
        "--max-p-value",
        metavar="NUMBER",
        help="Largest p-value of a split, such as 0.05: of a chi-square or F test, "
        "Bonferroni-adjusted for the number of possible splits and of columns.",
        default="no test",
    ),
]
GroupValues = Annotated[
    bool,
    _option(
        _GROWING,
        "--group-values",
        help="c4.5, Quinlan's -s: a branch may have several values.",
    ),
]
ThresholdAt = Annotated[
    Threshold | None,
    _option(
        _GROWING,
        "--threshold",
        help="c4.5: whether thresholds are values of the table or midpoints between "
        "two values.",
        default="value",
    ),
]
MissingPolicy = Annotated[
    Policy | None,
    _option(
        _GROWING,
        "--missing-policy",
        help="What a missing value does: takes its own branch (id3), goes down every "
        "branch with a fraction of its weight (c4.5), takes the largest branch (cart), "
        "the branch that scored better in training, or that of a surrogate split, "
        "stops at the node, or is an error.",
        default=_BY_ALGORITHM,
    ),
]
UnseenPolicy = Annotated[
    Unseen | None,
    _option(
        _GROWING,
        "--unseen-policy",
        help="What an unseen category does; branch treats it as missing. id3: node, "
        "c4.5: split, cart: largest.",
        default=_BY_ALGORITHM,
    ),
]
MaxBins = Annotated[
    int | None,
    _option(
        _GROWING,
        "--max-bins",
        min=2,
        metavar="N",
        help="Maximum number of bins of a numeric column; thresholds are between bins "
        "only. Faster on long tables, no longer exact.",
        default="every threshold",
    ),
]
Jobs = Annotated[
    int | None,
    _option(
        _GROWING,
        "--n-jobs",
        metavar="N",
        help="Threads to grow with, -1 is all cores; the tree is the same.",
        default="1",
    ),
]

_PRUNING = "Pruning"
PruningBy = Annotated[
    Pruning | None,
    _option(
        _PRUNING,
        "--pruning",
        help="The method of pruning after the tree is grown.",
        default="none; c4.5: error-based",
    ),
]
NoPrune = Annotated[
    bool,
    _option(_PRUNING, "--no-prune", help="c4.5, J48's -U: leave the tree unpruned."),
]
Confidence = Annotated[
    float | None,
    _option(
        _PRUNING,
        "--confidence",
        metavar="SHARE",
        help="error-based, Quinlan's -c as a share: the lower, the more is pruned; up "
        "to 0.5.",
        default="0.25",
    ),
]
NoRaiseSubtrees = Annotated[
    bool,
    _option(
        _PRUNING,
        "--no-raise-subtrees",
        help="error-based, J48's -S: no subtree raising.",
    ),
]
Tolerance = Annotated[
    float | None,
    _option(
        _PRUNING,
        "--tolerance",
        metavar="SHARE",
        help="reduced-error: the loss of accuracy allowed for each pruned subtree.",
        default="0",
    ),
]
Validation = Annotated[
    str | None,
    _option(
        _PRUNING,
        "--validation",
        metavar="FILE",
        help="reduced-error: a table with rows to prune with.",
    ),
]
ValidationFraction = Annotated[
    float | None,
    _option(
        _PRUNING,
        "--validation-fraction",
        metavar="SHARE",
        help="reduced-error: the share of the rows to hold out for pruning instead.",
    ),
]
Alpha = Annotated[
    str | None,
    _option(
        _PRUNING,
        "--ccp-alpha",
        metavar="NUMBER|best|1-se",
        help="cost-complexity: the complexity parameter, in units of impurity; or "
        "chosen by cross-validation: the best, or the largest within one standard "
        "error of the best. cart needs no --pruning beside it.",
        default="0",
    ),
]
