"""Model files: canonical, whole or not at all, and safe to open."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import branchwise
from branchwise import (
    BranchwiseError,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    Model,
    ModelFileError,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise import model_file as document
from branchwise import model_file as persist
from branchwise.data.table_schema import Column, Schema
from branchwise.model_file import parser
from branchwise.recipe import C45, CART
from branchwise.recipe.parameters import PARAMETERS
from branchwise.tree.validation import validate
from model_mutations import REMOVE, Path_, changed, damage_bytes, damage_value, paths_of
from selection import examples, first_fast
from tree_builder import TreeBuilder

GOLDEN = Path(__file__).parents[1] / "golden"
TABLES = ("tennis", "golf", "labor", "iris", "toy", "votes")
RECIPES = {
    "default": Recipe(),
    "split": Recipe(missing="split", unseen="split"),
    "largest": Recipe(criterion="gini", missing="largest", unseen="largest"),
    "node": Recipe(criterion="gain_ratio", missing="node", unseen="branch"),
    "limits": Recipe(
        max_depth=2, min_samples_split=0.1, min_samples_leaf=3, min_gain=0.01
    ),
    "C4.5": replace(C45, confidence=0.1, raise_subtrees=False),
    "groups": replace(C45, branching="groups", pruning=None, threshold="midpoint"),
    "CART": replace(CART, max_leaf_nodes=7, max_p_value=0.9, max_bins=50),
    "pruned": replace(
        CART, pruning="cost-complexity", ccp_alpha=0.02, probabilities="laplace"
    ),
    "tolerant": Recipe(probabilities="m-estimate", m=1.5, min_samples_branch=0.01),
}
REGRESSION = {
    "variance": replace(CART, criterion="variance", max_depth=3),
    "poisson": replace(CART, criterion="poisson", missing="branch", max_depth=3),
    "divided": replace(CART, criterion="variance", missing="split", unseen="split"),
}
COSTS = ((0.0, 1.0), (2.5, 0.0))


def grow(name: str, recipe: Recipe = RECIPES["default"]) -> Model:
    data = datasets.load(name)
    return fit_tree(
        data.X, data.y, recipe, categories=data.categories, target_name=data.target
    )


def grow_numbers(recipe: Recipe) -> Model:
    """Predict the first wage increase of labor from the rest, where it is known."""
    data = datasets.load("labor")
    wage = "wage-increase-first-year"
    rows = [row for row, cell in enumerate(data.X[wage]) if cell is not None]
    X = {n: [cells[r] for r in rows] for n, cells in data.X.items() if n != wage}
    return fit_tree(X, [data.X[wage][row] for row in rows], recipe, target_name=wage)


def reopened(model: Model) -> Model:
    return Model(*persist.from_bytes(model.to_bytes()))


@pytest.fixture
def tennis() -> Model:
    return grow("tennis")


# -- Writing


def test_the_largest_weights_come_back():
    # Each node may weigh up to the limit, however many nodes there are.
    X, y = {"x": list("abcd")}, list("nnyz")
    model = ID3Classifier().fit(X, y, sample_weight=[2.4e299] * 4).model_
    again = reopened(model)
    assert again.tree.weights.tobytes() == model.tree.weights.tobytes()


def test_the_file_in_full(tennis, tmp_path):
    tennis.save(tmp_path / "tennis.json")
    version = branchwise.__version__.encode()
    written = (tmp_path / "tennis.json").read_bytes().replace(version, b"0.1.0", 1)
    assert written == (GOLDEN / "tennis.json").read_bytes()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
@pytest.mark.parametrize("name", TABLES)
def test_the_same_model_has_the_same_bytes(name, recipe, tmp_path):
    model = grow(name, recipe)
    content = model.to_bytes()
    assert grow(name, recipe).to_bytes() == content
    model.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == content
    loaded = branchwise.load(tmp_path / "model.json")
    assert loaded.to_bytes() == content
    assert loaded == model
    assert loaded.tree == model.tree
    assert loaded.schema == model.schema
    assert loaded.recipe == model.recipe


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
@pytest.mark.parametrize("name", TABLES)
def test_a_loaded_model_predicts_bit_for_bit(name, recipe):
    model = grow(name, recipe)
    loaded = reopened(model)
    X = datasets.load(name).X
    X = {column: [*cells, None] for column, cells in X.items()}
    for method in ("predict", "predict_proba", "apply"):
        expected = getattr(model, method)(X)
        got = getattr(loaded, method)(X)
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()
    assert str(loaded) == str(model)
    assert loaded.rules() == model.rules()
    importances = loaded.feature_importances
    assert importances.tobytes() == model.feature_importances.tobytes()


@pytest.mark.parametrize("recipe", REGRESSION.values(), ids=REGRESSION.keys())
def test_models_of_numbers_come_back(recipe, tmp_path):
    model = grow_numbers(recipe)
    content = model.to_bytes()
    assert grow_numbers(recipe).to_bytes() == content
    model.save(tmp_path / "model.json")
    loaded = branchwise.load(tmp_path / "model.json")
    assert loaded.to_bytes() == content == (tmp_path / "model.json").read_bytes()
    assert loaded.tree == model.tree
    assert loaded.schema == model.schema
    assert loaded.schema.classes == ()
    assert loaded.recipe == model.recipe
    X = {column: [*cells, None] for column, cells in datasets.load("labor").X.items()}
    for method in ("predict", "apply"):
        expected = getattr(model, method)(X)
        assert getattr(loaded, method)(X).tobytes() == expected.tobytes()
    assert str(loaded) == str(model)
    assert repr(loaded) == repr(model)
    assert loaded.rules() == model.rules()
    importances = loaded.feature_importances
    assert importances.tobytes() == model.feature_importances.tobytes()


def test_a_model_of_numbers_in_full(tmp_path):
    X = {"road": ["town"] * 2 + ["land"] * 2, "rain": [0.5, 4.0, None, None]}
    recipe = replace(
        CART, criterion="variance", missing="largest", threshold="midpoint"
    )
    model = fit_tree(X, [70.0, 10.0, 90.0, 150.0], recipe, target_name="speed")
    model.save(tmp_path / "speed.json")
    version = branchwise.__version__.encode()
    written = (tmp_path / "speed.json").read_bytes().replace(version, b"0.1.0", 1)
    assert written == (GOLDEN / "speed.json").read_bytes()


@pytest.mark.parametrize(
    "estimator",
    [
        ID3Classifier(pruning="reduced-error", validation_fraction=0.3),
        ID3Classifier(costs=COSTS, max_p_value=0.5),
        C45Classifier(),
        C45Classifier(group_values=True, costs=COSTS, prune=False),
        CARTClassifier(ccp_alpha="1-se"),
        CARTClassifier(costs=COSTS, missing="split", probabilities="m-estimate"),
        CARTRegressor(ccp_alpha=0.01),
    ],
    ids=repr,
)
def test_every_estimator_has_a_file(estimator):
    data = datasets.load("labor")
    y = data.y
    if isinstance(estimator, CARTRegressor):
        y = [float(label == "good") for label in y]
    model = clone(estimator).fit(data.X, y).model_
    loaded = reopened(model)
    assert loaded == model
    assert loaded.tree == model.tree
    assert loaded.recipe == model.recipe
    X = {column: [*cells, None] for column, cells in data.X.items()}
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    assert str(loaded) == str(model)


def test_every_field_of_a_recipe_has_a_place():
    """A new one must be written, and its absence must mean what it means today."""
    known = {
        key: Recipe.__dataclass_fields__[name].default
        for key, name in document.RECIPE_FIELDS.items()
    }
    absent = {k: v for k, v in known.items() if k not in document.REQUIRED_FIELDS}
    assert absent == {
        "max_bins": None,
        "branching": "values",
        "min_samples_branch": 0,
        "quinlan_cuts": False,
        "average_gain": False,
        "cut": "midpoint",
        "max_leaf_nodes": None,
        "min_significance": None,
        "collapse": False,
        "pruning": None,
        "confidence": 0.25,
        "raise_subtrees": True,
        "ccp_alpha": 0.0,
        "tolerance": 0.0,
        "costs": None,
        "probabilities": "frequencies",
        "m": 2.0,
        "min_weight_fraction_leaf": 0.0,
        "costs_in": "prediction",
        "many_values": "corrected",
        "risk": "auto",
        "shrinkage": 20.0,
        "cross_validate": False,
    }
    numbers = {n for n, v in known.items() if type(v) in (int, float)}
    assert all(PARAMETERS[document.RECIPE_FIELDS[n]].allowed.is_number for n in numbers)


@pytest.mark.parametrize(
    ("field", "value", "others"),
    [
        ("branching", "groups", {}),
        ("branching", "two-way", {}),
        ("min_samples_branch", 2, {}),
        ("min_samples_branch", 0.25, {}),
        ("quinlan_cuts", True, {}),
        ("average_gain", True, {}),
        ("many_values", "plain", {"branching": "two-way"}),
        ("cut", "value", {}),
        ("max_leaf_nodes", 3, {}),
        ("min_significance", 0.05, {}),
        ("collapse", True, {}),
        ("pruning", "reduced-error", {}),
        ("confidence", 0.1, {"pruning": "error-based"}),
        ("raise_subtrees", False, {"pruning": "error-based"}),
        ("ccp_alpha", 0.015, {"pruning": "cost-complexity"}),
        ("ccp_alpha", "1-se", {"pruning": "cost-complexity"}),
        ("tolerance", 0.02, {"pruning": "reduced-error"}),
        ("probabilities", "m-estimate", {}),
        ("m", 3.5, {"probabilities": "m-estimate"}),
        ("max_bins", 255, {}),
        ("min_weight_fraction_leaf", 0.1, {}),
    ],
)
def test_fields_are_written_where_they_say_something(tennis, field, value, others):
    name = document.RECIPE_FIELDS[field]
    recipe = Recipe(**{name: value}, **others)
    content = persist.to_bytes(tennis.schema, tennis.tree, recipe)
    written = json.loads(content)["recipe"]
    usual = json.loads(tennis.to_bytes())["recipe"]
    assert written == {**usual, **others, field: value}
    assert persist.from_bytes(content)[2] == recipe


def test_numpy_numbers_in_other_parameters():
    recipe = Recipe(
        max_leaf_nodes=np.int16(9),
        max_p_value=np.float32(0.5),
        probabilities="m-estimate",
        m=np.int64(3),
    )
    model = grow("tennis", recipe)
    written = b'"min_significance": 0.5, "probabilities": "m-estimate", "m": 3}'
    assert b'"max_leaf_nodes": 9, ' + written in model.to_bytes()
    assert reopened(model) == model


def test_costs_are_written_with_the_answers():
    model = grow("tennis", Recipe(costs=COSTS))
    assert b'"costs": [[0, 1], [2.5, 0]]' in model.to_bytes()
    assert b'\n"answer": [' in model.to_bytes()
    loaded = reopened(model)
    assert loaded.recipe.costs == COSTS
    assert loaded.tree.prediction is not None
    assert loaded.tree.prediction.tolist() == model.tree.prediction.tolist()


def test_a_loaded_model_needs_no_other_library(tmp_path):
    model = grow("labor", RECIPES["split"])
    model.save(tmp_path / "model.json")
    rows = [
        {name: cells[row] for name, cells in datasets.load("labor").X.items()}
        for row in range(20)
    ]
    code = f"""
