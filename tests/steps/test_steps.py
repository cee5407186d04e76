"""The worked solution: the textbooks' figures, reasons in words, every medium."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    ParameterError,
    datasets,
    fit_tree,
)
from branchwise.recipe import C45, CART, ID3
from branchwise.steps.result import style_sheet
from branchwise.text import document as latex
from branchwise.text.document import in_markdown

TENNIS = datasets.load("tennis")
WEATHER = datasets.load("weather")


def steps(estimator, table, node=0):
    return estimator.fit(table.X, table.y).model_.steps(table.X, table.y, node)


def text_of(recipe, X, y, node=0, weights=None):
    model = fit_tree(X, y, recipe, sample_weight=weights)
    return model.steps(X, y, node, weights).to_text()


# The seeds' figures, to the digit


@pytest.mark.parametrize(
    "line",
    [
        "H(S) = -5/14 log2 5/14 - 9/14 log2 9/14 = 0.940",
        "H(outlook = cloudy) = -4/4 log2 4/4 = 0.000",
        "H(outlook = sunny) = -3/5 log2 3/5 - 2/5 log2 2/5 = 0.971",
        "H(outlook = rainy) = -2/5 log2 2/5 - 3/5 log2 3/5 = 0.971",
        "H(S | outlook) = 4/14 * 0.000 + 5/14 * 0.971 + 5/14 * 0.971 = 0.694",
        "gain(outlook) = 0.940 - 0.694 = 0.247",
        "gain(temperature) = 0.940 - 0.911 = 0.029",
        "gain(humidity) = 0.940 - 0.788 = 0.152",
        "gain(wind) = 0.940 - 0.892 = 0.048",
        "H(wind = weak) = -2/8 log2 2/8 - 6/8 log2 6/8 = 0.811",
        "H(wind = strong) = -3/6 log2 3/6 - 3/6 log2 3/6 = 1.000",
        "wind         0.048",
    ],
)
def test_tennis(line):
    assert line in str(steps(ID3Classifier(), TENNIS)).splitlines()


def test_the_choice_has_a_reason():
    said = "outlook is chosen: its gain, 0.247, is the highest. Next is humidity with"
    assert f"{said} 0.152." in str(steps(ID3Classifier(), TENNIS)).splitlines()


def test_the_wrong_figure_of_a_seed_is_not_there():
    text = str(steps(ID3Classifier(), TENNIS, "all"))
    assert "0.724" not in text
    assert "0.246" not in text


def test_tennis_further_down():
    nodes = steps(ID3Classifier(), TENNIS, "all")
    sunny = next(s for s in nodes.nodes if s.path and s.path[-1].value == "sunny")
    assert [None if c.gain is None else f"{c.gain:.3f}" for c in sunny.candidates] == [
        None,
        "0.571",
        "0.971",
        "0.020",
    ]
    assert sunny.candidate("outlook").out == "one value"
    rainy = next(s for s in nodes.nodes if s.path and s.path[-1].value == "rainy")
    assert rainy.chosen == "wind"
    assert f"{rainy.candidate('wind').gain:.3f}" == "0.971"


def test_golf_fish_and_votes():
    golf = str(steps(ID3Classifier(), datasets.load("golf")))
    assert "= 0.940" in golf
    assert "gain(Outlook) = 0.940 - 0.694 = 0.247" in golf
    fish = str(steps(ID3Classifier(), datasets.load("fish")))
    assert re.search(r"H\(S\) = .* = 0\.971", fish)
    assert re.search(r"gain\(.+\) = 0\.971 - 0\.551 = 0\.420", fish)
    voters = str(steps(ID3Classifier(), datasets.load("voters")))
    assert "gain(Sex) = 0.971 - 0.951 = 0.020" in voters
    assert "gain(Education) = 0.971 - 0.649 = 0.322" in voters


def test_the_toy_of_seed_four():
    text = str(steps(ID3Classifier(), datasets.load("toy"), "all"))
    assert "= 0.989" in text  # 0.98870 at its root
    for gain in ("0.036", "0.106"):
        assert f"= {gain}\n" in text


def test_digits():
    text = steps(ID3Classifier(), TENNIS).to_text(digits=6)
    assert "= 0.940286\n" in text
    assert "gain(outlook) = 0.940286 - 0.693536 = 0.246750" in text


# What the recipes use


def test_c45_shows_ratio_penalty_and_average():
    text = str(steps(C45Classifier(), WEATHER))
    assert "gain ratio(outlook) = 0.247 / 1.577 = 0.156" in text
    assert "9 positions between neighbouring numbers; 7 thresholds tried" in text
    assert "penalty(humidity) = 1/14 * log2 7 = 0.201" in text
    assert "lowered gain(humidity) = 0.152 - 0.201 = -0.049" in text
    assert "humidity is out: its best threshold gains 0.152, no more than the" in text
    assert "average gain(S) = 1/2 * (0.247 + 0.048) = 0.147" in text
    assert "windy is out: its gain, 0.048, is below the average gain" in text


def test_missing_cases_outside_are_a_factor():
    X = {"a": ["p", "p", "q", "q", None, None], "b": list("uvuvuv")}
    text = text_of(replace(ID3, missing="split"), X, list("nnyyny"))
    assert "(missing)  1  1      2  1.000\n" in text
    assert "H(a is known) = -2/4 log2 2/4 - 2/4 log2 2/4 = 1.000" in text
    assert "gain(a) = 4/6 * (1.000 - 0.000) = 0.667" in text
    assert "they go down every branch" in text
    ratio = text_of(
        replace(ID3, missing="split", criterion="gain_ratio"), X, list("nnyyny")
    )
    assert (
        "split information(a) = -2/6 log2 2/6 - 2/6 log2 2/6 - 2/6 log2 2/6 = 1.585"
        in ratio
    )


def test_missing_cases_with_a_branch_of_their_own():
    X = {"a": ["p", "p", "q", "q", None, None]}
    text = text_of(ID3, X, list("nnyynn"))
    assert "H(a is missing) = -2/2 log2 2/2 = 0.000" in text
    assert "- a is missing: node 3, n (2), a leaf" in text


def test_missing_cases_that_learn_their_side():
    X = {"a": ["p"] * 4 + ["q"] * 4 + [None] * 4, "x": [1.0, 2.0, 3.0, None] * 3}
    y = ["n"] * 4 + ["y"] * 8
    text = text_of(replace(CART, missing="learned"), X, y)
    assert "The missing cases fit best with a = q." in text
    assert "a is missing: they go to node 2" in text


def test_groups_of_values():
    text = str(steps(CARTClassifier(), WEATHER))
    assert "3 values make two branches in 3 ways." in text
    assert "rainy, sunny   5    5     10  0.500" in text
    assert "Gini(outlook in {rainy, sunny}) = 1 - (5/10)^2 - (5/10)^2 = 0.500" in text
    car = datasets.load("car")
    grouped = str(steps(C45Classifier(group_values=True), car))
    assert "3 values in 2 groups: the best of the groupings" in grouped


def test_numbers_to_predict():
    X = {"rooms": [2, 3, 3, 4, 5, 5]}
    rent = [500, 600, 650, 800, 900, 1000]
    model = CARTRegressor().fit(X, rent).model_
    text = model.steps(X, rent).to_text()
    assert "6 cases, mean 741.67." in text
    assert "Var(S) = 1/6 * sum of (y - 741.67)^2 = 30347" in text
    assert "gain(rooms) = 30347 - 5277.8 = 25069" in text
    weighted = CARTRegressor().fit(X, rent, [1, 2, 1, 1, 1, 1]).model_
    assert "sum of w (y - " in str(weighted.steps(X, rent, 0, [1, 2, 1, 1, 1, 1]))
    poisson = CARTRegressor(criterion="poisson").fit(X, rent).model_
    assert "D(S) = -741.67 log2 741.67 = -7071.5" in str(poisson.steps(X, rent))


def test_a_function_as_criterion_has_a_score():
    def accuracy(parent, branches):
        right = branches.max(axis=2).sum(axis=1)
        return (right - parent.max(axis=1)) / parent.sum(axis=1)

    text = str(steps(ID3Classifier(criterion=accuracy), TENNIS))
    assert "Worked solution: ID3, accuracy" in text
    assert "score(outlook) = 0.071" in text
    assert "H(" not in text


def test_weights():
    weights = np.where(np.array(TENNIS.y) == "no", 2.5, 1.0)
    text = text_of(ID3, TENNIS.X, TENNIS.y, 0, weights)
    assert "14 cases of weight 21.5; by weight: 12.5 no, 9 yes." in text
    assert "H(S) = -12.5/21.5 log2 12.5/21.5 - 9/21.5 log2 9/21.5 = 0.981" in text


def test_bins_are_cut_where_the_model_cuts():
    X = {"x": [float(i) for i in range(40)]}
    y = ["n"] * 17 + ["y"] * 23
    recipe = replace(CART, max_bins=5)
    model = fit_tree(X, y, recipe)
    nodes = model.steps(X, y, "all")
    assert all(s.as_chosen for s in nodes.nodes)
    assert nodes[0].candidates[0].threshold == float(model.tree.threshold[0])
    assert f"x <= {nodes[0].candidates[0].threshold:g}" in str(nodes)


# Reasons


def test_the_first_of_equals_is_taken():
    X = {"b": list("ppqq"), "a": list("ppqq")}
    text = text_of(ID3, X, list("nnyy"))
    assert "b, a have the same gain, 1.000. Of equals the first column" in text
    assert "of the table is taken: b is chosen." in text
    assert re.search(r"^a +1\.000  equal$", text, flags=re.M)


def test_the_lowest_of_equal_thresholds_is_taken():
    text = text_of(ID3, {"x": [1.0, 2.0, 3.0]}, ["n", "y", "n"])
    assert "The best is 1, the lowest of 2 that are equally good." in text


def test_a_split_at_gain_0():
    X = {"a": list("0011"), "b": list("0101")}
    text = text_of(ID3, X, list("nyyn"))
    assert "It gains nothing by itself." in text
    assert "a is chosen" in text


def test_figures_that_look_alike_get_more_digits():
    rng = random.Random(5)
    X = {"a": [rng.choice("pq") for _ in range(4000)]}
    X["b"] = list(X["a"])
    X["b"][0] = "p" if X["a"][0] == "q" else "q"
    y = [rng.choice("ny") for _ in range(4000)]
    model = fit_tree(X, y, replace(ID3, max_depth=1))
    text = model.steps(X, y).to_text(digits=1)
    found = re.search(
        r"its gain, (\S+), is the highest. Next is \S+ with (\S+)\.", text
    )
    assert found is not None
    assert found[1] != found[2]


@pytest.mark.parametrize(
    ("recipe", "X", "said"),
    [
        (ID3, {"a": ["p"] * 4}, "a is out: all cases here have the same value."),
        (
            replace(ID3, missing="node"),
            {"a": list("ppqq"), "x": [None] * 4},
            "x is out: no case here has a value.",
        ),
        (
            replace(ID3, min_samples_leaf=2),
            {"a": list("pqqq")},
            "a is out: a = p has 1 case, and min_samples_leaf requires 2 in every",
        ),
        (
            replace(C45, pruning=None, collapse=False),
            {"a": list("pqqq")},
            "a is out: fewer than two branches would have the 2 cases",
        ),
        (
            replace(CART, min_samples_leaf=2),
            {"a": list("pqqq")},
            "a is out: no grouping of its values that was tried leaves enough cases",
        ),
        (
            replace(ID3, min_samples_leaf=3),
            {"x": [1.0, 2.0, 3.0, 4.0]},
            "x is out: no threshold leaves 3 cases on both sides.",
        ),
        (
            replace(ID3, min_samples_leaf=2),
            {"x": [1.0, 2.0, 3.0, None]},
            "x is out: the branch of missing values would have fewer than the 2 cases",
        ),
        (
            replace(ID3, min_gain=0.9),
            {"a": list("pqqq")},
            "a is out: its gain, 0.311, is below min_gain=0.9.",
        ),
        (
            replace(ID3, min_gain=0.9),
            {"x": [1.0, 2.0, 2.0, 2.0]},
            "x is out: its gain, 0.311, is below min_gain=0.9.",
        ),
    ],
)
def test_why_a_column_is_out(recipe, X, said):
    text = text_of(recipe, X, list("nynn" if "x" in X and None in X["x"] else "nnyy"))
    assert said in text


def test_a_criterion_may_refuse():
    def never(parent, branches):
        return np.full(len(parent), -np.inf)

    text = text_of(replace(ID3, criterion=never), {"a": list("pq")}, list("ny"))
    assert "a is out: the criterion gives it no score." in text
    assert "No column can split these cases." in text


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (ID3, "because all its cases have one class."),
        (replace(ID3, max_depth=1), "max_depth=1 allows no further split"),
        (replace(ID3, min_samples_split=6), "a split needs 6 cases"),
        (replace(ID3, max_p_value=1e-9), "the p-value of its best split is too large"),
        (replace(ID3, min_gain=0.98), "no column can split it"),
        (replace(CART, max_leaf_nodes=2), "pruned away afterwards (max_leaf_nodes=2)"),
        (
            replace(CART, pruning="cost-complexity", ccp_alpha=0.1),
            "pruned away afterwards (pruning='cost-complexity')",
        ),
    ],
)
def test_why_a_leaf_is_a_leaf(recipe, said):
    assert said in text_of(recipe, TENNIS.X, TENNIS.y, "all")


def test_the_p_value_is_worked_out():
    text = text_of(replace(ID3, max_p_value=0.05), TENNIS.X, TENNIS.y)
    assert "By a chi-square test the p-value of the split on outlook is" in text
    assert "0.17 * 4 columns = 0.679, more than max_p_value=0.05" in text
    assert "the node stays a leaf" in text


def test_a_tree_cut_by_hand():
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_.collapse_nodes(0)
    text = str(model.steps(TENNIS.X, TENNIS.y))
    assert (
        "But the subtree was collapsed by hand afterwards, so the node is a leaf"
        in text
    )


def test_a_raised_branch_and_a_tree_made_by_hand():
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    mixed = replace_column(model)
    text = str(mixed.steps(TENNIS.X, TENNIS.y))
    assert (
        "But the tree splits on wind here: it was changed after it was grown." in text
    )
    raised = type(mixed)(
        mixed.schema, mixed.tree, replace(mixed.recipe, pruning="error-based")
    )
    assert "put a branch in the place of its parent" in str(
        raised.steps(TENNIS.X, TENNIS.y)
    )


def replace_column(model):
    """Return a model that splits on the wind first, whatever the search says."""
    wind = {"wind": TENNIS.X["wind"]}
    small = ID3Classifier().fit(wind, TENNIS.y).model_
    tree = replace(small.tree, column=np.where(small.tree.column == 0, 3, -1))
    return type(model)(model.schema, tree, model.recipe)


def test_merged_leaves_are_told():
    X = {"a": list("ppqqrr")}
    model = fit_tree(X, list("nnnnyy"), ID3).merge_same_leaves()
    text = str(model.steps(X, list("nnnnyy")))
    assert "The branches of a were changed after the tree was grown." in text
    assert "- a in {p, q}: node" in text


def test_costs_and_absent_values():
    toy = datasets.load("toy")
    model = ID3Classifier(categories=toy.categories).fit(toy.X, toy.y).model_
    assert "no case here; such cases stop here" in str(model.steps(toy.X, toy.y, "all"))
    costly = CARTClassifier(costs=[[0, 9], [1, 0]]).fit(TENNIS.X, TENNIS.y).model_
    assert "least expected cost" in str(costly.steps(TENNIS.X, TENNIS.y, "all"))


@pytest.mark.parametrize(
    "estimator",
    [
        ID3Classifier(),
        ID3Classifier(criterion="gini", missing="node"),
        C45Classifier(prune=False),
        C45Classifier(group_values=True),
        CARTClassifier(missing="surrogate"),
        CARTClassifier(missing="learned"),
        CARTClassifier(missing="branch"),
    ],
    ids=repr,
)
def test_the_tree_does_what_the_steps_say(estimator):
    votes = datasets.load("house_votes")
    few = {name: cells[:60] for name, cells in list(votes.X.items())[:5]}
    found = steps(estimator, replace(votes, X=few, y=votes.y[:60]), "all")
    assert len(found.nodes) == len(estimator.model_.tree)
    assert all(s.as_chosen for s in found.nodes if s.column is not None)
    json.dumps(found.to_dict(), allow_nan=False)


def test_many_values_and_classes_are_shortened():
    rng = random.Random(0)
    X = {"v": [f"v{i % 60}" for i in range(300)]}
    y = [f"c{rng.randint(0, 29)}" for _ in range(300)]
    text = text_of(replace(ID3, max_depth=1), X, y)
    assert "(36 more)" in text
    assert "18 others" in text
    assert "(6 more)" in text


def test_a_deep_tree_takes_no_recursion():
    n = 400
    X, y = {"x": [float(i) for i in range(n)]}, [str(i % 2) for i in range(n)]
    model = fit_tree(X, y, CART)
    last = len(model.tree) - 1
    found = model.steps(X, y, last)
    assert found[last].depth > 300
    assert "conditions more) and x" in str(found)


# Every medium

NASTY = {
    'c<b>|`$_&"%#~^\\{}': [
        "</script><script>alert(1)</script>",
        "a|b",
        "x`y```z",
        "*/ -- ;",
        "\u202egnp",
        "new\nline",
        "nul\0",
        "😀",
        "ä_ö",
        "[x](http://e)",
        " blank ",
        "",
    ]
    * 3,
    "num&": [1.5, 2.5, None] * 12,
}
NASTY_Y = ["<i>", "yes|", "no\n", "<i>"] * 9


@pytest.fixture(
    params=[ID3Classifier(), C45Classifier(), CARTClassifier(missing="learned")],
    ids=["id3", "c4.5", "cart"],
)
def nasty(request):
    model = request.param.fit(NASTY, NASTY_Y).model_
    return model.steps(NASTY, NASTY_Y, "all")


OURS = """html head meta title style body section h1 h2 h3 p ul li table thead tbody tr
th td div details summary pre
math mi mn mo mtext mrow mfrac msub msup mspace"""


class Balance(HTMLParser):
    """Notes tags that are open, and everything that is not ours."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = set()
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    balance = Balance()
    balance.feed(page)
    balance.close()
    assert balance.open == []
    assert balance.seen <= set(OURS.split())
    return balance


