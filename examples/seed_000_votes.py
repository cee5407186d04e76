"""Seed 000: who votes for whom.

Five voters by hand, then 7000 simulated ones to learn from and 3000 to check with.
Every figure of the document is right: the entropies and gains of the five voters,
the perfect tree without a limit, and the accuracies of the tree of depth 2 to the
last digit.
"""

from _textbook import compare, entropy, work_out
from branchwise import ID3Classifier, datasets

# %%
# ## Five voters, by hand
#
# Two columns can be split on. The gain of a column is the entropy of all voters
# less the mean entropy of the branches of the split.

voters = datasets.load("voters")
splits = work_out("Five voters", voters)
sex, education = splits["Sex"], splits["Education"]

# %%
# The document prints the entropies of the branches times their shares, too. We compare
# all its figures with exact ones.

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

# %%
# ## Ten thousand simulated votes
#
# Without a limit the tree makes no mistake, on new voters either: the votes were
# simulated by a deterministic rule.

train, test = datasets.load("votes"), datasets.load("votes_test")


def percent_right(tree: ID3Classifier, data: datasets.Dataset) -> float:
    return 100 * int((tree.predict(data.X) == data.y).sum()) / len(data.y)


full = ID3Classifier().fit(train.X, train.y)
full_right = percent_right(full, train), percent_right(full, test)
print(repr(full.model_))
print(f"right on train {full_right[0]} %, on test {full_right[1]} %\n")
print(full.model_)

# %%
# With a depth of 2, some voters are misclassified.

short = ID3Classifier(max_depth=2).fit(train.X, train.y)
short_right = percent_right(short, train), percent_right(short, test)
print(repr(short.model_))
print(f"right on train {short_right[0]} %, on test {short_right[1]} %\n")
print(short.model_)

# %% [script only]


def size(tree: ID3Classifier) -> tuple[int, int, int]:
    return len(tree.tree_), tree.get_n_leaves(), tree.get_depth()


figures = {
    "gains": {name: split.gain for name, split in splits.items()},
    "weighted": weighted,
    "verdicts": verdicts,
    "percent, max_depth=None": full_right,
    "percent, max_depth=2": short_right,
    "size, max_depth=None": size(full),
    "size, max_depth=2": size(short),
}
gallery = {
    "five voters: gain of Sex, in bits": sex.gain,
    "five voters: gain of Education, in bits": education.gain,
    "votes, no limit: leaves": full.get_n_leaves(),
    "votes, no limit: right on test, %": full_right[1],
    "votes, two splits: leaves": short.get_n_leaves(),
    "votes, two splits: right on test, %": short_right[1],
}
