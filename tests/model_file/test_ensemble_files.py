"""Files of ensembles: round trips, canonical bytes, refusals and mutations."""

from __future__ import annotations

import importlib.util
import json
import random
from binascii import b2a_base64
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import branchwise
from branchwise import (
    BoostedClassifier,
    BranchwiseError,
    CARTClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    Model,
    ModelFileError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise import model_file as persist
from branchwise.ensemble.ensemble import Ensemble
from branchwise.model_file.array_text import array_of_text, array_text
from branchwise.recipe.ensemble_recipe import ENSEMBLE_FIELDS, EnsembleRecipe
from forest_tables import mixed
from mixed_ensembles import damaged, random_ensemble
from mixed_trees import ESTIMATORS
from model_mutations import REMOVE, changed
from selection import first_fast

FUZZ = Path(__file__).parents[2] / "fuzz" / "models.py"
X, Y = mixed(120)
FORESTS = {
    "cart": RandomForestClassifier(n_estimators=4),
    "id3": RandomForestClassifier(n_estimators=3, base="id3", max_depth=3),
    "c4.5": RandomForestClassifier(n_estimators=3, base="c4.5", voting="hard"),
    "all rows": RandomForestClassifier(
        n_estimators=2, bootstrap=False, max_features=1.0, random_state=2**100
    ),
    "one column": RandomForestClassifier(n_estimators=2, max_features=1),
    "balanced": RandomForestClassifier(
        n_estimators=2, class_weight="balanced_subsample", max_samples=0.5
    ),
    "costs": RandomForestClassifier(n_estimators=2, costs=[[0, 5], [1, 0]]),
    "surrogates": RandomForestClassifier(n_estimators=2, missing="surrogate"),
    "numbers": RandomForestRegressor(n_estimators=3, max_depth=4),
    "boosted": BoostedClassifier(n_estimators=3, max_depth=3),
    "two classes": GradientBoostingClassifier(n_estimators=3),
    "three classes": GradientBoostingClassifier(n_estimators=3, subsample=0.7),
    "poisson numbers": GradientBoostingRegressor(n_estimators=3, loss="poisson"),
}


def fitted(name: str) -> Ensemble:
    targets = {
        "numbers": X["noise"],
        "poisson numbers": np.exp(X["noise"]),
        "three classes": np.where(X["income"] > 0.5, "rich", Y),
    }
    target = targets.get(name, Y)
    return FORESTS[name].fit(X.drop(columns="noise"), target).model_


@pytest.mark.parametrize("name", FORESTS)
def test_a_saved_forest_is_the_same(name, tmp_path):
    forest = fitted(name)
    path = tmp_path / "forest.json"
    forest.save(path)
    again = branchwise.load(path)
    assert isinstance(again, Ensemble)
    assert again == forest
    assert again.samples is None
    assert again.recipe == forest.recipe
    assert type(again.recipe.max_features) is type(forest.recipe.max_features)
    assert all(a == b for a, b in zip(again.trees, forest.trees, strict=True))
    assert np.array_equal(again.predict(X), forest.predict(X))
    if not forest.is_regression:
        assert np.array_equal(again.predict_proba(X), forest.predict_proba(X))
    assert path.read_bytes() == forest.to_bytes() == again.to_bytes()


def test_ensembles_of_every_kind_of_tree():
    for number in range(2 * len(ESTIMATORS)):
        ensemble = random_ensemble(number, number)
        again = Ensemble(*persist.from_bytes(ensemble.to_bytes()))
        assert again == ensemble
        assert again != Ensemble(
            ensemble.schema,
            ensemble.trees[:-1],
            replace(ensemble.recipe, n_estimators=2),
        )


def test_single_trees_are_files_of_version_1():
    model = CARTClassifier().fit(X, Y).model_
    assert json.loads(model.to_bytes())["version"] == 1
    assert Model(*persist.from_bytes(model.to_bytes())) == model
    one = RandomForestClassifier(n_estimators=1).fit(X, Y).model_
    assert json.loads(one.to_bytes())["version"] == 2
    assert json.loads(one[0].to_bytes())["version"] == 1


def test_only_what_differs_from_a_default_is_written():
    forest = fitted("cart")
    told = json.loads(forest.to_bytes())["ensemble"]
    assert told == {"n_estimators": 4, "max_features": "auto"}
    recipe = EnsembleRecipe(forest.recipe.tree, max_features="sqrt")
    plain = Ensemble(forest.schema, forest.trees, recipe)
    assert json.loads(plain.to_bytes())["ensemble"] == {}
    told = json.loads(fitted("all rows").to_bytes())["ensemble"]
    assert told == {
        "n_estimators": 2,
        "max_features": 1.0,
        "bootstrap": False,
        "random_state": 2**100,
    }
    assert set(persist.ENSEMBLE_KEYS) == set(ENSEMBLE_FIELDS) - {"tree"}


@pytest.mark.parametrize("told", [{}, {"max_features": "sqrt"}])
def test_files_from_before_auto_mean_the_square_root_rounded_down(told):
    old = RandomForestClassifier(n_estimators=2, max_features="sqrt").fit(X, Y).model_
    content = json.loads(old.to_bytes())
    assert content["ensemble"] == {"n_estimators": 2}
    content["ensemble"] |= told
    opened = branchwise.load(json.dumps(content).encode())
    assert opened == old
    assert opened.recipe.max_features == "sqrt"
    assert opened.summary().columns_drawn == 2
    assert opened.to_estimator().max_features == "sqrt"


def test_auto_is_in_the_file():
    forest = RandomForestClassifier(n_estimators=2).fit(X, Y).model_
    assert json.loads(forest.to_bytes())["ensemble"]["max_features"] == "auto"
    opened = branchwise.load(forest.to_bytes())
    assert opened == forest
    assert opened.recipe.max_features == opened.to_estimator().max_features == "auto"
    assert opened.summary().columns_drawn == 3
    numbers = RandomForestRegressor(n_estimators=2, max_features="auto")
    numbers.fit(X, X["income"])
    opened = branchwise.load(numbers.model_.to_bytes())
    assert opened == numbers.model_
    assert opened.summary().columns_drawn == len(X.columns)


def test_numpy_numbers_in_a_recipe_are_written(tmp_path):
    forest = fitted("cart")
    recipe = replace(forest.recipe, n_estimators=np.int64(4), max_samples=np.float64(1))
    forest = Ensemble(forest.schema, forest.trees, recipe)
    forest.save(tmp_path / "forest.json")
    again = branchwise.load(tmp_path / "forest.json")
    assert again == forest
    assert type(again.recipe.max_samples) is float


def test_a_single_tree_is_asked_for(tmp_path):
    path = tmp_path / "forest.json"
    fitted("cart").save(path)
    with pytest.raises(ModelFileError) as caught:
        persist.load_tree(path)
    assert str(caught.value) == (
        f"{path} holds an ensemble of 4 trees, and a single tree is needed here. Open "
        "it with branchwise.load: ensemble[0] is the model of its first tree, which "
        "can be saved."
    )


NUMBERS = {
    "i1:": [],
    "i1:AP+A": [0, -1, -128],
    "i2:gAA=": [128],
    "i4:AIAAAA==": [32768],
}


@pytest.mark.parametrize("text", NUMBERS)
def test_whole_numbers_as_text(text):
    for dtype in (np.int64, np.float64):
        numbers = np.array(NUMBERS[text], dtype)
        assert array_text(numbers) == text
        read = array_of_text(text, "x", dtype is np.float64)
        assert read.tolist() == NUMBERS[text]


@pytest.mark.parametrize(
    "numbers",
    [[2**31], [-(2**63), 2**63 - 1], [2**31, 0]],
)
def test_large_whole_numbers_as_text(numbers):
    text = array_text(np.array(numbers))
    assert text.startswith("i8:")
    assert array_of_text(text, "x", False).tolist() == numbers
    text = array_text(np.array(numbers, float))
    assert text.startswith("f8:")
    assert array_of_text(text, "x", True).tolist() == [float(n) for n in numbers]


def test_other_numbers_as_text():
    numbers = np.array([0.5, np.nan, -0.0, 5e-324, np.inf])
    text = array_text(numbers)
    assert text.startswith("f8:")
    assert text == array_text(np.array([0.5, -np.nan, 0.0, 5e-324, np.inf]))
    read = array_of_text(text, "x", True)
    assert np.array_equal(read, numbers, equal_nan=True)
    assert not np.signbit(read[2])
    assert array_text(np.array([-0.0])) == "i1:AA=="
    assert array_text(np.array([np.nan])).startswith("f8:")


def floats(*bits: int) -> str:
    raw = np.array(bits, np.uint64).tobytes()
    return "f8:" + b2a_base64(raw, newline=False).decode()


TYPES = "array 'x' must begin with its type and a colon: one of 'i1', 'i2', 'i4', 'f8'"
TWICE = "array 'x' is not written in the canonical way"
BASE64 = "array 'x' is not base64"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", TYPES),
        ("AAAA", TYPES),
        ("i8:AAAAAAAAAAA=", TYPES),
        ("u1:AAAA", TYPES),
        ("i1:AAA", BASE64),
        ("i1:AA==AA==", BASE64),
        ("i1:AA===", BASE64),
        ("i1:=AAA", BASE64),
        ("i1:A A=", BASE64),
        ("i1:AAAA\n", BASE64),
        ("i1:ÄAAA", BASE64),
        ("i1:-_-_", BASE64),
        ("i2:AAAA", "array 'x' has 3 bytes, which is no number of i2"),
        ("f8:AAAA", "array 'x' has 3 bytes, which is no number of f8"),
        ("i2:", TWICE),
        ("f8:", TWICE),
        ("i2:AQA=", TWICE),  # it fits in one byte
        ("i4:AQAAAA==", TWICE),
        ("i1:AB==", TWICE),  # bits that no byte takes
        ("i1:AAB=", TWICE),
        (floats(0), TWICE),  # a whole number
        (floats(1 << 63, 1), TWICE),  # minus zero
        (floats(0x7FF8000000000001), TWICE),  # another NaN
        (floats(0xFFF8000000000000), TWICE),
        (floats(0x7FF0000000000001), TWICE),
    ],
)
def test_other_texts_for_an_array_are_refused(text, message):
    with pytest.raises(ModelFileError) as caught:
        array_of_text(text, "x", True)
    assert str(caught.value) == message