def test_html_is_sound_and_everything_is_escaped(nasty):
    page = nasty.to_html()
    assert page.startswith("<!DOCTYPE html>")
    found = parsed(page)
    text = "".join(found.text)
    assert "</script><script>alert(1)</script>" in text
    assert "http" not in re.sub(r"\[x\]\(http://e\)", "", page)
    assert "<details>" in page
    assert "<details>" not in nasty.to_html(reveal=True)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_a_fragment_for_another_page(nasty):
    part = nasty.to_html_fragment(heading=3)
    assert part.startswith('<section class="branchwise-steps">')
    assert "<style" not in part
    assert "<h3>Worked solution" in part
    assert "<h1" not in part
    assert nasty._repr_html_().startswith("<style>")
    assert style_sheet() in nasty._repr_html_()
    bare = re.sub(r"@media[^{]*\{", "", style_sheet())
    selectors = re.findall(r"(?:^|\})\s*([^{}]+?)\s*\{", bare)
    assert len(selectors) > 10
    for selector in ",".join(selectors).split(","):
        assert selector.strip().startswith(".branchwise-steps"), selector


def test_html_says_what_the_text_says():
    page = steps(ID3Classifier(), TENNIS).to_html()
    page = re.sub(
        r"<mfrac><mrow>(.*?)</mrow><mrow>(.*?)</mrow></mfrac>", r"\1/\2", page
    )
    text = re.sub(r"\s+", "", "".join(parsed(page).text))
    text = text.replace("\N{MINUS SIGN}", "-")
    assert "gain(outlook)=0.940-0.694=0.247" in text
    assert "H(S)=-5/14log25/14-9/14log29/14=0.940" in text


