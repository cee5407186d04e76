"""The declaration of every parameter: values, algorithms, help text.

:data:`PARAMETERS` has one :class:`Parameter` for each parameter of the estimators, of
:class:`~branchwise.recipe.Recipe` and of the growing options of the command line, in
the order of ``branchwise fit --help``. Checks, docstrings, options, defaults in
``--help`` and fields of model files are all derived from it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from branchwise.errors import ParameterError
from branchwise.recipe.allowed import (
    ALGORITHMS,
    ALPHA,
    AMOUNT,
    BRANCHINGS,
    CONFIDENCE,
    COSTS,
    CRITERION,
    FLAG,
    FRACTION,
    JOBS,
    P_VALUE,
    POLICIES,
    PROBABILITIES,
    PRUNINGS,
    UNSEEN_POLICIES,
    WEIGHT_SHARE,
    Allowed,
    by_data,
    cases,
    choice,
    whole,
)

#: Algorithms by the names of the command line; regression has other parameters.
_ID3, _C45, _CART, _REGRESSION = "id3", "c4.5", "cart", "cart --regression"
_EVERY = (_ID3, _C45, _CART, _REGRESSION)
_CLASSIFIERS = (_ID3, _C45, _CART)


@dataclass(frozen=True)
class Parameter:
    """The declaration of a parameter.

    ``help`` is for docstrings, ``--help`` and the documentation; ``group`` the heading
    of its option, empty where it is no option of growing; ``algorithms`` those that
    have it, by the names of the command line, none where only recipes do. ``only_with``
    is the parameter and the value of it without which this one has no effect;
    ``metavar`` stands for the value in ``--help``; ``without`` is what None means, or
    the default where it is no field of a recipe. ``renamed`` is the name of its option,
    where that is another; ``off`` the help of its option, ``--no-...``, where that
    switches it off. ``file_key`` is its name in model files, which never changes.
    """

    name: str
    allowed: Allowed
    help: str
    group: str = ""
    algorithms: tuple[str, ...] = _EVERY
    only_with: tuple[str, str] | None = None
    metavar: str | None = None
    without: str = "none"
    renamed: str = ""
    off: str = ""
    file_key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "file_key", self.file_key or self.name)

    @property
    def option(self) -> str:
        """The option of the command line that sets it."""
        name = (self.renamed or self.name).replace("_", "-")
        return f"--no-{name}" if self.off else f"--{name}"

    @property
    def type(self) -> str:
        """The type, as docstrings name it."""
        return self.allowed.type

    def check(self, value: object, allowed: Allowed | None = None) -> None:
        """Raise unless a value is allowed."""
        allowed = allowed or self.allowed
        if allowed.accepts is not None and not allowed.accepts(value):
            raise ParameterError(
                f"{self.name} must be {allowed.words}. Got {value!r} instead."
            )


def parameters_section(defaults: Mapping[str, object]) -> str:
    """Return the section of a docstring that explains parameters."""
    lines = ["Parameters", "----------"]
    for name, declared in PARAMETERS.items():
        if name in defaults:
            lines.append(f"{name} : {declared.type}, default={defaults[name]!r}")
            lines.append(textwrap.indent(textwrap.fill(declared.help, 80), " " * 4))
    return "\n".join(lines)


def _table(*parameters: Parameter) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in parameters}


_growing = partial(Parameter, group="Growing")
_pruning = partial(Parameter, group="Pruning")
_weights = partial(Parameter, group="Weights, costs and probabilities")
_ERROR_BASED = ("pruning", "error-based")
_REDUCED_ERROR = ("pruning", "reduced-error")
_COST_COMPLEXITY = ("pruning", "cost-complexity")

#: Every parameter by its name, in the order of the options of ``branchwise fit``.
PARAMETERS = _table(
    _growing(
        "criterion",
        CRITERION,
        "The score of a split: gain, gain_ratio or gini for ID3; gini or gain for "
        "CART; variance or poisson for regression. entropy and log_loss are other "
        "names of gain, squared_error of variance.",
        algorithms=(_ID3, _CART, _REGRESSION),
    ),
    _growing(
        "max_depth",
        whole(0),
        "Maximum number of splits from the root to a leaf.",
        metavar="N",
        without="no limit",
    ),
    _growing(
        "max_leaf_nodes",
        whole(1),
        "Maximum number of leaves; splits that reduce impurity most come first.",
        metavar="N",
        without="no limit",
    ),
    _growing(
        "min_samples_split",
        cases(2, whole=True),
        "The fewest cases a node needs to be split; below 1, a share.",
        metavar="NUMBER",
    ),
    _growing(
        "min_samples_leaf",
        cases(1),
        "The fewest cases each branch must get; below 1, a share.",
        metavar="NUMBER",
    ),
    _growing(
        "min_weight_fraction_leaf",
        WEIGHT_SHARE,
        "The least share of the total weight of all cases that each branch must get; "
        "without weights, of their number.",
        metavar="SHARE",
    ),
    _growing(
        "min_samples_branch",
        cases(0),
        "Quinlan's -m: the fewest cases that at least two branches must get; below 1, "
        "a share.",
        algorithms=(_C45,),
        metavar="NUMBER",
    ),
    _growing(
        "min_gain",
        AMOUNT,
        "The least gain (bits, with gain) that a split must bring.",
        metavar="NUMBER",
    ),
    _growing(
        "max_p_value",
        P_VALUE,
        "Largest p-value of a split, such as 0.05: of a chi-square or F test, "
        "Bonferroni-adjusted for the number of possible splits and of columns.",
        metavar="NUMBER",
        without="no test",
        file_key="min_significance",
    ),
    _growing(
        "group_values",
        FLAG,
        "Quinlan's -s: a branch may have several values.",
        algorithms=(_C45,),
        without="no",
    ),
    _growing(
        "threshold",
        choice(("midpoint", "value")),
        "Whether thresholds are values of the table or midpoints between two values.",
        algorithms=(_C45,),
        file_key="cut",
    ),
    _growing(
        "missing",
        choice(POLICIES),
        "What a missing value does: takes its own branch, goes down every branch with "
        "a fraction of its weight (split), takes the largest branch, stops at the node "
        "or is an error; with two-way splits, takes the branch that scored better in "
        "training (learned) or that of a surrogate split.",
        renamed="missing_policy",
    ),
    _growing(
        "unseen",
        choice(UNSEEN_POLICIES),
        "What an unseen category does; branch treats it as missing.",
        renamed="unseen_policy",
    ),
    Parameter(
        "categorical_features",
        by_data(
            "'from_dtype', 'all', a mask, a list of indices or a list of names",
            '"from_dtype", "all", mask, indices or names',
        ),
        "Number columns whose values are names; text, categories and booleans always "
        "are.",
        without="from_dtype",
        renamed="categorical",
    ),
    Parameter(
        "categories",
        by_data(
            "None or a dict of column name (or index) to the list of its possible "
            "values",
            "dict or None",
        ),
        "All possible values of columns, by name or index, in order; another value is "
        "an error.",
    ),
    _growing(
        "max_bins",
        whole(2),
        "Maximum number of bins of a numeric column; thresholds are between bins only. "
        "Faster on long tables, no longer exact.",
        metavar="N",
        without="every threshold",
    ),
    _growing(
        "n_jobs",
        JOBS,
        "Threads to grow with, -1 is all cores; the tree is the same.",
        metavar="N",
        without="1",
    ),
    _pruning(
        "pruning",
        choice(PRUNINGS, none=True),
        "The method of pruning after the tree is grown.",
    ),
    _pruning(
        "prune",
        FLAG,
        "Whether the tree is pruned.",
        algorithms=(_C45,),
        without="yes",
        off="J48's -U: leave the tree unpruned.",
    ),
    _pruning(
        "confidence",
        CONFIDENCE,
        "error-based, Quinlan's -c as a share: the lower, the more is pruned; up to "
        "0.5.",
        algorithms=_CLASSIFIERS,
        only_with=_ERROR_BASED,
        metavar="SHARE",
    ),
    _pruning(
        "raise_subtrees",
        FLAG,
        "error-based: whether a branch may replace its parent, subtree raising.",
        algorithms=_CLASSIFIERS,
        only_with=_ERROR_BASED,
        off="error-based, J48's -S: no subtree raising.",
    ),
    _pruning(
        "tolerance",
        AMOUNT,
        "reduced-error: the loss of accuracy allowed for each pruned subtree.",
        only_with=_REDUCED_ERROR,
        metavar="SHARE",
    ),
    _pruning(
        "validation",
        by_data(
            "a pair: a table with the columns of X, and its target", "pair or None"
        ),
        "reduced-error: a table with rows to prune with.",
        only_with=_REDUCED_ERROR,
        metavar="FILE",
        without="",
    ),
    _pruning(
        "validation_fraction",
        FRACTION,
        "reduced-error: the share of the rows to hold out for pruning, where no others "
        "are given.",
        only_with=_REDUCED_ERROR,
        metavar="SHARE",
        without="",
    ),
    _pruning(
        "ccp_alpha",
        ALPHA,
        "cost-complexity: the complexity parameter, in units of impurity; or chosen by "
        "cross-validation: the best, or the largest within one standard error of the "
        "best. CART needs no other choice of pruning beside it.",
        only_with=_COST_COMPLEXITY,
        metavar="NUMBER|best|1-se",
    ),
    _weights(
        "weight",
        by_data("the name of a column", "str or None"),
        "The column with the weight of each row.",
        metavar="COLUMN",
        without="",
    ),
    _weights(
        "class_weight",
        by_data(
            "None, 'balanced' or a dict of class to weight", 'dict, "balanced" or None'
        ),
        "Weights of the classes, by which those of rows are multiplied; classes not "
        "named have 1.",
        algorithms=_CLASSIFIERS,
        metavar="balanced|CLASS=NUMBER,...",
        without="",
    ),
    _weights(
        "priors",
        by_data("None or a dict that gives every class its share", "dict or None"),
        "Prior probabilities of the classes, where they differ from the training rows.",
        algorithms=_CLASSIFIERS,
        metavar="CLASS=SHARE,...",
        without="as in the table",
    ),
    _weights(
        "costs",
        COSTS,
        "Costs of misclassification: a table with a row for each true class and a "
        "column for each predicted class, or the pairs that do not cost 1. The class "
        "of the least expected cost is predicted.",
        algorithms=_CLASSIFIERS,
        metavar="FILE|TRUE:PREDICTED=COST,...",
        without="1 each",
    ),
    _weights(
        "probabilities",
        choice(PROBABILITIES),
        "Class probabilities of a leaf: frequencies, Laplace (one more case for every "
        "class), or m-estimate (m more cases, distributed as in the root).",
        algorithms=_CLASSIFIERS,
    ),
    _weights(
        "m",
        AMOUNT,
        "Number of cases that an m-estimate of probabilities adds.",
        algorithms=_CLASSIFIERS,
        only_with=("probabilities", "m-estimate"),
        metavar="NUMBER",
    ),
    Parameter(
        "algorithm",
        choice(ALGORITHMS),
        "The name of the algorithm in views, exports and model files.",
        algorithms=(),
    ),
    Parameter(
        "branching",
        choice(BRANCHINGS),
        "Whether a category column has one branch per value, one per group of values, "
        "or two branches.",
        algorithms=(),
    ),
    Parameter(
        "quinlan_thresholds",
        FLAG,
        "Whether thresholds are chosen as in C4.5: by gain, with enough cases on each "
        "side, and the gain reduced for the number of thresholds.",
        algorithms=(),
        file_key="quinlan_cuts",
    ),
    Parameter(
        "average_gain",
        FLAG,
        "Whether a split must gain about as much as splits of the node do on average.",
        algorithms=(),
    ),
    Parameter(
        "collapse",
        FLAG,
        "Whether subtrees that err no less than a leaf become leaves.",
        algorithms=(),
    ),
)
