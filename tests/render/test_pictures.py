"""Pictures of trees: SVG, DOT and Mermaid, and what they have in common."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import CART
from branchwise.render.picture import (
    CLASS_COLOURS,
    ELLIPSIS,
    ON_DARK,
    OTHERS,
    class_colours,
    drawing,
    fitted,
    text_width,
)
from branchwise.render.scene import LABEL_SPACE, scene
from branchwise.render.svg import xml
from selection import examples
from tree_builder import TreeBuilder

SVG = "{http://www.w3.org/2000/svg}"
#: Names that mean something to one language or another.
HOSTILE = [
    'a"b',
    '\\"',
    "\\N \\G \\L",
    "ends in \\",
    "two\nlines",
    "\\n",
    "\x00\x1b[31m",
    "&amp; &#34; &lt;",
    "<b>bold</b>",
    "</script><script>alert(1)</script>",
    "]]>",
    "`code` **bold** _em_ ~~no~~",
    "1. one",
    "- item",
    "#quot; #35; #",
    "style a:b#c;",
    '%%{init: {"theme": "dark"}}%%',
    "a|b",
    "[x](http://e.org)",
    "$$x^2$$",
    "fa:fa-car",
    "ﬂ°°35¶ß",
    "\u202eright to left",
    "שלום",
    "漢字 🎉",
    "\ufffe \ud800",
    "n0 -> n1; end",
    "=cmd|' /C calc'!A0",
    "two  blanks",
    " ",
    "",
]


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


@pytest.fixture(scope="module")
def hostile():
    """A tree whose column, values and classes are all hostile."""
    shifted = HOSTILE[1:] + HOSTILE[:1]
    X = {HOSTILE[0]: HOSTILE, "other": list(range(len(HOSTILE)))}
    recipe = Recipe(max_depth=1)
    return fit_tree(X, shifted, recipe, target_name=HOSTILE[9])


def trees():
    """One of every kind that a view must handle."""
    rng = np.random.default_rng(3)
    n = 150
    X = {
        "colour": rng.choice(["red", "green", "blue", None], n).tolist(),
        "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "shape": rng.choice([f"s{i}" for i in range(12)], n).tolist(),
    }
    y = rng.choice(["yes", "no", "maybe"], n).tolist()
    numbers = rng.normal(size=n)
    weights = rng.random(n)
    costs = [[0, 1, 5], [1, 0, 1], [2, 2, 0]]
    yield "c4.5", C45Classifier().fit(X, y)
    yield "groups", C45Classifier(group_values=True).fit(X, y)
    yield "weights", CARTClassifier(max_depth=4).fit(X, y, sample_weight=weights)
    yield "surrogates", CARTClassifier(missing="surrogate", max_depth=4).fit(X, y)
    yield "learned", CARTClassifier(missing="learned", max_depth=4).fit(X, y)
    yield "costs", CARTClassifier(costs=costs, max_depth=3).fit(X, y)
    yield "numbers", CARTRegressor(max_depth=4).fit(X, numbers)
    yield "equal numbers", CARTRegressor(max_depth=2).fit(X, np.ones(n))
    yield "huge numbers", CARTRegressor(max_depth=2).fit(X, numbers * 1e119)
    yield "a leaf", CARTClassifier(max_depth=0).fit(X, y)


TREES = {name: estimator.model_ for name, estimator in trees()}


def own(missing):
    """A tree with branches for missing values, and one that splits on what is known."""
    X = {"n": [1.0, 1.0, None, None], "c": ["x", "y", None, "x"]}
    return fit_tree(X, ["a", "a", "b", "c"], Recipe(missing=missing))


TREES |= {f"missing: {policy}": own(policy) for policy in ("branch", "split", "node")}


# -- Which nodes are drawn


def test_every_node_is_drawn(weather):
    picture = drawing(weather.view())
    assert picture.node == list(range(8))
    assert picture.head == [
        "outlook", "yes", "windy", "humidity", "yes", "no", "yes", "no"
    ]  # fmt: skip
    assert picture.note[:3] == ["14 cases", "4 cases", "5 cases"]
    assert picture.label[:2] == ["", "overcast"]
    assert picture.way(6) == "humidity ≤ 80"


def test_what_is_left_out_is_counted(weather):
    by_depth = drawing(weather.view(), max_depth=1)
    assert by_depth.head == [
        "outlook", "yes", "windy", "humidity", "… 2 more", "… 2 more"
    ]  # fmt: skip
    assert by_depth.n_children == [3, 0, 1, 1, 0, 0]
    assert by_depth.parent[4:] == [2, 3]
    assert drawing(weather.view(), max_depth=0).head == ["outlook", "… 7 more"]
    # Branches come together or not at all, upper levels first.
    assert drawing(weather.view(), max_nodes=3).head == ["outlook", "… 7 more"]
    assert drawing(weather.view(), max_nodes=5).left_out == [0, 0, 0, 0, 2, 2]
    assert drawing(weather.view(), max_nodes=6).left_out.count(2) == 1
    assert drawing(weather.view(), max_nodes=8).left_out == [0] * 8


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("limits", [{}, {"max_depth": 1}, {"max_nodes": 9}])
def test_nothing_is_lost(name, limits):
    picture = drawing(TREES[name].view(), **limits)
    shown = sum(not out for out in picture.left_out)
    assert shown + sum(picture.left_out) == len(TREES[name].tree)
    assert shown <= limits.get("max_nodes", len(TREES[name].tree))


@pytest.mark.parametrize("method", ["to_svg", "to_dot", "to_mermaid"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_depth": -1},
            "max_depth must be None or a whole number of at least 0. Got -1.",
        ),
        (
            {"max_depth": "2"},
            "max_depth must be None or a whole number of at least 0. Got '2'.",
        ),
        (
            {"max_nodes": 0},
            "max_nodes must be None or a whole number of at least 1. Got 0.",
        ),
        (
            {"max_nodes": True},
            "max_nodes must be None or a whole number of at least 1. Got True.",
        ),
        (
            {"max_values": 0},
            "max_values must be a whole number of at least 1. Got 0.",
        ),
        (
            {"max_values": None},
            "max_values must be a whole number of at least 1. Got None.",
        ),
    ],
)
def test_limits_are_checked(weather, method, options, message):
    with pytest.raises(ParameterError) as caught:
        getattr(weather, method)(**options)
    assert str(caught.value) == message


def test_limits_may_be_numbers_of_numpy(weather):
    assert weather.to_svg(max_depth=np.int64(1)) == weather.to_svg(max_depth=1)


def test_long_lists_are_there_in_full():
    values = tuple(f"v{i:03}" for i in range(30))
    schema = Schema((Column("c", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[2, 3])
    builder.child(0, "c", values=values[:16], weights=[2, 1])
    builder.child(0, "c", values=values[16:], weights=[0, 2])
    model = Model(schema, builder.build(), Recipe())
    assert list(model.view()["shortened"]) == ["1", "2"]
    assert model.view(29)["shortened"] == {}
    full = f"c in {{{', '.join(values[:16])}}}"
    for text in (model.to_svg(), model.to_dot()):
        assert "v000, v001, v002, v003, ... (12 more)" in text
        assert full in text
    assert full not in model.to_mermaid()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing: branch", "missing values: missing"),
        ("missing: split", "missing values: every branch"),
        ("missing: node", "missing values: stop, a"),
        ("learned", "missing values: ≤ 1.21"),
    ],
)
def test_where_missing_values_go(name, said):
    picture = drawing(TREES[name].view())
    assert picture.missing(0).startswith(said)


def test_missing_values_may_ask_other_columns():
    table = datasets.load("iris")
    model = (
        CARTClassifier(missing="surrogate", max_depth=2).fit(table.X, table.y).model_
    )
    picture = drawing(model.view())
    assert picture.missing(0) == "missing values: surrogates, else > 2.4"


def test_missing_values_may_be_refused():
    strict = fit_tree({"c": ["x", "y"]}, ["a", "b"], Recipe(missing="error"))
    assert drawing(strict.view()).missing(0) == "missing values are refused"


def test_known_numbers_are_no_list():
    model = own("branch")
    known = [c for c in model.view(1)["nodes"]["branch"] if c.endswith("is known")]
    assert known
    assert model.view(1)["shortened"] == {}


# -- The places


@pytest.mark.parametrize("name", TREES)
def test_boxes_and_their_words_do_not_overlap(name):
    for limits in ({}, {"max_depth": 2}):
        picture = scene(drawing(TREES[name].view(), **limits))
        areas = []
        for i in range(len(picture.drawing)):
            label = text_width(picture.label[i], 12) if picture.label[i] else 0.0
            half = max(picture.width[i], label) / 2
            top = picture.y[i] - (LABEL_SPACE if label else 0.0)
            x, bottom = picture.x[i], picture.y[i] + picture.height[i]
            areas.append((x - half, top, x + half, bottom))
        for one, other in combinations(areas, 2):
            apart = one[2] <= other[0] or other[2] <= one[0]
            assert apart or one[3] <= other[1] or other[3] <= one[1]
        right, bottom = picture.size
        assert min(area[0] for area in areas) >= -1e-6
        assert max(area[2] for area in areas) <= right + 1e-6
        assert max(area[3] for area in areas) == bottom


@given(st.text("aWi é漢🎉\u0301", max_size=60), st.floats(20, 300))
def test_text_is_cut_to_fit(text, room):
    cut = fitted(text, room, 12)
    assert text_width(cut, 12) <= room
    assert cut == text or (
        cut.endswith(ELLIPSIS) and text.startswith(cut[:-1].rstrip())
    )


def test_marks_stay_with_their_letters():
    assert fitted("e\u0301" * 40, 100, 12).endswith("e\u0301" + ELLIPSIS)


# -- Colours

#: What those see who lack one kind of cone (Machado et al. 2009).
EYES = {
    "all cones": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
_XYZ = [
    [0.4124, 0.3576, 0.1805],
    [0.2126, 0.7152, 0.0722],
    [0.0193, 0.1192, 0.9505],
]


def seen(colour, eye):
    """Return a colour in CIE Lab, as an eye sees it."""
    share = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    xyz = np.array(_XYZ) @ np.clip(np.array(eye) @ light, 0, 1)
    xyz /= [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_told_apart_by_every_eye(eye, dark):
    colours = [
        ON_DARK.get(code, colour) if dark else colour
        for code, colour in enumerate(CLASS_COLOURS)
    ]
    for one, other in combinations(colours, 2):
        distance = np.linalg.norm(seen(one, EYES[eye]) - seen(other, EYES[eye]))
        assert distance > 12, (one, other)  # 2.3 is just to be seen


def test_many_classes_share_the_last_colour():
    assert class_colours([1] * 10) == list(range(10))
    weights = [1] * 12
    weights[11] = 5
    colours = class_colours(weights)
    assert colours[:8] == list(range(8))
    assert colours[11] == 8
    assert colours[8:11] == [OTHERS] * 3


# -- SVG


def parsed(model, **options):
    return ET.fromstring(model.to_svg(**options))


def texts(root, kind):
    return [t.text or "" for t in root.iter(f"{SVG}text") if t.get("class") == kind]


def test_a_picture_in_full(weather):
    root = parsed(weather)
    assert root.get("role") == "img"
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title.text == "Decision tree for play"
    assert title.get("id") == root.get("aria-labelledby")
    assert told.get("id") == root.get("aria-describedby")
    assert told.text.splitlines() == [
        "8 nodes, 5 leaves, depth 2.",
        "all cases: yes (14/5); splits on outlook",
        "outlook = overcast: yes (4)",
        "outlook = rainy: yes (5/2); splits on windy",
        "windy = FALSE: yes (3)",
        "windy = TRUE: no (2)",
        "outlook = sunny: no (5/2); splits on humidity",
        "humidity ≤ 80: yes (2)",
        "humidity ≥ 81: no (3)",
    ]
    picture = drawing(weather.view())
    assert texts(root, "h") == picture.head
    assert texts(root, "t") == picture.note
    assert texts(root, "b") == picture.label[1:]
    assert texts(root, "s m") == ["no", "yes"]
    hints = [title.text for title in root.iterfind(f".//{SVG}g/{SVG}title")]
    assert hints[0].splitlines() == [
        "all cases",
        "yes (14/5)",
        "splits on outlook",
        "missing values: stop, yes",
        "no: 5",
        "yes: 9",
    ]
    assert hints[5] == "windy = TRUE\nno (2)\nno: 2"
    style = root.find(f"{SVG}style").text
    assert "prefers-color-scheme:dark" in style
    # Nothing from elsewhere, nothing that runs.
    assert not re.search("href|url\\(|@import|<script|<foreignObject", weather.to_svg())


def test_widths_and_bars_tell_the_cases(weather):
    root = parsed(weather)
    widths = [
        float(path.get("stroke-width"))
        for path in root.iter(f"{SVG}path")
        if path.get("class") == "e"
    ]
    shares = [4, 5, 5, 3, 2, 2, 3]
    assert widths == [pytest.approx(1.2 + 10.8 * n / 14, abs=0.01) for n in shares]
    bars = [r for r in root.iter(f"{SVG}rect") if r.get("class") in ("c0", "c1", "r")]
    bars = [r for r in bars if r.get("height") == "7"]
    track, no, yes = (float(r.get("width")) for r in bars[:3])
    assert (no, yes) == pytest.approx((track * 5 / 14, track * 9 / 14), abs=0.1)


@pytest.mark.parametrize("name", TREES)
def test_every_tree_is_valid(name):
    for limits in ({}, {"max_depth": 1}, {"max_nodes": 5}):
        root = parsed(TREES[name], **limits)
        left, top, width, _ = map(float, root.get("viewBox").split())
        assert (left, top) == (0, 0)
        assert (root.get("width"), root.get("height")) == tuple(
            root.get("viewBox").split()[2:]
        )
        for rect in root.iter(f"{SVG}rect"):
            assert float(rect.get("width")) >= 0
            assert float(rect.get("width")) <= width
        assert "nan" not in TREES[name].to_svg(**limits)
        assert "inf" not in TREES[name].to_svg(**limits).replace("info", "")


def test_names_are_shown_as_they_are(hostile):
    root = parsed(hostile)
    picture = scene(drawing(hostile.view(4)))
    assert texts(root, "h") == picture.head
    assert texts(root, "b") == picture.label[1:]
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags == {"svg", "title", "desc", "style", "rect", "g", "path", "text"}


@given(st.text())
@settings(max_examples=examples(60))
def test_xml_holds_every_text(text):
    back = ET.fromstring(f'<a b="{xml(text)}">{xml(text)}</a>')
    kept = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
    assert (back.text or "") == kept.replace("\r\n", "\n").replace("\r", "\n")


def test_numbers_have_a_scale():
    root = parsed(TREES["numbers"])
    low, high, said = texts(root, "s m")
    assert said == "(mean ± deviation)"
    assert float(low) < float(high)
    picture = scene(drawing(TREES["numbers"].view()))
    for i in range(len(picture.drawing)):
        start, mean, stop = picture.spread(i)
        assert 12 - 1e-9 <= start <= mean <= stop
        assert stop <= 12 + picture.bar_width(i) + 1e-9


def test_a_legend_of_many_classes():
    labels = [f"class {i}" for i in range(26)]
    model = fit_tree({"c": labels}, labels, Recipe(max_depth=0))
    names = texts(parsed(model), "s m")
    assert names == [f"class {i}" for i in (0, 1, 10, 11, 12, 13, 14, 15, 16)] + [
        "17 others"
    ]
    # Names that do not fit in a row go on in the next.
    lines = {
        t.get("y") for t in parsed(model).iter(f"{SVG}text") if t.get("class") == "s m"
    }
    assert len(lines) > 1


def test_pictures_of_different_trees_have_different_ids(weather):
    ids = {parsed(m).get("aria-labelledby") for m in (weather, TREES["c4.5"])}
    assert len(ids) == 2
    assert parsed(TREES["c4.5"]).find(f"{SVG}title").text == "Decision tree"


def test_the_description_of_a_large_tree_ends():
    told = parsed(chain(150)).find(f"{SVG}desc").text.splitlines()
    assert (len(told), told[-1]) == (202, "...")


def chain(levels):
    schema = Schema((Column("n", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[levels, 1])
    node = 0
    for level in range(levels):
        builder.child(node, "n", at_most=level, weights=[1, 0])
        node = builder.child(node, "n", above=level, weights=[levels - level - 1, 1])
    return Model(schema, builder.build(), Recipe())


@pytest.mark.parametrize(
    "levels", [1200, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_nothing_recurses(levels):
    model = chain(levels)
    for text in (model.to_svg(), model.to_dot(), model.to_mermaid()):
        assert text.count("… ") == 0
        assert text.count("1 case") >= levels + 1
    assert model.to_svg(max_nodes=100).count("more</text>") == 1


# -- DOT

_DOT_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_][\w]*|-?[\d.]+)"""
    r"""|(?P<mark>->|[\[\]{}=,;]))""",
    re.DOTALL,
)


