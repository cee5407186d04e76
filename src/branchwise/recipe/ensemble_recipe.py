""":class:`EnsembleRecipe`: how the trees of an ensemble are grown and combined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from branchwise.errors import ParameterError
from branchwise.recipe import C45, CART, FIELDS, ID3, Recipe, unpruned
from branchwise.recipe.parameters import PARAMETERS, choice, is_whole

Voting = Literal["soft", "hard"]
Splitter = Literal["best", "random"]
Method = Literal["forest", "boosted", "gradient", "rules"]
#: Methods whose trees add up to margins.
OF_MARGINS: tuple[Method, ...] = ("gradient", "rules")
Loss = Literal["squared_error", "poisson", "log_loss"]
#: Losses of numbers.
NUMBER_LOSSES = choice(("squared_error", "poisson"))

#: The recipes of trees that ensembles are made of, by the names of the command line.
#: Thresholds of hundreds of trees are rarely read: these are midpoints.
BASES: dict[str, Recipe] = {
    "id3": replace(ID3, threshold="midpoint"),
    "c4.5": replace(unpruned(C45), min_samples_branch=1),
    "cart": replace(CART, threshold="midpoint"),
}


#: Parameters that the trees of every ensemble have.
_OF_TREES = (
    "max_depth",
    "max_leaf_nodes",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "min_gain",
    "missing",
    "unseen",
    "categorical_features",
    "categories",
    "order",
    "max_bins",
    "n_jobs",
    "n_estimators",
)
_OF_FORESTS = (
    *_OF_TREES,
    "criterion",
    "max_p_value",
    "pruning",
    "ccp_alpha",
    "base",
    "max_features",
    "bootstrap",
    "max_samples",
    "splitter",
    "random_state",
)
_OF_CLASSES = ("class_weight", "priors")
_EARLY_STOP = ("n_iter_no_change", "validation_fraction", "tol")
_OF_GRADIENTS = (
    *_OF_TREES,
    *_EARLY_STOP,
    "learning_rate",
    "subsample",
    "max_features",
    "random_state",
)
#: The parameters of ensembles on the command line, by its names of them.
ENSEMBLE_PARAMETERS: dict[str, tuple[str, ...]] = {
    "forest": (*_OF_FORESTS, *_OF_CLASSES, "costs", "probabilities", "m", "voting"),
    "forest --regression": _OF_FORESTS,
    "boosted": (
        *_OF_TREES,
        *_OF_CLASSES,
        *_EARLY_STOP,
        "criterion",
        "min_samples_branch",
        "max_p_value",
        "prune",
        "confidence",
        "raise_subtrees",
        "costs",
        "base",
    ),
    "gradient": (*_OF_GRADIENTS, *_OF_CLASSES),
    "gradient --regression": (*_OF_GRADIENTS, "loss"),
    "rules": (
        *_OF_CLASSES,
        "categorical_features",
        "categories",
        "order",
        "n_jobs",
        "n_estimators",
        "max_rules",
        "rule_cost",
        "random_state",
    ),
}


#: Parameters that trees have from their algorithm unless they are given.
_BY_BASE = (
    "criterion",
    "missing",
    "unseen",
    "min_samples_leaf",
    "min_samples_branch",
)


def given_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the trees' recipe that parameters have values for."""
    return {
        name: given[name]
        for name in FIELDS
        if name in given
        and not (name in _BY_BASE and given[name] is None)
        # Costs by the names of classes are known when these are.
        and not (name == "costs" and isinstance(given[name], Mapping))
    }


def tree_recipe(base: str, regression: bool, given: Mapping[str, Any]) -> Recipe:
    """Return the recipe of the trees of a forest.

    Of the parameters that are given, None leaves criterion, policies and the fewest
    cases of a leaf as the algorithm has them.
    """
    PARAMETERS["base"].check(base)
    if regression and base != "cart":
        raise ParameterError(
            f"base must be 'cart' to predict numbers. Got {base!r} instead."
        )
    recipe = BASES[base]
    if regression:
        recipe = replace(recipe, criterion="variance")
    values = given_fields(given)
    if values.get("pruning") is None and values.get("ccp_alpha", 0) != 0:
        values["pruning"] = "cost-complexity"
    return replace(recipe, **values)


