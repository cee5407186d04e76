"""The comparison of a C4.5 tree with that of the naive oracle."""

from __future__ import annotations

import math

import pytest

import naive_c45
from branchwise import Model


def key_of(model: Model, child: int) -> str:
    """What leads to a child, in the naive vocabulary."""
    tree = model.tree
    column = model.schema.columns[tree.column[tree.parent[child]]]
    (code,) = tree.codes_of(child)
    if column.is_numeric:
        return (naive_c45.AT_MOST, naive_c45.ABOVE)[code]
    return column.categories[code]


def assert_same_tree(model: Model, expected: naive_c45.Node) -> None:
    tree, schema = model.tree, model.schema
    pairs = [(0, expected)]
    for node, naive_node in pairs:  # grows while it is walked
        index = int(tree.column[node])
        column = schema.names[index] if index >= 0 else None
        assert column == naive_node.column, f"node {node}"
        cut = None if math.isnan(tree.threshold[node]) else tree.threshold[node]
        assert cut == naive_node.threshold, f"node {node}"
        assert schema.classes[tree.label[node]] == naive_node.label, f"node {node}"
        wanted = [float(naive_node.weights[name]) for name in schema.classes]
        assert tree.weights[node].tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        children = {key_of(model, child): child for child in tree.children(node)}
        assert set(children) == set(naive_node.children), f"node {node}"
        pairs.extend((children[key], naive_node.children[key]) for key in children)
    assert len(pairs) == len(tree)
