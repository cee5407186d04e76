"""The HTML page of rules that vote: rules, a case to type in, coverage, overlap.

Coverage is of the training cases; overlap needs rows, and a model file has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from branchwise.data.arrays import Floats
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.reading.case_inputs import case_inputs
from branchwise.ensemble.reading.forest_page import Section, fill_page, impurity_chart
from branchwise.ensemble.reading.voting_rules import VotingRules
from branchwise.errors import counted, plain
from branchwise.render.charts import Series, axis, bar_chart, percent_figure
from branchwise.text.blocks import Block, Items, Paragraph, Table
from branchwise.text.labels import class_called, target_title, titles_of
from branchwise.text.words import percent, word

#: Bars on a chart, and rules in the table of overlaps.
_MOST_BARS, _MOST_OVERLAPS = 20, 20


def rules_page(
    ensemble: FittedTrees, rules: VotingRules, title: str | None = None
) -> str:
    """Write the page."""
    titled = target_title(ensemble.schema)
    target = "the class" if titled is None else word(titled)
    usual = "Rules that vote" if titled is None else f"{target}: rules that vote"
    n_conditions = sum(len(rule.conditions) for rule in rules)
    columns = counted(len(ensemble.schema.columns), "column")
    each = f"{n_conditions / len(rules):,.1f}" if len(rules) else "0"
    return fill_page(
        heading=usual if title is None else plain(title),
        lead=f"{counted(len(rules), 'rule')} vote for {target}, from {columns}.",
        tiles=[
            (f"{len(rules):,}", "rules"),
            (each, "conditions of a rule, on average"),
            (f"{len(ensemble.schema.classes):,}", "classes"),
            (f"{len(ensemble.used_columns):,}", "columns that rules use"),
        ],
        sections=[*_rules_and_case(ensemble, rules), *_importances(ensemble, rules)],
        case=case_inputs(rules),
        styles=["ensemble/reading/assets/case.css"],
        scripts=["ensemble/reading/assets/case.js"],
    )


def _rules_and_case(ensemble: FittedTrees, rules: VotingRules) -> Iterator[Section]:
    """Yield the sections of the rules, and after the rules a case to type in."""
    first, *others = rule_sections(ensemble, rules)
    yield first
    if len(rules):
        yield Section("case", "Which rules hold for a case")
    yield from others


def rule_sections(ensemble: FittedTrees, rules: VotingRules) -> Iterator[Section]:
    """Yield the rules, what they cover and how they overlap."""
    sentences = [rule.sentence() for rule in rules]
    closing = [Paragraph(line) for line in rules.closing()]
    yield Section("rules", "The rules", (), [Items(sentences, numbered=True), *closing])
    if not len(rules):
        return
    yield _coverage(rules)
    if ensemble.samples is not None:
        overlap = rules.overlap(ensemble.samples.training.data)
        yield Section("overlap", "Which rules overlap", (), list(_overlap(overlap)))


def _importances(ensemble: FittedTrees, rules: VotingRules) -> Iterator[Section]:
    if not len(rules):
        return
    shares = ensemble.feature_importances
    order = sorted(range(len(shares)), key=lambda at: -shares[at])[:_MOST_BARS]
    names = titles_of(ensemble.schema, ensemble.schema.names)
    chart = impurity_chart(
        [names[at] for at in order], [float(shares[at]) for at in order]
    )
    told = "By the variance of votes that conditions on a column take away."
    yield Section("importances", "Which columns matter", [(chart, told)])


def _coverage(rules: VotingRules) -> Section:
    """Draw how many training cases each of the first rules covers."""
    shown = list(rules)[:_MOST_BARS]
    names = [
        f"{at}: {word(class_called(rules.schema, rule.label))}"
        for at, rule in enumerate(shown, 1)
    ]
    covered = [rule.coverage or 0.0 for rule in shown]
    right = [(rule.coverage or 0.0) * (rule.confidence or 0.0) for rule in shown]
    told = "; ".join(f"{n}: {v:.3g}" for n, v in zip(names, covered, strict=True))
    chart = bar_chart(
        "Share of training cases that each rule covers",
        told,
        names,
        axis("share of training cases", [0, *covered], percent_figure, most=1),
        [Series("covered", (), covered), Series("of its class", (), right)],
    )
    return Section(
        "coverage",
        "How much they cover",
        [(chart, "All cases that fulfil a rule, and those of its class.")],
    )


def _overlap(overlap: Floats) -> Iterator[Block]:
    """Yield a table of pairs, and what it means."""
    shown = overlap[:_MOST_OVERLAPS, :_MOST_OVERLAPS]
    numbers = [str(at) for at in range(1, len(shown) + 1)]
    yield Paragraph(
        "Of the training cases that fulfil the rule of a line, the share that fulfils "
        "the rule of a column, too."
    )
    yield Table(
        ["rule", *numbers],
        [
            [number, *(percent(float(cell)) for cell in line)]
            for number, line in zip(numbers, shown, strict=True)
        ],
    )
    if len(overlap) > len(shown):
        yield Paragraph(f"The first {len(shown)} of {len(overlap):,} rules.")
