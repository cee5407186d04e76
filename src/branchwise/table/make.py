"""Columns -> a dataframe of whichever library the user has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, cast

import narwhals as nw

from branchwise.errors import ParameterError

#: The libraries that a dataframe can be of; the first that is there is the default.
LIBRARIES = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]], library: str | None = None) -> Any:
    """Make a dataframe of columns of equal length.

    Parameters
    ----------
    columns : dict of str to list
        The columns; None is a missing value.
    library : {"pandas", "polars", "pyarrow"} or None
        The library that the dataframe is of; None is the first that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
    """
    allowed = ", ".join(repr(name) for name in LIBRARIES)
    if library is not None and library not in LIBRARIES:
        raise ParameterError(
            f"library must be {allowed} or None, which is the first of them that is "
            f"installed. Got {library!r} instead."
        )
    wanted = LIBRARIES if library is None else (library,)
    present = [name for name in wanted if find_spec(name) is not None]
    if not present:
        raise ParameterError(
            f"library must be installed to make its dataframes: {' or '.join(wanted)} "
            f"is not. Run pip install {wanted[0]}, or name another of {allowed}."
        )
    backend = cast("Literal['pandas', 'polars', 'pyarrow']", present[0])
    return nw.from_dict(dict(columns), backend=backend).to_native()
