"""Trees as J48 prints them, read into plain dicts and held against a model.

A question is ``{"asks": column, "cut": number (for numbers), "ways": {value or "<="
or ">": subtree}}``, a leaf is ``[label, weight, training errors]``. Run as a script
it writes the golden trees of the tests:

    python benchmarks/printed_trees.py FOLDER > tests/data/j48_trees.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from branchwise import Model

GOLDEN = (
    "tennis",
    "weather-numeric",
    "lenses",
    "iris",
    "labor-neg",
    "hepatitis",
    "house-votes-84",
    "credit-g",
)
SYSTEMS = {"pruned": "j48", "unpruned": "j48_unpruned"}
#: Weights and errors are printed with two decimals.
PRINTED = 0.005 + 1e-9

_INDENT = "|   "
_QUESTION = re.compile(r"(?P<asks>.*?) (?P<how>=|<=|>) (?P<rest>.*)")
_LEAF = re.compile(
    r"(?P<value>.*): (?P<label>\S+) \((?P<weight>[\d.]+)(?:/(?P<errors>[\d.]+))?\)"
)

Printed = dict[str, Any] | list[Any]


def read_tree(text: str) -> Printed:
    """Read the tree between J48's heading and its summary."""
    body = text.split("\n\n")[1]
    lines = [
        (line.count(_INDENT), line.replace(_INDENT, "")) for line in body.split("\n")
    ]
    tree, rest = _read(lines, 0)
    if rest:
        raise ValueError(f"cannot read {rest[0][1]!r}")
    return tree


def _read(lines: list[tuple[int, str]], depth: int) -> tuple[Printed, list]:
    node: dict[str, Any] = {"asks": None, "ways": {}}
    while lines and lines[0][0] == depth:
        (_, line), *lines = lines
        question = _QUESTION.fullmatch(line)
        if question is None:
            raise ValueError(f"cannot read {line!r}")
        value = question["rest"]
        if leaf := _LEAF.fullmatch(value):
            value = leaf["value"]
            errors = float(leaf["errors"] or 0)
            below: Printed = [leaf["label"], float(leaf["weight"]), errors]
        else:
            below, lines = _read(lines, depth + 1)
        node["asks"] = question["asks"]
        if question["how"] == "=":
            node["ways"][value] = below
        else:
            node["cut"] = float(value)
            node["ways"][question["how"]] = below
    return node, lines


def differences(model: Model, expected: Printed, node: int = 0) -> list[str]:
    """Say where a model is not the printed tree."""
    tree = model.tree
    if isinstance(expected, list):
        label, weight, errors = expected
        ours = tree.weights[node]
        same = (
            bool(tree.is_leaf[node])
            and model.schema.classes[tree.label[node]] == label
            and abs(ours.sum() - weight) <= PRINTED
            and abs(ours.sum() - ours.max() - errors) <= PRINTED
        )
        return [] if same else [f"node {node} is not {label} ({weight}/{errors})"]
    if tree.is_leaf[node] or model.schema.names[tree.column[node]] != expected["asks"]:
        return [f"node {node} does not ask for {expected['asks']}"]
    if "cut" in expected and tree.threshold[node] != expected["cut"]:
        return [f"node {node} is not cut at {expected['cut']}"]
    column = model.schema.columns[tree.column[node]]
    names = ["<=", ">"] if column.is_numeric else column.categories
    ways = {names[c]: k for k in tree.children(node) for c in tree.codes_of(k)}
    found = []
    for way, below in expected["ways"].items():
        if isinstance(below, list) and below[1] == 0 and way not in ways:
            # A value without cases is a leaf there, and the answer of the node here.
            if model.schema.classes[tree.label[node]] != below[0]:
                found.append(f"node {node} does not answer {below[0]} for {way}")
        elif way not in ways:
            found.append(f"node {node} has no branch for {way}")
        else:
            found += differences(model, below, ways.pop(way))
    return found + [f"node {node} has a branch for {way}" for way in ways]


def main(folder: str) -> None:
    parts = []
    for name in GOLDEN:
        trees = [
            f'  "{kind}": '
            + json.dumps(
                read_tree((Path(folder) / f"{name}.{system}.txt").read_text()),
                separators=(",", ":"),
            )
            for kind, system in SYSTEMS.items()
        ]
        parts.append(f' "{name}": {{\n' + ",\n".join(trees) + "\n }")
    print("{\n" + ",\n".join(parts) + "\n}")


if __name__ == "__main__":
    main(sys.argv[1])
