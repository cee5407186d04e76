"""Figures to draw on, where matplotlib is there."""

from __future__ import annotations

from typing import Any

from branchwise.errors import BranchwiseError


def require_matplotlib() -> Any:
    """Return matplotlib's figures, or tell how to get them."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise BranchwiseError(
            "Drawing needs matplotlib. Install it with: pip install 'branchwise[plot]'"
        ) from None
    return plt


def new_axes(size: tuple[float, float] | None = None) -> Any:
    """Return the axes of a new figure, of a size in inches if one is given."""
    plt = require_matplotlib()
    if size is None:
        return plt.subplots()[1]
    return plt.subplots(figsize=size, layout="constrained")[1]


def axes_for(count: int) -> list[Any]:
    """Return so many axes of a new figure, at most three side by side."""
    plt = require_matplotlib()
    columns = min(count, 3)
    rows = -(-count // columns)
    size = (4.5 * columns, 3.5 * rows)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=size,
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    every: list[Any] = axes.ravel().tolist()
    for spare in every[count:]:
        figure.delaxes(spare)
    return every[:count]