def test_markdown():
    page = steps(ID3Classifier(), TENNIS).to_markdown()
    assert page.startswith("# Worked solution: ID3, gain\n\n## Node 0: the root")
    assert "| outlook | no | yes | cases | H |\n|---|---:|---:|---:|---:|\n" in page
    assert "```text\nH(S) = -5/14 log2" in page
    assert steps(ID3Classifier(), TENNIS)._repr_markdown_() == page


def test_markdown_is_escaped(nasty):
    page = nasty.to_markdown()
    # Outside of code there is neither a tag nor an open tick nor a link.
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", page, flags=re.M | re.S)
    bare = re.sub(r"\\.", "", outside)
    assert not re.search(r"[<>`\[\]]", bare)
    widths = {
        len(re.findall(r"(?<!\\)\|", row))
        for row in outside.splitlines()
        if row.startswith("| c")
    }
    assert widths
    for table in re.findall(r"(?:^\|.*\n?)+", outside, flags=re.M):
        assert (
            len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
        )
    assert in_markdown("- a") == "\\- a"
    assert in_markdown("1. a") == "1\\. a"
    assert in_markdown("a.b") == "a.b"


def test_latex(nasty):
    for page in (steps(C45Classifier(), WEATHER).to_latex(), nasty.to_latex()):
        check_latex(page)


