"""Bars and waterfalls of Shapley values, and their SVG; ``plot`` draws them, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.errors import counted
from branchwise.render.charts import Series, axis, bar_chart, waterfall_chart
from branchwise.text.label_words import NO_UNIT, Unit

#: Columns that are drawn before the rest is one bar.
SHOWN_COLUMNS = 10
_DIGITS = 4


def size(value: float, unit: Unit = NO_UNIT) -> str:
    """Write a value."""
    return unit.rounded(value, _DIGITS)


def signed(value: float, unit: Unit = NO_UNIT) -> str:
    """Write a contribution with its sign."""
    return f"{'+' if value > 0 else ''}{size(value, unit)}"


@dataclass(frozen=True)
class Bars:
    """The mean size of the values of columns: a series for each class, or one.

    The sizes are numbers of ``unit``, whose name is all that they lack.
    """

    names: tuple[str, ...]
    series: tuple[str, ...]
    sizes: Floats
    label: str
    unit: Unit = NO_UNIT

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        sizes: Floats,
        order: Sequence[int],
        classes: Sequence[str],
        max_columns: int,
        unit: Unit = NO_UNIT,
    ) -> Bars:
        """Take the largest columns in order; the others together are the last bar."""
        first, rest = list(order[:max_columns]), list(order[max_columns:])
        by_class = unit.scaled(1.0) * sizes.reshape(len(names), -1)
        shown, listed = by_class[first], [names[at] for at in first]
        if rest:
            shown = np.vstack([shown, by_class[rest].sum(axis=0)])
            listed.append(counted(len(rest), "other column"))
        label = unit.named("mean size of Shapley values")
        series = tuple(classes) or ("",)
        return cls(tuple(listed), series, shown, label, Unit(unit.name))

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
        written = [size(v, self.unit) for v in self.sizes[:, 0]]
        told = ", ".join(
            f"{name} {', '.join(map(size, line))}"
            for name, line in zip(self.names, self.sizes.tolist(), strict=True)
        )
        scale = axis(self.label, [0.0, float(self.sizes.max(initial=0.0))], least=0.0)
        return bar_chart(
            "Shapley values of columns",
            told,
            self.names,
            scale,
            series,
            written if len(series) == 1 else [],
        )


@dataclass(frozen=True)
class Waterfall:
    """From the base value to the prediction, column by column, the largest first.

    All are numbers of ``unit``, whose name is all that they lack.
    """

    names: tuple[str, ...]
    steps: tuple[tuple[float, float], ...]
    base: float
    prediction: float
    label: str
    unit: Unit = NO_UNIT

    @classmethod
    def of(
        cls,
        named: Sequence[tuple[str, float]],
        base: float,
        prediction: float,
        label: str,
        max_columns: int,
        unit: Unit = NO_UNIT,
    ) -> Waterfall:
        """Take the first columns; the others together are the last step."""
        scaled = [(name, unit.scaled(value)) for name, value in named]
        base, prediction = unit.scaled(base), unit.scaled(prediction)
        shown = scaled[:max_columns]
        rest = [value for _, value in scaled[max_columns:]]
        if rest:
            shown.append((counted(len(rest), "other column"), sum(rest)))
        names, steps, at = [], [], base
        for name, value in shown:
            names.append(name)
            steps.append((at, at + value))
            at += value
        named_only = Unit(unit.name)
        return cls(tuple(names), tuple(steps), base, prediction, label, named_only)

    def written(self) -> list[str]:
        """Return the contributions in words."""
        return [signed(end - start, self.unit) for start, end in self.steps]

    def ends(self) -> tuple[str, str]:
        """Return the base value and the prediction in words."""
        return size(self.base, self.unit), size(self.prediction, self.unit)

    def to_svg(self) -> str:
        """Draw bars, each from where the one before it ends."""
        ends = [self.base, self.prediction, *(end for _, end in self.steps)]
        told = ", ".join(
            f"{name} {value}"
            for name, value in zip(self.names, self.written(), strict=True)
        )
        base, prediction = self.ends()
        return waterfall_chart(
            f"Shapley values: {self.label}",
            f"base value {base}, {told or 'nothing'}, prediction {prediction}",
            self.names,
            axis(f"{self.label}: {base} to {prediction}", ends),
            self.steps,
            self.written(),
        )
