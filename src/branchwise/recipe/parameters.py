"""The declaration of every parameter: values, algorithms, help text.

``parameters.toml`` declares one :class:`Parameter` for each parameter of the
estimators, of :class:`~branchwise.recipe.Recipe` and of the growing options of the
command line. Checks, docstrings, options, defaults in ``--help`` and fields of model
files are all derived from it.
"""

from __future__ import annotations

import math
import numbers
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from branchwise.data.arrays import Floats
from branchwise.errors import ParameterError

#: The names of algorithms, as views and exports print them.
ALGORITHMS = ("ID3", "C4.5", "CART")
Branching = Literal["values", "groups", "two-way"]
ManyValues = Literal["corrected", "plain"]
MANY_VALUES: tuple[ManyValues, ...] = ("corrected", "plain")
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
Threshold = Literal["readable", "midpoint", "value"]
THRESHOLDS: tuple[Threshold, ...] = ("readable", "midpoint", "value")
#: A criterion written by a user: class weights of k nodes, shape (k, classes), and
#: of their branches, shape (k, branches, classes), give k scores. Branches are those
#: that have cases, in the order of their values, followed by rows of zeros.
CriterionFunction = Callable[[Floats, Floats], Floats]
#: Criteria of classification and regression, and the impurities they use.
BUILT_IN = ("gain", "gain_ratio", "gini")
FOR_NUMBERS = ("variance", "poisson")
#: Other names of criteria, those of scikit-learn.
ALIASES = {"entropy": "gain", "log_loss": "gain", "squared_error": "variance"}
Probabilities = Literal["frequencies", "laplace", "m-estimate", "shrunk"]
PROBABILITIES: tuple[Probabilities, ...] = (
    "frequencies",
    "laplace",
    "m-estimate",
    "shrunk",
)
CostsIn = Literal["prediction", "growth"]
COSTS_IN: tuple[CostsIn, ...] = ("prediction", "growth")
Risk = Literal["auto", "impurity", "errors"]
RISKS: tuple[Risk, ...] = ("auto", "impurity", "errors")
#: Rules by which cross-validation chooses ``ccp_alpha``.
ALPHA_RULES = ("best", "1-se")
#: Rules by which forests choose how many columns are drawn.
COLUMN_RULES = ("auto", "sqrt", "log2", "oob")
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
#: or a share, a number or a rule of ALPHA_RULES, a number of columns or a rule of
#: COLUMN_RULES, one of the choices, a switch, text.
Kind = Literal[
    "whole", "number", "cases", "alpha", "features", "choice", "flag", "text"
]


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, not a boolean."""
    if type(value) is int:  # as most are; that of an abstract class takes a while
        return True
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


def whole(least: int, none: bool = True) -> Allowed:
    """Return whole numbers; ``none`` allows None, too."""
    return Allowed(
        "None or " * none + f"a whole number of at least {least}",
        lambda v: (v is None and none) or (is_whole(v) and v >= least),
        "whole",
        "int" + " or None" * none,
        least=least,
    )


def cases(least: int, every: bool = False) -> Allowed:
    """Return a number of cases, or a share below 1.

    ``every`` allows 1.0, all cases, too: no branch of a split can have them.
    """

    def accepts(value: object) -> bool:
        if is_whole(value):
            return cast("int", value) >= least
        return _is_share(value) or (every and _is_real(value) and value == 1)

    share = "a share above 0 and up to 1.0" if every else "a share between 0 and 1"
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
    "sequence of sequences, dict or None",
)


def _is_number_or_share(value: object) -> bool:
    """Whether a value is a number of things or a share of them."""
    if is_whole(value):
        return cast("int", value) >= 1
    return _is_between(value, 0, 1)


FEATURES = Allowed(
    "None, 'auto', 'sqrt', 'log2', 'oob', a whole number of at least 1 or a share "
    "above 0 and up to 1.0",
    lambda v: v is None or v in COLUMN_RULES or _is_number_or_share(v),
    "features",
    'int, float, "auto", "sqrt", "log2", "oob" or None',
)
SAMPLES = Allowed(
    "None, a whole number of at least 1 or a share above 0 and up to 1.0",
    lambda v: v is None or _is_number_or_share(v),
    "cases",
    "int, float or None",
)
RATE = Allowed(
    "a number above 0 and up to 1",
    lambda v: _is_between(v, 0, 1),
    "number",
    "float",
)
LOSS = Allowed(
    "None or 'squared_error' or 'poisson' or 'log_loss'",
    lambda v: v is None or v in ("squared_error", "poisson", "log_loss"),
    "text",
    '{"squared_error", "poisson", "log_loss"} or None',
)
SEED = Allowed(
    "a whole number of at least 0 and below 2**128",
    lambda v: is_whole(v) and 0 <= v < 2**128,
    "whole",
    "int, RandomState or None",
)

#: By the names of the command line; regression has other parameters.
_EVERY = ("id3", "c4.5", "cart", "cart --regression")


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
    switches it off. ``file_key`` is its name in model files, which never changes;
    ``of_ensembles`` its help where ensembles have it for another purpose.
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
    of_ensembles: str = ""

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


def parameters_section(defaults: Mapping[str, object], ensembles: bool = False) -> str:
    """Return the section of a docstring that explains parameters."""
    lines = ["Parameters", "----------"]
    for name, declared in PARAMETERS.items():
        if name in defaults:
            lines.append(f"{name} : {declared.type}, default={defaults[name]!r}")
            text = (declared.of_ensembles if ensembles else "") or declared.help
            lines.append(textwrap.indent(textwrap.fill(text, 80), " " * 4))
    return "\n".join(lines)


def _allowed(declared: Any) -> Allowed:
    """Return the values that a declaration names or describes."""
    match declared:
        case str(name):
            found: Allowed = globals()[name]
            return found
        case {"whole": least}:
            return whole(least, declared.get("none", True))
        case {"cases": least}:
            return cases(least, declared.get("every", False))
        case {"choices": choices}:
            names = globals()[choices] if isinstance(choices, str) else choices
            return choice(tuple(names), declared.get("none", False))
    # Checked where the data are known.
    return Allowed("", None, "text", declared["type"])


def _declared(name: str, fields: dict[str, Any]) -> Parameter:
    lists = {key: tuple(v) for key, v in fields.items() if isinstance(v, list)}
    text, allowed = " ".join(fields["help"].split()), _allowed(fields["allowed"])
    return Parameter(name, **fields | lists | {"help": text, "allowed": allowed})


#: Not read by importlib.resources, which takes longer to import than all of this.
_FILE = Path(__file__).with_name("parameters.toml")
#: Every parameter by its name, in the order of the options of ``branchwise fit``.
PARAMETERS = {
    name: _declared(name, fields)
    for name, fields in tomllib.loads(_FILE.read_text("utf-8")).items()
}
