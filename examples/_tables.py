"""The tables of the studies, and what the studies do with any table.

The tables are in ``data/``; its README says where they come from and how the sample
of adult was drawn. Cells are text, numbers or None for ``?``, as branchwise takes
them: nothing is encoded.
"""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from branchwise.datasets import Cell, Dataset

FOLDER = Path(__file__).parent / "data"


def load(name: str) -> Dataset:
    """Read a table of ``data/``; its last column is the target."""
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    *columns, labels = (list(cells) for cells in zip(*rows, strict=True))
    *names, target = header
    X = {n: read_cells(cells) for n, cells in zip(names, columns, strict=True)}
    return Dataset(name, X, labels, target)


def read_cells(cells: list[str]) -> list[Cell]:
    """Return numbers if all cells are numbers; ``?`` is a missing value."""
    known = [None if cell == "?" else cell for cell in cells]
    try:
        return [None if cell is None else float(cell) for cell in known]
    except ValueError:
        return list(known)


def take(data: Dataset, rows: Sequence[int]) -> Dataset:
    """Return some rows of a table."""
    X = {name: [cells[at] for at in rows] for name, cells in data.X.items()}
    return replace(data, X=X, y=[data.y[at] for at in rows])


def split(data: Dataset, test_size: float) -> tuple[Dataset, Dataset]:
    """Hold out a share of the rows: the same share of each class, always the same."""
    train, test = train_test_split(
        range(len(data.y)), test_size=test_size, stratify=data.y, random_state=0
    )
    return take(data, train), take(data, test)


def look_at(data: Dataset) -> None:
    """Print what each column holds."""
    print(f"{data!r}\n")
    width = max(map(len, data.X))
    for name, cells in data.X.items():
        known = [cell for cell in cells if cell is not None]
        missing = len(cells) - len(known)
        note = f", {missing} missing" if missing else ""
        print(f"{name:<{width}}  {_described(known)}{note}")


def _described(known: list[Cell]) -> str:
    values = sorted(set(known))
    if isinstance(values[0], float):
        return f"numbers from {values[0]:g} to {values[-1]:g}"
    shown = ", ".join(map(str, values[:4])) + (", ..." if len(values) > 4 else "")
    return f"{len(values)} value{'s' if len(values) > 1 else ''}: {shown}"


def matrix(data: Dataset) -> np.ndarray:
    """Return the cells as the array that scikit-learn's encoders take."""
    columns = [np.array(cells, dtype=object) for cells in data.X.values()]
    return np.column_stack(columns)


def scikit_tree(data: Dataset, **options: object) -> Pipeline:
    """Make scikit-learn's tree, with the encoder that it needs for text."""
    text = [
        at
        for at, cells in enumerate(data.X.values())
        if any(isinstance(cell, str) for cell in cells)
    ]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((encoder, text), remainder="passthrough"),
        DecisionTreeClassifier(random_state=0, **options),
    )


@dataclass(frozen=True)
class Score:
    """How large a tree is, and its accuracy on rows seen and unseen."""

    leaves: int
    train: float
    test: float


def compare_trees(
    trees: dict[str, ClassifierMixin], train: Dataset, test: Dataset
) -> dict[str, Score]:
    """Fit branchwise's trees, scikit-learn's and a guess; print and return scores."""
    scores = {}
    guess = DummyClassifier().fit(matrix(train), train.y)
    scores["always the larger class"] = Score(
        1, guess.score(matrix(train), train.y), guess.score(matrix(test), test.y)
    )
    other = scikit_tree(train).fit(matrix(train), train.y)
    scores["scikit-learn, one-hot"] = Score(
        int(other[-1].get_n_leaves()),
        other.score(matrix(train), train.y),
        other.score(matrix(test), test.y),
    )
    for name, tree in trees.items():
        tree.fit(train.X, train.y)
        scores[name] = Score(
            tree.get_n_leaves(),
            tree.score(train.X, train.y),
            tree.score(test.X, test.y),
        )
    width = max(map(len, scores))
    print(f"{'':<{width}}  leaves   train    test")
    for name, score in scores.items():
        print(
            f"{name:<{width}}  {score.leaves:>6}  {score.train:.4f}  {score.test:.4f}"
        )
    return scores