def dot_statements(text):
    """Parse DOT: for each statement its words and its attributes."""
    tokens, at = [], 0
    while text[at:].strip():
        match = _DOT_TOKEN.match(text, at)
        assert match, text[at : at + 40]
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    assert tokens[:3] == [("word", "digraph"), ("word", "tree"), ("mark", "{")]
    assert tokens[-1] == ("mark", "}")
    found, names, position = [], [], 3
    while position < len(tokens) - 1:
        kind, token = tokens[position]
        if token == "[" and kind == "mark":
            attributes, position = dot_attributes(tokens, position + 1)
            found.append((" ".join(names), attributes))
            names = []
        else:
            names.append(token)
            position += 1
    return found


def dot_attributes(tokens, position):
    attributes = {}
    while tokens[position] != ("mark", "]"):
        (_, name), (_, equals), (kind, value) = tokens[position : position + 3]
        assert equals == "="
        attributes[name] = dot_label(value) if kind == "string" else value
        position += 3
    return attributes, position + 1


def dot_label(string):
    """Read a label as Graphviz does: backslashes, then entities."""
    escapes = {"n": "\n", "\\": "\\", '"': '"'}
    plain = re.sub(r"\\(.)", lambda m: escapes[m[1]], string[1:-1], flags=re.DOTALL)
    return html.unescape(plain)


