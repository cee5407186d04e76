"""Verbs that grow trees take the growing options of ``branchwise fit``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from branchwise.cli.algorithms import given_recipe
from branchwise.cli.costs import read_costs
from branchwise.cli.engines import ENGINE_OPTIONS
from branchwise.cli.fit import fit, growing_options, roles_of
from branchwise.cli.growing import Algorithm
from branchwise.cli.training import Roles, case_weights, named_numbers
from branchwise.table.labels import learn_target
from branchwise.table.read import TableFile
from branchwise.table.schema import Value

#: Options that are no parameters of the tree, or that every verb words by itself.
_OWN = {
    "table_paths",
    "target",
    "output",
    "algorithm",
    "regression",
    "form",
    "quiet",
    "n_jobs",
    "validation",
    "reading",
    *ENGINE_OPTIONS,
}
#: What the columns are is not a parameter of the tree either, but is passed on.
OF_COLUMNS = ("categorical", "numeric", "ignore", "missing", "categories", "weight")


@dataclass(frozen=True)
class Growth:
    """What was said about growing trees and about reading the table."""

    options: Mapping[str, Any]

    def of_columns(self, name: str) -> Any:
        """Return an option that says what the columns are."""
        return self.options[name]

    def roles(self, file: TableFile, target: str, regression: bool) -> Roles:
        """Find out what every column is for."""
        named = {"target": target, "regression": regression}
        return roles_of(file, {**self.options, **named})

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that were given, by the names of the estimators."""
        return growing_options({"validation": None, **self.options})

    def check(self, algorithm: Algorithm, regression: bool) -> None:
        """Refuse options that the algorithm does not know."""
        given_recipe(algorithm, regression, self.given)

    def parameters(self, labels: Any) -> dict[str, Any]:
        """Return parameters for the estimators, classes by their names.

        Parameters
        ----------
        labels : pyarrow column
            The target, which tells the classes.
        """
        given = self.given
        weight, priors = given.get("class_weight"), given.get("priors")
        if weight is not None and weight != "balanced":
            what = "'balanced' or classes with weights, such as yes=2,no=1"
            given["class_weight"] = _by_class("--class-weight", weight, labels, what)
        if priors is not None:
            what = "every class with its share, such as yes=0.1,no=0.9"
            given["priors"] = _by_class("--priors", priors, labels, what)
        if "costs" in given:
            given["costs"] = read_costs(given["costs"], labels)
        return given

    def weights(self, table: Any, file: TableFile) -> Any:
        """Return the weights of the rows, or None."""
        return case_weights(table, self.options["weight"], file)


def _by_class(option: str, text: str, labels: Any, what: str) -> dict[Value, float]:
    classes, _ = learn_target(labels)
    named = named_numbers(option, text, classes, what)
    return {label: named[str(label)] for label in classes if str(label) in named}


def takes_growing_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Add the growing and reading options of ``branchwise fit`` to a verb.

    The verb gets them as ``growth``, a :class:`Growth`.
    """
    own = _parameters(verb, {"growth"})
    shared = _parameters(fit, _OWN)
    names = {parameter.name for parameter in shared}

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        growth = Growth({name: options[name] for name in names})
        rest = {name: value for name, value in options.items() if name not in names}
        verb(**rest, growth=growth)

    run.__signature__ = inspect.Signature(own + shared)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in own + shared}
    del run.__wrapped__
    return run


def _parameters(
    verb: Callable[..., None], without: set[str]
) -> list[inspect.Parameter]:
    """Return the parameters of a verb, to be given by name."""
    return [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(verb, eval_str=True).parameters.items()
        if name not in without
    ]
