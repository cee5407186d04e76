"""Shapley values of the page, run by Node.js, are those of ``model.shap``."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from branchwise import ID3Classifier, datasets
from branchwise.model import Model
from branchwise.render import view as viewer
from mixed_trees import random_models
from naive_shapley import random_rows
from shap_models import drawn

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node.js on this machine")
#: Runs the functions of the page on each model, with a document that has its data.
DRIVER = """
const fs = require("fs");
const { code, models } = JSON.parse(fs.readFileSync(0, "utf8"));
const found = models.map(({ data, rows }) => {
  const document = { getElementById: () => ({ textContent: JSON.stringify(data) }) };
  const page = new Function("document", code);
  const { shapleyOf, classProbabilities, hasShapley } = page(document);
  const widths = data.classes.length || 1;
  return rows.map((row) => Array.from({ length: widths }, (_, label) => {
    const valueOf = data.predicts === "numbers"
      ? (node) => data.mean[node]
      : (node) => classProbabilities(node)[label];
    const { base, values } = shapleyOf(row, valueOf);
    return { base, values: [...values], fast: hasShapley() };
  }));
});
process.stdout.write(JSON.stringify(found));
"""
SCRIPTS = ("walk.js", "tree.js", "decide.js", "shapley.js")


def of_the_page(models: list[tuple[Model, Any]]) -> list[Any]:
    """Return base value and values of each class, of each row, of each model."""
    assets = files("branchwise") / "render" / "assets"
    code = "\n".join((assets / name).read_text("utf-8") for name in SCRIPTS)
    code += "\nreturn { shapleyOf, classProbabilities, hasShapley };"
    given = []
    for model, rows in models:
        lists = viewer.lists_for(model.tree)
        seen = viewer.view(model.schema, model.tree, model.recipe, lists=lists)
        given.append({"data": viewer.compact(seen), "rows": _cells(model, rows)})
    document = json.dumps({"code": code, "models": given})
    done = subprocess.run(
        [str(NODE), "-e", DRIVER],
        input=document,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def _cells(model: Model, rows: Any) -> list[list[float | None]]:
    """Return rows as the page has them: None is missing, -1 an unseen category."""
    data = model.encoded(rows)
    cells: list[list[float | None]] = [[] for _ in range(data.n_rows)]
    for index, column in enumerate(model.schema.columns):
        for row, line in enumerate(cells):
            value = None
            if index in model.tree.used_columns:
                code = data.data[index][row]
                if column.is_numeric:
                    value = None if np.isnan(code) else float(code)
                elif code != column.missing_code:
                    known = code < len(column.categories)
                    value = int(code) if known else -1
            line.append(value)
    return cells


def compare(models: list[tuple[Model, Any]]) -> None:
    """Compare the values of the page with those of the library."""
    for (model, rows), found in zip(models, of_the_page(models), strict=True):
        own = model.shap(rows)
        n_rows, n_columns = own.values.shape[:2]
        values = own.values.reshape(n_rows, n_columns, -1)
        bases = np.atleast_1d(own.base_values)
        for row, by_class in enumerate(found):
            for label, one in enumerate(by_class):
                assert one["base"] == pytest.approx(bases[label], abs=1e-12)
                assert one["values"] == pytest.approx(
                    values[row, :, label].tolist(), abs=1e-12
                )


def test_values_are_those_of_the_library() -> None:
    compare([drawn(seed, n_rows=3)[:2] for seed in range(16)])


@pytest.mark.slow
def test_values_of_many_models_are_those_of_the_library() -> None:
    rng = random.Random(7)
    models = random_models(300, seed=5000)
    compare([(model, random_rows(model, 5, rng)) for model in models])


def test_bundled_tables() -> None:
    for name in ("car", "labor"):
        table = datasets.load(name)
        model = ID3Classifier().fit(table.X, table.y).model_
        compare([(model, table.rows()[:4])])


def test_a_leaf_has_a_base_value_alone() -> None:
    model = ID3Classifier(max_depth=0).fit({"a": [1, 2]}, ["x", "y"]).model_
    [[by_class]] = of_the_page([(model, [{"a": 1}])])
    assert [one["base"] for one in by_class] == [0.5, 0.5]
    assert by_class[0]["values"] == [0]
