"""Drawings of searches and learning curves, with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.errors import BranchwiseError, ParameterError
from branchwise.evaluation.learning_curves import LearningCurve, learning_curve


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


@dataclass
class _Panel:
    """Scores against one parameter: values in words, means and deviations."""

    name: str
    values: list[Any]
    scores: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)


@dataclass
class SearchDisplay:
    """Scores of a search against each parameter, with bands for train and test.

    Each panel varies one parameter and holds the others at the values of the best
    candidate; where a value was never tried with these, its best candidate represents
    it. The bands are one standard deviation over the folds to each side. Make it with
    :meth:`from_search`; after :meth:`plot`, ``axes_`` and ``figure_`` are there.
    """

    panels: list[_Panel]
    best: dict[str, Any]
    scoring: str = "score"
    axes_: Any = None
    figure_: Any = None

    @classmethod
    def from_search(cls, search: Any) -> SearchDisplay:
        """Read a fitted search.

        Parameters
        ----------
        search : SearchResults, or a fitted GridSearchCV or the like
            What has ``cv_results_``.

        Returns
        -------
        SearchDisplay
            Drawn by :meth:`plot`.
        """
        table = getattr(search, "cv_results_", None)
        if table is None:
            raise ParameterError(
                "plot_search draws what branchwise.evaluation.search() returns, or a "
                f"fitted GridSearchCV. Got {type(search).__name__} without cv_results_."
            )
        if "mean_test_score" not in table:
            raise ParameterError(
                "plot_search draws searches with one score. Got several; give one as "
                "scoring."
            )
        trials = list(table["params"])
        best = trials[int(np.argmin(table["rank_test_score"]))]
        names = [name.removeprefix("param_") for name in table if "param_" in name[:6]]
        panels = [_panel(name, trials, best, table) for name in names]
        panels = [panel for panel in panels if len(panel.values) > 1]
        if not panels:
            raise ParameterError(
                "plot_search needs a parameter of which more than one value was tried."
            )
        scoring = getattr(search, "scoring", None)
        return cls(panels, best, scoring if isinstance(scoring, str) else "score")

    def plot(self, ax: Any = None) -> SearchDisplay:
        """Draw, on new axes or on those given, one for each panel.

        Parameters
        ----------
        ax : Axes, sequence of Axes or None
            Axes of matplotlib, one for each panel; None makes new ones.

        Returns
        -------
        SearchDisplay
            Itself, with ``axes_`` and ``figure_``.
        """
        given = np.ravel(np.asarray(ax, dtype=object)).tolist()
        self.axes_ = axes_for(len(self.panels)) if ax is None else given
        if len(self.axes_) != len(self.panels):
            names = ", ".join(panel.name for panel in self.panels)
            raise ParameterError(
                f"ax must have one axes for each of the {len(self.panels)} parameters "
                f"{names}. Got {len(self.axes_)}."
            )
        for panel, axes in zip(self.panels, self.axes_, strict=True):
            _draw_panel(panel, axes, self.best)
            axes.set_ylabel(self.scoring)
        self.figure_ = self.axes_[0].figure
        return self


def plot_search(search: Any, ax: Any = None) -> Any:
    """Draw the scores of a search against each parameter, with bands.

    Parameters
    ----------
    search : SearchResults, or a fitted GridSearchCV or the like
        What was tried. A ``GridSearchCV`` has train scores only with
        ``return_train_score=True``.
    ax : axes, sequence of axes or None
        Where to draw, one axes for each parameter; by default on a new figure.

    Returns
    -------
    list of matplotlib axes
        One for each parameter of which more than one value was tried.
    """
    return SearchDisplay.from_search(search).plot(ax).axes_


def _panel(name: str, trials: list[Any], best: Any, table: Any) -> _Panel:
    """Find, for each value of a parameter, the candidate that represents it."""
    order = np.argsort(np.asarray(table["rank_test_score"]), kind="stable").tolist()
    chosen: dict[Any, int] = {}
    near = [at for at in order if {**trials[at], name: None} == {**best, name: None}]
    for at in [*near, *order]:
        if name in trials[at]:
            chosen.setdefault(repr(trials[at][name]), at)
    rows = sorted(chosen.values(), key=lambda at: _sort_key(trials[at][name]))
    panel = _Panel(name, [trials[at][name] for at in rows])
    for piece in ("train", "test"):
        if f"mean_{piece}_score" in table:
            mean = np.asarray(table[f"mean_{piece}_score"], dtype=np.float64)[rows]
            spread = np.asarray(table[f"std_{piece}_score"], dtype=np.float64)[rows]
            panel.scores[piece] = mean, spread
    return panel


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Put numbers in order, then words; no limit is the largest number."""
    if value is None:
        return 1, np.inf, ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return 0, float(value), ""
    return 2, 0.0, str(value)


def _draw_panel(panel: _Panel, ax: Any, best: dict[str, Any]) -> None:
    # Values are evenly spaced: depths and alphas rarely are by themselves.
    position = np.arange(len(panel.values))
    for piece, (mean, spread) in panel.scores.items():
        _draw_band(ax, piece, position, mean, spread)
    if panel.name in best and best[panel.name] in panel.values:
        at = panel.values.index(best[panel.name])
        ax.axvline(at, linestyle=":", color="grey", label="best")
    ax.set_xticks(position, [_shown(value) for value in panel.values])
    ax.set_xlabel(panel.name)
    ax.legend()


def _draw_band(ax: Any, name: str, x: Any, mean: Floats, spread: Floats) -> None:
    """Draw a line of means with a band of one deviation to each side."""
    (line,) = ax.plot(x, mean, "o-", label=name)
    colour = line.get_color()
    ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.2)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass
class LearningCurveDisplay:
    """Scores against the number of training rows, with bands over the folds."""

    curve: LearningCurve
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: object, y: object, **options: Any
    ) -> LearningCurveDisplay:
        """Fit an estimator to more and more rows: see ``learning_curve``.

        Parameters
        ----------
        estimator, X, y : estimator, table and sequence
            What to fit, and the rows.
        **options : object
            As of ``learning_curve``: ``sizes``, ``cv``, ``seed``, ``scoring``,
            ``n_jobs``.

        Returns
        -------
        LearningCurveDisplay
            Drawn by :meth:`plot`.
        """
        return cls(learning_curve(estimator, X, y, **options))

    def plot(self, ax: Any = None) -> LearningCurveDisplay:
        """Draw, on new axes or on those given.

        Parameters
        ----------
        ax : Axes or None
            Axes of matplotlib; without them new ones are made.

        Returns
        -------
        LearningCurveDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = new_axes() if ax is None else ax
        curve = self.curve
        for piece, scores in (("train", curve.train), ("test", curve.test)):
            mean, spread = scores.mean(axis=1), scores.std(axis=1)
            _draw_band(self.ax_, piece, curve.sizes, mean, spread)
        self.ax_.set_xlabel("training rows")
        self.ax_.set_ylabel(curve.scoring)
        self.ax_.legend()
        self.figure_ = self.ax_.figure
        return self


def plot_learning_curve(
    estimator: Any, X: object, y: object, ax: Any = None, **options: Any
) -> Any:
    """Draw how scores change with the number of training rows.

    Parameters
    ----------
    estimator, X, y, **options : object
        As for :func:`branchwise.evaluation.learning_curve`.
    ax : matplotlib axes or None
        Where to draw; by default on a figure of its own.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    display = LearningCurveDisplay.from_estimator(estimator, X, y, **options)
    return display.plot(ax).ax_
