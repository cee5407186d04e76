"""Smaller cases that still show the same problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fit_cases import Case

Shows = Callable[[Case], bool]


def shrunk(case: Case, shows: Shows, seconds: float) -> Case:
    """Take away rows, columns, parameters and weights while the problem stays."""
    deadline = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < deadline:
        smaller = False
        for candidate in _candidates(case):
            if time.monotonic() > deadline:
                break
            if shows(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    """Yield cases that are a little smaller, the smallest first."""
    yield from _fewer_rows(case)
    for name in case.parameters:
        yield case.without(name)
    if len(case.columns) > 1:
        for name in case.columns:
            yield _without_column(case, name)
    if case.weights is not None:
        yield replace(case, weights=None)
        ones = [min(w, 1.0) for w in case.weights]
        if ones != case.weights:
            yield replace(case, weights=ones)


def _fewer_rows(case: Case) -> Iterator[Case]:
    """Yield cases without some of the rows, to learn from or to predict."""
    size = case.n_rows // 2
    while size >= 1:
        for start in range(0, case.n_rows, size):
            rows = [*range(start), *range(start + size, case.n_rows)]
            if rows:
                yield case.take(rows)
        size //= 2
    n_others = len(next(iter(case.others.values()), []))
    if n_others > 1:
        for some in (slice(n_others // 2), slice(n_others // 2, None)):
            others = {name: cells[some] for name, cells in case.others.items()}
            yield replace(case, others=others)


def _without_column(case: Case, name: str) -> Case:
    parameters = dict(case.parameters)
    categories = dict(parameters.get("categories", {}))
    if categories.pop(name, None):
        parameters["categories"] = categories
    if parameters.get("categories") == {}:
        del parameters["categories"]
    columns = {n: cells for n, cells in case.columns.items() if n != name}
    others = {n: cells for n, cells in case.others.items() if n != name}
    return replace(case, parameters=parameters, columns=columns, others=others)