import json, sys
import branchwise
model = branchwise.load({str(tmp_path / "model.json")!r})
rows = json.loads({json.dumps(rows)!r})
print(model.predict(rows).tolist())
print(model.predict_proba(rows).tobytes().hex())
loaded = [name for name in ("sklearn", "scipy", "pandas", "pyarrow", "joblib")
          if name in sys.modules]
print(loaded)
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    labels, chances, loaded = result.stdout.splitlines()
    assert labels == str(model.predict(rows).tolist())
    assert chances == model.predict_proba(rows).tobytes().hex()
    assert loaded == "[]"


ODD_NAMES = [
    "it's",
    '"quoted"',
    "back\\slash",
    "\\ud83d",
    "new\nline",
    "tab\tand\x00nul\x7f",
    "\u202eright to left\u202c",
    "\N{ZERO WIDTH SPACE}",
    "\N{GRINNING FACE}",
    "\ud83d",
    "x\udc00y",
    "\u2028",
    "e\u0301",
    "\u00e9",
    "",
    " ",
    "null",
    "NaN",
    "1",
    "</script>",
]


def test_odd_names_come_back():
    n = len(ODD_NAMES)
    # A column needs a name that is not blank.
    X: dict[str, list[Any]] = {name: [0] * n for name in ODD_NAMES if name.strip()}
    X["values"] = list(ODD_NAMES)
    model = fit_tree(X, [f"{name}!" for name in ODD_NAMES], target_name="\ud83d\n")
    content = model.to_bytes()
    loaded = reopened(model)
    assert loaded.schema == model.schema
    assert loaded.schema.columns[-1].categories == tuple(sorted(ODD_NAMES))
    assert loaded.to_bytes() == content
    content.decode("utf-8")
    assert loaded.predict(X).tolist() == [f"{name}!" for name in ODD_NAMES]


