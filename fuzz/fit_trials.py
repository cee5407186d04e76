"""Fitting a case in some way, and comparing what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

import branchwise
from branchwise import BranchwiseError, Model
from branchwise import native as extension
from fit_cases import Case

#: Names of the target and of the weights where they are columns of the table.
TARGET, WEIGHT = "the target", "the weight"


class InvariantError(AssertionError):
    """An invariant that does not hold."""


class Refusal(str):
    """What a refused fit said."""

    __slots__ = ("kind",)

    def __new__(cls, error: BranchwiseError) -> Self:
        """Keep the message and the class of an error."""
        made = super().__new__(cls, error)
        made.kind = type(error).__name__
        return made


Outcome = Model | Refusal


@contextmanager
def kernel(name: str) -> Iterator[None]:
    """Force a kernel."""
    before = os.environ.get(extension.VARIABLE)
    os.environ[extension.VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[extension.VARIABLE]
        else:
            os.environ[extension.VARIABLE] = before


def fitted(case: Case, table: Any = None, **changes: Any) -> Outcome:
    """Fit the estimator to the table of the case, or to another one that means it."""
    estimator = getattr(branchwise, case.estimator)
    X = case.columns if table is None else table
    try:
        made = estimator(**(case.parameters | changes))
        return made.fit(X, case.y, sample_weight=case.weights).model_
    except BranchwiseError as error:
        return Refusal(error)


def fitted_by_name(case: Case, table: Any) -> Outcome:
    """Fit the estimator to a table or source that has target and weights as columns."""
    estimator = getattr(branchwise, case.estimator)
    weight = None if case.weights is None else WEIGHT
    try:
        made = estimator(**case.parameters)
        return made.fit(table, TARGET, sample_weight=weight).model_
    except BranchwiseError as error:
        return Refusal(error)


def named_table(case: Case) -> dict[str, list[Any]]:
    """Return the columns of a case with its target and weights among them."""
    weights = {} if case.weights is None else {WEIGHT: case.weights}
    return {**case.columns, TARGET: case.y, **weights}


def fail_unless(holds: object, message: str) -> None:
    """Fail with a message."""
    if not holds:
        raise InvariantError(message)


def same_model(expected: Outcome, got: Outcome, what: str) -> None:
    """Fail unless both are the same model to the byte, or refused in the same way."""
    if isinstance(expected, Refusal) or isinstance(got, Refusal):
        kinds = [getattr(o, "kind", "a model") for o in (expected, got)]
        fail_unless(
            kinds[0] == kinds[1],
            f"{what}: {kinds[0]} against {kinds[1]}: {_said(expected)} | {_said(got)}",
        )
        return
    one, other = _plain_bytes(expected), _plain_bytes(got)
    if one != other:
        raise InvariantError(f"{what}: {_first_difference(one, other)}")


def _plain_bytes(model: Any) -> bytes:
    """Return a model's bytes without how its file was read, which only files have."""
    schema = replace(model.schema, na_values=None)
    plain: bytes = model.with_schema(schema).to_bytes()
    return plain


def same_tree(expected: Outcome, got: Outcome, what: str, *but: str) -> None:
    """Fail unless both have the same tree but for some arrays."""
    if isinstance(expected, Refusal) or isinstance(got, Refusal):
        same_model(expected, got, what)
        return
    arrays, others = (
        [spec.name for spec in outcome.tree.arrays if spec.name not in but]
        for outcome in (expected, got)
    )
    fail_unless(arrays == others, f"{what}: other arrays")
    for name in arrays:
        one, other = getattr(expected.tree, name), getattr(got.tree, name)
        same_bits(one, other, f"{what}: array {name}")


def same_bits(expected: Any, got: Any, what: str) -> None:
    """Fail unless two arrays have the same shape and the same bits."""
    one, other = np.asarray(expected), np.asarray(got)
    equal = one.shape == other.shape and (
        one.tobytes() == other.tobytes()
        if one.dtype == other.dtype and one.dtype.kind in "fiub"
        else one.tolist() == other.tolist()
    )
    fail_unless(
        equal, f"{what}: {_short(one.tolist())} against {_short(other.tolist())}"
    )


def _said(outcome: Outcome) -> str:
    return _short(str(outcome)) if isinstance(outcome, Refusal) else "a model"


def _short(thing: object) -> str:
    text = str(thing)
    return text if len(text) < 300 else text[:300] + " ..."


def _first_difference(one: bytes, other: bytes) -> str:
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    for mine, further in lines:
        if mine != further:
            at = next(
                (
                    i
                    for i, (a, b) in enumerate(zip(mine, further, strict=False))
                    if a != b
                ),
                min(len(mine), len(further)),
            )
            start = max(0, at - 60)
            parts = (
                line[start : at + 60].decode("utf-8", "replace")
                for line in (mine, further)
            )
            return f"{mine[:20].decode('utf-8', 'replace')}: " + " | ".join(parts)
    return "one is longer"
