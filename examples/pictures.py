"""One tree in every still view: text in three styles, SVG, DOT, Mermaid.

The fourteen days of play, as lines for a terminal, a
list for a wiki, and pictures for a page, for Graphviz and for Mermaid. Nothing is
installed or started for any of them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from branchwise import datasets, fit_tree


def main() -> dict[str, Any]:
    table = datasets.load("weather")
    model = fit_tree(table.X, table.y, target_name="play")

    print("Quinlan's form, which print(model) has:\n")
    print(model.to_text())
    print("\nLines, for a terminal:\n")
    print(model.to_text(style="box"))
    print("\nMarkdown, for a wiki or an issue:\n")
    print(model.to_text(style="markdown"))
    print("\nThe first level as a Mermaid flowchart:\n")
    print(model.to_mermaid(max_depth=1))

    pictures = {"tree.svg": model.to_svg(), "tree.dot": model.to_dot()}
    sizes = {}
    print("\nPictures as files:\n")
    with TemporaryDirectory() as folder:
        for name, content in pictures.items():
            path = Path(folder) / name
            path.write_text(content, encoding="utf-8")
            sizes[name] = path.stat().st_size
            print(f"{name}: {sizes[name]:,} bytes")

    drawing = ET.fromstring(pictures["tree.svg"])  # noqa: S314
    return {
        "box": model.to_text(style="box"),
        "width": float(drawing.attrib["width"]),
        "mermaid": model.to_mermaid(),
        "sizes": sizes,
    }


if __name__ == "__main__":
    main()
