""":class:`Recipe`: the parameters of a tree-growing algorithm, and their checks.

An algorithm is a value, not a subclass: :data:`ID3`, :data:`C45` and :data:`CART`. The
estimators build a recipe from their parameters.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from branchwise.data.arrays import Floats
from branchwise.data.ties import TIE
from branchwise.errors import ParameterError

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
#: Parameters of only one pruning method.
_ONLY_WITH = {
    "confidence": "error-based",
    "raise_subtrees": "error-based",
    "ccp_alpha": "cost-complexity",
    "tolerance": "reduced-error",
}


@dataclass(frozen=True)
class Recipe:
    """The parameters of growing and pruning a tree.

    Parameters
    ----------
    algorithm : {"ID3", "C4.5", "CART"}
        Its name in views, exports and model files.
    criterion : {"gain", "gain_ratio", "gini"} or callable
        The score of splits; "entropy" and "log_loss" are other names of "gain",
        "squared_error" of "variance", and are replaced by them. A callable gets the
        class weights of k nodes, shape (k, classes), and of their branches, shape
        (k, branches, classes), and returns k scores, the higher the better.
    max_depth : int or None
        The largest number of splits from the root to a leaf; None is no limit, 0 the
        root alone.
    min_samples_split : int or float
        The least number of cases of a node that is split; a float is a share of the
        training cases.
    min_samples_leaf : int or float
        The least number of cases in each branch of a split; a float is a share.
    min_gain : float
        The least gain of a split.
    max_bins : int or None
        The most bins, of about equal size, between which a numeric column is split;
        None considers every exact threshold.
    min_samples_branch : int or float
        The least number of cases in at least two branches of a split (Quinlan's -m); a
        float is a share, 0 is no limit.
    quinlan_thresholds : bool
        Whether thresholds are chosen as in C4.5: by gain, with enough cases on each
        side, and the gain reduced for the number of thresholds.
    average_gain : bool
        Whether a split must gain about as much as splits of the node do on average.
    threshold : {"midpoint", "value"}
        Whether a threshold is the midpoint between two neighbouring numbers of the
        node, or the largest number of the training table that is not above it.
    missing, unseen : {"branch", "split", "largest", "node", "error"}
        What happens to a missing value, and to one that training did not have.
        ``missing`` may also be "learned" or "surrogate" where branching is "two-way".
    branching : {"values", "groups", "two-way"}
        Whether a category column has one branch per value, one per group of values,
        or two branches.
    max_leaf_nodes : int or None
        The most leaves; splits with the largest impurity decrease come first.
    max_p_value : float or None
        The largest p-value of a split, by a chi-square test that accounts for the
        number of values and of columns; splits with a larger one are not made.
    collapse : bool
        Whether subtrees that err no less than a leaf become leaves.
    pruning : {"error-based", "reduced-error", "cost-complexity"} or None
        The method of pruning after growth.
    confidence, raise_subtrees
        Error-based pruning: the probability that the true error is above its estimate,
        and whether a branch may replace its parent.
    ccp_alpha : float, "best" or "1-se"
        Cost-complexity pruning: the complexity parameter, in units of impurity, or the
        rule by which cross-validation chooses it.
    tolerance : float
        Reduced-error pruning: by how much the accuracy may decrease.
    costs : tuple of tuples or None
        The cost of the prediction j where class i is true, a row for each class i.
    probabilities : {"frequencies", "laplace", "m-estimate"}
        How weights become probabilities: as they are, with one case more for every
        class, or with ``m`` cases more in the proportions of the root.
    m : float
        The number of these cases.
    """

    algorithm: str = "ID3"
    criterion: str | CriterionFunction = "gain"
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_gain: float = 0.0
    missing: Policy = "branch"
    unseen: Policy = "node"
    max_bins: int | None = None
    branching: Branching = "values"
    min_samples_branch: float = 0
    quinlan_thresholds: bool = False
    average_gain: bool = False
    threshold: Literal["midpoint", "value"] = "midpoint"
    max_leaf_nodes: int | None = None
    max_p_value: float | None = None
    collapse: bool = False
    pruning: Pruning | None = None
    confidence: float = 0.25
    raise_subtrees: bool = True
    ccp_alpha: float | str = 0.0
    tolerance: float = 0.0
    costs: tuple[tuple[float, ...], ...] | None = None
    probabilities: Probabilities = "frequencies"
    m: float = 2.0

    def __post_init__(self) -> None:
        _check_choice("algorithm", self.algorithm, ALGORITHMS)
        object.__setattr__(self, "criterion", canonical(self.criterion))
        _check_criterion(self.criterion)
        _check(
            "max_depth",
            self.max_depth,
            lambda v: v is None or (_is_int(v) and v >= 0),
            "None or a whole number of at least 0",
        )
        _check_samples("min_samples_split", self.min_samples_split, least=2, whole=True)
        # Fractional cases may be less than one; C4.5 has another limit for them.
        least = 0 if self.min_samples_branch else 1
        _check_samples("min_samples_leaf", self.min_samples_leaf, least)
        _check(
            "min_gain",
            self.min_gain,
            _is_amount,
            "a finite number of at least 0",
        )
        _check(
            "max_bins",
            self.max_bins,
            lambda v: v is None or (_is_int(v) and v >= 2),
            "None or a whole number of at least 2",
        )
        self._check_shape()
        self._check_pruning()
        _check_choice("missing", self.missing, POLICIES)
        _check_choice("unseen", self.unseen, UNSEEN_POLICIES)
        if self.missing in TWO_WAY_POLICIES and self.branching != "two-way":
            raise ParameterError(
                f"missing={self.missing!r} is for trees with two-way splits, such as "
                f"CART's. Got branching={self.branching!r}; choose 'branch', 'split', "
                "'largest' or 'node' for it."
            )
        if callable(self.criterion) and self.branching == "groups":
            raise ParameterError(
                "branching='groups' merges values by 'gain', 'gain_ratio' or 'gini'. "
                "Got a function as criterion; choose branching='values' or 'two-way' "
                "for it."
            )

    def _check_shape(self) -> None:
        _check_samples("min_samples_branch", self.min_samples_branch, least=0)
        _check_choice("branching", self.branching, BRANCHINGS)
        _check_choice("threshold", self.threshold, ("midpoint", "value"))
        _check(
            "max_leaf_nodes",
            self.max_leaf_nodes,
            lambda v: v is None or (_is_int(v) and v >= 1),
            "None or a whole number of at least 1",
        )
        _check(
            "max_p_value",
            self.max_p_value,
            lambda v: v is None or (_is_real(v) and 0 < v <= 1),
            "None or a probability above 0 and up to 1, such as 0.05",
        )
        for name in (
            "quinlan_thresholds",
            "average_gain",
            "collapse",
            "raise_subtrees",
        ):
            _check(name, getattr(self, name), _is_flag, "True or False")

    def _check_pruning(self) -> None:
        _check_choice("pruning", self.pruning, (None, *PRUNINGS))
        _check(
            "confidence",
            self.confidence,
            lambda v: _is_real(v) and 0 < v <= 0.5,
            "a number above 0 and up to 0.5",
        )
        _check(
            "ccp_alpha",
            self.ccp_alpha,
            lambda v: v in ALPHA_RULES or _is_amount(v),
            "a finite number of at least 0, 'best' or '1-se'",
        )
        for name in ("tolerance", "m"):
            _check(
                name, getattr(self, name), _is_amount, "a finite number of at least 0"
            )
        if self.pruning == "error-based" and self.is_regression:
            raise ParameterError(
                "pruning='error-based' counts wrong classes, and this tree predicts "
                "numbers. Use 'reduced-error' or 'cost-complexity'."
            )
        for name, method in _ONLY_WITH.items():
            usual = self.__dataclass_fields__[name].default
            if getattr(self, name) != usual and self.pruning != method:
                raise ParameterError(
                    f"{name}={getattr(self, name)!r} has no effect unless pruning is "
                    f"{method!r}. Got pruning={self.pruning!r}."
                )
        self._check_probabilities()
        object.__setattr__(self, "costs", _checked_costs(self.costs))

    def _check_probabilities(self) -> None:
        _check_choice("probabilities", self.probabilities, PROBABILITIES)
        usual = self.__dataclass_fields__["m"].default
        if self.m != usual and self.probabilities != "m-estimate":
            raise ParameterError(
                f"m={self.m!r} has no effect unless probabilities is 'm-estimate'. Got "
                f"probabilities={self.probabilities!r}."
            )
        if self.probabilities != "frequencies" and self.is_regression:
            raise ParameterError(
                f"probabilities={self.probabilities!r} is for classes, and this tree "
                "predicts numbers. Leave it out."
            )

    @property
    def is_regression(self) -> bool:
        """Whether the tree is to predict numbers, not classes."""
        return (
            self.criterion in FOR_NUMBERS if isinstance(self.criterion, str) else False
        )

    @property
    def criterion_name(self) -> str:
        """The name of the criterion, or of the user's function."""
        if isinstance(self.criterion, str):
            return self.criterion
        name: str = getattr(self.criterion, "__name__", type(self.criterion).__name__)
        return name

    @property
    def weights_are_cases(self) -> bool:
        """Whether a row of weight 2 is two cases, as in C4.5, and not one that counts
        twice as much as others.
        """  # noqa: D205
        return (
            self.quinlan_thresholds
            or self.average_gain
            or self.min_samples_branch > 0
            or self.branching == "groups"
        )

    def cases_to_split(self, n_cases: float) -> float:
        """``min_samples_split`` as a number of cases."""
        split = _as_cases(self.min_samples_split, n_cases)
        branch = _as_cases(self.min_samples_branch, n_cases)
        return _nearly(max(2, split, 2 * branch))

    def cases_in_leaf(self, n_cases: float) -> float:
        """``min_samples_leaf`` as a number of cases."""
        return _nearly(_as_cases(self.min_samples_leaf, n_cases))

    def cases_in_branch(self, n_cases: float) -> float:
        """``min_samples_branch`` as a number of cases."""
        return _nearly(_as_cases(self.min_samples_branch, n_cases))


def unpruned(recipe: Recipe) -> Recipe:
    """Return the recipe that grows the same tree without pruning."""
    usual: dict[str, Any] = {
        name: Recipe.__dataclass_fields__[name].default for name in _ONLY_WITH
    }
    return replace(recipe, pruning=None, collapse=False, **usual)


def _as_cases(value: float, n_cases: float) -> float:
    # A limit above the number of cases is never reached.
    return min(int(value), 2**62) if _is_int(value) else math.ceil(value * n_cases)


def _nearly(cases: float) -> float:
    """Lower a limit slightly: three thirds of a case, each rounded, are one case."""
    return cases * (1 - TIE)


def _is_int(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _is_amount(value: Any) -> bool:
    return _is_real(value) and _is_finite(value) and value >= 0


def _checked_costs(costs: Any) -> tuple[tuple[float, ...], ...] | None:
    """Return a cost matrix as tuples; raise if it is not valid."""
    if costs is None:
        return None
    try:
        rows = [list(row) for row in costs]
    except TypeError:
        rows = []
    square = bool(rows) and all(len(row) == len(rows) for row in rows)
    sound = square and all(
        _is_amount(cost) and cost <= _LARGEST_COST and (i != j or cost == 0)
        for i, row in enumerate(rows)
        for j, cost in enumerate(row)
    )
    if not sound:
        raise ParameterError(
            "costs must be None or a square of numbers from 0 to 1e150, a row for "
            f"each true class, with 0 where the prediction is right. Got {costs!r}."
        )
    return tuple(tuple(float(cost) for cost in row) for row in rows)


def _check(
    name: str, value: Any, allowed: Callable[[Any], bool], description: str
) -> None:
    # `in` on a tuple compares with ==, which gives an array for arrays.
    acceptable = isinstance(value, (str, numbers.Number, type(None))) and allowed(value)
    if not acceptable:
        raise ParameterError(f"{name} must be {description}. Got {value!r} instead.")


def _check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    allowed = " or ".join(repr(choice) for choice in choices)
    _check(name, value, lambda v: v in choices, allowed)


def _check_criterion(criterion: object) -> None:
    if callable(criterion) and not isinstance(criterion, type):
        return
    names = " or ".join(repr(name) for name in named(BUILT_IN))
    _check(
        "criterion",
        criterion,
        lambda v: v in (*BUILT_IN, *FOR_NUMBERS),
        f"{names} or a function of the class weights of nodes and of their branches",
    )


def _check_samples(name: str, value: object, least: int, whole: bool = False) -> None:
    """Raise unless a value is a number of cases or a share below 1.

    ``whole`` allows 1.0, all cases, too: no branch of a split can have them.
    """

    def allowed(v: object) -> bool:
        if _is_int(v):
            return cast("int", v) >= least
        return _is_real(v) and (0 < cast("float", v) < 1 or (whole and v == 1))

    share = "a share above 0 and up to 1.0" if whole else "a share between 0 and 1"
    _check(name, value, allowed, f"a whole number of at least {least} or {share}")


def canonical(criterion: object) -> object:
    """Return the name that a criterion has in recipes and model files."""
    return (
        ALIASES.get(criterion, criterion) if isinstance(criterion, str) else criterion
    )


def named(criteria: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of criteria, followed by their other names."""
    return *criteria, *(other for other, name in ALIASES.items() if name in criteria)


ID3 = Recipe()
C45 = Recipe(
    "C4.5",
    "gain_ratio",
    min_samples_leaf=0,
    missing="split",
    unseen="split",
    min_samples_branch=2,
    quinlan_thresholds=True,
    average_gain=True,
    threshold="value",
    collapse=True,
    pruning="error-based",
)
CART = Recipe("CART", "gini", missing="largest", unseen="largest", branching="two-way")
