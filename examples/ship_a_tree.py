"""Ship a tree: write it in other languages, run what was written, compare.

A tree is fitted to the votes of 435 members of the house, many of them missing. Each
export is run on every vote, and on rows that are made to break it, and has to give the
same class and the same probabilities to the last bit. What is not installed here (a C
compiler, Node.js) is said not to have been run.
"""

from branchwise import C45Classifier, datasets, export


def main() -> dict[str, object]:
    votes = datasets.load("house_votes")
    model = C45Classifier().fit(votes.X, votes.y).model_
    print(model)

    figures: dict[str, object] = {}
    for target in ("c", "javascript", "json", "python"):
        size = len(export.write(model, target))
        own = export.verify(model, target, votes.X)
        made = export.verify(model, target)
        print(f"\n{target}: {size:,} bytes")
        print(own)
        print(made)
        figures[target] = len(own.differences) + len(made.differences)

    text = export.write(model, "python").decode()
    print("\nThe tree in Python begins like this:\n")
    start = text.index("def _part_0")
    print(text[start : start + 600].rsplit("\n", 1)[0])

    # The module needs nothing but Python: it could run where branchwise is not.
    module: dict[str, object] = {}
    exec(text, module)  # noqa: S102
    answer = module["predict"]({"physician-fee-freeze": "n"})  # type: ignore[operator]
    print(f"\nA member who voted n on the physician fee freeze: {answer}")
    figures["answer"] = answer
    return figures


if __name__ == "__main__":
    main()
