"""Bars and waterfalls of Shapley values, as SVG, HTML and with matplotlib."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from branchwise import CARTRegressor, ID3Classifier, ParameterError, datasets
from mixed_trees import random_model

plt = pytest.importorskip("matplotlib.pyplot")
from branchwise.plot import plot_shap  # noqa: E402

WEATHER = datasets.load("weather")
MODEL = ID3Classifier(threshold="midpoint").fit(WEATHER.X, WEATHER.y).model_
NUMBERS = CARTRegressor().fit(WEATHER.X, np.arange(14) * 1.5).model_
HOT = {"outlook": "sunny", "temperature": 71, "humidity": 85, "windy": "TRUE"}
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_a_waterfall_of_one_row():
    written = texts(MODEL.shap(HOT).to_svg())
    assert {"humidity = 85", "outlook = sunny", "+0.2714"} <= set(written)
    assert written[-1] == "probability of no: 0.3571 to 1"
    svg = NUMBERS.shap(WEATHER.X)[2].to_svg(max_columns=1)
    assert {"temperature = 83", "1 other column", "-8.9"} <= set(texts(svg))
    assert 'class="c1"' in svg


def test_the_steps_of_a_waterfall_lead_to_the_prediction():
    found = NUMBERS.shap(WEATHER.X)
    for row in range(14):
        figure = found[row].figure(1)
        assert figure.steps[0][0] == figure.base
        assert figure.steps[-1][1] == pytest.approx(figure.prediction)


def test_bars_of_several_rows():
    found = MODEL.shap(WEATHER.X, WEATHER.X)
    written = texts(found.to_svg())
    assert {"outlook", "no", "yes"} <= set(written)
    written = texts(found[:, "yes"].to_svg(max_columns=2))
    assert {"outlook", "2 other columns", "0.2704"} <= set(written)
    assert not {"humidity", "temperature"} & set(written)


def test_html_has_the_chart_and_the_table():
    page = MODEL.shap(HOT).to_html()
    assert page.index("<svg") < page.index("<table")
    empty = MODEL.shap({name: [] for name in WEATHER.X})
    assert "<svg" not in empty.to_html()


@pytest.mark.parametrize("number", range(3))
def test_names_that_are_hard_to_carry(number):
    model = random_model(number, number)
    row = dict.fromkeys(model.schema.names, None)
    if model.recipe.missing == "error":
        row = {c.name: (c.categories or [0.0])[0] for c in model.schema.columns}
    found = model.shap([row, row])
    assert texts(found.to_svg())
    assert texts(found[0].to_svg())
    assert "<script" not in found.to_html()
    plot_shap(found[0]).figure.draw_without_rendering()
    plt.close("all")


def test_matplotlib_draws_the_same():
    ax = plot_shap(MODEL.shap(HOT))
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "humidity = 85",
        "outlook = sunny",
        "windy = TRUE",
    ]
    assert ax.get_xlabel() == "probability of no: 0.3571 to 1"
    bars = plot_shap(MODEL.shap(WEATHER.X), max_columns=2)
    assert [t.get_text() for t in bars.get_legend().get_texts()] == ["no", "yes"]
    _, given = plt.subplots()
    assert plot_shap(NUMBERS.shap(WEATHER.X), given) is given
    plt.close("all")


def test_what_cannot_be_drawn():
    with pytest.raises(ParameterError, match="max_columns must be a whole number"):
        MODEL.shap(HOT).to_svg(max_columns=0)
    with pytest.raises(ParameterError, match=r"plot_shap draws what .* Got Model"):
        plot_shap(MODEL)
