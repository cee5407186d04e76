"""Entropies and gains, worked out as on paper, for the example scripts.

The entropies come from branchwise's own arithmetic. Counting and subtracting are
spelled out, straight from the table, because they are what the textbooks teach: the
tree that branchwise grows has to agree with them.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import compress
from math import floor

from branchwise.datasets import Dataset
from branchwise.grow.criteria import entropy


@dataclass(frozen=True)
class Split:
    """The split of a table on one column.

    ``counts`` are the class counts of each branch, ``entropies`` their entropies,
    ``shares`` their shares of the cases; ``remaining`` is the mean entropy after the
    split and ``gain`` the information gain.
    """

    counts: dict[str, Counter[str]]
    entropies: dict[str, float]
    shares: dict[str, float]
    remaining: float
    gain: float


def split_on(data: Dataset, column: str) -> Split:
    """Work out the information gain of a column."""
    counts: dict[str, Counter[str]] = {}
    for value, label in sorted(zip(data.X[column], data.y, strict=True)):
        counts.setdefault(value, Counter())[label] += 1
    entropies = {value: entropy(list(c.values())) for value, c in counts.items()}
    shares = {value: sum(c.values()) / len(data.y) for value, c in counts.items()}
    remaining = sum(shares[value] * entropies[value] for value in counts)
    gain = entropy(list(Counter(data.y).values())) - remaining
    return Split(counts, entropies, shares, remaining, gain)


def where(data: Dataset, column: str, value: str) -> Dataset:
    """Keep the rows with a value, and drop its column: the table at a branch."""
    keep = [cell == value for cell in data.X[column]]
    others = {
        name: list(compress(cells, keep))
        for name, cells in data.X.items()
        if name != column
    }
    return replace(data, X=others, y=list(compress(data.y, keep)))


def work_out(title: str, data: Dataset) -> dict[str, Split]:
    """Print and return the gain of every column of a table."""
    total = entropy(list(Counter(data.y).values()))
    print(f"{title}: {_listed(Counter(data.y))}, entropy {total:.6f}")
    splits = {column: split_on(data, column) for column in data.X}
    for column, split in splits.items():
        print(f"  {column}: gain {split.gain:.6f}")
        for value, counts in split.counts.items():
            print(f"    {value}: {_listed(counts)}, {split.entropies[value]:.6f}")
    best = max(splits, key=lambda column: splits[column].gain)
    print(f"  -> split on {best}\n")
    return splits


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {label}" for label, n in sorted(counts.items()))


def verdict(printed: str, exact: float) -> str:
    """Say how a printed figure relates to the exact one."""
    digits = len(printed.partition(".")[2])
    rounded = f"{exact:.{digits}f}"
    if rounded == printed:
        return "right"
    if floor(exact * 10**digits) == round(float(printed) * 10**digits):
        return f"cut off, should be {rounded}"
    return f"wrong, should be {rounded}"


def compare(figures: dict[str, tuple[str, float]]) -> dict[str, str]:
    """Print a document's figures next to the exact ones; return the verdicts."""
    verdicts = {name: verdict(*pair) for name, pair in figures.items()}
    width = max(len(name) for name in figures)
    for name, (printed, exact) in figures.items():
        print(f"  {name:<{width}}  {printed:>6}  {exact:.10f}  {verdicts[name]}")
    print()
    return verdicts
