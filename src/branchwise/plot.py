"""Drawings with matplotlib, which comes with the extra ``branchwise[plot]``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from branchwise.ensemble.out_of_bag import OutOfBag
from branchwise.errors import ParameterError
from branchwise.evaluation.plots import (
    LearningCurveDisplay,
    SearchDisplay,
    new_axes,
    plot_learning_curve,
    plot_search,
)
from branchwise.model import Model
from branchwise.render import scene as layout
from branchwise.render.picture import CLASS_COLOURS, NUMBER_COLOUR, drawing, mixed
from branchwise.render.scene import Scene, scene
from branchwise.shap.shap_figures import SHOWN_COLUMNS, Bars
from branchwise.shap.shap_values import ShapValues
from branchwise.text import PICTURED_VALUES
from branchwise.train.prune_model import PruningTable

__all__ = [
    "LearningCurveDisplay",
    "SearchDisplay",
    "plot_forest_error",
    "plot_learning_curve",
    "plot_pruning_path",
    "plot_search",
    "plot_shap",
    "plot_tree",
]

#: From so many leaves on, sizes are drawn on a logarithmic scale.
_MANY_LEAVES = 50
#: Pixels of a scene in an inch of a new figure, and its longest side in inches.
_PER_INCH, _LONGEST = 90.0, 40.0
_POINTS_PER_INCH = 72.0
_INK, _FAINT, _LINE, _EDGE, _BOX = "#1b2430", "#5a6572", "#b9c2cc", "#ccd3da", "#f4f6f8"
#: Values that raise the prediction, and those that lower it.
_UP, _DOWN = "#0072b2", "#d55e00"
_TRACK, _WHITE, _TINT = "#dfe4e9", "#ffffff", 0.14


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
    ax = new_axes() if ax is None else ax
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


def plot_forest_error(forest: Any, ax: Any = None) -> Any:
    """Draw the out-of-bag error of a forest against the number of its trees.

    Parameters
    ----------
    forest : fitted estimator, Ensemble or OutOfBag
        A forest, or what its :meth:`out_of_bag` returns.
    ax : matplotlib axes or None
        Where to draw; by default on a figure of its own.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    if not isinstance(forest, OutOfBag):
        if not hasattr(forest, "out_of_bag"):
            raise ParameterError(
                "plot_forest_error draws a fitted forest or what its out_of_bag() "
                f"returns. Got {type(forest).__name__} instead."
            )
        forest = forest.out_of_bag()
    errors = forest.error_by_trees
    ax = new_axes() if ax is None else ax
    ax.plot(range(1, len(errors) + 1), errors)
    ax.set_xlabel("trees")
    squared = forest.ensemble.is_regression
    ax.set_ylabel(f"out-of-bag {'mean squared error' if squared else 'error rate'}")
    ax.set_ylim(bottom=0.0)
    return ax


