"""The same table from a CSV, an ARFF, a C4.5 and an SQLite file: the same tree."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from branchwise import datasets, fit_tree, inspect_table, read_table


def main() -> dict[str, object]:
    """Store the weather in four ways, read it back, and grow a tree from each."""
    source = Path(datasets.path("weather"))
    with tempfile.TemporaryDirectory() as folder:
        files = store(source, Path(folder))
        tables = {form: read_table(path) for form, path in files.items()}

    figures: dict[str, object] = {}
    for form, table in tables.items():
        target = table.column_names[-1]
        attributes = table.drop_columns([target])
        model = fit_tree(attributes, table[target], target_name=target)
        right = (model.predict(attributes) == table[target].to_pylist()).mean()
        nodes = len(model.tree)
        figures[form] = (nodes, float(right))
        print(f"{form:<6}  {nodes} nodes, {right:.0%} right")

    declared = tables["ARFF"]["outlook"].chunk(0).dictionary.to_pylist()
    print(f"\nWhat ARFF declares stays in its order: {', '.join(declared)}")
    figures["declared"] = declared

    print("\nAn identifier, and a column that determines the class on its own:")
    table = tables["CSV"]
    days = {"day": [f"day {n}" for n in range(28)], "play": table["play"].to_pylist()}
    days["cancelled"] = ["no" if play == "yes" else "yes" for play in days["play"] * 2]
    labels = days.pop("play") * 2
    findings = inspect_table(days, labels, "play")
    for finding in findings:
        print(f"  {finding}")
    figures["findings"] = [(finding.kind, *finding.columns) for finding in findings]
    return figures


def store(source: Path, folder: Path) -> dict[str, Path]:
    """Write a table as ARFF, as C4.5 files and into a database."""
    rows = [line.split(",") for line in source.read_text().splitlines()[1:]]
    body = "\n".join(",".join(row) for row in rows)
    arff = folder / "weather.arff"
    arff.write_text(
        "@relation weather\n"
        "@attribute outlook {sunny, overcast, rainy}\n"
        "@attribute temperature numeric\n"
        "@attribute humidity numeric\n"
        "@attribute windy {TRUE, FALSE}\n"
        "@attribute play {yes, no}\n"
        f"@data\n{body}\n"
    )
    (folder / "weather.names").write_text(
        "yes, no.\n"
        "outlook: sunny, overcast, rainy.\n"
        "temperature: continuous.\n"
        "humidity: continuous.\n"
        "windy: TRUE, FALSE.\n"
    )
    (folder / "weather.data").write_text(body)
    database = folder / "weather.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute(
            "create table days (outlook text, temperature integer, humidity integer, "
            "windy text, play text)"
        )
        connection.executemany("insert into days values (?, ?, ?, ?, ?)", rows)
    connection.close()
    return {"CSV": source, "ARFF": arff, "C4.5": folder / "weather", "SQLite": database}


if __name__ == "__main__":
    main()
