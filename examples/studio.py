"""A tree grown by hand.

57 labour contracts, good or bad, with many missing values. C4.5 suggests, a person who
knows contracts decides; what she decided is a script. The same session can be led on a
page: ``branchwise studio labor.csv --target class`` opens it in the browser, and
``StudioWidget(session)`` of ``branchwise.studio.widget`` in a notebook.
"""

from dataclasses import replace

import branchwise
from branchwise import datasets
from branchwise.recipe import C45

labor = datasets.load("labor")
print(labor)

# %%
# ## A session
#
# It begins with all rows in one leaf. At every step it has an ordinary model. A node is
# named by its path: `/` is the root, `/0/2` the third branch of its first branch. C4.5
# would send a case whose value is missing down all branches, as fractions; to go the
# way of most cases is easier to explain.

recipe = replace(C45, missing="largest", unseen="largest")
session = branchwise.grow_by_hand(labor.X, labor.y, recipe, target_name="contract")
print(session)
print(session.model)

# %%
# ## Candidates
#
# Every column, the best first: what it gains, the p-value (adjusted for the thresholds
# or groupings, and for the columns), and the branches it would make.

candidates = session.candidates("/")
for candidate in candidates[:6]:
    branches = " / ".join(f"{child.cases:.0f}" for child in candidate.children)
    print(
        f"{candidate.column:<31} gain ratio {candidate.gain_ratio:.3f}, "
        f"p {candidate.p_value:.4f}, cases {branches}"
    )

# %%
# ## A threshold of one's own
#
# C4.5 would split the first wage increase at 2.5 per cent. Say that 3 per cent is the
# line that is drawn in negotiations: what does it cost to split there? A preview makes
# no split.

best = session.preview("/", "wage-increase-first-year")
line = session.preview("/", "wage-increase-first-year", threshold=3)
for name, split in (("C4.5", best), ("by hand", line)):
    print(f"{name:<8} at {split.threshold:g}: gain ratio {split.gain_ratio:.3f}")

# %%
session.split("/", "wage-increase-first-year", threshold=3)
print(session.model)

# %%
# ## Groups of one's own
#
# Where wages rise, is there a health plan at all? Whether it is paid in full or by half
# is another matter, so these values share a branch.

groups = [["none"], ["half", "full"]]
session.split("/1", "contribution-to-health-plan", groups=groups)
print(session.model)

# %%
# ## Missing values
#
# A contract that says nothing about a health plan has none. This moves many good ones,
# so it is undone.

session.set_missing("/1", 1)
print(session.model)
session.undo()

# %%
# ## The rest by C4.5
#
# Growing takes a node or the whole tree, one level or all. What is locked stays, with
# the splits that lead to it.

session.note("/1", "half a plan is a plan")
session.lock("/1")
session.grow("/")
print(session.model)

# %%
# ## Second thoughts
#
# Pruned, looked at, undone. The history branches: what was left stays in it, and
# `session.goto(number)` goes back there.

session.prune("/0")
n_pruned = session.model.tree.n_leaves
session.undo()
print(f"{n_pruned} leaves pruned, {session.model.tree.n_leaves} after undo\n")
print(session.history)

# %%
# ## Was it worth it?
#
# The tree and the one that C4.5 grows by itself, in repeated cross-validation. Nodes
# that were grown are grown again from each training part; splits by hand stay as they
# are, and they were chosen in the sight of all rows, so that their score is flattering.
# The interval of the difference has 0 in it: 57 contracts do not tell which is better,
# and one is free to take the tree that can be defended.

score = session.score("cross-validation", folds=5, repeats=3)
print(score)

# %%
# ## The session is a script
#
# It replays to the same bytes. `session.save("labor.actions.json")` keeps it as data,
# which `branchwise.open_session` replays on these or on other rows.

print(session.script())
names = {"table": labor.X, "target": labor.y}
exec(session.script(), names)  # noqa: S102
same = names["model"].to_bytes() == session.model.to_bytes()
print("the same bytes:", same)

# %%
# ## Out of the house
#
# The model goes where all models go: here to SQL, run in SQLite on all contracts and
# compared with the tree's predictions before it is written.

sql = session.model.export("sql", verify=labor.X)
print(sql)

# %% [script only]
scored = score.to_dict()
gallery = {
    "gain ratio of the threshold of C4.5, 2.5": best.gain_ratio,
    "gain ratio of the threshold by hand, 3": line.gain_ratio,
    "leaves": session.model.tree.n_leaves,
    "right in cross-validation, by hand": scored["edited"]["value"],
    "right in cross-validation, C4.5 alone": scored["automatic"]["value"],
}
figures = {
    "same": same,
    "leaves": (n_pruned, session.model.tree.n_leaves),
    "locks": session.locks,
    "origins": [session.origin(node) for node in ("/", "/0", "/1", "/1/0")],
    "current": session.history.current,
    "difference": scored["difference"],
    "sql": sql,
}