def plot_shap(
    values: ShapValues, ax: Any = None, max_columns: int = SHOWN_COLUMNS
) -> Any:
    """Draw Shapley values: of one row a waterfall, of several rows bars.

    Parameters
    ----------
    values : ShapValues
        What :meth:`Model.shap` returns, or some rows of it, or of a class:
        ``values[3]``, ``values[:, "yes"]``.
    ax : matplotlib axes or None
        Where to draw; by default on a figure of its own.
    max_columns : int
        How many columns to draw; the others together are one more bar.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    if not isinstance(values, ShapValues):
        raise ParameterError(
            "plot_shap draws what a model's shap() returns. Got "
            f"{type(values).__name__} instead."
        )
    figure = values.figure(max_columns)
    n = len(figure.names)
    ax = new_axes((6.4, 1.2 + 0.35 * max(n, 2))) if ax is None else ax
    if isinstance(figure, Bars):
        thick = 0.8 / len(figure.series)
        for k, name in enumerate(figure.series):
            middles = [at + (k + 0.5) * thick - 0.4 for at in range(n)]
            ax.barh(middles, figure.sizes[:, k], thick, label=name)
        ax.set_xlabel(_plain_text(figure.label))
        if len(figure.series) > 1:
            ax.legend()
    else:
        for at, (start, end) in enumerate(figure.steps):
            colour = _UP if end >= start else _DOWN
            ax.barh(at, end - start, left=start, color=colour)
        for at, text in enumerate(figure.written()):
            ax.annotate(
                _plain_text(text),
                (max(figure.steps[at]), at),
                (4, 0),
                textcoords="offset points",
                va="center",
            )
        ax.axvline(figure.base, color=_LINE, linestyle="--")
        ax.use_sticky_edges = False
        ax.margins(x=0.15)
        ends = " to ".join(figure.ends())
        ax.set_xlabel(_plain_text(f"{figure.label}: {ends}"))
    ax.set_yticks(range(n), [_plain_text(name) for name in figure.names])
    ax.invert_yaxis()
    return ax


def _plain_text(text: str) -> str:
    """Write a text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def plot_tree(
    model: Any,
    ax: Any = None,
    max_depth: int | None = None,
    max_nodes: int | None = None,
    max_values: int = PICTURED_VALUES,
    legend: bool = True,
) -> Any:
    """Draw a tree as :meth:`Model.to_svg` does; the words always fit their boxes.

    Parameters
    ----------
    model : Model or fitted estimator
        What to draw.
    ax : matplotlib axes or None
        Where to draw; by default on a figure of its own, as large as the tree needs.
    max_depth, max_nodes, max_values : int or None
        How many levels of splits, nodes and values of a list to show, as in
        :meth:`Model.to_svg`.
    legend : bool
        Whether to tell which colour is which class.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    view = _model(model).view(max_values)
    picture = scene(drawing(view, max_depth, max_nodes))
    width, height = picture.size
    if ax is None:
        scale = min(1.0 / _PER_INCH, _LONGEST / max(width, height))
        ax = new_axes((max(width * scale, 3.0), max(height * scale, 2.0)))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-1.0, width + 1.0)
    ax.set_ylim(height + 1.0, -1.0)
    for artist in _artists(picture):
        ax.add_artist(artist)
    if legend and view["classes"]:
        _add_legend(picture, ax)
    return ax


def _model(given: Any) -> Model:
    if isinstance(given, Model):
        return given
    model = getattr(given, "model_", None)
    if isinstance(model, Model):
        return model
    unfit = "that is not fitted yet; call its fit first."
    raise ParameterError(
        f"plot_tree draws a model or a fitted estimator. Got {type(given).__name__} "
        f"{unfit if hasattr(given, 'fit') else 'instead.'}"
    )


def _artists(picture: Scene) -> Iterator[Any]:
    """Yield the parts of a picture: few collections, and the words."""
    from matplotlib.collections import PatchCollection, PathCollection  # noqa: PLC0415

    every = range(len(picture.drawing))
    left_out = picture.drawing.left_out
    dashes = ["--" if out else "-" for out in left_out[1:]]
    # In points, which do not grow with the axes.
    widths = [1.0 if left_out[i] else picture.edge_width(i) / 2 for i in every[1:]]
    yield PathCollection(
        [_curve(picture, index) for index in every[1:]],
        facecolors="none",
        edgecolors=_EDGE,
        linewidths=widths,
        linestyles=dashes,
        zorder=1,
    )
    boxes = [_box(picture, index) for index in every]
    yield PatchCollection(boxes, match_original=True, zorder=2)
    bars = [bar for index in every for bar in _bars(picture, index)]
    yield PatchCollection(bars, match_original=True, zorder=3)
    fitted = _fitted_text()
    for index in every:
        for x, y, text, size, style in _texts(picture, index):
            yield fitted(x, y, text, size, style)


def _curve(picture: Scene, index: int) -> Any:
    from matplotlib.path import Path  # noqa: PLC0415

    x, y, end_x, end_y = picture.edge(index)
    middle = (y + end_y) / 2
    points = [(x, y), (x, middle), (end_x, middle), (end_x, end_y)]
    return Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])


def _box(picture: Scene, index: int) -> Any:
    from matplotlib.patches import BoxStyle, FancyBboxPatch  # noqa: PLC0415

    tree = picture.drawing
    width, height = picture.width[index], picture.height[index]
    line, fill, stroke = _LINE, _BOX, 0.8
    if tree.is_leaf(index):
        line, tint, stroke = NUMBER_COLOUR, _TINT, 1.2
        if picture.scale is None:
            line = CLASS_COLOURS[picture.colour_of[tree.get("label", index)]]
        else:
            tint = 0.05 + 0.3 * picture.strength(tree.get("mean", index))
        fill = mixed(line, _WHITE, tint)
    return FancyBboxPatch(
        (picture.x[index] - width / 2, picture.y[index]),
        width,
        height,
        boxstyle=BoxStyle("Round", pad=0.0, rounding_size=min(8.0, height / 2)),
        facecolor=fill,
        edgecolor=line,
        linewidth=stroke,
        linestyle="--" if tree.left_out[index] else "-",
    )


def _bars(picture: Scene, index: int) -> Iterator[Any]:
    """Yield the rectangles of a node's bar."""
    if picture.drawing.left_out[index]:
        return
    left = picture.x[index] - picture.width[index] / 2
    top, thick = picture.y[index] + layout.BAR_TOP, layout.BAR_HEIGHT
    space = picture.bar_width(index)
    if picture.scale is None:
        yield _bar(left + layout.PADDING, top, space, thick, _TRACK)
        for x, width, colour in picture.segments(index):
            yield _bar(left + x, top, width, thick, CLASS_COLOURS[colour])
        return
    low, mean, high = picture.spread(index)
    middle = top + thick / 2
    band = mixed(NUMBER_COLOUR, _WHITE, 0.55)
    yield _bar(left + layout.PADDING, middle - 1.5, space, 3.0, _TRACK)
    yield _bar(left + low, middle - 2.5, high - low, 5.0, band)
    yield _bar(left + mean - 1.5, top - 1.0, 3.0, thick + 2.0, _INK)


