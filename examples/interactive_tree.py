"""A tree as one HTML page: to read, to search, to try cases in, and to send around.

The page needs no network and no other file. It is written to a temporary directory
here; `tree.model_.to_html("cars.html")` would keep it.
"""

import tempfile
from pathlib import Path

from branchwise import C45Classifier, datasets


def main() -> dict[str, object]:
    cars = datasets.load("car")
    tree = C45Classifier().fit(cars.X, cars.y)
    model = tree.model_
    print(repr(model))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cars.html"
        model.to_html(file, title="Which cars are acceptable?")
        page = file.read_text(encoding="utf-8")
    print(f"{file.name}: {len(page) // 1000} kB, all in one file")
    print("open it in any browser, or run: branchwise view tree.json")

    # In a notebook the last line of a cell shows the page: below scikit-learn's
    # diagram for an estimator, on its own for a model.
    shown = model._repr_html_()
    print("in a notebook:", shown[: shown.index(" title")] + " ...>")
    return {
        "nodes": len(model.tree),
        "page": page,
        "network": "https://" in page,
        "shown": shown,
    }


if __name__ == "__main__":
    main()
