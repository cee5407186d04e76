"""Seed 000: who votes for whom.

Five voters by hand, then 7000 simulated ones to learn from and 3000 to check with.
Every figure of the document is right: the entropies and gains of the five voters,
the perfect tree without a limit, and the accuracies of the tree of depth 2 to the
last digit.
"""

from _textbook import compare, entropy, work_out
from branchwise import ID3Classifier, datasets


def percent_right(tree: ID3Classifier, data: datasets.Dataset) -> float:
    return 100 * int((tree.predict(data.X) == data.y).sum()) / len(data.y)


def main() -> dict[str, object]:
    voters = datasets.load("voters")
    questions = work_out("Five voters", voters)
    sex, education = questions["Sex"], questions["Education"]
    weighted = {value: sex.shares[value] * sex.entropies[value] for value in "FM"}
    print("The document's figures, ours, and how they compare:")
    verdicts = compare(
        {
            "entropy of A, A, B, A, B": ("0.971", entropy([3, 2])),
            "entropy of five times A": ("0", entropy([5])),
            "share times entropy of F": ("0.4", weighted["F"]),
            "share times entropy of M": ("0.551", weighted["M"]),
            "entropy left by Sex": ("0.951", sex.remaining),
            "entropy left by Education": ("0.649", education.remaining),
            "gain of Sex": ("0.02", sex.gain),
            "gain of Education": ("0.322", education.gain),
        }
    )

    train, test = datasets.load("votes"), datasets.load("votes_test")
    figures: dict[str, object] = {
        "gains": {name: question.gain for name, question in questions.items()},
        "remaining": {name: q.remaining for name, q in questions.items()},
        "weighted": weighted,
        "verdicts": verdicts,
    }
    for max_depth in (None, 2):
        tree = ID3Classifier(max_depth=max_depth).fit(train.X, train.y)
        right = percent_right(tree, train), percent_right(tree, test)
        size = len(tree.tree_), tree.get_n_leaves(), tree.get_depth()
        print(f"Votes, max_depth={max_depth}: {size[0]} nodes, {size[1]} leaves")
        print(f"  right on train {right[0]} %, on test {right[1]} %\n")
        print(tree.model_, end="\n\n")
        figures[f"percent, max_depth={max_depth}"] = right
        figures[f"size, max_depth={max_depth}"] = size
    return figures


if __name__ == "__main__":
    main()
