"""An independent checker of printed worked solutions.

It knows the raw rows, the settings of the recipe and the printed text; nothing of the
library. Weights are fractions and therefore exact, logarithms have 40 digits. Every
number of the text is looked up and worked out again, and so are the choices: which
columns are out, which threshold is best, which column wins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple

Cell = str | float | None
TIE = 1e-9
AMOUNT = r"\d[\d.]*(?:e[-+]?\d+)?"
DIGITS = 8


@dataclass(frozen=True)
class Settings:
    """What the recipe says, in the words of this checker."""

    criterion: str = "gain"
    branching: str = "values"
    missing: str = "branch"
    quinlan: bool = False
    min_leaf: int = 1
    min_branch: int = 0
    min_split: int = 2
    min_gain: float = 0.0
    max_depth: int | None = None
    significance: float | None = None
    threshold: str = "midpoint"
    pruned: bool = False

    @property
    def numbers(self) -> bool:
        return self.criterion in ("variance", "poisson")


class Case(NamedTuple):
    """A row, or a part of one."""

    row: dict[str, Cell]
    y: str | float
    weight: Fraction
    part: Fraction


Cases = list[Case]


@cache
def log2(number: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 40
        ratio = Decimal(number.numerator) / Decimal(number.denominator)
        return ratio.ln() / Decimal(2).ln()


def decimal(number: Fraction | int) -> Decimal:
    with localcontext() as context:
        context.prec = 40
        number = Fraction(number)
        return Decimal(number.numerator) / Decimal(number.denominator)


def weight(cases: Cases) -> Fraction:
    return sum((case.weight for case in cases), Fraction(0))


def parts(cases: Cases) -> Fraction:
    return sum((case.part for case in cases), Fraction(0))


def by_class(cases: Cases, classes: Sequence[str]) -> list[Fraction]:
    return [weight([c for c in cases if c.y == label]) for label in classes]


def mean(cases: Cases) -> Fraction:
    return sum((c.weight * Fraction(c.y) for c in cases), Fraction(0)) / weight(cases)


def impurity(cases: Cases, settings: Settings, classes: Sequence[str]) -> Decimal:
    total = weight(cases)
    if settings.criterion == "variance":
        centre = mean(cases)
        squares = sum(c.weight * (Fraction(c.y) - centre) ** 2 for c in cases)
        return decimal(squares / total)
    if settings.criterion == "poisson":
        rate = mean(cases)
        return -decimal(rate) * log2(rate) if rate else Decimal(0)
    shares = [part / total for part in by_class(cases, classes) if part]
    if settings.criterion == "gini":
        return decimal(1 - sum(share * share for share in shares))
    return bits(shares)


def bits(shares: Sequence[Fraction]) -> Decimal:
    return -sum((decimal(s) * log2(s) for s in shares if s), Decimal(0))


@dataclass
class Exact:
    """What one column can do, worked out again."""

    branches: list[tuple[str, Cases]] = field(default_factory=list)
    unknown: Cases = field(default_factory=list)
    remainder: Decimal = Decimal(0)
    raw: Decimal = Decimal(0)
    penalty: Decimal | None = None
    gain: Decimal = Decimal(0)
    information: Decimal = Decimal(0)
    score: Decimal = Decimal(0)
    found: bool = False
    #: The thresholds that were tried, with all about them, in order.
    thresholds: list[tuple[float, Exact]] = field(default_factory=list)
    positions: int = 0
    ways: int = 1
    reason: str | None = None

    @property
    def known(self) -> Cases:
        return [case for _, cases in self.branches for case in cases]


class Checker:
    """Checks one text against the rows of its table."""

    def __init__(
        self,
        columns: dict[str, list[Cell]],
        y: Sequence[str | float],
        weights: Sequence[float] | None,
        settings: Settings,
    ) -> None:
        self.columns = columns
        self.settings = settings
        self.classes = [] if settings.numbers else sorted(set(y))
        given = [1.0] * len(y) if weights is None else weights
        self.root = [
            Case(
                {name: cells[at] for name, cells in columns.items()},
                y[at],
                Fraction(given[at]),
                Fraction(1),
            )
            for at in range(len(y))
            if given[at]
        ]
        self.numeric = {
            name
            for name, cells in columns.items()
            if all(cell is None or isinstance(cell, float) for cell in cells)
        }
        gaps = any(None in cells for cells in columns.values())
        divided = settings.missing == "split" and gaps
        self.weighted = divided or any(c.weight != 1 for c in self.root)
        self.checked = 0

    # The search, worked out again

    def amount(self, cases: Cases) -> Fraction:
        """How many cases there are: in C4.5 weights are cases."""
        return weight(cases) if self.settings.quinlan else parts(cases)

    def scored(self, exact: Exact) -> Exact:
        """Fill in all that follows from branches and unknown cases."""
        known = exact.known
        total = weight(known) + weight(exact.unknown)
        exact.remainder = sum(
            decimal(weight(cases) / weight(known)) * self.impure(cases)
            for _, cases in exact.branches
        )
        share = decimal(weight(known) / total)
        exact.raw = exact.gain = share * (self.impure(known) - exact.remainder)
        sizes = [weight(cases) / total for _, cases in exact.branches]
        exact.information = bits([*sizes, weight(exact.unknown) / total])
        exact.score = exact.gain
        if self.settings.criterion == "gain_ratio":
            exact.score = exact.gain / max(exact.information, Decimal("1e-15"))
        exact.found = True
        return exact

    def impure(self, cases: Cases) -> Decimal:
        return impurity(cases, self.settings, self.classes)

    def exact(self, name: str, cases: Cases, groups: list[list[str]] | None) -> Exact:
        """Work out the best split of a column; ``groups`` are those of the text."""
        known = [c for c in cases if c.row[name] is not None]
        unknown = [c for c in cases if c.row[name] is None]
        if not known:
            return Exact(unknown=unknown, reason="no case here has a value")
        if name in self.numeric:
            return self.exact_cuts(name, known, unknown)
        values = sorted({str(c.row[name]) for c in known})
        by_value = {v: [c for c in known if c.row[name] == v] for v in values}
        branches = [(v, by_value[v]) for v in values]
        if self.settings.missing == "branch" and unknown:
            branches.append(("(missing)", unknown))
            unknown = []
        if len(branches) < 2:
            return Exact(unknown=unknown, reason="all cases here have the same value")
        if self.settings.branching != "values":
            return self.exact_groups(by_value, unknown, groups)
        sizes = [self.amount(cases) for _, cases in branches]
        if min(sizes) < self.settings.min_leaf - Fraction(1, 10**8):
            return Exact(unknown=unknown, reason="requires")
        if (
            sum(size >= self.settings.min_branch - Fraction(1, 10**8) for size in sizes)
            < 2
        ):
            return Exact(unknown=unknown, reason="fewer than two branches")
        return self.scored(Exact(branches, unknown))

    def exact_groups(
        self, by_value: dict[str, Cases], unknown: Cases, groups: list[list[str]] | None
    ) -> Exact:
        """Hold the grouping of the text against all others, where there are two."""
        s = self.settings

        def made(grouping: list[list[str]]) -> Exact:
            exact = Exact(
                [
                    (", ".join(group), [c for v in group for c in by_value[v]])
                    for group in grouping
                ],
                unknown,
            )
            return self.scored(exact)

        def admissible(grouping: list[list[str]]) -> bool:
            sizes = [self.amount([c for v in g for c in by_value[v]]) for g in grouping]
            slack = Fraction(1, 10**8)
            large = sum(size >= s.min_branch - slack for size in sizes)
            return min(sizes) >= s.min_leaf - slack and large >= 2

        if s.branching == "groups":
            if groups is None:
                # Merging ends with two groups, so none is left where these are small.
                return Exact(unknown=unknown, reason="no grouping of its values")
            assert admissible(groups)
            exact = made(groups)
            exact.ways = stirling(len(by_value), len(groups))
            return exact
        tried = [made(g) for g in self.two_groups(by_value) if admissible(g)]
        if not tried:
            return Exact(unknown=unknown, reason="no grouping of its values")
        assert groups is not None
        exact = made(groups)
        best = max(t.score for t in tried)
        assert close(exact.score, best), (groups, exact.score, best)
        exact.ways = stirling(len(by_value), 2)
        return exact

    def two_groups(self, by_value: dict[str, Cases]) -> list[list[list[str]]]:
        """Return the ways to make two groups.

        With two classes, or numbers, only thresholds along the order of shares or means
        are tried. Of all groupings the best is among these, but where every one of
        them has a side with too few cases, no other is tried.
        """
        values = sorted(by_value)
        whole = self.settings.min_leaf == 1 and self.settings.missing != "split"
        if not whole and len(self.classes) < 3:
            values.sort(key=lambda v: self.share_or_mean(by_value[v]))
            return [[values[:k], values[k:]] for k in range(1, len(values))]
        return [
            [[*left], [v for v in values if v not in left]]
            for size in range(1, len(values))
            for left in combinations(values, size)
            if values[0] in left
        ]

    def share_or_mean(self, cases: Cases) -> Fraction:
        if self.settings.numbers:
            return mean(cases)
        return by_class(cases, self.classes)[-1] / weight(cases)

    def exact_cuts(self, name: str, known: Cases, unknown: Cases) -> Exact:
        s = self.settings
        third = s.missing == "branch" and bool(unknown)
        numbers = sorted({float(c.row[name]) for c in known})
        slack = Fraction(1, 10**8)
        least: Fraction = Fraction(max(s.min_leaf, s.min_branch))
        if s.quinlan:
            wanted = self.amount(known) / 10 / len(self.classes)
            low = wanted <= s.min_branch
            least = Fraction(s.min_branch) if low else min(wanted, Fraction(25))
        tried: list[tuple[float, Exact]] = []
        for low, high in pairwise(numbers):
            threshold = low / 2 + high / 2
            left = [c for c in known if c.row[name] <= threshold]
            right = [c for c in known if c.row[name] > threshold]
            if min(self.amount(left), self.amount(right)) < least - slack:
                continue
            if s.quinlan and not low + 1e-5 < high:
                continue
            if third and self.amount(unknown) < s.min_leaf - slack:
                continue
            if s.threshold == "value":
                table = [c.row[name] for c in self.root if c.row[name] is not None]
                threshold = max(v for v in table if v <= threshold)
            written = number(threshold)
            branches = [(f"<= {written}", left), (f"> {written}", right)]
            branches += [("(missing)", unknown)] if third else []
            tried.append(
                (threshold, self.scored(Exact(branches, [] if third else unknown)))
            )
        if not tried:
            return self.without_threshold(known, unknown, len(numbers) - 1, third)
        exact = self.best_of(tried)
        if not exact.found and third:
            # No threshold gains enough: whether the value is known is tried instead.
            exact = self.without_threshold(known, unknown, len(numbers) - 1, third)
        exact.thresholds = tried
        exact.ways = len(tried)
        exact.positions = len(numbers) - 1
        return exact

    def without_threshold(
        self, known: Cases, unknown: Cases, places: int, third: bool
    ) -> Exact:
        slack = Fraction(1, 10**8)
        if (
            third
            and min(self.amount(known), self.amount(unknown))
            >= self.settings.min_leaf - slack
        ):
            exact = self.scored(Exact([("(known)", known), ("(missing)", unknown)]))
            exact.positions = places
            return exact
        reason = "no threshold" if places else "all cases here have the same value"
        if third and self.amount(unknown) < self.settings.min_leaf - slack:
            reason = "the branch of missing values"
        return Exact(unknown=unknown, positions=places, reason=reason)

    def best_of(self, tried: list[tuple[float, Exact]]) -> Exact:
        s = self.settings
        if s.quinlan:
            best = first(tried, lambda exact: exact.raw)
            total = weight(best.known) + weight(best.unknown)
            best.penalty = log2(Fraction(len(tried))) / decimal(total)
            best.gain = best.raw - best.penalty
            best.score = best.gain / best.information
            best.found = best.gain > Decimal("1e-9")
            if not best.found:
                best.reason = "its best threshold gains"
            return best
        enough = [t for t in tried if t[1].raw >= Decimal(s.min_gain) - Decimal("1e-9")]
        if s.min_gain and not enough:
            best = first(tried, lambda exact: exact.raw)
            best.found = False
            best.reason = "its gain"
            return best
        return first(enough if s.min_gain else tried, lambda exact: exact.score)

    def decided(
        self, exacts: dict[str, Exact]
    ) -> tuple[str | None, list[str], Decimal | None]:
        """Return the column that wins, those that are as good, and the average."""
        s = self.settings
        found = {name: e for name, e in exacts.items() if e.found}
        average = None
        if s.quinlan:
            few = {
                name
                for name, cells in self.columns.items()
                if name in self.numeric
                or len({c for c in cells if c is not None})
                < 0.3 * self.amount(self.root)
            } or set(self.columns)
            gains = [e.gain for name, e in found.items() if name in few]
            if gains:
                average = sum(gains, Decimal(0)) / len(gains)
            for exact in found.values():
                bar = (
                    Decimal("Infinity")
                    if average is None
                    else average - Decimal("0.001")
                )
                if exact.gain < bar:
                    exact.reason = "its gain"
        for exact in found.values():
            if s.min_gain and exact.gain < Decimal(s.min_gain) - Decimal("1e-9"):
                exact.reason = "its gain"
        left = {name: e for name, e in found.items() if e.reason is None}
        if not left:
            return None, [], average
        if s.significance is not None:
            p_values = {name: self.p_value(e, found)[1] for name, e in left.items()}
            few = {name for name, p in p_values.items() if p <= s.significance}
            for name in left.keys() - few if few else ():
                left.pop(name).reason = "its p-value"
        top = max(e.score for e in left.values())
        equal = [name for name, e in left.items() if close(e.score, top)]
        return equal[0], equal, average

    def p_value(self, exact: Exact, exacts: dict[str, Exact]) -> tuple[float, float]:
        probability = self.probability(exact)
        n_candidates = sum(e.found for e in exacts.values())
        return probability, probability * n_candidates * exact.ways

    def probability(self, exact: Exact) -> float:
        known = exact.known
        cases = self.amount(known)
        if self.settings.numbers:
            within = sum(weight(b) * spread(b) for _, b in exact.branches)
            between = weight(known) * spread(known) - within
            assert len(exact.branches) == 2
            freedom = int(cases) - 2
            if freedom <= 0 or not between:
                return 1.0
            return (
                t_tail(math.sqrt(between / (within / freedom)), freedom)
                if within
                else 0.0
            )
        rows = [by_class(b, self.classes) for _, b in exact.branches]
        totals = [sum(column) for column in zip(*rows, strict=True)]
        whole = sum(totals)
        statistic = Fraction(0)
        for row in rows:
            for cell, total in zip(row, totals, strict=True):
                expected = sum(row) * total / whole
                statistic += (cell - expected) ** 2 / expected if expected else 0
        freedom = (len(rows) - 1) * (sum(t > 0 for t in totals) - 1)
        return chi_square_tail(float(statistic * cases / whole), freedom)

    # The text

    def check(self, text: str) -> int:
        """Check all of a text; returns how many numbers were looked at."""
        self.checked = 0
        nodes = re.split(r"^Node (\d+): (.*)\n-+$", text, flags=re.M)
        places: dict[int, tuple[Cases, int]] = {0: (self.root, 0)}
        for at in range(1, len(nodes), 3):
            node = int(nodes[at])
            cases, depth = places[node]
            self.check_node(nodes[at + 2], cases, depth, places)
        return self.checked

    def check_node(
        self,
        text: str,
        cases: Cases,
        depth: int,
        places: dict[int, tuple[Cases, int]],
    ) -> None:
        head, *sections = re.split(r"^(.+)\n~+$", text, flags=re.M)
        self.check_whole(head, cases)
        titles = sections[::2]
        bodies = dict(zip(titles, sections[1::2], strict=True))
        columns = [t.removeprefix("Column ") for t in titles if t.startswith("Column ")]
        s = self.settings
        pure = len({c.y for c in cases}) == 1
        closed = pure or (s.max_depth is not None and depth >= s.max_depth)
        closed = closed or self.amount(cases) < max(
            2, s.min_split, 2 * s.min_branch
        ) - Fraction(1, 10**8)
        if closed:
            assert not columns
            why = bodies["The prediction"]
            assert ("all its" in why) == pure
            return
        assert columns == list(self.columns)
        exacts = {}
        for name in columns:
            body = bodies[f"Column {name}"]
            groups = printed_groups(body) if s.branching != "values" else None
            exacts[name] = self.exact(name, cases, groups)
            self.check_tables(name, body, cases, exacts[name])
            self.check_formulas(name, body, cases, exacts[name])
            self.check_notes(body, name, exacts[name])
        chosen, equal, average = self.decided(exacts)
        for name in columns:
            self.check_out(name, bodies[f"Column {name}"], exacts[name], average)
        self.check_choice(bodies["The choice"], exacts, chosen, equal, average)
        if "The branches" in bodies:
            self.check_branches(bodies["The branches"], cases, depth, places)
        else:
            insignificant = "the node stays a leaf" in bodies["The choice"]
            assert chosen is None or insignificant or s.pruned
            self.check_prediction(bodies["The prediction"], cases)

    def same(
        self, printed: str, exact: Decimal | Fraction | float, digits: int = DIGITS
    ) -> None:
        """Hold a printed figure against an exact one."""
        self.checked += 1
        wanted = float(exact)
        if self.settings.numbers:
            assert math.isclose(float(printed), wanted, rel_tol=2e-8, abs_tol=1e-7), (
                printed,
                wanted,
            )
            return
        assert re.fullmatch(rf"-?\d+\.\d{{{digits}}}", printed), printed
        assert abs(float(printed) - wanted) <= 0.5001 * 10**-digits + 1e-10, (
            printed,
            wanted,
        )

    def same_weight(self, printed: str, exact: Fraction | int) -> None:
        """Hold a printed weight or number of cases against an exact one."""
        self.checked += 1
        exact = Fraction(exact)
        if exact.denominator == 1:
            assert printed == str(exact), (printed, exact)
        else:
            assert math.isclose(float(printed), exact, rel_tol=1e-4), (printed, exact)

    def check_whole(self, head: str, cases: Cases) -> None:
        sentence, *rest = head.strip().split("\n\n")
        found = re.match(r"([\d.]+) cases?(?: of weight ([\d.e-]+))?", sentence)
        assert found is not None
        assert math.isclose(float(found[1]), parts(cases), abs_tol=0.006)
        if weight(cases) != parts(cases):
            self.same_weight(found[2], weight(cases))
        if self.settings.numbers:
            told = float(sentence.split("mean ")[1].rstrip("."))
            assert math.isclose(told, mean(cases), rel_tol=1e-4, abs_tol=1e-9)
        else:
            told = dict(
                reversed(part.split(" "))
                for part in sentence.split(": ")[1].rstrip(".").split(", ")
            )
            exact = dict(zip(self.classes, by_class(cases, self.classes), strict=True))
            assert set(told) == {label for label, part in exact.items() if part}
            for label, printed in told.items():
                self.same_weight(printed, exact[label])
        if rest:
            self.check_impurity(rest[0], "S", cases)

    def check_impurity(self, line: str, of: str, cases: Cases) -> None:
        """Check ``H(of) = fractions = value``."""
        symbol = SYMBOLS[self.settings.criterion]
        left, middle, value = (
            line.split(" = ") if " = " not in of else split_formula(line, of)
        )
        assert left == f"{symbol}({of})", (left, of)
        self.same(value, self.impure(cases))
        total = weight(cases)
        shares = [part for part in by_class(cases, self.classes) if part]
        match self.settings.criterion:
            case "variance":
                found = re.fullmatch(
                    r"1/(\S+) \* sum of (w )?\(y - (\(?)(\S+?)\)?\)\^2", middle
                )
                assert found is not None, middle
                self.same_weight(found[1], total)
                self.same(found[4], mean(cases))
                assert bool(found[2]) == self.weighted
            case "poisson":
                if mean(cases):
                    found = re.fullmatch(r"-(\S+) log2 (\S+)", middle)
                    assert found is not None, middle
                    self.same(found[1], mean(cases))
                    self.same(found[2], mean(cases))
                else:
                    assert middle == "0"
            case "gini":
                fractions = re.findall(r"\(([^/]+)/([^)]+)\)\^2", middle)
                assert middle == "1" + "".join(f" - ({a}/{b})^2" for a, b in fractions)
                self.same_fractions(fractions, shares, total)
            case _:
                self.check_logarithms(middle, shares, total)

    def check_logarithms(
        self, middle: str, shares: Sequence[Fraction], total: Fraction
    ) -> None:
        pair = f"({AMOUNT})/({AMOUNT}) log2 {AMOUNT}/{AMOUNT}"
        fractions = re.findall(pair, middle)
        written = [f"{a}/{b} log2 {a}/{b}" for a, b in fractions]
        assert middle == "-" + " - ".join(written), middle
        self.same_fractions(fractions, shares, total)

    def same_fractions(
        self,
        printed: Sequence[tuple[str, str]],
        tops: Sequence[Fraction],
        bottom: Fraction,
    ) -> None:
        assert len(printed) == len(tops), (printed, tops)
        for (top, under), exact in zip(printed, tops, strict=True):
            self.same_weight(top, exact)
            self.same_weight(under, bottom)

    def check_tables(self, name: str, body: str, cases: Cases, exact: Exact) -> None:
        tables = [
            b
            for b in body.strip().split("\n\n")
            if b.split()[0] == name and "  " in b.split("\n")[0]
        ]
        unknown = [c for c in cases if c.row[name] is None]
        groups: list[dict[str, Cases]] = []
        own_branch = any(label == "(missing)" for label, _ in exact.branches)
        values = sorted({str(c.row[name]) for c in cases if c.row[name] is not None})
        by_value = {v: [c for c in cases if c.row[name] == v] for v in values}
        if name in self.numeric:
            by_value = (
                {"(known)": [c for c in cases if c.row[name] is not None]}
                if values
                else {}
            )
        if unknown:
            by_value["(missing)"] = unknown
        joined = any("," in label for label, _ in exact.branches)
        if not exact.branches or joined:
            groups += [by_value] if by_value else []
        if exact.branches:
            branches = dict(exact.branches)
            if unknown and not own_branch:
                branches["(missing)"] = unknown
            groups.append(branches)
        assert len(tables) == len(groups), (name, body)
        for table, wanted in zip(tables, groups, strict=True):
            self.check_table(
                table, wanted, bool(exact.branches) and wanted is groups[-1]
            )

    def check_table(self, table: str, groups: dict[str, Cases], impure: bool) -> None:
        head, *rows = [re.split(r" {2,}", line.strip()) for line in table.split("\n")]
        assert [row[0] for row in rows] == list(groups)
        for row, cases in zip(rows, groups.values(), strict=True):
            cells = dict(zip(head[1:], row[1:], strict=True))
            named = " (weight)" if "weight" in cells else ""
            for label, exact in zip(
                self.classes, by_class(cases, self.classes), strict=True
            ):
                self.same_weight(cells.pop(f"{label}{named}"), exact)
            if "weight" in cells:
                self.same_weight(cells.pop("weight"), weight(cases))
            else:
                assert all(weight(c) == parts(c) for c in groups.values())
            self.same_weight(cells.pop("cases"), parts(cases))
            if self.settings.numbers:
                assert math.isclose(
                    float(cells.pop("weighted mean" if named else "mean")),
                    mean(cases),
                    rel_tol=1e-4,
                    abs_tol=1e-9,
                )
            if impure:
                self.same(
                    cells.pop(SYMBOLS[self.settings.criterion]), self.impure(cases)
                )
            assert not cells

    def check_formulas(self, name: str, body: str, cases: Cases, exact: Exact) -> None:
        lines = iter(re.findall(r"^\S.*\(.*\) = .*$", body, flags=re.M))
        if not exact.branches:
            assert list(lines) == []
            return
        symbol = SYMBOLS[self.settings.criterion]
        total = weight(cases)
        for label, group in exact.branches:
            self.check_impurity(next(lines), condition(name, label), group)
        known = exact.known
        if weight(known) != total:
            self.check_impurity(next(lines), f"{name} is known", known)
        middle, value = right_side(next(lines), symbol, f"S | {name}")
        terms = middle.split(" + ")
        assert len(terms) == len(exact.branches)
        for term, (_, group) in zip(terms, exact.branches, strict=True):
            share, factor = term.split(" * ")
            self.same_fractions(
                [tuple(share.split("/"))], [weight(group)], weight(known)
            )
            self.same(factor.strip("()"), self.impure(group))
        self.same(value, exact.remainder)
        middle, value = right_side(next(lines), "gain", name)
        if weight(known) != total:
            share, middle = middle.split(" * ", 1)
            self.same_fractions([tuple(share.split("/"))], [weight(known)], total)
            middle = middle[1:-1]
        before, after = middle.split(" - ", 1)
        self.same(before, self.impure(known))
        self.same(after.strip("()"), exact.remainder)
        self.same(value, exact.raw)
        if exact.penalty is not None:
            middle, value = right_side(next(lines), "penalty", name)
            share, n_thresholds = middle.split(" * log2 ")
            self.same_fractions([tuple(share.split("/"))], [Fraction(1)], total)
            assert int(n_thresholds) == len(exact.thresholds)
            self.same(value, exact.penalty)
            middle, value = right_side(next(lines), "lowered gain", name)
            before, after = middle.split(" - ", 1)
            self.same(before, exact.raw)
            self.same(after, exact.penalty)
            self.same(value, exact.raw - exact.penalty)
        if self.settings.criterion == "gain_ratio":
            middle, value = right_side(next(lines), "split information", name)
            sizes = [weight(group) for _, group in exact.branches]
            sizes += [weight(exact.unknown)] if exact.unknown else []
            self.check_logarithms(middle, sizes, total)
            self.same(value, exact.information)
            if exact.found:
                middle, value = right_side(next(lines), "gain ratio", name)
                gain, information = middle.split(" / ")
                self.same(gain, exact.gain)
                self.same(information, exact.information)
                self.same(value, exact.score)
        assert list(lines) == []

    def check_notes(self, body: str, name: str, exact: Exact) -> None:
        found = re.search(r"^(\d+) positions? between", body, flags=re.M)
        assert (found is not None) == (exact.positions > 0)
        if found is None:
            return
        self.checked += 1
        assert int(found[1]) == exact.positions
        if not exact.thresholds:
            return
        tried = re.search(
            r"; (\d+) thresholds? tried.* "
            r"(?:The best is (\S+?)|None of them gains enough.*)"
            r"(?:\.$|, the lowest of (\d+) )",
            body,
            flags=re.M,
        )
        assert tried is not None, body
        assert int(tried[1]) == len(exact.thresholds)
        best = [threshold for threshold, e in exact.thresholds if e is exact]
        assert ([] if tried[2] is None else [float(tried[2])]) == best
        by = (lambda e: e.raw) if self.settings.quinlan else (lambda e: e.score)
        if best and (exact.found or self.settings.quinlan):
            equal = sum(close(by(e), by(exact)) for _, e in exact.thresholds)
            assert int(tried[3] or 1) == equal
        table = re.search(r"^threshold +up to it.*\n((?:.+\n)+)", body, flags=re.M)
        assert (table is not None) == (1 < len(exact.thresholds) <= 20)
        if table is None:
            return
        rows = [line.split() for line in table[1].strip().split("\n")]
        assert len(rows) == len(exact.thresholds)
        for row, (threshold, e) in zip(rows, exact.thresholds, strict=True):
            assert float(row[0]) == threshold
            self.same_weight(row[1], weight(e.branches[0][1]))
            self.same_weight(row[2], weight(e.branches[1][1]))
            self.same(row[3], e.raw)
            if self.settings.criterion == "gain_ratio":
                self.same(row[4], e.raw / e.information)

    def check_out(
        self, name: str, body: str, exact: Exact, average: Decimal | None
    ) -> None:
        out = re.search(rf"^{name} is out: (.*)\.$", body, flags=re.M)
        assert (out is None) == (exact.reason is None), (name, body, exact.reason)
        if out is None or exact.reason is None:
            return
        assert exact.reason in out[1], (out[1], exact.reason)
        figures = re.findall(r"\d+\.\d{8}\b", out[1])
        if exact.reason == "its gain" and figures:
            self.same(figures[0], exact.gain if exact.found else exact.raw)
            if len(figures) > 1 and average is not None:
                self.same(figures[1], average)
        elif exact.reason == "its best threshold gains":
            self.same(figures[0], exact.raw)
            self.same(figures[1], exact.penalty or Decimal(0))
            assert f"among {len(exact.thresholds)} threshold" in out[1]

    def check_choice(
        self,
        body: str,
        exacts: dict[str, Exact],
        chosen: str | None,
        equal: list[str],
        average: Decimal | None,
    ) -> None:
        self.check_average(body, exacts, average)
        self.check_overview(body, exacts, chosen, equal)
        if chosen is None:
            assert "No column can split" in body
            return
        self.check_reason(body, exacts, chosen, equal)
        nothing = "gains nothing by itself" in body
        assert nothing == (abs(exacts[chosen].raw) < Decimal("1e-9")), body
        if self.settings.significance is not None:
            self.check_p_value(body, exacts, chosen)

    def check_average(
        self, body: str, exacts: dict[str, Exact], average: Decimal | None
    ) -> None:
        told = re.search(
            r"^average gain\(S\) = 1/(\d+) \* \((.*)\) = (\S+)$", body, flags=re.M
        )
        assert (told is None) == (average is None)
        if told is not None and average is not None:
            self.same(told[3], average)
            gains = [float(part.strip("()")) for part in told[2].split(" + ")]
            assert int(told[1]) == len(gains)
            exact_gains = [float(e.gain) for e in exacts.values() if e.found]
            for gain in gains:
                assert min(abs(gain - e) for e in exact_gains) < 1e-8

    def check_overview(
        self,
        body: str,
        exacts: dict[str, Exact],
        chosen: str | None,
        equal: list[str],
    ) -> None:
        lines = re.search(r"^column .*verdict\n((?:.+\n)+)", body, flags=re.M)
        assert lines is not None
        insignificant = "the node stays a leaf" in body
        for line, (name, exact) in zip(
            lines[1].strip().split("\n"), exacts.items(), strict=True
        ):
            told_name, gain, *rest = line.split()
            assert told_name == name
            if exact.branches:
                self.same(gain, exact.raw)
            else:
                assert gain == "-"
            verdict = ""
            if exact.reason is not None:
                verdict = "out"
            elif name == chosen and not insignificant:
                verdict = "chosen"
            elif name in equal:
                verdict = "equal"
            last = rest[-1] if rest and not re.match(r"[-\d]", rest[-1]) else ""
            assert last == verdict, (line, verdict, body)

    def check_reason(
        self, body: str, exacts: dict[str, Exact], chosen: str, equal: list[str]
    ) -> None:
        assert f"{chosen} is chosen" in body
        if len(equal) > 1:
            assert f"{', '.join(equal)} have the same" in body
        others = {
            n: e for n, e in exacts.items() if e.reason is None and n not in equal
        }
        mine = re.search(
            r"its gain(?: ratio)?, (\S+), is the highest\. Next is (\S+) with (\S+)\.",
            body,
        )
        assert (mine is not None) == (len(equal) == 1 and bool(others))
        if mine is not None:
            assert math.isclose(
                float(mine[1]), exacts[chosen].score, rel_tol=1e-7, abs_tol=1e-8
            )
            second = max(others.values(), key=lambda e: e.score)
            assert math.isclose(
                float(mine[3]), second.score, rel_tol=1e-7, abs_tol=1e-8
            )
            assert close(exacts[mine[2]].score, second.score)

    def check_p_value(self, body: str, exacts: dict[str, Exact], chosen: str) -> None:
        found = re.search(
            r"the p-value of .* is (\S+); .* = (\S+), (at most|more than) max_", body
        )
        assert found is not None
        probability, total = self.p_value(exacts[chosen], exacts)
        assert math.isclose(float(found[1]), probability, rel_tol=6e-3, abs_tol=1e-12)
        assert math.isclose(float(found[2]), total, rel_tol=6e-3, abs_tol=1e-12)
        assert (found[3] == "at most") == (total <= self.settings.significance)
        self.checked += 2

    def check_prediction(self, text: str, cases: Cases) -> None:
        found = re.search(r"It predicts (.*)\.$", text, flags=re.M)
        assert found is not None
        self.same_prediction(found[1], cases)

    def same_prediction(self, printed: str, cases: Cases) -> None:
        self.checked += 1
        found = re.fullmatch(
            r"(\S+) \((?:weighted mean of )?([\d.e-]+)(?:/([\d.e-]+))?(?: cases?)?"
            r"(?:, ([\d.]+) % of weight)?(?:, ± \S+)?\)",
            printed,
        )
        assert found is not None, printed
        assert math.isclose(float(found[2]), parts(cases), rel_tol=2e-3, abs_tol=0.006)
        if self.settings.numbers:
            assert math.isclose(
                float(found[1]), mean(cases), rel_tol=1e-4, abs_tol=1e-9
            )
            return
        right = dict(zip(self.classes, by_class(cases, self.classes), strict=True))
        assert math.isclose(right[found[1]], max(right.values()), rel_tol=1e-8)
        wrong = parts([c for c in cases if c.y != found[1]])
        assert math.isclose(float(found[3] or 0), wrong, rel_tol=2e-3, abs_tol=0.006)
        if found[4] is not None:
            share = 100 * right[found[1]] / weight(cases)
            assert math.isclose(float(found[4]), share, abs_tol=0.051)

    def check_branches(
        self,
        body: str,
        cases: Cases,
        depth: int,
        places: dict[int, tuple[Cases, int]],
    ) -> None:
        items = re.findall(
            r"^- (\S+) (.+?): node (\d+), (.+?), (?:splits on|a leaf).*$",
            body,
            flags=re.M,
        )
        assert items
        name = items[0][0]
        held = {
            int(node): [c for c in cases if meets(c.row[name], test)]
            for _, test, node, _ in items
        }
        gone = [c for c in cases if c.row[name] is None]
        own = [int(node) for _, test, node, _ in items if test == "is missing"]
        if gone and not own:
            self.send(gone, held, body)
        for _, _, node, prediction in items:
            self.same_prediction(prediction, held[int(node)])
            places[int(node)] = held[int(node)], depth + 1

    def send(self, gone: Cases, held: dict[int, Cases], body: str) -> None:
        """Send missing cases where the policy has them go."""
        policy = self.settings.missing
        sizes = {node: weight(cases) for node, cases in held.items()}
        if policy == "split":
            assert "they go down every branch" in body
            whole = sum(sizes.values())
            for node, size in sizes.items():
                share = size / whole
                held[node] = held[node] + [
                    Case(c.row, c.y, c.weight * share, c.part * share) for c in gone
                ]
        elif policy == "largest":
            largest = max(sizes, key=lambda node: sizes[node])
            assert f"they go to node {largest}" in body
            held[largest] = held[largest] + gone
        else:
            assert policy == "node"
            assert "they stop here" in body


SYMBOLS = {
    "gain": "H",
    "gain_ratio": "H",
    "gini": "Gini",
    "variance": "Var",
    "poisson": "D",
}


def close(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= max(Decimal(TIE) * abs(other), Decimal("1e-9"))


def first(tried: list[tuple[float, Exact]], key: Callable[[Exact], Decimal]) -> Exact:
    top = max(key(exact) for _, exact in tried)
    return next(exact for _, exact in tried if close(key(exact), top))


def number(value: float) -> str:
    return repr(value).removesuffix(".0")


def condition(name: str, label: str) -> str:
    if label == "(missing)":
        return f"{name} is missing"
    if label == "(known)":
        return f"{name} is known"
    if label.startswith(("<=", ">")):
        return f"{name} {label}"
    return f"{name} in {{{label}}}" if "," in label else f"{name} = {label}"


def split_formula(line: str, of: str) -> tuple[str, str, str]:
    end = line.index(f"({of})") + len(of) + 2
    _, middle, value = line[end:].split(" = ")
    return line[:end], middle, value


def right_side(line: str, name: str, of: str) -> tuple[str, str]:
    left = f"{name}({of}) = "
    assert line.startswith(left), (line, left)
    middle, value = line.removeprefix(left).split(" = ")
    return middle, value


def printed_groups(body: str) -> list[list[str]] | None:
    """Return the groups of values that the last count table has."""
    tables = [b.split("\n") for b in body.strip().split("\n\n")]
    counted = [t for t in tables if re.search(r" (H|Gini|Var|D)$", t[0])]
    if not counted:
        return None
    names = [re.split(r" {2,}", line)[0] for line in counted[0][1:]]
    return [name.split(", ") for name in names if name != "(missing)"]


def meets(cell: Cell, test: str) -> bool:
    if cell is None:
        return test == "is missing"
    if test == "is known":
        return True
    if test.startswith("<= "):
        return float(cell) <= float(test[3:])
    if test.startswith("> "):
        return float(cell) > float(test[2:])
    if test.startswith("not in {"):
        return cell not in test[8:-1].split(", ")
    if test.startswith("in {"):
        return cell in test[4:-1].split(", ")
    return test == f"= {cell}"


def stirling(n: int, k: int) -> int:
    if k in (n, 1):
        return 1
    return k * stirling(n - 1, k) + stirling(n - 1, k - 1)


def spread(cases: Cases) -> Fraction:
    centre = mean(cases)
    return sum(c.weight * (Fraction(c.y) - centre) ** 2 for c in cases) / weight(cases)


def chi_square_tail(x: float, freedom: int) -> float:
    """Return the tail of chi-square in closed form, for whole degrees of freedom."""
    if freedom == 0 or x <= 0:
        return 1.0
    if freedom % 2 == 0:
        return math.exp(-x / 2) * sum(
            (x / 2) ** k / math.factorial(k) for k in range(freedom // 2)
        )
    tail = math.erfc(math.sqrt(x / 2))
    term = math.sqrt(2 * x / math.pi) * math.exp(-x / 2)
    for k in range(1, (freedom - 1) // 2 + 1):
        tail += term
        term *= x / (2 * k + 1)
    return tail


def t_tail(t: float, freedom: int) -> float:
    """Return the tail on both sides of Student's t in closed form."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2 == 0:
        term = total = 1.0
        for k in range(1, freedom // 2):
            term *= cosine**2 * (2 * k - 1) / (2 * k)
            total += term
        return 1 - sine * total
    total, term = 0.0, cosine
    for k in range(1, (freedom - 1) // 2 + 1):
        total += term
        term *= cosine**2 * (2 * k) / (2 * k + 1)
    return 1 - 2 / math.pi * (angle + sine * total)
