"""Draw the pictures of the documents: ``python docs/images/draw.py``.

tests/render/test_views_page.py compares what this draws with the files that are here.
"""

from __future__ import annotations

from pathlib import Path

from branchwise import C45Classifier, CARTClassifier, CARTRegressor, datasets, fit_tree


def pictures() -> dict[str, str]:
    """Return the name and the content of every picture."""
    weather, car, iris, labor = map(datasets.load, ("weather", "car", "iris", "labor"))
    columns = dict(iris.X)
    width = columns.pop("petalwidth")
    columns["class"] = iris.y
    play = fit_tree(weather.X, weather.y, target_name="play")
    models = {
        "weather": play.to_svg(),
        "car": C45Classifier().fit(car.X, car.y).model_.to_svg(max_depth=2),
        "iris": CARTClassifier(max_depth=3).fit(iris.X, iris.y).model_.to_svg(),
        "labor": C45Classifier().fit(labor.X, labor.y).model_.to_svg(),
        "numbers": CARTRegressor(max_depth=2).fit(columns, width).model_.to_svg(),
    }
    return {f"{name}.svg": f"{picture}\n" for name, picture in models.items()}


def main() -> None:
    """Write the pictures next to this script."""
    for name, picture in pictures().items():
        Path(__file__).with_name(name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
