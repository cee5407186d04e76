"""Client code is typed: mypy and pyright accept it in their strict modes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: How the README uses the library.
CLIENT = """
import numpy as np

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    Model,
    datasets,
    fit_tree,
    load,
    read_table,
)

tennis = datasets.load("tennis")
tree = C45Classifier(confidence=0.1).fit(tennis.X, tennis.y)
model: Model = tree.model_
text: str = str(model)
print(text, tree.predict(tennis.X).tolist(), model.rules(), model.to_html())
score: float = tree.score(tennis.X, tennis.y)
model.save("tree.json")
again = load("tree.json")
assert isinstance(again, Model)
print(again.explain(tennis.X), score)
for estimator in (ID3Classifier(), CARTClassifier(max_depth=3)):
    print(estimator.fit(tennis.X, tennis.y).score(tennis.X, tennis.y))
regressor = CARTRegressor(max_depth=2).fit({"x": [1.0, 2.0]}, np.array([1.0, 2.0]))
print(regressor.predict({"x": [1.5]}).mean())
print(fit_tree(tennis.X, tennis.y), read_table("table.csv"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(autouse=True)
def client(folder: Path) -> None:
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "installed",
    [
        # From here ``make lint`` has left a cache: this takes a second, not twenty.
        False,
        pytest.param(True, marks=pytest.mark.slow),
    ],
)
def test_mypy_strict(installed, folder):
    wrong = CLIENT.replace("text: str = str(model)", "text: int = str(model)")
    files = [str(folder / "client.py"), str(folder / "wrong.py")]
    (folder / "wrong.py").write_text(wrong, encoding="utf-8")
    cwd = folder if installed else Path(__file__).parents[2]
    done = run("mypy", "--strict", *files, cwd=cwd)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout
    assert "wrong.py:" in errors[0]
    assert 'expression has type "str", variable has type "int"' in errors[0]


@pytest.mark.slow
def test_pyright_strict(folder):
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "strict", "include": ["client.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = run("basedpyright", "--pythonpath", sys.executable, cwd=folder)
    assert done.returncode == 0, done.stdout
