"""Loading of the compiled extension, and conversion of arrays for it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import BranchwiseWarning, ParameterError

#: Environment variable that forces a kernel: "reference" or "native".
VARIABLE = "BRANCHWISE_KERNEL"


@cache
def extension() -> Any:
    """Return the extension module, or None where it is not installed."""
    try:
        return import_module("branchwise._native")
    except ImportError:
        return None


def available() -> bool:
    """Whether the compiled extension is installed and not turned off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "reference", "native"):
        raise ParameterError(
            f"{VARIABLE} must be 'reference' or 'native'. Got {wanted!r} instead."
        )
    if wanted == "reference":
        return False
    if extension() is None:
        if wanted == "native":
            raise ParameterError(
                f"{VARIABLE}=native, but branchwise was installed without its "
                "compiled extension. Install it again with a C++ compiler at hand."
            )
        _say_once()
        return False
    return True


@cache
def _say_once() -> None:
    warnings.warn(
        "branchwise was installed without its compiled extension: trees are the same, "
        "but growing them takes longer. Install it again with a C++ compiler at hand.",
        BranchwiseWarning,
        stacklevel=2,
    )


class KeptMemory:
    """Memory that the trees of a forest are grown in, one after the other."""

    def __init__(self) -> None:
        self._free: list[Any] = []

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let what this thread grows have memory of the trees before."""
        if not available():
            yield
            return
        try:
            memory = self._free.pop()
        except IndexError:  # other threads have what there is
            memory = extension().KeptMemory()
        with memory:
            yield
        self._free.append(memory)


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as the extension reads it: contiguous and aligned."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and type(array) is np.ndarray:
        return array  # what np.require would return, after a while
    return np.require(array, requirements=["C", "A"])


def plain_arrays(arrays: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return arrays as the extension reads them."""
    return [plain_array(array) for array in arrays]


def optional_array(array: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return an array as the extension reads it; None stays None."""
    return None if array is None else plain_array(array)
