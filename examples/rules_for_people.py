"""Rules for people: what a tree says, in sentences, and fewer of them.

Someone has to explain to customers why a car is turned down. The tree for 1728 cars
has more than a hundred leaves; this script writes its rules as sentences, sorts and
filters them, and makes a shorter list of more general rules that decides by itself.
"""

from branchwise import C45Classifier, datasets


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def part(cars: datasets.Dataset, held_out: bool) -> tuple[dict, list]:
    """Return every fifth car, or the others.

    The table lists all combinations of values in order: every third car would have the
    same safety.
    """
    kept = [at for at in range(len(cars.y)) if (at % 5 == 0) == held_out]
    X = {name: [cells[at] for at in kept] for name, cells in cars.X.items()}
    return X, [cars.y[at] for at in kept]


def main() -> dict[str, object]:
    cars = datasets.load("car")
    (X, y), (X_test, y_test) = part(cars, held_out=False), part(cars, held_out=True)
    model = C45Classifier(prune=False).fit(X, y).model_
    print(repr(model))

    heading("The rules that cover most cars, of those that turn a car down")
    rules = model.rules(simplify=True)
    for rule in rules.for_class("unacc").sort_by("coverage")[:3]:
        print(rule.sentence())

    heading("What the tree does with values that the rules do not speak of")
    print(rules.note)

    heading("The same rules as a table")
    frame = rules.for_class("vgood").to_frame()
    print(frame[["conditions", "cases", "confidence", "low"]].round(2).to_string())

    heading("Fewer and more general rules")
    listed = model.generalised_rules(X, y)
    print(repr(listed))
    for rule in listed[:5]:
        print(rule.sentence())
    print("...")

    heading("How well they do, beside the tree, on cars that neither has seen")
    summary = listed.table(X_test, y_test).summary
    for side, figures in summary.items():
        print(
            f"{side:<6} {figures['rules']:>4} rules, {figures['conditions']:>4} "
            f"conditions, {figures['accuracy']:.3f} of the training cars right, "
            f"{figures['test_accuracy']:.3f} of the others"
        )

    heading("Which rule decides about the first car held out")
    first = {name: cells[:1] for name, cells in X_test.items()}
    place = int(listed.fired(first)[0])
    print(listed[place].sentence() if place < len(listed) else "the default")

    return {"rules": len(rules), "listed": len(listed), "summary": summary}


if __name__ == "__main__":
    main()
