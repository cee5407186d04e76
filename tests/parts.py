"""Long tests in parts, of which `make test` runs the first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_fast(parts: Iterable[Any], n_fast: int = 1) -> list[Any]:
    """Return parts of a long test as parameters; all but the first ones are slow."""
    return [
        pytest.param(part, marks=() if number < n_fast else pytest.mark.slow)
        for number, part in enumerate(parts)
    ]
