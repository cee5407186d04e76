"""The main job from beginning to end: fit, show, predict, evaluate, save, open.

The table is the car evaluation data: 1728 cars, six columns of text, four classes.
It goes in as it is; nothing is encoded. Files are written to a temporary directory
only.
"""

import csv
import tempfile
import warnings
from pathlib import Path

from sklearn.metrics import accuracy_score, classification_report, confusion_matrix
from sklearn.model_selection import train_test_split

import branchwise
from branchwise import FitWarning, ID3Classifier, datasets

# Fitting warns of so many leaves; below, the tree is tested on cars held out.
warnings.filterwarnings("ignore", category=FitWarning)


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def main() -> dict[str, object]:
    heading("The table")
    with Path(datasets.path("car")).open(encoding="utf-8", newline="") as file:
        cars = list(csv.DictReader(file))
    labels = [car.pop("class") for car in cars]
    X_train, X_test, y_train, y_test = train_test_split(
        cars, labels, test_size=0.3, stratify=labels, random_state=0
    )
    print(f"{len(cars)} cars such as {cars[-1]}: {labels[-1]}")
    print(f"{len(X_train)} to learn from, {len(X_test)} held out")

    heading("Fit")
    tree = ID3Classifier().fit(X_train, y_train)
    model = tree.model_
    print(repr(model))

    heading("Show: the first two levels of the tree")
    print(model.to_text(max_depth=2))

    heading("Show: the five rules that cover most cars")
    for rule in sorted(model.rules(), key=lambda rule: -rule.n)[:5]:
        print(rule)

    heading("Show: how much each column contributes")
    shares = dict(zip(tree.feature_names_in_, tree.feature_importances_, strict=True))
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"{name:<10} {share:.3f}")

    heading("Predict: one car, and what the tree has seen of its like")
    car = {
        "buying": "low",
        "maint": "low",
        "doors": "4",
        "persons": "4",
        "lug_boot": "big",
        "safety": "high",
    }
    prediction = str(tree.predict([car])[0])
    probabilities = dict(zip(tree.classes_, tree.predict_proba([car])[0], strict=True))
    print(
        f"{prediction} ",
        {str(label): float(share) for label, share in probabilities.items()},
    )

    heading("Evaluate: the cars held out")
    predicted = tree.predict(X_test)
    accuracy = float(accuracy_score(y_test, predicted))
    print(f"accuracy {accuracy:.4f}\n")
    print(classification_report(y_test, predicted))
    print(f"rows are the truth, columns the prediction: {', '.join(tree.classes_)}")
    print(confusion_matrix(y_test, predicted))

    heading("Save, and open again")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "car.json"
        model.save(file)
        opened = branchwise.load(file)
        print(f"{file.name}: {file.stat().st_size:,} bytes of JSON")
    same = bool((opened.predict(X_test) == predicted).all())
    print("the opened model predicts the same:", same)

    return {
        "rows": (len(X_train), len(X_test)),
        "nodes": len(model.tree),
        "train_accuracy": tree.score(X_train, y_train),
        "test_accuracy": accuracy,
        "answer": prediction,
        "same_predictions": same,
        "same_model": opened == model,
    }


if __name__ == "__main__":
    main()
