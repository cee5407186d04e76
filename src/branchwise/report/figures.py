"""Charts of a report, drawn from sections of plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from branchwise.render.charts import (
    Series,
    axis,
    bar_chart,
    histogram,
    line_chart,
    matrix_chart,
    percent_figure,
    plain_figure,
    point_chart,
)
from branchwise.render.picture import CLASS_COLOURS, class_colours
from branchwise.shap.shap_figures import SHOWN_COLUMNS, Bars
from branchwise.text.label_words import Unit
from branchwise.text.words import rounded, word


def percent(share: float | None) -> str:
    """Write a share with one decimal; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:z.1f} %"  # noqa: RUF001


#: Scores below this would be 0 in three decimals.
_SMALL = 0.0005


def score(value: float | None) -> str:
    """Write a score; a dash where it is not known."""
    if value is None or math.isnan(value):
        return "–"  # noqa: RUF001
    if 0 < abs(value) < _SMALL:  # variances of small numbers
        return rounded(value, 3)
    return f"{value:z.3f}" if abs(value) < 10 else rounded(value, 5)


#: So many bars fit on a chart.
MOST_BARS = 20
_LARGEST_DOT, _SMALLEST_DOT = 8.0, 3.0


def balance_chart(target: dict[str, Any]) -> str:
    """Draw the class frequencies, the most frequent first."""
    colours = class_colours([one["rows"] for one in target["classes"]])
    coloured = zip(target["classes"], colours, strict=True)
    ranking = sorted(coloured, key=lambda pair: -pair[0]["rows"])[:MOST_BARS]
    classes = [one for one, _ in ranking]
    names = [word(one["class"]) for one in classes]
    shares = [one["share"] for one in classes]
    written = [f"{one['rows']:,}" for one in classes]
    told = "; ".join(f"{n}: {percent(s)}" for n, s in zip(names, shares, strict=True))
    scale = axis("share of the rows", [0, *shares], percent_figure, most=1)
    bars = [Series("", (), shares, colours=[colour for _, colour in ranking])]
    return bar_chart("Class balance", told, names, scale, bars, written)


def spread_chart(target: dict[str, Any], unit: Unit) -> str:
    """Draw the histogram of numbers; they are in their unit."""
    edges, counts = target["histogram"]["edges"], target["histogram"]["rows"]
    low, high, mean = (
        unit.behind(f"{number:g}") for number in (edges[0], edges[-1], target["mean"])
    )
    return histogram(
        f"Values of {word(target['name'])}",
        f"{sum(counts):,} rows between {low} and {high}, mean {mean}.",
        axis(unit.named(word(target["name"])), edges),
        axis("rows", [0, *counts]),
        edges,
        counts,
    )


def shap_chart(shap: dict[str, Any], unit: Unit) -> str:
    """Draw the mean size of Shapley values of each class, the largest first."""
    names = list(shap["mean_size"])
    sizes = np.array(list(shap["mean_size"].values()), dtype=np.float64)
    whole = sizes.reshape(len(names), -1).sum(axis=1)
    order = np.argsort(-whole, kind="stable").tolist()
    classes = [word(label) for label in shap["classes"]]
    shown = [word(name) for name in names]
    # A class has the same colour as in the tree; many share one there.
    several = 1 < len(classes) <= len(CLASS_COLOURS)
    colours = range(len(classes)) if several else ()
    bars = Bars.of(shown, sizes, order, classes, SHOWN_COLUMNS, unit)
    return bars.to_svg(colours)


def importance_charts(section: dict[str, Any]) -> tuple[str, str]:
    """Draw permutation importances on unseen rows, and impurity importances."""
    columns = ranked(section)[:MOST_BARS]
    names = [word(one["column"]) for one in columns]
    drops = [one["permutation"] for one in columns]
    low = [one["permutation"] - one["deviation"] for one in columns]
    high = [one["permutation"] + one["deviation"] for one in columns]
    told = _told(names, drops)
    shares = [one["impurity"] for one in columns]
    score = section["score"]
    number_format = percent_figure if score == "accuracy" else plain_figure
    first = bar_chart(
        f"Loss of {score} when a column is shuffled",
        told,
        names,
        axis(f"loss of {score}", [0, *low, *high], number_format),
        [Series("", (), drops, low, high)],
    )
    second = bar_chart(
        "Share of the impurity that splits on a column take away",
        _told(names, shares),
        names,
        axis("share of impurity taken away", [0, *shares], percent_figure, most=1),
        [Series("", (), shares)],
    )
    return first, second


def _told(names: Sequence[str], figures: Sequence[float]) -> str:
    pairs = zip(names[:5], figures[:5], strict=True)
    return "; ".join(f"{name}: {figure:.3f}" for name, figure in pairs)


def ranked(section: dict[str, Any]) -> list[dict[str, Any]]:
    """Sort the used columns by permutation importance."""
    used = [
        one
        for one in section["columns"]
        if one["permutation"] or one["impurity"] or one["deviation"]
    ]
    return sorted(used, key=lambda one: (-one["permutation"], -one["impurity"]))


