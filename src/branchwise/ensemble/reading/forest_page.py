"""The HTML page of a forest: figures, error, importances, rules, best tree, prototypes.

The page needs nothing from outside, and has the styles of the report. Scripts and
styles are allowed by their hashes only, and the network not at all.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import OutOfBag
from branchwise.ensemble.reading.best_tree import BestTree
from branchwise.ensemble.reading.forest_rules import ForestRules
from branchwise.ensemble.reading.importances import Importances
from branchwise.ensemble.reading.proximities import Prototypes
from branchwise.ensemble.reading.summary import EnsembleSummary
from branchwise.errors import counted, plain
from branchwise.model import Model
from branchwise.render import view as viewer
from branchwise.render.charts import (
    MOST_CELLS,
    Series,
    axis,
    bar_chart,
    line_chart,
    matrix_chart,
    percent_figure,
    plain_figure,
)
from branchwise.steps.result import style_sheet
from branchwise.text import as_html as html
from branchwise.text.blocks import Block, Items, Paragraph, Table
from branchwise.text.labels import target_title
from branchwise.text.words import rounded, share, word

#: Bars on a chart, and levels of the tree on paper.
_MOST_BARS, _PAPER_LEVELS = 20, 3
_WHY_LESS = "so that this page stays small: best_tree().to_html() has all of it"


@dataclass(frozen=True)
class Section:
    """A section of the page: charts with their captions, blocks, and folded blocks."""

    name: str
    title: str
    figures: Sequence[tuple[str, str]] = ()
    blocks: Sequence[Block] = ()
    folded: Sequence[Block] = ()

    @property
    def body(self) -> Any:
        """The blocks as HTML."""
        return html.as_html(self.blocks)

    @property
    def fold(self) -> Any:
        """The folded blocks as HTML; empty if there are none."""
        return html.as_html(self.folded) if self.folded else ""


def forest_page(
    ensemble: FittedTrees,
    out: OutOfBag,
    importances: Importances,
    best: BestTree,
    rules: ForestRules,
    prototypes: Prototypes | None,
    title: str | None = None,
) -> str:
    """Write the page; a forest that predicts numbers has no prototypes."""
    target, usual = "the target", "A forest"
    title_of_target = target_title(ensemble.schema)
    if title_of_target is not None:
        target = word(title_of_target)
        usual = f"{target}: a forest"
    return fill_page(
        heading=usual if title is None else plain(title),
        lead=_lead(ensemble, out, target),
        tiles=list(_tiles(ensemble, out, best)),
        sections=list(_sections(out, importances, best, rules, prototypes)),
        viewer=viewer_page(best),
        picture=picture_on_paper(best),
    )


def picture_on_paper(tree: Model) -> str:
    """Return the upper levels of a tree, for an image in a page."""
    picture = tree.to_svg(max_depth=_PAPER_LEVELS)
    return base64.b64encode(picture.encode("utf-8")).decode("ascii")


def summary_page(summary: EnsembleSummary, title: str | None = None) -> str:
    """Write the page of what a summary has."""
    kinds = {"forest": "a forest", "boosted": "boosting"}
    kind = kinds.get(summary.method, "gradient boosting")
    usual = kind.capitalize()
    target = summary.target_in_words()
    if target is not None:
        usual = f"{target}: {kind}"
    first, *others = summary.sentences()
    names = summary.titles()[:_MOST_BARS]
    shares = list(summary.importances.values())[:_MOST_BARS]
    importances = Section(
        "importances",
        "Which columns matter",
        [(impurity_chart(names, shares), "By impurity, on training rows.")],
        (),
        [block for block in summary.blocks() if isinstance(block, Table)],
    )
    trees = Section("trees", "The trees", (), [Paragraph(text) for text in others])
    leaves = sum(summary.leaves) / len(summary.leaves)
    return fill_page(
        heading=usual if title is None else plain(title),
        lead=first,
        tiles=[
            (f"{len(summary.leaves):,}", "trees"),
            (f"{leaves:,.1f}", "leaves of a tree, on average"),
            (f"{max(summary.depths):,}", "splits on the longest path"),
            (f"{len(summary.importances):,}", "columns"),
        ],
        sections=[trees, importances],
    )


def fill_page(
    styles: Sequence[str] = (), scripts: Sequence[str] = (), **values: Any
) -> str:
    """Fill in the page; those without a tree have no viewer.

    ``styles`` and ``scripts`` are assets that a page has besides.
    """
    assets = ("render/assets/charts.css", "report/assets/report.css", *styles)
    style = html.markup("\n".join([style_sheet(), *map(html.asset, assets)]))
    script = html.markup(
        "\n".join(map(html.asset, ("report/assets/report.js", *scripts)))
    )
    inner_style, inner_script = viewer.style_and_script()
    return html.page(
        "ensemble/reading/templates/forest.html",
        policy=html.policy([style, inner_style], [script, inner_script]),
        style=style,
        script=script,
        **values,
    )


def _lead(ensemble: FittedTrees, out: OutOfBag, target: str) -> str:
    trees = counted(len(ensemble), f"{ensemble.recipe.tree.algorithm} tree")
    columns = counted(len(ensemble.schema.columns), "column")
    how = (
        f"has an R squared of {rounded(out.score, 3)}"
        if ensemble.is_regression
        else f"is right for {share(out.score, 1)} of the rows"
    )
    return (
        f"A forest of {trees} predicts {target} from {columns} of "
        f"{out.training.data.n_rows:,} rows. Out of bag, each row by the trees that "
        f"were grown without it, it {how}."
    )


def _tiles(
    ensemble: FittedTrees, out: OutOfBag, best: BestTree
) -> Iterator[tuple[str, str]]:
    if ensemble.is_regression:
        yield rounded(out.score, 3), "R squared, out of bag"
        yield rounded(best.oob_score, 3), "R squared of the best tree, out of bag"
    else:
        yield share(out.score, 1), "right, out of bag"
        yield share(best.oob_score, 1), "right with the best tree, out of bag"
    yield f"{len(ensemble):,}", "trees"
    leaves = sum(tree.n_leaves for tree in ensemble.trees) / len(ensemble)
    yield f"{leaves:,.1f}", "leaves of a tree, on average"
    yield f"{out.training.data.n_rows:,}", "rows"


def _sections(
    out: OutOfBag,
    importances: Importances,
    best: BestTree,
    rules: ForestRules,
    prototypes: Prototypes | None,
) -> Iterator[Section]:
    yield error_section(out.error_by_trees, out.ensemble.is_regression)
    yield importances_section(importances)
    yield rules_section(rules)
    yield Section("tree", "The tree nearest to it", (), [Paragraph(best.summary)])
    if not out.ensemble.is_regression:
        yield _confusion(out)
    if prototypes is not None:
        yield Section(
            "prototypes", "A typical row of each class", (), list(prototypes.blocks())
        )


def rules_section(rules: ForestRules) -> Section:
    """List the rules."""
    sentences = [rule.sentence() for rule in rules]
    closing = [Paragraph(line) for line in rules.closing()]
    return Section("rules", "In rules", (), [Items(sentences, numbered=True), *closing])


def error_section(
    errors: Floats, squared: bool, rows: str = "out of bag", what: str = "tree"
) -> Section:
    """Draw the error against the number of trees, or of rounds."""
    known = np.flatnonzero(~np.isnan(errors))
    trees, values = (known + 1).tolist(), errors[known].tolist()
    name = "mean squared error" if squared else "error rate"
    shown = plain_figure if squared else percent_figure
    figures = []
    if values:
        chart = line_chart(
            f"Error against the number of {what}s",
            f"From {values[0]:.4g} with {counted(trees[0], what)} to "
            f"{values[-1]:.4g} with {trees[-1]:,}.",
            axis(f"{what}s", [0, *trees]),
            axis(name, [0, *values], shown),
            [Series(rows, trees, values)],
        )
        told = f"{name} of the first {what}s, {rows}."
        figures.append((chart, told[0].upper() + told[1:]))
    text = f"Where the line is flat, further {what}s do not help."
    return Section("error", f"How many {what}s it needs", figures, [Paragraph(text)])


def importances_section(importances: Importances) -> Section:
    """Draw importances with their intervals."""
    names = importances.titles()[:_MOST_BARS]
    figures = []
    if names:
        rises, low, high, impurity = (
            np.nan_to_num(array[: len(names)]).tolist()
            for array in (
                importances.permutation,
                np.fmin(importances.low, importances.permutation),
                np.fmax(importances.high, importances.permutation),
                importances.impurity,
            )
        )
        shown = plain_figure if importances.is_regression else percent_figure
        told = "; ".join(f"{n}: {v:.3g}" for n, v in zip(names, rises, strict=True))
        error = "mean squared error" if importances.is_regression else "error rate"
        by_permutation = bar_chart(
            "Rise of the error if a column is permuted",
            told,
            names,
            axis(f"rise of the {error}", [0, *low, *high], shown),
            [Series("", (), rises, low, high)],
        )
        by_impurity = impurity_chart(names, impurity)
        level = share(importances.level, 1)
        figures = [
            (
                by_permutation,
                f"Out of bag, by permutation; {level} intervals over trees.",
            ),
            (by_impurity, "On training rows, by impurity."),
        ]
    table = list(importances.blocks())
    return Section("importances", "Which columns matter", figures, table[1:], table[:1])


def impurity_chart(names: Sequence[str], shares: Sequence[float]) -> str:
    """Draw importances by impurity."""
    return bar_chart(
        "Share of impurity that splits on a column take away",
        "; ".join(f"{n}: {v:.3g}" for n, v in zip(names, shares, strict=True)),
        names,
        axis("share of impurity", [0, *shares], percent_figure, most=1),
        [Series("", (), shares)],
    )


def _confusion(out: OutOfBag) -> Section:
    """Draw true against predicted classes, out of bag."""
    names = [word(label) for label in out.ensemble.shown_schema.classes]
    counts = out.confusion_matrix.tolist()
    right = sum(counts[at][at] for at in range(len(counts)))
    told = f"{right:,} of {sum(map(sum, counts)):,} predictions out of bag are right"
    figures = []
    if len(names) <= MOST_CELLS:
        chart = matrix_chart("Confusion matrix", f"{told}.", names, counts)
        figures.append(
            (chart, "Rows by true class (down) and predicted class (across).")
        )
    table = Table(
        ["true class", *names],
        [
            [name, *(f"{count:,}" for count in line)]
            for name, line in zip(names, counts, strict=True)
        ],
    )
    return Section(
        "confusion", "Where it errs", figures, [Paragraph(f"{told}.")], [table]
    )


def viewer_page(best: BestTree) -> str:
    """Return the page of the tree, of a large one the first levels."""
    beyond = viewer.beyond_a_notebook(best.tree)
    small = best.collapse_nodes(*beyond) if beyond else best
    lists = viewer.lists_for(small.tree)
    seen = viewer.view(small.shown_schema, small.tree, small.recipe, lists=lists)
    return viewer.page(viewer.abridged(seen, len(best.tree), _WHY_LESS), str(best))
