"""Evaluate a PMML file with JPMML-Evaluator, in a process of its own.

Arguments: the file and the name of its target. Rows are lines of JSON on standard
input; predictions go to standard output as lines of JSON: the position of the label
among the target's values and its probabilities, a number, or null.
"""

import json
import sys
from typing import Any
from xml.etree import ElementTree as ET

_SPACE = "{http://www.dmg.org/PMML-4_4}"


def main() -> None:
    """Read the file, then rows; write predictions."""
    import pandas as pd  # noqa: PLC0415
    from jpmml_evaluator import make_evaluator  # noqa: PLC0415

    path, target = sys.argv[1:]
    root = ET.parse(path).getroot()  # noqa: S314
    fields = {f.get("name"): f for f in root.iter(f"{_SPACE}DataField")}
    classes = [value.get("value") for value in fields.pop(target)]
    outputs = [output.get("name") for output in root.iter(f"{_SPACE}OutputField")][1:]
    rows = [json.loads(line) for line in sys.stdin]
    columns = zip(*rows, strict=True)
    table = pd.DataFrame(
        {name: list(cells) for name, cells in zip(fields, columns, strict=True)},
        index=range(len(rows)),
        dtype=object,
    )
    evaluator = make_evaluator(path, backend="jpype")
    if fields:
        found = evaluator.evaluateAll(table, error_col="errors", parallelism=1)
        records = found.to_dict("records")
    else:  # a table without columns has no rows
        records = [evaluator.evaluate({})] * len(rows)
    for record in records:
        print(json.dumps(prediction(record, target, classes, outputs)))


def prediction(
    record: dict[str, Any], target: str, classes: list[Any], outputs: list[Any]
) -> list[Any] | None:
    """Return the prediction of one row."""
    label = record.get(target)
    if label is None or label != label:
        return None
    if not classes:
        return [label]
    return [position(label, classes), *(record[name] for name in outputs)]


def position(label: Any, classes: list[Any]) -> int:
    """Find a label among those of the file; pandas may have made floats of integers."""
    if isinstance(label, float):
        return [float(text) for text in classes].index(label)
    return classes.index(str(label).lower() if isinstance(label, bool) else str(label))


if __name__ == "__main__":
    main()
