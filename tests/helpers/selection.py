"""Long tests in parts, of which `make test` runs the first."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

#: Set where the slow tests run, too: see conftest.py.
ALL_TESTS = "BRANCHWISE_ALL_TESTS"


def examples(number: int) -> int:
    """Return how many examples are made up: a fifth, unless all tests run."""
    return number if os.environ.get(ALL_TESTS) else max(number // 5, 1)


def first_fast(parts: Iterable[Any], n_fast: int = 1) -> list[Any]:
    """Return parts of a long test as parameters; all but the first ones are slow."""
    return [
        pytest.param(part, marks=() if number < n_fast else pytest.mark.slow)
        for number, part in enumerate(parts)
    ]
