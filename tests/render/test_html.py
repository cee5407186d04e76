"""The HTML page as text: what is in it, and what never is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from sklearn import config_context

from branchwise import CARTRegressor, ID3Classifier, datasets, fit_tree
from branchwise.data.table_schema import Column, Schema
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.render import view as html
from mixed_trees import HOSTILE, random_models
from tree_builder import TreeBuilder

ASSETS = files("branchwise.render") / "assets"


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


class Elements(HTMLParser):
    """Collects the elements of a page, and the text of scripts and styles."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.texts.append(data)


def data_of(page):
    return json.loads(re.search(r'id="tree-data">(.*?)</script>', page, re.S)[1])


def test_a_page_needs_nothing_else(weather):
    page = weather.to_html()
    for tag, attrs in Elements(page).tags:
        assert tag not in ("img", "object", "embed", "iframe", "base")
        assert "src" not in attrs
        assert attrs.get("href", "data:,") == "data:,"
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "@import" not in page


def test_the_policy_allows_our_script_and_nothing_else(weather):
    elements = Elements(weather.to_html())
    policy = next(
        attrs["content"]
        for tag, attrs in elements.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    style, _, script = elements.texts
    for text in (style, script):
        digest = hashlib.sha256(text.encode()).digest()
        assert base64.b64encode(digest).decode() in allowed


def test_hostile_names_stay_data():
    rng = np.random.default_rng(0)
    X = {name: rng.choice(HOSTILE, 200).tolist() for name in HOSTILE[:9]}
    model = fit_tree(X, rng.choice(HOSTILE, 200).tolist(), target_name="</title>")
    plain = fit_tree({"a": ["x", "y"]}, ["yes", "no"])
    page = model.to_html(title="</title><script>")
    # Names add no element, whatever they hold.
    shape = [tag for tag, _ in Elements(plain.to_html()).tags]
    assert [tag for tag, _ in Elements(page).tags] == shape
    inside = re.search(r'id="tree-data">(.*?)</script>', page, re.S)[1]
    assert not set(inside) & set("<>&\u2028\u2029\n")
    assert data_of(page)["columns"] == model.view()["columns"]


def test_compacting_loses_nothing():
    for model in random_models(28, seed=5):
        view = json.loads(json.dumps(model.view()))
        kept = json.loads(json.dumps(html.compact(view), allow_nan=False))
        nodes = view["nodes"]
        splitting = [i for i, n in enumerate(nodes["n_children"]) if n]
        for name in ("column", "threshold", "missing_to", "unseen_to"):
            assert kept[name] == [nodes[name][i] for i in splitting]
        codes = [[c] if isinstance(c, int) else c for c in kept["codes"]]
        assert codes == nodes["codes"]
        assert kept["gain"] == pytest.approx([nodes["gain"][i] for i in splitting])
        if view["predicts"] == "numbers":
            assert kept["mean"] == nodes["mean"]
            continue
        weights = kept["weights"]
        if isinstance(weights, dict):
            weights = np.zeros((len(model.tree), len(view["classes"])))
            for row, pairs in zip(weights, kept["weights"]["pairs"], strict=True):
                row[pairs[::2]] = pairs[1::2]
        assert np.array_equal(weights, nodes["weights"])


def test_a_page_takes_only_the_lists_that_it_needs(weather):
    for model in (weather, CARTRegressor().fit({"x": [1, 2]}, [1.0, 2.0]).model_):
        assert set(html.lists_for(model.tree)) < set(model.view()["nodes"])
        whole = html.page(model.view(), str(model))
        assert model.to_html() == whole


def test_large_trees_make_small_pages():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=6000), "b": rng.normal(size=6000)}
    model = fit_tree(X, rng.choice(["yes", "no"], 6000))
    empty = len(fit_tree({"a": ["x"]}, ["yes"]).to_html())
    text = len(str(model))
    assert (len(model.to_html()) - empty - text) / len(model.tree) < 50


