"""Charts: round ticks, figures in their places, nothing unescaped."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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

HOSTILE = "</svg><script>alert(1)</script>&\"'\0\u202e"


def parsed(chart):
    return ET.fromstring(chart)


def texts(chart):
    return ["".join(e.itertext()) for e in parsed(chart).iter("text")]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1], (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([0.13, 0.71], (0.0, 0.2, 0.4, 0.6, 0.8)),
        ([3, 97], (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)),
        ([-1, 1], (-1.0, -0.5, 0.0, 0.5, 1.0)),
        ([5], (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)),
        ([0], (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6)),
    ],
)
def test_ticks_are_round(values, ticks):
    assert axis("", values).ticks == ticks


def test_an_axis_keeps_within_its_bounds():
    shares = axis("", [0.02, 0.98], percent_figure, least=0, most=1)
    assert (shares.low, shares.high) == (0, 1)
    assert [shares.tick_format(tick) for tick in shares.ticks][-1] == "100 %"
    met = axis("", [1.0, 1.0], most=1)
    assert met.low < met.high == 1


def test_powers_where_sizes_span_enough():
    few = axis("", [1, 20], log=True)
    assert not few.log
    many = axis("", [1, 1000], log=True)
    assert many.log
    assert many.ticks == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    assert many.position(1) == 0
    assert many.position(1000) == 1
    assert many.position(math.sqrt(1000)) == pytest.approx(0.5)
    assert axis("", [1, 1e6], log=True).ticks == tuple(10.0**p for p in range(7))


@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=5))
@example([-9.999999999999998e199, -1e200])
def test_every_value_has_a_position(values):
    found = axis("", values)
    assert found.low < found.high
    for value in values:
        assert -1e-6 <= found.position(value) <= 1 + 1e-6
    assert len(found.ticks) <= 12


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (1500, "1,500"), (0.25, "0.25"), (-0.0, "0"), (1e12, "1e+12")],
)
def test_figures_of_ticks(value, written):
    assert plain_figure(value) == written


def test_lines_go_through_their_points():
    x, y = axis("rows", [0, 100]), axis("share", [0, 1])
    line = Series("a", [0, 50, 100], [0, 0.5, 1], [0, 0.4, 0.9], [0, 0.6, 1])
    chart = parsed(line_chart("title", "words", x, y, [line], (50.0, "here")))
    path = next(e for e in chart.iter("path") if e.get("class") == "path")
    points = [tuple(map(float, p.split())) for p in path.get("d")[1:].split("L")]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.1)
    assert y1 == pytest.approx((y0 + y2) / 2, abs=0.1)
    assert y0 > y2  # more is higher up
    assert chart.find("title").text == "title"
    assert chart.find("desc").text == "words"
    assert chart.get("aria-labelledby") == chart.find("title").get("id")


def test_bars_are_as_long_as_their_figures():
    chart = bar_chart(
        "t", "d", ["a", "b"], axis("", [0, 1]), [Series("", (), [1, 0.5])], ["1", "2"]
    )
    wide = [float(e.get("width")) for e in parsed(chart).iter("rect")]
    assert wide[0] == pytest.approx(2 * wide[1], abs=0.2)
    assert {"a", "b", "1", "2"} <= set(texts(chart))


def test_bars_on_both_sides_of_zero():
    scale = axis("", [-1, 1])
    chart = bar_chart("t", "d", ["a", "b"], scale, [Series("", (), [-1, 1])])
    one, two = [
        (float(e.get("x")), float(e.get("width"))) for e in parsed(chart).iter("rect")
    ]
    assert one[0] + one[1] == pytest.approx(two[0], abs=0.2)


def test_a_matrix_tells_counts_and_shares():
    chart = matrix_chart("t", "d", ["no", "yes"], [[8, 2], [0, 5]])
    assert {"8", "2", "0", "5", "80.0 %", "20.0 %", "100.0 %"} <= set(texts(chart))
    strong = [float(e.get("fill-opacity")) for e in parsed(chart).iter("rect")]
    assert strong == [0.44, 0.14, 0.04, 0.54]


def test_nothing_in_a_name_is_taken_for_a_mark():
    one = Series(HOSTILE, [0, 1], [0, 1])
    x = axis(HOSTILE, [0, 1])
    charts = [
        line_chart(HOSTILE, HOSTILE, x, x, [one, one], (0.5, HOSTILE)),
        point_chart(HOSTILE, HOSTILE, x, x, one, [(0, 0), (1, 1)]),
        bar_chart(HOSTILE, HOSTILE, [HOSTILE] * 2, x, [one, one]),
        bar_chart(HOSTILE, HOSTILE, [HOSTILE] * 2, x, [one], [HOSTILE] * 2),
        histogram(HOSTILE, HOSTILE, x, x, [0, 0.5, 1], [1, 1]),
        matrix_chart(HOSTILE, HOSTILE, [HOSTILE] * 2, [[1, 0], [0, 1]]),
    ]
    for chart in charts:
        assert "<script" not in chart
        assert "\0" not in chart
        kinds = {element.tag for element in parsed(chart).iter()}
        assert kinds <= {
            *("svg", "title", "desc", "path", "text", "g", "rect", "circle")
        }
        assert "style=" not in chart  # which the page's policy would not allow


def test_long_names_are_cut_short_and_show_when_pointed_at():
    name = "a very long name of a column that nobody can read at once"
    chart = bar_chart("t", "d", [name], axis("", [0, 1]), [Series("", (), [1])])
    (label,) = [e for e in parsed(chart).iter("text") if e.find("title") is not None]
    assert label.find("title").text == name
    assert label.find("title").tail.endswith("…")
