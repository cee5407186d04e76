"""Apply the rules of a branchwise JSON export, with nothing but Python's own library.

This program stands alone: branchwise runs it to verify exports, and it shows all that
a reader of such files has to do. Rows are lines of JSON on standard input, an array
with one cell for each of the file's columns; predictions are lines of JSON.
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
            piece = entry
            for condition in rule["if"]:
                piece = piece * share(condition, row, known)
                if piece == 0:
                    break
            else:
                if "part" in rule["then"]:
                    entered.append((document["parts"][rule["then"]["part"]], piece))
                else:
                    ends.append((rule["node"], rule["then"], piece))
    return [(then, piece) for _, then, piece in sorted(ends, key=lambda end: end[0])]


def rejected(
    document: dict[str, Any], row: dict[str, Any], known: dict[str, Any]
) -> bool:
    """Tell whether a row has no prediction because of missing or unseen values."""
    if document["missing"] == "refused" and None in row.values():
        return True
    return document["unseen"] == "refused" and any(
        row[name] is not None and row[name] not in values
        for name, values in known.items()
    )


def most(document: dict[str, Any], probabilities: list[float]) -> int:
    """Return the code of the most probable class, or of the one that costs least."""
    scores = probabilities
    if document["costs"] is not None:
        scores = []
        for prediction in range(len(document["costs"][0])):
            cost = 0.0
            for probability, costs in zip(
                probabilities, document["costs"], strict=True
            ):
                cost += probability * costs[prediction]
            scores.append(-cost)
    best = max(scores)
    least = best - abs(best) * 1e-9
    return next(code for code, score in enumerate(scores) if score >= least)


def prediction(document: dict[str, Any], cells: list[Any]) -> list[Any] | None:
    """Return [class code, probabilities ...] or [number]; None for a rejected row."""
    columns = document["columns"]
    row = {c["name"]: cell for c, cell in zip(columns, cells, strict=True)}
    known = {c["name"]: c["values"] for c in columns if "values" in c}
    if rejected(document, row, known):
        return None
    ends = arrivals(document, row, known)
    if document["predicts"] == "numbers":
        if len(ends) == 1:
            return [ends[0][0]["number"]]
        total = 0.0
        for then, piece in ends:
            total += then["number"] * piece
        return [total]
    if len(ends) == 1:
        then = ends[0][0]
        return [document["classes"].index(then["class"]), *then["probabilities"]]
    probabilities = [0.0] * len(document["classes"])
    for then, piece in ends:
        for code, probability in enumerate(then["probabilities"]):
            probabilities[code] += probability * piece
    return [most(document, probabilities), *probabilities]


def main() -> None:
    """Read rules, then rows; write predictions."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        document = json.load(file)
    for line in sys.stdin:
        print(json.dumps(prediction(document, json.loads(line))))


if __name__ == "__main__":
    main()