def check_dot(model, **limits):
    picture = drawing(model.view(4), **limits)
    statements = dot_statements(model.to_dot(**limits))
    nodes = {n: a for n, a in statements if re.fullmatch(r"n\d+", n)}
    edges = {n: a for n, a in statements if "->" in n}
    assert len(nodes) == len(picture)
    assert len(edges) == len(picture) - 1
    for i in range(len(picture)):
        words = [picture.head[i], picture.note[i]][: 1 if picture.left_out[i] else 2]
        assert nodes[f"n{i}"]["label"] == "\n".join(words)
        if i:
            edge = edges[f"n{picture.parent[i]} -> n{i}"]
            assert edge.get("label", "") == picture.label[i]


@pytest.mark.parametrize("name", TREES)
def test_dot_says_the_same(name):
    check_dot(TREES[name])
    check_dot(TREES[name], max_depth=1)


def test_dot_shows_names_as_they_are(hostile):
    check_dot(hostile)
    assert "=<" not in hostile.to_dot()  # no label in the manner of HTML


@given(st.text().filter(str.strip), st.text())
@settings(max_examples=examples(30), deadline=None)
def test_dot_holds_any_name(column, value):
    check_dot(fit_tree({column: [value, value + "x"]}, ["no", "yes"]))


# -- Mermaid