def test_odd_numbers_come_back():
    numbers = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -(2.0**53), 1e22, 1e16]
    schema = Schema(
        (Column("c", "numeric"), Column("k", "categorical", tuple(numbers))),
        (-(2**63), 2**63 - 1),
    )
    builder = TreeBuilder(schema, weights=[0.1, 2**60])
    node = 0
    for cut in numbers:
        builder.child(node, "c", at_most=cut, weights=[1e-300, 1 / 3])
        node = builder.child(node, "c", above=cut, weights=[3, 2.0**53 + 2])
    model = Model(schema, builder.build(), Recipe(min_gain=0.1))
    loaded = reopened(model)
    assert loaded.tree == model.tree
    assert loaded.schema == model.schema
    assert loaded.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": np.int64(3)},
        {"max_depth": np.uint8(3), "min_gain": np.float32(0)},
        {"max_depth": 3, "min_gain": 0, "min_samples_leaf": np.int16(1)},
    ],
    ids=repr,
)
def test_parameters_may_be_numpy_numbers(parameters):
    expected = grow("tennis", Recipe(max_depth=3)).to_bytes()
    model = grow("tennis", Recipe(**parameters))
    assert model.to_bytes() == expected
    assert reopened(model).to_bytes() == expected


def test_a_criterion_of_the_user_is_only_named():
    def errors(nodes: np.ndarray, branches: np.ndarray) -> np.ndarray:
        right: np.ndarray = branches.max(axis=2).sum(axis=1)
        return right / nodes.sum(axis=1)

    model = grow("tennis", Recipe(criterion=errors))
    assert b'"criterion": {"function": "errors"}' in model.to_bytes()
    loaded = reopened(model)
    assert loaded.to_bytes() == model.to_bytes()
    X = datasets.load("tennis").X
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    again = pickle.loads(pickle.dumps(loaded))
    assert again.to_bytes() == model.to_bytes()
    with pytest.raises(ParameterError) as caught:
        grow("tennis", again.recipe)
    assert str(caught.value) == (
        "criterion 'errors' was a Python function when the model was fitted, and model "
        "files hold no code. Pass the function itself to grow a new tree."
    )


