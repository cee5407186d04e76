"""The tree as text with lines and as Markdown; Quinlan's form is in test_text.py."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from branchwise import Model, ParameterError, Recipe, datasets, fit_tree
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import CART
from branchwise.render.plain_text import STYLES
from branchwise.text.document import in_markdown as markdown
from selection import examples
from tree_builder import TreeBuilder

STYLE_NAMES = list(STYLES)


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


def chain(levels):
    schema = Schema((Column("n", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[levels, 1])
    node = 0
    for level in range(levels):
        builder.child(node, "n", at_most=level, weights=[1, 0])
        node = builder.child(node, "n", above=level, weights=[levels - level - 1, 1])
    return Model(schema, builder.build(), Recipe())


def test_box(weather):
    assert weather.to_text(style="box") == (
        "play\n"
        "├── outlook = overcast: yes (4)\n"
        "├── outlook = rainy\n"
        "│   ├── windy = FALSE: yes (3)\n"
        "│   └── windy = TRUE: no (2)\n"
        "└── outlook = sunny\n"
        "    ├── humidity <= 80: yes (2)\n"
        "    └── humidity >= 81: no (3)"
    )


def test_markdown(weather):
    assert weather.to_text(style="markdown") == (
        "- outlook = overcast: **yes (4)**\n"
        "- outlook = rainy\n"
        "  - windy = FALSE: **yes (3)**\n"
        "  - windy = TRUE: **no (2)**\n"
        "- outlook = sunny\n"
        "  - humidity ≤ 80: **yes (2)**\n"
        "  - humidity ≥ 81: **no (3)**"
    )


def test_quinlan_is_the_default(weather):
    assert weather.to_text(style="quinlan") == weather.to_text() == str(weather)


def test_a_target_without_a_name():
    model = fit_tree({"c": ["x", "y"]}, ["no", "yes"])
    assert model.to_text(style="box").splitlines()[0] == "target"
    named = fit_tree({"c": ["x", "y"]}, ["no", "yes"], target_name="")
    assert named.to_text(style="box").splitlines()[0] == "''"


def test_a_single_leaf_and_a_hidden_root(weather):
    leaf = fit_tree({"a": [1, 2]}, ["x", "x"])
    assert leaf.to_text(style="box") == "x (2)"
    assert leaf.to_text(style="markdown") == "**x (2)**"
    assert weather.to_text(style="box", max_depth=0) == "yes (14/5) ..."
    assert weather.to_text(style="markdown", max_depth=0) == "**yes (14/5) ...**"


def speeds(**options):
    X = {
        "road": ["town", "town", "town", "land", "land", "motorway", "motorway", None],
        "rain": [0.0, 1.0, 4.0, 0.0, 3.0, 0.5, 5.0, None],
    }
    kmh = [50.0, 48.0, 30.0, 100.0, 80.0, 130.0, 110.0, 90.0]
    recipe = replace(CART, criterion="variance", max_depth=2, **options)
    return fit_tree(X, kmh, recipe, target_name="speed", categories={
        "road": ["town", "land", "motorway", "field", "air"]
    })  # fmt: skip


def test_lines_without_a_branch_are_drawn_too():
    text = speeds(missing="node").to_text(
        style="box", max_depth=1, missing=True, empty_branches=True, max_values=1
    )
    assert text == (
        "speed\n"
        "├── road = town: 42.667 (3, ± 8.99) ...\n"
        "├── road in {land, ... (1 more)}: 105 (4, ± 18) ...\n"
        "├── road is missing: 79.75 (1)\n"
        "└── road in {field, ... (1 more)}: 79.75 (0)"
    )


OPTIONS = [
    {},
    {"max_depth": 1},
    {"max_values": 1},
    {"empty_branches": True},
    {"missing": True},
    {"max_depth": 1, "max_values": 1, "empty_branches": True, "missing": True},
]


def without_marks(line, style):
    """Return what a line says, and how deep it is."""
    if style == "quinlan":
        start = re.match(r"(\|   )*", line)[0]
        return line[len(start) :].removesuffix(":"), len(start) // 4
    if style == "box":
        start = re.match(r"(│   |    )*(├── |└── )", line)[0]
        return line[len(start) :], len(start) // 4 - 1
    start = re.match(r"( *)- ", line)[0]
    rest = re.sub(r": \*\*(.*)\*\*$", r": \1", line[len(start) :])
    return re.sub(r"\\(.)", r"\1", rest), len(start) // 2 - 1


@pytest.mark.parametrize("policy", ["node", "branch", "split", "learned"])
@pytest.mark.parametrize("options", OPTIONS)
def test_every_style_says_the_same(policy, options):
    model = speeds(missing=policy)
    wanted = [
        without_marks(line, "quinlan") for line in model.to_text(**options).splitlines()
    ]
    head, *boxed = model.to_text(style="box", **options).splitlines()
    assert head == "speed"
    assert [without_marks(line, "box") for line in boxed] == wanted
    listed = model.to_text(style="markdown", **options).replace("≤", "<=").splitlines()
    assert [without_marks(line, "markdown") for line in listed] == wanted


@pytest.mark.parametrize("levels", [24, 25, 60])
def test_deep_subtrees_are_broken_off(levels):
    quinlan, box, listed = (chain(levels).to_text(style=name) for name in STYLE_NAMES)
    assert quinlan.count("Subtree") == box.count("Subtree") == (levels - 1) // 24
    for number in range(1, box.count("Subtree") + 1):
        assert box.count(f": [S{number}]\n") == 1
        assert box.count(f"\n\nSubtree [S{number}]\n├── ") == 1
        assert listed.count(f": **\\[S{number}\\]**\n") == 1
        assert listed.count(f"\n\n**Subtree \\[S{number}\\]**\n\n- ") == 1
    assert max(len(line) for line in box.splitlines()) < 200


def test_lines_meet():
    """Below every line with a branch to come there is a line, up to that branch."""
    table = datasets.load("car")
    model = fit_tree(table.X, table.y, replace(CART, max_depth=5))
    lines = model.to_text(style="box").splitlines()
    for above, below in pairwise(lines):
        for at, mark in enumerate(above):
            if mark in "├│" and at % 4 == 0 and set(above[:at]) <= set("│ "):
                assert below[at : at + 1] in ("├", "└", "│")
            elif mark not in "│ ":
                break


@pytest.mark.parametrize("style", ["svg", "Box", None])
def test_unknown_styles_are_refused(weather, style):
    with pytest.raises(ParameterError) as caught:
        weather.to_text(style=style)
    assert str(caught.value) == (
        f"style must be 'quinlan', 'box' or 'markdown'. Got {style!r}. Pictures have "
        "methods of their own: to_svg, to_dot, to_mermaid."
    )


# -- Markdown shows names as they are


def shown(source):
    """Return what a page shows of Markdown: the text of each list item, and tags."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    tags = set(re.findall(r"<(\w+)", page))
    lines = re.sub(r"<[^>]+>", "\n", page).split("\n")
    return [html.unescape(line).replace("\xa0", " ") for line in lines if line], tags


