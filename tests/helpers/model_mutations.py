"""Damage to model files: their bytes, their values, and their meaning."""

from __future__ import annotations

import copy
import random
from typing import Any

Path_ = tuple[str | int, ...]
REMOVE = object()


def changed(document: Any, path: Path_, value: Any) -> Any:
    """Return a copy in which one value is another, or is removed."""
    document = copy.deepcopy(document)
    place = document
    for step in path[:-1]:
        place = place[step]
    if value is REMOVE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def damage_bytes(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place = rng.randrange(len(damaged))
        length = rng.choice([1, 1, 2, 8, 64])
        match rng.randrange(6):
            case 0:
                damaged[place] ^= 1 << rng.randrange(8)
            case 1:
                del damaged[place : place + length]
            case 2:
                damaged[place:place] = damaged[place : place + length]
            case 3:
                damaged[place:place] = bytes(
                    rng.choices(b'0123456789-.eE,[]{}":', k=length)
                )
            case 4:
                digits = [i for i, byte in enumerate(damaged) if byte in b"0123456789"]
                if digits:
                    damaged[rng.choice(digits)] = rng.choice(b"0123456789")
            case _:
                del damaged[place:]
        if not damaged:
            break
    return bytes(damaged)


def paths_of(value: Any, path: Path_ = ()) -> list[Path_]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths_of(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += paths_of(inner, (*path, index))
    return found


STRANGE = [
    *(None, True, False, 0, 1, -1, -2, 2, 3, 7, 255, 2**31, 2**53 + 1, 2**63 - 1),
    *(2**63, -(2**63), 2**64, 10**400, 0.0, -0.0, 0.5, -0.5, 1.0, 1e308, -1e308),
    *(5e-324, 1e17, 1e299, "", "x", "1", "NaN", "\ud800", "\x00x", "branch", "numeric"),
    *([], [[]], [0], [None], {}, {"function": "f"}, {"": {}}, [[0, 1]], [1, 2, 3]),
]


def at(document: Any, path: Path_) -> Any:
    """Return what is at a path, or None where an earlier change took it away."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int):
            document = document[step] if step < len(document) else None
        else:
            return None
    return document


def damage_value(document: Any, paths: list[Path_], rng: random.Random) -> Any:
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *above, key = rng.choice(paths[1:])
        place = at(document, tuple(above))
        if not isinstance(place, (list, dict)) or at(place, (key,)) is None:
            continue
        old = place[key]
        match rng.randrange(6):
            case 0:
                del place[key]
            case 1 if isinstance(place, list):
                place.insert(rng.randrange(len(place) + 1), copy.deepcopy(old))
            case 2 if isinstance(place, list):
                other = rng.randrange(len(place))
                place[key], place[other] = place[other], old
            case 3 if type(old) in (int, float):
                place[key] = old + rng.choice([-1, 1, 1, 0.5, -1000])
            case 4:
                place[key] = copy.deepcopy(at(document, rng.choice(paths)))
            case _:
                place[key] = copy.deepcopy(rng.choice(STRANGE))
    return document


#: Factors that make amounts vanish, disagree or overflow.
FACTORS = (0, -1, 0.5, 2, 1 + 1e-9, 1e-3, 1e6, 1e-300, 5e-324, 1e50, 1e150, 1e299)
#: Legal values of recipe fields, to be mixed with any tree.
RECIPE_VALUES: dict[str, tuple[Any, ...]] = {
    "missing": ("branch", "split", "largest", "node", "error", "learned", "surrogate"),
    "unseen": ("branch", "split", "largest", "node", "error"),
    "criterion": ("gain", "gini", "variance", "poisson", {"function": "\ud800\n"}),
    "branching": ("values", "groups", "two-way"),
    "probabilities": ("frequencies", "laplace", "m-estimate", "shrunk"),
    "m": (0, 2, 1e-300, 1e300),
    "pruning": (None, "error-based", "reduced-error", "cost-complexity"),
    "confidence": (1e-300, 1e-9, 0.25, 0.5),
    "ccp_alpha": (0, 1e-300, 1e300, "best", "1-se"),
    "risk": ("auto", "impurity", "errors"),
    "tolerance": (0, 1e300),
    "costs": (None, [[0, 1], [1, 0]], [[0, 1e300], [5e-324, 0]], [[0] * 2] * 2),
    "min_gain": (0, 1e300),
    "max_depth": (None, 0, 2**62),
    "min_samples_split": (2, 2**62, 1e-300),
    "algorithm": ("ID3", "C4.5", "CART"),
    "average_gain": (True, False),
    "many_values": ("corrected", "plain"),
    "quinlan_cuts": (True, False),
}
#: Lists of classes or categories, mixed with any tree.
VALUE_LISTS: tuple[list[Any], ...] = (
    ["", " "],
    ["\ud800", "a\nb\x1b[0m"],
    [False, True],
    [0, 1],
    [-(2**63), 2**63 - 1],
    [5e-324, 1.7976931348623157e308],
    ["x" * 10_000, "y"],
    ["is missing", "is known"],
)


def damage_meaning(document: Any, rng: random.Random) -> Any:
    """Return a copy that is damaged where a model may well be opened all the same."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 3])):
        tree, schema = document["tree"], document["schema"]
        match rng.randrange(8):
            case 0 | 1:
                _scale(tree, rng)
            case 2:
                array = tree[rng.choice(list(tree))]
                if len(array) > 1:
                    i, j = rng.randrange(len(array)), rng.randrange(len(array))
                    array[i], array[j] = rng.choice(
                        [(array[j], array[i]), (array[j], array[j])]
                    )
            case 3:
                _drop_leaf(tree, rng)
            case 4:
                name = rng.choice(list(RECIPE_VALUES))
                document["recipe"][name] = copy.deepcopy(
                    rng.choice(RECIPE_VALUES[name])
                )
            case 5:
                _rename(schema, rng)
            case 6:
                place = rng.choice([schema, *schema["columns"]])
                field = "classes" if place is schema else "categories"
                values = copy.deepcopy(rng.choice(VALUE_LISTS))
                place[field] = values + place[field][2:] if place[field] else []
            case _:
                cuts = [i for i, cut in enumerate(tree["cut"]) if cut is not None]
                if cuts:
                    numbers = [0, -0.0, 5e-324, 1.7976931348623157e308, -1e300, 1 / 3]
                    tree["cut"][rng.choice(cuts)] = rng.choice(numbers)
    return document


def _scale(tree: Any, rng: random.Random) -> None:
    names = [n for n in ("weights", "cases", "mean", "deviation") if n in tree]
    array, factor = tree[rng.choice(names)], rng.choice(FACTORS)
    start = rng.choice([0, rng.randrange(len(array))])
    stop = rng.choice([start + 1, len(array)])
    for place in range(start, stop):
        if isinstance(array[place], list):
            array[place] = [entry * factor for entry in array[place]]
        else:
            array[place] *= factor


def _rename(schema: Any, rng: random.Random) -> None:
    name = rng.choice(["", "\ud800", "a\nb", "target", "rows", "__proto__", "x" * 9999])
    match rng.randrange(4):
        case 0:
            schema["target"] = rng.choice([None, name])
        case 1:
            rng.choice(schema["columns"])["name"] = name
        case 2:
            schema["named"] = not schema["named"]
        case _:
            column = rng.choice(schema["columns"])
            column["has_missing"] = not column["has_missing"]


def _drop_leaf(tree: Any, rng: random.Random) -> None:
    """Take a leaf out of its parent, which keeps one branch or more."""
    parents = [p for p, n in enumerate(tree["n_children"]) for _ in range(n)]
    if len(parents) + 1 != len(tree["n_children"]) or any(
        parent > child for child, parent in enumerate(parents)
    ):
        return  # damaged before
    leaves = [i for i, n in enumerate(tree["n_children"]) if i and not n]
    leaves = [i for i in leaves if tree["n_children"][parents[i - 1]] > 1]
    if not leaves:
        return
    leaf = rng.choice(leaves)
    parent = parents[leaf - 1]
    start = sum(tree["n_codes"][:leaf])
    del tree["codes"][start : start + tree["n_codes"][leaf]]
    per_node = (n for n in tree if not n.startswith("surrogate_") and n != "codes")
    for name in per_node:
        del tree[name][leaf]
    tree["n_children"][parent] -= 1
    for way in ("missing_to", "unseen_to"):
        tree[way][parent] = min(tree[way][parent], tree["n_children"][parent] - 1)
