"""Golden digests: model bytes, predictions, exports, public names, help texts.

Restructuring must change none of these. A change of behaviour or of texts writes them
anew, in a commit of its own: ``python tests/test_frozen.py``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import branchwise
from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    datasets,
    export,
)
from branchwise.cli.main import SUBCOMMANDS, app

FROZEN = Path(__file__).parents[1] / "golden" / "frozen.json"
HELP = Path(__file__).parents[1] / "golden" / "help"

TABLES = ("house_votes", "iris", "labor", "lenses")
CLASSIFIERS: dict[str, Any] = {
    "id3": ID3Classifier(),
    "id3 gini, missing largest": ID3Classifier(criterion="gini", missing="largest"),
    "id3 reduced error": ID3Classifier(
        pruning="reduced-error", validation_fraction=0.3, missing="split"
    ),
    "id3 laplace, few leaves": ID3Classifier(
        probabilities="laplace", max_leaf_nodes=6, min_samples_leaf=2
    ),
    "c4.5": C45Classifier(),
    "c4.5 groups": C45Classifier(group_values=True),
    "c4.5 unpruned": C45Classifier(prune=False),
    "cart": CARTClassifier(),
    "cart 1-se": CARTClassifier(ccp_alpha="1-se"),
    "cart balanced": CARTClassifier(class_weight="balanced", max_depth=4),
    "cart surrogate": CARTClassifier(missing="surrogate", max_depth=3),
    "cart learned, bins": CARTClassifier(missing="learned", max_bins=4),
}
REGRESSORS: dict[str, Any] = {
    "cart numbers": CARTRegressor(max_depth=4),
    "cart poisson": CARTRegressor(criterion="poisson", max_depth=3),
    "cart numbers best": CARTRegressor(ccp_alpha="best"),
}
EXPORTS = ("c", "javascript", "json", "pmml", "python", "sql")


def short(content: bytes) -> str:
    """Return a digest, short enough to read and long enough to trust."""
    return hashlib.sha256(content).hexdigest()[:24]


def digest(model: Any, X: object) -> str:
    """Return the digest of a model's bytes and of what it predicts."""
    # Another release changes the version in the file, and nothing else.
    own = f'"branchwise": "{branchwise.__version__}"'.encode()
    content = [
        model.to_bytes().replace(own, b""),
        model.predict(X).astype(str).tobytes(),
    ]
    if model.schema.classes:
        content.append(model.predict_proba(X).tobytes())
    return " ".join(short(part) for part in content)


def numbers() -> tuple[pd.DataFrame, list[float]]:
    """Return a table of iris whose petals are to be predicted."""
    iris = pd.DataFrame(datasets.load("iris").X)
    y = iris.pop(iris.columns[-1])
    iris["kind"] = datasets.load("iris").y
    return iris, y.tolist()


def in_memory() -> Iterator[tuple[str, str]]:
    """Yield what every recipe makes of every table."""
    for name in TABLES:
        table = datasets.load(name)
        for recipe, estimator in CLASSIFIERS.items():
            model = estimator.fit(table.X, table.y).model_
            yield f"{name} · {recipe}", digest(model, table.X)
    X, y = numbers()
    for recipe, estimator in REGRESSORS.items():
        yield f"iris · {recipe}", digest(estimator.fit(X, y).model_, X)


def by_engine() -> Iterator[tuple[str, str]]:
    """Yield what the engines for files and for databases make, by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "model.json")
        for name in ("iris", "labor"):
            table = datasets.load(name)
            frame = pd.DataFrame(table.X)
            frame[table.target] = table.y
            parquet = str(Path(folder) / f"{name}.parquet")
            frame.to_parquet(parquet, row_group_size=40)
            database = str(Path(folder) / f"{name}.sqlite")
            with sqlite3.connect(database) as connection:
                frame.to_sql(name, connection, index=False)
            connection.close()
            sources = {"chunked": [parquet], "sql": [database, "--table", name]}
            for algorithm in ("id3", "c4.5", "cart"):
                for engine, source in sources.items():
                    options = ["--target", table.target, "--algorithm", algorithm]
                    options += ["--engine", engine, "--output", output]
                    result = CliRunner().invoke(app, ["fit", *source, *options])
                    assert result.exit_code == 0, result.output
                    content = Path(output).read_bytes()
                    yield f"{name} · {algorithm} · {engine}", short(content)


def exports() -> Iterator[tuple[str, str]]:
    """Yield three trees in every language."""
    votes, iris = datasets.load("house_votes"), datasets.load("iris")
    X, y = numbers()
    models = {
        "house_votes id3": ID3Classifier().fit(votes.X, votes.y).model_,
        "iris cart": CARTClassifier(max_depth=3).fit(iris.X, iris.y).model_,
        "iris numbers": CARTRegressor(max_depth=2).fit(X, y).model_,
    }
    for name, model in models.items():
        for target in EXPORTS:
            yield f"{name} · {target}", short(export.write(model, target))


def found() -> dict[str, dict[str, str]]:
    """Return all that is frozen, but for the help texts."""
    return {
        "models": dict(in_memory()),
        "engines": dict(by_engine()),
        "exports": dict(exports()),
        "public": {
            name: type(getattr(branchwise, name)).__name__
            for name in branchwise.__all__
        },
    }


def subcommands() -> list[str]:
    """Return the names of the subcommands."""
    return sorted(SUBCOMMANDS)


def help_of(subcommand: str) -> str:
    """Return the help text of a subcommand, as wide as a terminal of 100 columns."""
    terminal = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [subcommand, "--help"], env=terminal)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return "\n".join(line.rstrip() for line in plain.splitlines()) + "\n"


@pytest.mark.parametrize("part", ["models", "engines", "exports", "public"])
def test_nothing_frozen_has_changed(part, results):
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    assert results[part] == frozen[part]


@pytest.fixture(scope="module")
def results():
    return found()


@pytest.mark.parametrize("subcommand", subcommands())
def test_help_texts_are_as_they_were(subcommand):
    frozen = HELP / f"{subcommand}.txt"
    assert help_of(subcommand) == frozen.read_text(encoding="utf-8")


def freeze() -> None:
    """Write everything anew."""
    FROZEN.write_text(json.dumps(found(), indent=1) + "\n", encoding="utf-8")
    HELP.mkdir(exist_ok=True)
    for subcommand in subcommands():
        (HELP / f"{subcommand}.txt").write_text(help_of(subcommand), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(freeze())