SMALL = json.loads(fitted("cart").to_bytes())
ARRAY = ("trees", 1, "n_children")
E, R = "ensemble", "recipe"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 3, "its 'version' is 3, and this branchwise reads versions 1"),
        (("version",), True, "its 'version' is true, and this branchwise reads"),
        (("version",), 1, "the file lacks 'tree'"),
        (("trees",), REMOVE, "the file lacks 'trees'"),
        (("ensemble",), REMOVE, "the file lacks 'ensemble'"),
        (("trees",), [], "'trees' is empty"),
        (("trees",), {}, "'trees' of the file must be a list, not an object"),
        (("trees", 2), [], "tree 2 must be an object with named fields, not a list"),
        (("trees", 0, "cut"), REMOVE, "tree 0 lacks 'cut'"),
        (("trees", 0, "note"), "i1:", 'tree 0 has the unknown array "note"'),
        (("trees", 0, "mean"), "i1:", "tree 0 lacks 'deviation'"),
        (ARRAY, [2, 0, 0], "'n_children' of tree 1 must be text, not a list"),
        (ARRAY, "i1:", "tree 1: Not a sane tree: array 'n_children' has shape (0,), e"),
        (ARRAY, "i1:AB==", "array 'n_children' is not written in the canonical way"),
        (
            ("trees", 0, "weights"),
            "i1:AAAA",
            "tree 0: Not a sane tree: array 'weights'",
        ),
        ((E, "n_estimators"), 0, "n_estimators must be a whole number of at least 1"),
        ((E, "bootstrap"), 1, "bootstrap must be True or False. Got 1 instead."),
        ((E, "balanced_subsample"), 1, "'balanced_subsample' of 'ensemble' must be tr"),
        ((E, "max_features"), "all", "max_features must be None, 'auto', 'sqrt', 'log"),
        ((E, "max_features"), "oob", "'max_features' of 'ensemble' must be the num"),
        ((E, "max_samples"), [], "max_samples must be None, a whole number of at le"),
        ((E, "random_state"), 2**128, "random_state must be a whole number of at lea"),
        ((E, "voting"), "loud", "voting must be 'soft' or 'hard'. Got 'loud' instead."),
        ((E, "voting"), {}, "voting must be 'soft' or 'hard'. Got {} instead."),
        ((E, "extra"), 1, "'ensemble' has the unknown field \"extra\""),
        ((R, "costs"), [[0, 1], [1, 0]], "'recipe' has costs and yet tree 0 lacks 'an"),
        ((R, "costs"), [[0]], "'costs' of 'recipe' has 1 rows, and 'schema' has 2 cla"),
        ((R, "criterion"), "variance", "'schema' has classes and 'recipe' predicts nu"),
        (
            ("schema", "classes"),
            [],
            "'schema' has no classes and 'recipe' predicts cla",
        ),
    ],
)
def test_what_no_ensemble_can_have_is_refused(path, value, message):
    content = json.dumps(changed(SMALL, path, value)).encode()
    with pytest.raises(ModelFileError) as caught:
        persist.from_bytes(content)
    told = str(caught.value).removeprefix("the file is not a branchwise model: ")
    assert told.startswith(message)