HOSTILE = [
    "*a* **b** _c_ __d__ ~~e~~",
    "`code`",
    "[link](http://e.org) ![image](x)",
    "<b>bold</b> <!-- no -->",
    "&amp; &#34;",
    "1. one",
    "12) twelve",
    "- item",
    "+ item",
    "# head",
    "> quote",
    "| a | b |",
    "\\* \\",
    "===",
    "---",
    "http://example.org www.example.org",
    "a@example.org @name #12",
    "$x$ :smile:",
    "two\nlines",
    "two  blanks",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_shows_names_as_they_are(name):
    model = fit_tree({name: [name, name + "2"]}, [name, "no"], target_name=name)
    quinlan = model.to_text().splitlines()
    lines, tags = shown(model.to_text(style="markdown"))
    assert tags <= {"ul", "li", "strong"}
    said = "".join(lines)
    assert re.sub(" +", " ", said) == re.sub(" +", " ", "".join(quinlan))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
@settings(max_examples=examples(150))
def test_markdown_shows_any_text(text):
    lines, tags = shown(f"- {markdown('c' + text)}: **{markdown('c' + text)} (1)**")
    assert tags <= {"ul", "li", "strong"}
    said = "".join(lines)
    wanted = f"c{text}: c{text} (1)"
    assert re.sub(" +", " ", said) == re.sub(" +", " ", wanted)


def test_nothing_recurses():
    for style in ("box", "markdown"):
        text = chain(1200).to_text(style=style)
        assert text.count("(1)") == 1201
