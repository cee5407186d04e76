""":class:`Recipe`: the parameters of a tree-growing algorithm, and their checks.

Every field is checked as ``recipe/parameters.toml`` declares it; how fields go together
is checked here. An algorithm is a value, not a subclass: :data:`ID3`, :data:`C45` and
:data:`CART`; estimators and the command line fill in its recipe with the parameters
that are given.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from branchwise.data.arrays import TIE
from branchwise.errors import ParameterError
from branchwise.recipe.parameters import (
    ALPHA_RULES,
    BUILT_IN,
    FOR_NUMBERS,
    PARAMETERS,
    TWO_WAY_POLICIES,
    Branching,
    CostsIn,
    CriterionFunction,
    ManyValues,
    Parameter,
    Policy,
    Probabilities,
    Pruning,
    Risk,
    Threshold,
    canonical,
    cases,
    is_whole,
    named,
    parameters_section,
)

#: Fractional cases may be less than one; C4.5 has another limit for them.
_FRACTIONAL = cases(0)


@dataclass(frozen=True)
class Recipe:
    """The parameters of growing and pruning a tree.

    Other names of criteria are replaced by our own; costs become tuples.
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
    threshold: Threshold = "midpoint"
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
    min_weight_fraction_leaf: float = 0.0
    costs_in: CostsIn = "prediction"
    many_values: ManyValues = "corrected"
    risk: Risk = "auto"
    shrinkage: float = 20.0
    cross_validate: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "criterion", canonical(self.criterion))
        for name in FIELDS:
            fractional = name == "min_samples_leaf" and self.min_samples_branch
            PARAMETERS[name].check(
                getattr(self, name), _FRACTIONAL if fractional else None
            )
        self._check_combinations()
        if self.costs is not None:
            costs = tuple(tuple(map(float, row)) for row in self.costs)
            object.__setattr__(self, "costs", costs)

    def _check_combinations(self) -> None:
        for name, usual in FIELDS.items():
            value, needed = getattr(self, name), PARAMETERS[name].only_with
            if needed and value != usual and getattr(self, needed[0]) != needed[1]:
                raise ParameterError(
                    f"{name}={value!r} has no effect unless {needed[0]} is "
                    f"{needed[1]!r}. Got {needed[0]}={getattr(self, needed[0])!r}."
                )
        if self.pruning == "error-based" and self.is_regression:
            raise ParameterError(
                "pruning='error-based' counts wrong classes, and this tree predicts "
                "numbers. Use 'reduced-error' or 'cost-complexity'."
            )
        if self.costs_in == "growth" and self.pruning == "reduced-error":
            raise ParameterError(
                "costs_in='growth' weighs the rows that the tree is grown from, and "
                "pruning='reduced-error' counts other rows. Use 'error-based' or "
                "'cost-complexity', or costs_in='prediction', by which reduced-error "
                "pruning compares costs."
            )
        if self.quinlan_thresholds and self.is_regression:
            raise ParameterError(
                "quinlan_thresholds=True reduces what thresholds tell of classes, in "
                "bits, and this tree predicts numbers. Leave it out."
            )
        if self.probabilities != "frequencies" and self.is_regression:
            raise ParameterError(
                f"probabilities={self.probabilities!r} is for classes, and this tree "
                "predicts numbers. Leave it out."
            )
        if self.risk == "errors" and self.is_regression:
            raise ParameterError(
                "risk='errors' counts wrong classes, and this tree predicts numbers. "
                "Leave it out."
            )
        if self.missing in TWO_WAY_POLICIES and self.branching != "two-way":
            raise ParameterError(
                f"missing={self.missing!r} is for trees with two-way splits, such as "
                f"CART's. Got branching={self.branching!r}; choose 'branch', 'split', "
                "'largest' or 'node' for it."
            )
        if self.branching == "groups" and self.criterion not in BUILT_IN:
            function = callable(self.criterion)
            given = "a function as criterion" if function else repr(self.criterion)
            raise ParameterError(
                "branching='groups' merges values by 'gain', 'gain_ratio' or 'gini'. "
                f"Got {given}; choose branching='values' or 'two-way' for it."
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
    def tests_splits(self) -> bool:
        """Whether splits must be significant."""
        return self.max_p_value is not None

    @property
    def corrects_values(self) -> bool:
        """Whether scores of groups of values are corrected for the number of values."""
        return (
            self.many_values == "corrected"
            and self.branching == "two-way"
            and not self.average_gain
            and self.criterion in ("gini", "gain", "variance")
        )

    @property
    def counts_errors(self) -> bool:
        """Whether cost-complexity pruning measures leaves by errors, not impurity."""
        if self.risk != "auto":
            return self.risk == "errors"
        return self.ccp_alpha in ALPHA_RULES and not self.is_regression

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
        """``min_samples_split`` as a number of cases.

        Parameters
        ----------
        n_cases : float
            The number of training cases, which a share is of.

        Returns
        -------
        float
            The least number of cases of a node that is split.
        """
        split = _as_cases(self.min_samples_split, n_cases)
        branch = _as_cases(self.min_samples_branch, n_cases)
        return _nearly(max(2, split, 2 * branch))

    def cases_in_leaf(self, n_cases: float) -> float:
        """``min_samples_leaf`` as a number of cases.

        Parameters
        ----------
        n_cases : float
            The same as for :meth:`cases_to_split`.

        Returns
        -------
        float
            The least number of cases of a leaf.
        """
        return _nearly(_as_cases(self.min_samples_leaf, n_cases))

    def cases_in_branch(self, n_cases: float) -> float:
        """``min_samples_branch`` as a number of cases.

        Parameters
        ----------
        n_cases : float
            As in :meth:`cases_to_split`.

        Returns
        -------
        float
            The least number of cases of a branch.
        """
        return _nearly(_as_cases(self.min_samples_branch, n_cases))

    def weight_in_leaf(self, total: float) -> float:
        """``min_weight_fraction_leaf`` as a weight, of the total weight.

        Parameters
        ----------
        total : float
            The weight of all training rows.

        Returns
        -------
        float
            The least weight of a leaf.
        """
        return _nearly(self.min_weight_fraction_leaf * total)


#: The fields of a recipe and their defaults, in the order of model files.
FIELDS: dict[str, Any] = {field.name: field.default for field in fields(Recipe)}

if Recipe.__doc__ is not None:  # python -OO
    Recipe.__doc__ += "\n" + textwrap.indent(parameters_section(FIELDS), " " * 4)


def unpruned(recipe: Recipe) -> Recipe:
    """Return the recipe that grows the same tree without pruning."""
    usual = {
        name: default
        for name, default in FIELDS.items()
        if (PARAMETERS[name].only_with or ("",))[0] == "pruning"
    }
    return replace(recipe, pruning=None, collapse=False, **usual)


def _as_cases(value: float, n_cases: float) -> float:
    # A limit above the number of cases is never reached.
    return min(int(value), 2**62) if is_whole(value) else math.ceil(value * n_cases)


def _nearly(cases: float) -> float:
    """Lower a limit slightly: three thirds of a case, each rounded, are one case."""
    return cases * (1 - TIE)


ID3 = Recipe(threshold="readable")
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
CART = Recipe(
    "CART",
    "gini",
    missing="learned",
    unseen="largest",
    branching="two-way",
    threshold="readable",
)
#: By the names of the command line.
RECIPES = {
    "id3": ID3,
    "c4.5": C45,
    "cart": CART,
    "cart --regression": replace(CART, criterion="variance"),
}
#: The criteria that an algorithm offers by name, where it has a choice.
CRITERIA = {
    "id3": named(("gain", "gain_ratio", "gini")),
    "cart": named(("gini", "gain")),
    "cart --regression": named(FOR_NUMBERS),
}


def pruning_of(recipe: Recipe, given: Mapping[str, Any]) -> Pruning | None:
    """Return the pruning method that parameters of an estimator choose.

    ``prune=False`` prunes nothing; for CART a ``ccp_alpha`` other than 0 implies
    cost-complexity pruning, unless another method is named.
    """
    if not given.get("prune", True):
        return None
    method: Pruning | None = given.get("pruning", recipe.pruning)
    if method is None and recipe.algorithm == "CART" and given.get("ccp_alpha", 0) != 0:
        return "cost-complexity"
    return method


def default_text(parameter: Parameter) -> str:
    """Return the default of a parameter for ``--help``, by algorithm if they differ."""
    if parameter.name not in FIELDS:
        return parameter.without
    words: dict[str, str] = {}
    for name in parameter.algorithms:
        value = getattr(RECIPES[name], parameter.name)
        word = f"{value:g}" if isinstance(value, float) else str(value)
        words[name] = parameter.without if value is None else word
    # Regression is named only where it differs from the other trees of CART.
    if words.get("cart --regression") == words.get("cart"):
        words.pop("cart --regression", None)
    first = next(iter(words.values()))
    others = [f"{name}: {word}" for name, word in words.items() if word != first]
    return "; ".join([first, *others])