def boosted_tree_recipe(given: Mapping[str, Any]) -> Recipe:
    """Return the recipe of boosted trees; those of C4.5 are pruned, as Quinlan's are.

    Of the parameters that are given, None is as for :func:`tree_recipe`.
    """
    base, prune = given.get("base", "c4.5"), given.get("prune", True)
    PARAMETERS["base"].check(base)
    PARAMETERS["prune"].check(prune)
    recipe = {**BASES, "c4.5": C45}[base]
    return replace(recipe if prune else unpruned(recipe), **given_fields(given))


@dataclass(frozen=True)
class EnsembleRecipe:
    """How the trees of an ensemble are grown, and how their predictions are combined.

    The defaults are those of a forest. Boosting by weights of rows ("boosted") takes
    weighted votes; "gradient" adds up the numbers of regression trees, which are
    margins of the ``loss``, each round from its own sample of ``max_samples`` rows. The
    trees of "rules" are rules that vote, one each: their votes add up to margins;
    ``n_estimators`` is how many bootstrap trees they were found in.
    """

    tree: Recipe = BASES["cart"]
    n_estimators: int = 100
    max_features: int | float | str | None = "auto"
    bootstrap: bool = True
    max_samples: int | float | None = None
    splitter: Splitter = "best"
    voting: Voting = "soft"
    random_state: int = 0
    balanced_subsample: bool = False
    method: Method = "forest"
    loss: Loss | None = None
    learning_rate: float = 0.1
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    tol: float = 1e-4
    max_rules: int | None = None
    rule_cost: float = 0.4

    def __post_init__(self) -> None:
        for name in ENSEMBLE_FIELDS:
            if name in PARAMETERS:
                PARAMETERS[name].check(getattr(self, name))
        if isinstance(self.tree.ccp_alpha, str):
            raise ParameterError(
                f"ccp_alpha={self.tree.ccp_alpha!r} is chosen by cross-validation, for "
                "single trees. Give a number for the trees of an ensemble."
            )
        if self.tree.cross_validate:
            raise ParameterError(
                "cross_validate=True is for single trees. Leave it out for the trees "
                "of an ensemble."
            )
        if self.tree.costs_in == "growth":
            raise ParameterError(
                "costs_in='growth' is for single trees. Give class_weight to the "
                "trees of an ensemble."
            )
        if self.tree.pruning == "reduced-error":
            raise ParameterError(
                "pruning='reduced-error' needs rows to prune with, for single trees. "
                "Leave it out, or choose 'error-based' or 'cost-complexity'."
            )
        self._check_loss()
        self._check_columns()
        if self.validation_fraction is None:
            raise ParameterError(
                "validation_fraction must be a share between 0 and 1, such as 0.1. Got "
                "None; leave out n_iter_no_change to hold out no rows."
            )
        if self.method == "boosted" and self.voting != "hard":
            raise ParameterError(
                "method='boosted' adds up weighted votes, voting='hard'. Got "
                f"voting={self.voting!r}."
            )
        if self.voting == "hard" and self.tree.is_regression:
            raise ParameterError(
                "voting='hard' counts classes, and this ensemble predicts numbers. "
                "Leave it out."
            )

    def _check_loss(self) -> None:
        if (self.loss is not None) != self.adds_margins:
            raise ParameterError(
                "loss must be given for method='gradient' and 'rules', and for no "
                f"other. Got {self.loss!r} for method={self.method!r}."
            )
        if self.method == "rules" and self.loss != "log_loss":
            raise ParameterError(
                "method='rules' is for classes, loss='log_loss'. Got "
                f"loss={self.loss!r}."
            )

    def _check_columns(self) -> None:
        if self.max_features != "oob":
            return
        if self.method != "forest":
            raise ParameterError(
                "max_features='oob' is for forests, which have rows out of bag. Give a "
                "number of columns, a share of them, 'auto', 'sqrt' or 'log2'."
            )
        if not self.bootstrap and self.max_samples is None:
            raise ParameterError(
                "max_features='oob' needs rows that are not in every sample. Got "
                "bootstrap=False; set bootstrap=True, or max_samples below 1.0."
            )

    @property
    def begins_with_fewer(self) -> bool:
        """Whether the first of its trees are those of an ensemble of fewer trees.

        Rules are chosen from all trees, and so may be how many columns are drawn.
        """
        return self.method != "rules" and self.max_features != "oob"

    @property
    def adds_margins(self) -> bool:
        """Whether the trees have numbers that add up to margins."""
        return self.method in OF_MARGINS

    def n_outputs(self, n_classes: int) -> int:
        """Return the number of sums over trees: one for each class, or a single one."""
        if self.adds_margins and n_classes == 2:
            return 1
        return max(n_classes, 1)

    def columns_drawn(self, n_columns: int) -> int:
        """``max_features`` as a number of columns."""
        match self.max_features:
            case None:
                return n_columns
            case "auto":
                # The trees of gradient boosting predict numbers for classes, too.
                if self.tree.is_regression:
                    return n_columns
                # Categories are kept whole, so there are fewer columns than with a
                # column for each value: rounded down there are too few candidates.
                return max(1, math.ceil(math.sqrt(n_columns)))
            case "sqrt":
                return max(1, math.isqrt(n_columns))
            case "log2":
                return max(1, int(math.log2(n_columns)))
        return min(_number_of(self.max_features, n_columns), n_columns)

    def rows_drawn(self, n_rows: int) -> int:
        """``max_samples`` as a number of rows."""
        if self.max_samples is None:
            return n_rows
        wanted = _number_of(self.max_samples, n_rows)
        if wanted > n_rows and not self.bootstrap:
            raise ParameterError(
                f"max_samples must be at most the number of rows, {n_rows:,}, where "
                f"bootstrap is False. Got {self.max_samples!r}."
            )
        return wanted