def confusion_chart(section: dict[str, Any]) -> str:
    """Draw true against predicted classes."""
    counts = section["confusion_matrix"]
    right = sum(counts[at][at] for at in range(len(counts)))
    return matrix_chart(
        "Confusion matrix",
        f"{right:,} of {sum(map(sum, counts)):,} predictions are right; a row for "
        "each true class, a column for each predicted class.",
        [word(one["class"]) for one in section["classes"]],
        counts,
    )


def calibration_chart(section: dict[str, Any]) -> str:
    """Draw the share of right predictions against their probability."""
    bins = section["calibration"]
    most = max(row["rows"] for row in bins)
    sizes = [
        max(_SMALLEST_DOT, _LARGEST_DOT * math.sqrt(row["rows"] / most)) for row in bins
    ]
    mean_probability = [row["mean_probability"] for row in bins]
    low, high = [row["low"] for row in bins], [row["high"] for row in bins]
    right = [row["right"] for row in bins]
    least = min(*mean_probability, *low)
    told = "; ".join(
        f"predicted {percent(p)}, right {percent(k)}"
        for p, k in zip(mean_probability, right, strict=True)
    )
    shares = partial(axis, tick_format=percent_figure, least=0, most=1)
    start = shares("", [least, 1.0]).low
    return point_chart(
        "Calibration",
        told,
        shares("probability of the predicted class", [start, 1.0]),
        shares("share of predictions that are right", [start, 1.0]),
        Series("", mean_probability, right, low, high),
        [(start, start), (1.0, 1.0)],
        sizes,
    )


def residual_chart(section: dict[str, Any], target: str, unit: Unit) -> str:
    """Draw errors against predicted numbers; both are in their unit."""
    found = section["residuals"]
    xs, ys = found["predicted"], found["residual"]
    x = axis(unit.named(f"predicted {word(target)}"), xs)
    y = axis(unit.named("true minus predicted"), [0, *ys])
    low, high = (unit.behind(f"{end:g}") for end in (min(ys), max(ys)))
    return point_chart(
        "Residuals",
        f"{len(xs):,} rows; errors from {low} to {high}.",
        x,
        y,
        Series("", xs, ys),
        [(x.low, 0.0), (x.high, 0.0)],
    )


def pruning_chart(section: dict[str, Any]) -> str:
    """Draw errors against the size of the tree."""
    tested, trained, figures = _curves("leaves", section["trees"])
    shares = section["error"] == "share of errors"
    number_format, most = (percent_figure, 1) if shares else (plain_figure, None)
    best = section["best"]["leaves"]
    return line_chart(
        "Pruning curve",
        f"Errors by the number of leaves, from {int(max(tested.xs)):,} to "
        f"{int(min(tested.xs)):,}; fewest with {best:,} leaves.",
        axis("leaves", tested.xs, log=True),
        axis(section["error"], [0, *figures], number_format, least=0, most=most),
        [tested, trained],
        (float(best), f"fewest errors: {best:,} leaves"),
    )


def learning_chart(section: dict[str, Any]) -> str:
    """Draw scores against the number of training rows."""
    tested, trained, figures = _curves("rows", section["sizes"])
    if section["score"] == "accuracy":
        scale = axis("accuracy", figures, percent_figure, least=0, most=1)
    else:  # a single wild fold must not flatten all else
        scale = axis(section["score"], [max(v, -1.0) for v in figures], most=1)
        tested = _bounded(tested, scale.low)
    return line_chart(
        "Learning curve",
        f"From {int(tested.xs[0]):,} to {int(tested.xs[-1]):,} rows; "
        f"{section['score']} on rows not seen ends at {tested.ys[-1]:.3f}.",
        axis("rows to learn from", [0, *tested.xs]),
        scale,
        [tested, trained],
    )


def _curves(
    name: str, points: Sequence[dict[str, Any]]
) -> tuple[Series, Series, list[float]]:
    """Return the lines of unseen and of training rows, and all figures of both."""
    xs = [float(point[name]) for point in points]
    trained = Series(
        "training rows", xs, [point["training"] for point in points], dashed=True
    )
    tested = _tested("rows it has not seen", xs, [one["testing"] for one in points])
    return tested, trained, [*trained.ys, *tested.ys, *tested.low, *tested.high]


def _tested(name: str, xs: Sequence[float], found: Sequence[dict[str, Any]]) -> Series:
    means = [one["mean"] for one in found]
    if any(one["low"] is None for one in found):
        return Series(name, xs, means)
    low, high = [one["low"] for one in found], [one["high"] for one in found]
    # An error, or an accuracy, is never below 0.
    return Series(name, xs, means, [max(0.0, v) for v in low], high)


def _bounded(line: Series, low: float) -> Series:
    def raised(values: Sequence[float]) -> list[float]:
        return [max(value, low) for value in values]

    return Series(
        line.name, line.xs, raised(line.ys), raised(line.low), raised(line.high)
    )