_MERMAID_NODE = re.compile(
    r'  n(\d+)(?:\["([^"]*)"\]|\("([^"]*)"\)|\(\["([^"]*)"\]\)):::(\w+)'
)
_MERMAID_EDGE = re.compile(r'  n(\d+) (?:---\|"([^"]*)"\||-\.-) n(\d+)')
_MERMAID_STYLE = re.compile(
    r"  (linkStyle [\d,]+ stroke-width:[\d.]+px|classDef \w+ [\w#:,. -]+)"
)


def mermaid_label(label):
    """Read a label as Mermaid does; marks of no width are not seen."""
    assert not re.search(
        r"[`*_<>&|~$@\\{}\[\];:!%-]", re.sub("<br/>|#\\d+;", "", label)
    )
    lines = (
        re.sub(r"#(\d+);", lambda m: chr(int(m[1])), x) for x in label.split("<br/>")
    )
    return "\n".join(lines)


def check_mermaid(model, **limits):
    picture = drawing(model.view(4), **limits)
    first, *lines = model.to_mermaid(**limits).split("\n")
    assert first == "flowchart TD"
    nodes, edges = {}, {}
    for line in lines:
        if match := _MERMAID_NODE.fullmatch(line):
            nodes[int(match[1])] = mermaid_label(match[2] or match[3] or match[4])
        elif match := _MERMAID_EDGE.fullmatch(line):
            edges[int(match[3])] = int(match[1]), mermaid_label(match[2] or "")
        else:
            assert _MERMAID_STYLE.fullmatch(line), line
    assert len(nodes) == len(picture)
    assert len(edges) == len(picture) - 1
    for i in range(len(picture)):
        words = [picture.head[i], picture.note[i]][: 1 if picture.left_out[i] else 2]
        shown = nodes[i]
        # What Mermaid looks for after it has read the entities.
        for special in ("\\n", "$$", "ﬂ°", "¶ß"):
            assert special not in shown
        assert not re.search(r":\w", shown)
        assert shown.replace("\u200c", "") == "\n".join(words).replace("\u200c", "")
        if i:
            parent, label = edges[i]
            assert parent == picture.parent[i]
            assert label.replace("\u200c", "") == picture.label[i].replace("\u200c", "")


