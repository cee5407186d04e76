"""Score a table inside a database: the tree becomes a query, the rows stay there.

A tree that tells on which days to play is exported to SQLite's dialect, verified, and
made a view of the table of days. From then on the database predicts.
"""

import sqlite3
from contextlib import closing

from branchwise import datasets, export, fit_tree


def main() -> dict[str, object]:
    weather = datasets.load("weather")
    model = fit_tree(weather.X, weather.y)

    done = export.verify(model, "sql", dialect="sqlite", table="days")
    print(done)

    query = export.write(model, "sql", dialect="sqlite", table="days").decode()
    print(query)
    names = list(weather.X)
    with closing(sqlite3.connect(":memory:")) as database:
        columns = ", ".join(f'"{name}"' for name in names)
        database.execute(f"CREATE TABLE days ({columns})")
        marks = ", ".join("?" * len(names))
        database.executemany(
            f"INSERT INTO days VALUES ({marks})",  # noqa: S608
            zip(*weather.X.values(), strict=True),
        )
        database.execute(f"CREATE VIEW predictions AS {query}")
        told = database.execute("SELECT prediction FROM predictions").fetchall()
        likely = database.execute(
            'SELECT count(*) FROM predictions WHERE "probability of yes" > 0.5'
        ).fetchone()[0]
    labels = [label for (label,) in told]
    same = labels == model.predict(weather.X).tolist()
    print(
        f"{len(labels)} rows scored in the database, {likely} of them likely to play."
    )
    print(f"The same predictions as the model's: {same}.")
    return {"verified": done.ok, "labels": labels, "likely": likely, "same": same}


if __name__ == "__main__":
    main()