class _Halt(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, _Halt])
@pytest.mark.parametrize("stage", ["fsync", "replace"])
def test_an_older_file_survives_a_failing_write(
    tennis, tmp_path, monkeypatch, error, stage
):
    def fail(*_: object) -> None:
        raise error

    path = tmp_path / "model.json"
    path.write_bytes(b"an older model")
    monkeypatch.setattr(
        *((os, "fsync") if stage == "fsync" else (Path, "replace")), fail
    )
    with pytest.raises(error):
        tennis.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"an older model"
    assert list(tmp_path.iterdir()) == [path]
    tennis.save(path)
    assert path.read_bytes() == tennis.to_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_write_leaves_no_file(tennis, tmp_path):
    with pytest.raises(OSError):  # noqa: PT011  (each system has its own)
        tennis.save(tmp_path / "no" / "such" / "folder.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):  # noqa: PT011
        tennis.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_path_may_be_text(tennis, tmp_path):
    tennis.save(str(tmp_path / "model.json"))
    assert branchwise.load(str(tmp_path / "model.json")) == tennis


# -- Reading what is no model


def refusal(content: bytes | Any) -> str:
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    with pytest.raises(ModelFileError) as caught:
        persist.from_bytes(content, "tree.json")
    cause = caught.value.__context__
    assert cause is None or caught.value.__suppress_context__
    return str(caught.value)


NO_MODEL = "tree.json is not a branchwise model: "
INSANE = NO_MODEL

NOT_JSON = {
    "an empty file": (b"", "it is not JSON (Expecting value, line 1, column 1)."),
    "a file cut short": (
        b'{"format": "branchwise-model",\n"version": 1',
        "it is not JSON (Expecting ',' delimiter, line 2, column 13).",
    ),
    "more after the end": (b"{}\n{}", "it is not JSON (Extra data, line 2, column 1)."),
    "binary": (b"\x80\x04\x95", "it is not UTF-8 text (byte 0)."),
    "a byte order mark": (
        b"\xef\xbb\xbf{}",
        (
            "it is not JSON (Unexpected UTF-8 BOM (decode using utf-8-sig), line 1, "
            "column 1)."
        ),
    ),
    "half a surrogate": (b'"\xed\xa0\x80"', "it is not UTF-8 text (byte 1)."),
    "a list": (b"[]", "the file must be an object with named fields, not a list."),
    "a number": (b"1", "the file must be an object with named fields, not 1."),
    "NaN": (b'{"a": NaN}', "it has NaN where a number must be."),
    "Infinity": (b'{"a": [-Infinity]}', "it has -Infinity where a number must be."),
    "a field twice": (
        b'{"format": 1, "version": 1, "format": 2}',
        'it has the field "format" twice.',
    ),
    "a long field twice": (
        b'{"%s": 1, "%s": 2}' % (b"x" * 500, b"x" * 500),
        'it has the field "' + "x" * 56 + "... twice.",
    ),
    "deep lists": ((b"[" + b" " * 20) * 200_000, "it is nested too deeply."),
    "deep objects": (b'{"the next one":   ' * 200_000, "it is nested too deeply."),
}


@pytest.mark.parametrize(("content", "message"), NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_no_json_object_is_refused(content, message):
    assert refusal(content) == NO_MODEL + message


def test_endless_digits_are_refused():
    message = refusal(b'{"format": ' + b"9" * 10_000 + b"}")
    assert message.startswith(NO_MODEL + "it has a number that is too long (")


#: A tree that asks about a number, is it known, and about values.
SMALL: dict[str, Any] = {
    "format": "branchwise-model",
    "version": 1,
    "recipe": {
        "algorithm": "ID3",
        "criterion": "gain",
        "max_depth": None,
        "min_samples_split": 2,
        "min_samples_leaf": 1,
        "min_gain": 0,
        "missing": "branch",
        "unseen": "node",
    },
    "schema": {
        "target": None,
        "named": True,
        "classes": ["no", "yes"],
        "columns": [
            {"name": "n", "kind": "numeric", "categories": [], "has_missing": True},
            {
                "name": "c",
                "kind": "categorical",
                "categories": ["x", "y", "z"],
                "has_missing": False,
            },
        ],
    },
    "tree": {
        "column": [0, 1, 0, -1, -1, -1, -1, -1],
        "cut": [0.5, None, None, None, None, None, None, None],
        "n_children": [3, 2, 2, 0, 0, 0, 0, 0],
        "missing_to": [2, -1, 1, -1, -1, -1, -1, -1],
        "unseen_to": [-1, -1, -1, -1, -1, -1, -1, -1],
        "n_codes": [0, 1, 1, 0, 2, 1, 2, 0],
        "codes": [0, 1, 0, 2, 1, 0, 1],
        "weights": [[4, 6], [2, 2], [1, 3], [1, 1], [2, 0], [0, 2], [1, 1], [0, 2]],
        "cases": [10, 4, 4, 2, 2, 2, 2, 2],
    },
}


def small(*changes: tuple[Path_, Any]) -> Any:
    document: Any = SMALL
    for path, value in changes:
        document = changed(document, path, value)
    return document


def test_the_small_model_is_one():
    schema, tree, recipe = persist.from_bytes(json.dumps(SMALL).encode())
    model = Model(schema, tree, recipe)
    assert model.to_text() == (
        "n <= 0.5:\n"
        "|   c in {x, z}: no (2)\n"
        "|   c = y: yes (2)\n"
        "n > 0.5:\n"
        "|   n is known: no (2/1)\n"
        "|   n is missing: yes (2)\n"
        "n is missing: no (2/1)"
    )
    assert json.loads(model.to_bytes()) == SMALL


S, T, R = "schema", "tree", "recipe"
COLUMN = (S, "columns", 1)
REFUSED: dict[str, tuple[Any, str]] = {
    # the file as a whole
    "no format": (small((("format",), REMOVE)), "the file lacks 'format'."),
    "format": (
        small((("format",), "onnx")),
        'its \'format\' is "onnx", not "branchwise-model".',
    ),
    "format is a list": (
        small((("format",), [1])),
        "its 'format' is a list, not \"branchwise-model\".",
    ),
    "long format": (
        small((("format",), "x" * 99)),
        "its 'format' is \"" + "x" * 56 + '..., not "branchwise-model".',
    ),
    "no version": (small((("version",), REMOVE)), "the file lacks 'version'."),
    **{
        f"version {version}": (
            small((("version",), version)),
            (
                f"its 'version' is {json.dumps(version)}, and this branchwise reads "
                "versions 1 and 2; a later release may read it."
            ),
        )
        for version in (3, 0, -1, "1", True, 1.0, None)
    },
    **{
        f"no {part}": (small(((part,), REMOVE)), f"the file lacks '{part}'.")
        for part in (R, S, T)
    },
    **{
        f"{part} is a list": (
            small(((part,), [])),
            f"'{part}' must be an object with named fields, not a list.",
        )
        for part in (R, S, T)
    },
    # the schema
    **{
        f"no {field} in the schema": (
            small(((S, field), REMOVE)),
            f"'schema' lacks '{field}'.",
        )
        for field in SMALL[S]
    },
    "target": (
        small(((S, "target"), 5)),
        "'target' of 'schema' must be text or null, not 5.",
    ),
    "named": (
        small(((S, "named"), 1)),
        "'named' of 'schema' must be true or false, not 1.",
    ),
    "classes is text": (
        small(((S, "classes"), "ab")),
        "'classes' of 'schema' must be a list, not \"ab\".",
    ),
    "no classes": (small(((S, "classes"), [])), "'classes' of 'schema' is empty."),
    "a class twice": (
        small(((S, "classes"), ["a", "a"])),
        "'classes' of 'schema' lists \"a\" twice.",
    ),
    "a number twice": (
        small(((S, "classes"), [1, 1.0])),
        "'classes' of 'schema' lists 1 twice.",
    ),
    "classes of two types": (
        small(((S, "classes"), ["a", 1])),
        "'classes' of 'schema' mixes types.",
    ),
    "true among numbers": (
        small(((S, "classes"), [1, True])),
        "'classes' of 'schema' mixes types.",
    ),
    "a class is null": (
        small(((S, "classes"), ["a", None])),
        "'classes' of 'schema' must hold text, numbers or true and false, not null.",
    ),
    "a class is a list": (
        small(((S, "classes"), ["a", []])),
        "'classes' of 'schema' must hold text, numbers or true and false, not a list.",
    ),
    "a class beyond 64 bits": (
        small(((S, "classes"), [1, 2**63])),
        "'classes' of 'schema' has a whole number beyond 64 bits.",
    ),
    "columns is an object": (
        small(((S, "columns"), {})),
        "'columns' of 'schema' must be a list, not an object.",
    ),
    "no columns": (small(((S, "columns"), [])), "'columns' of 'schema' is empty."),
    "a column is text": (
        small((COLUMN, "c")),
        'column 1 must be an object with named fields, not "c".',
    ),
    **{
        f"no {field} in a column": (
            small(((*COLUMN, field), REMOVE)),
            f"column 1 lacks '{field}'.",
        )
        for field in ("name", "kind", "categories", "has_missing")
    },
    "a column's name": (
        small(((*COLUMN, "name"), None)),
        "'name' of column 1 must be text, not null.",
    ),
    "two columns of a name": (
        small(((*COLUMN, "name"), "n")),
        'two columns are named "n".',
    ),
    "a column's kind": (
        small(((*COLUMN, "kind"), "text")),
        (
            "'kind' of column 1 must be one of 'categorical', 'ordinal', 'numeric', "
            "not "
            '"text".'
        ),
    ),
    "a column's kind is a list": (
        small(((*COLUMN, "kind"), ["numeric"])),
        (
            "'kind' of column 1 must be one of 'categorical', 'ordinal', 'numeric', "
            "not "
            "a list."
        ),
    ),
    "has_missing": (
        small(((*COLUMN, "has_missing"), 0)),
        "'has_missing' of column 1 must be true or false, not 0.",
    ),
    "categories of a number": (
        small(((S, "columns", 0, "categories"), [1])),
        "column 0 is numeric and yet has categories.",
    ),
    "a category twice": (
        small(((*COLUMN, "categories"), ["x", "y", "x"])),
        "'categories' of column 1 lists \"x\" twice.",
    ),
    # the recipe
    **{
        f"no {field} in the recipe": (
            small(((R, field), REMOVE)),
            f"'recipe' lacks '{field}'.",
        )
        for field in SMALL[R]
    },
    "algorithm": (
        small(((R, "algorithm"), 3)),
        "'algorithm' of 'recipe' must be one of 'ID3', 'C4.5', 'CART', not 3.",
    ),
    "missing policy": (
        small(((R, "missing"), "drop")),
        (
            "'missing' of 'recipe' must be one of 'branch', 'split', 'largest', "
            "'node', 'error', 'learned', 'surrogate', not \"drop\"."
        ),
    ),
    "unseen policy": (
        small(((R, "unseen"), None)),
        (
            "'unseen' of 'recipe' must be one of 'branch', 'split', 'largest', 'node', "
            "'error', not null."
        ),
    ),
    "max_depth is text": (
        small(((R, "max_depth"), "3")),
        "'max_depth' of 'recipe' must be a number of 64 bits, not \"3\".",
    ),
    "max_depth is true": (
        small(((R, "max_depth"), True)),
        "'max_depth' of 'recipe' must be a number of 64 bits, not true.",
    ),
    "min_gain is enormous": (
        small(((R, "min_gain"), 10**400)),
        "'min_gain' of 'recipe' must be a number of 64 bits, not 1" + "0" * 56 + "....",
    ),
    "a criterion without a name": (
        small(((R, "criterion"), {})),
        "'criterion' lacks 'function'.",
    ),
    "a criterion of a number": (
        small(((R, "criterion"), {"function": 5})),
        "'function' of 'criterion' must be text, not 5.",
    ),
    # the arrays
    **{
        f"no array {name}": (small(((T, name), REMOVE)), f"'tree' lacks '{name}'.")
        for name in SMALL[T]
    },
    "an unknown array": (
        small(((T, "depth"), [0])),
        "'tree' has the unknown array \"depth\".",
    ),
    "an array is text": (
        small(((T, "codes"), "0")),
        "array 'codes' must be a list.",
    ),
    "an array is an object": (
        small(((T, "cases"), {"0": 1})),
        "array 'cases' must be a list.",
    ),
    "true for a whole number": (
        small(((T, "column", 1), True)),
        "array 'column' must hold whole numbers only.",
    ),
    "a fraction for a whole number": (
        small(((T, "n_children", 0), 3.0)),
        "array 'n_children' must hold whole numbers only.",
    ),
    "text for a whole number": (
        small(((T, "codes", 0), "0")),
        "array 'codes' must hold whole numbers only.",
    ),
    "null for a whole number": (
        small(((T, "missing_to", 0), None)),
        "array 'missing_to' must hold whole numbers only.",
    ),
    "a list for a whole number": (
        small(((T, "unseen_to", 0), [0])),
        "array 'unseen_to' must hold whole numbers only.",
    ),
    "true for a number": (
        small(((T, "cases", 0), True)),
        "array 'cases' must hold numbers only.",
    ),
    "null for a number": (
        small(((T, "cases", 0), None)),
        "array 'cases' must hold numbers only.",
    ),
    "text for a cut": (
        small(((T, "cut", 0), "0.5")),
        "array 'cut' must hold numbers only.",
    ),
    "true for a weight": (
        small(((T, "weights", 0, 0), True)),
        "array 'weights' must hold numbers only.",
    ),
    "null for a weight": (
        small(((T, "weights", 0, 0), None)),
        "array 'weights' must hold numbers only.",
    ),
    "weights without rows": (
        small(((T, "weights"), [1] * 8)),
        "array 'weights' must be a list of lists.",
    ),
    "weights of unequal rows": (
        small(((T, "weights", 3), [1])),
        "array 'weights' has rows of different lengths.",
    ),
    "a whole number beyond 64 bits": (
        small(((T, "codes", 0), 2**64)),
        "array 'codes' has numbers that are too large.",
    ),
    "a number beyond all floats": (
        small(((T, "cases", 0), 10**400)),
        "array 'cases' has numbers that are too large.",
    ),
    "absurd weights": (
        small(((T, "weights", 0), [1e308, 1e308])),
        "array 'weights' has numbers that are too large.",
    ),
}

ABSURD: dict[str, tuple[Any, str]] = {
    "no nodes": (
        small(*(((T, name), []) for name in SMALL[T])),
        "a tree has at least one node",
    ),
    "an array too short": (
        small(((T, "cut", 7), REMOVE)),
        "array 'cut' has shape (7,), expected (8,)",
    ),
    "an array too long": (
        small(((T, "cases"), [1] * 9)),
        "array 'cases' has shape (9,), expected (8,)",
    ),
    "weights of another number of classes": (
        small(((T, "weights"), [[1, 2, 3]] * 8)),
        "array 'weights' has shape (8, 3), expected (8, 2)",
    ),
    "a negative number of children": (
        small(((T, "n_children", 0), -1)),
        "n_children is negative or larger than the tree",
    ),
    "an absurd number of children": (
        small(((T, "n_children", 0), 2**62)),
        "n_children is negative or larger than the tree",
    ),
    "children beyond the end": (
        small(((T, "n_children", 3), 1)),
        "n_children must add up to 7, one for every node but the root",
    ),
    "children that are not there": (
        small(((T, "n_children", 2), 1)),
        "n_children must add up to 7, one for every node but the root",
    ),
    "a node that leads to itself": (
        small(((T, "n_children"), [0, 0, 0, 0, 0, 0, 0, 7])),
        "a node that no other node leads to",
    ),
    "a cycle": (
        small(((T, "n_children"), [1, 0, 6, 0, 0, 0, 0, 0])),
        "a node that no other node leads to",
    ),
    "a column without children": (
        small(((T, "column", 3), 0)),
        "a node needs both a column and children, or neither",
    ),
    "children without a column": (
        small(((T, "column", 0), -1)),
        "a node needs both a column and children, or neither",
    ),
    "a column below -1": (
        small(((T, "column", 3), -2)),
        "a node needs both a column and children, or neither",
    ),
    "a cut that is not there": (
        small(((T, "cut", 0), None)),
        "two sides of a number without a threshold",
    ),
    "a column beyond the schema": (
        small(((T, "column", 0), 2)),
        "a column beyond those of the schema",
    ),
    "a negative number of codes": (
        small(((T, "n_codes", 1), -1)),
        "n_codes must add up to the number of codes",
    ),
    "too many codes": (
        small(((T, "codes"), [0, 1, 0, 2, 1, 0, 1, 1])),
        "n_codes must add up to the number of codes",
    ),
    "codes of the root": (
        small(((T, "n_codes"), [1, 0, 1, 0, 2, 1, 2, 0])),
        "codes that lead to the root",
    ),
    "a code beyond the column": (
        small(((T, "codes", 3), 3)),
        "a code that is no value of its column",
    ),
    "a negative code": (
        small(((T, "codes", 0), -1)),
        "a code that is no value of its column",
    ),
    "a code twice": (
        small(((T, "codes", 1), 0)),
        "two branches of a node for the same value",
    ),
    "a branch without codes": (
        small(
            ((T, "n_codes"), [0, 1, 1, 0, 3, 0, 2, 0]),
            ((T, "codes"), [0, 1, 0, 2, 1, 0, 1]),
        ),
        "a branch that no value leads to",
    ),
    "a missing value goes nowhere": (
        small(((T, "missing_to", 0), 3)),
        "missing_to points to a branch that is not there",
    ),
    "a missing value at a leaf": (
        small(((T, "missing_to", 3), -2)),
        "missing_to points to a branch that is not there",
    ),
    "an unseen value goes nowhere": (
        small(((T, "unseen_to", 1), -3)),
        "unseen_to points to a branch that is not there",
    ),
    "a cut on values": (
        small(((T, "cut", 1), 0.5)),
        "a threshold on a column without numbers",
    ),
    "a cut on a leaf": (
        small(((T, "cut", 7), 0.5)),
        "a threshold on a column without numbers",
    ),
    "a negative weight": (
        small(((T, "weights", 0, 0), -1)),
        "array 'weights' has entries that are negative or not finite",
    ),
    "negative cases": (
        small(((T, "cases", 0), -1)),
        "array 'cases' has entries that are negative or not finite",
    ),
    "a node without weight": (
        small(((T, "weights", 3), [0, 0])),
        "a node without any weight",
    ),
}


#: The same tree with numbers for answers, and with answers that costs have chosen.
NUMBERS: Any = small(
    ((R, "criterion"), "variance"),
    ((S, "classes"), []),
    ((T, "weights"), [[10], [4], [4], [2], [2], [2], [2], [2]]),
    ((T, "mean"), [2.5, 1, -4, 0.1, 3, 1e-9, 2, 7]),
    ((T, "deviation"), [1.5, 0, 2, 0.1, 0, 0, 0, 3]),
)
ANSWERS: Any = small(
    ((R, "costs"), [[0, 1], [2.5, 0]]), ((T, "answer"), [1, 0, 1, 1, 0, 1, 0, 1])
)

REFUSED |= {
    "no classes and no means": (
        small(((S, "classes"), [])),
        "'classes' of 'schema' is empty.",
    ),
    "classes and means": (
        changed(NUMBERS, (S, "classes"), ["no", "yes"]),
        "'schema' has classes and yet 'tree' has 'mean'.",
    ),
    "means without deviations": (
        changed(NUMBERS, (T, "deviation"), REMOVE),
        "'tree' lacks 'deviation'.",
    ),
    "deviations without means": (
        changed(NUMBERS, (T, "mean"), REMOVE),
        "'tree' lacks 'mean'.",
    ),
    "means and answers": (
        changed(NUMBERS, (T, "answer"), [0] * 8),
        "'tree' has both 'mean' and 'answer'.",
    ),
    "a mean that is null": (
        changed(NUMBERS, (T, "mean", 1), None),
        "array 'mean' must hold numbers only.",
    ),
    "a mean that is true": (
        changed(NUMBERS, (T, "mean", 1), True),
        "array 'mean' must hold numbers only.",
    ),
    "an enormous mean": (
        changed(NUMBERS, (T, "mean", 1), -1e151),
        "array 'mean' has numbers that are too large.",
    ),
    "an enormous deviation": (
        changed(NUMBERS, (T, "deviation", 1), 1e200),
        "array 'deviation' has numbers that are too large.",
    ),
    "an answer that is no whole number": (
        changed(ANSWERS, (T, "answer", 1), 0.5),
        "array 'answer' must hold whole numbers only.",
    ),
    "costs without answers": (
        changed(ANSWERS, (T, "answer"), REMOVE),
        "'recipe' has costs and yet 'tree' lacks 'answer'.",
    ),
    "costs of other classes": (
        changed(ANSWERS, (R, "costs"), [[0, 1, 1], [1, 0, 1], [1, 1, 0]]),
        "'costs' of 'recipe' has 3 rows, and 'schema' has 2 classes.",
    ),
    "costs of numbers": (
        changed(NUMBERS, (R, "costs"), [[0, 1], [1, 0]]),
        "'costs' of 'recipe' has 2 rows, and 'schema' has 0 classes.",
    ),
    **{
        f"costs {costs!r:.20}": (
            changed(ANSWERS, (R, "costs"), costs),
            f"'costs' of 'recipe' must be null or a square of numbers, not {got}.",
        )
        for costs, got in [
            ("cheap", '"cheap"'),
            (1, "1"),
            ([0, 1], "a list"),
            ([[0, 1]], "a list"),
            ([[0, 1], [1]], "a list"),
            ([[0, True], [1, 0]], "a list"),
            ([[0, "1"], [1, 0]], "a list"),
            ([[0, None], [1, 0]], "a list"),
            ([[0, 10**400], [1, 0]], "a list"),
            ({}, "an object"),
        ]
    },
    "ccp_alpha": (
        small(((R, "ccp_alpha"), "worst")),
        "'ccp_alpha' of 'recipe' must be a number of 64 bits, not \"worst\".",
    ),
    "m": (
        small(((R, "m"), [2])),
        "'m' of 'recipe' must be a number of 64 bits, not a list.",
    ),
}
ABSURD |= {
    "a mean too few": (
        changed(NUMBERS, (T, "mean", 7), REMOVE),
        "array 'mean' has shape (7,), expected (8,)",
    ),
    "numbers with two weights": (
        changed(NUMBERS, (T, "weights"), [[1, 1]] * 8),
        "array 'weights' has shape (8, 2), expected (8, 1)",
    ),
    "a negative deviation": (
        changed(NUMBERS, (T, "deviation", 1), -1),
        "array 'deviation' has entries that are negative or not finite",
    ),
    "an answer beyond the classes": (
        changed(ANSWERS, (T, "answer", 0), 2),
        "a prediction that is none of the classes",
    ),
    "a negative answer": (
        changed(ANSWERS, (T, "answer", 0), -1),
        "a prediction that is none of the classes",
    ),
}


def test_the_other_small_models_are_some():
    model = Model(*persist.from_bytes(json.dumps(NUMBERS).encode()))
    assert model.to_text() == (
        "n <= 0.5:\n"
        "|   c in {x, z}: 3 (2)\n"
        "|   c = y: 1e-09 (2)\n"
        "n > 0.5:\n"
        "|   n is known: 2 (2)\n"
        "|   n is missing: 7 (2, ± 3)\n"
        "n is missing: 0.1 (2, ± 0.1)"
    )
    assert json.loads(model.to_bytes()) == NUMBERS
    model = Model(*persist.from_bytes(json.dumps(ANSWERS).encode()))
    assert model.to_text().splitlines()[1:3] == [
        "|   c in {x, z}: no (2)",
        "|   c = y: yes (2)",
    ]
    assert model.to_text().endswith("n is missing: yes (2/1, decided by costs)")
    assert json.loads(model.to_bytes()) == ANSWERS


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_model_is_refused(document, message):
    assert refusal(document) == NO_MODEL + message


@pytest.mark.parametrize(("document", "message"), ABSURD.values(), ids=ABSURD.keys())
def test_what_is_no_tree_is_refused(document, message):
    assert refusal(document) == f"{INSANE}Not a sane tree: {message}."


def test_an_infinite_cut_is_refused():
    content = json.dumps(SMALL).replace("[0.5, null", "[1e999, null").encode()
    assert refusal(content) == f"{INSANE}Not a sane tree: an infinite threshold."


def test_infinite_numbers_are_refused():
    content = json.dumps(small(((S, "classes"), [1, 2]))).encode()
    content = content.replace(b'"classes": [1', b'"classes": [-1e999')
    message = "'classes' of 'schema' has a number that is not finite."
    assert refusal(content) == NO_MODEL + message
    content = json.dumps(SMALL).replace('"cases": [10', '"cases": [1e999').encode()
    assert refusal(content) == (
        f"{INSANE}Not a sane tree: array 'cases' has entries that are negative or not "
        "finite."
    )


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("criterion", "chaos", "criterion must be 'gain' or "),
        ("criterion", None, "criterion must be 'gain' or "),
        ("max_depth", -1, "max_depth must be None or a whole number of at least 0. "),
        ("max_depth", 1.5, "max_depth must be None or a whole number of at least 0. "),
        ("min_samples_split", 1, "min_samples_split must be a whole number of at "),
        ("min_samples_leaf", None, "min_samples_leaf must be a whole number of at "),
        ("min_gain", -0.5, "min_gain must be a finite number of at least 0. "),
        ("max_bins", 1, "max_bins must be None or a whole number of at least 2. "),
        ("branching", "three-way", "branching must be 'values' or 'groups' or "),
        ("branching", ["groups"], "branching must be 'values' or 'groups' or "),
        ("min_samples_branch", -1, "min_samples_branch must be a whole number of at "),
        ("min_samples_branch", None, "min_samples_branch must be a whole number of "),
        ("quinlan_cuts", 1, "quinlan_thresholds must be True or False. "),
        ("average_gain", "yes", "average_gain must be True or False. "),
        ("cut", "mean", "threshold must be 'readable' or 'midpoint' or "),
        ("max_leaf_nodes", 0, "max_leaf_nodes must be None or a whole number of at "),
        ("min_significance", 2, "max_p_value must be None or a probability above 0 "),
        ("min_weight_fraction_leaf", 0.6, "min_weight_fraction_leaf must be a share"),
        ("collapse", None, "collapse must be True or False. "),
        ("pruning", "hard", "pruning must be None or 'error-based' or "),
        ("pruning", {}, "pruning must be None or 'error-based' or "),
        ("confidence", 0, "confidence must be a number above 0 and up to 0.5. "),
        ("confidence", 0.1, "confidence=0.1 has no effect unless pruning is 'error-"),
        ("raise_subtrees", 0, "raise_subtrees must be True or False. "),
        ("ccp_alpha", -1, "ccp_alpha must be a finite number of at least 0, 'best' "),
        ("ccp_alpha", None, "ccp_alpha must be a finite number of at least 0, 'best"),
        ("ccp_alpha", "best", "ccp_alpha='best' has no effect unless pruning is 'co"),
        ("tolerance", -1, "tolerance must be a finite number of at least 0. "),
        ("costs", [[0, -1], [1, 0]], "costs must be None or a square of numb"),
        ("costs", [[1, 1], [1, 0]], "costs must be None or a square of numb"),
        ("costs", [], "costs must be None or a square of numb"),
        ("probabilities", "odds", "probabilities must be 'frequencies' or 'laplace' "),
        ("m", -2, "m must be a finite number of at least 0. "),
    ],
)
def test_a_recipe_that_none_can_have_is_refused(parameter, value, message):
    assert refusal(small(((R, parameter), value))).startswith(INSANE + message)