@pytest.mark.parametrize("name", TREES)
def test_mermaid_says_the_same(name):
    check_mermaid(TREES[name])
    check_mermaid(TREES[name], max_depth=1)


def test_mermaid_shows_names_as_they_are(hostile):
    check_mermaid(hostile)


@given(st.text().filter(str.strip), st.text())
@settings(max_examples=examples(30), deadline=None)
def test_mermaid_holds_any_name(column, value):
    check_mermaid(fit_tree({column: [value, value + "x"]}, ["no", "yes"]))


def test_every_style_that_is_used_is_defined():
    text = TREES["c4.5"].to_mermaid(max_depth=2)
    used = set(re.findall(r":::(\w+)", text))
    assert used == set(re.findall(r"classDef (\w+)", text))
    assert "more" in used


# -- The same every time


def test_pictures_do_not_depend_on_when_they_are_drawn(weather):
    for method in ("to_svg", "to_dot", "to_mermaid"):
        assert getattr(weather, method)() == getattr(weather, method)()


def test_trees_of_one_branch_each():
    """A tree cut to its first level is drawn from left to right in branch order."""
    table = datasets.load("car")
    model = fit_tree(table.X, table.y, replace(CART, max_depth=3))
    picture = scene(drawing(model.view()))
    for parent in range(len(picture.drawing)):
        first = picture.drawing.first_child[parent]
        children = range(first, first + picture.drawing.n_children[parent])
        assert all(picture.x[a] < picture.x[b] for a, b in pairwise(children))
