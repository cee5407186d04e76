"""The worked solution of a tree for a class: on paper, on a slide, to try oneself.

The table is the fourteen days of tennis of the textbooks. The root is worked out as
one does it by hand, then a second split; the same as LaTeX and as a page that
hides the results. Files are written to a temporary directory only.
"""

import tempfile
from pathlib import Path

from branchwise import C45Classifier, ID3Classifier, datasets


def heading(text: str) -> None:
    print(f"\n{text}\n{'*' * len(text)}")


def main() -> dict[str, object]:
    tennis = datasets.load("tennis")
    model = ID3Classifier().fit(tennis.X, tennis.y).model_

    heading("The root, as on the board")
    root = model.steps(tennis.X, tennis.y)
    print(root)

    heading("A split further down, where it is sunny")
    sunny = next(c.node for c in root[0].children if c.condition.value == "sunny")
    below = model.steps(tennis.X, tennis.y, node=sunny)
    for candidate in below[sunny].candidates:
        gain = "-" if candidate.gain is None else f"{candidate.gain:.3f}"
        print(f"{candidate.column:<12} {gain}")
    print("chosen:", below[sunny].chosen)

    heading("C4.5: the gain ratio, and a least gain")
    c45 = C45Classifier().fit(tennis.X, tennis.y).model_
    first = c45.steps(tennis.X, tennis.y)[0]
    for candidate in first.candidates:
        verdict = "chosen" if candidate.column == first.chosen else candidate.out or ""
        print(
            f"{candidate.column:<12} gain {candidate.gain:.3f}  ratio "
            f"{candidate.score:.3f}  {verdict}"
        )
    print(f"average gain {first.average:.3f}")

    heading("For slides and for the class")
    everything = model.steps(tennis.X, tennis.y, node="all")
    with tempfile.TemporaryDirectory() as folder:
        sizes = {}
        for name, content in (
            ("steps.tex", everything.to_latex()),
            ("steps.md", everything.to_markdown()),
            ("steps.html", everything.to_html()),
            ("answers.html", everything.to_html(reveal=True)),
        ):
            path = Path(folder) / name
            path.write_text(content, encoding="utf-8")
            sizes[name] = path.stat().st_size
            print(f"{name}: {sizes[name]:,} bytes")

    return {
        "entropy": root[0].whole.impurity,
        "gains": {c.column: c.gain for c in root[0].candidates},
        "sunny": {c.column: c.gain for c in below[sunny].candidates},
        "chosen": (root[0].chosen, below[sunny].chosen, first.chosen),
        "text": str(root),
        "files": list(sizes),
    }


if __name__ == "__main__":
    main()
