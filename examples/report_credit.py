"""A report on credit decisions: what to hand to those who must sign the model off.

1,000 applicants of a German bank (UCI's credit data). The page needs no network and
can be printed; it is written to a temporary directory here, and
`branchwise report credit-g.csv --target class -o report.html` would keep it.
"""

import tempfile
from pathlib import Path

from pyarrow import csv

from branchwise import C45Classifier
from branchwise.report import make_report
from branchwise.report.page import file_mark

DATA = Path(__file__).parents[1] / "tests" / "data" / "credit-g.csv"


def main() -> dict[str, object]:
    table = csv.read_csv(DATA)
    report = make_report(
        table.drop_columns(["class"]),
        table["class"],
        # A rule that three applicants support is hard to defend.
        C45Classifier(min_samples_branch=20),
        target_name="class",
        title="Credit risk: who repays?",
        files=[file_mark(DATA)],
    )
    print(repr(report.model))

    # The findings are plain values; the page only shows them.
    found = report.sections["evaluation"]
    accuracy, usual = found["scores"]["accuracy"], found["baseline"]["accuracy"]
    print(
        f"accuracy {accuracy['mean']:.3f} ({accuracy['low']:.3f} to "
        f"{accuracy['high']:.3f}), with the most frequent class {usual['mean']:.3f}"
    )
    print("confusion matrix:", found["confusion_matrix"])
    for warning in report.sections["warnings"]:
        print("warning:", warning["message"])
    columns = sorted(
        report.sections["importances"]["columns"], key=lambda c: -c["permutation"]
    )
    print("matters most:", ", ".join(column["column"] for column in columns[:3]))
    best = report.sections["pruning"]["best"]["leaves"]
    print(
        f"fewest errors on unseen rows: {best} of {report.model.tree.n_leaves} leaves"
    )

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        report.save(file)
        page = file.read_text(encoding="utf-8")
    print(f"{file.name}: {len(page) // 1000} kB, all in one file")
    return {
        "leaves": report.model.tree.n_leaves,
        "accuracy": accuracy,
        "baseline": usual["mean"],
        "confusion": found["confusion_matrix"],
        "warnings": [one["columns"] for one in report.sections["warnings"]],
        "first": columns[0]["column"],
        "best": best,
        "page": page,
    }


if __name__ == "__main__":
    main()
