"""Drawings with matplotlib, which comes with the extra ``branchwise[plot]``."""

from __future__ import annotations

from typing import Any

from branchwise.errors import BranchwiseError, ParameterError
from branchwise.model import Model
from branchwise.pruning import PruningTable

#: From so many leaves on, sizes are drawn on a logarithmic scale.
_MANY_LEAVES = 50


def plot_pruning_path(
    table_or_model: PruningTable | Model,
    X: object = None,
    y: object = None,
    ax: Any = None,
) -> Any:
    """Draw the errors of the trees of cost-complexity pruning against their sizes.

    Parameters
    ----------
    table_or_model : PruningTable or Model
        What :meth:`Model.pruning_path` returns, or the model itself.
    X, y : table and sequence, or None
        Rows to validate a model with.
    ax : matplotlib axes or None
        Where to draw; by default on a figure of its own.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    if isinstance(table_or_model, Model):
        table = table_or_model.pruning_path(X, y)
    elif isinstance(table_or_model, PruningTable):
        table = table_or_model
        if X is not None or y is not None:
            raise ParameterError(
                "X and y have no effect with a table. Pass the model, or pass them to "
                "its pruning_path()."
            )
    else:
        raise ParameterError(
            "plot_pruning_path draws a model or what its pruning_path() returns. Got "
            f"{type(table_or_model).__name__} instead."
        )
    ax = _new_axes() if ax is None else ax
    ax.plot(table.n_leaves, table.train_error, drawstyle="steps-post", label="training")
    if table.validation_error is not None:
        ax.plot(
            table.n_leaves,
            table.validation_error,
            drawstyle="steps-post",
            label="validation",
        )
        least = table.validation_error.min()
        best = int((table.validation_error == least).nonzero()[0][-1])
        ax.plot(
            table.n_leaves[best],
            table.validation_error[best],
            "o",
            label=f"best: {table.n_leaves[best]:,} leaves",
        )
    if table.n_leaves[0] > _MANY_LEAVES:
        ax.set_xscale("log")
    ax.set_xlabel("leaves")
    ax.set_ylabel("error")
    ax.legend()
    return ax


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise BranchwiseError(
            "Drawing needs matplotlib. Install it with: pip install 'branchwise[plot]'"
        ) from None
    return plt.subplots()[1]
