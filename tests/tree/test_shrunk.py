"""Hierarchical shrinkage of probabilities (Agarwal et al. 2022)."""

import numpy as np
import pytest

from branchwise import C45Classifier, CARTClassifier, ID3Classifier, datasets, load
from branchwise.tree.apply import node_probabilities


def by_definition(tree, shrinkage):
    """Add up what the splits above a node change, each divided by its own amount."""
    weight = tree.weights.sum(axis=1)
    frequency = tree.weights / weight[:, np.newaxis]
    found = []
    for node in range(len(tree)):
        path, at = [], node
        while at:
            path.append((at, int(tree.parent[at])))
            at = path[-1][1]
        changes = [
            (frequency[below] - frequency[above]) / (1 + shrinkage / weight[above])
            for below, above in path
        ]
        found.append(frequency[0] + np.sum(changes, axis=0))
    return np.array(found)


@pytest.mark.parametrize("estimator", [ID3Classifier, C45Classifier, CARTClassifier])
@pytest.mark.parametrize("shrinkage", [20.0, 7.5])
def test_probabilities_are_those_of_the_definition(estimator, shrinkage):
    votes = datasets.load("house_votes")
    shrunk = estimator(probabilities="shrunk", shrinkage=shrinkage)
    shrunk = shrunk.fit(votes.X, votes.y).model_
    plain = estimator().fit(votes.X, votes.y).model_
    assert np.array_equal(shrunk.tree.column, plain.tree.column)
    wanted = by_definition(shrunk.tree, shrinkage)
    assert np.allclose(node_probabilities(shrunk.tree, shrunk.recipe), wanted)
    arrivals = shrunk.arrivals(votes.X)
    expected = np.zeros((len(votes.y), 2))
    np.add.at(
        expected, arrivals.row, wanted[arrivals.node] * arrivals.share[:, np.newaxis]
    )
    assert np.allclose(shrunk.predict_proba(votes.X), expected)
    assert np.allclose(shrunk.view()["nodes"]["probabilities"], wanted)


def test_pure_leaves_are_not_sure():
    iris = datasets.load("iris")
    plain = CARTClassifier().fit(iris.X, iris.y)
    shrunk = CARTClassifier(probabilities="shrunk").fit(iris.X, iris.y)
    assert plain.predict_proba(iris.X).max() == 1.0
    assert shrunk.predict_proba(iris.X).max() < 1.0


def test_exports_and_files_have_them(tmp_path):
    iris = datasets.load("iris")
    estimator = CARTClassifier(probabilities="shrunk", shrinkage=5.0).fit(
        iris.X, iris.y
    )
    model = estimator.model_
    model.save(tmp_path / "tree.json")
    again = load(tmp_path / "tree.json")
    assert again == model
    assert np.array_equal(again.predict_proba(iris.X), model.predict_proba(iris.X))
    # Verified against the model before it is returned.
    assert "def predict" in model.export("python")


def test_no_shrinkage_is_frequencies():
    labor = datasets.load("labor")
    shrunk = C45Classifier(probabilities="shrunk", shrinkage=0).fit(labor.X, labor.y)
    plain = C45Classifier().fit(labor.X, labor.y)
    assert np.allclose(shrunk.predict_proba(labor.X), plain.predict_proba(labor.X))