def test_fields_that_are_not_known_are_left_to_later_versions():
    """Outside the tree they add something; a reader of today can do without."""
    document = small(
        (("note",), "x"), ((S, "note"), "x"), ((R, "note"), 1), ((*COLUMN, "unit"), "m")
    )
    schema, tree, recipe = persist.from_bytes(json.dumps(document).encode())
    assert json.loads(Model(schema, tree, recipe).to_bytes()) == SMALL


def test_absurdly_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parser, "MAX_BYTES", 1000)
    monkeypatch.setattr(parser, "_PIECE", 300)
    path = tmp_path / "model.json"
    path.write_bytes(b" " * 1001)
    with pytest.raises(ModelFileError) as caught:
        branchwise.load(path)
    assert str(caught.value) == (
        f"{path} is not a branchwise model: it has more than 1,000 bytes, the most "
        "that a model file may have."
    )


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_a_file_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(parser, "MAX_BYTES", 10**6)
    with pytest.raises(ModelFileError, match="it has more than 1,000,000 bytes"):
        branchwise.load("/dev/zero")


def test_the_file_is_named(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ModelFileError) as caught:
        branchwise.load(path)
    message = f"{path} is not a branchwise model: the file lacks 'format', 'version'."
    assert str(caught.value) == message


def test_a_path_that_cannot_be_read_is_named(tmp_path):
    absent = tmp_path / "absent.json"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, message in {
        absent: f"There is no model file {str(absent)!r}. Check the path.",
        tmp_path: f"{str(tmp_path)!r} is a directory, not a model file. Give a file in "
        "it.",
        "a\0b": "The model file 'a\\x00b' cannot be read: embedded null byte.",
        absent / "x": f"There is no model file {str(absent / 'x')!r}. Check the path.",
        tmp_path / "loop": f"The model file {str(tmp_path / 'loop')!r} cannot be read: "
        "Too many levels of symbolic links.",
    }.items():
        with pytest.raises(ModelFileError) as caught:
            branchwise.load(path)
        assert str(caught.value) == message