def _number_of(wanted: Any, whole: int) -> int:
    return int(wanted) if is_whole(wanted) else max(1, int(wanted * whole))


#: The fields of a recipe of an ensemble and their defaults, in their order in files.
ENSEMBLE_FIELDS: dict[str, Any] = {
    field.name: field.default for field in fields(EnsembleRecipe)
}
#: The value of ``class_weight`` that balances the sample of each tree of a forest.
BALANCED_SAMPLES = "balanced_subsample"


def _own_fields(given: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """Return the fields of an ensemble's recipe that parameters have values for."""
    return {name: given[name] for name in ENSEMBLE_FIELDS if name in given} | others


def forest_recipe(regression: bool, given: Mapping[str, Any]) -> EnsembleRecipe:
    """Return the recipe of a forest, by the parameters of the estimators."""
    weight = given.get("class_weight")
    usual = {"max_features": 1.0} if regression else {}
    return EnsembleRecipe(
        **_own_fields(
            {**usual, **given},
            tree=tree_recipe(given.get("base", "cart"), regression, given),
            balanced_subsample=isinstance(weight, str) and weight == BALANCED_SAMPLES,
        )
    )


def boosted_recipe(given: Mapping[str, Any]) -> EnsembleRecipe:
    """Return the recipe of boosted trees, by the parameters of the estimator."""
    return EnsembleRecipe(
        **_own_fields(
            {"n_estimators": 10, **given},
            tree=boosted_tree_recipe(given),
            max_features=None,
            bootstrap=False,
            voting="hard",
            method="boosted",
        )
    )


def gradient_recipe(loss: Loss, given: Mapping[str, Any]) -> EnsembleRecipe:
    """Return the recipe of gradient boosting, by the parameters of the estimators."""
    subsample = given.get("subsample", 1.0)
    PARAMETERS["subsample"].check(subsample)
    regression = replace(BASES["cart"], criterion="variance")
    return EnsembleRecipe(
        **_own_fields(
            {"max_features": None, **given},
            tree=replace(regression, **given_fields({"max_depth": 3, **given})),
            bootstrap=False,
            max_samples=None if subsample == 1 else float(subsample),
            method="gradient",
            loss=loss,
        )
    )


#: The recipe of trees that are rules: what fulfils no condition stops, with no vote.
RULE_TREE = replace(BASES["cart"], criterion="variance", missing="node", unseen="node")


def rules_recipe(given: Mapping[str, Any]) -> EnsembleRecipe:
    """Return the recipe of rules that vote, by the parameters of the estimator."""
    return EnsembleRecipe(
        **_own_fields(
            {"n_estimators": 20, **given},
            tree=RULE_TREE,
            max_features=None,
            method="rules",
            loss="log_loss",
        )
    )
