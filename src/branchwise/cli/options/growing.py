"""The options of ``branchwise fit`` that are parameters of the estimators.

None means not given: the algorithm has defaults of its own, and an option that it
does not know is refused only where somebody gave it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

_BY_ALGORITHM = "by algorithm"


class Algorithm(StrEnum):
    """How a tree is grown."""

    ID3 = "id3"
    C45 = "c4.5"
    CART = "cart"


class Criterion(StrEnum):
    """What makes a split good."""

    GAIN = "gain"
    ENTROPY = "entropy"
    LOG_LOSS = "log_loss"
    GAIN_RATIO = "gain_ratio"
    GINI = "gini"
    VARIANCE = "variance"
    SQUARED_ERROR = "squared_error"
    POISSON = "poisson"


class Policy(StrEnum):
    """What a missing value does."""

    BRANCH = "branch"
    SPLIT = "split"
    LARGEST = "largest"
    LEARNED = "learned"
    SURROGATE = "surrogate"
    NODE = "node"
    ERROR = "error"


class Unseen(StrEnum):
    """What an unseen value does."""

    BRANCH = "branch"
    SPLIT = "split"
    LARGEST = "largest"
    NODE = "node"
    ERROR = "error"


class Pruning(StrEnum):
    """How a tree is made smaller."""

    NONE = "none"
    ERROR_BASED = "error-based"
    REDUCED_ERROR = "reduced-error"
    COST_COMPLEXITY = "cost-complexity"


class Cut(StrEnum):
    """Where a number is cut."""

    VALUE = "value"
    MIDPOINT = "midpoint"


class Probabilities(StrEnum):
    """How weights become probabilities."""

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
        help="What share of the cases each class has in truth.",
        default="as in the table",
    ),
]
Costs = Annotated[
    str | None,
    _option(
        _WEIGHTS,
        "--costs",
        metavar="FILE|TRUE:ANSWER=COST,...",
        help="What wrong answers cost: a table with a row for each true class and a "
        "column for each answer, or the pairs that do not cost 1.",
        default="1 each",
    ),
]
ProbabilitiesFrom = Annotated[
    Probabilities | None,
    _option(
        _WEIGHTS,
        "--probabilities",
        help="Cases of a leaf as they are, with one more for every class, or with --m "
        "more that are shared out as in the root.",
        default="frequencies",
    ),
]
M = Annotated[
    float | None,
    _option(
        _WEIGHTS,
        "--m",
        metavar="NUMBER",
        help="Those cases, for --probabilities m-estimate.",
        default="2",
    ),
]

_GROWING = "Growing"
CriterionOf = Annotated[
    Criterion | None,
    _option(
        _GROWING,
        "--criterion",
        help="What makes a split good: gain, gain_ratio or gini for id3 [gain]; gini "
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
        help="The most questions from the root to a leaf.",
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
        help="The most leaves; splits that take away most impurity come first.",
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
MinSignificance = Annotated[
    float | None,
    _option(
        _GROWING,
        "--min-significance",
        metavar="CHANCE",
        help="The largest chance that a split is nothing but luck, such as 0.05, by a "
        "chi-square test that accounts for the numbers of values and of columns.",
        default="no test",
    ),
]
GroupValues = Annotated[
    bool,
    _option(
        _GROWING,
        "--group-values",
        help="c4.5, Quinlan's -s: values may share a branch.",
    ),
]
CutAt = Annotated[
    Cut | None,
    _option(
        _GROWING,
        "--cut",
        help="c4.5: whether numbers are cut at a value of the table or halfway "
        "between two.",
        default="value",
    ),
]
MissingPolicy = Annotated[
    Policy | None,
    _option(
        _GROWING,
        "--missing-policy",
        help="What a missing value does: has its own branch (id3), goes down every "
        "branch by weight (c4.5), follows the largest (cart), the side that training "
        "found better or what other columns suggest, stops at the node, is an error.",
        default=_BY_ALGORITHM,
    ),
]
UnseenPolicy = Annotated[
    Unseen | None,
    _option(
        _GROWING,
        "--unseen-policy",
        help="What a value does that training did not have; branch takes it for a "
        "missing one. id3: node, c4.5: split, cart: largest.",
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
        help="Cut number columns only between so many ranges: faster on long tables, "
        "no longer exact.",
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
        help="How the tree is made smaller after it is grown.",
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
        help="error-based, J48's -S: no branch takes the place of its parent.",
    ),
]
Tolerance = Annotated[
    float | None,
    _option(
        _PRUNING,
        "--tolerance",
        metavar="SHARE",
        help="reduced-error: by how much accuracy may suffer with each subtree that "
        "goes.",
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
        help="reduced-error: the share of the rows to set aside for that instead.",
    ),
]
Alpha = Annotated[
    str | None,
    _option(
        _PRUNING,
        "--ccp-alpha",
        metavar="NUMBER|best|1-se",
        help="cost-complexity: what a leaf costs, in units of impurity; or found by "
        "cross-validation, the best or the largest within one standard error of it. "
        "cart needs no --pruning beside it.",
        default="0",
    ),
]