def _bar(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    return Rectangle((x, y), width, height, facecolor=colour, linewidth=0)


def _texts(
    picture: Scene, index: int
) -> Iterator[tuple[float, float, str, float, dict[str, str]]]:
    """Yield the words of a node: where, what, how large, and how."""
    x, y = picture.x[index], picture.y[index]
    if picture.drawing.left_out[index]:
        yield x, y + 16.0, picture.head[index], layout.NOTE, {"color": _FAINT}
        return
    bold = {"color": _INK, "fontweight": "bold"}
    yield x, y + layout.HEAD_LINE, picture.head[index], layout.HEAD, bold
    yield x, y + layout.NOTE_LINE, picture.note[index], layout.NOTE, {"color": _FAINT}
    if label := picture.label[index]:
        above = y + layout.LABEL_LINE - layout.LABEL_SPACE
        yield x, above, label, layout.LABEL, {"color": _INK}


def _fitted_text() -> Any:
    """Return a kind of text whose size is a length of its axes, however large."""
    from matplotlib.text import Text  # noqa: PLC0415

    class FittedText(Text):  # type: ignore[misc]
        def __init__(
            self, x: float, y: float, text: str, length: float, style: dict[str, str]
        ) -> None:
            super().__init__(
                x, y, text, ha="center", va="baseline", parse_math=False, **style
            )
            self.length = length

        def _fit(self) -> None:
            (_, bottom), (_, top) = self.axes.transData.transform([(0, 0), (0, 1)])
            dots = abs(top - bottom) * self.length
            size = dots * _POINTS_PER_INCH / self.figure.dpi
            if math.isfinite(size) and size > 0:
                self.set_fontsize(size)

        def get_window_extent(self, *args: Any, **options: Any) -> Any:
            self._fit()
            return super().get_window_extent(*args, **options)

        def draw(self, renderer: Any) -> None:
            self._fit()
            super().draw(renderer)

    return FittedText


def _add_legend(picture: Scene, ax: Any) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    named = list(picture.class_names())
    legend = ax.legend(
        handles=[Patch(color=CLASS_COLOURS[colour]) for colour, _ in named],
        labels=[str(colour) for colour, _ in named],
        title=" ",
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(len(named), 6),
        frameon=False,
        fontsize="small",
    )
    names = [picture.drawing.view["target"], *(name for _, name in named)]
    # Put in afterwards: as labels, those that begin with _ would be left out.
    for text, name in zip(
        [legend.get_title(), *legend.get_texts()], names, strict=True
    ):
        text.set_parse_math(False)
        text.set_text(name)