def test_the_tree_that_is_not_valid_is_named():
    size = len(array_of_text(SMALL["trees"][2]["column"], "column", False))
    document = changed(SMALL, ("trees", 2, "column"), array_text(np.full(size, 99)))
    with pytest.raises(ModelFileError) as caught:
        persist.from_bytes(json.dumps(document).encode())
    assert str(caught.value).startswith(
        "the file is not a branchwise model: tree 2: Not a sane tree: a node needs both"
    )


def test_fields_that_are_not_known_are_left_to_later_versions():
    document = {**SMALL, "note": "x"}
    again = Ensemble(*persist.from_bytes(json.dumps(document).encode()))
    assert json.loads(again.to_bytes()) == SMALL


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_ensembles", FUZZ)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutated_ensembles_do_what_models_do(fuzz):
    done = Counter(fuzz.try_one(0, number, ensembles=True) for number in range(100))
    assert set(done) == {"refused", "used"}


@pytest.mark.filterwarnings("ignore::branchwise.BranchwiseWarning")
@pytest.mark.parametrize("part", first_fast(range(500)))
def test_mutated_files_are_refused_or_predict(fuzz, part):
    """Two hundred for each part: 100,000 in all."""
    done: Counter[str] = Counter()
    for number in range(200 * part, 200 * (part + 1)):
        rng = random.Random(f"ensemble {number}")
        content = damaged(*rng.choice(fuzz.ensemble_sources()), rng)
        try:
            ensemble = fuzz.opened(content)
            done["opened"] += 1
            fuzz.save_together(ensemble, rng)
            fuzz.predict_together(ensemble, rng)
        except BranchwiseError:
            done["refused"] += 1
    assert min(done["opened"], done["refused"]) > 40


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        (
            "boosted",
            "tree_weights",
            REMOVE,
            "lacks 'tree_weights', and its 'meth",
        ),
        ("boosted", "tree_weights", [1.0], "must have 3 numbers, not 1"),
        ("boosted", "tree_weights", [1, -1, 1], "are negative, or all are 0"),
        ("boosted", "tree_weights", [0, 0, 0], "are negative, or all are 0"),
        ("boosted", "tree_weights", ["1", 1, 1], "must hold numbers only"),
        ("boosted", "initial", [0.0], "has 'initial', and its 'method' is"),
        ("boosted", "method", "gradient", "loss must be given for method='gradient'"),
        ("boosted", "method", "best", "method must be 'forest' or 'boosted' or"),
        ("two classes", "initial", REMOVE, "lacks 'initial', and its 'method' is"),
        ("two classes", "initial", [0.0, 0.0], "must have 1 number, not 2"),
        ("two classes", "initial", [1e200], "must have finite numbers"),
        ("two classes", "loss", "poisson", "has classes and 'recipe' predicts num"),
        ("two classes", "loss", REMOVE, "loss must be given for method='gradient'"),
        ("poisson numbers", "loss", "log_loss", "has no classes and 'loss' is for"),
    ],
)
def test_refused_numbers_of_boosting(name, key, value, message):
    document = changed(json.loads(fitted(name).to_bytes()), (E, key), value)
    with pytest.raises(ModelFileError, match=message):
        persist.from_bytes(json.dumps(document).encode())


def test_rounds_of_gradient_boosting_are_whole():
    document = json.loads(fitted("three classes").to_bytes())
    document["trees"] = document["trees"][:-1]
    with pytest.raises(ModelFileError, match="must have 3 trees for each round"):
        persist.from_bytes(json.dumps(document).encode())