@pytest.mark.parametrize("piece", [b"[],", b"{},", b'{"":0},', b'[[]],"[",'])
def test_lists_by_the_million_are_refused_before_they_take_memory(piece):
    content = b'{"format": "branchwise-model", "x": [' + piece * 1_000_000 + b"0]}"
    tracemalloc.start()
    message = refusal(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (
        message == NO_MODEL + "it has more lists and objects than a model of its size."
    )
    assert most < 2 * len(content)


def test_brackets_in_names_are_no_lists():
    """Intervals as categories, quotes and backslashes among them."""
    names = [f'[[{i},"\\' for i in range(4000)]
    model = fit_tree({"c": names[:2]}, [0, 1], categories={"c": names})
    content = model.to_bytes()
    assert content.count(b"[") > 1000 + len(content) // 16
    assert reopened(model) == model


def test_texts_without_an_end_are_refused_quickly():
    for content in (b'"' + b"\\" * 10**6, b'["' * 10**6, b'"\\"[' * 10**6):
        assert refusal(content).startswith(NO_MODEL)


# -- Reading what was damaged


def _cells(column: Column) -> list[Any]:
    if column.is_numeric:
        return [0.0, 0.5, -1e300, 1e300, 2.449999999, None]
    new = {"text": "something new", "boolean": None, "number": 12345.678}
    return [*column.categories[:3], new.get(column.value_type or "text"), None]


def _use(content: bytes) -> bool:
    """Open a file that may be damaged, and do with it all that can be done."""
    try:
        parts = persist.from_bytes(content)
    except ModelFileError:
        return False
    schema, tree, recipe = parts
    validate(tree, schema)
    model = Model(schema, tree, recipe)
    width = max(len(_cells(column)) for column in schema.columns)
    cells: Any = {c.name: (_cells(c) * width)[:width] for c in schema.columns}
    if not schema.named:
        cells = list(zip(*cells.values(), strict=True))
    try:
        labels = model.predict(cells)
    except DataError:
        assert "error" in (recipe.missing, recipe.unseen)
    else:
        if tree.is_regression:
            assert np.isfinite(labels.astype(float)).all()
        else:
            chances = model.predict_proba(cells)
            np.testing.assert_allclose(chances.sum(axis=1), 1)
            assert (chances >= 0).all()
            assert set(labels.tolist()) <= set(schema.classes)
        arrivals = model.arrivals(cells)
        rows, nodes = model.visited(arrivals)
        assert len(rows) == len(nodes) >= width
        assert ((model.apply(cells) >= 0) & (model.apply(cells) < len(tree))).all()
    for rule in model.rules():
        assert str(rule)
    assert model.to_text(empty_branches=True, missing=True)
    assert repr(model)
    assert schema.describe()
    assert np.isfinite(model.feature_importances).all()
    written = model.to_bytes()
    assert Model(*persist.from_bytes(written)).to_bytes() == written
    return True


DAMAGED = {
    "small": lambda: json.dumps(SMALL).encode(),
    "tennis": lambda: grow("tennis").to_bytes(),
    "labor": lambda: grow("labor", RECIPES["split"]).to_bytes(),
    "iris": lambda: grow("iris", RECIPES["largest"]).to_bytes(),
    "toy": lambda: grow("toy", RECIPES["node"]).to_bytes(),
    "numbers": lambda: json.dumps(NUMBERS).encode(),
    "answers": lambda: json.dumps(ANSWERS).encode(),
    "C4.5": lambda: grow("labor", replace(C45, confidence=0.1)).to_bytes(),
    "CART": lambda: grow(
        "labor", replace(CART, missing="split", costs=COSTS, probabilities="laplace")
    ).to_bytes(),
    "regression": lambda: grow_numbers(REGRESSION["divided"]).to_bytes(),
}
MUTATIONS = examples(1500)


def _fuzz(damage: Callable[[random.Random], bytes], seed: str) -> int:
    rng = random.Random(seed)
    usable = 0
    for number in range(MUTATIONS // 2):
        content = damage(rng)
        start = time.perf_counter()
        try:
            usable += _use(content)
        except Exception as error:
            raise AssertionError(f"mutation {number}: {content!r}") from error
        assert time.perf_counter() - start < 5
    return usable


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_bytes_are_refused_or_harmless(name):
    whole = DAMAGED[name]()
    usable = _fuzz(lambda rng: damage_bytes(whole, rng), f"bytes {name}")
    assert 0 < usable < MUTATIONS // 2


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_values_are_refused_or_harmless(name):
    document = json.loads(DAMAGED[name]())
    paths = paths_of(document)

    def damage(rng: random.Random) -> bytes:
        return json.dumps(damage_value(document, paths, rng)).encode()

    usable = _fuzz(damage, f"values {name}")
    assert 0 < usable < MUTATIONS // 2


def test_enough_damage_is_done():
    assert 2 * len(DAMAGED) * (MUTATIONS // 2) >= 3000


# -- Depth


@pytest.mark.parametrize("levels", first_fast([5_000, 20_000]))
def test_a_very_deep_tree_is_written_and_read(levels):
    schema = Schema((Column("n", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[levels, levels + 1])
    node = 0
    for level in range(levels):
        builder.child(node, "n", at_most=level, weights=[1, 0])
        node = builder.child(
            node, "n", above=level, weights=[levels - level, levels - level]
        )
    model = Model(schema, builder.build(), Recipe())
    loaded = reopened(model)
    assert loaded.tree == model.tree
    assert loaded.tree.max_depth == levels


def test_errors_of_files_are_branchwise_errors():
    assert issubclass(ModelFileError, BranchwiseError)
