"""The declarations of parameters agree with estimators, recipes and defaults."""

from __future__ import annotations

import inspect

import pytest

from branchwise import (
    BoostedClassifier,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RuleClassifier,
)
from branchwise.cli.options.ensemble_growing import ensemble_recipe
from branchwise.errors import ParameterError
from branchwise.recipe import (
    C45,
    CART,
    CRITERIA,
    FIELDS,
    ID3,
    RECIPES,
    default_text,
    pruning_of,
)
from branchwise.recipe.ensemble_recipe import ENSEMBLE_FIELDS, ENSEMBLE_PARAMETERS
from branchwise.recipe.parameters import PARAMETERS

ESTIMATORS = {
    "id3": ID3Classifier,
    "c4.5": C45Classifier,
    "cart": CARTClassifier,
    "cart --regression": CARTRegressor,
}
ENSEMBLES = {
    "forest": RandomForestClassifier,
    "forest --regression": RandomForestRegressor,
    "boosted": BoostedClassifier,
    "gradient": GradientBoostingClassifier,
    "gradient --regression": GradientBoostingRegressor,
    "rules": RuleClassifier,
}
#: Parameters of estimators of ensembles that the command line has no use for.
OF_PYTHON = {"oob_score", "warm_start"}
#: Parameters of ``fit``, not of the estimator itself.
OF_FIT = {"validation", "weight"}


@pytest.mark.parametrize("algorithm", ESTIMATORS)
def test_estimators_have_the_parameters_that_are_declared(algorithm):
    declared = {p.name for p in PARAMETERS.values() if algorithm in p.algorithms}
    assert declared - OF_FIT == set(inspect.signature(ESTIMATORS[algorithm]).parameters)


@pytest.mark.parametrize("algorithm", ESTIMATORS)
def test_estimators_have_the_defaults_of_the_recipes(algorithm):
    for name, parameter in inspect.signature(ESTIMATORS[algorithm]).parameters.items():
        if name in FIELDS:
            assert parameter.default == getattr(RECIPES[algorithm], name), name
    assert ESTIMATORS[algorithm]().recipe == RECIPES[algorithm]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_have_the_parameters_that_are_declared(name):
    estimator = ENSEMBLES[name]
    own = set(inspect.signature(estimator).parameters) - OF_PYTHON
    assert set(ENSEMBLE_PARAMETERS[name]) == own
    algorithm, _, regression = name.partition(" ")
    for parameter in own:
        if PARAMETERS[parameter].group == "Ensembles":
            assert algorithm in PARAMETERS[parameter].algorithms, parameter
    assert ensemble_recipe(algorithm, bool(regression), {}) == estimator().recipe


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_docstrings_explain_every_parameter(estimator):
    text = inspect.getdoc(estimator)
    sections = ["Parameters", "Attributes", "Examples"]
    assert [line for line in text.splitlines() if line in sections] == sections
    for name, parameter in inspect.signature(estimator).parameters.items():
        assert f"\n{name} : {PARAMETERS[name].type}, default=" in text
        assert f"default={parameter.default!r}\n" in text
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_every_field_of_a_recipe_is_declared():
    assert set(FIELDS) <= set(PARAMETERS)
    assert set(ENSEMBLE_FIELDS) - {"tree", "balanced_subsample"} <= set(PARAMETERS)
    recipe_only = {p.name for p in PARAMETERS.values() if not p.algorithms}
    of_estimators = {"estimator", "oob_score", "subsample", "warm_start"}
    assert recipe_only - of_estimators <= set(FIELDS) | set(ENSEMBLE_FIELDS)
    assert len({PARAMETERS[name].file_key for name in FIELDS}) == len(FIELDS)


def test_declarations_name_choices_that_exist():
    for parameter in PARAMETERS.values():
        if parameter.only_with is not None:
            needed, value = parameter.only_with
            assert value in PARAMETERS[needed].allowed.choices
        for choice in parameter.allowed.choices:
            if parameter.name != "criterion":  # other names are replaced first
                parameter.check(choice)
        if parameter.allowed.accepts is not None:
            with pytest.raises(ParameterError, match=f"^{parameter.name} must be"):
                parameter.check(object())


def test_criteria_of_algorithms_are_choices():
    names = {name for criteria in CRITERIA.values() for name in criteria}
    assert names == set(PARAMETERS["criterion"].allowed.choices)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_depth", "no limit"),
        ("criterion", "gain; cart: gini; cart --regression: variance"),
        ("missing", "branch; c4.5: split; cart: learned"),
        ("min_samples_leaf", "1; c4.5: 0"),
        ("min_samples_branch", "2"),
        ("pruning", "none; c4.5: error-based"),
        ("min_gain", "0"),
        ("priors", "as in the table"),
    ],
)
def test_defaults_in_words(name, text):
    assert default_text(PARAMETERS[name]) == text


@pytest.mark.parametrize(
    ("recipe", "given", "method"),
    [
        (ID3, {}, None),
        (ID3, {"ccp_alpha": 0.1}, None),
        (C45, {}, "error-based"),
        (C45, {"prune": False}, None),
        (C45, {"pruning": "reduced-error"}, "reduced-error"),
        (CART, {}, None),
        (CART, {"pruning": None, "ccp_alpha": 0.0}, None),
        (CART, {"pruning": None, "ccp_alpha": 0.1}, "cost-complexity"),
        (CART, {"ccp_alpha": "best"}, "cost-complexity"),
        (CART, {"pruning": "error-based", "ccp_alpha": 0.1}, "error-based"),
        # The command line writes no pruning as a word.
        (CART, {"pruning": "none", "ccp_alpha": 0.1}, "none"),
    ],
)
def test_pruning_of_parameters(recipe, given, method):
    assert pruning_of(recipe, given) == method
