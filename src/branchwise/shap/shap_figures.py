"""Bars and waterfalls of Shapley values, and their SVG; ``plot`` draws them, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.errors import counted
from branchwise.render.charts import Series, axis, bar_chart, waterfall_chart
from branchwise.text.words import rounded

#: Columns that are drawn before the rest is one bar.
SHOWN_COLUMNS = 10
_DIGITS = 4


def size(value: float) -> str:
    """Write a value."""
    return rounded(value, _DIGITS)


def signed(value: float) -> str:
    """Write a contribution with its sign."""
    return f"{'+' if value > 0 else ''}{size(value)}"


@dataclass(frozen=True)
class Bars:
    """The mean size of the values of columns: a series for each class, or one."""

    names: tuple[str, ...]
    series: tuple[str, ...]
    sizes: Floats
    label: str

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        sizes: Floats,
        order: Sequence[int],
        classes: Sequence[str],
        max_columns: int,
    ) -> Bars:
        """Take the largest columns in order; the others together are the last bar."""
        first, rest = list(order[:max_columns]), list(order[max_columns:])
        by_class = sizes.reshape(len(names), -1)
        shown, listed = by_class[first], [names[at] for at in first]
        if rest:
            shown = np.vstack([shown, by_class[rest].sum(axis=0)])
            listed.append(counted(len(rest), "other column"))
        label = "mean size of Shapley values"
        return cls(tuple(listed), tuple(classes) or ("",), shown, label)

    def to_svg(self, colours: Sequence[int] = ()) -> str:
        """Draw horizontal bars; on pages that have them, in the colours of classes."""
        series = [
            Series(
                name,
                range(len(self.names)),
                self.sizes[:, k].tolist(),
                colours=colours[k : k + 1],
            )
            for k, name in enumerate(self.series)
        ]
        written = [size(v) for v in self.sizes[:, 0]] if len(series) == 1 else []
        told = ", ".join(
            f"{name} {', '.join(map(size, line))}"
            for name, line in zip(self.names, self.sizes.tolist(), strict=True)
        )
        scale = axis(self.label, [0.0, float(self.sizes.max(initial=0.0))], least=0.0)
        return bar_chart(
            "Shapley values of columns", told, self.names, scale, series, written
        )


@dataclass(frozen=True)
class Waterfall:
    """From the base value to the prediction, column by column, the largest first."""

    names: tuple[str, ...]
    steps: tuple[tuple[float, float], ...]
    base: float
    prediction: float
    label: str

    @classmethod
    def of(
        cls,
        named: Sequence[tuple[str, float]],
        base: float,
        prediction: float,
        label: str,
        max_columns: int,
    ) -> Waterfall:
        """Take the first columns; the others together are the last step."""
        shown = list(named[:max_columns])
        rest = [value for _, value in named[max_columns:]]
        if rest:
            shown.append((counted(len(rest), "other column"), sum(rest)))
        names, steps, at = [], [], base
        for name, value in shown:
            names.append(name)
            steps.append((at, at + value))
            at += value
        return cls(tuple(names), tuple(steps), base, prediction, label)

    def written(self) -> list[str]:
        """Return the contributions in words."""
        return [signed(end - start) for start, end in self.steps]

    def to_svg(self) -> str:
        """Draw bars, each from where the one before it ends."""
        ends = [self.base, self.prediction, *(end for _, end in self.steps)]
        told = ", ".join(
            f"{name} {value}"
            for name, value in zip(self.names, self.written(), strict=True)
        )
        label = f"{self.label}: {size(self.base)} to {size(self.prediction)}"
        return waterfall_chart(
            f"Shapley values: {self.label}",
            f"base value {size(self.base)}, {told or 'nothing'}, prediction "
            f"{size(self.prediction)}",
            self.names,
            axis(label, ends),
            self.steps,
            self.written(),
        )