def check_latex(page):
    assert page.isascii() or set(page) - set(map(chr, range(128))) <= latex._LETTERS
    assert page.count(r"\begin{document}") == page.count(r"\end{document}") == 1
    environments = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", page):
        if kind == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert environments == []
    body = page.split(r"\begin{document}")[1]
    depth = 0
    for character in re.sub(r"\\[{}]", "", body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    body = body.replace(r"{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%", "{{")
    bare = re.sub(r"\\([{}$&#%_]|[A-Za-z]+)", "", body)
    bare = re.sub(r"\[1\]\{.*\}", "", bare, count=1)  # \providecommand
    assert not re.search(r"[$#%~|<>\"`]", bare), re.search(r"[$#%~|<>\"`]", bare)
    assert "_" not in bare.replace("_2", "")
    assert "^" not in bare.replace("^2", "")
    for table in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end", body, flags=re.S):
        for row in table[1].strip().split("\n"):
            assert len(re.findall(r"(?<!\\)&", row)) == len(table[0]) - 1


def test_latex_as_a_part():
    part = steps(ID3Classifier(), TENNIS).to_latex(document=False)
    assert "documentclass" not in part
    assert r"\text{gain}(\text{outlook}) &= 0.940 - 0.694 = 0.247" in part
    assert r"-\tfrac{5}{14} \log_2 \tfrac{5}{14}" in part


def test_long_formulas_are_broken_in_latex():
    X = {"v": [f"v{i % 10}" for i in range(40)]}
    y = ["n", "y", "y"] * 13 + ["n"]
    page = fit_tree(X, y, ID3).steps(X, y).to_latex()
    assert "\\\\\n&\\quad  + " in page
    check_latex(page)


# The object


def test_the_numbers_are_there():
    found = steps(ID3Classifier(), TENNIS, [0, 3])
    assert [s.node for s in found.nodes] == [0, 3]
    assert found[3].depth == 1
    with pytest.raises(KeyError, match="no steps of node 1: these are of 0, 3"):
        found[1]
    assert list(found) == list(found.nodes)
    assert len(found) == 2
    with pytest.raises(StopIteration):
        found[0].candidate("nothing")
    assert repr(found) == "<branchwise steps of nodes 0, 3; print() shows them>"
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["criterion"] == "gain"
    assert document["nodes"][0]["candidates"][0]["gain"] == found[0].candidates[0].gain


@pytest.mark.parametrize("node", [-1, 8, 1.5, "root", True, [0, 9], None])
def test_nodes_that_are_none(node):
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    with pytest.raises(
        ParameterError, match="node must be the number of a node, from 0"
    ):
        model.steps(TENNIS.X, TENNIS.y, node)


def test_errors():
    model = ID3Classifier().fit(TENNIS.X, TENNIS.y).model_
    with pytest.raises(ParameterError, match="Got an empty list"):
        model.steps(TENNIS.X, TENNIS.y, [])
    with pytest.raises(ParameterError, match="Got None for y"):
        model.steps(TENNIS.X, None)
    with pytest.raises(DataError, match="These rows give other counts"):
        model.steps(TENNIS.X, TENNIS.y, 0, [2.0] * 14)
    with pytest.raises(DataError, match="sample_weight must have one weight for each"):
        model.steps(TENNIS.X, TENNIS.y, 0, [2.0])
    strange = {**TENNIS.X, "outlook": ["foggy", *TENNIS.X["outlook"][1:]]}
    with pytest.raises(DataError, match="'outlook' has a value in row 0"):
        model.steps(strange, TENNIS.y)
    with pytest.raises(ParameterError, match="digits must be a whole number from 1"):
        model.steps(TENNIS.X, TENNIS.y).to_text(digits=0)
    X, y = {"x": [1.0, 2.0, 3.0]}, [1.0, 2.0, 4.0]
    numbers = CARTRegressor().fit(X, y).model_
    with pytest.raises(DataError, match="These rows give other counts"):
        numbers.steps(X, [1.0, 2.0, 5.0])


def test_the_compiled_tree_is_worked_out_alike(monkeypatch):
    fast = str(steps(ID3Classifier(), WEATHER, "all"))
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    assert str(steps(ID3Classifier(), WEATHER, "all")) == fast


def test_thresholds_of_weighted_rows_name_weights():
    X, y = {"x": [1.0, 2.0, 3.0, 4.0]}, ["n", "n", "y", "n"]
    weights = [1.0, 1.0, 2.0, 1.0]
    model = fit_tree(X, y, CART, sample_weight=weights)
    text = model.steps(X, y, 0, weights).to_text()
    assert re.search(r"^threshold +up to it \(weight\) +above \(weight\)", text, re.M)
    assert re.search(r"^2 +2 +3 ", text, re.M)
    text = fit_tree(X, y, CART).steps(X, y, 0).to_text()
    assert re.search(r"^threshold +up to it +above", text, re.M)
