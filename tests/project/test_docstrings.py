"""Docstrings of what is public: every parameter and every fitted attribute."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import branchwise
from branchwise import datasets, evaluation

#: Sections of numpydoc begin with a title that is underlined.
SECTION = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)
ESTIMATORS = [
    getattr(branchwise, name)
    for name in branchwise.__all__
    if name.endswith(("Classifier", "Regressor", "BaggedTrees"))
]


def section(documented: Any, title: str) -> dict[str, str]:
    """Return what a section of a docstring says of each name."""
    pieces = SECTION.split(inspect.getdoc(documented) or "")
    body = dict(zip(pieces[1::2], pieces[2::2], strict=True)).get(title, "")
    found = {}
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = entry.partition("\n")
        for name in head.split(" : ")[0].split(","):
            found[name.strip(" *")] = text
    return found


def public() -> Iterator[Any]:
    """Yield the functions and classes that users import."""
    yield pytest.param(datasets.load, id="datasets.load")
    for package in (branchwise, evaluation):
        for name in package.__all__:
            member = getattr(package, name)
            if inspect.isclass(member) or inspect.isfunction(member):
                yield pytest.param(member, id=name)


@pytest.mark.parametrize("member", list(public()))
def test_every_parameter_is_explained(member: Any) -> None:
    assert inspect.getdoc(member)
    error = inspect.isclass(member) and issubclass(member, Warning | Exception)
    if error and "__init__" not in vars(member):  # as Python's own
        return
    names = [
        name
        for name in inspect.signature(member).parameters
        if name not in ("args", "kwargs")
    ]
    explained = {**section(member, "Attributes"), **section(member, "Parameters")}
    assert [name for name in names if not explained.get(name, "").strip()] == []


#: What methods of models and of estimators return, by module.
RETURNED = {
    "engines.table_check": ["TableCheck"],
    "ensemble.ensemble": ["Ensemble"],
    "explain.diff": ["ModelDiff"],
    "explain.explanation": ["Explanation", "Explanations"],
    "explain.what_if": ["WhatIf"],
    "rules.rule_list": ["RuleList"],
    "rules.rule_set": ["Rules"],
    "shap.shap_values": ["ShapValues"],
    "steps.result": ["Steps"],
    "train.prune_model": ["PruningTable"],
}


def functions() -> dict[str, Any]:
    """Return the public functions, and the methods of public classes, by name."""
    members = [member.values[0] for member in public()]
    for module, names in RETURNED.items():
        returned = import_module(f"branchwise.{module}")
        members += [getattr(returned, name) for name in names]
    found = {}
    for member in members:
        own = [member]
        if inspect.isclass(member):
            names = [name for name in dir(member) if not name.startswith("_")]
            own = [inspect.getattr_static(member, name) for name in names]
        for each in own:
            function = getattr(each, "__func__", each)  # of class methods
            if inspect.isfunction(function) and "branchwise" in function.__module__:
                found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


def test_parameters_and_results_of_methods_are_explained() -> None:
    lacking = []
    checked = functions()
    for name, function in checked.items():
        signature = inspect.signature(function)
        names = [each for each in signature.parameters if each not in ("self", "cls")]
        explained = section(function, "Parameters")
        lacking += [
            f"{name}: {each}" for each in names if not explained.get(each, "").strip()
        ]
        sections = SECTION.findall(inspect.getdoc(function) or "")
        returns = signature.return_annotation not in (None, "None")
        if names and returns and not {"Returns", "Yields"} & set(sections):
            lacking.append(f"{name}: what it returns")
    assert lacking == []
    assert len(checked) > 150


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_are_those_of_the_signature(estimator: Any) -> None:
    explained = section(estimator, "Parameters")
    assert set(explained) == set(inspect.signature(estimator).parameters)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_fitted_attribute_is_explained(estimator: Any) -> None:
    options = {"n_estimators": 2} if "n_estimators" in vars(estimator()) else {}
    if "oob_score" in vars(estimator()):
        options["oob_score"] = True
    X = {"size": ["s", "m", "l", "s", "m", "l"] * 4}
    y = [1, 2, 3, 1, 2, 4] * 4
    fitted = estimator(**options).fit(X, y)
    names = {
        name
        for name in dir(fitted)
        if re.fullmatch(r"[a-z]\w*[a-z]_", name) and hasattr(fitted, name)
    }
    explained = section(estimator, "Attributes")
    assert names <= set(explained)
    assert "model_" in names
    assert "Examples" in (inspect.getdoc(estimator) or "")
