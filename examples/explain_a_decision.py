"""A decision, explained to the person it concerns: why, what if, and what changed.

The table has 57 labour contracts, judged good or bad; many cells are missing. A tree
of C4.5 judges one of them bad. The script tells why, which smallest change would make
the contract good, with and without limits on what may change, and which contracts a
tree that was grown differently would judge otherwise.
"""

from branchwise import C45Classifier, ID3Classifier, datasets


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def main() -> dict[str, object]:
    contracts = datasets.load("labor")
    rows = contracts.rows()
    model = C45Classifier().fit(contracts.X, contracts.y).model_

    heading("The tree")
    print(model)

    heading("Why is contract 17 bad?")
    contract = rows[17]
    why = model.explain(contract)
    print(why)

    heading("What would make it good?")
    change = model.what_if(contract, "good", whole=["statutory-holidays"])
    print(change)

    heading("And if the wages cannot be changed?")
    stuck = model.what_if(contract, "good", immutable=["wage-increase-first-year"])
    print(stuck)

    heading("A contract that does not say how wages rise is divided")
    divided = model.explain(rows[2])
    print(divided)

    heading("What would a tree of depth 1 predict instead?")
    small = ID3Classifier(max_depth=1, missing="split").fit(contracts.X, contracts.y)
    diff = model.diff(small.model_, contracts.X, contracts.y)
    print(diff)

    return {
        "answer": why.prediction,
        "steps": [str(step) for step in why.steps],
        "changes": [str(one) for one in change.changes],
        "now_good": model.predict([change.best.row])[0] == "good",
        "stuck": stuck.reason,
        "shares": [round(ending.share, 3) for ending in divided.endings],
        "agreement": None if diff.predictions is None else diff.predictions.agreement,
    }


if __name__ == "__main__":
    main()
