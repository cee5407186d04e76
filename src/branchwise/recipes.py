"""A recipe: everything that tells one tree-growing algorithm from another.

An algorithm is a value, not a subclass. :data:`ID3` is one; the estimators are
shells that fill in a recipe from their parameters.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from branchwise.criteria import BUILT_IN, Criterion, CriterionFunction
from branchwise.errors import ParameterError
from branchwise.missing import POLICIES, Policy
from branchwise.ties import TIE


@dataclass(frozen=True)
class Recipe:
    """How to grow a tree.

    Parameters
    ----------
    algorithm : str
        The name that views and model files give it.
    criterion : {"gain", "gain_ratio", "gini"} or callable
        What makes a split good. A callable gets the class weights of k nodes,
        shape (k, classes), and of their branches, shape (k, branches, classes),
        and returns k scores, the higher the better.
    max_depth : int or None
        The largest number of questions from the root to a leaf; None is no limit,
        0 the root alone.
    min_samples_split : int or float
        The fewest cases a node needs to be split; a float is a share of the
        training cases.
    min_samples_leaf : int or float
        The fewest cases that each branch of a split must get; a float is a share.
    min_gain : float
        The least gain that a split must bring.
    max_bins : int or None
        At most so many ranges of about equal size that a number column is cut
        between; None tries every exact threshold.
    missing, unseen : {"branch", "split", "largest", "node", "error"}
        What happens to a missing value, and to one that training did not have.
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
    _criterion: Criterion = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_criterion(self.criterion)
        _check(
            "max_depth",
            self.max_depth,
            lambda v: v is None or (_is_int(v) and v >= 0),
            "None or a whole number of at least 0",
        )
        _check_samples("min_samples_split", self.min_samples_split, least=2)
        _check_samples("min_samples_leaf", self.min_samples_leaf, least=1)
        _check(
            "min_gain",
            self.min_gain,
            lambda v: _is_real(v) and _is_finite(v) and v >= 0,
            "a finite number of at least 0",
        )
        _check(
            "max_bins",
            self.max_bins,
            lambda v: v is None or (_is_int(v) and v >= 2),
            "None or a whole number of at least 2",
        )
        for name in ("missing", "unseen"):
            allowed = " or ".join(repr(policy) for policy in POLICIES)
            _check(name, getattr(self, name), lambda v: v in POLICIES, allowed)
        object.__setattr__(self, "_criterion", _as_criterion(self.criterion))

    @property
    def scoring(self) -> Criterion:
        """The criterion, ready to score candidates."""
        return self._criterion

    def cases_to_split(self, n_cases: float) -> float:
        """``min_samples_split`` as a number of cases."""
        return _nearly(max(2, _as_cases(self.min_samples_split, n_cases)))

    def cases_in_leaf(self, n_cases: float) -> float:
        """``min_samples_leaf`` as a number of cases."""
        return _nearly(_as_cases(self.min_samples_leaf, n_cases))


def _as_criterion(criterion: str | CriterionFunction) -> Criterion:
    if isinstance(criterion, str):
        return Criterion(criterion)
    name = getattr(criterion, "__name__", type(criterion).__name__)
    return Criterion(name, criterion)


def _as_cases(value: float, n_cases: float) -> float:
    # More cases than there are is never enough, however many more.
    return min(int(value), 2**62) if _is_int(value) else math.ceil(value * n_cases)


def _nearly(cases: float) -> float:
    """Lower a bar a little: three thirds of a case, each rounded, are one case."""
    return cases * (1 - TIE)


def _is_int(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _check(
    name: str, value: Any, allowed: Callable[[Any], bool], description: str
) -> None:
    # `in` on a tuple compares with ==, which an array answers with an array.
    acceptable = isinstance(value, (str, numbers.Number, type(None))) and allowed(value)
    if not acceptable:
        raise ParameterError(f"{name} must be {description}. Got {value!r} instead.")


def _check_criterion(criterion: object) -> None:
    if callable(criterion) and not isinstance(criterion, type):
        return
    names = " or ".join(repr(name) for name in BUILT_IN)
    _check(
        "criterion",
        criterion,
        lambda v: v in BUILT_IN,
        f"{names} or a function of the class weights of nodes and of their branches",
    )


def _check_samples(name: str, value: object, least: int) -> None:
    def allowed(v: object) -> bool:
        if _is_int(v):
            return cast("int", v) >= least
        return _is_real(v) and 0 < cast("float", v) < 1

    _check(
        name,
        value,
        allowed,
        f"a whole number of at least {least} or a share between 0 and 1",
    )


ID3 = Recipe()
