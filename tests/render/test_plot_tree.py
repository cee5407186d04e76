"""Trees drawn with Matplotlib."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from branchwise import (
    BranchwiseError,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    ParameterError,
    datasets,
    fit_tree,
)
from branchwise.plot import plot_tree
from branchwise.render.picture import drawing

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_the_words_of_a_tree(weather):
    ax = plot_tree(weather)
    ax.figure.canvas.draw()
    picture = drawing(weather.view(4))
    assert sorted(words(ax)) == sorted(picture.head + picture.note + picture.label[1:])
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "play"
    assert [text.get_text() for text in legend.get_texts()] == ["no", "yes"]
    assert plot_tree(weather, legend=False).get_legend() is None


def boxes(ax):
    """Return the boxes on the screen, in the order of the nodes."""
    paths = ax.collections[1].get_paths()
    corners = [
        ax.transData.transform(path.get_extents().get_points()) for path in paths
    ]
    return [Bbox([pair.min(axis=0), pair.max(axis=0)]) for pair in corners]


@pytest.mark.parametrize("size", [(3, 2), (6, 9), (20, 8)])
@pytest.mark.parametrize("dpi", [60, 200])
def test_words_fit_their_boxes(weather, size, dpi):
    figure, ax = plt.subplots(figsize=size, dpi=dpi)
    assert plot_tree(weather, ax=ax) is ax
    figure.canvas.draw()
    inside = [t for t in ax.texts if t.get_text() in ("outlook", "14 cases", "windy")]
    assert len(inside) == 3
    for text in inside:
        area = text.get_window_extent()
        assert any(
            box.x0 <= area.x0 <= area.x1 <= box.x1
            and box.y0 <= area.y0 <= area.y1 <= box.y1
            for box in boxes(ax)
        )


def test_words_grow_with_the_figure(weather):
    figure, ax = plt.subplots(figsize=(4, 4))
    plot_tree(weather, ax=ax, legend=False)
    figure.canvas.draw()
    small = ax.texts[0].get_fontsize()
    figure.set_size_inches(8, 8)
    figure.canvas.draw()
    assert ax.texts[0].get_fontsize() == pytest.approx(2 * small)


def test_boxes_do_not_overlap(weather):
    ax = plot_tree(weather)
    ax.figure.canvas.draw()
    areas = boxes(ax)
    assert len(areas) == 8
    for i, one in enumerate(areas):
        assert not any(one.overlaps(other) for other in areas[i + 1 :])


def test_limits(weather):
    ax = plot_tree(weather, max_depth=1)
    assert words(ax).count("… 2 more") == 2
    assert words(plot_tree(weather, max_nodes=1)) == ["outlook", "14 cases", "… 7 more"]
    with pytest.raises(ParameterError, match="max_depth must be None or a whole"):
        plot_tree(weather, max_depth=-1)


def test_numbers_and_odd_names():
    rng = np.random.default_rng(1)
    X = {"$x^2$": rng.normal(size=60), "_c": rng.choice(["$", "$$", "_"], 60)}
    ax = plot_tree(CARTRegressor(max_depth=3).fit(X, rng.normal(size=60)))
    ax.figure.canvas.draw()
    assert ax.get_legend() is None
    assert "$x^2$" in words(ax)
    labels = rng.choice(["_hidden", "$a$"], 60)
    ax = plot_tree(CARTClassifier(max_depth=2).fit(X, labels))
    ax.figure.canvas.draw()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["$a$", "_hidden"]


def test_a_leaf_is_a_tree():
    ax = plot_tree(fit_tree({"a": [1, 2]}, ["x", "x"]))
    ax.figure.canvas.draw()
    assert words(ax) == ["x", "2 cases"]


def test_what_cannot_be_drawn():
    with pytest.raises(ParameterError) as caught:
        plot_tree("tree.json")
    assert str(caught.value) == (
        "plot_tree draws a model or a fitted estimator. Got str instead."
    )
    with pytest.raises(ParameterError) as caught:
        plot_tree(ID3Classifier())
    assert str(caught.value) == (
        "plot_tree draws a model or a fitted estimator. Got ID3Classifier that is not "
        "fitted yet; call its fit first."
    )


def test_matplotlib_may_be_missing(weather, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BranchwiseError) as caught:
        plot_tree(weather)
    assert str(caught.value) == (
        "Drawing needs matplotlib. Install it with: pip install 'branchwise[plot]'"
    )
