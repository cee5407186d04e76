"""The values that parameters may have: names, ranges, and their words in errors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from branchwise.data.arrays import Floats

#: The names of algorithms, as views and exports print them.
ALGORITHMS = ("ID3", "C4.5", "CART")
Branching = Literal["values", "groups", "two-way"]
BRANCHINGS: tuple[Branching, ...] = ("values", "groups", "two-way")
Pruning = Literal["error-based", "reduced-error", "cost-complexity"]
PRUNINGS: tuple[Pruning, ...] = ("error-based", "reduced-error", "cost-complexity")

Policy = Literal["branch", "split", "largest", "node", "error", "learned", "surrogate"]
#: Policies of values that training did not have.
UNSEEN_POLICIES: tuple[Policy, ...] = ("branch", "split", "largest", "node", "error")
#: Policies that are learnt from missing values, only for two-way splits.
TWO_WAY_POLICIES: tuple[Policy, ...] = ("learned", "surrogate")
#: Policies of missing values.
POLICIES: tuple[Policy, ...] = UNSEEN_POLICIES + TWO_WAY_POLICIES
Threshold = Literal["midpoint", "value"]
#: A criterion written by a user: class weights of k nodes, shape (k, classes), and
#: of their branches, shape (k, branches, classes), give k scores. Branches are those
#: that have cases, in the order of their values, followed by rows of zeros.
CriterionFunction = Callable[[Floats, Floats], Floats]
#: Criteria of classification and regression, and the impurities they use.
BUILT_IN = ("gain", "gain_ratio", "gini")
FOR_NUMBERS = ("variance", "poisson")
#: Other names of criteria, those of scikit-learn.
ALIASES = {"entropy": "gain", "log_loss": "gain", "squared_error": "variance"}
Probabilities = Literal["frequencies", "laplace", "m-estimate"]
PROBABILITIES: tuple[Probabilities, ...] = ("frequencies", "laplace", "m-estimate")
#: Rules by which cross-validation chooses ``ccp_alpha``.
ALPHA_RULES = ("best", "1-se")
#: Squares of costs up to this are finite.
_LARGEST_COST = 1e150


def canonical(criterion: object) -> object:
    """Return the name that a criterion has in recipes and model files."""
    return (
        ALIASES.get(criterion, criterion) if isinstance(criterion, str) else criterion
    )


def named(criteria: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of criteria, followed by their other names."""
    return *criteria, *(other for other, name in ALIASES.items() if name in criteria)


#: How the value of an option is written: a whole number, a number, a number of cases
#: or a share, a number or a rule of ALPHA_RULES, one of the choices, a switch, text.
Kind = Literal["whole", "number", "cases", "alpha", "choice", "flag", "text"]


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, not a boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    try:
        return _is_real(value) and math.isfinite(value) and value >= 0
    except OverflowError:  # an integer beyond every float
        return False


def _is_between(value: Any, above: float, most: float) -> bool:
    return _is_real(value) and above < value <= most


def _is_share(value: Any) -> bool:
    return _is_real(value) and 0 < value < 1


@dataclass(frozen=True)
class Allowed:
    """The values that a parameter may have.

    ``words`` follow "must be" in an error; ``accepts`` is None where only the data can
    tell; ``kind`` is how the value is written on the command line, ``type`` how
    docstrings name its type.
    """

    words: str
    accepts: Callable[[Any], bool] | None
    kind: Kind
    type: str
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def is_number(self) -> bool:
        """Whether values are numbers, some of which may be None or a rule."""
        return self.kind in ("whole", "number", "cases", "alpha")


def whole(least: int) -> Allowed:
    """Return None or whole numbers."""
    return Allowed(
        f"None or a whole number of at least {least}",
        lambda v: v is None or (is_whole(v) and v >= least),
        "whole",
        "int or None",
        least=least,
    )


def cases(least: int, whole: bool = False) -> Allowed:
    """Return a number of cases, or a share below 1.

    ``whole`` allows 1.0, all cases, too: no branch of a split can have them.
    """

    def accepts(value: object) -> bool:
        if is_whole(value):
            return cast("int", value) >= least
        return _is_share(value) or (whole and _is_real(value) and value == 1)

    share = "a share above 0 and up to 1.0" if whole else "a share between 0 and 1"
    words = f"a whole number of at least {least} or {share}"
    return Allowed(words, accepts, "cases", "int or float")


def choice(choices: tuple[str, ...], none: bool = False) -> Allowed:
    """Return names to choose from; ``none`` allows None, too."""
    words = " or ".join(repr(name) for name in (None,) * none + choices)
    return Allowed(
        words,
        lambda v: v in choices if isinstance(v, str) else none and v is None,
        "choice",
        "{" + ", ".join(f'"{name}"' for name in choices) + "}" + " or None" * none,
        choices,
    )


def by_data(words: str, written_type: str) -> Allowed:
    """Return values that are checked where the data are known."""
    return Allowed(words, None, "text", written_type)


AMOUNT = Allowed(
    "a finite number of at least 0", _is_amount, "number", "float", least=0
)
FLAG = Allowed("True or False", lambda v: isinstance(v, bool), "flag", "bool")
CRITERION = Allowed(
    " or ".join(map(repr, named(BUILT_IN)))
    + " or a function of the class weights of nodes and of their branches",
    lambda v: (
        v in (*BUILT_IN, *FOR_NUMBERS)
        if isinstance(v, str)
        else callable(v) and not isinstance(v, type)
    ),
    "choice",
    "str or callable",
    named(BUILT_IN) + named(FOR_NUMBERS),
)


def _is_cost_matrix(costs: Any) -> bool:
    if costs is None:
        return True
    try:
        rows = [list(row) for row in costs]
    except TypeError:
        return False
    return bool(rows) and all(
        len(row) == len(rows)
        and all(
            _is_amount(cost) and cost <= _LARGEST_COST and (i != j or cost == 0)
            for j, cost in enumerate(row)
        )
        for i, row in enumerate(rows)
    )


P_VALUE = Allowed(
    "None or a probability above 0 and up to 1, such as 0.05",
    lambda v: v is None or _is_between(v, 0, 1),
    "number",
    "float or None",
)
JOBS = Allowed(
    "None or a whole number other than 0 (-1: all cores)",
    lambda v: v is None or (is_whole(v) and v != 0),
    "whole",
    "int or None",
)
WEIGHT_SHARE = Allowed(
    "a share from 0 up to 0.5",
    lambda v: _is_amount(v) and v <= 0.5,
    "number",
    "float",
)
CONFIDENCE = Allowed(
    "a number above 0 and up to 0.5",
    lambda v: _is_between(v, 0, 0.5),
    "number",
    "float",
)
FRACTION = Allowed(
    "None or a share between 0 and 1, such as 0.25",
    lambda v: v is None or _is_share(v),
    "number",
    "float or None",
)
ALPHA = Allowed(
    "a finite number of at least 0, 'best' or '1-se'",
    lambda v: v in ALPHA_RULES if isinstance(v, str) else _is_amount(v),
    "alpha",
    'float, "best" or "1-se"',
)
COSTS = Allowed(
    "None or a square of numbers from 0 to 1e150, a row for each true class, "
    "with 0 where the prediction is right",
    _is_cost_matrix,
    "text",
    "sequence of sequences or None",
)
