"""Pictures of the studies: drawn by Matplotlib where it is installed, else text.

A notebook shows the picture that ends a cell; a script can save it.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: From light to dark, for pixels of 0 to 16.
SHADES = " .:-=+*#%@"


@dataclass(frozen=True, repr=False)
class Picture:
    """Something to draw on a Matplotlib figure of ``size`` inches."""

    name: str
    size: tuple[float, float]
    draw: Callable[[Any], None]

    def png(self) -> bytes:
        """Draw it; the same picture is the same bytes."""
        from matplotlib.figure import Figure  # noqa: PLC0415

        figure = Figure(figsize=self.size, dpi=72, layout="constrained")
        self.draw(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
        return stream.getvalue()

    def save(self, folder: str | Path) -> Path:
        """Write it to a folder, as a PNG file of its name."""
        path = Path(folder) / f"{self.name}.png"
        path.write_bytes(self.png())
        return path

    def _repr_png_(self) -> bytes | None:
        try:
            return self.png()
        except ImportError:
            return None

    def __repr__(self) -> str:
        return f"<picture {self.name!r}>"


def as_text(images: Sequence[np.ndarray], titles: Sequence[str]) -> str:
    """Draw images of 8 x 8 pixels side by side in letters, a title above each."""
    lines = [[f"{title:<16}" for title in titles]]
    rows = zip(*images, strict=True)
    lines += [["".join(map(_shade, one)) for one in row] for row in rows]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _shade(pixel: float) -> str:
    return 2 * SHADES[int(pixel * (len(SHADES) - 1) / 16)]


def samples(name: str, images: np.ndarray, labels: np.ndarray, rows: int) -> Picture:
    """Show the first images of each label, a column for each label."""
    found = np.unique(labels)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, len(found), squeeze=False)
        for column, label in enumerate(found):
            chosen = np.flatnonzero(labels == label)[:rows]
            grid[0, column].set_title(str(label))
            for axes, at in zip(grid[:, column], chosen, strict=False):
                axes.imshow(images[at], cmap="gray_r", vmin=0, vmax=16)
        for axes in grid.flat:
            axes.set_axis_off()

    return Picture(name, (len(found) * 0.6, rows * 0.7), draw)


def confusion(name: str, counts: np.ndarray, labels: Sequence[str]) -> Picture:
    """Show a confusion matrix: true classes down, predicted classes across."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.imshow(counts, cmap="Blues")
        dark = counts.max() / 2
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if count > dark else "black"
            axes.text(column, row, count, ha="center", va="center", color=colour)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlabel="prediction", ylabel="truth")

    side = 2 + 0.35 * len(labels)
    return Picture(name, (side, side), draw)


#: The parameter; its values; mean and deviation of train scores, of test scores.
Curve = tuple[str, Sequence[float], tuple[Any, Any], tuple[Any, Any]]


def search(name: str, curves: Sequence[Curve]) -> Picture:
    """Show scores against each parameter, with bands of one standard deviation."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(1, len(curves), sharey=True)
        for axes, (parameter, values, *sides) in zip(grid, curves, strict=True):
            for label, (mean, spread) in zip(("train", "test"), sides, strict=True):
                axes.plot(values, mean, marker="o", markersize=3, label=label)
                axes.fill_between(values, mean - spread, mean + spread, alpha=0.2)
            axes.set_xlabel(parameter)
        grid[0].set_ylabel("accuracy")
        grid[0].legend()

    return Picture(name, (3.2 * len(curves), 3), draw)


def curve(name: str, points: dict[float, float], x: str, y: str) -> Picture:
    """Show one figure against another."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(list(points), list(points.values()), marker="o", markersize=4)
        axes.set(xlabel=x, ylabel=y)

    return Picture(name, (4.5, 3), draw)


def tree(name: str, model: Any, size: tuple[float, float], **options: Any) -> Picture:
    """Show a tree as it is drawn by ``branchwise.plot.plot_tree``."""

    def draw(figure: Any) -> None:
        from branchwise.plot import plot_tree  # noqa: PLC0415

        plot_tree(model, ax=figure.subplots(), **options)

    return Picture(name, size, draw)


def calibration(name: str, curves: dict[str, tuple[Any, Any]]) -> Picture:
    """Show how often what was said to be so probable came true."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="gray", linestyle="--")
        for label, (said, true) in curves.items():
            axes.plot(said, true, marker="o", markersize=4, label=label)
        axes.set(xlabel="said", ylabel="came true", aspect="equal")
        axes.legend()

    return Picture(name, (4.5, 4.5), draw)