def test_a_page_is_written_whole_or_not_at_all(weather, tmp_path):
    path = tmp_path / "tree.html"
    assert weather.to_html(path, title="Golf & <co>") is None
    page = path.read_text(encoding="utf-8")
    assert page == weather.to_html(title="Golf & <co>")
    assert "<title>Golf &amp; &lt;co&gt;</title>" in page
    assert html.GENERATOR in page
    with pytest.raises(FileNotFoundError):
        weather.to_html(tmp_path / "no" / "tree.html")
    assert list(tmp_path.iterdir()) == [path]


def test_titles(weather):
    title = re.compile("<title>(.*)</title>")
    assert title.search(weather.to_html())[1] == "play: decision tree"
    unnamed = fit_tree({"a": ["x", "y"]}, ["yes", "no"])
    assert title.search(unnamed.to_html())[1] == "Decision tree"
    assert title.search(unnamed.to_html(title="a\nb"))[1] == "a\\nb"


def test_a_notebook_gets_a_frame_of_its_own(weather):
    shown = weather._repr_html_()
    (frame,) = [attrs for tag, attrs in Elements(shown).tags if tag == "iframe"]
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == weather.to_html()
    fallback = re.search(r"<pre>(.*)</pre></iframe>$", shown, re.S)[1]
    assert unescape(fallback) == str(weather)


def test_a_notebook_shows_the_first_levels_of_large_trees():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=6000), "b": rng.normal(size=6000)}
    model = fit_tree(X, rng.choice(["yes", "no"], 6000))
    shown = data_of(unescape(model._repr_html_().split("<pre>")[0]))
    assert shown["abridged"]["n_nodes"] == len(model.tree)
    assert shown["abridged"]["why"].startswith("so that the notebook stays small")
    assert len(shown["n_children"]) <= html.NOTEBOOK_NODES < len(model.tree)
    assert len(shown["n_children"]) > 100


def test_a_notebook_shows_at_least_one_split():
    values = tuple(f"v{i:05}" for i in range(3000))
    schema = Schema((Column("k", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[3000, 0])
    for value in values:
        builder.child(0, "k", values=[value], weights=[1, 0])
    model = Model(schema, builder.build(), Recipe())
    shown = data_of(unescape(model._repr_html_().split("<pre>")[0]))
    assert len(shown["n_children"]) == 3001
    assert "abridged" not in shown


def test_estimators_keep_the_manners_of_scikit_learn(weather):
    tree = ID3Classifier()
    unfitted = tree._repr_html_()
    assert "iframe" not in unfitted
    table = datasets.load("weather")
    tree.fit(table.X, table.y)
    for shown in (tree._repr_html_(), tree._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in shown  # the diagram, and the tree below it
        assert shown.endswith(tree.model_._repr_html_())
    with config_context(display="text"):
        assert not hasattr(tree, "_repr_html_")
        assert set(tree._repr_mimebundle_()) == {"text/plain"}


def test_every_asset_is_used_and_can_be_read():
    scripts = {path.name for path in ASSETS.iterdir()}
    others = {"viewer.html", "frame.html", "charts.css", "picture.css"}
    assert scripts == {*html.SCRIPTS, *html.STYLES, *others}
    for path in ASSETS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") < 400, path.name
        if path.suffix != ".html":
            assert "</" not in text.replace("</script>", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js here")
def test_the_script_is_sound(tmp_path):
    script = tmp_path / "viewer.mjs"
    script.write_text(
        "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in html.SCRIPTS),
        encoding="utf-8",
    )
    checked = subprocess.run(
        ["node", "--check", str(script)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_with_its_rows_a_page_tells_what_every_column_would_have_gained(weather):
    table = datasets.load("weather")
    found = data_of(weather.to_html(X=table.X, y=table.y))["candidates"]
    gains = {c["column"]: c["score"] for c in found["0"]}
    assert gains["outlook"] == pytest.approx(0.24674981977443933)
    assert gains["windy"] == pytest.approx(0.04812703040826949)
    assert [c["column"] for c in found["0"] if c["chosen"]] == ["outlook"]
    assert set(found) == {"0", "2", "3"}
    stump = fit_tree({"a": [1, 1]}, ["no", "no"])
    assert data_of(stump.to_html(X={"a": [1, 1]}, y=["no", "no"]))["candidates"] == {}
