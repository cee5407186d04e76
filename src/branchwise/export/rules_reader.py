"""Follow the rules of a branchwise JSON export, with nothing but Python's own library.

This program stands alone: branchwise runs it to verify exports, and it shows all that
a reader of such files has to do. Rows are lines of JSON on standard input, an array
with one cell for each of the file's columns; answers are lines of JSON.
"""

import json
import sys
from typing import Any


def meets(condition: dict[str, Any], value: Any) -> bool:
    """Tell whether a known value meets a condition."""
    if "values" in condition:
        return value in condition["values"]
    if "at_most" in condition:
        return bool(value <= condition["at_most"])
    if "above" in condition:
        return bool(value > condition["above"])
    return bool(condition["known"])


def share(condition: dict[str, Any], row: dict[str, Any], known: dict[str, Any]) -> Any:
    """Return the share of a case that meets a condition: mostly 0 or 1."""
    value = row[condition["column"]]
    if value is None:
        for stand_in in condition.get("if_missing", ()):
            other = row[stand_in["this"]["column"]]
            if other is not None:
                if meets(stand_in["this"], other):
                    return 1
                if meets(stand_in["other"], other):
                    return 0
        return condition["missing"]
    values = known.get(condition["column"])
    if values is not None and value not in values:
        return condition["unseen"]
    return 1 if meets(condition, value) else 0


def arrivals(
    document: dict[str, Any], row: dict[str, Any], known: dict[str, Any]
) -> Any:
    """Return the rules that a case ends in, each with its share, in their order."""
    ends = []
    entered = [(document["rules"], 1.0)]
    while entered:
        rules, entry = entered.pop()
        for rule in rules:
            part = entry
            for condition in rule["if"]:
                part = part * share(condition, row, known)
                if part == 0:
                    break
            else:
                if "part" in rule["then"]:
                    entered.append((document["parts"][rule["then"]["part"]], part))
                else:
                    ends.append((rule["node"], rule["then"], part))
    return [(then, part) for _, then, part in sorted(ends, key=lambda end: end[0])]


def refused(
    document: dict[str, Any], row: dict[str, Any], known: dict[str, Any]
) -> bool:
    """Tell whether a row has no answer because of what is missing or unknown."""
    if document["missing"] == "refused" and None in row.values():
        return True
    return document["unseen"] == "refused" and any(
        row[name] is not None and row[name] not in values
        for name, values in known.items()
    )


def most(document: dict[str, Any], chances: list[float]) -> int:
    """Return the code of the class with the most chance, or that costs least."""
    scores = chances
    if document["costs"] is not None:
        scores = []
        for answer in range(len(document["costs"][0])):
            price = 0.0
            for chance, costs in zip(chances, document["costs"], strict=True):
                price += chance * costs[answer]
            scores.append(-price)
    best = max(scores)
    least = best - abs(best) * 1e-9
    return next(code for code, score in enumerate(scores) if score >= least)


def answer(document: dict[str, Any], cells: list[Any]) -> list[Any] | None:
    """Return [class code, probabilities ...] or [number]; None for a refused row."""
    columns = document["columns"]
    row = {c["name"]: cell for c, cell in zip(columns, cells, strict=True)}
    known = {c["name"]: c["values"] for c in columns if "values" in c}
    if refused(document, row, known):
        return None
    ends = arrivals(document, row, known)
    if document["predicts"] == "numbers":
        if len(ends) == 1:
            return [ends[0][0]["number"]]
        total = 0.0
        for then, part in ends:
            total += then["number"] * part
        return [total]
    if len(ends) == 1:
        then = ends[0][0]
        return [document["classes"].index(then["class"]), *then["probabilities"]]
    chances = [0.0] * len(document["classes"])
    for then, part in ends:
        for code, chance in enumerate(then["probabilities"]):
            chances[code] += chance * part
    return [most(document, chances), *chances]


def main() -> None:
    """Read rules, then rows; write answers."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        document = json.load(file)
    for line in sys.stdin:
        print(json.dumps(answer(document, json.loads(line))))


if __name__ == "__main__":
    main()
